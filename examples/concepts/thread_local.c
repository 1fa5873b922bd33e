/* thread_local.c - what belongs to a process, and what to the kernel thread that runs it. */
#include <errno.h>
#include <heddle.h>
#include <stdio.h>

enum { PROCESSES = 8, TURNS = 100 };

static struct hd_local mine; /* a value for each process */

/* A library of the usual kind: its last error is a variable of the kernel thread. */
static _Thread_local int last_error;

static void library_call(int error)
{
	last_error = error;
}

static int library_error(void)
{
	return last_error;
}

/* May be on another kernel thread after each yield: errno and the local come along. */
static void *move_about(void *me)
{
	intptr_t right = 0;

	if (hd_local_set(&mine, me) != 0)
		return NULL;
	for (int i = 0; i < TURNS; i++) {
		errno = (int)(intptr_t)me;
		hd_yield();
		if (errno == (int)(intptr_t)me && hd_local_get(&mine) == me)
			right++;
	}
	return (void *)right;
}

static int worker(void)
{
	struct hd_process_info info;

	return hd_process_info(hd_self(), &info) == 0 ? info.worker : -1;
}

/* Stays on its kernel thread from hd_pin to hd_unpin. Other processes run there while it waits: so it asks for the error first. */
static void *stay(void *me)
{
	intptr_t right = 0;

	if (hd_pin() != 0)
		return NULL;
	int home = worker();
	for (int i = 0; i < TURNS; i++) {
		library_call((int)(intptr_t)me);
		int error = library_error();
		hd_yield(); /* from here on last_error may be another process's */
		if (error == (int)(intptr_t)me && worker() == home)
			right++;
	}
	hd_unpin();
	return (void *)right;
}

static int all(hd_entry entry)
{
	hd_pid pids[PROCESSES];
	int sum = 0;

	for (intptr_t i = 0; i < PROCESSES; i++)
		pids[i] = hd_spawn(entry, (void *)(i + 1));
	for (int i = 0; i < PROCESSES; i++) {
		void *right = NULL;
		if (hd_join(pids[i], &right, HD_FOREVER) == 0)
			sum += (int)(intptr_t)right;
	}
	return sum;
}

static void *first(void *arg)
{
	printf("errno and a local: right %d times of %d\n", all(move_about), PROCESSES * TURNS);
	printf("pinned: right %d times of %d\n", all(stay), PROCESSES * TURNS);
	return arg;
}

int main(void)
{
	return hd_run(NULL, first, NULL) != 0;
}
