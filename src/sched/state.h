/* sched/state.h - the one function that changes a process's state: it checks the edge and can record it. */
#ifndef SCHED_STATE_H
#define SCHED_STATE_H

#include "base/assert.h"
#include "sched/worker.h"

/* The edges of the diagram in process/process.h; 0 is a free block. */
static inline bool hd__may_move(unsigned from, unsigned to)
{
	switch (to) {
	case HD_READY:
		return from != HD_READY && from != HD_ENDED;
	case HD_RUNNING:
		return from == HD_READY;
	case HD_WAITING:
		return from == HD_RUNNING || from == 0;
	case HD_SUSPENDED:
		return from == 0 || from == HD_READY || from == HD_RUNNING || from == HD_WAITING;
	case HD_ENDED:
		return from == HD_READY || from == HD_RUNNING || from == HD_WAITING || from == HD_SUSPENDED;
	default:
		return false;
	}
}

/* Tells doors.moved, and the trace (sched/record.c). */
__attribute__((noinline)) void hd__record(struct hd_worker *w, struct hd_process *p, unsigned to);

/* By the thread that is inside the lane of w, p's home. Nothing of p is read by others on the strength of its state alone. `now` is the coarse
 * time, read once for all that happens in a switch. */
static inline void hd__move_at(struct hd_worker *w, struct hd_process *p, unsigned to, hd_time now)
{
	HD_ASSERT(hd__may_move(p->state, to), "a process changed state in a way that cannot be");
	if (unlikely(w->chores & HD__RECORD))
		hd__record(w, p, to);
	st_rel(&p->state, (uint8_t)to); /* release: for hd__describe, see life/info.c */
	st_rel(&p->since, now);
}

/* As hd__move_at, of a process that is in the state `from`, when nothing is recorded: HD__RECORD is not up, or hd__do_chores has recorded it. */
static inline void hd__move_unrecorded(struct hd_process *p, unsigned from, unsigned to, hd_time now)
{
	HD_ASSERT(p->state == from && hd__may_move(from, to), "a process changed state in a way that cannot be");
	st_rel(&p->state, (uint8_t)to);
	st_rel(&p->since, now);
}

static inline void hd__move(struct hd_worker *w, struct hd_process *p, unsigned to)
{
	hd__move_at(w, p, to, ld_rlx(&w->sched->now));
}

#endif
