/* reference_count.c - an object with three references; who drops the last one frees it.
 *
 * Wrong:      whether it is the last is decided before the count goes down.
 * Schedule:   the last two both see a count of two: nobody frees it.
 * Shows:      assert: it is not freed exactly once.
 * Fix:        the subtraction itself says what there was before it. */
#include "planted.h"

static _Atomic int references = 3, freed;

static void *drop(void *arg)
{
#ifdef FIXED
	bool is_last = atomic_fetch_sub(&references, 1) == 1;
#else
	bool is_last = references == 1;
	hd_checkpoint(); /* it has looked, and not subtracted yet */
	references--;
#endif
	if (is_last)
		freed++;
	return arg;
}

PLANTED_MAIN
{
	TOGETHER(drop, drop, drop);
	MUST(freed == 1);
}
