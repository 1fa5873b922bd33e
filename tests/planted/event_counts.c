/* event_counts.c - a producer sets an event for each item; the consumer waits for the event and resets it.
 *
 * Wrong:      the consumer takes one item each time, as if the event counted. Setting it twice is the same as once.
 * Schedule:   the producer brings both items before the consumer runs; the consumer takes one and waits for a second event.
 * Shows:      deadlock.
 * Fix:        take whatever is there. */
#include "planted.h"

enum { ITEMS = 2 };

static struct hd_semaphore mutex = LOCK;
static struct condition changed;
static bool event; /* guarded by mutex */
static _Atomic int items;

static void *produce(void *arg)
{
	for (int i = 0; i < ITEMS; i++) {
		items++;
		lock(&mutex);
		event = true;
		condition_notify(&changed);
		unlock(&mutex);
		hd_yield(); /* so that the consumer takes it */
	}
	return arg;
}

static void *consume(void *arg)
{
	for (int taken = 0; taken < ITEMS;) {
		lock(&mutex);
		while (!event)
			condition_wait(&changed, &mutex);
		event = false;
		unlock(&mutex);
#ifdef FIXED
		taken += atomic_exchange(&items, 0);
#else
		taken++;
		items--;
#endif
	} /* until it has them all */
	return arg;
}

PLANTED_MAIN
{
	TOGETHER(consume, produce);
	MUST(items == 0);
}
