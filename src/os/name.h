/* os/name.h - the door to the C library's resolver, which waits on the calling thread.
 *
 * Each answers 0, -errno, or HD_EAI of what the resolver says; errno is left alone. The simulated runtime has a resolver of its own
 * (sim/runtime/name.c). */
#ifndef OS_NAME_H
#define OS_NAME_H

#include <heddle/name.h>
#include <netdb.h>
#include <sys/socket.h>

int hd__os_getaddrinfo(const char *node, const char *service, const struct addrinfo *hints, struct addrinfo **result);
int hd__os_getnameinfo(const struct sockaddr *address, socklen_t size, char *host, socklen_t host_size, char *service,
		       socklen_t service_size, int flags);

#endif
