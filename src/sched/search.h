/* sched/search.h - a worker with nothing to run looks for something, before it sleeps. */
#ifndef SCHED_SEARCH_H
#define SCHED_SEARCH_H

#include <heddle/base.h>

#include <stdbool.h>

struct hd_worker;

#define HD__SEARCH_LONG HD_US(100) /* at most, however dear a wake is (rule 10) */
#define HD__SEARCH_LUCK 4	   /* searches in vain until they become rare */
#define HD__RIPE HD_US(5)	   /* what has been ready behind a runner for so long may be taken, at first */

/* What a worker knows of its searches. Its own. */
struct hd__search {
	bool on;	      /* it has board.searching */
	unsigned luck, gloom; /* searches in vain until they become rare; idle times since then */
	hd_time ripe;	      /* takes what has been ready for so long */
	hd_time stole_at;     /* when it last took something; 0: it has learned from that */
	unsigned lock_waits;  /* of its thread, then */
	hd_time rest, until;  /* thefts in vain, one after the other: it takes nothing for so long; until then */
};

#define HD__SEARCH_INIT                                                                                                        \
	{                                                                                                                      \
		.luck = HD__SEARCH_LUCK, .ripe = HD__RIPE                                                                      \
	}

/* Half of the workers that are awake may search. One at a time is woken for it: one that finds something has the next one woken if there is more. A worker that has found nothing
 * for a while hardly tries. Returns whether there is something to do now. */
bool hd__search(struct hd_worker *w);

/* Another worker may search. */
void hd__end_search(struct hd_worker *w);

/* The next worker after number `last`, around the circle, that has something ready behind its runner; NULL when there is none. */
struct hd_worker *hd__with_surplus(struct hd_worker *w, unsigned last);

#endif
