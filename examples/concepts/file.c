/* file.c - processes that write their records of one file at the same time; and a lock that is waited for. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <heddle.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <unistd.h>

enum { RECORDS = 8 };

static char path[] = "/tmp/heddle-squares-XXXXXX";
static int file;

static void *write_square(void *arg)
{
	long i = (long)arg, square = i * i;

	if (hd_pwrite(file, &square, sizeof square, (off_t)(i * (long)sizeof square), HD_FOREVER) != sizeof square)
		hd_shutdown(1);
	return NULL;
}

static void write_all(void)
{
	hd_pid pids[RECORDS];

	for (long i = 0; i < RECORDS; i++)
		if ((pids[i] = hd_spawn(write_square, (void *)i)) < 0)
			hd_shutdown(1);
	for (int i = 0; i < RECORDS; i++)
		if (hd_join(pids[i], NULL, HD_FOREVER) != 0)
			hd_shutdown(1);
}

static void *first(void *arg)
{
	long squares[RECORDS];
	int again = hd_open(path, O_RDONLY, 0, HD_FOREVER); /* another open file: locks tell them apart */

	if (again < 0 || hd_flock(file, LOCK_EX, HD_FOREVER) != 0)
		hd_shutdown(1);
	write_all();
	int err = hd_flock(again, LOCK_SH, hd_after(HD_MS(1)));
	printf("while it is written: %s\n", hd_error(err));
	if (hd_fsync(file, HD_FOREVER) != 0 || hd_flock(file, LOCK_UN, HD_FOREVER) != 0)
		hd_shutdown(1);
	if (hd_flock(again, LOCK_SH, HD_FOREVER) != 0 || hd_read(again, squares, sizeof squares, HD_FOREVER) != sizeof squares)
		hd_shutdown(1);
	for (int i = 0; i < RECORDS; i++)
		printf("%ld%c", squares[i], i < RECORDS - 1 ? ' ' : '\n');
	hd_close(again);
	return arg;
}

int main(void)
{
	file = mkstemp(path);
	if (file < 0)
		return 1;
	int err = hd_run(NULL, first, NULL);
	close(file);
	unlink(path);
	return err != 0;
}
