/* locks.c - two mutexes that are taken in two orders, through a function of the program's own. */
#include <heddle.h>
#include <stdlib.h>

static struct hd_mutex left, right;

static void __attribute__((noinline)) take(struct hd_mutex *m)
{
	int err = hd_mutex_lock(m, HD_FOREVER); /* inner */

	if (err != 0)
		abort();
}

static void *left_first(void *arg)
{
	take(&left);
	take(&right); /* outer */
	hd_mutex_unlock(&right);
	hd_mutex_unlock(&left);
	return arg;
}

static void *right_first(void *arg)
{
	take(&right);
	take(&left); /* outer */
	hd_mutex_unlock(&left);
	hd_mutex_unlock(&right);
	return arg;
}

static void *first(void *arg)
{
	hd_pid a = hd_spawn_with(&(struct hd_spawn){ .name = "lefty" }, left_first, NULL);
	hd_pid b = hd_spawn_with(&(struct hd_spawn){ .name = "righty" }, right_first, NULL);

	return hd_join(a, NULL, HD_FOREVER) == 0 && hd_join(b, NULL, HD_FOREVER) == 0 ? arg : NULL;
}

int main(void)
{
	return hd_run(NULL, first, NULL) == 0 ? 0 : 1;
}
