/* priority.c - which process runs next: one worker, three priorities. */
#include <heddle.h>
#include <stdio.h>

static struct hd_semaphore bell;

static void *guard(void *arg)
{
	if (hd_semaphore_wait(&bell, HD_FOREVER) == 0)
		printf("60 guard: at once\n");
	return arg;
}

static void *clerk(void *name)
{
	printf("40 %s: begins\n", (const char *)name);
	hd_yield(); /* behind the other one; never to the cleaner */
	printf("40 %s: ends\n", (const char *)name);
	return NULL;
}

static void *cleaner(void *arg)
{
	printf("20 cleaner: when all others have ended, or wait\n");
	return arg;
}

static void *first(void *arg)
{
	hd_detach(hd_spawn_at(HD_PRIORITY_SYSTEM_BACKGROUND, cleaner, NULL));
	hd_detach(hd_spawn(clerk, (void *)"ann"));
	hd_detach(hd_spawn(clerk, (void *)"bob"));
	hd_detach(hd_spawn_at(HD_PRIORITY_LOW_IO, guard, NULL)); /* runs at once, and waits; we go behind ann and bob */

	printf("40 first: rings\n");
	hd_semaphore_signal(&bell); /* the guard runs at once, and we go behind again */
	printf("40 first: ends\n");
	return arg;
}

int main(void)
{
	/* One worker. With two, two of these processes run at a time, and the lines come in another order. */
	const struct hd_config config = { .workers = 1, .fixed = true };

	return hd_run(&config, first, NULL) != 0;
}
