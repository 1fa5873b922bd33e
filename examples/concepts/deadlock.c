/* deadlock.c - a program that cannot go on says so. */
#include <errno.h>
#include <heddle.h>
#include <stdio.h>

static struct hd_semaphore letter;

static void *reader(void *arg)
{
	return hd_semaphore_wait(&letter, HD_FOREVER) == 0 ? arg : NULL; /* no process signals it */
}

static void *first(void *arg)
{
	hd_pid pid = hd_spawn_with(&(struct hd_spawn){ .name = "reader" }, reader, NULL);

	if (hd_join(pid, NULL, HD_FOREVER) != 0) /* does not return: hd_run terminates it */
		hd_shutdown(1);
	return arg;
}

int main(void)
{
	int err = hd_run(NULL, first, NULL);

	printf("hd_run answers %s\n", err == -EDEADLK ? "-EDEADLK" : "something else");
	return err != -EDEADLK;
}
