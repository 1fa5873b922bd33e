/* sim/circle.h - whether a run that does not end goes in a circle.
 *
 * Where every process makes a step in its turn and nothing is left to choose, a program that comes into a state for the second time
 * comes into it for ever. A state is all that the program could go on from: its memory, the stacks and registers of its processes,
 * what they wait for and how long still. What heddle keeps for itself (counts of switches, the time) is none of it. So a program that
 * asks for the time is never said to go in a circle, nor is one that counts its rounds. */
#ifndef SIM_CIRCLE_H
#define SIM_CIRCLE_H

#include "sched/worker.h"

/* The run begins, on the stack of the thread that called hd_run. */
void hd__sim_circle_begin(void);

/* A step is over, with every process in its turn: `me` has made it and is on its stack still (NULL: it has ended, or none ran);
 * `next` makes the next one, and `order` is a number for the order of the others. Returns the length of the circle in which the run has
 * gone for some thousands of steps; 0: none. */
uint32_t hd__sim_circle_step(struct hd_worker *w, const struct hd_process *me, hd_pid next, uint64_t order);

#endif
