/* wait/wait.c - wait queues, park and unpark.
 *
 * Owns:       struct hd_waitq, struct hd_waiter, and the outcome of a process's wait.
 * Invariant:  a waiter's outcome leaves WAITING once. A waiter that is in a queue waits there, or has just timed out or been called
 *             off and is about to be taken out. A claimed waiter does not leave before it is unparked.
 * Locking:    the queue's byte guards the list and whatever the primitive keeps beside it. The outcome is decided without
 *             it, because a timeout must decide before it may touch the queue: as long as the wait is undecided or timed
 *             out, somebody waits in the queue and it exists; once it is granted, the granter may have freed it.
 * Callers:    every primitive. */
#include "wait/wait.h"

#include <errno.h>

#include "base/assert.h"
#include "os/futex.h"
#include "sched/gate.h"

void hd__waitq_link(struct hd_waitq *q, struct hd_waiter *x, enum hd__place place)
{
	x->next = NULL;
	x->prev = q->tail;
	if (q->tail == NULL)
		q->head = x;
	else
		q->tail->next = x;
	q->tail = x;
	x->place = (uint8_t)place;
}

static void link_first(struct hd_waitq *q, struct hd_waiter *x)
{
	x->prev = NULL;
	x->next = q->head;
	if (q->head == NULL)
		q->tail = x;
	else
		q->head->prev = x;
	q->head = x;
	x->place = HD__LINKED;
}

static inline void join_queue(struct hd_waitq *q, struct hd_waiter *x)
{
	if (unlikely(x->ahead))
		link_first(q, x);
	else
		hd__waitq_link(q, x, HD__LINKED);
}

/* Leaves x's place as it is. */
static void unlink_waiter(struct hd_waitq *q, struct hd_waiter *x)
{
	if (x->prev == NULL)
		q->head = x->next;
	else
		x->prev->next = x->next;
	if (x->next == NULL)
		q->tail = x->prev;
	else
		x->next->prev = x->prev;
	x->next = NULL;
}

void hd__waitq_unlink(struct hd_waitq *q, struct hd_waiter *x)
{
	unlink_waiter(q, x);
	x->place = HD__OUT;
}

struct hd_waiter *hd__waitq_claim_all(struct hd_worker *w, struct hd_waitq *q, enum hd__outcome outcome, enum hd_wait why)
{
	struct hd_waiter *chain = NULL, **end = &chain, *x, *next;

	HD_ASSERT(ld_rlx(&q->lock) != 0, "a wait queue was used without its lock");
	for (x = q->head; x != NULL; x = next) {
		next = x->next;
		if (why != HD_WAIT_NONE && x->why != why)
			continue;
		unlink_waiter(q, x);
		if (hd__claim_this(w, x, outcome)) {
			*end = x;
			end = &x->next;
		}
	}
	return chain;
}

bool hd__waitq_claim_one(struct hd_worker *w, struct hd_waitq *q, struct hd_waiter *x, enum hd__outcome outcome)
{
	HD_ASSERT(ld_rlx(&q->lock) != 0, "a wait queue was used without its lock");
	unlink_waiter(q, x);
	return hd__claim_this(w, x, outcome);
}

/* Priorities change while their processes wait, here or elsewhere: so they are looked at when it matters. */
struct hd_waiter *hd__waitq_claim_best(struct hd_worker *w, struct hd_waitq *q, enum hd__outcome outcome)
{
	HD_ASSERT(ld_rlx(&q->lock) != 0, "a wait queue was used without its lock");
	for (;;) {
		struct hd_waiter *best = NULL;
		int highest = -1;
		for (struct hd_waiter *x = q->head; x != NULL; x = x->next) {
			int priority = x->process != NULL ? ld_rlx(&x->process->priority) : HD_PRIORITY_USER;
			if (priority > highest) {
				highest = priority;
				best = x;
			}
		}
		if (best == NULL || hd__waitq_claim_one(w, q, best, outcome))
			return best;
	}
}

static void apply_wake(void *worker, struct hd_note *note)
{
	hd__wake_owner(worker, (struct hd_process *)((char *)note - offsetof(struct hd_process, wake)));
}

void hd__unpark_elsewhere(struct hd_worker *w, struct hd_waiter *x)
{
	struct hd_process *p = x->process;

	if (p == NULL) {
		st_rel(&x->unparked, 1);	 /* pairs with park_thread's acquire; x may be gone now, */
		hd__os_futex_wake(&x->unparked); /* of which this reads nothing */
		return;
	}
	/* p waits, so its runtime does not end; but it may as soon as p has its note, and the worker must be told of that too */
	if (w != NULL && ld_rlx(&p->roams) && ld_acq(&p->timer) == 0 && !x->several && hd__share_adopt(w, p)) {
		hd__wake_owner(w, p); /* it comes to us: partners that may move do not stay apart */
		return;
	}
	p->wake.apply = apply_wake;
	struct hd_worker *home = ld_rlx(&p->home);
	if (w == NULL)
		hd__gate_enter_surely();
	hd__post(home, &p->wake);
	if (w == NULL)
		hd__gate_leave();
}

void hd__unpark_all(struct hd_worker *w, struct hd_waiter *chain)
{
	while (chain != NULL) {
		struct hd_waiter *x = chain;
		chain = x->next; /* x is gone once it is unparked */
		hd__unpark(w, x);
	}
}

/* x is out of the queue, whose lock is held, and was not claimed. */
static void leave_locked(struct hd_worker *w, struct hd_waiter *x, struct hd_waitq *q)
{
	struct hd_waiter *chain = x->left != NULL ? x->left(w, x) : NULL;

	hd__waitq_unlock(q);
	hd__unpark_all(w, chain);
}

/* Takes a waiter that has just been decided by other means than a claim out of its queue. */
static void withdraw(struct hd_worker *w, struct hd_waiter *x)
{
	struct hd_waitq *q = x->queue;

	hd__waitq_lock(q);
	if (x->place == HD__LINKED) /* else a claim that came after the decision has dropped it */
		hd__waitq_unlink(q, x);
	leave_locked(w, x, q);
}

static inline int result_of(enum hd__outcome outcome)
{
	if (likely(outcome == HD__GRANTED))
		return 0;
	return outcome == HD__TIMED_OUT ? -ETIMEDOUT : outcome == HD__CLOSED ? -EPIPE : -ECANCELED;
}

/* Nobody waits: a try that failed, or the wait was called off before it began. */
static void do_not_wait(struct hd_worker *w, struct hd_waiter *x, struct hd_waitq *q)
{
	x->place = HD__OUT;
	if (q != NULL)
		leave_locked(w, x, q);
}

static int park_thread(struct hd_waiter *x, struct hd_waitq *q, hd_time until)
{
	if (until <= 0) {
		do_not_wait(NULL, x, q);
		return -ETIMEDOUT;
	}
	x->process = NULL;
	x->outcome = HD__WAITING;
	x->unparked = 0;
	if (q != NULL) {
		join_queue(q, x);
		hd__waitq_unlock(q);
	}
	while (ld_acq(&x->unparked) == 0) { /* pairs with unpark's release */
		hd__os_futex_wait(&x->unparked, 0, until);
		if (until == HD_FOREVER || ld_acq(&x->unparked) != 0)
			continue;
		if (!hd__is_past(NULL, until))
			continue;
		if (hd__decide(&x->outcome, HD__TIMED_OUT)) {
			if (q != NULL)
				withdraw(NULL, x);
			break;
		}
		until = HD_FOREVER; /* claimed: it is being unparked this moment */
	}
	return result_of(ld_acq(&x->outcome));
}

int hd__heed(struct hd_worker *w)
{
	struct hd_process *me = w->current;
	enum hd__outcome outcome = hd__called_off(me, ld_acq(&me->control), HD_WAIT_NONE);

	if (outcome == HD__WAITING)
		return 0;
	if (outcome == HD__TERMINATED || me->inner->unwinds)
		w->sched->hooks.unwind(w, me, outcome == HD__TERMINATED ? HD_END_KILLED : HD_END_CANCELLED);
	return -ECANCELED;
}

/* Calls that have something to put in order before the caller may end: they heed again when that is done. */
static bool heeds_later(enum hd_wait why)
{
	return why == HD_WAIT_CONDITION || why == HD_WAIT_SELECT || why == HD_WAIT_GROUP || why == HD_WAIT_REST;
}

/* The wait of `me` was called off. */
static int give_up(struct hd_process *me, enum hd__outcome outcome, enum hd_wait why)
{
	struct hd_worker *w = hd__self();

	if (!heeds_later(why) && (outcome == HD__TERMINATED || me->inner->unwinds))
		w->sched->hooks.unwind(w, me, outcome == HD__TERMINATED ? HD_END_KILLED : HD_END_CANCELLED);
	return -ECANCELED;
}

static inline void set_deadline(struct hd_worker *w, struct hd_process *me, hd_time until)
{
	st_rlx(&me->timer, hd__timers_add(&w->timers, until, hd__slot(&w->sched->table, me)));
	if (until < w->alarm)
		w->chores |= HD__ALARM_IS_LATE;
}

/* The caller's wait has been set up: gives the worker away until it is decided. */
static inline int sleep(struct hd_worker *w, struct hd_process *me, enum hd_wait why, bool boosts, struct hd_process *next)
{
	st_rlx(&me->why, (uint8_t)why);
	hd_time now = ld_rlx(&w->sched->now);
	hd__move_at(w, me, HD_WAITING, now);
	if (next != NULL) {
		next = hd__hand_off(w, next);
	} else {
		next = unlikely(boosts) ? NULL : hd__choose(w);
		w->handoffs = 0;
	}
	if (likely(next != NULL))
		hd__switch(w, me, next, now);
	else
		hd__leave_idle(w, me);

	st_rlx(&me->waiter, NULL);
	enum hd__outcome outcome = ld_acq(&me->outcome); /* pairs with hd__decide's release */
	HD_ASSERT(outcome != HD__WAITING, "a process was woken from a wait that is not over");
	if (unlikely(outcome >= HD__CANCELLED))
		return give_up(me, outcome, why);
	return result_of(outcome);
}

__attribute__((always_inline)) static inline int park(struct hd_worker *w, struct hd_waiter *x, struct hd_waitq *q,
						      hd_time until, enum hd_wait why, struct hd_process *next)
{
	x->queue = q;
	x->why = (uint8_t)why;
	if (unlikely(w == NULL))
		return park_thread(x, q, until);

	struct hd_process *me = w->current;

	HD_ASSERT(me->waiter == NULL, "a process that waits tried to wait");
	HD_ASSERT(q == NULL || ld_rlx(&q->lock) != 0, "a process tried to wait in a queue without its lock");
	bool past = unlikely(until != HD_FOREVER) && hd__is_past(w, until);
	enum hd__outcome off = hd__called_off(me, ld_rlx(&me->control), why);
	if (unlikely(past || off != HD__WAITING)) {
		do_not_wait(w, x, q);
		if (next != NULL)
			hd__enqueue(w, next);
		return past ? -ETIMEDOUT : give_up(me, off, why);
	}
	if (until != HD_FOREVER)
		set_deadline(w, me, until);
	st_rlx(&me->outcome, HD__WAITING);
	if (likely(q != NULL)) {
		x->process = me;
		join_queue(q, x);
		st_rlx(&me->waiter, x);
		w->release = &q->lock;
		if (unlikely(x->owner != NULL && w->sched->config.deadlock != HD_DEADLOCK_IGNORE))
			w->sched->hooks.blocked(w, me);
	}
	return sleep(w, me, why, x->boosts, next);
}

int hd__park(struct hd_worker *w, struct hd_waitq *q, hd_time until, enum hd_wait why)
{
	struct hd_waiter x; /* set field by field: this is a hot path */

	x.several = x.ahead = x.boosts = false;
	x.left = NULL;
	x.owner = NULL;
	return park(w, &x, q, until, why, NULL);
}

int hd__park_as(struct hd_worker *w, struct hd_waiter *x, struct hd_waitq *q, hd_time until, enum hd_wait why,
		struct hd_process *next)
{
	return park(w, x, q, until, why, next);
}

void hd__waits_begin(struct hd_process *me)
{
	HD_ASSERT(me->waiter == NULL, "a process that waits tried to wait");
	me->inner->won = NULL;
	st_rlx(&me->outcome, HD__WAITING);
}

void hd__waits_join(struct hd_process *me, struct hd_waitq *q, struct hd_waiter *x)
{
	x->sibling = me->inner->records;
	me->inner->records = x;
	hd__waitq_link(q, x, HD__LINKED);
}

void hd__waits_end(struct hd_process *me)
{
	me->inner->records = NULL;
}

/* Nobody ends the wait before the caller is off its stack, though no lock keeps them from it: who claims one of the records leaves a note
 * for this worker, who takes in no notes before; and a process that waits in several queues does not move. */
int hd__park_several(struct hd_worker *w, hd_time until, enum hd_wait why)
{
	struct hd_process *me = w->current;
	bool past = until != HD_FOREVER && hd__is_past(w, until);
	enum hd__outcome off = past ? HD__TIMED_OUT : hd__called_off(me, ld_rlx(&me->control), why);

	if (off != HD__WAITING && hd__decide(&me->outcome, off))
		return result_of(off);
	if (until != HD_FOREVER && !past)
		set_deadline(w, me, until);
	st_rlx(&me->why, (uint8_t)why);
	return sleep(w, me, why, false, NULL);
}

void hd__wait_expired(struct hd_worker *w, struct hd_process *p)
{
	HD_ASSERT(p->state == HD_WAITING, "a deadline came for a process that does not wait");
	/* As long as `timer` is set nobody but us wakes p, movable or not; so it is cleared after the decision. */
	bool decided = hd__decide(&p->outcome, HD__TIMED_OUT);
	st_rel(&p->timer, 0); /* pairs with hd__unpark_elsewhere's acquire */
	if (!decided)
		return; /* a grant came first, and its wake is on the way */
	bump(&w->stats.timeouts, 1);
	if (p->waiter != NULL)
		withdraw(w, p->waiter);
	hd__make_ready(w, p);
}

void hd__wait_end(struct hd_worker *w, struct hd_process *p, enum hd__outcome outcome)
{
	if (!hd__decide(&p->outcome, outcome))
		return;
	if (p->waiter != NULL)
		withdraw(w, p->waiter);
	hd__wake_owner(w, p);
}

/* Takes x out of its queue, if it is there in this way. */
static bool take_out(struct hd_waiter *x, enum hd__place place)
{
	struct hd_waitq *q = ld_rlx(&x->queue);

	hd__waitq_lock(q);
	bool there = x->place == place;
	if (there)
		hd__waitq_unlink(q, x);
	hd__waitq_unlock(q);
	return there;
}

void hd__wait_abandon(struct hd_worker *w, struct hd_process *p)
{
	struct hd_waiter *x = p->waiter;

	if (p->state == HD_WAITING)
		hd__wait_end(w, p, HD__TERMINATED);
	if (p->state == HD_WAITING && x != NULL && ld_acq(&x->why) == HD_WAIT_REENTER && take_out(x, HD__MOVED))
		hd__wake_owner(w, p);
	for (x = p->inner != NULL ? p->inner->records : NULL; x != NULL; x = x->sibling)
		if (x != p->inner->won) /* whoever claimed that one may have freed its queue */
			take_out(x, HD__LINKED);
}
