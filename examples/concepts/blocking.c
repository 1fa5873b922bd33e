/* blocking.c - a function that blocks its kernel thread, while other processes go on. */
#include <heddle.h>
#include <stdio.h>

struct order {
	int cups;
	int brewed;
};

static struct hd_semaphore water;

static void brew(void *arg)
{
	struct order *order = arg;

	/* It blocks the kernel thread that it is on, as a device would, or a library that knows nothing of heddle. */
	if (hd_semaphore_wait(&water, HD_FOREVER) == 0)
		order->brewed = order->cups;
}

static void *barista(void *arg)
{
	struct order order = { .cups = 2 }; /* on the stack of the process, which waits */

	if (hd_blocking(brew, &order) == 0)
		printf("%d cups of coffee\n", order.brewed);
	return arg;
}

static void *first(void *arg)
{
	hd_pid pid = hd_spawn(barista, NULL);

	if (pid < 0)
		return arg;
	hd_yield();
	printf("the floor is swept meanwhile\n"); /* on one worker, too */
	hd_semaphore_signal(&water);
	return hd_join(pid, NULL, HD_FOREVER) == 0 ? arg : NULL;
}

int main(void)
{
	return hd_run(NULL, first, NULL) != 0;
}
