/* io/ring.c - a ring for each worker whose processes have waited for a disk.
 *
 *      hd__ring_do: begin --> wait, in the ring's queue --> its answer
 *                     |         | called off: cancel, and wait on         ^
 *                     v         v                                         | claimed, unparked
 *                  the kernel: completion, bell --> poller --> hd__ring_rang: under_way - 1
 *
 * Owns:       w->ring. An operation is on the stack of its process, which does not leave before the kernel has said that it is done.
 * Invariant:  at most OPERATIONS are under way in a ring; each has one completion.
 * Locking:    the queue's lock guards the operations and the completions; `beginning` the submissions, over a system call, outside all lanes.
 * Callers:    processes; workers and the watcher with the bell. A process may go on elsewhere: its operation stays with its ring. */
#include "io/ring.h"

#include <errno.h>

#include "io/fd.h"
#include "os/io.h"
#include "os/memory.h"

#define OPERATIONS 512
#define PAUSE HD_MS(1) /* between two looks, when the runtime has ended */

struct hd__ring {
	struct hd_waitq waiters;
	struct hd__os_ring *os; /* NULL: there is none, and will be none */
	int bell;
	unsigned under_way;
	unsigned char beginning; /* lock */
};

struct operation {
	struct hd_waiter *waiter; /* its process waits; NULL: not yet, or not any more */
	bool done;
	int answer;
};

static void free_ring(struct hd__ring *ring)
{
	if (ring->os != NULL)
		hd__os_ring_drop(ring->os);
	hd__os_free(ring);
}

/* The ring of w; NULL: there is none. On w's thread, outside its lane. */
static struct hd__ring *ring_of(struct hd_worker *w)
{
	struct hd__ring *ring = w->ring;

	if (unlikely(ring == NULL)) {
		if ((ring = hd__os_alloc(sizeof *ring)) == NULL)
			return NULL;
		ring->os = hd__os_ring_new(OPERATIONS, &ring->bell);
		if (ring->os != NULL && hd__fd_watch_bell(w, ring->bell) != 0) {
			hd__os_ring_drop(ring->os);
			ring->os = NULL;
		}
		st_rel(&w->ring, ring); /* pairs with hd__ring_rang, on the watcher */
	}
	return ring->os != NULL ? ring : NULL;
}

/* False: too many are under way, or the kernel does not take it. */
static bool begin(struct hd__ring *ring, const struct hd__task *task, struct operation *op)
{
	hd__waitq_lock(&ring->waiters);
	bool room = ring->under_way < OPERATIONS;
	ring->under_way += room;
	hd__waitq_unlock(&ring->waiters);
	if (!room)
		return false;
	hd__lock(&ring->beginning);
	int err = hd__os_ring_begin(ring->os, task, op);
	hd__unlock(&ring->beginning);
	if (err == 0)
		return true;
	hd__waitq_lock(&ring->waiters);
	ring->under_way--;
	hd__waitq_unlock(&ring->waiters);
	return false;
}

/* The wait was called off. */
static void left(struct hd_worker *w, struct hd_waiter *x)
{
	struct operation *op = x->data;

	(void)w;
	op->waiter = NULL;
	hd__waitq_unlock(x->queue);
}

static const struct hd__wait_ops ops = { .left = left };

static int await(struct hd__ring *ring, struct operation *op, int fd, hd_time until, enum hd_wait why, unsigned rules)
{
	struct hd_worker *w = hd__self();
	struct hd_waiter x = { .rules = (uint8_t)rules, .ops = &ops, .data = op, .number = (unsigned)fd };

	hd__enter(w);
	hd__waitq_lock(&ring->waiters);
	if (op->done) {
		hd__waitq_unlock(&ring->waiters);
		hd__leave(w);
		return 0;
	}
	op->waiter = &x;
	st_rel(&w->outside, w->outside + 1); /* pairs with hd__awaits_outside */
	int err = hd__park_as(w, &x, &ring->waiters, until, why, NULL);
	w = hd__self();
	st_rel(&w->back, w->back + 1);
	return err;
}

/* If the kernel does not take the cancel, the operation just ends later. */
static void call_off(struct hd__ring *ring, struct operation *op)
{
	hd__lock(&ring->beginning);
	hd__os_ring_cancel(ring->os, op);
	hd__unlock(&ring->beginning);
}

ssize_t hd__ring_do(const struct hd__task *task, hd_time until, enum hd_wait why)
{
	struct hd_worker *w = hd__self();
	struct hd__ring *ring = w != NULL ? ring_of(w) : NULL;
	struct operation op = { .waiter = NULL };

	if (ring == NULL)
		return -ENOSYS;
	if (until != HD_FOREVER && hd__is_past(w, until))
		return -ETIMEDOUT;
	if (!begin(ring, task, &op))
		return -ENOSYS;
	int err = await(ring, &op, task->fd, until, why, HD__HEEDS_LATER);
	if (err != 0) {
		call_off(ring, &op);
		await(ring, &op, task->fd, HD_FOREVER, why, HD__NO_CANCEL | HD__NO_KILL);
	}
	if (op.answer == -ECANCELED || op.answer == -EINTR)
		return err != 0 ? err : -EINTR;
	return op.answer == -EAGAIN ? -ENOSYS : op.answer;
}

void hd__ring_rang(struct hd__sched *sched, struct hd_worker *w, unsigned index)
{
	struct hd__ring *ring = ld_acq(&sched->workers[index].ring); /* pairs with ring_of */
	struct hd_waiter *first = NULL, **last = &first;
	struct operation *op;
	int answer;

	if (ring == NULL) /* it is being made */
		return;
	hd__waitq_lock(&ring->waiters);
	while ((op = hd__os_ring_take(ring->os, &answer)) != NULL) {
		struct hd_waiter *x = op->waiter;
		ring->under_way--;
		op->answer = answer;
		op->waiter = NULL;
		op->done = true;
		if (x != NULL && hd__waitq_claim_one(w, &ring->waiters, x, HD__GRANTED)) {
			*last = x;
			last = &x->next;
			*last = NULL;
		}
	}
	hd__waitq_unlock(&ring->waiters);
	hd__unpark_all(w, first);
}

void hd__rings_finish(struct hd__sched *sched)
{
	for (unsigned i = 0; i < hd__workers(sched); i++) {
		struct hd__ring *ring = sched->workers[i].ring;
		struct operation *op;
		int answer;

		while (ring != NULL && ring->under_way > 0) {
			while ((op = hd__os_ring_take(ring->os, &answer)) != NULL)
				ring->under_way--;
			if (ring->under_way > 0) /* not for the bell: it is never read, and so always ready */
				hd__os_poll(NULL, 0, hd_after(PAUSE));
		}
	}
}

void hd__rings_drop(struct hd__sched *sched)
{
	for (unsigned i = 0; i < hd__workers(sched); i++)
		if (sched->workers[i].ring != NULL)
			free_ring(sched->workers[i].ring);
}
