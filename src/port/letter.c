/* port/letter.c - letters: the memory of a message, from its sender to the end of its use.
 *
 * Owns:       struct hd__letter; the slabs from which letters are cut; each worker's stores, and the depot that all share, of letters not in use.
 * Invariant:  a letter belongs to one of: its sender, a port, the receiver that holds it, a store, the depot, its slab, the time at which it is sent
 *             (after.c). What was moved into it is dropped once,
 *             when the letter is dropped; or given back to its sender, which could not send it.
 * Locking:    a store is for its worker's thread alone; what a process holds is for that process, and for the thread that has claimed its wait. The
 *             depot has a lock for each kind, inside which none is taken.
 * Callers:    any thread.
 *
 *     slab <--> depot <--HD__BATCH at once--> store of a worker <--> in use
 *
 * A letter that is made on one worker and dropped on another comes back in a batch: the lock of the depot is taken once for HD__BATCH letters. A batch goes
 * from store to store as it is, while the depot has few; of more than BATCHES_MAX the letters go back to their slabs, and slabs that have
 * no letter in use are freed. */
#include <limits.h>

#include "os/memory.h"
#include "port/port.h"

#define SLAB_SIZE 65536
#define LINE 64	      /* a letter begins where a cache line does */
#define BATCHES_MAX 4 /* that wait in the depot: more would keep slabs from being empty */
#define EMPTY_MAX 16  /* slabs without a letter in use that the depot keeps */

/* Just before its first letter. Under the depot's lock. */
struct slab {
	struct slab *next, **link; /* among the depot's, if a letter of it is free; link: what points to this one */
	struct hd__link *free;	   /* letters that were in use before */
	void *memory;
	uint32_t era;		    /* as the depot's; else it is unknown there */
	uint16_t count, cut, nfree; /* letters that it has; those that have been used; those in `free` */
	uint8_t kind;
};
_Static_assert(SLAB_SIZE / LINE <= UINT16_MAX, "each letter of a slab has a number");

/* For each kind: what no worker has. */
static struct depot {
	unsigned char lock;
	uint32_t era;		  /* how often it was forgotten (hd__depot_forget) */
	unsigned nbatches, empty; /* how many slabs have no letter in use, but for those in batches */
	struct hd__letter *batches[BATCHES_MAX][HD__BATCH];
	struct slab *slabs; /* those with free letters */
} depots[HD__LETTER_KINDS];

static const uint16_t size_of[HD__LETTER_KINDS] = { HD__BARE_SIZE, HD__SHORT_SIZE, HD__LONG_SIZE };

static int64_t live; /* letters that plain threads have made, less those that they have freed; atomically */

void hd__count_letter(struct hd_worker *w, int64_t change)
{
	if (w != NULL)
		bump(&w->letters.live, change);
	else
		add_rlx(&live, change);
}

int64_t hd__letters_live(const struct hd__sched *sched)
{
	int64_t all = ld_rlx(&live);

	for (unsigned i = 0; i < hd__workers(sched); i++)
		all += ld_rlx(&sched->workers[i].letters.live);
	return all;
}

/* ---- slabs ---- */

static struct hd__letter *letter_at(struct slab *slab, unsigned number)
{
	return (struct hd__letter *)(void *)((char *)(slab + 1) + (size_t)number * size_of[slab->kind]);
}

static struct slab *slab_of(struct hd__letter *l)
{
	return (struct slab *)(void *)((char *)l - (size_t)l->number * size_of[l->kind]) - 1;
}

static void list(struct depot *d, struct slab *slab)
{
	slab->next = d->slabs;
	slab->link = &d->slabs;
	if (slab->next != NULL)
		slab->next->link = &slab->next;
	d->slabs = slab;
}

static void unlist(struct slab *slab)
{
	*slab->link = slab->next;
	if (slab->next != NULL)
		slab->next->link = slab->link;
}

static bool is_empty(const struct slab *slab)
{
	return slab->nfree == slab->cut;
}

/* A slab in no list; NULL: no memory. No locks are held. */
static struct slab *new_slab(unsigned kind)
{
	char *memory = hd__os_alloc(SLAB_SIZE);

	if (memory == NULL)
		return NULL;
	char *first = (char *)(((uintptr_t)memory + sizeof(struct slab) + LINE - 1) & ~(uintptr_t)(LINE - 1));
	struct slab *slab = (struct slab *)(void *)first - 1;
	slab->memory = memory;
	slab->kind = (uint8_t)kind;
	slab->count = (uint16_t)((size_t)(memory + SLAB_SIZE - first) / size_of[kind]);
	return slab;
}

/* Frees slabs that are in no list, chained by `next`. */
static void free_slabs(struct slab *slabs)
{
	while (slabs != NULL) {
		struct slab *slab = slabs;
		slabs = slab->next;
		hd__os_free(slab->memory);
	}
}

/* Under the lock: a letter of a slab that is listed. */
static struct hd__letter *take_one(struct depot *d, struct slab *slab)
{
	struct hd__letter *l = hd__in_box(slab->free);

	d->empty -= is_empty(slab);
	if (l != NULL) {
		slab->free = l->in_box.next;
		slab->nfree--;
	} else {
		l = letter_at(slab, slab->cut);
		l->kind = slab->kind;
		l->number = slab->cut++;
	}
	if (slab->nfree == 0 && slab->cut == slab->count)
		unlist(slab);
	return l;
}

/* Under the lock: the letter goes back to its slab. If that is to be freed, it comes before `gone`. */
static struct slab *give_back(struct depot *d, struct hd__letter *l, unsigned keep, struct slab *gone)
{
	struct slab *slab = slab_of(l);

	if (slab->era != d->era)
		return gone;
	if (slab->nfree == 0 && slab->cut == slab->count)
		list(d, slab);
	l->in_box.next = slab->free;
	slab->free = &l->in_box;
	slab->nfree++;
	if (!is_empty(slab))
		return gone;
	slab->free = NULL; /* as new: its letters are cut in the order of their addresses again */
	slab->cut = slab->nfree = 0;
	if (d->empty < keep) {
		d->empty++;
		return gone;
	}
	unlist(slab);
	slab->next = gone;
	return slab;
}

/* ---- the depot ---- */

/* n letters of this kind into `to`, or fewer if there is no memory for more; how many. Outside a lane; no locks are held. */
static size_t from_depot(unsigned kind, size_t n, struct hd__letter **to)
{
	struct depot *d = &depots[kind];
	struct slab *slab = NULL;
	size_t got = 0;

	do {
		hd__lock(&d->lock);
		if (slab != NULL) {
			slab->era = d->era;
			d->empty++;
			list(d, slab);
		} else if (n == HD__BATCH && d->nbatches > 0) {
			hd__copy(to, d->batches[--d->nbatches], sizeof d->batches[0]);
			got = n;
		}
		while (got < n && d->slabs != NULL)
			to[got++] = take_one(d, d->slabs);
		hd__unlock(&d->lock);
	} while (got == 0 && (slab = new_slab(kind)) != NULL);
	return got;
}

/* n letters for the depot, or for their slabs. */
static void to_depot(unsigned kind, struct hd__letter *const *from, size_t n)
{
	struct depot *d = &depots[kind];
	struct slab *gone = NULL;

	hd__lock(&d->lock);
	if (n == HD__BATCH && d->nbatches < BATCHES_MAX)
		hd__copy(d->batches[d->nbatches++], from, sizeof d->batches[0]);
	else
		for (size_t i = 0; i < n; i++)
			gone = give_back(d, from[i], EMPTY_MAX, gone);
	hd__unlock(&d->lock);
	free_slabs(gone);
}

void hd__depot_trim(void)
{
	for (struct depot *d = depots; d < depots + HD__LETTER_KINDS; d++) {
		struct slab *gone = NULL, *slab, *next;
		hd__lock(&d->lock);
		for (; d->nbatches > 0; d->nbatches--)
			for (size_t i = 0; i < HD__BATCH; i++)
				give_back(d, d->batches[d->nbatches - 1][i], UINT_MAX,
					  NULL); /* all that are empty are there still */
		for (slab = d->slabs; slab != NULL; slab = next) {
			next = slab->next;
			if (!is_empty(slab))
				continue;
			unlist(slab);
			slab->next = gone;
			gone = slab;
		}
		d->empty = 0;
		hd__unlock(&d->lock);
		free_slabs(gone);
	}
}

void hd__depot_forget(void)
{
	for (struct depot *d = depots; d < depots + HD__LETTER_KINDS; d++)
		*d = (struct depot){ .era = d->era + 1 };
}

/* ---- stores ---- */

_Static_assert(HD__STORE_MAX == 2 * HD__BATCH, "a store that has given a batch away or got one is half full");

/* The store has no room, or was not used yet. The letters that have been in it for longest go to the depot. */
static void make_room(struct hd__store *store, unsigned kind)
{
	if (store->letters[0] != NULL) {
		to_depot(kind, &store->letters[HD__BATCH], HD__BATCH);
		hd__copy(&store->letters[HD__BATCH], store->letters, HD__BATCH * sizeof store->letters[0]);
		store->room = HD__BATCH;
	} else {
		store->room = HD__STORE_MAX;
	}
}

/* The store has no letters. It has some now, if there is memory. By the thread of w, inside its lane, which may be left meanwhile. */
static void fill_store(struct hd_worker *w, struct hd__store *store, unsigned kind)
{
	struct hd__letter *batch[HD__BATCH];

	hd__leave_quietly(w);
	size_t n = from_depot(kind, HD__BATCH, batch);
	hd__enter(w);
	store->room = HD__STORE_MAX - n;
	for (size_t i = 0; i < n; i++)
		store->letters[HD__STORE_MAX - 1 - i] = batch[n - 1 - i];
}

/* With room for `size` bytes. Outside a lane: it may take a while. */
static struct hd__letter *new_large(size_t size)
{
	struct hd__letter *l = size <= SIZE_MAX - sizeof *l ? hd__os_alloc(sizeof *l + size) : NULL;

	if (l != NULL)
		l->kind = HD__LARGE;
	return l;
}

__attribute__((noinline)) struct hd__letter *hd__letter_make(struct hd_worker *w, unsigned kind, const void *data, size_t size)
{
	struct hd__letter *l = NULL;

	if (kind == HD__LARGE) {
		hd__leave_quietly(w);
		l = new_large(size);
		if (w != NULL)
			hd__enter(w);
	} else if (w != NULL) {
		struct hd__store *store = &w->letters.stores[kind];
		fill_store(w, store, kind);
		return store->room < HD__STORE_MAX ? hd__letter_new(w, kind, data, size) : NULL;
	} else {
		from_depot(kind, 1, &l);
	}
	if (l == NULL)
		return NULL;
	hd__count_letter(w, 1);
	if (size > 0)
		hd__copy(l->room, data, size);
	return l;
}

void hd__letter_free_slowly(struct hd_worker *w, struct hd__letter *l)
{
	if (l->kind == HD__LARGE && hd__tick_returns(l))
		return;
	if (l->kind != HD__LARGE && w != NULL) {
		make_room(&w->letters.stores[l->kind], l->kind);
		hd__letter_free(w, l);
		return;
	}
	hd__count_letter(w, -1);
	if (l->kind == HD__LARGE) {
		hd__os_free(l);
		return;
	}
	to_depot(l->kind, &l, 1);
}

void hd__letters_fini(struct hd__letters *letters)
{
	for (unsigned kind = 0; kind < HD__LETTER_KINDS; kind++) {
		struct hd__store *store = &letters->stores[kind];
		if (store->letters[0] != NULL || store->room > 0)
			to_depot(kind, &store->letters[store->room], HD__STORE_MAX - store->room);
	}
	add_rlx(&live, letters->live); /* what the program has taken is there still */
	*letters = (struct hd__letters){ .live = 0 };
}

struct hd__letter *hd__letter_alloc(size_t size)
{
	struct hd__letter *l = new_large(size);

	if (l != NULL)
		hd__count_letter(hd__self(), 1);
	return l;
}

/* ---- the end of its use ---- */

void hd__unwrite_letter(struct hd__letter *l)
{
	if (l->kind != HD__BARE)
		l->drop = NULL;
	hd__letter_drop(l);
}

/* Ends all that the letter has. Answers letters in a port that is gone with it: not dropped here, for those may be in a chain of any length. */
static inline struct hd__link *empty(struct hd__letter *l)
{
	if (l->kind == HD__BARE)
		return NULL;
	if (unlikely(l->drop != NULL))
		l->drop(l->data);
	return unlikely(l->carried != NULL) ? hd__port_let_go(l->carried) : NULL;
}

void hd__letters_drop(struct hd__link *chain)
{
	while (chain != NULL) {
		struct hd__letter *l = hd__in_box(chain);
		chain = chain->next;
		if (!ld_acq(&l->emptied)) /* pairs with drop_elsewhere */
			chain = hd__chain(empty(l), chain);
		hd__letter_free(hd__self(), l);
	}
}

void hd__letter_drop(struct hd__letter *l)
{
	l->in_box.next = NULL;
	hd__letters_drop(&l->in_box);
}

/* The receiver holds it, and the caller is another process or thread: the receiver frees it when it comes by. */
__attribute__((noinline)) static void drop_elsewhere(struct hd__letter *l)
{
	struct hd__link *more = empty(l);

	st_rel(&l->emptied, true);
	hd__letters_drop(more);
}

/* Drops a letter that was received, and so is not bare. */
__attribute__((noinline)) static void drop_received(struct hd__letter *l)
{
	struct hd_worker *w = hd__self();
	struct hd__mailbox *box = l->holder;
	if (unlikely(box != NULL && (w == NULL || ld_acq(&w->current->mourner) != &box->mourner))) {
		drop_elsewhere(l);
		return;
	}
	if (likely(box != NULL))
		hd__line_remove(&box->held, &l->in_box);
	if (likely(l->drop == NULL && l->carried == NULL))
		hd__letter_free(w, l);
	else
		hd__letter_drop(l);
}

void hd_message_drop(struct hd_message *m)
{
	struct hd__letter *l = m->letter;

	*m = (struct hd_message){ .port = NULL };
	if (l != NULL)
		drop_received(l);
}

int hd_message_take(struct hd_message *m)
{
	struct hd__letter *l = m->letter;
	struct hd_worker *w = hd__self();

	if (l == NULL || l->holder == NULL)
		return 0;
	if (w == NULL || hd__mailbox_of(w->current) != l->holder)
		return -EPERM;
	hd__line_remove(&l->holder->held, &l->in_box);
	l->holder = NULL;
	return 0;
}
