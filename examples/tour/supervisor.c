/* supervisor.c - a process that crashes is started again. */
#include "chapter.h"

#include <errno.h>

/* tour: begin */
static int attempts;

static void *worker(void *arg)
{
	printf("  attempt %d\n", ++attempts);
	if (attempts < 3)
		hd_fail(EIO); /* it crashes */
	printf("  done\n");
	return arg;
}

static void *supervisor(void *arg)
{
	const struct hd_supervised child = { .name = "worker", .entry = worker, .restart = HD_RESTART_ON_FAILURE };

	*(int *)arg = hd_supervise(&(struct hd_supervisor){ .restarts = 5, .children = &child, .count = 1 });
	return NULL;
}

int chapter_supervisor(void)
{
	int result, err = hd_run(NULL, supervisor, &result);
	return err != 0 || result != 0 || attempts != 3;
}
/* tour: end */
