/* join_too_early.c - a worker says that its work is done; whoever waited for that joins it without waiting.
 *
 * Wrong:      done is not ended. The join answers -ETIMEDOUT, nobody looks, and nobody ever joins the worker.
 * Schedule:   the worker has signalled and not returned yet.
 * Shows:      leak: a process is left that nobody will collect (an assert finds it).
 * Fix:        join it, for as long as it takes. */
#include "planted.h"

#ifdef FIXED
#define PATIENCE HD_FOREVER
#else
#define PATIENCE 0
#endif

static struct hd_semaphore done;

static void *work(void *arg)
{
	hd_semaphore_signal(&done);
	hd_checkpoint(); /* it is on its way out */
	return arg;
}

static int count(const struct hd_process_info *info, void *arg)
{
	int *n = arg;

	*n += info->pid > 0;
	return 0;
}

PLANTED_MAIN
{
	hd_pid worker = start(work, NULL);
	int processes = 0;

	MUST(hd_semaphore_wait(&done, HD_FOREVER) == 0);
	MUST(hd_join(worker, NULL, PATIENCE) == 0);
	hd_each_process(count, &processes);
	MUST(processes == 1);
}
