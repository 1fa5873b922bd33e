/* io/use.c - operations on a descriptor that take no turn, and hd_close, which waits for them.
 *
 * Owns:       struct hd__uses, one in each record of a descriptor.
 * Invariant:  while a use is in the list, the number is not given back to the kernel. A job in the list has not been left by its process.
 * Locking:    the lock of the closer's queue; the pool's below it, to interrupt.
 * Callers:    processes; closing also from plain threads. */
#include "io/use.h"

#include <errno.h>

#include "base/assert.h"

#define PAUSE_MIN HD_US(100) /* between two interrupts of a job, as in io/pool.c */
#define PAUSE_MAX HD_MS(50)

int hd__use_begin(struct hd__uses *uses, struct hd__use *use, struct hd__job *job)
{
	*use = (struct hd__use){ .uses = uses, .job = job, .link = &uses->first };
	hd__waitq_lock(&uses->closer);
	bool closing = uses->closing;
	if (!closing) {
		use->next = uses->first;
		if (use->next != NULL)
			use->next->link = &use->next;
		uses->first = use;
	}
	hd__waitq_unlock(&uses->closer);
	return closing ? -EBADF : 0;
}

void hd__use_end(struct hd__use *use)
{
	struct hd__uses *uses = use->uses;
	struct hd_waiter *x = NULL;

	if (uses == NULL)
		return;
	struct hd_worker *w = hd__self();
	hd__enter(w);
	hd__waitq_lock(&uses->closer);
	*use->link = use->next;
	if (use->next != NULL)
		use->next->link = use->link;
	if (uses->first == NULL)
		x = hd__waitq_claim(w, &uses->closer, HD__GRANTED);
	hd__waitq_unlock(&uses->closer);
	if (x != NULL)
		hd__unpark_claimed(w, x);
	hd__leave(w);
}

/* Whether there are uses that must be interrupted: they have been, once. */
static bool interrupt(struct hd__sched *sched, struct hd__uses *uses)
{
	bool any = false;

	hd__waitq_lock(&uses->closer);
	uses->closing = true;
	for (struct hd__use *use = uses->first; use != NULL; use = use->next)
		if (use->job != NULL) {
			hd__pool_interrupt(sched->pool, use->job, -EBADF);
			any = true;
		}
	hd__waitq_unlock(&uses->closer);
	return any;
}

void hd__uses_close(struct hd__sched *sched, struct hd__uses *uses, int fd)
{
	for (hd_time pause = PAUSE_MIN;; pause = pause < PAUSE_MAX ? 2 * pause : pause) {
		hd_time until = interrupt(sched, uses) ? hd_after(pause) : HD_FOREVER;
		struct hd_worker *w = hd__enter_call();
		hd__waitq_lock(&uses->closer);
		if (uses->first == NULL) {
			hd__waitq_unlock(&uses->closer);
			hd__leave_quietly(w);
			return;
		}
		struct hd_waiter x = { .number = (unsigned)fd, .rules = HD__NO_CANCEL | HD__NO_KILL };
		int err = hd__park_as(w, &x, &uses->closer, until, HD_WAIT_FD_CLOSE, NULL);
		HD_ASSERT(err == 0 || err == -ETIMEDOUT, "hd_close could not wait for an operation");
	}
}

void hd__uses_open(struct hd__uses *uses)
{
	hd__waitq_lock(&uses->closer);
	uses->closing = false;
	hd__waitq_unlock(&uses->closer);
}

void hd__uses_forsake(struct hd__uses *uses)
{
	struct hd_waiter *x = NULL;

	hd__waitq_lock(&uses->closer);
	if (uses->first != NULL) {
		uses->first = NULL;
		x = hd__waitq_claim(NULL, &uses->closer, HD__GRANTED);
	}
	hd__waitq_unlock(&uses->closer);
	if (x != NULL)
		hd__unpark_claimed(NULL, x);
}
