/* sync/barrier.c - a place where n must meet.
 *
 * Owns:       struct hd_barrier.
 * Invariant:  `arrived` is the number of waiters in the queue whose number is `round`. When the last caller comes, the next round
 *             begins, and all that wait for the old one are let go, also one whose deadline comes, or that is cancelled or terminated,
 *             before that has been done: its wait succeeds, and a termination ends it at its next cancellation point.
 * Locking:    the wait queue's lock guards all of it.
 * Callers:    a process or a plain thread. */
#include <errno.h>
#include <heddle/barrier.h>

#include "sync/sync.h"

void hd_barrier_init(struct hd_barrier *b, unsigned n)
{
	*b = (struct hd_barrier){ .count = n };
}

/* x was called off, or its deadline came; in time, or when its round was over: then it says so in its data. */
static void waiter_left(struct hd_worker *w, struct hd_waiter *x)
{
	struct hd_barrier *b = (struct hd_barrier *)((char *)x->queue - offsetof(struct hd_barrier, waiters));

	(void)w;
	if (x->number == b->round)
		b->arrived--;
	else
		x->data = b;
	hd__waitq_unlock(&b->waiters);
}

static const struct hd__wait_ops ops = { .left = waiter_left };

int hd_barrier_wait(struct hd_barrier *b, hd_time until)
{
	struct hd_worker *w;
	int err = hd__begin_wait(&w, until);

	if (err != 0)
		return err;
	hd__waitq_lock(&b->waiters);
	if (b->arrived + 1 >= b->count) {
		b->arrived = 0;
		b->round++;
		hd__waitq_serve_all(w, &b->waiters, HD__GRANTED, NULL);
		hd__leave_call(w);
		return 1;
	}
	b->arrived++;
	struct hd_waiter x = { .ops = &ops, .number = b->round, .rules = HD__HEEDS_LATER };
	err = hd__park_as(w, &x, &b->waiters, until, HD_WAIT_BARRIER, NULL);
	if (x.data != NULL)
		return 0;
	if (err == -ECANCELED)
		hd__heed(); /* does not return if the caller must end */
	return err;
}
