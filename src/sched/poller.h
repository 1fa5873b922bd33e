/* sched/poller.h - how an idle worker sleeps, and hears of what happens outside the program.
 *
 * The poll seam: a worker that has nothing to run calls `wait`, and a thread that has news for it calls `wake`. A worker that is busy
 * calls `wait` too, now and then, only to look. The usual one is in io/poller.c; the simulator has its own. */
#ifndef SCHED_POLLER_H
#define SCHED_POLLER_H

#include "os/outside.h"

struct hd__sched;
struct hd_worker;

struct hd__poller {
	/* Sleeps until `until`, an event or a wake, while w's attention is HD__ASLEEP; may return early for no reason. If `until` has passed
	 * it only looks. Puts at most n events into `events` and returns how many: they are the caller's to deliver. Outside all lanes,
	 * on w's thread; only to look, on any thread. */
	int (*wait)(struct hd_worker *w, hd_time until, struct hd__happening *events, int n);
	/* Ends the wait of w. Any thread, any signal handler. */
	void (*wake)(struct hd_worker *w);
	/* Delivers n events. Inside the lane of the worker w, or on another thread (NULL). */
	void (*happened)(struct hd__sched *sched, struct hd_worker *w, const struct hd__happening *events, int n);
};

#endif
