/* sync/promise.h - the inside of a promise. */
#ifndef SYNC_PROMISE_H
#define SYNC_PROMISE_H

#include <heddle/promise.h>

#include "sync/sync.h"

enum { HD__PENDING, HD__KEPT, HD__BROKEN };

struct hd_promise {
	struct hd__mourner mourner; /* of the process that will set it */
	struct hd_waitq waiters;
	unsigned refs; /* atomically */
	uint8_t state; /* set once, under the lock; read by any thread, acquire: what follows is constant then */
	int err;
	void *value;
	hd_pid maker;				/* the process that will set it; 0: none */
	hd_promise *source;			/* hd_promise_then, hd_promise_else: what it waits for; one reference */
	void *(*then)(void *value, void *arg);	/* or NULL */
	void *(*otherwise)(int err, void *arg); /* or NULL */
	void *arg;
};

/* The end of a process will settle p, and release a reference to it: what is to hear of that end. */
struct hd__mourner *hd__promise_mourner(hd_promise *p);

/* What is known of one that is not pending. */
static inline int hd__promise_result(const hd_promise *p, void **value)
{
	if (p->state == HD__KEPT && value != NULL)
		*value = p->value;
	return p->state == HD__KEPT ? 0 : p->err;
}

#endif
