/* process/table.h - ids and control blocks. */
#ifndef PROCESS_TABLE_H
#define PROCESS_TABLE_H

#include "process/process.h"

struct hd__table {
	struct hd_process *blocks; /* reserved; memory comes as they are first used */
	uint32_t capacity;	   /* how many: HD__SLOTS, unless address space is limited */
	uint32_t made;		   /* slots ever used; written under the lock, read by any thread (a slot below it exists) */
	uint32_t limit;		   /* slots that may be used */
	struct hd_process *free;   /* through `next`; under the lock */
	int64_t taken;		   /* less dropped, by plain threads; under the lock */
	unsigned char lock;
};

/* A worker's own free blocks, for which it needs no lock. */
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

/* Frees a block whose process is dead: its id will not be used again. Afterwards a thread may only read it, to find its id
 * gone. */
void hd__table_drop(struct hd__table *t, struct hd__blocks *own, struct hd_process *p);

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
