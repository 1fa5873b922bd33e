/* when/board.c - noticeboards: a value that is read without a lock, and copied whole.
 *
 *     publisher, under the lock     sequence: odd    word 0 ... word n-1    sequence: even
 *     reader                        sequence         word 0 ... word n-1    sequence: even, and still the same?
 *
 * Owns:       struct hd_noticeboard.
 * Invariant:  while the sequence is even, the words are the value with the number sequence / 2 + 1. A reader that saw a word of a later value has, by its
 *             acquire of that word, also seen the odd sequence that was stored before it: its second look at the sequence finds that one or a later
 *             one, and the copy is thrown away. So no fence is needed: TSan understands it, and on x86-64 all of it is plain moves.
 * Locking:    the byte lock is for publishers. A reader takes it, too, when HD__TRIES copies were in vain: publishers that never pause, or one that has
 *             lost its CPU in the middle, do not keep a reader for ever.
 * Callers:    any thread, with or without a runtime. No lane is entered, and there is no safe point.
 *
 * Rejected: a pointer to the newest value, exchanged by publishers. It would save readers the second look, but a reader would have to say that it
 * uses the old value, before that is freed: in a word that others write as well. */
#include <heddle/when.h>

#include "os/lock.h"
#include "os/memory.h"
#include "sync/sync.h"
#include "context.h"

struct hd_noticeboard {
	uint64_t sequence;  /* twice the publishes so far, one more during one; written under the lock, read by any thread */
	size_t size;	    /* constant: bytes of a value */
	unsigned char lock; /* any thread */
	uint64_t words[];   /* the value, then zeros up to a whole word; as sequence */
};

#define WORD sizeof(uint64_t)

hd_noticeboard *hd_noticeboard_new(const void *value, size_t size)
{
	if (value == NULL || size == 0 || size > SIZE_MAX - sizeof(hd_noticeboard) - WORD)
		return NULL;
	hd_noticeboard *b = hd__os_alloc(sizeof *b + (size + WORD - 1) / WORD * WORD);
	if (b == NULL)
		return NULL;
	b->size = size;
	hd__copy(b->words, value, size); /* no other thread knows the board */
	return b;
}

void hd_noticeboard_drop(hd_noticeboard *b)
{
	hd__os_free(b);
}

void hd_noticeboard_publish(hd_noticeboard *b, const void *value)
{
	const unsigned char *from = value;
	size_t whole = b->size / WORD, rest = b->size % WORD;

	hd__publish(b);
	hd__lock(&b->lock);
	uint64_t sequence = b->sequence;
	st_rlx(&b->sequence, sequence + 1); /* relaxed: the words, stored next, publish it; pairs with the second look */
	for (size_t i = 0; i < whole; i++) {
		uint64_t word;
		memcpy(&word, from + i * WORD, WORD);
		st_rel(&b->words[i], word); /* pairs with copy_words: publishes the odd sequence */
	}
	if (rest != 0) {
		uint64_t word = 0;
		hd__copy(&word, from + whole * WORD, rest);
		st_rel(&b->words[whole], word); /* likewise */
	}
	st_rel(&b->sequence, sequence + 2); /* pairs with the first look: publishes all words */
	hd__unlock(&b->lock);
}

static inline void copy_words(const hd_noticeboard *b, unsigned char *to)
{
	size_t whole = b->size / WORD, rest = b->size % WORD;

	for (size_t i = 0; i < whole; i++) {
		uint64_t word = ld_acq(&b->words[i]); /* pairs with publish's words */
		memcpy(to + i * WORD, &word, WORD);
	}
	if (rest != 0) {
		uint64_t word = ld_acq(&b->words[whole]); /* likewise */
		hd__copy(to + whole * WORD, &word, rest);
	}
}

/* Without the lock. Returns the even sequence of what was copied; an odd one: the copy is worth nothing. */
static inline uint64_t try_copy(const hd_noticeboard *b, unsigned char *to)
{
	uint64_t sequence = ld_acq(&b->sequence); /* the first look; pairs with the end of publish */

	if (unlikely(sequence % 2 != 0))
		return sequence;
	copy_words(b, to);
	/* The second look. Relaxed: copy_words has acquired the odd sequence (publish's st_rlx) if it has seen a word of that publish. */
	return likely(ld_rlx(&b->sequence) == sequence) ? sequence : 1;
}

/* Under the lock, which is no part of the value: a reader may write it, although the board is constant to it. */
__attribute__((noinline)) static uint64_t copy_locked(const hd_noticeboard *b, unsigned char *to)
{
	unsigned char *lock = (unsigned char *)&b->lock;

	hd__lock(lock);
	uint64_t sequence = b->sequence;
	copy_words(b, to);
	hd__unlock(lock);
	return sequence;
}

uint64_t hd_noticeboard_read(const hd_noticeboard *b, void *value)
{
	struct hd_worker *w = hd__self();

	if (w != NULL && unlikely(ld_rlx(&w->current->control) & HD__LOGGED))
		return 0;
	uint64_t sequence = try_copy(b, value);

	for (int i = 1; unlikely(sequence % 2 != 0) && i < HD__TRIES; i++) {
		hd__arch_pause();
		sequence = try_copy(b, value);
	}
	if (unlikely(sequence % 2 != 0))
		sequence = copy_locked(b, value);
	hd__learn(b);
	return sequence / 2 + 1;
}
