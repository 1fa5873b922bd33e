/* sched/blocked.c - workers whose runner is blocked in the kernel are told of (config.warn_blocked).
 *
 * A runner is blocked if it has had its worker for BLOCKED, has hardly used the CPU in that time, and its thread sleeps in the kernel: one that only
 * waits for a CPU does not. A runner that computes begins anew: it may block later.
 *
 * Owns:      w->stay.
 * Callers:   the watcher. While a worker is busy, it looks every 10 ms at least. */
#include "sched/blocked.h"

#include "os/blocked.h"
#include "sched/sched.h"

#define BLOCKED HD_MS(40)
#define SHARE 8 /* of that time, on the CPU: then it computes */

/* A stay begins: the runner is a new one, or was seen to compute. */
static void begin(struct hd_worker *w, uint64_t switches, hd_time now)
{
	w->stay = (struct hd__stay){ switches, now, hd__os_thread_cpu_time(ld_rlx(&w->thread.id)), false };
}

static void look(struct hd_worker *w, hd_time now)
{
	uint64_t switches = ld_rlx(&w->stats.switches);
	int id = ld_rlx(&w->thread.id);
	struct hd__blocked_in where;

	if (ld_seq(&w->attention) & HD__ASLEEP || ld_rlx(&w->running_priority) == 0 || switches != w->stay.switches) {
		begin(w, switches, now);
		return;
	}
	if (w->stay.told || now - w->stay.since < BLOCKED || id == 0)
		return;
	if (!hd__os_is_blocked(id, &where) || where.cpu_time - w->stay.cpu_time > BLOCKED / SHARE) {
		begin(w, switches, now);
		return;
	}
	w->stay.told = true;
	w->sched->hooks.worker_blocked(w, &where, now - w->stay.since);
}

void hd__blocked_look(struct hd__sched *sched, hd_time now)
{
	for (unsigned i = 0; i < hd__workers(sched); i++)
		look(&sched->workers[i], now);
}
