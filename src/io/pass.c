/* io/pass.c - descriptors that go from one program to another through a Unix socket.
 *
 * Owns:      nothing. A descriptor travels beside one byte, so that a stream has a place for it. All that arrive are taken or closed. */
#define _GNU_SOURCE
#include <errno.h>
#include <heddle/io.h>
#include <heddle/net.h>
#include <string.h>
#include <sys/socket.h>

#include "io/fd.h"

/* What travels beside the byte. */
union beside {
	struct cmsghdr header;
	char room[CMSG_SPACE(sizeof(int))];
};

int hd_sock_send_fd(int sock, int fd, hd_time until)
{
	union beside beside = { .room = { 0 } };
	char nothing = 0;
	struct iovec byte = { &nothing, 1 };
	struct msghdr message = {
		.msg_iov = &byte, .msg_iovlen = 1, .msg_control = &beside, .msg_controllen = sizeof beside.room
	};
	struct cmsghdr *header = CMSG_FIRSTHDR(&message);

	header->cmsg_level = SOL_SOCKET;
	header->cmsg_type = SCM_RIGHTS;
	header->cmsg_len = CMSG_LEN(sizeof fd);
	memcpy(CMSG_DATA(header), &fd, sizeof fd);
	ssize_t n = hd_sock_sendmsg(sock, &message, 0, until);
	return n < 0 ? (int)n : 0;
}

/* How many came. The first is in *fd, the others are closed: there is room for two, where a header is padded. */
static int take_fds(struct msghdr *message, int *fd)
{
	int count = 0;

	for (struct cmsghdr *h = CMSG_FIRSTHDR(message); h != NULL; h = CMSG_NXTHDR(message, h)) {
		if (h->cmsg_level != SOL_SOCKET || h->cmsg_type != SCM_RIGHTS)
			continue;
		for (size_t at = 0; at + sizeof *fd <= h->cmsg_len - CMSG_LEN(0); at += sizeof *fd) {
			int one;
			memcpy(&one, CMSG_DATA(h) + at, sizeof one);
			if (count++ == 0)
				*fd = one;
			else
				hd_close(one);
		}
	}
	return count;
}

int hd_sock_recv_fd(int sock, hd_time until)
{
	union beside beside;
	char c;
	struct iovec byte = { &c, 1 };
	struct msghdr message = {
		.msg_iov = &byte, .msg_iovlen = 1, .msg_control = &beside, .msg_controllen = sizeof beside.room
	};
	int fd = -1;
	ssize_t n = hd_sock_recvmsg(sock, &message, MSG_CMSG_CLOEXEC, until);

	if (n <= 0)
		return n < 0 ? (int)n : -EPIPE;
	int count = take_fds(&message, &fd);
	if (count == 1 && !(message.msg_flags & MSG_CTRUNC))
		return hd__fd_born(fd, HD__HOW_UNKNOWN, false);
	if (count > 0)
		hd_close(fd);
	return -EPROTO;
}
