/* yield_as_sync.c - a parent numbers its children, in a variable that each child reads as it starts.
 *
 * Wrong:      the parent yields so that the child reads its number before the next one is written there. A yield lets
 *             others run; it does not make them.
 * Schedule:   the parent goes on after the yield, before the child has run.
 * Shows:      assert: a number that two have, and one that nobody has.
 * Fix:        a variable for each child. */
#include "planted.h"

enum { CHILDREN = 3 };

#ifdef FIXED
#define PLACE(i) (i)
#else
#define PLACE(i) 0
#endif

static _Atomic int number[CHILDREN], seen[CHILDREN];

static void *read_number(void *arg)
{
	_Atomic int *mine = arg;

	seen[*mine]++;
	return NULL;
}

PLANTED_MAIN
{
	hd_pid pids[CHILDREN];

	for (int i = 0; i < CHILDREN; i++) {
		number[PLACE(i)] = i;
		pids[i] = start(read_number, &number[PLACE(i)]);
		hd_yield();
	}
	for (int i = 0; i < CHILDREN; i++) {
		finish(pids[i]);
		MUST(seen[i] == 1);
	}
}
