/* when.c - what a behaviour costs. On one cown and on two: made by the behaviour before it, or by one process for many cowns. And how evenly
 * behaviours that make themselves anew share the workers. */
#include <heddle/when.h>
#include <stdatomic.h>

#include "../harness.h"
#include "cases.h"

static hd_cown *new_cown(void *data)
{
	hd_cown *cown = hd_cown_new(data, NULL);
	if (cown == NULL)
		bench_die("hd_cown_new", ENOMEM);
	return cown;
}

static void quiesce(void)
{
	bench_ok(hd_quiesce(HD_FOREVER), "hd_quiesce");
}

/* ---- made by the behaviour before it ---- */

static long left;
static hd_cown *pair[2];

static void once_more_on_one(void *arg, void *const data[])
{
	(void)data;
	if (--left > 0)
		bench_ok(hd_when(once_more_on_one, arg, pair[0]), "hd_when");
}

static void once_more_on_two(void *arg, void *const data[])
{
	(void)data;
	if (--left > 0)
		bench_ok(hd_when(once_more_on_two, arg, pair[0], pair[1]), "hd_when");
}

static void run(hd_behaviour once_more, size_t ncowns, long n)
{
	for (size_t i = 0; i < 2; i++)
		pair[i] = new_cown(NULL);
	left = n;
	bench_ok(hd_when_n(once_more, NULL, pair, ncowns), "hd_when_n");
	quiesce();
	bench_same("behaviours were lost", left, 0);
	for (size_t i = 0; i < 2; i++)
		hd_cown_release(pair[i]);
}

static double time_one(long n)
{
	double start = bench_now();

	run(once_more_on_one, 1, n);
	return bench_now() - start;
}

static double time_two(long n)
{
	double start = bench_now();

	run(once_more_on_two, 2, n);
	return bench_now() - start;
}

void when_1(void)
{
	bench_rate("when_1", time_one, 1000);
}

void when_2(void)
{
	bench_rate("when_2", time_two, 1000);
}

void count_when_1(long n)
{
	run(once_more_on_one, 1, n);
}

void count_when_2(long n)
{
	run(once_more_on_two, 2, n);
}

/* ---- made by one process ---- */

static struct {
	_Alignas(64) long count;
	hd_cown *cown;
} many[BENCH_COWNS];

static void count_one(void *arg, void *const data[])
{
	(void)arg;
	++*(long *)data[0];
}

static void count_two(void *arg, void *const data[])
{
	(void)arg;
	++*(long *)data[0];
	++*(long *)data[1];
}

/* Cown after cown; BENCH_COWN_RUNS for each, and then the process waits for all of them. */
static void produce_on_one(long n)
{
	for (long i = 0; i < n; i++) {
		bench_ok(hd_when(count_one, NULL, many[i % BENCH_COWNS].cown), "hd_when");
		if ((i + 1) % (BENCH_COWNS * BENCH_COWN_RUNS) == 0)
			quiesce();
	}
}

/* Neighbours: 0 and 1, 2 and 3 and so on; in the next round 1 and 2, 3 and 4 and so on. No two of a round have a cown in common. */
static void produce_on_two(long n)
{
	for (long i = 0; i < n; i++) {
		long round = i / (BENCH_COWNS / 2), one = (2 * i + round % 2) % BENCH_COWNS;
		bench_ok(hd_when(count_two, NULL, many[one].cown, many[(one + 1) % BENCH_COWNS].cown), "hd_when");
		if ((i + 1) % (BENCH_COWNS / 2 * BENCH_COWN_RUNS) == 0)
			quiesce();
	}
}

/* n is a multiple of the rounds that both have. */
static double time_producer(void (*produce)(long n), long n, long each)
{
	for (int i = 0; i < BENCH_COWNS; i++) {
		many[i].count = 0;
		many[i].cown = new_cown(&many[i].count);
	}
	double start = bench_now();
	produce(n);
	quiesce();
	double took = bench_now() - start;
	for (int i = 0; i < BENCH_COWNS; i++) {
		hd_cown_release(many[i].cown);
		bench_same("behaviours were lost", many[i].count, each);
	}
	return took;
}

static double time_many_one(long n)
{
	return time_producer(produce_on_one, n, n / BENCH_COWNS);
}

static double time_many_two(long n)
{
	return time_producer(produce_on_two, n, 2 * n / BENCH_COWNS);
}

void when_1_many(void)
{
	bench_rate("when_1_many", time_many_one, BENCH_COWNS * BENCH_COWN_RUNS);
}

void when_2_many(void)
{
	bench_rate("when_2_many", time_many_two, BENCH_COWNS * BENCH_COWN_RUNS);
}

/* ---- shares ---- */

/* Behaviours that do not know of each other: each makes itself anew, on a cown of its own. */
static struct {
	_Alignas(64) atomic_long
		runs; /* its behaviour writes it, the others look at it now and then: relaxed, for a number is all that it is */
	long spread;  /* the largest that it has seen */
	hd_cown *cown;
} sharer[BENCH_SHARERS];
static long share;

/* How far the first is ahead of the last. */
static long spread_now(void)
{
	long least = share, most = 0;

	for (int i = 0; i < BENCH_SHARERS; i++) {
		long runs = atomic_load_explicit(&sharer[i].runs, memory_order_relaxed);
		least = runs < least ? runs : least;
		most = runs > most ? runs : most;
	}
	return most - least;
}

static void run_again(void *arg, void *const data[])
{
	int me = (int)(intptr_t)arg;
	long runs = atomic_load_explicit(&sharer[me].runs, memory_order_relaxed) + 1, spread;

	(void)data;
	atomic_store_explicit(&sharer[me].runs, runs, memory_order_relaxed);
	if (runs % BENCH_SHARE_LOOK == 0 && (spread = spread_now()) > sharer[me].spread)
		sharer[me].spread = spread;
	if (runs < share)
		bench_ok(hd_when(run_again, arg, sharer[me].cown), "hd_when");
}

void when_shares(void)
{
	long largest = 0;

	share = bench_quick() ? BENCH_SHARE / 10 : BENCH_SHARE;
	for (int i = 0; i < BENCH_SHARERS; i++)
		sharer[i].cown = new_cown(NULL);
	double start = bench_now();
	for (intptr_t i = 0; i < BENCH_SHARERS; i++)
		bench_ok(hd_when(run_again, (void *)i, sharer[i].cown), "hd_when");
	quiesce();
	double took = bench_now() - start;
	for (int i = 0; i < BENCH_SHARERS; i++) {
		hd_cown_release(sharer[i].cown);
		bench_same("behaviours were lost", atomic_load_explicit(&sharer[i].runs, memory_order_relaxed), share);
		largest = sharer[i].spread > largest ? sharer[i].spread : largest;
	}
	bench_print("when_shares", took / (double)(share * BENCH_SHARERS));
	bench_print("when_shares_spread", (double)largest);
}
