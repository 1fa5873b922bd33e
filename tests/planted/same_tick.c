/* same_tick.c - two sleep until the same time; the one that went to sleep first is to set what the other one reads.
 *
 * Wrong:      those who wake together are made ready in order, which is not to say that they run in order.
 * Schedule:   the reader runs first.
 * Shows:      assert.
 * Fix:        the reader waits for the setter, not for the clock. */
#include "planted.h"

static hd_time tick;
static struct hd_semaphore is_set;
static _Atomic int value;

static void *set(void *arg)
{
	hd_sleep_until(tick);
	value = 42;
	hd_semaphore_signal(&is_set);
	return arg;
}

static void *get(void *arg)
{
#ifdef FIXED
	MUST(hd_semaphore_wait(&is_set, HD_FOREVER) == 0);
#else
	hd_sleep_until(tick);
#endif
	MUST(value == 42);
	return arg;
}

PLANTED_MAIN
{
	tick = hd_after(HD_MS(1));
	TOGETHER(set, get);
}
