/* two_locks.c - two processes that need the same two locks.
 *
 * Wrong:      each begins with another one.
 * Schedule:   each has taken its first lock; each waits for the other's.
 * Shows:      deadlock.
 * Fix:        everybody takes them in the same order. */
#include "planted.h"

static struct hd_semaphore locks[2] = { LOCK, LOCK };
static int moves; /* guarded by both */

static void *move(void *arg)
{
#ifdef FIXED
	int from = 0;
#else
	int from = number_of(arg);
#endif
	lock(&locks[from]);
	lock(&locks[1 - from]);
	moves++;
	unlock(&locks[1 - from]);
	unlock(&locks[from]);
	return arg;
}

PLANTED_MAIN
{
	TOGETHER(move, move);
	MUST(moves == 2);
}
