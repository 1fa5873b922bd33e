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
#include "life/life.h"
#include "os/fault.h"
#include "sched/sched.h"
#include "sim/choice.h"
#include "sim/circle.h"
#include "sim/server.h"
#include "sim/sim.h"

#define STEP HD_US(1)	 /* what a step takes */
#define FAIR_STEPS 20000 /* behind the plan's: so many with choices at random, and so many in turns */
#define REMEMBERED 1024	 /* processes whose turns are known; of more, some may starve others at no cost */

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
	bool vary;     /* neither the plan nor the program says how many seats there are */
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
	return hd__sim_decide(HD__SIM_FAULT, 2, 1, NULL) == 1;
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
static int pass_time(struct hd_worker *w, hd_time until, struct hd__happening *events, int n)
{
	(void)w, (void)events, (void)n;
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
	return 0;
}

static void wake_nobody(struct hd_worker *w)
{
	(void)w;
}

/* ---- fairness ---- */

/* A process that yields, or waits for a time, asks for others to go on. If it does so twice while another one was ready all along and
 * did not run, that one starves: to choose the first before it is possible, but not free. Otherwise two processes that wait with hd_yield for
 * a third had free schedules without end. All times are numbers of steps.
 *
 * (After Musuvathi and Qadeer, Fair Stateless Model Checking, 2008.) */
static struct turns {
	hd_pid pid;
	bool away;     /* it was not ready when last seen */
	uint32_t ran;  /* when it last ran, or became ready */
	uint32_t gave; /* when it last gave way */
	uint32_t mark; /* when it did so before */
} turns[REMEMBERED];

static struct turns *turns_of(hd_pid pid)
{
	struct turns *t = &turns[(uint64_t)pid % REMEMBERED];

	if (t->pid != pid)
		*t = (struct turns){ .pid = pid, .away = true };
	return t;
}

/* The process is ready: since when it has not run. */
static uint32_t hungry_since(hd_pid pid)
{
	struct turns *t = turns_of(pid);

	if (t->away) {
		t->away = false;
		t->ran = hd__sim_page->result.steps;
	}
	return t->ran;
}

static void note_way_given(hd_pid pid)
{
	struct turns *t = turns_of(pid);

	t->mark = t->gave;
	t->gave = hd__sim_page->result.steps;
}

/* Puts those before which another of the n processes starves behind the others. Returns how many others there are: one at least. */
static unsigned put_fair_first(hd_pid *who, unsigned n)
{
	static hd_pid behind[HD__SIM_WORKERS_MAX];
	uint32_t hungriest = UINT32_MAX;
	unsigned fair = 0;

	for (unsigned i = 0; i < n; i++) {
		uint32_t since = hungry_since(who[i]);
		if (since < hungriest)
			hungriest = since;
	}
	for (unsigned i = 0; i < n; i++)
		if (turns_of(who[i])->mark > hungriest)
			behind[i - fair] = who[i];
		else
			who[fair++] = who[i];
	memcpy(&who[fair], behind, (n - fair) * sizeof *who);
	return fair;
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

/* The highest level with ready processes that have no seat; 0: none. *n: how many there are; of a crowd, the first so many have a
 * chance. */
static int best_standing(struct hd_worker *w, unsigned *n)
{
	for (int level = w->runq.highest; level >= HD__PRIORITY_MIN; level--) {
		*n = 0;
		for (struct hd_process *p = hd__runq_level(&w->runq, level)->head; p != NULL && *n < HD__SIM_WORKERS_MAX;
		     p = p->next)
			*n += !sits(p);
		if (*n > 0)
			return level;
	}
	return 0;
}

/* One of the `n` processes of that level without a seat takes one: the first of the queue, if there is one seat in all. */
static void seat_one(struct hd_worker *w, int level, unsigned n)
{
	static hd_pid who[HD__SIM_WORKERS_MAX]; /* stacks may be small */
	unsigned listed = 0;

	if (s.seats == 1)
		n = 1;
	for (struct hd_process *p = hd__runq_level(&w->runq, level)->head; listed < n; p = p->next)
		if (!sits(p))
			who[listed++] = hd__pid(&w->sched->table, p);
	unsigned free = put_fair_first(who, n);
	sit_down(w, hd__table_find(&w->sched->table, who[hd__sim_decide(HD__SIM_SEAT, n, free, who)]));
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

	while (s.taken < s.seats || s.seat[lowest_seat()].process->priority < w->runq.highest) {
		if ((level = best_standing(w, &n)) == 0)
			return;
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

/* How many steps the run has made beyond those for which the plan decides. */
static uint32_t steps_beyond(void)
{
	const struct hd__sim_page *page = hd__sim_page;
	uint32_t planned = page->plan.steps != 0 ? page->plan.steps : HD__SIM_STEPS;

	return page->result.steps > planned ? page->result.steps - planned : 0;
}

static hd_pid pid_of(struct hd_worker *w, const struct hd_process *p)
{
	return p != NULL ? hd__pid(&w->sched->table, p) : HD__SIM_NONE;
}

/* For the story of the run: `me` stops, or (NULL) the runner has ended; `next` is the next one, NULL: none is ready. What is left of a
 * deadlock is terminated then, which is not told; nor is what a run does beyond its plan. */
static void tell(struct hd_worker *w, struct hd_process *me, const struct hd_process *next)
{
	struct hd__sim_page *page = hd__sim_page;
	void *frames[HD__SIM_FRAMES];
	struct hd__edge edge;

	if (w->sched->stop_code == -EDEADLK || steps_beyond() > 0)
		return;
	struct hd__sim_event *e = &page->event[page->events++ % HD__SIM_EVENTS_MAX];
	*e = (struct hd__sim_event){ .when = s.now - HD__BEGINNING,
				     .decision = page->result.decisions,
				     .who = pid_of(w, me),
				     .next = pid_of(w, next),
				     .state = me != NULL ? me->state : 0,
				     .why = me != NULL ? me->why : 0,
				     .holder = HD__SIM_NONE };
	if (me != NULL) {
		if (me->state == HD_WAITING && hd__edge_of(w->sched, me, &edge) && edge.holder > 0)
			e->holder = edge.holder;
		memcpy(e->name, me->name, sizeof e->name);
		e->entry = hd__entry_of(me);
		s.inside = true;
		int n = backtrace(frames, HD__SIM_FRAMES);
		s.inside = false;
		e->frames = n > 0 ? (uint32_t)n : 0;
		for (uint32_t i = 0; i < e->frames; i++)
			e->frame[i] = (uintptr_t)frames[i];
	}
	if (next != NULL) {
		memcpy(e->next_name, next->name, sizeof e->next_name);
		e->next_entry = hd__entry_of(next);
	}
}

/* Time passes with every step. A run that is not over when the plan has no more to say goes on fairly for a while: first with every
 * choice at random, so that what can end does; then with everybody in turn, so that what goes in a circle is seen to do so. */
static void count_step(struct hd_worker *w)
{
	struct hd__sim_result *result = &hd__sim_page->result;

	result->steps++;
	if (steps_beyond() == 1)
		hd__sim_leave_plan(false);
	else if (steps_beyond() == 1 + FAIR_STEPS)
		hd__sim_leave_plan(true);
	else if (steps_beyond() > 2 * FAIR_STEPS)
		hd__sim_give_up(HD__SIM_NOT_OVER);
	s.now += STEP;
	result->elapsed = s.now - HD__BEGINNING;
	hd__clock(w->sched); /* the coarse time is exact here */
}

/* Everybody is in turn, and `me` has made a step: gives up if the run goes in a circle. */
static void look_for_circle(struct hd_worker *w, const struct hd_process *me, hd_pid next)
{
	uint64_t order = 0;

	if (steps_beyond() <= FAIR_STEPS)
		return;
	for (unsigned i = 0; i < s.taken; i++)
		order = order * 31 + (uint64_t)s.seat[i].pid;
	for (int level = w->runq.highest; level >= HD__PRIORITY_MIN; level--)
		for (struct hd_process *p = hd__runq_level(&w->runq, level)->head; p != NULL; p = p->next)
			order = order * 31 + (uint64_t)hd__slot(&w->sched->table, p);
	hd__sim_page->result.circle = hd__sim_circle_step(w, me, next, order);
	if (hd__sim_page->result.circle != 0)
		hd__sim_give_up(HD__SIM_LIVELOCK);
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
			tell(w, w->current, w->current);
		look_for_circle(w, w->current, 0);
	}
	hd_time first = hd__timers_first(&w->timers);
	if (first != HD_FOREVER)
		hd__sim_page->result.could_be_late = true;
	if (plan->faults & HD__SIM_FAIL_TIME && first != HD_FOREVER && first > s.now && fails())
		s.now = first;
	if (s.now >= w->due.alarm || s.now >= first)
		w->resched |= HD__CLOCK_DUE;
}

/* Whether the runner, which is ready, has gone on for too long: it may wait for another process by looking again and again. */
static bool insists(hd_pid me)
{
	if (me != s.last || !hd__sim_insists(++s.steps))
		return false;
	s.steps = 0;
	return true;
}

/* A step is over: chooses the process that does the next one. */
static struct hd_process *choose(struct hd_worker *w)
{
	struct hd_process *me = w->current;
	bool ready = me != NULL && me->state == HD_READY, stays = ready && w->chores & HD__STEPS;
	hd_pid my_pid = me != NULL ? hd__pid(&w->sched->table, me) : 0;
	static hd_pid who[HD__SIM_WORKERS_MAX]; /* stacks may be small */
	unsigned n = 0, free = 1;

	w->chores &= ~(uint32_t)HD__STEPS;
	hd__runq_spill(&w->runq);
	count_step(w);
	clear_seats(w);
	bool too_long = ready && insists(my_pid);
	stays = stays && !too_long;
	if (ready && !stays) {
		hd__sim_yielded(my_pid, too_long);
		if (sits(me))
			stand_up(seat_of(me)); /* to the end of the row; the seat is free for another process */
	}
	if (me != NULL && !stays && (ready || me->wait >> HD__WAIT_BITS != 0))
		note_way_given(my_pid);
	if (me != NULL)
		turns_of(my_pid)->away = !ready;
	fill_seats(w);
	if (s.taken == 0) {
		if (hd__sim_page->tell)
			tell(w, me, NULL);
		return NULL;
	}
	stays = stays && sits(me); /* else a process of higher priority has its seat */
	/* A runner that could go on is the first, and the others follow in their order from there; one that gives way is the last. */
	unsigned first = stays ? seat_of(me) : 0;
	for (unsigned i = 0; i < s.taken; i++)
		if (stays || s.seat[i].process != me)
			who[n++] = s.seat[(first + i) % s.taken].pid;
	bool yields = n < s.taken;
	if (!stays && n > 0)
		free = put_fair_first(who, n);
	if (yields)
		who[n++] = my_pid;
	unsigned option = hd__sim_decide(stays ? HD__SIM_STAYS : yields ? HD__SIM_YIELDS : HD__SIM_LEAVES, n, free, who);
	struct hd_process *next = hd__table_find(&w->sched->table, who[option]);
	if (s.last != who[option]) {
		s.last = who[option];
		s.steps = 0;
	}
	hungry_since(who[option]);
	turns_of(who[option])->ran = hd__sim_page->result.steps;
	hd__sim_mix((uint64_t)who[option] ^ (uint64_t)s.now << 24 ^ (me != NULL ? (uint64_t)me->state << 8 | me->why : 0));
	if (hd__sim_page->tell)
		tell(w, me, next);
	look_for_circle(w, me, who[option]);
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
	hd__sim_circle_begin();
	hd__sim_serve();
	unsigned wanted = hd__sim_page->plan.workers;

	s.taken = 0;
	s.last = 0;
	s.seats = wanted != 0 ? wanted : s.vary ? hd__sim_seats() : sched->config.workers;
	if (s.seats > HD__SIM_WORKERS_MAX)
		s.seats = HD__SIM_WORKERS_MAX;
	sched->config.workers = hd__sim_page->result.seats = s.seats;
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
		n += sched->table.blocks[slot].state == HD_ENDED && !(sched->table.blocks[slot].nature & HD__DAEMON);
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

const struct hd__doors *hd__sim_doors(bool vary)
{
	static const struct hd__poller poller = { .wait = pass_time, .wake = wake_nobody };
	static const struct hd__doors doors = {
		.clock = &hd__sim_clock, .poller = &poller, .choose = choose, .at_call = at_call, .begun = begun, .ended = ended
	};

	s.vary = vary;
	return &doors;
}
