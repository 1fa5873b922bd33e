/* timer/timers.h - deadlines: of sleeping processes, and of messages that are sent at a time. */
#ifndef TIMER_TIMERS_H
#define TIMER_TIMERS_H

#include <heddle/base.h>

#include "base/atomic.h"

/* When, and whose: the owner's number of 25 bits, with the order of arrival above it, so that equals come out in that order. */
struct hd__timer {
	hd_time when;
	uint64_t order; /* arrival << HD__WHOSE_BITS | whose */
};

struct hd__timers {
	struct hd__timer *heap; /* [1, count]: the children of i are 4i-2 .. 4i+1, so that siblings share a cache line */
	uint32_t capacity;
	uint32_t count;			/* any thread may read it: stored with st_rlx */
	uint32_t stale;			/* of these, forgotten ones, but for those in `orphans`; likewise */
	uint32_t orphans;		/* forgotten from outside the lane; atomically */
	uint64_t arrivals, first, step; /* the next one's number: first, first + step, ... */
	bool (*is_live)(void *context, uint64_t order);
	void *context;
};

#define HD__WHOSE_BITS 25
#define HD__TIMER_WHOSE(order) ((uint32_t)(order) & ((1u << HD__WHOSE_BITS) - 1))
#define HD__TIMER_NUMBER(order) ((order) >> HD__WHOSE_BITS) /* of its arrival: never 0, and no two pending ones have the same */

/* For at most so many owners. Heap `index` of `of`, which share the owners: no two of them give the same
 * order. `is_live` tells whether the owner still waits for the deadline that was given this order. Returns 0 or -ENOMEM. */
int hd__timers_init(struct hd__timers *t, uint32_t owners, unsigned index, unsigned of,
		    bool (*is_live)(void *context, uint64_t order), void *context);
void hd__timers_fini(struct hd__timers *t);

/* At most one live deadline for each owner; it cannot fail. Returns its order, which is never 0. */
uint64_t hd__timers_add(struct hd__timers *t, hd_time when, uint32_t whose);

/* One that was added is not waited for any more: is_live already says so. */
void hd__timers_forget(struct hd__timers *t);

/* As hd__timers_forget, from outside the lane of the heap's worker. */
static inline void hd__timers_orphan(struct hd__timers *t)
{
	add_rlx(&t->orphans, 1);
}

/* The earliest deadline, a forgotten one perhaps; HD_FOREVER when there is none. */
static inline hd_time hd__timers_first(const struct hd__timers *t)
{
	return t->count == 0 ? HD_FOREVER : t->heap[1].when;
}

/* How many deadlines are waited for. Any thread may ask; while all workers are idle the answer is exact. */
static inline uint32_t hd__timers_live(const struct hd__timers *t)
{
	return ld_acq(&t->count) - ld_acq(&t->stale) - ld_acq(&t->orphans); /* before what all_is_quiet reads next (rt/stop.c) */
}

/* Takes the earliest deadline out if it is due and live. Forgotten ones that are due vanish. */
bool hd__timers_take_due(struct hd__timers *t, hd_time now, struct hd__timer *due);

#endif
