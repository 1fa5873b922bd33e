/* machine.c - what machines cost: their life, a turn, the memory of a million that wait. */
#include <heddle/machine.h>
#include <stdatomic.h>

#include "../harness.h"
#include "cases.h"

enum { MANY = 1000000, BATCH = 64 };

static atomic_long ended, begun;

static struct hd_interrupt end_at_once(void *self, uint64_t budget)
{
	(void)budget;
	atomic_fetch_add_explicit(&ended, 1, memory_order_relaxed); /* only counted */
	return hd_want_end(self, 0);
}

/* Machines that are detached, spawned in batches: each has one turn, and ends. */
static void live(long n)
{
	static const struct hd_machine_ops ops = { .interpret = end_at_once };
	const struct hd_spawn detached = { .detached = true };

	atomic_store_explicit(&ended, 0, memory_order_relaxed);
	for (long i = 1; i <= n; i++) {
		bench_ok(hd_spawn_machine(&detached, &ops, NULL), "hd_spawn_machine");
		if (i % BATCH == 0)
			hd_yield();
	}
	while (atomic_load_explicit(&ended, memory_order_relaxed) < n)
		hd_yield();
}

static double time_lives(long n)
{
	double start = bench_now();

	live(n);
	return bench_now() - start;
}

void machine_life(void)
{
	bench_rate("machine_life", time_lives, 1000);
}

void count_machine_life(long n)
{
	live(n);
}

static struct hd_interrupt turn(void *self, uint64_t budget)
{
	long *left = self;

	(void)budget;
	return --*left > 0 ? hd_want_turn() : hd_want_end(NULL, 0);
}

/* Two machines that give way to each other: n turns. */
static void take_turns(long n)
{
	static const struct hd_machine_ops ops = { .interpret = turn };
	long left[2] = { n / 2, n / 2 };
	hd_pid pids[2];

	for (int i = 0; i < 2; i++)
		pids[i] = bench_ok(hd_spawn_machine(NULL, &ops, &left[i]), "hd_spawn_machine");
	for (int i = 0; i < 2; i++)
		bench_ok(hd_join(pids[i], NULL, HD_FOREVER), "hd_join");
}

static double time_turns(long n)
{
	double start = bench_now();

	take_turns(n);
	return bench_now() - start;
}

void machine_turn(void)
{
	bench_rate("machine_turn", time_turns, 1000);
}

void count_machine_turn(long n)
{
	take_turns(n);
}

static struct hd_interrupt wait(void *self, uint64_t budget)
{
	(void)self, (void)budget;
	if (hd_machine_waited() == 0)
		atomic_fetch_add_explicit(&begun, 1, memory_order_relaxed);
	return hd_want_message(NULL, HD_FOREVER);
}

static struct hd_interrupt wait_at_own_port(void *self, uint64_t budget)
{
	if (hd_port_new(NULL) == NULL) /* its own: given up when it ends */
		bench_die("hd_port_new", ENOMEM);
	return wait(self, budget);
}

static double bytes_of(const struct hd_machine_ops *ops)
{
	const struct hd_spawn how = { .detached = true, .daemon = true };
	double before = bench_resident();

	atomic_store_explicit(&begun, 0, memory_order_relaxed);
	for (long i = 0; i < MANY; i++) {
		bench_ok(hd_spawn_machine(&how, ops, NULL), "hd_spawn_machine");
		if (i % BATCH == 0)
			hd_yield();
	}
	while (atomic_load_explicit(&begun, memory_order_relaxed) < MANY)
		hd_yield();
	return (bench_resident() - before) / MANY;
}

void machines_1m(void)
{
	static const struct hd_machine_ops ops = { .interpret = wait }, with_port = { .interpret = wait_at_own_port };

	bench_print("machines_1m", bytes_of(&ops));
	bench_print("machines_1m_port", bytes_of(&with_port));
}
