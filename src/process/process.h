/* process/process.h - the control block of a process, and the word through which everybody may ask something of it.
 *
 * One writer: everything in a control block is written by the process's home worker alone, with plain stores (by whoever holds
 * the lock of the home worker's share while it waits there for a worker), except
 *   control      any thread, by compare-and-swap (below)
 *   outcome      whoever decides its wait (wait/wait.h)
 *   news, bond   whoever holds news.lock
 *   wake, nudge  whoever has the right to post them: the one that claimed the wait; the one that set HD__NUDGED
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
 *                        v                     | unparked
 *                      ENDED --> free          +--------------------> READY
 *                          joined, or detached
 *
 * hd__move (sched/state.h) is the only function that takes an edge. */
#ifndef PROCESS_PROCESS_H
#define PROCESS_PROCESS_H

#include <heddle/base.h>
#include <heddle/process.h>

#include "arch/fiber.h"
#include "base/atomic.h"
#include "context.h"

#define HD__LEVELS 71 /* priorities 10 to 80 */
#define HD__PRIORITY_MIN 10
#define HD__PRIORITY_MAX 80

#define HD__SLOT_BITS 24
#define HD__SLOTS (1u << HD__SLOT_BITS)
#define HD__GENERATION_MAX ((UINT64_C(1) << 39) - 1)

/* The control word: what anybody may read or ask, decided in one compare-and-swap with the generation, so that a request
 * never hits the slot's next tenant.
 *
 *   63     62 .......... 24   23 .. 18    17 16    15 ..... 8   7 .... 0
 *    0     generation          0          policy   priority     flags
 *
 * Bits 24 to 62 are those of the id; the id has the slot number below them. */
enum {
	HD__SUSPEND = 1, /* it should be, or is, suspended */
	HD__DOOMED = 2,	 /* it should end at its next wait: the runtime is ending */
	HD__DEAD = 4,	 /* it has ended: a zombie, or a free slot */
	HD__NUDGED = 8,	 /* `nudge` is on its way to the home worker, who has not looked at this word yet */
	HD__MOVING = 16	 /* it is being given another home; never together with NUDGED */
};
#define HD__CONTROL_PRIORITY(c) ((int)((c) >> 8 & 0xff))
#define HD__CONTROL_POLICY(c) ((enum hd_policy)((c) >> 16 & 3))
#define HD__CONTROL(generation, policy, priority, flags)                                                                       \
	((uint64_t)(generation) << HD__SLOT_BITS | (uint64_t)(policy) << 16 | (uint64_t)(priority) << 8 | (flags))
#define HD__GENERATION(c) ((uint64_t)(c) >> HD__SLOT_BITS)

/* Who will collect the end of a process; guarded by news.lock. */
enum hd__bond { HD__JOINABLE, HD__JOINED /* somebody waits in hd_join */, HD__DETACHED };

/* Whether it may change its worker (rule 13). One that does not roam has its home for good. */
enum hd__roaming {
	HD__PINNED,
	HD__UNSTARTED, /* until it first runs */
	HD__MOVABLE    /* always: its author promised */
};

struct hd_worker;
struct hd_waiter;
struct hd__locals;

struct hd_process {
	/* what a switch touches */
	struct hd__context context;
	struct hd_process *next, *prev; /* in a run queue, or in a list of free blocks */
	struct hd_worker *home; /* the only worker that runs it and writes here (*); see sched/share.h for who changes it */
	uint64_t arrival;	/* READY: its place among the ready ones of its worker and level; else see hd__turn */
	int saved_errno;
	uint8_t state;	  /* enum hd_state (*) */
	uint8_t priority; /* as in the control word, once the home worker has looked (*) */
	uint8_t policy;	  /* likewise (*) */
	uint8_t chores;	  /* before it runs: HD__START, HD__BEGIN_QUANTUM (sched/worker.h) */

	uint64_t control;
	struct hd_waiter *waiter; /* WAITING: its record; NULL: for time alone */
	uint64_t timer;		  /* WAITING: the order of its deadline; 0: none (*) */
	hd_time since;		  /* coarse time of the last change of state (*) */
	hd_time cpu_time;	  /* coarse (*) */
	uint64_t switches;	  /* (*) */
	uint8_t outcome;	  /* WAITING: how it ended (wait/wait.h); decided by any thread, acq_rel */
	uint8_t why;		  /* WAITING: enum hd_wait (*) */
	bool daemon, ending;
	uint8_t roams; /* enum hd__roaming (*) */
	uint16_t
		shared; /* READY, and in the share of the worker with this index, less one; 0: in none; under that one's lock (*) */
	char *stack; /* lowest address above the guard; NULL before the first run and after the end (*) */

	hd_entry entry;
	void *value; /* the argument, then the result */
	struct hd_waitq news;
	struct hd_note wake;  /* "your wait is over": from other threads */
	struct hd_note nudge; /* "look at your control word" */
	struct hd__locals *locals;
	int32_t end_err;
	uint8_t end_kind;     /* enum hd_end_kind */
	uint8_t bond;	      /* enum hd__bond */
	uint8_t stack_class;  /* log2 of its stack's size */
	hd_time quantum_left; /* HD_RR, HD_IO: of the current quantum; 0: a new one */
	char name[HD_NAME_SIZE];
	struct hd__fiber fiber;
} __attribute__((aligned(64)));

#if !HD__ASAN && !HD__TSAN
_Static_assert(sizeof(struct hd_process) == 256, "a control block is four cache lines");
#endif

/* Whether it stays on w for good. Its home is what it will be when it has ceased to roam, so that is asked first. */
static inline bool hd__is_pinned_to(const struct hd_process *p, const struct hd_worker *w)
{
	return ld_acq(&p->roams) == HD__PINNED && ld_rlx(&p->home) == w; /* pairs with hd__pin */
}

/* It stays where it is from now on, unless it is movable. */
static inline void hd__pin(struct hd_process *p)
{
	if (p->roams == HD__UNSTARTED)
		st_rel(&p->roams, HD__PINNED);
}

/* A process that should end is not stopped any more. */
static inline bool hd__should_stop(uint64_t control)
{
	return (control & (HD__SUSPEND | HD__DOOMED)) == HD__SUSPEND;
}

static inline bool hd__alive(uint64_t control, hd_pid pid)
{
	return (control ^ (uint64_t)pid) >> HD__SLOT_BITS == 0 && !(control & HD__DEAD);
}

/* A free block has the generation of its next tenant already, and is dead; but it has no state. */
static inline bool hd__alive_or_zombie(const struct hd_process *p, hd_pid pid)
{
	uint64_t control = ld_acq(&p->control);
	return (control ^ (uint64_t)pid) >> HD__SLOT_BITS == 0 && (!(control & HD__DEAD) || ld_acq(&p->state) != 0);
}

#endif
