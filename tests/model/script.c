/* model/script.c - random programs: making and printing them.
 *
 * Each script draws its own few priorities and its own weights of the operations, so that one script is all semaphores and
 * another all suspending: more corners are met that way than by an even mix (swarm testing). A few are made for the limit
 * on hand-offs in a row: chains, in which each process spawns and joins the next, go beyond it; combs, in which one process
 * spawns and joins many, one after the other, have as many, but not in a row. */
#include "model/script.h"

#include <string.h>

struct random {
	uint64_t state;
	unsigned priorities, priority[4];
	unsigned weights[OP_KINDS], weight;
};

/* splitmix64 */
static uint64_t next(struct random *r)
{
	uint64_t z = r->state += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}

/* 0 .. n-1 */
static unsigned below(struct random *r, unsigned n)
{
	return (unsigned)((next(r) >> 32) * n >> 32);
}

static bool one_in(struct random *r, unsigned n)
{
	return below(r, n) == 0;
}

static uint8_t some_priority(struct random *r)
{
	return (uint8_t)r->priority[below(r, r->priorities)];
}

static void insert(struct script *s, unsigned process, unsigned at, struct op op)
{
	struct op *ops = s->process[process].ops;
	unsigned *count = &s->process[process].count;

	if (*count == OPS_MAX)
		return;
	memmove(&ops[at + 1], &ops[at], (*count - at) * sizeof *ops);
	ops[at] = op;
	++*count;
}

/* Any operation but a spawn. */
static struct op some_op(struct random *r, const struct script *s, unsigned me)
{
	struct op op = { .kind = OP_SPAWN + 1 };
	unsigned pick = below(r, r->weight);

	while (pick >= r->weights[op.kind])
		pick -= r->weights[op.kind++];
	switch (op.kind) {
	case OP_WAIT:
	case OP_TRY_WAIT:
	case OP_SIGNAL:
	case OP_POST:
		op.flag = op.kind == OP_POST && one_in(r, 2);
		if (op.kind == OP_WAIT && me == 0)
			op.kind = OP_TRY_WAIT;
		op.who = (uint8_t)below(r, s->semaphores);
		break;
	case OP_RESUME:
	case OP_SUSPEND:
		if (me != 0 && one_in(r, 4))
			op.who = (uint8_t)me;
		else
			op.who = (uint8_t)(1 + below(r, s->processes - 1));
		break;
	case OP_SET_PRIORITY:
		op.who = (uint8_t)(one_in(r, 3) ? me : below(r, s->processes));
		op.priority = some_priority(r);
		if (one_in(r, 32))
			op.priority = one_in(r, 2) ? 9 : 81;
		break;
	case OP_JOIN:
	case OP_TRY_JOIN:
		if (me == 0)
			op.kind = OP_TRY_JOIN;
		op.who = (uint8_t)(me + below(r, s->processes - me));
		break;
	case OP_DETACH:
	case OP_LOOK:
		op.who = (uint8_t)(1 + below(r, s->processes - 1));
		break;
	case OP_EXIT:
		if (me == 0)
			op.kind = OP_CHECKPOINT;
		op.flag = one_in(r, 4);
		break;
	default:
		break;
	}
	return op;
}

static void draw_settings(struct random *r, struct script *s)
{
	static const uint8_t most[OP_KINDS] = {
		[OP_RESUME] = 6,   [OP_SUSPEND] = 6, [OP_YIELD] = 8,	    [OP_CHECKPOINT] = 3, [OP_WAIT] = 8,
		[OP_TRY_WAIT] = 3, [OP_SIGNAL] = 8,  [OP_SET_PRIORITY] = 8, [OP_JOIN] = 5,	 [OP_TRY_JOIN] = 2,
		[OP_DETACH] = 2,   [OP_LOOK] = 3,    [OP_EXIT] = 2,	    [OP_POST] = 4
	};

	r->priorities = 1 + below(r, 4);
	for (unsigned i = 0; i < r->priorities; i++) /* half of them near the seam of the run queue's two words */
		r->priority[i] = one_in(r, 2) ? 72 + below(r, 4) : 10 + below(r, 71);
	for (unsigned kind = OP_SPAWN + 1; kind < OP_KINDS; kind++) {
		r->weights[kind] = most[kind] == 0 || one_in(r, 4) ? 0 : below(r, most[kind] + 1u);
		r->weight += r->weights[kind];
	}
	r->weights[OP_CHECKPOINT]++; /* so that there is always something to draw */
	r->weight++;
	s->semaphores = 1 + below(r, SEMAPHORES_MAX);
	for (unsigned i = 0; i < s->semaphores; i++)
		s->signals[i] = (uint8_t)(one_in(r, 2) ? 0 : below(r, 3));
}

static struct op some_spawn(struct random *r, unsigned child)
{
	return (struct op){
		.kind = OP_SPAWN, .who = (uint8_t)child, .priority = one_in(r, 2) ? 0 : some_priority(r), .flag = one_in(r, 4)
	};
}

/* A tree of processes, each doing this and that. */
static void generate_bush(struct random *r, struct script *s)
{
	unsigned length = 2 + below(r, 9);

	s->processes = 2 + below(r, one_in(r, 4) ? 15 : 7);
	for (unsigned p = 0; p < s->processes; p++)
		for (unsigned n = below(r, length + 1); n > 0; n--)
			insert(s, p, s->process[p].count, some_op(r, s, p));
	for (unsigned child = 1; child < s->processes; child++) {
		unsigned parent = one_in(r, 3) ? 0 : below(r, child);
		unsigned at = one_in(r, 2) ? 0 : below(r, s->process[parent].count + 1);
		insert(s, parent, at, some_spawn(r, child));
		if (parent != 0 && at < s->process[parent].count && one_in(r, 3))
			insert(s, parent, at + 1, (struct op){ .kind = OP_JOIN, .who = (uint8_t)child });
	}
}

static void add_spawn_and_join(struct script *s, unsigned parent, unsigned child)
{
	insert(s, parent, s->process[parent].count, (struct op){ .kind = OP_SPAWN, .who = (uint8_t)child });
	insert(s, parent, s->process[parent].count, (struct op){ .kind = OP_JOIN, .who = (uint8_t)child });
}

/* Processes after `last` come between the others; and a few operations here and there. */
static void add_rivals(struct random *r, struct script *s, unsigned last)
{
	for (unsigned p = last + 1; p < s->processes; p++) {
		struct op spawn = { .kind = OP_SPAWN, .who = (uint8_t)p, .priority = one_in(r, 4) ? some_priority(r) : 0 };
		insert(s, one_in(r, 2) ? 1 : 1 + below(r, last - 1), 0, spawn);
		for (unsigned n = below(r, 4); n > 0; n--)
			insert(s, p, 0, one_in(r, 2) ? (struct op){ .kind = OP_YIELD } : some_op(r, s, p));
	}
	for (unsigned n = below(r, 6); n > 0; n--) {
		unsigned p = 1 + below(r, last);
		insert(s, p, below(r, s->process[p].count + 1), some_op(r, s, p));
	}
}

/* 1 spawns and joins 2, which spawns and joins 3, and so on; with a few rivals to come between. */
static void generate_chain(struct random *r, struct script *s)
{
	unsigned links = 60 + below(r, 30), rivals = below(r, 6);

	s->processes = 1 + links + rivals;
	insert(s, 0, 0, (struct op){ .kind = OP_SPAWN, .who = 1, .priority = some_priority(r) });
	for (unsigned p = 1; p < links; p++)
		add_spawn_and_join(s, p, p + 1);
	add_rivals(r, s, links);
}

/* 1 spawns and joins TEETH others, one after the other, and each of them does so too. */
static void generate_comb(struct random *r, struct script *s)
{
	enum { TEETH = 9 };
	unsigned last = 1;

	insert(s, 0, 0, (struct op){ .kind = OP_SPAWN, .who = 1, .priority = some_priority(r) });
	for (unsigned i = 0; i < TEETH; i++) {
		unsigned tooth = ++last;
		add_spawn_and_join(s, 1, tooth);
		for (unsigned k = 0; k < TEETH; k++)
			add_spawn_and_join(s, tooth, ++last);
	}
	s->processes = 1 + last + below(r, 4);
	add_rivals(r, s, last);
}

void script_generate(struct script *s, uint64_t seed)
{
	struct random r = { .state = seed };

	s->seed = seed;
	memset(s->signals, 0, sizeof s->signals);
	for (unsigned p = 0; p < PROCESSES_MAX; p++)
		s->process[p].count = 0;
	draw_settings(&r, s);
	if (one_in(&r, 64))
		generate_chain(&r, s);
	else if (one_in(&r, 128))
		generate_comb(&r, s);
	else
		generate_bush(&r, s);
}

/* A round: main at the lowest priority, a signal for each semaphore, resume for each process, a yield to those as low. */
bool script_release(const struct script *s, struct release *r, const bool *alive, struct op *op)
{
	if (!r->collecting && r->at == 0) {
		bool any = false;
		for (unsigned p = 1; p < s->processes; p++)
			any |= alive[p];
		r->collecting = !any;
		r->at = 1;
		if (any) {
			*op = (struct op){ .kind = OP_SET_PRIORITY, .who = 0, .priority = 10 };
			return true;
		}
	}
	if (r->collecting) {
		*op = (struct op){ .kind = OP_JOIN, .who = (uint8_t)r->at };
		return r->at++ < s->processes;
	}
	if (r->at <= s->semaphores) {
		*op = (struct op){ .kind = OP_SIGNAL, .who = (uint8_t)(r->at++ - 1) };
		return true;
	}
	while (r->at - s->semaphores < s->processes) {
		unsigned p = r->at++ - s->semaphores;
		*op = (struct op){ .kind = OP_RESUME, .who = (uint8_t)p };
		if (alive[p])
			return true;
	}
	*op = (struct op){ .kind = OP_YIELD };
	r->at = 0;
	return true;
}

static void print_op(FILE *f, struct op op)
{
	static const char *const names[OP_KINDS] = {
		"start",  "spawn", "resume",	   "suspend", "yield",	  "checkpoint", "wait", "try_wait",
		"signal", "post",  "set_priority", "join",    "try_join", "detach",	"look", "exit",
	};

	fprintf(f, "%s", op.kind == OP_EXIT && op.flag ? "fail" : names[op.kind]);
	switch (op.kind) {
	case OP_WAIT:
	case OP_TRY_WAIT:
	case OP_SIGNAL:
	case OP_POST:
		fprintf(f, " s%u", op.who);
		break;
	case OP_START:
	case OP_YIELD:
	case OP_CHECKPOINT:
	case OP_EXIT:
		break;
	default:
		fprintf(f, " p%u", op.who);
	}
	if (op.kind == OP_SET_PRIORITY || (op.kind == OP_SPAWN && op.priority != 0))
		fprintf(f, " at %u", op.priority);
	if (op.kind == OP_SPAWN && op.flag)
		fprintf(f, " suspended");
	if (op.kind == OP_POST)
		fprintf(f, op.flag ? " and yield" : " and checkpoint");
}

void script_print(FILE *f, const struct script *s)
{
	bool spawned[PROCESSES_MAX] = { true };

	for (unsigned p = 0; p < s->processes; p++)
		for (unsigned i = 0; i < s->process[p].count; i++)
			if (s->process[p].ops[i].kind == OP_SPAWN)
				spawned[s->process[p].ops[i].who] = true;
	fprintf(f, "  semaphores:");
	for (unsigned i = 0; i < s->semaphores; i++)
		fprintf(f, " s%u has %u", i, s->signals[i]);
	fprintf(f, "\n");
	for (unsigned p = 0; p < s->processes; p++) {
		if (!spawned[p])
			continue;
		fprintf(f, "  p%u%s:", p, p == 0 ? " (main, at 10)" : "");
		for (unsigned i = 0; i < s->process[p].count; i++) {
			fprintf(f, "%s %u: ", i == 0 ? "" : ";", i);
			print_op(f, s->process[p].ops[i]);
		}
		fprintf(f, "\n");
	}
}

void script_print_event(FILE *f, const struct event *e)
{
	fprintf(f, "p%u ", e->process);
	if (e->index >= 0)
		fprintf(f, "%d: ", e->index);
	print_op(f, e->op);
	fprintf(f, " = %d", e->result);
}
