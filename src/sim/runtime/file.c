/* sim/runtime/file.c - what a simulated file cannot do: in the place of os/file.c, but for reading and writing, which are in io.c. */
#include "os/file.h"

#include <errno.h>

#include "base/point.h"

static int refuse(void)
{
	hd__point();
	return -ENOSYS;
}

int hd__os_fsync(int fd, bool data_only)
{
	(void)fd, (void)data_only;
	return refuse();
}

int hd__os_msync(void *start, size_t n, int flags)
{
	(void)start, (void)n, (void)flags;
	return refuse();
}

int hd__os_ftruncate(int fd, int64_t size)
{
	(void)fd, (void)size;
	return refuse();
}

int hd__os_fstatat(int dir, const char *path, struct stat *st, int flags)
{
	(void)dir, (void)path, (void)st, (void)flags;
	return refuse();
}

bool hd__os_may_open_for_ever(int dir, const char *path, int flags)
{
	(void)dir, (void)path, (void)flags;
	return false;
}

int hd__os_fcntl_lock(int fd, int cmd, struct flock *lock, bool waits)
{
	(void)fd, (void)cmd, (void)lock, (void)waits;
	return refuse();
}

int hd__os_flock(int fd, int operation, bool waits)
{
	(void)fd, (void)operation, (void)waits;
	return refuse();
}

int hd__os_tcdrain(int fd)
{
	(void)fd;
	return refuse();
}

ssize_t hd__os_sendfile(int out, int in, int64_t *offset, size_t n)
{
	(void)out, (void)in, (void)offset, (void)n;
	return refuse();
}

ssize_t hd__os_splice(int in, int64_t *in_offset, int out, int64_t *out_offset, size_t n, unsigned flags)
{
	(void)in, (void)in_offset, (void)out, (void)out_offset, (void)n, (void)flags;
	return refuse();
}
