/* progress.c - how far an exploration has come. */
#include "progress.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define SEEN_FIRST (1u << 12)
#define SEEN_MAX (UINT64_C(1) << 26)

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

void progress_start(struct progress *p, bool quiet, uint64_t wanted, double seconds)
{
	*p = (struct progress){
		.shown = !quiet && isatty(STDERR_FILENO), .wanted = wanted, .started = now(), .seconds = seconds
	};
	p->seen = calloc(SEEN_FIRST, sizeof *p->seen);
	p->seen_size = p->seen != NULL ? SEEN_FIRST : 0;
}

void progress_end(struct progress *p)
{
	progress_hide(p);
	free(p->seen);
	p->seen = NULL;
	p->seen_size = 0;
}

double progress_elapsed(const struct progress *p)
{
	return now() - p->started;
}

bool progress_is_late(const struct progress *p)
{
	return p->seconds > 0 && progress_elapsed(p) >= p->seconds;
}

/* Returns whether it was not there. */
static bool insert(uint64_t *seen, uint64_t size, uint64_t hash)
{
	uint64_t i = hash & (size - 1);

	while (seen[i] != 0 && seen[i] != hash)
		i = (i + 1) & (size - 1);
	if (seen[i] == hash)
		return false;
	seen[i] = hash;
	return true;
}

/* Twice as much room. Without memory for that the count of distinct schedules stops there. */
static void grow(struct progress *p)
{
	uint64_t *more = p->seen_size < SEEN_MAX ? calloc(2 * p->seen_size, sizeof *more) : NULL;

	if (more == NULL)
		return;
	for (uint64_t i = 0; i < p->seen_size; i++)
		if (p->seen[i] != 0)
			insert(more, 2 * p->seen_size, p->seen[i]);
	free(p->seen);
	p->seen = more;
	p->seen_size *= 2;
}

void progress_add(struct progress *p, uint64_t hash)
{
	p->done++;
	if (2 * p->distinct >= p->seen_size)
		grow(p);
	if (2 * p->distinct < p->seen_size)
		p->distinct += insert(p->seen, p->seen_size, hash != 0 ? hash : 1);
}

void progress_show(struct progress *p)
{
	double elapsed = progress_elapsed(p), left = -1;

	if (!p->shown || elapsed < p->last + 0.2)
		return;
	p->last = elapsed;
	double rate = elapsed > 0 ? (double)p->done / elapsed : 0;
	if (p->wanted > 0 && rate > 0)
		left = (double)(p->wanted - p->done) / rate;
	if (p->seconds > 0 && (left < 0 || p->seconds - elapsed < left))
		left = p->seconds - elapsed;
	fprintf(stderr, "\r%" PRIu64 " schedules, %.0f a second, %" PRIu64 " distinct", p->done, rate, p->distinct);
	if (left >= 0)
		fprintf(stderr, ", %.0f s left", left);
	fputs("   ", stderr);
}

void progress_hide(const struct progress *p)
{
	if (p->shown)
		fprintf(stderr, "\r%70s\r", "");
}
