/* threads.c - plain threads feed processes: a queue, and most other things, work between both.
 *
 * A plain thread that must wait sleeps in the kernel; a process that must wait leaves its worker to other processes. The threads
 * may begin before the runtime does, and end after it. */
#include "../check.h"

#include <errno.h>
#include <heddle.h>
#include <pthread.h>

enum { THREADS = 3, PROCESSES = 4, EACH = 50, PLACES = 4 };

static hd_queue *numbers;
static struct hd_waitgroup feeding = HD_WAITGROUP(THREADS);
static long sums[PROCESSES];

static void *feed(void *arg)
{
	for (int i = 1; i <= EACH; i++)
		CHECK(hd_queue_put(numbers, &i, HD_FOREVER) == 0);
	hd_waitgroup_done(&feeding);
	return arg;
}

static void *add(void *arg)
{
	long *sum = arg;
	int n, err;

	while ((err = hd_queue_next(numbers, &n, HD_FOREVER)) == 0)
		*sum += n;
	CHECK(err == -EPIPE);
	return NULL;
}

static void *first(void *arg)
{
	struct hd_group all = { 0 };

	for (int i = 0; i < PROCESSES; i++)
		CHECK(hd_group_spawn(&all, add, &sums[i]) > 0);
	CHECK(hd_waitgroup_wait(&feeding, HD_FOREVER) == 0);
	hd_queue_close(numbers);
	CHECK(hd_group_wait(&all, HD_FOREVER) == 0);
	return arg;
}

int main(void)
{
	pthread_t threads[THREADS];
	long sum = 0;

	CHECK((numbers = hd_queue_new(sizeof(int), PLACES)) != NULL);
	for (int i = 0; i < THREADS; i++)
		CHECK(pthread_create(&threads[i], NULL, feed, NULL) == 0);
	CHECK(hd_run(NULL, first, NULL) == 0);
	for (int i = 0; i < THREADS; i++)
		CHECK(pthread_join(threads[i], NULL) == 0);
	hd_queue_drop(numbers);
	for (int i = 0; i < PROCESSES; i++)
		sum += sums[i];
	printf("%d threads put %d numbers, %d processes took them; they add up to %ld\n", THREADS, THREADS * EACH, PROCESSES,
	       sum);
	return 0;
}
