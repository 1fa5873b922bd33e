/* select.c - a server that waits for the word to stop, for work, and for the time of its report. */
#include <heddle.h>
#include <stdio.h>

static struct hd_semaphore stop;
static hd_queue *work;
static hd_time report;

static void *server(void *arg)
{
	enum { STOP, JOB, REPORT };
	int job, happened;
	struct hd_case cases[] = { hd_case_semaphore(&stop), hd_case_next(work, &job), hd_case_time(report) };

	while ((happened = hd_select_first(cases, 3, HD_FOREVER)) > STOP && cases[happened].err == 0)
		if (happened == JOB) {
			printf("job %d\n", job);
		} else {
			printf("time for the report\n");
			cases[REPORT].kind = HD_CASE_NOTHING; /* once is enough */
		}
	printf("stopped, and %d job is left\n", (int)hd_queue_length(work));
	return arg;
}

static void *first(void *arg)
{
	hd_pid pid;
	int err = 0;

	report = hd_after(HD_MS(20));
	if ((work = hd_queue_new(sizeof(int), 0)) == NULL || (pid = hd_spawn(server, NULL)) < 0)
		return arg;
	for (int job = 1; err == 0 && job <= 2; job++)
		err = hd_queue_put(work, &job, HD_FOREVER);
	hd_sleep_until(report + HD_MS(20));
	hd_semaphore_signal(&stop); /* this ends the server's wait, */
	if (err == 0)
		err = hd_queue_put(work, &(int){ 3 }, HD_FOREVER); /* so this one is not taken */
	if (err != 0)
		printf("not all jobs were put\n");
	if (hd_join(pid, NULL, HD_FOREVER) == 0)
		hd_queue_drop(work);
	return arg;
}

int main(void)
{
	return hd_run(NULL, first, NULL) != 0;
}
