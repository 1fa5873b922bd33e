/* semaphore_credit.c - a semaphore that hands its credits to those who wait, for as long as they wait.
 *
 * Wrong:      a waiter whose time is up says so, although a credit was handed to it a moment before. The credit is lost.
 * Schedule:   the deadline comes, and before the waiter can leave the queue, the giver takes it out and gives it the credit.
 * Shows:      deadlock: who comes later waits for good.
 * Fix:        who is not in the queue any more has been given a credit, whatever the clock says. */
#include "planted.h"

static struct hd_semaphore mutex = LOCK;
static struct seat *queue; /* guarded by mutex, as are the credits */
static int credits;
static hd_time deadline;
static bool was_in_time;

static bool take(hd_time until)
{
	struct seat me = { .next = NULL };

	lock(&mutex);
	bool got = credits > 0;
	credits -= got;
	if (!got) {
		seat_push(&queue, &me);
		unlock(&mutex);
		got = hd_semaphore_wait(&me.wake, until) == 0;
		lock(&mutex);
#ifdef FIXED
		got = !seat_remove(&queue, &me);
#else
		seat_remove(&queue, &me);
#endif
	}
	unlock(&mutex);
	return got;
}

static void *take_in_time(void *arg)
{
	was_in_time = take(deadline);
	return arg;
}

static void *give_at_the_last_moment(void *arg)
{
	hd_sleep_until(deadline);
	lock(&mutex);
	struct seat *s = seat_take(&queue);
	if (s != NULL)
		hd_semaphore_signal(&s->wake); /* under the mutex: s does not leave before */
	else
		credits++;
	unlock(&mutex);
	return arg;
}

PLANTED_MAIN
{
	deadline = hd_after(HD_MS(1));
	TOGETHER(take_in_time, give_at_the_last_moment);
	MUST(was_in_time || take(HD_FOREVER));
}
