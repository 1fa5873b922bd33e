/* echo.h - what the echo servers in C and C++ and their client share.
 *
 * The protocol: a server listens on a port of its choice at 127.0.0.1, prints `port N`, and sends back what it reads, on every
 * connection, until it is killed. A message has ECHO_MESSAGE bytes; a server does not know that: it reads up to ECHO_BUFFER bytes at a
 * time. A buffer is larger than a message, so that a read that does not fill it has emptied the socket. */
#ifndef BENCH_ECHO_H
#define BENCH_ECHO_H

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "../harness.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { ECHO_MESSAGE = 64, ECHO_BUFFER = 256, ECHO_BACKLOG = 4096 };

/* As many descriptors as the system lets this program have; those that are missing show at accept or connect. */
static inline void echo_raise_limit(void)
{
	struct rlimit limit;

	getrlimit(RLIMIT_NOFILE, &limit);
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
}

static inline struct sockaddr_in echo_address(int port)
{
	struct sockaddr_in address;

	memset(&address, 0, sizeof address);
	address.sin_family = AF_INET;
	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	address.sin_port = htons((uint16_t)port);
	return address;
}

static inline void echo_say_port(int port)
{
	printf("port %d\n", port);
	fflush(stdout);
}

/* Listens, says where, and returns the socket. */
static inline int echo_listen(void)
{
	struct sockaddr_in address = echo_address(0);
	socklen_t size = sizeof address;
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	echo_raise_limit();
	if (fd < 0 || bind(fd, (struct sockaddr *)&address, size) != 0 || listen(fd, ECHO_BACKLOG) != 0 ||
	    getsockname(fd, (struct sockaddr *)&address, &size) != 0)
		bench_die("listen", errno);
	echo_say_port(ntohs(address.sin_port));
	return fd;
}

#ifdef __cplusplus
}
#endif
#endif
