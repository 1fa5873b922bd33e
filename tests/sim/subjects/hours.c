/* hours.c WHAT - virtual time.
 *
 * sleep:    sleepers of hours and years wake in the order of their deadlines, each at its own and none early.
 * patient:  who waits an hour for somebody who is ready does not wait in vain.
 * look:     who looks at the clock again and again sees it go on.
 * before:   the first process sleeps until an hour has passed since before the run.
 * (none):   it sleeps for an hour. */
#include <errno.h>
#include <heddle.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HOUR HD_SEC(3600)

static hd_time start;
static long last;

/* Several are awake at once, and a step takes a microsecond: nobody is later than that by much. */
static void *sleep_for(void *arg)
{
	long hours = (long)(intptr_t)arg;
	hd_time until = start + hours * HOUR;

	if (hd_sleep_until(until) != 0 || hd_now() < until || hd_now() > until + HD_MS(1) || hours < last)
		abort();
	last = hours;
	return NULL;
}

static void sleep_long(void)
{
	static const long hours[] = { 50, 3, 100000, 7, 1, 24, 8760 };
	enum { N = sizeof hours / sizeof hours[0] };
	hd_pid pids[N];

	for (int i = 0; i < N; i++)
		pids[i] = hd_spawn(sleep_for, (void *)(intptr_t)hours[i]);
	for (int i = 0; i < N; i++)
		if (hd_join(pids[i], NULL, HD_FOREVER) != 0)
			abort();
	if (last != 100000)
		abort();
}

static struct hd_semaphore coming;

static void *come(void *arg)
{
	hd_checkpoint();
	hd_semaphore_signal(&coming);
	return arg;
}

static void be_patient(void)
{
	hd_pid pid = hd_spawn(come, NULL);

	if (hd_semaphore_wait(&coming, hd_after(HOUR)) != 0)
		abort();
	if (hd_join(pid, NULL, HD_FOREVER) != 0)
		abort();
}

static hd_time deadline;

static void *first(void *arg)
{
	start = hd_now();
	if (strcmp(arg, "sleep") == 0)
		sleep_long();
	else if (strcmp(arg, "patient") == 0)
		be_patient();
	else if (strcmp(arg, "look") == 0)
		while (hd_now() < start + HD_MS(1))
			hd_checkpoint();
	else if (strcmp(arg, "before") == 0)
		hd_sleep_until(deadline);
	else
		hd_sleep(HOUR);
	printf("slept for %.0f s\n", (double)(hd_now() - start) / 1e9);
	return arg;
}

int main(int argc, char **argv)
{
	deadline = hd_after(HOUR);
	return hd_run(NULL, first, argc > 1 ? argv[1] : (char *)"");
}
