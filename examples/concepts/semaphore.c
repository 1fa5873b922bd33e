/* semaphore.c - four cars, two places: a semaphore counts what is free. */
#include <heddle.h>
#include <stdio.h>

static struct hd_semaphore places = HD_SEMAPHORE(2), all_gone;

static void *car(void *name)
{
	printf("%s comes\n", (const char *)name);
	if (hd_semaphore_wait(&places, HD_FOREVER) != 0)
		return NULL;
	printf("%s parks\n", (const char *)name);
	hd_yield(); /* the others have a turn */
	printf("%s leaves\n", (const char *)name);
	hd_semaphore_signal(&places); /* to the one that waits longest, or kept */
	hd_semaphore_signal(&all_gone);
	return NULL;
}

static void *first(void *arg)
{
	static const char *const names[] = { "red", "green", "blue", "white" };
	int cars = 0;

	for (int i = 0; i < 4; i++)
		cars += hd_detach(hd_spawn(car, (void *)names[i])) == 0;
	while (cars > 0 && hd_semaphore_wait(&all_gone, HD_FOREVER) == 0)
		cars--;
	printf("a place is free: %s\n", hd_semaphore_is_signaled(&places) ? "yes" : "no");
	return arg;
}

int main(void)
{
	return hd_run(NULL, first, NULL) != 0;
}
