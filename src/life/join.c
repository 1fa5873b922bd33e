/* life/join.c - waiting for the end of a process, and not wanting to.
 *
 * Owns:       `bond`: who will collect a process's end. Guarded by news.lock.
 * Invariant:  a block is dropped once: by the joiner that was granted or found it dead, by hd_detach that found it dead, or
 *             by the end itself when it is detached.
 * Callers:    any thread. */
#include <errno.h>

#include "life/life.h"

/* Locks p's news if `pid` still names it. */
static inline bool lock_if_alive_or_zombie(struct hd_process *p, hd_pid pid)
{
	if (p == NULL)
		return false;
	hd__waitq_lock(&p->news);
	if (hd__alive_or_zombie(p, pid))
		return true;
	hd__waitq_unlock(&p->news);
	return false;
}

/* p is dead and the caller's alone. */
static inline void collect(struct hd__caller caller, struct hd_process *p, struct hd_end *end)
{
	if (end != NULL)
		*end = (struct hd_end){ .kind = p->end_kind, .result = p->value, .err = p->end_err };
	hd__table_drop(&caller.sched->table, hd__own_blocks(caller), p);
}

static inline int join(struct hd__caller *caller, hd_pid pid, struct hd_end *end, hd_time until)
{
	struct hd_process *p, *next = NULL;

	if (caller->w != NULL)
		caller->w = hd__safe_point(caller->w);
	p = hd__table_find(&caller->sched->table, pid);
	bool alive = p != NULL && hd__alive(ld_acq(&p->control), pid);
	bool past = until <= 0 || (alive && hd__is_past(caller->w, until)); /* who is dead can be joined at any time */

	if (caller->w != NULL && alive && p == caller->w->current)
		return -EDEADLK;
	if (!lock_if_alive_or_zombie(p, pid))
		return -ESRCH;
	if (unlikely(p->bond != HD__JOINABLE)) {
		int err = p->bond == HD__DETACHED ? -EINVAL : -EBUSY;
		hd__waitq_unlock(&p->news);
		return err;
	}
	if (ld_rlx(&p->control) & HD__DEAD) {
		st_rlx(&p->bond, HD__JOINED); /* ours alone */
		hd__waitq_unlock(&p->news);
		collect(*caller, p, end);
		return 0;
	}
	if (unlikely(past)) { /* a mere try must not look like a joiner to others */
		hd__waitq_unlock(&p->news);
		return -ETIMEDOUT;
	}
	st_rlx(&p->bond, HD__JOINED);
	if (caller->w != NULL && hd__take_for_hand_off(caller->w, p)) /* it cannot end before we let its news go */
		next = p;
	int err = hd__park_for(caller->w, &p->news, until, HD_WAIT_JOIN, next);
	caller->w = hd__self();
	if (err == -EPIPE) { /* closed: p has ended, and is ours to collect */
		collect(*caller, p, end);
		return 0;
	}
	hd__waitq_lock(&p->news);
	st_rlx(&p->bond, HD__JOINABLE);
	hd__waitq_unlock(&p->news);
	return err;
}

int hd_join_end(hd_pid pid, struct hd_end *end, hd_time until)
{
	struct hd__caller caller = hd__call_begin();

	if (caller.sched == NULL)
		return -EPERM;
	int err = join(&caller, pid, end, until);
	hd__call_end(caller);
	return err;
}

int hd_join(hd_pid pid, void **result, hd_time until)
{
	struct hd__caller caller = hd__call_begin();
	struct hd_end end;

	if (caller.sched == NULL)
		return -EPERM;
	int err = join(&caller, pid, &end, until);
	if (err == 0 && result != NULL)
		*result = end.kind == HD_END_RETURNED ? end.result : NULL;
	hd__call_end(caller);
	return err;
}

int hd_detach(hd_pid pid)
{
	struct hd__caller caller = hd__call_begin();
	int err = 0;

	if (caller.sched == NULL)
		return -EPERM;
	struct hd_process *p = hd__table_find(&caller.sched->table, pid);
	if (!lock_if_alive_or_zombie(p, pid)) {
		err = -ESRCH;
	} else if (p->bond != HD__JOINABLE) {
		err = p->bond == HD__DETACHED ? -EINVAL : -EBUSY;
		hd__waitq_unlock(&p->news);
	} else {
		st_rlx(&p->bond, HD__DETACHED);
		bool dead = ld_rlx(&p->control) & HD__DEAD;
		hd__waitq_unlock(&p->news);
		if (dead)
			hd__table_drop(&caller.sched->table, hd__own_blocks(caller), p);
	}
	hd__call_end(caller);
	return err;
}
