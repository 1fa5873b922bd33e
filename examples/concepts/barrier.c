/* barrier.c - three walkers that go from day to day together. */
#include <heddle.h>
#include <stdio.h>

enum { WALKERS = 3, DAYS = 3 };

static struct hd_barrier inn = HD_BARRIER(WALKERS);

static void *walker(void *arg)
{
	for (int day = 1; day <= DAYS; day++) {
		int last = hd_barrier_wait(&inn, HD_FOREVER);
		if (last < 0)
			return NULL; /* cancelled: not all walkers are there */
		if (last == 1)
			printf("day %d: the last of %d walkers has come to the inn\n", day, WALKERS);
	}
	return arg;
}

static void *first(void *arg)
{
	struct hd_group walkers = { 0 };

	for (int i = 0; i < WALKERS; i++)
		if (hd_group_spawn(&walkers, walker, NULL) < 0)
			hd_group_cancel(&walkers); /* without the third the others would wait for ever */
	if (hd_group_wait(&walkers, HD_FOREVER) != 0)
		hd_shutdown(1);
	return arg;
}

int main(void)
{
	return hd_run(NULL, first, NULL) != 0;
}
