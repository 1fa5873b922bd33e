/* switch.c - what it costs to give the worker to another process: by yielding, and by signalling a semaphore. */
#include "../harness.h"
#include "cases.h"

enum { CROWD = 1000 };

static long rounds; /* of every process of the running repetition */
static hd_pid pids[CROWD];

static void spawn_all(int count, hd_entry entry)
{
	for (int i = 0; i < count; i++)
		pids[i] = bench_ok(hd_spawn(entry, (void *)(intptr_t)i), "hd_spawn");
}

static void join_all(int count)
{
	for (int i = 0; i < count; i++)
		bench_ok(hd_join(pids[i], NULL, HD_FOREVER), "hd_join");
}

static double time_all(int count, hd_entry entry)
{
	double start = bench_now();
	spawn_all(count, entry);
	join_all(count);
	return bench_now() - start;
}

static void *yielder(void *arg)
{
	(void)arg;
	for (long i = rounds; i > 0; i--)
		hd_yield();
	return NULL;
}

static double yield_among_2(long n)
{
	rounds = n / 2;
	return time_all(2, yielder);
}

static double yield_among_crowd(long n)
{
	rounds = n / CROWD;
	return time_all(CROWD, yielder);
}

void yield2(void)
{
	bench_rate("yield2", yield_among_2, 2000);
}

void yield1000(void)
{
	bench_rate("yield1000", yield_among_crowd, CROWD);
}

/* Each member waits for its own semaphore and signals the next one's. The first one is given the token before the start. */
static struct hd_semaphore turn[CROWD];
static int members;

static void *member(void *arg)
{
	int i = (int)(intptr_t)arg;
	struct hd_semaphore *mine = &turn[i], *next = &turn[(i + 1) % members];

	for (long k = rounds; k > 0 && hd_semaphore_wait(mine, HD_FOREVER) == 0; k--)
		hd_semaphore_signal(next);
	return NULL;
}

static double pass_token(int count, long laps)
{
	members = count;
	rounds = laps;
	memset(turn, 0, sizeof turn);
	hd_semaphore_signal(&turn[0]);
	return time_all(count, member);
}

static double round_trips(long n)
{
	return pass_token(2, n);
}

static double hops(long n)
{
	return pass_token(CROWD, n / CROWD);
}

void pingpong(void)
{
	bench_rate("pingpong", round_trips, 1000);
}

void ring1000(void)
{
	bench_rate("ring1000", hops, CROWD);
}

static void load(void)
{
	run_uncounted(mixed_load);
}

void pingpong_mixed(void)
{
	bench_rate_after("pingpong_mixed", load, round_trips, 1000);
}

void ring1000_mixed(void)
{
	bench_rate_after("ring1000_mixed", load, hops, CROWD);
}
