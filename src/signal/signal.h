/* signal/signal.h - what signals are to the rooms above, and to each other's files. */
#ifndef SIGNAL_SIGNAL_H
#define SIGNAL_SIGNAL_H

#include "os/signal.h"
#include "sched/worker.h"

/* The signals whose port gets a message of each (port.c). Any thread. */
hd__signals hd__signals_with_port(struct hd__sched *sched);

/* As hd__os_signals_await, by a process: other workers block the signals soon. */
int hd__signals_await(struct hd__sched *sched, hd__signals set);

struct hd_signal hd__signal_of(const siginfo_t *info);

/* No process runs any more. */
void hd__signal_ports_drop(struct hd__sched *sched);

#endif
