/* id_twice.c - ids that are handed out from a table of free ones, and given back.
 *
 * Wrong:      finding a free id and taking it are two steps.
 * Schedule:   both find the same one.
 * Shows:      assert: an id has two owners.
 * Fix:        the exchange that takes it also tells whether it was free. */
#include "planted.h"

enum { IDS = 2 };

static _Atomic bool taken[IDS];
static _Atomic int owners[IDS];

static bool try_take(int id)
{
#ifdef FIXED
	return !atomic_exchange(&taken[id], true);
#else
	if (taken[id])
		return false;
	hd_checkpoint(); /* it is free, and not taken yet */
	taken[id] = true;
	return true;
#endif
}

static void *use_an_id(void *arg)
{
	int id = 0;

	while (!try_take(id))
		MUST(++id < IDS); /* there are as many as processes */
	MUST(owners[id]++ == 0);
	hd_checkpoint(); /* it uses it */
	owners[id]--;
	taken[id] = false;
	return arg;
}

PLANTED_MAIN
{
	TOGETHER(use_an_id, use_an_id);
}
