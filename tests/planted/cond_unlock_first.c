/* cond_unlock_first.c - a condition variable whose waiter unlocks the mutex before it is in the queue.
 *
 * Wrong:      between unlock and enqueue nobody knows of the waiter, and everybody may change what it waits for.
 * Schedule:   the waiter unlocks; the other one says that it is ready and finds nobody to wake; the waiter sleeps for good.
 * Shows:      deadlock.
 * Fix:        enqueue, then unlock. */
#include "planted.h"

static struct hd_semaphore mutex = LOCK, queue_lock = LOCK;
static struct seat *queue; /* guarded by queue_lock */
static bool ready;	   /* guarded by mutex */

static void enqueue(struct seat *me)
{
	lock(&queue_lock);
	seat_push(&queue, me);
	unlock(&queue_lock);
}

static void *wait_until_ready(void *arg)
{
	lock(&mutex);
	while (!ready) {
		struct seat me = { .next = NULL };
#ifdef FIXED
		enqueue(&me);
		unlock(&mutex);
#else
		unlock(&mutex);
		enqueue(&me);
#endif
		MUST(hd_semaphore_wait(&me.wake, HD_FOREVER) == 0);
		lock(&mutex);
	}
	unlock(&mutex);
	return arg;
}

static void *make_ready(void *arg)
{
	lock(&mutex);
	ready = true;
	lock(&queue_lock);
	struct seat *sleeper = seat_take(&queue);
	unlock(&queue_lock);
	if (sleeper != NULL)
		hd_semaphore_signal(&sleeper->wake);
	unlock(&mutex);
	return arg;
}

PLANTED_MAIN
{
	TOGETHER(wait_until_ready, make_ready);
}
