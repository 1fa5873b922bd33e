/* hello.c - ten thousand processes in a row, each waiting for the one before it. */
#include <heddle.h>
#include <stdio.h>

enum { N = 10000 };

static struct {
	struct hd_semaphore turn;
	int count;
} place[N + 1];

static void *pass_it_on(void *arg)
{
	intptr_t i = (intptr_t)arg;

	if (hd_semaphore_wait(&place[i].turn, HD_FOREVER) == 0)
		place[i + 1].count = place[i].count + 1;
	hd_semaphore_signal(&place[i + 1].turn);
	return NULL;
}

static void *first(void *arg)
{
	for (intptr_t i = 0; i < N; i++)
		if (hd_spawn(pass_it_on, (void *)i) < 0)
			return arg; /* no memory */
	hd_yield();		    /* now they all wait */

	hd_semaphore_signal(&place[0].turn);
	if (hd_semaphore_wait(&place[N].turn, HD_FOREVER) == 0)
		printf("hello from %d processes\n", place[N].count);
	return arg;
}

int main(void)
{
	return hd_run(NULL, first, NULL);
}
