/* life/join.c - waiting for the end of a process, and not wanting to.
 *
 * Owns:       `bond`: how a process's end will be collected. Guarded by news.lock.
 * Invariant:  a block is dropped once: by the joiner that was granted or found it dead, by hd_detach that found it dead, or
 *             by the end itself when it is detached.
 * Callers:    any thread. */
#include <errno.h>

#include "life/life.h"

/* Locks p's news if `pid` still names it, and answers its bond, and whether it has ended; -ESRCH if it does not. */
static inline int lock_bond(struct hd_process *p, hd_pid pid, bool *dead)
{
	if (unlikely(p == NULL))
		return -ESRCH;
	hd__waitq_lock(&p->news);
	/* The caller that collects it drops it without the lock; but then it was not joinable any more before. So if what we have seen is
	 * its own, and not the next process's, joinable means that it is ours. The next one has another generation. */
	bool named = hd__alive_or_zombie(p, pid);
	int bond = ld_acq(&p->bond);
	uint64_t control = ld_acq(&p->control);
	*dead = control & HD__DEAD;
	if (likely(named && HD__GENERATION(control) == HD__GENERATION(pid)))
		return bond;
	hd__waitq_unlock(&p->news);
	return -ESRCH;
}

/* p is dead and the caller's alone. */
static inline void drop(struct hd__caller caller, struct hd_process *p)
{
	hd__table_drop(&caller.sched->table, hd__own_blocks(caller), p);
}

__attribute__((always_inline)) static inline int look(struct hd__caller caller, hd_pid pid, struct hd_process **found)
{
	struct hd_process *p = *found = hd__table_find(&caller.sched->table, pid);
	bool dead;

	if (caller.w != NULL && p != NULL && p == caller.w->current && hd__alive(ld_acq(&p->control), pid))
		return -EDEADLK;
	int bond = lock_bond(p, pid, &dead);
	if (likely(bond == HD__JOINABLE))
		return dead;
	if (bond > 0)
		hd__waitq_unlock(&p->news);
	return bond < 0 ? bond : bond == HD__DETACHED ? -EINVAL : -EBUSY;
}

int hd__join_look(struct hd__caller caller, hd_pid pid, struct hd_process **found)
{
	return look(caller, pid, found);
}

void hd__join_take_locked(struct hd_process *p)
{
	st_rlx(&p->bond, HD__JOINED);
}

void hd__join_let_go_locked(struct hd_process *p)
{
	st_rlx(&p->bond, HD__JOINABLE);
}

void hd__join_collect(struct hd__caller caller, struct hd_process *p, struct hd_end *end)
{
	if (end != NULL)
		*end = (struct hd_end){ .kind = p->end_kind, .result = p->value, .err = p->end_err };
	drop(caller, p);
}

/* The joiner gives up; another caller may join. */
static void stop_joining(struct hd_worker *w, struct hd_waiter *x)
{
	(void)w;
	hd__join_let_go_locked((struct hd_process *)((char *)x->queue - offsetof(struct hd_process, news)));
	hd__waitq_unlock(x->queue);
}

static const struct hd__wait_ops ops = { .left = stop_joining };

static inline bool is_alive(struct hd__caller caller, hd_pid pid)
{
	struct hd_process *p = hd__table_find(&caller.sched->table, pid);
	return p != NULL && hd__alive(ld_acq(&p->control), pid);
}

/* Returns 0 when pid has ended: *ended is the caller's alone, to be collected. */
__attribute__((always_inline)) static inline int join(struct hd__caller *caller, hd_pid pid, struct hd_process **ended,
						      hd_time until)
{
	struct hd_process *p, *next = NULL;
	struct hd_waiter x;
	int err;

	if (unlikely(hd__must_heed(caller->w, until))) {
		struct hd_worker *w = caller->w;
		err = hd__heed_inside(&w);
		caller->w = err == 0 ? w : hd__self();
		if (err != 0) {
			hd__enter(caller->w);
			return err;
		}
	}
	bool past = unlikely(until != HD_FOREVER) &&
		    (until <= 0 ||
		     (is_alive(*caller, pid) && hd__is_past(caller->w, until))); /* a dead process can be joined at any time */
	int dead = look(*caller, pid, &p);
	if (unlikely(dead < 0))
		return dead;
	*ended = p;
	if (dead) {
		hd__join_take_locked(p); /* ours alone */
		hd__waitq_unlock(&p->news);
		return 0;
	}
	if (unlikely(past)) { /* a mere try must not look like a joiner to others */
		hd__waitq_unlock(&p->news);
		return -ETIMEDOUT;
	}
	hd__join_take_locked(p);
	if (caller->w != NULL && hd__take_for_hand_off(caller->w, p)) /* it cannot end before we release its news */
		next = p;
	hd__waiter_init(&x);
	x.ops = &ops;
	x.owner = &pid;
	x.rules = HD__HANDS_BACK;
	err = hd__park_as(caller->w, &x, &p->news, until, HD_WAIT_JOIN, next);
	if (caller->w != NULL)
		hd__enter(caller->w = hd__self());
	return err == -EPIPE ? 0 : err; /* closed: p has ended, and is ours to collect */
}

int hd_join_end(hd_pid pid, struct hd_end *end, hd_time until)
{
	struct hd_process *p;

	if (hd__is_duration(until))
		return -EINVAL;
	struct hd__caller caller = hd__call_begin();
	if (caller.sched == NULL)
		return -ENXIO;
	int err = join(&caller, pid, &p, until);
	if (err == 0)
		hd__join_collect(caller, p, end);
	hd__call_end(caller);
	return err;
}

/* hd_join, on a plain thread. */
static int join_by_thread(hd_pid pid, void **result, hd_time until)
{
	struct hd_end end;
	int err = hd_join_end(pid, &end, until);

	if (err == 0 && result != NULL)
		*result = end.kind == HD_END_RETURNED ? end.result : NULL;
	return err;
}

int hd_join(hd_pid pid, void **result, hd_time until)
{
	struct hd_process *p;

	if (hd__is_duration(until))
		return -EINVAL;
	struct hd_worker *w = hd__enter_call();
	if (unlikely(w == NULL))
		return join_by_thread(pid, result, until);
	struct hd__caller caller = { w, w->sched };
	int err = join(&caller, pid, &p, until);
	if (err == 0) {
		if (result != NULL)
			*result = p->end_kind == HD_END_RETURNED ? p->value : NULL;
		drop(caller, p);
	}
	hd__leave_call(caller.w);
	return err;
}

int hd_detach(hd_pid pid)
{
	struct hd__caller caller = hd__call_begin();
	int err = 0;

	if (caller.sched == NULL)
		return -ENXIO;
	struct hd_process *p = hd__table_find(&caller.sched->table, pid);
	bool dead;
	int bond = lock_bond(p, pid, &dead);
	if (bond < 0) {
		err = bond;
	} else if (bond != HD__JOINABLE) {
		err = bond == HD__DETACHED ? -EINVAL : -EBUSY;
		hd__waitq_unlock(&p->news);
	} else {
		st_rlx(&p->bond, HD__DETACHED);
		hd__waitq_unlock(&p->news);
		if (dead)
			drop(caller, p);
	}
	hd__call_end(caller);
	return err;
}
