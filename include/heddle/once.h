/* heddle/once.h - something that is done once, by whoever comes first.
 *
 * The first that comes does it; who comes later waits until it is done. If the one that does it ends before it is done, the next waiter does it. Zeroed memory is
 * ready. */
#ifndef HEDDLE_ONCE_H
#define HEDDLE_ONCE_H

#include <heddle/base.h>

HD_BEGIN

/* All of it is private. */
struct hd_once {
	struct hd_waitq waiters;
	unsigned char state;
	int64_t doer; /* whoever does it now: a process, or less a thread */
};
/* Not done yet. */
#define HD_ONCE                                                                                                                \
	{                                                                                                                      \
		{ NULL, NULL, 0 }, 0, 0                                                                                        \
	}

/* Calls fn(arg), unless that was done already. Returns 0 when it has been done, by the caller or by another; -ETIMEDOUT when
 * somebody else was still at it; -ECANCELED when the caller was cancelled; -EDEADLK when the caller is, inside fn. Cancellation point, but for the one that calls
 * fn. Process or plain thread. */
HD_API int hd_once(struct hd_once *once, void (*fn)(void *arg), void *arg, hd_time until);

/* Whether it has been done. Any thread. */
HD_API bool hd_once_is_done(const struct hd_once *once);

HD_END
#endif
