/* pool.c - a worker pool: four processes take jobs from one queue, until it is closed and empty.
 *
 * The queue has few places, so that a producer that is faster than the pool waits. Each job has its own slot for the result: two
 * processes never write to the same one, and the wait for the group comes before the slots are read. */
#include "../check.h"

#include <errno.h>
#include <heddle.h>

enum { WORKERS = 4, JOBS = 40, PLACES = 8 };

static int results[JOBS];

static void *work(void *arg)
{
	hd_queue *jobs = arg;
	int job, err;

	while ((err = hd_queue_next(jobs, &job, HD_FOREVER)) == 0)
		results[job] = job * job;
	CHECK(err == -EPIPE);
	return NULL;
}

static void *first(void *arg)
{
	hd_queue *jobs = hd_queue_new(sizeof(int), PLACES);
	struct hd_group pool = { 0 };
	int sum = 0;

	CHECK(jobs != NULL);
	for (int i = 0; i < WORKERS; i++)
		CHECK(hd_group_spawn(&pool, work, jobs) > 0);
	for (int job = 0; job < JOBS; job++)
		CHECK(hd_queue_put(jobs, &job, HD_FOREVER) == 0);
	hd_queue_close(jobs);
	CHECK(hd_group_wait(&pool, HD_FOREVER) == 0);
	hd_queue_drop(jobs);
	for (int job = 0; job < JOBS; job++)
		sum += results[job];
	printf("%d processes did %d jobs; the results add up to %d\n", WORKERS, JOBS, sum);
	return arg;
}

int main(void)
{
	return hd_run(NULL, first, NULL) != 0;
}
