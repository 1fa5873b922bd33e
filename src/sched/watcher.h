/* sched/watcher.h - the thread that looks at the clock for workers that are busy. */
#ifndef SCHED_WATCHER_H
#define SCHED_WATCHER_H

#include <heddle/base.h>

#include "base/atomic.h"
#include "os/thread.h"

struct hd__sched;

/* What the watcher saw of a worker when it last looked. */
struct hd__seen {
	hd_time alarm;
	uint64_t switches; /* (*) */
	uint64_t arrivals;
	hd_time cpu_time; /* of its thread, if its runner stays (sched/preempt.c); 0: unknown */
	uint32_t attention;
};

/* Since when a worker has had the same runner, and has not been seen to compute (sched/blocked.c). */
struct hd__stay {
	uint64_t switches;
	hd_time since, cpu_time;
	bool told; /* that it is blocked */
};

struct hd__watcher {
	hd_time until;	     /* it sleeps until then; written by it alone, read by workers, both seq_cst (see watcher.c) */
	uint32_t kicks;	     /* the futex word */
	hd_time pause;	     /* its own */
	unsigned tries;	     /* its own: looks in a row at which a runner was sent a signal (sched/preempt.c) */
	hd_time outside;     /* its own: at most so long between two looks at workers that watch something outside */
	hd_time vigil;	     /* its own: a worker was blocked not long before this (sched/spare.c) */
	hd_time start_again; /* its own: no kernel thread is started before (sched/spare.c) */
	bool searching;	     /* board.searching was up at its last look; its own */
	uint32_t
		visits; /* to lanes: begun and ended, so that it is odd while one is on; written by it alone, read by workers, seq_cst */
	bool quit; /* SIGQUIT has come; set by a signal handler on any thread */
	bool stop;
	struct hd__thread thread;
};

/* Returns 0 or -EAGAIN. */
int hd__watcher_start(struct hd__sched *sched);
void hd__watcher_stop(struct hd__sched *sched);

void hd__watcher_kick(struct hd__watcher *watcher);

/* For hd__watcher_need: no time in particular, but not for ever. */
#define HD__BUSY (HD_FOREVER / 2)

/* By how much a worker that computes without safe points may be told late. Waking the watcher costs about as much. */
#define HD__WATCHER_SLACK HD_US(200)

/* A busy worker needs it awake at `when`. Its alarm must have been stored, or its attention cleared, seq_cst before. */
static inline void hd__watcher_need(struct hd__watcher *watcher, hd_time when)
{
	if (unlikely(when < ld_seq(&watcher->until) - HD__WATCHER_SLACK))
		hd__watcher_kick(watcher);
}

#endif
