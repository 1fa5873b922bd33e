/* obs/trace.h - the trace seam: every change of a process's state, in a ring.
 *
 * Off unless a trace is handed in at start; then each event is recorded with the exact time. */
#ifndef OBS_TRACE_H
#define OBS_TRACE_H

#include <heddle/base.h>

struct hd__event {
	hd_time when;
	hd_pid pid;
	uint8_t from, to; /* enum hd_state; 0: free */
	uint8_t why;	  /* enum hd_wait, when `to` is HD_WAITING */
	uint8_t level;	  /* its priority */
	uint8_t eligible; /* when `to` is HD_RUNNING: the highest priority that was ready for this worker and not taken */
	uint16_t worker;  /* where */
};

/* The last `size` events; `size` is a power of two. Any thread inside a lane writes, under this lock. */
struct hd__trace {
	struct hd__event *events;
	uint64_t size, count; /* count: events ever recorded; the next goes to count % size */
	unsigned char lock;
};

void hd__trace_record(struct hd__trace *trace, struct hd__event event);

#endif
