/* os/file.c - files, as the kernel has them. */
#define _GNU_SOURCE
#include "os/file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

#include "base/atomic.h"
#include "os/fault.h"

/* The answer of a system call, in heddle's way. One that succeeds may have changed errno too: the C library has a substitute for preadv2, where the
 * kernel does not know it, and tries that call first. */
static ssize_t answer(ssize_t result, int saved)
{
	int err = errno;

	errno = saved;
	return likely(result >= 0) ? result : -(err == EWOULDBLOCK ? EAGAIN : err);
}

static ssize_t move(int fd, bool writes, const struct iovec *iov, int n, int64_t offset, int flags)
{
	int saved = errno;
	struct iovec one = { 0 };

	if (unlikely(hd__fault_strikes(HD__FAULT_EINTR)))
		return -EINTR;
	if (n > 0 && iov->iov_len > 1 && unlikely(hd__fault_strikes(HD__FAULT_SHORT))) {
		one = (struct iovec){ iov->iov_base, 1 };
		iov = &one;
		n = 1;
	}
	return answer(writes ? pwritev2(fd, iov, n, offset, flags) : preadv2(fd, iov, n, offset, flags), saved);
}

ssize_t hd__os_file_try(int fd, bool writes, const struct iovec *iov, int n, int64_t offset)
{
	ssize_t moved = move(fd, writes, iov, n, offset, RWF_NOWAIT);
	return moved == -ENOSYS ? -EOPNOTSUPP : moved;
}

ssize_t hd__os_file_move(int fd, bool writes, const struct iovec *iov, int n, int64_t offset)
{
	return move(fd, writes, iov, n, offset, 0);
}

int hd__os_openat(int dir, const char *path, int flags, unsigned mode)
{
	int saved = errno;

	if (unlikely(hd__fault_strikes(HD__FAULT_EINTR)))
		return -EINTR;
	return (int)answer(openat(dir, path, flags | O_CLOEXEC, (mode_t)mode), saved);
}

int hd__os_fsync(int fd, bool data_only)
{
	int saved = errno;

	if (unlikely(hd__fault_strikes(HD__FAULT_EINTR)))
		return -EINTR;
	return (int)answer(data_only ? fdatasync(fd) : fsync(fd), saved);
}

int hd__os_msync(void *start, size_t n, int flags)
{
	int saved = errno;
	return (int)answer(msync(start, n, flags), saved);
}

int hd__os_ftruncate(int fd, int64_t size)
{
	int saved = errno;
	return (int)answer(ftruncate(fd, size), saved);
}

int hd__os_fstatat(int dir, const char *path, struct stat *st, int flags)
{
	int saved = errno;
	return (int)answer(fstatat(dir, path, st, flags), saved);
}

bool hd__os_may_open_for_ever(int dir, const char *path, int flags)
{
	int saved = errno;
	struct stat st;
	bool found = fstatat(dir, path, &st, flags & O_NOFOLLOW ? AT_SYMLINK_NOFOLLOW : 0) == 0;

	errno = saved;
	return found && !(flags & (O_NONBLOCK | O_PATH)) && (S_ISFIFO(st.st_mode) || S_ISCHR(st.st_mode));
}

int hd__os_fcntl_lock(int fd, int cmd, struct flock *lock, bool waits)
{
	int saved = errno;

	if (cmd != F_SETLKW && cmd != F_OFD_SETLKW)
		return -EINVAL;
	if (!waits)
		cmd = cmd == F_SETLKW ? F_SETLK : F_OFD_SETLK;
	int err = (int)answer(fcntl(fd, cmd, lock), saved);
	return !waits && err == -EACCES ? -EAGAIN : err;
}

int hd__os_flock(int fd, int operation, bool waits)
{
	int saved = errno;
	return (int)answer(flock(fd, waits ? operation : operation | LOCK_NB), saved);
}

int hd__os_tcdrain(int fd)
{
	int saved = errno;
	return (int)answer(tcdrain(fd), saved);
}

ssize_t hd__os_sendfile(int out, int in, int64_t *offset, size_t n)
{
	int saved = errno;
	off_t at = (off_t)*offset;
	ssize_t moved = answer(sendfile(out, in, &at, n), saved);

	*offset = at;
	return moved;
}

ssize_t hd__os_splice(int in, int64_t *in_offset, int out, int64_t *out_offset, size_t n, unsigned flags)
{
	int saved = errno;
	return answer(splice(in, in_offset, out, out_offset, n, flags), saved);
}
