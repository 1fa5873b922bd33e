/* io/connect.c - sockets that are connected to a name: happy eyeballs (RFC 8305).
 *
 * The addresses of a name are tried in the order of the resolver, families alternating. An attempt that fails is followed by the next one at
 * once; one that has not been decided after 250 ms is joined by the next one, and the first connection that comes about counts.
 *
 *      try_in_turn: one socket, hd_connect --> connected | failed: the next address | undecided after 250 ms
 *                                                                                        |
 *      race: several sockets, one wait for all of them  <--------------------------------+
 *
 * Owns:       struct race: the descriptors of attempts, the list of addresses.
 * Invariant:  what a race has is closed and freed by drop_race, which is a cleanup: the process may end at any wait. The descriptor that
 *             is answered has been taken out before.
 * Callers:    processes, and plain threads.
 *
 * Not a process for each attempt: hd_fd_poll waits for all of them, needs no stacks, and works on plain threads. */
#include <errno.h>
#include <heddle/cancel.h>
#include <heddle/io.h>
#include <heddle/name.h>
#include <heddle/net.h>
#include <heddle/runtime.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>

#include "io/net.h"
#include "os/net.h"

#define STAGGER HD_MS(250)
#define ATTEMPTS 16 /* under way at a time */

struct race {
	struct addrinfo *all;	     /* to be freed; or NULL */
	const struct addrinfo *next; /* to be tried; or NULL */
	hd_time due;		     /* when it is to be tried */
	int err;		     /* of the last attempt that failed */
	int fds[ATTEMPTS];	     /* that are under way; -1: none */
};

static void drop_race(void *arg)
{
	struct race *r = arg;

	for (int i = 0; i < ATTEMPTS; i++)
		if (r->fds[i] >= 0)
			hd_close(r->fds[i]);
	if (r->all != NULL)
		freeaddrinfo(r->all);
}

/* ---- one at a time ---- */

static int make(const struct addrinfo *at)
{
	int fd = hd_socket(at->ai_family, at->ai_socktype, 0);

	if (fd >= 0 && at->ai_family != AF_UNIX && at->ai_socktype == SOCK_STREAM)
		hd__os_set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1);
	return fd;
}

static int take(struct race *r, int slot)
{
	int fd = r->fds[slot];

	r->fds[slot] = -1;
	return fd;
}

/* The attempt has failed: the next one begins at once. */
static int fail(struct race *r, int slot, int err)
{
	r->err = err;
	r->due = 0;
	if (r->fds[slot] >= 0)
		hd_close(take(r, slot));
	return -EINPROGRESS;
}

static hd_time earlier(hd_time a, hd_time b)
{
	return a < b ? a : b;
}

/* Returns a descriptor; the last error; -EINPROGRESS: fds[0] is undecided, there is another address to be tried, and time for it. */
static int try_in_turn(struct race *r, hd_time until)
{
	while (r->next != NULL) {
		const struct addrinfo *at = r->next;
		r->next = at->ai_next;
		const bool is_joined = r->next != NULL && until > 0;
		int err = r->fds[0] = make(at);
		if (r->fds[0] >= 0)
			err = hd_connect(r->fds[0], at->ai_addr, at->ai_addrlen,
					 is_joined ? earlier(until, hd_after(STAGGER)) : until);
		if (err == 0)
			return take(r, 0);
		if (err == -ETIMEDOUT && is_joined && hd_now() < until)
			return -EINPROGRESS;
		fail(r, 0, err);
		if (err == -ECANCELED || err == -ETIMEDOUT)
			break;
	}
	return r->err;
}

/* ---- several at a time: each of these returns a descriptor, -EINPROGRESS, or why there will be none ---- */

static int free_slot(const struct race *r)
{
	int slot = 0;

	while (slot < ATTEMPTS && r->fds[slot] >= 0)
		slot++;
	return slot;
}

static bool is_lost(const struct race *r)
{
	for (int i = 0; i < ATTEMPTS; i++)
		if (r->fds[i] >= 0)
			return false;
	return r->next == NULL;
}

/* The next attempt begins. */
static int join_race(struct race *r, int slot)
{
	const struct addrinfo *at = r->next;
	int err = r->fds[slot] = make(at);

	r->next = at->ai_next;
	r->due = hd_after(STAGGER);
	if (r->fds[slot] >= 0)
		err = hd__os_connect(r->fds[slot], at->ai_addr, at->ai_addrlen);
	if (err == 0)
		return take(r, slot);
	return err != -EINPROGRESS ? fail(r, slot, err) : err;
}

/* Waits until something has happened to an attempt. */
static int watch(struct race *r, hd_time until)
{
	struct pollfd attempts[ATTEMPTS];
	int slots[ATTEMPTS], n = 0;

	for (int slot = 0; slot < ATTEMPTS; slot++)
		if (r->fds[slot] >= 0) {
			slots[n] = slot;
			attempts[n++] = (struct pollfd){ .fd = r->fds[slot], .events = POLLOUT };
		}
	int ready = hd_fd_poll(attempts, (size_t)n, until);
	for (int i = 0; ready > 0 && i < n; i++) {
		int err = attempts[i].revents != 0 ? hd__os_connected(attempts[i].fd) : -EAGAIN;
		if (err == 0)
			return take(r, slots[i]);
		if (err != -EAGAIN)
			fail(r, slots[i], err);
	}
	return ready < 0 ? ready : -EINPROGRESS;
}

/* fds[0] is under way, and there is another address. */
static int race(struct race *r, hd_time until)
{
	int answer = -EINPROGRESS;

	r->due = 0;
	while (answer == -EINPROGRESS && !is_lost(r)) {
		int slot = free_slot(r);
		bool has_next = r->next != NULL && slot < ATTEMPTS;
		if (has_next && hd_now() >= r->due) {
			answer = join_race(r, slot);
			continue;
		}
		answer = watch(r, has_next ? earlier(r->due, until) : until);
		if (answer == -ETIMEDOUT && has_next && hd_now() < until)
			answer = -EINPROGRESS;
	}
	return answer == -EINPROGRESS ? r->err : answer;
}

/* ---- the calls ---- */

/* The first address's family and the others take turns; each keeps its order. */
static struct addrinfo *alternate(struct addrinfo *list)
{
	struct addrinfo *ours = NULL, *others = NULL, **our_end = &ours, **other_end = &others, *result = NULL, **end = &result;

	for (struct addrinfo *at = list; at != NULL; at = at->ai_next) {
		struct addrinfo ***which = at->ai_family == list->ai_family ? &our_end : &other_end;
		**which = at;
		*which = &at->ai_next;
	}
	*our_end = *other_end = NULL;
	while (ours != NULL || others != NULL) {
		struct addrinfo *swap = ours;
		if (ours != NULL) {
			*end = ours;
			end = &ours->ai_next;
			swap = ours->ai_next;
		}
		ours = others;
		others = swap;
	}
	*end = NULL;
	return result;
}

/* `owned`: it is to be freed. */
static int connect_any(struct addrinfo *list, bool owned, hd_time until)
{
	struct race r = { .err = -EADDRNOTAVAIL };
	struct hd_cleanup cleanup;

	for (int i = 0; i < ATTEMPTS; i++)
		r.fds[i] = -1;
	r.next = list = alternate(list);
	if (owned)
		r.all = list;
	hd_cleanup_push(&cleanup, drop_race, &r); /* not on a plain thread, which cannot be terminated */
	int fd = try_in_turn(&r, until);
	if (fd == -EINPROGRESS)
		fd = race(&r, until);
	hd_cleanup_pop(&cleanup, false);
	drop_race(&r);
	return fd;
}

int hd__connect_any(struct addrinfo *list, hd_time until)
{
	return connect_any(list, false, until);
}

static int connect_to(const char *host, const char *port, int type, hd_time until)
{
	const struct addrinfo hints = { .ai_socktype = type };
	struct addrinfo *list;

	if (port == NULL)
		return -EINVAL;
	int err = hd_getaddrinfo(host, port, &hints, &list, until);
	return err != 0 ? err : connect_any(list, true, until);
}

int hd_tcp_connect(const char *host, const char *port, hd_time until)
{
	return connect_to(host, port, SOCK_STREAM, until);
}

int hd_udp_connect(const char *host, const char *port, hd_time until)
{
	return connect_to(host, port, SOCK_DGRAM, until);
}

int hd_unix_connect(const char *path, hd_time until)
{
	struct sockaddr_un address;
	int size = hd__unix_address(&address, path);

	if (size < 0)
		return size;
	struct addrinfo at = { .ai_family = AF_UNIX,
			       .ai_socktype = SOCK_STREAM,
			       .ai_addr = (struct sockaddr *)&address,
			       .ai_addrlen = (socklen_t)size };
	return connect_any(&at, false, until);
}
