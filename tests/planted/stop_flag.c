/* stop_flag.c - a worker that sleeps until it is woken, and ends when it is told to stop.
 *
 * Wrong:      it looks at `stop`, and only then says that it sleeps; who stops it wakes it only if it says so.
 * Schedule:   the worker looks: go on; the other one sets `stop` and sees nobody asleep; the worker falls asleep for good.
 * Shows:      deadlock.
 * Fix:        say so first, look then: one of the two sees the other. */
#include "planted.h"

static struct hd_semaphore wake;
static _Atomic bool stop, asleep;

static void *work(void *arg)
{
	for (;;) {
#ifdef FIXED
		asleep = true;
		if (stop)
			return arg;
#else
		if (stop)
			return arg;
		hd_checkpoint(); /* it has looked, and does not sleep yet */
		asleep = true;
#endif
		MUST(hd_semaphore_wait(&wake, HD_FOREVER) == 0);
		asleep = false;
	}
}

static void *end_the_work(void *arg)
{
	hd_checkpoint(); /* whatever comes before it */
	stop = true;
	hd_checkpoint(); /* it has told, and not looked yet */
	if (asleep)
		hd_semaphore_signal(&wake);
	return arg;
}

PLANTED_MAIN
{
	TOGETHER(work, end_the_work);
}
