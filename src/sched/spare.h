/* sched/spare.h - spare workers: they take the places of workers that are blocked in the kernel, or whose runner cannot be preempted.
 *
 * A spare is a worker like any other: a lane and a kernel thread of its own. The watcher starts one when it is first needed; when it is needed no more it *rests*: it
 * sleeps, is not among the idle workers, and runs nothing. What has its home there still comes to it: a note, a deadline or an event wakes it, and
 * it gives what becomes ready to other workers.
 *
 * There are as many *seats* as regular workers. A worker without a floor has a seat, unless it is away.
 *
 *   seated -> away      mark_away: the watcher; it is blocked in the kernel, and something is ready that no worker is free for
 *   away   -> seated    hd__spare_settle: the worker is back, at its first safe point; or take_back: the watcher has seen it compute
 *   resting -> seated   hd__spare_begins: a spare that the watcher has claimed, for a seat that is free
 *   seated -> resting   step_down: a spare, at a safe point, when more have seats than there are
 *   resting -> on loan  hd__spare_begins: a spare that the watcher has claimed for what is above the level of a runner that cannot be preempted
 *   on loan -> resting  hd__spare_keep_floor: nothing above that level is ready there any more
 *
 * A spare that rests, or is on loan, has a *floor*: it does not run processes of that level or below, but gives them to other workers; except those that are pinned there. */
#ifndef SCHED_SPARE_H
#define SCHED_SPARE_H

#include <heddle/base.h>

#include <stdbool.h>
#include <stdint.h>

struct hd__sched;
struct hd_worker;

enum { HD__RESTS = 127 }; /* the floor of a spare that rests */

/* What the watcher suspects of a worker whose runner stays. */
struct hd__doubt {
	uint64_t switches; /* which runner it is about */
	bool sampled;	   /* at `since` its thread had used so much CPU time */
	bool computes;	   /* it had used the CPU then, */
	bool sleeps;	   /* or slept in the kernel */
	hd_time since, cpu_time;
	int refusals;	   /* times that the runner was to be stopped, because something better is ready, and was not */
	uint64_t arrivals; /* in its lane, at the last look */
};

/* By the watcher, at each of its looks: workers that are blocked lose their seats, and spares go to work. Returns when it must look again. */
hd_time hd__spare_look(struct hd__sched *sched, hd_time now);

/* By the watcher: w's runner computes, something better is ready, and the runner was not stopped. */
void hd__spare_refused(struct hd_worker *w);

/* Whether there are, or could be, spares. */
bool hd__has_spares(const struct hd__sched *sched);

/* How many spares do not rest. */
unsigned hd__spares_active(struct hd__sched *sched);

/* w's worker, inside its lane, was told SEAT: it may be back after it was away; or must step down. */
void hd__spare_settle(struct hd_worker *w);

/* By a spare that has a floor, inside its lane: gives away what is ready there and must not run there. */
void hd__spare_give(struct hd_worker *w);

/* By a spare that has a floor, on its own stack, inside its lane: as hd__spare_give, and rests if nothing is left. */
void hd__spare_keep_floor(struct hd_worker *w);

/* By a spare, at the beginning of its life, outside its lane. */
void hd__spare_begins(struct hd_worker *w);

/* By a spare that is about to sleep, or has slept: outside its lane, on its own stack. */
void hd__spare_lies_down(struct hd_worker *w);
void hd__spare_gets_up(struct hd_worker *w);

#endif
