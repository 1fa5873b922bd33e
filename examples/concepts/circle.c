/* circle.c - two wait for each other while a third goes on: the report says so when the circle closes. */
#include <heddle.h>
#include <stdio.h>

static struct hd_mutex cup, pot;

static void *take_both(void *arg)
{
	struct hd_mutex *one = arg, *other = one == &cup ? &pot : &cup;

	if (hd_mutex_lock(one, HD_FOREVER) != 0)
		return NULL;
	hd_yield(); /* the other process takes the other one */
	if (hd_mutex_lock(other, HD_FOREVER) == 0)
		printf("never printed\n");
	return NULL;
}

static void *first(void *arg)
{
	if (hd_spawn_with(&(struct hd_spawn){ .name = "ann" }, take_both, &cup) < 0 ||
	    hd_spawn_with(&(struct hd_spawn){ .name = "bob" }, take_both, &pot) < 0)
		printf("no memory\n");
	hd_sleep(HD_MS(50)); /* the circle closes meanwhile */
	printf("first can still run\n");
	hd_shutdown(0); /* terminates the two */
	return arg;
}

int main(void)
{
	return hd_run(&(struct hd_config){ .deadlock = HD_DEADLOCK_REPORT }, first, NULL) != 0;
}
