/* daemon_left.c - a daemon writes the log.
 *
 * Wrong:      the first process ends when it has logged its last line; a daemon does not keep the runtime running, and
 *             the lines that it has not written yet are lost with it.
 * Schedule:   the first process goes on after its yield, before the daemon has run.
 * Shows:      status 1.
 * Fix:        wait until every line is written. */
#include "planted.h"

enum { LINES = 2 };

static struct hd_semaphore lines, written;
static _Atomic int in_the_log;

static void *write_log(void *arg)
{
	for (;;) {
		MUST(hd_semaphore_wait(&lines, HD_FOREVER) == 0);
		in_the_log++;
		hd_semaphore_signal(&written);
	}
	return arg;
}

static void *first(void *arg)
{
	const struct hd_spawn how = { .daemon = true, .detached = true };

	MUST(hd_spawn_with(&how, write_log, NULL) > 0);
	for (int i = 0; i < LINES; i++)
		hd_semaphore_signal(&lines);
	hd_yield(); /* the daemon is welcome */
#ifdef FIXED
	for (int i = 0; i < LINES; i++)
		MUST(hd_semaphore_wait(&written, HD_FOREVER) == 0);
#endif
	return arg;
}

int main(void)
{
	int status = planted_run(first);

	return in_the_log == LINES ? status : 1;
}
