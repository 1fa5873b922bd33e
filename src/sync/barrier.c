/* sync/barrier.c - a place where n must meet.
 *
 * Owns:       struct hd_barrier.
 * Invariant:  `arrived` is the number of waiters in the queue; none of them has been let go. Every waiter that is in the queue
 *             when the last caller comes is let go, also one whose deadline has just come: its number is 1 then, and its wait
 *             succeeds.
 * Locking:    the wait queue's lock guards all of it.
 * Callers:    a process or a plain thread. */
#include <errno.h>
#include <heddle/barrier.h>

#include "sync/sync.h"

void hd_barrier_init(struct hd_barrier *b, unsigned n)
{
	*b = (struct hd_barrier){ .count = n };
}

static struct hd_waiter *waiter_left(struct hd_worker *w, struct hd_waiter *x)
{
	struct hd_barrier *b = (struct hd_barrier *)((char *)x->queue - offsetof(struct hd_barrier, waiters));

	(void)w;
	b->arrived -= x->number == 0;
	return NULL;
}

static struct hd_waiter *let_all_go_locked(struct hd_worker *w, struct hd_barrier *b)
{
	for (struct hd_waiter *x = b->waiters.head; x != NULL; x = x->next)
		x->number = 1;
	b->arrived = 0;
	return hd__waitq_claim_all(w, &b->waiters, HD__GRANTED, HD_WAIT_NONE);
}

int hd_barrier_wait(struct hd_barrier *b, hd_time until)
{
	struct hd_worker *w;
	int err = hd__begin_wait(&w, until);

	if (err != 0)
		return err;
	hd__waitq_lock(&b->waiters);
	if (b->arrived + 1 >= b->count) {
		struct hd_waiter *chain = let_all_go_locked(w, b);
		hd__waitq_unlock(&b->waiters);
		hd__unpark_all(w, chain);
		hd__leave_call(w);
		return 1;
	}
	b->arrived++;
	struct hd_waiter x = { .left = waiter_left };
	err = hd__park_as(w, &x, &b->waiters, until, HD_WAIT_BARRIER, NULL);
	return x.number == 1 ? 0 : err;
}
