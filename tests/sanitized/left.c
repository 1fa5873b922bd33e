/* sanitized/left.c - stacks that are left for good, with red zones on them: ASan must not take what is there next for an overflow.
 *
 * With an argument: a real overflow in a process, which ASan must report. */
#include <heddle.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(cond) ((cond) ? (void)0 : abort())

static struct hd_semaphore never;

/* Frames with red zones, so deep that other functions' frames come to lie on them. */
__attribute__((noinline)) static void dive(int depth, bool waits, char *above)
{
	char room[100];

	memset(room, depth, sizeof room);
	above[0] = room[depth];
	if (depth > 0)
		dive(depth - 1, waits, room);
	else if (waits)
		hd_semaphore_wait(&never, HD_FOREVER);
	else
		hd_exit(NULL);
	above[1] = room[2];
}

static void *leave(void *waits)
{
	char room[8] = { 0 };

	dive(20, waits != NULL, room);
	return room[0] + (char *)waits;
}

__attribute__((noinline)) static int use(char *room, size_t size, int depth)
{
	char more[3000];

	memset(room, depth, size);
	memset(more, depth, sizeof more);
	return depth == 0 ? more[7] : use(more, sizeof more, depth - 1) + more[9];
}

static void *use_stack(void *arg)
{
	char room[500];

	return (void *)(intptr_t)(use(room, sizeof room, 8) == (int)(intptr_t)arg);
}

static void *overflow(void *arg)
{
	char room[10];
	volatile int beyond = 10;

	hd_yield();
	room[beyond] = (char)(intptr_t)arg;
	return (void *)(intptr_t)room[beyond];
}

static void *first(void *arg)
{
	int yes = 1;

	if (arg != NULL)
		return hd_join(hd_spawn(overflow, NULL), NULL, HD_FOREVER) == 0 ? arg : NULL;
	for (int i = 0; i < 50; i++) {
		hd_pid a = hd_spawn(leave, NULL), b = hd_spawn(leave, &yes);
		hd_sleep(HD_US(50));
		CHECK(hd_join(a, NULL, HD_FOREVER) == 0);
		CHECK(hd_terminate(b, HD_FOREVER) == 0 && hd_join(b, NULL, HD_FOREVER) == 0);
		CHECK(hd_join(hd_spawn(use_stack, NULL), NULL, HD_FOREVER) == 0);
	}
	return arg;
}

int main(int argc, char **argv)
{
	for (int workers = 1; workers <= 4; workers *= 2)
		CHECK(hd_run(&(struct hd_config){ .workers = (unsigned)workers, .fixed = true }, first,
			     argc > 1 ? argv : NULL) == 0);
	return 0;
}
