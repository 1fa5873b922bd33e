/* once_early.c - whoever comes first initialises; the others need not.
 *
 * Wrong:      the others see that it has begun, and do not wait until it is done.
 * Schedule:   the first has begun; the second goes on and uses what is not there yet.
 * Shows:      assert.
 * Fix:        the others wait until it is done, each letting the next one by. */
#include "planted.h"

static _Atomic bool begun;
static struct hd_semaphore done;
static _Atomic int settings;

static void once(void)
{
	if (!atomic_exchange(&begun, true)) {
		hd_checkpoint(); /* reading them takes a while */
		settings = 42;
	} else {
#ifdef FIXED
		MUST(hd_semaphore_wait(&done, HD_FOREVER) == 0);
#else
		return;
#endif
	}
	hd_semaphore_signal(&done);
}

static void *use(void *arg)
{
	once();
	MUST(settings == 42);
	return arg;
}

PLANTED_MAIN
{
	TOGETHER(use, use, use);
}
