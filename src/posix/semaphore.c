/* posix/semaphore.c - semaphores. Those of a program's own are heddle's; those that it shares with others, by memory or by name, are the C library's.
 *
 * A thread that waits for one of these has a function of the C library do so on a thread of the pool, for some milliseconds at a time: in between it hears
 * cancels.
 * Owns:       the list of semaphores with names: a name that is opened twice is the same object.
 * Callers:    any thread. */
#include "posix/posix.h"

#include <fcntl.h>
#include <heddle/blocking.h>
#include <limits.h>
#include <stdarg.h>

#include "os/lock.h"
#include "os/memory.h"
#include "sync/sync.h"

#define SLICE HD_MS(20)
#define BILLION 1000000000

enum { OWN, SHARED, NAMED };

/* The first member is what the program has. */
struct named {
	hd_sem_t semaphore;
	unsigned opened;
	struct named *next;
};

static unsigned char guard;
static struct named *all;

static int fail(int err)
{
	errno = err;
	return -1;
}

static sem_t *theirs(hd_sem_t *s)
{
	return s->shared == NAMED ? s->is.named : &s->is.theirs;
}

int hd_sem_init(hd_sem_t *s, int shared, unsigned value)
{
	if (value > SEM_VALUE_MAX)
		return fail(EINVAL);
	*s = (hd_sem_t){ .shared = shared ? SHARED : OWN };
	if (shared)
		return sem_init(&s->is.theirs, shared, value);
	hd_semaphore_init(&s->is.own, value);
	return 0;
}

int hd_sem_destroy(hd_sem_t *s)
{
	if (s->shared == SHARED)
		return sem_destroy(&s->is.theirs);
	hd__waitq_lock(&s->is.own.waiters);
	bool waits = s->shared == OWN && s->is.own.waiters.head != NULL;
	hd__waitq_unlock(&s->is.own.waiters);
	return s->shared == NAMED ? fail(EINVAL) : waits ? fail(EBUSY) : 0;
}

/* Of semaphores with names: the one that has this of the C library, under the lock. */
static struct named **find_locked(const sem_t *is)
{
	struct named **link = &all;

	while (*link != NULL && (*link)->semaphore.is.named != is)
		link = &(*link)->next;
	return link;
}

hd_sem_t *hd_sem_open(const char *name, int flags, ...)
{
	struct named *made = hd__os_alloc(sizeof *made);
	va_list more;

	va_start(more, flags);
	mode_t mode = flags & O_CREAT ? (mode_t)va_arg(more, int) : 0;
	unsigned value = flags & O_CREAT ? va_arg(more, unsigned) : 0;
	va_end(more);
	sem_t *is = made != NULL ? sem_open(name, flags, mode, value) : (errno = ENOMEM, SEM_FAILED);
	if (is == SEM_FAILED) {
		int err = errno;
		hd__os_free(made);
		errno = err;
		return (hd_sem_t *)SEM_FAILED;
	}
	hd__lock(&guard);
	struct named *found = *find_locked(is);
	if (found == NULL) {
		found = made;
		found->semaphore = (hd_sem_t){ .shared = NAMED, .is.named = is };
		found->next = all;
		all = found;
	}
	found->opened++;
	hd__unlock(&guard);
	if (found != made)
		hd__os_free(made);
	return &found->semaphore;
}

int hd_sem_close(hd_sem_t *s)
{
	struct named *gone = NULL;

	if (s->shared != NAMED)
		return fail(EINVAL);
	sem_t *is = s->is.named;
	hd__lock(&guard);
	struct named **link = find_locked(is);
	if (*link != NULL && --(*link)->opened == 0) {
		gone = *link;
		*link = gone->next;
	}
	hd__unlock(&guard);
	hd__os_free(gone);
	return sem_close(is);
}

/* ---- waiting ---- */

struct slice {
	sem_t *s;
	int err;
};

static void wait_for_a_slice(void *arg)
{
	struct slice *slice = arg;
	struct timespec until;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_nsec += SLICE;
	until.tv_sec += until.tv_nsec / BILLION;
	until.tv_nsec %= BILLION;
	slice->err = sem_clockwait(slice->s, CLOCK_MONOTONIC, &until) == 0 ? 0 : errno;
}

static int wait_for_theirs(sem_t *s, hd_time until)
{
	struct slice slice = { s, 0 };

	for (;;) {
		(void)hd_test_cancel();
		if (sem_trywait(s) == 0)
			return 0;
		if (errno != EAGAIN)
			return -1;
		if (until != HD_FOREVER && hd_now() >= until)
			return fail(ETIMEDOUT);
		int before = hd__posix_go_deaf();
		int err = hd_blocking(wait_for_a_slice, &slice);
		hd__posix_hear_again(before);
		if (err != 0)
			return fail(-err);
		if (slice.err == 0)
			return 0;
		if (slice.err != ETIMEDOUT && slice.err != EINTR)
			return fail(slice.err);
	}
}

int hd_sem_wait(hd_sem_t *s)
{
	if (s->shared != OWN)
		return hd_self() == 0 ? sem_wait(theirs(s)) : wait_for_theirs(theirs(s), HD_FOREVER);
	int err = hd_semaphore_wait(&s->is.own, HD_FOREVER);
	return err != 0 ? fail(-err) : 0;
}

int hd_sem_trywait(hd_sem_t *s)
{
	if (s->shared != OWN)
		return sem_trywait(theirs(s));
	int err = hd_semaphore_try_wait(&s->is.own);
	return err != 0 ? fail(-err) : 0;
}

int hd_sem_clockwait(hd_sem_t *s, clockid_t clock, const struct timespec *until)
{
	hd_time at;

	if (s->shared != OWN && hd_self() == 0)
		return sem_clockwait(theirs(s), clock, until);
	if (hd_self() != 0)
		(void)hd_test_cancel();
	int before = errno;
	if (hd_sem_trywait(s) == 0) /* the deadline is not looked at if it can be had */
		return 0;
	if (errno != EAGAIN)
		return -1;
	errno = before;
	int err = hd__posix_until(clock, until, &at);
	if (err != 0)
		return fail(err);
	if (s->shared != OWN)
		return wait_for_theirs(theirs(s), at);
	err = hd_semaphore_wait(&s->is.own, at);
	return err != 0 ? fail(-err) : 0;
}

int hd_sem_timedwait(hd_sem_t *s, const struct timespec *until)
{
	return hd_sem_clockwait(s, CLOCK_REALTIME, until);
}

int hd_sem_post(hd_sem_t *s)
{
	if (s->shared != OWN)
		return sem_post(theirs(s));
	if (ld_rlx(&s->is.own.excess) >= SEM_VALUE_MAX)
		return fail(EOVERFLOW);
	int err = hd__posix_in_handler() ? hd_semaphore_signal_from_handler(&s->is.own) : hd_semaphore_signal(&s->is.own);
	return err != 0 ? fail(-err) : 0;
}

int hd_sem_getvalue(hd_sem_t *s, int *value)
{
	if (s->shared != OWN)
		return sem_getvalue(theirs(s), value);
	(void)hd_semaphore_is_signaled(&s->is.own); /* a safe point, for a thread that asks in a loop */
	*value = (int)ld_rlx(&s->is.own.excess);
	return 0;
}
