/* os/name.c - the C library's resolver. */
#define _GNU_SOURCE
#include "os/name.h"

#include <errno.h>

#include "os/fault.h"

/* The answer of the resolver, in heddle's way. */
static int answer(int code, int saved)
{
	int err = errno;

	errno = saved;
	switch (code) {
	case 0:
		return 0;
	case EAI_SYSTEM:
		return -err;
	case EAI_MEMORY:
		return -ENOMEM;
	default:
		return HD_EAI(code);
	}
}

int hd__os_getaddrinfo(const char *node, const char *service, const struct addrinfo *hints, struct addrinfo **result)
{
	bool is_numeric = node == NULL || (hints != NULL && hints->ai_flags & AI_NUMERICHOST);
	int saved = errno;

	*result = NULL;
	if (!is_numeric && hd__fault_strikes(HD__FAULT_NAME))
		return HD_EAI(EAI_AGAIN);
	return answer(getaddrinfo(node, service, hints, result), saved);
}

int hd__os_getnameinfo(const struct sockaddr *address, socklen_t size, char *host, socklen_t host_size, char *service,
		       socklen_t service_size, int flags)
{
	int saved = errno;

	if (!(flags & NI_NUMERICHOST) && hd__fault_strikes(HD__FAULT_NAME))
		return HD_EAI(EAI_AGAIN);
	return answer(getnameinfo(address, size, host, host_size, service, service_size, flags), saved);
}
