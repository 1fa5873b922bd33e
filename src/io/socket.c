/* io/socket.c - sockets.
 *
 * Owns:      nothing: each call is an operation of io/op.c, and says how it is attempted. */
#include <errno.h>
#include <heddle/net.h>
#include <heddle/runtime.h>
#include <heddle/time.h>
#include <netinet/in.h>

#include "io/file.h"

#define NO_ROOM (-EXFULL)   /* no call on sockets answers that */
#define PAUSE_MIN HD_US(50) /* between two attempts to reach a Unix socket that has no room */
#define PAUSE_MAX HD_MS(10)

/* Whether a short count of such a socket says that there is no more: TCP. */
static bool is_stream(int domain, int type, int protocol)
{
	return (domain == AF_INET || domain == AF_INET6) && (type & ~(SOCK_NONBLOCK | SOCK_CLOEXEC)) == SOCK_STREAM &&
	       (protocol == 0 || protocol == IPPROTO_TCP);
}

int hd_socket(int domain, int type, int protocol)
{
	int fd = hd__fd_born(hd__os_socket(domain, type, protocol), HD__BY_SOCKET, is_stream(domain, type, protocol));

	hd__pass_by();
	return fd;
}

int hd_socketpair(int domain, int type, int fds[2])
{
	int err = hd__os_socketpair(domain, type, fds);

	for (int i = 0; err == 0 && i < 2; i++)
		hd__fd_born(fds[i], HD__BY_SOCKET, is_stream(domain, type, 0));
	hd__pass_by();
	return err;
}

/* As hd__fd_do. Of a Unix socket that has no room for a connection or a datagram, a sender hears nothing from the kernel: it asks again. */
static ssize_t do_when_there_is_room(struct hd__op *op, hd_time until)
{
	for (hd_time pause = PAUSE_MIN;; pause = 2 * pause < PAUSE_MAX ? 2 * pause : PAUSE_MAX) {
		ssize_t n = hd__fd_do(op, until);
		if (likely(n != NO_ROOM))
			return n;
		if (until <= 0)
			return -ETIMEDOUT;
		hd_time next = hd_after(pause);
		int err = hd_sleep_until(next < until ? next : until);
		if (err != 0)
			return err;
		if (next >= until)
			until = 0; /* a last attempt */
	}
}

/* ---- connections ---- */

static ssize_t accept_one(struct hd__op *op)
{
	return hd__os_accept(op->fd, op->address, op->size, op->flags);
}

/* accept(2) can be told not to wait only by O_NONBLOCK, which belongs to all programs that share the listener: one that has it not is waited for, and
 * then a thread accepts, since another program may be faster. */
static ssize_t try_accept(struct hd__op *op, enum hd__how how)
{
	bool direct = (op->f != NULL && op->f->born) || hd__os_is_nonblocking(op->fd);

	(void)how;
	return direct ? accept_one(op) : hd__op_on_thread(op, accept_one);
}

int hd_accept(int fd, struct sockaddr *address, unsigned *size, int flags, hd_time until)
{
	struct hd__op op = {
		.attempt = try_accept, .fd = fd, .way = HD__READING, .flags = flags, .address = address, .size = size
	};
	ssize_t born;

	if (address != NULL && size == NULL)
		return -EINVAL;
	do
		born = hd__fd_do(&op, until);
	while (born == -ECONNABORTED || born == -EPROTO); /* that one was gone before it was here */
	return born < 0 ? (int)born : hd__fd_born_of((int)born, fd);
}

/* The first attempt begins, the others ask how it went. -EAGAIN is something else: a Unix socket that listens has no room, and no connection is under
 * way; the kernel will not say when there is room. */
static ssize_t try_connect(struct hd__op *op, enum hd__how how)
{
	(void)how;
	if (op->flags++ > 0)
		return hd__os_connected(op->fd);
	int err = hd__os_connect(op->fd, op->address, *(socklen_t *)op->size);
	if (err == -EAGAIN) {
		op->flags = 0;
		return NO_ROOM;
	}
	return err == -EINPROGRESS || err == -EALREADY || err == -EINTR ? -EAGAIN
									: err; /* -EALREADY: an earlier call began it */
}

int hd_connect(int fd, const struct sockaddr *address, unsigned size, hd_time until)
{
	struct hd__op op = {
		.attempt = try_connect, .fd = fd, .way = HD__WRITING, .address = (void *)(uintptr_t)address, .size = &size
	};

	return (int)do_when_there_is_room(&op, until);
}

/* ---- messages ---- */

/* Of a stream, what has not been moved yet; what goes beside the bytes has gone with the first of them. */
static struct msghdr remaining(struct hd__op *op, struct iovec parts[HD__PARTS])
{
	struct msghdr m = *op->message;

	if (op->wanted != op->all) {
		m = (struct msghdr){ .msg_iov = parts };
		m.msg_iovlen = (size_t)hd__op_rest(op, parts);
	}
	return m;
}

static ssize_t try_recvmsg(struct hd__op *op, enum hd__how how)
{
	struct iovec parts[HD__PARTS];
	struct msghdr m = remaining(op, parts);
	ssize_t n = hd__os_recvmsg(op->fd, &m, op->flags);

	(void)how;
	if (n >= 0 && op->wanted == op->all) {
		op->message->msg_namelen = m.msg_namelen;
		op->message->msg_controllen = m.msg_controllen;
		op->message->msg_flags = m.msg_flags;
	}
	return n;
}

static ssize_t try_sendmsg(struct hd__op *op, enum hd__how how)
{
	struct iovec parts[HD__PARTS];
	struct msghdr m = remaining(op, parts);
	struct pollfd self = { .fd = op->fd, .events = POLLOUT };
	ssize_t n = hd__os_sendmsg(op->fd, &m, op->flags);

	(void)how;
	/* If the socket could send, it is the receiver that is full. Each attempt would make an edge, and the wait be a loop. */
	return n == -EAGAIN && m.msg_name != NULL && hd__os_poll(&self, 1, 0) > 0 ? NO_ROOM : n;
}

#define ASIDE (MSG_PEEK | MSG_OOB | MSG_ERRQUEUE) /* with these, a call does not take the next bytes */

static ssize_t exchange(int fd, enum hd__way way, struct msghdr *message, int flags, hd_time until)
{
	ssize_t all = hd__iov_sum(message->msg_iov, message->msg_iovlen);

	if (all < 0)
		return all;
	struct hd__op op = { .attempt = way == HD__READING ? try_recvmsg : try_sendmsg,
			     .fd = fd,
			     .way = way,
			     .whole = way == HD__WRITING || (flags & MSG_WAITALL && !(flags & ASIDE) && hd__os_is_stream(fd)),
			     .by_count = !(flags & ASIDE),
			     .apart = flags & (MSG_OOB | MSG_ERRQUEUE), /* which have queues of their own */
			     .all = (size_t)all,
			     .wanted = (size_t)all,
			     .iov = message->msg_iov,
			     .n = (int)message->msg_iovlen,
			     .message = message,
			     .flags = flags };
	ssize_t n = do_when_there_is_room(&op, flags & MSG_DONTWAIT ? 0 : until);
	return n == -ETIMEDOUT && flags & MSG_DONTWAIT ? -EAGAIN : n;
}

ssize_t hd_sock_recvmsg(int fd, struct msghdr *message, int flags, hd_time until)
{
	return exchange(fd, HD__READING, message, flags, until);
}

ssize_t hd_sock_recvfrom(int fd, void *data, size_t n, int flags, struct sockaddr *address, unsigned *size, hd_time until)
{
	struct iovec part = { data, n };
	struct msghdr message = {
		.msg_name = address, .msg_namelen = size != NULL ? *size : 0, .msg_iov = &part, .msg_iovlen = 1
	};

	if (address != NULL && size == NULL)
		return -EINVAL;
	ssize_t got = exchange(fd, HD__READING, &message, flags, until);
	if (got >= 0 && address != NULL)
		*size = message.msg_namelen;
	return got;
}

ssize_t hd_sock_recv(int fd, void *data, size_t n, int flags, hd_time until)
{
	return hd_sock_recvfrom(fd, data, n, flags, NULL, NULL, until);
}

ssize_t hd_sock_sendmsg(int fd, const struct msghdr *message, int flags, hd_time until)
{
	struct msghdr copy = *message;
	return exchange(fd, HD__WRITING, &copy, flags, until);
}

ssize_t hd_sock_sendto(int fd, const void *data, size_t n, int flags, const struct sockaddr *address, unsigned size,
		       hd_time until)
{
	struct iovec part = { (void *)(uintptr_t)data, n };
	struct msghdr message = {
		.msg_name = (void *)(uintptr_t)address, .msg_namelen = size, .msg_iov = &part, .msg_iovlen = 1
	};

	return exchange(fd, HD__WRITING, &message, flags, until);
}

ssize_t hd_sock_send(int fd, const void *data, size_t n, int flags, hd_time until)
{
	return hd_sock_sendto(fd, data, n, flags, NULL, 0, until);
}
