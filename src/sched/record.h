/* sched/record.h - what workers put on their tapes, and how the trace is turned on and off while they run.
 *
 *   a tool           writes hd__trace.wish from outside the program
 *   hd__trace_look   the watcher, at each of its looks, or a worker that wakes from sleep: makes the tapes, and raises HD__TRACE in all workers
 *   hd__trace_join   each worker, at its next safe point, inside its lane: has its tape, and HD__RECORD among its chores, or not any more
 *
 * If all workers sleep, so does the watcher, and nothing happens: the first worker that wakes hears the wish. A tool that has died leaves a wish with a time limit. */
#ifndef SCHED_RECORD_H
#define SCHED_RECORD_H

#include "sched/worker.h"

/* Begins to record, from the start of the runtime until its end, before any worker is there. Returns 0 or -ENOMEM. */
int hd__trace_from_start(struct hd__sched *sched, unsigned order);

/* By the watcher. When to look again at the latest. */
hd_time hd__trace_see(struct hd__sched *sched, hd_time now);
static inline hd_time hd__trace_look(struct hd__sched *sched, hd_time now)
{
	const struct hd__trace *t = &sched->trace;

	if (likely(ld_rlx(&t->wish) == ld_rlx(&t->obeyed) && ld_rlx(&t->tapes) == NULL))
		return HD_FOREVER;
	return hd__trace_see(sched, now);
}

/* By a worker that comes from sleep, outside its lane. */
static inline void hd__trace_hear(struct hd__sched *sched)
{
	if (unlikely(ld_rlx(&sched->trace.wish) != ld_rlx(&sched->trace.obeyed)) && sched->watched)
		hd__trace_see(sched, hd__clock(sched));
}

/* By w's thread, inside its lane; or before any worker has a thread. */
void hd__trace_join(struct hd_worker *w);

/* Gives the tapes back. No worker runs any more. */
void hd__trace_end(struct hd__sched *sched);

/* This moment, as events and as heddle's clock have it. */
void hd__trace_time(struct hd__sched *sched, uint64_t *ticks, uint64_t *ns);

/* Something has happened that is no change of state. Inside the lane of w. */
void hd__trace_put(struct hd_worker *w, enum hd__traced kind, hd_pid pid, unsigned why, uint64_t more);
static inline void hd__trace_event(struct hd_worker *w, enum hd__traced kind, hd_pid pid, unsigned why, uint64_t more)
{
	if (unlikely(w->chores & HD__RECORD))
		hd__trace_put(w, kind, pid, why, more);
}

/* As hd__trace_event, on a thread that is inside no lane; inside the gate. */
void hd__trace_put_outside(struct hd__sched *sched, enum hd__traced kind, hd_pid pid, uint64_t more);
static inline void hd__trace_outside(struct hd__sched *sched, enum hd__traced kind, hd_pid pid, uint64_t more)
{
	if (unlikely(ld_rlx(&sched->trace.on)))
		hd__trace_put_outside(sched, kind, pid, more);
}

/* The process that makes another one ready, inside the lane of w; 0: none does. */
static inline uint64_t hd__trace_source(const struct hd_worker *w)
{
	return w->current != NULL && !w->takes_news && hd__self() == w ? (uint64_t)hd__pid(&w->sched->table, w->current) : 0;
}

#endif
