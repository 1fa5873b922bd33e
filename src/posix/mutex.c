/* posix/mutex.c - mutexes: heddle's, which have an owner and count how often that has locked them. What another type does when its owner locks it again is
 * decided here, before.
 *
 * Callers:    any thread. One that programs share is the C library's (pthread.h says where). */
#include "posix/posix.h"

#include "sync/sync.h"

/* ---- attributes ---- */

int hd_pthread_mutexattr_init(hd_pthread_mutexattr_t *attr)
{
	*attr = (hd_pthread_mutexattr_t){ .type = PTHREAD_MUTEX_DEFAULT, .ceiling = 1 };
	return 0;
}

int hd_pthread_mutexattr_destroy(hd_pthread_mutexattr_t *attr)
{
	(void)attr;
	return 0;
}

int hd_pthread_mutexattr_gettype(const hd_pthread_mutexattr_t *attr, int *type)
{
	*type = attr->type;
	return 0;
}

int hd_pthread_mutexattr_settype(hd_pthread_mutexattr_t *attr, int type)
{
	if (type != PTHREAD_MUTEX_NORMAL && type != PTHREAD_MUTEX_ERRORCHECK && type != PTHREAD_MUTEX_RECURSIVE &&
	    type != PTHREAD_MUTEX_DEFAULT)
		return EINVAL;
	attr->type = (unsigned char)type;
	return 0;
}

int hd_pthread_mutexattr_getpshared(const hd_pthread_mutexattr_t *attr, int *shared)
{
	*shared = attr->shared;
	return 0;
}

int hd_pthread_mutexattr_setpshared(hd_pthread_mutexattr_t *attr, int shared)
{
	if (shared != PTHREAD_PROCESS_PRIVATE && shared != PTHREAD_PROCESS_SHARED)
		return EINVAL;
	attr->shared = shared == PTHREAD_PROCESS_SHARED;
	return 0;
}

int hd_pthread_mutexattr_getprotocol(const hd_pthread_mutexattr_t *attr, int *protocol)
{
	*protocol = attr->protocol;
	return 0;
}

int hd_pthread_mutexattr_setprotocol(hd_pthread_mutexattr_t *attr, int protocol)
{
	if (protocol != PTHREAD_PRIO_NONE && protocol != PTHREAD_PRIO_INHERIT && protocol != PTHREAD_PRIO_PROTECT)
		return EINVAL;
	attr->protocol = (unsigned char)protocol;
	return 0;
}

int hd_pthread_mutexattr_getprioceiling(const hd_pthread_mutexattr_t *attr, int *ceiling)
{
	*ceiling = attr->ceiling;
	return 0;
}

int hd_pthread_mutexattr_setprioceiling(hd_pthread_mutexattr_t *attr, int ceiling)
{
	if (!hd__posix_priority_is_valid(SCHED_FIFO, ceiling))
		return EINVAL;
	attr->ceiling = ceiling;
	return 0;
}

int hd_pthread_mutexattr_getrobust(const hd_pthread_mutexattr_t *attr, int *robust)
{
	*robust = attr->robust;
	return 0;
}

int hd_pthread_mutexattr_setrobust(hd_pthread_mutexattr_t *attr, int robust)
{
	if (robust != PTHREAD_MUTEX_STALLED && robust != PTHREAD_MUTEX_ROBUST)
		return EINVAL;
	attr->robust = (unsigned char)robust;
	return 0;
}

/* ---- mutexes ---- */

static int init_shared(hd_pthread_mutex_t *m)
{
	pthread_mutexattr_t attr;

	pthread_mutexattr_init(&attr);
	pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
	int err = pthread_mutexattr_settype(&attr, m->type);
	if (err == 0)
		err = pthread_mutexattr_setprotocol(&attr, m->protocol);
	if (err == 0)
		err = pthread_mutexattr_setrobust(&attr, m->robust);
	if (err == 0)
		err = pthread_mutex_init(&m->is.theirs, &attr);
	pthread_mutexattr_destroy(&attr);
	return err;
}

int hd_pthread_mutex_init(hd_pthread_mutex_t *m, const hd_pthread_mutexattr_t *attr)
{
	hd_pthread_mutexattr_t defaults = { .type = PTHREAD_MUTEX_DEFAULT };

	if (attr == NULL)
		attr = &defaults;
	if (!attr->shared && (attr->robust || attr->protocol == PTHREAD_PRIO_PROTECT))
		return ENOTSUP;
	*m = (hd_pthread_mutex_t){ .shared = attr->shared,
				   .type = attr->type,
				   .protocol = attr->protocol,
				   .robust = attr->robust,
				   .ceiling = attr->ceiling };
	if (m->shared)
		return init_shared(m);
	hd_mutex_init(&m->is.own, m->protocol == PTHREAD_PRIO_INHERIT ? HD_INHERIT : 0);
	return 0;
}

int hd_pthread_mutex_destroy(hd_pthread_mutex_t *m)
{
	if (m->shared)
		return pthread_mutex_destroy(&m->is.theirs);
	return ld_rlx(&m->is.own.owner) != 0 ? EBUSY : 0;
}

/* The caller owns it already, and its type does not allow that twice. */
static int lock_again(const hd_pthread_mutex_t *m, hd_time until)
{
	if (m->type == PTHREAD_MUTEX_ERRORCHECK)
		return EDEADLK;
	if (until == 0)
		return ETIMEDOUT;
	const struct hd__thread_face *me = hd__face();
	int before = me != NULL && me->asynchronous ? -1 : hd__posix_go_deaf(); /* it waits for itself */
	do
		hd_sleep_until(until);
	while (until == HD_FOREVER);
	hd__posix_hear_again(before);
	return ETIMEDOUT;
}

static bool is_locked_twice(const hd_pthread_mutex_t *m)
{
	return m->type != PTHREAD_MUTEX_RECURSIVE && hd_mutex_is_mine(&m->is.own);
}

static int lock_theirs(struct hd__theirs *t)
{
	return t->until == NULL ? pthread_mutex_lock(t->what) : pthread_mutex_clocklock(t->what, t->clock, t->until);
}

static int lock_shared(hd_pthread_mutex_t *m, clockid_t clock, const struct timespec *until)
{
	int err = pthread_mutex_trylock(&m->is.theirs);
	return err != EBUSY ? err
			    : hd__theirs_wait(&(struct hd__theirs){
				      .fn = lock_theirs, .what = &m->is.theirs, .clock = clock, .until = until });
}

int hd_pthread_mutex_lock(hd_pthread_mutex_t *m)
{
	if (unlikely(m->shared))
		return lock_shared(m, 0, NULL);
	if (unlikely(is_locked_twice(m)))
		return lock_again(m, HD_FOREVER);
	int err = hd_mutex_lock(&m->is.own, HD_FOREVER);
	return err == -EOVERFLOW ? EAGAIN : hd__posix_error(err);
}

int hd_pthread_mutex_trylock(hd_pthread_mutex_t *m)
{
	if (unlikely(m->shared))
		return pthread_mutex_trylock(&m->is.theirs);
	if (unlikely(is_locked_twice(m)))
		return EBUSY;
	int err = hd_mutex_try_lock(&m->is.own);
	return err == -EAGAIN ? EBUSY : err == -EOVERFLOW ? EAGAIN : hd__posix_error(err);
}

int hd_pthread_mutex_clocklock(hd_pthread_mutex_t *m, clockid_t clock, const struct timespec *until)
{
	hd_time at;

	if (unlikely(m->shared))
		return lock_shared(m, clock, until);
	int err = hd_pthread_mutex_trylock(m); /* the deadline is not looked at if it can be had */
	if (err != EBUSY)
		return err;
	err = hd__posix_until(clock, until, &at);
	if (err != 0)
		return err;
	if (is_locked_twice(m))
		return lock_again(m, at);
	return hd__posix_error(hd_mutex_lock(&m->is.own, at));
}

int hd_pthread_mutex_timedlock(hd_pthread_mutex_t *m, const struct timespec *until)
{
	return hd_pthread_mutex_clocklock(m, CLOCK_REALTIME, until);
}

int hd_pthread_mutex_unlock(hd_pthread_mutex_t *m)
{
	if (unlikely(m->shared))
		return pthread_mutex_unlock(&m->is.theirs);
	return hd__posix_error(hd_mutex_unlock(&m->is.own));
}
