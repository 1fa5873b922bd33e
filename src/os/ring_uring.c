/* os/ring_uring.c - io_uring, by liburing.
 *
 * Owns:       the ring and its bell, an eventfd.
 * Invariant:  the queue of submissions is empty between calls, but for entries that the kernel did not take: they have become empty
 *             operations. That of completions has room for every operation, and its cancel: it never overflows.
 * Callers:    io/ring.c. Any thread submits and takes, so the flags that allow only one are not used; nor is the one that leaves a computing
 *             thread alone, because its completions would be late. */
#define _GNU_SOURCE
#include "os/ring.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <liburing.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/atomic.h"
#include "os/fault.h"
#include "os/memory.h"

#define SUBMISSIONS 16
#define NEEDED (IORING_FEAT_NODROP | IORING_FEAT_SUBMIT_STABLE | IORING_FEAT_RW_CUR_POS)

struct hd__os_ring {
	struct io_uring uring;
	int bell;
};

static bool made; /* there was a ring once; any thread, relaxed */

struct hd__os_ring *hd__os_ring_new(unsigned operations, int *bell)
{
	int saved = errno;
	struct io_uring_params how = { .flags = IORING_SETUP_CQSIZE | IORING_SETUP_CLAMP, .cq_entries = 2 * operations };
	struct hd__os_ring *ring = hd__fault_strikes(HD__FAULT_RING) ? NULL : hd__os_alloc(sizeof *ring);

	if (ring == NULL)
		return NULL;
	ring->bell = -1;
	if (io_uring_queue_init_params(SUBMISSIONS, &ring->uring, &how) != 0) {
		hd__os_free(ring);
		errno = saved;
		return NULL;
	}
	st_rlx(&made, true);
	bool fits = (how.features & NEEDED) == NEEDED && how.cq_entries >= 2 * operations;
	ring->bell = fits ? eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK) : -1;
	if (ring->bell < 0 || io_uring_register_eventfd(&ring->uring, ring->bell) != 0) {
		hd__os_ring_drop(ring);
		ring = NULL;
	} else {
		*bell = ring->bell;
	}
	errno = saved;
	return ring;
}

void hd__os_ring_drop(struct hd__os_ring *ring)
{
	int saved = errno;

	io_uring_queue_exit(&ring->uring);
	if (ring->bell >= 0)
		close(ring->bell);
	hd__os_free(ring);
	errno = saved;
}

/* The kernel takes what stands in the queue. If it does not take `entry`, the last one, that does nothing later on. */
static int submit(struct hd__os_ring *ring, struct io_uring_sqe *entry)
{
	int saved = errno, n;

	do
		n = io_uring_submit(&ring->uring);
	while (n == -EINTR || (n > 0 && io_uring_sq_ready(&ring->uring) > 0));
	errno = saved;
	if (io_uring_sq_ready(&ring->uring) == 0)
		return 0;
	io_uring_prep_nop(entry);
	io_uring_sqe_set_data(entry, NULL);
	return -EAGAIN;
}

/* A free entry; NULL: the kernel takes none at present. */
static struct io_uring_sqe *new_entry(struct hd__os_ring *ring)
{
	struct io_uring_sqe *entry = io_uring_get_sqe(&ring->uring);
	int saved = errno;

	if (entry == NULL && io_uring_submit(&ring->uring) > 0) /* it is full of what was refused, and does nothing any more */
		entry = io_uring_get_sqe(&ring->uring);
	errno = saved;
	return entry;
}

int hd__os_ring_begin(struct hd__os_ring *ring, const struct hd__task *task, void *whose)
{
	struct io_uring_sqe *entry = new_entry(ring);
	uint64_t offset = (uint64_t)task->offset;

	if (entry == NULL)
		return -EAGAIN;
	if (task->syncs)
		io_uring_prep_fsync(entry, task->fd, task->data_only ? IORING_FSYNC_DATASYNC : 0);
	else if (task->writes)
		io_uring_prep_writev(entry, task->fd, task->iov, (unsigned)task->n, offset);
	else
		io_uring_prep_readv(entry, task->fd, task->iov, (unsigned)task->n, offset);
	io_uring_sqe_set_data(entry, whose);
	return submit(ring, entry);
}

int hd__os_ring_cancel(struct hd__os_ring *ring, void *whose)
{
	struct io_uring_sqe *entry = new_entry(ring);

	if (entry == NULL)
		return -EAGAIN;
	io_uring_prep_cancel(entry, whose, 0);
	io_uring_sqe_set_data(entry, NULL);
	return submit(ring, entry);
}

void *hd__os_ring_take(struct hd__os_ring *ring, int *answer)
{
	struct io_uring_cqe *completion;
	unsigned head;
	void *whose = NULL;

	io_uring_for_each_cqe(&ring->uring, head, completion)
	{
		whose = io_uring_cqe_get_data(completion); /* NULL: of a cancel, or nothing */
		*answer = completion->res;
		io_uring_cq_advance(&ring->uring, 1);
		if (whose != NULL)
			break;
	}
	return whose;
}

static bool is_for_rings(int tasks, const char *thread)
{
	char path[280], name[16] = "";

	snprintf(path, sizeof path, "%s/comm", thread);
	int fd = openat(tasks, path, O_RDONLY | O_CLOEXEC);
	bool found = fd >= 0 && read(fd, name, sizeof name) > 4 && strncmp(name, "iou-", 4) == 0;
	if (fd >= 0)
		close(fd);
	return found;
}

int hd__os_ring_threads(void)
{
	int saved = errno, n = 0;
	DIR *tasks = ld_rlx(&made) ? opendir("/proc/self/task") : NULL;

	if (tasks != NULL) {
		for (struct dirent *entry; (entry = readdir(tasks)) != NULL;)
			n += entry->d_name[0] != '.' && is_for_rings(dirfd(tasks), entry->d_name);
		closedir(tasks);
	}
	errno = saved;
	return n;
}
