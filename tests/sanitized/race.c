/* sanitized/race.c - a race that TSan must report: two processes count with a plain variable, on two workers. */
#include <heddle.h>
#include <stdio.h>

static int count;

static void *increment(void *arg)
{
	for (int i = 0; i < 10; i++) {
		count++;
		hd_yield(); /* which orders nothing */
	}
	return arg;
}

static void *first(void *arg)
{
	hd_pid a = hd_spawn(increment, NULL), b = hd_spawn(increment, NULL);

	if (hd_join(a, NULL, HD_FOREVER) != 0 || hd_join(b, NULL, HD_FOREVER) != 0)
		return NULL;
	return arg;
}

int main(void)
{
	int code = hd_run(&(struct hd_config){ .workers = 2, .fixed = true }, first, NULL);

	printf("%d of 20\n", count);
	return code;
}
