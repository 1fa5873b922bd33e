/* port/letter.c - letters: the memory of a message, from its sender to the end of its use.
 *
 * Owns:       struct hd__letter, and each worker's store of letters that are not in use.
 * Invariant:  a letter belongs to one of: its sender, a port, the receiver that holds it, a store. What was moved into it is dropped once,
 *             when the letter is dropped; or given back to its sender, which could not send it.
 * Locking:    a store is for its worker's thread alone; what a process holds is for that process, and for the thread that has claimed its wait.
 * Callers:    any thread. */
#include <string.h>

#include "os/memory.h"
#include "port/port.h"

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

	for (unsigned i = 0; i < sched->nworkers; i++)
		all += ld_rlx(&sched->workers[i].letters.live);
	return all;
}

/* With `size` bytes at `data`, if there are any. Outside a lane: it may take a while. */
__attribute__((noinline)) static struct hd__letter *new_letter(const void *data, size_t size)
{
	bool large = size > HD__LETTER_ROOM;

	if (large && size > SIZE_MAX - sizeof(struct hd__letter))
		return NULL;
	struct hd__letter *l = hd__os_alloc(large ? sizeof *l + size : HD__LETTER_SIZE);
	if (l == NULL)
		return NULL;
	l->large = large;
	if (size > 0)
		hd__copy(l->room, data, size);
	return l;
}

struct hd__letter *hd__letter_make(struct hd_worker *w, const void *data, size_t size)
{
	hd__leave_quietly(w);
	struct hd__letter *l = new_letter(data, size);
	if (w != NULL)
		hd__enter(w);
	if (l != NULL)
		hd__count_letter(w, 1);
	return l;
}

void hd__letter_free_slowly(struct hd_worker *w, struct hd__letter *l)
{
	hd__count_letter(w, -1);
	hd__os_free(l);
}

void hd__letters_fini(struct hd__letters *letters)
{
	while (letters->first != NULL) {
		struct hd__letter *l = hd__in_box(letters->first);
		letters->first = l->in_box.next;
		hd__os_free(l);
	}
	letters->count = 0;
	add_rlx(&live, letters->live); /* what the program has taken is there still */
	letters->live = 0;
}

struct hd__letter *hd__letter_alloc(size_t size)
{
	struct hd__letter *l = new_letter(NULL, 0);

	HD_ASSERT(size <= HD__LETTER_ROOM, "a notice is longer than a letter");
	if (l != NULL)
		hd__count_letter(hd__self(), 1);
	return l;
}

void hd__unwrite_letter(struct hd__letter *l)
{
	l->drop = NULL;
	hd__letter_drop(l);
}

/* Ends all that the letter has. Answers letters in a port that is gone with it: not dropped here, for those may be in a chain of any length. */
static inline struct hd__link *empty(struct hd__letter *l)
{
	if (unlikely(l->drop != NULL))
		l->drop(l->m.data);
	return unlikely(l->m.carried != NULL) ? hd__port_let_go(l->m.carried) : NULL;
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

void hd_message_drop(struct hd_message *m)
{
	struct hd__letter *l = m->letter;

	*m = (struct hd_message){ .port = NULL };
	if (l == NULL)
		return;
	struct hd_worker *w = hd__self();
	struct hd__mailbox *box = l->holder;
	if (unlikely(box != NULL && (w == NULL || hd__mailbox_of(w->current) != box))) {
		drop_elsewhere(l);
		return;
	}
	if (likely(box != NULL))
		hd__line_remove(&box->held, &l->in_box);
	struct hd__link *more = empty(l);
	hd__letter_free(hd__self(), l); /* the caller may be on another worker now */
	if (unlikely(more != NULL))
		hd__letters_drop(more);
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
