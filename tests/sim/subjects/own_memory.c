/* own_memory.c [careless] - processes that ask malloc, calloc, realloc and posix_memalign for memory of their own, and take no for an
 * answer; or do not look. */
#include <heddle.h>
#include <stdlib.h>
#include <string.h>

static bool careless;

/* Keeps the compiler from doing without. */
static void *volatile kept;

static void use(void *memory)
{
	if (memory == NULL && !careless)
		return;
	memset(memory, 1, 100);
	kept = memory;
	free(kept);
}

static void *ask(void *arg)
{
	void *aligned = NULL, *more;

	use(malloc(100));
	hd_checkpoint();
	use(calloc(10, 10));
	void *some = malloc(10);
	hd_checkpoint();
	more = realloc(some, 100);
	if (more == NULL)
		free(some);
	use(more);
	use(posix_memalign(&aligned, 64, 100) == 0 ? aligned : NULL);
	return arg;
}

static void *first(void *arg)
{
	hd_pid pids[2];

	for (int i = 0; i < 2; i++)
		pids[i] = hd_spawn(ask, NULL);
	for (int i = 0; i < 2; i++)
		if (pids[i] > 0)
			if (hd_join(pids[i], NULL, HD_FOREVER) != 0)
				abort();
	return arg;
}

int main(int argc, char **argv)
{
	(void)argv;
	careless = argc > 1;
	return hd_run(NULL, first, NULL);
}
