/* heddle/io.h - reading and writing descriptors: calls that wait only for their own process.
 *
 * Each call does what its namesake without hd_ does on a descriptor that waits, and while it waits other processes run. Any descriptor will
 * do: a socket, pipe or terminal, whether or not it has O_NONBLOCK, which is left as it is. Two flows belong to a descriptor, reading
 * and writing; in each, calls take turns in the order of their arrival, so that what one call writes is never mixed with what
 * another one writes.
 * Calls answer a count or 0, or -errno; everywhere -ETIMEDOUT says that `until` has passed, -ECANCELED that the caller was cancelled, and
 * then nothing was moved: a call that has moved something answers how much. -EBADF: the descriptor is closed, perhaps just now by another
 * process. -ENOTSUP: the program is explored (`heddle explore`), which knows no descriptors. All are cancellation points, unless it
 * says otherwise. On a plain thread they wait in the kernel, and take no turns. */
#ifndef HEDDLE_IO_H
#define HEDDLE_IO_H

#include <heddle/base.h>
#include <heddle/net.h>
#include <sys/types.h>

HD_BEGIN

struct iovec;

/* Reads at most n bytes. Returns how many, as soon as there are any; 0: at the end, or n is 0. */
HD_API HD_MUST_USE ssize_t hd_read(int fd, void *data, size_t n, hd_time until);
HD_API HD_MUST_USE ssize_t hd_readv(int fd, const struct iovec *iov, int n, hd_time until);

/* Writes n bytes. Returns n; less, if time was up, the caller was cancelled, or an error came when some had been written: the next call
 * tells which. A socket whose other side is closed answers -EPIPE, and there is no SIGPIPE; a pipe raises it, as write(2) does. */
HD_API HD_MUST_USE ssize_t hd_write(int fd, const void *data, size_t n, hd_time until);
HD_API HD_MUST_USE ssize_t hd_writev(int fd, const struct iovec *iov, int n, hd_time until);

/* Reads exactly n bytes, in one turn. Returns n; less at the end, or as hd_write. */
HD_API HD_MUST_USE ssize_t hd_read_full(int fd, void *data, size_t n, hd_time until);

/* Writes all n bytes, in one turn. Returns 0, or the error that kept it from that, when some may have been written. */
HD_API HD_MUST_USE int hd_write_all(int fd, const void *data, size_t n, hd_time until);

/* A pipe: fds[0] is for reading, fds[1] for writing. Both are close-on-exec. Returns 0, -EMFILE, -ENFILE. Does not wait. */
HD_API HD_MUST_USE int hd_pipe(int fds[2]);

/* Closes fd. Calls of other processes that wait for it, or begin, answer -EBADF. Closes it also when the caller was cancelled: no
 * cancellation point. Returns 0, or -EBADF, -EIO and their like, and the number is free in any case but -EBADF. Any thread. */
HD_API int hd_close(int fd);

/* fd was closed, or is about to be, by other means than hd_close: what heddle knows of the number is forgotten, and calls that wait for
 * it answer -EBADF. Returns 0. Any thread. */
HD_API int hd_fd_forget(int fd);

HD_END
#endif
