/* properties/affordable.h - how many processes there can be at once: where guards take mappings (Linux before 6.13), some 31,700. */
#ifndef PROPERTIES_AFFORDABLE_H
#define PROPERTIES_AFFORDABLE_H

#include <heddle.h>

#include "harness/harness.h"
#include "sched/worker.h"

static inline void *affordable_nothing(void *arg)
{
	return arg;
}

static inline bool guards_are_dear(void)
{
	CHECK_EQ(hd_join(hd_spawn(affordable_nothing, NULL), NULL, HD_FOREVER),
		 0); /* now there is a region, and it has guards */
	return hd__self()->sched->stacks[16].how == HD__GUARD_PROTECT;
}

/* n, or as many as there can be. */
static inline int affordable(int n)
{
	int most = guards_are_dear() ? (int)hd__os_protect_max() - 100 : n;
	return n < most ? n : most;
}

#endif
