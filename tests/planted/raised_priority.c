/* raised_priority.c - a critical section made of priority: who is in it has the highest there is.
 *
 * Wrong:      that keeps others from the same worker, not from another one.
 * Schedule:   both have raised their priority; both read the counter before either writes it.
 * Shows:      assert.
 * Fix:        a lock. */
#include "planted.h"

static _Atomic int counter;
#ifdef FIXED
static struct hd_semaphore section = LOCK;
#endif

static void enter(void)
{
#ifdef FIXED
	lock(&section);
#else
	hd_set_priority(hd_self(), HD_PRIORITY_TIMING);
#endif
}

static void leave(void)
{
#ifdef FIXED
	unlock(&section);
#else
	hd_set_priority(hd_self(), HD_PRIORITY_USER);
#endif
}

static void *count(void *arg)
{
	enter();
	int n = counter;
	hd_checkpoint(); /* the addition */
	counter = n + 1;
	leave();
	return arg;
}

PLANTED_MAIN
{
	TOGETHER(count, count);
	MUST(counter == 2);
}
