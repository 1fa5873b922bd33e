/* buffer_lock_first.c - a buffer for one item, with a semaphore for items, one for room and a lock.
 *
 * Wrong:      the producer waits for room with the lock in its hand; who could make room needs the lock.
 * Schedule:   the producer's yield does not let the consumer run, and the producer comes again to a full buffer.
 * Shows:      deadlock.
 * Fix:        wait for room first, lock then. */
#include "planted.h"

static struct hd_semaphore mutex = LOCK, room = HD_SEMAPHORE(1), filled;
static int items; /* guarded by mutex */

static void *produce(void *arg)
{
	for (int i = 0; i < 2; i++) {
#ifdef FIXED
		MUST(hd_semaphore_wait(&room, HD_FOREVER) == 0);
		lock(&mutex);
#else
		lock(&mutex);
		MUST(hd_semaphore_wait(&room, HD_FOREVER) == 0);
#endif
		MUST(++items == 1);
		unlock(&mutex);
		hd_semaphore_signal(&filled);
		hd_yield(); /* the consumer is welcome */
	}
	return arg;
}

static void *consume(void *arg)
{
	for (int i = 0; i < 2; i++) {
		MUST(hd_semaphore_wait(&filled, HD_FOREVER) == 0);
		lock(&mutex);
		items--;
		unlock(&mutex);
		hd_semaphore_signal(&room);
	}
	return arg;
}

PLANTED_MAIN
{
	TOGETHER(produce, consume);
}
