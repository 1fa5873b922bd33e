/* io/listen.c - sockets that have an address of their own.
 *
 * Owns:      nothing. After the look-up of the name nothing waits, and nothing is a cancellation point: no descriptor is left behind. */
#include <errno.h>
#include <heddle/io.h>
#include <heddle/name.h>
#include <heddle/net.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>

#include "io/net.h"
#include "os/net.h"
#include "sched/sched.h"

/* What a socket shall be. */
struct kind {
	int type;
	int backlog;
	bool both; /* IPv6, and IPv4 with it */
};

static int set_up(int fd, const struct addrinfo *at, const struct kind *kind)
{
	const bool tcp = kind->type == SOCK_STREAM && at->ai_family != AF_UNIX;
	int err = 0;

	if (at->ai_family == AF_INET6)
		err = hd__os_set_option(fd, IPPROTO_IPV6, IPV6_V6ONLY, !kind->both);
	if (err == 0 && tcp)
		err = hd__os_set_option(fd, SOL_SOCKET, SO_REUSEADDR, 1);
	if (err == 0 && tcp) /* the connections have it from the listener */
		err = hd__os_set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1);
	if (err == 0)
		err = hd__os_bind(fd, at->ai_addr, at->ai_addrlen);
	if (err == 0 && kind->type == SOCK_STREAM)
		err = hd__os_listen(fd, kind->backlog > 0 ? kind->backlog : SOMAXCONN);
	return err;
}

static int make(const struct addrinfo *at, const struct kind *kind)
{
	int fd = hd_socket(at->ai_family, kind->type, 0);
	int err = fd < 0 ? fd : set_up(fd, at, kind);

	if (err != 0 && fd >= 0)
		hd_close(fd);
	return err != 0 ? err : fd;
}

/* At the first address of the name where one can be had. */
static int make_at(const char *host, const char *port, int family, const struct kind *kind, hd_time until)
{
	const struct addrinfo hints = { .ai_flags = AI_PASSIVE, .ai_family = family, .ai_socktype = kind->type };
	struct addrinfo *list;
	int err = hd_getaddrinfo(host, port, &hints, &list, until), fd = -EADDRNOTAVAIL;

	if (err != 0)
		return err;
	for (const struct addrinfo *at = list; at != NULL && fd < 0; at = at->ai_next)
		fd = make(at, kind);
	freeaddrinfo(list);
	return fd;
}

static int make_anywhere(const char *host, const char *port, struct kind kind, hd_time until)
{
	if (port == NULL)
		return -EINVAL;
	if (host != NULL)
		return make_at(host, port, AF_UNSPEC, &kind, until);
	kind.both = true;
	int fd = make_at(NULL, port, AF_INET6, &kind, until);
	return fd == -EAFNOSUPPORT || fd == -EADDRNOTAVAIL ? make_at(NULL, port, AF_INET, &kind, until) : fd;
}

int hd_tcp_listen(const char *host, const char *port, int backlog, hd_time until)
{
	return make_anywhere(host, port, (struct kind){ .type = SOCK_STREAM, .backlog = backlog }, until);
}

int hd_udp_bind(const char *host, const char *port, hd_time until)
{
	return make_anywhere(host, port, (struct kind){ .type = SOCK_DGRAM }, until);
}

/* ---- Unix sockets ---- */

int hd__unix_address(struct sockaddr_un *address, const char *path)
{
	size_t n = path != NULL ? strlen(path) : 0;
	const bool has_file = n > 0 && path[0] != '@';

	if (n == 0)
		return -EINVAL;
	if (n + has_file > sizeof address->sun_path)
		return -ENAMETOOLONG;
	*address = (struct sockaddr_un){ .sun_family = AF_UNIX };
	memcpy(address->sun_path, path, n);
	if (!has_file)
		address->sun_path[0] = '\0';
	return (int)(offsetof(struct sockaddr_un, sun_path) + n + has_file);
}

int hd_unix_listen(const char *path, int backlog)
{
	struct sockaddr_un address;
	int size = hd__unix_address(&address, path);

	if (size < 0)
		return size;
	const struct addrinfo at = { .ai_family = AF_UNIX,
				     .ai_addr = (struct sockaddr *)&address,
				     .ai_addrlen = (socklen_t)size };
	return make(&at, &(struct kind){ .type = SOCK_STREAM, .backlog = backlog });
}

/* ---- addresses of sockets ---- */

int hd_sock_port(int fd)
{
	struct sockaddr_storage address;
	socklen_t size;
	int err = hd__os_local_address(fd, &address, &size);

	hd__pass_by();
	if (err != 0)
		return err;
	if (address.ss_family == AF_INET)
		return ntohs(((struct sockaddr_in *)&address)->sin_port);
	return address.ss_family == AF_INET6 ? ntohs(((struct sockaddr_in6 *)&address)->sin6_port) : -EAFNOSUPPORT;
}

/* "path", "@name", or "" where the other side has no address. */
static int unix_text(const struct sockaddr_un *address, socklen_t size, char text[HD_ADDRESS_SIZE])
{
	size_t n = size - offsetof(struct sockaddr_un, sun_path);

	if (n > 0 && address->sun_path[0] != '\0')
		n = strnlen(address->sun_path, n);
	memcpy(text, address->sun_path, n);
	text[n] = '\0';
	if (n > 0 && text[0] == '\0')
		text[0] = '@';
	return 0;
}

int hd_sock_peer(int fd, char text[HD_ADDRESS_SIZE])
{
	struct sockaddr_storage address;
	socklen_t size;
	char host[NI_MAXHOST], port[NI_MAXSERV];
	int err = hd__os_peer_address(fd, &address, &size);

	text[0] = '\0';
	if (err != 0)
		return err;
	if (address.ss_family == AF_UNIX)
		return unix_text((struct sockaddr_un *)&address, size, text);
	err = hd_getnameinfo((struct sockaddr *)&address, size, host, sizeof host, port, sizeof port,
			     NI_NUMERICHOST | NI_NUMERICSERV, 0);
	if (err != 0)
		return err;
	/* IPv4 that came to an IPv6 socket is written as IPv4. */
	const char *from = strncmp(host, "::ffff:", 7) == 0 ? host + 7 : host;
	snprintf(text, HD_ADDRESS_SIZE, strchr(from, ':') != NULL ? "[%.90s]:%.8s" : "%.90s:%.8s", from, port);
	return 0;
}
