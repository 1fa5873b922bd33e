/* heddle/mutex.h - mutual exclusion with an owner.
 *
 * A mutex has at most one owner, a process or a plain thread, which may lock it again and must unlock it as often. Waiters own it
 * in the order they came: unlocking hands it to the first. If its owner ends it stays locked: hd_mutex_critical, or a cleanup (cancel.h),
 * unlocks it. Zeroed memory is a free mutex. */
#ifndef HEDDLE_MUTEX_H
#define HEDDLE_MUTEX_H

#include <heddle/base.h>

HD_BEGIN

/* How it behaves: flags for HD_MUTEX and hd_mutex_init. */
enum {
	HD_BY_PRIORITY =
		1, /* the waiter with the highest priority is next, first come among equals; costs a look at every waiter */
	HD_INHERIT = 2, /* the owner has at least the priority of whoever waits, through chains of such mutexes */
	HD_BARGING = 4	/* unlocking frees it, and the first waiter competes with whoever comes: faster, and not fair */
};

/* All of it is private. It may be freed as soon as nobody uses it. */
struct hd_mutex {
	struct hd_waitq waiters;
	unsigned char flags;
	bool waking;		    /* HD_BARGING: a waiter was woken and has not tried yet */
	unsigned depth;		    /* times locked by its owner */
	int64_t owner;		    /* a process, or less a thread; 0: free */
	struct hd_mutex *next_held; /* HD_INHERIT: the owner's next */
};

/* A free mutex with flags from above; 0 is none. */
#define HD_MUTEX(flags)                                                                                                        \
	{                                                                                                                      \
		{ NULL, NULL, 0 }, (flags), false, 0, 0, NULL                                                                  \
	}
HD_API void hd_mutex_init(struct hd_mutex *m, unsigned flags);

/* Locks it. Returns 0; -ETIMEDOUT when `until` has passed, and then it is not locked; -EOVERFLOW when its owner has locked it
 * 2^32 - 1 times. Not a cancellation point, but a process that is terminated leaves its wait and ends. Process or plain
 * thread. */
HD_API int hd_mutex_lock(struct hd_mutex *m, hd_time until);

/* The same without waiting. Returns 0; -EAGAIN when somebody else has it; -EOVERFLOW. Process or plain thread. */
HD_API int hd_mutex_try_lock(struct hd_mutex *m);

/* Unlocks it once; the last time, it is the next waiter's. Returns 0; -EPERM when the caller does not own it. Process or plain
 * thread. */
HD_API int hd_mutex_unlock(struct hd_mutex *m);

/* Whether the caller owns it. Process or plain thread. */
HD_API bool hd_mutex_is_mine(const struct hd_mutex *m);

/* Locks it, calls fn(arg), unlocks it, also if fn ends the process. Returns 0, or what hd_mutex_lock answered and then fn was not
 * called. Process or plain thread. */
HD_API int hd_mutex_critical(struct hd_mutex *m, void (*fn)(void *arg), void *arg, hd_time until);

HD_END
#endif
