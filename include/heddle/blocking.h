/* heddle/blocking.h - calls that block a kernel thread, made so that they block only their process.
 *
 * hd_blocking hands a function to a kernel thread of a pool and waits for its end. Meanwhile the worker runs other processes. It is for what
 * heddle cannot wait for itself: libraries that do their own input and output, long computations, devices. */
#ifndef HEDDLE_BLOCKING_H
#define HEDDLE_BLOCKING_H

#include <heddle/base.h>

HD_BEGIN

/* Calls fn(arg) on a kernel thread of the pool, and waits for its end. fn must return, and gives its result through arg; it may use what is
 * on the caller's stack. It runs on a plain thread, with all signals blocked: hd_self() is 0 there, and its errno and thread-local variables are
 * that thread's. Returns 0 when fn has returned; otherwise fn was not called and never will be:
 *
 *   -ECANCELED         the caller was cancelled before fn began
 *   -EINVAL            fn is NULL
 *   -EAGAIN, -ENOMEM   no kernel thread can be started, and there is none that fn could wait for
 *
 * The pool starts a thread when none of its threads is idle, up to hd_config.blocking_threads; beyond these, functions begin in the order in
 * which they came. If so many functions wait for one that has not begun, they wait for ever. A thread that is idle for five seconds ends.
 *
 * Once fn has begun the call waits for its end. A cancel or a termination that comes meanwhile takes effect at the caller's next
 * cancellation point after that. When the runtime ends, a function that still runs one second later is left behind: hd_run returns, the
 * process is gone and its cleanups have not run, but its stack stays until fn returns.
 *
 * Cancellation point. Process; on a plain thread, and under heddle explore, it is a mere call of fn. */
HD_API HD_MUST_USE int hd_blocking(void (*fn)(void *arg), void *arg);

/* Between these two the calling process is preempted by its own heddle calls only. Otherwise one that makes no calls for a while is preempted by a signal, between
 * any two instructions of the program's own code, when something better is ready or its quantum is over: see docs/concepts/preemption.md. For code that shares
 * thread-local variables, or what flockfile locks, with other processes of its kernel thread, or that others should not find half done. They nest. Return
 *
 *   0            done; when the last hd_preempt_enable has returned, whatever should have preempted the caller has run
 *   -EPERM       hd_preempt_enable: it was not disabled
 *   -EOVERFLOW   hd_preempt_disable: 255 times
 *   -ENOTSUP     the caller is a plain thread
 *
 * hd_preempt_enable is a safe point. Process. */
HD_API int hd_preempt_disable(void);
HD_API int hd_preempt_enable(void);

HD_END
#endif
