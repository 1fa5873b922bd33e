/* os/io.h - the door to descriptors: system calls that do not wait.
 *
 * Each answers a count, a descriptor or 0, or -errno; errno is left alone. The simulated runtime has descriptors of its own behind the
 * same door (sim/runtime/io.c). */
#ifndef OS_IO_H
#define OS_IO_H

#include <heddle/base.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "os/outside.h"

/* How a descriptor is read and written without waiting, whatever its O_NONBLOCK says: that belongs to all programs that share the open
 * file. */
enum hd__how {
	HD__HOW_UNKNOWN = 0,
	HD__BY_SOCKET,	 /* MSG_DONTWAIT */
	HD__BY_NOWAIT,	 /* RWF_NOWAIT; pipes, and most devices on newer kernels */
	HD__BY_NONBLOCK, /* it has O_NONBLOCK, and knows no RWF_NOWAIT */
	HD__BY_THREAD,	 /* it knows neither: when it is ready, a thread of the pool does it, and may have to wait */
	HD__BY_FILE,	 /* it is always ready, and may wait for the disk: regular files, directories, disks (os/file.h) */
	HD__BELL	 /* not at all: it is heddle's own, a set or the bell of one, or of a worker's ring (io/ring.h) */
};

struct hd__nature {
	enum hd__how how;
	bool stream; /* a count that is short says that there is no more: TCP and pipes */
	/* By file: RWF_NOWAIT does not mean what we need. A direct transfer waits for the disk nevertheless; a part of what is appended would
	 * let another program's be in the middle. */
	bool reads_wait, writes_wait;
};

int hd__os_nature(int fd, struct hd__nature *nature); /* HD__BY_NOWAIT, if it may know that */
bool hd__os_is_nonblocking(int fd);
bool hd__os_is_ready(int fd, bool writes); /* it would not have to wait now, unless another program is faster */
bool hd__os_is_stream(int fd);		   /* a socket without bounds between messages */

/* -EAGAIN when it would have to wait; -EOPNOTSUPP when it does not know RWF_NOWAIT. HD__BY_THREAD: it waits. */
ssize_t hd__os_read(int fd, enum hd__how how, const struct iovec *iov, int n);
ssize_t hd__os_write(int fd, enum hd__how how, const struct iovec *iov, int n);
ssize_t hd__os_recvmsg(int fd, struct msghdr *message, int flags);
ssize_t hd__os_sendmsg(int fd, const struct msghdr *message, int flags);
int hd__os_accept(int fd, struct sockaddr *address, socklen_t *size,
		  int flags); /* the new one is as hd__os_socket's. It waits, unless fd has O_NONBLOCK */
int hd__os_connect(int fd, const struct sockaddr *address, socklen_t size); /* -EINPROGRESS */
int hd__os_connected(int fd); /* how hd__os_connect has ended; -EAGAIN: it has not */

int hd__os_pipe(int fds[2]);
int hd__os_socket(int domain, int type, int protocol);
int hd__os_socketpair(int domain, int type, int fds[2]);
int hd__os_close(int fd);
int hd__os_dup_if_lingers(
	int fd); /* a second descriptor of a socket with SO_LINGER, whose last close may wait; -1: it does not, or none can be had */

/* Waits, on the calling thread, until one of them is ready. */
int hd__os_poll(struct pollfd *fds, unsigned n, hd_time until);

#endif
