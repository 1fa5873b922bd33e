/* heddle/barrier.h - a place where n must meet before any goes on.
 *
 * Who comes waits until n are there. The one that completes the number lets all go, and the barrier is ready for the next n. HD_BARRIER(2) is the rendez-vous of
 * two. */
#ifndef HEDDLE_BARRIER_H
#define HEDDLE_BARRIER_H

#include <heddle/base.h>

HD_BEGIN

/* All of it is private. */
struct hd_barrier {
	struct hd_waitq waiters;
	unsigned count;	  /* that must meet; zeroed memory means 1: nobody waits */
	unsigned arrived; /* and wait */
};
/* A barrier for n. */
#define HD_BARRIER(n)                                                                                                          \
	{                                                                                                                      \
		{ NULL, NULL, 0 }, (n), 0                                                                                      \
	}
HD_API void hd_barrier_init(struct hd_barrier *b, unsigned n);

/* Waits until n are here. Returns 1 to the one that came last and let the others go, 0 to those; -ETIMEDOUT or -ECANCELED, and then
 * the caller does not count as having come. Cancellation point. Process or plain thread. */
HD_API int hd_barrier_wait(struct hd_barrier *b, hd_time until);

HD_END
#endif
