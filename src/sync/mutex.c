/* sync/mutex.c - mutual exclusion with an owner.
 *
 * Owns:       struct hd_mutex; each process's list of the HD_INHERIT mutexes that it owns.
 * Invariant:  a free mutex with an order (any flag) has no undecided waiters: unlocking hands it to one of them. A free mutex
 *             without an order may have some, and then one of them has been woken to try (`waking`), or is about to be; but
 *             once a waiter has tried in vain after HD__LATE, the mutex is handed to it (`overdue`), and is free again after that.
 * Locking:    the wait queue's lock guards all of it; `owner` may be read without.
 * Callers:    a process or a plain thread. */
#include <errno.h>
#include <heddle/mutex.h>
#include <limits.h>

#include "context.h"
#include "sync/sync.h"

void hd_mutex_init(struct hd_mutex *m, unsigned flags)
{
	*m = (struct hd_mutex){ .flags = (unsigned char)flags };
}

#define SUSPENDED_MAX 8

/* Whether unlocking hands it over. Else it goes to the first process that takes it: if it were handed to a process that has yet
 * to get a worker, no process could use it until then, and with two workers processes would queue behind each other for
 * good. */
static inline bool has_order(const struct hd_mutex *m)
{
	return m->flags != 0;
}

static inline void own_locked(struct hd_mutex *m, int64_t owner, unsigned depth)
{
	st_rlx(&m->owner, owner);
	m->depth = depth;
}

/* Adds a mutex with HD_INHERIT to the list of the caller, which owns it now; let_go takes it off before it is given up. */
static void hold(struct hd_mutex *m)
{
	struct hd_worker *w = hd__self();

	if (w == NULL)
		return;
	hd__enter(w);
	m->next_held = w->current->inner->held;
	w->current->inner->held = m;
	hd__leave(w);
}

static void let_go(struct hd_worker *w, struct hd_mutex *m)
{
	struct hd_mutex **link = &w->current->inner->held;

	while (*link != m)
		link = &(*link)->next_held;
	*link = m->next_held;
}

static inline bool is_ranked(const struct hd_mutex *m)
{
	return m->flags & (HD_BY_PRIORITY | HD_INHERIT);
}

/* Has the owner of a mutex with HD_INHERIT find its boost anew, on its home worker, when the lock is released. */
static void boost_owner(struct hd_worker *w, struct hd_mutex *m)
{
	if (!(m->flags & HD_INHERIT) || m->owner <= 0)
		return;
	struct hd__sched *sched = w != NULL ? w->sched : hd__gate_enter();
	if (sched != NULL)
		hd__ask_reboost(sched, m->owner);
	if (sched != NULL && w == NULL)
		hd__gate_leave();
}

/* The mutex that x waits for. */
static struct hd_mutex *mutex_of(const struct hd_waiter *x)
{
	return (struct hd_mutex *)((char *)x->queue - offsetof(struct hd_mutex, waiters));
}

/* A waiter that leaves without the mutex does not boost its owner any more. */
static void waiter_left(struct hd_worker *w, struct hd_waiter *x)
{
	struct hd_mutex *m = mutex_of(x);

	hd__unrank(&m->highest, (struct hd__ranked *)x);
	boost_owner(w, m);
	hd__waitq_unlock(&m->waiters);
}

static void waiter_stalled(struct hd_worker *w, struct hd_waiter *x, bool for_good);

static const struct hd__wait_ops ops = { .stalled = waiter_stalled };
static const struct hd__wait_ops ranked_ops = { .left = waiter_left, .stalled = waiter_stalled };

/* Locking it is no cancellation point; and to enter a monitor again ignores termination too, so that cleanups run owning the mutex. */
static uint8_t rules_of(enum hd_wait why)
{
	return why == HD_WAIT_REENTER ? HD__NO_CANCEL | HD__NO_KILL : HD__NO_CANCEL;
}

/* Those that wait in the parent of a forked child. */
static void forget_parents(struct hd_mutex *m)
{
	if (hd__is_forked(&m->forks)) {
		hd__waitq_forget(&m->waiters);
		m->highest = NULL;
		m->waking = 0;
		m->overdue = false;
	}
}

/* Waits for a mutex without an order, whose lock is held, and which has another owner. */
static int compete_for(struct hd_worker *w, struct hd_mutex *m, int64_t me, unsigned depth, hd_time until, enum hd_wait why,
		       bool ahead)
{
	hd_time since = until > 0 ? hd__exact_time(w) : 0;

	forget_parents(m);
	for (;; ahead = true) {
		struct hd_waiter x = { .data = (void *)(intptr_t)me,
				       .number = depth,
				       .owner = &m->owner,
				       .ops = &ops,
				       .ahead = ahead,
				       .since = since,
				       .rules = rules_of(why) };
		int err = hd__park_as(w, &x, &m->waiters, until, why, NULL);
		if (err != 0 && err != -ETIMEDOUT)
			return err;
		w = hd__self();
		if (w != NULL)
			hd__enter(w);
		hd__waitq_lock(&m->waiters);
		if (err != 0 && m->owner != 0) {
			hd__waitq_unlock(&m->waiters);
			hd__leave_quietly(w);
			return err;
		}
		if (m->owner == 0 || m->owner == me) { /* else another process took it before we ran */
			if (m->owner == 0)
				m->waking = 0; /* the caller is the one that was woken to try */
			m->overdue = false; /* the next waiter tries first, however late: a row of hand-overs would not end */
			own_locked(m, me, depth);
			hd__waitq_unlock(&m->waiters);
			hd__leave_quietly(w);
			return 0;
		}
		m->waking = 0;
		m->overdue = hd__exact_time(w) - since >= HD__LATE;
	}
}

/* Whether the owner of a mutex that the runner of w wants runs at this moment, on another worker; a hint. */
static bool owner_runs(const struct hd_worker *w, const struct hd_mutex *m)
{
	const struct hd_process *p = hd__table_find(&w->sched->table, ld_rlx(&m->owner));

	return p != NULL && ld_rlx(&p->state) == HD_RUNNING;
}

/* The mutex has another owner. While that runs on another worker, and the caller's has nothing else to run, looks whether the mutex
 * becomes free, for as long as a short critical section takes: waiting, and going on on another worker, takes longer. Its lock is held
 * before and after. */
static bool becomes_free(struct hd_worker *w, struct hd_mutex *m)
{
	if (w == NULL || !w->crowd || w->runq.highest != 0 || !owner_runs(w, m))
		return false;
	hd__waitq_unlock(&m->waiters);
	hd__leave_quietly(w);
	for (int i = 0; i < HD__TRIES && owner_runs(w, m); i++)
		hd__arch_pause();
	hd__enter(w);
	hd__waitq_lock(&m->waiters);
	return m->owner == 0;
}

/* Waits for the mutex, whose lock is held, and which has another owner. */
static int wait_for(struct hd_worker *w, struct hd_mutex *m, int64_t me, unsigned depth, hd_time until, enum hd_wait why)
{
	if (likely(!has_order(m))) {
		if (until <= 0 || !becomes_free(w, m))
			return compete_for(w, m, me, depth, until, why, false);
		own_locked(m, me, depth);
		hd__waitq_unlock(&m->waiters);
		hd__leave_quietly(w);
		return 0;
	}
	struct hd__ranked x = { .waiter = { .data = (void *)(intptr_t)me,
					    .number = depth,
					    .owner = &m->owner,
					    .ops = &ops,
					    .rules = rules_of(why) } };
	forget_parents(m);
	if (is_ranked(m) && until > 0) {
		x.waiter.process = w != NULL ? w->current : NULL;
		x.waiter.ops = &ranked_ops;
		x.waiter.boosts = m->flags & HD_INHERIT && m->owner > 0;
		hd__rank(&m->highest, &x);
		boost_owner(w, m);
	}
	int err = hd__park_as(w, &x.waiter, &m->waiters, until, why, NULL);
	if (err == 0 && m->flags & HD_INHERIT)
		hold(m); /* the previous owner has handed it to the caller */
	return err;
}

/* The call, under the lock, which it releases. */
__attribute__((noinline)) static int lock_locked(struct hd_worker *w, struct hd_mutex *m, int64_t me, hd_time until)
{
	if (m->owner == 0) {
		own_locked(m, me, 1);
		hd__waitq_unlock(&m->waiters);
		hd__leave_quietly(w);
		if (unlikely(m->flags & HD_INHERIT))
			hold(m);
		return 0;
	}
	if (m->owner == me) {
		int err = m->depth == UINT_MAX ? -EOVERFLOW : 0;
		m->depth += err == 0;
		hd__waitq_unlock(&m->waiters);
		hd__leave_quietly(w);
		return err;
	}
	return wait_for(w, m, me, 1, until, HD_WAIT_MUTEX);
}

__attribute__((noinline)) static int lock_slowly(struct hd_mutex *m, hd_time until)
{
	struct hd_worker *w = hd__self();

	if (hd__is_duration(until))
		return -EINVAL;
	if (w != NULL) {
		hd__enter(w);
		w = hd__safe_point(w);
	}
	hd__waitq_lock(&m->waiters);
	return lock_locked(w, m, hd__owner_self(w), until);
}

int hd_mutex_lock(struct hd_mutex *m, hd_time until)
{
	struct hd_worker *w = hd__self();

	if (unlikely(!hd__begin_at_once(w, &m->waiters, until)))
		return hd__keep_frame(lock_slowly(m, until));
	int64_t me = hd__owner_self(w);
	if (unlikely(m->owner != 0 || m->flags & HD_INHERIT))
		return lock_locked(w, m, me, until);
	own_locked(m, me, 1);
	hd__waitq_unlock(&m->waiters);
	hd__leave(w);
	return 0;
}

int hd_mutex_try_lock(struct hd_mutex *m)
{
	return hd__try(hd_mutex_lock(m, 0));
}

/* The first waiter that is not suspended, of the first few; else the first. */
static struct hd_waiter *first_that_comes(const struct hd_mutex *m)
{
	struct hd_waiter *x = m->waiters.head;

	for (int i = 0; i < SUSPENDED_MAX && x != NULL; i++, x = x->next)
		if (hd__will_come(x))
			return x;
	return m->waiters.head;
}

/* The waiter that is handed the mutex, or woken to try, claimed; NULL when there is none. */
__attribute__((noinline)) static struct hd_waiter *claim_next(struct hd_worker *w, struct hd_mutex *m)
{
	struct hd_waiter *x = NULL;

	if (m->flags & HD_BY_PRIORITY) {
		do {
			if ((x = (struct hd_waiter *)m->highest) == NULL)
				break;
			hd__unrank(&m->highest, m->highest);
		} while (!hd__waitq_claim_one(w, &m->waiters, x, HD__GRANTED));
	} else if (has_order(m)) {
		x = hd__waitq_claim(w, &m->waiters, HD__GRANTED);
		if (x != NULL && is_ranked(m))
			hd__unrank(&m->highest, (struct hd__ranked *)x);
	} else {
		while ((x = first_that_comes(m)) != NULL && !hd__waitq_claim_one(w, &m->waiters, x, HD__GRANTED))
			;
	}
	return x;
}

/* Takes the mutex from its owner, which may be about to wait (`waits`): it is free, or handed to a waiter. Returns the waiter to unpark
 * when the lock is released, or NULL. */
__attribute__((always_inline)) static inline struct hd_waiter *pass_on_locked(struct hd_worker *w, struct hd_mutex *m,
									      bool waits)
{
	struct hd_waiter *next = NULL;

	if (unlikely(m->waiters.head != NULL || m->waking != 0))
		forget_parents(m);
	if (!hd__one_is_coming(&m->waking) && m->waiters.head != NULL)
		next = claim_next(w, m);
	/* If the caller is about to wait, a waiter that is at home here runs at once: it need not compete. */
	bool runs_next = waits && next != NULL && w != NULL && w->runq.highest == 0 && next->process != NULL &&
			 ld_rlx(&next->process->home) == w;
	if (next == NULL || !(has_order(m) || ((m->overdue || runs_next) && hd__will_come(next)))) {
		own_locked(m, 0, 0);
		if (next != NULL)
			m->waking = 1;
	} else {
		m->overdue = false;
		own_locked(m, (int64_t)(intptr_t)next->data, next->number);
	}
	return next;
}

/* The process of x does not go on. If it was woken to try, another waiter is; if it was handed the mutex and will never run, the mutex is
 * passed on. */
static void waiter_stalled(struct hd_worker *w, struct hd_waiter *x, bool for_good)
{
	struct hd_mutex *m = mutex_of(x);
	struct hd_waiter *next = NULL;

	if (x->place != HD__CLAIMED)
		return;
	hd__waitq_lock(&m->waiters);
	if (m->owner != (int64_t)(intptr_t)x->data) {
		m->waking = 0; /* if another waiter was woken too, one more will be: no harm */
		if (m->owner == 0 && (next = claim_next(w, m)) != NULL)
			m->waking = 1;
	} else if (for_good) {
		next = pass_on_locked(w, m, false);
	}
	hd__waitq_unlock(&m->waiters);
	if (next != NULL)
		hd__unpark_later(w, next);
}

/* The caller gives the mutex up, whose lock is held and will be released. Returns the waiter to unpark, or NULL. */
static struct hd_waiter *release(struct hd_worker *w, struct hd_mutex *m, bool waits)
{
	bool inherit = m->flags & HD_INHERIT;

	if (unlikely(inherit && w != NULL))
		let_go(w, m);
	struct hd_waiter *next = pass_on_locked(w, m, waits);
	if (unlikely(inherit && m->waiters.head != NULL))
		boost_owner(w, m); /* the new owner is boosted by the waiters that are left */
	hd__waitq_unlock(&m->waiters);
	if (unlikely(inherit && w != NULL))
		hd__boost_self(w, w->current);
	return next;
}

/* The call, under the lock, which it releases. */
__attribute__((noinline)) static int unlock_locked(struct hd_worker *w, struct hd_mutex *m, int64_t me)
{
	if (m->owner != me) {
		hd__waitq_unlock(&m->waiters);
		hd__leave_quietly(w);
		return -EPERM;
	}
	if (m->depth > 1) {
		m->depth--;
		hd__waitq_unlock(&m->waiters);
	} else {
		struct hd_waiter *next = release(w, m, false);
		if (next != NULL)
			hd__unpark_claimed(w, next);
	}
	hd__leave_call(w);
	return 0;
}

__attribute__((noinline)) static int unlock_slowly(struct hd_mutex *m)
{
	struct hd_worker *w = hd__enter_call();

	hd__waitq_lock(&m->waiters);
	return unlock_locked(w, m, hd__owner_self(w));
}

int hd_mutex_unlock(struct hd_mutex *m)
{
	struct hd_worker *w = hd__self();

	if (unlikely(!hd__enter_at_once(w, &m->waiters)))
		return hd__keep_frame(unlock_slowly(m));
	int64_t me = hd__owner_self(w);
	if (unlikely(m->owner != me || m->depth != 1 || m->waiters.head != NULL || m->waking != 0 || m->flags & HD_INHERIT))
		return unlock_locked(w, m, me);
	own_locked(m, 0, 0);
	hd__waitq_unlock(&m->waiters);
	hd__leave_call(w);
	return 0;
}

bool hd_mutex_is_mine(const struct hd_mutex *m)
{
	return ld_rlx(&m->owner) == hd__owner_self(hd__self());
}

void hd__protected(void (*fn)(void *arg), void *arg, void (*leave)(void *what), void *what)
{
	struct hd_cleanup cleanup;

	if (hd_cleanup_push(&cleanup, leave, what) != 0) { /* a plain thread: nothing ends it */
		fn(arg);
		leave(what);
		return;
	}
	fn(arg);
	hd_cleanup_pop(&cleanup, true);
}

static void unlock(void *m)
{
	hd_mutex_unlock(m);
}

int hd_mutex_critical(struct hd_mutex *m, void (*fn)(void *arg), void *arg, hd_time until)
{
	int err = hd_mutex_lock(m, until);

	if (err == 0)
		hd__protected(fn, arg, unlock, m);
	return err;
}

unsigned hd__mutex_release(struct hd_worker *w, struct hd_mutex *m, struct hd_waiter **next)
{
	hd__waitq_lock(&m->waiters);
	unsigned depth = m->depth;
	*next = release(w, m, true);
	if (w != NULL)
		w->resched &= ~(uint32_t)HD__KEEP_PLACE; /* meant for the caller, which now waits; not for its successor */
	return depth;
}

void hd__mutex_pass_to(struct hd_worker *w, struct hd_mutex *m, struct hd_waiter *x)
{
	struct hd_process *p = x->process;

	hd__waitq_lock(&m->waiters);
	st_rlx(&x->queue, &m->waiters);
	x->ops = is_ranked(m) ? &ranked_ops : &ops;
	st_rel(&x->rules, HD__NO_CANCEL | HD__NO_KILL | HD__HEEDS_LATER); /* pairs with hd__wait_abandon */
	st_seq(&x->why, HD_WAIT_REENTER);				  /* pairs with wanted_by in sync/inherit.c */
	if (p != NULL) {
		st_rlx(&p->why, HD_WAIT_REENTER);
		st_rlx(&p->rules, HD__NO_CANCEL | HD__NO_KILL | HD__HEEDS_LATER);
	}
	forget_parents(m);
	if (m->owner != 0 || m->waking != 0) { /* in its turn: it does not wake to wait again */
		hd__waitq_link(&m->waiters, x, HD__MOVED);
		if (unlikely(is_ranked(m))) {
			hd__rank(&m->highest, (struct hd__ranked *)x);
			boost_owner(w, m);
		}
		hd__waitq_unlock(&m->waiters);
		return;
	}
	if (has_order(m))
		own_locked(m, (int64_t)(intptr_t)x->data, x->number);
	else
		m->waking = 1;
	hd__waitq_unlock(&m->waiters);
	hd__unpark(w, x);
}

/* Locks it, as deep as that; `ahead`: before the other waiters. */
static void reenter(struct hd_mutex *m, unsigned depth, bool ahead)
{
	struct hd_worker *w = hd__self();
	int64_t me = hd__owner_self(w);

	if (w != NULL)
		hd__enter(w);
	hd__waitq_lock(&m->waiters);
	m->waking = 0; /* if another waiter was woken too, one more will be: no harm */
	if (m->owner == 0) {
		own_locked(m, me, depth);
		hd__waitq_unlock(&m->waiters);
		hd__leave_quietly(w);
		if (m->flags & HD_INHERIT)
			hold(m);
	} else if (has_order(m)) {
		wait_for(w, m, me, depth, HD_FOREVER, HD_WAIT_REENTER);
	} else {
		compete_for(w, m, me, depth, HD_FOREVER, HD_WAIT_REENTER, ahead);
	}
}

void hd__mutex_passed(struct hd_mutex *m, unsigned depth)
{
	if (ld_rlx(&m->owner) != hd__owner_self(hd__self()))
		reenter(m, depth, true); /* without an order, the caller was only woken to try */
	else if (m->flags & HD_INHERIT)
		hold(m);
}

void hd__mutex_reenter(struct hd_mutex *m, unsigned depth)
{
	reenter(m, depth, false);
}
