/* sched/share.h - the ready processes that may run on any worker, and where they wait for one.
 *
 * Most processes are pinned: their worker's own run queue holds them, and nobody else looks at it. A process that roams (it
 * has never run, or is movable) waits in its worker's share, a second run queue, under a lock, from which others may take it.
 * The two are one queue to their worker: the number of its arrival says who of two equals came first.
 *
 * `home` is changed by whoever takes the process out of a share, under that share's lock, and by whoever wakes a movable
 * process, under the lock of its home's share; and never while a nudge is on its way to it, so that nobody moves away from
 * what is asked of him. So a worker that holds the lock of its own share and finds itself to be the home of a process
 * owns it; and any thread owns a process that it has held (hd__share_hold). */
#ifndef SCHED_SHARE_H
#define SCHED_SHARE_H

#include "sched/runq.h"

#define HD__WORKERS_MAX 1024

struct hd__sched;
struct hd_worker;

struct hd__share {
	unsigned char lock;
	uint64_t first;	  /* the rank of whoever is first; 0: nobody is there. Written under the lock, read by anybody */
	uint64_t ripe;	  /* who arrived up to this one has waited for long enough; written by the watcher and the owner */
	unsigned counted; /* how many are not daemons, and not movable: those are counted elsewhere */
	unsigned length;
	struct hd__runq queue;
};

/* What workers tell each other, a byte for each, so that a few loads show all of them. */
#define HD__NOBODY 127 /* running: idle */
struct hd__board {
	uint64_t running[HD__WORKERS_MAX / 8] __attribute__((aligned(64))); /* bytes: the priority of whoever runs there */
	uint64_t shared[HD__WORKERS_MAX / 8] __attribute__((aligned(64)));  /* bytes: the highest in its share; 0: none */
	uint64_t idle[HD__WORKERS_MAX / 64] __attribute__((aligned(64)));   /* bits: it sleeps, or is about to */
	bool searching; /* somebody idle is looking about before going to sleep; exchanged */
};

void hd__board_init(struct hd__board *board);

/* The rank of a ready process on its worker: the higher level, then the earlier arrival. Never 0. */
#define HD__ARRIVALS_MAX ((UINT64_C(1) << 56) - 1)
static inline uint64_t hd__rank(const struct hd_process *p)
{
	return (uint64_t)p->priority << 56 | (HD__ARRIVALS_MAX - p->arrival);
}

static inline int hd__rank_level(uint64_t rank)
{
	return (int)(rank >> 56);
}

static inline uint64_t hd__rank_arrival(uint64_t rank)
{
	return HD__ARRIVALS_MAX - (rank & HD__ARRIVALS_MAX);
}

/* The rank of the first in a run queue; 0: it is empty. */
static inline uint64_t hd__runq_first(struct hd__runq *q)
{
	if (q->highest == 0)
		return 0;
	return hd__rank(q->only != NULL ? q->only : hd__runq_level(q, q->highest)->head);
}

/* The three commands of the seeds, for what may move. */

/* Puts a process that is ready and at home here into w's share, at the tail of its level, and lets others know. On w. */
void hd__share_put(struct hd_worker *w, struct hd_process *p);

/* The same for a process that is leaving the worker: it can be seen by others only when it is off its stack, so the lock is
 * held until then (w->release). At the head, or at the tail. */
void hd__share_put_leaving(struct hd_worker *w, struct hd_process *me, bool tail);

/* From a plain thread: makes a new process ready, in the share of a worker, which it returns, and publishes its control word. */
struct hd_worker *hd__share_send(struct hd__sched *sched, struct hd_process *p, uint64_t control);

/* Takes the first out of w's share if its rank is at least this; NULL when there is none such. On w. */
struct hd_process *hd__share_take(struct hd_worker *w, uint64_t least);

/* Takes this very process, wherever it is, if it is in a share and has never run. It is w's then. On w. */
bool hd__share_take_this(struct hd_worker *w, struct hd_process *p);

/* Takes one of a level above `level`, the highest, from somebody else's share; NULL when there is none. It is w's, in no queue,
 * and must run at once. On w. */
struct hd_process *hd__share_steal(struct hd_worker *w, int level);

/* Idle: moves into w's share what has waited elsewhere for long enough, up to half of a share. Returns whether there was
 * something. On w. */
bool hd__share_steal_ripe(struct hd_worker *w);

/* w runs something else than what it put into its share last: others are told of that. */
void hd__share_announce(struct hd_worker *w);

/* Whether anybody else has something of a level above `level`, or (0) that has waited for long enough. */
bool hd__share_elsewhere(struct hd_worker *w, int level);

/* A movable process, whose wait w has ended, comes to w, if it may. On w. */
bool hd__share_adopt(struct hd_worker *w, struct hd_process *p);

/* For what anybody may ask of a process that waits for a worker, or was stopped before it ever had one: its home, with the lock
 * of whose share it cannot get away; NULL when it is neither. Then any of these, and hd__share_let_go. */
struct hd_worker *hd__share_hold(struct hd__sched *sched, struct hd_process *p);
void hd__share_let_go(struct hd_worker *home, struct hd_process *p);
void hd__share_held_priority(struct hd_worker *home, struct hd_process *p, int priority);
void hd__share_held_suspend(struct hd_worker *home, struct hd_process *p);
void hd__share_held_resume(struct hd_worker *home, struct hd_process *p);

/* Takes p, at home with w and ready or stopped, out of all this: it will not run. On w, when the runtime ends. */
void hd__share_drop(struct hd_worker *w, struct hd_process *p);

/* Whoever changes the queue holds the lock; releasing it tells the others what is first now. */
void hd__share_lock(struct hd_worker *w);
bool hd__share_unlock(struct hd_worker *w); /* whether it was empty before, and is not now */

/* w runs a process of this priority from now on, or none (0). Returns whether others share something better: look only
 * when it was better, or idle, before. */
bool hd__set_level(struct hd_worker *w, int level);

/* Whether w's share has something. After hd__set_level or hd__set_idle, exact: what comes later is told. */
bool hd__shares(struct hd_worker *w);

/* Going to sleep, being awake. */
void hd__set_idle(struct hd_worker *w, bool idle);
bool hd__all_idle(struct hd__sched *sched);
bool hd__anybody_idle(struct hd__sched *sched);
bool hd__anybody_shares(struct hd__sched *sched);

/* Wakes an idle worker to look at what others share. False when there is none. */
bool hd__wake_one(struct hd__sched *sched);

/* A worker for something that any may do: an idle one, else the one that runs the least. */
struct hd_worker *hd__some_worker(struct hd__sched *sched);

/* Whether no process keeps the runtime running. Exact, if the caller's own worker counts nobody. */
bool hd__nobody_counts(struct hd__sched *sched);

#endif
