/* wrong_lock.c - a condition that is waited for under one mutex and notified under another.
 *
 * Wrong:      the other mutex does not keep the notifier out between the waiter's look at the gate and its place in the queue.
 * Schedule:   the waiter looks: closed; the notifier opens the gate and finds nobody waiting; the waiter waits for good.
 * Shows:      deadlock (on real workers the two may also meet inside the queue).
 * Fix:        the same mutex on both sides. */
#include "planted.h"

static struct hd_semaphore mutex = LOCK;
static struct condition changed;
static _Atomic bool open;

#ifdef FIXED
#define NOTIFIERS_MUTEX mutex
#else
static struct hd_semaphore other_mutex = LOCK;
#define NOTIFIERS_MUTEX other_mutex
#endif

static void *go_through(void *arg)
{
	lock(&mutex);
	while (!open) {
		hd_checkpoint(); /* it has looked, and does not wait yet */
		condition_wait(&changed, &mutex);
	}
	unlock(&mutex);
	return arg;
}

static void *open_gate(void *arg)
{
	lock(&NOTIFIERS_MUTEX);
	open = true;
	condition_notify(&changed);
	unlock(&NOTIFIERS_MUTEX);
	return arg;
}

PLANTED_MAIN
{
	TOGETHER(go_through, open_gate);
}
