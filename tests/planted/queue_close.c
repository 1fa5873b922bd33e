/* queue_close.c - a queue is closed: what is in it is taken out, and what comes later is refused.
 *
 * Wrong:      put lets go of the lock between seeing that the queue is open and putting its item there.
 * Schedule:   put sees that it is open; it is closed and emptied; put puts its item there and says that all is well.
 * Shows:      assert: an accepted item that nobody gets.
 * Fix:        look and put under one lock. */
#include "planted.h"

static struct hd_semaphore mutex = LOCK;
static bool closed; /* guarded by mutex, as are the items */
static int items, delivered;
static _Atomic int accepted;

static bool put(void)
{
	lock(&mutex);
	bool may = !closed;
#ifndef FIXED
	unlock(&mutex);
	hd_checkpoint(); /* it gets the item ready */
	lock(&mutex);
#endif
	items += may;
	unlock(&mutex);
	return may;
}

static void *put_two(void *arg)
{
	for (int i = 0; i < 2; i++)
		if (put())
			accepted++;
	return arg;
}

static void *close_and_empty(void *arg)
{
	lock(&mutex);
	closed = true;
	delivered = items;
	items = 0;
	unlock(&mutex);
	return arg;
}

PLANTED_MAIN
{
	TOGETHER(put_two, close_and_empty);
	MUST(delivered == accepted);
}
