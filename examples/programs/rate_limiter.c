/* rate_limiter.c - a rate limiter: a few requests at once, then one in each interval.
 *
 * The limiter is a mutex and the time at which the next request may start. A request takes its time under the mutex and sleeps
 * outside of it, so that the mutex is never held for long. A limiter that was idle has saved up a burst, and not more. */
#include "../check.h"

#include <heddle.h>

enum { REQUESTS = 20, BURST = 5 };
#define INTERVAL HD_MS(1)

struct limiter {
	struct hd_mutex lock; /* guards next */
	hd_time next;	      /* when the next request may start, if there were no bursts */
};

static struct limiter limiter;
static hd_time begin, started[REQUESTS];

/* Waits until the caller may start. Returns 0; -ECANCELED when the caller was cancelled: its turn is used up nevertheless. */
static int limiter_wait(struct limiter *l)
{
	CHECK(hd_mutex_lock(&l->lock, HD_FOREVER) == 0);
	hd_time now = hd_now(), earliest = now - (BURST - 1) * INTERVAL;
	hd_time mine = l->next > earliest ? l->next : earliest;
	l->next = mine + INTERVAL;
	hd_mutex_unlock(&l->lock);
	return mine <= now ? 0 : hd_sleep_until(mine);
}

static void *request(void *arg)
{
	hd_time *when = arg;

	CHECK(limiter_wait(&limiter) == 0);
	*when = hd_now();
	return NULL;
}

static int compare(const void *a, const void *b)
{
	hd_time x = *(const hd_time *)a, y = *(const hd_time *)b;

	return (x > y) - (x < y);
}

static void *first(void *arg)
{
	struct hd_group requests = { 0 };

	begin = hd_now();
	for (int i = 0; i < REQUESTS; i++)
		CHECK(hd_group_spawn(&requests, request, &started[i]) > 0);
	CHECK(hd_group_wait(&requests, HD_FOREVER) == 0);

	/* However late a request is, it is never early: request number i starts after i - (BURST - 1) intervals, or later. */
	qsort(started, REQUESTS, sizeof started[0], compare);
	for (int i = 0; i < REQUESTS; i++)
		CHECK(started[i] - begin >= (i - (BURST - 1)) * INTERVAL);
	printf("%d requests: %d at once, then at most one each millisecond\n", REQUESTS, BURST);
	return arg;
}

int main(void)
{
	return hd_run(NULL, first, NULL) != 0;
}
