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
#include "sched/board.h"
#include "sched/poller.h"
#include "sched/runq.h"
#include "sched/search.h"
#include "sched/spare.h"
#include "sched/watcher.h"
#include "own.h"
#include "timer/timers.h"

/* What a worker may be told. Three words, by the threads that may write them.
 *
 * attention: any thread raises a bit (hd__raise); the worker takes them all at its next safe point or when it wakes (hd__take_news).
 * HD__ASLEEP is the worker's own: it sleeps in its poller, and the thread that raises a bit must wake it. One word and only
 * read-modify-writes on it, so a raise is seen by the sleeper or sees the sleeper; there is no third case.
 *
 *   bit          raised by                                     what the worker does
 *   INBOX        hd__post: a note was left                     applies its notes
 *   ALARM        the watcher: `alarm` is due                   ends the waits whose deadline has come, and the quantum
 *   LOOK         hd__stop, hd_hold_open: the end may be near   asks hooks.look
 *   BETTER       a worker with something better than it runs   takes that, if it is still there
 *   SEARCH       a worker with surplus                         nothing: it was woken to search
 *   OUTSIDE      the watcher: it has not looked for a tick     looks what has happened outside (poller.wait)
 *   SEAT         the watcher, or a worker that is back         takes its seat again, or gives it up (sched/spare.c)
 *   TRACE        hd__trace_look: the trace was turned on, or off  records from now on, or no more (hd__trace_join) */
enum {
	HD__ASLEEP = 1,
	HD__INBOX = 2,
	HD__ALARM = 4,
	HD__LOOK = 8,
	HD__BETTER = 16,
	HD__SEARCH = 32,
	HD__OUTSIDE = 64,
	HD__SEAT = 128,
	HD__TRACE = 256
};

/* resched: the worker's notes to itself, which its runner's next safe point heeds (hd__attend).
 *
 *   bit              set when                                          the runner
 *   GO_TO_TAIL       it yields, has another priority, or QUANTUM_OVER  lets its equals run
 *   QUANTUM_OVER     its quantum is over                               (with GO_TO_TAIL)
 *   KEEP_PLACE       it lost a boost                                   if it gives way, goes to the head of its level
 *   CLOCK_DUE        every HD__LOOK_EVERY switches                     looks at the clock
 *   LOOK_ELSEWHERE   the worker came to run less, or was told BETTER   looks for something better in other lanes
 *   AT_CALL          always, if there is doors.at_call                 calls that
 *   POLL_DUE         every HD__LOOK_EVERY switches, or was told OUTSIDE  looks what has happened outside, if the worker watches anything
 *   BELOW_FLOOR      it must not run here: the worker has a floor        goes to another worker, unless it is pinned */
enum {
	HD__GO_TO_TAIL = 1,
	HD__QUANTUM_OVER = 2,
	HD__KEEP_PLACE = 4,
	HD__CLOCK_DUE = 8,
	HD__LOOK_ELSEWHERE = 16,
	HD__AT_CALL = 32,
	HD__POLL_DUE = 64,
	HD__BELOW_FLOOR = 128
};

/* chores: what must be done before the next process runs (hd__do_chores); nearly always none. The first six are a worker's, HOLDS and CARRY are both, the
 * others are a process's.
 *
 *   CHOOSE_BY_DOOR   doors.choose chooses
 *   STEPS            for doors.choose, which clears it: the runner would go on, if it could
 *   ALARM_IS_LATE    a deadline before `alarm` was added
 *   END_QUANTUM      the runner has a quantum
 *   RECORD           every change of state is told to doors.moved, or traced (sched/record.h)
 *   FLOOR            the worker has a floor: it does not run everything (sched/spare.h)
 *   HOLDS            the process is a behaviour that has cowns, and should not wait (rt/holder.c); the worker's: its runner is such a one
 *   START            the process has no stack: it has not run yet, or is a machine between two turns
 *   BEGIN_QUANTUM    the process's policy has quanta
 *   CARRY            always, if there is a runtime whose state for each thread is carried along (arch/carry.h), or the process has thread-local
 *                    storage of its own; the worker's: its runner has that */
enum {
	HD__CHOOSE_BY_DOOR = 1,
	HD__ALARM_IS_LATE = 2,
	HD__END_QUANTUM = 4,
	HD__RECORD = 8,
	HD__STEPS = 256,
	HD__FLOOR = 512,
	HD__HOLDS = 16,
	HD__START = 32,
	HD__BEGIN_QUANTUM = 64,
	HD__CARRY = 128
};

/* Owners of deadlines: processes, and from HD__SLOTS on messages that are sent at a time. */
#define HD__AFTERS_MAX(table) ((table)->capacity / 4)

struct hd__sched;
struct hd__pool;
struct hd__case_ops;
struct hd__loans;
struct hd__behaviour;
struct hd__host;
struct hd__blocked_in;

/* What the simulator replaces; handed in at start. */
struct hd__doors {
	const struct hd__clock *clock;
	const struct hd__poller *poller;
	/* p is about to go to the state `to`, inside the lane of w; it has its state before still. NULL: nothing is called. */
	void (*moved)(struct hd_worker *w, struct hd_process *p, unsigned to);
	/* The choice of the next process: NULL is the rule (highest priority, first come). Takes it off the run queue; NULL
	 * only when nothing is ready. */
	struct hd_process *(*choose)(struct hd_worker *w);
	/* Called at every heddle call, before the runner looks up; then there is one worker, however many the configuration says,
	 * and `choose` (if CHOOSE_BY_DOOR is up) is asked whether or not the runner should give way. NULL: at none. */
	void (*at_call)(struct hd_worker *w);
	/* The runtime is built and nothing has run yet; all is over and nothing taken down yet: false if it need not be, because
	 * the program is about to end. NULL: nothing is called. */
	void (*begun)(struct hd__sched *sched);
	bool (*ended)(struct hd__sched *sched, int code);
};

/* What the rooms above put in, so that includes point downwards. Set by rt/. */
struct hd__hooks {
	void (*begin)(void *process);	     /* the first function on a process's stack */
	void (*turn)(struct hd_process *me); /* of a machine's; outside the lane; does not return */
	/* A behaviour's turn, to its end, and those of the behaviours that run next on the same stack; outside the lane. Answers the worker, inside whose lane
	 * it is then; *next: runs next, or NULL. */
	struct hd_worker *(*behave)(struct hd_process *me, const struct hd__host *host, struct hd_process **next);
	void (*cannot_start)(struct hd_worker *w, struct hd_process *p);	     /* no memory for its stack; called idle */
	void (*expired)(struct hd_worker *w, struct hd_process *p, uint64_t number); /* the deadline of its wait has come */
	void (*stalled)(struct hd_worker *w, struct hd_process *p, bool for_good);   /* its wait is over, and it is suspended */
	/* Messages that are sent at a time (port/after.c), by their slot: whether the deadline with this number is one's; it has come, at
	 * `now` or before. Inside the lane of w. */
	bool (*after_is_live)(struct hd__sched *sched, uint32_t slot, uint64_t number);
	void (*after_due)(struct hd_worker *w, uint32_t slot, uint64_t number, hd_time now);
	void (*unwind)(struct hd_process *me, enum hd_end_kind kind); /* the runner ends, outside its lane; does not return */
	/* Priority inheritance (sync/inherit.c). */
	uint64_t (*find_boost)(struct hd__sched *sched, struct hd_process *p);
	hd_pid (*boosts)(struct hd__sched *sched, struct hd_process *p);
	int (*behaviour_boost)(const struct hd_process *p);		  /* what waits for the cowns of p, a behaviour */
	void (*loans_end)(struct hd__sched *sched, struct hd_process *p); /* p, which has just died, is lent something */
	void (*blocked)(struct hd_worker *w, struct hd_process *me); /* config.deadlock: it is about to wait for an owner */
	void (*owner_ended)(struct hd_worker *w);		     /* config.deadlock: a process has ended; inside the lane */
	void (*holder_waits)(struct hd_worker *w, struct hd_process *me); /* HD__HOLDS: it has begun to wait; inside the lane */
	struct hd__tls *(*tls_of)(const struct hd_process *p);		  /* HD__OWN_TLS: p's storage */
	void (*learn)(struct hd_process *p); /* hd__tells: p goes on: what has happened before that */
	void (*look)(struct hd_worker *w);   /* HD__LOOK: the runtime is ending, perhaps */
	/* Nothing is ready, or no process counts any more: when to look again at the latest (HD_FOREVER: when told); 0: the runtime is
	 * over. Outside the lane. */
	hd_time (*idle)(struct hd_worker *w);
	uint64_t (*waits_for)(const struct hd_process *p); /* for the trace: the descriptor, or the address of the queue; 0: neither */
	void (*quit)(struct hd__sched *sched); /* watcher.quit is set; on the watcher */
	void (*worker_blocked)(struct hd_worker *w, const struct hd__blocked_in *where,
			       hd_time since);	 /* config.warn_blocked; on the watcher */
	void (*over)(struct hd__sched *sched);	 /* the watcher asks, now and then, whether the runtime is over */
	int (*start_spare)(struct hd_worker *w); /* its kernel thread; on the watcher; 0 or -EAGAIN */
	const struct hd__case_ops *fd_case;	 /* hd_select over descriptors (sync/select.h), */
	const struct hd__case_ops *receive_case; /* and over ports */
	/* hd_spawn_with, with a port, a link or a watch; outside the lane. */
	hd_pid (*spawn_tied)(struct hd__sched *sched, const struct hd_spawn *how, hd_entry entry, void *arg);
	/* config.deadlock: a call of p's would close a circle: `by` p itself, or by the process that passes it on; 0: a plain thread does. */
	void (*call_refused)(struct hd__sched *sched, struct hd_process *p, hd_pid by, hd_pid to);
};

/* Counters with one writer; see struct hd_stats. */
struct hd__counters {
	uint64_t births, ends; /* of processes that are not daemons: see hd__nobody_counts */
	uint64_t whens, over;  /* behaviours that were made here; that were over here: see hd_quiesce */
	uint64_t spawned, ended, switches, from_idle, handoffs, preemptions, expired_quanta, remote_wakes, timeouts, idles,
		woken, steals, stolen, forced;
};

/* After how many switches a worker looks at the clock by itself: see hd__look_up. */
#define HD__LOOK_EVERY 64

/* Letters that are not in use (port/letter.c): a stack of each kind, which grows downwards. Zeroed, it has no letters, and no room for any. Addresses, not a
 * list: a letter that another worker has used last is asked for some letters before it is needed, and not by the one before it. */
#define HD__LETTER_KINDS 3
#define HD__STORE_MAX 128
#define HD__STORE_AHEAD 4
struct hd__letter;
struct hd__store {
	size_t room;							 /* for so many letters more */
	struct hd__letter *letters[HD__STORE_MAX + 1 + HD__STORE_AHEAD]; /* from [room] on; then NULL */
};
struct hd__letters {
	struct hd__store stores[HD__LETTER_KINDS + 1]; /* the last one, for letters that have no store, is never used */
	int64_t live; /* letters that this worker has given out, less those that came back to it (*) */
};

/* Memory of behaviours that are over (when/when.c), by its size. */
#define HD__SPARE_SIZES 2
struct hd__spares {
	struct hd__behaviour *first[HD__SPARE_SIZES];
	unsigned count[HD__SPARE_SIZES];
};

/* How a lane is entered, and what other workers are told of it: see sched/lane.h. */
struct hd__lane {
	unsigned char lock;
	unsigned char bias;	   /* any thread */
	unsigned char held;	   /* the lane is biased and its worker inside; written by the worker */
	bool wanted;		   /* a visitor waits for the lock; a hint, any thread, relaxed */
	uint32_t calm, calm_after; /* entries until the lane is biased, if no visitor comes; after a visit, that many */
	int advert;		   /* as in board.adverts */
};

/* When a worker has something to do by the clock, beside its deadlines. */
struct hd__due {
	hd_time quantum_end; /* of `current`, when it has a quantum; else HD_FOREVER; read by the watcher */
	hd_time stop_at; /* when what has not ended is abandoned; HD_FOREVER: not told that the runtime ends; read by the watcher */
	hd_time alarm; /* the earliest of these and the first deadline; read by the watcher */
	bool over;     /* stop_at has come: no process runs any more */
	bool eventful; /* HD_IO: a process got no quantum, because an event was pending; read by the watcher */
};

/* What a worker knows of what is ready behind its runner: see hd__leave_slowly. */
struct hd__surplus {
	uint32_t calls; /* with something ready, until it looks again */
	uint8_t every;	/* it looks after so many at least */
	bool crowded;	/* when it last looked, more than one process was ready at the highest level; */
	uint64_t turn;	/* there had been so many switches */
	hd_time looked; /* and this was the time; 0: it has never looked */
};

struct hd_worker {
	/* written by others */
	uint32_t attention __attribute__((aligned(64)));
	struct hd__inbox inbox;
	hd_time raised_at; /* when a thread last woke it from sleep */

	/* the owner's: what a switch touches */
	uint32_t resched __attribute__((aligned(64)));
	int running_priority; /* of `current`; 0 when idle; as in board.running (hd__set_level); read by the watcher */
	struct hd_process *current;
	uint32_t chores;
	uint32_t handoffs;   /* in a row */
	int floor;	     /* a spare's: see sched/spare.h; written by the worker, read by any thread, seq_cst */
	int *errno_location; /* of this kernel thread */
	hd_time dispatched;  /* coarse time at which `current` got the worker */
	struct hd__sched *sched;
	struct hd__blocks blocks;

	/* the lane: for the thread that is inside (sched/lane.h) */
	struct hd__lane lane __attribute__((aligned(64)));
	bool crowd; /* there are other workers, or may be; constant */
	struct hd__surplus surplus;
	struct hd__runq runq; /* runq.highest may be read by any thread, relaxed */
	struct hd__timers timers;

	/* the owner's, less often */
	struct hd__due due;
	unsigned index;			 /* in sched->workers */
	struct hd_process *cannot_start; /* taken off the run queue, but there is no memory for its stack */
	struct hd__context context;
	struct hd__carrier carrier;
	uint64_t outside,
		back; /* waits for something outside the program that have begun here; that have ended here; ever (*) */
	struct hd__outside *watched; /* what its poller watches for it; NULL: nothing. Set once, by its own thread (*) */
	struct hd__ring *ring;	     /* io/ring.h; NULL: none yet. Set once, by its own thread (*) */
	struct hd__letters letters;  /* its own thread's */
	struct hd__spares spares;    /* its own thread's */
	hd_time begun;	    /* when it was made; constant */
	int64_t idle;	    /* ns that it has slept; while it sleeps: less when that began, so that it is below 0 (*) */
	struct hd__search search;
	struct hd__tape *tape; /* for the thread that is inside the lane, while HD__RECORD is up for the trace; NULL: it records nothing (*) */
	bool takes_news;       /* for that thread: what becomes ready now, the runner has not made so */
	bool hands_over;       /* likewise: the next process to run is handed the worker */
	struct hd__counters stats;
	struct hd__thread thread; /* of the first: its id only */
	struct hd__stack_cache stacks[HD__STACK_MAX_CLASS + 1];

	struct hd__seen seen __attribute__((aligned(64))); /* the watcher's */
	struct hd__stay stay;				   /* likewise */
	struct hd__doubt doubt;				   /* likewise */
	int offer; /* the floor with which a spare that rests goes to work, when its bit in board.resting has been cleared; the watcher's until then */
};

#define HD__NO_CODE INT32_MIN
#define HD__TOLD 16
#define HD__SITES 64

/* Whether runners can be preempted by a signal: known when that is first needed (sched/preempt.c). */
enum { HD__PREEMPTS_UNKNOWN, HD__PREEMPTS, HD__PREEMPTS_NOT };

struct hd__sched {
	hd_time now; /* coarse: written by the watcher and by waking workers, read by everybody */
	struct hd__doors doors;
	struct hd__hooks hooks;
	struct hd_config config;
	unsigned stack_class; /* of config.stack_size */
	unsigned
		nworkers; /* that were ever started, with the spares; only grows while any thread but the first runs: see hd__workers */
	unsigned nregular; /* workers that are no spares; constant */
	unsigned room;	   /* for so many workers; constant */
	unsigned threads;  /* of workers, that there are */
	int seats; /* how many places of workers are free; below 0: so many spares must give up theirs; any thread, seq_cst (sched/spare.c) */
	uint64_t handovers; /* the watcher's (*) */
	bool full;	    /* no worker is started any more; set once, by the thread that called hd_run, under `starting` */
	unsigned char starting; /* lock: a spare is being started */
	struct hd__table table;
	struct hd__loans *loans; /* one for each block of the table (sync/lend.c) */
	struct hd__watcher watcher;
	struct hd__trace trace;
	bool watched; /* there is a watcher */
	bool mixed; /* a process was given another priority than most programs have (hd__preempt_mix), and may be ready with it where only its worker
			  * looks; set once, any thread, relaxed */
	unsigned char preempts; /* HD__PREEMPTS and its like; the watcher's */
	unsigned calm;		/* entries without a visit after which a lane is biased, at first; 0: none ever is */
	uint8_t quit;		/* enum hd__quit: what SIGQUIT does (rt/report.c); constant */
	bool stopping;		/* set once, read by any thread: nothing new may start */
	int64_t thread;		/* that called hd_run, as hd__os_thread_id */
	int stop_code;		/* what hd_run will return; HD__NO_CODE: not ending */
	hd_time stop_at;	/* set before `stopping` */
	int hold;		/* hd_hold_open; any thread, atomically */
	unsigned rotor; /* the worker to which a plain thread sends its next process, if all are alike; any thread, relaxed */
	uint64_t sent, births;	 /* processes that plain threads spawned, and of these, those that are no daemons; atomically */
	unsigned char telling;	 /* lock: one thread at a time reports waits that cannot end (rt/circle.c) */
	uint64_t reports;	 /* of such waits, so far; */
	uint64_t told[HD__TOLD]; /* the latest of them */
	hd_pid dispatcher; /* the process that makes the behaviours of a log; 0: none yet (when/log.c); any thread, acq_rel */
	uint64_t sites[HD__SITES]; /* places in the program that have been told of (rt/site.c); 0: none */
	hd_time wake_cost;	   /* from a raise to the first instruction of the woken worker, on average; relaxed */
	unsigned patience;	   /* calls for which surplus waits before a sleeping worker is woken for it; relaxed */
	unsigned char verdict;	   /* lock: one worker at a time asks whether the runtime is stuck; guards what follows */
	bool stuck_reported;	   /* config.warn_stuck */
	hd_time stuck_since;	   /* when no process could run any more; 0: never yet */
	uint64_t stuck_switches;   /* how many switches there had been then */
	hd_time count_threads_at;  /* when to ask again how many kernel threads there are */

	unsigned char ties_lock;   /* of all links and watches (port/tie.c) */
	unsigned char names_lock;  /* of all names of ports */
	struct hd__names *names;   /* port/name.c; NULL: none yet */
	struct hd__afters *afters; /* port/after.c; NULL: none yet; set once, by any thread */
	unsigned char unread_lock;
	struct hd__link *unread; /* letters to be dropped when no process runs any more (port/mailbox.c); under unread_lock */
	struct hd__io *io;	 /* what the poller knows of descriptors; NULL: nothing yet; set once, by any thread */
	struct hd__pool *pool;	 /* io/pool.h */
	struct hd__signal_ports *signal_ports; /* signal/port.c; NULL: none yet; set once, by any thread */
	struct hd_waitq quiet;		       /* hd_quiesce (when/quiesce.c): its waiters; */
	unsigned quiescers;		       /* how many calls have begun, and not returned; any thread, atomically; */
	uint64_t whens, over;		       /* behaviours that plain threads made, ended; atomically */
	struct hd__board board;
	struct hd__stacks stacks[HD__STACK_MAX_CLASS + 1];
	struct hd_worker workers[];
};

/* The calling thread's worker; NULL on a plain thread. The only source of worker identity. The answer from before a switch is of
 * no use after it: the process may have moved. */
static inline struct hd_worker *hd__self(void)
{
	return hd__arch_own();
}

/* The calling thread is w's from now on; NULL: it is a plain thread. */
void hd__set_self(struct hd_worker *w);

/* For how many ns w has slept until now. One word says it, so that any thread, and any tool, reads what belongs together. */
static inline int64_t hd__idle_time(const struct hd_worker *w, hd_time now)
{
	int64_t idle = ld_rlx(&w->idle);
	return idle < 0 ? idle + now : idle;
}

/* How many workers there are, spares among them. A process that has ended on a spare was seen to end, or comes from one that was: so where ends are
 * counted before births, this is asked again in between. */
static inline unsigned hd__workers(const struct hd__sched *sched)
{
	return ld_acq(&sched->nworkers); /* pairs with start_one in sched/spare.c */
}

/* There is more than one worker, or may be. */
static inline bool hd__is_crowd(const struct hd__sched *sched)
{
	return sched->room > 1;
}

static inline bool hd__is_spare(const struct hd_worker *w)
{
	return w->index >= w->sched->nregular;
}

/* Returns 0 or -ENOMEM. */
int hd__worker_init(struct hd_worker *w, struct hd__sched *sched, unsigned index);
void hd__worker_fini(struct hd_worker *w);

/* Looks what has happened outside, and delivers it. On w's thread, outside its lane. */
void hd__look_outside(struct hd_worker *w);

/* Runs processes on the calling thread, until hooks.idle says that it is over. */
void hd__worker_run(struct hd_worker *w);

/* Raises a bit of attention, and wakes the worker if it sleeps. Any thread, any signal handler. */
void hd__raise(struct hd_worker *w, uint32_t bit);

/* Leaves a note for a worker. Any thread, any signal handler. */
void hd__post(struct hd_worker *w, struct hd_note *note);

/* The exact time; refreshes the coarse one. */
hd_time hd__clock(struct hd__sched *sched);

/* Whether every process that is not a daemon has ended, at some moment of the call; *hold is hd_hold_open's count at such a moment. Any
 * thread. */
bool hd__nobody_counts(struct hd__sched *sched, int *hold);

/* Whether a process waits for something outside the program: the kernel will wake it. Any thread. */
bool hd__awaits_outside(struct hd__sched *sched);

/* As hd__nobody_counts, for all processes, daemons too. */
bool hd__nobody_lives(struct hd__sched *sched);

#endif
