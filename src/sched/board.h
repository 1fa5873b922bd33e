/* sched/board.h - what workers tell each other without entering each other's lanes: what each runs, what it has ready, which of them sleep. */
#ifndef SCHED_BOARD_H
#define SCHED_BOARD_H

#include <stdbool.h>
#include <stdint.h>

#define HD__WORKERS_MAX 1024

struct hd__sched;
struct hd_worker;

/* A byte or a bit for each worker, so that a few loads show all of them. */
#define HD__NOBODY 127 /* running: the worker is idle */
struct hd__board {
	uint64_t running[HD__WORKERS_MAX / 8]
		__attribute__((aligned(64))); /* bytes: the priority of the process that runs there */
	uint64_t adverts[HD__WORKERS_MAX / 8]
		__attribute__((aligned(64))); /* bytes: at least the highest level that may be taken there */
	uint64_t idle[HD__WORKERS_MAX / 64] __attribute__((aligned(64))); /* bits: it sleeps, or is about to */
	uint64_t
		resting[HD__WORKERS_MAX / 64]; /* bits: a spare that is not needed; it sleeps, or is about to (sched/spare.c) */
	uint64_t away[HD__WORKERS_MAX /
		      64];  /* bits: a worker that has lost its seat, because it is blocked in the kernel (likewise) */
	unsigned idlers;    /* how many bits of `idle` are up; a hint */
	unsigned searchers; /* how many workers search; a hint */
	bool searching; /* a worker without work looks for some before it sleeps, or has just been woken to: none need be woken; exchanged */
};

void hd__board_init(struct hd__board *board);

/* w runs a process of this priority from now on, or none (0). Returns whether another worker advertises a higher level, which the
 * caller must then look for: exact, if w ran a higher level, or none, before. */
bool hd__set_level(struct hd_worker *w, int level);

/* Inside w's lane: w's advert becomes `level`. Raised, before the lane is left, by the thread that put something better into its
 * queue, which then calls hd__tell_those_below; lowered to the truth by a visitor that found nothing to take. */
void hd__set_advert(struct hd_worker *w, int level);

/* Something of this level is ready in w's lane and w runs something as good: every other worker that runs less is told to look,
 * because it is not known which of them comes to a safe point first. */
void hd__tell_those_below(struct hd_worker *w, int level);

/* The next worker after v (NULL: the first), other than w, whose advert is above `level`; NULL when there is none. */
struct hd_worker *hd__next_advert(struct hd_worker *w, struct hd_worker *v, int level);

/* w goes to sleep; is awake. */
void hd__set_idle(struct hd_worker *w, bool idle);

/* Every worker is idle, or rests. */
bool hd__all_idle(struct hd__sched *sched);

/* A spare rests, and may be taken out of the set of those that do; is awake. Of the second: whether it is still in the set. */
void hd__set_resting(struct hd_worker *w);
bool hd__rests(const struct hd_worker *w);
bool hd__end_resting(struct hd_worker *w);

/* Takes a spare that rests out of their set; false: it was not in it any more. The caller must raise its attention. */
bool hd__claim_resting(struct hd_worker *w);

/* w has lost its seat; has it again: whether it had been away. */
void hd__set_away(struct hd_worker *w);
bool hd__end_away(struct hd_worker *w);
bool hd__is_away(const struct hd_worker *w);

/* Takes an idle worker out of the set of idle ones; NULL when there is none. The caller must raise its attention. */
struct hd_worker *hd__claim_idle(struct hd__sched *sched);

/* Wakes an idle worker to look for work, unless one is looking already. */
void hd__wake_searcher(struct hd__sched *sched);

/* A worker for something that any may do: an idle one, else the one that runs the lowest level; none that is away or has a floor, if there is another. */
struct hd_worker *hd__some_worker(struct hd__sched *sched);

/* Whether w is idle, or runs less than `level`. */
bool hd__is_better_there(struct hd_worker *w, int level);

#endif
