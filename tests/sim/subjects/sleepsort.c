/* sleepsort.c - sorts its arguments by sleeping: a process for each number, which wakes after so many milliseconds. */
#include <heddle.h>
#include <stdio.h>
#include <stdlib.h>

static const char *default_numbers[] = { "30", "10", "40", "10", "50", "90", "20", "60", "50", "30" };
static const char **numbers = default_numbers;
static int count = sizeof default_numbers / sizeof default_numbers[0];

static void *wake_up(void *arg)
{
	const char *number = arg;

	hd_sleep(HD_MS(atoi(number)));
	printf("%s ", number);
	return NULL;
}

static void *first(void *arg)
{
	for (int i = 0; i < count; i++)
		if (hd_spawn(wake_up, (void *)numbers[i]) < 0)
			hd_shutdown(1);
	return arg;
}

int main(int argc, char **argv)
{
	if (argc > 1) {
		numbers = (const char **)argv + 1;
		count = argc - 1;
	}
	int status = hd_run(NULL, first, NULL);
	printf("\n");
	return status;
}
