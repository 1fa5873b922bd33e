/* sync/several.c - waiting for several promises: until one is kept, or until all are.
 *
 * Owns:       struct several: a call, with a record in the queue of each pending promise, on which no process waits.
 * Invariant:  `open` records are in the queue of their promise, or claimed by the thread that settled it, which is about to tell the
 *             call. When the caller returns, it takes out those in queues; the last of the others frees the call.
 * Locking:    the lock of one promise's queue, or that of the call's own.
 * Callers:    a process or a plain thread. The thread that settles a promise.
 *
 * The call is told of each promise, and its caller wakes once; with hd_select it would join all queues anew for each failure. */
#include <errno.h>
#include <limits.h>

#include "os/memory.h"
#include "sync/promise.h"

struct several {
	struct hd_waitq waiters;     /* the caller */
	hd_promise *const *promises; /* as many as records */
	size_t open;
	bool all;    /* hd_promise_all: one that fails is enough; else one that is kept */
	bool enough; /* the answer is known */
	bool gone;   /* the caller was called off: if the runtime is over, its stack goes, and `promises` with it */
	bool over;   /* the caller has returned, or is about to */
	int answer;  /* so far; once it is known, the caller's */
	struct hd_waiter records[];
};

/* Promise i is not pending any more. */
static void note_locked(struct several *s, size_t i)
{
	if (s->enough)
		return;
	int err = hd__promise_result(s->promises[i], NULL);
	st_rlx(&s->enough, s->all == (err != 0));
	if (s->all || err != 0)
		s->answer = err;
	else
		s->answer = (int)i;
}

/* Unless it frees it, it does not touch the call after the lock is released: another thread may. */
static void told(struct hd_worker *w, struct hd_waiter *x)
{
	struct several *s = x->data;
	struct hd_waiter *caller = NULL;

	hd__waitq_lock(&s->waiters);
	s->open--;
	bool last = s->over && s->open == 0;
	if (!s->over && !s->gone)
		note_locked(s, (size_t)(x - s->records));
	if (s->open == 0 || s->enough)
		caller = hd__waitq_claim(w, &s->waiters, HD__GRANTED);
	hd__waitq_unlock(&s->waiters);
	if (caller != NULL)
		hd__unpark_claimed(w, caller);
	if (last)
		hd__os_free(s);
}

/* Joins the queue of promise i, if it is pending. */
static void join_queue(struct several *s, size_t i)
{
	hd_promise *p = s->promises[i];
	struct hd_waiter *x = &s->records[i];

	hd__waitq_lock(&s->waiters);
	s->open++;
	hd__waitq_unlock(&s->waiters);
	hd__waitq_lock(&p->waiters);
	bool pending = p->state == HD__PENDING;
	if (pending) {
		*x = (struct hd_waiter){ .queue = &p->waiters, .why = HD_WAIT_PROMISE, .told = told, .data = s };
		hd__waitq_link(&p->waiters, x, HD__LINKED);
	}
	hd__waitq_unlock(&p->waiters);
	if (pending)
		return;
	hd__waitq_lock(&s->waiters);
	s->open--;
	note_locked(s, i);
	hd__waitq_unlock(&s->waiters);
}

/* Takes the records, of the first n promises, out of their queues. */
static void leave_queues(struct several *s, size_t n)
{
	size_t left = 0;

	for (size_t i = 0; i < n; i++) {
		struct hd_waitq *q = s->records[i].queue;
		if (q == NULL)
			continue;
		hd__waitq_lock(q);
		if (s->records[i].place == HD__LINKED) {
			hd__waitq_unlink(q, &s->records[i]);
			left++;
		}
		hd__waitq_unlock(q);
		s->records[i].queue = NULL;
	}
	hd__waitq_lock(&s->waiters);
	s->open -= left;
	hd__waitq_unlock(&s->waiters);
}

/* The caller was called off, or its deadline came. If the runtime is over, it does not run again: so no record stays in a queue. */
static void caller_left(struct hd_worker *w, struct hd_waiter *x)
{
	struct several *s = x->data;

	(void)w;
	s->gone = true;
	hd__waitq_unlock(&s->waiters);
	leave_queues(s, x->number);
}

/* The caller, which has joined the first n queues, goes. Returns whether it frees the call: else the last thread that tells it does. */
static bool let_go(struct several *s, size_t n)
{
	leave_queues(s, n);
	hd__waitq_lock(&s->waiters);
	bool last = s->open == 0;
	s->over = true;
	hd__waitq_unlock(&s->waiters);
	return last;
}

static void caller_stalled(struct hd_worker *w, struct hd_waiter *x, bool for_good)
{
	(void)w;
	if (for_good && let_go(x->data, x->number))
		hd__os_free(x->data);
}

static const struct hd__wait_ops ops = { .left = caller_left, .stalled = caller_stalled };

/* Waits until the answer is known, or no promise is open. The caller is inside its lane, and outside afterwards. */
static int wait_for_news(struct hd_worker *w, struct several *s, size_t joined, hd_time until)
{
	struct hd_waiter x = { .ops = &ops, .rules = HD__HEEDS_LATER, .data = s, .number = joined };

	hd__waitq_lock(&s->waiters);
	if (s->open > 0 && !s->enough)
		return hd__park_as(w, &x, &s->waiters, until, HD_WAIT_PROMISE, NULL);
	hd__waitq_unlock(&s->waiters);
	hd__leave_quietly(w);
	return 0;
}

/* What the call answers; it is gone then, or will be. `err`: how its wait ended. */
static int finish(struct several *s, size_t joined, int err)
{
	struct hd_worker *w = hd__self();

	if (w != NULL)
		hd__enter(w);
	hd__waitq_lock(&s->waiters);
	int answer = !s->enough && err != 0 ? err : s->answer;
	hd__waitq_unlock(&s->waiters);
	bool last = let_go(s, joined);
	hd__leave_quietly(w);
	if (last)
		hd__os_free(s);
	return answer;
}

static int wait_for(hd_promise *const *promises, size_t n, hd_time until, bool all)
{
	struct hd_worker *w;
	size_t joined = 0, size;
	int err = hd__begin_wait(&w, until);

	if (err != 0)
		return err;
	hd__leave_quietly(w);
	if (__builtin_mul_overflow(n, sizeof(struct hd_waiter), &size) || n > INT_MAX)
		return -ENOMEM;
	struct several *s = hd__os_alloc(sizeof *s + size);
	if (s == NULL)
		return -ENOMEM;
	s->promises = promises;
	s->all = all;
	s->answer = all ? 0 : -EINVAL;
	w = hd__self();
	if (w != NULL)
		hd__enter(w);
	while (joined < n && !ld_rlx(&s->enough))
		join_queue(s, joined++);
	err = wait_for_news(w, s, joined, until);
	int answer = finish(s, joined, err);
	if (err == -ECANCELED)
		hd__heed(); /* does not return if the caller must end */
	return answer;
}

int hd_promise_any(hd_promise *const *promises, size_t n, hd_time until)
{
	return wait_for(promises, n, until, false);
}

int hd_promise_all(hd_promise *const *promises, size_t n, hd_time until)
{
	return wait_for(promises, n, until, true);
}
