/* barrier.c - three that go from round to round together. */
#include <heddle.h>
#include <stdio.h>

enum { WALKERS = 3, ROUNDS = 2 };

static struct hd_barrier inn = HD_BARRIER(WALKERS);

static void *walker(void *name)
{
	for (int round = 1; round <= ROUNDS; round++) {
		printf("%s walks, day %d\n", (const char *)name, round);
		int last = hd_barrier_wait(&inn, HD_FOREVER);
		if (last == 1)
			printf("%s is the last, and all go on\n", (const char *)name);
	}
	return NULL;
}

static void *first(void *arg)
{
	static const char *const names[WALKERS] = { "ann", "bob", "cleo" };

	for (int i = 0; i < WALKERS; i++)
		if (hd_detach(hd_spawn(walker, (void *)names[i])) < 0)
			hd_shutdown(1); /* without the third the others would wait for ever */
	return arg;
}

int main(void)
{
	return hd_run(NULL, first, NULL) != 0;
}
