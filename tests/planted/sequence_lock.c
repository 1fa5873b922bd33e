/* sequence_lock.c - a pair that is read without a lock: a sequence number tells whether it was being written meanwhile.
 *
 * Wrong:      the number changes only when the writer is done, so that a reader in the middle of it sees no change.
 * Schedule:   the reader reads the number and both halves between the writer's two stores.
 * Shows:      assert: halves of two pairs.
 * Fix:        odd while it is being written: changed before and after. */
#include "planted.h"

#ifdef FIXED
enum { BEFORE = 1, AFTER = 1 };
#else
enum { BEFORE = 0, AFTER = 2 };
#endif

static _Atomic int sequence, left, right;

static void *write_pair(void *arg)
{
	sequence += BEFORE;
	left++;
	hd_checkpoint(); /* between the two */
	right++;
	sequence += AFTER;
	return arg;
}

static void *read_pair(void *arg)
{
	int before = sequence;
	int a = left;

	hd_checkpoint(); /* between the two */
	int b = right;
	MUST(before % 2 != 0 || sequence != before || a == b);
	return arg;
}

PLANTED_MAIN
{
	TOGETHER(write_pair, read_pair);
}
