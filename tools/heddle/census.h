/* census.h - what all processes of a program do, read from its memory (memory.h) by the description that heddle has in it (rt/inside.h). */
#ifndef CENSUS_H
#define CENSUS_H

#include "memory.h"
#include "rt/inside.h"

/* A description: a program has one for each copy of heddle in it. */
struct copy {
	uint64_t at;	/* its address */
	char path[256]; /* of the file that it is in; "" when it is not known */
	struct hd__inside inside;
	bool known; /* its version is ours, and what it says can be; else only `version` counts */
	uint32_t version;
};

/* Finds all copies in m, `max` at most. Returns how many. */
size_t copies_find(struct memory *m, struct copy *copies, size_t max);

/* A process. */
struct row {
	int64_t pid;
	char name[32];
	uint8_t state;	   /* enum hd_state */
	uint8_t own, lent; /* its own priority; the higher one that it has been lent, or 0 */
	uint8_t policy;	   /* enum hd_policy */
	uint8_t nature;	   /* HD__DAEMON and its like */
	uint8_t why;	   /* enum hd_wait; 0: it does not wait */
	uint8_t stack_class;
	bool suspended, ending, detached, pinned;
	bool timed;	/* its wait has a deadline */
	bool changing;	/* it changed whenever it was read: what is told of it may be of two moments */
	int32_t worker; /* -1: not known */
	int32_t fd;	/* that it waits for; -1: none */
	uint32_t slot;
	uint32_t waiters;     /* processes that wait for what it has, or for it; */
	uint32_t first, next; /* of them, the first row; the next that waits for the same process as this one; NONE: no more */
	int64_t since, cpu_time;
	uint64_t switches;
	uint64_t object;	    /* what it waits in; 0: nothing with an address */
	int64_t holder;		    /* the process that has it; below 0: a plain thread; 0: none, or not known */
	uint64_t stack, stack_used; /* its address; bytes. 0: it has none */
	uint64_t function;	    /* its entry; of a behaviour, its function; of a machine, its table of functions */
	uint64_t wait, waiter;	    /* as they were read, for row_is_same */
	uint64_t sp, fp, pc;	    /* of one that does not run, where it will go on; pc is 0 while it leaves its stack */
};
#define NONE UINT32_MAX

struct worker {
	int64_t running; /* the process that it runs; 0: none */
	uint64_t switches;
	uint32_t ready; /* processes that are ready there */
	int32_t thread; /* the kernel's number of its thread; 0: not known */
	bool asleep;
};

struct census {
	struct memory *m;
	const struct copy *copy;
	uint64_t sched, blocks;
	uint32_t made;	   /* blocks that were ever used */
	int64_t now;	   /* on heddle's clock */
	bool now_is_exact; /* else it is the last time that the program has read the clock */
	int64_t thread;	   /* that called hd_run */
	bool stopping;
	struct worker *workers;
	uint32_t nworkers;
	struct row *rows; /* by slot */
	uint32_t count;
	uint32_t missing; /* blocks that could not be read */
};

/* Reads them all. False: it cannot be, and `why` says why. Afterwards census_drop. */
bool census_take(struct census *c, struct memory *m, const struct copy *copy, char *why, size_t why_size);
void census_drop(struct census *c);

/* Fills in how much each process has used of its stack. */
void census_measure_stacks(struct census *c);

/* The row of a process; NULL: there is none, because it has ended, or because it has come while the rows were read. */
struct row *census_find(const struct census *c, int64_t pid);

/* A number that the runtime (worker: -1) or a worker of it has, as of this moment; 0 when its heddle is older and does not have it, or it cannot be read. */
uint64_t census_number(const struct census *c, int worker, int which);

/* Whether a process has ended, as its block says. */
bool census_has_ended(const struct census *c, int64_t pid);

/* Whether a process is where it was: it has not run meanwhile. Always so in a core file. */
bool row_is_same(const struct census *c, const struct row *r);

/* As row_is_same, for n rows at a time; those that are the same learn anew where they will go on. */
void rows_look_again(const struct census *c, struct row *const *rows, size_t n, bool *same);

/* Looks again which process a worker runs: its row, as it is now. NULL: none, or one that has come since the rows were read. */
struct row *census_runner(struct census *c, uint32_t worker);

/* Whether besides it still waits for the same thing, and the same process has that. */
bool row_waits_for_same(const struct census *c, const struct row *r);

/* What people read of a process or thread: "reader #12", as in heddle's own reports; "#12" alone. */
#define WHO_SIZE 96
const char *who(const struct census *c, int64_t pid, char text[WHO_SIZE]);
const char *id_of(int64_t pid, char text[WHO_SIZE]);

/* The call that a process waits in; what kind of object it is, "mutex"; and which, "mutex 0x55d0c0", "fd 7", or "" when it is nothing that has an address. */
const char *call_of(const struct census *c, const struct row *r);
const char *object_kind(const struct census *c, const struct row *r);
const char *object_of(const struct census *c, const struct row *r, char text[WHO_SIZE]);

/* What a process is: "process", "machine", "behaviour". */
const char *kind_of(const struct row *r);
const char *state_of(const struct row *r);
const char *policy_of(const struct row *r);

/* How long a process has been in its state, ns; 0 when its times make no sense. */
int64_t age_of(const struct census *c, const struct row *r);

/* A distance in time: "12.3 s". */
const char *span(int64_t from, int64_t to, char text[32]);

#endif
