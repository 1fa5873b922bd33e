/* heddle/io.h - reading and writing descriptors: calls that wait only for their own process.
 *
 * Each call does what its namesake without hd_ does on a descriptor that waits, and while it waits other processes run. Any descriptor will
 * do: a socket, pipe, terminal or file, whether or not it has O_NONBLOCK, which is left as it is. Two flows belong to a descriptor, reading
 * and writing; in each, calls take turns in the order of their arrival, so that what one call writes is never mixed with what
 * another one writes.
 * Calls answer a count or 0, or -errno; everywhere -ETIMEDOUT says that `until` has passed, -ECANCELED that the caller was cancelled, and
 * then nothing was moved: a call that has moved something answers how much. -EBADF: the descriptor is closed, perhaps just now by another
 * process. -ENOTSUP: the program is explored (`heddle explore`), which knows no descriptors. All are cancellation points, unless it
 * says otherwise. On a plain thread they wait in the kernel, and take no turns. */
#ifndef HEDDLE_IO_H
#define HEDDLE_IO_H

#include <heddle/base.h>
#include <heddle/file.h>
#include <heddle/net.h>
#include <sys/select.h>
#include <sys/types.h>

HD_BEGIN

struct iovec;
struct pollfd;

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

/* The flows of a descriptor. */
enum { HD_FD_READING = 1, HD_FD_WRITING = 2 };

/* The caller keeps its turn in `flows` (HD_FD_READING, HD_FD_WRITING or both) over several calls, until hd_fd_unlock: a request and its reply,
 * say, or a message that is written in parts. Calls of other processes wait meanwhile. Locks nest. What a process has not unlocked when
 * it ends, however it ends, is unlocked then. hd_close takes the lock away. Returns 0; -ENOMEM; -EAGAIN when it has locked it 65,535
 * times. Cancellation point. Process. */
HD_API HD_MUST_USE int hd_fd_lock(int fd, int flows, hd_time until);

/* Gives up what hd_fd_lock has locked. Returns 0; -EPERM when the caller has not locked it, or it was closed meanwhile. No cancellation
 * point. Process. */
HD_API int hd_fd_unlock(int fd, int flows);

/* As poll(2): waits until one of n descriptors is ready for what it is asked, and says so in its `revents`. Nothing is read or written, and
 * no turn is taken. Returns how many are ready (one that is not open, or is closed meanwhile, has POLLNVAL and counts); -ENOMEM; -ETIMEDOUT
 * when none is. It needs time for each descriptor in each call, as poll(2) does: a process for each descriptor needs none. Any thread. */
HD_API HD_MUST_USE int hd_fd_poll(struct pollfd *fds, size_t n, hd_time until);

/* As select(2), for descriptors below FD_SETSIZE. A set may be NULL. Returns how many bits are set in them; the sets are left as they were when
 * the answer is less than 0; -EBADF when one of them is not open. Any thread. */
HD_API HD_MUST_USE int hd_fd_select(int nfds, fd_set *readable, fd_set *writable, fd_set *urgent, hd_time until);

/* Closes fd. Calls of other processes that wait for it, or begin, answer -EBADF. Closes it also when the caller was cancelled: no
 * cancellation point. The caller waits where close(2) would: with SO_LINGER, until the other side has what was written. Returns 0, or -EBADF, -EIO
 * and their like, and the number is free in any case but -EBADF. Any thread. */
HD_API int hd_close(int fd);

/* fd was closed, or is about to be, by other means than hd_close: what heddle knows of the number is forgotten, and calls that wait for
 * it answer -EBADF. Returns 0. Any thread. */
HD_API int hd_fd_forget(int fd);

HD_END
#endif
