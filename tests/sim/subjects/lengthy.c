/* lengthy.c WHERE N - a process counts to N with a yield at each number, beside one that does the same; then it ends.
 *
 * WHERE is where the count is kept, the only thing that changes from one round to the next: register, stack, static, heap, mapped (a
 * big piece from malloc), thread (a thread-local variable), main (a variable of main's), waiting (a variable of a process that
 * waits). clock: there is no count; it goes on until N microseconds have passed. abort: register, and it fails then. */
#include <heddle.h>
#include <stdlib.h>
#include <string.h>

static const char *where;
static long end, kept;
static _Thread_local long of_thread;
static struct hd_semaphore over;

static void count_in(volatile long *n)
{
	while (++*n < end)
		hd_yield();
}

static void *count(void *arg)
{
	volatile long here = 0;
	hd_time start = hd_now();

	if (strcmp(where, "register") == 0 || strcmp(where, "abort") == 0)
		for (long i = 0; i < end; i++)
			hd_yield();
	else if (strcmp(where, "clock") == 0)
		while (hd_now() < start + HD_US(end))
			hd_yield();
	else if (strcmp(where, "stack") == 0)
		count_in(&here);
	else
		count_in(arg);
	hd_semaphore_signal(&over);
	return NULL;
}

static void *wait_for_both(void *arg)
{
	volatile long here = 0;
	volatile long *n = strcmp(where, "waiting") == 0 ? &here : arg;
	hd_pid pids[] = { hd_spawn(count, (void *)n), hd_spawn(count, (void *)n) };

	for (int i = 0; i < 2; i++)
		if (hd_semaphore_wait(&over, HD_FOREVER) != 0)
			abort();
	for (int i = 0; i < 2; i++)
		if (hd_join(pids[i], NULL, HD_FOREVER) != 0)
			abort();
	if (strcmp(where, "abort") == 0)
		abort();
	return NULL;
}

int main(int argc, char **argv)
{
	volatile long mine = 0;
	long *n = &kept;

	if (argc < 3)
		return 2;
	where = argv[1];
	end = atol(argv[2]);
	if (strcmp(where, "heap") == 0)
		n = calloc(1, sizeof *n);
	else if (strcmp(where, "mapped") == 0)
		n = calloc(1 << 20, 1);
	else if (strcmp(where, "thread") == 0)
		n = &of_thread;
	else if (strcmp(where, "main") == 0)
		n = (long *)&mine;
	return n == NULL ? 2 : hd_run(NULL, wait_for_both, n);
}
