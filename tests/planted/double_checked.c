/* double_checked.c - something that is made by whoever needs it first.
 *
 * Wrong:      it is checked without the lock, but not once more with it.
 * Schedule:   both see that there is nothing; one makes it under the lock; the other makes it again.
 * Shows:      assert.
 * Fix:        the second check that gives the thing its name. */
#include "planted.h"

static struct hd_semaphore making = LOCK;
static int made; /* guarded by making */
static _Atomic(int *) instance;

static void make(void)
{
	MUST(++made == 1);
	instance = &made;
}

static void *use(void *arg)
{
	if (instance == NULL) {
		lock(&making);
#ifdef FIXED
		if (instance == NULL)
#endif
			make();
		unlock(&making);
	}
	MUST(instance != NULL);
	return arg;
}

PLANTED_MAIN
{
	TOGETHER(use, use);
}
