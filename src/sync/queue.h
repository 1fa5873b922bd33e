/* sync/queue.h - the inside of a queue, for select. */
#ifndef SYNC_QUEUE_H
#define SYNC_QUEUE_H

#include <heddle/queue.h>

#include "sync/sync.h"

struct hd_queue {
	struct hd_waitq waiters; /* all to take, when it is empty; or all to put, when it is full */
	bool closed;
	size_t item_size;
	size_t capacity; /* 0: none */
	size_t room;	 /* items that `items` has room for */
	size_t first, count;
	unsigned char *items; /* a ring */
};

/* Under the lock: whether the call need not wait; and the call then. *woken is to be unparked when the lock is released. A queue without
 * capacity may need more room first: hd__queue_has_room. */
static inline bool hd__queue_can_put_locked(const hd_queue *q)
{
	return q->closed || q->capacity == 0 || q->count < q->capacity;
}
static inline bool hd__queue_can_take_locked(const hd_queue *q)
{
	return q->count > 0 || q->closed;
}
int hd__queue_put_locked(struct hd_worker *w, hd_queue *q, const void *item, struct hd_waiter **woken);
int hd__queue_take_locked(struct hd_worker *w, hd_queue *q, void *item, struct hd_waiter **woken);

/* Under the lock, which is released meanwhile if there must be more: whether there is room for one more item. */
bool hd__queue_has_room(hd_queue *q);

#endif
