/* sync/event.c - something that has happened, or not yet.
 *
 * Owns:       struct hd_event.
 * Invariant:  an event that is set has no undecided waiters, but for those that the call which set it is about to serve.
 * Locking:    the wait queue's lock guards all of it.
 * Callers:    a process or a plain thread. */
#include <errno.h>
#include <heddle/event.h>

#include "sync/select.h"

void hd_event_init(struct hd_event *e, unsigned flags)
{
	*e = (struct hd_event){ .flags = (unsigned char)flags };
}

static void mark_locked(struct hd_event *e, bool set)
{
	st_rlx(&e->flags, (unsigned char)(set ? e->flags | HD_EVENT_SET : e->flags & ~HD_EVENT_SET));
}

/* It is set: the caller need not wait. */
static void pass_locked(struct hd_event *e)
{
	if (e->flags & HD_EVENT_AUTO)
		mark_locked(e, false);
}

int hd_event_wait(struct hd_event *e, hd_time until)
{
	struct hd_worker *w;
	int err = hd__begin_wait(&w, until);

	if (err != 0)
		return err;
	hd__waitq_lock(&e->waiters);
	if (!(e->flags & HD_EVENT_SET))
		return hd__park(w, &e->waiters, until, HD_WAIT_EVENT);
	pass_locked(e);
	hd__waitq_unlock(&e->waiters);
	hd__sync_got(w);
	return 0;
}

int hd_event_try_wait(struct hd_event *e)
{
	return hd__try(hd_event_wait(e, 0));
}

int hd_event_set(struct hd_event *e)
{
	struct hd_worker *w = hd__enter_call();

	hd__waitq_lock(&e->waiters);
	if (e->flags & HD_EVENT_AUTO) {
		struct hd_waiter *x = hd__waitq_claim(w, &e->waiters, HD__GRANTED);
		mark_locked(e, x == NULL);
		hd__waitq_unlock(&e->waiters);
		if (x != NULL)
			hd__unpark_claimed(w, x);
	} else {
		mark_locked(e, true);
		hd__waitq_serve_all(w, &e->waiters, HD__GRANTED, NULL);
	}
	hd__leave_call(w);
	return 0;
}

int hd_event_reset(struct hd_event *e)
{
	struct hd_worker *w = hd__enter_call();

	hd__waitq_lock(&e->waiters);
	mark_locked(e, false);
	hd__waitq_unlock(&e->waiters);
	hd__leave_call(w);
	return 0;
}

bool hd_event_is_set(const struct hd_event *e)
{
	hd__pass_by(); /* a process that asks in a loop gives way to the process that may set it */
	return ld_rlx(&e->flags) & HD_EVENT_SET;
}

/* ---- for select ---- */

static struct hd_waitq *lock_case(struct hd_worker *w, struct hd_case *c)
{
	struct hd_event *e = c->object;

	(void)w;
	hd__waitq_lock(&e->waiters);
	return &e->waiters;
}

static bool is_set(const struct hd_worker *w, const struct hd_case *c)
{
	(void)w;
	return ((const struct hd_event *)c->object)->flags & HD_EVENT_SET;
}

static int pass(struct hd_worker *w, struct hd_case *c, struct hd_waiter **woken)
{
	(void)w, (void)woken;
	pass_locked(c->object);
	return 0;
}

const struct hd__case_ops hd__event_case = { .why = HD_WAIT_EVENT, .lock = lock_case, .can = is_set, .happen = pass };
