/* process/stack.c - stacks.
 *
 * Owns:       the address space of all stacks of one size, and which slots are free.
 * Invariant:  a slot that a process runs on has its guard page (its lowest); [0, cold) of the free list have no memory.
 * Locking:    one lock for each size. A worker has a few slots of its own, taken and given back in batches, so that it seldom
 *             needs the lock; where slots are scarce it keeps just the last one it dropped.
 *
 * A stack is bound to a process when it first runs and is free again when it ends, last in, first out: processes that run
 * to completion share one stack that is always in the cache. So spawning costs no stack, and only what must be known at
 * spawn is decided there: whether there can be one. With guards that cost no mapping that is a matter of address space alone;
 * with mprotect guards, they are made at spawn, because there the kernel's limit is near. */
#include "process/stack.h"

#include <errno.h>
#include <stdint.h>

#include "arch/fiber.h"
#include "base/assert.h"
#include "base/atomic.h"
#include "os/lock.h"
#include "process/process.h"

#define FIRST_GUARDS 16
#define PAGES_MIN 4 /* in a slot, its guard included */
#define GUARD_BATCH 256
#define COOL_BATCH 512

unsigned hd__stack_class(size_t size)
{
	unsigned size_class = HD__STACK_MIN_CLASS;

	while ((size_t)1 << size_class < PAGES_MIN * HD__PAGE_SIZE)
		size_class++;
	if (size > (size_t)1 << HD__STACK_MAX_CLASS)
		return 0;
	while ((size_t)1 << size_class < size)
		size_class++;
	return size_class;
}

void hd__stacks_init(struct hd__stacks *s, unsigned size_class, unsigned workers)
{
	*s = (struct hd__stacks){ .size_class = (unsigned char)size_class, .spare = workers - 1 };
}

void hd__stacks_fini(struct hd__stacks *s)
{
	if (s->base != NULL) {
		hd__os_unreserve(s->base, s->reserved);
		hd__os_unreserve(s->free, s->capacity * sizeof *s->free);
	}
	hd__stacks_init(s, s->size_class, s->spare + 1);
}

/* The largest region that can be had, down to a few slots: address space may be limited. */
static int reserve_locked(struct hd__stacks *s)
{
	size_t slot = (size_t)1 << s->size_class;
	size_t size = (size_t)HD__SLOTS << s->size_class;

	while (size > HD__REGION_MAX || size > hd__os_address_space() / 4)
		size /= 2;
	for (; size >= slot; size /= 2) {
		char *base = hd__os_reserve(size, 0);
		if (base == NULL)
			continue;
		uint32_t capacity = (uint32_t)(size >> s->size_class);
		uint32_t *free = hd__os_reserve(capacity * sizeof *free, 0);
		if (free == NULL) {
			hd__os_unreserve(base, size);
			continue;
		}
		s->reserved = size;
		s->capacity = capacity;
		s->free = free;
		s->protect_max = hd__os_protect_max();
		s->base = base;
		return 0;
	}
	return -ENOMEM;
}

static char *slot_base(const struct hd__stacks *s, uint32_t slot)
{
	return s->base + ((size_t)slot << s->size_class);
}

/* Guards for the next n slots, or as many as there are. -ENOMEM when there are none. */
static int guard_locked(struct hd__stacks *s, uint32_t n)
{
	if (n > s->capacity - s->guarded)
		n = s->capacity - s->guarded;
	if (n == 0 || (s->how == HD__GUARD_PROTECT && s->guarded + n > s->protect_max))
		return -ENOMEM;
	int err = hd__os_guard(slot_base(s, s->guarded), (size_t)1 << s->size_class, n, &s->how);
	if (err == 0) {
		for (uint32_t i = 0; i < n; i++)
			hd__fiber_new_stack(slot_base(s, s->guarded + i) + HD__PAGE_SIZE, hd__stack_size(s->size_class));
		s->guarded += n;
	}
	return err;
}

int hd__stacks_promise_slowly(struct hd__stacks *s)
{
	int err = 0;

	hd__lock(&s->lock);
	if (s->base == NULL)
		err = reserve_locked(s);
	if (err == 0 && s->guarded == 0) { /* the first few guards also tell what kind they are */
		err = guard_locked(s, FIRST_GUARDS);
		if (err == 0 && s->how == HD__GUARD_INSTALL && s->capacity >= HD__SLOTS)
			st_rel(&s->plenty, true);
	}
	if (err == 0 && !s->plenty) {
		uint32_t spare = s->spare < s->capacity / 2 ? s->spare : s->capacity / 2;
		if (s->promised + spare >= s->capacity)
			err = -ENOMEM;
		else if (s->how == HD__GUARD_PROTECT && s->promised + spare >= s->guarded)
			err = guard_locked(s, 1);
		if (err == 0)
			s->promised++;
	}
	hd__unlock(&s->lock);
	return err;
}

void hd__stacks_unpromise_slowly(struct hd__stacks *s)
{
	hd__lock(&s->lock);
	HD_ASSERT(s->promised > 0, "more stacks were given back than promised");
	s->promised--;
	hd__unlock(&s->lock);
}

/* One slot, a used one first; false when there is no memory for its guard. */
static bool take_locked(struct hd__stacks *s, uint32_t *slot)
{
	if (s->nfree > 0) {
		bump(&s->nfree, -1);
		*slot = s->free[s->nfree];
		if (s->cold > s->nfree)
			st_rlx(&s->cold, s->nfree);
		return true;
	}
	if (s->made == s->guarded && guard_locked(s, s->how == HD__GUARD_PROTECT ? 1 : GUARD_BATCH) != 0)
		return false;
	*slot = s->made;
	bump(&s->made, 1);
	return true;
}

static void drop_locked(struct hd__stacks *s, uint32_t slot)
{
	HD_ASSERT(s->nfree < s->made, "a stack was freed twice");
	s->free[s->nfree] = slot;
	bump(&s->nfree, 1);
}

/* How many slots a worker may keep. */
static uint32_t cache_size(const struct hd__stacks *s)
{
	return s->plenty ? HD__STACK_CACHE : 1;
}

/* Gets some for an empty cache: a batch of used ones, or one that is new. */
static bool refill(struct hd__stacks *s, struct hd__stack_cache *own)
{
	uint32_t batch = (cache_size(s) + 1) / 2;

	hd__lock(&s->lock);
	if (batch > s->nfree)
		batch = s->nfree > 0 ? s->nfree : 1;
	for (uint32_t i = batch; i > 0; i--) /* the hottest last */
		if (!take_locked(s, &own->slots[i - 1]))
			batch = 0;
	hd__unlock(&s->lock);
	st_rlx(&own->count, batch);
	return batch > 0;
}

/* Makes room in a full cache: the coldest half goes back. */
static void spill(struct hd__stacks *s, struct hd__stack_cache *own)
{
	uint32_t batch = (cache_size(s) + 1) / 2;

	hd__lock(&s->lock);
	for (uint32_t i = 0; i < batch; i++)
		drop_locked(s, own->slots[i]);
	hd__unlock(&s->lock);
	for (uint32_t i = batch; i < own->count; i++)
		own->slots[i - batch] = own->slots[i];
	bump(&own->count, -batch);
}

char *hd__stacks_take(struct hd__stacks *s, struct hd__stack_cache *own)
{
	if (unlikely(own->count == 0) && !refill(s, own))
		return NULL;
	bump(&own->count, -1);
	uint32_t slot = own->slots[own->count];
	if (own->count > 0) /* have the next one's top fetched, for whoever starts next */
		__builtin_prefetch(hd__stack_top(slot_base(s, own->slots[own->count - 1]) + HD__PAGE_SIZE, s->size_class) - 64,
				   1);
	return slot_base(s, slot) + HD__PAGE_SIZE;
}

void hd__stacks_drop(struct hd__stacks *s, struct hd__stack_cache *own, char *stack)
{
	uint32_t slot = (uint32_t)((size_t)(stack - s->base) >> s->size_class);

	HD_ASSERT(own->count == 0 || own->slots[own->count - 1] != slot, "a stack was freed twice");
	if (unlikely(own->count >= cache_size(s)))
		spill(s, own);
	own->slots[own->count] = slot;
	bump(&own->count, 1);
}

bool hd__stacks_cool(struct hd__stacks *s, uint32_t keep)
{
	struct hd__piece pieces[64];
	uint32_t budget = COOL_BATCH;

	while (budget > 0 && ld_rlx(&s->nfree) > ld_rlx(&s->cold) + keep) {
		size_t n = 0;
		hd__lock(&s->lock); /* held while the kernel takes the memory: till then nobody may have these stacks */
		while (n < 64 && budget > 0 && s->nfree > s->cold + keep) {
			char *stack = slot_base(s, s->free[s->cold]) + HD__PAGE_SIZE;
			bump(&s->cold, 1);
			pieces[n++] = (struct hd__piece){ stack, hd__stack_size(s->size_class) };
			budget--;
		}
		hd__os_discard(pieces, n);
		hd__unlock(&s->lock);
	}
	return ld_rlx(&s->nfree) > ld_rlx(&s->cold) + keep;
}
