/* os/net.c - what a socket is made to be, by the kernel. */
#define _GNU_SOURCE
#include "os/net.h"

#include <errno.h>

static int answer(int result, int saved)
{
	int err = errno;

	errno = saved;
	return result == 0 ? 0 : -err;
}

int hd__os_bind(int fd, const struct sockaddr *address, socklen_t size)
{
	int saved = errno;
	return answer(bind(fd, address, size), saved);
}

int hd__os_listen(int fd, int backlog)
{
	int saved = errno;
	return answer(listen(fd, backlog), saved);
}

int hd__os_set_option(int fd, int level, int option, int value)
{
	int saved = errno;
	return answer(setsockopt(fd, level, option, &value, sizeof value), saved);
}

int hd__os_local_address(int fd, struct sockaddr_storage *address, socklen_t *size)
{
	int saved = errno;

	*size = sizeof *address;
	return answer(getsockname(fd, (struct sockaddr *)address, size), saved);
}

int hd__os_peer_address(int fd, struct sockaddr_storage *address, socklen_t *size)
{
	int saved = errno;

	*size = sizeof *address;
	return answer(getpeername(fd, (struct sockaddr *)address, size), saved);
}
