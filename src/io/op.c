/* io/op.c - operations on descriptors: try, wait for the kernel, try again.
 *
 * Owns:       flow->edges, drained, waits; the head of a flow's queue, where the process whose turn it is waits for the kernel.
 * Invariant:  `drained` is one more than the edges that there were before the try that found nothing: an edge that comes later makes the two
 *             differ, and the flow is worth a try. So no edge is lost, and no lock is held over a system call.
 * Locking:    the lock of the flow's queue. Order: a lane, then the lock.
 * Callers:    processes, and plain threads, which wait in the kernel; hd__op_hear: workers and the watcher with what has happened.
 *
 *      hd__turn_take --> attempt --> (drained? wait_for_kernel --> attempt)* --> hd__turn_pass */
#include "io/fd.h"

#include <errno.h>

#include "arch/carry.h"

#define STACK_LINES 12 /* cache lines, from where it waits up to the frame of its own function */

/* ---- what the kernel says ---- */

void hd__op_hear(struct hd_worker *w, struct hd__flow *flow, uint32_t generation)
{
	struct hd_waiter *x = NULL;

	/* If no operation is on its way, and the next one will try in any case, there is nothing to say. One that begins at this moment
	 * tries after the kernel said this. Pairs with pass_on: what the last operation found drained is visible. */
	if (ld_seq(&flow->owner) == 0 && ld_rlx(&flow->edges) + 1 != ld_rlx(&flow->drained))
		return;
	hd__waitq_lock(&flow->waiters);
	if (flow->generation == generation) {
		st_rel(&flow->edges, flow->edges + 1); /* pairs with go_on's acquire: hung_up is visible */
		if (flow->waits) {
			flow->waits = false;
			x = flow->waiters.head;
			if (!hd__waitq_claim_one(w, &flow->waiters, x, HD__GRANTED))
				x = NULL; /* its deadline, or a cancel, came first */
		}
	}
	hd__waitq_unlock(&flow->waiters);
	if (x != NULL)
		hd__unpark_claimed(w, x);
}

/* ---- waiting for the kernel ---- */

/* The wait for the kernel was ended otherwise. */
static void leave_head(struct hd_worker *w, struct hd_waiter *x)
{
	struct hd__flow *flow = x->data;

	(void)w;
	flow->waits = false;
	hd__waitq_unlock(&flow->waiters);
}

static const struct hd__wait_ops at_head = { .left = leave_head };

/* Has the stack of the process that will run next fetched, while the caller is in the kernel: with thousands of connections it is not in the cache. A
 * hint, from outside the lane: that process may be another worker's by now, and its stack be gone. A control block is always there, and to fetch
 * from an address that does not exist does nothing. */
static void fetch_next(struct hd_worker *w)
{
	struct hd_process *next = hd__runq_peek(&w->runq);

	if (next == NULL || hd__sanitized) /* TSan would have a process started by another worker at this moment be a race */
		return;
	const char *sp = ld_rlx(&next->context.sp);
	for (int i = 0; i < STACK_LINES; i++)
		__builtin_prefetch(sp + 64 * i, 1);
}

/* In the caller's turn. Returns 0 when the flow is worth a try; -ECANCELED, and hd__heed must follow. */
static int wait_for_kernel(struct hd__fd *f, struct hd__flow *flow, const struct hd__op *op, uint32_t edges, hd_time until)
{
	struct hd_worker *w = hd__self();
	int err = hd__fd_watch(w, f, op->fd);

	if (unlikely(err == -EPERM))
		st_rlx(&f->how, HD__BY_FILE); /* the kernel says that it is always ready */
	if (unlikely(err != 0))
		return err == -EPERM ? 0 : err;
	hd__enter(w);
	w = hd__safe_point(w);
	hd__waitq_lock(&flow->waiters);
	if (flow->closing || flow->edges != edges) {
		err = flow->closing ? -EBADF : 0;
		hd__waitq_unlock(&flow->waiters);
		hd__leave(w);
		return err;
	}
	flow->waits = true;
	struct hd_waiter x; /* set field by field, as in hd__park: this is a hot path */
	x.several = x.boosts = false;
	x.ahead = true;
	x.behind = NULL;
	x.rules = HD__HEEDS_LATER;
	x.ops = &at_head;
	x.owner = NULL;
	x.data = flow;
	x.number = (unsigned)op->fd;
	st_rel(&w->outside, w->outside + 1); /* pairs with hd__awaits_outside */
	enum hd_wait by_way = op->way == HD__READING ? HD_WAIT_FD_READ : HD_WAIT_FD_WRITE;
	err = hd__park_as(w, &x, &flow->waiters, until, op->why != 0 ? op->why : by_way, NULL);
	w = hd__self();
	st_rel(&w->back, w->back + 1);
	return err == -EPIPE ? -EBADF : err;
}

/* ---- operations ---- */

/* In the caller's turn. */
static ssize_t go_on(struct hd__fd *f, struct hd__flow *flow, struct hd__op *op, hd_time until)
{
	ssize_t done = 0, n;
	bool learned = false, last = until <= 0; /* time is up: this attempt is the last one */

	for (;;) {
		if (unlikely((n = hd__fd_learn(f, op->fd)) != 0))
			break;
		uint32_t edges = ld_acq(&flow->edges); /* pairs with hd__op_hear */
		enum hd__how how = ld_rlx(&f->how);
		if (unlikely(how == HD__HOW_UNKNOWN))
			continue; /* the process that has the other turn has found another descriptor there */
		bool try = flow->drained != edges + 1 || last || how == HD__BY_FILE || op->apart;
		op->offered = op->wanted;
		if (op->way == HD__WRITING)
			fetch_next(hd__self()); /* sending is what takes the kernel longest */
		n = try ? op->attempt(op, how) : -EAGAIN;
		if (likely(n >= 0)) {
			done += n;
			op->wanted -= (size_t)n < op->wanted ? (size_t)n : op->wanted; /* MSG_TRUNC tells more than fitted */
			if ((size_t)n < op->offered && n > 0 && op->by_count && f->stream && !ld_seq(&f->hung_up))
				st_rlx(&flow->drained, edges + 1);
			if (!op->whole || op->wanted == 0 || n == 0)
				return done;
		} else if (n == -EAGAIN) {
			if (likely(!op->apart))
				st_rlx(&flow->drained, edges + 1);
			n = last ? -ETIMEDOUT : wait_for_kernel(f, flow, op, edges, until);
			if (n != 0 && (n != -ETIMEDOUT || last))
				break;
			last = n != 0; /* what the kernel has, but has not said yet, beats the deadline */
		} else if (n == -ENOTSOCK && !learned && !f->born) {
			learned = true; /* the number was closed behind our back, and is another one's now */
			st_rlx(&f->how, HD__HOW_UNKNOWN);
		} else if (n == -EOPNOTSUPP && ld_rlx(&f->how) == HD__BY_NOWAIT) {
			st_rlx(&f->how, hd__os_is_nonblocking(op->fd) ? HD__BY_NONBLOCK : HD__BY_THREAD);
		} else if (n != -EINTR) {
			break;
		}
	}
	op->err = (int)n;
	return done > 0 ? done : n;
}

/* A plain thread waits in the kernel, and takes no turns. */
static ssize_t do_on_thread(struct hd__op *op, hd_time until)
{
	struct pollfd ready = { .fd = op->fd, .events = op->way == HD__READING ? POLLIN : POLLOUT };
	struct hd__nature nature;
	op->until = until;
	ssize_t done = 0, n = hd__is_duration(until) ? -EINVAL : hd__os_nature(op->fd, &nature);

	while (n == 0) {
		n = op->attempt(op, nature.how);
		if (n > 0) {
			done += n;
			op->wanted -= (size_t)n < op->wanted ? (size_t)n : op->wanted;
			if (!op->whole || op->wanted == 0)
				return done;
			n = 0;
		} else if (n == 0) {
			return done;
		} else if (n == -EINTR) {
			n = 0;
		} else if (n == -EOPNOTSUPP && nature.how == HD__BY_NOWAIT) {
			nature.how = hd__os_is_nonblocking(op->fd) ? HD__BY_NONBLOCK : HD__BY_THREAD;
			n = 0;
		} else if (n == -EAGAIN) {
			n = hd__os_poll(&ready, 1, until);
			n = n > 0 || n == -EINTR ? 0 : n == 0 ? -ETIMEDOUT : n;
		}
	}
	op->err = (int)n;
	return done > 0 ? done : n;
}

ssize_t hd__fd_do(struct hd__op *op, hd_time until)
{
	struct hd_worker *w = hd__self();
	int err;

	if (unlikely(w == NULL))
		return do_on_thread(op, until);
	if (unlikely(w->sched->doors.at_call != NULL))
		return hd__fd_refuse();
	struct hd__fd *f = hd__fd_get(w->sched, op->fd, &err);
	if (unlikely(f == NULL))
		return err;
	struct hd__flow *flow = hd__flow_of(f, op->way);
	op->f = f;
	op->until = until;
	err = hd__turn_take(f, op->fd, op->way, until);
	if (unlikely(err != 0))
		return err;
	ssize_t n = go_on(f, flow, op, until);
	hd__turn_pass(flow);
	if (unlikely(n == -ECANCELED))
		hd__heed(); /* does not return if the caller must end */
	return n;
}
