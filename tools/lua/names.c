/* names.c - the names under which Lua processes are found.
 *
 * Owns:       one table for the program. (Not that of hd_register: its ports would have to be led back to identities.)
 * Invariant:  a name leads to a process that has not ended: it takes its names out before its end is told.
 * Locking:    one mutex. It is held for a few instructions and over no call that waits, so no process is terminated while it holds it; but one may be
 *             while it waits for it. */
#include "names.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define BUCKETS 1024

struct name {
	struct name *next;
	struct identity *identity;
	char text[];
};

static struct hd_mutex lock;
static struct name *buckets[BUCKETS];

static struct name **bucket_of(const char *name)
{
	uint32_t hash = 2166136261u;

	for (; *name != 0; name++)
		hash = (hash ^ (unsigned char)*name) * 16777619u;
	return &buckets[hash % BUCKETS];
}

/* Under the lock: the link that leads to the name, or to the end of its bucket. */
static struct name **find(const char *name)
{
	struct name **link = bucket_of(name);

	while (*link != NULL && strcmp((*link)->text, name) != 0)
		link = &(*link)->next;
	return link;
}

static void enter(void)
{
	if (hd_mutex_lock(&lock, HD_FOREVER) != 0)
		abort(); /* it is not owned recursively, and HD_FOREVER does not pass */
}

static void drop(struct name *name)
{
	identity_release(name->identity);
	free(name);
}

int names_add(const char *name, struct identity *identity)
{
	size_t size = strlen(name) + 1;

	enter(); /* a process that is terminated while it waits has nothing yet */
	struct name **link = find(name), *new = NULL;
	bool taken = *link != NULL;
	if (!taken && (new = malloc(sizeof *new + size)) != NULL) {
		memcpy(new->text, name, size);
		new->next = NULL;
		new->identity = identity_retain(identity);
		*link = new;
	}
	hd_mutex_unlock(&lock);
	return taken ? -EEXIST : new != NULL ? 0 : -ENOMEM;
}

int names_remove(const char *name, const struct identity *identity)
{
	enter();
	struct name **link = find(name), *found = *link;
	if (found != NULL && found->identity == identity)
		*link = found->next;
	else
		found = NULL;
	hd_mutex_unlock(&lock);
	if (found != NULL)
		drop(found);
	return found != NULL ? 0 : -ENOENT;
}

struct identity *names_find(const char *name)
{
	enter();
	struct name *found = *find(name);
	struct identity *identity = found != NULL ? identity_retain(found->identity) : NULL;
	hd_mutex_unlock(&lock);
	return identity;
}

void names_forget(const struct identity *identity)
{
	struct name *gone = NULL;

	enter();
	for (size_t i = 0; i < BUCKETS; i++)
		for (struct name **link = &buckets[i]; *link != NULL;) {
			struct name *name = *link;
			if (name->identity != identity) {
				link = &name->next;
				continue;
			}
			*link = name->next;
			name->next = gone;
			gone = name;
		}
	hd_mutex_unlock(&lock);
	while (gone != NULL) {
		struct name *next = gone->next;
		drop(gone);
		gone = next;
	}
}
