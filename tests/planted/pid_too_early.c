/* pid_too_early.c - a new process looks at the id that its parent keeps for it.
 *
 * Wrong:      it may run before hd_spawn has returned to the parent, or at least before the parent has stored the answer.
 * Schedule:   it runs at once, on another worker.
 * Shows:      assert.
 * Fix:        spawn it suspended; it starts when its id is in place. */
#include "planted.h"

#ifdef FIXED
#define HELD true
#else
#define HELD false
#endif

static _Atomic hd_pid child;

static void *look_at_id(void *arg)
{
	MUST(child == hd_self());
	return arg;
}

PLANTED_MAIN
{
	const struct hd_spawn how = { .suspended = HELD };
	hd_pid pid = hd_spawn_with(&how, look_at_id, NULL);

	MUST(pid > 0);
	hd_checkpoint(); /* the new one can run, and its id is not in place */
	child = pid;
	if (HELD)
		MUST(hd_resume(pid) == 0);
	finish(pid);
}
