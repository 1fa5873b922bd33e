/* process/stack.h - stacks: a region for each size, carved into guarded slots. */
#ifndef PROCESS_STACK_H
#define PROCESS_STACK_H

#include <stdbool.h>

#include "os/memory.h"

#define HD__STACK_MIN_CLASS 14 /* 16 KiB */
#define HD__STACK_MAX_CLASS 30 /* 1 GiB */

struct hd__stacks {
	char *base;
	size_t reserved;
	unsigned char size_class; /* log2 of a slot's size, its guard page included */
	bool counted;		  /* there may be fewer slots than processes: `promised` is kept */
	unsigned char lock;	  /* guards base, reserved, guarded, how, promised */
	enum hd__guarding how;
	uint32_t capacity;
	uint32_t guarded;  /* slots that have their guard */
	uint32_t promised; /* counted: processes that have, or will want, one */

	/* the worker's, without a lock */
	uint32_t made;	/* slots ever used */
	uint32_t *free; /* slots to use again, the hottest last: [0, cold) have no memory, [cold, nfree) have */
	uint32_t nfree, cold;
};

/* The class for a stack of `size` bytes (guard and bookkeeping come on top); 0 when there is none. */
unsigned hd__stack_class(size_t size);

void hd__stacks_init(struct hd__stacks *s, unsigned size_class);
void hd__stacks_fini(struct hd__stacks *s);

/* At spawn: makes sure that a slot can be had later. Returns 0 or -ENOMEM. Any thread. Taken back by hd__stacks_unpromise. */
int hd__stacks_promise(struct hd__stacks *s);
void hd__stacks_unpromise(struct hd__stacks *s);

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
