/* heddle/cancel.h - asking a process to stop, and cleaning up when it does.
 *
 * A cancel is a request. A process of type *return* (the default) gets -ECANCELED from every call that waits, again and again,
 * until it has ended or calls hd_cancel_clear. A process of type *unwind* does not return from the next such call: its cleanup
 * handlers run, last in, first out, then its locals are destroyed, and it has ended. hd_terminate and hd_kill (process.h) make
 * any process unwind. */
#ifndef HEDDLE_CANCEL_H
#define HEDDLE_CANCEL_H

#include <heddle/base.h>

HD_BEGIN

/* Asks a process to stop. If it waits, and does not wait for a mutex, its wait ends; what it waited for is not lost. A
 * suspended process stays suspended. A second cancel changes nothing. Returns 0; -ESRCH when there is no such process, or it
 * has ended; -ENXIO when no runtime runs. Any thread. */
HD_API int hd_cancel(hd_pid pid);

/* Whether the calling process hears cancels and terminations; if not, they are kept for later. Returns the state before;
 * -EINVAL when `state` is none of these; -ENOTSUP on a plain thread. */
enum hd_cancel_state {
	HD_CANCEL_ENABLED = 0, /* hears them */
	HD_CANCEL_DISABLED     /* keeps them for later */
};
HD_API int hd_set_cancel_state(enum hd_cancel_state state);

/* What a cancel does to the calling process. Returns the type before; -EINVAL when `type` is none of these; -ENOTSUP on a plain
 * thread. */
enum hd_cancel_type {
	HD_CANCEL_RETURN = 0, /* calls that wait answer -ECANCELED */
	HD_CANCEL_UNWIND      /* the next call that waits does not return */
};
HD_API int hd_set_cancel_type(enum hd_cancel_type type);

/* A safe point and a cancellation point, nothing else. Returns 0; -ECANCELED when the caller is cancelled, hears it, and is of
 * type return; -ENOTSUP on a plain thread. */
HD_API int hd_test_cancel(void);

/* Forgets a cancel of the calling process. Returns 1 when there was one, 0 when not; -ENOTSUP on a plain thread. */
HD_API int hd_cancel_clear(void);

/* Something to do if the process ends before it comes to hd_cleanup_pop: because it is terminated or cancelled, or by hd_exit
 * or hd_fail. The record lives in the frame of the function that pushes it, which must pop it before it returns. All of it is
 * private. */
struct hd_cleanup {
	void (*fn)(void *arg);
	void *arg;
	struct hd_cleanup *next;
};

/* Pushes fn(arg), to be called if the process ends before it is popped. Handlers run on the ending process, which does not hear
 * cancels any more and may wait. Returns 0; -EINVAL when fn is NULL; -ENOTSUP on a plain thread. */
HD_API int hd_cleanup_push(struct hd_cleanup *cleanup, void (*fn)(void *arg), void *arg);

/* Takes back the cleanup that was pushed last, and calls it if `run`. Returns 0; -EINVAL when it was not pushed last; -ENOTSUP on
 * a plain thread. */
HD_API int hd_cleanup_pop(struct hd_cleanup *cleanup, bool run);

HD_END
#endif
