/* spawn.c - what it costs to make a process, run it and join it: one by one, a million at once, and as a tree. */
#include "../harness.h"
#include "cases.h"

static void *nothing(void *arg)
{
	return arg;
}

static double one_by_one(long n)
{
	double start = bench_now();
	for (long i = 0; i < n; i++)
		bench_ok(hd_join(bench_ok(hd_spawn(nothing, NULL), "hd_spawn"), NULL, HD_FOREVER), "hd_join");
	return bench_now() - start;
}

void spawn_join(void)
{
	bench_rate("spawn_join", one_by_one, 1000);
}

static hd_pid *pids;

static double all_then_join(long n)
{
	double start = bench_now();
	for (long i = 0; i < n; i++)
		pids[i] = bench_ok(hd_spawn(nothing, NULL), "hd_spawn");
	for (long i = 0; i < n; i++)
		bench_ok(hd_join(pids[i], NULL, HD_FOREVER), "hd_join");
	return bench_now() - start;
}

void spawn_1m(void)
{
	const long n = 1000000;

	pids = bench_array(n, sizeof *pids);
	bench_fixed("spawn_1m", all_then_join, n, 1);
	bench_print("spawn_1m_peak", bench_peak());
	free(pids);
}

/* Skynet: a tree in which every node has ten children. A leaf answers its number, a node the sum of its children's answers. */
enum { FANOUT = 10 };

struct node {
	long number, leaves;
};

static void *grow(void *arg)
{
	struct node me = *(struct node *)arg, children[FANOUT];
	hd_pid growing[FANOUT];
	intptr_t sum = 0;

	if (me.leaves == 1)
		return (void *)(intptr_t)me.number;
	for (int i = 0; i < FANOUT; i++) {
		children[i].leaves = me.leaves / FANOUT;
		children[i].number = me.number + i * children[i].leaves;
		growing[i] = bench_ok(hd_spawn(grow, &children[i]), "hd_spawn");
	}
	for (int i = 0; i < FANOUT; i++) {
		void *answer;
		bench_ok(hd_join(growing[i], &answer, HD_FOREVER), "hd_join");
		sum += (intptr_t)answer;
	}
	return (void *)sum;
}

static double tree(long leaves)
{
	struct node root = { 0, leaves };
	void *sum;
	double start = bench_now();

	bench_ok(hd_join(bench_ok(hd_spawn(grow, &root), "hd_spawn"), &sum, HD_FOREVER), "hd_join");
	if ((intptr_t)sum != leaves * (leaves - 1) / 2)
		bench_die("skynet: wrong sum", EINVAL);
	return bench_now() - start;
}

void skynet(void)
{
	const long leaves = 1000000;

	bench_fixed("skynet", tree, leaves, (double)leaves / 1e6); /* ms for the whole tree */
}
