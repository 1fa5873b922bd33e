/* os/io.c - descriptors, as the kernel has them. */
#define _GNU_SOURCE
#include "os/io.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "arch/carry.h"
#include "arch/valgrind.h"
#include "base/atomic.h"
#include "call.h"
#include "os/clock.h"
#include "os/fault.h"

#define BELL UINT64_MAX
#define BATCH 128

/* The answer of a system call, in heddle's way. */
static inline ssize_t answer(ssize_t result, int saved)
{
	if (likely(result >= 0))
		return result;
	int err = errno;
	errno = saved;
	return -(err == EWOULDBLOCK ? EAGAIN : err);
}

int hd__os_nature(int fd, struct hd__nature *nature)
{
	int saved = errno, domain = 0, type = 0, protocol = 0;
	socklen_t size = sizeof domain;
	struct stat st;

	*nature = (struct hd__nature){ .how = HD__BY_FILE };
	if (fstat(fd, &st) != 0)
		return (int)answer(-1, saved);
	if (S_ISSOCK(st.st_mode)) {
		nature->how = HD__BY_SOCKET;
		if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &size) == 0 &&
		    getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) == 0 &&
		    getsockopt(fd, SOL_SOCKET, SO_PROTOCOL, &protocol, &size) == 0) /* SCTP tells one message at a time */
			nature->stream =
				type == SOCK_STREAM && (domain == AF_INET || domain == AF_INET6) && protocol == IPPROTO_TCP;
	} else if (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode) && !S_ISBLK(st.st_mode)) {
		nature->how = HD__BY_NOWAIT;
		nature->stream = S_ISFIFO(st.st_mode) && !(fcntl(fd, F_GETFL) & O_DIRECT);
	} else {
		int flags = fcntl(fd, F_GETFL);
		nature->reads_wait = flags & O_DIRECT;
		nature->writes_wait = flags & (O_DIRECT | O_APPEND);
	}
	errno = saved;
	return 0;
}

bool hd__os_is_nonblocking(int fd)
{
	int saved = errno, flags = fcntl(fd, F_GETFL);

	errno = saved;
	return flags >= 0 && flags & O_NONBLOCK;
}

bool hd__os_is_stream(int fd)
{
	int saved = errno, type = 0;
	socklen_t size = sizeof type;

	if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) != 0)
		errno = saved;
	return type == SOCK_STREAM;
}

bool hd__os_is_ready(int fd, bool writes)
{
	int saved = errno;
	struct pollfd p = { .fd = fd, .events = writes ? POLLOUT : POLLIN };
	bool ready = poll(&p, 1, 0) > 0;

	errno = saved;
	return ready;
}

/* The C library's recv and send are points where pthread_cancel may strike, and prepare for that: some 40 ns each time. No thread of ours is
 * cancelled so, and so the kernel is called directly; but sanitizers must see these calls. Both answer in heddle's way. */
static ssize_t receive(int fd, void *data, size_t n)
{
	if (unlikely(hd__sanitized)) {
		int saved = errno;
		return answer(recv(fd, data, n, MSG_DONTWAIT), saved);
	}
	return hd__arch_call_kernel(SYS_recvfrom, fd, (long)data, (long)n, MSG_DONTWAIT, 0, 0);
}

static ssize_t transmit(int fd, const void *data, size_t n)
{
	if (unlikely(hd__sanitized)) {
		int saved = errno;
		return answer(send(fd, data, n, MSG_DONTWAIT | MSG_NOSIGNAL), saved);
	}
	return hd__arch_call_kernel(SYS_sendto, fd, (long)data, (long)n, MSG_DONTWAIT | MSG_NOSIGNAL, 0, 0);
}

ssize_t hd__os_read(int fd, enum hd__how how, const struct iovec *iov, int n)
{
	if (unlikely(hd__fault_strikes(HD__FAULT_EINTR)))
		return -EINTR;
	if (unlikely(hd__fault_strikes(HD__FAULT_SHORT)) && iov->iov_len > 1)
		return hd__os_read(fd, how, &(struct iovec){ iov->iov_base, 1 }, 1);
	if (likely(how == HD__BY_SOCKET && n == 1))
		return receive(fd, iov->iov_base, iov->iov_len);
	int saved = errno;
	if (how == HD__BY_SOCKET) {
		struct msghdr message = { .msg_iov = (struct iovec *)iov, .msg_iovlen = (size_t)n };
		return answer(recvmsg(fd, &message, MSG_DONTWAIT), saved);
	}
	return answer(how == HD__BY_NOWAIT ? preadv2(fd, iov, n, -1, RWF_NOWAIT) : readv(fd, iov, n), saved);
}

ssize_t hd__os_write(int fd, enum hd__how how, const struct iovec *iov, int n)
{
	if (unlikely(hd__fault_strikes(HD__FAULT_EINTR)))
		return -EINTR;
	if (unlikely(hd__fault_strikes(HD__FAULT_SHORT)) && iov->iov_len > 1)
		return hd__os_write(fd, how, &(struct iovec){ iov->iov_base, 1 }, 1);
	if (likely(how == HD__BY_SOCKET && n == 1))
		return transmit(fd, iov->iov_base, iov->iov_len);
	int saved = errno;
	if (how == HD__BY_SOCKET) {
		struct msghdr message = { .msg_iov = (struct iovec *)iov, .msg_iovlen = (size_t)n };
		return answer(sendmsg(fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL), saved);
	}
	return answer(how == HD__BY_NOWAIT ? pwritev2(fd, iov, n, -1, RWF_NOWAIT) : writev(fd, iov, n), saved);
}

ssize_t hd__os_recvmsg(int fd, struct msghdr *message, int flags)
{
	int saved = errno;

	if (unlikely(hd__fault_strikes(HD__FAULT_EINTR)))
		return -EINTR;
	return answer(recvmsg(fd, message, flags | MSG_DONTWAIT), saved);
}

ssize_t hd__os_sendmsg(int fd, const struct msghdr *message, int flags)
{
	int saved = errno;

	if (unlikely(hd__fault_strikes(HD__FAULT_EINTR)))
		return -EINTR;
	return answer(sendmsg(fd, message, flags | MSG_DONTWAIT | MSG_NOSIGNAL), saved);
}

int hd__os_accept(int fd, struct sockaddr *address, socklen_t *size, int flags)
{
	int saved = errno;

	if (unlikely(hd__fault_strikes(HD__FAULT_EINTR)))
		return -EINTR;
	return (int)answer(accept4(fd, address, size, flags | SOCK_NONBLOCK | SOCK_CLOEXEC), saved);
}

/* connect(2) can be told not to wait only by O_NONBLOCK, which is put back at once. A socket that is being connected is hardly shared. */
int hd__os_connect(int fd, const struct sockaddr *address, socklen_t size)
{
	int saved = errno, flags = fcntl(fd, F_GETFL);
	bool set = flags >= 0 && !(flags & O_NONBLOCK) && fcntl(fd, F_SETFL, flags | O_NONBLOCK) == 0;
	int err = (int)answer(connect(fd, address, size), saved);

	if (set)
		fcntl(fd, F_SETFL, flags);
	errno = saved;
	return err;
}

int hd__os_connected(int fd)
{
	int saved = errno, err = 0;
	socklen_t size = sizeof err;

	struct sockaddr_storage peer;
	socklen_t peer_size = sizeof peer;

	if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &size) != 0)
		return (int)answer(-1, saved);
	if (err != 0)
		return -err;
	/* No error says nothing: it may be under way still. Only then has it no peer. */
	err = (int)answer(getpeername(fd, (struct sockaddr *)&peer, &peer_size), saved);
	return err == -ENOTCONN ? -EAGAIN : err;
}

int hd__os_pipe(int fds[2])
{
	int saved = errno;
	return (int)answer(pipe2(fds, O_NONBLOCK | O_CLOEXEC), saved);
}

int hd__os_socket(int domain, int type, int protocol)
{
	int saved = errno;
	return (int)answer(socket(domain, type | SOCK_NONBLOCK | SOCK_CLOEXEC, protocol), saved);
}

int hd__os_socketpair(int domain, int type, int fds[2])
{
	int saved = errno;
	return (int)answer(socketpair(domain, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds), saved);
}

/* EINTR is no reason to try again: the descriptor is gone on Linux. */
int hd__os_close(int fd)
{
	int saved = errno, err = (int)answer(close(fd), saved);
	return err == -EINTR ? 0 : err;
}

/* The distance from now, as poll and epoll want it. */
static struct timespec distance(hd_time until)
{
	hd_time ns = until > 0 ? until - hd__os_clock.now(&hd__os_clock) : 0;

	if (ns < 0)
		ns = 0;
	return (struct timespec){ ns / HD_SEC(1), ns % HD_SEC(1) };
}

int hd__os_poll(struct pollfd *fds, unsigned n, hd_time until)
{
	int saved = errno;
	struct timespec t = until == HD_FOREVER ? (struct timespec){ 0 } : distance(until);

	return (int)answer(ppoll(fds, n, until == HD_FOREVER ? NULL : &t, NULL), saved);
}

/* ---- watching many ---- */

#define ABOVE 128 /* numbers below it are left to the program, where that is possible */

/* A descriptor of heddle's own gets a number that the program has hardly had: a call that comes too late, with the number of a closed descriptor, shall not
 * meet it. */
static int out_of_the_way(int fd)
{
	int high = fd >= 0 ? fcntl(fd, F_DUPFD_CLOEXEC, ABOVE) : -1;

	if (high < 0)
		return fd;
	close(fd);
	return high;
}

int hd__os_dup_if_lingers(int fd)
{
	int saved = errno;
	struct linger linger;
	socklen_t size = sizeof linger;
	bool lingers = getsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, &size) == 0 && linger.l_onoff && linger.l_linger > 0;
	int copy = lingers ? fcntl(fd, F_DUPFD_CLOEXEC, ABOVE) : -1;

	errno = saved;
	return copy;
}

int hd__os_outside_init(struct hd__outside *o)
{
	int saved = errno;
	struct epoll_event event = { .events = EPOLLIN | EPOLLET, .data.u64 = BELL };

	o->bell = -1;
	o->epoll = hd__fault_strikes(HD__FAULT_FD) ? (errno = EMFILE, -1) : out_of_the_way(epoll_create1(EPOLL_CLOEXEC));
	if (o->epoll >= 0)
		o->bell = out_of_the_way(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
	if (o->bell >= 0 && epoll_ctl(o->epoll, EPOLL_CTL_ADD, o->bell, &event) == 0)
		return 0;
	int err = (int)answer(-1, saved);
	hd__os_outside_fini(o);
	return err;
}

void hd__os_outside_fini(struct hd__outside *o)
{
	int saved = errno;

	if (o->bell >= 0)
		syscall(SYS_close, o->bell);
	if (o->epoll >= 0)
		syscall(SYS_close, o->epoll);
	errno = saved;
}

int hd__os_outside_add(struct hd__outside *o, int fd, uint64_t whose)
{
	int saved = errno;
	struct epoll_event event = { .events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLPRI | EPOLLET, .data.u64 = whose };

	return (int)answer(epoll_ctl(o->epoll, EPOLL_CTL_ADD, fd, &event), saved);
}

void hd__os_outside_remove(struct hd__outside *o, int fd)
{
	int saved = errno;
	struct epoll_event event = { 0 };

	epoll_ctl(o->epoll, EPOLL_CTL_DEL, fd, &event);
	errno = saved;
}

/* By whole milliseconds where the kernel, or a filter of system calls, does not know nanoseconds. */
static int sleep_in(int epoll, struct epoll_event *events, int n, hd_time until)
{
	static bool no_pwait2;
	struct timespec t = { 0 };

	if (until <= 0)
		return epoll_wait(epoll, events, n, 0);
	if (until == HD_FOREVER)
		return epoll_wait(epoll, events, n, -1);
	t = distance(until);
	if (!ld_rlx(&no_pwait2) && !hd__under_valgrind()) {
		int got = (int)syscall(SYS_epoll_pwait2, epoll, events, n, &t, NULL, 0);
		if (got >= 0 || (errno != ENOSYS && errno != EPERM))
			return got;
		st_rlx(&no_pwait2, true);
	}
	int64_t ms = t.tv_sec > 1000000 ? 1000000000 : t.tv_sec * 1000 + (t.tv_nsec + 999999) / 1000000;
	return epoll_wait(epoll, events, n, (int)ms);
}

int hd__os_outside_wait(struct hd__outside *o, hd_time until, struct hd__happening *happened, int n)
{
	struct epoll_event events[BATCH];
	int saved = errno, count = 0;
	int got = sleep_in(o->epoll, events, n < BATCH ? n : BATCH, until);

	errno = saved;
	for (int i = 0; i < got; i++) {
		uint32_t e = events[i].events;
		if (events[i].data.u64 == BELL) /* it rings on every change, and is never emptied */
			continue;
		uint32_t hung = e & (EPOLLRDHUP | EPOLLHUP | EPOLLERR | EPOLLPRI) ? HD__HUNG_UP : 0;
		happened[count].what = (e & EPOLLIN || hung ? HD__CAN_READ : 0) |
				       (e & (EPOLLOUT | EPOLLHUP | EPOLLERR) ? HD__CAN_WRITE : 0) | hung;
		happened[count++].whose = events[i].data.u64;
	}
	return count;
}

void hd__os_outside_ring(struct hd__outside *o)
{
	int saved = errno;
	uint64_t one = 1;
	ssize_t written =
		syscall(SYS_write, o->bell, &one, sizeof one); /* directly: TSan does not see what orders it before the end */

	(void)written; /* it cannot fail but for 2^64 rings */
	errno = saved;
}
