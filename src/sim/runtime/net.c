/* sim/runtime/net.c - simulated sockets have no addresses: they come in pairs. Takes the place of os/net.c. */
#include "os/net.h"

#include <errno.h>

int hd__os_bind(int fd, const struct sockaddr *address, socklen_t size)
{
	(void)fd, (void)address, (void)size;
	return -ENOSYS;
}

int hd__os_listen(int fd, int backlog)
{
	(void)fd, (void)backlog;
	return -ENOSYS;
}

int hd__os_set_option(int fd, int level, int option, int value)
{
	(void)fd, (void)level, (void)option, (void)value;
	return -ENOSYS;
}

int hd__os_local_address(int fd, struct sockaddr_storage *address, socklen_t *size)
{
	(void)fd, (void)address, (void)size;
	return -ENOSYS;
}

int hd__os_peer_address(int fd, struct sockaddr_storage *address, socklen_t *size)
{
	(void)fd, (void)address, (void)size;
	return -ENOSYS;
}
