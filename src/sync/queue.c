/* sync/queue.c - items from many to many.
 *
 * Owns:       struct hd_queue.
 * Invariant:  an undecided waiter waits to take because the queue is empty, or to put because it is full. So there is one wait
 *             queue for both, and an item goes from the caller to a waiter or through the ring, in order. A waiter's `data` is
 *             where its item is, or goes.
 *             A rendezvous is empty and full at once: an item goes from the caller to a waiter or the other way, and two
 *             undecided waiters of which one puts and one takes are records of one process, whose select has both sides. So
 *             either all of them wait on one side, or all are that process's.
 * Locking:    the wait queue's lock guards all of it; memory is fetched without it.
 * Callers:    a process or a plain thread.
 *
 * Rejected for the order: a function of the program that compares two items. It would be called under the lock. */
#include <errno.h>
#include <heddle/queue.h>
#include <string.h>

#include "base/heap.h"
#include "os/memory.h"
#include "sync/select.h"

#define ROOM_FIRST 16 /* of a queue without capacity */
#define ANY_NUMBER SIZE_MAX

struct hd_queue {
	struct hd_waitq waiters; /* all to take, when it is empty; or all to put, when it is full */
	bool closed;
	bool plain; /* open, without an order, and its items have the size of a pointer */
	size_t item_size;
	size_t capacity; /* ANY_NUMBER; 0: a rendezvous */
	size_t room;	 /* items that `items` has room for */
	size_t first, count;
	unsigned char *items;	     /* a ring; with an order, slots in any order */
	struct hd__heap_entry *heap; /* behind the items: the slots by their keys. NULL: no order */
	size_t key_at;		     /* where an item has its key */
	uint64_t arrivals;	     /* items with a key that were put */
};

static inline bool is_rendezvous(const hd_queue *q)
{
	return q->capacity == 0;
}

static inline bool is_ordered(const hd_queue *q)
{
	return q->heap != NULL;
}

/* Memory for this many items, and with an order for as many entries behind them; *heap is where these begin. NULL: none. */
static unsigned char *new_room(const hd_queue *q, size_t room, bool ordered, struct hd__heap_entry **heap)
{
	size_t bytes, each = sizeof **heap;
	unsigned char *items;

	if (__builtin_mul_overflow(room, q->item_size, &bytes))
		return NULL;
	if (!ordered)
		return hd__os_alloc(bytes > 0 ? bytes : 1);
	if (__builtin_add_overflow(q->item_size, each, &bytes) || __builtin_mul_overflow(room, bytes, &bytes) ||
	    __builtin_add_overflow(bytes, each, &bytes))
		return NULL;
	items = hd__os_alloc(bytes);
	if (items != NULL) {
		*heap = (void *)(items + (room * q->item_size + each - 1) / each * each);
		hd__heap_init(*heap, room);
	}
	return items;
}

static hd_queue *new_queue(size_t item_size, size_t capacity, size_t room, bool ordered)
{
	hd_queue *q = hd__os_alloc(sizeof *q);

	if (q == NULL)
		return NULL;
	*q = (hd_queue){
		.item_size = item_size, .capacity = capacity, .room = room, .plain = item_size == sizeof(void *) && !ordered
	};
	q->items = new_room(q, room, ordered, &q->heap);
	if (q->items != NULL)
		return q;
	hd__os_free(q);
	return NULL;
}

hd_queue *hd_queue_new(size_t item_size, size_t capacity)
{
	return capacity > 0 ? new_queue(item_size, capacity, capacity, false)
			    : new_queue(item_size, ANY_NUMBER, ROOM_FIRST, false);
}

hd_queue *hd_queue_new_ordered(size_t item_size, size_t capacity, size_t key_at)
{
	if (item_size < sizeof(int64_t) || key_at > item_size - sizeof(int64_t))
		return NULL;
	hd_queue *q = capacity > 0 ? new_queue(item_size, capacity, capacity, true)
				   : new_queue(item_size, ANY_NUMBER, ROOM_FIRST, true);
	if (q != NULL)
		q->key_at = key_at;
	return q;
}

hd_queue *hd_queue_new_rendezvous(size_t item_size)
{
	return new_queue(item_size, 0, 0, false);
}

void hd_queue_drop(hd_queue *q)
{
	if (q == NULL)
		return;
	HD_ASSERT(q->waiters.head == NULL, "hd_queue_drop of a queue that somebody waits for");
	hd__os_free(q->items);
	hd__os_free(q);
}

static inline void copy(const hd_queue *q, void *to, const void *from)
{
	if (likely(q->item_size == sizeof(void *)))
		memcpy(to, from, sizeof(void *)); /* nearly always: a pointer or a number */
	else if (q->item_size > 0)		  /* else there may be no memory on the caller's side */
		hd__copy(to, from, q->item_size);
}

/* The place of the i-th item; `size` is q->item_size. */
static inline unsigned char *at(const hd_queue *q, size_t i, size_t size)
{
	size_t place = q->first + i;
	return q->items + (place < q->room ? place : place - q->room) * size;
}

/* Under the lock: whether the call need not wait. A queue without capacity may need more room first. A rendezvous that is open answers no:
 * see give_locked and get_locked. */
static inline bool can_put_locked(const hd_queue *q)
{
	return q->count < q->capacity || q->closed;
}

static inline bool can_take_locked(const hd_queue *q)
{
	return q->count > 0 || q->closed;
}

/* Under the lock, which is released meanwhile if there must be more: whether there is room for one more item. */
static bool has_room(hd_queue *q)
{
	while (q->count == q->room && !q->closed && q->capacity == ANY_NUMBER) {
		size_t room = q->room;
		bool ordered = is_ordered(q);
		struct hd__heap_entry *heap = NULL;
		unsigned char *more, *old;
		hd__waitq_unlock(&q->waiters);
		more = new_room(q, 2 * room, ordered, &heap);
		hd__waitq_lock(&q->waiters);
		if (more == NULL && q->count == q->room && !q->closed)
			return false;
		old = more;
		if (more != NULL && q->room == room) { /* else another thread has made room meanwhile */
			size_t head = room - q->first; /* items up to the end of the ring; the rest is at its beginning */
			hd__copy(more, q->items + q->first * q->item_size, head * q->item_size);
			hd__copy(more + head * q->item_size, q->items, q->first * q->item_size);
			if (heap != NULL) {
				hd__copy(heap, q->heap, room * sizeof *heap);
				q->heap = heap;
			}
			old = q->items;
			q->items = more;
			q->room = 2 * room;
			q->first = 0;
		}
		hd__os_free(old);
	}
	return true;
}

/* Under the lock, with an order: an item that finds room. */
static void put_in_order_locked(hd_queue *q, const void *item)
{
	int64_t key;

	memcpy(&key, (const unsigned char *)item + q->key_at, sizeof key);
	copy(q, q->items + hd__heap_push(q->heap, q->count, key, q->arrivals++) * q->item_size, item);
	st_rlx(&q->count, q->count + 1);
}

/* The call, under the lock, when it need not wait. */
__attribute__((always_inline)) static inline int put_locked(struct hd_worker *w, hd_queue *q, const void *item, bool ordered,
							    struct hd_waiter **woken)
{
	*woken = NULL;
	if (q->closed)
		return -EPIPE;
	if (q->count == 0 && q->waiters.head != NULL && (*woken = hd__waitq_claim(w, &q->waiters, HD__GRANTED)) != NULL) {
		copy(q, (*woken)->data, item);
		return 0;
	}
	if (ordered) {
		put_in_order_locked(q, item);
		return 0;
	}
	copy(q, at(q, q->count, q->item_size), item);
	st_rlx(&q->count, q->count + 1);
	return 0;
}

/* As take_locked, of a queue with an order that has an item: the one with the least key. Returns the waiter to unpark, or NULL. */
static struct hd_waiter *take_least_locked(struct hd_worker *w, hd_queue *q, void *item)
{
	struct hd_waiter *woken = NULL;

	copy(q, item, q->items + hd__heap_pop(q->heap, q->count) * q->item_size);
	st_rlx(&q->count, q->count - 1);
	if (q->waiters.head != NULL && (woken = hd__waitq_claim(w, &q->waiters, HD__GRANTED)) != NULL)
		put_in_order_locked(q, woken->data); /* it was full, and is again */
	return woken;
}

__attribute__((always_inline)) static inline int take_locked(struct hd_worker *w, hd_queue *q, void *item, bool ordered,
							     struct hd_waiter **woken)
{
	*woken = NULL;
	if (q->count == 0)
		return -EPIPE;
	if (ordered) {
		*woken = take_least_locked(w, q, item);
		return 0;
	}
	copy(q, item, q->items + q->first * q->item_size);
	if (++q->first == q->room)
		q->first = 0;
	if (q->waiters.head != NULL && (*woken = hd__waitq_claim(w, &q->waiters, HD__GRANTED)) != NULL)
		copy(q, at(q, q->count - 1, q->item_size), (*woken)->data); /* it was full, and is again */
	else
		st_rlx(&q->count, q->count - 1);
	return 0;
}

/* Under the lock: the first that waits at a rendezvous for this reason; NULL: none does. The caller does not meet itself. Waiters that something
 * else has decided are dropped, as a claim does. By the invariant the search is over when it has seen the undecided records of one other
 * process. */
static struct hd_waiter *partner_locked(const struct hd_worker *w, hd_queue *q, enum hd_wait why)
{
	const struct hd_process *me = w != NULL ? w->current : NULL, *seen = NULL;

	for (struct hd_waiter *x = q->waiters.head, *next; x != NULL; x = next) {
		next = x->next;
		if (hd__outcome(ld_rlx(hd__wait_of(x))) != HD__WAITING)
			hd__waitq_unlink(&q->waiters, x);
		else if (x->several && x->process == me)
			continue;
		else if (x->why == why)
			return x;
		else if (!x->several || (seen != NULL && seen != x->process))
			return NULL;
		else
			seen = x->process;
	}
	return NULL;
}

/* Under the lock of a rendezvous: the item goes to the first that waits to take, or comes from the first that waits to put. Returns the waiter
 * to unpark, or NULL: none waits. */
static struct hd_waiter *give_locked(struct hd_worker *w, hd_queue *q, const void *item)
{
	struct hd_waiter *x;

	while ((x = partner_locked(w, q, HD_WAIT_NEXT)) != NULL)
		if (hd__waitq_claim_one(w, &q->waiters, x, HD__GRANTED)) {
			copy(q, x->data, item);
			break;
		}
	return x;
}

static struct hd_waiter *get_locked(struct hd_worker *w, hd_queue *q, void *item)
{
	struct hd_waiter *x;

	while ((x = partner_locked(w, q, HD_WAIT_PUT)) != NULL)
		if (hd__waitq_claim_one(w, &q->waiters, x, HD__GRANTED)) {
			copy(q, item, x->data);
			break;
		}
	return x;
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

/* What hd_queue_put and hd_queue_next do seldom, apart from them: they are leaner for it. */
__attribute__((noinline)) static int finish_slowly(struct hd_worker *w, hd_queue *q, int err, struct hd_waiter *woken)
{
	return finish(w, q, err, woken);
}

/* Under the lock: the queue must grow first, or has an order. */
__attribute__((noinline)) static int put_slowly(struct hd_worker *w, hd_queue *q, const void *item)
{
	struct hd_waiter *woken = NULL;
	int err = has_room(q) ? put_locked(w, q, item, is_ordered(q), &woken) : -ENOMEM;

	return finish_slowly(w, q, err, woken);
}

__attribute__((noinline)) static int take_slowly(struct hd_worker *w, hd_queue *q, void *item)
{
	struct hd_waiter *woken;
	int err = take_locked(w, q, item, is_ordered(q), &woken);

	return finish_slowly(w, q, err, woken);
}

/* Under the lock: the call must wait, unless its partner waits at a rendezvous. */
__attribute__((noinline)) static int wait_to_put(struct hd_worker *w, hd_queue *q, const void *item, hd_time until)
{
	struct hd_waiter *woken = is_rendezvous(q) ? give_locked(w, q, item) : NULL;
	struct hd_waiter x = { .data = (void *)(uintptr_t)item };

	if (woken != NULL)
		return finish_slowly(w, q, 0, woken);
	return hd__park_as(w, &x, &q->waiters, until, HD_WAIT_PUT, NULL);
}

__attribute__((noinline)) static int wait_to_take(struct hd_worker *w, hd_queue *q, void *item, hd_time until)
{
	struct hd_waiter *woken = is_rendezvous(q) ? get_locked(w, q, item) : NULL;
	struct hd_waiter x = { .data = item };

	if (woken != NULL)
		return finish_slowly(w, q, 0, woken);
	return hd__park_as(w, &x, &q->waiters, until, HD_WAIT_NEXT, NULL);
}

/* The call, under the lock, which it releases. */
__attribute__((noinline)) static int put_anyhow(struct hd_worker *w, hd_queue *q, const void *item, hd_time until)
{
	struct hd_waiter *woken;

	if (!can_put_locked(q))
		return wait_to_put(w, q, item, until);
	if (unlikely(q->count == q->room || is_ordered(q)))
		return put_slowly(w, q, item);
	int err = put_locked(w, q, item, false, &woken);
	return finish(w, q, err, woken);
}

__attribute__((noinline)) static int take_anyhow(struct hd_worker *w, hd_queue *q, void *item, hd_time until)
{
	struct hd_waiter *woken;

	if (!can_take_locked(q))
		return wait_to_take(w, q, item, until);
	if (unlikely(is_ordered(q)))
		return take_slowly(w, q, item);
	int err = take_locked(w, q, item, false, &woken);
	return finish(w, q, err, woken);
}

/* The call, from its beginning. */
__attribute__((noinline)) static int begin_to_put(hd_queue *q, const void *item, hd_time until)
{
	struct hd_worker *w;
	int err = hd__begin_wait(&w, until);

	if (err != 0)
		return err;
	hd__waitq_lock(&q->waiters);
	return put_anyhow(w, q, item, until);
}

__attribute__((noinline)) static int begin_to_take(hd_queue *q, void *item, hd_time until)
{
	struct hd_worker *w;
	int err = hd__begin_wait(&w, until);

	if (err != 0)
		return err;
	hd__waitq_lock(&q->waiters);
	return take_anyhow(w, q, item, until);
}

/* Nearly always: a pointer or a number comes into the ring, or goes to a process that waits for it here. */
int hd_queue_put(hd_queue *q, const void *item, hd_time until)
{
	struct hd_worker *w = hd__self();

	if (unlikely(!hd__begin_wait_at_once(w, &q->waiters, until)))
		return hd__keep_frame(begin_to_put(q, item, until));
	if (unlikely(!q->plain || q->count >= q->room))
		return put_anyhow(w, q, item, until);
	if (q->waiters.head != NULL) {
		struct hd_waiter *x = hd__waitq_claim_here(w, &q->waiters);
		if (unlikely(x == NULL))
			return put_anyhow(w, q, item, until);
		memcpy(x->data, item, sizeof(void *));
		hd__waitq_unlock(&q->waiters);
		return hd__wake_and_leave(w, x->process);
	}
	memcpy(at(q, q->count, sizeof(void *)), item, sizeof(void *));
	st_rlx(&q->count, q->count + 1);
	hd__waitq_unlock(&q->waiters);
	hd__leave_call(w);
	return 0;
}

int hd_queue_next(hd_queue *q, void *item, hd_time until)
{
	struct hd_worker *w = hd__self();

	if (unlikely(!hd__begin_wait_at_once(w, &q->waiters, until)))
		return hd__keep_frame(begin_to_take(q, item, until));
	if (unlikely(!q->plain || q->count == 0 || q->waiters.head != NULL))
		return take_anyhow(w, q, item, until);
	memcpy(item, at(q, 0, sizeof(void *)), sizeof(void *));
	if (++q->first == q->room)
		q->first = 0;
	st_rlx(&q->count, q->count - 1);
	hd__waitq_unlock(&q->waiters);
	hd__leave_call(w);
	return 0;
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
		copy(q, item, is_ordered(q) ? q->items + q->heap[0].slot * q->item_size : at(q, 0, q->item_size));
	return finish_slowly(w, q, err, NULL);
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
			err = put_locked(w, q, item, is_ordered(q), &woken);
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
	while ((size_t)taken < n) {
		struct hd_waiter *woken;
		if (q->count > 0)
			take_locked(w, q, item, is_ordered(q), &woken);
		else if (q->closed || !is_rendezvous(q) || (woken = get_locked(w, q, item)) == NULL)
			break;
		item += q->item_size;
		taken++;
		if (woken != NULL) {
			*end = woken;
			end = &woken->next;
		}
	}
	if (taken == 0 && !q->closed) {
		struct hd_waiter x = { .data = item };
		err = hd__park_as(w, &x, &q->waiters, until, HD_WAIT_NEXT, NULL);
		return err != 0 ? err : 1;
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
	q->plain = false;
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

static bool can_put(const struct hd_worker *w, const struct hd_case *c)
{
	hd_queue *q = c->object;
	return can_put_locked(q) || (is_rendezvous(q) && partner_locked(w, q, HD_WAIT_NEXT) != NULL);
}

static bool can_take(const struct hd_worker *w, const struct hd_case *c)
{
	hd_queue *q = c->object;
	return can_take_locked(q) || (is_rendezvous(q) && partner_locked(w, q, HD_WAIT_PUT) != NULL);
}

static int put(struct hd_worker *w, struct hd_case *c, struct hd_waiter **woken)
{
	hd_queue *q = c->object;

	if (is_rendezvous(q) && !q->closed)
		return (*woken = give_locked(w, q, c->data)) != NULL ? 0 : HD__NOT_NOW;
	return has_room(q) ? put_locked(w, q, c->data, is_ordered(q), woken) : -ENOMEM;
}

static int take(struct hd_worker *w, struct hd_case *c, struct hd_waiter **woken)
{
	hd_queue *q = c->object;

	if (is_rendezvous(q) && !q->closed)
		return (*woken = get_locked(w, q, c->data)) != NULL ? 0 : HD__NOT_NOW;
	return take_locked(w, q, c->data, is_ordered(q), woken);
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
