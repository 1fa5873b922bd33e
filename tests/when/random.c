/* when/random.c - random programs of behaviours, beside a reference that runs them one after the other.
 *
 * A program is a forest: processes make behaviours, and these make others, alone or in batches, on 0 to 4 cowns, some named twice, some only read. A maker has
 * references to what it and its descendants will name, unless it has the cown itself, and releases them as soon as all is made. Each behaviour
 * notes when its call began and ended and when it ran, and what it found in its cowns: a number that tells all the writers before it.
 *
 * The reference is one queue of calls. It takes a call when every call that was over before that one began is in the queue, and every one whose behaviours
 * were seen to run before a conflicting one of its own. If there is always such a call, the order is that of some serial program; and
 * running the queue one by one must give every behaviour what it found. */
#include "when/common.h"

enum { COWNS = 5, USES = 4, MOST = 24, CALLERS = 3 };

struct cell {
	uint64_t value;
	long inside; /* readers, and 1000 for each writer */
};

struct node {
	int uses[USES], n; /* cowns as they are named; */
	unsigned reads;	   /* a bit for each that is read */
	int early;	   /* the cown that it gives up early, or -1 */
	int call;
	int first, last; /* the nodes that it makes: [first, last) */
	unsigned needs;	 /* cowns of which its maker gives it a reference: a bit for each */
	long begins, runs;
	uint64_t found[USES];
};

struct call {
	long begins, ends;
	int first, last; /* its nodes */
};

static struct program {
	unsigned dice;
	int nodes, calls;
	struct node node[MOST];
	struct call call[MOST];
	struct cell cell[COWNS];
	hd_cown *cown[COWNS];
	int first[CALLERS + 1]; /* the nodes of the callers: [first[i], first[i + 1]) */
	unsigned needs[CALLERS];
} prog;

static long clock_hand, cowns_gone, started;
static int apart; /* so many callers begin at the same time, each on a worker of its own */

static unsigned roll(unsigned n)
{
	prog.dice = prog.dice * 1664525 + 1013904223;
	return (prog.dice >> 8) % n;
}

/* ---- a program ---- */

static bool writes(const struct node *b, int cown)
{
	for (int i = 0; i < b->n; i++)
		if (b->uses[i] == cown && !(b->reads >> i & 1))
			return true;
	return false;
}

static bool names(const struct node *b, int cown)
{
	for (int i = 0; i < b->n; i++)
		if (b->uses[i] == cown)
			return true;
	return false;
}

static unsigned named(const struct node *b)
{
	unsigned set = 0;

	for (int i = 0; i < b->n; i++)
		set |= 1u << b->uses[i];
	return set;
}

/* What the nodes [first, last) and their descendants name. */
static unsigned needed_by(int first, int last)
{
	unsigned set = 0;

	for (int i = first; i < last; i++)
		set |= named(&prog.node[i]) | prog.node[i].needs;
	return set;
}

static void invent_node(struct node *b, unsigned cowns)
{
	*b = (struct node){ .n = (int)roll(USES + 1), .reads = roll(2) ? roll(1u << USES) : 0, .early = -1 };
	for (int i = 0; i < b->n; i++)
		b->uses[i] = (int)roll(cowns);
	if (b->n > 0 && roll(4) == 0)
		b->early = b->uses[0];
}

/* Divides [first, last) into calls: most of one node, some of several. */
static void invent_calls(int first, int last)
{
	while (first < last) {
		int n = roll(4) == 0 ? 1 + (int)roll((unsigned)(last - first)) : 1;
		prog.call[prog.calls] = (struct call){ .first = first, .last = first + n };
		for (; n > 0; n--)
			prog.node[first++].call = prog.calls;
		prog.calls++;
	}
}

static void invent_program(unsigned seed)
{
	memset(&prog, 0, sizeof prog);
	prog.dice = seed * 2654435761u + 1;
	unsigned cowns = 1 + roll(COWNS);
	int top = CALLERS + (int)roll(MOST / 2), made;

	prog.nodes = top + (int)roll(MOST - (unsigned)top + 1);
	for (int i = 0; i < prog.nodes; i++)
		invent_node(&prog.node[i], cowns);
	for (int i = 0; i <= CALLERS; i++)
		prog.first[i] = top * i / CALLERS;
	for (int i = 0; i < CALLERS; i++)
		invent_calls(prog.first[i], prog.first[i + 1]);
	made = top;
	for (int i = 0; i < prog.nodes; i++) { /* each maker comes before what it makes */
		int left = prog.nodes - made, n = left == 0	  ? 0
						  : i == made - 1 ? 1 + (int)roll((unsigned)left)
								  : (int)roll(left < 4 ? (unsigned)left + 1 : 4);
		prog.node[i].first = made;
		prog.node[i].last = made += n;
		invent_calls(prog.node[i].first, made);
	}
	for (int i = prog.nodes - 1; i >= 0; i--) {
		struct node *b = &prog.node[i];
		b->needs = needed_by(b->first, b->last) & ~(b->early >= 0 ? named(b) & ~(1u << b->early) : named(b));
	}
	for (int i = 0; i < CALLERS; i++)
		prog.needs[i] = needed_by(prog.first[i], prog.first[i + 1]);
}

/* ---- the real thing ---- */

static uint64_t written(uint64_t value, int node)
{
	return value * 1000003 + (uint64_t)node + 1;
}

static void retain_all(unsigned set)
{
	for (int i = 0; i < COWNS; i++)
		if (set >> i & 1)
			CHECK(hd_cown_retain(prog.cown[i]) == prog.cown[i]);
}

static void release_all(unsigned set)
{
	for (int i = 0; i < COWNS; i++)
		if (set >> i & 1)
			hd_cown_release(prog.cown[i]);
}

static void run_node(void *arg, void *const data[]);

static void make(int first, int last)
{
	while (first < last) {
		struct call *call = &prog.call[prog.node[first].call];
		hd_cown *uses[MOST][USES];
		struct hd_when whens[MOST];
		int n = 0;

		for (int i = call->first; i < call->last; i++, n++) {
			struct node *b = &prog.node[i];
			for (int k = 0; k < b->n; k++)
				uses[n][k] = b->reads >> k & 1 ? HD_READ(prog.cown[b->uses[k]]) : prog.cown[b->uses[k]];
			whens[n] = (struct hd_when){ .fn = run_node, .arg = b, .uses = uses[n], .n = (size_t)b->n };
			retain_all(b->needs);
		}
		call->begins = add(&clock_hand, 1);
		CHECK_EQ(n == 1 ? hd_when_n(run_node, whens[0].arg, whens[0].uses, whens[0].n)
				: hd_when_batch(whens, (size_t)n),
			 0);
		call->ends = add(&clock_hand, 1);
		first = call->last;
	}
}

static void enter_cell(const struct node *b, int cown)
{
	long inside = add(&prog.cell[cown].inside, writes(b, cown) ? 1000 : 1);

	CHECK(writes(b, cown) ? inside == 1000 : inside < 1000);
}

static void leave_cell(const struct node *b, int cown)
{
	if (writes(b, cown))
		prog.cell[cown].value = written(prog.cell[cown].value, (int)(b - prog.node));
	CHECK(add(&prog.cell[cown].inside, writes(b, cown) ? -1000 : -1) >= 0);
}

static void run_node(void *arg, void *const data[])
{
	struct node *b = arg;

	b->begins = add(&clock_hand, 1);
	CHECK_EQ(add(&b->runs, 1), 1);
	for (int i = 0; i < COWNS; i++)
		if (names(b, i))
			enter_cell(b, i);
	if ((b - prog.node) % 4 == 0)
		hd_yield();
	for (int i = 0; i < b->n; i++) {
		CHECK(data[i] == &prog.cell[b->uses[i]]);
		b->found[i] = prog.cell[b->uses[i]].value;
	}
	if (b->early >= 0) {
		leave_cell(b, b->early);
		CHECK_EQ(hd_cown_release_early(prog.cown[b->early]), 0);
	}
	make(b->first, b->last);
	release_all(b->needs);
	for (int i = 0; i < COWNS; i++)
		if (names(b, i) && i != b->early)
			leave_cell(b, i);
}

static void *run_caller(void *number)
{
	int i = (int)(long)number;

	add(&started, 1);
	while (value_of(&started) < apart) /* no safe point: another worker must take the others */
		sched_yield();
	make(prog.first[i], prog.first[i + 1]);
	release_all(prog.needs[i]);
	return NULL;
}

static void count_gone(void *cell)
{
	CHECK_EQ(value_of(&((struct cell *)cell)->inside), 0);
	add(&cowns_gone, 1);
}

/* ---- the reference ---- */

static bool conflict(const struct node *a, const struct node *b)
{
	for (int i = 0; i < COWNS; i++)
		if (names(a, i) && names(b, i) && (writes(a, i) || writes(b, i)))
			return true;
	return false;
}

/* Whether call a must be in the queue before call b. */
static bool is_before(const struct call *a, const struct call *b)
{
	if (a->ends < b->begins)
		return true;
	for (int i = a->first; i < a->last; i++)
		for (int j = b->first; j < b->last; j++)
			if (prog.node[i].begins < prog.node[j].begins && conflict(&prog.node[i], &prog.node[j]))
				return true;
	return false;
}

static int next_call(const bool *queued)
{
	for (int b = 0; b < prog.calls; b++) {
		bool can = !queued[b];
		for (int a = 0; a < prog.calls && can; a++)
			can = queued[a] || a == b || !is_before(&prog.call[a], &prog.call[b]);
		if (can)
			return b;
	}
	return -1;
}

static void check_program(void)
{
	uint64_t value[COWNS] = { 0 };
	bool queued[MOST] = { false };

	for (int k = 0; k < prog.calls; k++) {
		int c = next_call(queued);
		CHECK(c >= 0); /* no serial program has this order */
		queued[c] = true;
		for (int j = prog.call[c].first; j < prog.call[c].last; j++) {
			struct node *b = &prog.node[j];
			CHECK_EQ(b->runs, 1);
			for (int i = 0; i < b->n; i++)
				CHECK_EQ(b->found[i], value[b->uses[i]]);
			for (int i = 0; i < COWNS; i++)
				if (writes(b, i))
					value[i] = written(value[i], j);
		}
	}
	for (int i = 0; i < COWNS; i++)
		CHECK_EQ(prog.cell[i].value, value[i]);
}

static void play(unsigned seed)
{
	hd_pid pids[CALLERS];

	invent_program(seed);
	cowns_gone = clock_hand = started = 0;
	for (int i = 0; i < COWNS; i++)
		CHECK((prog.cown[i] = hd_cown_new(&prog.cell[i], count_gone)) != NULL);
	for (long i = 0; i < CALLERS; i++) {
		retain_all(prog.needs[i]);
		pids[i] = born(hd_spawn(run_caller, (void *)i));
	}
	release_all((1u << COWNS) - 1);
	join_all(pids, CALLERS);
	quiesce();
	CHECK_EQ(cowns_gone, COWNS);
	check_program();
	check_none_left();
}

static void play_many(int workers, int n)
{
	static unsigned seed;
	const char *plan = getenv("HEDDLE_SIM"); /* if there is one, other programs for each */

	for (; plan != NULL && *plan != '\0'; plan++)
		seed = seed * 31 + (unsigned char)*plan;
	for (int i = 0; another_round(i, n); i++) {
		apart = i % 16 != 0 ? 1 : workers < CALLERS ? workers : CALLERS; /* workers must be woken for it */
		play(++seed);
	}
}

HD_WORKERS_TEST(when_runs_programs_at_random_as_some_serial_order_of_their_calls_does)
{
	play_many(workers, hd_is_simulated() ? 3 : hd_scaled(300));
}

HD_WORKERS_STRESS(when_runs_100000_random_programs_as_some_serial_order_of_their_calls_does)
{
	under_stress = true;
	play_many(workers, hd_is_simulated() ? 100 : hd_scaled(33334));
}
