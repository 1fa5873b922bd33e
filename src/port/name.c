/* port/name.c - names of ports.
 *
 * Owns:       struct hd__names, the table of all names of a runtime, made with the first one.
 * Invariant:  a name has one port, whose mailbox is not closed or is about to take its names back; and a reference to it.
 * Locking:    sched->names_lock; inside it, a mailbox's. Memory is fetched without it. TSan is told: what a process did before it gave a name comes
 *             before what a process does that has found it.
 * Callers:    any thread; the end of a process. */
#include <heddle/link.h>

#include "os/memory.h"
#include "port/port.h"

#define LENGTH_MAX 255
#define BUCKETS_FIRST 64

struct hd__name {
	struct hd__name *next;	/* in its bucket */
	struct hd__name *other; /* of the same mailbox */
	hd_port *port;
	uint64_t hash;
	char name[];
};

struct hd__names {
	size_t count, buckets; /* a power of two */
	struct hd__name **table;
};

static uint64_t hash_of(const char *name)
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325); /* FNV-1a */

	while (*name != 0)
		hash = (hash ^ (unsigned char)*name++) * UINT64_C(0x100000001b3);
	return hash;
}

static struct hd__name **bucket(struct hd__names *names, uint64_t hash)
{
	return &names->table[hash & (names->buckets - 1)];
}

/* Under the lock: what points to the entry; to NULL if there is none. */
static struct hd__name **find(struct hd__names *names, const char *name, uint64_t hash)
{
	struct hd__name **link = bucket(names, hash);

	while (*link != NULL && ((*link)->hash != hash || strcmp((*link)->name, name) != 0))
		link = &(*link)->next;
	return link;
}

static void grow(struct hd__names *names, struct hd__name **table, size_t buckets)
{
	struct hd__names old = *names;

	names->table = table;
	names->buckets = buckets;
	for (size_t i = 0; i < old.buckets; i++)
		for (struct hd__name *n = old.table[i], *next; n != NULL; n = next) {
			next = n->next;
			n->next = *bucket(names, n->hash);
			*bucket(names, n->hash) = n;
		}
}

/* Under the lock, which is released meanwhile: there is a table, with room for one more. */
static bool make_room(struct hd__sched *sched)
{
	while (sched->names == NULL || sched->names->count >= sched->names->buckets) {
		size_t buckets = sched->names == NULL ? BUCKETS_FIRST : 2 * sched->names->buckets;
		hd__unlock(&sched->names_lock);
		struct hd__name **table = hd__os_alloc(buckets * sizeof(struct hd__name *)), **old = table;
		struct hd__names *names = hd__os_alloc(sizeof *names);
		hd__lock_told(&sched->names_lock);
		if (table != NULL && names != NULL && sched->names == NULL) {
			sched->names = names;
			names = NULL;
		}
		if (table != NULL && sched->names != NULL && sched->names->buckets < buckets) {
			old = sched->names->table;
			grow(sched->names, table, buckets);
		}
		bool failed = table == NULL || sched->names == NULL;
		hd__unlock(&sched->names_lock);
		hd__os_free(old);
		hd__os_free(names);
		hd__lock_told(&sched->names_lock);
		if (failed)
			return false;
	}
	return true;
}

static int enter(struct hd__sched *sched, struct hd__name *entry)
{
	struct hd__mailbox *box = entry->port->box;
	int err = 0;

	hd__lock_told(&sched->names_lock);
	if (!make_room(sched))
		err = -ENOMEM;
	else if (*find(sched->names, entry->name, entry->hash) != NULL)
		err = -EEXIST;
	hd__mailbox_lock(box);
	if (err == 0)
		err = box->closed ? -ESRCH : ld_rlx(&box->owner) == 0 ? -EINVAL : 0;
	if (err == 0) { /* still under the mailbox's lock: an owner that closes it after this sees the name */
		struct hd__name **link = bucket(sched->names, entry->hash);
		entry->next = *link;
		*link = entry;
		entry->other = box->more->names;
		st_rlx(&box->more->names, entry);
		sched->names->count++;
	}
	hd__mailbox_unlock(box);
	hd__unlock(&sched->names_lock);
	return err;
}

int hd_register(const char *name, hd_port *port)
{
	if (name == NULL || *name == 0 || port == NULL || port->head.kind != HD__MAIL_PORT)
		return -EINVAL;
	size_t length = strnlen(name, LENGTH_MAX + 1);
	if (length > LENGTH_MAX)
		return -ENAMETOOLONG;
	struct hd__name *entry = hd__os_alloc(sizeof *entry + length + 1);
	if (entry == NULL || hd__more_own(port->box) == NULL) {
		hd__os_free(entry);
		return -ENOMEM;
	}
	memcpy(entry->name, name, length + 1);
	entry->hash = hash_of(name);
	entry->port = hd_port_retain(port);
	struct hd__sched *sched = hd__look_begin();
	int err = sched == NULL ? -ENXIO : enter(sched, entry);
	if (sched != NULL)
		hd__look_end();
	if (err != 0) {
		hd_port_release(port);
		hd__os_free(entry);
	}
	return err;
}

/* Under the lock: takes the entry out of its mailbox's list. */
static void forget(struct hd__name *entry)
{
	struct hd__name **link = &entry->port->box->more->names;

	while (*link != entry)
		link = &(*link)->other;
	st_rlx(link, entry->other); /* the owner, which ends, may look: hd__names_end */
}

int hd_unregister(const char *name)
{
	struct hd__name *entry = NULL;

	if (name == NULL || *name == 0)
		return -EINVAL;
	struct hd__sched *sched = hd__look_begin();
	if (sched == NULL)
		return -ENXIO;
	hd__lock_told(&sched->names_lock);
	if (sched->names != NULL) {
		struct hd__name **link = find(sched->names, name, hash_of(name));
		entry = *link;
		if (entry != NULL) {
			*link = entry->next;
			sched->names->count--;
			forget(entry);
		}
	}
	hd__unlock(&sched->names_lock);
	hd__look_end();
	if (entry == NULL)
		return -ENOENT;
	hd_port_release(entry->port);
	hd__os_free(entry);
	return 0;
}

hd_port *hd_whereis(const char *name)
{
	hd_port *port = NULL;

	if (name == NULL)
		return NULL;
	struct hd__sched *sched = hd__look_begin();
	if (sched == NULL)
		return NULL;
	hd__lock_told(&sched->names_lock);
	if (sched->names != NULL) {
		struct hd__name *entry = *find(sched->names, name, hash_of(name));
		if (entry != NULL)
			port = hd_port_retain(entry->port);
	}
	hd__unlock(&sched->names_lock);
	hd__look_end();
	return port;
}

void hd__names_end(struct hd_worker *w, struct hd__sched *sched, struct hd__mailbox *box)
{
	struct hd_waiter *woken = NULL;

	struct hd__more *more = ld_acq(&box->more);
	if (more == NULL || ld_rlx(&more->names) == NULL) /* the mailbox is closed: there will be no more */
		return;
	hd__lock_told(&sched->names_lock);
	struct hd__name *names = more->names;
	st_rlx(&more->names, NULL);
	for (struct hd__name *n = names; n != NULL; n = n->other) {
		struct hd__name **link = bucket(sched->names, n->hash);
		while (*link != n)
			link = &(*link)->next;
		*link = n->next;
		sched->names->count--;
	}
	hd__unlock(&sched->names_lock);
	while (names != NULL) {
		struct hd__name *next = names->other;
		hd__port_release(w, names->port, &woken);
		hd__os_free(names);
		names = next;
	}
}

void hd__names_drop(struct hd__sched *sched)
{
	if (sched->names == NULL)
		return;
	hd__os_free(sched->names->table);
	hd__os_free(sched->names);
	sched->names = NULL;
}
