/* bounded_buffer.c - producers and consumers share a buffer of few slots.
 *
 * Producers put items into a ring, consumers take them out, oldest first. A producer waits while the ring is full, a
 * consumer while it is empty. One semaphore counts the free slots and one the items; both are waited for before the ring is
 * locked, else who waits would keep the lock from those it waits for. */
#include "crowd.h"

enum { PRODUCERS = 4, CONSUMERS = 6, ITEMS = 24, SLOTS = 3 };
enum { PUTS = ITEMS / PRODUCERS, TAKES = ITEMS / CONSUMERS };

static struct hd_semaphore room = HD_SEMAPHORE(SLOTS), items;
static struct hd_semaphore mutex = HD_SEMAPHORE(1); /* guards what follows */
static int ring[SLOTS], oldest, filled;		    /* an item is above 0, an empty slot is 0 */
static int taken_of[PRODUCERS], taken;

static void put(int item)
{
	CHECK(hd_semaphore_wait(&room, HD_FOREVER) == 0);
	CHECK(hd_semaphore_wait(&mutex, HD_FOREVER) == 0);
	int slot = (oldest + filled) % SLOTS;
	CHECK(filled < SLOTS);
	CHECK(ring[slot] == 0);
	hd_checkpoint(); /* without the lock, another would have found the same slot */
	ring[slot] = item;
	filled++;
	hd_semaphore_signal(&mutex);
	hd_semaphore_signal(&items);
}

static void take(void)
{
	CHECK(hd_semaphore_wait(&items, HD_FOREVER) == 0);
	CHECK(hd_semaphore_wait(&mutex, HD_FOREVER) == 0);
	int item = ring[oldest], producer = item % PRODUCERS;
	CHECK(filled > 0);
	CHECK(item > 0);
	CHECK(item / PRODUCERS == ++taken_of[producer]); /* in the order in which its producer put them, and none twice */
	hd_checkpoint();
	ring[oldest] = 0;
	oldest = (oldest + 1) % SLOTS;
	filled--;
	taken++;
	hd_semaphore_signal(&mutex);
	hd_semaphore_signal(&room);
}

static void *produce(void *arg)
{
	for (int n = 1; n <= PUTS; n++)
		put(n * PRODUCERS + number_of(arg));
	return arg;
}

static void *consume(void *arg)
{
	for (int n = 1; n <= TAKES; n++)
		take();
	return arg;
}

static void *first(void *arg)
{
	struct crowd crowd = { 0 };

	crowd_start(&crowd, CONSUMERS, "consumer", consume);
	crowd_start(&crowd, PRODUCERS, "producer", produce);
	crowd_join(&crowd);
	CHECK(filled == 0);
	CHECK(taken == ITEMS);
	for (int i = 0; i < PRODUCERS; i++)
		CHECK(taken_of[i] == PUTS);
	printf("%d items went through %d slots\n", taken, SLOTS);
	return arg;
}

int main(void)
{
	return hd_run(NULL, first, NULL);
}
