/* process/stack.c - stacks.
 *
 * Owns:       the address space of all stacks of one size, and which slots are free.
 * Invariant:  a slot that a process runs on has its guard (its lowest pages); [0, cold) of the free list have no memory.
 * Locking:    one lock for each size; promises are counted without it. A worker has a few slots of its own, taken and given back in
 *             batches, so that it seldom needs the lock; where slots are scarce it keeps just the last one it dropped.
 *
 * A stack is bound to a process when it first runs and is free again when it ends, last in, first out: processes that run
 * to completion share one stack that is always in the cache. So spawning costs no stack, and only what must be known at
 * spawn is decided there: whether there can be one. With guards that cost no mapping that is a matter of address space alone;
 * with mprotect guards, they are made at spawn, because there the kernel's limit is near. */
#include "process/stack.h"

#include <errno.h>
#include <stdint.h>

#include "arch/carry.h"
#include "arch/valgrind.h"
#include "base/assert.h"
#include "base/atomic.h"
#include "os/lock.h"
#include "process/process.h"

#define FIRST_GUARDS 16
#define PAGES_MIN 4 /* in a stack */
#define GUARD_BATCH 256
#define DUMP_BATCH ((size_t)1 << 20) /* bytes of slots that become part of a core file at a time, at least */
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
		char *from = s->base, *end = s->base + s->reserved;
		for (struct hd__kept *kept = s->kept; kept != NULL; kept = kept->next) {
			hd__os_unreserve(from, (size_t)(kept->stack - from));
			from = kept->stack + kept->size;
		}
		hd__os_unreserve(from, (size_t)(end - from));
		hd__os_unreserve(s->free, s->capacity * sizeof *s->free);
	}
	hd__stacks_init(s, s->size_class, s->spare + 1);
}

void hd__stacks_keep(struct hd__stacks *s, struct hd__kept *kept, char *stack)
{
	struct hd__kept **link = &s->kept;

	hd__lock(&s->lock);
	while (*link != NULL && (*link)->stack < stack)
		link = &(*link)->next;
	*kept = (struct hd__kept){ *link, stack, hd__stack_size(s->size_class) };
	*link = kept;
	hd__unlock(&s->lock);
}

void hd__kept_drop(struct hd__kept *kept)
{
	hd__os_unreserve(kept->stack, kept->size);
}

/* From one slot to the next: the stack and its guard. An odd number of pages, because a power of two would have all stacks
 * compete for a sixteenth of the TLB (a ring of 1000 processes whose stacks are in no order: 67 ns a hop instead of 35). */
static size_t slot_stride(const struct hd__stacks *s)
{
	return hd__stack_size(s->size_class) + hd__guard_size();
}

/* How much address space to reserve at most: a stack of 64 or 128 KiB for every process that there can be. */
static size_t region_max(void)
{
	return (size_t)1 << (hd__sanitized ? 36 : 42);
}

/* The largest region that can be had, down to a few slots: address space may be limited. */
static int reserve_locked(struct hd__stacks *s)
{
	size_t stride = slot_stride(s), size;
	uint32_t capacity = HD__SLOTS;

	while (capacity > 0 && ((size = capacity * stride) > region_max() || size > hd__os_address_space() / 4))
		capacity /= 2;
	for (; capacity > 0; capacity /= 2) {
		size = capacity * stride;
		char *base = hd__os_reserve(size, 0);
		if (base == NULL)
			continue;
		char **free = hd__os_reserve(capacity * sizeof *free, 0);
		if (free == NULL) {
			hd__os_unreserve(base, size);
			continue;
		}
		hd__os_dump_not(base, size);
		hd__os_dump_not(free, capacity * sizeof *free); /* what is free is not missed */
		s->reserved = size;
		s->capacity = capacity;
		s->free = free;
		s->protect_max = hd__os_protect_max();
		s->base = base;
		return 0;
	}
	return -ENOMEM;
}

/* The guard of a slot; its stack lies above. */
static char *guard_of(const struct hd__stacks *s, uint32_t slot)
{
	return s->base + slot * slot_stride(s);
}

/* Guards for the next n slots, or as many as there are. -ENOMEM when there are none. */
static int guard_locked(struct hd__stacks *s, uint32_t n)
{
	if (n > s->capacity - s->guarded)
		n = s->capacity - s->guarded;
	if (n == 0 || (s->how == HD__GUARD_PROTECT && s->guarded + n > s->protect_max))
		return -ENOMEM;
	int err = hd__os_guard(guard_of(s, s->guarded), hd__guard_size(), slot_stride(s), n, &s->how);
	if (err == 0) {
		for (uint32_t i = 0; i < n; i++)
			hd__valgrind_new_stack(guard_of(s, s->guarded + i) + hd__guard_size(), hd__stack_size(s->size_class));
		s->guarded += n;
		/* where guards cost a mapping each, a slot is promised when it has its guard, and not before */
		uint32_t spare = s->spare < s->capacity / 2 ? s->spare : s->capacity / 2;
		uint32_t slots = s->how == HD__GUARD_PROTECT ? s->guarded : s->capacity;
		st_rlx(&s->promisable, slots > spare ? slots - spare : 0);
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
	while (err == 0 && !s->plenty &&
	       !hd__stacks_count_promise(s)) /* another thread may count the slot that has just come */
		err = s->how == HD__GUARD_PROTECT ? guard_locked(s, 1) : -ENOMEM;
	hd__unlock(&s->lock);
	return err;
}

/* The next slot is in a core file, and so are some behind it. One mapping for all of them: the file has holes between the used parts of stacks, where its
 * file system can. */
static void dump_locked(struct hd__stacks *s)
{
	uint32_t n = 1 + (uint32_t)(DUMP_BATCH / slot_stride(s)) + s->dumped / 8;

	if (n > s->capacity - s->dumped)
		n = s->capacity - s->dumped;
	hd__os_dump(guard_of(s, s->dumped), n * slot_stride(s));
	s->dumped += n;
}

/* A stack, a used one first; NULL when there is no memory for its guard. */
static char *take_locked(struct hd__stacks *s)
{
	if (s->nfree > 0) {
		bump(&s->nfree, -1);
		if (s->cold > s->nfree)
			st_rlx(&s->cold, s->nfree);
		return s->free[s->nfree];
	}
	if (s->made == s->guarded && guard_locked(s, s->how == HD__GUARD_PROTECT ? 1 : GUARD_BATCH) != 0)
		return NULL;
	if (s->made == s->dumped)
		dump_locked(s);
	bump(&s->made, 1);
	return guard_of(s, s->made - 1) + hd__guard_size();
}

static void drop_locked(struct hd__stacks *s, char *stack)
{
	HD_ASSERT(s->nfree < s->made, "a stack was freed twice");
	s->free[s->nfree] = stack;
	bump(&s->nfree, 1);
}

/* A batch of used ones, or one that is new. */
char *hd__stacks_take_shared(struct hd__stacks *s, struct hd__stack_cache *own)
{
	uint32_t batch = (hd__stack_cache_size(s) + 1) / 2;

	hd__lock(&s->lock);
	if (batch > s->nfree)
		batch = s->nfree > 0 ? s->nfree : 1;
	for (uint32_t i = batch; i > 0; i--) /* the hottest last */
		if ((own->stacks[i - 1] = take_locked(s)) == NULL)
			batch = 0;
	hd__unlock(&s->lock);
	st_rlx(&own->count, batch);
	return batch > 0 ? hd__stacks_take(s, own) : NULL;
}

/* The coldest half goes back. */
void hd__stacks_spill(struct hd__stacks *s, struct hd__stack_cache *own)
{
	uint32_t batch = (hd__stack_cache_size(s) + 1) / 2;

	hd__lock(&s->lock);
	for (uint32_t i = 0; i < batch; i++)
		drop_locked(s, own->stacks[i]);
	hd__unlock(&s->lock);
	for (uint32_t i = batch; i < own->count; i++)
		own->stacks[i - batch] = own->stacks[i];
	bump(&own->count, -batch);
}

bool hd__stacks_cool(struct hd__stacks *s, uint32_t keep)
{
	struct hd__piece pieces[64];
	uint32_t budget = COOL_BATCH;

	while (budget > 0 && ld_rlx(&s->nfree) > ld_rlx(&s->cold) + keep) {
		size_t n = 0;
		hd__lock(&s->lock); /* held while the kernel takes the memory: until then no process may get these stacks */
		while (n < 64 && budget > 0 && s->nfree > s->cold + keep) {
			pieces[n++] = (struct hd__piece){ s->free[s->cold], hd__stack_size(s->size_class) };
			bump(&s->cold, 1);
			budget--;
		}
		hd__os_discard(pieces, n);
		hd__unlock(&s->lock);
	}
	return ld_rlx(&s->nfree) > ld_rlx(&s->cold) + keep;
}
