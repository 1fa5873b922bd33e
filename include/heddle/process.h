/* heddle/process.h - lightweight processes.
 *
 * A process runs a function on a stack of its own until it returns, waits, yields or a higher priority takes the worker. Within
 * a priority, the processes of a worker run in the order in which they became ready; a lower priority runs only when no higher
 * one can. Heddle calls are safe points, where a process that should not be running now gives way. Not so the calls that only
 * look at the caller or set something of its own: hd_self, hd_pin, hd_mutex_is_mine, those on locals, cleanups and the like. */
#ifndef HEDDLE_PROCESS_H
#define HEDDLE_PROCESS_H

#include <heddle/base.h>

HD_BEGIN

/* Priorities go from 10 to 80; these have names. A new process has its creator's, the first process has 40. */
enum {
	HD_PRIORITY_TIMING = 80,
	HD_PRIORITY_HIGH_IO = 70,
	HD_PRIORITY_LOW_IO = 60,
	HD_PRIORITY_USER_INTERRUPT = 50,
	HD_PRIORITY_USER = 40,
	HD_PRIORITY_USER_BACKGROUND = 30,
	HD_PRIORITY_SYSTEM_BACKGROUND = 20,
	HD_PRIORITY_LOWEST = 10
};

/* When equals take the worker from a process that neither waits nor yields. */
enum hd_policy {
	HD_POLICY_DEFAULT = 0, /* what hd_config says */
	HD_FIFO,	       /* never */
	HD_RR,		       /* when its quantum is over; the rest of a quantum survives preemption */
	HD_IO		       /* as HD_RR, but a quantum begins only while no event is pending */
};

/* Longest name of a process, its final 0 included. */
#define HD_NAME_SIZE 32

struct hd_group;
struct hd_machine_ops;
struct hd_port;

/* How to spawn. Zeroed memory means all defaults.
 *
 * A process that needs more than its stack has is caught in the guard below the stack: a message names it, and the program aborts. The
 * guard has 64 KiB. A larger frame can jump over it, unless the function was compiled with -fstack-clash-protection, which pkg-config
 * passes.
 *
 * With own_tls, a process has what a kernel thread has in the C library: every thread-local variable with its first value (of C, C++ and of libraries, which may
 * be loaded later), errno, the locale of uselocale, the ownership of stdio's locks, the C++ exceptions that it handles. All of that moves with the process, so
 * it need not be pinned, and addresses of such variables hold over heddle calls. hd_blocking's function finds the same variables. At the end of the process
 * the destructors of its thread_local variables run, after those of its locals; they may wait. It costs some 5 KiB for each process, which are kept for
 * later ones, and two changes of a register at a switch from or to such a process. It takes the GNU C library, linked dynamically, and neither ASan, TSan
 * nor Valgrind. Such a process must not call pthread_exit, nor setuid and its relatives, and has no values of pthread keys at its beginning; their
 * destructors are not called. */
struct hd_spawn {
	const char *name;	/* copied; NULL is none */
	int priority;		/* 0 is the creator's */
	enum hd_policy policy;	/* 0 is the runtime's */
	size_t stack_size;	/* bytes, rounded up to a power of two; 0 is the runtime's */
	bool suspended;		/* does not start before hd_resume */
	bool daemon;		/* does not keep the runtime running */
	bool detached;		/* it cannot be joined, and is forgotten when it ends */
	bool pinned;		/* stays on the kernel thread where it first runs, as if it began with hd_pin */
	bool own_tls;		/* has thread-local variables of its own, which move with it; see below */
	struct hd_group *group; /* of which it is a member (group.h); NULL is none */
	struct hd_port *port;	/* unowned so far: it is the owner from its first moment on (port.h); NULL is none */
	bool link;		/* it is linked with the process that spawns it (link.h) */
	struct hd_port *watch;	/* where the notice of its end goes (link.h); NULL is nowhere */
	/* It is a machine, whose turns these are, and its argument is their `self` (machine.h); no entry is needed. NULL: it is not. */
	const struct hd_machine_ops *machine;
};

/* All defaults, to be changed field by field. For C++, which has no compound literals, and where the name hd_spawn without `struct` means
 * the function: auto how = hd_spawn_how(). Any thread. */
static inline struct hd_spawn hd_spawn_how(void)
{
	static struct hd_spawn defaults;
	return defaults;
}

/* Makes a process that runs entry(arg). The new process is ready, at the tail of its level; if its priority is higher than
 * the caller's, it runs at once. hd_spawn_at gives the priority, hd_spawn_with everything else (NULL is all defaults).
 * Answers its id (positive), or
 *
 *   -EINVAL         entry is NULL, and it is no machine; or a field is out of range; or it is a machine with own_tls
 *   -EBUSY          the port has, or had, another owner
 *   -ENAMETOOLONG   the name needs more than HD_NAME_SIZE bytes
 *   -ENOMEM         no memory, no address space for its stack, or (Linux before 6.13) no mapping for its guard
 *   -EAGAIN         2^24 processes exist (fewer under ulimit -v)
 *   -ESHUTDOWN      the runtime is ending
 *   -ENXIO          no runtime runs
 *   -ENOTSUP        link or group on a plain thread; own_tls where that cannot be: a message on the standard error says why
 *
 * Any thread; from a plain one the default priority is 40. */
HD_API HD_MUST_USE hd_pid hd_spawn(hd_entry entry, void *arg);
HD_API HD_MUST_USE hd_pid hd_spawn_at(int priority, hd_entry entry, void *arg);
HD_API HD_MUST_USE hd_pid hd_spawn_with(const struct hd_spawn *how, hd_entry entry, void *arg);

/* The calling process; 0 on a plain thread. */
HD_API hd_pid hd_self(void);

/* Puts the caller at the tail of its level, so that its equals on this worker run first. Never lets a lower priority run.
 * Returns 0; -ENOTSUP on a plain thread. */
HD_API int hd_yield(void);

/* A safe point and nothing else: the caller gives way to a higher priority, or because its quantum is over, or stops if it was
 * suspended. Costs a few instructions when there is nothing to do; put one into long loops. Returns 0; -ENOTSUP on a plain
 * thread. */
HD_API int hd_checkpoint(void);

/* From hd_pin to hd_unpin the calling process stays on its kernel thread: thread-local variables, and library code that has
 * some, can be relied upon across heddle calls. The calls nest. Outside, every heddle call may return on another kernel thread.
 * Returns 0; -EINVAL when there is nothing to unpin, or the caller is pinned 65,535 times; -ENOTSUP on a plain thread. */
HD_API int hd_pin(void);
HD_API int hd_unpin(void);

/* Stops a process until hd_resume. One that runs stops at its next safe point, and the call returns when it has; one that
 * waits keeps its place in the queue, and what is granted to it meanwhile is kept for it; its deadline runs on. Stopping
 * twice is the same as once. Returns
 *
 *   0              it has stopped; when pid is the caller: it was stopped and has been resumed
 *   -EINPROGRESS   `until` was already past: it will stop, and the call has not waited
 *   -ETIMEDOUT     it will stop, but had not by then
 *   -ECANCELED     it will stop, but the caller was cancelled meanwhile
 *   -ESRCH         there is no such process, or it has ended, or was terminated
 *   -ENXIO         no runtime runs
 *
 * Any thread. Cancellation point if it waits. */
HD_API HD_MUST_USE int hd_suspend(hd_pid pid, hd_time until);

/* Lets a suspended process go on, at the tail of its level; if it still waits for something, it goes on waiting. Returns 0;
 * -EALREADY when it is not suspended; -ESRCH; -ENXIO when no runtime runs. Any thread. */
HD_API int hd_resume(hd_pid pid);

/* How a process ended. */
enum hd_end_kind {
	HD_END_RETURNED = 1, /* its entry returned, or hd_exit */
	HD_END_FAILED,	     /* hd_fail, or it could not start for want of memory */
	HD_END_CANCELLED,    /* hd_cancel of one whose cancel type is unwind */
	HD_END_KILLED	     /* hd_terminate, hd_kill, or the runtime ended first */
};
/* How it ended, and with what. */
struct hd_end {
	enum hd_end_kind kind;
	void *result; /* HD_END_RETURNED */
	int err;      /* HD_END_FAILED: -errno; HD_END_KILLED: what hd_kill said, else 0 */
};

/* Waits until a process has ended and forgets it; its id is dead afterwards. `result` (may be NULL) receives what its entry
 * returned, NULL if it did not end by returning; hd_join_end tells how it ended. A process that is ready on the caller's worker
 * and has not run yet runs at once, before its equals, unless a higher priority is ready; if it ends without having waited or
 * given way, the caller goes on at once too, else at the tail of its level. (There and back are two hand-offs: 64 in a row at
 * most.) Returns
 *
 *   0            it has ended
 *   -ETIMEDOUT   it had not, by `until`; it can be joined again
 *   -ECANCELED   the caller was cancelled; it can be joined again
 *   -EDEADLK     pid is the caller
 *   -EBUSY       another process or thread is joining it
 *   -EINVAL      it is detached
 *   -ESRCH       there is no such process: it never existed, was joined, or was detached and has ended
 *   -ENXIO       no runtime runs
 *
 * Any thread. Cancellation point. */
HD_API HD_MUST_USE int hd_join(hd_pid pid, void **result, hd_time until);
HD_API HD_MUST_USE int hd_join_end(hd_pid pid, struct hd_end *end, hd_time until);

/* Detaches a process: it cannot be joined, and is forgotten when it ends, or now if it has. Returns 0; -EINVAL when it is
 * detached already; -EBUSY while a process or thread is joining it; -ESRCH; -ENXIO when no runtime runs. Any thread. */
HD_API int hd_detach(hd_pid pid);

/* Ends the calling process, as returning `result` from its entry would. Does not return, except -ENOTSUP on a plain thread. */
HD_API int hd_exit(void *result);

/* Ends the calling process with an error; the sign of `err` does not matter. Does not return, except -ENOTSUP on a plain thread
 * and -EINVAL when err is 0. */
HD_API int hd_fail(int err);

/* Makes a process end at its next cancellation point, also if it waits for a mutex: its cleanups run (cancel.h), its locals are
 * destroyed. If it has disabled cancellation, it ends after it has enabled it again; if it is suspended, it goes on, to end; if
 * it never ran, it ends without running. Until it is dead it has at least the caller's priority. Returns
 *
 *   0            it is dead; it can still be joined
 *   -ETIMEDOUT   it was not, by `until`; it will end nevertheless
 *   -ECANCELED   the caller was cancelled meanwhile; it will end nevertheless
 *   -ESRCH       there is no such process, or it has ended
 *   -ENXIO       no runtime runs
 *
 * On itself it is hd_exit(NULL). Any thread. Cancellation point. */
HD_API HD_MUST_USE int hd_terminate(hd_pid pid, hd_time until);

/* As hd_terminate, but does not wait, and gives a reason (any number), which hd_join_end tells; the first reason counts.
 * Returns 0; -ESRCH; -ENXIO. If pid is the caller, it does not return. Any thread. */
HD_API int hd_kill(hd_pid pid, int reason);

/* Returns a process's own priority, 10 to 80, without a boost by waiters (HD_INHERIT), callers (hd_call) or hd_terminate; -ESRCH; -ENXIO when
 * no runtime runs. Any thread. */
HD_API int hd_priority(hd_pid pid);

/* Gives a process another priority and puts it at the tail of its new level; one that runs gives way to ready processes of the
 * new priority or a higher one. The priority that it has already changes nothing. Returns 0; -EINVAL when out of range; -ESRCH;
 * -ENXIO. Any thread. */
HD_API int hd_set_priority(hd_pid pid, int priority);

/* Gives a process another policy, from its next safe point on. Returns 0; -EINVAL; -ESRCH; -ENXIO. Any thread. */
HD_API int hd_set_policy(hd_pid pid, enum hd_policy policy);

/* What a process does. */
enum hd_state {
	HD_READY = 1, /* would run if a worker were free */
	HD_RUNNING,   /* has a worker */
	HD_WAITING,   /* see `why` */
	HD_SUSPENDED, /* by hd_suspend, or spawned so; a waiting process that is suspended says HD_WAITING and `suspended` */
	HD_ENDED      /* not joined yet */
};

/* What hd_process_info tells. */
struct hd_process_info {
	hd_pid pid;
	char name[HD_NAME_SIZE];
	enum hd_state state;
	bool suspended, daemon, detached;
	int priority; /* its own, as hd_priority tells it */
	enum hd_policy policy;
	int worker;		       /* 0 is the thread that called hd_run */
	enum hd_wait why;	       /* HD_WAITING: what for */
	hd_pid holder;		       /* the process that has what it waits for; below 0: a plain thread; 0: unknown */
	int fd;			       /* the descriptor that it waits for; -1: none */
	hd_time since;		       /* when it came into this state; good to some milliseconds */
	hd_time cpu_time;	       /* good to some milliseconds */
	uint64_t switches;	       /* times it was given a worker */
	size_t stack_size, stack_used; /* bytes; 0 before it first runs; used: the most that any process needed of this stack */
};

/* Describes a process, a zombie included. Returns 0; -ESRCH when it is gone (Pharo's isTerminated: -ESRCH, or HD_ENDED);
 * -ENXIO when no runtime runs. Any thread; a process that is changing is described a moment before or after. */
HD_API HD_MUST_USE int hd_process_info(hd_pid pid, struct hd_process_info *info);

/* How many processes do what. `waiting` is of those in the state HD_WAITING, by `why`; `ready` of those in the state HD_READY, by the priority with
 * which they would run. */
#define HD_WAIT_KINDS 64 /* more than there are */
struct hd_process_counts {
	uint64_t states[HD_ENDED + 1];
	uint64_t waiting[HD_WAIT_KINDS];
	uint64_t ready[HD_PRIORITY_TIMING + 1];
	hd_time longest_ready; /* for how long the process that has been ready the longest has been so; good to some milliseconds; 0: none is */
};

/* Counts the processes, zombies included. Returns 0; -ENXIO when no runtime runs. Any thread. It looks at all of them: some nanoseconds each; processes that
 * come, go or change meanwhile are counted as they were a moment before or after. */
HD_API HD_MUST_USE int hd_count_processes(struct hd_process_counts *counts);

/* Calls fn for every process, oldest slot first, until it answers something other than 0; returns that, or 0. -ENXIO when no
 * runtime runs. Any thread; fn may call heddle, but processes that come or go meanwhile may or may not be seen. On a plain thread
 * the runtime does not end while fn runs. */
HD_API int hd_each_process(int (*fn)(const struct hd_process_info *info, void *arg), void *arg);

/* The processes that are ready at a priority on the caller's worker, in the order in which they would run there. Stores at most
 * n ids and returns how many processes there are; -EINVAL when out of range; -ENOTSUP on a plain thread. */
HD_API int hd_waiting_at(int priority, hd_pid *pids, size_t n);

/* A variable of which every process has its own. Zeroed memory, or HD_LOCAL(destroy), is ready to use; the variable is known
 * by its address and must outlive the processes that set it. */
struct hd_local {
	void (*destroy)(void *value); /* called on the ending process, for every value that is not NULL; may be NULL */
};
#define HD_LOCAL(destroy)                                                                                                      \
	{                                                                                                                      \
		destroy                                                                                                        \
	}

/* The calling process's value, NULL if never set; NULL on a plain thread. */
HD_API void *hd_local_get(const struct hd_local *local);

/* Sets it. Returns 0; -ENOMEM; -ENOTSUP on a plain thread. Destructors may set locals again: after four rounds the rest is left. */
HD_API HD_MUST_USE int hd_local_set(const struct hd_local *local, void *value);

HD_END
#endif
