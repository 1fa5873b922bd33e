/* heddle/net.h - sockets: calls that wait only for their own process.
 *
 * Answers, turns and threads are as in heddle/io.h. Descriptors that these calls make are close-on-exec and have O_NONBLOCK. A program that
 * names addresses includes <sys/socket.h>, whose socklen_t is an unsigned; this header does not, since that has names like send.
 *
 * Calls that make a socket with an address (hd_tcp_, hd_udp_, hd_unix_) answer its descriptor, or -errno, or what the resolver says (HD_EAI in
 * heddle/name.h). `host` is a name or an address, `port` a number or the name of a service. With numbers, those that listen or bind do not
 * wait. */
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
 * NULL. `flags` as accept4(2), of which it has both in any case. -EMFILE and -ENFILE when there are too many descriptors: the connection waits on. If the
 * listener has no O_NONBLOCK (one that heddle made has), a kernel thread of the pool accepts: some 50 us more. */
HD_API HD_MUST_USE int hd_accept(int fd, struct sockaddr *address, unsigned *size, int flags, hd_time until);

/* Connects fd. Returns 0, -ECONNREFUSED and their like. After -ETIMEDOUT or -ECANCELED the connection may come about still: close fd. A Unix
 * socket whose listener has no room waits for some. */
HD_API HD_MUST_USE int hd_connect(int fd, const struct sockaddr *address, unsigned size, hd_time until);

/* As recv(2), recvfrom(2), recvmsg(2); with MSG_WAITALL all of it, unless the connection ends; MSG_PEEK tells what is there, also with
 * MSG_WAITALL. */
HD_API HD_MUST_USE ssize_t hd_sock_recv(int fd, void *data, size_t n, int flags, hd_time until);
HD_API HD_MUST_USE ssize_t hd_sock_recvfrom(int fd, void *data, size_t n, int flags, struct sockaddr *address, unsigned *size,
					    hd_time until);
HD_API HD_MUST_USE ssize_t hd_sock_recvmsg(int fd, struct msghdr *message, int flags, hd_time until);

/* As send(2), sendto(2), sendmsg(2), without SIGPIPE; a stream takes all of it, as hd_write. */
HD_API HD_MUST_USE ssize_t hd_sock_send(int fd, const void *data, size_t n, int flags, hd_time until);
HD_API HD_MUST_USE ssize_t hd_sock_sendto(int fd, const void *data, size_t n, int flags, const struct sockaddr *address,
					  unsigned size, hd_time until);
HD_API HD_MUST_USE ssize_t hd_sock_sendmsg(int fd, const struct msghdr *message, int flags, hd_time until);

/* A TCP socket that listens, with SO_REUSEADDR: at the first address of `host` where that is possible, or, if it is NULL, at all addresses of
 * the machine, IPv6 and IPv4 alike. Port "0" is one that is free: hd_sock_port tells. A backlog of 0 is the most that the kernel allows. The
 * connections that it accepts have TCP_NODELAY, as those of hd_tcp_connect: what is written is sent, so write whole messages
 * (heddle/stream.h). -EADDRINUSE, -EADDRNOTAVAIL, -EACCES and their like. */
HD_API HD_MUST_USE int hd_tcp_listen(const char *host, const char *port, int backlog, hd_time until);

/* A TCP connection to `host`, NULL: this machine, with TCP_NODELAY. Its addresses are tried one after the other, IPv6 and IPv4 in turn: the next one at
 * once when one has failed, and after 250 ms when it has not been decided. The first connection counts, and the others are closed. Returns the
 * error of the address that failed last: -ECONNREFUSED and its like. After -ETIMEDOUT and -ECANCELED nothing is left open. */
HD_API HD_MUST_USE int hd_tcp_connect(const char *host, const char *port, hd_time until);

/* A UDP socket with an address of its own, as of hd_tcp_listen; one that sends to `host`, and receives only from there. */
HD_API HD_MUST_USE int hd_udp_bind(const char *host, const char *port, hd_time until);
HD_API HD_MUST_USE int hd_udp_connect(const char *host, const char *port, hd_time until);

/* A Unix socket that listens; a connection to one. `path` is a file that is made, and is the program's to remove (-EADDRINUSE: it is there); with a
 * leading '@' it is a name without a file, that is gone with the socket. -ENAMETOOLONG: more than 107 bytes. hd_unix_listen does not wait. */
HD_API HD_MUST_USE int hd_unix_listen(const char *path, int backlog);
HD_API HD_MUST_USE int hd_unix_connect(const char *path, hd_time until);

/* Sends a descriptor through a Unix socket, beside one byte; the other side gets a number of its own for the same open file. Returns 0. */
HD_API HD_MUST_USE int hd_sock_send_fd(int sock, int fd, hd_time until);

/* Receives one, close-on-exec. Returns it; -EPIPE: the other side has closed; -EPROTO: what came was not one descriptor, and whatever came is
 * closed. */
HD_API HD_MUST_USE int hd_sock_recv_fd(int sock, hd_time until);

/* The port of a socket; -EAFNOSUPPORT: it is neither TCP nor UDP. Does not wait. */
HD_API HD_MUST_USE int hd_sock_port(int fd);

/* The address of the other side, as text: "127.0.0.1:80", "[::1]:80", the path of a Unix socket or "" if it has none. Returns 0, or -ENOTCONN and its
 * like, and the text is empty. Does not wait. */
#define HD_ADDRESS_SIZE 128
HD_API int hd_sock_peer(int fd, char text[HD_ADDRESS_SIZE]);

HD_END
#endif
