/* late_unpark.c - two events that one process waits for, one after the other, on its semaphore.
 *
 * Wrong:      who sets an event sees that it is awaited, and wakes the waiter a moment later. If the waiter's time is up
 *             between the two, it leaves; the wake-up finds it in its next wait and ends that.
 * Schedule:   the deadline comes when the setter has seen the waiter; the waiter gives up and waits for the second event; now
 *             it is woken for the first.
 * Shows:      assert.
 * Fix:        who was seen waits for the wake-up that is on its way. */
#include "planted.h"

static struct hd_semaphore mutex = LOCK, wake;
static bool is_set[2], is_awaited[2]; /* guarded by mutex */
static hd_time deadline;

static void await(int event, hd_time until)
{
	lock(&mutex);
	bool must_wait = is_awaited[event] = !is_set[event];
	unlock(&mutex);
	if (must_wait && hd_semaphore_wait(&wake, until) != 0) {
		lock(&mutex);
#ifdef FIXED
		if (!is_awaited[event])
			MUST(hd_semaphore_wait(&wake, HD_FOREVER) == 0);
#endif
		is_awaited[event] = false;
		unlock(&mutex);
	}
}

static void *await_both(void *arg)
{
	await(0, deadline);
	await(1, HD_FOREVER);
	MUST(is_set[1]);
	return arg;
}

static void *set_both(void *arg)
{
	hd_sleep_until(deadline);
	for (int event = 0; event < 2; event++) {
		lock(&mutex);
		is_set[event] = true;
		bool must_wake = is_awaited[event];
		is_awaited[event] = false;
		unlock(&mutex);
		if (must_wake)
			hd_semaphore_signal(&wake);
	}
	return arg;
}

PLANTED_MAIN
{
	deadline = hd_after(HD_MS(1));
	TOGETHER(await_both, set_both);
}
