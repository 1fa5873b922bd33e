/* many.c - as many processes as there is memory for. */
#include "chapter.h"

static long n;

static void say(const char *what, hd_time started)
{
	struct hd_stats s;

	if (hd_stats(&s) != 0)
		return;
	progress(NULL, 0, 0);
	printf("  %s: %s processes are there, %s have ended; it took %.2f s\n", what, thousands((long)s.live_processes),
	       thousands((long)s.ended), (double)(hd_now() - started) / 1e9);
}

/* tour: begin */
static struct hd_semaphore gate;
static struct hd_waitgroup inside;

static void *visitor(void *arg)
{
	if (hd_semaphore_wait(&gate, HD_FOREVER) == 0)
		hd_waitgroup_done(&inside);
	return arg;
}

static void *gatekeeper(void *arg)
{
	const struct hd_spawn how = { .detached = true };
	hd_time start = hd_now();

	for (long i = 0; i < n; i++) {
		if (hd_spawn_with(&how, visitor, NULL) < 0)
			n = i; /* no memory for more */
		if (i % 10000 == 0) {
			hd_yield(); /* the new ones run, as far as the gate */
			progress("they come", i, n);
		}
	}
	hd_waitgroup_add(&inside, (int)n); /* before the gate opens */
	say("all are there", start);

	start = hd_now();
	for (long i = 0; i < n; i++) {
		hd_semaphore_signal(&gate);
		if (i % 10000 == 0) {
			hd_yield();
			progress("they go", i, n);
		}
	}
	if (hd_waitgroup_wait(&inside, HD_FOREVER) != 0)
		hd_shutdown(1);
	say("all went through", start);
	return arg;
}

int chapter_many(void)
{
	n = how_many();
	return hd_run(NULL, gatekeeper, NULL);
}
/* tour: end */
