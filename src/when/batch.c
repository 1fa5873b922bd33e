/* when/batch.c - behaviours that are made in one indivisible step.
 *
 * Owns:       nothing beyond the call.
 * Invariant:  the tickets of all behaviours for one cown join its line together, in the order of the behaviours; and no other ticket comes behind any of them before
 *             all are in their lines. Memory and blocks for all are there before the first joins.
 * Callers:    any thread. */
#include <errno.h>
#include <stdlib.h>

#include "life/guest.h"
#include "os/memory.h"
#include "when/when.h"

struct batch {
	size_t n, ntickets;
	struct hd__making *makings;
	struct hd__behaviour **behaviours;
	struct hd__ticket **tickets; /* of all, by cown, and for one cown by behaviour */
};

/* While it is in no line, the link of a ticket is the number of its behaviour. */
static int compare(const void *x, const void *y)
{
	const struct hd__ticket *a = *(struct hd__ticket *const *)x, *b = *(struct hd__ticket *const *)y;
	uint64_t i = hd__cown_of(a)->id, j = hd__cown_of(b)->id;

	return i != j ? (i > j) - (i < j) : (a->link > b->link) - (a->link < b->link);
}

static int prepare(struct batch *batch, const struct hd_when *whens, size_t n)
{
	int err = 0;

	batch->makings = hd__os_alloc(n * sizeof *batch->makings);
	batch->behaviours = hd__os_alloc(n * sizeof *batch->behaviours);
	if (batch->makings == NULL || batch->behaviours == NULL)
		return -ENOMEM;
	for (; batch->n < n && err == 0; batch->n++) {
		struct hd__behaviour *b = NULL;
		batch->makings[batch->n].how = whens[batch->n];
		err = hd__behaviour_check(&batch->makings[batch->n]);
		if (err == 0 && (b = hd__behaviour_new(&batch->makings[batch->n])) == NULL)
			err = -ENOMEM;
		batch->behaviours[batch->n] = b;
		batch->ntickets += b != NULL ? b->distinct : 0;
	}
	if (err != 0)
		return err;
	batch->tickets = hd__os_alloc((batch->ntickets + 1) * sizeof *batch->tickets);
	if (batch->tickets == NULL)
		return -ENOMEM;
	size_t k = 0;
	for (size_t i = 0; i < n; i++)
		for (uint32_t j = 0; j < batch->behaviours[i]->distinct; j++) {
			struct hd__ticket *t = &batch->behaviours[i]->tickets[j];
			t->link = i;
			batch->tickets[k++] = t;
		}
	qsort(batch->tickets, k, sizeof *batch->tickets, compare);
	return 0;
}

static void dispose(struct batch *batch, bool made)
{
	for (size_t i = 0; i < batch->n && !made; i++)
		hd__behaviour_unmake(batch->behaviours[i]);
	hd__os_free(batch->makings);
	hd__os_free(batch->behaviours);
	hd__os_free(batch->tickets);
}

/* Blocks for all, or for none that has had none. */
static int embody_all(struct hd__caller caller, struct batch *batch)
{
	for (size_t i = 0; i < batch->n; i++) {
		int err = hd__behaviour_embody(caller, batch->behaviours[i]);
		if (err == 0)
			continue;
		while (i-- > 0)
			hd__behaviour_disembody(caller, batch->behaviours[i]);
		return err;
	}
	return 0;
}

/* Whether the i-th ticket is the last one for its cown. */
static inline bool is_last(const struct batch *batch, size_t i)
{
	return i + 1 == batch->ntickets || hd__cown_of(batch->tickets[i]) != hd__cown_of(batch->tickets[i + 1]);
}

/* All tickets join their lines: those for one cown together, so that nothing comes between them. No behaviour runs before all are in their lines:
 * each awaits the call. Inside the lane. */
static void join_batch(struct hd__caller caller, struct batch *batch, struct hd__aftermath *after)
{
	struct hd_worker *w = caller.w;
	struct hd__ticket **t = batch->tickets;

	for (size_t i = 0; i < batch->ntickets; i++)
		if (!is_last(batch, i))
			t[i]->link = (uintptr_t)t[i + 1] | HD__PLACED | (hd__ticket_reads(t[i + 1]) ? HD__NEXT_READS : 0);
	for (size_t i = 0; i < batch->ntickets; i++)
		hd__ticket_counts(t[i]);
	for (size_t first = 0, i = 0; i < batch->ntickets; i++) {
		if (!is_last(batch, i))
			continue;
		bool has = hd__line_join(w, t[first], t[i], i + 1 == batch->ntickets, after);
		if (ld_rlx(&hd__cown_of(t[i])->urgency) != NULL)
			hd__cown_urge(caller.sched, hd__cown_of(t[i]));
		if (has)
			hd__behaviour_got(w, t[first]->behaviour, 1, after);
		first = i + 1;
	}
	for (size_t i = 0; i + 1 < batch->ntickets; i++)
		if (is_last(batch, i))
			hd__line_placed(t[i]);
	for (size_t i = 0; i < batch->n; i++)
		hd__behaviour_got(w, batch->behaviours[i], 1, after);
	if (unlikely(after->forsaken != NULL)) /* on a plain thread: the runtime is over, and has abandoned some meanwhile */
		hd__settle(after);
}

int hd_when_batch(const struct hd_when *whens, size_t n)
{
	struct batch batch = { .n = 0 };
	struct hd__aftermath after = { .dead = NULL };

	if (n == 1)
		return hd__behaviour_make(&(struct hd__making){ .how = whens[0] }, NULL);
	if (n == 0)
		return 0;
	int err = n <= SIZE_MAX / sizeof(struct hd__making) ? prepare(&batch, whens, n) : -ENOMEM;
	if (err == 0) {
		struct hd__caller caller = hd__call_begin();
		err = caller.sched != NULL ? embody_all(caller, &batch) : -ENXIO;
		for (size_t i = 0; i < n && err == 0; i++)
			hd__behaviour_bear(caller, batch.behaviours[i], &batch.makings[i]);
		if (err == 0)
			join_batch(caller, &batch, &after);
		hd__call_end(caller);
	}
	dispose(&batch, err == 0);
	return err;
}
