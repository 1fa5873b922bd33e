/* workers.c [N] - prints how many workers there are; N: it wants so many. */
#include <heddle.h>
#include <stdio.h>
#include <stdlib.h>

static void *first(void *arg)
{
	struct hd_stats stats;

	if (hd_stats(&stats) != 0)
		return NULL;
	printf("%d\n", (int)stats.workers);
	return arg;
}

int main(int argc, char **argv)
{
	return hd_run(&(struct hd_config){ .workers = argc > 1 ? (unsigned)atoi(argv[1]) : 0 }, first, NULL);
}
