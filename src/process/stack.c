/* process/stack.c - stacks.
 *
 * Owns:       the address space of all stacks of one size, and which slots are free.
 * Invariant:  a slot that a process runs on has its guard page (its lowest); [0, cold) of the free list have no memory.
 * Locking:    spawn promises from any thread, under the lock. Taking, dropping and cooling are the worker's alone.
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

void hd__stacks_init(struct hd__stacks *s, unsigned size_class)
{
	*s = (struct hd__stacks){ .size_class = (unsigned char)size_class };
}

void hd__stacks_fini(struct hd__stacks *s)
{
	if (s->base != NULL) {
		hd__os_unreserve(s->base, s->reserved);
		hd__os_unreserve(s->free, s->capacity * sizeof *s->free);
	}
	hd__stacks_init(s, s->size_class);
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
		st_rel(&s->guarded, s->guarded + n);
		st_rlx(&s->ready, s->how == HD__GUARD_PROTECT ? s->guarded : s->capacity);
	}
	return err;
}

int hd__stacks_promise_slowly(struct hd__stacks *s, int64_t *mine)
{
	int err = 0;

	hd__lock(&s->lock);
	if (s->base == NULL) {
		err = reserve_locked(s);
		if (err == 0) /* the first few guards also tell what kind they are */
			err = guard_locked(s, FIRST_GUARDS);
	}
	/* If the worker is promising too, one promise too many may be made: its process will find no stack, and say so when it
	 * is joined. */
	int64_t promised = ld_rlx(&s->promised) + s->sent;
	if (err == 0 && promised >= (int64_t)s->capacity)
		err = -ENOMEM;
	else if (err == 0 && promised >= (int64_t)s->ready)
		err = guard_locked(s, 1);
	if (err == 0)
		bump(mine, 1);
	hd__unlock(&s->lock);
	return err;
}

void hd__stacks_unpromise_sent(struct hd__stacks *s)
{
	hd__lock(&s->lock);
	bump(&s->sent, -1);
	hd__unlock(&s->lock);
}

char *hd__stacks_take_owner(struct hd__stacks *s)
{
	uint32_t slot;

	if (likely(s->nfree > 0)) {
		bump(&s->nfree, -1);
		slot = s->free[s->nfree];
		if (s->cold > s->nfree)
			st_rlx(&s->cold, s->nfree);
		if (s->nfree > 0) /* have the next one's top fetched, for whoever starts next */
			__builtin_prefetch(
				hd__stack_top(slot_base(s, s->free[s->nfree - 1]) + HD__PAGE_SIZE, s->size_class) - 64, 1);
	} else {
		if (unlikely(s->made == ld_acq(&s->guarded))) { /* pairs with guard_locked's release */
			hd__lock(&s->lock);
			int err = guard_locked(s, GUARD_BATCH);
			hd__unlock(&s->lock);
			if (err != 0)
				return NULL;
		}
		slot = s->made;
		bump(&s->made, 1);
	}
	return slot_base(s, slot) + HD__PAGE_SIZE;
}

void hd__stacks_drop_owner(struct hd__stacks *s, char *stack)
{
	HD_ASSERT(s->nfree < s->made, "a stack was freed twice");
	s->free[s->nfree] = (uint32_t)((size_t)(stack - s->base) >> s->size_class);
	bump(&s->nfree, 1);
}

bool hd__stacks_cool_owner(struct hd__stacks *s, uint32_t keep)
{
	struct hd__piece pieces[64];
	uint32_t budget = COOL_BATCH;

	while (budget > 0 && s->nfree - s->cold > keep) {
		size_t n = 0;
		while (n < 64 && budget > 0 && s->nfree - s->cold > keep) {
			char *stack = slot_base(s, s->free[s->cold]) + HD__PAGE_SIZE;
			bump(&s->cold, 1);
			pieces[n++] = (struct hd__piece){ stack, hd__stack_size(s->size_class) };
			budget--;
		}
		hd__os_discard(pieces, n);
	}
	return s->nfree - s->cold > keep;
}
