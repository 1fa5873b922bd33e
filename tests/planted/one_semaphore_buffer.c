/* one_semaphore_buffer.c - a buffer for one item; producers and consumers who cannot go on wait for a change.
 *
 * Wrong:      one semaphore tells of all changes. What a consumer should hear, a consumer may have used up, and a producer too.
 * Schedule:   both consumers wait; A produces, which wakes the first; B waits behind the second for room; the first consumer
 *             makes room, which wakes the second consumer, who waits again. Nobody will tell B.
 * Shows:      deadlock.
 * Fix:        a semaphore for those who wait for an item, and one for those who wait for room. */
#include "planted.h"

static struct hd_semaphore mutex = LOCK, filled;
#ifdef FIXED
static struct hd_semaphore emptied;
#else
#define emptied filled
#endif
static int items; /* guarded by mutex */

static void *produce(void *arg)
{
	for (lock(&mutex); items == 1; lock(&mutex)) {
		unlock(&mutex);
		MUST(hd_semaphore_wait(&emptied, HD_FOREVER) == 0);
	}
	items++;
	unlock(&mutex);
	hd_semaphore_signal(&filled);
	return arg;
}

static void *consume(void *arg)
{
	for (lock(&mutex); items == 0; lock(&mutex)) {
		unlock(&mutex);
		MUST(hd_semaphore_wait(&filled, HD_FOREVER) == 0);
	}
	items--;
	unlock(&mutex);
	hd_semaphore_signal(&emptied);
	return arg;
}

PLANTED_MAIN
{
	TOGETHER(produce, produce, consume, consume);
}
