/* sim/plan.h - what a simulated run should do, and what came of it: the page that a program and its explorer share.
 *
 * A run is a row of decisions. Each has some options, of which the first is the usual one: the process that runs goes on, the
 * longest waiting one is next, nothing fails. A policy picks the options; those that were not the usual ones describe the run
 * completely, whatever policy made it. */
#ifndef SIM_PLAN_H
#define SIM_PLAN_H

#include <heddle/process.h>

enum hd__sim_policy {
	HD__SIM_LIST,	/* the usual options, but for those in the list */
	HD__SIM_RANDOM, /* any option, each as likely as the others */
	HD__SIM_PCT,	/* processes have random ranks, the highest runs; `depth` - 1 times the runner's becomes the lowest */
	HD__SIM_ROBIN	/* each process in turn */
};

/* What may fail; bits. Those of os/fault.h, and these. */
enum {
	HD__SIM_FAIL_ALLOC = 1,	  /* no memory from malloc */
	HD__SIM_FAIL_MAP = 2,	  /* no memory from mmap */
	HD__SIM_FAIL_GUARD = 4,	  /* no guard for a stack */
	HD__SIM_FAIL_TIME = 8,	  /* time passes while processes are ready, so that deadlines come at any moment */
	HD__SIM_FAIL_EINTR = 16,  /* a sleep in the kernel ends early, for no reason */
	HD__SIM_FAIL_MALLOC = 64, /* malloc and its like, of the program, heddle and the C library (tools/heddle/malloc.c) */
	HD__SIM_FAIL_THREAD = 32  /* no kernel thread (where the runtime itself is simulated) */
};

#define HD__SIM_WORKERS 4 /* of a list and of robin, when neither the program nor the plan says how many */
#define HD__SIM_WORKERS_MAX 255
#define HD__SIM_STEPS 100000	   /* as the policy says; then a run is only looked at for a while */
#define HD__SIM_LIST_MAX (1 << 16) /* unusual options of a run */
#define HD__SIM_LOG_MAX (1 << 18)  /* decisions of a run that are remembered */
#define HD__SIM_EVENTS_MAX (1 << 13)
#define HD__SIM_BATCH 256 /* runs between two answers to the explorer */
#define HD__SIM_FRAMES 16

struct hd__sim_plan {
	uint8_t policy;	   /* enum hd__sim_policy */
	uint8_t workers;   /* virtual ones; 0: as the program says; if it does not, some number that the seed gives */
	uint8_t depth;	   /* HD__SIM_PCT */
	uint8_t faults;	   /* what may fail */
	bool fail_on;	   /* all from fail_at on, not only that one */
	bool ignore_leaks; /* processes that were neither joined nor detached are no failure */
	uint32_t fail_at;  /* the call that fails, counted over all `faults`; 0: the policy decides */
	uint32_t length;   /* HD__SIM_PCT: steps of a run, about */
	uint32_t steps;	   /* for which the policy decides; 0: HD__SIM_STEPS */
	uint64_t seed;	   /* HD__SIM_RANDOM, HD__SIM_PCT */
	uint32_t unusual;  /* HD__SIM_LIST: how many there are */
	struct hd__sim_unusual {
		uint32_t at; /* the number of the decision, from 0 */
		uint16_t option;
	} list[HD__SIM_LIST_MAX];
};

enum hd__sim_verdict {
	HD__SIM_UNDECIDED, /* hd_run has not returned; how the program ended says more */
	HD__SIM_FINE,
	HD__SIM_DEADLOCK,
	HD__SIM_LIVELOCK, /* it goes in a circle: see sim/circle.h */
	HD__SIM_NOT_OVER, /* not over after so many steps, and not seen to go in a circle: no failure */
	HD__SIM_LEAK,	  /* a process that was neither joined nor detached, or a stack */
	HD__SIM_STATUS,	  /* fine, but the program's exit status is not 0 */
	HD__SIM_CRASH,	  /* a signal ended it: a failed assertion too */
	HD__SIM_HANG,	  /* it did not come by a heddle call for many seconds */
	HD__SIM_FOREIGN,  /* it has kernel threads of its own, which cannot be simulated */
	HD__SIM_ASTRAY	  /* the plan names an option that there is not: it was made for another program */
};

#define HD__SIM_FOREIGN_TEXT                                                                                                   \
	"the program has kernel threads of its own (its own, or a library's): only processes can be simulated, and no "        \
	"schedule "                                                                                                            \
	"could say when a thread runs"

enum hd__sim_kind {
	HD__SIM_STAYS,	/* which process runs next: the runner could go on, and any other is a preemption */
	HD__SIM_LEAVES, /* which process runs next: the runner waits, or has ended, and any may be next */
	HD__SIM_YIELDS, /* which process runs next: the runner gives way; it is the last option */
	HD__SIM_SEAT,	/* which process takes a free seat */
	HD__SIM_FAULT	/* whether something fails */
};

/* The first `free` options cost nothing in a bounded search; each of the others counts as a preemption. */
struct hd__sim_decision {
	uint8_t kind; /* enum hd__sim_kind */
	uint8_t options, option, free;
};

#define HD__SIM_NONE ((hd_pid)-1)

/* For the story of a run: one line each. */
struct hd__sim_event {
	hd_time when;	    /* since the beginning */
	uint32_t decision;  /* how many there have been */
	hd_pid who, next;   /* the process that stopped and the next one; HD__SIM_NONE: none */
	hd_pid holder;	    /* the process that owns what `who` waits for; HD__SIM_NONE: unknown */
	uint8_t state, why; /* of `who`, as it stopped: enum hd_state, enum hd_wait */
	char name[HD_NAME_SIZE], next_name[HD_NAME_SIZE];
	uintptr_t entry, next_entry; /* the functions that they began with */
	uint32_t frames;
	uintptr_t frame[HD__SIM_FRAMES]; /* where it stood, innermost first */
};

struct hd__sim_result {
	uint32_t verdict; /* enum hd__sim_verdict */
	int32_t status;	  /* of wait(2); the server's */
	uint32_t steps, decisions, faults_met, left, stacks;
	uint32_t circle; /* HD__SIM_LIVELOCK: its steps */
	uint32_t seats;	 /* virtual workers that there were */
	bool could_be_late; /* a deadline was waited for while processes were ready: HD__SIM_FAIL_TIME could have changed the run */
	uint64_t hash;
	hd_time elapsed; /* virtual */
};

struct hd__sim_page {
	uint32_t version;
	/* from the explorer */
	bool tell;	    /* record events */
	uint32_t count;	    /* runs, with seeds from plan.seed on, or till one fails */
	uint32_t patience;  /* ms that a run may pass without a heddle call */
	uint32_t time_left; /* ms that the batch may take; 0: no limit */
	struct hd__sim_plan plan;
	/* from the program */
	uint32_t done;		/* runs of this batch; the last is described by what follows */
	uint32_t longest;	/* in steps, of this batch, of runs that ended */
	uint32_t not_over;	/* runs of this batch */
	bool late;		/* time_left is over */
	bool could_be_late;	/* one run at least: see struct hd__sim_result */
	uint64_t not_over_seed; /* of the first of them */
	uint64_t hashes[HD__SIM_BATCH];
	struct hd__sim_result result;
	uint32_t
		events; /* that there were; the last HD__SIM_EVENTS_MAX of them are kept: event i in event[i % HD__SIM_EVENTS_MAX] */
	struct hd__sim_decision log[HD__SIM_LOG_MAX];
	struct hd__sim_event event[HD__SIM_EVENTS_MAX];
};

#define HD__SIM_VERSION ((uint32_t)sizeof(struct hd__sim_page)) /* both sides mean the same page */

/* A plan as text, as in `heddle replay`: random:SEED, pct:DEPTH:LENGTH:SEED, robin, list:AT=OPTION,..., each with :workers=N,
 * :steps=N, :leaks=0, :fail=WHAT+WHAT, :at=N or :from=N behind it where that is not the default; a number alone is random's seed. */
bool hd__sim_parse(struct hd__sim_plan *plan, const char *text);

#define HD__SIM_TEXT_MAX (HD__SIM_LIST_MAX * 16) /* no plan is longer */

/* At most `size` bytes with the final 0; false when it does not fit. */
bool hd__sim_format(const struct hd__sim_plan *plan, char *text, size_t size);

/* What may fail, by name: "malloc", "alloc", "map", "guard", "time", "eintr", "thread", joined by + or a comma. 0 when that is none. */
unsigned hd__sim_faults(const char *names, size_t length);

#endif
