/* sched/sched.c - who runs next, and when the runner gives way.
 *
 * Owns:       the choice of the next process, the switch to it, quanta.
 * Invariant:  outside these functions exactly one process of a worker is RUNNING, `current`, and no ready process of that
 *             worker has a higher priority at its safe points.
 * Locking:    none: a worker's run queue is its own. A process that leaves may hold one lock (w->release), of a wait queue or,
 *             if it roams, of its worker's share; it is released on the next stack: only then can somebody else wake or
 *             take it.
 *
 * Nothing touches a process after it has been published as ready or waiting, except on its home worker, which runs it next
 * time only after its context has been saved here. So the seeds' Yielding state, and the spin on it, do not exist. */
#include "sched/sched.h"

#include <errno.h>

#include "sched/switch.h"

#define HANDOFFS_MAX 64

void hd__set_alarm(struct hd_worker *w)
{
	hd_time alarm = hd__timers_first(&w->timers), before = w->alarm;

	if (w->quantum_end < alarm)
		alarm = w->quantum_end;
	if (w->stop_at < alarm)
		alarm = w->stop_at;
	w->chores &= ~(uint32_t)HD__ALARM_IS_LATE;
	if (alarm == before)
		return;
	st_seq(&w->alarm, alarm); /* pairs with the watcher's second look */
	hd__watcher_need(&w->sched->watcher, alarm);
}

/* A time from now that may be too far to count. */
static hd_time after(hd_time now, hd_time ns)
{
	return ns > HD_FOREVER - 1 - now ? HD_FOREVER - 1 : now + ns;
}

/* HD_RR and HD_IO only: the rest of its quantum, or a new one. */
static void begin_quantum(struct hd_worker *w, struct hd_process *p)
{
	if (p->policy == HD_IO && ld_rlx(&w->attention) != 0)
		return; /* an event is pending: it will give way to that soon enough */
	hd_time left = p->inner->quantum_left > 0 ? p->inner->quantum_left : w->sched->config.quantum;
	w->quantum_end = after(hd__clock(w->sched), left);
	w->chores |= HD__END_QUANTUM;
	hd__set_alarm(w);
}

/* Of the runner. When it is ready still, because it was preempted or yielded, it keeps the rest. */
static void end_quantum(struct hd_worker *w)
{
	struct hd_process *me = w->current;

	if (me != NULL) {
		hd_time left = me->state == HD_READY ? w->quantum_end - hd__clock(w->sched) : 0;
		me->inner->quantum_left = left > 0 ? left : 0;
	}
	w->quantum_end = HD_FOREVER;
	w->chores &= ~(uint32_t)HD__END_QUANTUM;
}

void hd__set_policy_queued(struct hd_process *p, enum hd_policy policy)
{
	if (policy == p->policy)
		return;
	if (p->inner != NULL)
		p->inner->quantum_left = 0;
	st_rlx(&p->policy, (uint8_t)policy);
	if (policy == HD_FIFO)
		p->chores &= (uint8_t)~HD__BEGIN_QUANTUM;
	else
		p->chores |= HD__BEGIN_QUANTUM;
}

void hd__set_policy_owner(struct hd_worker *w, struct hd_process *p, enum hd_policy policy)
{
	if (policy == p->policy)
		return;
	if (p == w->current && w->chores & HD__END_QUANTUM)
		end_quantum(w);
	hd__set_policy_queued(p, policy);
	if (p == w->current && policy != HD_FIFO)
		begin_quantum(w, p);
}

/* Binds a stack to a process that has never run. */
static inline bool start(struct hd_worker *w, struct hd_process *p)
{
	char *stack = hd__stacks_take(&w->sched->stacks[p->stack_class], &w->stacks[p->stack_class]);

	if (unlikely(stack == NULL))
		return false;
	st_rel(&p->stack, stack); /* as in hd__move_at */
	p->chores &= (uint8_t)~HD__START;
	hd__pin(p);
	p->inner = (struct hd__inner *)hd__stack_top(stack, p->stack_class) - 1;
	*p->inner = (struct hd__inner){ .locals = NULL };
	hd__arch_make(&p->context, p->inner, w->sched->hooks.begin, p);
	hd__fiber_init(&p->fiber, stack, hd__stack_size(p->stack_class));
	return true;
}

void hd__keep(struct hd_worker *w, struct hd_process *p)
{
	hd__pin(p);
	p->arrival = 0;
	hd__runq_push_head(&w->runq, p);
}

struct hd_process *hd__do_chores(struct hd_worker *w, struct hd_process *next)
{
	if (unlikely(w->chores & HD__SEE_IF_OVER)) {
		w->chores &= ~(uint32_t)HD__SEE_IF_OVER;
		if (w->counted == 0) {
			hd__keep(w, next);
			return NULL;
		}
	}
	if (w->chores & HD__END_QUANTUM)
		end_quantum(w);
	if (next->chores & HD__START && !start(w, next)) {
		/* Ending it takes locks, and the process that is leaving may hold one: that is done on the worker's stack. */
		w->cannot_start = next;
		return NULL;
	}
	if (next->chores & HD__BEGIN_QUANTUM)
		begin_quantum(w, next);
	if (w->chores & HD__ALARM_IS_LATE)
		hd__set_alarm(w);
	return next;
}

/* Nobody runs: the worker's own stack is next. */
static void give_to_nobody(struct hd_worker *w)
{
	if (w->chores & HD__END_QUANTUM)
		end_quantum(w);
	w->current = NULL;
	hd__set_level(w, 0);
}

/* The runner has left the state RUNNING and put itself where it belongs: gives the worker to `next`, which is in no queue, or
 * (NULL) to whoever is first. Returns when the caller runs again. */
static void leave(struct hd_worker *w, struct hd_process *me, struct hd_process *next)
{
	if (next == NULL)
		next = hd__choose(w);
	else if ((w->chores | next->chores) != 0)
		next = hd__do_chores(w, next);
	w->handoffs = 0;
	if (next == NULL)
		hd__leave_idle(w, me);
	else if (next != me)
		hd__switch(w, me, next, ld_rlx(&w->sched->now));
	else
		hd__give(w, me, ld_rlx(&w->sched->now)); /* it was made ready again while it was leaving */
}

void hd__leave_idle(struct hd_worker *w, struct hd_process *me)
{
	hd__account(w, me, hd__clock(w->sched)); /* before idling, the books are exact */
	me->saved_errno = *w->errno_location;
	give_to_nobody(w);
	hd__fiber_leave(&me->fiber, &w->fiber, 0);
	hd__arch_switch(&me->context, &w->context);
	hd__fiber_arrive(&me->fiber, NULL);
	w = me->home;
	hd__arrive(w);
	*w->errno_location = me->saved_errno;
}

void hd__leave_for_good(struct hd_worker *w, struct hd_process *back)
{
	struct hd_process *next = NULL;

	w->current = NULL; /* its block may be somebody else's by now */
	w->resched &= HD__CLOCK_DUE | HD__STEAL_DUE | HD__AT_CALL;
	/* Processes that do nothing but end come by no safe point: what has come is taken in here, on the worker's own stack. */
	if (unlikely((ld_rlx(&w->attention) | (w->resched & ~(uint32_t)HD__AT_CALL)) != 0 || w->over)) {
		if (back != NULL)
			hd__keep(w, back);
	} else if (back != NULL) {
		next = hd__hand_off(w, back);
	} else {
		if (unlikely(w->counted == 0) && ld_rlx(&w->share.first) != 0)
			w->chores |= HD__SEE_IF_OVER; /* unless the next one counts again */
		if (likely(w->counted > 0 || w->chores & HD__SEE_IF_OVER))
			next = hd__choose(w);
		w->handoffs = 0;
	}
	w->dispatched = ld_rlx(&w->sched->now);
	if (likely(next != NULL)) {
		hd__give(w, next, w->dispatched);
		hd__fiber_leave(&w->leaving, &next->fiber, 1);
		hd__arch_jump(&next->context);
	}
	give_to_nobody(w);
	hd__fiber_leave(&w->leaving, &w->fiber, 1);
	hd__arch_jump(&w->context);
}

void hd__run_next(struct hd_worker *w)
{
	w->resched &= HD__AT_CALL;
	struct hd_process *next = hd__choose(w);

	if (next == NULL)
		return;
	w->handoffs = 0;
	hd__give(w, next, ld_rlx(&w->sched->now));
	bump(&w->stats.from_idle, 1);
	hd__fiber_leave(&w->fiber, &next->fiber, 0);
	hd__arch_switch(&w->context, &next->context);
	hd__fiber_arrive(&w->fiber, NULL);
	hd__arrive(w);
}

/* The same before w->unannounced is seen to. */
static struct hd_process *choose(struct hd_worker *w, int floor)
{
	for (;;) {
		uint64_t own = hd__runq_first(&w->runq), shared = ld_rlx(&w->share.first);
		int level = hd__rank_level(own > shared ? own : shared);
		struct hd_process *p;
		if (level == 0 || level < floor)
			return NULL;
		if (level != w->running_priority) { /* others must know first; then look again */
			if (hd__set_level(w, level) && (p = hd__share_steal(w, level)) != NULL)
				return p;
			continue;
		}
		if (own >= shared)
			return hd__runq_take(&w->runq);
		uint64_t least = (uint64_t)level << 56;
		if ((p = hd__share_take(w, own > least ? own : least)) != NULL)
			return p; /* else somebody else has taken what was there */
	}
}

struct hd_process *hd__choose_slowly(struct hd_worker *w, int floor)
{
	if (unlikely(w->chores & HD__CHOOSE_BY_DOOR))
		return w->sched->doors.choose(w);
	struct hd_process *next = choose(w, floor);
	if (unlikely(w->unannounced))
		hd__share_announce(w);
	return next;
}

bool hd__take_for_hand_off(struct hd_worker *w, struct hd_process *p)
{
	if (w->handoffs >= HANDOFFS_MAX || w->chores & HD__CHOOSE_BY_DOOR || hd__best_level(w) > ld_rlx(&p->priority))
		return false;
	if (!hd__share_take_this(w, p)) {
		if (!hd__is_pinned_to(p, w) || p->state != HD_READY || p->switches != 0)
			return false;
		hd__runq_remove(&w->runq, p);
	}
	p->arrival = hd__turn(w);
	if (!(p->chores & HD__START) || start(w, p))
		return true;
	hd__keep(w, p); /* whoever chooses it next will find that it cannot start */
	return false;
}

bool hd__may_hand_back(struct hd_worker *w, struct hd_process *joiner)
{
	return w->handoffs < HANDOFFS_MAX && w->counted > 1 && hd__best_level(w) <= joiner->priority &&
	       !hd__should_stop(ld_rlx(&joiner->control));
}

struct hd_process *hd__hand_off(struct hd_worker *w, struct hd_process *p)
{
	w->handoffs++;
	bump(&w->stats.handoffs, 1);
	if (unlikely(w->unannounced))
		hd__share_announce(w);
	return unlikely((w->chores | p->chores) != 0) ? hd__do_chores(w, p) : p;
}

/* Time has passed: deadlines, the quantum, the end of a stop. */
static void look_at_clock(struct hd_worker *w)
{
	hd_time now = hd__clock(w->sched);
	struct hd__timer due;

	while (hd__timers_take_due(&w->timers, now, &due)) {
		struct hd_process *blocks = w->sched->table.blocks, *p = &blocks[HD__TIMER_WHOSE(due.order)];
		if (w->timers.count > 0) { /* whose is next? have it fetched meanwhile */
			const char *next = (const char *)&blocks[HD__TIMER_WHOSE(w->timers.heap[1].order)];
			__builtin_prefetch(next);
			__builtin_prefetch(next + 64);
		}
		w->sched->hooks.expired(w, p);
	}
	if (now >= w->quantum_end) {
		w->quantum_end = after(now, w->sched->config.quantum);
		w->resched |= HD__GO_TO_TAIL | HD__QUANTUM_OVER;
	}
	if (now >= w->stop_at)
		w->over = true;
	hd__set_alarm(w);
}

void hd__look_up(struct hd_worker *w)
{
	if (w->timers.count > 0)
		w->resched |= HD__CLOCK_DUE;
}

void hd__take_news(struct hd_worker *w)
{
	if (unlikely(w->resched & HD__CLOCK_DUE)) {
		w->resched &= ~(uint32_t)HD__CLOCK_DUE;
		look_at_clock(w);
	}
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
	if (bits & HD__LOOK)
		w->sched->hooks.look(w);
	if (bits & HD__STEAL)
		w->resched |= HD__STEAL_DUE;
	if (bits & (HD__ALARM | HD__ASLEEP)) /* who slept, slept for a while */
		look_at_clock(w);
}

/* The runner, ready again, goes back into its worker's own queue. */
static void requeue(struct hd_worker *w, struct hd_process *me, bool tail)
{
	if (tail) {
		hd__enqueue_here(w, me);
	} else {
		me->arrival = 0;
		hd__runq_push_head(&w->runq, me);
	}
}

/* The runner gives way: to `next`, if that is not NULL, else to the first of a level of at least `floor`. */
static void give_way(struct hd_worker *w, struct hd_process *me, bool tail, int floor, struct hd_process *next)
{
	hd__move(w, me, HD_READY);
	if (likely(!me->roams)) {
		requeue(w, me, tail);
		leave(w, me, next);
		return;
	}
	/* One that roams must not be seen in the share before it is off its stack: so the next is chosen first, and if somebody
	 * else has taken that meanwhile, it goes on. */
	if (next == NULL)
		next = hd__choose_slowly(w, floor);
	if (next == NULL && !(w->chores & HD__SEE_IF_OVER)) {
		hd__give(w, me, ld_rlx(&w->sched->now));
		return;
	}
	if (next != NULL && (w->chores | next->chores) != 0)
		next = hd__do_chores(w, next);
	w->handoffs = 0;
	hd__share_put_leaving(w, me, tail);
	if (next != NULL)
		hd__switch(w, me, next, ld_rlx(&w->sched->now));
	else
		hd__leave_idle(w, me);
}

void hd__attend(struct hd_worker *w)
{
	struct hd_process *me = w->current, *next = NULL;

	if (unlikely(w->resched & HD__AT_CALL))
		w->sched->doors.at_call(w);
	hd__take_news(w);
	if (unlikely(w->over))
		hd__leave_idle(w, me); /* and nobody comes back to it */
	if (unlikely(me->chores & HD__BEGIN_QUANTUM && !(w->chores & HD__END_QUANTUM)))
		begin_quantum(w, me); /* the event that it waited for has been taken in */
	uint32_t resched = w->resched;
	w->resched &= HD__AT_CALL;
	int best = hd__best_level(w);
	bool tail = resched & HD__GO_TO_TAIL, stops = me->state != HD_RUNNING; /* that was the news */
	if (unlikely(resched & HD__STEAL_DUE))
		next = hd__share_steal(w, best > me->priority || stops ? best : me->priority);
	if (next != NULL && w->unannounced)
		hd__share_announce(w);
	if (unlikely(resched & HD__STEAL_DUE) && next == NULL && (best > me->priority || stops))
		w->resched |= HD__STEAL_DUE; /* others may take what we have as good: look once more, at what then runs */
	if (stops) {
		leave(w, me, next);
		return;
	}
	if (unlikely(resched & HD__AT_CALL && w->chores & HD__CHOOSE_BY_DOOR)) {
		w->stepping = !tail;
		give_way(w, me, true, 0, NULL);
		return;
	}
	if (resched & HD__QUANTUM_OVER && (best >= me->priority || next != NULL)) {
		bump(&w->stats.expired_quanta, 1);
		w->quantum_end = 0; /* nothing of it is left to keep */
	}
	if (best > me->priority || next != NULL) {
		bump(&w->stats.preemptions, 1);
		if (w->sched->config.preempted == HD_PREEMPTED_TAIL && !(resched & HD__KEEP_PLACE))
			tail = true;
		give_way(w, me, tail, me->priority + 1, next);
	} else if (unlikely(w->chores & HD__SEE_IF_OVER)) {
		give_way(w, me, true, me->priority, NULL); /* the runtime may end here: the worker's own loop sees to that */
	} else if (best == me->priority && tail) {
		give_way(w, me, true, me->priority, NULL);
	} else if (unlikely(w->unannounced)) {
		hd__share_announce(w);
	}
}

int hd_yield(void)
{
	struct hd_worker *w = hd__self();

	if (unlikely(w == NULL))
		return -EPERM;
	struct hd_process *me = w->current;
	if (unlikely(hd__is_wanted(w) || w->chores != 0 || ld_rlx(&w->share.first) != 0 || me->roams)) {
		w->resched |= HD__GO_TO_TAIL; /* what has come is taken in first, and then it gives way once */
		hd__attend(w);
		return 0;
	}
	if (w->runq.highest < me->priority)
		return 0; /* nobody to yield to */
	hd_time now = ld_rlx(&w->sched->now);
	hd__move_at(w, me, HD_READY, now);
	me->arrival = ld_rlx(&w->arrivals);
	bump(&w->arrivals, 1);
	struct hd_process *next = hd__runq_rotate(&w->runq, me);
	w->handoffs = 0;
	if (unlikely(next->chores != 0))
		next = hd__do_chores(w, next);
	if (likely(next != NULL))
		hd__switch(w, me, next, now);
	else
		hd__leave_idle(w, me);
	return 0;
}

int hd_checkpoint(void)
{
	struct hd_worker *w = hd__self();

	if (unlikely(w == NULL))
		return -EPERM;
	hd__safe_point(w);
	return 0;
}
