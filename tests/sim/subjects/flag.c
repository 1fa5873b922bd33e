/* flag.c [never] - two processes wait for a third one by looking again and again, with a yield in between. It is right, unless the third one
 * never sets the flag: then it is a livelock. */
#include <heddle.h>
#include <stdatomic.h>
#include <stdlib.h>

static _Atomic bool set;

static void *wait_for_flag(void *arg)
{
	while (!set)
		hd_yield();
	return arg;
}

static void *set_flag(void *never)
{
	hd_checkpoint();
	set = never == NULL;
	return NULL;
}

static void *first(void *never)
{
	hd_pid pids[] = { hd_spawn(set_flag, never), hd_spawn(wait_for_flag, NULL), hd_spawn(wait_for_flag, NULL) };

	for (int i = 0; i < 3; i++)
		if (hd_join(pids[i], NULL, HD_FOREVER) != 0)
			abort();
	return NULL;
}

int main(int argc, char **argv)
{
	return hd_run(NULL, first, argc > 1 ? argv[1] : NULL);
}
