/* jobs.c - jobs by priority: a process that is free takes the most urgent job, and does it at the job's priority.
 *
 * The jobs wait in a table under a mutex, so the order in which they are taken is known on any number of workers: by priority, and
 * in the order of their numbers within one. How long each of them takes, and so which one is done first, is another matter. */
#include "../check.h"

#include <heddle.h>
#include <string.h>

enum { JOBS = 9, TAKERS = 3 };

static struct hd_mutex lock; /* guards what follows */
static struct job {
	int priority;
	bool taken, done;
} jobs[JOBS];
static char order[256];
static int takes, last = 80; /* how many were taken, and the priority of the last one */

/* The most urgent job that is left, or NULL. */
static struct job *take(void)
{
	struct job *best = NULL;
	char word[32];

	CHECK(hd_mutex_lock(&lock, HD_FOREVER) == 0);
	for (int i = 0; i < JOBS; i++)
		if (!jobs[i].taken && (best == NULL || jobs[i].priority > best->priority))
			best = &jobs[i];
	if (best != NULL) {
		best->taken = true;
		takes++;
		CHECK(best->priority <= last);
		last = best->priority;
		snprintf(word, sizeof word, " %d(%d)", (int)(best - jobs), best->priority);
		strcat(order, word);
	}
	hd_mutex_unlock(&lock);
	return best;
}

static void *work(void *arg)
{
	int mine = hd_priority(hd_self());
	struct job *job;

	while ((job = take()) != NULL) {
		CHECK(hd_set_priority(hd_self(), job->priority) == 0);
		job->done = true;
		CHECK(hd_set_priority(hd_self(), mine) == 0);
	}
	return arg;
}

static void *first(void *arg)
{
	static const int priorities[JOBS] = { 40, 20, 70, 40, 20, 70, 40, 60, 20 };
	struct hd_group takers = { 0 };

	for (int i = 0; i < JOBS; i++)
		jobs[i].priority = priorities[i];
	for (int i = 0; i < TAKERS; i++)
		CHECK(hd_group_spawn(&takers, work, NULL) > 0);
	CHECK(hd_group_wait(&takers, HD_FOREVER) == 0);
	CHECK(takes == JOBS);
	for (int i = 0; i < JOBS; i++)
		CHECK(jobs[i].done);
	printf("taken, number and priority:%s\n", order);
	return arg;
}

int main(void)
{
	return hd_run(NULL, first, NULL) != 0;
}
