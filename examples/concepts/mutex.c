/* mutex.c - an owner, recursion, and inheritance: a waiter lends its priority to the owner. */
#include <errno.h>
#include <heddle.h>
#include <stdio.h>

static struct hd_mutex lock = HD_MUTEX(HD_INHERIT);

static void say_locked(void *text)
{
	if (hd_mutex_lock(&lock, HD_FOREVER) != 0) /* again: it is ours already */
		return;
	printf("%s\n", (const char *)text);
	hd_mutex_unlock(&lock);
}

static void *high(void *arg)
{
	return hd_mutex_critical(&lock, say_locked, (void *)"60 has the lock", HD_FOREVER) == 0 ? arg : NULL;
}

static void *middle(void *arg)
{
	printf("50 runs, and needs no lock\n");
	return arg;
}

static void *low(void *arg)
{
	if (hd_mutex_lock(&lock, HD_FOREVER) != 0)
		return NULL;
	hd_pid sixty = hd_spawn_at(60, high, NULL);   /* runs at once, and waits for the lock: we are 60 now */
	hd_pid fifty = hd_spawn_at(50, middle, NULL); /* does not run: 50 is less than 60 */
	say_locked((void *)"40 has the lock");
	hd_mutex_unlock(&lock); /* it is high's, and we are 40 again */
	printf("40 unlocks again: %s\n", hd_mutex_unlock(&lock) == -EPERM ? "-EPERM" : "something else");
	if (hd_join(sixty, NULL, HD_FOREVER) != 0 || hd_join(fifty, NULL, HD_FOREVER) != 0)
		hd_shutdown(1);
	return arg;
}

int main(void)
{
	/* One worker: with two, the process of priority 50 would run on the other one. */
	const struct hd_config config = { .workers = 1, .fixed = true };

	return hd_run(&config, low, NULL) != 0; /* the first process has priority 40 */
}
