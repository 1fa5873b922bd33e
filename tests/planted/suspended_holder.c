/* suspended_holder.c - a supervisor stops a worker to look at its table in peace.
 *
 * Wrong:      it stops the worker wherever that is, and then wants the lock of the table.
 * Schedule:   the worker is stopped with the lock in its hand.
 * Shows:      deadlock.
 * Fix:        take the lock first: then the worker is stopped outside of it. */
#include "planted.h"

static struct hd_semaphore table = LOCK;
static int rows, columns; /* guarded by table */
static hd_pid worker;

static void *work(void *arg)
{
	for (int i = 0; i < 2; i++) {
		lock(&table);
		rows++;
		hd_checkpoint(); /* its work */
		columns++;
		unlock(&table);
	}
	return arg;
}

static void *supervise(void *arg)
{
#ifdef FIXED
	lock(&table);
	int err = hd_suspend(worker, HD_FOREVER);
	MUST(err == 0 || err == -ESRCH); /* -ESRCH when it has ended: just as well */
#else
	int err = hd_suspend(worker, HD_FOREVER);
	MUST(err == 0 || err == -ESRCH);
	lock(&table);
#endif
	MUST(rows == columns);
	hd_resume(worker);
	unlock(&table);
	return arg;
}

PLANTED_MAIN
{
	worker = start(work, NULL);
	finish(start(supervise, NULL));
	finish(worker);
}
