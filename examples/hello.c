/* hello.c - a row of a thousand processes: each waits for the process before it, adds 1, and wakes the next one. */
#include <heddle.h>
#include <stdio.h>

enum { N = 1000 };

static struct place {
	struct hd_semaphore turn;
	int count;
} place[N + 1];

static void *add_one(void *arg)
{
	struct place *here = arg;

	if (hd_semaphore_wait(&here->turn, HD_FOREVER) != 0)
		return NULL; /* cancelled: the row is not complete */
	here[1].count = here->count + 1;
	hd_semaphore_signal(&here[1].turn);
	return NULL;
}

static void *first(void *arg)
{
	struct hd_group row = { 0 };
	hd_pid pid = 0;

	for (int i = 0; i < N && pid >= 0; i++)
		pid = hd_group_spawn(&row, add_one, &place[i]);
	if (pid < 0)
		hd_group_cancel(&row);
	hd_semaphore_signal(&place[0].turn);
	int err = hd_group_wait(&row, HD_FOREVER); /* every process of the row has ended */

	if (pid < 0 || err < 0) {
		fprintf(stderr, "hello: %s\n", hd_error(pid < 0 ? (int)pid : err));
		hd_shutdown(1);
		return arg;
	}
	printf("hello from %d processes\n", place[N].count);
	return arg;
}

int main(void)
{
	int err = hd_run(NULL, first, NULL);

	if (err < 0)
		fprintf(stderr, "hello: %s\n", hd_error(err));
	return err != 0;
}
