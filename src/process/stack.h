/* process/stack.h - stacks: a region for each size, carved into guarded slots. */
#ifndef PROCESS_STACK_H
#define PROCESS_STACK_H

#include <stdbool.h>

#include "base/assert.h"
#include "base/atomic.h"
#include "os/memory.h"

#define HD__STACK_MIN_CLASS 14		      /* 16 KiB */
#define HD__STACK_MAX_CLASS 30		      /* 1 GiB */
#define HD__MAIN_STACK_SIZE ((size_t)8 << 20) /* the first process's, at least */

/* Stacks of one size, for all workers. */
struct hd__stacks {
	unsigned char size_class; /* log2 of a stack's size; a slot has a guard below it */
	unsigned char lock;	  /* guards all that follows, but for `promised` */
	bool plenty;		  /* a slot for every process there can be, so none need be counted; any thread, release */
	enum hd__guarding how;
	char *base; /* of the region; NULL before the first promise */
	size_t reserved;
	uint32_t capacity;     /* slots in the region */
	uint32_t protect_max;  /* slots that may be guarded, where that takes mappings */
	uint32_t spare;	       /* slots that are not promised: every other worker may keep one (see hd__stacks_drop) */
	uint32_t guarded;      /* slots that have their guard */
	uint32_t dumped;       /* the first so many are in a core file: all that were used */
	uint32_t made;	       /* slots ever used (*) */
	uint32_t promised;     /* without plenty: to processes that have not ended; any thread, by compare-and-swap */
	uint32_t promisable;   /* slots that may be promised as it is; grows; any thread may read it, relaxed */
	char **free;	       /* stacks to use again, the hottest last: [0, cold) have no memory, [cold, nfree) have */
	uint32_t nfree, cold;  /* (*) any thread may read it without the lock: stored with st_rlx */
	struct hd__kept *kept; /* the lowest address first */
};

/* A stack that outlives its runtime: a thread that is not a worker uses it still. It lies on that stack. */
struct hd__kept {
	struct hd__kept *next;
	char *stack;
	size_t size;
};

/* A worker's own, for which it needs no lock: the hottest last. */
#define HD__STACK_CACHE 63 /* a cache has 512 bytes then: a worker has one for each size, found by a shift */
struct hd__stack_cache {
	uint32_t count; /* any thread may read it: stored with st_rlx */
	char *stacks[HD__STACK_CACHE];
};

/* Bytes below a stack that fault when touched: at least 64 KiB, so that a frame of up to that size does not jump over them; and an odd
 * number of pages, so that slots are an odd number of pages apart. */
static inline size_t hd__guard_size(void)
{
	return (((size_t)64 << 10) / HD__PAGE_SIZE | 1) * HD__PAGE_SIZE;
}

/* Usable bytes, from the lowest address up. */
static inline size_t hd__stack_size(unsigned size_class)
{
	return (size_t)1 << size_class;
}

/* Where the first frame goes. Slots are whole pages apart, so that without this all stacks' hot lines would compete for the
 * same few sets of the cache (26 against 23 ns a switch with a thousand processes). They are an odd number of pages apart, so that the
 * number of a stack's first page goes through all 32 colours (of pages of 4 KiB; of larger ones, through some). */
static inline char *hd__stack_top(char *stack, unsigned size_class)
{
	size_t page = (size_t)stack >> 12;
	return stack + hd__stack_size(size_class) - 64 * (page & 31);
}

/* The class for a stack of `size` bytes, of which up to 2 KiB of colour are lost; 0 when there is none. */
unsigned hd__stack_class(size_t size);

/* For so many workers. */
void hd__stacks_init(struct hd__stacks *s, unsigned size_class, unsigned workers);
void hd__stacks_fini(struct hd__stacks *s);

/* At spawn: makes sure that a slot can be had later. Returns 0 or -ENOMEM. Any thread. */
int hd__stacks_promise_slowly(struct hd__stacks *s);

/* Whether one more of the slots that may be promised as it is was promised. */
static inline bool hd__stacks_count_promise(struct hd__stacks *s)
{
	uint32_t promised = ld_rlx(&s->promised);

	while (promised < ld_rlx(&s->promisable))
		if (cas_acq(&s->promised, &promised, promised + 1)) /* pairs with hd__stacks_unpromise: its slot is free */
			return true;
	return false;
}

static inline int hd__stacks_promise(struct hd__stacks *s)
{
	return likely(ld_acq(&s->plenty) || hd__stacks_count_promise(s)) ? 0 : hd__stacks_promise_slowly(s);
}

/* The process has ended, or could not be spawned. Any thread. */
static inline void hd__stacks_unpromise(struct hd__stacks *s)
{
	if (!ld_rlx(&s->plenty))
		HD_ASSERT(add_acq_rel(&s->promised, -1) > 0, "more stacks were given back than promised");
}

/* As hd__stacks_take, when the worker's cache is empty: it gets some. */
char *hd__stacks_take_shared(struct hd__stacks *s, struct hd__stack_cache *own);

/* At first run: a promised slot's lowest usable address; NULL when the kernel has no memory for its guard. */
static inline char *hd__stacks_take(struct hd__stacks *s, struct hd__stack_cache *own)
{
	if (unlikely(own->count == 0))
		return hd__stacks_take_shared(s, own);
	uint32_t left = own->count - 1;
	st_rlx(&own->count, left);
	if (left > 0) /* have the top of the next stack fetched, for the next process that starts */
		__builtin_prefetch(hd__stack_top(own->stacks[left - 1], s->size_class) - 64, 1);
	return own->stacks[left];
}

/* How many slots a worker may keep: where they are scarce, just the last one that it dropped. */
static inline uint32_t hd__stack_cache_size(const struct hd__stacks *s)
{
	return likely(ld_rlx(&s->plenty)) ? HD__STACK_CACHE : 1;
}

/* Makes room in a worker's full cache. */
void hd__stacks_spill(struct hd__stacks *s, struct hd__stack_cache *own);

/* The caller may still run on this stack: it stays in this worker's cache until the next one is dropped. */
static inline void hd__stacks_drop(struct hd__stacks *s, struct hd__stack_cache *own, char *stack)
{
	HD_ASSERT(own->count == 0 || own->stacks[own->count - 1] != stack, "a stack was freed twice");
	if (unlikely(own->count >= hd__stack_cache_size(s)))
		hd__stacks_spill(s, own);
	own->stacks[own->count] = stack;
	bump(&own->count, 1);
}

/* hd__stacks_fini does not unmap this stack, which no process gets any more. hd__kept_drop does; `kept` is gone then. */
void hd__stacks_keep(struct hd__stacks *s, struct hd__kept *kept, char *stack);
void hd__kept_drop(struct hd__kept *kept);

/* Gives back the memory of up to 512 free stacks, the coldest first; the hottest `keep` stay warm. Returns whether there may be
 * more. Any thread. */
bool hd__stacks_cool(struct hd__stacks *s, uint32_t keep);

#endif
