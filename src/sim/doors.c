/* sim/doors.c - virtual time, virtual workers, failures: what a simulated runtime is given instead of the real ones.
 *
 * Owns:       the virtual clock; the seats.
 * Invariant:  a seat is a virtual worker. A process with a seat is ready or running, and no ready process without one has a
 *             higher priority: rule 1, on so many workers. A process keeps its seat until it waits, ends, yields, or a higher
 *             priority needs it. So whatever happens here can happen on so many workers, one step after the other.
 * Callers:    the scheduler, through its doors, on the one kernel thread there is.
 *
 * With one seat the order of the queues is kept, and there is nothing to choose. With several, processes of equal priority take a
 * free seat in any order: real workers have a queue each, and steal. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <string.h>

#include "base/assert.h"
#include "os/fault.h"
#include "sched/sched.h"
#include "sim/choice.h"
#include "sim/server.h"
#include "sim/sim.h"

#define STEP HD_US(1) /* what a step takes */
#define NOBODY UINT32_MAX

static struct {
	hd_time now;
	unsigned seats; /* how many there are */
	unsigned taken;
	struct seat {
		struct hd_process *process;
		hd_pid pid;
	} seat[HD__SIM_WORKERS_MAX];
	hd_pid last; /* the process that ran last, and for how many steps in a row */
	unsigned steps;
	unsigned runs; /* of hd_run, that have ended */
	bool armed;    /* malloc may fail */
	bool inside;   /* the simulator itself calls it: it does not fail */
} s = { .now = HD__BEGINNING };

/* ---- failures ---- */

static bool fails(void)
{
	const struct hd__sim_plan *plan = &hd__sim_page->plan;
	uint32_t met = ++hd__sim_page->result.faults_met;

	if (plan->fail_at != 0) {
		bool strikes = met == plan->fail_at || (plan->fail_on && met > plan->fail_at);
		hd__sim_mix((uint64_t)met << 1 | strikes);
		return strikes;
	}
	return hd__sim_decide(HD__SIM_FAULT, 2, NULL) == 1;
}

static bool call_fails(enum hd__fault kind)
{
	static const uint8_t bits[HD__FAULTS] = { [HD__FAULT_ALLOC] = HD__SIM_FAIL_ALLOC,
						  [HD__FAULT_MAP] = HD__SIM_FAIL_MAP,
						  [HD__FAULT_GUARD] = HD__SIM_FAIL_GUARD };
	return hd__sim_page->plan.faults & bits[kind] && fails();
}

/* The program's malloc, while a process of it runs and not the simulator. */
static bool malloc_fails(void)
{
	struct hd_worker *w = hd__self();

	return s.armed && !s.inside && w != NULL && w->current != NULL && hd__sim_page->plan.faults & HD__SIM_FAIL_MALLOC &&
	       fails();
}

/* ---- time ---- */

static hd_time read_clock(const struct hd__clock *clock)
{
	(void)clock;
	return s.now;
}

/* Nothing is ready: time passes until something is. */
static void pass_time(struct hd__poller *poller, uint32_t *word, uint32_t value, hd_time until)
{
	(void)poller, (void)word, (void)value;
	if (until == HD_FOREVER && hd__os_thread_count() > 1)
		hd__sim_give_up(HD__SIM_FOREIGN);
	if (until == HD_FOREVER) {
		hd__complain(
			"heddle: no process can run and no deadline will come, but hd_hold_open keeps the runtime waiting\n");
		hd__sim_give_up(HD__SIM_DEADLOCK);
	}
	if (until - s.now > 2 * STEP && hd__sim_page->plan.faults & HD__SIM_FAIL_EINTR && fails())
		until -= (until - s.now) / 2; /* the worker must look again */
	if (until > s.now)
		s.now = until;
}

static void wake_nobody(struct hd__poller *poller, uint32_t *word)
{
	(void)poller, (void)word;
}

/* ---- the virtual workers ---- */

/* The place of p's seat; s.taken when it has none. */
static unsigned seat_of(const struct hd_process *p)
{
	unsigned i = 0;

	while (i < s.taken && s.seat[i].process != p)
		i++;
	return i;
}

static bool sits(const struct hd_process *p)
{
	return seat_of(p) < s.taken;
}

static void sit_down(struct hd_worker *w, struct hd_process *p)
{
	s.seat[s.taken++] = (struct seat){ p, hd__pid(&w->sched->table, p) };
}

static void stand_up(unsigned i)
{
	memmove(&s.seat[i], &s.seat[i + 1], (--s.taken - i) * sizeof s.seat[0]);
}

/* A process that is not ready any more, or whose block is another process's by now, leaves its seat. */
static void clear_seats(struct hd_worker *w)
{
	for (unsigned i = 0; i < s.taken;) {
		struct hd_process *p = s.seat[i].process;
		if (p->state != HD_READY || hd__pid(&w->sched->table, p) != s.seat[i].pid)
			stand_up(i);
		else
			i++;
	}
}

/* The highest level with ready processes that have no seat; 0: none. *n: how many there are. */
static int best_standing(struct hd_worker *w, unsigned *n)
{
	for (int level = w->runq.highest; level >= HD__PRIORITY_MIN; level--) {
		*n = 0;
		for (struct hd_process *p = hd__runq_level(&w->runq, level)->head; p != NULL; p = p->next)
			*n += !sits(p);
		if (*n > 0)
			return level;
	}
	return 0;
}

/* One of the `n` processes of that level without a seat takes one: the first of the queue, if there is one seat in all. */
static void seat_one(struct hd_worker *w, int level, unsigned n)
{
	hd_pid who[HD__SIM_WORKERS_MAX];
	unsigned listed = 0, chosen;

	if (s.seats == 1)
		n = 1;
	else if (n > HD__SIM_WORKERS_MAX)
		n = HD__SIM_WORKERS_MAX; /* of a crowd, the first so many have a chance */
	struct hd_process *p;
	for (p = hd__runq_level(&w->runq, level)->head; listed < n; p = p->next)
		if (!sits(p))
			who[listed++] = hd__pid(&w->sched->table, p);
	chosen = hd__sim_decide(HD__SIM_SEAT, n, who);
	sit_down(w, hd__table_find(&w->sched->table, who[chosen]));
}

/* The seat of a process of the lowest priority; of several, the one that was taken last. */
static unsigned lowest_seat(void)
{
	unsigned lowest = 0;

	for (unsigned i = 1; i < s.taken; i++)
		if (s.seat[i].process->priority <= s.seat[lowest].process->priority)
			lowest = i;
	return lowest;
}

/* Gives every seat to the process that it belongs to. */
static void fill_seats(struct hd_worker *w)
{
	unsigned n;
	int level;

	while ((level = best_standing(w, &n)) > 0) {
		if (s.taken == s.seats) {
			unsigned i = lowest_seat();
			struct hd_process *p = s.seat[i].process;
			if (p->priority >= level)
				return;
			stand_up(i); /* preempted: rule 3 */
			hd__runq_remove(&w->runq, p);
			if (w->sched->config.preempted == HD_PREEMPTED_HEAD)
				hd__runq_push_head(&w->runq, p);
			else
				hd__runq_push_tail(&w->runq, p);
			hd__runq_spill(&w->runq);
		}
		seat_one(w, level, n);
	}
}

static uint32_t slot_of(struct hd_worker *w, const struct hd_process *p)
{
	return p != NULL ? hd__slot(&w->sched->table, p) : NOBODY;
}

/* For the story of the run. */
static void tell(struct hd_worker *w, const struct hd_process *me, const struct hd_process *next, unsigned option)
{
	struct hd__sim_page *page = hd__sim_page;
	void *frames[HD__SIM_FRAMES];

	if (page->events == HD__SIM_EVENTS_MAX)
		return;
	struct hd__sim_event *e = &page->event[page->events];
	*e = (struct hd__sim_event){ .when = s.now - HD__BEGINNING,
				     .decision = page->result.decisions,
				     .who = slot_of(w, me),
				     .next = slot_of(w, next),
				     .state = me != NULL ? me->state : 0,
				     .why = me != NULL ? me->why : 0,
				     .options = (uint8_t)s.taken,
				     .option = (uint8_t)option };
	if (me != NULL) {
		memcpy(e->name, me->name, sizeof e->name);
		s.inside = true;
		int n = backtrace(frames, HD__SIM_FRAMES);
		s.inside = false;
		e->frames = n > 0 ? (uint32_t)n : 0;
		for (uint32_t i = 0; i < e->frames; i++)
			e->frame[i] = (uintptr_t)frames[i];
	}
	memcpy(e->next_name, next->name, sizeof e->next_name);
	page->events++;
}

/* Time passes with every step. */
static void count_step(struct hd_worker *w)
{
	const struct hd__sim_plan *plan = &hd__sim_page->plan;
	struct hd__sim_result *result = &hd__sim_page->result;

	if (++result->steps > (plan->steps != 0 ? plan->steps : HD__SIM_STEPS))
		hd__sim_give_up(HD__SIM_LIVELOCK);
	s.now += STEP;
	result->elapsed = s.now - HD__BEGINNING;
	hd__clock(w->sched); /* the coarse time is exact here */
}

/* The runner calls heddle. With one seat the scheduler goes by its rules and nothing need be chosen; but time passes. */
static void at_call(struct hd_worker *w)
{
	const struct hd__sim_plan *plan = &hd__sim_page->plan;

	if (plan->faults != 0) { /* not before the first process runs: hd_run itself can be built */
		hd__fault_door = call_fails;
		s.armed = true;
	}
	if (s.seats == 1) {
		count_step(w);
		hd__sim_mix((uint64_t)hd__pid(&w->sched->table, w->current) ^ (uint64_t)s.now << 24);
		if (hd__sim_page->tell)
			tell(w, w->current, w->current, 0);
	}
	hd_time first = hd__timers_first(&w->timers);
	if (plan->faults & HD__SIM_FAIL_TIME && first != HD_FOREVER && first > s.now && fails())
		s.now = first;
	if (s.now >= w->alarm || s.now >= first)
		w->resched |= HD__CLOCK_DUE;
}

/* Whether the runner, which is ready, has gone on for too long: it may wait for another process by looking again and again. */
static bool insists(hd_pid me)
{
	if (me != s.last || !hd__sim_insists(++s.steps))
		return false;
	s.steps = 0;
	hd__sim_yielded(me);
	return true;
}

/* A step is over: chooses the process that does the next one. */
static struct hd_process *choose(struct hd_worker *w)
{
	struct hd_process *me = w->current;
	bool ready = me != NULL && me->state == HD_READY, stays = ready && w->stepping;
	struct seat row[HD__SIM_WORKERS_MAX];
	hd_pid who[HD__SIM_WORKERS_MAX];
	unsigned n = 0;

	w->stepping = false;
	hd__runq_spill(&w->runq);
	count_step(w);
	clear_seats(w);
	unsigned first = me != NULL ? seat_of(me) : s.taken;
	if (ready && insists(hd__pid(&w->sched->table, me)))
		stays = false;
	if (ready && !stays && first < s.taken)
		stand_up(first); /* to the end of the row; the seat is free for another process */
	fill_seats(w);
	if (s.taken == 0)
		return NULL;
	if (stays && seat_of(me) < s.taken)
		first = seat_of(me);
	else
		stays = false;			 /* a process of higher priority has its seat */
	for (unsigned i = 0; i < s.taken; i++) { /* in the order of the row; a runner that gives way is the last */
		struct seat *seat = &s.seat[(first + i) % s.taken];
		if (stays || seat->process != me)
			row[n++] = *seat;
	}
	bool yields = n < s.taken;
	if (yields)
		row[n++] = (struct seat){ me, hd__pid(&w->sched->table, me) };
	for (unsigned i = 0; i < n; i++)
		who[i] = row[i].pid;
	unsigned option = hd__sim_decide(stays ? HD__SIM_STAYS : yields ? HD__SIM_YIELDS : HD__SIM_LEAVES, n, who);
	struct hd_process *next = row[option].process;
	if (s.last != who[option]) {
		s.last = who[option];
		s.steps = 0;
	}
	hd__sim_mix((uint64_t)who[option] ^ (uint64_t)s.now << 24 ^ (me != NULL ? (uint64_t)me->state << 8 | me->why : 0));
	if (hd__sim_page->tell)
		tell(w, me, next, option);
	hd__runq_remove(&w->runq, next);
	return next;
}

/* ---- a run ---- */

/* Makes, before the first run, what every run will need: a stack for main and some for other processes. */
static void make_stacks(struct hd__sched *sched)
{
	struct hd_worker *w = &sched->workers[0];
	const unsigned classes[] = { sched->stack_class, hd__stack_class(HD__MAIN_STACK_SIZE) };

	for (unsigned i = 0; i < sizeof classes / sizeof classes[0]; i++) {
		struct hd__stacks *stacks = &sched->stacks[classes[i]];
		if (hd__stacks_promise(stacks) != 0)
			continue;
		char *stack = hd__stacks_take(stacks, &w->stacks[classes[i]]);
		if (stack != NULL)
			hd__stacks_drop(stacks, &w->stacks[classes[i]], stack);
		hd__stacks_unpromise(stacks);
	}
}

static void begun(struct hd__sched *sched)
{
	bool (**door)(void) = dlsym(RTLD_DEFAULT, "heddle_malloc_door");

	if (door != NULL)
		*door = malloc_fails;
	make_stacks(sched);
	hd__sim_serve();
	unsigned wanted = hd__sim_page->plan.workers;

	s.taken = 0;
	s.last = 0;
	s.seats = wanted != 0 ? wanted : sched->config.workers;
	if (s.seats > HD__SIM_WORKERS_MAX)
		s.seats = HD__SIM_WORKERS_MAX;
	sched->config.workers = s.seats;
	struct hd_worker *w = &sched->workers[0];
	w->resched |= HD__AT_CALL;
	if (s.seats == 1)
		w->chores &= ~(uint32_t)HD__CHOOSE_BY_DOOR; /* by the rules, exactly */
}

/* How many processes have ended and were neither joined nor detached. */
static uint32_t left_over(const struct hd__sched *sched)
{
	uint32_t n = 0;

	for (uint32_t slot = 1; slot < sched->table.made; slot++) /* but for main, which hd_run joins */
		n += sched->table.blocks[slot].state == HD_ENDED && !sched->table.blocks[slot].daemon;
	return n;
}

/* Stacks that were not given back. */
static uint32_t lost_stacks(const struct hd__sched *sched)
{
	uint32_t n = 0;

	for (unsigned i = HD__STACK_MIN_CLASS; i <= HD__STACK_MAX_CLASS; i++)
		n += sched->stacks[i].made - sched->stacks[i].nfree - sched->workers[0].stacks[i].count;
	return n;
}

static bool ended(struct hd__sched *sched, int code)
{
	struct hd__sim_result *result = &hd__sim_page->result;

	hd__fault_door = NULL;
	s.armed = false;
	result->elapsed = s.now - HD__BEGINNING;
	hd__sim_mix((uint64_t)(unsigned)code);
	bool first = s.runs++ == 0;
	if (result->verdict != HD__SIM_UNDECIDED && result->verdict != HD__SIM_FINE)
		return true; /* an earlier hd_run's */
	result->left = code == 0 ? left_over(sched) : 0;
	result->stacks = lost_stacks(sched);
	if (code == -EDEADLK)
		result->verdict = HD__SIM_DEADLOCK;
	else if (result->stacks > 0 || (result->left > 0 && !hd__sim_page->plan.ignore_leaks))
		result->verdict = HD__SIM_LEAK;
	else if (hd__os_thread_count() > 1)
		result->verdict = HD__SIM_FOREIGN;
	else
		result->verdict = hd__sim_is_used_up() ? HD__SIM_FINE : HD__SIM_ASTRAY;
	return !first || !hd__sim_is_served(); /* taking it down costs more than a run */
}

const struct hd__clock hd__sim_clock = { read_clock };

const struct hd__doors *hd__sim_doors(void)
{
	static struct hd__poller poller = { pass_time, wake_nobody };
	static const struct hd__doors doors = {
		.clock = &hd__sim_clock, .poller = &poller, .choose = choose, .at_call = at_call, .begun = begun, .ended = ended
	};

	return &doors;
}
