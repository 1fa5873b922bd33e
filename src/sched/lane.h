/* sched/lane.h - a worker's lane: its run queue, its deadlines, its inbox, and the processes that are at home there.
 *
 * One thread at a time is inside. The worker enters once for each call of its runner, from the call's beginning to its end, or, if the
 * runner leaves, to the first instructions on the next stack: so a process that can be seen in a lane is off its stack, and what it
 * left there is whole. Any other worker, and the watcher, may visit: take something out, or put in what its owner has no time for.
 *
 * Order: a lane, then the lock of a wait queue. A worker inside its own lane only tries to visit another; so no two wait for each
 * other. Inside, no thread sleeps and nothing of the program is called. With one worker there is nothing to lock. */
#ifndef SCHED_LANE_H
#define SCHED_LANE_H

#include "os/lock.h"
#include "sched/worker.h"

static inline void hd__enter(struct hd_worker *w)
{
	if (w->crowd)
		hd__lock(&w->lane);
}

/* Leaves w's lane with something ready in it, or for a visitor. */
void hd__leave_surplus(struct hd_worker *w);

static inline void hd__leave(struct hd_worker *w)
{
	if (!w->crowd)
		return;
	int highest = w->runq.highest;
	if (unlikely(highest > w->advert || (highest != 0 && ld_rlx(&w->sched->board.idlers) != 0) || ld_rlx(&w->wanted)))
		hd__leave_surplus(w);
	else
		hd__unlock(&w->lane);
}

/* Whether the caller, which is not v's worker, is inside v's lane now; not if another thread stays inside for long. */
bool hd__visit(struct hd_worker *v);

/* As hd__visit, for a thread that is inside no lane and holds no lock: it waits until it can enter. False: there is one worker, whose
 * lane has no lock. */
bool hd__visit_surely(struct hd_worker *v);

void hd__unvisit(struct hd_worker *v);

/* Whether p is not pinned. One that is spawned so is pinned where it first runs; the first process is so twice, until it has begun. */
static inline bool hd__is_movable(const struct hd_process *p)
{
	return p->pins <= (ld_rlx(&p->switches) == 0);
}

/* p is at home with w from now on. By the thread that is inside p's lane, where p is ready; or by the worker that has claimed p's
 * wait. False: p must stay where it is, because it is pinned or a request is on its way to its home. */
bool hd__move_home(struct hd_process *p, struct hd_worker *w);

/* Inside w's lane: takes the best process of a level above `level` from the lanes of other workers. It is w's, ready and in no queue;
 * NULL when there is none. If a lane could not be visited, w's runner looks again at its next safe point. */
struct hd_process *hd__take_better(struct hd_worker *w, int level);

/* Inside no lane: moves every second process that is ready in v's lane, arrived there before number `ripe`, and may move, the first
 * included, to w's. Returns how many. */
unsigned hd__take_half(struct hd_worker *w, struct hd_worker *v, uint64_t ripe);

#endif
