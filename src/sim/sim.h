/* sim/sim.h - the simulator: a program's processes on virtual workers, in virtual time, every choice drawn from a plan.
 *
 * HEDDLE_SIM in the environment switches it on (see server.c). All processes run on the one kernel thread that called hd_run;
 * at every heddle call the plan says which of the processes that have a virtual worker does the next step. */
#ifndef SIM_SIM_H
#define SIM_SIM_H

#include <heddle/runtime.h>

#include "sched/worker.h"
#include "sim/plan.h"

/* Whether hd_run should be simulated. */
bool hd__sim_begin(void);

/* In a program that an explorer started the first call does not return: it serves. It returns once in each of the OS processes
 * that it forks, for one run. */
void hd__sim_serve(void);

/* Whether this OS process was forked for one run, and will end after it. */
bool hd__sim_is_served(void);

/* Virtual time: it stands still while no runtime runs. */
extern const struct hd__clock hd__sim_clock;

/* What hd_run runs with instead of the usual doors. `vary`: the program does not say how many workers it wants. */
const struct hd__doors *hd__sim_doors(bool vary);

/* The run cannot go on, and its verdict is told; hd__sim_leaves, if it is not NULL, is called. Does not return. */
extern void (*hd__sim_leaves)(void);
void hd__sim_leave(void);

#endif
