/* load.c - work for all the workers: a fan-out that only computes, and a mixture of everything. */
#include "../harness.h"
#include "cases.h"

enum { TASKS = 1000 };

static hd_pid spawn(hd_entry entry, void *arg)
{
	return bench_ok(hd_spawn(entry, arg), "hd_spawn");
}

static void join(hd_pid pid)
{
	bench_ok(hd_join(pid, NULL, HD_FOREVER), "hd_join");
}

static void *crunch(void *arg)
{
	return (void *)(uintptr_t)bench_crunch((uintptr_t)arg);
}

static double crunch_all(long n)
{
	static hd_pid pids[TASKS];
	double start = bench_now();

	for (long i = 0; i < n; i++)
		pids[i] = spawn(crunch, (void *)i);
	for (long i = 0; i < n; i++)
		join(pids[i]);
	return bench_now() - start;
}

void fanout(void)
{
	bench_fixed("fanout", crunch_all, TASKS, TASKS / 1e6); /* ms for all of them */
}

struct player {
	struct hd_semaphore *mine, *other;
};

static void *play(void *arg)
{
	struct player *p = arg;

	for (int i = 0; i < BENCH_MIX_ROUND_TRIPS && hd_semaphore_wait(p->mine, HD_FOREVER) == 0; i++)
		hd_semaphore_signal(p->other);
	return NULL;
}

static void *nothing(void *arg)
{
	return arg;
}

static hd_time load_ends;

static void *mixer(void *arg)
{
	hd_time nap = HD_US(BENCH_MIX_SLEEP_US) * (intptr_t)arg;

	while (hd_now() < load_ends) {
		struct hd_semaphore turn[2] = { HD_SEMAPHORE(1), HD_SEMAPHORE(0) };
		struct player players[2] = { { &turn[0], &turn[1] }, { &turn[1], &turn[0] } };
		hd_pid burst[BENCH_MIX_BURST], busy = spawn(crunch, arg);
		hd_pid a = spawn(play, &players[0]), b = spawn(play, &players[1]);

		for (int i = 0; i < BENCH_MIX_BURST; i++)
			burst[i] = spawn(nothing, NULL);
		hd_sleep(nap);
		for (int i = 0; i < BENCH_MIX_BURST; i++)
			join(burst[i]);
		join(a);
		join(b);
		join(busy);
	}
	return NULL;
}

void mixed_load(void)
{
	hd_pid mixers[BENCH_MIXERS];

	load_ends = hd_after(BENCH_MIX_NS);
	for (int i = 0; i < BENCH_MIXERS; i++)
		mixers[i] = spawn(mixer, (void *)(intptr_t)(i + 1));
	for (int i = 0; i < BENCH_MIXERS; i++)
		join(mixers[i]);
}
