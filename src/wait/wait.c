/* wait/wait.c - wait queues, park and unpark.
 *
 * Owns:       struct hd_waitq, struct hd_waiter, and the outcome of a process's wait.
 * Invariant:  a waiter's outcome leaves WAITING once. A waiter that is in a queue waits there, or has just timed out or been called
 *             off and is about to be taken out. A claimed waiter does not leave before it is unparked.
 * Locking:    the queue's byte guards the list and whatever the primitive keeps beside it. The outcome is decided without
 *             it, because a timeout must decide before it may touch the queue: as long as the wait is undecided or timed
 *             out, its waiter is in the queue and the queue exists; once it is granted, the granter may have freed it.
 * Callers:    every primitive. */
#include "wait/wait.h"

#include <errno.h>

#include "base/assert.h"
#include "os/futex.h"
#include "sched/gate.h"
#include "sched/record.h"

#define BATCH 32 /* waiters that one holder of a queue's lock claims */

unsigned char hd__forks;

static void link_ahead(struct hd_waitq *q, struct hd_waiter *x)
{
	struct hd_waiter **link = x->behind != NULL ? &x->behind->next : &q->head;

	x->prev = x->behind;
	x->next = *link;
	if (*link == NULL)
		q->tail = x;
	else
		(*link)->prev = x;
	*link = x;
	x->place = HD__LINKED;
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

static void apply_wake(void *worker, struct hd_note *note)
{
	hd__wake_here(worker, (struct hd_process *)((char *)note - offsetof(struct hd_process, wake)));
}

/* A process whose wait w has claimed comes to w, if it may: partners that talk to each other come together. Its deadline stays behind in
 * the heap of its old home, forgotten. One that is still on its stack stays: its worker, which is inside its lane until it has left the
 * stack, then finds a note. */
static bool adopt(struct hd_worker *w, struct hd_waiter *x)
{
	struct hd_process *p = x->process;
	struct hd_worker *before = ld_rlx(&p->home);

	if (!hd__is_off_stack(p) || !hd__move_home(p, w))
		return false;
	x->home = w;
	uint64_t wait = ld_rlx(&p->wait);
	while (wait >> HD__WAIT_BITS != 0) /* unless the deadline has just left the heap: see hd__wait_expired */
		if (cas_acq_rel(&p->wait, &wait, (uint64_t)hd__outcome(wait))) {
			hd__timers_orphan(&before->timers);
			break;
		}
	return true;
}

void hd__wait_stalled(struct hd_worker *w, struct hd_process *p, bool for_good)
{
	struct hd_waiter *x = p->waiter; /* until p runs again */

	if (x != NULL && x->ops != NULL && x->ops->stalled != NULL)
		x->ops->stalled(w, x, for_good);
}

int hd__wake_and_leave(struct hd_worker *w, struct hd_process *p)
{
	hd__move_unrecorded(p, HD_WAITING, HD_READY, ld_rlx(&w->sched->now));
	hd__runq_append(&w->runq, p);
	hd__leave_call(w);
	return 0;
}

void hd__unpark_elsewhere(struct hd_worker *w, struct hd_waiter *x)
{
	struct hd_process *p = x->process;

	if (p == NULL && x->told != NULL) {
		x->told(w, x);
		return;
	}
	if (p == NULL) {
		st_rel(&x->unparked, 1);	 /* pairs with park_thread's acquire; x may be gone now, */
		hd__os_futex_wake(&x->unparked); /* of which this reads nothing */
		return;
	}
	if (w != NULL && adopt(w, x)) {
		hd__wake_here(w, p);
		return;
	}
	/* p waits, so its runtime does not end; but it may as soon as p has its note, and the worker must be told of that too */
	p->wake.apply = apply_wake;
	struct hd_worker *home = ld_rlx(&p->home);
	if (w != NULL) {
		hd__trace_event(w, HD__TRACED_WAKE, hd__pid(&w->sched->table, p), 0, hd__trace_source(w));
		hd__post(home, &p->wake);
		return;
	}
	hd__gate_enter_surely();
	hd__trace_outside(home->sched, HD__TRACED_WAKE, hd__pid(&home->sched->table, p), 0);
	if (hd__visit(home, false)) { /* the caller may hold the lock of a condition: no more than a try */
		hd__wake_here(home, p);
		hd__unvisit(home);
	} else {
		hd__post(home, &p->wake);
	}
	hd__gate_leave();
}

void hd__unpark_bare_elsewhere(struct hd_worker *w, struct hd_process *p)
{
	struct hd_waiter x = { .process = p };

	hd__unpark_elsewhere(w, &x);
}

void hd__unpark_later(struct hd_worker *w, struct hd_waiter *x)
{
	struct hd_process *p = x->process;

	if (p == NULL) {
		hd__unpark_elsewhere(w, x);
		return;
	}
	p->wake.apply = apply_wake;
	if (w != NULL)
		hd__trace_event(w, HD__TRACED_WAKE, hd__pid(&w->sched->table, p), 0, hd__trace_source(w));
	hd__post(ld_rlx(&p->home), &p->wake);
}

uint64_t hd__waits_for(const struct hd_process *p)
{
	const struct hd_waiter *x = p->waiter;

	if (p->why >= HD_WAIT_FD_READ && p->why <= HD_WAIT_FILE_LOCK)
		return x != NULL ? x->number : 0;
	return x != NULL ? (uintptr_t)x->queue : 0;
}

static inline bool come_home(struct hd_worker *w, struct hd_waiter *x)
{
	return ld_rlx(&x->process->home) == w || adopt(w, x);
}

bool hd__come_home(struct hd_worker *w, struct hd_waiter *x)
{
	return come_home(w, x);
}

struct hd_process *hd__unpark_for_hand_off(struct hd_worker *w, struct hd_waiter *x)
{
	struct hd_process *p = x->process;

	if (p != NULL && hd__may_hand_off(w, p) && !hd__should_stop(ld_acq(&p->control)) && come_home(w, x))
		return hd__unpark_to_run(w, x);
	hd__unpark(w, x);
	return NULL;
}

void hd__unpark_all(struct hd_worker *w, struct hd_waiter *chain)
{
	while (chain != NULL) {
		struct hd_waiter *x = chain;
		chain = x->next; /* x is gone once it is unparked */
		hd__unpark(w, x);
	}
}

static void unpark(struct hd_worker *w, struct hd_waiter *x)
{
	hd__unpark(w, x);
}

/* Between two batches the last waiter of the first is kept in hand, claimed and not yet let go: its call has not returned, so the queue
 * exists. With all of them let go, they might have freed it. */
static void serve(struct hd_worker *w, struct hd_waitq *q, struct hd_waiter *(*next)(struct hd_worker *w, void *arg), void *arg,
		  void (*let_go)(struct hd_worker *w, struct hd_waiter *x))
{
	struct hd_waiter *last = NULL, *x;

	do {
		struct hd_waiter *chain = last, **end = last != NULL ? &last->next : &chain;
		int n = 0;
		while ((x = next(w, arg)) != NULL) {
			*end = last = x;
			end = &x->next;
			if (++n == BATCH)
				break;
		}
		*end = NULL;
		hd__waitq_unlock(q);
		while (chain != NULL && (x == NULL || chain != last)) {
			struct hd_waiter *first = chain;
			chain = chain->next; /* `first` is gone once it is let go */
			let_go(w, first);
		}
		if (x != NULL)
			hd__waitq_lock(q);
	} while (x != NULL);
}

void hd__waitq_serve(struct hd_worker *w, struct hd_waitq *q, struct hd_waiter *(*next)(struct hd_worker *w, void *arg),
		     void *arg, void (*let_go)(struct hd_worker *w, struct hd_waiter *x))
{
	serve(w, q, next, arg, let_go != NULL ? let_go : unpark);
}

/* Waiters that were taken off their queue in one step, and are served now. Its lock still guards them. One that leaves meanwhile finds a
 * neighbour on both sides, and so does not touch the ends of the queue, which has other waiters by then. */
struct row {
	struct hd_waitq *q;
	enum hd__outcome outcome;
	struct hd_waiter first, last; /* its ends; no process waits on these */
};

static struct hd_waiter *next_in_row(struct hd_worker *w, void *arg)
{
	struct row *row = arg;

	for (struct hd_waiter *x; (x = row->first.next) != &row->last;)
		if (hd__waitq_claim_one(w, row->q, x, row->outcome))
			return x;
	return NULL;
}

void hd__waitq_serve_all(struct hd_worker *w, struct hd_waitq *q, enum hd__outcome outcome,
			 void (*let_go)(struct hd_worker *w, struct hd_waiter *x))
{
	struct row row;

	if (q->head == NULL) {
		hd__waitq_unlock(q);
		return;
	}
	row.q = q;
	row.outcome = outcome;
	row.first.next = q->head;
	row.last.prev = q->tail;
	q->head->prev = &row.first;
	q->tail->next = &row.last;
	q->head = q->tail = NULL;
	serve(w, q, next_in_row, &row, let_go != NULL ? let_go : unpark);
}

/* x is out of the queue, whose lock is held, and was not claimed. */
static void leave_locked(struct hd_worker *w, struct hd_waiter *x, struct hd_waitq *q)
{
	if (x->ops != NULL && x->ops->left != NULL)
		x->ops->left(w, x);
	else
		hd__waitq_unlock(q);
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

/* The caller does not wait: a try that failed, or the wait was called off before it began. */
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
	x->home = NULL;
	x->wait = HD__WAITING;
	x->told = NULL;
	x->unparked = 0;
	if (q != NULL) {
		if (x->ahead)
			link_ahead(q, x);
		else
			hd__waitq_link(q, x, HD__LINKED);
		hd__waitq_unlock(q);
	}
	while (ld_acq(&x->unparked) == 0) { /* pairs with unpark's release */
		hd__os_futex_wait(&x->unparked, 0, until);
		if (until == HD_FOREVER || ld_acq(&x->unparked) != 0)
			continue;
		if (!hd__is_past(NULL, until))
			continue;
		if (hd__decide(&x->wait, HD__TIMED_OUT)) {
			if (q != NULL)
				withdraw(NULL, x);
			break;
		}
		until = HD_FOREVER; /* claimed: it is being unparked this moment */
	}
	if (q != NULL)
		hd__learn(&q->lock);
	return result_of(hd__outcome(ld_acq(&x->wait)));
}

int hd__heed(void)
{
	struct hd_worker *w = hd__self();
	struct hd_process *me = w->current;
	enum hd__outcome outcome = hd__called_off(me, ld_acq(&me->control), 0);

	hd__learn(me);
	if (outcome == HD__WAITING)
		return ld_rlx(&me->control) & HD__LOGGED ? -ENOTSUP : 0;
	if (outcome == HD__TERMINATED || me->inner->unwinds)
		w->sched->hooks.unwind(me, outcome == HD__TERMINATED ? HD_END_KILLED : HD_END_CANCELLED);
	return -ECANCELED;
}

int hd__heed_inside(struct hd_worker **w)
{
	hd__leave(*w);
	int err = hd__heed();
	if (err == 0)
		hd__enter(*w = hd__self());
	return err;
}

/* The wait of `me` was called off; outside its lane. */
static int give_up(struct hd_process *me, enum hd__outcome outcome, unsigned rules)
{
	if (!(rules & HD__HEEDS_LATER) && (outcome == HD__TERMINATED || me->inner->unwinds))
		hd__self()->sched->hooks.unwind(me, outcome == HD__TERMINATED ? HD_END_KILLED : HD_END_CANCELLED);
	return -ECANCELED;
}

/* The number of a new deadline of the runner, to be put into its wait word. */
static inline uint64_t set_deadline(struct hd_worker *w, struct hd_process *me, hd_time until)
{
	uint64_t order = hd__timers_add(&w->timers, until, hd__slot(&w->sched->table, me));

	if (until < w->due.alarm)
		w->chores |= HD__ALARM_IS_LATE;
	return HD__TIMER_NUMBER(order) << HD__WAIT_BITS;
}

uint64_t hd__set_deadline(struct hd_worker *w, struct hd_process *me, hd_time until)
{
	return set_deadline(w, me, until);
}

int hd__wait_failed(struct hd_process *me, enum hd__outcome outcome)
{
	HD_ASSERT(outcome != HD__WAITING, "a process was woken from a wait that is not over");
	return outcome >= HD__CANCELLED ? give_up(me, outcome, me->rules) : result_of(outcome);
}

/* The caller's wait has been set up: releases the lock of `q`, if that is not NULL, and gives the worker away until the wait is decided. */
__attribute__((always_inline)) static inline int sleep(struct hd_worker *w, struct hd_process *me, struct hd_waitq *q,
						       enum hd_wait why, unsigned rules, bool boosts, struct hd_process *next)
{
	st_rlx(&me->why, (uint8_t)why);
	st_rlx(&me->rules, (uint8_t)rules);
	hd_time now = ld_rlx(&w->sched->now);
	hd__move_at(w, me, HD_WAITING, now);
	if (q != NULL)
		hd__waitq_unlock(q);
	if (next != NULL) {
		next = hd__hand_off(w, next);
	} else {
		next = unlikely(boosts) ? NULL : hd__choose(w);
		w->handoffs = 0;
	}
	w = likely(next != NULL) ? hd__switch(w, me, next, now) : hd__leave_idle(w, me);
	return hd__awake(w, me);
}

/* As hd__waitq_join; `ahead`: at the place in q that x says. */
__attribute__((always_inline)) static inline void join(struct hd_worker *w, struct hd_process *me, struct hd_waitq *q,
						       struct hd_waiter *x, bool ahead)
{
	if (likely(!ahead)) {
		hd__waitq_join(w, me, q, x);
		return;
	}
	x->process = me;
	x->home = w;
	hd__leaves_stack(me);
	link_ahead(q, x);
	st_rlx(&me->waiter, x);
}

static inline void check_may_wait(const struct hd_process *me, const struct hd_waitq *q)
{
	HD_ASSERT(me->waiter == NULL, "a process that waits tried to wait");
	HD_ASSERT(ld_rlx(&q->lock) != 0, "a process tried to wait in a queue without its lock");
}

/* Why the process does not wait: its deadline has passed, or it was called off. HD__WAITING: it does. */
static inline enum hd__outcome refused(struct hd_worker *w, struct hd_process *me, hd_time until, unsigned rules)
{
	if (unlikely(until != HD_FOREVER) && hd__is_past(w, until))
		return HD__TIMED_OUT;
	return hd__called_off(me, ld_rlx(&me->control), rules);
}

int hd__park_as(struct hd_worker *w, struct hd_waiter *x, struct hd_waitq *q, hd_time until, enum hd_wait why,
		struct hd_process *next)
{
	x->queue = q;
	x->why = (uint8_t)why;
	if (unlikely(w == NULL))
		return park_thread(x, q, until);

	struct hd_process *me = w->current;

	check_may_wait(me, q);
	enum hd__outcome off = refused(w, me, until, x->rules);
	if (unlikely(off != HD__WAITING)) {
		do_not_wait(w, x, q);
		if (next != NULL) {
			hd__runq_push_tail(&w->runq, next);
			w = hd__safe_point(w); /* it may be better than the caller, which goes on */
		}
		hd__leave(w);
		return off == HD__TIMED_OUT ? -ETIMEDOUT : give_up(me, off, x->rules);
	}
	st_rlx(&me->wait, until != HD_FOREVER ? set_deadline(w, me, until) : HD__WAITING);
	join(w, me, q, x, x->ahead);
	if (unlikely(x->owner != NULL && w->sched->config.deadlock != HD_DEADLOCK_IGNORE))
		w->sched->hooks.blocked(w, me);
	return sleep(w, me, q, why, x->rules, x->boosts, next);
}

/* hd__park, of a plain thread, or with a deadline. */
__attribute__((noinline)) static int park_slowly(struct hd_worker *w, struct hd_waitq *q, hd_time until, enum hd_wait why)
{
	struct hd_waiter x;

	hd__waiter_init(&x);
	return hd__park_as(w, &x, q, until, why, NULL);
}

int hd__park(struct hd_worker *w, struct hd_waitq *q, hd_time until, enum hd_wait why)
{
	struct hd_waiter x;

	if (unlikely(w == NULL || until != HD_FOREVER))
		return park_slowly(w, q, until, why);
	struct hd_process *me = w->current;
	check_may_wait(me, q);
	hd__waiter_init(&x);
	x.queue = q;
	x.why = (uint8_t)why;
	st_rlx(&me->wait, HD__WAITING);
	join(w, me, q, &x, false);
	return sleep(w, me, q, why, 0, false, NULL);
}

int hd__park_for_time(struct hd_worker *w, hd_time until, enum hd_wait why)
{
	if (unlikely(w == NULL)) {
		struct hd_waiter x;
		hd__waiter_init(&x);
		return park_thread(&x, NULL, until);
	}
	struct hd_process *me = w->current;
	enum hd__outcome off = refused(w, me, until, 0);
	if (off != HD__WAITING) {
		hd__leave(w);
		return off == HD__TIMED_OUT ? -ETIMEDOUT : give_up(me, off, 0);
	}
	st_rlx(&me->wait, until != HD_FOREVER ? set_deadline(w, me, until) : HD__WAITING);
	return sleep(w, me, NULL, why, 0, false, NULL);
}

void hd__wait_bare(struct hd_worker *w, hd_time until, enum hd_wait why)
{
	struct hd_process *me = w->current;

	st_rlx(&me->wait, until != HD_FOREVER ? set_deadline(w, me, until) : HD__WAITING);
	st_rlx(&me->why, (uint8_t)why);
	st_rlx(&me->rules, 0);
	hd__has_no_stack(me);
	hd__move(w, me, HD_WAITING);
}

void hd__waits_begin(struct hd_process *me)
{
	HD_ASSERT(me->waiter == NULL, "a process that waits tried to wait");
	me->inner->won = NULL;
	hd__leaves_stack(me);
	st_rlx(&me->wait, HD__WAITING);
}

void hd__waits_join(struct hd_process *me, struct hd_waitq *q, struct hd_waiter *x)
{
	x->home = NULL;
	x->sibling = me->inner->records;
	me->inner->records = x;
	hd__waitq_link(q, x, HD__LINKED);
}

void hd__waits_end(struct hd_process *me)
{
	me->inner->records = NULL;
}

int hd__park_several(struct hd_worker *w, hd_time until, enum hd_wait why)
{
	struct hd_process *me = w->current;
	bool past = until != HD_FOREVER && hd__is_past(w, until);
	enum hd__outcome off = past ? HD__TIMED_OUT : hd__called_off(me, ld_rlx(&me->control), HD__HEEDS_LATER);

	if (off != HD__WAITING && hd__decide(&me->wait, off)) {
		hd__leave(w);
		return result_of(off);
	}
	if (until != HD_FOREVER && !past)
		or_acq_rel(&me->wait, set_deadline(w, me, until)); /* also if it has just been decided: the wake forgets it */
	return sleep(w, me, NULL, why, HD__HEEDS_LATER, false, NULL);
}

/* Against a grant that is decided at the same time, and whose claimer may even adopt p and let it wait anew: the number decides. The thread
 * that takes the number out of the word settles the account of the heap (adopt, hd__end_wait, or this). */
void hd__wait_expired(struct hd_worker *w, struct hd_process *p, uint64_t number)
{
	uint64_t wait = ld_acq(&p->wait);

	do
		if (wait >> HD__WAIT_BITS != number) {
			bump(&w->timers.stale, -1); /* an orphan: its adopter has counted it, and it is out of the heap */
			return;
		}
	while (!cas_acq_rel(&p->wait, &wait, (uint64_t)(hd__outcome(wait) == HD__WAITING ? HD__TIMED_OUT : hd__outcome(wait))));
	if (hd__outcome(wait) != HD__WAITING)
		return; /* a grant came first, and its wake is on the way */
	HD_ASSERT(p->state == HD_WAITING, "a deadline came for a process that does not wait");
	bump(&w->stats.timeouts, 1);
	if (p->waiter != NULL)
		withdraw(w, p->waiter);
	hd__make_ready(w, p);
}

void hd__wait_learn(struct hd_process *p)
{
	const struct hd_waiter *x = p->waiter != NULL ? p->waiter : p->inner->records != NULL ? p->inner->won : NULL;

	hd__learn(p->stack); /* what the process did that had it before */
	hd__learn(p);
	if (p->pins > 0)
		hd__learn(p->home);
	if (x != NULL && x->queue != NULL)
		hd__learn(&x->queue->lock); /* of which nothing is read: it may be gone */
}

void hd__wait_end(struct hd_worker *w, struct hd_process *p, enum hd__outcome outcome)
{
	if (!hd__decide(&p->wait, outcome))
		return;
	if (p->waiter != NULL)
		withdraw(w, p->waiter);
	hd__wake_here(w, p);
}

/* Takes x out of its queue, if it is there in this way. */
static bool take_out(struct hd_worker *w, struct hd_waiter *x, enum hd__place place)
{
	struct hd_waitq *q = ld_rlx(&x->queue);

	hd__waitq_lock(q);
	if (x->place != place) {
		hd__waitq_unlock(q);
		return false;
	}
	hd__waitq_unlink(q, x);
	leave_locked(w, x, q);
	return true;
}

void hd__wait_abandon(struct hd_worker *w, struct hd_process *p)
{
	struct hd_waiter *x = p->waiter;

	if (p->state == HD_WAITING)
		hd__wait_end(w, p, HD__TERMINATED);
	if (p->state == HD_WAITING && x != NULL && ld_acq(&x->rules) & HD__NO_KILL && take_out(w, x, HD__MOVED))
		hd__wake_here(w, p);
	for (x = p->inner != NULL ? p->inner->records : NULL; x != NULL; x = x->sibling)
		if (x != p->inner->won) /* the thread that claimed that one may have freed its queue */
			take_out(w, x, HD__LINKED);
	if (p->state != HD_WAITING)
		hd__wait_stalled(w, p, true);
}
