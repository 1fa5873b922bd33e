/* timer/timers.c - deadlines: a heap that forgets lazily.
 *
 * Owns:       the array. It is reserved address space for twice as many deadlines as there can be owners, so adding one
 *             never fails and a wait never needs memory.
 * Invariant:  at most half of the heap, and a few, are stale; they are swept when there are more. Every entry added leaves
 *             exactly once: taken live, taken stale, or swept; stale + orphans is the number of stale ones in the heap.
 * Callers:    the thread inside the lane of the worker whose heap it is; orphan: a worker that adopts a
 *             process, a thread that cancels a message; live: any.
 *
 * Most deadlines never come: they guard a wait that is granted first. So forgetting is a counter, and touches neither the
 * heap nor the owner: an entry is live if its number is the one that the owner has, a process in its wait word.
 *
 * Rejected: a heap with back-pointers (each sift step writes to a cold control block); a wheel (a million sleepers are
 * touched again at each cascade, and its grain is not ours); a pairing heap (a cache miss for each comparison). */
#include "timer/timers.h"

#include <errno.h>

#include "base/assert.h"
#include "base/atomic.h"
#include "os/memory.h"

#define SLACK 64 /* stale entries that do not matter */

int hd__timers_init(struct hd__timers *t, uint32_t owners, unsigned index, unsigned of,
		    bool (*is_live)(void *context, uint64_t order), void *context)
{
	*t = (struct hd__timers){ .is_live = is_live, .context = context, .first = index + 1, .step = of };
	t->arrivals = t->first;
	t->capacity = 2 * owners + 2 * SLACK + 8;
	/* heap[2], the first of four siblings, starts a cache line */
	char *base = hd__os_reserve((t->capacity + 4) * sizeof *t->heap, 0);
	if (base == NULL)
		return -ENOMEM;
	hd__os_dump_first(base, (t->capacity + 4) * sizeof *t->heap);
	t->heap = (struct hd__timer *)base + 2;
	return 0;
}

void hd__timers_fini(struct hd__timers *t)
{
	if (t->heap != NULL)
		hd__os_unreserve(t->heap - 2, (t->capacity + 4) * sizeof *t->heap);
	t->heap = NULL;
}

static bool before(struct hd__timer a, struct hd__timer b)
{
	return a.when != b.when ? a.when < b.when : a.order < b.order;
}

static void sift_up(struct hd__timer *heap, uint32_t i, struct hd__timer x)
{
	while (i > 1) {
		uint32_t parent = (i + 2) / 4;
		if (!before(x, heap[parent]))
			break;
		heap[i] = heap[parent];
		i = parent;
	}
	heap[i] = x;
}

static void sift_down(struct hd__timer *heap, uint32_t count, uint32_t i, struct hd__timer x)
{
	for (;;) {
		uint32_t child = 4 * i - 2, last = child + 3;
		if (child > count)
			break;
		if (last > count)
			last = count;
		uint32_t least = child;
		for (uint32_t c = child + 1; c <= last; c++)
			if (before(heap[c], heap[least]))
				least = c;
		if (!before(heap[least], x))
			break;
		heap[i] = heap[least];
		i = least;
	}
	heap[i] = x;
}

/* Keeps the live ones: a copy down and a heap built anew, for the price of one look at each. */
static void sweep(struct hd__timers *t)
{
	uint32_t kept = 0;

	for (uint32_t i = 1; i <= t->count; i++)
		if (t->is_live(t->context, t->heap[i].order))
			t->heap[++kept] = t->heap[i];
	bump(&t->stale, kept - t->count); /* stale + orphans is the number of stale ones again */
	st_rlx(&t->count, kept);
	for (uint32_t i = (kept + 2) / 4; i >= 1; i--)
		sift_down(t->heap, kept, i, t->heap[i]);
}

/* stale may be below 0 for a moment, while orphans is above what is left of them. */
static void sweep_if_due(struct hd__timers *t)
{
	if (unlikely((int32_t)(t->stale + ld_rlx(&t->orphans)) > (int32_t)(t->count / 2 + SLACK)))
		sweep(t);
}

uint64_t hd__timers_add(struct hd__timers *t, hd_time when, uint32_t whose)
{
	if (unlikely(t->arrivals >=
		     UINT64_C(1) << (64 - HD__WHOSE_BITS))) /* after so many of them equals may change places, once */
		t->arrivals = t->first;
	uint64_t order = t->arrivals << HD__WHOSE_BITS | whose;
	t->arrivals += t->step;

	sweep_if_due(t); /* a process that is adopted leaves its deadline behind, and no wake here counts it */
	HD_ASSERT(t->count < t->capacity, "more deadlines than owners");
	bump(&t->count, 1);
	sift_up(t->heap, t->count, (struct hd__timer){ when, order });
	return order;
}

static void drop_first(struct hd__timers *t)
{
	struct hd__timer last = t->heap[t->count];
	bump(&t->count, -1);
	if (t->count > 0)
		sift_down(t->heap, t->count, 1, last);
}

bool hd__timers_take_due(struct hd__timers *t, hd_time now, struct hd__timer *due)
{
	while (t->count > 0 && t->heap[1].when <= now) {
		*due = t->heap[1];
		drop_first(t);
		if (t->is_live(t->context, due->order))
			return true;
		bump(&t->stale, -1);
	}
	return false;
}

void hd__timers_forget(struct hd__timers *t)
{
	bump(&t->stale, 1);
	sweep_if_due(t);
}
