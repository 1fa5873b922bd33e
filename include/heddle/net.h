/* heddle/net.h - sockets: calls that wait only for their own process.
 *
 * Answers, turns and threads are as in heddle/io.h. Descriptors that these calls make are close-on-exec and have O_NONBLOCK. A program that
 * names addresses includes <sys/socket.h>, whose socklen_t is an unsigned; this header does not, since that has names like send. */
#ifndef HEDDLE_NET_H
#define HEDDLE_NET_H

#include <heddle/base.h>
#include <sys/types.h>

HD_BEGIN

struct msghdr;
struct sockaddr;

/* As socket(2). Does not wait. */
HD_API HD_MUST_USE int hd_socket(int domain, int type, int protocol);
HD_API HD_MUST_USE int hd_socketpair(int domain, int type, int fds[2]);

/* Waits for a connection to the listening socket fd and answers its descriptor; the other side's address goes to *address, if that is not
 * NULL. `flags` as accept4(2). -EMFILE and -ENFILE when there are too many descriptors: the connection waits on. */
HD_API HD_MUST_USE int hd_accept(int fd, struct sockaddr *address, unsigned *size, int flags, hd_time until);

/* Connects fd. Returns 0, -ECONNREFUSED and their like. After -ETIMEDOUT or -ECANCELED the connection may come about still: close fd. */
HD_API HD_MUST_USE int hd_connect(int fd, const struct sockaddr *address, unsigned size, hd_time until);

/* As recv(2), recvfrom(2), recvmsg(2); with MSG_WAITALL all of it, unless the connection ends. */
HD_API HD_MUST_USE ssize_t hd_sock_recv(int fd, void *data, size_t n, int flags, hd_time until);
HD_API HD_MUST_USE ssize_t hd_sock_recvfrom(int fd, void *data, size_t n, int flags, struct sockaddr *address, unsigned *size,
					    hd_time until);
HD_API HD_MUST_USE ssize_t hd_sock_recvmsg(int fd, struct msghdr *message, int flags, hd_time until);

/* As send(2), sendto(2), sendmsg(2), without SIGPIPE; a stream takes all of it, as hd_write. */
HD_API HD_MUST_USE ssize_t hd_sock_send(int fd, const void *data, size_t n, int flags, hd_time until);
HD_API HD_MUST_USE ssize_t hd_sock_sendto(int fd, const void *data, size_t n, int flags, const struct sockaddr *address,
					  unsigned size, hd_time until);
HD_API HD_MUST_USE ssize_t hd_sock_sendmsg(int fd, const struct msghdr *message, int flags, hd_time until);

HD_END
#endif
