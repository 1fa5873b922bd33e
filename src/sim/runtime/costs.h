/* sim/runtime/costs.h - a run by the clock: every thread has a CPU and a clock of its own, and pays for what it does.
 *
 * There is no plan then. The thread whose clock is the earliest goes on, up to the point at which another one's is; so operations on
 * shared memory happen in the order of the clocks, and a run is the same each time. It answers how long a program would take on so many
 * CPUs, not which order of its steps is wrong. */
#ifndef SIM_RUNTIME_COSTS_H
#define SIM_RUNTIME_COSTS_H

#include <stdbool.h>
#include <stdint.h>

#include <heddle/base.h>

#include "base/point.h"

enum hd__sim_deed {
	HD__SIM_BETWEEN, /* plain instructions from one point to the next, its load or store included */
	HD__SIM_RMW,	 /* a locked operation */
	HD__SIM_LINE,	 /* a cache line comes from the CPU that wrote it */
	HD__SIM_PAUSE,	 /* of a thread that waits for another one */
	HD__SIM_CLOCK,	 /* is read */
	HD__SIM_CALL,	 /* of the kernel, without a sleep or a wake */
	HD__SIM_WAKE,	 /* a call of the kernel that wakes another thread: what its caller pays */
	HD__SIM_BARRIER, /* on all CPUs: what its caller pays */
	HD__SIM_WORK,	 /* of the program: hd__sim_work */
	HD__SIM_DEEDS
};

struct hd__sim_costs {
	uint32_t ps[HD__SIM_DEEDS]; /* of each deed, in picoseconds */
	hd_time waking;		    /* from the call that wakes a thread to that thread's first instruction, in ns */
	hd_time oversleep;	    /* from a deadline to the first instruction of the thread that slept until then, in ns */
};

/* What all threads have done so far. */
struct hd__sim_tally {
	uint64_t times[HD__SIM_DEEDS];
	hd_time took[HD__SIM_DEEDS]; /* summed over the threads */
};

/* Begins a run by the clock: the caller is its first thread. There is one in the life of a program. */
void hd__sim_clocks_begin(const struct hd__sim_costs *costs);

/* The calling thread computes for so long. */
void hd__sim_work(hd_time ns);

void hd__sim_read_tally(struct hd__sim_tally *tally);

/* ---- for threads.c ---- */

void hd__sim_costs_begin(const struct hd__sim_costs *costs);

/* Answers how many ns a deed takes; of HD__SIM_WORK, `ns`. */
hd_time hd__sim_charge(enum hd__sim_deed deed, hd_time ns);

/* Answers how many ns an access takes beyond HD__SIM_BETWEEN. */
hd_time hd__sim_charge_access(enum hd__sim_access access, const void *where, unsigned thread, hd_time now);

#endif
