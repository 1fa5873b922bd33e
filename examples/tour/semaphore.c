/* semaphore.c - waiting, with and without a deadline. */
#include "chapter.h"

#include <errno.h>

/* tour: begin */
static struct hd_semaphore coffee;

static void *barista(void *arg)
{
	hd_sleep(HD_MS(300));
	printf("  barista:  here you are\n");
	hd_semaphore_signal(&coffee);
	return arg;
}

static void *customer(void *arg)
{
	hd_pid pid = hd_spawn(barista, NULL);

	if (hd_semaphore_wait(&coffee, hd_after(HD_MS(100))) == -ETIMEDOUT)
		printf("  customer: not within 100 ms (-ETIMEDOUT); again\n");
	if (hd_semaphore_wait(&coffee, HD_FOREVER) == 0)
		printf("  customer: thank you\n");
	if (hd_join(pid, NULL, HD_FOREVER) != 0)
		hd_shutdown(1);
	return arg;
}

int chapter_semaphore(void)
{
	return hd_run(NULL, customer, NULL);
}
/* tour: end */
