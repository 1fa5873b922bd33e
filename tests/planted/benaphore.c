/* benaphore.c - a lock that counts who wants it and needs its semaphore only when there is more than one.
 *
 * Wrong:      unlock looks whether anybody waits, and subtracts itself afterwards.
 * Schedule:   unlock sees nobody but itself; another one adds itself and goes to sleep; unlock subtracts and wakes nobody.
 * Shows:      deadlock.
 * Fix:        the subtraction itself says how many there were. */
#include "planted.h"

static _Atomic int wanted, inside;
static struct hd_semaphore sleepers;

static void enter(void)
{
	if (atomic_fetch_add(&wanted, 1) > 0)
		MUST(hd_semaphore_wait(&sleepers, HD_FOREVER) == 0);
}

static void leave(void)
{
#ifdef FIXED
	int n = atomic_fetch_sub(&wanted, 1);
#else
	int n = wanted;
	hd_checkpoint(); /* it has looked, and not subtracted yet */
	wanted--;
#endif
	if (n > 1)
		hd_semaphore_signal(&sleepers);
}

static void *go_in_and_out(void *arg)
{
	for (int i = 0; i < 2; i++) {
		enter();
		MUST(inside++ == 0);
		hd_checkpoint(); /* it is inside for a while */
		inside--;
		leave();
	}
	return arg;
}

PLANTED_MAIN
{
	TOGETHER(go_in_and_out, go_in_and_out);
}
