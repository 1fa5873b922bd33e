/* lost_update.c - a counter that two processes increment.
 *
 * Wrong:      it is read, and written later; what others have added meanwhile is gone.
 * Schedule:   both read the same number.
 * Shows:      assert.
 * Fix:        one atomic addition. */
#include "planted.h"

static _Atomic int counter;

static void *count(void *arg)
{
	for (int i = 0; i < 2; i++) {
#ifdef FIXED
		atomic_fetch_add(&counter, 1);
#else
		int n = counter;
		hd_checkpoint(); /* the addition */
		counter = n + 1;
#endif
	}
	return arg;
}

PLANTED_MAIN
{
	TOGETHER(count, count);
	MUST(counter == 4);
}
