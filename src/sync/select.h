/* sync/select.h - what a primitive says of itself, so that hd_select can wait for it. */
#ifndef SYNC_SELECT_H
#define SYNC_SELECT_H

#include <heddle/select.h>

#include "sync/sync.h"

#define HD__NOT_NOW 1 /* no answer of any call */

/* What select asks of a primitive, one for each kind of case; in the primitive's own file. What may be NULL has nothing to do. */
struct hd__case_ops {
	enum hd_wait why;

	/* Locks the queue in which the case waits. NULL: it has none, and happens at once with the error that c->err has. */
	struct hd_waitq *(*lock)(struct hd_worker *w, struct hd_case *c);

	/* Under the lock: whether the case can happen now, as far as the caller can tell. */
	bool (*can)(const struct hd_worker *w, const struct hd_case *c);

	/* Under the lock, if it can: it happens. Returns what the call would answer; *woken is to be unparked when the lock is released. Or
	 * HD__NOT_NOW, and nothing has happened: it takes a waiter, and something else has decided that one. */
	int (*happen)(struct hd_worker *w, struct hd_case *c, struct hd_waiter **woken);

	/* Under the lock: the caller joins the queue, and it leaves it without the case having happened. Or NULL. */
	void (*join)(struct hd_case *c);
	void (*leave)(struct hd_case *c);

	/* Another process or thread has made it happen, with this outcome: what the call would answer. NULL: 0. */
	int (*granted)(const struct hd_case *c, enum hd__outcome outcome);

	/* It has happened without an error, and no lock is held. Or NULL. */
	void (*finish)(struct hd_worker *w, struct hd_case *c);

	/* Of a case that only the system knows (a descriptor's); NULL of all others. Outside the lane: before the first look, and after each
	 * one that failed; when it seems to have happened: whether it has, and c->err is set; at the end. Prepare answers 0 or -errno. */
	int (*prepare)(struct hd_case *c);
	bool (*confirm)(struct hd_case *c);
	void (*release)(struct hd_case *c);
};

/* The waits of a process for cases that are prepared already, outside its lane. Returns an index, which is to be confirmed, or -errno;
 * after -ECANCELED, hd__heed must follow. */
int hd__select_prepared(struct hd_case *cases, size_t n, hd_time until, bool in_order, enum hd_wait why);

extern const struct hd__case_ops hd__put_case, hd__next_case; /* queue.c */
extern const struct hd__case_ops hd__semaphore_case;	      /* semaphore.c */
extern const struct hd__case_ops hd__promise_case;	      /* promise.c */
extern const struct hd__case_ops hd__event_case;	      /* event.c */
extern const struct hd__case_ops hd__waitgroup_case;	      /* waitgroup.c */

#endif
