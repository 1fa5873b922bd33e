/* sched/gate.h - how plain threads get at the runtime, and how it ends without them inside. */
#ifndef SCHED_GATE_H
#define SCHED_GATE_H

#include <stdbool.h>

struct hd__sched;

/* The running runtime, which does not end before hd__gate_leave; NULL when none runs. Safe in signal handlers. */
struct hd__sched *hd__gate_enter(void);
void hd__gate_leave(void);

void hd__gate_open(struct hd__sched *sched);

/* In a forked child: nobody is inside, and there is nothing to get at. */
void hd__gate_forget(void);

/* Shuts the gate; false when somebody is inside, and then nothing has changed. */
bool hd__gate_close(void);

#endif
