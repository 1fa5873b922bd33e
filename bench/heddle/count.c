/* count.c - n operations and nothing else, for counting instructions.
 *
 * Running n and 2n of them under callgrind and taking the difference leaves what n operations execute: start, end and the
 * loops' set-up cancel out (see bench/instructions). */
#include "../harness.h"
#include "cases.h"

static long rounds;

static void run_two(hd_entry entry)
{
	hd_pid a = bench_ok(hd_spawn(entry, (void *)0), "hd_spawn");
	hd_pid b = bench_ok(hd_spawn(entry, (void *)1), "hd_spawn");

	bench_ok(hd_join(a, NULL, HD_FOREVER), "hd_join");
	bench_ok(hd_join(b, NULL, HD_FOREVER), "hd_join");
}

static void *yielder(void *arg)
{
	(void)arg;
	for (long i = rounds; i > 0; i--)
		hd_yield();
	return NULL;
}

/* n yields, each a switch to the other of two processes. */
void count_yield(long n)
{
	rounds = n / 2;
	run_two(yielder);
}

static struct hd_semaphore turn[2];

static void *player(void *arg)
{
	intptr_t me = (intptr_t)arg;

	for (long i = rounds; i > 0; i--) {
		hd_semaphore_wait(&turn[me], HD_FOREVER);
		hd_semaphore_signal(&turn[1 - me]);
	}
	return NULL;
}

/* n hops, each one signal, one wait and the switch between them: half a round trip. */
void count_semaphore_hop(long n)
{
	rounds = n / 2;
	hd_semaphore_signal(&turn[0]);
	run_two(player);
}

static void *nothing(void *arg)
{
	return arg;
}

/* n processes spawned, run and joined, one after another. */
void count_spawn_join(long n)
{
	for (long i = 0; i < n; i++)
		bench_ok(hd_join(bench_ok(hd_spawn(nothing, NULL), "hd_spawn"), NULL, HD_FOREVER), "hd_join");
}
