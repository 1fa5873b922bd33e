/* rw_fair.c - readers and writers, where nobody starves.
 *
 * Any number of processes may read a page at the same time; who writes it must be alone. Here everybody comes in through the
 * same door, one at a time. A writer stays in the door until the last reader has left the room, and whoever comes later is
 * behind it, readers too. Since a semaphore serves in order of arrival, nobody is overtaken at the door, and nobody waits
 * for ever, whoever keeps coming. */
#include <stdatomic.h>
#include "crowd.h"
#include "group.h"

enum { READERS = 7, WRITERS = 4, VISITS = 3 };

static struct hd_semaphore door = HD_SEMAPHORE(1), room = HD_SEMAPHORE(1);
static struct group readers = GROUP;
static int page[2]; /* guarded by room; both halves say the same, except while somebody writes */

static _Atomic int reading, writing, reads;
static _Atomic int came, went_in; /* to the door, into the room */

static void *reader(void *arg)
{
	for (int visit = 0; visit < VISITS; visit++) {
		CHECK(hd_semaphore_wait(&door, HD_FOREVER) == 0);
		int mine = came++;
		group_enter(&readers, &room);
		reading++;
		CHECK(went_in++ == mine); /* the same order: nobody has slipped in meanwhile */
		hd_semaphore_signal(&door);

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
		CHECK(hd_semaphore_wait(&door, HD_FOREVER) == 0);
		int mine = came++;
		CHECK(hd_semaphore_wait(&room, HD_FOREVER) == 0);
		CHECK(++writing == 1);
		CHECK(went_in++ == mine);
		hd_semaphore_signal(&door);

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

	crowd_start(&crowd, READERS, "reader", reader);
	crowd_start(&crowd, WRITERS, "writer", writer);
	crowd_join(&crowd);
	CHECK(page[0] == WRITERS * VISITS);
	CHECK(page[1] == WRITERS * VISITS);
	CHECK(reads == READERS * VISITS);
	printf("read %d times, written %d times; nobody was overtaken\n", reads, page[0]);
	return arg;
}

int main(void)
{
	return hd_run(NULL, first, NULL);
}
