/* rw_readers_first.c - readers and writers, where readers go first.
 *
 * Any number of processes may read a page at the same time; who writes it must be alone. Here a reader waits for a writer
 * that writes, and for nothing else: while others read it walks in, however many writers wait. So writers may starve, if
 * readers keep coming. That readers go first is put to the test: on their first visit all readers stay until all of them are
 * in. If a writer at the door could keep one of them out, they would wait for ever. */
#include <stdatomic.h>
#include "crowd.h"
#include "group.h"
#include "many.h"

enum { READERS = 7, WRITERS = 4, VISITS = 2 };

static struct hd_semaphore room = HD_SEMAPHORE(1);
static struct group readers = GROUP;
static int page[2]; /* guarded by room; both halves say the same, except while somebody writes */

static _Atomic int reading, writing, reads;
static struct hd_semaphore meeting = HD_SEMAPHORE(1), all_met;
static int met; /* guarded by meeting */

static void meet_the_others(void)
{
	CHECK(hd_semaphore_wait(&meeting, HD_FOREVER) == 0);
	if (++met == READERS)
		signal_many(&all_met, READERS);
	hd_semaphore_signal(&meeting);
	CHECK(hd_semaphore_wait(&all_met, HD_FOREVER) == 0);
	CHECK(writing == 0);
}

static void *reader(void *arg)
{
	for (int visit = 0; visit < VISITS; visit++) {
		group_enter(&readers, &room);
		reading++;
		CHECK(writing == 0);
		int half = page[0];
		if (visit == 0)
			meet_the_others();
		hd_yield();
		CHECK(page[1] == half);
		reading--;
		reads++;
		group_leave(&readers, &room);
	}
	return arg;
}

static void *writer(void *arg)
{
	for (int visit = 0; visit < VISITS; visit++) {
		CHECK(hd_semaphore_wait(&room, HD_FOREVER) == 0);
		CHECK(++writing == 1);
		page[0]++;
		hd_yield();
		page[1]++;
		CHECK(reading == 0);
		writing--;
		hd_semaphore_signal(&room);
	}
	return arg;
}

static void *first(void *arg)
{
	struct crowd crowd = { 0 };

	crowd_start(&crowd, WRITERS, "writer", writer);
	crowd_start(&crowd, READERS, "reader", reader);
	crowd_join(&crowd);
	CHECK(page[0] == WRITERS * VISITS);
	CHECK(page[1] == WRITERS * VISITS);
	CHECK(reads == READERS * VISITS);
	printf("read %d times, written %d times; readers went first\n", reads, page[0]);
	return arg;
}

int main(void)
{
	return hd_run(NULL, first, NULL);
}
