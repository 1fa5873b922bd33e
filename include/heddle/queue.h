/* heddle/queue.h - items from many to many.
 *
 * A queue holds items of one size, copied in and out, in order. With a capacity, a put waits while the queue is full; without
 * one, the queue grows. Waiters are served in the order they came. Once closed, no item can be put; those in it can still be
 * taken. There are two special kinds, for which all calls are the same: an ordered queue, whose items come out by a key that each of them
 * has, and a rendezvous, which holds no item: a put and a next wait for each other. */
#ifndef HEDDLE_QUEUE_H
#define HEDDLE_QUEUE_H

#include <heddle/base.h>

HD_BEGIN

typedef struct hd_queue hd_queue;

/* A queue for at most `capacity` items (0: any number) of `item_size` bytes (0: mere signals). NULL: no memory. Any thread. */
HD_API HD_MUST_USE hd_queue *hd_queue_new(size_t item_size, size_t capacity);

/* An ordered queue, with a capacity as that of hd_queue_new: the item with the least key is the first, and of those with the same key the one
 * that was put first. Each item has its key, an int64_t, at its byte `key_at`: offsetof(struct job, urgency). A put and a next take a time that
 * grows as the logarithm of the number of items. NULL: no memory, or the key would be outside of the item. Any thread. */
HD_API HD_MUST_USE hd_queue *hd_queue_new_ordered(size_t item_size, size_t capacity, size_t key_at);

/* A rendezvous: hd_queue_put waits until another process or thread takes the item, and hd_queue_next until another puts one. So
 * hd_queue_try_put succeeds only if one waits to take, and hd_queue_try_next only if one waits to put. Its length is 0 and hd_queue_peek finds
 * no item. hd_queue_put_many passes its items one by one. hd_select may wait on both sides: it does not meet itself. NULL: no memory. Any
 * thread. */
HD_API HD_MUST_USE hd_queue *hd_queue_new_rendezvous(size_t item_size);

/* Frees a queue, with what is in it; NULL is none. No process or thread may use it any more: a waiter aborts the program. Any
 * thread. */
HD_API void hd_queue_drop(hd_queue *q);

/* Puts a copy of *item at the end, or at the place of its key. Returns 0; -EPIPE when it is closed, also while waiting; -ENOMEM when one without capacity cannot
 * grow; -ETIMEDOUT; -ECANCELED. Unless it returns 0, the item is not in the queue. Cancellation point. Process or plain thread. */
HD_API HD_MUST_USE int hd_queue_put(hd_queue *q, const void *item, hd_time until);

/* Takes the first item. Returns 0; -EPIPE when it is closed and empty; -ETIMEDOUT; -ECANCELED. Unless it returns 0, no item was taken.
 * Cancellation point. Process or plain thread. */
HD_API HD_MUST_USE int hd_queue_next(hd_queue *q, void *item, hd_time until);

/* As hd_queue_put and hd_queue_next, but never wait. Return 0; -EAGAIN when it is full, or empty; -EPIPE; -ENOMEM. Process or
 * plain thread. */
HD_API HD_MUST_USE int hd_queue_try_put(hd_queue *q, const void *item);
HD_API HD_MUST_USE int hd_queue_try_next(hd_queue *q, void *item);

/* Copies the first item and leaves it there. Returns 0; -EAGAIN when there is none; -EPIPE when there will be none. Any thread. */
HD_API HD_MUST_USE int hd_queue_peek(hd_queue *q, void *item);

/* Puts n items in order; waits until all are in. No other caller's item comes between those that find room together. Returns
 * how many were put: less than n when the queue was closed, or time was up, or there was no memory, or the caller was
 * cancelled; the error when none was. As hd_queue_put. */
HD_API HD_MUST_USE int64_t hd_queue_put_many(hd_queue *q, const void *items, size_t n, hd_time until);

/* Takes up to n items, as many as there are; waits only for the first. Returns how many; the error when none. As hd_queue_next. */
HD_API HD_MUST_USE int64_t hd_queue_next_many(hd_queue *q, void *items, size_t n, hd_time until);

/* Closes it: no item can be put any more. Calls that wait to put, or to take, return -EPIPE. Returns 0; -EALREADY when it was
 * closed. Any thread. */
HD_API int hd_queue_close(hd_queue *q);

/* Whether it was closed. Any thread. */
HD_API bool hd_queue_is_closed(const hd_queue *q);

/* How many items are in it. Any thread; a moment's truth. */
HD_API size_t hd_queue_length(const hd_queue *q);

HD_END
#endif
