/* sync/rwlock.c - many readers or one writer.
 *
 * Owns:       struct hd_rwlock.
 * Invariant:  no undecided waiter could have it: an unlock, and a waiter that leaves the queue without it, admit the waiters
 *             that can have it now.
 * Locking:    the wait queue's lock guards all of it.
 * Callers:    a process or a plain thread. */
#include <errno.h>
#include <heddle/rwlock.h>
#include <limits.h>

#include "sync/sync.h"

void hd_rwlock_init(struct hd_rwlock *l, enum hd_rwlock_prefers prefers)
{
	*l = (struct hd_rwlock){ .prefers = (unsigned char)prefers };
}

/* Whether a reader that comes now need not wait. */
static bool may_read_locked(const struct hd_rwlock *l)
{
	if (l->writer != 0)
		return false;
	switch (l->prefers) {
	case HD_PREFER_READERS:
		return true;
	case HD_PREFER_WRITERS:
		return l->writers_waiting == 0;
	default:
		return l->waiters.head == NULL;
	}
}

static struct hd_waiter *first_that(const struct hd_rwlock *l, enum hd_wait why)
{
	struct hd_waiter *x = l->waiters.head;

	while (x != NULL && x->why != why)
		x = x->next;
	return x;
}

/* The waiter that is next, once it can have the lock; NULL: there is none. */
static struct hd_waiter *next_locked(const struct hd_rwlock *l)
{
	struct hd_waiter *preferred = NULL;

	if (l->prefers == HD_PREFER_READERS)
		preferred = first_that(l, HD_WAIT_READ);
	else if (l->prefers == HD_PREFER_WRITERS)
		preferred = first_that(l, HD_WAIT_WRITE);
	return preferred != NULL ? preferred : l->waiters.head;
}

/* Admits all waiters that can have it now. Returns them, to be unparked when the queue's lock is released. */
static struct hd_waiter *admit_locked(struct hd_worker *w, struct hd_rwlock *l)
{
	struct hd_waiter *chain = NULL, **end = &chain, *x;

	while (l->writer == 0 && (x = next_locked(l)) != NULL) {
		bool writes = x->why == HD_WAIT_WRITE;
		if (writes && l->readers > 0)
			break;
		if (!hd__waitq_claim_one(w, &l->waiters, x, HD__GRANTED))
			continue;
		if (writes) {
			l->writers_waiting--;
			st_rlx(&l->writer, (int64_t)(intptr_t)x->data);
		} else {
			l->readers++;
		}
		*end = x;
		end = &x->next;
	}
	return chain;
}

/* x leaves without the lock: waiters behind it may be able to have it now. */
static struct hd_waiter *waiter_left(struct hd_worker *w, struct hd_waiter *x)
{
	struct hd_rwlock *l = (struct hd_rwlock *)((char *)x->queue - offsetof(struct hd_rwlock, waiters));

	l->writers_waiting -= x->why == HD_WAIT_WRITE;
	return admit_locked(w, l);
}

static int wait_for(struct hd_worker *w, struct hd_rwlock *l, int64_t me, hd_time until, enum hd_wait why)
{
	struct hd_waiter x = { .data = (void *)(intptr_t)me, .left = waiter_left, .owner = &l->writer };
	return hd__park_as(w, &x, &l->waiters, until, why, NULL);
}

int hd_rwlock_read(struct hd_rwlock *l, hd_time until)
{
	struct hd_worker *w;
	int err = hd__begin_wait(&w, until);

	if (err != 0)
		return err;
	int64_t me = hd__owner_self(w);
	hd__waitq_lock(&l->waiters);
	if (l->writer == me)
		err = -EDEADLK;
	else if (l->readers == UINT_MAX)
		err = -EOVERFLOW;
	else if (!may_read_locked(l))
		return wait_for(w, l, me, until, HD_WAIT_READ);
	else
		l->readers++;
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
	if (l->writer == me) {
		err = -EDEADLK;
	} else if (l->writer != 0 || l->readers > 0) {
		l->writers_waiting++;
		return wait_for(w, l, me, until, HD_WAIT_WRITE);
	} else {
		st_rlx(&l->writer, me);
	}
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
	struct hd_waiter *chain = NULL;
	int err = 0;

	hd__waitq_lock(&l->waiters);
	if (hd__is_forked(w, l->writer)) {
		hd__waitq_forget(&l->waiters);
		l->writers_waiting = 0;
	}
	if (l->writer == me)
		st_rlx(&l->writer, 0);
	else if (l->readers > 0)
		l->readers--;
	else
		err = -EPERM;
	if (err == 0)
		chain = admit_locked(w, l);
	hd__waitq_unlock(&l->waiters);
	hd__unpark_all(w, chain);
	hd__leave_call(w);
	return err;
}
