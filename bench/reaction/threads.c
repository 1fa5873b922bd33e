/* threads.c - how late a kernel thread runs while another one computes on every CPU: `threads loop|libc other|fifo`.
 *
 * The hogs have the kernel's usual policy, SCHED_OTHER; so has the thread that sleeps, or it has SCHED_FIFO, which needs a privilege. */
#include <pthread.h>
#include <sched.h>

#include "reaction.h"

static struct reaction reaction;

static struct timespec at(int64_t ns)
{
	return (struct timespec){ .tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000 };
}

static int64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void sleep_until(int64_t due)
{
	struct timespec t = at(due);
	int error = clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);

	if (error != 0)
		bench_die("clock_nanosleep", error);
}

int main(int argc, char **argv)
{
	struct reaction *r = &reaction;
	const struct sched_param high = { .sched_priority = 50 };
	pthread_t thread;

	reaction_init(r, argc, argv);
	if (argc != 3 || (strcmp(argv[2], "other") != 0 && strcmp(argv[2], "fifo") != 0)) {
		fprintf(stderr, "usage: threads loop|libc other|fifo\n");
		return 2;
	}
	for (unsigned i = 0; i < r->nhogs; i++) {
		int error = pthread_create(&thread, NULL, r->hog, &r->hogs[i]);
		if (error != 0)
			bench_die("pthread_create", error);
	}
	if (strcmp(argv[2], "fifo") == 0) {
		int error = pthread_setschedparam(pthread_self(), SCHED_FIFO, &high);
		if (error == EPERM)
			bench_skip("SCHED_FIFO is not permitted");
		if (error != 0)
			bench_die("pthread_setschedparam", error);
	}
	while (!reaction_all_run(r))
		sleep_until(now() + 1000000);
	reaction_begin(r);
	for (int i = reaction_wakes(); i > 0; i--) {
		int64_t due = now() + reaction_nap(r);
		sleep_until(due);
		reaction_note(r, now() - due);
	}
	reaction_print(r);
	return 0; /* ends the hogs, too */
}
