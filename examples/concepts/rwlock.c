/* rwlock.c - readers together, a writer alone, all in the order in which they came. */
#include <heddle.h>
#include <stdio.h>

static struct hd_rwlock lock; /* guards the price */
static int price = 10;

static void *reader(void *name)
{
	if (hd_rwlock_read(&lock, HD_FOREVER) != 0)
		return NULL;
	printf("%s reads %d\n", (const char *)name, price);
	hd_yield(); /* the other processes have a turn, and we have the lock */
	printf("%s is done\n", (const char *)name);
	hd_rwlock_unlock(&lock);
	return NULL;
}

static void *writer(void *arg)
{
	if (hd_rwlock_write(&lock, HD_FOREVER) != 0)
		return NULL;
	price++;
	printf("the writer writes %d\n", price);
	hd_rwlock_unlock(&lock);
	return arg;
}

static void *first(void *arg)
{
	struct hd_group all = { 0 };

	if (hd_group_spawn(&all, reader, (void *)"ann") < 0 || hd_group_spawn(&all, reader, (void *)"bob") < 0 || /* with ann */
	    hd_group_spawn(&all, writer, NULL) < 0 ||	      /* waits for both */
	    hd_group_spawn(&all, reader, (void *)"cleo") < 0) /* came after the writer: waits for it */
		hd_shutdown(1);
	if (hd_group_wait(&all, HD_FOREVER) != 0)
		hd_shutdown(1);
	return arg;
}

int main(void)
{
	/* One worker, so that they come in this order. */
	const struct hd_config config = { .workers = 1, .fixed = true };

	return hd_run(&config, first, NULL) != 0;
}
