/* os/net.h - the door to what a socket is made to be: its address, its options. None of these waits. */
#ifndef OS_NET_H
#define OS_NET_H

#include <sys/socket.h>

int hd__os_bind(int fd, const struct sockaddr *address, socklen_t size);
int hd__os_listen(int fd, int backlog);
int hd__os_set_option(int fd, int level, int option, int value);
int hd__os_local_address(int fd, struct sockaddr_storage *address, socklen_t *size);
int hd__os_peer_address(int fd, struct sockaddr_storage *address, socklen_t *size);

#endif
