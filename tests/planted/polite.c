/* polite.c - two meet in a corridor that is wide enough for one.
 *
 * Wrong:      who sees that the other one wants to pass steps back and waits until it has passed.
 * Schedule:   both want to pass before either looks; both step back; each lets the other one go first, for ever.
 * Shows:      livelock: they go on yielding to each other.
 * Fix:        first come, first served: a lock. */
#include "planted.h"

static _Atomic int inside;
#ifdef FIXED
static struct hd_semaphore corridor = LOCK;
#else
static _Atomic bool wants[2], passed[2];
#endif

static void *pass(void *arg)
{
#ifdef FIXED
	lock(&corridor);
#else
	int me = number_of(arg), other = 1 - me;

	wants[me] = true;
	hd_checkpoint(); /* it has shown itself, and not looked yet */
	if (wants[other])
		while (!passed[other])
			hd_yield();
#endif
	MUST(inside++ == 0);
	hd_checkpoint(); /* it walks */
	inside--;
#ifdef FIXED
	unlock(&corridor);
#else
	passed[me] = true;
#endif
	return arg;
}

PLANTED_MAIN
{
	TOGETHER(pass, pass);
}
