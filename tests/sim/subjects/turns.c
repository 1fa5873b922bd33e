/* turns.c CHILDREN K [TRACE | yield] - the first process and so many others take K steps each.
 *
 * Each step adds the process's letter to a trace: a is the first process's, which spawns the others before its own steps and
 * joins them behind. TRACE: the trace that must not be. yield: a step is a yield. */
#include <heddle.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CHILDREN_MAX = 128 };

static int children, steps;
static int (*step)(void) = hd_checkpoint;
static char traced[256];
static int length;

static void *take_steps(void *arg)
{
	for (int i = 0; i < steps; i++) {
		traced[length++] = (char)('a' + (intptr_t)arg);
		step();
	}
	return NULL;
}

static void *first(void *arg)
{
	hd_pid pids[CHILDREN_MAX];

	for (int i = 0; i < children; i++)
		pids[i] = hd_spawn(take_steps, (void *)(intptr_t)(i + 1));
	take_steps(NULL);
	for (int i = 0; i < children; i++)
		if (hd_join(pids[i], NULL, HD_FOREVER) != 0)
			abort();
	return arg;
}

int main(int argc, char **argv)
{
	if (argc < 3)
		return 2;
	children = atoi(argv[1]);
	steps = atoi(argv[2]);
	if (argc > 3 && strcmp(argv[3], "yield") == 0)
		step = hd_yield;
	if (hd_run(NULL, first, NULL) != 0)
		return 1;
	printf("%s\n", traced);
	if (argc > 3 && strcmp(traced, argv[3]) == 0)
		abort();
	return 0;
}
