/* rt/rt.h - start, stop, wiring: the room that sees all others. */
#ifndef RT_RT_H
#define RT_RT_H

#include "life/life.h"

/* hd_run with other doors than the usual ones (tests, the simulator). A NULL door is the usual one. */
int hd__run_with(const struct hd_config *config, const struct hd__doors *doors, hd_entry main, void *arg);

/* The configuration: defaults, then the caller's, then the environment's. Returns 0 or -errno, and has said why to stderr. */
int hd__config_resolve(struct hd_config *resolved, const struct hd_config *given);

/* Begins the end: hd_run will return `code`. On the worker. */
void hd__stop(struct hd_worker *w, int code);

/* Nothing is ready, or nobody counts (a hook of sched/). */
hd_time hd__idle(struct hd_worker *w);

/* A plain thread called hd_shutdown (a hook of sched/). */
void hd__stop_asked(struct hd_worker *w);

/* The worker has run for the last time: ends what the stop left, and waits for plain threads to leave. */
void hd__stop_finish(struct hd_worker *w);

/* Prints who waits for what. */
void hd__report_stuck(struct hd_worker *w, const char *headline);

/* Names the process whose stack overflowed, while the runtime runs. */
struct hd__overflow_watch;
struct hd__overflow_watch *hd__overflow_watch_start(void);
void hd__overflow_watch_stop(struct hd__overflow_watch *watch);
void hd__overflow_watch_forget(void); /* in a forked child */

#endif
