/* model/script.h - random programs: what a handful of processes do, as data.
 *
 * A script is played twice, by the model and by the runtime, and both log an event for each step; the logs must be equal.
 * Process 0 is main. It never waits, and when its own operations are done it lets the others go on, round after round, until
 * all have ended; so every script ends, however stuck its processes are. */
#ifndef MODEL_SCRIPT_H
#define MODEL_SCRIPT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum { PROCESSES_MAX = 96, OPS_MAX = 24, SEMAPHORES_MAX = 3, EVENTS_MAX = 1 << 16 };

enum op_kind {
	OP_START, /* no operation: the event of a process that runs for the first time */
	OP_SPAWN, /* process `who`, at `priority` (0: inherited), suspended if `flag` */
	OP_RESUME,
	OP_SUSPEND,
	OP_YIELD,
	OP_CHECKPOINT,
	OP_WAIT, /* for semaphore `who` */
	OP_TRY_WAIT,
	OP_SIGNAL,
	OP_POST, /* as a signal handler would, then yield if `flag`, else checkpoint: the news has come when that begins */
	OP_SET_PRIORITY,
	OP_JOIN,     /* of a process with a higher number, so that no two wait for each other */
	OP_TRY_JOIN, /* a deadline that has passed */
	OP_DETACH,
	OP_LOOK, /* hd_process_info */
	OP_EXIT, /* as a failure if `flag` */
	OP_KINDS
};

struct op {
	uint8_t kind, who, priority;
	bool flag;
};

struct script {
	uint64_t seed;
	unsigned processes, semaphores;
	uint8_t signals[SEMAPHORES_MAX]; /* at the beginning */
	struct {
		unsigned count;
		struct op ops[OPS_MAX];
	} process[PROCESSES_MAX];
};

/* One step: what a process did, and what it got. Written when the process goes on after it. */
struct event {
	uint8_t process;
	struct op op;
	int16_t index; /* of the operation; -1: it starts */
	int32_t result;
};

struct log {
	unsigned count;
	struct event events[EVENTS_MAX];
};

/* What a process that ends with its operation number `index` (one past the last: by returning) has as its result. */
static inline int script_result(unsigned process, unsigned index)
{
	return (int)(1000 * (process + 1) + index);
}

/* What OP_LOOK logs: enum hd_state, enum hd_wait, whether it is suspended, its priority; of an ended one, that alone. */
static inline int script_look(int state, int ended, int why, bool suspended, int priority)
{
	return state == ended ? state : state | why << 4 | suspended << 8 | priority << 9;
}

/* How far main has come with letting the others go; zeroed at the beginning. */
struct release {
	unsigned at;
	bool collecting;
};

/* Main's next operation after its own ones; false when all have ended and been joined. alive[i]: spawned and not ended. */
bool script_release(const struct script *s, struct release *r, const bool *alive, struct op *op);

/* The random script with this seed. */
void script_generate(struct script *s, uint64_t seed);

void script_print(FILE *f, const struct script *s);
void script_print_event(FILE *f, const struct event *e);

#endif
