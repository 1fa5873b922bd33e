/* os/ring.h - the door to io_uring: operations on files that the kernel does by itself, and says when they are done.
 *
 * The build chooses: ring_uring.c, or ring_none.c, which has none. */
#ifndef OS_RING_H
#define OS_RING_H

#include <heddle/base.h>
#include <sys/types.h>
#include <sys/uio.h>

struct hd__os_ring;

/* What the kernel should do. */
struct hd__task {
	int fd;
	bool syncs;	/* fsync; else it moves bytes */
	bool data_only; /* fdatasync */
	bool writes;
	const struct iovec *iov;
	int n;
	int64_t offset; /* -1: where the open file is */
};

/* A ring for so many operations at a time. *bell is a descriptor that becomes readable, once more, with each completion. NULL: the kernel is
 * too old, or does not allow it, or has no memory or descriptor for it. */
struct hd__os_ring *hd__os_ring_new(unsigned operations, int *bell);
void hd__os_ring_drop(struct hd__os_ring *ring);

/* Begins it; its completion names `whose`, which is not NULL. Cancels it, if that is still possible: its completion comes in any case. -EAGAIN:
 * the kernel does not take it. One thread at a time. */
int hd__os_ring_begin(struct hd__os_ring *ring, const struct hd__task *task, void *whose);
int hd__os_ring_cancel(struct hd__os_ring *ring, void *whose);

/* A completion: whose, and its answer. NULL: there is none. No system call; one thread at a time, beside those above. */
void *hd__os_ring_take(struct hd__os_ring *ring, int *answer);

/* How many threads of the program are the kernel's own, for rings. */
int hd__os_ring_threads(void);

#endif
