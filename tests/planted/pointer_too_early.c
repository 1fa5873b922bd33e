/* pointer_too_early.c - a new process uses a configuration that its parent reads.
 *
 * Wrong:      the parent starts it first and reads then.
 * Schedule:   it runs at once, on another worker.
 * Shows:      crash: it follows a null pointer.
 * Fix:        read first, start then. */
#include "planted.h"

struct configuration {
	_Atomic int level;
};

static struct configuration in_a_file = { 3 };
static _Atomic(struct configuration *) configuration;

static void read_configuration(void)
{
	hd_checkpoint(); /* it takes a while */
	configuration = &in_a_file;
}

static void *work(void *arg)
{
	struct configuration *c = configuration;

	c->level++;
	return arg;
}

PLANTED_MAIN
{
#ifdef FIXED
	read_configuration();
	hd_pid worker = start(work, NULL);
#else
	hd_pid worker = start(work, NULL);
	read_configuration();
#endif
	finish(worker);
	MUST(in_a_file.level == 4);
}
