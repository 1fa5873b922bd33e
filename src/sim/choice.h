/* sim/choice.h - every choice of a simulated run, drawn from its plan. */
#ifndef SIM_CHOICE_H
#define SIM_CHOICE_H

#include "sim/plan.h"

/* A run begins: plan and results are in `page`. */
void hd__sim_choice_begin(struct hd__sim_page *page);

/* Chooses one of so many options; the first is the usual one. `who` has the process of each option; NULL: the choice is whether
 * something fails. */
unsigned hd__sim_decide(enum hd__sim_kind kind, unsigned options, const hd_pid *who);

/* Process `who` should let others go on: the policy pct ranks it lowest from now on. */
void hd__sim_yielded(hd_pid who);

/* Whether a process that has made so many steps in a row is taken to wait for another one by looking again and again: after 500
 * to 999 steps, a number that changes, or the process might be interrupted at the same place each time. */
bool hd__sim_insists(unsigned steps_in_a_row);

/* Something happened that two runs of the same plan must have in common. */
void hd__sim_mix(uint64_t what);

/* Whether every option that the plan lists has been used. */
bool hd__sim_is_used_up(void);

/* The run cannot go on. Does not return. */
void hd__sim_give_up(enum hd__sim_verdict verdict);

#endif
