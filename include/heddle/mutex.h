/* heddle/mutex.h - mutual exclusion with an owner.
 *
 * A mutex has at most one owner, a process or a plain thread, which may lock it again and must unlock it as often. Unlocking frees it
 * and wakes the first waiter, which competes with others that come: so no process owns it while it waits for a worker. A waiter that has
 * waited for a millisecond gets it next, so that none starves; HD_IN_ORDER is for strict order. If its owner ends it stays locked:
 * hd_mutex_critical, or a cleanup (cancel.h), unlocks it. Zeroed memory is a free mutex. */
#ifndef HEDDLE_MUTEX_H
#define HEDDLE_MUTEX_H

#include <heddle/base.h>

HD_BEGIN

/* How it behaves: flags for HD_MUTEX and hd_mutex_init. */
enum {
	HD_BY_PRIORITY = 1, /* unlocking hands it to the first of the waiters with the highest priority */
	HD_INHERIT = 2, /* the owner has at least its waiters' priority, through chains of such mutexes; handed over in order */
	HD_IN_ORDER = 4 /* unlocking hands it to the first waiter; slower when processes on several workers want it */
};

struct hd__ranked;

/* All of it is private. It may be freed as soon as it is free and no caller will use it again. */
struct hd_mutex {
	struct hd_waitq waiters;
	unsigned char flags;
	unsigned char waking;	    /* a waiter was woken to compete, and has not tried yet: 1 + unlocks since; else 0 */
	bool overdue;		    /* a waiter has waited for too long: the next unlock hands it over */
	unsigned char forks;	    /* its waiters are those of a child that came of so many forks */
	unsigned depth;		    /* times locked by its owner */
	int64_t owner;		    /* id of a process; below 0: of a plain thread; 0: free */
	struct hd_mutex *next_held; /* HD_INHERIT: the owner's next */
	struct hd__ranked *highest; /* HD_BY_PRIORITY, HD_INHERIT: the waiters by their priority */
};

/* A free mutex with flags from above; 0 is none. hd_mutex_init makes one of memory that is not in use; any thread. */
#define HD_MUTEX(flags)                                                                                                        \
	{                                                                                                                      \
		{ NULL, NULL, 0 }, (flags), 0, 0, 0, 0, 0, NULL, NULL                                                          \
	}
HD_API void hd_mutex_init(struct hd_mutex *m, unsigned flags);

/* Locks it. Returns 0; -ETIMEDOUT when `until` has passed, and then it is not locked; -EOVERFLOW when its owner has locked it
 * 2^32 - 1 times. Not a cancellation point, but a process that is terminated leaves its wait and ends. Process or plain
 * thread. */
HD_API HD_MUST_USE int hd_mutex_lock(struct hd_mutex *m, hd_time until);

/* As hd_mutex_lock, but never waits. Returns 0; -EAGAIN when another process or thread owns it; -EOVERFLOW. Process or plain
 * thread. */
HD_API HD_MUST_USE int hd_mutex_try_lock(struct hd_mutex *m);

/* Unlocks it once. When its owner has unlocked it as often as locked, it is free, or handed to a waiter. Returns 0; -EPERM when
 * the caller does not own it. Process or plain thread. */
HD_API int hd_mutex_unlock(struct hd_mutex *m);

/* Whether the caller owns it. Process or plain thread. */
HD_API bool hd_mutex_is_mine(const struct hd_mutex *m);

/* Locks it, calls fn(arg), unlocks it, also if fn ends the process. Returns 0, or what hd_mutex_lock answered and then fn was not
 * called. Process or plain thread. */
HD_API HD_MUST_USE int hd_mutex_critical(struct hd_mutex *m, void (*fn)(void *arg), void *arg, hd_time until);

HD_END
#endif
