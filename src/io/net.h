/* io/net.h - addresses, as those calls need them that make whole sockets. */
#ifndef IO_NET_H
#define IO_NET_H

#include <netdb.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "os/io.h"

/* A socket that is connected to one of these addresses: see io/connect.c. The list's order is changed. Returns its descriptor, -errno. */
int hd__connect_any(struct addrinfo *list, hd_time until);

/* The address of a Unix socket: a path, or with a leading '@' a name without a file. Returns its size; -ENAMETOOLONG, -EINVAL. */
int hd__unix_address(struct sockaddr_un *address, const char *path);

#endif
