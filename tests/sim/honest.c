/* honest.c PLAN SEEDS PROGRAM [ARGUMENT...] - runs a program with so many seeds, from the plan's on, in two servers side by side.
 *
 * The two have their memory at different places, and the second one runs the seeds in other batches, some of them twice. All
 * hashes must be alike, seed by seed. They are printed, one a line; 1 is answered where two differ. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "heddle/say.h"
#include "heddle/subject.h"

static struct hd__sim_plan plan;

/* Runs `count` seeds, from the plan's plus `from` on. */
static const uint64_t *run(struct subject *s, uint64_t from, unsigned count)
{
	s->page->plan = plan;
	s->page->plan.seed += from;
	subject_go(s, count, 0);
	subject_wait(s);
	if (s->page->done != count || s->page->result.verdict != HD__SIM_FINE)
		die("seed %" PRIu64 " fails", s->page->plan.seed);
	return s->page->hashes;
}

static int compare(struct subject *a, struct subject *b, uint64_t seeds)
{
	int differ = 0;

	for (uint64_t from = 0; from < seeds; from += HD__SIM_BATCH) {
		unsigned count = seeds - from < HD__SIM_BATCH ? (unsigned)(seeds - from) : HD__SIM_BATCH;
		const uint64_t *hashes = run(a, from, count);
		for (unsigned i = 0; i < count; i += 7) {
			unsigned few = count - i < 8 ? count - i : 8;
			const uint64_t *again = run(b, from + i, few);
			for (unsigned j = 0; j < few; j++)
				differ += hashes[i + j] != again[j];
		}
		for (unsigned i = 0; i < count; i++)
			printf("%016" PRIx64 "\n", hashes[i]);
	}
	return differ;
}

int main(int argc, char **argv)
{
	struct subject a, b;

	if (argc < 4 || !hd__sim_parse(&plan, argv[1]))
		die("honest PLAN SEEDS PROGRAM [ARGUMENT...]");
	subject_start(&a, argv + 3, 0);
	subject_start(&b, argv + 3, 0);
	int differ = compare(&a, &b, number_option("SEEDS", argv[2], 1, 1000000));
	subject_stop(&a);
	subject_stop(&b);
	if (differ > 0)
		die("%d runs differ", differ);
	return 0;
}
