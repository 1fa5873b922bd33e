/* yield.c - two processes take turns: the first program of the Pharo book on concurrency. */
#include "chapter.h"

/* tour: begin */
static void *count_to_ten(void *from)
{
	for (long i = 1; i <= 10; i++) {
		printf("%ld ", (long)(intptr_t)from + i);
		hd_yield();
	}
	return NULL;
}

static void *two_counters(void *arg)
{
	hd_pid one = hd_spawn(count_to_ten, (void *)0);
	hd_pid other = hd_spawn(count_to_ten, (void *)100);

	if (hd_join(one, NULL, HD_FOREVER) != 0 || hd_join(other, NULL, HD_FOREVER) != 0)
		hd_shutdown(1);
	return arg;
}

int chapter_yield(void)
{
	int result = hd_run(&(struct hd_config){ .workers = 1, .fixed = true }, two_counters, NULL);
	printf("\n");
	return result;
}
/* tour: end */
