/* posix/rwlock.c - read-write locks: heddle's, which are no cancellation points here.
 *
 * Callers:    any thread. */
#include "posix/posix.h"

#include "base/atomic.h"

int hd_pthread_rwlockattr_init(hd_pthread_rwlockattr_t *attr)
{
	*attr = (hd_pthread_rwlockattr_t){ .shared = false };
	return 0;
}

int hd_pthread_rwlockattr_destroy(hd_pthread_rwlockattr_t *attr)
{
	(void)attr;
	return 0;
}

int hd_pthread_rwlockattr_getpshared(const hd_pthread_rwlockattr_t *attr, int *shared)
{
	*shared = attr->shared;
	return 0;
}

int hd_pthread_rwlockattr_setpshared(hd_pthread_rwlockattr_t *attr, int shared)
{
	if (shared != PTHREAD_PROCESS_PRIVATE && shared != PTHREAD_PROCESS_SHARED)
		return EINVAL;
	attr->shared = shared == PTHREAD_PROCESS_SHARED;
	return 0;
}

int hd_pthread_rwlock_init(hd_pthread_rwlock_t *l, const hd_pthread_rwlockattr_t *attr)
{
	pthread_rwlockattr_t shared;

	*l = (hd_pthread_rwlock_t){ .shared = attr != NULL && attr->shared };
	if (!l->shared)
		return 0;
	pthread_rwlockattr_init(&shared);
	pthread_rwlockattr_setpshared(&shared, PTHREAD_PROCESS_SHARED);
	int err = pthread_rwlock_init(&l->is.theirs, &shared);
	pthread_rwlockattr_destroy(&shared);
	return err;
}

int hd_pthread_rwlock_destroy(hd_pthread_rwlock_t *l)
{
	if (l->shared)
		return pthread_rwlock_destroy(&l->is.theirs);
	return ld_rlx(&l->is.own.readers) != 0 || ld_rlx(&l->is.own.writer) != 0 ? EBUSY : 0;
}

static int error_of(int err)
{
	return err == -EOVERFLOW ? EAGAIN : hd__posix_error(err);
}

static int take(int (*take_it)(struct hd_rwlock *, hd_time), hd_pthread_rwlock_t *l, hd_time until)
{
	int before = hd__posix_go_deaf();
	int err = take_it(&l->is.own, until);

	hd__posix_hear_again(before);
	return error_of(err);
}

static int try(int (*take_it)(struct hd_rwlock *), hd_pthread_rwlock_t *l)
{
	int err = take_it(&l->is.own);
	return err == -EAGAIN || err == -EDEADLK ? EBUSY : error_of(err);
}

static int read_theirs(struct hd__theirs *t)
{
	return t->until == NULL ? pthread_rwlock_rdlock(t->what) : pthread_rwlock_clockrdlock(t->what, t->clock, t->until);
}

static int write_theirs(struct hd__theirs *t)
{
	return t->until == NULL ? pthread_rwlock_wrlock(t->what) : pthread_rwlock_clockwrlock(t->what, t->clock, t->until);
}

static int take_shared(int (*fn)(struct hd__theirs *), hd_pthread_rwlock_t *l, clockid_t clock, const struct timespec *until)
{
	return hd__theirs_wait(&(struct hd__theirs){ .fn = fn, .what = &l->is.theirs, .clock = clock, .until = until });
}

int hd_pthread_rwlock_rdlock(hd_pthread_rwlock_t *l)
{
	return l->shared ? take_shared(read_theirs, l, 0, NULL) : take(hd_rwlock_read, l, HD_FOREVER);
}

int hd_pthread_rwlock_wrlock(hd_pthread_rwlock_t *l)
{
	return l->shared ? take_shared(write_theirs, l, 0, NULL) : take(hd_rwlock_write, l, HD_FOREVER);
}

int hd_pthread_rwlock_tryrdlock(hd_pthread_rwlock_t *l)
{
	return l->shared ? pthread_rwlock_tryrdlock(&l->is.theirs) : try(hd_rwlock_try_read, l);
}

int hd_pthread_rwlock_trywrlock(hd_pthread_rwlock_t *l)
{
	return l->shared ? pthread_rwlock_trywrlock(&l->is.theirs) : try(hd_rwlock_try_write, l);
}

/* The deadline is not looked at if the lock can be had. */
static int take_by(int (*take_it)(struct hd_rwlock *, hd_time), hd_pthread_rwlock_t *l, clockid_t clock,
		   const struct timespec *until)
{
	hd_time at;
	int err = take(take_it, l, 0);

	if (err != ETIMEDOUT)
		return err;
	err = hd__posix_until(clock, until, &at);
	return err == 0 ? take(take_it, l, at) : err;
}

int hd_pthread_rwlock_clockrdlock(hd_pthread_rwlock_t *l, clockid_t clock, const struct timespec *until)
{
	return l->shared ? take_shared(read_theirs, l, clock, until) : take_by(hd_rwlock_read, l, clock, until);
}

int hd_pthread_rwlock_clockwrlock(hd_pthread_rwlock_t *l, clockid_t clock, const struct timespec *until)
{
	return l->shared ? take_shared(write_theirs, l, clock, until) : take_by(hd_rwlock_write, l, clock, until);
}

int hd_pthread_rwlock_timedrdlock(hd_pthread_rwlock_t *l, const struct timespec *until)
{
	return hd_pthread_rwlock_clockrdlock(l, CLOCK_REALTIME, until);
}

int hd_pthread_rwlock_timedwrlock(hd_pthread_rwlock_t *l, const struct timespec *until)
{
	return hd_pthread_rwlock_clockwrlock(l, CLOCK_REALTIME, until);
}

int hd_pthread_rwlock_unlock(hd_pthread_rwlock_t *l)
{
	if (l->shared)
		return pthread_rwlock_unlock(&l->is.theirs);
	int err = hd_rwlock_unlock(&l->is.own);
	return err == -EPERM && ld_rlx(&l->is.own.writer) == 0 ? EINVAL : hd__posix_error(err); /* no thread holds it */
}
