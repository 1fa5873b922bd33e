/* repeat.c - some of everything that a schedule decides: equals, priorities, semaphores, deadlines, suspensions, ends. */
#include <errno.h>
#include <heddle.h>
#include <stdio.h>
#include <stdlib.h>

static struct hd_semaphore items, room = HD_SEMAPHORE(1);

static void *bring(void *arg)
{
	for (int i = 0; i < 3; i++) {
		if (hd_semaphore_wait(&room, HD_FOREVER) != 0)
			abort();
		hd_semaphore_signal(&items);
	}
	return arg;
}

static void *fetch(void *arg)
{
	for (int i = 0; i < 3; i++) {
		while (hd_semaphore_wait(&items, hd_after(HD_US(2))) != 0)
			hd_yield();
		hd_semaphore_signal(&room);
	}
	return arg;
}

static void *interrupt(void *arg)
{
	hd_pid *whom = arg;

	hd_sleep(HD_US(5));
	int err = hd_suspend(*whom, HD_FOREVER);
	if (err != 0 && err != -ESRCH)
		abort();
	hd_checkpoint();
	hd_resume(*whom);
	return NULL;
}

static void *first(void *arg)
{
	hd_pid a = hd_spawn(bring, NULL), b = hd_spawn(fetch, NULL), c = hd_spawn_at(50, interrupt, &a);

	if (hd_join(a, NULL, HD_FOREVER) != 0)
		abort();
	if (hd_join(b, NULL, HD_FOREVER) != 0)
		abort();
	if (hd_join(c, NULL, HD_FOREVER) != 0)
		abort();
	return arg;
}

int main(void)
{
	return hd_run(NULL, first, NULL);
}
