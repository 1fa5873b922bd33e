/* base/inbox.h - what other kernel threads ask of a worker.
 *
 * A note is embedded in what it is about and carries the function to call for the worker. Any thread pushes; the thread inside
 * the worker's lane takes all notes and applies them in the order they came. Pushing is one compare-and-swap, lock-free, safe
 * in signal handlers. A stack that is only ever emptied whole has no ABA problem. */
#ifndef BASE_INBOX_H
#define BASE_INBOX_H

#include <heddle/base.h>

#include "base/atomic.h"

/* Written by any thread, emptied inside the lane, both seq_cst: publishes the note and what it is about, and is ordered with
 * the worker's attention word (hd__post). */
struct hd__inbox {
	struct hd_note *last; /* the newest; each points to the one before it */
};

static inline void hd__inbox_push(struct hd__inbox *inbox, struct hd_note *note)
{
	struct hd_note *last = ld_rlx(&inbox->last);
	do
		note->next = last;
	while (!cas_seq(&inbox->last, &last, note));
}

static inline bool hd__inbox_is_empty(const struct hd__inbox *inbox)
{
	return ld_seq(&inbox->last) == NULL; /* after the exchange of the attention word (hd__take_news) */
}

/* All notes, oldest first. Inside the lane of the inbox's worker. */
static inline struct hd_note *hd__inbox_take_owner(struct hd__inbox *inbox)
{
	struct hd_note *newest = xchg_seq(&inbox->last, NULL); /* pairs with push */
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
