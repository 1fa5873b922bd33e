/* sched/switch.h - the switch seam: from one process to the next, on a worker.
 *
 * Inline, because it is what heddle does most: yield and park carry a copy each. Everything rare is one test away: a chore of
 * the worker's or of the next process's, done in hd__do_chores before the switch. */
#ifndef SCHED_SWITCH_H
#define SCHED_SWITCH_H

#include "sched/sched.h"
#include "sched/state.h"

/* On the next stack, first of all: releases the lock that the one before could not release on its own. */
static inline void hd__arrive(struct hd_worker *w)
{
	if (w->release != NULL) {
		st_rel(w->release, 0); /* pairs with hd__lock's acquire: whoever wakes it finds its context saved */
		w->release = NULL;
	}
}

/* Into the worker's own queue, at the tail of its level. */
static inline void hd__enqueue_here(struct hd_worker *w, struct hd_process *p)
{
	p->arrival = ld_rlx(&w->arrivals);
	bump(&w->arrivals, 1);
	hd__runq_push_tail(&w->runq, p);
	if (p->priority > w->running_priority)
		w->resched |= HD__BETTER_READY;
}

/* A process that is ready and in no queue goes to the tail of its level. If it should run before the runner, the runner's next
 * safe point lets it. If it roams it may be somebody else's at once. */
static inline void hd__enqueue(struct hd_worker *w, struct hd_process *p)
{
	if (unlikely(p->roams) && p != w->current) /* who is still on its stack must not be seen by others */
		hd__share_put(w, p);
	else
		hd__enqueue_here(w, p);
}

/* Makes p ready. */
static inline void hd__resume_owner(struct hd_worker *w, struct hd_process *p)
{
	hd__move(w, p, HD_READY);
	hd__enqueue(w, p);
}

/* The same for one that was not suspended: it is now, if it should be. */
static inline void hd__make_ready(struct hd_worker *w, struct hd_process *p)
{
	if (unlikely(hd__should_stop(ld_rlx(&p->control)))) /* if it is just being set, its note comes yet */
		hd__move(w, p, HD_SUSPENDED);
	else
		hd__resume_owner(w, p);
}

/* The choose-next seam. Takes the next process off its queue, ready to be switched to; NULL when the worker must idle. */
static inline struct hd_process *hd__choose(struct hd_worker *w)
{
	struct hd_process *next;

	if (likely(w->runq.highest == w->running_priority && ld_rlx(&w->share.first) == 0 && !(w->chores & HD__CHOOSE_BY_DOOR)))
		next = hd__runq_take(&w->runq);
	else
		next = hd__choose_slowly(w, 0);
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
		w->resched |= HD__STEAL_DUE;
	if (unlikely(switches % HD__LOOK_EVERY == 0))
		hd__look_up(w);
}

/* From `me`, which has left the state RUNNING and put itself where it belongs, to `next`, which is not me. `now` is the coarse
 * time. Returns when me runs again, perhaps on another worker: take nothing from before the switch but `me`. */
__attribute__((always_inline)) static inline void hd__switch(struct hd_worker *w, struct hd_process *me,
							     struct hd_process *next, hd_time now)
{
	hd__account(w, me, now);
	me->saved_errno = *w->errno_location;
	hd__give(w, next, now);
	hd__fiber_leave(&me->fiber, &next->fiber, 0);
	hd__arch_switch(&me->context, &next->context);
	hd__fiber_arrive(&me->fiber, NULL);
	w = me->home;
	hd__arrive(w);
	*w->errno_location = me->saved_errno;
}

#endif
