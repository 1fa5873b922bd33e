/* numbers.c - the last page: what things cost on this machine. */
#include "chapter.h"

#include <stdlib.h>

static long blocked;

static struct hd_semaphore there, back;

static void *nothing(void *arg)
{
	return arg;
}

static void *yielder(void *arg)
{
	long n = *(long *)arg;

	for (long i = 0; i < n; i++)
		hd_yield();
	return NULL;
}

static void *echo(void *arg)
{
	long n = *(long *)arg;

	for (long i = 0; i < n; i++) {
		if (hd_semaphore_wait(&there, HD_FOREVER) != 0)
			break;
		hd_semaphore_signal(&back);
	}
	return NULL;
}

/* A measurement without one of its processes is none. */
static void join(hd_pid pid)
{
	if (hd_join(pid, NULL, HD_FOREVER) != 0)
		hd_shutdown(1);
}

/* Each does something n times. */

/* tour: begin */
static void yields(long n)
{
	long half = n / 2;
	hd_pid other = hd_spawn(yielder, &half);
	yielder(&half);
	join(other);
}

static void spawns(long n)
{
	for (long i = 0; i < n; i++)
		join(hd_spawn(nothing, NULL));
}

static void round_trips(long n)
{
	hd_pid other = hd_spawn(echo, &n);
	for (long i = 0; i < n; i++) {
		hd_semaphore_signal(&there);
		if (hd_semaphore_wait(&back, HD_FOREVER) != 0)
			break;
	}
	join(other);
}
/* tour: end */

/* Nanoseconds for one, the best of five: other programs on the machine only add to it. */
static double cost(void (*some)(long n), long n)
{
	double best = 1e18;

	for (int round = 0; round < 5; round++) {
		hd_time start = hd_now();
		some(n);
		double each = (double)(hd_now() - start) / (double)n;
		if (each < best)
			best = each;
	}
	return best;
}

static void *wait_there(void *arg)
{
	return hd_semaphore_wait(&there, HD_FOREVER) == 0 ? arg : NULL;
}

static double bytes_per_blocked(void)
{
	long before = memory_used();

	for (long i = 0; i < blocked; i++)
		if (hd_spawn_with(&(struct hd_spawn){ .detached = true }, wait_there, NULL) < 0)
			hd_shutdown(1);
	hd_yield();
	return (double)(memory_used() - before) / (double)blocked;
}

static void row(const char *what, double value, const char *unit, const char *remark)
{
	printf("  %-28s %8s %-6s %s\n", what, thousands((long)(value + 0.5)), unit, remark);
}

static void *measure(void *arg)
{
	blocked = repetitions(10000);
	/* First, while no stack is there to be used again. */
	row("a blocked process", bytes_per_blocked(), "bytes", "its stack's only page, its control block, page tables");
	for (long i = 0; i < blocked; i++)
		hd_semaphore_signal(&there);
	hd_yield();

	row("hd_yield to another", cost(yields, repetitions(1000000)), "ns",
	    "straight to the next one: no kernel, no scheduler loop");
	row("hd_spawn and hd_join", cost(spawns, repetitions(200000)), "ns",
	    "the joined one runs at once, on a stack that is still warm");
	row("semaphore there and back", cost(round_trips, repetitions(200000)), "ns", "two signals, two waits, two switches");
	return arg;
}

int chapter_numbers(void)
{
	return hd_run(&(struct hd_config){ .workers = 1, .fixed = true }, measure, NULL);
}
