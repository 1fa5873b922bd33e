/* identity.c - what is known of a Lua process outside it.
 *
 * Owns:       struct identity.
 * Invariant:  as long as there is a reference, the port is there.
 * Locking:    none: a count, and fields that are written once. */
#include "identity.h"

#include <stdlib.h>
#include <string.h>

struct identity *identity_new(hd_port *port)
{
	struct identity *identity = calloc(1, sizeof *identity);

	if (identity == NULL)
		return NULL;
	atomic_init(&identity->references, 1);
	identity->port = port;
	return identity;
}

struct identity *identity_retain(struct identity *identity)
{
	/* Relaxed: the caller has a reference. */
	atomic_fetch_add_explicit(&identity->references, 1, memory_order_relaxed);
	return identity;
}

void identity_release(struct identity *identity)
{
	/* Acquire and release: the last holder sees what all others did with it. */
	if (identity == NULL || atomic_fetch_sub_explicit(&identity->references, 1, memory_order_acq_rel) != 1)
		return;
	hd_port_release(identity->port);
	free(atomic_load_explicit(&identity->last_words, memory_order_relaxed));
	free(identity);
}

void identity_last_words(struct identity *identity, const char *text)
{
	char *copy = strdup(text);

	if (copy == NULL)
		return;
	char *none = NULL;
	/* Pairs with the acquire of a process that asks what this one died of. */
	if (!atomic_compare_exchange_strong_explicit(&identity->last_words, &none, copy, memory_order_release,
						     memory_order_relaxed))
		free(copy);
}
