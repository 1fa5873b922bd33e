/* select.c - a server that waits for the word to stop, for work, and for the time of its report. */
#include <heddle.h>
#include <stdio.h>

static struct hd_semaphore stop;
static struct hd_waitgroup to_do = HD_WAITGROUP(3); /* two jobs and a report */
static hd_queue *work;

static void *server(void *arg)
{
	enum { STOP, JOB, REPORT };
	int job, happened, jobs = 0, reports = 0;
	struct hd_case cases[] = { hd_case_semaphore(&stop), hd_case_next(work, &job), hd_case_time(hd_after(HD_MS(5))) };

	while ((happened = hd_select(cases, 3, HD_FOREVER)) > STOP && cases[happened].err == 0) {
		if (happened == JOB) {
			jobs++;
		} else {
			reports++;
			cases[REPORT].kind = HD_CASE_NOTHING; /* one report is enough */
		}
		hd_waitgroup_done(&to_do);
	}
	printf("stopped after %d jobs and %d report\n", jobs, reports);
	return arg;
}

static void *first(void *arg)
{
	hd_pid pid = -1;
	int err = 0;

	if ((work = hd_queue_new(sizeof(int), 0)) == NULL || (pid = hd_spawn(server, NULL)) < 0) {
		hd_shutdown(1);
		return arg;
	}
	for (int job = 1; job <= 2 && err == 0; job++)
		err = hd_queue_put(work, &job, HD_FOREVER);
	if (err == 0)
		err = hd_waitgroup_wait(&to_do, HD_FOREVER);
	hd_semaphore_signal(&stop);
	if (hd_join(pid, NULL, HD_FOREVER) != 0 || err != 0)
		hd_shutdown(1);
	hd_queue_drop(work);
	return arg;
}

int main(void)
{
	return hd_run(NULL, first, NULL) != 0;
}
