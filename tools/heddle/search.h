/* search.h - bounded exhaustive search: all schedules with at most so many preemptions, one after the other. */
#ifndef SEARCH_H
#define SEARCH_H

#include "progress.h"
#include "subject.h"

/* What a search has left out. */
struct left_out {
	bool beyond;   /* schedules with more preemptions than the bound */
	bool too_long; /* decisions that are not in the log, or behind too many unusual ones */
};

/* How many preemptions the run had that `s` has just made; failures count as some, and so does what starves a process. */
unsigned preemptions_of(const struct subject *s);

/* Makes *plan the schedule after the one that `s` has just run: the same up to the last decision that has another option left
 * within `bound` preemptions. False: there is none. */
bool next_schedule(const struct subject *s, struct hd__sim_plan *plan, unsigned bound, struct left_out *out);

/* Where a search stands, in a file: a number for what is searched and how far. */
struct checkpoint {
	uint64_t search, done; /* done: how many schedules have been run */
	unsigned bound;	       /* that is being searched */
	struct left_out out;   /* so far, with this bound */
};

/* Into *c and *plan, the next one to run. False: there is no such file. Dies when it is of another search than c->search. */
bool load_checkpoint(const char *file, struct checkpoint *c, struct hd__sim_plan *plan);
void save_checkpoint(const char *file, const struct checkpoint *c, const struct hd__sim_plan *plan);

#endif
