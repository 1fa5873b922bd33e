/* sim/choice.c - every choice of a simulated run, drawn from its plan.
 *
 * Owns:       the policies, the log of decisions, the hash of the run.
 * Invariant:  nothing but the plan and what the program does decides: no address, no clock, no id of the kernel's. So a plan
 *             gives the same run each time, and so does the list of its unusual options.
 * Callers:    the one kernel thread of a simulated program. */
#include "sim/choice.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/assert.h"
#include "sim/sim.h"

#define FAULT_ODDS 32	/* one in so many */
#define RANKED_MAX 1024 /* processes that have been ranked lower */
#define CHANGES_MAX 255
#define PATIENCE 500

static struct {
	struct hd__sim_page *page;
	uint64_t random;
	uint32_t next_unusual;
	uint32_t changes[CHANGES_MAX]; /* HD__SIM_PCT: after how many choices of a runner its rank is changed */
	uint32_t choices;
	uint32_t insisted; /* how often hd__sim_insists has said yes */
	enum { AS_PLANNED, AT_RANDOM, IN_TURN } course;
	int64_t lowest;
	struct {
		hd_pid who;
		int64_t rank;
	} lowered[RANKED_MAX];
} s;

/* SplitMix64: every seed gives a good sequence. */
static uint64_t scramble(uint64_t x)
{
	x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
	return x ^ (x >> 31);
}

static uint64_t draw(void)
{
	s.random += UINT64_C(0x9e3779b97f4a7c15);
	return scramble(s.random);
}

void hd__sim_mix(uint64_t what)
{
	struct hd__sim_result *result = &s.page->result;

	if (s.course == IN_TURN)
		return; /* when a circle is found depends on memory that no plan decides: the C library's, for instance */
	result->hash = scramble(result->hash ^ what) + UINT64_C(0x9e3779b97f4a7c15);
}

void hd__sim_choice_begin(struct hd__sim_page *page)
{
	s.page = page; /* all else is zero: a process has one run */
	s.random = page->plan.seed;
	for (unsigned i = 0; i + 1 < page->plan.depth; i++)
		s.changes[i] = page->plan.length > 0 ? 1 + (uint32_t)(draw() % page->plan.length) : 0;
}

/* ---- HD__SIM_PCT ---- */

static int64_t rank_of(hd_pid who)
{
	for (unsigned i = (unsigned)who % RANKED_MAX, n = 0; n < RANKED_MAX && s.lowered[i].who != 0;
	     i = (i + 1) % RANKED_MAX, n++)
		if (s.lowered[i].who == who)
			return s.lowered[i].rank;
	return CHANGES_MAX + (int64_t)(scramble(s.page->plan.seed ^ scramble((uint64_t)who)) >> 2);
}

static void lower(hd_pid who, int64_t rank)
{
	for (unsigned i = (unsigned)who % RANKED_MAX, n = 0; n < RANKED_MAX; i = (i + 1) % RANKED_MAX, n++)
		if (s.lowered[i].who == 0 || s.lowered[i].who == who) {
			s.lowered[i].who = who;
			s.lowered[i].rank = rank;
			return;
		}
}

unsigned hd__sim_seats(void)
{
	static const unsigned few[] = { 2, 3, 4, 8 };
	const struct hd__sim_plan *plan = &s.page->plan;
	uint64_t drawn = scramble(plan->seed ^ UINT64_C(0x5ea75));

	if (plan->policy != HD__SIM_RANDOM && plan->policy != HD__SIM_PCT)
		return HD__SIM_WORKERS;
	return drawn & 1 ? HD__SIM_WORKERS_MAX : few[(drawn >> 1) % (sizeof few / sizeof few[0])];
}

void hd__sim_yielded(hd_pid who, bool surely)
{
	if (s.page->plan.policy == HD__SIM_PCT && (surely || draw() & 1))
		lower(who, --s.lowest);
}

bool hd__sim_insists(unsigned steps_in_a_row)
{
	if (steps_in_a_row < PATIENCE + scramble(s.insisted) % PATIENCE)
		return false;
	s.insisted++;
	return true;
}

static unsigned highest_rank(unsigned options, const hd_pid *who)
{
	unsigned best = 0;

	for (unsigned i = 1; i < options; i++)
		if (rank_of(who[i]) > rank_of(who[best]))
			best = i;
	return best;
}

/* ---- all ---- */

static unsigned from_list(uint32_t index, unsigned options)
{
	const struct hd__sim_plan *plan = &s.page->plan;

	if (s.next_unusual == plan->unusual || plan->list[s.next_unusual].at != index)
		return 0;
	unsigned option = plan->list[s.next_unusual++].option;
	if (option >= options)
		hd__sim_give_up(HD__SIM_ASTRAY);
	return option;
}

bool hd__sim_is_used_up(void)
{
	return s.page->plan.policy != HD__SIM_LIST || s.next_unusual == s.page->plan.unusual;
}

static unsigned in_turn(enum hd__sim_kind kind)
{
	return kind == HD__SIM_STAYS ? 1 : 0;
}

static unsigned pick(enum hd__sim_kind kind, unsigned options, const hd_pid *who, uint32_t index)
{
	switch (s.page->plan.policy) {
	case HD__SIM_LIST:
		return from_list(index, options);
	case HD__SIM_ROBIN:
		return in_turn(kind);
	case HD__SIM_PCT:
		if (kind != HD__SIM_FAULT)
			return highest_rank(options, who);
		break;
	default:
		break;
	}
	return kind == HD__SIM_FAULT ? draw() % FAULT_ODDS == 0 : (unsigned)(draw() % options);
}

/* The plan does not decide any more: fair choices, and no failures. */
static unsigned decide_fairly(enum hd__sim_kind kind, unsigned options)
{
	if (options < 2 || kind == HD__SIM_FAULT)
		return 0;
	unsigned option = s.course == AT_RANDOM ? (unsigned)(draw() % options) : in_turn(kind);
	hd__sim_mix(option);
	return option;
}

void hd__sim_leave_plan(bool in_turns)
{
	s.course = in_turns ? IN_TURN : AT_RANDOM;
}

unsigned hd__sim_decide(enum hd__sim_kind kind, unsigned options, unsigned free, const hd_pid *who)
{
	struct hd__sim_page *page = s.page;

	if (s.course != AS_PLANNED)
		return decide_fairly(kind, options);
	if (kind <= HD__SIM_YIELDS && page->plan.policy == HD__SIM_PCT) {
		s.choices++;
		for (unsigned i = 0; i + 1 < page->plan.depth; i++)
			if (s.changes[i] == s.choices)
				lower(who[kind == HD__SIM_YIELDS ? options - 1 : 0], i); /* the runner */
	}
	if (options < 2)
		return 0;
	uint32_t index = page->result.decisions++;
	unsigned option = pick(kind, options, who, index);
	if (index < HD__SIM_LOG_MAX)
		page->log[index] = (struct hd__sim_decision){ (uint8_t)kind, (uint8_t)options, (uint8_t)option, (uint8_t)free };
	hd__sim_mix(index << 8 | option);
	return option;
}

void hd__sim_give_up(enum hd__sim_verdict verdict)
{
	s.page->result.verdict = verdict;
	hd__sim_leave();
}
