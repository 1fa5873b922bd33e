/* rwlock.c - readers together, a writer alone, all in the order they came. */
#include <heddle.h>
#include <stdio.h>

static struct hd_rwlock lock; /* guards the price */
static int price = 10;

static void *reader(void *name)
{
	if (hd_rwlock_read(&lock, HD_FOREVER) != 0)
		return NULL;
	printf("%s reads %d\n", (const char *)name, price);
	hd_yield(); /* others have a turn, and we have the lock */
	printf("%s is done\n", (const char *)name);
	hd_rwlock_unlock(&lock);
	return NULL;
}

static void *writer(void *arg)
{
	if (hd_rwlock_write(&lock, HD_FOREVER) != 0)
		return arg;
	price++;
	printf("the writer writes %d\n", price);
	hd_rwlock_unlock(&lock);
	return arg;
}

static void *first(void *arg)
{
	hd_detach(hd_spawn(reader, (void *)"ann"));
	hd_detach(hd_spawn(reader, (void *)"bob"));  /* together with ann */
	hd_detach(hd_spawn(writer, NULL));	     /* waits for both */
	hd_detach(hd_spawn(reader, (void *)"cleo")); /* came after the writer: waits for it */
	return arg;
}

int main(void)
{
	return hd_run(NULL, first, NULL) != 0;
}
