/* growth.c - heddle-growth: what one waiter costs among 10, 100, ... 100,000, for every primitive.
 *
 * A waiter's cost is that of being woken once, coming to wait, and being served: nanoseconds, the least of some runs. The last column is the
 * cost among the most over that among 1,000: 1 is flat, 100 is the square. Caches have their say in it: a crowd of 1,000 fits into them,
 * one of 100,000 does not. tests/growth counts steps instead, and judges them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "crowds.h"

enum { LEAST = 10, BASE = 1000, MOST = 100000, ENOUGH = 20000 /* waiters, in all runs of a size */ };

static double began, took;

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void begin(void)
{
	began = now();
}

static void end(void)
{
	took = now() - began;
}

static double cost(const struct crowd *crowd, int n)
{
	double least = 0;

	for (int done = 0; done == 0 || done < ENOUGH; done += n) {
		crowd_run(crowd, n, begin, end);
		if (done == 0 || took < least)
			least = took;
	}
	return least / n;
}

static void print_row(const struct crowd *crowd, int most)
{
	double base = 0, last = 0;

	printf("%-30s", crowd->name);
	for (int n = LEAST; n <= most; n *= 10) {
		last = cost(crowd, n);
		if (n == BASE)
			base = last;
		printf(" %8.0f", last);
		fflush(stdout);
	}
	printf(base > 0 ? " %8.1f\n" : "\n", last / base);
}

/* heddle-growth [MOST [NAME...]]: all crowds, or those with these names. */
int main(int argc, char **argv)
{
	int most = argc > 1 ? atoi(argv[1]) : MOST;

	printf("%-30s", "ns for each of");
	for (int n = LEAST; n <= most; n *= 10)
		printf(" %8d", n);
	printf("   growth\n");
	for (const struct crowd *c = crowds; c->name != NULL; c++) {
		bool wanted = argc <= 2;
		for (int i = 2; i < argc; i++)
			wanted |= strcmp(argv[i], c->name) == 0;
		if (wanted)
			print_row(c, most);
	}
	return 0;
}
