/* order.c - one worker: which process runs next is known, and every run prints the same lines. */
#include <heddle.h>
#include <stdio.h>

static void *count_to_two(void *name)
{
	for (int i = 1; i <= 2; i++) {
		printf("%s: %d\n", (const char *)name, i);
		hd_yield(); /* the caller goes behind its equals */
	}
	return NULL;
}

static void *first(void *arg)
{
	hd_pid ann = hd_spawn(count_to_two, (void *)"ann, priority 40");
	hd_pid bob = hd_spawn(count_to_two, (void *)"bob, priority 40");
	hd_pid eve = hd_spawn_at(60, count_to_two, (void *)"eve, priority 60"); /* eve runs at once */

	if (hd_join(eve, NULL, HD_FOREVER) != 0 || hd_join(ann, NULL, HD_FOREVER) != 0 || hd_join(bob, NULL, HD_FOREVER) != 0)
		hd_shutdown(1); /* one of them could not be spawned */
	return arg;
}

int main(void)
{
	const struct hd_config one_worker = { .workers = 1, .fixed = true };

	return hd_run(&one_worker, first, NULL) != 0;
}
