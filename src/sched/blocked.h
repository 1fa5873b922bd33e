/* sched/blocked.h - workers whose runner is blocked in the kernel are told of (config.warn_blocked). */
#ifndef SCHED_BLOCKED_H
#define SCHED_BLOCKED_H

#include "sched/worker.h"

/* By the watcher, at each of its looks. */
void hd__blocked_look(struct hd__sched *sched, hd_time now);

#endif
