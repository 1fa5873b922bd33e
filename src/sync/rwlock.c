/* sync/rwlock.c - many readers or one writer.
 *
 * Owns:       struct hd_rwlock.
 * Invariant:  no undecided waiter could have it, unless a writer that was woken to try is on its way (`waking`): an unlock, and a waiter
 *             that leaves the queue without it, admit the waiters that can have it now. If it prefers readers or writers, these are the
 *             first in the queue, up to `last_first`.
 * Locking:    the wait queue's lock guards all of it.
 * Callers:    a process or a plain thread.
 *
 * Readers are handed the lock, and a writer is woken to try. A reader that has the lock and no worker yet keeps out writers alone; a
 * writer would keep out all. But no reader passes a writer that has been woken, unless the lock prefers readers: that writer would
 * find it held again and again, and the readers behind it would wait meanwhile, though they could all read. (Tried: a crew of 8 that
 * writes every 16th time, 2 virtual workers: 1.6 times the speed of one as it is; 1.1 if a reader may pass, and also if it lets the
 * readers in line in with it.) */
#include <errno.h>
#include <heddle/rwlock.h>
#include <limits.h>

#include "sync/sync.h"

/* x->number of a waiter that was claimed. */
enum {
	MAY_TRY = 0, /* a writer */
	HAS_IT = 1,
	STALLED = 2 /* a writer that might have tried, but does not go on: it does not count in writers_waiting */
};

void hd_rwlock_init(struct hd_rwlock *l, unsigned how)
{
	*l = (struct hd_rwlock){ .how = (unsigned char)how };
}

/* The waiters that go first; HD_WAIT_NONE: all alike. */
static enum hd_wait preferred(const struct hd_rwlock *l)
{
	unsigned prefers = l->how & ~(unsigned)HD_IN_ORDER;

	return prefers == HD_PREFER_READERS ? HD_WAIT_READ : prefers == HD_PREFER_WRITERS ? HD_WAIT_WRITE : HD_WAIT_NONE;
}

/* The first of the waiters that it does not prefer, if it prefers some, and that waiter has waited for so long that it is next; else
 * NULL. */
static struct hd_waiter *late_one(struct hd_worker *w, const struct hd_rwlock *l)
{
	struct hd_waiter *x = l->last_first != NULL ? l->last_first->next : l->waiters.head;

	if (x == NULL || l->how & HD_IN_ORDER || preferred(l) == HD_WAIT_NONE || !hd__is_late(x, hd__exact_time(w)))
		return NULL;
	return x;
}

/* Whether a reader that comes now need not wait. */
static bool may_read_locked(struct hd_worker *w, const struct hd_rwlock *l)
{
	if (l->writer != 0)
		return false;
	return l->writers_waiting == 0 || (preferred(l) == HD_WAIT_READ && late_one(w, l) == NULL);
}

static bool is_free(const struct hd_rwlock *l)
{
	return l->writer == 0 && l->readers == 0;
}

/* x is being taken out of the queue, or has not joined it. */
static void forget(struct hd_rwlock *l, const struct hd_waiter *x)
{
	if (l->last_first == x)
		l->last_first = x->prev;
}

/* Admits a waiter that can have it now. Returns it, claimed: it has the lock (x->number is HAS_IT), or is a writer that may try; NULL
 * when there is none. */
static struct hd_waiter *admit_next(struct hd_worker *w, void *lock)
{
	struct hd_rwlock *l = lock;

	while (l->writer == 0 && l->waiters.head != NULL) {
		struct hd_waiter *late = late_one(w, l), *x = late != NULL ? late : l->waiters.head;
		bool writes = x->why == HD_WAIT_WRITE;
		if ((writes && l->readers > 0) || (l->readers == 0 && hd__one_is_coming(&l->waking)))
			return NULL;
		bool claimed = hd__waitq_claim_one(w, &l->waiters, x, HD__GRANTED);
		forget(l, x);
		if (!claimed)
			continue;
		if (!writes) {
			l->readers++;
			x->number = HAS_IT;
		} else if (l->how & HD_IN_ORDER || (hd__will_come(x) && (late != NULL || hd__is_late(x, hd__exact_time(w))))) {
			l->writers_waiting--;
			st_rlx(&l->writer, (int64_t)(intptr_t)x->data);
			x->number = HAS_IT;
		} else {
			l->waking = 1;
		}
		return x;
	}
	return NULL;
}

/* The lock that x waits for. */
static struct hd_rwlock *lock_of(const struct hd_waiter *x)
{
	return (struct hd_rwlock *)((char *)x->queue - offsetof(struct hd_rwlock, waiters));
}

/* x leaves without the lock: waiters behind it may be able to have it now. */
static void waiter_left(struct hd_worker *w, struct hd_waiter *x)
{
	struct hd_rwlock *l = lock_of(x);

	forget(l, x);
	l->writers_waiting -= x->why == HD_WAIT_WRITE;
	hd__waitq_serve(w, &l->waiters, admit_next, l, NULL);
}

/* The process of x does not go on. If it was woken to try, it keeps no other out until it does; if it was handed the lock and will never
 * run, the lock is given back. */
static void waiter_stalled(struct hd_worker *w, struct hd_waiter *x, bool for_good)
{
	struct hd_rwlock *l = lock_of(x);

	if (x->place != HD__CLAIMED || x->number == STALLED || (x->number == HAS_IT && !for_good))
		return;
	hd__waitq_lock(&l->waiters);
	if (x->number == MAY_TRY) {
		l->writers_waiting--;
		l->waking = 0;
	} else if (x->why == HD_WAIT_WRITE) {
		st_rlx(&l->writer, 0);
	} else {
		l->readers--;
	}
	x->number = STALLED;
	hd__waitq_serve(w, &l->waiters, admit_next, l, hd__unpark_later);
}

static const struct hd__wait_ops ops = { .left = waiter_left, .stalled = waiter_stalled };

/* Those that wait in the parent of a forked child. */
static void forget_parents(struct hd_rwlock *l)
{
	if (hd__is_forked(&l->forks)) {
		hd__waitq_forget(&l->waiters);
		l->writers_waiting = 0;
		l->last_first = NULL;
		l->waking = 0;
	}
}

/* Waits in line for the lock, whose queue is locked; `again`: before the others of its kind. */
static int wait_in_line(struct hd_worker *w, struct hd_rwlock *l, struct hd_waiter *x, hd_time until, enum hd_wait why,
			bool again)
{
	bool first = why == preferred(l);

	x->ops = &ops;
	x->owner = &l->writer;
	x->ahead = true;
	if (first)
		x->behind = again ? NULL : l->last_first;
	else
		x->behind = again ? l->last_first : l->waiters.tail;
	x->prev = x->behind; /* if it does not come to wait: see forget */
	if (first && x->behind == l->last_first)
		l->last_first = x;
	return hd__park_as(w, x, &l->waiters, until, why, NULL);
}

/* When a wait begins; 0 where that does not matter. */
static hd_time since(struct hd_worker *w, const struct hd_rwlock *l, hd_time until)
{
	return until > 0 && !(l->how & HD_IN_ORDER) ? hd__exact_time(w) : 0;
}

static int wait_to_write(struct hd_worker *w, struct hd_rwlock *l, int64_t me, hd_time until)
{
	hd_time began = since(w, l, until);

	l->writers_waiting++;
	for (bool again = false;; again = true) {
		struct hd_waiter x = { .data = (void *)(intptr_t)me, .since = began };
		int err = wait_in_line(w, l, &x, until, HD_WAIT_WRITE, again);
		if (err != 0 || x.number == HAS_IT)
			return err;
		w = hd__self();
		if (w != NULL)
			hd__enter(w);
		hd__waitq_lock(&l->waiters);
		l->waking = 0; /* if another writer was woken too, one more will be: no harm */
		l->writers_waiting += x.number == STALLED;
		if (is_free(l)) {
			l->writers_waiting--;
			st_rlx(&l->writer, me);
			hd__waitq_unlock(&l->waiters);
			hd__leave_quietly(w);
			return 0;
		}
	}
}

int hd_rwlock_read(struct hd_rwlock *l, hd_time until)
{
	struct hd_worker *w;
	int err = hd__begin_wait(&w, until);

	if (err != 0)
		return err;
	hd__waitq_lock(&l->waiters);
	forget_parents(l);
	if (l->writer == hd__owner_self(w)) {
		err = -EDEADLK;
	} else if (l->readers == UINT_MAX) {
		err = -EOVERFLOW;
	} else if (!may_read_locked(w, l)) {
		struct hd_waiter x = { .since = since(w, l, until) };
		return wait_in_line(w, l, &x, until, HD_WAIT_READ, false);
	} else {
		l->readers++;
	}
	hd__waitq_unlock(&l->waiters);
	hd__leave_quietly(w);
	return err;
}

int hd_rwlock_write(struct hd_rwlock *l, hd_time until)
{
	struct hd_worker *w;
	int err = hd__begin_wait(&w, until);

	if (err != 0)
		return err;
	int64_t me = hd__owner_self(w);
	hd__waitq_lock(&l->waiters);
	forget_parents(l);
	if (l->writer == me)
		err = -EDEADLK;
	else if (!is_free(l))
		return wait_to_write(w, l, me, until);
	else
		st_rlx(&l->writer, me);
	hd__waitq_unlock(&l->waiters);
	hd__leave_quietly(w);
	return err;
}

int hd_rwlock_try_read(struct hd_rwlock *l)
{
	return hd__try(hd_rwlock_read(l, 0));
}

int hd_rwlock_try_write(struct hd_rwlock *l)
{
	return hd__try(hd_rwlock_write(l, 0));
}

int hd_rwlock_unlock(struct hd_rwlock *l)
{
	struct hd_worker *w = hd__enter_call();
	int64_t me = hd__owner_self(w);
	int err = 0;

	hd__waitq_lock(&l->waiters);
	forget_parents(l);
	if (l->writer == me)
		st_rlx(&l->writer, 0);
	else if (l->readers > 0)
		l->readers--;
	else
		err = -EPERM;
	if (err == 0)
		hd__waitq_serve(w, &l->waiters, admit_next, l, NULL);
	else
		hd__waitq_unlock(&l->waiters);
	hd__leave_call(w);
	return err;
}
