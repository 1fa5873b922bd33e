/* process/table.h - ids and control blocks. */
#ifndef PROCESS_TABLE_H
#define PROCESS_TABLE_H

#include "base/assert.h"
#include "process/process.h"

struct hd__table {
	struct hd_process *blocks; /* reserved; memory comes as they are first used */
	uint32_t capacity;	   /* how many: HD__SLOTS, unless address space is limited */
	uint32_t made;		   /* slots ever used; written under the lock, read by any thread (a slot below it exists) */
	uint32_t limit;		   /* slots that may be used */
	uint32_t dumped;	   /* the first so many are in a core file: all that were made; under the lock */
	struct hd_process *free;   /* through `next`; under the lock */
	int64_t taken;		   /* less dropped, by plain threads; under the lock */
	unsigned char lock;
};

/* A worker's own free blocks, for which it needs no lock. */
#define HD__BLOCKS_MAX 64
struct hd__blocks {
	struct hd_process *free;
	unsigned count; /* of free ones; surplus goes back to the table, for other workers */
	int64_t taken;	/* less dropped, by this worker */
};

/* Returns 0 or -ENOMEM. */
int hd__table_init(struct hd__table *t);
void hd__table_fini(struct hd__table *t);

/* A free block, its control word still dead; `own` is the calling worker's store, NULL on a plain thread. NULL when 2^24
 * processes exist. */
struct hd_process *hd__table_take_shared(struct hd__table *t, struct hd__blocks *own);

static inline struct hd_process *hd__table_take(struct hd__table *t, struct hd__blocks *own)
{
	if (unlikely(own == NULL || own->free == NULL))
		return hd__table_take_shared(t, own);
	struct hd_process *p = own->free;
	own->free = p->next;
	own->count--;
	bump(&own->taken, 1);
	return p;
}

/* A worker has too many free blocks: a batch goes back to the table. */
void hd__table_give_back(struct hd__table *t, struct hd__blocks *own);

/* As hd__table_drop, on a plain thread, or of a block that has used up its generations. */
void hd__table_drop_shared(struct hd__table *t, struct hd__blocks *own, struct hd_process *p);

/* A block whose process is dead, and which the caller has kept since then, is free for others. Its control word names the next process already, and it does
 * not count as taken. */
void hd__table_give_up(struct hd__table *t, struct hd_process *p);

/* Frees a block whose process is dead: its id will not be used again. Afterwards a thread may only read it, to find its id
 * gone. */
static inline void hd__table_drop(struct hd__table *t, struct hd__blocks *own, struct hd_process *p)
{
	uint64_t control = ld_rlx(&p->control), generation = HD__GENERATION(control);

	HD_ASSERT(control & HD__DEAD, "a process that has not ended was freed");
	st_rel(&p->state, 0);
	if (unlikely(own == NULL || generation == HD__GENERATION_MAX)) {
		hd__table_drop_shared(t, own, p);
		return;
	}
	/* From here on its id names no process. A request that was decided before has found it dead already. */
	st_rel(&p->control, HD__CONTROL(generation + 1, 0, 0, HD__DEAD));
	bump(&own->taken, -1);
	p->next = own->free;
	own->free = p;
	if (unlikely(++own->count > HD__BLOCKS_MAX))
		hd__table_give_back(t, own);
}

/* The block that `pid` names or once named; NULL when it never can have been one. Look at its control word next. */
static inline struct hd_process *hd__table_find(const struct hd__table *t, hd_pid pid)
{
	uint32_t slot = (uint32_t)pid & (HD__SLOTS - 1);
	return pid > 0 && slot < ld_acq(&t->made) ? &t->blocks[slot] : NULL;
}

static inline uint32_t hd__slot(const struct hd__table *t, const struct hd_process *p)
{
	return (uint32_t)(p - t->blocks);
}

static inline hd_pid hd__pid(const struct hd__table *t, const struct hd_process *p)
{
	return (hd_pid)(HD__GENERATION(ld_rlx(&p->control)) << HD__SLOT_BITS | hd__slot(t, p));
}

#endif
