/* heddle/rwlock.h - many readers or one writer.
 *
 * A read-write lock is held by any number of readers, or by one writer. A caller that cannot have it waits in line; which
 * waiters go first is an attribute. Zeroed memory is a free lock that serves readers and writers in the order they came. */
#ifndef HEDDLE_RWLOCK_H
#define HEDDLE_RWLOCK_H

#include <heddle/base.h>

HD_BEGIN

/* Which waiters go first. */
enum hd_rwlock_prefers {
	HD_PREFER_NOBODY = 0, /* first come, first served: a reader that comes after a writer waits for it */
	HD_PREFER_READERS,    /* readers wait only for a writer that has it: writers may starve */
	HD_PREFER_WRITERS     /* readers wait for all writers that wait: readers may starve */
};

/* All of it is private. */
struct hd_rwlock {
	struct hd_waitq waiters;
	unsigned char prefers;
	unsigned readers;	  /* holds for reading */
	unsigned writers_waiting; /* undecided, or about to be taken out */
	int64_t writer;		  /* that has it: id of a process; below 0: of a plain thread; 0: none */
};
/* A free lock. hd_rwlock_init makes one of memory that is not in use; any thread. */
#define HD_RWLOCK(prefers)                                                                                                     \
	{                                                                                                                      \
		{ NULL, NULL, 0 }, (prefers), 0, 0, 0                                                                          \
	}
HD_API void hd_rwlock_init(struct hd_rwlock *l, enum hd_rwlock_prefers prefers);

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
