/* sync/once.c - something that is done once.
 *
 *            comes first              done
 *     NEW ----------------> DOING ------------> DONE
 *      ^                     |  ^
 *      +---------------------+  +-- the doer has ended, and the first waiter is the doer
 *        the doer has ended, without waiters
 *
 * Owns:       struct hd_once.
 * Locking:    the wait queue's lock guards all of it; `state` may be read without, and DONE, once seen, is so for good.
 * Callers:    a process or a plain thread. */
#include <errno.h>
#include <heddle/once.h>

#include "sync/sync.h"

enum { NEW, DOING, DONE };

static void done(struct hd_once *once)
{
	struct hd_worker *w = hd__enter_call();

	hd__waitq_lock(&once->waiters);
	st_rel(&once->state, DONE); /* pairs with hd_once_is_done's acquire */
	st_rlx(&once->doer, 0);
	hd__waitq_serve_all(w, &once->waiters, HD__GRANTED, NULL);
	hd__leave_call(w);
}

/* The doer ends without having done it. */
static void abandon(void *arg)
{
	struct hd_worker *w = hd__self();
	struct hd_once *once = arg;

	hd__enter(w);
	hd__waitq_lock(&once->waiters);
	struct hd_waiter *next = hd__waitq_claim(w, &once->waiters, HD__GRANTED);
	if (next != NULL) {
		next->number = 1; /* it is the doer now */
		st_rlx(&once->doer, (int64_t)(intptr_t)next->data);
	} else {
		st_rlx(&once->state, NEW);
		st_rlx(&once->doer, 0);
	}
	hd__waitq_unlock(&once->waiters);
	if (next != NULL)
		hd__unpark(w, next);
	hd__leave(w);
}

int hd_once(struct hd_once *once, void (*fn)(void *arg), void *arg, hd_time until)
{
	struct hd_worker *w;
	int err = hd__begin_wait(&w, until);

	if (err != 0)
		return err;
	if (hd_once_is_done(once)) {
		hd__leave_quietly(w);
		return 0;
	}
	int64_t me = hd__owner_self(w);
	hd__waitq_lock(&once->waiters);
	if (once->state == DONE || once->doer == me) {
		err = once->state == DONE ? 0 : -EDEADLK;
		hd__waitq_unlock(&once->waiters);
		hd__leave_quietly(w);
		return err;
	}
	if (once->state == DOING) {
		struct hd_waiter x = { .data = (void *)(intptr_t)me, .owner = &once->doer };
		err = hd__park_as(w, &x, &once->waiters, until, HD_WAIT_ONCE, NULL);
		if (err != 0 || x.number == 0)
			return err;
	} else {
		st_rlx(&once->state, DOING);
		st_rlx(&once->doer, me);
		hd__waitq_unlock(&once->waiters);
		hd__leave_quietly(w);
	}
	struct hd_cleanup cleanup;
	hd_cleanup_push(&cleanup, abandon, once); /* on a plain thread nothing ends fn */
	fn(arg);
	hd_cleanup_pop(&cleanup, false);
	done(once);
	return 0;
}

bool hd_once_is_done(const struct hd_once *once)
{
	bool is_done = ld_acq(&once->state) == DONE; /* what fn did is visible */
	if (is_done)
		hd__learn(&once->waiters.lock);
	return is_done;
}
