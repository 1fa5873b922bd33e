/* os/guards.c - guards where the kernel has none that are free: mprotect, and its limit. */
#include <errno.h>
#include <stdio.h>

#include "harness/process.h"
#include "os/fault.h"
#include "sched/worker.h"
#include "wait/threads.h"

static struct hd_semaphore hold;

static void *wait_for_hold(void *arg)
{
	CHECK_EQ(hd_semaphore_wait(&hold, HD_FOREVER), 0);
	return arg;
}

static void *return_argument(void *arg)
{
	return arg;
}

/* Runs `main` with guards made by mprotect. */
static void run_protected(hd_entry main)
{
	hd__fault_arm(HD__FAULT_INSTALL, 1, true);
	CHECK_EQ(hd_run(&(struct hd_config){ .fixed = true, .workers = 1 }, main, NULL), 0);
	hd__fault_arm(HD__FAULT_INSTALL, 0, false);
}

static void *use_protected_stacks(void *arg)
{
	enum { N = 300 };
	hd_pid pids[N];

	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < N; i++)
			CHECK((pids[i] = hd_spawn(wait_for_hold, &pids[i])) > 0);
		hd_yield();
		for (int i = 0; i < N; i++)
			CHECK_EQ(hd_semaphore_signal(&hold), 0);
		for (int i = 0; i < N; i++) {
			void *result;
			CHECK_EQ(hd_join(pids[i], &result, HD_FOREVER), 0);
			CHECK(result == &pids[i]);
		}
	}
	CHECK_EQ(hd__self()->sched->stacks[16].how, HD__GUARD_PROTECT);
	return arg;
}

HD_TEST(guards_by_mprotect_work)
{
	run_protected(use_protected_stacks);
}

#if !HD_UNDER_ASAN && !HD_UNDER_TSAN /* their own handlers come first */
static void *overflow(void *arg)
{
	volatile char frame[1024];

	frame[0] = 1;
	return arg == NULL ? NULL : (char *)overflow(arg) + frame[0];
}

static void *overflow_in_child(void *arg)
{
	CHECK_EQ(hd_join(hd_spawn_with(&(struct hd_spawn){ .name = "deep" }, overflow, &hold), NULL, HD_FOREVER), 0);
	return arg;
}

HD_TEST_DIES(guards_by_mprotect_catch_an_overflow, "\"deep\"")
{
	run_protected(overflow_in_child);
}
#endif

static long max_map_count(void)
{
	FILE *f = fopen("/proc/sys/vm/max_map_count", "r");
	long n = 0;

	if (f == NULL || fscanf(f, "%ld", &n) != 1)
		n = 0;
	if (f != NULL)
		fclose(f);
	return n;
}

/* Spawns until told to stop; then one ends, and there is room for one. */
static void *reach_the_limit(void *arg)
{
	static hd_pid pids[65536];
	int n = 0;

	while ((pids[n] = hd_spawn(wait_for_hold, NULL)) > 0)
		CHECK(++n < 65536);
	CHECK_EQ(pids[n], -ENOMEM);
	CHECK(n > 16 && n < max_map_count());
	CHECK_EQ(hd_spawn(return_argument, NULL), -ENOMEM);
	hd_yield(); /* every one that was promised a stack has one */
	for (int i = 0; i < n; i++) {
		struct hd_process_info info;
		CHECK_EQ(hd_process_info(pids[i], &info), 0);
		CHECK_EQ(info.state, HD_WAITING);
	}
	CHECK_EQ(hd_semaphore_signal(&hold), 0);
	CHECK_EQ(hd_join(pids[0], NULL, HD_FOREVER), 0);
	CHECK((pids[0] = hd_spawn(wait_for_hold, NULL)) > 0);
	CHECK_EQ(hd_spawn(return_argument, NULL), -ENOMEM);
	hd_yield();
	for (int i = 0; i < n; i++)
		CHECK_EQ(hd_semaphore_signal(&hold), 0);
	for (int i = 0; i < n; i++)
		CHECK_EQ(hd_join(pids[i], NULL, HD_FOREVER), 0);
	CHECK_EQ(hd_join(hd_spawn(return_argument, NULL), NULL, HD_FOREVER), 0);
	return arg;
}

/* The kernel's own limit: some 32,000. */
#if !HD_UNDER_TSAN /* more fibers than it knows */
HD_STRESS(guards_by_mprotect_have_a_limit_and_say_so)
{
	if (max_map_count() == 0 || max_map_count() > 131072)
		SKIP("this kernel's limit is not the usual one");
	run_protected(reach_the_limit);
}
#endif

/* The same with a limit of our own making: the guards from the 500th on fail. */
static void *reach_a_nearer_limit(void *arg)
{
	hd_pid pid = hd_spawn(return_argument, NULL);

	CHECK_EQ(hd_join(pid, NULL, HD_FOREVER), 0);
	hd__fault_arm(HD__FAULT_GUARD, 500, true);
	reach_the_limit(arg);
	return arg;
}

HD_TEST(guards_that_run_out_are_told_at_spawn)
{
	if (max_map_count() == 0)
		SKIP("no /proc/sys/vm/max_map_count");
	run_protected(reach_a_nearer_limit);
	hd__fault_arm(HD__FAULT_GUARD, 0, false);
}

/* Plain threads promise stacks too. */
static struct hd_semaphore threads_done;

static void *spawn_some(void *arg)
{
	for (int i = 0; i < 500; i++) {
		hd_pid pid = hd_spawn(return_argument, NULL);
		CHECK(pid > 0);
		CHECK_EQ(hd_join(pid, NULL, HD_FOREVER), 0);
	}
	CHECK_EQ(hd_semaphore_signal(&threads_done), 0);
	return arg;
}

static void *spawn_from_everywhere(void *arg)
{
	struct plain_thread *threads[2];

	for (int i = 0; i < 2; i++)
		threads[i] = start_thread(spawn_some, NULL);
	for (int i = 0; i < 500; i++) {
		CHECK_EQ(hd_join(hd_spawn(return_argument, NULL), NULL, HD_FOREVER), 0);
		if (i % 10 == 0)
			hd_sleep(HD_US(10));
	}
	for (int i = 0; i < 2; i++)
		CHECK_EQ(hd_semaphore_wait(&threads_done, HD_FOREVER), 0);
	for (int i = 0; i < 2; i++)
		join_thread(threads[i]);
	return arg;
}

HD_TEST(guards_by_mprotect_are_promised_to_plain_threads_too)
{
	run_protected(spawn_from_everywhere);
}
