/* rw_writers_first.c - readers and writers, where writers go first.
 *
 * Any number of processes may read a page at the same time; who writes it must be alone. Here no reader may begin while any
 * writer wants to write: it waits until all writers are done. So readers may starve, if writers keep coming. The first
 * writer shuts the readers' door and the last one opens it again; who reads already may finish. */
#include <stdatomic.h>
#include "crowd.h"
#include "group.h"

enum { READERS = 7, WRITERS = 4, VISITS = 3 };

static struct hd_semaphore readers_door = HD_SEMAPHORE(1), room = HD_SEMAPHORE(1);
static struct group readers = GROUP, writers = GROUP;
static int page[2]; /* guarded by room; both halves say the same, except while somebody writes */

static _Atomic int reading, writing, reads;
static _Atomic int writers_about; /* those who have shut the door, or found it shut by their group */

static void *reader(void *arg)
{
	for (int visit = 0; visit < VISITS; visit++) {
		CHECK(hd_semaphore_wait(&readers_door, HD_FOREVER) == 0);
		group_enter(&readers, &room);
		reading++;
		CHECK(writers_about == 0);
		hd_semaphore_signal(&readers_door);

		int half = page[0];
		CHECK(writing == 0);
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
		group_enter(&writers, &readers_door);
		writers_about++;
		CHECK(hd_semaphore_wait(&room, HD_FOREVER) == 0);
		CHECK(++writing == 1);
		page[0]++;
		hd_yield();
		page[1]++;
		CHECK(reading == 0);
		writing--;
		hd_semaphore_signal(&room);
		writers_about--;
		group_leave(&writers, &readers_door);
	}
	return arg;
}

static void *first(void *arg)
{
	struct crowd crowd = { 0 };

	crowd_start(&crowd, READERS, "reader", reader);
	crowd_start(&crowd, WRITERS, "writer", writer);
	crowd_join(&crowd);
	CHECK(page[0] == WRITERS * VISITS);
	CHECK(page[1] == WRITERS * VISITS);
	CHECK(reads == READERS * VISITS);
	printf("read %d times, written %d times; writers went first\n", reads, page[0]);
	return arg;
}

int main(void)
{
	return hd_run(NULL, first, NULL);
}
