/* base/inbox.h - what other kernel threads ask of a worker.
 *
 * A note is embedded in what it is about and carries the function to call on the worker. Anybody pushes; the worker takes
 * all and applies them in the order they came. Pushing is one compare-and-swap, lock-free, safe in signal handlers. A stack
 * that is only ever emptied whole has no ABA problem. */
#ifndef BASE_INBOX_H
#define BASE_INBOX_H

#include <heddle/base.h>

#include "base/atomic.h"

/* Written by any thread with release, taken by the owner with acquire: publishes the note and what it is about. */
struct hd__inbox {
	struct hd_note *last; /* the newest; each points to the one before it */
};

/* Returns whether the inbox was empty: then, and only then, the worker must be told. */
static inline bool hd__inbox_push(struct hd__inbox *inbox, struct hd_note *note)
{
	struct hd_note *last = ld_rlx(&inbox->last);
	do
		note->next = last;
	while (!__atomic_compare_exchange_n(&inbox->last, &last, note, 1, __ATOMIC_RELEASE, __ATOMIC_RELAXED));
	return last == NULL;
}

static inline bool hd__inbox_is_empty(const struct hd__inbox *inbox)
{
	return ld_rlx(&inbox->last) == NULL;
}

/* All notes, oldest first. */
static inline struct hd_note *hd__inbox_take_owner(struct hd__inbox *inbox)
{
	struct hd_note *newest = xchg_acq(&inbox->last, NULL); /* pairs with push's release */
	struct hd_note *oldest = NULL;

	while (newest != NULL) {
		struct hd_note *before = newest->next;
		newest->next = oldest;
		oldest = newest;
		newest = before;
	}
	return oldest;
}

#endif
