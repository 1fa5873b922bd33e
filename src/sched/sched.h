/* sched/sched.h - who runs next, and when the runner gives way. Called on the worker, mostly by the runner itself. */
#ifndef SCHED_SCHED_H
#define SCHED_SCHED_H

#include "sched/worker.h"

/* The slow side of a safe point: takes in what has come, then gives way if the runner should. */
void hd__attend(struct hd_worker *w);

/* A safe point. */
static inline void hd__safe_point(struct hd_worker *w)
{
	if (unlikely((ld_rlx(&w->attention) | w->resched) != 0)) /* a hint: hd__attend reads it again, with acquire */
		hd__attend(w);
}

/* Takes in what has come (notes, alarms) without giving way. On a process or idle. */
void hd__take_news(struct hd_worker *w);

/* Makes p ready, at the tail of its level (or suspended, if it should be). If it should run before the runner, the runner's
 * next safe point lets it. */
void hd__make_ready(struct hd_worker *w, struct hd_process *p);

/* The runner has left the state RUNNING and put itself where it belongs: gives the worker to the next. Returns when the
 * caller runs again. */
void hd__leave(struct hd_worker *w, struct hd_process *me);

/* The same, but to `next`, which hd__can_hand_off has found fit. */
void hd__leave_to(struct hd_worker *w, struct hd_process *me, struct hd_process *next);

/* Rule 9: whether p, ready here and never run, may run at once in place of the runner, if that waits now. */
bool hd__can_hand_off(struct hd_worker *w, struct hd_process *p);

/* Idle: runs the next process; returns when nothing is ready again. */
void hd__run_next(struct hd_worker *w);

/* The runner has ended, its stack and block are given back: goes on with the next. */
__attribute__((noreturn)) void hd__leave_for_good(struct hd_worker *w, struct hd__fiber *me);

/* On the next stack, first of all: what the one before could not do on its own. */
void hd__arrive(struct hd_worker *w);

/* Another policy for p, whatever it is doing. */
void hd__set_policy_owner(struct hd_worker *w, struct hd_process *p, enum hd_policy policy);

/* The worker's alarm may have become another one. */
void hd__set_alarm(struct hd_worker *w);

#endif
