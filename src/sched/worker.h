/* sched/worker.h - a worker: a kernel thread that runs processes, and what all workers share. */
#ifndef SCHED_WORKER_H
#define SCHED_WORKER_H

#include <heddle/runtime.h>

#include "base/inbox.h"
#include "obs/trace.h"
#include "os/clock.h"
#include "os/thread.h"
#include "process/stack.h"
#include "process/table.h"
#include "sched/poller.h"
#include "sched/runq.h"
#include "sched/share.h"
#include "sched/watcher.h"
#include "timer/timers.h"

/* Bits of the attention word: why a worker should look up at its next safe point. Raised by any thread with hd__raise, cleared
 * by the worker. HD__ASLEEP is the worker's own: it sleeps in its poller, and whoever raises a bit must wake it. One word and
 * only read-modify-writes on it, so a raise is seen by the sleeper or sees the sleeper; there is no third case. */
enum {
	HD__ASLEEP = 1,
	HD__INBOX = 2, /* notes have come */
	HD__ALARM = 4, /* a deadline or a quantum is over */
	HD__LOOK = 8,  /* something else changed: see whether the runtime is over */
	HD__STEAL = 16 /* somebody else's share has something for you */
};

/* Bits of a worker's and of a process's `chores`: what must be done before the next process runs; nearly always none. */
enum {
	HD__CHOOSE_BY_DOOR = 1, /* worker: the choice is not ours */
	HD__ALARM_IS_LATE = 2,	/* worker: a deadline before its alarm was added */
	HD__END_QUANTUM = 4,	/* worker: the runner has one */
	HD__RECORD = 8,		/* worker: every change of state is traced */
	HD__SEE_IF_OVER = 16,	/* worker: nobody counts any more, and nothing may hold the runtime open */
	HD__START = 32,		/* process: it has no stack yet */
	HD__BEGIN_QUANTUM = 64	/* process: its policy has quanta */
};

/* Bits of `resched`, the worker's note to itself: the runner should give way at the end of this call. */
enum {
	HD__BETTER_READY = 1, /* a higher priority may have become ready */
	HD__GO_TO_TAIL = 2,   /* the runner should let its equals run */
	HD__QUANTUM_OVER = 4, /* because of that */
	HD__CLOCK_DUE = 8,    /* a look at the clock is due */
	HD__STEAL_DUE = 16,   /* a look at what the others share is due */
	HD__AT_CALL = 32,     /* doors.at_call wants to know; it stays up */
	HD__KEEP_PLACE = 64   /* if the runner gives way to a higher priority, it goes to the head of its level */
};

struct hd__sched;

/* What the simulator replaces; handed in at start. */
struct hd__doors {
	const struct hd__clock *clock;
	struct hd__poller *poller;
	struct hd__trace *trace; /* NULL: off */
	/* The choice of the next process: NULL is the rule (highest priority, first come). Takes it off the run queue; NULL
	 * only when nothing is ready. */
	struct hd_process *(*choose)(struct hd_worker *w);
	/* Called at every heddle call, before the runner looks up; then there is one worker, however many the configuration says,
	 * and `choose` (if CHOOSE_BY_DOOR is up) is asked whether or not the runner should give way. NULL: at none. */
	void (*at_call)(struct hd_worker *w);
	/* The runtime is built and nothing has run yet; all is over and nothing taken down yet: false if it need not be, because
	 * the program is about to end. NULL: nobody cares. */
	void (*begun)(struct hd__sched *sched);
	bool (*ended)(struct hd__sched *sched, int code);
};

/* What the rooms above put in, so that includes point downwards. Set by rt/. */
struct hd__hooks {
	void (*begin)(void *process);					 /* the first function on a process's stack */
	void (*cannot_start)(struct hd_worker *w, struct hd_process *p); /* no memory for its stack; called idle */
	void (*expired)(struct hd_worker *w, struct hd_process *p);	 /* the deadline of its wait has come */
	void (*unwind)(struct hd_worker *w, struct hd_process *me,
		       enum hd_end_kind kind);			     /* the runner ends; does not return */
	void (*blocked)(struct hd_worker *w, struct hd_process *me); /* config.deadlock: it is about to wait for an owner */
	void (*look)(struct hd_worker *w);			     /* HD__LOOK: the runtime is ending, perhaps */
	/* Nothing is ready, or nobody counts: when to look again at the latest (HD_FOREVER: when told); 0: the runtime is over. */
	hd_time (*idle)(struct hd_worker *w);
};

/* Counters with one writer; see struct hd_stats. */
struct hd__counters {
	uint64_t spawned, ended, switches, from_idle, handoffs, preemptions, expired_quanta, remote_wakes, timeouts, idles,
		woken, steals, stolen, shared;
};

/* After how many switches a worker looks at the clock by itself: see hd__look_up. */
#define HD__LOOK_EVERY 64

struct hd_worker {
	/* written by others */
	uint32_t attention __attribute__((aligned(64)));
	struct hd__inbox inbox;

	/* the owner's: what a switch touches */
	uint32_t resched __attribute__((aligned(64)));
	int running_priority; /* of `current`; 0 when idle; as in sched->running (hd__set_level) */
	struct hd_process *current;
	unsigned char *release; /* a lock that the process that is leaving holds: a wait queue's, or our share's; else NULL */
	uint32_t chores;
	uint32_t handoffs;   /* in a row */
	int *errno_location; /* of this kernel thread */
	hd_time dispatched;  /* coarse time at which `current` got the worker */
	uint64_t arrivals;   /* processes that were made ready here; others count up too (hd__share_send) */
	struct hd__sched *sched;
	struct hd__trace *trace;
	struct hd__blocks blocks;
	struct hd__runq runq;

	struct hd__timers timers;
	hd_time quantum_end;		 /* of `current`, when it has a quantum; else HD_FOREVER */
	hd_time stop_at;		 /* when what has not ended is abandoned; HD_FOREVER: not told that the runtime ends */
	hd_time alarm;			 /* the earliest of these and the first deadline; read by the watcher */
	bool unannounced;		 /* something was put into the share for us to run at once; nobody else was told */
	bool stepping;			 /* for doors.choose: the runner would go on, if it could */
	bool over;			 /* stop_at has come: nobody runs any more */
	unsigned index;			 /* in sched->workers */
	struct hd_process *cannot_start; /* taken off the run queue, but there is no memory for its stack */
	struct hd__context context;
	struct hd__fiber fiber, leaving; /* its own stack's, and that of a process that is ending */
	uint64_t counted;		 /* pinned or taken from a share, and not daemons; see hd__nobody_counts (*) */
	uint64_t taken;			 /* counted processes ever taken from shares (*) */
	bool dooming, look_again;	 /* see hd__look */
	unsigned luck, gloom;		 /* in searching: see search in worker.c */
	uint32_t dice;			 /* for choices that should be fair */
	struct hd__counters stats;
	struct hd__thread thread; /* of all but the first */
	struct hd__stack_cache stacks[HD__STACK_MAX_CLASS + 1];

	/* ready here, for anybody to take */
	struct hd__share share __attribute__((aligned(64)));

	/* the watcher's */
	hd_time seen_alarm __attribute__((aligned(64)));
	uint64_t seen_switches, seen_shared, seen_arrivals, seen_pace, seen_first;
	uint64_t old_arrivals; /* at old_at */
	hd_time old_at;
};

#define HD__NO_CODE INT32_MIN

struct hd__sched {
	hd_time now; /* coarse: written by the watcher and by waking workers, read by everybody */
	struct hd__doors doors;
	struct hd__hooks hooks;
	struct hd_config config;
	unsigned stack_class; /* of config.stack_size */
	unsigned nworkers;
	struct hd__table table;
	struct hd__watcher watcher;
	bool watched;	  /* there is a watcher */
	bool stopping;	  /* set once, read by anybody: nothing new may start, and nobody changes its worker */
	int stop_code;	  /* what hd_run will return; HD__NO_CODE: not ending */
	hd_time stop_at;  /* set before `stopping` */
	unsigned at_work; /* workers that have not left; atomically */
	int hold;	  /* hd_hold_open; any thread, atomically */
	unsigned rotor;	  /* whom plain threads send the next process to, if all are alike; any thread, relaxed */
	uint64_t sent;	  /* processes that plain threads spawned; atomically */
	int64_t loose; /* processes that count, but on no worker and in no share: movable, or suspended before their start; atomically */
	uint64_t shifts;       /* of processes from a share to `loose`, ever; atomically */
	uint64_t circles;      /* reported; atomically */
	unsigned char verdict; /* lock: one worker at a time asks whether the runtime is stuck; guards what follows */
	bool stuck_reported;
	hd_time stuck_since;	  /* when nobody could run any more; 0: never yet */
	uint64_t stuck_switches;  /* how many switches there had been then */
	hd_time count_threads_at; /* when to ask again how many kernel threads there are */

	struct hd__board board;
	struct hd__stacks stacks[HD__STACK_MAX_CLASS + 1];
	struct hd_worker workers[];
};

/* The calling thread's worker; NULL on a plain thread. The only source of worker identity. A process that may move must not
 * use the answer from before a switch. */
struct hd_worker *hd__self(void);

/* The calling thread is w's from now on; NULL: nobody's. */
void hd__set_self(struct hd_worker *w);

/* Returns 0 or -ENOMEM. */
int hd__worker_init(struct hd_worker *w, struct hd__sched *sched, unsigned index);
void hd__worker_fini(struct hd_worker *w);

/* Runs processes on the calling thread, until hooks.idle says that it is over. */
void hd__worker_run(struct hd_worker *w);

/* Raises a bit of attention, and wakes the worker if it sleeps. Any thread, any signal handler. */
void hd__raise(struct hd_worker *w, uint32_t bit);

/* Leaves a note for a worker. Any thread, any signal handler. */
void hd__post(struct hd_worker *w, struct hd_note *note);

/* The exact time; refreshes the coarse one. */
hd_time hd__clock(struct hd__sched *sched);

#endif
