/* heddle/file.h - files: calls that wait for a disk, a lock or another program, and let other processes run meanwhile.
 *
 * Answers and threads are as in heddle/io.h; hd_read and hd_write there do for files too. What is in the page cache is read at once; the rest
 * is done by the kernel (io_uring) or by a kernel thread of the pool (hd_config.blocking_threads), and only the calling process waits.
 *
 * All are cancellation points, and `until` and a cancel mean two different things for two kinds of calls:
 *
 *   for the disk       hd_pread and the like, hd_fsync, hd_fdatasync, hd_msync, hd_ftruncate, hd_stat and the like, hd_open of a file. They end
 *                      by themselves, and use the caller's memory: so -ETIMEDOUT and -ECANCELED come only before the call has begun; once
 *                      it has, the process waits for its end, and a cancel takes effect at its next cancellation point.
 *   for others         hd_fcntl_lock, hd_flock, hd_tcdrain, hd_open of a FIFO or a device, hd_sendfile and hd_splice. They may wait for ever: the
 *                      kernel thread that waits is interrupted (by a signal of heddle's own), and the call answers -ETIMEDOUT or -ECANCELED.
 *                      Each of them has a thread of its own, beside those of the pool.
 *
 * A time that has passed means, for reading and writing: what needs no wait for the disk, as far as the file system can tell; for a lock: if it is
 * free; for the others: -ETIMEDOUT. -ENOMEM: there is no kernel thread for what might wait for ever, and none can be started; what ends by
 * itself is done on the worker then. */
#ifndef HEDDLE_FILE_H
#define HEDDLE_FILE_H

#include <heddle/base.h>
#include <sys/types.h>

HD_BEGIN

struct flock;
struct iovec;
struct stat;

/* Reads n bytes from this place of the file, whose own position does not matter and stays. Returns n; less at the end of the file, or if an
 * error came when some had been read. Takes no turn: calls of several processes run at the same time. */
HD_API HD_MUST_USE ssize_t hd_pread(int fd, void *data, size_t n, off_t offset, hd_time until);
HD_API HD_MUST_USE ssize_t hd_preadv(int fd, const struct iovec *iov, int n, off_t offset, hd_time until);

/* Writes n bytes to this place of the file. Returns n; less, if an error came when some had been written (the disk is full): the next call
 * tells which. Takes no turn. */
HD_API HD_MUST_USE ssize_t hd_pwrite(int fd, const void *data, size_t n, off_t offset, hd_time until);
HD_API HD_MUST_USE ssize_t hd_pwritev(int fd, const struct iovec *iov, int n, off_t offset, hd_time until);

/* Opens a file, as open(2) and openat(2) with these flags and O_CLOEXEC; `mode` matters only if it is made. Returns the descriptor, or -ENOENT
 * and their like. Of a FIFO it waits for the other side, unless `flags` has O_NONBLOCK. */
HD_API HD_MUST_USE int hd_open(const char *path, int flags, mode_t mode, hd_time until);
HD_API HD_MUST_USE int hd_openat(int dir, const char *path, int flags, mode_t mode, hd_time until);

/* What was written is on the disk when they return 0; else as fsync(2), fdatasync(2), msync(2). */
HD_API HD_MUST_USE int hd_fsync(int fd, hd_time until);
HD_API HD_MUST_USE int hd_fdatasync(int fd, hd_time until);
HD_API HD_MUST_USE int hd_msync(void *start, size_t n, int flags, hd_time until);

/* Gives the file this size, as ftruncate(2). */
HD_API HD_MUST_USE int hd_ftruncate(int fd, off_t size, hd_time until);

/* What the file is, as stat(2) and its relatives tell. */
HD_API HD_MUST_USE int hd_stat(const char *path, struct stat *st, hd_time until);
HD_API HD_MUST_USE int hd_lstat(const char *path, struct stat *st, hd_time until);
HD_API HD_MUST_USE int hd_fstat(int fd, struct stat *st, hd_time until);
HD_API HD_MUST_USE int hd_fstatat(int dir, const char *path, struct stat *st, int flags, hd_time until);

/* Locks or unlocks a part of a file, as fcntl(2) with cmd F_SETLKW or F_OFD_SETLKW: waits until no other lock is in the way. A lock by
 * F_SETLKW belongs to the whole program: all its processes have it together. One by F_OFD_SETLKW belongs to the open file. Returns 0;
 * -ETIMEDOUT or -ECANCELED, and there is no lock; -EINVAL: another cmd; -EDEADLK and their like. */
HD_API HD_MUST_USE int hd_fcntl_lock(int fd, int cmd, struct flock *lock, hd_time until);

/* Locks or unlocks a file, as flock(2): the lock belongs to the open file. Answers as hd_fcntl_lock; -EAGAIN: `operation` has LOCK_NB. */
HD_API HD_MUST_USE int hd_flock(int fd, int operation, hd_time until);

/* Waits until a terminal has put out what was written to it. Returns 0, -ENOTTY, -EIO. */
HD_API HD_MUST_USE int hd_tcdrain(int fd, hd_time until);

/* Sends n bytes of the file `in`, from *offset on, to `out`, in one turn of writing to it; *offset is behind them then. Returns n; less at the
 * end of the file, or as hd_write. -EINVAL: `in` is no file, or offset is NULL. Waits for `out` as hd_write does, and reads the file on a
 * thread of the pool. */
HD_API HD_MUST_USE ssize_t hd_sendfile(int out, int in, off_t *offset, size_t n, hd_time until);

/* Moves at most n bytes between a pipe and something else, or another pipe, as splice(2) with these offsets and flags; SPLICE_F_NONBLOCK means
 * a time that has passed, and answers -EAGAIN. Returns how many, as soon as there are any; 0 at the end. It has the turn of writing
 * to `out`, and none of reading `in`. */
HD_API HD_MUST_USE ssize_t hd_splice(int in, off_t *in_offset, int out, off_t *out_offset, size_t n, unsigned flags,
				     hd_time until);

HD_END
#endif
