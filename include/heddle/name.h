/* heddle/name.h - names of hosts and services: look-ups that wait only for their own process.
 *
 * The C library looks them up, on a kernel thread of the pool (heddle/blocking.h): so /etc/hosts, /etc/nsswitch.conf, the local network's
 * names and what the program itself has told the resolver count as they do everywhere else. Addresses and ports that are written as numbers
 * need no thread and do not wait. A program includes <netdb.h> for struct addrinfo and its constants.
 *
 * Calls answer 0 or -errno, and what the resolver has to say as HD_EAI: one number, which hd_error puts into words. -ETIMEDOUT: `until` has
 * passed; -ECANCELED: the caller was cancelled. Either way the process goes on at once; the thread stays in the C library until that gives
 * up, and then drops what it has found. -EAGAIN: there is no kernel thread; -ENOMEM: no memory. -ENOTSUP: the program is explored
 * (`heddle explore`). All are cancellation points. On a plain thread they wait as the C library does, whatever `until` says.
 *
 * As many look-ups as hd_config.blocking_threads says are under way at a time; the others wait for their turn. */
#ifndef HEDDLE_NAME_H
#define HEDDLE_NAME_H

#include <heddle/base.h>

HD_BEGIN

struct addrinfo;
struct sockaddr;

/* The answer that stands for an error of the resolver, as in `err == HD_EAI(EAI_NONAME)`. No errno is as large. EAI_SYSTEM and EAI_MEMORY are not
 * answered so, but as the -errno that they stand for. */
#define HD_EAI(code) (-10000 - ((code) < 0 ? -(code) : (code)))

/* As getaddrinfo(3). Returns 0, and *result is a list that freeaddrinfo(3) frees; otherwise *result is NULL. */
HD_API HD_MUST_USE int hd_getaddrinfo(const char *node, const char *service, const struct addrinfo *hints,
				      struct addrinfo **result, hd_time until);

/* As getnameinfo(3). Returns 0, and `host` and `service`, of so many bytes, are strings; each may be NULL. HD_EAI(EAI_OVERFLOW): one of them is too
 * small, and may hold a part. */
HD_API HD_MUST_USE int hd_getnameinfo(const struct sockaddr *address, unsigned size, char *host, unsigned host_size,
				      char *service, unsigned service_size, int flags, hd_time until);

HD_END
#endif
