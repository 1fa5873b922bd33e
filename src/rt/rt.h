/* rt/rt.h - start, stop, wiring: the room that sees all others. */
#ifndef RT_RT_H
#define RT_RT_H

#include <signal.h>

#include "life/life.h"
#include "os/blocked.h"

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

/* Tools that read this program's memory find the runtime, from before its first process runs; and find none any more (rt/inside.h). */
void hd__inside_open(struct hd__sched *sched);
void hd__inside_shut(void); /* also in a forked child */

/* HEDDLE_TRACE=FILE[:SIZE] (rt/trace.c): traces from the start, SIZE events for each worker, and writes what the tapes have into FILE: with each report, and at
 * the end. Returns 0 or -errno, and has said why to stderr. */
int hd__trace_configure(struct hd__sched *sched);
void hd__trace_write(struct hd__sched *sched); /* any thread, inside no lane */

/* Prints what each process does, and where. Any thread, inside no lane. */
void hd__report(struct hd__sched *sched, const char *headline);

/* Prints where these return addresses are, the innermost first, but for heddle's own. */
#define HD__FRAMES_MAX 24
void hd__print_frames(void *const frames[], int n);

/* The return addresses on the stack of a process that does not run. Returns how many; 0 when they cannot be found. Any thread. */
int hd__walk(struct hd_process *p, void *frames[HD__FRAMES_MAX]);

/* As hd__walk, of the runner p of w, whose thread is blocked in the kernel. Functions that have a frame pointer may end the list. */
int hd__walk_blocked(struct hd_worker *w, struct hd_process *p, const struct hd__blocked_in *where, void *frames[HD__FRAMES_MAX]);

/* Whether this place of the program, whatever number stands for it, has not been told of; now it has. Any thread. */
bool hd__is_new_site(struct hd__sched *sched, uint64_t site);

/* Prints the circles of processes that wait for each other. Any thread, inside no lane. */
void hd__print_circles(struct hd__sched *sched);

/* What SIGQUIT does, unless the program has its own action (HEDDLE_QUIT): prints what all processes do, and then what it did before: the program dies,
 * perhaps with a core file; or prints that, and the program goes on; or what it did before. hd__quit is the watcher's part (a hook of sched/). */
enum hd__quit { HD__QUIT_CORE, HD__QUIT_DUMP, HD__QUIT_OFF };
int hd__config_quit(uint8_t *quit); /* 0 or -EINVAL, and has said why to stderr */
void hd__quit_watch_start(struct hd__sched *sched);
void hd__quit_watch_stop(struct hd__sched *sched); /* NULL: in a forked child */
void hd__quit(struct hd__sched *sched);

/* A call of p's, made or passed on by `by`, is refused, because `to` waits for p: prints the chain of calls (a hook of sched/). */
void hd__call_refused(struct hd__sched *sched, struct hd_process *p, hd_pid by, hd_pid to);

/* The runner is about to wait for an owner: reports it if that closes a circle, or if the owner has ended (a hook of sched/). */
void hd__circle_look(struct hd_worker *w, struct hd_process *me);

/* The runner, a behaviour that has cowns and should not wait, has begun to wait: reports it (a hook of sched/). */
void hd__holder_waits(struct hd_worker *w, struct hd_process *me);

/* A worker's runner is blocked in the kernel: reports it (a hook of sched/). */
void hd__worker_blocked(struct hd_worker *w, const struct hd__blocked_in *where, hd_time since);

/* A process has ended: reports the processes that wait for what it has not given up (a hook of sched/). */
void hd__owner_ended(struct hd_worker *w);

/* Names the process that crashes, while the runtime runs: by an overflow of its stack, a fault, abort. The action is for all; each worker's thread needs a stack for
 * it. */
void hd__crash_watch_start(void);
void hd__crash_watch_stop(void); /* also in a forked child */

struct hd__signal_stack {
	stack_t before;
	void *memory;
};
int hd__signal_stack_start(struct hd__signal_stack *s); /* 0 or -ENOMEM */
void hd__signal_stack_stop(struct hd__signal_stack *s);

#endif
