/* sim/choice.h - every choice of a simulated run, drawn from its plan. */
#ifndef SIM_CHOICE_H
#define SIM_CHOICE_H

#include "sim/plan.h"

/* A run begins: plan and results are in `page`. */
void hd__sim_choice_begin(struct hd__sim_page *page);

/* Chooses one of so many options; the first is the usual one, and the first `free` cost nothing in a bounded search. `who` has the
 * process of each option; NULL: the choice is whether something fails. */
unsigned hd__sim_decide(enum hd__sim_kind kind, unsigned options, unsigned free, const hd_pid *who);

/* From now on every choice is drawn at random, or (`in_turns`) every process makes a step in its turn, whatever the plan says; nothing
 * fails. These choices are no decisions: they are not in the log. */
void hd__sim_leave_plan(bool in_turns);

/* How many virtual workers a run has when neither the plan nor the program says it. The policies random and pct vary the number: with
 * few, processes wait for a worker and priorities matter; with one for each process, any that is ready may be next. */
unsigned hd__sim_seats(void);

/* Process `who` lets others go on: the policy pct ranks it lowest from now on. Unless `surely`, it does so in one case of two: others are
 * seldom as quick as a program that trusts in a yield would have them. */
void hd__sim_yielded(hd_pid who, bool surely);

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
