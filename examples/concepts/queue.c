/* queue.c - a producer, a consumer, two places between them, and an end. */
#include <errno.h>
#include <heddle.h>
#include <stdio.h>

static void *producer(void *arg)
{
	hd_queue *numbers = arg;

	for (int i = 1; i <= 5; i++)
		if (hd_queue_put(numbers, &i, HD_FOREVER) != 0) /* waits while two are in it */
			break;					/* closed, or cancelled: no process will take it */
	hd_queue_close(numbers);				/* no more: the consumer may stop when it is empty */
	return NULL;
}

static void *first(void *arg)
{
	hd_queue *numbers = hd_queue_new(sizeof(int), 2);
	int n, err;

	if (numbers == NULL)
		return arg;
	hd_pid pid = hd_spawn(producer, numbers);
	if (pid < 0)
		hd_queue_close(numbers);
	while ((err = hd_queue_next(numbers, &n, HD_FOREVER)) == 0)
		printf("got %d\n", n);
	printf("the end: %s\n", err == -EPIPE ? "closed and empty" : "something else");
	if (hd_join(pid, NULL, HD_FOREVER) != 0) /* it must not use the queue any more */
		hd_shutdown(1);
	hd_queue_drop(numbers);
	return arg;
}

int main(void)
{
	return hd_run(NULL, first, NULL) != 0;
}
