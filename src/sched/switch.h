/* sched/switch.h - the switch seam: from one process to the next, on a worker.
 *
 * Inline, because it is what heddle does most: yield and park carry a copy each. Everything rare is one test away: a chore of
 * the worker's or of the next process's, done in hd__do_chores before the switch. */
#ifndef SCHED_SWITCH_H
#define SCHED_SWITCH_H

#include "sched/sched.h"
#include "sched/state.h"

/* A process that begins to wait can be claimed while it is still on its stack. The worker that would adopt it asks its context whether it
 * has left: `ip` is the last word that hd__arch_switch stores. */
static inline void hd__leaves_stack(struct hd_process *me)
{
	st_rlx(&me->context.ip, NULL); /* the caller publishes it, with what lets other threads claim the process */
}

/* p waits without a stack. */
static inline void hd__has_no_stack(struct hd_process *p)
{
	st_rlx(&p->context.ip, (void *)(uintptr_t)hd__arch_begin); /* where it will go on */
}

static inline bool hd__is_off_stack(struct hd_process *p)
{
	if (ld_acq(&p->context.ip) == NULL) /* pairs with hd__arch_switch: all that the process has stored is visible */
		return false;
	hd__context_is_seen(&p->context);
	return true;
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

/* The choose-next seam. Takes the next process off its queue, ready to be switched to; NULL when the worker must idle. For a worker
 * that is not idle. */
__attribute__((always_inline)) static inline struct hd_process *hd__choose(struct hd_worker *w)
{
	if (unlikely(w->chores != 0 || w->runq.highest != w->running_priority))
		return hd__choose_slowly(w);
	struct hd_process *next = hd__runq_take(&w->runq);
	return likely(next->chores == 0) ? next : hd__do_chores(w, next);
}

/* Charges the runner for the time since it got the worker. The coarse time moves every few milliseconds. */
static inline void hd__account(struct hd_worker *w, struct hd_process *me, hd_time now)
{
	if (unlikely(now != w->dispatched)) {
		bump(&me->cpu_time, now - w->dispatched);
		w->dispatched = now;
	}
}

/* p, of the level at which the worker runs, is the runner from now on. */
static inline void hd__give(struct hd_worker *w, struct hd_process *p, hd_time now)
{
	uint64_t switches = w->stats.switches + 1;

	hd__move_unrecorded(p, HD_READY, HD_RUNNING, now);
	bump(&p->switches, 1);
	st_rlx(&w->stats.switches, switches);
	w->current = p;
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
	hd__context_is_left(&me->context);
	hd__carry_fiber(&w->carrier);
	hd__arch_switch(&me->context, &next->context);
	w = me->home;
	*w->errno_location = me->saved_errno;
	return w;
}

/* From the runner, which has ended, or is a machine whose turn is over; its stack is given back. Goes on with `back`, to which it hands the worker
 * back, or (NULL) with the first process. Does not return; see hd__end. */
__attribute__((always_inline)) static inline void hd__leave_for_good(struct hd_worker *w, struct hd_process *back)
{
	struct hd_process *next = NULL;

	w->current = NULL; /* its block may be another process's by now */
	w->resched &= HD__CLOCK_DUE | HD__LOOK_ELSEWHERE | HD__AT_CALL | HD__POLL_DUE;
	bool look = hd__must_look(w);
	if (back != NULL && !look) {
		next = hd__hand_off(w, back);
	} else if (back != NULL) {
		hd__runq_push_head(&w->runq, back);
	} else if (!look) {
		next = hd__choose(w);
		w->handoffs = 0;
	}
	w->dispatched = ld_rlx(&w->sched->now);
	if (unlikely(next == NULL)) {
		hd__leave_idle_for_good(w);
		return;
	}
	hd__give(w, next, w->dispatched);
	hd__carry_fiber(&w->carrier);
	hd__arch_jump(&next->context);
}

#endif
