/* wait/wait.c - wait queues, park and unpark.
 *
 * Owns:       struct hd_waitq, struct hd_waiter, and the outcome of a process's wait.
 * Invariant:  a waiter's outcome leaves WAITING once. A waiter that is in a queue waits there, or has just timed out and is
 *             about to be taken out. A claimed waiter does not leave before it is unparked.
 * Locking:    the queue's byte guards the list and whatever the primitive keeps beside it. The outcome is decided without
 *             it, because a timeout must decide before it may touch the queue: as long as the wait is undecided or timed
 *             out, somebody waits in the queue and it exists; once it is granted, the granter may have freed it.
 * Callers:    every primitive. */
#include "wait/wait.h"

#include <errno.h>

#include "base/assert.h"
#include "os/futex.h"
#include "sched/gate.h"

static void link_tail(struct hd_waitq *q, struct hd_waiter *x)
{
	x->next = NULL;
	x->prev = q->tail;
	if (q->tail == NULL)
		q->head = x;
	else
		q->tail->next = x;
	q->tail = x;
	x->linked = true;
}

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
	x->linked = false;
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
		if (hd__decide_locked(w, x, outcome)) {
			*end = x;
			end = &x->next;
		}
	}
	return chain;
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
	if (w != NULL && ld_rlx(&p->roams) && ld_acq(&p->timer) == 0 && hd__share_adopt(w, p)) {
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

/* Takes a waiter that has just been decided by other means than a claim out of its queue. */
static void withdraw(struct hd_waiter *x)
{
	struct hd_waitq *q = x->queue;

	hd__waitq_lock(q);
	if (x->linked) /* a claim that came after the decision has dropped it */
		unlink_waiter(q, x);
	hd__waitq_unlock(q);
}

static inline int result_of(enum hd__outcome outcome)
{
	if (likely(outcome == HD__GRANTED))
		return 0;
	return outcome == HD__TIMED_OUT ? -ETIMEDOUT : -EPIPE;
}

static int park_thread(struct hd_waitq *q, hd_time until, enum hd_wait why)
{
	struct hd_waiter x = { .queue = q, .why = (uint8_t)why };

	if (until <= 0) {
		if (q != NULL)
			hd__waitq_unlock(q);
		return -ETIMEDOUT;
	}
	if (q != NULL) {
		link_tail(q, &x);
		hd__waitq_unlock(q);
	}
	while (ld_acq(&x.unparked) == 0) { /* pairs with unpark's release */
		hd__os_futex_wait(&x.unparked, 0, until);
		if (until == HD_FOREVER || ld_acq(&x.unparked) != 0)
			continue;
		if (!hd__is_past(NULL, until))
			continue;
		if (hd__decide(&x.outcome, HD__TIMED_OUT)) {
			if (q != NULL)
				withdraw(&x);
			break;
		}
		until = HD_FOREVER; /* claimed: it is being unparked this moment */
	}
	return result_of(ld_acq(&x.outcome));
}

int hd__park_for(struct hd_worker *w, struct hd_waitq *q, hd_time until, enum hd_wait why, struct hd_process *next)
{
	if (unlikely(w == NULL))
		return park_thread(q, until, why);

	struct hd_process *me = w->current;
	struct hd_waiter x; /* set field by field: this is a hot path */

	HD_ASSERT(me->waiter == NULL, "a process that waits tried to wait");
	HD_ASSERT(q == NULL || ld_rlx(&q->lock) != 0, "a process tried to wait in a queue without its lock");
	bool past = unlikely(until != HD_FOREVER) && hd__is_past(w, until);
	if (unlikely(past || (ld_rlx(&me->control) & HD__DOOMED && !me->ending))) {
		if (q != NULL)
			hd__waitq_unlock(q);
		if (next != NULL)
			hd__enqueue(w, next);
		if (!past)
			w->sched->hooks.doomed(w, me);
		return -ETIMEDOUT;
	}
	if (until != HD_FOREVER) {
		st_rlx(&me->timer, hd__timers_add(&w->timers, until, hd__slot(&w->sched->table, me)));
		if (until < w->alarm)
			w->chores |= HD__ALARM_IS_LATE;
	}
	st_rlx(&me->outcome, HD__WAITING);
	if (likely(q != NULL)) {
		x.process = me;
		x.queue = q;
		x.why = (uint8_t)why;
		link_tail(q, &x);
		me->waiter = &x;
		w->release = &q->lock;
	}
	st_rlx(&me->why, (uint8_t)why);
	hd_time now = ld_rlx(&w->sched->now);
	hd__move_at(w, me, HD_WAITING, now);
	if (next != NULL) {
		next = hd__hand_off(w, next);
	} else {
		next = hd__choose(w);
		w->handoffs = 0;
	}
	if (likely(next != NULL))
		hd__switch(w, me, next, now);
	else
		hd__leave_idle(w, me);

	me->waiter = NULL;
	enum hd__outcome outcome = ld_acq(&me->outcome); /* pairs with hd__decide's release */
	HD_ASSERT(outcome != HD__WAITING, "a process was woken from a wait that is not over");
	if (unlikely(outcome == HD__TERMINATED)) {
		w = hd__self();
		w->sched->hooks.doomed(w, me);
	}
	return result_of(outcome);
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
		withdraw(p->waiter);
	hd__make_ready(w, p);
}

void hd__wait_terminate(struct hd_worker *w, struct hd_process *p)
{
	if (!hd__decide(&p->outcome, HD__TERMINATED))
		return;
	if (p->waiter != NULL)
		withdraw(p->waiter);
	hd__wake_owner(w, p);
}
