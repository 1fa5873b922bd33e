/* once.c - the first process that comes loads the table; those that come meanwhile wait for it. */
#include <heddle.h>
#include <stdio.h>

static struct hd_once loaded;
static int table[10];

static void load(void *arg)
{
	(void)arg;
	printf("one process loads the table\n");
	for (int i = 0; i < 10; i++) {
		table[i] = i * i;
		hd_yield(); /* loading takes a while: the other processes come, and wait */
	}
}

static void *user(void *arg)
{
	if (hd_once(&loaded, load, NULL, HD_FOREVER) == 0)
		printf("each process finds %d\n", table[9]);
	return arg;
}

static void *first(void *arg)
{
	struct hd_group users = { 0 };

	for (int i = 0; i < 3; i++)
		if (hd_group_spawn(&users, user, NULL) < 0)
			hd_shutdown(1);
	if (hd_group_wait(&users, HD_FOREVER) != 0)
		hd_shutdown(1);
	return arg;
}

int main(void)
{
	return hd_run(NULL, first, NULL) != 0;
}
