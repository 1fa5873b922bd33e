/* deque_last.c - a queue with an owner, who takes at one end, and thieves, who steal at the other.
 *
 * Wrong:      the owner takes the last item as if it were alone.
 * Schedule:   the thief has seen the last item; the owner goes for it, and sees that it is the last; the thief's swap
 *             succeeds; the owner takes it too.
 * Shows:      assert: an item was taken twice.
 * Fix:        for the last one the owner races as a thief would. */
#include "planted.h"

enum { ITEMS = 2, NONE = -1 };

static _Atomic int top, bottom = ITEMS; /* the items are top ... bottom - 1, named by their places */
static _Atomic bool taken[ITEMS];

static int take(void)
{
	int b = atomic_fetch_sub(&bottom, 1) - 1;

	hd_checkpoint(); /* it has announced itself, and not looked yet */
	int t = top, item = t <= b ? b : NONE;
	if (t < b)
		return item;
#ifdef FIXED
	if (t == b && !atomic_compare_exchange_strong(&top, &t, t + 1))
		item = NONE;
#else
	hd_checkpoint(); /* it has looked, and not taken yet */
	if (t == b)
		top = t + 1;
#endif
	bottom = b + 1;
	return item;
}

static int steal(void)
{
	int t = top;

	hd_checkpoint(); /* between the two */
	if (t >= bottom)
		return NONE;
	hd_checkpoint(); /* it has seen an item, and not taken it yet */
	return atomic_compare_exchange_strong(&top, &t, t + 1) ? t : NONE;
}

/* Process 0 is the owner. */
static void *take_or_steal(void *arg)
{
	for (int item = 0; item != NONE;) {
		item = number_of(arg) == 0 ? take() : steal();
		MUST(item == NONE || !atomic_exchange(&taken[item], true));
	}
	return arg;
}

PLANTED_MAIN
{
	TOGETHER(take_or_steal, take_or_steal);
	MUST(taken[0] && taken[1]);
}
