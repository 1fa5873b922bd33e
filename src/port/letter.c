/* port/letter.c - letters: the memory of a message, from its sender to the end of its use.
 *
 * Owns:       struct hd__letter, and each worker's store of letters that are not in use.
 * Invariant:  a letter belongs to one of: its sender, a port, the receiver that holds it, a store. What was moved into it is dropped once,
 *             when the letter is dropped; or given back to its sender, which could not send it.
 * Locking:    a store is for its worker's thread alone.
 * Callers:    any thread. */
#include <string.h>

#include "os/memory.h"
#include "port/port.h"

#define STORE_MAX 512 /* letters in a worker's store */

static int64_t live; /* letters that plain threads have made, less those that they have freed; atomically */

/* One more is in use, or one less. */
static inline void count(struct hd_worker *w, int64_t change)
{
	if (likely(w != NULL))
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

/* As new_letter, inside the lane of w, from its store if it can be. */
static inline struct hd__letter *take_letter(struct hd_worker *w, const void *data, size_t size)
{
	if (likely(w != NULL && size <= HD__LETTER_ROOM && w->letters.count > 0)) {
		struct hd__letter *l = hd__in_box(w->letters.first);
		w->letters.first = l->in_box.next;
		w->letters.count--;
		if (size > 0)
			hd__copy(l->room, data, size);
		return l;
	}
	hd__leave_quietly(w);
	struct hd__letter *l = new_letter(data, size);
	if (w != NULL)
		hd__enter(w);
	return l;
}

void hd__letter_free(struct hd_worker *w, struct hd__letter *l)
{
	count(w, -1);
	if (likely(w != NULL && !l->large && w->letters.count < STORE_MAX)) {
		l->in_box.next = w->letters.first;
		w->letters.first = &l->in_box;
		w->letters.count++;
		return;
	}
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
		count(hd__self(), 1);
	return l;
}

int hd__write_letter(struct hd_worker *w, const struct hd_sending *what, struct hd__letter **letter)
{
	if (unlikely(what->tag < 0 || (what->data == NULL && what->size > 0)))
		return -EINVAL;
	size_t size = what->move ? 0 : what->size;
	struct hd__letter *l = take_letter(w, what->data, size);
	if (unlikely(l == NULL))
		return -ENOMEM;
	count(w, 1);
	l->m.sender = likely(w != NULL) ? hd__pid(&w->sched->table, w->current) : 0;
	l->m.tag = what->tag;
	l->m.size = what->size;
	l->m.data = what->move ? (void *)(uintptr_t)what->data : size > 0 ? l->room : NULL;
	l->drop = what->move ? what->drop : NULL;
	l->m.carried = what->carried != NULL ? hd_port_retain(what->carried) : NULL;
	l->m.letter = l;
	l->holder = NULL;
	l->urgent = what->urgent;
	l->exempt = l->answered = false;
	*letter = l;
	return 0;
}

void hd__unwrite_letter(struct hd__letter *l)
{
	l->drop = NULL;
	hd__letter_drop(l);
}

void hd__letter_drop(struct hd__letter *l)
{
	if (l->drop != NULL)
		l->drop(l->m.data);
	if (l->m.carried != NULL)
		hd_port_release(l->m.carried);
	hd__letter_free(hd__self(), l);
}

void hd__letters_drop(struct hd__link *chain)
{
	while (chain != NULL) {
		struct hd__letter *l = hd__in_box(chain);
		chain = chain->next;
		hd__letter_drop(l);
	}
}

/* The letter leaves the messages that its receiver holds. */
static void let_go(struct hd__letter *l)
{
	struct hd__mailbox *box = l->holder;

	if (box == NULL)
		return;
	hd__mailbox_lock(box);
	hd__line_remove(&box->held, &l->in_box);
	l->holder = NULL;
	hd__mailbox_unlock(box);
}

void hd_message_drop(struct hd_message *m)
{
	struct hd__letter *l = m->letter;

	*m = (struct hd_message){ .port = NULL };
	if (l == NULL)
		return;
	let_go(l);
	hd__letter_drop(l);
}

void hd_message_take(struct hd_message *m)
{
	if (m->letter != NULL)
		let_go(m->letter);
}
