/* io/name.c - names of hosts and services.
 *
 * Owns:       a record for each look-up, on the heap: its process may leave, by a cancel or a deadline, while the thread is inside the C
 *             library, which cannot be told to stop; the thread drops the record then.
 * Callers:    processes and plain threads.
 *
 * The C library's resolver on a thread of the pool, and not one of our own or c-ares, because only the C library gives the answer that
 * every other program on the machine gets: nsswitch's modules (files, mDNS, LDAP, containers, systemd-resolved), /etc/hosts, gai.conf's
 * order, and what the program has set by res_init or its environment. Nor does a program that links with heddle then depend on another
 * library. It costs a hand-over to a kernel thread, 20 to 50 us where a look-up without a server takes as long itself; a thread for each
 * look-up that is under way, at most hd_config.blocking_threads; and a look-up that its process has left keeps its thread until the
 * resolver gives up, by default after 10 s or more. */
#include <errno.h>
#include <heddle/name.h>
#include <string.h>

#include "io/fd.h"
#include "io/pool.h"
#include "os/memory.h"
#include "os/name.h"

struct look_up {
	struct hd__job job;
	int answer;
};

/* Runs it, and waits. The look-up is the caller's again only if the answer is 0. */
static int give_to_pool(struct look_up *look_up, void (*run)(struct hd__job *job), void (*drop)(struct hd__job *job),
			hd_time until)
{
	look_up->job.run = run;
	look_up->job.drop = drop;
	look_up->job.kind = HD__JOB_ABANDONABLE;
	return hd__pool_run(&look_up->job, until, HD_WAIT_NAME);
}

/* ---- addresses of a name ---- */

struct addresses_of {
	struct look_up look_up;
	const char *node, *service; /* in `words`, or NULL */
	const struct addrinfo *hints;
	struct addrinfo copy, *result;
	char words[];
};

static void find_addresses(struct hd__job *job)
{
	struct addresses_of *a = (struct addresses_of *)job;

	a->look_up.answer = hd__os_getaddrinfo(a->node, a->service, a->hints, &a->result);
}

static void drop_addresses(struct hd__job *job)
{
	struct addresses_of *a = (struct addresses_of *)job;

	if (a->result != NULL)
		freeaddrinfo(a->result);
	hd__os_free(a);
}

static struct addresses_of *new_addresses_of(const char *node, const char *service, const struct addrinfo *hints)
{
	size_t node_size = node != NULL ? strlen(node) + 1 : 0, service_size = service != NULL ? strlen(service) + 1 : 0;
	struct addresses_of *a = hd__os_alloc(sizeof *a + node_size + service_size);

	if (a == NULL)
		return NULL;
	if (node != NULL)
		a->node = memcpy(a->words, node, node_size);
	if (service != NULL)
		a->service = memcpy(a->words + node_size, service, service_size);
	if (hints != NULL) {
		a->copy = *hints;
		a->hints = &a->copy;
	}
	return a;
}

/* What the C library can say without a file or a server. False: nothing, and *err has not been set. */
static bool is_numeric(const char *node, const char *service, const struct addrinfo *hints, struct addrinfo **result, int *err)
{
	struct addrinfo numbers = { .ai_family = AF_UNSPEC, .ai_flags = AI_V4MAPPED | AI_ADDRCONFIG }; /* what no hints mean */

	if (service != NULL && service[strspn(service, "0123456789")] != '\0')
		return false;
	if (hints != NULL)
		numbers = *hints;
	numbers.ai_flags |= AI_NUMERICSERV | (node != NULL ? AI_NUMERICHOST : 0);
	int answer = hd__os_getaddrinfo(node, service, &numbers, result);
	if (answer == HD_EAI(EAI_NONAME) && node != NULL)
		return false;
	*err = answer;
	return true;
}

int hd_getaddrinfo(const char *node, const char *service, const struct addrinfo *hints, struct addrinfo **result, hd_time until)
{
	*result = NULL;
	int err = hd__io_begin(until);
	if (err != 0 || is_numeric(node, service, hints, result, &err))
		return err;
	struct addresses_of *a = new_addresses_of(node, service, hints);
	if (a == NULL)
		return -ENOMEM;
	err = give_to_pool(&a->look_up, find_addresses, drop_addresses, until);
	if (err != 0)
		return err;
	err = a->look_up.answer;
	*result = a->result;
	hd__os_free(a);
	return err;
}

/* ---- the name of an address ---- */

struct name_of {
	struct look_up look_up;
	struct sockaddr_storage address;
	unsigned size, host_size, service_size;
	int flags;
	char host[NI_MAXHOST], service[NI_MAXSERV];
};

static void find_name(struct hd__job *job)
{
	struct name_of *n = (struct name_of *)job;

	n->look_up.answer = hd__os_getnameinfo((struct sockaddr *)&n->address, n->size, n->host, n->host_size, n->service,
					       n->service_size, n->flags);
}

static void drop_name(struct hd__job *job)
{
	hd__os_free(job);
}

static unsigned least(unsigned a, unsigned b)
{
	return a < b ? a : b;
}

int hd_getnameinfo(const struct sockaddr *address, unsigned size, char *host, unsigned host_size, char *service,
		   unsigned service_size, int flags, hd_time until)
{
	const bool numeric = (host == NULL || flags & NI_NUMERICHOST) && (service == NULL || flags & NI_NUMERICSERV);
	int err = hd__io_begin(until);

	if (err != 0)
		return err;
	host_size = host != NULL ? host_size : 0;
	service_size = service != NULL ? service_size : 0;
	if (numeric)
		return hd__os_getnameinfo(address, size, host, host_size, service, service_size, flags);
	if (size > sizeof(struct sockaddr_storage))
		return HD_EAI(EAI_FAMILY);
	struct name_of *n = hd__os_alloc(sizeof *n);
	if (n == NULL)
		return -ENOMEM;
	memcpy(&n->address, address, size);
	n->size = size;
	n->host_size = least(host_size, sizeof n->host);
	n->service_size = least(service_size, sizeof n->service);
	n->flags = flags;
	err = give_to_pool(&n->look_up, find_name, drop_name, until);
	if (err != 0)
		return err;
	err = n->look_up.answer;
	if (n->host_size > 0)
		memcpy(host, n->host, strnlen(n->host, n->host_size - 1) + 1);
	if (n->service_size > 0)
		memcpy(service, n->service, strnlen(n->service, n->service_size - 1) + 1);
	hd__os_free(n);
	return err;
}
