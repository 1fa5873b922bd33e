/* shrink.h - the shortest schedule that fails in the same way. */
#ifndef SHRINK_H
#define SHRINK_H

#include "subject.h"

/* `s` has just run a plan that failed. Makes *plan a list of as few unusual options as can be found, which fails alike, and runs
 * it last. False when there are too many decisions to remember: then *plan is what it was. */
bool shrink(struct subject *s, struct hd__sim_plan *plan, unsigned *runs);

#endif
