/* missing_recheck.c - consumers who wait for an item and, once woken, take it for granted.
 *
 * Wrong:      `if` where `while` is needed: between the notify and the waiter's having the mutex again somebody else may come.
 * Schedule:   consumer A waits; the producer brings one item and wakes A; consumer B comes, finds the item and takes it; A goes
 *             on and takes an item that is not there.
 * Shows:      assert.
 * Fix:        look again after every wake-up. */
#include "planted.h"

static struct hd_semaphore mutex = LOCK;
static struct condition filled;
static int items; /* guarded by mutex */

static void *consume(void *arg)
{
	lock(&mutex);
#ifdef FIXED
	while (items == 0)
#else
	if (items == 0)
#endif
		condition_wait(&filled, &mutex);
	MUST(items > 0);
	items--;
	unlock(&mutex);
	return arg;
}

static void *produce(void *arg)
{
	for (int i = 0; i < 2; i++) {
		lock(&mutex);
		items++;
		condition_notify(&filled);
		unlock(&mutex);
	}
	return arg;
}

PLANTED_MAIN
{
	TOGETHER(consume, consume, produce);
}
