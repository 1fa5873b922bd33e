/* holder.c [may] - a behaviour that waits while it has a cown; with `may` it is allowed to. */
#include <heddle.h>
#include <stdlib.h>

static struct hd_semaphore ready;
static unsigned flags;

static void wait_inside(void *arg, void *const data[])
{
	(void)arg, (void)data;
	if (hd_semaphore_wait(&ready, HD_FOREVER) != 0)
		abort();
}

static void *first(void *arg)
{
	hd_cown *c = hd_cown_new(NULL, NULL);

	if (c == NULL || hd_when_batch(&(struct hd_when){ .fn = wait_inside, .uses = &c, .n = 1, .flags = flags }, 1) != 0)
		abort();
	hd_yield();
	hd_semaphore_signal(&ready);
	if (hd_quiesce(HD_FOREVER) != 0)
		abort();
	hd_cown_release(c);
	return arg;
}

int main(int argc, char **argv)
{
	(void)argv;
	flags = argc > 1 ? HD_WHEN_MAY_BLOCK : 0;
	return hd_run(NULL, first, NULL) != 0;
}
