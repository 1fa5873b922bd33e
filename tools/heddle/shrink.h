/* shrink.h - the shortest schedule that fails in the same way. */
#ifndef SHRINK_H
#define SHRINK_H

#include "subject.h"

struct shrinking {
	unsigned runs;
	bool stopped;	 /* it took too long: perhaps there is a shorter one */
	const char *why; /* there is none; NULL: there is one */
};

/* `s` has just run a plan that failed. Makes *plan a list of as few unusual options as can be found, which fails alike, and runs
 * it last. False when that is not possible: then *plan is what it was. */
bool shrink(struct subject *s, struct hd__sim_plan *plan, struct shrinking *how);

#endif
