/* sync/semaphore.c - counting semaphores.
 *
 * Owns:       struct hd_semaphore.
 * Invariant:  excess > 0 implies that there are no undecided waiters: a signal is either handed to the first waiter that
 *             timeout and cancel have not taken, or kept; never both, never neither.
 * Locking:    the wait queue's own lock guards the queue and `excess`; hd__park releases it when the caller can be claimed.
 * Callers:    wait: a process or a plain thread. signal: any thread. signal_from_handler: any thread, any signal handler. */
#include <errno.h>
#include <heddle/cancel.h>
#include <heddle/semaphore.h>
#include <limits.h>

#include "sched/gate.h"
#include "sync/select.h"

void hd_semaphore_init(struct hd_semaphore *s, unsigned n)
{
	*s = (struct hd_semaphore){ .excess = n };
}

/* Under the lock: takes a signal, or waits for one. */
__attribute__((always_inline)) static inline int take(struct hd_worker *w, struct hd_semaphore *s, hd_time until)
{
	if (s->excess == 0)
		return hd__park(w, &s->waiters, until, HD_WAIT_SEMAPHORE);
	st_rlx(&s->excess, s->excess - 1);
	hd__waitq_unlock(&s->waiters);
	hd__sync_got(w);
	return 0;
}

__attribute__((noinline)) static int wait_slowly(struct hd_semaphore *s, hd_time until)
{
	struct hd_worker *w;
	int err = hd__begin_wait(&w, until);

	if (err != 0)
		return err;
	hd__waitq_lock(&s->waiters);
	return take(w, s, until);
}

int hd_semaphore_wait(struct hd_semaphore *s, hd_time until)
{
	struct hd_worker *w = hd__self();

	return likely(hd__begin_wait_at_once(w, &s->waiters, until)) ? take(w, s, until)
								     : hd__keep_frame(wait_slowly(s, until));
}

int hd_semaphore_try_wait(struct hd_semaphore *s)
{
	int err = hd_semaphore_wait(s, 0);
	return err == -ETIMEDOUT ? -EAGAIN : err;
}

/* Under the lock, which it releases. */
static int give_locked(struct hd_worker *w, struct hd_semaphore *s)
{
	int err = 0;
	struct hd_waiter *x = hd__waitq_claim(w, &s->waiters, HD__GRANTED);
	if (x == NULL) {
		if (s->excess == UINT_MAX)
			err = -EOVERFLOW;
		else
			st_rlx(&s->excess, s->excess + 1);
	}
	hd__waitq_unlock(&s->waiters);

	/* x is ours: its outcome was decided under the lock, so no timeout or cancel can take it, and it cannot leave before
	 * it is unparked. s is not touched from here on: x may run at once, elsewhere, and free it. */
	if (x != NULL)
		hd__unpark_claimed(w, x);
	return err;
}

__attribute__((noinline)) static int signal_locked(struct hd_worker *w, struct hd_semaphore *s)
{
	int err = give_locked(w, s);

	hd__leave_call(w);
	return err;
}

__attribute__((noinline)) static int signal_slowly(struct hd_semaphore *s)
{
	struct hd_worker *w = hd__enter_call();

	hd__waitq_lock(&s->waiters);
	return signal_locked(w, s);
}

int hd_semaphore_signal(struct hd_semaphore *s)
{
	struct hd_worker *w = hd__self();

	if (unlikely(!hd__enter_at_once(w, &s->waiters)))
		return hd__keep_frame(signal_slowly(s));
	struct hd_waiter *x = hd__waitq_claim_here(w, &s->waiters);
	if (x == NULL)
		return signal_locked(w, s);
	hd__waitq_unlock(&s->waiters);
	return hd__wake_and_leave(w, x->process);
}

bool hd_semaphore_is_signaled(const struct hd_semaphore *s)
{
	hd__pass_by();		       /* a process that asks in a loop gives way to the process that may signal */
	return ld_rlx(&s->excess) > 0; /* a moment's truth: it may have changed when the caller looks at it */
}

static void signal_it(void *s)
{
	hd_semaphore_signal(s);
}

int hd_semaphore_critical(struct hd_semaphore *s, void (*fn)(void *arg), void *arg, hd_time until)
{
	struct hd_cleanup release;
	int err = hd_semaphore_wait(s, until);

	if (err != 0)
		return err;
	hd_cleanup_push(&release, signal_it, s); /* on a plain thread nothing can end fn */
	fn(arg);
	hd_cleanup_pop(&release, false);
	return hd_semaphore_signal(s);
}

/* On a worker, as it takes in its notes: hands over what handlers have posted. */
static void deliver(void *worker, struct hd_note *note)
{
	struct hd_semaphore *s = (struct hd_semaphore *)((char *)note - offsetof(struct hd_semaphore, delivery));
	unsigned n = xchg_acq_rel(&s->posted, 0); /* from here on a handler may post the note again */

	while (n-- > 0) {
		hd__waitq_lock(&s->waiters);
		give_locked(worker, s);
	}
}

int hd_semaphore_signal_from_handler(struct hd_semaphore *s)
{
	struct hd__sched *sched = hd__gate_enter();

	if (sched == NULL)
		return -ENXIO;
	hd__publish(&s->waiters.lock);
	if (add_acq_rel(&s->posted, 1) == 0) {
		s->delivery.apply = deliver;
		hd__post(hd__some_worker(sched), &s->delivery);
	}
	hd__gate_leave();
	return 0;
}

/* ---- for select ---- */

static struct hd_waitq *lock_case(struct hd_worker *w, struct hd_case *c)
{
	struct hd_semaphore *s = c->object;

	(void)w;
	hd__waitq_lock(&s->waiters);
	return &s->waiters;
}

static bool has_signal(const struct hd_worker *w, const struct hd_case *c)
{
	(void)w;
	return ((const struct hd_semaphore *)c->object)->excess > 0;
}

static int take_signal(struct hd_worker *w, struct hd_case *c, struct hd_waiter **woken)
{
	struct hd_semaphore *s = c->object;

	(void)w, (void)woken;
	st_rlx(&s->excess, s->excess - 1);
	return 0;
}

const struct hd__case_ops hd__semaphore_case = {
	.why = HD_WAIT_SEMAPHORE, .lock = lock_case, .can = has_signal, .happen = take_signal
};
