/* upgrade.c - a lock for readers that lets one of them become the writer, once the others have left.
 *
 * Wrong:      two who read want to write, and each waits for the other to leave.
 * Schedule:   both read; both upgrade.
 * Shows:      deadlock.
 * Fix:        the second is turned away, leaves, and comes again when the first has written. */
#include "planted.h"

static struct hd_semaphore mutex = LOCK;
static struct condition changed;
static int readers, value; /* guarded by mutex; a value is changed by the writer alone */
static bool upgrading;	   /* somebody writes or is about to; guarded by mutex */

static void enter(void)
{
	lock(&mutex);
	while (upgrading)
		condition_wait(&changed, &mutex);
	readers++;
	unlock(&mutex);
}

static void leave(bool wrote)
{
	lock(&mutex);
	readers--;
	upgrading = upgrading && !wrote;
	condition_notify_all(&changed);
	unlock(&mutex);
}

static bool upgrade(void)
{
	lock(&mutex);
#ifdef FIXED
	bool may = !upgrading;
#else
	bool may = true;
#endif
	upgrading = true;
	while (may && readers > 1)
		condition_wait(&changed, &mutex);
	unlock(&mutex);
	return may;
}

static void *read_then_write(void *arg)
{
	for (enter(); !upgrade(); enter())
		leave(false);
	value++;
	leave(true);
	return arg;
}

PLANTED_MAIN
{
	TOGETHER(read_then_write, read_then_write);
	MUST(value == 2);
}
