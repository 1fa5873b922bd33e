/* posix/theirs.c - waiting for locks that programs share, which are the C library's.
 *
 * A thread of the pool waits, with the thread-local storage of the thread that asks: so to the C library it is that thread, and owns what it gets. The first
 * thread has the storage of its kernel thread, and waits there itself.
 * Callers:    any thread. */
#include "posix/posix.h"

#include <heddle/blocking.h>

static void wait(void *arg)
{
	struct hd__theirs *t = arg;

	t->err = t->fn(t);
}

int hd__theirs_wait(struct hd__theirs *t)
{
	if (hd__face() == NULL || hd__face_is_first(hd__face()) || hd_self() == 0) {
		wait(t);
		return t->err;
	}
	int before = hd__posix_go_deaf();
	int err = hd_blocking(wait, t);
	hd__posix_hear_again(before);
	return err != 0 ? hd__posix_error(err) : t->err;
}
