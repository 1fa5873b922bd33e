/* deadlock.c - a program that cannot go on says so. */
#include "chapter.h"

#include <errno.h>

/* tour: begin */
static struct hd_semaphore fork_1 = HD_SEMAPHORE(1), fork_2 = HD_SEMAPHORE(1);
static struct hd_barrier both = HD_BARRIER(2);

static void dine(struct hd_semaphore *one, struct hd_semaphore *other)
{
	if (hd_semaphore_wait(one, HD_FOREVER) == 0 && hd_barrier_wait(&both, HD_FOREVER) >= 0 && /* each has a fork */
	    hd_semaphore_wait(other, HD_FOREVER) == 0)
		printf("  never printed\n");
}

static void *socrates(void *arg)
{
	dine(&fork_1, &fork_2);
	return arg;
}

static void *plato(void *arg)
{
	dine(&fork_2, &fork_1);
	return arg;
}

static void *table(void *arg)
{
	hd_pid one = hd_spawn_with(&(struct hd_spawn){ .name = "socrates" }, socrates, NULL);
	hd_pid other = hd_spawn_with(&(struct hd_spawn){ .name = "plato" }, plato, NULL);

	if (hd_join(one, NULL, HD_FOREVER) != 0 || hd_join(other, NULL, HD_FOREVER) != 0)
		hd_shutdown(1);
	return arg;
}

int chapter_deadlock(void)
{
	int result = hd_run(&(struct hd_config){ .workers = 2, .fixed = true }, table, NULL);
	printf("hd_run answered %s\n", result == -EDEADLK ? "-EDEADLK" : "something else");
	return result != -EDEADLK;
}
/* tour: end */
