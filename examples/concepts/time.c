/* time.c - deadlines are points in time, so several calls can share one. */
#include <errno.h>
#include <heddle.h>
#include <stdio.h>

static struct hd_semaphore letters = HD_SEMAPHORE(2), awake;
static hd_time start;

static void *sleeper(void *arg)
{
	int ms = (int)(intptr_t)arg;

	hd_sleep_until(start + HD_MS(ms));
	printf("%d ms\n", ms);
	hd_semaphore_signal(&awake);
	return NULL;
}

static void *first(void *arg)
{
	int got = 0, err, sleepers = 0;

	start = hd_now();
	for (intptr_t ms = 30; ms > 0; ms -= 10)
		sleepers += hd_detach(hd_spawn(sleeper, (void *)ms)) == 0;
	while (sleepers > 0 && hd_semaphore_wait(&awake, HD_FOREVER) == 0)
		sleepers--;

	hd_time until = hd_after(HD_MS(20)); /* for the whole loop */
	while ((err = hd_semaphore_wait(&letters, until)) == 0)
		got++;
	printf("%d letters, then %s\n", got, err == -ETIMEDOUT ? "-ETIMEDOUT" : "something else");

	hd_semaphore_signal(&letters);
	printf("too late, but there is one: %d\n", hd_semaphore_wait(&letters, until));
	printf("a try: %s\n", hd_semaphore_try_wait(&letters) == -EAGAIN ? "-EAGAIN" : "something else");
	return arg;
}

int main(void)
{
	return hd_run(NULL, first, NULL) != 0;
}
