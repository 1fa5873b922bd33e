/* properties/time.c - timers: in order, on time as far as order goes, and bounded. */
#include <errno.h>

#include "harness/process.h"
#include "properties/affordable.h"
#include "wait/threads.h"

/* ---- a busy level does not keep a better one from its timer ---- */

static int has_run;

static void *sleep_and_run(void *until)
{
	CHECK_EQ(hd_sleep_until(*(hd_time *)until), 0);
	has_run = 1;
	return NULL;
}

static void *yield_along(void *arg)
{
	(void)arg;
	while (!has_run)
		hd_yield();
	return NULL;
}

static void outlast_timer(void (*safe_point)(void))
{
	hd_time until = hd_after(HD_MS(20));
	long late = 0;

	CHECK(hd_spawn_at(80, sleep_and_run, &until) > 0);
	while (!has_run) {
		if (hd_now() >= until)
			CHECK(++late < 1000000);
		safe_point();
	}
	CHECK(hd_now() >= until);
}

static void yield(void)
{
	CHECK_EQ(hd_yield(), 0);
}

static void checkpoint(void)
{
	CHECK_EQ(hd_checkpoint(), 0);
}

HD_PROCESS_TEST(time_yield_loop_does_not_delay_a_better_timer)
{
	CHECK(hd_spawn(yield_along, NULL) > 0);
	outlast_timer(yield);
}

HD_PROCESS_TEST(time_lonely_yield_loop_does_not_delay_a_better_timer)
{
	outlast_timer(yield);
}

HD_PROCESS_TEST(time_checkpoint_loop_does_not_delay_a_better_timer)
{
	outlast_timer(checkpoint);
}

/* ---- order ---- */

#define MANY 1000

static hd_time common;
static long order[MANY];
static int woken;

static void *sleep_till_common(void *arg)
{
	CHECK_EQ(hd_sleep_until(common), 0);
	order[woken++] = (long)arg;
	return NULL;
}

HD_PROCESS_TEST(time_equal_deadlines_wake_in_order_of_arrival)
{
	const int n = hd_scaled(MANY);

	for (int round = 0; round < 3; round++) {
		common = hd_after(HD_MS(300));
		woken = 0;
		for (long i = 0; i < n; i++) /* each runs at once, and sleeps */
			CHECK(hd_spawn_at(50, sleep_till_common, (void *)i) > 0);
		if (hd_now() >= common)
			SKIP("the machine is too slow today");
		while (woken < n)
			hd_sleep(HD_MS(1));
		for (long i = 0; i < n; i++)
			CHECK_EQ(order[i], i);
	}
}

static hd_time span;
static long still_asleep;

static void *sleep_at_random(void *arg)
{
	unsigned seed = (unsigned)(long)arg;

	next_random(&seed);
	hd_time until = hd_after((hd_time)(next_random(&seed) % 100000) * (span / 100000));
	CHECK_EQ(hd_sleep_until(until), 0);
	CHECK(hd_now() >= until);
	still_asleep--;
	return NULL;
}

static void sleep_many(int n, hd_time over)
{
	struct hd_stats stats;

	n = affordable(n);
	span = over;
	still_asleep = n;
	for (long i = 0; i < n; i++)
		CHECK(hd_spawn_with(&(struct hd_spawn){ .detached = true }, sleep_at_random, (void *)(i + 1)) > 0);
	while (still_asleep > 0)
		hd_sleep(HD_MS(10));
	CHECK_EQ(hd_stats(&stats), 0);
	CHECK_EQ(stats.timers, 0);
}

HD_PROCESS_TEST(time_many_random_sleepers_all_wake_and_none_early)
{
	sleep_many(HD_UNDER_TSAN ? 1000 : hd_scaled(100000), HD_MS(500));
}

#if !HD_UNDER_TSAN
HD_PROCESS_STRESS(time_a_million_random_sleepers_all_wake_and_none_early)
{
	sleep_many(hd_scaled(1000000), HD_SEC(2));
}
#endif

/* ---- deadlines that never come ---- */

static struct hd_semaphore ping, pong;
static int rounds;

static void *grant(void *arg)
{
	for (int i = 0; i < rounds; i++) {
		CHECK_EQ(hd_semaphore_wait(&ping, hd_after(HD_SEC(3600))), 0);
		CHECK_EQ(hd_semaphore_signal(&pong), 0);
	}
	return arg;
}

/* A wait that is granted forgets its deadline: the heap stays small though none of them ever comes. */
static void forget_many(int n)
{
	struct hd_stats stats;

	rounds = n;
	hd_pid other = hd_spawn(grant, NULL);
	for (int i = 0; i < n; i++) {
		CHECK_EQ(hd_semaphore_signal(&ping), 0);
		CHECK_EQ(hd_semaphore_wait(&pong, hd_after(HD_SEC(3600))), 0);
		if (i % 1000 == 0) {
			CHECK_EQ(hd_stats(&stats), 0);
			CHECK(stats.timers <= 512);
		}
	}
	CHECK_EQ(hd_join(other, NULL, HD_FOREVER), 0);
	CHECK_EQ(hd_stats(&stats), 0);
	CHECK_EQ(stats.timeouts, 0);
}

HD_PROCESS_TEST(time_deadlines_that_never_come_are_forgotten)
{
	forget_many(hd_scaled(500000));
}

/* And the same when thousands wait at once. */
static struct hd_semaphore crowd;
static long waves;

static void *wait_in_crowd(void *arg)
{
	for (long i = 0; i < waves; i++)
		CHECK_EQ(hd_semaphore_wait(&crowd, hd_after(HD_SEC(1000 + (long)arg % 100))), 0);
	return NULL;
}

HD_PROCESS_TEST(time_forgotten_deadlines_of_a_crowd_stay_bounded)
{
	const int crowd_size = hd_scaled(2000);
	struct hd_stats stats;

	waves = 50;
	for (long i = 0; i < crowd_size; i++)
		CHECK(hd_spawn_with(&(struct hd_spawn){ .detached = true }, wait_in_crowd, (void *)i) > 0);
	for (long wave = 0; wave < waves; wave++) {
		hd_yield();
		for (int i = 0; i < crowd_size; i++)
			CHECK_EQ(hd_semaphore_signal(&crowd), 0);
		CHECK_EQ(hd_stats(&stats), 0);
		CHECK(stats.timers <= 2 * (unsigned)crowd_size + 256);
	}
	hd_yield();
	CHECK_EQ(hd_stats(&stats), 0);
	CHECK_EQ(stats.live_processes, 1);
}
