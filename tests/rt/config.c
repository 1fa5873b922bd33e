/* rt/config.c - what hd_run is told: by its caller, by the environment, and what it refuses. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "rt/capture.h"

#include <stdlib.h>

#include "life/common.h"

static const char *const variables[] = { "HEDDLE_WORKERS",	    "HEDDLE_STACK_SIZE", "HEDDLE_POLICY",   "HEDDLE_QUANTUM",
					 "HEDDLE_PREEMPTED",	    "HEDDLE_PINNED",	 "HEDDLE_DEADLOCK", "HEDDLE_WARN",
					 "HEDDLE_BLOCKING_THREADS", "HEDDLE_SPARES" };

static void clear_environment(void)
{
	for (size_t i = 0; i < sizeof variables / sizeof variables[0]; i++)
		unsetenv(variables[i]);
	setenv("HEDDLE_WORKERS", "1", 1); /* order is what these tests look at */
}

/* What a runtime turned out to have, as processes see it. */
static struct seen {
	enum hd_policy policy;
	size_t stack_size;
	bool preempted_stays; /* before its equals */
} seen;

static void *look(void *arg)
{
	struct hd_process_info info = info_of(hd_self());

	seen.policy = info.policy;
	seen.stack_size = info.stack_size;
	return arg;
}

static void *look_round(void *arg)
{
	CHECK_EQ(hd_join(born(hd_spawn(look, NULL)), NULL, HD_FOREVER), 0);
	CHECK_EQ(hd_set_policy(hd_self(), HD_FIFO), 0); /* no quantum ends while we look */
	spawn_word(say, "equal ");
	spawn_word_at(41, say, "better "); /* preempts us */
	seen.preempted_stays = strcmp(trace_text(), "better ") == 0;
	hd_yield();
	CHECK_STR(trace_text(), "better equal ");
	return arg;
}

static int run_and_look(const struct hd_config *config)
{
	trace_clear();
	seen = (struct seen){ 0 };
	return hd_run(config, look_round, NULL);
}

/* The guard page takes its part of a stack. */
static bool is_about(size_t size, size_t asked)
{
	return size <= asked && size + 8192 >= asked;
}

HD_TEST(config_defaults)
{
	static const struct hd_config zero;

	clear_environment();
	for (int i = 0; i < 2; i++) {
		CHECK_EQ(run_and_look(i == 0 ? NULL : &zero), 0);
		CHECK_EQ(seen.policy, HD_FIFO);
		CHECK(is_about(seen.stack_size, 64 << 10));
		CHECK(!seen.preempted_stays);
	}
}

static const struct hd_config rare = { .workers = 1,
				       .stack_size = 128 << 10,
				       .policy = HD_RR,
				       .quantum = HD_MS(3),
				       .preempted = HD_PREEMPTED_HEAD,
				       .pinned = true };

HD_TEST(config_fields_are_obeyed)
{
	clear_environment();
	CHECK_EQ(run_and_look(&rare), 0);
	CHECK_EQ(seen.policy, HD_RR);
	CHECK(is_about(seen.stack_size, 128 << 10));
	CHECK(seen.preempted_stays);
}

static void fill_environment(void)
{
	setenv("HEDDLE_WORKERS", "1", 1);
	setenv("HEDDLE_STACK_SIZE", "32768", 1);
	setenv("HEDDLE_POLICY", "io", 1);
	setenv("HEDDLE_QUANTUM", "5000000", 1);
	setenv("HEDDLE_PREEMPTED", "head", 1);
	setenv("HEDDLE_PINNED", "1", 1);
}

HD_TEST(environment_overrides_defaults_and_config)
{
	clear_environment();
	fill_environment();
	CHECK_EQ(run_and_look(NULL), 0);
	CHECK_EQ(seen.policy, HD_IO);
	CHECK(is_about(seen.stack_size, 32 << 10));
	CHECK(seen.preempted_stays);

	setenv("HEDDLE_POLICY", "fifo", 1);
	setenv("HEDDLE_PREEMPTED", "tail", 1);
	CHECK_EQ(run_and_look(&rare), 0);
	CHECK_EQ(seen.policy, HD_FIFO);
	CHECK(is_about(seen.stack_size, 32 << 10));
	CHECK(!seen.preempted_stays);
}

HD_TEST(environment_overrides_field_by_field)
{
	clear_environment();
	setenv("HEDDLE_POLICY", "rr", 1);
	CHECK_EQ(run_and_look(&(struct hd_config){ .stack_size = 16 << 10, .preempted = HD_PREEMPTED_HEAD }), 0);
	CHECK_EQ(seen.policy, HD_RR);
	CHECK(is_about(seen.stack_size, 16 << 10));
	CHECK(seen.preempted_stays);
}

HD_TEST(fixed_config_ignores_the_environment)
{
	struct hd_config fixed = rare;

	fixed.fixed = true;
	clear_environment();
	fill_environment();
	setenv("HEDDLE_WORKERS", "nonsense", 1);
	setenv("HEDDLE_QUANTUM", "-1", 1);
	CHECK_EQ(run_and_look(&fixed), 0);
	CHECK_EQ(seen.policy, HD_RR);
	CHECK(is_about(seen.stack_size, 128 << 10));
}

/* A quantum from the environment: two loops that never yield take turns only if the policy and the quantum arrived. */
static int turns;

static void *alternate(void *arg)
{
	int me = *(int *)arg;

	while (turns < 6)
		if (turns % 2 == me)
			turns++;
		else
			hd_checkpoint();
	return NULL;
}

static void *two_loops(void *arg)
{
	static int even = 0, odd = 1;
	hd_pid pids[] = { born(hd_spawn(alternate, &even)), born(hd_spawn(alternate, &odd)) };

	join_all(pids, 2);
	CHECK(stats_now().expired_quanta > 0);
	return arg;
}

HD_TEST(environment_sets_policy_and_quantum)
{
	clear_environment();
	setenv("HEDDLE_POLICY", "rr", 1);
	setenv("HEDDLE_QUANTUM", "100000", 1);
	CHECK_EQ(hd_run(NULL, two_loops, NULL), 0);
	CHECK_EQ(turns, 6);
}

/* As a shell sets them in `HEDDLE_POLICY= program`. */
HD_TEST(empty_variables_are_as_good_as_none)
{
	for (size_t i = 0; i < sizeof variables / sizeof variables[0]; i++)
		setenv(variables[i], "", 1);
	CHECK_EQ(run_and_look(&rare), 0);
	CHECK_EQ(seen.policy, HD_RR);
	CHECK(is_about(seen.stack_size, 128 << 10));
	CHECK(seen.preempted_stays);
}

static struct hd_mutex mutexes[2];

static void *lock_crosswise(void *arg)
{
	struct hd_mutex *mine = arg, *its = mine == &mutexes[0] ? &mutexes[1] : &mutexes[0];

	CHECK_EQ(hd_mutex_lock(mine, HD_FOREVER), 0);
	hd_yield();
	CHECK_EQ(hd_mutex_lock(its, HD_FOREVER), 0); /* it does not come back */
	return NULL;
}

static void *close_circle_and_leave(void *arg)
{
	for (int i = 0; i < 2; i++) {
		hd_mutex_init(&mutexes[i], 0);
		born(hd_spawn(lock_crosswise, &mutexes[i]));
	}
	CHECK_EQ(hd_sleep(HD_MS(10)), 0);
	CHECK_EQ(hd_shutdown(0), 0);
	return arg;
}

HD_TEST(environment_can_switch_the_report_of_circles_off)
{
	const struct hd_config report = { .deadlock = HD_DEADLOCK_REPORT };

	for (int ignored = 0; ignored < 2; ignored++) {
		clear_environment();
		if (ignored)
			setenv("HEDDLE_DEADLOCK", "ignore", 1);
		capture_begin();
		int err = hd_run(&report, close_circle_and_leave, NULL);
		const char *text = capture_end();
		CHECK_EQ(err, 0);
		CHECK_EQ(says(text, "heddle: "), !ignored);
	}
}

static void *look_at_first(void *arg)
{
	*(size_t *)arg = info_of(hd_self()).stack_size;
	return arg;
}

/* The first process, which runs what was main, has 8 MiB, or more if more is asked for. */
HD_TEST(environment_sets_the_first_stack_if_it_is_more_than_the_usual)
{
	static const struct {
		const char *asked;
		size_t stack_size;
	} cases[] = { { "", (size_t)8 << 20 }, { "65536", (size_t)8 << 20 }, { "33554432", (size_t)32 << 20 } };

	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		size_t stack_size = 0;
		clear_environment();
		setenv("HEDDLE_STACK_SIZE", cases[i].asked, 1);
		CHECK_EQ(hd_run(NULL, look_at_first, &stack_size), 0);
		CHECK(is_about(stack_size, cases[i].stack_size));
	}
}

HD_TEST(bad_environment_is_refused_by_name)
{
	static const struct {
		const char *name, *value, *message;
	} cases[] = {
		{ "HEDDLE_WORKERS", "0", "heddle: HEDDLE_WORKERS=0: not a number from 1 to " },
		{ "HEDDLE_WORKERS", "two", "heddle: HEDDLE_WORKERS=two: not a number" },
		{ "HEDDLE_WORKERS", "-1", "HEDDLE_WORKERS=-1" },
		{ "HEDDLE_STACK_SIZE", "64k", "heddle: HEDDLE_STACK_SIZE=64k: not a number" },
		{ "HEDDLE_STACK_SIZE", "0", "HEDDLE_STACK_SIZE=0" },
		{ "HEDDLE_STACK_SIZE", "99999999999999999999", "HEDDLE_STACK_SIZE=99999999999999999999" },
		{ "HEDDLE_STACK_SIZE", "1000000000000", "HEDDLE_STACK_SIZE=1000000000000" },
		{ "HEDDLE_POLICY", "lifo", "heddle: HEDDLE_POLICY=lifo: expected fifo, rr, io" },
		{ "HEDDLE_QUANTUM", "0", "HEDDLE_QUANTUM=0" },
		{ "HEDDLE_QUANTUM", "1ms", "HEDDLE_QUANTUM=1ms" },
		{ "HEDDLE_PREEMPTED", "middle", "heddle: HEDDLE_PREEMPTED=middle: expected tail, head" },
		{ "HEDDLE_PINNED", "yes", "HEDDLE_PINNED=yes" },
		{ "HEDDLE_PINNED", "2", "HEDDLE_PINNED=2" },
		{ "HEDDLE_WARN", "some", "heddle: HEDDLE_WARN=some: expected none, stuck, blocked, all" },
		{ "HEDDLE_BLOCKING_THREADS", "0", "heddle: HEDDLE_BLOCKING_THREADS=0: not a number from 1 to 65536" },
		{ "HEDDLE_SPARES", "-1", "heddle: HEDDLE_SPARES=-1: not a number from 0 to 1023" },
		{ "HEDDLE_SPARES", "1024", "HEDDLE_SPARES=1024" },
		{ "HEDDLE_DEADLOCK", "none", "heddle: HEDDLE_DEADLOCK=none: expected ignore, report, abort" },
	};

	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		clear_environment();
		setenv(cases[i].name, cases[i].value, 1);
		capture_begin();
		int err = hd_run(NULL, look_round, NULL);
		const char *text = capture_end();
		CHECK_EQ(err, -EINVAL);
		CHECK(says(text, cases[i].message));
		CHECK_EQ(times_said(text, "\n"), 1);
	}
	clear_environment();
	CHECK_EQ(run_and_look(NULL), 0); /* no harm was done */
}

HD_TEST(bad_config_is_refused_by_name)
{
	static const struct {
		struct hd_config config;
		const char *message;
	} cases[] = {
		{ { .policy = (enum hd_policy)4, .fixed = true }, "hd_config.policy is out of range" },
		{ { .policy = (enum hd_policy) - 1, .fixed = true }, "hd_config.policy is out of range" },
		{ { .preempted = (enum hd_preempted)2, .fixed = true }, "hd_config.preempted is out of range" },
		{ { .blocking_threads = 65537, .fixed = true }, "hd_config.blocking_threads is out of range" },
		{ { .spares = -2, .fixed = true }, "hd_config.spares is out of range" },
		{ { .spares = 1024, .fixed = true }, "hd_config.spares is out of range" },
		{ { .quantum = -1, .fixed = true }, "hd_config.quantum is out of range" },
		{ { .stack_size = SIZE_MAX, .fixed = true }, "hd_config.stack_size is out of range" },
	};

	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		capture_begin();
		int err = hd_run(&cases[i].config, look_round, NULL);
		const char *text = capture_end();
		CHECK_EQ(err, -EINVAL);
		CHECK(says(text, cases[i].message));
	}
	CHECK_EQ(hd_run(&rare, NULL, NULL), -EINVAL); /* no main */
}

static void *count_workers(void *arg)
{
	struct hd_stats stats;

	CHECK_EQ(hd_stats(&stats), 0);
	*(int *)arg = (int)stats.workers;
	return arg;
}

static int workers_with(struct hd_config config)
{
	int n = 0;

	CHECK_EQ(hd_run(&config, count_workers, &n), 0);
	return n;
}

HD_TEST(the_number_of_workers_is_as_asked_for_or_one_for_each_cpu)
{
	cpu_set_t one, all;

	if (hd_is_simulated())
		SKIP("a simulated machine has as many CPUs as it says");
	clear_environment();
	unsetenv("HEDDLE_WORKERS");
	CHECK_EQ(workers_with((struct hd_config){ .workers = 3 }), 3);
	CHECK_EQ(workers_with((struct hd_config){ .workers = 1 }), 1);
	CHECK_EQ(sched_getaffinity(0, sizeof all, &all), 0);
	CHECK_EQ(workers_with((struct hd_config){ .workers = 0 }), CPU_COUNT(&all));
	CPU_ZERO(&one);
	for (int cpu = 0; CPU_COUNT(&one) == 0; cpu++)
		if (CPU_ISSET(cpu, &all))
			CPU_SET(cpu, &one);
	CHECK_EQ(sched_setaffinity(0, sizeof one, &one), 0);
	CHECK_EQ(workers_with((struct hd_config){ .workers = 0 }), 1);
	setenv("HEDDLE_WORKERS", "5", 1);
	CHECK_EQ(workers_with((struct hd_config){ .workers = 2 }), 5);
	CHECK_EQ(workers_with((struct hd_config){ .workers = 2, .fixed = true }), 2);
	capture_begin();
	int err = hd_run(&(struct hd_config){ .workers = 1025, .fixed = true }, look_round, NULL);
	CHECK(says(capture_end(), "hd_config.workers"));
	CHECK_EQ(err, -EINVAL);
}
