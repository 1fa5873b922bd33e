/* sim/threads.h - simulated kernel threads: the runtime itself under a plan.
 *
 * In a build of the library for this (sim/runtime/), each atomic operation and each lock is a point at which the plan may let
 * another thread go on; futexes, sleeps and the clock are virtual. The threads are stacks on the one kernel thread there is. */
#ifndef SIM_THREADS_H
#define SIM_THREADS_H

#include <stdbool.h>

/* A run is on: the caller is the first thread of it. Only in that build; false in others. */
extern bool hd__sim_threads;

/* Takes the plan that HEDDLE_SIM names, serving its explorer if there is one, and begins the run. False: there is no plan. */
bool hd__sim_threads_begin(void);

/* The run ends well if all other threads have ended: then it has its verdict. */
void hd__sim_threads_end(void);

#endif
