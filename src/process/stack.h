/* process/stack.h - stacks: a region for each size, carved into guarded slots. */
#ifndef PROCESS_STACK_H
#define PROCESS_STACK_H

#include <stdbool.h>

#include "base/atomic.h"
#include "os/memory.h"

#define HD__STACK_MIN_CLASS 14 /* 16 KiB */
#define HD__STACK_MAX_CLASS 30 /* 1 GiB */

struct hd__stacks {
	unsigned char size_class; /* log2 of a slot's size, its guard page included */
	unsigned char lock;	  /* guards the making of the region and of guards, and `sent` */
	enum hd__guarding how;
	char *base; /* of the region; NULL before the first promise */
	size_t reserved;
	uint32_t capacity;    /* slots in the region */
	uint32_t protect_max; /* slots that may be guarded, where that takes mappings */
	uint32_t guarded;     /* slots that have their guard; stored under the lock with release, for take_owner */
	uint32_t ready;	      /* slots that can be promised at once: all, unless guards are scarce; then those that have one */
	int64_t sent;	      /* promises that plain threads made */

	/* the worker's, without a lock; others may look, so these are stored with st_rlx */
	int64_t promised; /* promises made here, less those that ended here; with `sent`, all that hold */
	uint32_t made;	  /* slots ever used */
	uint32_t *free;	  /* slots to use again, the hottest last: [0, cold) have no memory, [cold, nfree) have */
	uint32_t nfree, cold;
};

/* The class for a slot of `size` bytes, of which the guard page and up to 2 KiB of colour are lost; 0 when there is none. */
unsigned hd__stack_class(size_t size);

void hd__stacks_init(struct hd__stacks *s, unsigned size_class);
void hd__stacks_fini(struct hd__stacks *s);

/* At spawn: makes sure that a slot can be had later. Returns 0 or -ENOMEM. `_owner` on the worker, `_sent` on a plain thread. */
int hd__stacks_promise_slowly(struct hd__stacks *s, int64_t *mine);

static inline int hd__stacks_promise_owner(struct hd__stacks *s)
{
	if (unlikely(s->promised + ld_rlx(&s->sent) >= (int64_t)ld_rlx(&s->ready)))
		return hd__stacks_promise_slowly(s, &s->promised);
	bump(&s->promised, 1);
	return 0;
}

static inline int hd__stacks_promise_sent(struct hd__stacks *s)
{
	return hd__stacks_promise_slowly(s, &s->sent);
}

/* The process has ended, on the worker. */
static inline void hd__stacks_unpromise_owner(struct hd__stacks *s)
{
	bump(&s->promised, -1);
}

/* It could not be spawned, on a plain thread. */
void hd__stacks_unpromise_sent(struct hd__stacks *s);

/* At first run: a promised slot's lowest usable address; NULL when the kernel has no memory for its guard. */
char *hd__stacks_take_owner(struct hd__stacks *s);
void hd__stacks_drop_owner(struct hd__stacks *s, char *stack);

/* Gives back the memory of up to 512 stacks that nobody has used lately; the hottest `keep` stay warm. Returns whether there
 * may be more. */
bool hd__stacks_cool_owner(struct hd__stacks *s, uint32_t keep);

/* Usable bytes, from the lowest address up. */
static inline size_t hd__stack_size(unsigned size_class)
{
	return ((size_t)1 << size_class) - HD__PAGE_SIZE;
}

/* Where the first frame goes. Slots are a power of two apart, so that without this all stacks' hot lines would compete for
 * the same few sets of the cache (26 against 23 ns a switch with a thousand processes). */
static inline char *hd__stack_top(char *stack, unsigned size_class)
{
	size_t slot = (size_t)stack >> size_class;
	return stack + hd__stack_size(size_class) - 64 * (slot & 31);
}

#endif
