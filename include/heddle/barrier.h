/* heddle/barrier.h - a place where n callers must meet before any of them goes on.
 *
 * A caller waits until n have come. The last of them lets all go, and the barrier is ready for the next n. HD_BARRIER(2) is the
 * rendez-vous of two. */
#ifndef HEDDLE_BARRIER_H
#define HEDDLE_BARRIER_H

#include <heddle/base.h>

HD_BEGIN

/* All of it is private. */
struct hd_barrier {
	struct hd_waitq waiters;
	unsigned count;	  /* callers that must meet; zeroed memory means 1: no caller waits */
	unsigned arrived; /* callers that wait */
	unsigned round;	  /* how often they have met */
};
/* A barrier for n callers. hd_barrier_init makes one of memory that is not in use; any thread. */
#define HD_BARRIER(n)                                                                                                          \
	{                                                                                                                      \
		{ NULL, NULL, 0 }, (n), 0, 0                                                                                   \
	}
HD_API void hd_barrier_init(struct hd_barrier *b, unsigned n);

/* Waits until n callers have come. Returns 1 to the last of them, which let the others go, and 0 to the others; -ETIMEDOUT or
 * -ECANCELED, and then the caller does not count as having come. A caller that was one of the n returns, whatever is asked of it when the
 * last of them has come: a cancel or a termination is heeded at its next cancellation point. Cancellation point. Process or plain thread. */
HD_API HD_MUST_USE int hd_barrier_wait(struct hd_barrier *b, hd_time until);

HD_END
#endif
