/* os/file.h - the door to files: system calls that wait for a disk, or for as long as another program likes.
 *
 * All but hd__os_file_try are for a thread that may block. Each answers a count, a descriptor or 0, or -errno; errno is left alone. The
 * simulated runtime has a file of its own behind the same door (sim/runtime/file.c), and refuses the rest. */
#ifndef OS_FILE_H
#define OS_FILE_H

#include <heddle/base.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "os/io.h"

struct flock;
struct stat;

/* Reads or writes without waiting for the disk; offset -1 is where the open file is. May move less than there is. -EAGAIN: it would have
 * to wait. -EOPNOTSUPP: the file system cannot tell. */
ssize_t hd__os_file_try(int fd, bool writes, const struct iovec *iov, int n, int64_t offset);
ssize_t hd__os_file_move(int fd, bool writes, const struct iovec *iov, int n, int64_t offset);

int hd__os_openat(int dir, const char *path, int flags, unsigned mode); /* O_CLOEXEC is added */
int hd__os_fsync(int fd, bool data_only);
int hd__os_msync(void *start, size_t n, int flags);
int hd__os_ftruncate(int fd, int64_t size);
int hd__os_fstatat(int dir, const char *path, struct stat *st, int flags);
bool hd__os_may_open_for_ever(int dir, const char *path, int flags); /* a FIFO, or a device */

/* `waits`: until the lock can be had. */
int hd__os_fcntl_lock(int fd, int cmd, struct flock *lock, bool waits); /* -EINVAL: cmd is not F_SETLKW or F_OFD_SETLKW */
int hd__os_flock(int fd, int operation, bool waits);
int hd__os_tcdrain(int fd);

/* -EAGAIN: one of the two has O_NONBLOCK, and is not ready. */
ssize_t hd__os_sendfile(int out, int in, int64_t *offset, size_t n);
ssize_t hd__os_splice(int in, int64_t *in_offset, int out, int64_t *out_offset, size_t n, unsigned flags);

#endif
