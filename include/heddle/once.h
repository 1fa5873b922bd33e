/* heddle/once.h - something that is done once, by the first caller.
 *
 * The first caller does it; later callers wait until it is done. If the process that does it ends before it is done, the next
 * waiter does it. Zeroed memory is ready. */
#ifndef HEDDLE_ONCE_H
#define HEDDLE_ONCE_H

#include <heddle/base.h>

HD_BEGIN

/* All of it is private. */
struct hd_once {
	struct hd_waitq waiters;
	unsigned char state;
	int64_t doer; /* does it now: id of a process; below 0: of a plain thread; 0: none */
};
/* Not done yet. */
#define HD_ONCE                                                                                                                \
	{                                                                                                                      \
		{ NULL, NULL, 0 }, 0, 0                                                                                        \
	}

/* Calls fn(arg), unless that was done already. Returns 0 when it has been done, by this caller or by another; -ETIMEDOUT when
 * another caller was still doing it; -ECANCELED when the caller was cancelled, and then it has not called fn; -EDEADLK when it
 * is called from inside fn. Cancellation point. Process or plain thread. */
HD_API HD_MUST_USE int hd_once(struct hd_once *once, void (*fn)(void *arg), void *arg, hd_time until);

/* Whether it has been done. Any thread. */
HD_API bool hd_once_is_done(const struct hd_once *once);

HD_END
#endif
