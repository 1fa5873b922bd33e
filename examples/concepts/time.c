/* time.c - deadlines are points in time, so several calls can share one. */
#include <errno.h>
#include <heddle.h>
#include <stdio.h>

static struct hd_semaphore letters = HD_SEMAPHORE(2);

static void *first(void *arg)
{
	hd_time tick = hd_now();
	int got = 0, err;

	for (int i = 1; i <= 3; i++)
		if (hd_sleep_until(tick += HD_MS(5)) == 0) /* late now and then, but that does not add up */
			printf("tick %d is %s\n", i, hd_now() < tick ? "early" : "not early");

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
