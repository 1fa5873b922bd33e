/* sim/runtime/name.c - a simulated resolver.
 *
 * Owns:       nothing. Takes the place of os/name.c: it asks no server and reads no file.
 * Invariant:  it knows numbers, and one name, "localhost". A look-up takes as long as the plan wants it to. */
#define _GNU_SOURCE
#include "os/name.h"

#include <errno.h>
#include <string.h>

#include "base/point.h"
#include "os/clock.h"
#include "os/fault.h"
#include "os/futex.h"
#include "sim/choice.h"
#include "sim/threads.h"

/* A look-up that is not of numbers takes some time. */
static void wait_for_server(void)
{
	uint32_t word = 0;

	while (hd__sim_threads && hd__sim_decide(HD__SIM_FAULT, 2, 1, NULL) == 1)
		hd__os_futex_wait(&word, 0, hd__plain_clock->now(hd__plain_clock) + HD_US(50));
}

int hd__os_getaddrinfo(const char *node, const char *service, const struct addrinfo *hints, struct addrinfo **result)
{
	struct addrinfo numbers = { .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV };
	bool is_numeric = node == NULL || (hints != NULL && hints->ai_flags & AI_NUMERICHOST);
	int saved = errno;

	*result = NULL;
	hd__point();
	if (!is_numeric && hd__fault_strikes(HD__FAULT_NAME))
		return HD_EAI(EAI_AGAIN);
	if (hints != NULL) {
		numbers.ai_family = hints->ai_family;
		numbers.ai_socktype = hints->ai_socktype;
	}
	if (!is_numeric)
		wait_for_server();
	if (node == NULL || (!is_numeric && strcmp(node, "localhost") == 0))
		node = "127.0.0.1";
	int code = getaddrinfo(node, service, &numbers, result);
	errno = saved;
	return code != 0 ? HD_EAI(code) : 0;
}

int hd__os_getnameinfo(const struct sockaddr *address, socklen_t size, char *host, socklen_t host_size, char *service,
		       socklen_t service_size, int flags)
{
	int saved = errno;

	hd__point();
	if (!(flags & NI_NUMERICHOST) && hd__fault_strikes(HD__FAULT_NAME))
		return HD_EAI(EAI_AGAIN);
	if (!(flags & NI_NUMERICHOST))
		wait_for_server();
	int code = getnameinfo(address, size, host, host_size, service, service_size, NI_NUMERICHOST | NI_NUMERICSERV);
	errno = saved;
	return code != 0 ? HD_EAI(code) : 0;
}
