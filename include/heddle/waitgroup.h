/* heddle/waitgroup.h - waiting until a number of things have been done.
 *
 * Count up before each begins, down when it is done; the waiters go on when the count is 0. Zeroed memory is a wait group with
 * a count of 0. */
#ifndef HEDDLE_WAITGROUP_H
#define HEDDLE_WAITGROUP_H

#include <heddle/base.h>

HD_BEGIN

/* All of it is private. */
struct hd_waitgroup {
	struct hd_waitq waiters;
	unsigned count;
};
/* A wait group with a count of n. hd_waitgroup_init makes one of memory that is not in use; any thread. */
#define HD_WAITGROUP(n)                                                                                                        \
	{                                                                                                                      \
		{ NULL, NULL, 0 }, (n)                                                                                         \
	}
HD_API void hd_waitgroup_init(struct hd_waitgroup *g, unsigned n);

/* Changes the count by `delta`; when it becomes 0, all waiters go on. Returns 0; -EINVAL when it would fall below 0, or
 * -EOVERFLOW when it would not fit, and then it is unchanged. Process or plain thread. */
HD_API int hd_waitgroup_add(struct hd_waitgroup *g, int delta);

/* Counts down by one. As hd_waitgroup_add(g, -1). */
HD_API int hd_waitgroup_done(struct hd_waitgroup *g);

/* Waits until the count is 0. Returns 0; -ETIMEDOUT; -ECANCELED. Cancellation point. Process or plain thread. */
HD_API HD_MUST_USE int hd_waitgroup_wait(struct hd_waitgroup *g, hd_time until);

HD_END
#endif
