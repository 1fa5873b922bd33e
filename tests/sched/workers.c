/* sched/workers.c - many processes on many workers: every one of them is accounted for, and nothing is left of them. */
#include "properties/affordable.h"
#include "sched/workers.h"

static struct hd_stats stats_now(void)
{
	struct hd_stats stats;

	CHECK_EQ(hd_stats(&stats), 0);
	return stats;
}

/* ---- a population ---- */

static struct hd_semaphore gate;
static long waiting, done;

static void *wait_at_gate(void *arg)
{
	add(&waiting, 1);
	CHECK_EQ(hd_semaphore_wait(&gate, HD_FOREVER), 0);
	add(&done, 1);
	return arg;
}

/* All of them wait at once, then all end; they were spawned by crew members on all workers. */
static int each_spawns;

static void *spawn_many(void *arg)
{
	for (int i = 0; i < each_spawns; i++)
		CHECK(hd_spawn_with(&(struct hd_spawn){ .detached = true, .pinned = i % 2 == 0 }, wait_at_gate, NULL) > 0);
	return arg;
}

static void *signal_many(void *arg)
{
	for (int i = 0; i < each_spawns; i++)
		CHECK_EQ(hd_semaphore_signal(&gate), 0);
	return arg;
}

/* Idle until the stacks have given their memory back: that begins after 100 ms. */
static void cool_down(void)
{
	for (int i = 0; i < 100 && stats_now().cached_stacks > 1024; i++)
		CHECK_EQ(hd_sleep(HD_MS(150)), 0);
	CHECK(stats_now().cached_stacks <= 1024);
}

static void come_and_go(int workers, int n)
{
	struct crew crew;
	struct hd_stats before = stats_now();

	each_spawns = affordable(n) / workers;
	n = each_spawns * workers;
	waiting = done = 0;
	hd_semaphore_init(&gate, 0);
	start_crew(&crew, NULL, workers, spawn_many, NULL);
	join_crew_members(&crew);
	while (value_of(&waiting) < n)
		hd_sleep(HD_US(100));
	struct hd_stats full = stats_now();
	CHECK_EQ(full.spawned - full.ended, (uint64_t)n + 1);
	CHECK_EQ(full.live_processes, (uint64_t)n + 1);
	CHECK(full.live_stacks >= (uint64_t)n + 1);
	start_crew(&crew, NULL, workers, signal_many, NULL);
	join_crew_members(&crew);
	while (stats_now().live_processes > 1 || stats_now().live_stacks > 1) /* who is joined may still be leaving its stack */
		hd_sleep(HD_US(100));
	cool_down();
	struct hd_stats after = stats_now();
	CHECK_EQ(value_of(&done), n);
	CHECK_EQ(after.spawned - after.ended, 1);
	CHECK_EQ(after.spawned - before.spawned, (uint64_t)n + 2 * (uint64_t)workers + 1 /* affordable's */);
	CHECK_EQ(after.live_stacks, 1);
	CHECK_EQ(after.timers, 0);
}

HD_WORKERS_TEST(workers_share_a_population_that_leaves_nothing)
{
	const int n = hd_is_simulated() || HD_UNDER_TSAN ? 80 : HD_UNDER_ASAN ? 2000 : 10000;

	come_and_go(workers, n);
	uint64_t made = stats_now().made_stacks;
	come_and_go(workers, n);
	CHECK(stats_now().made_stacks <= made + made / 4 + 1024); /* those of before serve again, wherever they are */
}

#if !HD_UNDER_TSAN
HD_MANY_WORKERS_STRESS(workers_share_a_million_that_leave_nothing)
{
	come_and_go(workers, HD_UNDER_ASAN ? 50000 : 1000000);
}
#endif

/* ---- spawned and ended, everywhere at once ---- */

static void *end_at_once(void *arg)
{
	add(&done, 1);
	return arg;
}

static void *spawn_and_forget(void *arg)
{
	for (int i = 0; i < each_spawns; i++) {
		CHECK(hd_spawn_with(&(struct hd_spawn){ .detached = true, .pinned = !(i % 3 == 0), .priority = 35 + i % 10 },
				    end_at_once, NULL) > 0);
		if (i % 64 == 0) /* not too many at once */
			while (stats_now().live_processes > 5000)
				hd_sleep(HD_US(20));
	}
	return arg;
}

static void spawn_everywhere(int workers, int n)
{
	struct crew crew;

	done = 0;
	each_spawns = n / workers;
	start_crew(&crew, NULL, workers, spawn_and_forget, NULL);
	join_crew_members(&crew);
	while (stats_now().live_processes > 1 || stats_now().live_stacks > 1) /* a stack comes back a moment later */
		hd_sleep(HD_US(100));
	struct hd_stats stats = stats_now();
	CHECK_EQ(value_of(&done), (long)each_spawns * workers);
	CHECK_EQ(stats.spawned - stats.ended, 1);
}

HD_WORKERS_TEST(workers_end_each_of_many_once)
{
	spawn_everywhere(workers, HD_UNDER_TSAN ? 400 : hd_scaled(100000));
}

HD_WORKERS_STRESS(workers_end_each_of_two_million_once)
{
	spawn_everywhere(workers, HD_UNDER_TSAN ? 10000 : hd_scaled(2000000));
}

/* ---- many more workers than CPUs ---- */

static void *spawn_from_each(void *arg)
{
	long n = (long)arg;

	if (n == 0)
		return end_at_once(NULL);
	hd_pid a = hd_spawn(spawn_from_each, (void *)(n - 1)), b = hd_spawn(spawn_from_each, (void *)(n - 1));
	CHECK_EQ(hd_join(a, NULL, HD_FOREVER), 0);
	CHECK_EQ(hd_join(b, NULL, HD_FOREVER), 0);
	return NULL;
}

HD_TEST(workers_may_be_sixty_or_seventy)
{
	static const int counts[] = { 65, 9, 16, 63, 64, 130 }; /* the words of the board, and beyond */

	if (hd_is_emulated())
		SKIP("so many threads are too much for an emulator");
	for (unsigned i = 0; i < (HD_UNDER_TSAN || hd_is_simulated() ? 2 : sizeof counts / sizeof counts[0]); i++) {
		done = 0;
		CHECK_EQ(run_with_workers(counts[i], spawn_from_each, (void *)6L), 0);
		CHECK_EQ(value_of(&done), 64);
	}
}
