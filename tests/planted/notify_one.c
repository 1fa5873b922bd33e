/* notify_one.c - a buffer for one item, with one condition for those who bring and those who take.
 *
 * Wrong:      a change wakes one waiter, and that may be one who cannot use it, goes back to sleep and tells nobody.
 * Schedule:   both takers wait; A brings an item and wakes the first; B finds the buffer full and waits behind the second; the
 *             first taker empties it and wakes the second taker, who waits again. Nobody will wake B.
 * Shows:      deadlock.
 * Fix:        wake all who wait. */
#include "planted.h"

static struct hd_semaphore mutex = LOCK;
static struct condition changed;
static bool full; /* guarded by mutex */

static void change(bool to)
{
	lock(&mutex);
	while (full == to)
		condition_wait(&changed, &mutex);
	full = to;
#ifdef FIXED
	condition_notify_all(&changed);
#else
	condition_notify(&changed);
#endif
	unlock(&mutex);
}

static void *bring(void *arg)
{
	change(true);
	return arg;
}

static void *take(void *arg)
{
	change(false);
	return arg;
}

PLANTED_MAIN
{
	TOGETHER(bring, bring, take, take);
	MUST(!full);
}
