/* progress.h - how far an exploration has come, as one line that is written over. */
#ifndef PROGRESS_H
#define PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

struct progress {
	bool shown; /* stderr is a terminal, and there was no --quiet */
	uint64_t wanted, done;
	double started, seconds; /* when; how many there are at most, 0: no limit */
	double last;
	uint64_t *seen; /* a hash set of schedules */
	uint64_t seen_size, distinct;
};

void progress_start(struct progress *p, bool quiet, uint64_t wanted, double seconds);
void progress_end(struct progress *p);

/* One more run, with this hash. */
void progress_add(struct progress *p, uint64_t hash);

/* Writes the line, if it is time. */
void progress_show(struct progress *p);
void progress_hide(const struct progress *p);

/* Seconds since the start; whether the time is up. */
double progress_elapsed(const struct progress *p);
bool progress_is_late(const struct progress *p);

#endif
