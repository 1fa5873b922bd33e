/* io/poller.c - the poller that watches descriptors: a set for each worker that has any.
 *
 * Owns:       w->watched. A worker that watches nothing sleeps on its futex; from the first descriptor on it sleeps in its set, and is
 *             woken by the bell.
 * Invariant:  a worker that sleeps does so where `watched` said when it fell asleep: it alone sets that, when it is awake.
 * Callers:    wait: the worker, and others only to look; wake: any thread. */
#include <errno.h>

#include "os/futex.h"
#include "os/memory.h"
#include "io/fd.h"

static int wait(struct hd_worker *w, hd_time until, struct hd__happening *happened, int n)
{
	struct hd__outside *o = ld_acq(&w->watched); /* pairs with hd__poller_watch, for the watcher */

	if (o != NULL)
		return hd__os_outside_wait(o, until, happened, n);
	if (until > 0)
		hd__os_futex_wait(&w->attention, HD__ASLEEP, until);
	return 0;
}

static void wake(struct hd_worker *w)
{
	struct hd__outside *o = ld_acq(&w->watched);

	if (o != NULL)
		hd__os_outside_ring(o);
	else
		hd__os_futex_wake(&w->attention);
}

int hd__poller_watch(struct hd_worker *w, int fd, uint64_t whose)
{
	struct hd__outside *o = w->watched;

	if (o == NULL) {
		o = hd__os_alloc(sizeof *o);
		int err = o == NULL ? -ENOMEM : hd__os_outside_init(o);
		if (err != 0) {
			hd__os_free(o);
			return err;
		}
		st_rel(&w->watched, o);
		hd__fd_is_ours(w->sched, o->epoll);
		hd__fd_is_ours(w->sched, o->bell);
	}
	int err = hd__os_outside_add(o, fd, whose);
	if (unlikely(err == -EEXIST && fd == o->bell))
		return -EBADF; /* the program has closed its own of that number */
	if (unlikely(err ==
		     -EEXIST)) { /* of an earlier use of the number, with the same open file: what it tells would be dropped */
		hd__os_outside_remove(o, fd);
		err = hd__os_outside_add(o, fd, whose);
	}
	return err;
}

void hd__poller_unwatch(struct hd__sched *sched, unsigned poller, int fd)
{
	if (poller != 0)
		hd__os_outside_remove(sched->workers[poller - 1].watched, fd);
}

const struct hd__poller hd__epoll_poller = { .wait = wait, .wake = wake, .happened = hd__fds_happened };
