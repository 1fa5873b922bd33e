/* buffer.c - a bounded buffer as a monitor, with a condition for room and one for items.
 *
 * A process that was signalled gets the monitor later, and another one may have taken the item meanwhile: so every wait is in a
 * loop that looks again. */
#include "../check.h"

#include <heddle.h>

enum { PLACES = 3, PRODUCERS = 3, CONSUMERS = 2, EACH = 10, ITEMS = PRODUCERS * EACH };

struct buffer {
	struct hd_monitor monitor; /* guards what follows */
	struct hd_condition room, items;
	int item[PLACES], oldest, count;
};

static struct buffer buffer;
static int sums[CONSUMERS];

static void put(struct buffer *b, int item)
{
	CHECK(hd_monitor_enter(&b->monitor, HD_FOREVER) == 0);
	while (b->count == PLACES)
		CHECK(hd_monitor_wait(&b->monitor, &b->room, HD_FOREVER) == 0);
	b->item[(b->oldest + b->count++) % PLACES] = item;
	hd_monitor_signal(&b->monitor, &b->items);
	hd_monitor_exit(&b->monitor);
}

static int take(struct buffer *b)
{
	CHECK(hd_monitor_enter(&b->monitor, HD_FOREVER) == 0);
	while (b->count == 0)
		CHECK(hd_monitor_wait(&b->monitor, &b->items, HD_FOREVER) == 0);
	int item = b->item[b->oldest];
	b->oldest = (b->oldest + 1) % PLACES;
	b->count--;
	hd_monitor_signal(&b->monitor, &b->room);
	hd_monitor_exit(&b->monitor);
	return item;
}

static void *produce(void *arg)
{
	for (int i = 1; i <= EACH; i++)
		put(&buffer, i);
	return arg;
}

static void *consume(void *arg)
{
	int *sum = arg;

	for (int i = 0; i < ITEMS / CONSUMERS; i++)
		*sum += take(&buffer);
	return NULL;
}

static void *first(void *arg)
{
	struct hd_group all = { 0 };

	for (int i = 0; i < CONSUMERS; i++)
		CHECK(hd_group_spawn(&all, consume, &sums[i]) > 0);
	for (int i = 0; i < PRODUCERS; i++)
		CHECK(hd_group_spawn(&all, produce, NULL) > 0);
	CHECK(hd_group_wait(&all, HD_FOREVER) == 0);
	CHECK(buffer.count == 0);
	printf("%d items went through %d places; they add up to %d\n", ITEMS, PLACES, sums[0] + sums[1]);
	return arg;
}

int main(void)
{
	return hd_run(NULL, first, NULL) != 0;
}
