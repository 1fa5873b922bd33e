/* when/promise.c - behaviours and promises: one for a behaviour's result, and behaviours that come after one.
 *
 * Owns:       struct pending. The end of a behaviour settles its promise as that of any process does.
 * Invariant:  a process waits for the promise that a behaviour comes after, with the behaviour's memory and references to its cowns in its hands, so that
 *             nothing can fail later. It is a machine: its drop is called also if it never begins.
 * Callers:    any thread. */
#include <errno.h>
#include <heddle/cancel.h>
#include <heddle/machine.h>
#include <heddle/time.h>

#include "life/guest.h"
#include "os/memory.h"
#include "sync/promise.h"
#include "when/when.h"

hd_promise *hd_when_promise_n(hd_when_maker fn, void *arg, hd_cown *const *uses, size_t n)
{
	hd_promise *p = hd_promise_new();

	if (p == NULL)
		return NULL;
	struct hd__making m = { .how = { .arg = arg, .uses = uses, .n = n }, .maker = fn, .mourner = hd__promise_mourner(p) };
	p->refs = 2;
	if (fn != NULL && hd__behaviour_make(&m, &p->maker) == 0)
		return p;
	p->refs = 1;
	hd_promise_release(p);
	return NULL;
}

/* What the process has that waits for the promise. It counts as a behaviour: hd_quiesce waits for it. */
struct pending {
	struct hd__making making;
	struct hd__behaviour *behaviour; /* NULL: it has joined its lines */
	hd_promise *promise;
	struct hd__sched *sched;
	uint32_t n;
	hd_cown *cowns[]; /* references: no line keeps them yet */
};

static void drop_pending(struct pending *p)
{
	hd__behaviour_unmake(p->behaviour);
	for (uint32_t i = 0; i < p->n; i++)
		hd_cown_release(p->cowns[i]);
	hd_promise_release(p->promise);
	hd__os_free(p);
}

/* The process is done: the behaviour is in its lines, or will never be, because the runtime ends. */
static void finish(void *self)
{
	struct pending *p = self;
	struct hd__sched *sched = p->sched;

	drop_pending(p);
	struct hd_worker *w = hd__self(); /* NULL: the runtime is over */
	if (w != NULL)
		hd__enter(w);
	hd__behaviour_is_over(sched, w);
	hd__leave_quietly(w);
}

/* Makes the behaviour. Its memory is there. -EAGAIN: 2^24 processes exist at this moment; -ESHUTDOWN. */
static int make(struct pending *p)
{
	struct hd__caller caller = hd__call_begin();
	int err = hd__behaviour_begin(caller, p->behaviour, &p->making);

	if (err == 0)
		p->behaviour = NULL;
	hd__call_end(caller);
	return err;
}

static struct hd_interrupt wait_for_promise(void *self, uint64_t budget)
{
	struct pending *p = self;

	(void)budget;
	while (hd_promise_value(p->promise, NULL, HD_FOREVER) == -ECANCELED && !hd_promise_has_failed(p->promise))
		(void)hd_cancel_clear(); /* the behaviour comes nevertheless */
	while (make(p) == -EAGAIN)
		(void)hd_sleep(HD_MS(1));
	return hd_want_end(NULL, 0);
}

static const struct hd_machine_ops pending_ops = { .interpret = wait_for_promise, .drop = finish };

static struct pending *new_pending(const struct hd__making *making, hd_promise *promise)
{
	struct hd__behaviour *b = hd__behaviour_new(making);
	struct pending *p = b != NULL ? hd__os_alloc(sizeof *p + b->distinct * sizeof p->cowns[0]) : NULL;

	if (p == NULL) {
		hd__behaviour_unmake(b);
		return NULL;
	}
	p->making = *making;
	p->behaviour = b;
	p->promise = hd_promise_retain(promise);
	p->n = b->distinct;
	for (uint32_t i = 0; i < p->n; i++)
		p->cowns[i] = hd_cown_retain(hd__cown_of(&b->tickets[i]));
	return p;
}

int hd_when_after_n(hd_promise *promise, hd_behaviour fn, void *arg, hd_cown *const *uses, size_t n)
{
	const struct hd__making making = { .how = { .fn = fn, .arg = arg, .uses = uses, .n = n } };
	int err = promise != NULL ? hd__behaviour_check(&making) : -EINVAL;

	if (err != 0)
		return err;
	struct pending *p = new_pending(&making, promise);
	if (p == NULL)
		return -ENOMEM;
	struct hd__caller caller = hd__call_begin();
	struct hd_process *waits = NULL;
	err = -ENXIO;
	if (caller.sched != NULL)
		waits = hd__guest_take(caller, &err);
	if (waits != NULL) {
		p->sched = caller.sched;
		hd__behaviour_counts(caller.sched, caller.w); /* before it can be over */
		hd__guest_born(
			caller, waits,
			&(struct hd__guest){ .nature = HD__MACHINE, .ops = &pending_ops, .self = p, .why = HD_WAIT_PROMISE });
		if (hd__decide_bare(caller.w, waits, HD__GRANTED)) /* it begins at once, */
			hd__unpark_bare(caller.w, waits);	   /* unless the runtime is over, and has ended its wait */
	}
	hd__call_end(caller);
	if (waits != NULL)
		return 0;
	drop_pending(p);
	return err;
}
