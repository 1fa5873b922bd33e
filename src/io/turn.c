/* io/turn.c - whose turn it is in a flow of a descriptor.
 *
 * Owns:       flow->owner, locks, busy, closing, and the queue but for its head, where the owner may wait for the kernel (io/op.c).
 * Invariant:  an operation is on its way only in its turn. hd_close marks a flow, and then has the last turn: so no system call of a process
 *             that has begun meets a number that has become another descriptor's.
 * Locking:    the queue's lock; `owner` becomes a caller's by one CAS without it, if it is 0. Order: a lane, then the lock.
 * Callers:    processes; closing also from plain threads, which have no turns of their own.
 *
 *      0 --take--> owner --pass--> the first that waits, or 0        hd_fd_lock: keep, then several operations, then give
 *                    |
 *                    +-- begin_close: all that wait are told, take_last: the turn is the closer's, begin_anew: 0, another generation */
#include "io/fd.h"

#include <errno.h>

#include "base/assert.h"
#include "os/thread.h"

/* The caller, as an owner. */
static int64_t self_of(const struct hd_worker *w)
{
	return w != NULL ? hd__pid(&w->sched->table, w->current) : -hd__os_thread_id();
}

/* Under the lock, which it releases: waits for the caller's turn, from inside its lane, which is left. */
static int wait_for_turn(struct hd_worker *w, struct hd__flow *flow, int fd, enum hd_wait why, hd_time until, unsigned rules)
{
	int64_t none = 0, me = self_of(w);

	if (cas_seq(&flow->owner, &none, me)) { /* it was passed on to none meanwhile */
		hd__waitq_unlock(&flow->waiters);
		hd__leave_quietly(w);
		return 0;
	}
	struct hd_waiter x = {
		.number = (unsigned)fd, .owner = &flow->owner, .rules = (uint8_t)rules, .data = (void *)(intptr_t)me
	};
	int err = hd__park_as(w, &x, &flow->waiters, until, why, NULL);
	return err == -EPIPE ? -EBADF : err;
}

/* Under the lock: the turn goes to the first that waits for it. Returns that one, claimed; NULL: there is none. */
static struct hd_waiter *pass_on(struct hd_worker *w, struct hd__flow *flow)
{
	struct hd_waiter *x = hd__waitq_claim(w, &flow->waiters, HD__GRANTED);

	st_rel(&flow->owner, x != NULL ? (int64_t)(intptr_t)x->data : 0); /* pairs with hd__turn_take's CAS */
	return x;
}

void hd__turn_pass(struct hd__flow *flow)
{
	struct hd_worker *w = hd__self();
	struct hd_waiter *x = NULL;

	hd__enter(w);
	hd__waitq_lock(&flow->waiters);
	HD_ASSERT(ld_rlx(&flow->owner) == self_of(w), "a process passed on a turn that it did not have");
	flow->busy = false;
	if (unlikely(flow->closing))
		flow->locks = 0; /* or hd_close would take the turn from the next process, which is about to pass it on */
	if (likely(flow->locks == 0))
		x = pass_on(w, flow);
	hd__waitq_unlock(&flow->waiters);
	if (x != NULL)
		hd__unpark_claimed(w, x);
	hd__leave_call(w);
}

void hd__turn_forsake(struct hd__flow *flow)
{
	struct hd_waiter *x = NULL;

	if (ld_acq(&flow->owner) <= 0)
		return; /* none, or a thread's */
	hd__waitq_lock(&flow->waiters);
	if (ld_rlx(&flow->owner) > 0) {
		flow->locks = 0;
		x = pass_on(NULL, flow);
	}
	hd__waitq_unlock(&flow->waiters);
	if (x != NULL)
		hd__unpark_claimed(NULL, x);
}

int hd__turn_keep(struct hd__flow *flow)
{
	struct hd_worker *w = hd__enter_call();
	struct hd_waiter *x = NULL;

	hd__waitq_lock(&flow->waiters);
	int err = flow->closing ? -EBADF : flow->locks == UINT16_MAX ? -EAGAIN : 0;
	flow->busy = false;
	flow->locks = flow->closing ? 0 : (uint16_t)(flow->locks + (err == 0));
	if (flow->locks == 0)
		x = pass_on(w, flow);
	hd__waitq_unlock(&flow->waiters);
	if (x != NULL)
		hd__unpark_claimed(w, x);
	hd__leave_call(w);
	return err;
}

int hd__turn_give(struct hd__flow *flow, uint32_t generation, bool wholly)
{
	struct hd_worker *w = hd__enter_call();
	struct hd_waiter *x = NULL;

	hd__waitq_lock(&flow->waiters);
	bool mine = ld_rlx(&flow->owner) == self_of(w) && flow->locks > 0 && flow->generation == generation;
	int left = !mine ? -EPERM : wholly ? 0 : flow->locks - 1;
	if (mine)
		flow->locks = (uint16_t)left;
	if (left == 0)
		x = pass_on(w, flow);
	hd__waitq_unlock(&flow->waiters);
	if (x != NULL)
		hd__unpark_claimed(w, x);
	hd__leave_call(w);
	return left;
}

#define CLOSING (-ESTALE) /* the call has not begun to wait, and finds the marks of hd_close */

static int take_turn(struct hd__flow *flow, int fd, enum hd__way way, hd_time until)
{
	struct hd_worker *w;
	int64_t none = 0;
	bool waited = false;
	int err = hd__begin_wait(&w, until);

	if (unlikely(err != 0))
		return err;
	int64_t me = self_of(w);
	if (likely(cas_seq(&flow->owner, &none, me))) {
		hd__leave(w);
	} else {
		hd__waitq_lock(&flow->waiters);
		if (flow->closing) {
			hd__waitq_unlock(&flow->waiters);
			hd__leave(w);
			return CLOSING;
		}
		if (ld_rlx(&flow->owner) == me) { /* it has locked the flow */
			flow->busy = true;
			hd__waitq_unlock(&flow->waiters);
			hd__leave(w);
			return 0;
		}
		waited = true;
		err = wait_for_turn(w, flow, fd, way == HD__READING ? HD_WAIT_FD_READ_TURN : HD_WAIT_FD_WRITE_TURN, until, 0);
		if (err != 0)
			return err;
	}
	if (unlikely(ld_seq(&flow->closing))) { /* pairs with begin_close: it sees the owner, or we see it */
		hd__turn_pass(flow);
		return waited ? -EBADF : CLOSING;
	}
	return 0;
}

int hd__turn_take(struct hd__fd *f, int fd, enum hd__way way, hd_time until)
{
	for (;;) {
		uint32_t generation = ld_acq(&f->reading.generation);
		int err = take_turn(hd__flow_of(f, way), fd, way, until);
		if (likely(err != CLOSING))
			return err;
		if (!hd__fd_is_another(f, generation))
			return -EBADF;
	}
}

/* ---- the end ---- */

/* From now on operations that wait, or begin, answer -EBADF. False: another process or thread does it. */
bool hd__turn_begin_close(struct hd_worker *w, struct hd__flow *flow)
{
	hd__waitq_lock(&flow->waiters);
	bool first = !flow->closing;
	st_seq(&flow->closing, true); /* pairs with hd__turn_take */
	flow->waits = false;
	if (first)
		hd__waitq_serve_all(w, &flow->waiters, HD__CLOSED, NULL); /* which unlocks */
	else
		hd__waitq_unlock(&flow->waiters);
	return first;
}

/* Waits for the end of the operation that is on its way; it does not wait for the kernel, so that is soon. A process that has locked
 * the flow and is in no operation loses it: the turn is the caller's. */
void hd__turn_take_last(struct hd_worker *w, struct hd__flow *flow, int fd)
{
	hd__waitq_lock(&flow->waiters);
	bool idle = ld_rlx(&flow->owner) == self_of(w) || (flow->locks > 0 && !flow->busy);
	if (idle) {
		flow->locks = 0;
		st_rel(&flow->owner, self_of(w));
		hd__waitq_unlock(&flow->waiters);
		hd__leave_quietly(w);
	} else {
		HD_ASSERT(wait_for_turn(w, flow, fd, HD_WAIT_FD_CLOSE, HD_FOREVER, HD__NO_CANCEL | HD__NO_KILL) == 0,
			  "hd_close could not wait for an operation");
	}
}

void hd__turn_begin_anew(struct hd__flow *flow)
{
	hd__waitq_lock(&flow->waiters);
	st_rel(&flow->generation, flow->generation + 1); /* pairs with `prepare` in io/ready.c */
	st_rlx(&flow->edges, 0); /* a late event of the old descriptor may look at these two: hd__op_hear */
	st_rlx(&flow->drained, 0);
	flow->locks = 0;
	flow->busy = false;
	st_rlx(&flow->closing, false);
	st_rel(&flow->owner, 0);
	hd__waitq_unlock(&flow->waiters);
}
