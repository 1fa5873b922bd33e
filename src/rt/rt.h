/* rt/rt.h - start, stop, wiring: the room that sees all others. */
#ifndef RT_RT_H
#define RT_RT_H

#include <signal.h>

#include "life/life.h"

/* hd_run with other doors than the usual ones (tests, the simulator). A NULL door is the usual one. */
int hd__run_with(const struct hd_config *config, const struct hd__doors *doors, hd_entry main, void *arg);

/* The configuration: defaults, then the caller's, then the environment's. Returns 0 or -errno, and has said why to stderr. */
int hd__config_resolve(struct hd_config *resolved, const struct hd_config *given);

/* Begins the end: hd_run will return `code`. Any thread, inside no lane. */
void hd__stop(struct hd__sched *sched, int code);

/* Nothing is ready (a hook of sched/). */
hd_time hd__idle(struct hd_worker *w);

/* Begins the end if no process counts and nothing holds the runtime open (a hook of sched/). Any thread, inside no lane. */
void hd__stop_if_over(struct hd__sched *sched);

/* The runtime may be ending, or over (a hook of sched/). */
void hd__look(struct hd_worker *w);

/* All workers have run for the last time: ends what the stop left, and waits for plain threads to leave. */
void hd__stop_finish(struct hd__sched *sched);

/* Prints what each process does, and where. Any thread, inside no lane. */
void hd__report(struct hd__sched *sched, const char *headline);

/* Prints where these return addresses are, the innermost first, but for heddle's own. */
#define HD__FRAMES_MAX 24
void hd__print_frames(void *const frames[], int n);

/* The return addresses on the stack of a process that does not run. Returns how many; 0 when they cannot be found. Any thread. */
int hd__walk(struct hd_process *p, void *frames[HD__FRAMES_MAX]);

/* SIGQUIT prints the report of all processes before it does what it did before, unless the program has its own action. hd__quit is the
 * watcher's part (a hook of sched/). */
void hd__quit_watch_start(struct hd__sched *sched);
void hd__quit_watch_stop(struct hd__sched *sched); /* NULL: in a forked child */
void hd__quit(struct hd__sched *sched);

/* A call of p's, made or passed on by `by`, is refused, because `to` waits for p: prints the chain of calls (a hook of sched/). */
void hd__call_refused(struct hd__sched *sched, struct hd_process *p, hd_pid by, hd_pid to);

/* The runner is about to wait for an owner: reports it if that closes a circle, or if the owner has ended (a hook of sched/). */
void hd__circle_look(struct hd_worker *w, struct hd_process *me);

/* A process has ended: reports the processes that wait for what it has not given up (a hook of sched/). */
void hd__owner_ended(struct hd_worker *w);

/* Names the process whose stack overflowed, while the runtime runs. The action is for all; each worker's thread needs a stack for
 * it. */
void hd__overflow_watch_start(void);
void hd__overflow_watch_stop(void); /* also in a forked child */

struct hd__signal_stack {
	stack_t before;
	void *memory;
};
int hd__signal_stack_start(struct hd__signal_stack *s); /* 0 or -ENOMEM */
void hd__signal_stack_stop(struct hd__signal_stack *s);

#endif
