/* heddle/runtime.h - starting, stopping and measuring the runtime.
 *
 * hd_run turns the calling thread into a worker, runs a first process on it and returns when the last process that is not a
 * daemon has ended. One runtime at a time; when hd_run has returned it can be called again, and nothing is left of the run
 * before. */
#ifndef HEDDLE_RUNTIME_H
#define HEDDLE_RUNTIME_H

#include <heddle/base.h>
#include <heddle/process.h>

HD_BEGIN

/* Where a process goes when a higher priority has taken its worker: behind its equals, or before them. */
enum hd_preempted {
	HD_PREEMPTED_TAIL = 0, /* Pharo's way, and the default */
	HD_PREEMPTED_HEAD      /* POSIX's and Squeak's way */
};

/* What to do when processes wait for each other in a circle, through mutexes, monitors, rwlocks, joins and the like, or when one
 * waits for a mutex, monitor or rwlock that an ended process has not given up, while others can still run. When no process can run and nothing can wake one, hd_run answers -EDEADLK, whatever this says. */
enum hd_deadlock {
	HD_DEADLOCK_IGNORE = 0, /* nothing: it is not looked for */
	HD_DEADLOCK_REPORT, /* when a circle closes, each of its processes is printed to stderr, where it waits and for which
			     * process; so is a process that waits for one of a lower priority which others keep from running */
	HD_DEADLOCK_ABORT   /* as HD_DEADLOCK_REPORT, and a circle aborts the program */
};

/* How to run. Zeroed memory means all defaults. The environment overrides each field unless `fixed` is set; an empty variable does not. */
struct hd_config {
	unsigned workers; /* HEDDLE_WORKERS, 1 to 1024 kernel threads that run processes; 0 is one for each CPU */
	size_t stack_size; /* HEDDLE_STACK_SIZE, bytes, as hd_spawn.stack_size; 0 is 64 KiB. The first process has at least 8 MiB */
	enum hd_policy policy;	     /* HEDDLE_POLICY=fifo|rr|io; 0 is HD_FIFO */
	hd_time quantum;	     /* HEDDLE_QUANTUM, ns, for HD_RR and HD_IO; 0 is 10 ms */
	enum hd_preempted preempted; /* HEDDLE_PREEMPTED=tail|head */
	bool pinned;		     /* HEDDLE_PINNED=0|1; every process stays on one kernel thread: see hd_spawn.pinned */
	enum hd_deadlock
		deadlock; /* HEDDLE_DEADLOCK=ignore|report|abort; looking costs some microseconds for each wait for an owner */
	bool warn_stuck; /* HEDDLE_WARN=none|stuck|blocked|all; print what each process waits for, once, when none has run for a second and
			   * only a kernel thread that heddle did not start could wake one */
	bool warn_blocked; /* HEDDLE_WARN; print which process blocks its worker in the kernel for 40 ms, in which system call and where; each place once */
	unsigned
		blocking_threads; /* HEDDLE_BLOCKING_THREADS, 1 to 65536: at most so many kernel threads run what hd_blocking is
				    * given, and calls on files; 0 is 256 (blocking.h) */
	int preempt_signal; /* HEDDLE_PREEMPT_SIGNAL=NUMBER|off; with it a process that makes no heddle calls is preempted (blocking.h); 0 is SIGURG, -1: none is,
			     * except by its own calls */
	const char *
		preemptible; /* HEDDLE_PREEMPTIBLE; shared libraries in whose code processes may be preempted, beside the program's own: file names with
				  * colons between, as "libparse.so.2:libmath.so"; NULL: none */
	int spares; /* HEDDLE_SPARES, 0 to 1023: at most so many kernel threads more, which take the places of workers that are blocked in the kernel, or whose process
		     * cannot be preempted (docs/concepts/blocking.md). 0 or -1: none */
	bool fixed; /* take these values, whatever the environment says */
};

/* Runs `main(arg)` as the first process, with priority 40, and everything that it spawns. `config` may be NULL. Returns
 *
 *   0            the last process that is not a daemon has ended, and nothing holds the runtime open
 *   code >= 0    hd_shutdown(code) was called
 *   -EDEADLK     no process can ever run again; what each of them waits for, and where, was printed to stderr. As long as the program has
 *                kernel threads that heddle did not start, no process is known to wait in vain: the runtime waits on, and
 *                declares the deadlock after the last of them has ended
 *   -EBUSY       a runtime runs already
 *   -EINVAL      main is NULL, or a value in `config` or in the environment is out of range; which one was printed to stderr
 *   -ENOMEM, -EAGAIN   no memory or no kernel thread to start with
 *
 * Processes that are left when the runtime ends are terminated: their waits do not return, their cleanups run, their locals are
 * destroyed; one that has not ended after one second is abandoned. A process in a system call that blocks keeps its kernel thread: then hd_run does
 * not return before that process makes a heddle call. (So does one in a loop without heddle calls, where it cannot be preempted: see
 * docs/concepts/preemption.md.) Call it on a plain thread; on a process it answers -EBUSY. */
HD_API HD_MUST_USE int hd_run(const struct hd_config *config, hd_entry main, void *arg);

/* Ends the runtime: hd_run will return `code`. Returns 0, and the caller goes on until it waits for something; -EINVAL when
 * code is negative; -EALREADY when the runtime is ending already; -ENXIO when no runtime runs. Any thread. */
HD_API int hd_shutdown(int code);

/* The time now, on the clock that every `until` refers to: 10^15 when the program began. Any thread, with or without a runtime. */
HD_API hd_time hd_now(void);

/* `ns` from now; HD_FOREVER when that is too far to count, 0 when it is before the program began. Any thread, with or without a runtime. */
HD_API hd_time hd_after(hd_time ns);

/* Counts what can still wake a process and heddle cannot see: a signal handler, a device, a thread to be started. While the
 * count (changed by `delta`, usually 1 or -1) is above 0, hd_run neither returns for want of processes nor declares a deadlock.
 * Returns the new count; -EINVAL when it would fall below 0; -ENXIO when no runtime runs. Any thread. */
HD_API int hd_hold_open(int delta);

/* What the runtime has done since hd_run, and what it holds now. */
struct hd_stats {
	uint64_t workers;	  /* kernel threads that run processes, without spare ones */
	uint64_t spares;	  /* spare ones that were started (hd_config.spares) */
	uint64_t spares_active;	  /* of these, how many run processes now, or would */
	uint64_t handovers;	  /* times a spare one took the place of a worker */
	uint64_t spawned;	  /* processes made */
	uint64_t ended;		  /* of these, how many have ended */
	uint64_t switches;	  /* times a process was given a worker */
	uint64_t direct_switches; /* of these, straight from another process */
	uint64_t handoffs;	  /* of these, by hand-off (hd_join of a process that had not run, there and back) */
	uint64_t preemptions;	  /* times a process lost its worker to a higher priority */
	uint64_t forced;	  /* safe points that a signal forced on a process which made no heddle call */
	uint64_t expired_quanta;  /* times a process went behind its equals because its quantum was over */
	uint64_t remote_wakes;	  /* requests that came from other kernel threads */
	uint64_t timeouts;	  /* deadlines that came before what was waited for */
	uint64_t idles;		  /* times a worker had nothing to do */
	uint64_t wakes;		  /* times a sleeping worker was woken by another thread */
	uint64_t steals;	  /* times a worker took processes that were ready on another */
	uint64_t stolen;	  /* processes taken so */
	uint64_t timers;	  /* deadlines pending now, forgotten ones included until they are swept */
	uint64_t live_processes;  /* control blocks in use now, zombies included */
	uint64_t live_stacks;	  /* stacks in use now */
	uint64_t cached_stacks;	  /* stacks waiting for reuse that still have memory */
	uint64_t made_stacks;	  /* stacks that ever existed: those in use, cached and without memory */
	uint64_t live_ports;	  /* ports now, without those for answers */
	uint64_t live_messages;	  /* messages now that were sent, or will be (time.h), and not dropped */
	uint64_t live_cowns;	  /* cowns now whose data has not been dropped (when.h) */
	uint64_t live_behaviours; /* behaviours now that are not over */
	uint64_t behaviours;	  /* that were made */
	uint64_t busy_time;	  /* ns for which workers had something to run, or looked for it: of all workers, since hd_run began */
	uint64_t idle_time;	  /* ns for which they slept */
};

/* Fills `stats`. Returns 0; -ENXIO when no runtime runs. Any thread; what other threads count may lag by a few events. */
HD_API HD_MUST_USE int hd_stats(struct hd_stats *stats);

HD_END
#endif
