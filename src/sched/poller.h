/* sched/poller.h - how an idle worker sleeps.
 *
 * The poll seam: a worker that has nothing to run calls `wait`, and a thread that has news for it calls `wake`. The futex poller
 * knows no events but these; one that watches file descriptors, or a simulated one, takes its place. */
#ifndef SCHED_POLLER_H
#define SCHED_POLLER_H

#include <heddle/base.h>

struct hd__poller {
	/* Sleeps until `until` or a wake, while *word is `value`; may return early for no reason. */
	void (*wait)(struct hd__poller *poller, uint32_t *word, uint32_t value, hd_time until);
	/* Ends the wait of the worker that sleeps on that word. Any thread, any signal handler. */
	void (*wake)(struct hd__poller *poller, uint32_t *word);
};

extern struct hd__poller hd__futex_poller;

#endif
