/* forgotten_unlock.c - a stock from which one takes if there is something, and goes on if there is nothing.
 *
 * Wrong:      who finds nothing goes away with the lock.
 * Schedule:   the taker comes before there is anything.
 * Shows:      deadlock.
 * Fix:        unlock on every way out. */
#include "planted.h"

static struct hd_semaphore mutex = LOCK;
static int stock; /* guarded by mutex */

static void *take(void *arg)
{
	lock(&mutex);
	if (stock == 0) {
#ifdef FIXED
		unlock(&mutex);
#endif
		return arg;
	}
	stock--;
	unlock(&mutex);
	return arg;
}

static void *fill(void *arg)
{
	lock(&mutex);
	stock++;
	unlock(&mutex);
	return arg;
}

PLANTED_MAIN
{
	TOGETHER(fill, take);
}
