/* many.c - as many processes as one likes. */
#include "chapter.h"

static long n, through;

static void say(const char *what, hd_time started)
{
	struct hd_stats s;

	hd_stats(&s);
	progress(NULL, 0, 0);
	printf("  %s: %s processes are there, %s have ended; it took %.2f s\n", what, thousands((long)s.live_processes),
	       thousands(through), (double)(hd_now() - started) / 1e9);
}

/* tour: begin */
static struct hd_semaphore gate, all_through;

static void *visitor(void *arg)
{
	hd_semaphore_wait(&gate, HD_FOREVER);
	if (++through == n)
		hd_semaphore_signal(&all_through);
	return arg;
}

static void *gatekeeper(void *arg)
{
	const struct hd_spawn how = { .detached = true };
	hd_time start = hd_now();

	for (long i = 0; i < n; i++) {
		if (hd_spawn_with(&how, visitor, NULL) < 0)
			n = i;
		if (i % 10000 == 0) {
			hd_yield(); /* so that the new ones run, as far as the gate */
			progress("they come", i, n);
		}
	}
	hd_yield();
	say("all wait", start);

	start = hd_now();
	for (long i = 0; i < n; i++) {
		hd_semaphore_signal(&gate);
		if (i % 10000 == 0) {
			hd_yield();
			progress("they go", i, n);
		}
	}
	hd_semaphore_wait(&all_through, HD_FOREVER);
	say("all gone", start);
	return arg;
}

void chapter_many(void)
{
	n = how_many();
	hd_run(NULL, gatekeeper, NULL);
}
/* tour: end */
