/* search.h - bounded exhaustive search: all schedules with at most so many preemptions, one after the other. */
#ifndef SEARCH_H
#define SEARCH_H

#include "progress.h"
#include "subject.h"

/* Makes *plan the schedule after the one that `s` has just run: the same up to the last decision that has another option left
 * within `bound` preemptions (a failure counts as one). False: there is none. Dies when the run was too long to be searched. */
bool next_schedule(const struct subject *s, struct hd__sim_plan *plan, unsigned bound);

/* Where a search stands, in a file: of what with which bound (a number for both), the next plan, how many have been run. False:
 * there is no such file. Dies when it is of another search. */
bool load_checkpoint(const char *file, uint64_t search, struct hd__sim_plan *plan, uint64_t *done);
void save_checkpoint(const char *file, uint64_t search, const struct hd__sim_plan *plan, uint64_t done);

#endif
