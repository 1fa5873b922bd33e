/* process/process.h - the control block of a process, and the word through which any thread may ask something of it.
 *
 * One writer: everything in a control block is written by the thread that is inside the lane of the process's home worker
 * (sched/lane.h), with plain stores, except
 *   control      any thread, by compare-and-swap (below)
 *   wait         the thread that decides its wait (wait/wait.h)
 *   home, state and wait of a waiting process   also the worker that has claimed its wait and adopts it (wait/wait.c)
 *   news, bond, mourner, and end_err while it lives   the holder of news.lock
 *   arrival of one that waits in hd_call   the holder of the lock of its reply port (port/call.c)
 *   lent         the holder of the lock of its loans (sync/lend.c)
 *   wake, nudge  the thread with the right to post them: the one that claimed the wait; the one that set HD__NUDGED
 * Fields marked (*) are read by other threads too and are therefore stored with st_rlx.
 *
 *                        spawn                           spawn suspended
 *                          |                                   |
 *                          v          suspend                  v
 *        +------------> READY <-----------------------> SUSPENDED
 *        |   yield,      | ^              resume           ^    ^
 *        |   preempted,  | |                               |    |
 *        |   quantum     v |                     suspend   |    | granted, timed out
 *        +------------ RUNNING ----------------------------+    | while suspended
 *                        | |         park                       |
 *                   end  | +--------------> WAITING ------------+
 *                        v                  ^  | unparked
 *                      ENDED --> free       |  +--------------------> READY
 *                          joined, or       |
 *                          detached       born waiting (life/guest.c)
 *
 * hd__move (sched/state.h) is the only function that takes an edge. */
#ifndef PROCESS_PROCESS_H
#define PROCESS_PROCESS_H

#include <heddle/base.h>
#include <heddle/process.h>

#include "arch/carry.h"
#include "base/atomic.h"
#include "context.h"

#define HD__LEVELS 71 /* priorities 10 to 80 */
#define HD__PRIORITY_MIN 10
#define HD__PRIORITY_MAX 80

#define HD__SLOT_BITS 24
#define HD__SLOTS (1u << HD__SLOT_BITS)
#define HD__GENERATION_MAX ((UINT64_C(1) << 39) - 1)

/* The control word: what any thread may read or ask, decided in one compare-and-swap with the generation, so that a request
 * never hits the slot's next process.
 *
 *   63     62 .......... 24   23 22    21 .. 15   14 ..... 8   7 .... 0
 *    0     generation         policy   boost      priority     flags
 *
 * Bits 24 to 62 are those of the id; the id has the slot number below them. The boost is the priority that waiters or a
 * terminator lend the process, 0 if none: it runs with the higher of the two. */
enum {
	HD__SUSPEND = 1,  /* it should be, or is, suspended */
	HD__DOOMED = 2,	  /* it should end at its next cancellation point: it was terminated, or the runtime is ending */
	HD__DEAD = 4,	  /* it has ended: a zombie, or a free slot */
	HD__NUDGED = 8,	  /* `nudge` is on its way to the home worker; this word is not obeyed yet; `home` is constant */
	HD__MOVING = 16,  /* it is being given another home, for a few instructions; never together with NUDGED */
	HD__CANCEL = 32,  /* it was cancelled, and has not cleared that */
	HD__LOGGED = 128, /* it is a behaviour of a log (when/log.c): calls that would bring chance in are refused; constant */
	HD__REBOOST = 64  /* the waiters for its mutexes or answers have changed: the home worker should find its boost anew */
};
#define HD__CONTROL_PRIORITY(c) ((int)((c) >> 8 & 0x7f))
#define HD__CONTROL_BOOST(c) ((int)((c) >> 15 & 0x7f))
#define HD__CONTROL_POLICY(c) ((enum hd_policy)((c) >> 22 & 3))
#define HD__CONTROL(generation, policy, priority, flags)                                                                       \
	((uint64_t)(generation) << HD__SLOT_BITS | (uint64_t)(policy) << 22 | (uint64_t)(priority) << 8 | (flags))
#define HD__BOOST(priority) ((uint64_t)(priority) << 15)
#define HD__GENERATION(c) ((uint64_t)(c) >> HD__SLOT_BITS)

/* p->wait: the outcome of its wait in the lowest bits, the number of its deadline above them (0: none), so that a deadline never ends a
 * wait that came after its own. */
#define HD__WAIT_BITS 8

/* What a process is from its beginning to its end. */
enum {
	HD__DAEMON = 1,	   /* it does not keep the runtime running */
	HD__MACHINE = 2,   /* it has a stack in its turns only (port/machine.c) */
	HD__BEHAVIOUR = 4, /* likewise, and its turn is that of a behaviour (when/when.c) */
	HD__OWN_TLS = 8	   /* it has thread-local storage of its own (life/own_tls.c) */
};

/* How the end of a process is collected; guarded by news.lock. */
enum hd__bond { HD__JOINABLE, HD__JOINED /* by a joiner that waits for it, or has begun to collect it */, HD__DETACHED };

struct hd_worker;
struct hd_waiter;
struct hd_process;
struct hd_cleanup;
struct hd_group;
struct hd_machine_ops;
struct hd_mutex;
struct hd__locals;

struct hd__trail;
struct hd__more;

/* What only a process that has begun needs: at the top of its stack, and written by it, or inside its home's lane. A machine has none between
 * two turns (port/machine.c). */
struct hd__inner {
	struct hd__locals *locals;
	struct hd_cleanup *cleanups; /* the newest first */
	struct hd_group *groups;     /* that it has opened, the newest first */
	struct hd_waiter *won;	   /* it waits in several queues: the claimed record, written by the claimer; NULL: none yet */
	struct hd_waiter *records; /* its records in several queues, chained by `sibling` */
	struct hd_mutex *held;	   /* of those with HD_INHERIT, what it has */
	hd_time quantum_left;	   /* HD_RR, HD_IO: of the current quantum; 0: a new one */
	struct hd__more *more;	 /* of its mailbox: where the letters may be that it receives next; NULL: perhaps it has none */
	struct hd__trail *trail; /* config.deadlock: where it last waited for an owner; or NULL */
	uint32_t dice;		 /* hd_select: for choices that should be fair */
	uint8_t unpreemptible;	 /* hd_preempt_disable, so many times */
	uint8_t waited;		 /* of a machine: how the wait before its turn ended, enum hd__outcome */
	bool deaf;		 /* cancels and terminations wait */
	bool unwinds;		 /* a cancel ends it */
};

/* What must be told of a process's end, besides its joiner: a group, a promise, its mailbox. */
struct hd__mourner {
	struct hd__mourner *next; /* of the same process; or NULL */
	const struct hd__mourner_ops *ops;
};

struct hd__mourner_ops {
	/* The process has its id, and is about to begin: called twice by the thread that spawns it, inside its lane, before requests by id
	 * find the process and when they do. Or NULL. */
	void (*born)(struct hd__mourner *mourner, hd_pid pid);
	/* Before that, by the process itself on its own stack, outside its lane, if it has run: it may wait. Or NULL. */
	void (*ending)(struct hd__mourner *mourner, struct hd_process *me, enum hd_end_kind kind, int err);
	/* After it is dead, inside its home's lane; no other lock is held. */
	void (*ended)(struct hd__mourner *mourner, struct hd_worker *w, const struct hd_end *end);
};

struct hd_process {
	/* what a switch touches */
	struct hd__context context;
	struct hd_process *next, *prev; /* in a run queue, or in a list of free blocks */
	struct hd_worker *home;		/* the worker in whose lane it is; hd__move_home alone changes it (*) */
	uint64_t arrival; /* READY: its number among the arrivals in its queue; in a turn that its joiner lent it: hd__turn;
			   * while `why` is HD_WAIT_CALL: the process that will answer; of a machine that waits for a message:
			   * the port, or 0 */
	int saved_errno;
	uint8_t state;	  /* enum hd_state (*) */
	uint8_t priority; /* the effective one of the control word, once that is obeyed (*) */
	uint8_t policy;	  /* likewise (*) */
	uint8_t chores;	  /* before it runs: HD__START, HD__BEGIN_QUANTUM, HD__CARRY (sched/worker.h) */

	uint64_t control;
	struct hd_waiter *waiter; /* WAITING: its record; NULL: for time alone, or in several queues (*) */
	uint64_t wait;		  /* number of its deadline and outcome of its wait (wait/wait.h); any thread, acq_rel */
	hd_time since;		  /* coarse time of the last change of state (*) */
	hd_time cpu_time;	  /* coarse (*) */
	uint64_t switches;	  /* (*) */
	uint16_t pins;		  /* while above 0 it stays on its worker; written by spawn and by the running process */
	uint8_t why, rules;	  /* WAITING: enum hd_wait, for people to read; what may end it (wait/wait.h) (*) */
	uint8_t nature;		  /* HD__DAEMON and its like; constant while it lives (*) */
	bool ending;		  /* its cleanups and their like run; nothing calls off a wait of theirs */
	uint8_t lowest;		  /* the lowest priority of its own that it has had (*) */
	uint8_t lent; /* the highest that its callers lend it; 0: none. Under the lock of its loans (sync/lend.c) (*) */
	char *stack; /* lowest address above the guard; NULL before the first run and after the end, and between a machine's turns (*) */

	union {
		hd_entry entry;
		const struct hd_machine_ops *ops; /* of a machine */
	};
	void *value; /* the argument, then the result */
	struct hd_waitq news;
	struct hd_note wake;	     /* from another thread: its wait is over, or it was spawned */
	struct hd_note nudge;	     /* its control word is to be obeyed */
	struct hd__inner *inner;     /* NULL before it first runs, and between a machine's turns (*) */
	struct hd__mourner *mourner; /* the first, or NULL; written by spawn, and then under news.lock (*) */
	int32_t end_err;	     /* while it lives: why it was killed; under news.lock */
	uint8_t end_kind;	     /* enum hd_end_kind */
	uint8_t bond;		     /* enum hd__bond */
	uint8_t doom_boost;	     /* the highest priority of its terminators; 0: none; under news.lock (*) */
	uint8_t stack_class;	     /* log2 of its stack's size */
	char name[HD_NAME_SIZE];
} __attribute__((aligned(64)));

_Static_assert(sizeof(struct hd_process) == 256, "a control block is four cache lines");

/* What it carries is below its inner block; unused if nothing is to be carried. */
static inline struct hd__carried *hd__carried_of(struct hd_process *p)
{
	return (struct hd__carried *)p->inner - 1;
}

/* A process that should end is not stopped any more. */
static inline bool hd__should_stop(uint64_t control)
{
	return (control & (HD__SUSPEND | HD__DOOMED)) == HD__SUSPEND;
}

static inline int hd__effective_priority(uint64_t control)
{
	int priority = HD__CONTROL_PRIORITY(control), boost = HD__CONTROL_BOOST(control);
	return priority > boost ? priority : boost;
}

static inline bool hd__alive(uint64_t control, hd_pid pid)
{
	return (control ^ (uint64_t)pid) >> HD__SLOT_BITS == 0 && !(control & HD__DEAD);
}

/* A free block has the generation of its next process already, and is dead; but it has no state. */
static inline bool hd__alive_or_zombie(const struct hd_process *p, hd_pid pid)
{
	uint64_t control = ld_acq(&p->control);
	return (control ^ (uint64_t)pid) >> HD__SLOT_BITS == 0 && (!(control & HD__DEAD) || ld_acq(&p->state) != 0);
}

#endif
