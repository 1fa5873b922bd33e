/* process/table.c - ids and control blocks.
 *
 * Owns:       the memory of all control blocks, and which of them are free.
 * Invariant:  a block never becomes anything else: a thread that has an old id may look at its control word, and the
 *             generation there tells that the id is dead. A generation is used once; a slot that has used them all is never
 *             free again.
 * Locking:    one byte lock for the shared list and for `made`; a worker's own list needs none.
 * Callers:    spawn and the end of a process; any thread. */
#include "process/table.h"

#include <errno.h>

#include "base/assert.h"
#include "os/lock.h"
#include "os/memory.h"

#define BATCH (HD__BLOCKS_MAX / 2) /* blocks that a worker fetches, and keeps, at a time */
#define DUMP_BATCH 8192		   /* blocks that become part of a core file at a time: a huge page of them */

int hd__table_init(struct hd__table *t)
{
	*t = (struct hd__table){ .capacity = HD__SLOTS };
	while (t->capacity * sizeof *t->blocks > hd__os_address_space() / 16)
		t->capacity /= 2;
	t->limit = t->capacity;
	t->blocks = hd__os_reserve(t->capacity * sizeof *t->blocks, 1);
	if (t->blocks == NULL)
		return -ENOMEM;
	hd__os_dump_not(t->blocks, t->capacity * sizeof *t->blocks);
	return 0;
}

void hd__table_fini(struct hd__table *t)
{
	hd__os_unreserve(t->blocks, t->capacity * sizeof *t->blocks);
}

/* Under the lock: the next block is in a core file, and so are those behind it for a while. */
static void dump_more(struct hd__table *t)
{
	uint32_t n = t->capacity - t->dumped < DUMP_BATCH ? t->capacity - t->dumped : DUMP_BATCH;

	hd__os_dump(&t->blocks[t->dumped], n * sizeof *t->blocks);
	t->dumped += n;
}

/* Under the lock: a block, a used one first. */
static struct hd_process *take_locked(struct hd__table *t)
{
	struct hd_process *p = t->free;

	if (p != NULL) {
		t->free = p->next;
	} else if (t->made < t->limit) {
		if (t->made == t->dumped)
			dump_more(t);
		p = &t->blocks[t->made];
		p->control = HD__CONTROL(1, 0, 0, HD__DEAD); /* memory that was never touched says generation 0 */
		st_rel(&t->made, t->made + 1);		     /* pairs with hd__table_find's acquire */
	}
	return p;
}

struct hd_process *hd__table_take_shared(struct hd__table *t, struct hd__blocks *own)
{
	hd__lock(&t->lock);
	struct hd_process *p = take_locked(t);
	if (p != NULL)
		bump(own != NULL ? &own->taken : &t->taken, 1);
	struct hd_process **end = own != NULL ? &own->free : NULL; /* empty: that is why we are here */
	for (int i = 1; own != NULL && i < BATCH; i++) {
		struct hd_process *spare = take_locked(t);
		if (spare == NULL)
			break;
		spare->next = NULL;
		*end = spare;
		end = &spare->next;
		own->count++;
	}
	hd__unlock(&t->lock);
	return p;
}

/* The hottest are kept. */
void hd__table_give_back(struct hd__table *t, struct hd__blocks *own)
{
	struct hd_process *last_kept = own->free, *first, *last;

	for (int i = 1; i < BATCH; i++)
		last_kept = last_kept->next;
	first = last = last_kept->next;
	while (last->next != NULL)
		last = last->next;
	last_kept->next = NULL;
	own->count = BATCH;
	hd__lock(&t->lock);
	last->next = t->free;
	t->free = first;
	hd__unlock(&t->lock);
}

void hd__table_drop_shared(struct hd__table *t, struct hd__blocks *own, struct hd_process *p)
{
	uint64_t generation = HD__GENERATION(p->control);
	bool retired = generation == HD__GENERATION_MAX; /* its last id stays dead */

	if (!retired)
		st_rel(&p->control, HD__CONTROL(generation + 1, 0, 0, HD__DEAD)); /* as in hd__table_drop */
	hd__lock(&t->lock);
	bump(own != NULL ? &own->taken : &t->taken, -1);
	if (!retired) {
		p->next = t->free;
		t->free = p;
	}
	hd__unlock(&t->lock);
}

void hd__table_give_up(struct hd__table *t, struct hd_process *p)
{
	hd__lock(&t->lock);
	p->next = t->free;
	t->free = p;
	hd__unlock(&t->lock);
}
