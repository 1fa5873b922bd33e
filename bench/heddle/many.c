/* many.c - a million processes at once: the memory of those that wait, the time of those that sleep. */
#include <stdatomic.h>

#include "../harness.h"
#include "cases.h"

enum { MANY = 1000000 };

static struct hd_semaphore gate;
static atomic_long arrived, left;

static void *block(void *arg)
{
	(void)arg;
	atomic_fetch_add_explicit(&arrived, 1, memory_order_relaxed); /* only counted */
	if (hd_semaphore_wait(&gate, HD_FOREVER) == 0)
		atomic_fetch_add_explicit(&left, 1, memory_order_relaxed);
	return NULL;
}

/* Resident bytes only: page tables are the kernel's, and are not counted for any peer. */
void blocked_1m(void)
{
	struct hd_spawn detached = { .detached = true };
	double before = bench_resident();

	for (long i = 0; i < MANY; i++)
		bench_ok(hd_spawn_with(&detached, block, NULL), "hd_spawn_with");
	while (atomic_load_explicit(&arrived, memory_order_relaxed) < MANY)
		hd_yield();
	bench_print("blocked_1m", (bench_resident() - before) / MANY);

	for (long i = 0; i < MANY; i++)
		hd_semaphore_signal(&gate);
	while (atomic_load_explicit(&left, memory_order_relaxed) < MANY)
		hd_yield();
}

static hd_pid *pids;

static void *sleeper(void *arg)
{
	hd_sleep(HD_MS((intptr_t)arg));
	return NULL;
}

static void sleep_all(double *wall, double *cpu)
{
	uint64_t seed = 1;
	double wall_start = bench_now(), cpu_start = bench_cpu();

	for (long i = 0; i < MANY; i++)
		pids[i] = bench_ok(hd_spawn(sleeper, (void *)(intptr_t)bench_next_sleep_ms(&seed)), "hd_spawn");
	for (long i = 0; i < MANY; i++)
		bench_ok(hd_join(pids[i], NULL, HD_FOREVER), "hd_join");
	*wall = (bench_now() - wall_start) / 1e6;
	*cpu = (bench_cpu() - cpu_start) / 1e6;
}

/* The second round is the one that counts: its stacks have been used before. */
void sleepers_1m(void)
{
	double wall, cpu;

	pids = bench_array(MANY, sizeof *pids);
	sleep_all(&wall, &cpu);
	sleep_all(&wall, &cpu);
	bench_print("sleepers_1m_wall", wall);
	bench_print("sleepers_1m_cpu", cpu);
	free(pids);
}
