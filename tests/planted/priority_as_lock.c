/* priority_as_lock.c - a process of higher priority changes two numbers that are always to be equal; a lower one compares them.
 *
 * Wrong:      the lower one cannot run while the higher one does: so it was with one worker. There may be several.
 * Schedule:   the lower one compares, on another worker, between the two changes.
 * Shows:      assert.
 * Fix:        a lock. */
#include "planted.h"

static _Atomic int left, right;
#ifdef FIXED
static struct hd_semaphore both = LOCK;
#define ENTER lock(&both)
#define LEAVE unlock(&both)
#else
#define ENTER
#define LEAVE
#endif

static void *change(void *arg)
{
	for (int i = 0; i < 2; i++) {
		ENTER;
		left++;
		hd_checkpoint(); /* nobody of higher priority is there to take the worker */
		right++;
		LEAVE;
	}
	return arg;
}

static void *compare(void *arg)
{
	ENTER;
	MUST(left == right);
	LEAVE;
	return arg;
}

PLANTED_MAIN
{
	hd_pid low = start(compare, NULL);
	hd_pid high = start_at(HD_PRIORITY_USER_INTERRUPT, change, NULL);

	finish(high);
	finish(low);
}
