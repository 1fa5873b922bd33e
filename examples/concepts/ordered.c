/* ordered.c - jobs that come in any order are done by their urgency: the least number first, and equals as they came. */
#include <errno.h>
#include <heddle.h>
#include <stddef.h>
#include <stdio.h>

struct job {
	const char *what;
	int64_t urgency; /* the key */
};

static void *worker(void *jobs)
{
	struct job job;
	int err;

	while ((err = hd_queue_next(jobs, &job, HD_FOREVER)) == 0)
		printf("%d: %s\n", (int)job.urgency, job.what);
	if (err != -EPIPE) /* closed and empty */
		hd_shutdown(1);
	return NULL;
}

static void *first(void *arg)
{
	static const struct job day[] = { { "sweep the floor", 3 },
					  { "put out the fire", 1 },
					  { "open the letters", 2 },
					  { "call the doctor", 1 },
					  { "water the plants", 3 } };
	hd_queue *jobs = hd_queue_new_ordered(sizeof(struct job), 10, offsetof(struct job, urgency));

	if (jobs == NULL)
		return arg;
	if (hd_queue_put_many(jobs, day, 5, HD_FOREVER) != 5)
		hd_shutdown(1);
	hd_queue_close(jobs);

	hd_pid pid = hd_spawn(worker, jobs);
	if (pid < 0 || hd_join(pid, NULL, HD_FOREVER) != 0)
		hd_shutdown(1);
	hd_queue_drop(jobs);
	return arg;
}

int main(void)
{
	return hd_run(NULL, first, NULL) != 0;
}
