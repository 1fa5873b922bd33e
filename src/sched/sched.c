/* sched/sched.c - which process runs next, and when the runner gives way.
 *
 * Owns:       the choice of the next process, the switch to it, quanta.
 * Invariant:  outside these functions exactly one process of a worker is RUNNING, `current`, and no ready process of that
 *             worker has a higher priority at its safe points.
 * Locking:    all of it runs inside the worker's lane, which is left by the process that runs next, when its call ends.
 *
 * A process is published as ready inside the lane, which is left on another stack, once its context has been saved. One that waits is
 * published by its queue, before that: a worker that claims it too early leaves a note (hd__is_off_stack). So the seeds' Yielding
 * state, and the spin on it, do not exist. */
#include "sched/sched.h"

#include <errno.h>

#include "os/tls.h"
#include "sched/record.h"
#include "sched/switch.h"

#define NOTES_MAX 64 /* times that the inbox is emptied in a row: the runner must get on too */

void hd__set_alarm(struct hd_worker *w)
{
	hd_time alarm = hd__timers_first(&w->timers), before = w->due.alarm;

	if (w->due.quantum_end < alarm)
		alarm = w->due.quantum_end;
	if (w->due.stop_at < alarm)
		alarm = w->due.stop_at;
	w->chores &= ~(uint32_t)HD__ALARM_IS_LATE;
	if (alarm == before)
		return;
	st_seq(&w->due.alarm, alarm); /* pairs with the watcher's second look */
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
	bool eventful = p->policy == HD_IO && ld_rlx(&w->attention) != 0;

	if (eventful != w->due.eventful)
		st_rlx(&w->due.eventful, eventful);
	if (eventful)
		return; /* it will give way to that soon enough, or the watcher sees to it */
	hd_time left = p->inner->quantum_left > 0 ? p->inner->quantum_left : w->sched->config.quantum;
	st_rlx(&w->due.quantum_end, after(hd__clock(w->sched), left));
	w->chores |= HD__END_QUANTUM;
	hd__set_alarm(w);
}

/* Of the runner. When it is ready still, because it was preempted or yielded, it keeps the rest. */
static void end_quantum(struct hd_worker *w)
{
	struct hd_process *me = w->current;

	if (me != NULL) {
		hd_time left = me->state == HD_READY ? w->due.quantum_end - hd__clock(w->sched) : 0;
		me->inner->quantum_left = left > 0 ? left : 0;
	}
	st_rlx(&w->due.quantum_end, HD_FOREVER);
	w->chores &= ~(uint32_t)HD__END_QUANTUM;
}

void hd__make_suspended(struct hd_worker *w, struct hd_process *p)
{
	hd__move(w, p, HD_SUSPENDED);
	w->sched->hooks.stalled(w, p, false);
}

void hd__set_policy(struct hd_worker *w, struct hd_process *p, enum hd_policy policy)
{
	if (policy == p->policy)
		return;
	if (p == w->current && w->chores & HD__END_QUANTUM)
		end_quantum(w);
	if (p->inner != NULL)
		p->inner->quantum_left = 0;
	st_rlx(&p->policy, (uint8_t)policy);
	if (policy == HD_FIFO)
		p->chores &= (uint8_t)~HD__BEGIN_QUANTUM;
	else
		p->chores |= HD__BEGIN_QUANTUM;
	if (p == w->current && policy != HD_FIFO)
		begin_quantum(w, p);
}

/* A machine was not promised a stack when it was spawned: most of them never need one at the same time. */
static char *take_unpromised(struct hd__stacks *stacks, struct hd__stack_cache *own)
{
	if (hd__stacks_promise(stacks) != 0)
		return NULL;
	char *stack = hd__stacks_take(stacks, own);
	if (stack == NULL)
		hd__stacks_unpromise(stacks);
	return stack;
}

/* Binds a stack to a process that has none: it has never run, or is a machine. */
__attribute__((always_inline)) static inline bool start(struct hd_worker *w, struct hd_process *p)
{
	struct hd__stacks *stacks = &w->sched->stacks[p->stack_class];
	struct hd__stack_cache *own = &w->stacks[p->stack_class];
	char *stack = unlikely(p->nature & HD__MACHINE) ? take_unpromised(stacks, own) : hd__stacks_take(stacks, own);

	if (unlikely(stack == NULL))
		return false;
	hd__bind_stack(p, stack, hd__inner_on(stack, p->stack_class));
	if (unlikely(hd__carries)) {
		p->chores |= HD__CARRY;
		hd__carried_init(&w->carrier, hd__carried_of(p), stack, hd__stack_size(p->stack_class));
	}
	hd__arch_make(&p->context, hd__carried_of(p), w->sched->hooks.begin, p);
	return true;
}

/* The worker goes to the stack that carries `next`. */
__attribute__((noinline)) static void carry(struct hd_worker *w, struct hd__carried *next)
{
	if (hd__tells && w->current != NULL && w->current->pins > 0)
		hd__publish(w); /* to other pinned processes of this thread, which may use its thread-local variables */
	hd__carry(&w->carrier, next);
	w->chores = next->tls != NULL ? w->chores | HD__CARRY : w->chores & ~(uint32_t)HD__CARRY;
	if (unlikely(w->carrier.gone.tls != NULL)) { /* its process has ended */
		hd__os_tls_drop(w->carrier.gone.tls);
		w->carrier.gone.tls = NULL;
	}
}

/* To the stack of `next`, which carries something. */
__attribute__((noinline)) static void carry_process(struct hd_worker *w, struct hd_process *next)
{
	if (unlikely(next->nature & HD__OWN_TLS) && ld_rlx(&next->switches) == 0) { /* it begins */
		if (!hd__carries)
			hd__carried_init(&w->carrier, hd__carried_of(next), next->stack, hd__stack_size(next->stack_class));
		hd__carried_of(next)->tls = w->sched->hooks.tls_of(next);
	}
	carry(w, hd__carried_of(next));
	if (hd__tells)
		w->sched->hooks.learn(next);
}

/* The runner, a behaviour that has cowns, leaves the worker. */
__attribute__((noinline)) static void leave_with_cowns(struct hd_worker *w)
{
	w->chores &= ~(uint32_t)HD__HOLDS;
	if (w->current != NULL && w->current->state == HD_WAITING)
		w->sched->hooks.holder_waits(w, w->current);
}

/* The runner leaves the worker: its quantum ends, and its thread-local storage, if it has its own. What comes next may have none. */
static void leave_laden(struct hd_worker *w)
{
	if (w->chores & HD__END_QUANTUM)
		end_quantum(w);
	if (w->chores & HD__CARRY)
		carry(w, &w->carrier.own);
}

struct hd_process *hd__do_chores(struct hd_worker *w, struct hd_process *next)
{
	if (w->chores & HD__HOLDS)
		leave_with_cowns(w);
	if (w->chores & (HD__END_QUANTUM | HD__CARRY))
		leave_laden(w);
	if (next->chores & HD__START && !start(w, next)) {
		/* Ending it may wake the process that is leaving, and is on this stack: that is done on the worker's. */
		w->cannot_start = next;
		return NULL;
	}
	if (next->chores & HD__BEGIN_QUANTUM)
		begin_quantum(w, next);
	w->chores |= next->chores & HD__HOLDS;
	if (unlikely(w->chores & HD__FLOOR && next->priority <= w->floor))
		w->resched |= HD__BELOW_FLOOR;
	if (w->chores & HD__ALARM_IS_LATE)
		hd__set_alarm(w);
	if (unlikely(next->chores & HD__CARRY))
		carry_process(w, next);
	if (unlikely(w->chores & HD__RECORD))
		hd__record(w, next, HD_RUNNING);
	return next;
}

/* The worker runs at p's level from now on. If that is less than before, its runner may have to look elsewhere. */
static void come_to_level(struct hd_worker *w, const struct hd_process *p)
{
	if (p->priority != w->running_priority && hd__set_level(w, p->priority))
		w->resched |= HD__LOOK_ELSEWHERE;
}

struct hd_process *hd__prepare(struct hd_worker *w, struct hd_process *next)
{
	come_to_level(w, next);
	return unlikely((w->chores | next->chores) != 0) ? hd__do_chores(w, next) : next;
}

struct hd_process *hd__hand_over(struct hd_worker *w, struct hd_process *next)
{
	w->hands_over = true;
	next = hd__prepare(w, next);
	w->hands_over = false;
	return next;
}

/* No process runs: the worker's own stack is next. */
static void give_to_nobody(struct hd_worker *w)
{
	if (w->chores & HD__HOLDS)
		leave_with_cowns(w);
	if (w->chores & (HD__END_QUANTUM | HD__CARRY))
		leave_laden(w);
	if (hd__carries)
		carry(w, &w->carrier.own);
	hd__trace_event(w, HD__TRACED_IDLE, 0, 0, 0);
	w->current = NULL;
	hd__set_level(w, 0);
}

/* The runner has left the state RUNNING and put itself where it belongs: gives the worker to `next`, which is in no queue, or
 * (NULL) to the first process. Returns when the caller runs again. */
static struct hd_worker *leave(struct hd_worker *w, struct hd_process *me, struct hd_process *next)
{
	next = next != NULL ? hd__prepare(w, next) : hd__choose(w);
	w->handoffs = 0;
	if (next == NULL)
		return hd__leave_idle(w, me);
	if (next != me)
		return hd__switch(w, me, next, ld_rlx(&w->sched->now));
	hd__give(w, me, ld_rlx(&w->sched->now)); /* it was made ready again while it was leaving */
	return w;
}

struct hd_worker *hd__leave_idle(struct hd_worker *w, struct hd_process *me)
{
	hd__account(w, me, hd__clock(w->sched)); /* before idling, the books are exact */
	me->saved_errno = *w->errno_location;
	give_to_nobody(w);
	hd__context_is_left(&me->context);
	hd__carry_fiber(&w->carrier);
	hd__arch_switch(&me->context, &w->context);
	w = me->home;
	*w->errno_location = me->saved_errno;
	return w;
}

void hd__leave_idle_for_good(struct hd_worker *w)
{
	give_to_nobody(w);
	hd__carry_fiber(&w->carrier);
	hd__arch_jump(&w->context);
}

void hd__run_next(struct hd_worker *w)
{
	w->resched &= HD__AT_CALL;
	struct hd_process *next = hd__choose_slowly(w);

	if (next == NULL) { /* there is no memory for its stack: the worker is idle still */
		hd__set_level(w, 0);
		return;
	}
	w->handoffs = 0;
	hd__give(w, next, ld_rlx(&w->sched->now));
	bump(&w->stats.from_idle, 1);
	hd__carry_fiber(&w->carrier);
	hd__arch_switch(&w->context, &next->context);
}

struct hd_process *hd__choose_slowly(struct hd_worker *w)
{
	int level = w->runq.highest;
	struct hd_process *next = NULL;

	if (unlikely(w->chores & HD__CHOOSE_BY_DOOR))
		next = w->sched->doors.choose(w);
	else if (unlikely(w->chores & HD__FLOOR && level <= w->floor && w->running_priority != 0))
		return NULL; /* on its own stack the worker gives away what need not run here */
	else if (level != 0 && level != w->running_priority && hd__set_level(w, level) &&
		 !(w->chores & HD__FLOOR)) /* other workers must know first; then it looks at theirs */
		next = hd__take_better(w, level);
	if (next == NULL)
		next = hd__runq_take(&w->runq);
	return next != NULL ? hd__prepare(w, next) : NULL;
}

bool hd__take_for_hand_off(struct hd_worker *w, struct hd_process *p)
{
	if (w->handoffs >= HD__HANDOFFS_MAX || w->chores & HD__CHOOSE_BY_DOOR || ld_rlx(&p->home) != w)
		return false;
	/* One that has never run does not wait, so no other worker can adopt it. */
	if (ld_rlx(&p->switches) != 0 || ld_acq(&p->state) != HD_READY || w->runq.highest > p->priority)
		return false;
	hd__runq_remove(&w->runq, p);
	st_rlx(&p->arrival, hd__turn(w));
	if (!(p->chores & HD__START) || start(w, p))
		return true;
	hd__runq_push_head(&w->runq, p); /* when it is chosen, it will be found that it cannot start */
	return false;
}

bool hd__may_hand_off(const struct hd_worker *w, const struct hd_process *p)
{
	int priority = ld_rlx(&p->priority);

	return w->handoffs < HD__HANDOFFS_MAX && !(w->chores & HD__CHOOSE_BY_DOOR) && priority >= w->runq.highest &&
	       priority >= w->running_priority && !hd__is_wanted(w);
}

bool hd__take_ready(struct hd_worker *w, struct hd_process *p)
{
	/* A worker that adopts p says so before p is ready there: so one that is ready, and at home here then, is in this queue. */
	if (!hd__may_hand_off(w, p) || ld_acq(&p->state) != HD_READY || ld_rlx(&p->home) != w)
		return false;
	hd__runq_remove(&w->runq, p);
	if (!(p->chores & HD__START) || start(w, p))
		return true;
	hd__runq_push_head(&w->runq, p); /* when it is chosen, it will be found that it cannot start */
	return false;
}

struct hd_worker *hd__yield_to(struct hd_worker *w, struct hd_process *p)
{
	struct hd_process *me = w->current;
	hd_time now = ld_rlx(&w->sched->now);

	hd__move_at(w, me, HD_READY, now);
	hd__runq_push_tail(&w->runq, me);
	p = hd__hand_off(w, p);
	return likely(p != NULL) ? hd__switch(w, me, p, now) : hd__leave_idle(w, me);
}

void hd__expire(struct hd_worker *w, hd_time now)
{
	struct hd__timer due;

	while (hd__timers_take_due(&w->timers, now, &due)) {
		struct hd_process *blocks = w->sched->table.blocks;
		uint32_t whose = HD__TIMER_WHOSE(due.order);
		if (w->timers.count > 0) { /* have the owner of the next deadline fetched meanwhile, if it is a process */
			const char *next = (const char *)&blocks[HD__TIMER_WHOSE(w->timers.heap[1].order) & (HD__SLOTS - 1)];
			__builtin_prefetch(next);
			__builtin_prefetch(next + 64);
		}
		if (unlikely(whose >= HD__SLOTS))
			w->sched->hooks.after_due(w, whose - HD__SLOTS, HD__TIMER_NUMBER(due.order), now);
		else
			w->sched->hooks.expired(w, &blocks[whose], HD__TIMER_NUMBER(due.order));
	}
}

/* Time has passed: deadlines, the quantum, the end of a stop. */
static void look_at_clock(struct hd_worker *w)
{
	hd_time now = hd__clock(w->sched);

	hd__expire(w, now);
	if (now >= w->due.quantum_end) {
		st_rlx(&w->due.quantum_end, after(now, w->sched->config.quantum));
		w->resched |= HD__GO_TO_TAIL | HD__QUANTUM_OVER;
	}
	if (now >= w->due.stop_at)
		w->due.over = true;
	hd__set_alarm(w);
}

void hd__look_up(struct hd_worker *w)
{
	if (w->timers.count > 0)
		w->resched |= HD__CLOCK_DUE;
	if (w->watched != NULL)
		w->resched |= HD__POLL_DUE;
}

void hd__apply_notes(struct hd_worker *w)
{
	struct hd_note *note = hd__inbox_take_owner(&w->inbox);

	while (note != NULL) {
		struct hd_note *next = note->next; /* applying it may post it anew */
		bump(&w->stats.remote_wakes, 1);
		note->apply(w, note);
		note = next;
	}
}

static void take_news(struct hd_worker *w)
{
	if (unlikely(w->resched & HD__CLOCK_DUE)) {
		w->resched &= ~(uint32_t)HD__CLOCK_DUE;
		look_at_clock(w);
	}
	if (ld_rlx(&w->attention) == 0)
		return;
	uint32_t bits = xchg_seq(&w->attention, 0); /* pairs with hd__raise: what was raised for is visible */
	if (bits & HD__INBOX)
		for (int i = 0; i < NOTES_MAX && !hd__inbox_is_empty(&w->inbox); i++)
			hd__apply_notes(
				w); /* which may leave notes for this very worker: a boost that is passed along a chain */
	if (bits & HD__LOOK)
		w->sched->hooks.look(w);
	if (bits & HD__BETTER)
		w->resched |= HD__LOOK_ELSEWHERE;
	if (bits & HD__TRACE)
		hd__trace_join(w);
	if (bits & HD__OUTSIDE)
		w->resched |= HD__POLL_DUE;
	if (unlikely(bits & HD__SEAT))
		hd__spare_settle(w);
	if (bits & HD__SEARCH && w->current == NULL)
		w->search.on = true;
	else if (bits & HD__SEARCH) /* it has found something to run before it was told to search */
		st_rel(&w->sched->board.searching, false);
	if (bits & (HD__ALARM | HD__ASLEEP)) /* a worker that wakes from sleep may have due deadlines */
		look_at_clock(w);
}

void hd__take_news(struct hd_worker *w)
{
	w->takes_news = true;
	take_news(w);
	w->takes_news = false;
}

/* What the runner does, once all that has come is taken in. */
enum verdict { GO_ON, TO_HEAD, TO_TAIL, STOP };

/* `next` was taken from another lane because it is better than the runner; or NULL. */
static enum verdict judge(const struct hd_worker *w, const struct hd_process *me, uint32_t resched,
			  const struct hd_process *next)
{
	int best = w->runq.highest;

	if (me->state != HD_RUNNING) /* hd__take_news has suspended it */
		return STOP;
	if (unlikely(resched & HD__AT_CALL && w->chores & HD__CHOOSE_BY_DOOR))
		return TO_TAIL;
	if (best > me->priority || next != NULL)
		return resched & HD__GO_TO_TAIL ||
				       (w->sched->config.preempted == HD_PREEMPTED_TAIL && !(resched & HD__KEEP_PLACE))
			       ? TO_TAIL
			       : TO_HEAD;
	if (unlikely(resched & HD__BELOW_FLOOR) && hd__is_movable(me))
		return TO_HEAD; /* and then to another worker */
	return best == me->priority && resched & HD__GO_TO_TAIL ? TO_TAIL : GO_ON;
}

struct hd_worker *hd__attend(struct hd_worker *w)
{
	struct hd_process *me = w->current, *next = NULL;

	if (unlikely(w->resched & HD__AT_CALL))
		w->sched->doors.at_call(w);
	hd__take_news(w);
	if (unlikely(w->due.over))
		return hd__leave_idle(w, me); /* and the worker never comes back to it */
	/* Only if the caller goes on: one that was stopped may have been resumed since, and is in the run queue, though it is still on its stack.
	 * Outside the lane another worker would take it. */
	if (unlikely(w->resched & HD__POLL_DUE) && me->state == HD_RUNNING) {
		w->resched &= ~(uint32_t)HD__POLL_DUE;
		hd__leave(w);
		hd__look_outside(w);
		hd__enter(w);
	}
	if (unlikely(me->chores & HD__BEGIN_QUANTUM && !(w->chores & HD__END_QUANTUM)))
		begin_quantum(w, me); /* the event that it waited for has been taken in */
	uint32_t resched = w->resched;
	w->resched &= HD__AT_CALL | HD__POLL_DUE | HD__BELOW_FLOOR;
	if (unlikely(w->chores & HD__FLOOR))
		hd__spare_give(w);
	else if (unlikely(resched & HD__LOOK_ELSEWHERE)) {
		int best = w->runq.highest;
		next = hd__take_better(w, best > me->priority || me->state != HD_RUNNING ? best : me->priority);
	}
	enum verdict verdict = judge(w, me, resched, next);
	if (verdict == GO_ON)
		return w;
	if (verdict != STOP) {
		bool preempted = w->runq.highest > me->priority || next != NULL;
		if (w->chores & HD__CHOOSE_BY_DOOR && !(resched & HD__GO_TO_TAIL))
			w->chores |= HD__STEPS;
		bump(&w->stats.preemptions, preempted && !(w->chores & HD__CHOOSE_BY_DOOR));
		if (resched & HD__QUANTUM_OVER) {
			bump(&w->stats.expired_quanta, 1);
			st_rlx(&w->due.quantum_end, 0); /* nothing of it is left to keep */
		}
		if (preempted || resched & HD__QUANTUM_OVER)
			hd__trace_event(w, HD__TRACED_PREEMPTED, hd__pid(&w->sched->table, me), preempted ? 0 : HD__TRACED_QUANTUM, 0);
		hd__move(w, me, HD_READY);
		if (verdict == TO_TAIL)
			hd__runq_push_tail(&w->runq, me);
		else
			hd__runq_push_head(&w->runq, me);
	}
	return leave(w, me, next);
}

void hd__pass_by(void)
{
	struct hd_worker *w = hd__self();

	if (w == NULL || !hd__is_wanted(w)) /* a hint, outside the lane */
		return;
	hd__enter(w);
	hd__leave(hd__safe_point(w));
}

/* A yield that something is in the way of: what has come is taken in first, and then the caller gives way once. Nothing is if the switch is merely
 * traced: then it goes as fast as it can. */
__attribute__((noinline)) static void yield_slowly(struct hd_worker *w)
{
	struct hd_process *me = w->current;

	if ((ld_rlx(&w->attention) | w->resched) != 0 || w->chores != HD__RECORD || w->runq.highest != w->running_priority) {
		w->resched |= HD__GO_TO_TAIL;
		hd__leave(hd__attend(w));
		return;
	}
	hd_time now = ld_rlx(&w->sched->now);
	hd__move_at(w, me, HD_READY, now);
	struct hd_process *next = hd__runq_rotate(&w->runq, me);
	w->handoffs = 0;
	if (likely(next->chores == 0))
		hd__record(w, next, HD_RUNNING);
	else
		next = hd__do_chores(w, next);
	hd__leave(likely(next != NULL) ? hd__switch(w, me, next, now) : hd__leave_idle(w, me));
}

int hd_yield(void)
{
	struct hd_worker *w = hd__self();

	if (unlikely(w == NULL))
		return -ENOTSUP;
	hd__enter(w);
	struct hd_process *me = w->current;
	int highest = w->runq.highest;
	if (unlikely((ld_rlx(&w->attention) | w->resched | w->chores) != 0 || highest > w->running_priority)) {
		yield_slowly(w);
		return 0;
	}
	if (highest == w->running_priority) {
		hd_time now = ld_rlx(&w->sched->now);
		hd__move_unrecorded(me, HD_RUNNING, HD_READY, now);
		struct hd_process *next = hd__runq_rotate(&w->runq, me);
		w->handoffs = 0;
		if (unlikely(next->chores != 0))
			next = hd__do_chores(w, next);
		w = likely(next != NULL) ? hd__switch(w, me, next, now) : hd__leave_idle(w, me);
	}
	hd__leave(w);
	return 0;
}

int hd_checkpoint(void)
{
	if (unlikely(hd__self() == NULL))
		return -ENOTSUP;
	hd__pass_by();
	return 0;
}
