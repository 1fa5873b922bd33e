/* bank_transfer.c - two transfers of 60 from an account that holds 100.
 *
 * Wrong:      the check and the withdrawal each have the lock, but not together.
 * Schedule:   both check before either withdraws.
 * Shows:      assert.
 * Fix:        check and act under one lock. */
#include "planted.h"

static struct hd_semaphore bank = LOCK;
static int from = 100, to; /* guarded by bank */

static void *transfer(void *arg)
{
	lock(&bank);
	bool covered = from >= 60;
#ifndef FIXED
	unlock(&bank);
	lock(&bank);
#endif
	if (covered) {
		from -= 60;
		to += 60;
	}
	MUST(from >= 0);
	unlock(&bank);
	return arg;
}

PLANTED_MAIN
{
	TOGETHER(transfer, transfer);
	MUST(from + to == 100);
}
