/* suspend_nests.c - two inspectors, each of whom stops a worker, looks at it and lets it go on.
 *
 * Wrong:      they take suspends for counted. Stopping twice is the same as once, and the first resume ends both.
 * Schedule:   A stops the worker, so does B; A lets it go; it moves while B looks.
 * Shows:      assert.
 * Fix:        count: only the last lets it go. */
#include "planted.h"

static struct hd_semaphore pausing = LOCK;
static int pauses; /* guarded by pausing */
static hd_pid worker;
static _Atomic int steps;

static void *work(void *arg)
{
	for (int i = 0; i < 3; i++) {
		hd_checkpoint(); /* its work */
		steps++;
	}
	return arg;
}

static void stop(void)
{
	lock(&pausing);
	pauses++;
	int err = hd_suspend(worker, HD_FOREVER);
	MUST(err == 0 || err == -ESRCH); /* -ESRCH when it has ended: that is stopped enough */
	unlock(&pausing);
}

static void go_on(void)
{
	lock(&pausing);
	pauses--;
#ifdef FIXED
	if (pauses == 0)
#endif
		hd_resume(worker);
	unlock(&pausing);
}

static void *inspect(void *arg)
{
	stop();
	int before = steps;
	hd_checkpoint(); /* it looks for a while */
	MUST(steps == before);
	go_on();
	return arg;
}

PLANTED_MAIN
{
	worker = start(work, NULL);
	TOGETHER(inspect, inspect);
	finish(worker);
}
