/* crowds.h - n processes that wait for one thing, for every primitive: what each of them costs must not depend on n.
 *
 * bench/heddle/growth.c measures the time of a crowd, tests/growth/growth.c counts its steps. */
#ifndef BENCH_HEDDLE_CROWDS_H
#define BENCH_HEDDLE_CROWDS_H

#include <heddle.h>

struct crowd {
	const char *name;
	void (*prepare)(int n); /* or NULL */
	void (*wait)(int i);	/* by each of them; returns when it was served */
	void (*serve)(int n);	/* by the first process, once all of them wait */
	bool spread;		/* their priorities are 10 to 80; else all are 40 */
	unsigned flags;		/* of what they wait for */
};

extern const struct crowd crowds[]; /* ends with a name of NULL */

/* Has n processes come, wait and be served, on a runtime with one worker. `begin` is called when they are about to come, `end` when
 * all of them have been served; both by the same kernel thread. A call that fails ends the program. */
void crowd_run(const struct crowd *crowd, int n, void (*begin)(void), void (*end)(void));

#endif
