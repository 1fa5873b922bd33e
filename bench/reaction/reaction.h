/* reaction.h - what the programs share that measure how late a high priority runs while every CPU is busy: `program loop|libc`.
 *
 * As many hogs as there are workers never end. One process, or thread, of a high priority sleeps until a time, notes how late it is, and
 * again. Two to four milliseconds lie between two of its times, drawn by chance, so that they meet no tick of a kernel or a runtime.
 * The program prints how late it was (us): the median, the 99th percentile and the maximum. */
#ifndef BENCH_REACTION_H
#define BENCH_REACTION_H

#include "../histogram.h"

enum { REACTION_WAKES = 300, REACTION_WAKES_QUICK = 100, REACTION_NAP_NS = 2000000, REACTION_HOGS_MAX = 64 };

/* A hog, on a cache line of its own. */
struct reaction_hog {
	_Alignas(64) volatile uint64_t turns; /* of its loop; written by the hog, read by the high priority */
	uint64_t at_first;		      /* its turns when the first sleep began */
};

struct reaction {
	unsigned nhogs;
	void *(*hog)(void *hog); /* what a hog does */
	struct reaction_hog hogs[REACTION_HOGS_MAX];
	struct histogram late;
	uint64_t latest; /* ns */
	uint64_t seed;
};

/* A loop without calls. */
static inline void *reaction_loop(void *arg)
{
	struct reaction_hog *hog = arg;

	for (;;)
		hog->turns++;
	return NULL;
}

/* A loop that is inside the C library for nearly all of its time. */
static inline void *reaction_libc(void *arg)
{
	struct reaction_hog *hog = arg;
	char text[128];

	for (;;) {
		if (snprintf(text, sizeof text, "%llu %s %.12g", (unsigned long long)hog->turns, "turns",
			     (double)hog->turns / 7) < 0)
			bench_die("snprintf", errno);
		hog->turns++;
	}
	return NULL;
}

static inline void reaction_init(struct reaction *r, int argc, char **argv)
{
	if (argc < 2 || (strcmp(argv[1], "loop") != 0 && strcmp(argv[1], "libc") != 0)) {
		fprintf(stderr, "usage: program loop|libc\n");
		exit(2);
	}
	r->hog = strcmp(argv[1], "loop") == 0 ? reaction_loop : reaction_libc;
	r->nhogs = bench_workers();
	if (r->nhogs > REACTION_HOGS_MAX)
		bench_skip("too many workers");
}

static inline int reaction_all_run(const struct reaction *r)
{
	for (unsigned i = 0; i < r->nhogs; i++)
		if (r->hogs[i].turns == 0)
			return 0;
	return 1;
}

static inline void reaction_begin(struct reaction *r)
{
	for (unsigned i = 0; i < r->nhogs; i++)
		r->hogs[i].at_first = r->hogs[i].turns;
}

static inline int reaction_wakes(void)
{
	return bench_quick() ? REACTION_WAKES_QUICK : REACTION_WAKES;
}

/* How long the next sleep is, in ns. */
static inline int64_t reaction_nap(struct reaction *r)
{
	r->seed = bench_step(r->seed);
	return REACTION_NAP_NS + (int64_t)((r->seed >> 33) % REACTION_NAP_NS);
}

/* The sleep has ended, so many ns after its time. */
static inline void reaction_note(struct reaction *r, int64_t late)
{
	if (late < 0)
		bench_die("woken too early", EINVAL);
	histogram_add(&r->late, (uint64_t)late);
	if ((uint64_t)late > r->latest)
		r->latest = (uint64_t)late;
}

/* Checks that there were as many wakes as should be, and that every hog went on meanwhile. */
static inline void reaction_print(const struct reaction *r)
{
	bench_same("wakes", (int64_t)r->late.count, reaction_wakes());
	for (unsigned i = 0; i < r->nhogs; i++)
		if (r->hogs[i].turns == r->hogs[i].at_first)
			bench_die("a hog stood still", EINVAL);
	bench_print("p50", histogram_quantile(&r->late, 0.5) / 1e3);
	bench_print("p99", histogram_quantile(&r->late, 0.99) / 1e3);
	bench_print("max", (double)r->latest / 1e3);
}
#endif
