/* posix/cancel.c - cancellation: deferred. A thread that asks to be cancelled at any moment is cancelled at its next cancellation point.
 *
 * Owns:       nothing; cancels are heddle's, of the type unwind.
 * Callers:    any thread. */
#include "posix/posix.h"

int hd_pthread_cancel(pthread_t thread)
{
	return hd__posix_error(hd_cancel((hd_pid)thread));
}

void hd_pthread_testcancel(void)
{
	(void)hd_test_cancel(); /* of the type unwind: it does not return if the caller was cancelled */
}

int hd_pthread_setcancelstate(int state, int *before)
{
	if (state != PTHREAD_CANCEL_ENABLE && state != PTHREAD_CANCEL_DISABLE)
		return EINVAL;
	int was = hd_set_cancel_state(state == PTHREAD_CANCEL_ENABLE ? HD_CANCEL_ENABLED : HD_CANCEL_DISABLED);
	if (before != NULL)
		*before = was == HD_CANCEL_DISABLED ? PTHREAD_CANCEL_DISABLE : PTHREAD_CANCEL_ENABLE;
	struct hd__thread_face *me = hd__face();
	if (state == PTHREAD_CANCEL_ENABLE && me != NULL && me->asynchronous)
		hd_pthread_testcancel();
	return 0;
}

int hd_pthread_setcanceltype(int type, int *before)
{
	struct hd__thread_face *me = hd__face();

	if (type != PTHREAD_CANCEL_DEFERRED && type != PTHREAD_CANCEL_ASYNCHRONOUS)
		return EINVAL;
	if (before != NULL)
		*before = me != NULL && me->asynchronous ? PTHREAD_CANCEL_ASYNCHRONOUS : PTHREAD_CANCEL_DEFERRED;
	if (me != NULL)
		me->asynchronous = type == PTHREAD_CANCEL_ASYNCHRONOUS;
	if (type == PTHREAD_CANCEL_ASYNCHRONOUS)
		hd_pthread_testcancel();
	return 0;
}

void hd_pthread_cleanup_begin(struct hd_cleanup *cleanup, void (*fn)(void *), void *arg)
{
	if (hd_cleanup_push(cleanup, fn, arg) != 0)
		*cleanup = (struct hd_cleanup){ .fn = fn, .arg = arg }; /* a plain thread, which nothing ends */
}

void hd_pthread_cleanup_end(struct hd_cleanup *cleanup, int run)
{
	if (hd_cleanup_pop(cleanup, run) != 0 && run)
		cleanup->fn(cleanup->arg);
}
