/* sync/semaphore.c - what a semaphore promises, on processes and on plain threads, with and without a runtime. */
#include <errno.h>
#include <limits.h>
#include <string.h>

#include "harness/process.h"
#include "wait/threads.h"

static struct hd_semaphore sem;

HD_TEST(semaphore_zeroed_memory_holds_nothing)
{
	struct hd_semaphore s;

	memset(&s, 0, sizeof s);
	CHECK(!hd_semaphore_is_signaled(&s));
	CHECK_EQ(hd_semaphore_try_wait(&s), -EAGAIN);
	CHECK_EQ(hd_semaphore_signal(&s), 0);
	CHECK_EQ(hd_semaphore_try_wait(&s), 0);
}

/* Runs on a plain thread and on a process alike. */
static void check_counting(void)
{
	struct hd_semaphore s = HD_SEMAPHORE(2);

	CHECK(hd_semaphore_is_signaled(&s));
	CHECK_EQ(hd_semaphore_wait(&s, HD_FOREVER), 0);
	CHECK_EQ(hd_semaphore_try_wait(&s), 0);
	CHECK(!hd_semaphore_is_signaled(&s));
	CHECK_EQ(hd_semaphore_try_wait(&s), -EAGAIN);
	CHECK_EQ(hd_semaphore_signal(&s), 0);
	CHECK_EQ(hd_semaphore_signal(&s), 0);
	CHECK_EQ(hd_semaphore_wait(&s, 0), 0);
	CHECK_EQ(hd_semaphore_wait(&s, hd_now()), 0);
	CHECK_EQ(hd_semaphore_try_wait(&s), -EAGAIN);
	hd_semaphore_init(&s, 1);
	CHECK_EQ(hd_semaphore_try_wait(&s), 0);
	CHECK_EQ(hd_semaphore_try_wait(&s), -EAGAIN);
}

HD_TEST(semaphore_counts_on_plain_thread)
{
	check_counting();
}

HD_PROCESS_TEST(semaphore_counts_on_process)
{
	check_counting();
}

/* 0 and the time just now have all passed: they try once, and a signal that is there beats them. */
static void check_past_deadlines(void)
{
	hd_time past[] = { INT64_MIN, -1, 0, hd_now(), hd_after(-HD_SEC(1)) };

	for (size_t i = 0; i < sizeof past / sizeof past[0]; i++) {
		struct hd_semaphore s = HD_SEMAPHORE(1);
		CHECK_EQ(hd_semaphore_wait(&s, past[i]), 0);
		CHECK_EQ(hd_semaphore_wait(&s, past[i]), -ETIMEDOUT);
		CHECK_EQ(hd_semaphore_signal(&s), 0); /* nobody is left in the queue to take it */
		CHECK(hd_semaphore_is_signaled(&s));
		CHECK_EQ(hd_semaphore_wait(&s, past[i]), 0);
	}
}

HD_TEST(semaphore_past_deadline_tries_once_on_plain_thread)
{
	check_past_deadlines();
}

HD_PROCESS_TEST(semaphore_past_deadline_tries_once_on_process)
{
	check_past_deadlines();
}

static void check_timeout(void)
{
	struct hd_semaphore s = HD_SEMAPHORE(0);
	hd_time until = hd_after(HD_MS(5));

	CHECK_EQ(hd_semaphore_wait(&s, until), -ETIMEDOUT);
	CHECK(hd_now() >= until);
	CHECK_EQ(hd_semaphore_signal(&s), 0);
	CHECK_EQ(hd_semaphore_wait(&s, hd_after(HD_MS(5))), 0);
}

HD_TEST(semaphore_timeout_takes_nothing_on_plain_thread)
{
	check_timeout();
}

HD_PROCESS_TEST(semaphore_timeout_takes_nothing_on_process)
{
	check_timeout();
}

HD_TEST(semaphore_overflow_is_an_error_and_loses_nothing)
{
	struct hd_semaphore s = HD_SEMAPHORE(UINT_MAX - 1);

	CHECK_EQ(hd_semaphore_signal(&s), 0);
	CHECK_EQ(hd_semaphore_signal(&s), -EOVERFLOW);
	CHECK_EQ(hd_semaphore_signal(&s), -EOVERFLOW);
	CHECK_EQ(hd_semaphore_try_wait(&s), 0);
	CHECK_EQ(hd_semaphore_signal(&s), 0);
	CHECK_EQ(s.excess, UINT_MAX);
}

HD_TEST(semaphore_signal_from_handler_needs_a_runtime)
{
	CHECK_EQ(hd_semaphore_signal_from_handler(&sem), -ENXIO);
	CHECK(!hd_semaphore_is_signaled(&sem));
}

static void count_up(void *arg)
{
	++*(int *)arg;
	CHECK(!hd_semaphore_is_signaled(&sem)); /* it is ours */
}

static void check_critical(void)
{
	int calls = 0;

	hd_semaphore_init(&sem, 1);
	CHECK_EQ(hd_semaphore_critical(&sem, count_up, &calls, HD_FOREVER), 0);
	CHECK_EQ(hd_semaphore_critical(&sem, count_up, &calls, 0), 0);
	CHECK_EQ(calls, 2);
	CHECK_EQ(hd_semaphore_try_wait(&sem), 0);
	CHECK_EQ(hd_semaphore_critical(&sem, count_up, &calls, 0), -ETIMEDOUT);
	CHECK_EQ(hd_semaphore_critical(&sem, count_up, &calls, hd_after(HD_MS(1))), -ETIMEDOUT);
	CHECK_EQ(calls, 2);
	CHECK(!hd_semaphore_is_signaled(&sem));
}

HD_TEST(semaphore_critical_gives_its_signal_back_on_plain_thread)
{
	check_critical();
}

HD_PROCESS_TEST(semaphore_critical_gives_its_signal_back_on_process)
{
	check_critical();
}

/* ---- order ---- */

static void *trace_turn(void *name)
{
	CHECK_EQ(hd_semaphore_wait(&sem, HD_FOREVER), 0);
	trace("%s ", (const char *)name);
	return NULL;
}

HD_PROCESS_TEST(semaphore_serves_in_order_of_arrival_whatever_the_priority)
{
	static const char *const names[] = { "low", "high", "middle", "timing", "lowest" };
	static const int priorities[] = { 50, 70, 60, 80, 45 };

	for (int i = 0; i < 5; i++) /* each runs at once and waits */
		CHECK(hd_spawn_at(priorities[i], trace_turn, (void *)names[i]) > 0);
	for (int i = 0; i < 5; i++) {
		CHECK_EQ(hd_semaphore_signal(&sem), 0); /* it has a higher priority than we: it has run when this returns */
		trace("%d ", i);
	}
	CHECK_STR(trace_text(), "low 0 high 1 middle 2 timing 3 lowest 4 ");
}

static bool does_not_wait_yet(hd_pid pid)
{
	struct hd_process_info info;

	CHECK_EQ(hd_process_info(pid, &info), 0);
	return info.state != HD_WAITING;
}

HD_PROCESS_TEST(semaphore_lower_priority_waiter_runs_later_but_has_its_signal)
{
	hd_pid low = hd_spawn_at(30, trace_turn, (void *)"low");

	while (does_not_wait_yet(low))
		CHECK_EQ(hd_sleep(HD_MS(1)), 0);
	CHECK_EQ(hd_semaphore_signal(&sem), 0);
	trace("main ");
	CHECK(!hd_semaphore_is_signaled(&sem)); /* handed over, not kept */
	CHECK_EQ(hd_semaphore_try_wait(&sem), -EAGAIN);
	CHECK_EQ(hd_join(low, NULL, HD_FOREVER), 0);
	CHECK_STR(trace_text(), "main low ");
}

static void *wait_a_little(void *arg)
{
	(void)arg;
	CHECK_EQ(hd_semaphore_wait(&sem, hd_after(HD_MS(2))), -ETIMEDOUT);
	return NULL;
}

/* The one in the middle leaves the queue by its deadline: its neighbours are served as if it had never been there. */
HD_PROCESS_TEST(semaphore_timed_out_waiter_is_skipped)
{
	CHECK(hd_spawn_at(50, trace_turn, (void *)"first") > 0);
	hd_pid middle = hd_spawn_at(50, wait_a_little, NULL);
	CHECK(hd_spawn_at(50, trace_turn, (void *)"third") > 0);
	CHECK_EQ(hd_join(middle, NULL, HD_FOREVER), 0);
	CHECK_EQ(hd_semaphore_signal(&sem), 0);
	CHECK_EQ(hd_semaphore_signal(&sem), 0);
	CHECK_EQ(hd_semaphore_signal(&sem), 0);
	CHECK_STR(trace_text(), "first third ");
	CHECK_EQ(sem.excess, 1);
}

static void *expect_a_grant(void *until)
{
	CHECK_EQ(hd_semaphore_wait(&sem, *(hd_time *)until), 0);
	return NULL;
}

/* The deadline passes when the signal has been given, but the waiter has not been able to take it: the grant came first. */
HD_PROCESS_TEST(semaphore_grant_that_comes_first_beats_a_deadline)
{
	if (hd_is_emulated())
		SKIP("an emulator may take longer than that to start a process");
	hd_time until = hd_after(HD_MS(100)); /* enough for the other to come and wait */
	hd_pid other = hd_spawn_at(50, expect_a_grant, &until);
	struct timespec pause = { 0, 1000000 };

	CHECK_EQ(hd_suspend(other, HD_FOREVER), 0);
	CHECK_EQ(hd_semaphore_signal(&sem), 0);
	while (kernel_now() < until + HD_MS(5))
		nanosleep(&pause, NULL);
	CHECK_EQ(hd_sleep(HD_MS(1)), 0); /* the worker looks at the clock */
	CHECK_EQ(hd_resume(other), 0);
	CHECK_EQ(hd_join(other, NULL, HD_FOREVER), 0);
	CHECK(!hd_semaphore_is_signaled(&sem));
}

/* ---- plain threads ---- */

static int turns;

static void *thread_turn(void *arg)
{
	CHECK_EQ(hd_self(), 0);
	CHECK_EQ(hd_semaphore_wait(&sem, HD_FOREVER), 0);
	__atomic_fetch_add(&turns, 1, __ATOMIC_RELAXED);
	return arg;
}

HD_TEST(semaphore_threads_wake_each_other_without_a_runtime)
{
	struct plain_thread *threads[4];

	for (int i = 0; i < 4; i++)
		threads[i] = start_thread(thread_turn, NULL);
	for (int i = 0; i < 4; i++)
		CHECK_EQ(hd_semaphore_signal(&sem), 0);
	for (int i = 0; i < 4; i++)
		join_thread(threads[i]);
	CHECK_EQ(turns, 4);
	CHECK(!hd_semaphore_is_signaled(&sem));
}

static struct hd_semaphore ping, pong;
static int rounds;

static void *return_ball(void *arg)
{
	for (int i = 0; i < rounds; i++) {
		CHECK_EQ(hd_semaphore_wait(&ping, HD_FOREVER), 0);
		CHECK_EQ(hd_semaphore_signal(&pong), 0);
	}
	return arg;
}

static void serve_ball(void)
{
	for (int i = 0; i < rounds; i++) {
		CHECK_EQ(hd_semaphore_signal(&ping), 0);
		CHECK_EQ(hd_semaphore_wait(&pong, HD_FOREVER), 0);
	}
}

HD_PROCESS_TEST(semaphore_process_and_thread_play_ping_pong)
{
	rounds = hd_scaled(5000);
	struct plain_thread *thread = start_thread(return_ball, NULL);
	serve_ball();
	join_thread(thread);
}

HD_PROCESS_TEST(semaphore_processes_play_ping_pong)
{
	rounds = hd_scaled(100000);
	hd_pid other = hd_spawn(return_ball, NULL);
	serve_ball();
	CHECK_EQ(hd_join(other, NULL, HD_FOREVER), 0);
}

/* A plain thread may come before the runtime and go after it. */
static int stage;

static void *outlive_the_runtime(void *arg)
{
	set_flag(&stage, 1);
	CHECK_EQ(hd_semaphore_wait(&sem, HD_FOREVER), 0); /* from a process */
	set_flag(&stage, 2);
	CHECK_EQ(hd_semaphore_wait(&sem, HD_FOREVER), 0); /* from a plain thread, after the runtime */
	return arg;
}

static void *signal_once(void *arg)
{
	CHECK_EQ(hd_semaphore_signal(&sem), 0);
	await_flag(&stage, 2);
	return arg;
}

HD_TEST(semaphore_thread_waits_across_the_life_of_a_runtime)
{
	struct plain_thread *thread = start_thread(outlive_the_runtime, NULL);

	await_flag(&stage, 1);
	CHECK_EQ(hd_run(NULL, signal_once, NULL), 0);
	CHECK_EQ(hd_semaphore_signal(&sem), 0);
	join_thread(thread);
}

/* ---- manners ---- */

static void *wait_once(void *arg)
{
	errno = 22;
	CHECK_EQ(hd_semaphore_wait(&sem, HD_FOREVER), 0);
	CHECK_EQ(errno, 22);
	return arg;
}

HD_PROCESS_TEST(semaphore_calls_leave_errno_alone)
{
	hd_pid other = hd_spawn(wait_once, NULL);

	errno = 11;
	CHECK_EQ(hd_semaphore_wait(&sem, hd_after(HD_MS(1))), -ETIMEDOUT); /* `other` sets its own meanwhile */
	CHECK_EQ(errno, 11);
	CHECK_EQ(hd_semaphore_signal(&sem), 0);
	hd_yield();
	CHECK_EQ(errno, 11);
	CHECK_EQ(hd_join(other, NULL, HD_FOREVER), 0);
	CHECK_EQ(errno, 11);
}

HD_TEST(semaphore_calls_leave_errno_alone_on_plain_thread)
{
	errno = 33;
	CHECK_EQ(hd_semaphore_wait(&sem, hd_after(HD_MS(1))), -ETIMEDOUT);
	CHECK_EQ(hd_semaphore_signal_from_handler(&sem), -ENXIO);
	CHECK_EQ(hd_semaphore_signal(&sem), 0);
	CHECK_EQ(hd_semaphore_try_wait(&sem), 0);
	CHECK_EQ(errno, 33);
}

/* Suspended while it waits, it keeps its place, and what it is granted meanwhile. */
HD_PROCESS_TEST(semaphore_grant_to_a_suspended_waiter_is_kept_for_it)
{
	hd_pid a = hd_spawn_at(50, trace_turn, (void *)"a");
	CHECK(hd_spawn_at(50, trace_turn, (void *)"b") > 0);
	CHECK_EQ(hd_suspend(a, HD_FOREVER), 0);
	CHECK_EQ(hd_semaphore_signal(&sem), 0);
	CHECK_EQ(hd_semaphore_signal(&sem), 0);
	CHECK_STR(trace_text(), "b ");
	CHECK(!hd_semaphore_is_signaled(&sem));
	CHECK_EQ(hd_resume(a), 0);
	CHECK_STR(trace_text(), "b a ");
}

static void *wait_for_a_while(void *arg)
{
	CHECK_EQ(hd_semaphore_wait(&sem, hd_after(hd_is_simulated() ? HD_SEC(1) : HD_MS(2))),
		 -ETIMEDOUT); /* time may jump by some ms */
	return arg;
}

HD_PROCESS_TEST(semaphore_deadline_of_a_suspended_waiter_runs_on)
{
	struct hd_process_info info = { .state = HD_WAITING };
	hd_pid a = hd_spawn_at(50, wait_for_a_while, NULL);

	CHECK_EQ(hd_suspend(a, HD_FOREVER), 0);
	while (info.state == HD_WAITING) {
		CHECK_EQ(hd_sleep(HD_MS(1)), 0);
		CHECK_EQ(hd_process_info(a, &info), 0);
	}
	CHECK_EQ(hd_semaphore_signal(&sem), 0); /* too late for it */
	CHECK(hd_semaphore_is_signaled(&sem));
	CHECK_EQ(hd_resume(a), 0);
	CHECK_EQ(hd_join(a, NULL, HD_FOREVER), 0);
}

static void *signal_later(void *arg)
{
	hd_sleep(HD_MS(1));
	CHECK_EQ(hd_semaphore_signal(arg), 0);
	return NULL;
}

/* A loop that only asks gives way to the one that will signal. */
HD_PROCESS_TEST(semaphore_can_be_polled)
{
	struct hd_semaphore s = HD_SEMAPHORE(0);

	CHECK(hd_spawn_at(50, signal_later, &s) > 0);
	while (!hd_semaphore_is_signaled(&s))
		;
	CHECK_EQ(hd_semaphore_try_wait(&s), 0);
}
