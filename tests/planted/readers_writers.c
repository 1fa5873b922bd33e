/* readers_writers.c - a lock for many readers or one writer: the first reader takes the room for all, the last gives it back.
 *
 * Wrong:      the first reader lets go of the count before it has the room, so that a second one counts on what is not there.
 * Schedule:   the writer is in the room; the first reader waits for it; the second sees that it is not the first, and walks in.
 * Shows:      assert.
 * Fix:        hold the count until the room is taken. */
#include "planted.h"

static struct hd_semaphore room = LOCK, counting = LOCK;
static int readers; /* guarded by counting */
static _Atomic bool writing;

static void *read_it(void *arg)
{
	lock(&counting);
	bool is_first = ++readers == 1;
#ifndef FIXED
	unlock(&counting);
#endif
	if (is_first)
		lock(&room);
#ifdef FIXED
	unlock(&counting);
#endif
	MUST(!writing);
	lock(&counting);
	if (--readers == 0)
		unlock(&room);
	unlock(&counting);
	return arg;
}

static void *write_it(void *arg)
{
	lock(&room);
	writing = true;
	hd_checkpoint(); /* it writes */
	writing = false;
	unlock(&room);
	return arg;
}

PLANTED_MAIN
{
	TOGETHER(read_it, read_it, write_it);
}
