/* heddle/promise.h - a value that will be there.
 *
 * A promise is given a value once, or fails once; any number of processes and threads may wait for that, before and after.
 * hd_promise_spawn makes a process whose result is the promise's value. A promise counts its references: the code that made or
 * retained one releases it. */
#ifndef HEDDLE_PROMISE_H
#define HEDDLE_PROMISE_H

#include <heddle/base.h>
#include <heddle/process.h>

HD_BEGIN

typedef struct hd_promise hd_promise;

/* A promise for hd_promise_set or hd_promise_fail to settle. NULL: no memory. Any thread. */
HD_API HD_MUST_USE hd_promise *hd_promise_new(void);

/* A promise for what a new process's entry returns. If the process ends otherwise the promise fails: with the error of hd_fail,
 * -ECANCELED when it was cancelled, -EOWNERDEAD when it was terminated. The process is detached. hd_promise_spawn_at gives its
 * priority, hd_promise_spawn_with its name, stack size and everything else (NULL is all defaults) but a group. NULL: no memory, no
 * runtime or one that is ending, no entry, or a value out of range. Any thread, runtime running. */
HD_API HD_MUST_USE hd_promise *hd_promise_spawn(hd_entry entry, void *arg);
HD_API HD_MUST_USE hd_promise *hd_promise_spawn_at(int priority, hd_entry entry, void *arg);
HD_API HD_MUST_USE hd_promise *hd_promise_spawn_with(const struct hd_spawn *how, hd_entry entry, void *arg);

/* The process that will settle it, to be cancelled, watched or given another priority; 0 when it was made by hd_promise_new. Once it has ended,
 * calls with this id answer -ESRCH. Any thread. */
HD_API hd_pid hd_promise_pid(const hd_promise *p);

/* Adds a reference, or gives one up: without any, the promise is freed. hd_promise_retain answers its argument. Any thread. */
HD_API hd_promise *hd_promise_retain(hd_promise *p);
HD_API void hd_promise_release(hd_promise *p);

/* Gives it its value, or fails it with an error (whose sign does not matter). Returns 0; -EALREADY when it has one; -EINVAL when err is
 * 0. Any thread. */
HD_API int hd_promise_set(hd_promise *p, void *value);
HD_API int hd_promise_fail(hd_promise *p, int err);

/* Waits for the value. Returns 0, and stores it (`value` may be NULL); the error that it failed with, negative; -ETIMEDOUT;
 * -ECANCELED. Cancellation point. Process or plain thread. */
HD_API HD_MUST_USE int hd_promise_value(hd_promise *p, void **value, hd_time until);

/* Whether it has its value; whether it has failed, and never will. Any thread. */
HD_API bool hd_promise_has_value(const hd_promise *p);
HD_API bool hd_promise_has_failed(const hd_promise *p);

/* A promise for fn(value, arg), called by a process of its own once p has its value. If p fails, the new promise fails with the
 * same error, and fn is not called. NULL: no memory, no runtime or one that is ending, or no fn. Any thread, runtime
 * running. */
HD_API HD_MUST_USE hd_promise *hd_promise_then(hd_promise *p, void *(*fn)(void *value, void *arg), void *arg);

/* A promise for fn(err, arg), called by a process of its own once p has failed with that error, negative. If p has its value, the new
 * promise has the same, and fn is not called. So a failure can be mended, or told and passed on: fn may call hd_fail. NULL as of
 * hd_promise_then. Any thread, runtime running. */
HD_API HD_MUST_USE hd_promise *hd_promise_else(hd_promise *p, void *(*fn)(int err, void *arg), void *arg);

/* Waits until all of n have their values, or one fails. Returns 0 when all have theirs, also if n is 0; the error of the first that
 * fails, at once; -ENOMEM; -ETIMEDOUT; -ECANCELED. Cancellation point. Process or plain thread. */
HD_API HD_MUST_USE int hd_promise_all(hd_promise *const *promises, size_t n, hd_time until);

/* Waits until one of n has its value. Returns its index; when all have failed, the error of the last; -EINVAL when n is 0; -ENOMEM;
 * -ETIMEDOUT; -ECANCELED. Cancellation point. Process or plain thread. */
HD_API HD_MUST_USE int hd_promise_any(hd_promise *const *promises, size_t n, hd_time until);

HD_END
#endif
