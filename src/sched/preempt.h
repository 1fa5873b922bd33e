/* sched/preempt.h - the watcher takes a worker from a runner that does not give way by itself. */
#ifndef SCHED_PREEMPT_H
#define SCHED_PREEMPT_H

#include "sched/worker.h"

/* Whether w's runner has kept it since the watcher last looked. */
static inline bool hd__preempt_stays(struct hd_worker *w)
{
	return ld_rlx(&w->running_priority) != 0 && ld_rlx(&w->stats.switches) == ld_rlx(&w->seen.switches);
}

/* A process is about to be given this priority: from now on a runner may have to be preempted. Said before the process can be ready with it, for it may
 * never run unless the watcher knows. Any thread. */
static inline void hd__preempt_mix(struct hd__sched *sched, int priority)
{
	if (unlikely(priority != HD_PRIORITY_USER) && !ld_rlx(&sched->mixed))
		st_rlx(&sched->mixed, true);
}

/* What the watcher has found: no runner that should give way; one that should, and may do so by itself or blocks; one that was sent a signal. */
enum hd__preempt_found { HD__PREEMPT_NONE, HD__PREEMPT_DUE, HD__PREEMPT_SENT };

/* By the watcher: workers whose runners stay although they should give way are told so by a signal. Unless it returns HD__PREEMPT_NONE, it must look again soon. */
enum hd__preempt_found hd__preempt_look(struct hd__sched *sched, hd_time now);

/* All workers have ended. */
void hd__preempt_end(struct hd__sched *sched);

#endif
