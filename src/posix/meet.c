/* posix/meet.c - barriers, spin locks and what is done once: no cancellation points.
 *
 * A spin lock can be unlocked by any thread, and waits as a semaphore does: a thread that spins would keep its worker from the one that has the lock.
 * Callers:    any thread. */
#include "posix/posix.h"

#include "base/assert.h"
#include "base/atomic.h"

/* ---- barriers ---- */

int hd_pthread_barrierattr_init(hd_pthread_barrierattr_t *attr)
{
	attr->shared = false;
	return 0;
}

int hd_pthread_barrierattr_destroy(hd_pthread_barrierattr_t *attr)
{
	(void)attr;
	return 0;
}

int hd_pthread_barrierattr_getpshared(const hd_pthread_barrierattr_t *attr, int *shared)
{
	*shared = attr->shared;
	return 0;
}

int hd_pthread_barrierattr_setpshared(hd_pthread_barrierattr_t *attr, int shared)
{
	if (shared != PTHREAD_PROCESS_PRIVATE && shared != PTHREAD_PROCESS_SHARED)
		return EINVAL;
	attr->shared = shared == PTHREAD_PROCESS_SHARED;
	return 0;
}

int hd_pthread_barrier_init(hd_pthread_barrier_t *b, const hd_pthread_barrierattr_t *attr, unsigned n)
{
	pthread_barrierattr_t shared;

	if (n == 0)
		return EINVAL;
	*b = (hd_pthread_barrier_t){ .shared = attr != NULL && attr->shared };
	if (!b->shared) {
		hd_barrier_init(&b->is.own, n);
		return 0;
	}
	pthread_barrierattr_init(&shared);
	pthread_barrierattr_setpshared(&shared, PTHREAD_PROCESS_SHARED);
	int err = pthread_barrier_init(&b->is.theirs, &shared, n);
	pthread_barrierattr_destroy(&shared);
	return err;
}

int hd_pthread_barrier_destroy(hd_pthread_barrier_t *b)
{
	if (b->shared)
		return pthread_barrier_destroy(&b->is.theirs);
	return ld_rlx(&b->is.own.arrived) != 0 ? EBUSY : 0;
}

static int meet_theirs(struct hd__theirs *t)
{
	return pthread_barrier_wait(t->what);
}

int hd_pthread_barrier_wait(hd_pthread_barrier_t *b)
{
	if (b->shared)
		return hd__theirs_wait(&(struct hd__theirs){ .fn = meet_theirs, .what = &b->is.theirs });
	int before = hd__posix_go_deaf();
	int last = hd_barrier_wait(&b->is.own, HD_FOREVER);
	hd__posix_hear_again(before);
	return last == 1 ? PTHREAD_BARRIER_SERIAL_THREAD : hd__posix_error(last);
}

/* ---- spin locks ---- */

int hd_pthread_spin_init(hd_pthread_spinlock_t *l, int shared)
{
	if (shared != PTHREAD_PROCESS_PRIVATE && shared != PTHREAD_PROCESS_SHARED)
		return EINVAL;
	*l = (hd_pthread_spinlock_t){ .shared = shared == PTHREAD_PROCESS_SHARED };
	if (l->shared)
		return pthread_spin_init(&l->is.theirs, shared);
	hd_semaphore_init(&l->is.own.free, 1);
	return 0;
}

int hd_pthread_spin_destroy(hd_pthread_spinlock_t *l)
{
	return l->shared ? pthread_spin_destroy(&l->is.theirs) : ld_rlx(&l->is.own.free.excess) == 0 ? EBUSY : 0;
}

int hd_pthread_spin_lock(hd_pthread_spinlock_t *l)
{
	if (l->shared)
		return pthread_spin_lock(&l->is.theirs);
	if (unlikely(hd_semaphore_try_wait(&l->is.own.free) != 0)) {
		if (ld_rlx(&l->is.own.owner) == hd_pthread_self())
			return EDEADLK;
		int before = hd__posix_go_deaf();
		int err = hd_semaphore_wait(&l->is.own.free, HD_FOREVER);
		hd__posix_hear_again(before);
		if (err != 0)
			return hd__posix_error(err);
	}
	st_rlx(&l->is.own.owner, hd_pthread_self());
	return 0;
}

int hd_pthread_spin_trylock(hd_pthread_spinlock_t *l)
{
	if (l->shared)
		return pthread_spin_trylock(&l->is.theirs);
	if (hd_semaphore_try_wait(&l->is.own.free) != 0)
		return EBUSY;
	st_rlx(&l->is.own.owner, hd_pthread_self());
	return 0;
}

int hd_pthread_spin_unlock(hd_pthread_spinlock_t *l)
{
	if (l->shared)
		return pthread_spin_unlock(&l->is.theirs);
	st_rlx(&l->is.own.owner, 0);
	return hd__posix_error(hd_semaphore_signal(&l->is.own.free));
}

/* ---- once ---- */

/* A pthread_once_t is a number, which any assignment may set to 0. Threads that find it DOING wait in one queue for all, which is seldom long. */
enum { NOT_DONE, DOING, DONE };

static struct hd_mutex once_lock;
static struct hd_condition once_changed;

static void lock_once(void)
{
	int err = hd_mutex_lock(&once_lock, HD_FOREVER);
	HD_ASSERT(err == 0, "the lock of pthread_once could not be had");
}

static void change_to(hd_pthread_once_t *once, int state)
{
	lock_once();
	st_rel(once, state); /* pairs with hd_pthread_once: what was done is visible */
	hd_condition_signal_all(&once_changed);
	hd_mutex_unlock(&once_lock);
}

static void undo(void *once)
{
	change_to(once, NOT_DONE); /* it was cancelled half-way: the next caller does it */
}

int hd_pthread_once(hd_pthread_once_t *once, void (*fn)(void))
{
	struct hd_cleanup cleanup;

	if (likely(ld_acq(once) == DONE))
		return 0;
	int before = hd__posix_go_deaf();
	lock_once();
	while (ld_rlx(once) == DOING)
		(void)!hd_condition_wait(&once_changed, &once_lock, HD_FOREVER);
	bool mine = ld_rlx(once) == NOT_DONE;
	if (mine)
		st_rlx(once, DOING);
	hd_mutex_unlock(&once_lock);
	hd__posix_hear_again(before);
	if (mine) {
		hd_pthread_cleanup_begin(&cleanup, undo, once);
		fn();
		hd_pthread_cleanup_end(&cleanup, false);
		change_to(once, DONE);
	}
	return 0;
}
