/* sched/lane.h - a worker's lane: its run queue, its deadlines, its inbox, and the processes that are at home there.
 *
 * One thread at a time is inside. The worker enters once for each call of its runner, from the call's beginning to its end, or, if the
 * runner leaves, to the first instructions on the next stack: so a process that can be seen in a lane is off its stack, and what it
 * left there is whole. Any other worker, and the watcher, may visit: take something out, or put in what its owner has no time for.
 *
 * Order: a lane, then the lock of a wait queue. A worker inside its own lane only tries to visit another; so no two wait for each
 * other. Inside, no thread sleeps and nothing of the program is called. With one worker there is nothing to lock.
 *
 * A lane that has not been visited for a while is *biased*: its worker keeps the lock, and enters and leaves with plain stores of `held`.
 * A visitor asks for the lock; a worker that makes calls answers at the end of the next one. If it does not answer, the visitor takes the
 * bias away: it says so in `bias`, has all CPUs execute a barrier (membarrier: some 14 us), and then either sees that the lane is held,
 * or the worker will see, when it enters, that it is not biased any more. Each time the next bias is further away, so that a lane
 * which is visited often has an ordinary lock.
 *
 *   NOT     -> BIASED    hd__leave: the worker, w->lane.calm times inside since the last visit
 *   BIASED  -> ASKED     hd__visit
 *   ASKED   -> NOT       drop_bias: the worker, which then releases the lock
 *   BIASED  -> NOT       hd__rest: the worker, before it sleeps, which then releases the lock
 *   ASKED   -> REVOKING  revoke: a visitor
 *   REVOKING -> NOT      revoke: the visitor is inside, and has the lock
 *   REVOKING -> ASKED    revoke: the worker was inside for long */
#ifndef SCHED_LANE_H
#define SCHED_LANE_H

#include "os/lock.h"
#include "sched/worker.h"

enum { HD__BIAS_NOT, HD__BIASED, HD__BIAS_ASKED, HD__BIAS_REVOKING };

/* On w's own thread, when the lane is not biased. */
void hd__enter_by_lock(struct hd_worker *w);

/* On w's own thread: enters the lane if no lock is needed for that. Returns whether it has. */
static inline bool hd__try_enter(struct hd_worker *w)
{
	if (!w->crowd)
		return true;
	st_late(&w->lane.held,
		1); /* other CPUs may see it late; for those that care, see revoke. If the lane is not biased, no thread looks */
	if (likely(ld_rlx(&w->lane.bias) == HD__BIASED)) /* no other thread has been inside since this one was */
		return true;
	st_rel(&w->lane.held, 0);
	return false;
}

/* On w's own thread. */
static inline void hd__enter(struct hd_worker *w)
{
	if (unlikely(!hd__try_enter(w)))
		hd__enter_by_lock(w);
}

/* Undoes hd__try_enter, when nothing has been done inside. */
static inline void hd__step_out(struct hd_worker *w)
{
	if (w->crowd)
		st_rel(&w->lane.held, 0);
}

/* As hd__leave, when other workers must hear of what is ready, or a visitor waits, or the lane is not biased. */
void hd__leave_slowly(struct hd_worker *w);

static inline void hd__leave(struct hd_worker *w)
{
	if (!w->crowd)
		return;
	int highest = w->runq.highest;
	/* `wanted` first: by then even a simulated thread, which sees its own late stores late, sees that it holds the lane. */
	if (likely(!ld_rlx(&w->lane.wanted) && w->lane.held && highest <= w->lane.advert &&
		   (highest == 0 || --w->surplus.calls != 0)))
		st_rel(&w->lane.held, 0); /* pairs with revoke's acquire */
	else
		hd__leave_slowly(w);
}

/* w's worker, outside its lane, sleeps now or has ended: the lane is not biased while it cannot answer. */
void hd__rest(struct hd_worker *w);

/* Whether the caller, which is not v's worker, is inside v's lane now; not if another thread stays inside for long. If v's worker is
 * deaf, a barrier may be needed, which takes a while: the caller says whether it holds no lock but its own lane's. */
bool hd__visit(struct hd_worker *v, bool at_any_cost);

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

/* Inside v's lane: moves the processes of the levels from `least` to `most` that are ready there and may move to x's lane, 256 at most. Those at the head of their level
 * because they ran last come to the head there. Returns how many; 0 also if x's lane could not be entered. */
unsigned hd__give_away(struct hd_worker *v, struct hd_worker *x, int least, int most);

/* Inside no lane: moves every second process that is ready in v's lane, arrived there before number `ripe`, and may move, the first
 * included, to w's. Returns how many. */
unsigned hd__take_half(struct hd_worker *w, struct hd_worker *v, uint64_t ripe);

#endif
