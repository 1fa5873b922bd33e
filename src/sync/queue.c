/* sync/queue.c - items from many to many.
 *
 * Owns:       struct hd_queue.
 * Invariant:  an undecided waiter waits to take because the queue is empty, or to put because it is full. So there is one wait
 *             queue for both, and an item goes from the caller to a waiter or through the ring, in order. A waiter's `data` is
 *             where its item is, or goes.
 * Locking:    the wait queue's lock guards all of it; memory is fetched without it.
 * Callers:    a process or a plain thread. */
#include <errno.h>
#include <heddle/queue.h>
#include <string.h>

#include "os/memory.h"
#include "sync/select.h"

#define ROOM_FIRST 16 /* of a queue without capacity */

struct hd_queue {
	struct hd_waitq waiters; /* all to take, when it is empty; or all to put, when it is full */
	bool closed;
	size_t item_size;
	size_t capacity; /* 0: none */
	size_t room;	 /* items that `items` has room for */
	size_t first, count;
	unsigned char *items; /* a ring */
};

hd_queue *hd_queue_new(size_t item_size, size_t capacity)
{
	size_t room = capacity > 0 ? capacity : ROOM_FIRST, bytes;
	hd_queue *q = hd__os_alloc(sizeof *q);

	if (q == NULL)
		return NULL;
	*q = (hd_queue){ .item_size = item_size, .capacity = capacity, .room = room };
	if (!__builtin_mul_overflow(room, item_size, &bytes))
		q->items = hd__os_alloc(bytes > 0 ? bytes : 1);
	if (q->items != NULL)
		return q;
	hd__os_free(q);
	return NULL;
}

void hd_queue_drop(hd_queue *q)
{
	if (q == NULL)
		return;
	HD_ASSERT(q->waiters.head == NULL, "hd_queue_drop of a queue that somebody waits for");
	hd__os_free(q->items);
	hd__os_free(q);
}

/* TSan sees memcpy, and would take it for the program's: it does not see a loop. */
static void copy_bytes(void *to, const void *from, size_t n)
{
	if (!hd__tells) {
		memcpy(to, from, n);
		return;
	}
	for (size_t i = 0; i < n; i++) {
		((unsigned char *)to)[i] = ((const unsigned char *)from)[i];
		__asm__ volatile("" ::: "memory"); /* or the compiler would make it a memcpy */
	}
}

static inline void copy(const hd_queue *q, void *to, const void *from)
{
	if (likely(q->item_size == sizeof(void *)))
		memcpy(to, from, sizeof(void *)); /* nearly always: a pointer or a number */
	else if (q->item_size > 0)		  /* else there may be no memory on the caller's side */
		copy_bytes(to, from, q->item_size);
}

/* The place of the i-th item. */
static inline unsigned char *at(const hd_queue *q, size_t i)
{
	size_t place = q->first + i;
	return q->items + (place < q->room ? place : place - q->room) * q->item_size;
}

/* Under the lock: whether the call need not wait. A queue without capacity may need more room first. */
static inline bool can_put_locked(const hd_queue *q)
{
	return q->closed || q->capacity == 0 || q->count < q->capacity;
}

static inline bool can_take_locked(const hd_queue *q)
{
	return q->count > 0 || q->closed;
}

/* Under the lock, which is released meanwhile if there must be more: whether there is room for one more item. */
static bool has_room(hd_queue *q)
{
	while (q->count == q->room && !q->closed && q->capacity == 0) {
		size_t room = q->room, bytes;
		unsigned char *more = NULL, *old;
		hd__waitq_unlock(&q->waiters);
		if (!__builtin_mul_overflow(2 * room, q->item_size, &bytes))
			more = hd__os_alloc(bytes > 0 ? bytes : 1);
		hd__waitq_lock(&q->waiters);
		if (more == NULL && q->count == q->room && !q->closed)
			return false;
		old = more;
		if (more != NULL && q->room == room) { /* else another thread has made room meanwhile */
			size_t head = room - q->first; /* items up to the end of the ring; the rest is at its beginning */
			copy_bytes(more, q->items + q->first * q->item_size, head * q->item_size);
			copy_bytes(more + head * q->item_size, q->items, q->first * q->item_size);
			old = q->items;
			q->items = more;
			q->room = 2 * room;
			q->first = 0;
		}
		hd__os_free(old);
	}
	return true;
}

/* The call, under the lock, when it need not wait. */
__attribute__((always_inline)) static inline int put_locked(struct hd_worker *w, hd_queue *q, const void *item,
							    struct hd_waiter **woken)
{
	*woken = NULL;
	if (q->closed)
		return -EPIPE;
	if (q->count == 0 && q->waiters.head != NULL && (*woken = hd__waitq_claim(w, &q->waiters, HD__GRANTED)) != NULL) {
		copy(q, (*woken)->data, item);
		return 0;
	}
	copy(q, at(q, q->count), item);
	st_rlx(&q->count, q->count + 1);
	return 0;
}

__attribute__((always_inline)) static inline int take_locked(struct hd_worker *w, hd_queue *q, void *item,
							     struct hd_waiter **woken)
{
	*woken = NULL;
	if (q->count == 0)
		return -EPIPE;
	copy(q, item, at(q, 0));
	if (++q->first == q->room)
		q->first = 0;
	if (q->waiters.head != NULL && (*woken = hd__waitq_claim(w, &q->waiters, HD__GRANTED)) != NULL)
		copy(q, at(q, q->count - 1), (*woken)->data); /* it was full, and is again */
	else
		st_rlx(&q->count, q->count - 1);
	return 0;
}

/* Ends a call that did not wait. */
__attribute__((always_inline)) static inline int finish(struct hd_worker *w, hd_queue *q, int err, struct hd_waiter *woken)
{
	hd__waitq_unlock(&q->waiters);
	if (woken != NULL)
		hd__unpark_claimed(w, woken);
	hd__leave_call(w);
	return err;
}

int hd_queue_put(hd_queue *q, const void *item, hd_time until)
{
	struct hd_worker *w;
	struct hd_waiter *woken;
	int err = hd__begin_wait(&w, until);

	if (err != 0)
		return err;
	hd__waitq_lock(&q->waiters);
	if (!can_put_locked(q)) {
		struct hd_waiter x = { .data = (void *)(uintptr_t)item };
		return hd__park_as(w, &x, &q->waiters, until, HD_WAIT_PUT, NULL);
	}
	if (unlikely(q->count == q->room) && !has_room(q))
		return finish(w, q, -ENOMEM, NULL);
	err = put_locked(w, q, item, &woken);
	return finish(w, q, err, woken);
}

int hd_queue_next(hd_queue *q, void *item, hd_time until)
{
	struct hd_worker *w;
	struct hd_waiter *woken;
	int err = hd__begin_wait(&w, until);

	if (err != 0)
		return err;
	hd__waitq_lock(&q->waiters);
	if (!can_take_locked(q)) {
		struct hd_waiter x = { .data = item };
		return hd__park_as(w, &x, &q->waiters, until, HD_WAIT_NEXT, NULL);
	}
	err = take_locked(w, q, item, &woken);
	return finish(w, q, err, woken);
}

int hd_queue_try_put(hd_queue *q, const void *item)
{
	return hd__try(hd_queue_put(q, item, 0));
}

int hd_queue_try_next(hd_queue *q, void *item)
{
	return hd__try(hd_queue_next(q, item, 0));
}

int hd_queue_peek(hd_queue *q, void *item)
{
	struct hd_worker *w = hd__enter_call();

	hd__waitq_lock(&q->waiters);
	int err = q->count > 0 ? 0 : q->closed ? -EPIPE : -EAGAIN;
	if (err == 0)
		copy(q, item, at(q, 0));
	return finish(w, q, err, NULL);
}

int64_t hd_queue_put_many(hd_queue *q, const void *items, size_t n, hd_time until)
{
	const unsigned char *item = items;
	int64_t put = 0;
	int err = hd__is_duration(until) ? -EINVAL : 0;

	while (err == 0 && (size_t)put < n) {
		struct hd_worker *w;
		struct hd_waiter *chain = NULL, **end = &chain;
		err = hd__begin_wait(&w, until);
		if (err != 0)
			break;
		hd__waitq_lock(&q->waiters);
		while ((size_t)put < n && can_put_locked(q) && (q->count < q->room || has_room(q))) {
			struct hd_waiter *woken;
			err = put_locked(w, q, item, &woken);
			if (err != 0)
				break;
			item += q->item_size;
			put++;
			if (woken != NULL) {
				*end = woken;
				end = &woken->next;
			}
		}
		*end = NULL;
		bool stuck = err == 0 && (size_t)put < n && can_put_locked(q); /* no memory */
		hd__waitq_unlock(&q->waiters);
		hd__unpark_all(w, chain);
		hd__leave_quietly(w);
		if (stuck)
			err = -ENOMEM;
		else if (err == 0 && (size_t)put < n) {
			err = hd_queue_put(q, item, until); /* waits for room */
			item += q->item_size;
			put += err == 0;
		}
	}
	hd__pass_by();
	return put > 0 ? put : err;
}

int64_t hd_queue_next_many(hd_queue *q, void *items, size_t n, hd_time until)
{
	struct hd_worker *w;
	struct hd_waiter *chain = NULL, **end = &chain;
	unsigned char *item = items;
	int64_t taken = 0;

	if (n == 0)
		return hd__is_duration(until) ? -EINVAL : 0;
	int err = hd__begin_wait(&w, until);
	if (err != 0)
		return err;
	hd__waitq_lock(&q->waiters);
	if (!can_take_locked(q)) {
		struct hd_waiter x = { .data = item };
		err = hd__park_as(w, &x, &q->waiters, until, HD_WAIT_NEXT, NULL);
		return err != 0 ? err : 1;
	}
	while ((size_t)taken < n && q->count > 0) {
		struct hd_waiter *woken;
		take_locked(w, q, item, &woken);
		item += q->item_size;
		taken++;
		if (woken != NULL) {
			*end = woken;
			end = &woken->next;
		}
	}
	*end = NULL;
	hd__waitq_unlock(&q->waiters);
	hd__unpark_all(w, chain);
	hd__leave_call(w);
	return taken > 0 ? taken : -EPIPE;
}

int hd_queue_close(hd_queue *q)
{
	struct hd_worker *w = hd__enter_call();

	hd__waitq_lock(&q->waiters);
	int err = q->closed ? -EALREADY : 0;
	st_rlx(&q->closed, true);
	hd__waitq_serve_all(w, &q->waiters, HD__CLOSED, NULL);
	hd__leave_call(w);
	return err;
}

bool hd_queue_is_closed(const hd_queue *q)
{
	return ld_rlx(&q->closed);
}

size_t hd_queue_length(const hd_queue *q)
{
	hd__pass_by(); /* a process that asks in a loop gives way */
	return ld_rlx(&q->count);
}

/* ---- for select ---- */

static struct hd_waitq *lock_case(struct hd_worker *w, struct hd_case *c)
{
	hd_queue *q = c->object;

	(void)w;
	hd__waitq_lock(&q->waiters);
	return &q->waiters;
}

static bool can_put(const struct hd_case *c)
{
	return can_put_locked(c->object);
}

static bool can_take(const struct hd_case *c)
{
	return can_take_locked(c->object);
}

static int put(struct hd_worker *w, struct hd_case *c, struct hd_waiter **woken)
{
	return has_room(c->object) ? put_locked(w, c->object, c->data, woken) : -ENOMEM;
}

static int take(struct hd_worker *w, struct hd_case *c, struct hd_waiter **woken)
{
	return take_locked(w, c->object, c->data, woken);
}

static int is_closed(const struct hd_case *c, enum hd__outcome outcome)
{
	(void)c;
	return outcome == HD__CLOSED ? -EPIPE : 0;
}

const struct hd__case_ops hd__put_case = {
	.why = HD_WAIT_PUT, .lock = lock_case, .can = can_put, .happen = put, .granted = is_closed
};
const struct hd__case_ops hd__next_case = {
	.why = HD_WAIT_NEXT, .lock = lock_case, .can = can_take, .happen = take, .granted = is_closed
};
