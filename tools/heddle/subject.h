/* subject.h - the program that is explored: started once, and asked to run plan after plan. */
#ifndef SUBJECT_H
#define SUBJECT_H

#include <stdbool.h>
#include <sys/types.h>

#include "sim/plan.h"

#define PATIENCE_MS 10000 /* after which a run hangs that makes no heddle call */

struct subject {
	pid_t pid;
	int command, answer; /* pipes */
	int output;	     /* what the last run printed */
	struct hd__sim_page *page;
	bool busy;
};

/* Copies a plan without the unused rest of its list. */
void copy_plan(struct hd__sim_plan *to, const struct hd__sim_plan *from);

/* Starts the program, which comes as far as its hd_run. Dies, and says why, when that is impossible. `faults`: what may fail in its
 * runs. */
void subject_start(struct subject *s, char **argv, unsigned faults);
void subject_stop(struct subject *s);

/* Has the page's plan run `count` times, with seeds from the plan's on, or till one fails, or for so many seconds (0: no limit). */
void subject_go(struct subject *s, unsigned count, double seconds);

/* Waits for the answer; then the page has the results. Dies when the program has gone. */
void subject_wait(struct subject *s);

/* One run of a plan, however long it takes. Returns its verdict. */
enum hd__sim_verdict subject_run(struct subject *s, const struct hd__sim_plan *plan);

/* As subject_run, in an OS process that keeps its terminal: no server, and the program may be debugged. `gdb`: under gdb.
 * Returns its status, as of wait(2). */
int subject_replay(const struct hd__sim_plan *plan, char **argv, bool gdb, struct subject *s);

/* The end of what the last run printed, each line with `before` before it. */
void subject_print_output(struct subject *s, const char *before);

#endif
