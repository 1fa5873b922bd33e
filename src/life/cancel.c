/* life/cancel.c - whether a process hears cancels, and what it does before it ends.
 *
 * Owns:       the list of cleanups of a process; whether it is deaf, and whether it unwinds.
 * Invariant:  the list is in the frames of functions that have not returned. A handler is taken off it before it is called, so that
 *             one that ends the process again goes on with the next.
 * Callers:    the process itself; hd_cancel from any thread. That a wait ends for a cancel is wait/'s and steer.c's. */
#include <errno.h>
#include <heddle/cancel.h>
#include <heddle/group.h>

#include "life/life.h"

int hd_cancel(hd_pid pid)
{
	struct hd__caller caller = hd__call_begin();

	if (caller.sched == NULL)
		return -ENXIO;
	int err = hd__ask(caller, pid, 0, HD__CANCEL, 0);
	hd__call_end(caller);
	return err == -EALREADY ? 0 : err;
}

/* The calling process's inner part; NULL on a plain thread. */
static struct hd__inner *inner(void)
{
	struct hd_worker *w = hd__self();
	return w != NULL ? w->current->inner : NULL;
}

int hd_set_cancel_state(enum hd_cancel_state state)
{
	struct hd__inner *mine = inner();

	if (mine == NULL)
		return -ENOTSUP;
	if (state != HD_CANCEL_ENABLED && state != HD_CANCEL_DISABLED)
		return -EINVAL;
	bool before = mine->deaf;
	mine->deaf = state == HD_CANCEL_DISABLED;
	return before ? HD_CANCEL_DISABLED : HD_CANCEL_ENABLED;
}

int hd_set_cancel_type(enum hd_cancel_type type)
{
	struct hd__inner *mine = inner();

	if (mine == NULL)
		return -ENOTSUP;
	if (type != HD_CANCEL_RETURN && type != HD_CANCEL_UNWIND)
		return -EINVAL;
	bool before = mine->unwinds;
	mine->unwinds = type == HD_CANCEL_UNWIND;
	return before ? HD_CANCEL_UNWIND : HD_CANCEL_RETURN;
}

int hd_test_cancel(void)
{
	struct hd_worker *w;

	if (hd__self() == NULL)
		return -ENOTSUP;
	int err = hd__begin_wait(&w, HD_FOREVER);
	if (err == 0)
		hd__leave(w);
	return err;
}

int hd_cancel_clear(void)
{
	struct hd_worker *w = hd__self();

	if (w == NULL)
		return -ENOTSUP;
	struct hd_process *me = w->current;
	hd__pass_by(); /* a loop that clears and tries again gives way */
	return (and_acq_rel(&me->control, ~(uint64_t)HD__CANCEL) & HD__CANCEL) != 0;
}

int hd_cleanup_push(struct hd_cleanup *cleanup, void (*fn)(void *arg), void *arg)
{
	struct hd__inner *mine = inner();

	if (mine == NULL)
		return -ENOTSUP;
	if (fn == NULL)
		return -EINVAL;
	*cleanup = (struct hd_cleanup){ fn, arg, mine->cleanups };
	mine->cleanups = cleanup;
	return 0;
}

int hd_cleanup_pop(struct hd_cleanup *cleanup, bool run)
{
	struct hd__inner *mine = inner();

	if (mine == NULL)
		return -ENOTSUP;
	if (mine->cleanups != cleanup)
		return -EINVAL;
	mine->cleanups = cleanup->next;
	for (struct hd_group *g = mine->groups; g != NULL && g->below == cleanup; g = g->outer)
		g->below = cleanup->next; /* it was opened in between, and is open still */
	if (run)
		cleanup->fn(cleanup->arg);
	return 0;
}

void hd__clean_up(struct hd_process *me)
{
	struct hd__inner *mine = me->inner;

	while (mine->cleanups != NULL || mine->groups != NULL) {
		struct hd_cleanup *cleanup = mine->cleanups;
		if (mine->groups != NULL && mine->groups->below == cleanup) {
			hd__group_close(mine->groups);
			continue;
		}
		mine->cleanups = cleanup->next;
		cleanup->fn(cleanup->arg);
	}
}
