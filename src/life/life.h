/* life/life.h - how processes come, go and are steered; what the rooms above need of it. */
#ifndef LIFE_LIFE_H
#define LIFE_LIFE_H

#include "sched/gate.h"
#include "wait/wait.h"

/* A caller of any kind: its worker (NULL on a plain thread) and the runtime (NULL when none runs). Every call that needs a
 * runtime and may come from any thread begins and ends with these; the end is a safe point. */
struct hd__caller {
	struct hd_worker *w;
	struct hd__sched *sched;
};
static inline struct hd__caller hd__call_begin(void)
{
	struct hd_worker *w = hd__self();

	if (likely(w != NULL))
		w = hd__beginning(w);
	return (struct hd__caller){ w, likely(w != NULL) ? w->sched : hd__gate_enter() };
}

static inline void hd__call_end(struct hd__caller caller)
{
	if (likely(caller.w != NULL))
		(void)hd__safe_point(caller.w);
	else if (caller.sched != NULL)
		hd__gate_leave();
}

/* The store from which the caller takes blocks and to which it returns them. */
static inline struct hd__blocks *hd__own_blocks(struct hd__caller caller)
{
	return caller.w != NULL ? &caller.w->blocks : NULL;
}

/* The first function on a process's stack (a hook of sched/). */
void hd__begin(void *process);

/* No memory for its stack: it ends without having run (a hook of sched/). */
void hd__cannot_start(struct hd_worker *w, struct hd_process *p);

/* The runner ends. Does not return, but is not said so to the compiler: it would call it where it can jump, and the processor
 * would mispredict the returns of whoever runs next (arch/x86_64/begin.S). */
void hd__end(struct hd_worker *w, struct hd_process *me, enum hd_end_kind kind, void *result, int err);
/* The runner waits though it should end (a hook of sched/). */
void hd__doomed(struct hd_worker *w, struct hd_process *me);

/* Ends a process that has never run, or that never will again, and is in no run queue. False when a request to it is on its way: take the news, look again. */
bool hd__end_from_outside(struct hd_worker *w, struct hd_process *p, enum hd_end_kind kind, int err);

/* Spawns a process that stays on this worker. On it, while it is idle. */
hd_pid hd__spawn_here(struct hd_worker *w, const struct hd_spawn *how, hd_entry entry, void *arg);

void hd__locals_destroy(struct hd_process *me);

void hd__describe(struct hd__sched *sched, struct hd_worker *w, struct hd_process *p, struct hd_process_info *info);
const char *hd__wait_name(enum hd_wait why);

#endif
