/* posix/cond.c - condition variables: heddle's conditions, with a clock.
 *
 * Callers:    any thread. */
#include "posix/posix.h"

#include "sync/sync.h"

int hd_pthread_condattr_init(hd_pthread_condattr_t *attr)
{
	*attr = (hd_pthread_condattr_t){ .clock = CLOCK_REALTIME };
	return 0;
}

int hd_pthread_condattr_destroy(hd_pthread_condattr_t *attr)
{
	(void)attr;
	return 0;
}

int hd_pthread_condattr_getclock(const hd_pthread_condattr_t *attr, clockid_t *clock)
{
	*clock = attr->clock;
	return 0;
}

int hd_pthread_condattr_setclock(hd_pthread_condattr_t *attr, clockid_t clock)
{
	if (clock != CLOCK_REALTIME && clock != CLOCK_MONOTONIC)
		return EINVAL;
	attr->clock = clock;
	return 0;
}

int hd_pthread_condattr_getpshared(const hd_pthread_condattr_t *attr, int *shared)
{
	*shared = attr->shared;
	return 0;
}

int hd_pthread_condattr_setpshared(hd_pthread_condattr_t *attr, int shared)
{
	if (shared != PTHREAD_PROCESS_PRIVATE && shared != PTHREAD_PROCESS_SHARED)
		return EINVAL;
	attr->shared = shared == PTHREAD_PROCESS_SHARED;
	return 0;
}

int hd_pthread_cond_init(hd_pthread_cond_t *c, const hd_pthread_condattr_t *attr)
{
	pthread_condattr_t shared;

	*c = (hd_pthread_cond_t){ .clock = attr != NULL ? attr->clock : CLOCK_REALTIME };
	if (attr == NULL || !attr->shared)
		return 0;
	c->shared = true;
	pthread_condattr_init(&shared);
	pthread_condattr_setpshared(&shared, PTHREAD_PROCESS_SHARED);
	int err = pthread_condattr_setclock(&shared, c->clock);
	if (err == 0)
		err = pthread_cond_init(&c->is.theirs, &shared);
	pthread_condattr_destroy(&shared);
	return err;
}

int hd_pthread_cond_destroy(hd_pthread_cond_t *c)
{
	if (c->shared)
		return pthread_cond_destroy(&c->is.theirs);
	hd__waitq_lock(&c->is.own.waiters);
	bool waits = c->is.own.waiters.head != NULL;
	hd__waitq_unlock(&c->is.own.waiters);
	return waits ? EBUSY : 0;
}

static int wait(hd_pthread_cond_t *c, hd_pthread_mutex_t *m, hd_time until)
{
	if (until == 0)
		hd_test_cancel(); /* a cancellation point also when there is nothing to wait for */
	return hd__posix_error(hd_condition_wait(&c->is.own, &m->is.own, until));
}

#define SLICE 20000000
#define BILLION 1000000000

/* By a thread of the pool, for a moment at most: then the caller wakes for nothing, as it may, and hears a cancel. */
static int wait_for_theirs(struct hd__theirs *t)
{
	struct timespec soon;
	int err;

	clock_gettime(CLOCK_MONOTONIC, &soon);
	soon.tv_nsec += SLICE;
	soon.tv_sec += soon.tv_nsec / BILLION;
	soon.tv_nsec %= BILLION;
	err = pthread_cond_clockwait(t->what, t->mutex, CLOCK_MONOTONIC, &soon);
	t->in_vain = err == ETIMEDOUT;
	if (err == ETIMEDOUT && t->until != NULL) {
		hd_time left;
		int wrong = hd__posix_until(t->clock, t->until, &left);
		return wrong != 0 ? wrong : left == 0 ? ETIMEDOUT : 0;
	}
	return err == ETIMEDOUT ? 0 : err;
}

static int wait_shared(hd_pthread_cond_t *c, hd_pthread_mutex_t *m, clockid_t clock, const struct timespec *until)
{
	struct hd__theirs t = {
		.fn = wait_for_theirs, .what = &c->is.theirs, .mutex = &m->is.theirs, .clock = clock, .until = until
	};
	hd_time left;
	int err = until != NULL ? hd__posix_until(clock, until, &left) : 0;

	(void)hd_test_cancel();
	if (err == 0)
		err = hd__theirs_wait(&t);
	if (t.in_vain)
		(void)hd_test_cancel(); /* a cancelled caller takes no signal, and has the mutex */
	return err;
}

int hd_pthread_cond_wait(hd_pthread_cond_t *c, hd_pthread_mutex_t *m)
{
	if (c->shared != m->shared)
		return EINVAL;
	return c->shared ? wait_shared(c, m, 0, NULL) : wait(c, m, HD_FOREVER);
}

int hd_pthread_cond_clockwait(hd_pthread_cond_t *c, hd_pthread_mutex_t *m, clockid_t clock, const struct timespec *until)
{
	hd_time at;

	if (c->shared != m->shared)
		return EINVAL;
	if (c->shared)
		return wait_shared(c, m, clock, until);
	int err = hd__posix_until(clock, until, &at);
	return err == 0 ? wait(c, m, at) : err;
}

int hd_pthread_cond_timedwait(hd_pthread_cond_t *c, hd_pthread_mutex_t *m, const struct timespec *until)
{
	return hd_pthread_cond_clockwait(c, m, c->clock, until);
}

int hd_pthread_cond_signal(hd_pthread_cond_t *c)
{
	return c->shared ? pthread_cond_signal(&c->is.theirs) : hd__posix_error(hd_condition_signal(&c->is.own));
}

int hd_pthread_cond_broadcast(hd_pthread_cond_t *c)
{
	return c->shared ? pthread_cond_broadcast(&c->is.theirs) : hd__posix_error(hd_condition_signal_all(&c->is.own));
}
