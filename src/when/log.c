/* when/log.c - behaviours of a log: what they do to their cowns depends on the order of their calls alone.
 *
 * Owns:       sched->dispatcher, the process that makes them.
 * Invariant:  all behaviours of a log that are alive were made by one process, so their calls have an order that no chance decides. HD__LOGGED is up in their
 *             control words: calls that would bring chance in are refused there (hd__heed, hd__guest_take, spawn, hd_now).
 * Locking:    none: the dispatcher changes by compare-and-swap.
 * Callers:    hd_when and its like. */
#include <errno.h>

#include "when/when.h"

int hd__log_may_make(void)
{
	struct hd_worker *w = hd__self();

	if (w == NULL || ld_rlx(&w->current->control) & HD__LOGGED)
		return -ENOTSUP;
	struct hd__sched *sched = w->sched;
	hd_pid me = hd__pid(&sched->table, w->current), before = ld_acq(&sched->dispatcher);
	if (likely(before == me))
		return 0;
	struct hd_process *p = before != 0 ? hd__table_find(&sched->table, before) : NULL;
	if (p != NULL && hd__alive(ld_acq(&p->control), before))
		return -EBUSY;
	return cas_acq_rel(&sched->dispatcher, &before, me) ? 0 : -EBUSY; /* pairs with itself, in another process */
}
