/* circle.c - two processes wait for each other while a third goes on: the report comes when the circle closes. */
#include <errno.h>
#include <heddle.h>
#include <stdio.h>

static struct hd_mutex cup, pot;
static struct hd_barrier both = HD_BARRIER(2);

static void *take_both(void *arg)
{
	struct hd_mutex *one = arg, *other = one == &cup ? &pot : &cup;

	if (hd_mutex_lock(one, HD_FOREVER) == 0 && hd_barrier_wait(&both, HD_FOREVER) >= 0 && /* each has one */
	    hd_mutex_lock(other, HD_FOREVER) == 0)
		printf("never printed\n");
	return NULL;
}

static void *first(void *arg)
{
	hd_pid ann = hd_spawn_with(&(struct hd_spawn){ .name = "ann" }, take_both, &cup);
	hd_pid bob = hd_spawn_with(&(struct hd_spawn){ .name = "bob" }, take_both, &pot);

	if (ann > 0 && bob > 0 && hd_join(ann, NULL, hd_after(HD_MS(50))) == -ETIMEDOUT)
		printf("first can still run\n");
	hd_shutdown(0); /* terminates the two */
	return arg;
}

int main(void)
{
	/* One worker, so that the report has the two in this order. */
	const struct hd_config config = { .workers = 1, .fixed = true, .deadlock = HD_DEADLOCK_REPORT };

	return hd_run(&config, first, NULL) != 0;
}
