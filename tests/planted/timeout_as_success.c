/* timeout_as_success.c - a visitor who waits at a door, but not for ever.
 *
 * Wrong:      it does not look at what hd_semaphore_wait answers, and goes in when its time is up.
 * Schedule:   the owner wakes and the visitor's deadline comes at the same time; the visitor runs first.
 * Shows:      assert: two are inside.
 * Fix:        who was not let in, goes away. */
#include "planted.h"

static struct hd_semaphore door = LOCK;
static _Atomic int inside;
static hd_time deadline;

static void *stay_inside(void *arg)
{
	lock(&door);
	inside++;
	hd_sleep_until(deadline);
	inside--;
	unlock(&door);
	return arg;
}

static void *visit(void *arg)
{
	int err = hd_semaphore_wait(&door, deadline);

#ifdef FIXED
	if (err != 0)
		return arg;
#else
	(void)err;
#endif
	MUST(inside == 0);
	unlock(&door);
	return arg;
}

PLANTED_MAIN
{
	deadline = hd_after(HD_MS(1));
	TOGETHER(stay_inside, visit);
}
