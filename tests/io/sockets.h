/* io/sockets.h - what the tests of sockets share: descriptors that are counted, addresses of this machine. */
#ifndef TESTS_IO_SOCKETS_H
#define TESTS_IO_SOCKETS_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <arpa/inet.h>
#include <dirent.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "sync/common.h"

#define SKIP_IF_SIMULATED()                                                                                                    \
	do                                                                                                                     \
		if (hd_is_simulated())                                                                                         \
			SKIP("simulated sockets have no addresses");                                                           \
	while (0)

/* How many descriptors the program has. */
static inline int count_fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int n = 0;

	CHECK(dir != NULL);
	while (readdir(dir) != NULL)
		n++;
	closedir(dir);
	return n - 3; /* "." and "..", and that of the directory itself */
}

/* Descriptors of the poller come when they are first needed: a wait in each worker makes them. */
static inline void *wait_for_fd(void *arg)
{
	int pair[2];
	char c;

	CHECK_EQ(hd_pipe(pair), 0);
	CHECK_EQ(hd_read(pair[0], &c, 1, hd_after(HD_MS(1))), -ETIMEDOUT);
	CHECK_EQ(hd_close(pair[0]), 0);
	CHECK_EQ(hd_close(pair[1]), 0);
	return arg;
}

static inline int checked(int fd)
{
	CHECK(fd >= 0);
	return fd;
}

/* A listening socket of this machine, and the text of its port. */
static inline int listener_at(const char *host, int backlog, char port[16])
{
	int fd = checked(hd_tcp_listen(host, "0", backlog, HD_FOREVER));

	snprintf(port, 16, "%d", checked(hd_sock_port(fd)));
	return fd;
}

/* A pair of connected TCP sockets: pair[0] was accepted. */
static inline void tcp_pair(int pair[2])
{
	char port[16];
	int listener = listener_at("127.0.0.1", 1, port);

	pair[1] = checked(hd_tcp_connect("127.0.0.1", port, HD_FOREVER));
	pair[0] = checked(hd_accept(listener, NULL, NULL, 0, HD_FOREVER));
	CHECK_EQ(hd_close(listener), 0);
}

static inline bool has_ipv6(void)
{
	int fd = hd_tcp_listen("::1", "0", 1, HD_FOREVER);

	if (fd >= 0)
		CHECK_EQ(hd_close(fd), 0);
	return fd >= 0;
}

/* An address where a connection is never decided: the queue of a listener that accepts nothing is full. */
struct silent {
	int listener, fillers[8];
	struct sockaddr_in address;
};

static inline void silent_open(struct silent *s)
{
	char port[16];

	s->listener = listener_at("127.0.0.1", 1, port);
	s->address = (struct sockaddr_in){ .sin_family = AF_INET,
					   .sin_port = htons((uint16_t)atoi(port)),
					   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	for (int i = 0; i < 8; i++) { /* until the queue is full, and the kernel answers no more */
		s->fillers[i] = checked(hd_socket(AF_INET, SOCK_STREAM, 0));
		int err = hd_connect(s->fillers[i], (struct sockaddr *)&s->address, sizeof s->address, hd_after(HD_MS(20)));
		CHECK(err == 0 || err == -ETIMEDOUT);
	}
}

static inline void silent_close(struct silent *s)
{
	for (int i = 0; i < 8; i++)
		CHECK_EQ(hd_close(s->fillers[i]), 0);
	CHECK_EQ(hd_close(s->listener), 0);
}

static inline hd_pid await_why(hd_pid pid, enum hd_wait why)
{
	while (info_on(pid).why != why)
		CHECK_EQ(hd_sleep(HD_US(50)), 0);
	return pid;
}

static inline long result_of(hd_pid pid)
{
	void *result = NULL;

	CHECK_EQ(hd_join(pid, &result, HD_FOREVER), 0);
	return (long)result;
}

#endif
