/* publish_early.c - one process makes a box, another looks into it as soon as there is one.
 *
 * Wrong:      the box can be seen before it has been filled.
 * Schedule:   the reader comes between the two stores.
 * Shows:      assert.
 * Fix:        fill first, publish then. */
#include "planted.h"

struct box {
	_Atomic int value;
};

static struct box the_box;
static _Atomic(struct box *) published;

static void *make_box(void *arg)
{
#ifdef FIXED
	the_box.value = 42;
	published = &the_box;
#else
	published = &the_box;
	hd_checkpoint(); /* the instant between the two */
	the_box.value = 42;
#endif
	return arg;
}

static void *look_into_it(void *arg)
{
	hd_checkpoint(); /* whenever it comes */
	struct box *b = published;
	MUST(b == NULL || b->value == 42);
	return arg;
}

PLANTED_MAIN
{
	TOGETHER(make_box, look_into_it);
}
