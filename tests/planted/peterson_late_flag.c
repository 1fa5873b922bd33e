/* peterson_late_flag.c - Peterson's lock for two, without the waiting: who may not enter now gives up.
 *
 * Wrong:      the turn is given away before the flag is up.
 * Schedule:   A gives the turn to B; B gives it to A, raises its flag, sees none of A's and enters; A raises its flag, has the
 *             turn and enters.
 * Shows:      assert: two are inside.
 * Fix:        flag first, turn then. */
#include "planted.h"

static _Atomic bool flag[2];
static _Atomic int turn, inside;

static bool try_enter(int me, int other)
{
#ifdef FIXED
	flag[me] = true;
	hd_checkpoint(); /* between the two stores */
	turn = other;
#else
	turn = other;
	hd_checkpoint(); /* between the two stores */
	flag[me] = true;
#endif
	hd_checkpoint(); /* it has shown itself, and not looked yet */
	return !flag[other] || turn == me;
}

static void *enter_if_free(void *arg)
{
	int me = number_of(arg);

	for (int i = 0; i < 2; i++) {
		if (try_enter(me, 1 - me)) {
			MUST(inside++ == 0);
			hd_checkpoint(); /* it is inside for a while */
			inside--;
		}
		flag[me] = false;
	}
	return arg;
}

PLANTED_MAIN
{
	TOGETHER(enter_if_free, enter_if_free);
}
