/* crowd.c WORKERS WHAT - so many workers, twice as many processes of high priority, some of low priority.
 *
 * below:   while as many of the high ones as there are workers could run, no low one does.
 * alone:   no low one ever runs while a high one could: wrong, where there are two workers.
 * beside:  no two of the high ones are in the middle of something at a time: wrong too.
 *
 * The high ones wait for the low ones now and then, so that there are more and fewer of them who could run. */
#include <heddle.h>
#include <stdlib.h>
#include <string.h>

enum { HIGH_MAX = 16, LOW = 3, ROUNDS = 3, STEPS = 2 };

static int workers;
static const char *what;
static int
	could_run; /* high ones; counted by whoever lets them, behind that, and by themselves before they wait: never too many */
static int waiting;
static int in_the_middle;
static struct hd_semaphore go;

static void *high(void *arg)
{
	for (int i = 0; i < ROUNDS; i++) {
		for (int j = 0; j < STEPS; j++) {
			in_the_middle++;
			hd_checkpoint();
			if (--in_the_middle > 0 && strcmp(what, "beside") == 0)
				abort();
		}
		could_run--;
		waiting++;
		if (hd_semaphore_wait(&go, HD_FOREVER) != 0)
			abort();
	}
	could_run--;
	return arg;
}

static void look(void)
{
	if (could_run >= (strcmp(what, "alone") == 0 ? 1 : workers))
		abort();
}

static void *low(void *arg)
{
	for (int i = 0; i < ROUNDS * 2 * workers; i++) {
		look();
		bool wakes = waiting > 0;
		waiting -= wakes;
		hd_semaphore_signal(&go);
		could_run += wakes;
		look();
		hd_checkpoint();
	}
	look();
	return arg;
}

static void *first(void *arg)
{
	hd_pid pids[HIGH_MAX + LOW];
	int n = 0;

	for (int i = 0; i < LOW; i++)
		pids[n++] = hd_spawn_at(20, low, NULL);
	for (int i = 0; i < 2 * workers; i++) {
		pids[n++] = hd_spawn_at(60, high, NULL);
		could_run++;
	}
	for (int i = 0; i < n; i++)
		if (hd_join(pids[i], NULL, HD_FOREVER) != 0)
			abort();
	return arg;
}

int main(int argc, char **argv)
{
	if (argc < 3)
		return 2;
	workers = atoi(argv[1]);
	what = argv[2];
	return hd_run(&(struct hd_config){ .workers = (unsigned)workers, .fixed = true }, first, NULL);
}
