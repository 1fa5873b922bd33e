/* cancel.c - a request, which a process answers as it likes; and an end, before which it cleans up. */
#include <errno.h>
#include <heddle.h>
#include <stdio.h>

static struct hd_semaphore has_book;

static void *polite(void *arg)
{
	int err = hd_sleep(HD_SEC(3600)), again = hd_sleep(HD_SEC(3600));

	printf("polite: %s\n", err == -ECANCELED && again == -ECANCELED ? "-ECANCELED, twice" : "something else");
	hd_cancel_clear(); /* now it may wait again */
	printf("polite: tidies up: %d\n", hd_sleep(HD_MS(1)));
	return arg;
}

static void put_back(void *what)
{
	printf("stubborn: puts the %s back\n", (const char *)what);
}

static void *stubborn(void *arg)
{
	struct hd_cleanup cleanup;

	hd_cleanup_push(&cleanup, put_back, (void *)"book");
	hd_semaphore_signal(&has_book);
	hd_sleep(HD_SEC(3600));
	printf("stubborn: never comes here\n");
	hd_cleanup_pop(&cleanup, true);
	return arg;
}

static void *first(void *arg)
{
	hd_pid one = hd_spawn(polite, NULL), two = hd_spawn(stubborn, NULL);
	struct hd_end end;

	if (one < 0 || two < 0 || hd_semaphore_wait(&has_book, HD_FOREVER) != 0) {
		hd_shutdown(1);
		return arg;
	}
	hd_cancel(one);
	if (hd_join(one, NULL, HD_FOREVER) != 0 || hd_terminate(two, HD_FOREVER) != 0) /* returns when it is dead */
		hd_shutdown(1);
	if (hd_join_end(two, &end, HD_FOREVER) == 0)
		printf("stubborn: %s\n", end.kind == HD_END_KILLED ? "killed" : "something else");
	return arg;
}

int main(void)
{
	return hd_run(NULL, first, NULL) != 0;
}
