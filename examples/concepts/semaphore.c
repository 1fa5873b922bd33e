/* semaphore.c - four cars, two places: a semaphore counts what is free. */
#include <heddle.h>
#include <stdio.h>

static struct hd_semaphore places = HD_SEMAPHORE(2);

static void *car(void *name)
{
	printf("%s comes\n", (const char *)name);
	if (hd_semaphore_wait(&places, HD_FOREVER) != 0)
		return NULL;
	printf("%s parks\n", (const char *)name);
	hd_yield(); /* the other cars have a turn */
	printf("%s leaves\n", (const char *)name);
	hd_semaphore_signal(&places); /* to the car that has waited longest, or kept */
	return NULL;
}

static void *first(void *arg)
{
	static const char *const names[] = { "red", "green", "blue", "white" };
	struct hd_group cars = { 0 };

	for (int i = 0; i < 4; i++)
		if (hd_group_spawn(&cars, car, (void *)names[i]) < 0)
			hd_shutdown(1);
	if (hd_group_wait(&cars, HD_FOREVER) != 0)
		hd_shutdown(1);
	printf("a place is free: %s\n", hd_semaphore_is_signaled(&places) ? "yes" : "no");
	return arg;
}

int main(void)
{
	/* One worker, so that the cars come in this order. On any number of workers, two park at a time. */
	const struct hd_config config = { .workers = 1, .fixed = true };

	return hd_run(&config, first, NULL) != 0;
}
