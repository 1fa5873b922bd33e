/* sync/sync.h - what the primitives share. */
#ifndef SYNC_SYNC_H
#define SYNC_SYNC_H

#include <errno.h>
#include <heddle/cancel.h>
#include <heddle/mutex.h>

#include "life/life.h"
#include "os/thread.h"

/* The caller as an owner: a process by its id, a plain thread by its number less than 0. */
static inline int64_t hd__owner_self(struct hd_worker *w)
{
	return likely(w != NULL) ? hd__pid(&w->sched->table, w->current) : -(int64_t)hd__os_thread_id();
}

/* A call got what it wanted without waiting: if the worker has told itself something, it is looked at, as after a wait. */
static inline void hd__sync_got(struct hd_worker *w)
{
	if (w != NULL)
		hd__leave(unlikely(w->resched != 0) ? hd__attend(w) : w);
}

/* A mere try that did not succeed says so. */
static inline int hd__try(int err)
{
	return err == -ETIMEDOUT ? -EAGAIN : err;
}

/* Calls fn(arg), and leave(what) afterwards, also if fn ends the process. */
void hd__protected(void (*fn)(void *arg), void *arg, void (*leave)(void *what), void *what);

/* For conditions: gives up the mutex, which the caller owns, however deep, and answers how deep; *next is to be unparked. */
unsigned hd__mutex_release(struct hd_worker *w, struct hd_mutex *m, struct hd_waiter **next);

/* x, which the caller has claimed, gets the mutex, as deep as x->number says, now or in its turn: then it is unparked. */
void hd__mutex_pass_to(struct hd_worker *w, struct hd_mutex *m, struct hd_waiter *x);

/* The caller was passed the mutex: what is left to do for it. One without an order it has yet to get. */
void hd__mutex_passed(struct hd_mutex *m, unsigned depth);

/* Locks it, as deep as that, whatever is asked of the caller meanwhile. */
void hd__mutex_reenter(struct hd_mutex *m, unsigned depth);

#endif
