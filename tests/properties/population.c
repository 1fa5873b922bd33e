/* properties/population.c - a million processes come, wait and go, three times, and nothing of them stays. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "harness/process.h"
#include "properties/affordable.h"
#include "wait/threads.h"

struct footprint {
	long resident, mappings;
	struct hd_stats stats;
};

static long resident_pages(void)
{
	FILE *f = fopen("/proc/self/statm", "r");
	long size, resident = 0;

	CHECK(f != NULL && fscanf(f, "%ld %ld", &size, &resident) == 2);
	fclose(f);
	return resident;
}

static long count_mappings(void)
{
	FILE *f = fopen("/proc/self/maps", "r");
	long n = 0;

	CHECK(f != NULL);
	for (int c; (c = getc(f)) != EOF;)
		n += c == '\n';
	fclose(f);
	return n;
}

static struct footprint measure(void)
{
	struct footprint now;

	CHECK_EQ(hd_stats(&now.stats), 0);
	now.resident = resident_pages();
	now.mappings = count_mappings();
	return now;
}

static struct hd_semaphore gate;
static long blocked;

static void *wait_at_gate(void *arg)
{
	blocked++;
	CHECK_EQ(hd_semaphore_wait(&gate, HD_FOREVER), 0);
	blocked--;
	return arg;
}

static void one_round(int n)
{
	struct hd_stats stats;

	for (int i = 0; i < n; i++)
		CHECK(hd_spawn_with(&(struct hd_spawn){ .detached = true }, wait_at_gate, NULL) > 0);
	hd_yield();
	CHECK_EQ(blocked, n);
	CHECK_EQ(hd_stats(&stats), 0);
	CHECK_EQ(stats.live_processes, (unsigned long)n + 1);
	CHECK_EQ(stats.live_stacks, (unsigned long)n + 1);
	for (int i = 0; i < n; i++)
		CHECK_EQ(hd_semaphore_signal(&gate), 0);
	hd_yield();
	CHECK_EQ(blocked, 0);
}

/* Idle until the stacks have given their memory back: cooling begins after 100 ms and takes a while. */
static void cool_down(void)
{
	struct hd_stats stats;

	for (int i = 0; i < 100; i++) {
		CHECK_EQ(hd_sleep(HD_MS(150)), 0);
		CHECK_EQ(hd_stats(&stats), 0);
		if (stats.cached_stacks <= 128)
			return;
	}
	CHECK(!"the stacks kept their memory");
}

static void come_and_go(int n)
{
	n = affordable(n);
	struct footprint start = measure(), after[3];

	for (int round = 0; round < 3; round++) {
		one_round(n);
		cool_down();
		after[round] = measure();
		CHECK_EQ(after[round].stats.live_processes, start.stats.live_processes);
		CHECK_EQ(after[round].stats.live_stacks, start.stats.live_stacks);
		CHECK_EQ(after[round].stats.ended - start.stats.ended, (unsigned long)n * (unsigned long)(round + 1));
	}
	for (int round = 1; round < 3; round++) {
		CHECK_EQ(after[round].stats.made_stacks, after[0].stats.made_stacks);
#if !HD_UNDER_ASAN && !HD_UNDER_TSAN /* their shadows grow as they like */
		CHECK_EQ(after[round].mappings, after[0].mappings);
		long grown = after[round].resident - after[0].resident;
		CHECK(hd_is_emulated() || grown < 64 + after[0].resident / 100);
#endif
	}
	/* A stack's memory is gone; its control block stays, some 256 bytes for each that ever was at one time. */
#if !HD_UNDER_ASAN && !HD_UNDER_TSAN
	long blocks = (long)n * 256 / sysconf(_SC_PAGESIZE);
	CHECK(hd_is_emulated() || after[2].resident - start.resident < blocks + n / 128 + 2048);
#endif
}

HD_PROCESS_TEST(population_comes_and_goes_without_a_trace)
{
	come_and_go(hd_is_simulated() ? 100
		    : HD_UNDER_TSAN   ? 500
		    : HD_UNDER_ASAN   ? 8000
				      : 100000 /* TSan takes a millisecond for each */);
}

#if !HD_UNDER_TSAN
HD_PROCESS_STRESS(population_of_a_million_comes_and_goes_without_a_trace)
{
	come_and_go(HD_UNDER_ASAN ? 50000 : 1000000);
}
#endif

/* ---- ids ---- */

static void *nothing(void *arg)
{
	return arg;
}

/* Ids of one slot differ in their generation, which only grows: enough to see that none comes twice. */
static void spawn_many(int n)
{
	static int64_t last[65536];
	enum { AT_ONCE = 16 };

	for (int i = 0; i < n; i += AT_ONCE) {
		hd_pid pids[AT_ONCE];
		for (int k = 0; k < AT_ONCE; k++) {
			pids[k] = hd_spawn(nothing, NULL);
			CHECK(pids[k] > 0);
			size_t slot = (size_t)pids[k] & 0xffffff;
			CHECK(slot < 65536);
			CHECK(pids[k] >> 24 > last[slot]);
			last[slot] = pids[k] >> 24;
		}
		for (int k = 0; k < AT_ONCE; k++)
			CHECK_EQ(hd_join(pids[(k + i) % AT_ONCE], NULL, HD_FOREVER), 0);
		CHECK_EQ(hd_join(pids[0], NULL, HD_FOREVER), -3); /* ESRCH: dead for good */
	}
}

HD_PROCESS_TEST(population_ids_are_never_used_again)
{
	spawn_many(HD_UNDER_TSAN ? 1000 : hd_scaled(1000000));
}

HD_PROCESS_STRESS(population_ten_million_ids_are_never_used_again)
{
	spawn_many(HD_UNDER_TSAN ? 10000 : hd_scaled(10000000));
}
