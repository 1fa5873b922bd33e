/* sync/any.c - waiting for the first of several promises that is kept.
 *
 * Owns:       struct any: a call of hd_promise_any, with a record in the queue of each pending promise, on which no process waits.
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

struct any {
	struct hd_waitq waiters;     /* the caller */
	hd_promise *const *promises; /* as many as records */
	size_t open;
	int kept;  /* the first that was kept; less than 0: none */
	int err;   /* of the last that failed */
	bool over; /* the caller has returned, or is about to */
	struct hd_waiter records[];
};

/* Promise i is not pending any more. */
static void note_locked(struct any *any, size_t i)
{
	int err = hd__promise_result(any->promises[i], NULL);

	if (err != 0)
		any->err = err;
	else if (any->kept < 0)
		st_rlx(&any->kept, (int)i);
}

/* Unless it frees it, it does not touch the call after the lock is released: another thread may. */
static void told(struct hd_worker *w, struct hd_waiter *x)
{
	struct any *any = x->data;
	struct hd_waiter *caller = NULL;

	hd__waitq_lock(&any->waiters);
	any->open--;
	bool last = any->over && any->open == 0;
	if (!any->over)
		note_locked(any, (size_t)(x - any->records));
	if (any->open == 0 || any->kept >= 0)
		caller = hd__waitq_claim(w, &any->waiters, HD__GRANTED);
	hd__waitq_unlock(&any->waiters);
	if (caller != NULL)
		hd__unpark_claimed(w, caller);
	if (last)
		hd__os_free(any);
}

/* Joins the queue of promise i, if it is pending. */
static void join_queue(struct any *any, size_t i)
{
	hd_promise *p = any->promises[i];
	struct hd_waiter *x = &any->records[i];

	hd__waitq_lock(&any->waiters);
	any->open++;
	hd__waitq_unlock(&any->waiters);
	hd__waitq_lock(&p->waiters);
	bool pending = p->state == HD__PENDING;
	if (pending) {
		*x = (struct hd_waiter){ .queue = &p->waiters, .why = HD_WAIT_PROMISE, .told = told, .data = any };
		hd__waitq_link(&p->waiters, x, HD__LINKED);
	}
	hd__waitq_unlock(&p->waiters);
	if (pending)
		return;
	hd__waitq_lock(&any->waiters);
	any->open--;
	note_locked(any, i);
	hd__waitq_unlock(&any->waiters);
}

/* Takes the records, of the first n promises, out of their queues. */
static void leave_queues(struct any *any, size_t n)
{
	size_t left = 0;

	for (size_t i = 0; i < n; i++) {
		struct hd_waitq *q = any->records[i].queue;
		if (q == NULL)
			continue;
		hd__waitq_lock(q);
		if (any->records[i].place == HD__LINKED) {
			hd__waitq_unlink(q, &any->records[i]);
			left++;
		}
		hd__waitq_unlock(q);
		any->records[i].queue = NULL;
	}
	hd__waitq_lock(&any->waiters);
	any->open -= left;
	hd__waitq_unlock(&any->waiters);
}

/* The caller was called off, or its deadline came. If the runtime is over, it does not run again: so no record stays in a queue. */
static void caller_left(struct hd_worker *w, struct hd_waiter *x)
{
	struct any *any = x->data;

	(void)w;
	hd__waitq_unlock(&any->waiters);
	leave_queues(any, x->number);
}

/* Waits until a promise is kept, or none is open. The caller is inside its lane, and outside afterwards. */
static int wait_for_news(struct hd_worker *w, struct any *any, size_t joined, hd_time until)
{
	struct hd_waiter x = { .left = caller_left, .rules = HD__HEEDS_LATER, .data = any, .number = joined };

	hd__waitq_lock(&any->waiters);
	if (any->open > 0 && any->kept < 0)
		return hd__park_as(w, &x, &any->waiters, until, HD_WAIT_PROMISE, NULL);
	hd__waitq_unlock(&any->waiters);
	hd__leave_quietly(w);
	return 0;
}

/* What the call answers; it is gone then, or will be. `err`: how its wait ended. */
static int finish(struct any *any, size_t joined, int err)
{
	struct hd_worker *w = hd__self();

	if (w != NULL)
		hd__enter(w);
	leave_queues(any, joined);
	hd__waitq_lock(&any->waiters);
	int answer = any->kept >= 0 ? any->kept : err != 0 ? err : any->err;
	bool last = any->open == 0;
	any->over = true;
	hd__waitq_unlock(&any->waiters);
	hd__leave_quietly(w);
	if (last)
		hd__os_free(any);
	return answer;
}

int hd_promise_any(hd_promise *const *promises, size_t n, hd_time until)
{
	struct hd_worker *w;
	size_t joined = 0, size;
	int err = hd__begin_wait(&w, until);

	if (err != 0)
		return err;
	hd__leave_quietly(w);
	if (__builtin_mul_overflow(n, sizeof(struct hd_waiter), &size) || n > INT_MAX)
		return -ENOMEM;
	struct any *any = hd__os_alloc(sizeof *any + size);
	if (any == NULL)
		return -ENOMEM;
	any->promises = promises;
	any->kept = -1;
	any->err = -EINVAL;
	w = hd__self();
	if (w != NULL)
		hd__enter(w);
	while (joined < n && ld_rlx(&any->kept) < 0)
		join_queue(any, joined++);
	err = wait_for_news(w, any, joined, until);
	int answer = finish(any, joined, err);
	if (err == -ECANCELED)
		hd__heed(); /* does not return if the caller must end */
	return answer;
}
