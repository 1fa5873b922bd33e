/* sched/gate.h - how plain threads get at the runtime, and how it ends without them inside. */
#ifndef SCHED_GATE_H
#define SCHED_GATE_H

#include <heddle/base.h>
#include <stdbool.h>

struct hd__sched;

/* The running runtime, which does not end before hd__gate_leave; NULL when none runs. Safe in signal handlers. */
struct hd__sched *hd__gate_enter(void);
void hd__gate_leave(void);

/* As hd__gate_enter, for a caller that knows that the runtime cannot end before it has done what it comes for. */
void hd__gate_enter_surely(void);

void hd__gate_open(struct hd__sched *sched);

/* From now on no thread enters. */
void hd__gate_shut(void);
bool hd__gate_is_empty(void);

/* Sleeps until the gate, which is shut, is empty, or a thread has left, or `until` (on the kernel's clock) has come. */
void hd__gate_wait(hd_time until);

/* In a forked child: no thread is inside, and there is nothing to get at. Returns the parent's runtime; NULL: none ran. */
struct hd__sched *hd__gate_forget(void);

#endif
