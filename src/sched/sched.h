/* sched/sched.h - who runs next, and when the runner gives way. Called on the worker, mostly by the runner itself. */
#ifndef SCHED_SCHED_H
#define SCHED_SCHED_H

#include "sched/worker.h"

/* The slow side of a safe point: takes in what has come, then gives way if the runner should. */
void hd__attend(struct hd_worker *w);

/* Whether the runner should look up. A hint: hd__take_news exchanges it. */
static inline bool hd__is_wanted(const struct hd_worker *w)
{
	return unlikely((ld_rlx(&w->attention) | w->resched) != 0);
}

/* A safe point. Returns the caller's worker, which may be another one now if the caller is movable. */
static inline struct hd_worker *hd__safe_point(struct hd_worker *w)
{
	if (hd__is_wanted(w)) {
		hd__attend(w);
		w = hd__self();
	}
	return w;
}

/* Where a call begins that has a safe point at its end: only doors.at_call must hear of it, and what the worker has told itself. */
static inline struct hd_worker *hd__beginning(struct hd_worker *w)
{
	if (unlikely(w->resched != 0)) {
		hd__attend(w);
		w = hd__self();
	}
	return w;
}

/* The highest level that is ready here; 0: none. */
static inline int hd__best_level(const struct hd_worker *w)
{
	int shared = hd__rank_level(ld_rlx(&w->share.first));
	return shared > w->runq.highest ? shared : w->runq.highest;
}

/* The choice when it is not simply the first of the worker's own queue: of a level of at least `floor`. NULL when none is. */
struct hd_process *hd__choose_slowly(struct hd_worker *w, int floor);

/* Takes in what has come (notes, alarms) without giving way. On a process or idle. */
void hd__take_news(struct hd_worker *w);

/* The runner has left the state RUNNING and put itself where it belongs, and nobody can run at once: the worker idles, on its own
 * stack. Returns when the caller runs again. */
void hd__leave_idle(struct hd_worker *w, struct hd_process *me);

/* The runner has ended, its stack and block are given back, its fiber is in w->leaving: goes on with `back`, to whom it hands
 * the worker back, or (NULL) with whoever is first. Does not return; see hd__end. */
void hd__leave_for_good(struct hd_worker *w, struct hd_process *back);

/* Idle: runs the next process; returns when nothing is ready again. */
void hd__run_next(struct hd_worker *w);

/* Rule 9: takes p off its queue, here or elsewhere, if it is ready, has never run, and may run at once in place of the runner,
 * which must wait now: hd__park_for switches to it. */
bool hd__take_for_hand_off(struct hd_worker *w, struct hd_process *p);

/* A turn begins when the worker's next process is chosen, and lasts over hand-offs: both numbers count up then. Who was handed
 * the worker has the turn in `arrival`, where nobody who was chosen from a queue has it. So a process that ends can tell whether
 * its joiner's turn, which it was lent, is still on. */
#define HD__LENT (UINT64_C(1) << 63)
static inline uint64_t hd__turn(const struct hd_worker *w)
{
	return HD__LENT | (w->stats.switches - w->handoffs);
}

/* The runner ends in the turn that `joiner` has lent it: whether that one may go on at once. (If it were the last that
 * counts, and a daemon, the runtime might be over.) */
bool hd__may_hand_back(struct hd_worker *w, struct hd_process *joiner);

/* The hand-off happens. Returns p, or NULL when the worker must idle first. */
struct hd_process *hd__hand_off(struct hd_worker *w, struct hd_process *p);

/* p, ready and in nobody's queue, waits at the head of the worker's own; it stays here. */
void hd__keep(struct hd_worker *w, struct hd_process *p);

/* What must be done before `next` runs. Returns next, or NULL when the worker must idle first: there is no memory for next's
 * stack, or the runtime may be over. */
struct hd_process *hd__do_chores(struct hd_worker *w, struct hd_process *next);

/* Every so many switches: if there are deadlines, the runner's next safe point looks at the clock without being told. */
void hd__look_up(struct hd_worker *w);

/* Another policy for p: for one that does not run, and whatever it is doing. */
void hd__set_policy_queued(struct hd_process *p, enum hd_policy policy);
void hd__set_policy_owner(struct hd_worker *w, struct hd_process *p, enum hd_policy policy);

/* The worker's alarm may have become another one. */
void hd__set_alarm(struct hd_worker *w);

#endif
