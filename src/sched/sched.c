/* sched/sched.c - who runs next, and when the runner gives way.
 *
 * Owns:       the choice of the next process, the switch to it, quanta.
 * Invariant:  outside these functions exactly one process of a worker is RUNNING, `current`, and no ready process of that
 *             worker has a higher priority at its safe points.
 * Locking:    none: a worker's run queue is its own. A process that leaves may hold one wait queue's lock (w->release),
 *             which is released on the next stack: only then can somebody else wake it.
 *
 * Nothing touches a process after it has been published as ready or waiting, except on its home worker, which runs it next
 * time only after its context has been saved here. So the seeds' Yielding state, and the spin on it, do not exist. */
#define _GNU_SOURCE
#include "sched/sched.h"

#include "sched/state.h"

#define HANDOFFS_MAX 64
#define WATCH_EVERY 64 /* dispatches: a worker this busy wants the coarse time kept */

void hd__set_alarm(struct hd_worker *w)
{
	hd_time alarm = hd__timers_first(&w->timers), before = w->alarm;

	if (w->quantum_end < alarm)
		alarm = w->quantum_end;
	if (w->stop_at < alarm)
		alarm = w->stop_at;
	w->alarm_is_late = false;
	if (alarm == before)
		return;
	st_seq(&w->alarm, alarm); /* pairs with the watcher's second look */
	if (alarm < before)
		hd__watcher_need(&w->sched->watcher, alarm);
}

/* HD_RR and HD_IO only: the rest of its quantum, or a new one. */
static void begin_quantum(struct hd_worker *w, struct hd_process *p)
{
	if (p->policy == HD_IO && ld_rlx(&w->attention) != 0)
		return; /* an event is pending: it will give way to that soon enough */
	hd_time left = p->quantum_left > 0 ? p->quantum_left : w->sched->config.quantum;
	w->quantum_end = hd__clock(w->sched) + left;
	hd__set_alarm(w);
}

/* Only a preempted process, still ready, keeps the rest. */
static void end_quantum(struct hd_worker *w, struct hd_process *p)
{
	if (w->quantum_end == HD_FOREVER)
		return;
	hd_time left = p->state == HD_READY ? w->quantum_end - hd__clock(w->sched) : 0;
	p->quantum_left = left > 0 ? left : 0;
	w->quantum_end = HD_FOREVER;
}

void hd__set_policy_owner(struct hd_worker *w, struct hd_process *p, enum hd_policy policy)
{
	if (policy == p->policy)
		return;
	if (p == w->current)
		end_quantum(w, p);
	p->quantum_left = 0;
	st_rlx(&p->policy, (uint8_t)policy);
	if (p == w->current && policy != HD_FIFO)
		begin_quantum(w, p);
}

/* Binds a stack to a process that runs for the first time. */
static bool start(struct hd_worker *w, struct hd_process *p)
{
	char *stack = hd__stacks_take_owner(&w->stacks[p->stack_class]);

	if (stack == NULL)
		return false;
	st_rlx(&p->stack, stack);
	hd__arch_make(&p->context, hd__stack_top(stack, p->stack_class), w->sched->hooks.begin, p);
	hd__fiber_init(&p->fiber, stack, hd__stack_size(p->stack_class));
	return true;
}

/* The choose-next seam. Takes the next process off the run queue; NULL when nothing is ready. */
static inline struct hd_process *choose(struct hd_worker *w)
{
	for (;;) {
		struct hd_process *p;
		if (unlikely(w->sched->doors.choose != NULL)) {
			p = w->sched->doors.choose(w);
		} else {
			int highest = hd__runq_highest(&w->runq);
			p = highest != 0 ? hd__runq_take(&w->runq, highest) : NULL;
		}
		if (p == NULL || likely(p->stack != NULL) || start(w, p))
			return p;
		w->sched->hooks.cannot_start(w, p);
	}
}

/* p is the runner from now on. */
static inline void give(struct hd_worker *w, struct hd_process *p)
{
	hd__move(w, p, HD_RUNNING);
	bump(&p->switches, 1);
	bump(&w->stats.switches, 1);
	w->current = p;
	w->running_priority = p->priority;
	w->resched = 0;
	if (unlikely(p->policy != HD_FIFO))
		begin_quantum(w, p);
	if (unlikely(w->alarm_is_late))
		hd__set_alarm(w);
	if (unlikely(w->stats.switches % WATCH_EVERY == 0))
		hd__watcher_need(&w->sched->watcher, HD_FOREVER - 1);
}

/* The runner, if any, is nobody's from now on. */
static inline void take_from(struct hd_worker *w, struct hd_process *me)
{
	if (unlikely(me->policy != HD_FIFO))
		end_quantum(w, me);
	hd_time now = ld_rlx(&w->sched->now);
	bump(&me->cpu_time, now - w->dispatched);
	w->dispatched = now;
}

void hd__arrive(struct hd_worker *w)
{
	st_rel(w->release, 0); /* the lock's release: pairs with hd__lock's acquire */
	w->release = &w->no_lock;
}

/* The switch seam, as processes use it. */
__attribute__((always_inline)) static inline void switch_to(struct hd_worker *w, struct hd_process *me, struct hd_process *next)
{
	struct hd__context *context = &w->context;
	struct hd__fiber *fiber = &w->fiber;

	if (unlikely(next == NULL))
		hd__clock(w->sched); /* before idling, the books are exact */
	take_from(w, me);
	if (unlikely(next == me)) {
		give(w, me);
		hd__arrive(w);
		return;
	}
	me->saved_errno = *w->errno_location;
	if (likely(next != NULL)) {
		give(w, next);
		bump(&w->stats.direct_switches, 1);
		context = &next->context;
		fiber = &next->fiber;
	} else {
		w->current = NULL;
		w->running_priority = 0;
	}
	hd__fiber_leave(&me->fiber, fiber, 0);
	hd__arch_switch(&me->context, context);
	hd__fiber_arrive(&me->fiber, NULL);
	hd__arrive(me->home);
	*me->home->errno_location = me->saved_errno;
}

void hd__leave(struct hd_worker *w, struct hd_process *me)
{
	w->handoffs = 0;
	switch_to(w, me, choose(w));
}

bool hd__can_hand_off(struct hd_worker *w, struct hd_process *p)
{
	if (p->home != w || p->state != HD_READY || p->switches != 0 || w->handoffs >= HANDOFFS_MAX)
		return false;
	if (hd__runq_highest(&w->runq) > p->priority || w->sched->doors.choose != NULL)
		return false;
	return p->stack != NULL || start(w, p);
}

void hd__leave_to(struct hd_worker *w, struct hd_process *me, struct hd_process *next)
{
	w->handoffs++;
	bump(&w->stats.handoffs, 1);
	hd__runq_remove(&w->runq, next);
	switch_to(w, me, next);
}

void hd__leave_for_good(struct hd_worker *w, struct hd__fiber *me)
{
	struct hd_process *next = w->over || w->counted == 0 ? NULL : choose(w);
	struct hd__context *context = &w->context;
	struct hd__fiber *fiber = &w->fiber;

	w->handoffs = 0;
	if (likely(next != NULL)) {
		give(w, next);
		bump(&w->stats.direct_switches, 1);
		context = &next->context;
		fiber = &next->fiber;
	} else {
		hd__clock(w->sched);
		w->current = NULL;
		w->running_priority = 0;
	}
	hd__fiber_leave(me, fiber, 1);
	hd__arch_jump(context);
}

void hd__run_next(struct hd_worker *w)
{
	struct hd_process *next = choose(w);

	if (next == NULL)
		return;
	w->handoffs = 0;
	give(w, next);
	hd__fiber_leave(&w->fiber, &next->fiber, 0);
	hd__arch_switch(&w->context, &next->context);
	hd__fiber_arrive(&w->fiber, NULL);
	hd__arrive(w);
}

void hd__make_ready(struct hd_worker *w, struct hd_process *p)
{
	if (unlikely(ld_rlx(&p->control) & HD__SUSPEND)) { /* if it is just being set, its note comes yet */
		hd__move(w, p, HD_SUSPENDED);
		return;
	}
	hd__move(w, p, HD_READY);
	hd__runq_push_tail(&w->runq, p);
	if (p->priority > w->running_priority)
		w->resched |= HD__BETTER_READY;
}

/* Time has passed: deadlines, the quantum, the end of a stop. */
static void look_at_clock(struct hd_worker *w)
{
	hd_time now = hd__clock(w->sched);
	struct hd__timer due;

	while (hd__timers_take_due(&w->timers, now, &due)) {
		struct hd_process *p = &w->sched->table.blocks[HD__TIMER_WHOSE(due.order)];
		p->timer = 0;
		bump(&w->stats.timeouts, 1);
		w->sched->hooks.expired(w, p);
	}
	if (now >= w->quantum_end) {
		w->quantum_end = now + w->sched->config.quantum;
		w->resched |= HD__GO_TO_TAIL;
		bump(&w->stats.expired_quanta, 1);
	}
	if (now >= w->stop_at)
		w->over = true;
	hd__set_alarm(w);
}

void hd__take_news(struct hd_worker *w)
{
	if (ld_rlx(&w->attention) == 0)
		return;
	uint32_t bits = xchg_seq(&w->attention, 0); /* pairs with hd__raise: what was raised for is visible */
	if (bits & HD__INBOX) {
		struct hd_note *note = hd__inbox_take_owner(&w->inbox);
		while (note != NULL) {
			struct hd_note *next = note->next; /* applying it may post it anew */
			bump(&w->stats.remote_wakes, 1);
			note->apply(w, note);
			note = next;
		}
	}
	if (bits & (HD__ALARM | HD__ASLEEP)) /* who slept, slept for a while */
		look_at_clock(w);
}

void hd__attend(struct hd_worker *w)
{
	struct hd_process *me = w->current;

	hd__take_news(w);
	if (unlikely(w->over))
		hd__leave_for_good(w, &me->fiber);
	if (me->state == HD_RUNNING) { /* else the news was that it should stop */
		int highest = hd__runq_highest(&w->runq);
		bool to_tail = w->resched & HD__GO_TO_TAIL;

		w->resched = 0;
		if (highest > me->priority) {
			bump(&w->stats.preemptions, 1);
			to_tail |= w->sched->config.preempted == HD_PREEMPTED_TAIL;
		} else if (highest < me->priority || !to_tail) {
			return;
		}
		hd__move(w, me, HD_READY);
		if (to_tail)
			hd__runq_push_tail(&w->runq, me);
		else
			hd__runq_push_head(&w->runq, me);
	}
	hd__leave(w, me);
}
