/* process.c - spawn, join, and how a process has ended. */
#include <errno.h>
#include <heddle.h>
#include <stdio.h>
#include <string.h>

static void *square(void *arg)
{
	intptr_t n = (intptr_t)arg;

	return (void *)(n * n);
}

static void *read_disk(void *arg)
{
	hd_fail(EIO); /* does not return */
	return arg;
}

static void *first(void *arg)
{
	hd_pid three = hd_spawn(square, (void *)3), four = hd_spawn(square, (void *)4), reader = hd_spawn(read_disk, NULL);
	struct hd_end end;
	void *nine, *sixteen;

	/* The three run now: on this worker when this process waits, or on other workers. A spawn that failed fails its join. */
	if (hd_join(three, &nine, HD_FOREVER) == 0 && hd_join(four, &sixteen, HD_FOREVER) == 0)
		printf("%d + %d\n", (int)(intptr_t)nine, (int)(intptr_t)sixteen);
	if (hd_join_end(reader, &end, HD_FOREVER) == 0 && end.kind == HD_END_FAILED)
		printf("the reader failed: %s\n", strerror(-end.err));
	printf("join it again: %s\n", strerror(-hd_join(reader, NULL, HD_FOREVER)));
	return arg;
}

int main(void)
{
	return hd_run(NULL, first, NULL) != 0;
}
