/* heddle/rwlock.h - many readers or one writer.
 *
 * A read-write lock is held by any number of readers, or by one writer. A caller that cannot have it waits in line; which waiters go
 * first is an attribute. Readers are handed the lock. A writer is woken when it is free, and competes with writers that come: so no
 * process has it for writing while it waits for a worker. A waiter that has waited for a millisecond gets it next, so that none starves;
 * HD_IN_ORDER is for strict order. Zeroed memory is a free lock that prefers nobody. */
#ifndef HEDDLE_RWLOCK_H
#define HEDDLE_RWLOCK_H

#include <heddle/mutex.h>

HD_BEGIN

/* Which waiters go first: for HD_RWLOCK and hd_rwlock_init, alone or with HD_IN_ORDER (`HD_PREFER_WRITERS | HD_IN_ORDER`). Then unlocking
 * hands it to the first waiter also if that is a writer, and time changes nothing: with a preference, the others may starve. */
enum hd_rwlock_prefers {
	HD_PREFER_NOBODY = 0, /* first come, first served: a reader that comes after a writer waits for it */
	HD_PREFER_READERS,    /* readers wait only for a writer that has it, or that has waited for a millisecond */
	HD_PREFER_WRITERS     /* readers wait for all writers that wait, unless they have waited for a millisecond */
};

/* All of it is private. */
struct hd_rwlock {
	struct hd_waitq waiters;      /* those that it prefers come first */
	unsigned char how;	      /* enum hd_rwlock_prefers, HD_IN_ORDER */
	unsigned char waking;	      /* a writer was woken to compete, and has not tried yet: 1 + unlocks since; else 0 */
	unsigned char forks;	      /* its waiters are those of a child that came of so many forks */
	unsigned readers;	      /* holds for reading */
	unsigned writers_waiting;     /* or woken, and about to try */
	int64_t writer;		      /* that has it: id of a process; below 0: of a plain thread; 0: none */
	struct hd_waiter *last_first; /* the last of the waiters that it prefers */
};
/* A free lock. hd_rwlock_init makes one of memory that is not in use; any thread. */
#define HD_RWLOCK(how)                                                                                                         \
	{                                                                                                                      \
		{ NULL, NULL, 0 }, (how), 0, 0, 0, 0, 0, NULL                                                                  \
	}
HD_API void hd_rwlock_init(struct hd_rwlock *l, unsigned how);

/* Takes it for reading, or for writing. Returns 0; -ETIMEDOUT; -ECANCELED; -EDEADLK when the caller has it for writing;
 * -EOVERFLOW, to a reader, when 2^32 - 1 readers have it. A reader that takes it again while a writer waits may wait for
 * itself. Cancellation point. Process or plain thread. */
HD_API HD_MUST_USE int hd_rwlock_read(struct hd_rwlock *l, hd_time until);
HD_API HD_MUST_USE int hd_rwlock_write(struct hd_rwlock *l, hd_time until);

/* As hd_rwlock_read and hd_rwlock_write, but never wait. Return 0; -EAGAIN when the call would have to wait; -EDEADLK;
 * -EOVERFLOW. Process or plain thread. */
HD_API HD_MUST_USE int hd_rwlock_try_read(struct hd_rwlock *l);
HD_API HD_MUST_USE int hd_rwlock_try_write(struct hd_rwlock *l);

/* Gives it back: for writing if the caller is its writer, else for reading, on behalf of any reader. Returns 0; -EPERM when the
 * caller is not its writer and no reader has it. Process or plain thread. */
HD_API int hd_rwlock_unlock(struct hd_rwlock *l);

HD_END
#endif
