/* What the simulator will replace has one door each: clock, poller, choice of the next process, trace. */
#include <errno.h>
#include <heddle.h>

#include "harness/harness.h"
#include "rt/rt.h"

static const struct hd_config one_worker = { .workers = 1, .fixed = true };

/* ---- a clock that only the poller moves ---- */

static hd_time virtual_now;

static hd_time read_virtual(const struct hd__clock *clock)
{
	(void)clock;
	return virtual_now;
}

static int jump(struct hd_worker *w, hd_time until, struct hd__happening *events, int n)
{
	(void)w, (void)events, (void)n;
	CHECK(until != HD_FOREVER);
	virtual_now = until;
	return 0;
}

static void no_wake(struct hd_worker *w)
{
	(void)w;
}

static const struct hd__clock virtual_clock = { read_virtual };
static const struct hd__poller virtual_poller = { .wait = jump, .wake = no_wake };

static const struct hd__doors virtual_time = { .clock = &virtual_clock, .poller = &virtual_poller };

static int run_in_virtual_time(hd_entry first)
{
	virtual_now = HD__BEGINNING;
	return hd__run_with(&one_worker, &virtual_time, first, NULL);
}

static void *sleep_for(void *arg)
{
	long hours = (long)(intptr_t)arg;
	hd_time start = hd_now();

	CHECK_EQ(hd_sleep(HD_SEC(3600) * hours), 0);
	CHECK_EQ(hd_now(), start + HD_SEC(3600) * hours);
	trace("%ld ", hours);
	return NULL;
}

static void *sleep_for_days(void *arg)
{
	static const long hours[] = { 50, 3, 1000, 7, 3, 24 };
	hd_pid pids[6];

	for (int i = 0; i < 6; i++)
		pids[i] = hd_spawn(sleep_for, (void *)(intptr_t)hours[i]);
	for (int i = 0; i < 6; i++)
		CHECK_EQ(hd_join(pids[i], NULL, HD_FOREVER), 0);
	return arg;
}

HD_TEST(door_of_the_clock_makes_sleep_cost_nothing_and_exact)
{
	CHECK_EQ(run_in_virtual_time(sleep_for_days), 0);
	CHECK_STR(trace_text(), "3 3 7 24 50 1000 ");
	CHECK_EQ(virtual_now, HD__BEGINNING + HD_SEC(3600) * 1000);
}

/* ---- quanta, to the nanosecond ---- */

/* Computes for so many ns, a safe point after each; there is no watcher to look at this clock. */
static void compute(const char *who, int ns)
{
	for (int i = 0; i < ns; i++) {
		virtual_now++;
		trace("%s", who);
		hd__raise(hd__self(), HD__ALARM);
		hd_checkpoint();
	}
}

static void *compute_five(void *arg)
{
	compute(arg, 5);
	return NULL;
}

static void *interrupt_after_two(void *arg)
{
	hd_sleep(2);
	trace("!");
	return arg;
}

static const struct hd_spawn in_turns = { .policy = HD_RR };

static void *two_in_turns(void *arg)
{
	CHECK(hd_spawn_with(&in_turns, compute_five, (void *)"a") > 0);
	CHECK(hd_spawn_with(&in_turns, compute_five, (void *)"b") > 0);
	return arg;
}

static void *two_in_turns_and_one_above(void *arg)
{
	CHECK(hd_spawn_at(50, interrupt_after_two, NULL) > 0);
	return two_in_turns(arg);
}

static int run_with_a_quantum_of_three(hd_entry first, enum hd_preempted preempted)
{
	struct hd_config config = { .workers = 1, .quantum = 3, .preempted = preempted, .fixed = true };

	virtual_now = HD__BEGINNING;
	return hd__run_with(&config, &virtual_time, first, NULL);
}

HD_TEST(quantum_is_three_when_it_says_three)
{
	CHECK_EQ(run_with_a_quantum_of_three(two_in_turns, HD_PREEMPTED_TAIL), 0);
	CHECK_STR(trace_text(), "aaabbbaabb");
}

HD_TEST(quantum_for_ever_never_ends)
{
	struct hd_config config = { .workers = 1, .quantum = HD_FOREVER, .fixed = true };

	virtual_now = HD__BEGINNING;
	CHECK_EQ(hd__run_with(&config, &virtual_time, two_in_turns, NULL), 0);
	CHECK_STR(trace_text(), "aaaaabbbbb");
}

/* a is preempted after two of its three. At the head it goes on with the one that is left. */
HD_TEST(preempted_process_keeps_the_rest_of_its_quantum)
{
	CHECK_EQ(run_with_a_quantum_of_three(two_in_turns_and_one_above, HD_PREEMPTED_HEAD), 0);
	CHECK_STR(trace_text(), "aa!abbbaabb");
}

/* The same at the tail: b has its turn first, then a has one left, then b two, then a two. */
HD_TEST(preempted_process_keeps_the_rest_of_its_quantum_at_the_tail)
{
	CHECK_EQ(run_with_a_quantum_of_three(two_in_turns_and_one_above, HD_PREEMPTED_TAIL), 0);
	CHECK_STR(trace_text(), "aa!bbbabbaa");
}

/* ---- the choice of the next process ---- */

static int choices;

/* Last come, first served: the opposite of the rule. */
HD_AS_RUNTIME static struct hd_process *choose_last(struct hd_worker *w)
{
	choices++;
	hd__runq_spill(&w->runq);
	if (w->runq.highest == 0)
		return NULL;
	struct hd_process *p = hd__runq_level(&w->runq, w->runq.highest)->tail;
	hd__runq_remove(&w->runq, p);
	return p;
}

static void *say(void *arg)
{
	trace("%s", (const char *)arg);
	hd_yield();
	trace("%s", (const char *)arg);
	return NULL;
}

static void *say_abc(void *arg)
{
	CHECK(hd_spawn(say, (void *)"a") > 0);
	CHECK(hd_spawn(say, (void *)"b") > 0);
	CHECK(hd_spawn(say, (void *)"c") > 0);
	return arg;
}

HD_TEST(door_of_choice_decides_who_runs)
{
	const struct hd__doors doors = { .choose = choose_last };

	CHECK_EQ(hd__run_with(&one_worker, &doors, say_abc, NULL), 0);
	CHECK_STR(trace_text(), "ccbbaa"); /* whoever yields is the last that came */
	CHECK_EQ(choices, 6);		   /* main, and each of the three twice; but when a yields, there is nobody to choose */
}

/* ---- changes of state ---- */

HD_AS_RUNTIME static void record_move(struct hd_worker *w, struct hd_process *p, unsigned to)
{
	static const char *const names[] = { "free", "ready", "running", "waiting", "suspended", "ended" };

	trace("%d:%s>%s\n", (int)hd__slot(&w->sched->table, p), names[p->state], names[to]);
}

static struct hd_semaphore door = HD_SEMAPHORE(0);

static void *wait_at_door(void *arg)
{
	CHECK_EQ(hd_semaphore_wait(&door, HD_FOREVER), 0);
	return arg;
}

static void *one_waits(void *arg)
{
	hd_pid pid = hd_spawn(wait_at_door, NULL);

	hd_yield();
	hd_semaphore_signal(&door);
	CHECK_EQ(hd_join(pid, NULL, HD_FOREVER), 0);
	return arg;
}

HD_TEST(door_of_moves_hears_every_change_of_state)
{
	const struct hd__doors doors = { .moved = record_move };

	CHECK_EQ(hd__run_with(&one_worker, &doors, one_waits, NULL), 0);
	CHECK_STR(trace_text(), "0:free>ready\n0:ready>running\n"
				"1:free>ready\n0:running>ready\n1:ready>running\n1:running>waiting\n0:ready>running\n"
				"1:waiting>ready\n0:running>waiting\n1:ready>running\n1:running>ended\n"
				"0:waiting>ready\n0:ready>running\n0:running>ended\n");
}
