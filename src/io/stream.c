/* io/stream.c - reading and writing any descriptor.
 *
 * Owns:      nothing: each call is an operation of io/op.c, and says how it is attempted. */
#include <errno.h>
#include <heddle/io.h>
#include <limits.h>
#include <sys/uio.h>

#include "io/file.h"

ssize_t hd__iov_sum(const struct iovec *iov, size_t n)
{
	size_t all = 0;

	if (n > UIO_MAXIOV)
		return -EINVAL;
	for (size_t i = 0; i < n; i++)
		if (__builtin_add_overflow(all, iov[i].iov_len, &all) || all > SSIZE_MAX)
			return -EINVAL;
	return (ssize_t)all;
}

int hd__op_rest(struct hd__op *op, struct iovec parts[HD__PARTS])
{
	size_t skip = op->all - op->wanted;
	int i = 0, n = 0;

	while (i < op->n && skip >= op->iov[i].iov_len)
		skip -= op->iov[i++].iov_len;
	op->offered = 0;
	for (; i < op->n && n < HD__PARTS; i++, n++) {
		parts[n] = (struct iovec){ (char *)op->iov[i].iov_base + skip, op->iov[i].iov_len - skip };
		op->offered += parts[n].iov_len;
		skip = 0;
	}
	return n;
}

static ssize_t move(struct hd__op *op, enum hd__how how)
{
	struct iovec parts[HD__PARTS];
	const struct iovec *iov = op->iov;
	int n = op->n;

	if (op->wanted != op->all) {
		n = hd__op_rest(op, parts);
		iov = parts;
	}
	return op->way == HD__READING ? hd__os_read(op->fd, how, iov, n) : hd__os_write(op->fd, how, iov, n);
}

static ssize_t move_on_thread(struct hd__op *op)
{
	return move(op, HD__BY_THREAD);
}

static ssize_t attempt(struct hd__op *op, enum hd__how how)
{
	if (unlikely(op->all == 0 && (op->way == HD__READING || op->n == 0)))
		return 0; /* as read(2): recv would wait, or take a datagram */
	if (how == HD__BY_FILE)
		return hd__file_move(op, -1);
	return likely(how != HD__BY_THREAD) ? move(op, how) : hd__op_on_thread(op, move_on_thread);
}

/* Sets what an operation of this kind needs, field by field: this is a hot path. */
static ssize_t run(struct hd__op *op, int fd, enum hd__way way, bool whole, const struct iovec *iov, int n, hd_time until)
{
	ssize_t all = n < 0 ? -EINVAL : hd__iov_sum(iov, (size_t)n);

	if (all < 0)
		return all;
	op->attempt = attempt;
	op->fd = fd;
	op->way = way;
	op->why = 0;
	op->whole = whole;
	op->by_count = true;
	op->apart = false;
	op->wanted = op->all = (size_t)all;
	op->err = 0;
	op->iov = iov;
	op->n = n;
	return hd__fd_do(op, until);
}

static ssize_t transfer(int fd, enum hd__way way, const struct iovec *iov, int n, bool whole, hd_time until)
{
	struct hd__op op;
	return run(&op, fd, way, whole, iov, n, until);
}

static ssize_t transfer_one(int fd, enum hd__way way, void *data, size_t n, bool whole, hd_time until)
{
	struct iovec one = { data, n };
	return transfer(fd, way, &one, 1, whole, until);
}

ssize_t hd_read(int fd, void *data, size_t n, hd_time until)
{
	return transfer_one(fd, HD__READING, data, n, false, until);
}

ssize_t hd_readv(int fd, const struct iovec *iov, int n, hd_time until)
{
	return transfer(fd, HD__READING, iov, n, false, until);
}

ssize_t hd_read_full(int fd, void *data, size_t n, hd_time until)
{
	return transfer_one(fd, HD__READING, data, n, true, until);
}

ssize_t hd_write(int fd, const void *data, size_t n, hd_time until)
{
	return transfer_one(fd, HD__WRITING, (void *)(uintptr_t)data, n, true, until);
}

ssize_t hd_writev(int fd, const struct iovec *iov, int n, hd_time until)
{
	return transfer(fd, HD__WRITING, iov, n, true, until);
}

int hd_write_all(int fd, const void *data, size_t n, hd_time until)
{
	struct hd__op op;
	struct iovec one = { (void *)(uintptr_t)data, n };
	ssize_t done = n > 0 ? run(&op, fd, HD__WRITING, true, &one, 1, until) : 0;

	if (done < 0 || (size_t)done == n)
		return done < 0 ? (int)done : 0;
	/* A second call would be another turn. */
	if (op.err == -ECANCELED)
		hd__heed(); /* does not return if the caller must end */
	return op.err != 0 ? op.err : -EIO;
}

int hd_pipe(int fds[2])
{
	int err = hd__os_pipe(fds);

	for (int i = 0; err == 0 && i < 2; i++)
		hd__fd_born(fds[i], HD__BY_NONBLOCK, true);
	hd__pass_by();
	return err;
}
