/* sched/switch.h - the switch seam: from one process to the next, on a worker.
 *
 * Inline, because it is what heddle does most: yield and park carry a copy each. Everything rare is one test away: a chore of
 * the worker's or of the next process's, done in hd__do_chores before the switch. */
#ifndef SCHED_SWITCH_H
#define SCHED_SWITCH_H

#include "sched/sched.h"
#include "sched/state.h"

/* On the next stack, first of all: releases the lock that the process which left could not release on its own stack. */
static inline void hd__arrive(struct hd_worker *w)
{
	if (w->release != NULL) {
		st_rel(w->release,
		       0); /* pairs with hd__lock's acquire: the thread that wakes the process finds its context saved */
		w->release = NULL;
	}
}

/* Makes p ready, at the tail of its level in w's lane. If it should run before the runner, the runner's next safe point lets it. */
static inline void hd__resume_here(struct hd_worker *w, struct hd_process *p)
{
	hd__move(w, p, HD_READY);
	hd__runq_push_tail(&w->runq, p);
}

/* As hd__resume_here, for a process that was not suspended: it is now, if it should be. */
static inline void hd__make_ready(struct hd_worker *w, struct hd_process *p)
{
	uint64_t control =
		ld_acq(&p->control); /* pairs with change_word: what the thread that resumed p did comes before what p does */

	if (unlikely(hd__should_stop(control))) /* if SUSPEND is just being set, its nudge comes yet */
		hd__make_suspended(w, p);
	else
		hd__resume_here(w, p);
}

/* The choose-next seam. Takes the next process off its queue, ready to be switched to; NULL when the worker must idle. */
static inline struct hd_process *hd__choose(struct hd_worker *w)
{
	struct hd_process *next;

	if (likely(w->runq.highest == w->running_priority && !(w->chores & HD__CHOOSE_BY_DOOR)))
		next = hd__runq_take(&w->runq);
	else
		next = hd__choose_slowly(w);
	if (next != NULL && unlikely((w->chores | next->chores) != 0))
		next = hd__do_chores(w, next);
	return next;
}

/* Charges the runner for the time since it got the worker. The coarse time moves every few milliseconds. */
static inline void hd__account(struct hd_worker *w, struct hd_process *me, hd_time now)
{
	if (unlikely(now != w->dispatched)) {
		bump(&me->cpu_time, now - w->dispatched);
		w->dispatched = now;
	}
}

/* p is the runner from now on. */
static inline void hd__give(struct hd_worker *w, struct hd_process *p, hd_time now)
{
	uint64_t switches = w->stats.switches + 1;

	hd__move_at(w, p, HD_RUNNING, now);
	bump(&p->switches, 1);
	st_rlx(&w->stats.switches, switches);
	w->current = p;
	if (unlikely(p->priority != w->running_priority) && hd__set_level(w, p->priority))
		w->resched |= HD__LOOK_ELSEWHERE;
	if (unlikely(switches % HD__LOOK_EVERY == 0))
		hd__look_up(w);
}

/* From `me`, which has left the state RUNNING and put itself where it belongs, to `next`, which is not me. `now` is the coarse
 * time. Returns when me runs again, perhaps on another worker, which it answers: take nothing from before the switch but `me`. */
__attribute__((always_inline)) static inline struct hd_worker *hd__switch(struct hd_worker *w, struct hd_process *me,
									  struct hd_process *next, hd_time now)
{
	hd__account(w, me, now);
	me->saved_errno = *w->errno_location;
	hd__give(w, next, now);
	hd__carry_fiber(&w->carrier);
	hd__arch_switch(&me->context, &next->context);
	w = me->home;
	hd__arrive(w);
	*w->errno_location = me->saved_errno;
	return w;
}

#endif
