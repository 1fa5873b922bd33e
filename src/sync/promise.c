/* sync/promise.c - a value that will be there.
 *
 * Owns:       struct hd_promise.
 * Invariant:  it leaves PENDING once; from then on nothing in it changes but the count of references. Every waiter has one.
 * Locking:    the wait queue's lock guards the change; a thread that has seen it needs no lock.
 * Callers:    any thread; the end of the process that was to set it. */
#include "sync/promise.h"

#include <errno.h>

#include "os/memory.h"
#include "sync/select.h"

hd_promise *hd_promise_new(void)
{
	hd_promise *p = hd__os_alloc(sizeof *p);

	if (p != NULL)
		p->refs = 1;
	return p;
}

hd_promise *hd_promise_retain(hd_promise *p)
{
	add_rlx(&p->refs, 1); /* relaxed: the caller has a reference */
	return p;
}

void hd_promise_release(hd_promise *p)
{
	while (p != NULL && add_acq_rel(&p->refs, -1u) == 1) {
		hd_promise *source = p->source;
		hd__os_free(p);
		p = source;
	}
}

/* Gives a pending promise its value or its error; no safe point. */
static int settle(struct hd_worker *w, hd_promise *p, uint8_t state, void *value, int err)
{
	hd__waitq_lock(&p->waiters);
	if (p->state != HD__PENDING) {
		hd__waitq_unlock(&p->waiters);
		return -EALREADY;
	}
	p->value = value;
	p->err = err;
	st_rel(&p->state, state); /* pairs with state_of's acquire */
	if (likely(p->waiters.head == p->waiters.tail)) { /* there is one waiter, or none */
		struct hd_waiter *x = hd__waitq_claim(w, &p->waiters, HD__GRANTED);
		hd__waitq_unlock(&p->waiters); /* p is not touched from here on: x may release it */
		if (x != NULL)
			hd__unpark_claimed(w, x);
		return 0;
	}
	add_rlx(&p->refs, 1);	  /* a waiter that is told first may release the last reference while others are being told */
	hd__waitq_serve_all(w, &p->waiters, HD__GRANTED, NULL);
	hd_promise_release(p);
	return 0;
}

int hd_promise_set(hd_promise *p, void *value)
{
	struct hd_worker *w = hd__enter_call();
	int err = settle(w, p, HD__KEPT, value, 0);

	hd__leave_call(w);
	return err;
}

int hd_promise_fail(hd_promise *p, int why)
{
	if (why == 0)
		return -EINVAL;
	struct hd_worker *w = hd__enter_call();
	int err = settle(w, p, HD__BROKEN, NULL, why > 0 ? -why : why);
	hd__leave_call(w);
	return err;
}

int hd_promise_value(hd_promise *p, void **value, hd_time until)
{
	struct hd_worker *w;
	int err = hd__begin_wait(&w, until);

	if (err != 0)
		return err;
	hd__waitq_lock(&p->waiters);
	if (p->state == HD__PENDING) {
		err = hd__park(w, &p->waiters, until, HD_WAIT_PROMISE);
	} else {
		hd__waitq_unlock(&p->waiters);
		hd__leave_quietly(w);
	}
	return err != 0 ? err : hd__promise_result(p, value);
}

static uint8_t state_of(const hd_promise *p)
{
	hd__pass_by(); /* a process that asks in a loop gives way to the process that may set it */
	uint8_t state = ld_acq(&p->state);
	hd__learn(&p->waiters.lock);
	return state;
}

bool hd_promise_has_value(const hd_promise *p)
{
	return state_of(p) == HD__KEPT;
}

bool hd_promise_has_failed(const hd_promise *p)
{
	return state_of(p) == HD__BROKEN;
}

/* The process that was to set it has ended. */
static void maker_ended(struct hd__mourner *mourner, struct hd_worker *w, const struct hd_end *end)
{
	hd_promise *p = (hd_promise *)mourner;

	switch (end->kind) {
	case HD_END_RETURNED:
		settle(w, p, HD__KEPT, end->result, 0);
		break;
	case HD_END_FAILED:
		settle(w, p, HD__BROKEN, NULL, end->err);
		break;
	case HD_END_CANCELLED:
		settle(w, p, HD__BROKEN, NULL, -ECANCELED);
		break;
	case HD_END_KILLED:
		settle(w, p, HD__BROKEN, NULL, -EOWNERDEAD);
		break;
	}
	hd_promise_release(p);
}

static const struct hd__mourner_ops maker_ops = { .ended = maker_ended };

struct hd__mourner *hd__promise_mourner(hd_promise *p)
{
	p->mourner.ops = &maker_ops;
	return &p->mourner;
}

/* Spawns the process that will set p. NULL, and p is gone, when that cannot be. */
static hd_promise *spawn_for(hd_promise *p, const struct hd_spawn *given, hd_entry entry, void *arg)
{
	struct hd_spawn how = *given;
	struct hd__caller caller = hd__call_begin();
	hd_pid pid = -ENXIO;

	how.detached = true;
	if (p != NULL && caller.sched != NULL) {
		p->refs = 2;
		pid = hd__spawn_mourned(caller, &how, hd__promise_mourner(p), entry, arg);
		if (pid < 0)
			p->refs = 1;
		else
			p->maker = pid; /* before another thread can know p */
	}
	hd__call_end(caller);
	if (pid > 0)
		return p;
	hd_promise_release(p);
	return NULL;
}

static const struct hd_spawn defaults;

hd_promise *hd_promise_spawn_with(const struct hd_spawn *how, hd_entry entry, void *arg)
{
	if (how == NULL)
		how = &defaults;
	if (hd__spawn_check(how, entry) != 0 || how->group != NULL)
		return NULL; /* a group's members tell the group of their end, and no other */
	return spawn_for(hd_promise_new(), how, entry, arg);
}

hd_promise *hd_promise_spawn(hd_entry entry, void *arg)
{
	return hd_promise_spawn_with(&defaults, entry, arg);
}

hd_promise *hd_promise_spawn_at(int priority, hd_entry entry, void *arg)
{
	if (priority == 0)
		return NULL; /* 0 means the creator's only where it was not asked for by number */
	return hd_promise_spawn_with(&(struct hd_spawn){ .priority = priority }, entry, arg);
}

hd_pid hd_promise_pid(const hd_promise *p)
{
	return p->maker;
}

/* A process that waits for the source, and goes on with its value, or with its error. */
static void *go_on(void *promise)
{
	hd_promise *p = promise, *source = p->source;
	void *value = NULL;
	int err = hd_promise_value(source, &value, HD_FOREVER);
	bool failed = ld_acq(&source->state) == HD__BROKEN; /* else it was this process that was cancelled */

	if (failed)
		err = source->err;
	p->source = NULL;
	hd_promise_release(source);
	if (err == 0)
		return p->then != NULL ? p->then(value, p->arg) : value;
	if (failed && p->otherwise != NULL)
		return p->otherwise(err, p->arg);
	hd_fail(err);
	return NULL;
}

/* A promise that goes on from `source`; one of the two functions is NULL. */
static hd_promise *promise_from(hd_promise *source, void *(*then)(void *value, void *arg),
				void *(*otherwise)(int err, void *arg), void *arg)
{
	hd_promise *p = then != NULL || otherwise != NULL ? hd_promise_new() : NULL;

	if (p == NULL)
		return NULL;
	p->source = hd_promise_retain(source);
	p->then = then;
	p->otherwise = otherwise;
	p->arg = arg;
	return spawn_for(p, &defaults, go_on, p);
}

hd_promise *hd_promise_then(hd_promise *source, void *(*fn)(void *value, void *arg), void *arg)
{
	return promise_from(source, fn, NULL, arg);
}

hd_promise *hd_promise_else(hd_promise *source, void *(*fn)(int err, void *arg), void *arg)
{
	return promise_from(source, NULL, fn, arg);
}

/* ---- for select ---- */

static struct hd_waitq *lock_case(struct hd_worker *w, struct hd_case *c)
{
	hd_promise *p = c->object;

	(void)w;
	hd__waitq_lock(&p->waiters);
	return &p->waiters;
}

static bool is_settled(const struct hd_worker *w, const struct hd_case *c)
{
	(void)w;
	return ((const hd_promise *)c->object)->state != HD__PENDING;
}

static int tell(struct hd_worker *w, struct hd_case *c, struct hd_waiter **woken)
{
	(void)w, (void)woken;
	return hd__promise_result(c->object, c->data);
}

static int tell_granted(const struct hd_case *c, enum hd__outcome outcome)
{
	(void)outcome;
	return hd__promise_result(c->object, c->data);
}

const struct hd__case_ops hd__promise_case = {
	.why = HD_WAIT_PROMISE, .lock = lock_case, .can = is_settled, .happen = tell, .granted = tell_granted
};
