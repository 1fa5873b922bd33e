/* sync/rank.c - waiters by their level: those of a mutex with HD_BY_PRIORITY or HD_INHERIT, those for the answers of a process.
 *
 *     highest -----> a (70) <-> d <-> e      the waiters of a level are a ring, in the order in which they came to it;
 *                    |                       the first of them leads
 *                  below
 *                    v
 *                    b (40) <-> c            there is a leader for each level at most: no walk is longer than 71 links
 *
 * Owns:       the ranks of waiters.
 * Invariant:  a waiter that has a rank has that of its process's priority, or a thread is about to change it.
 * Locking:    the lock of the mutex's queue; that of the process's loans.
 * Callers:    mutex.c, lend.c, as waiters come and go; inherit.c, when the priority of one has changed. */
#include "sync/sync.h"

void hd__rank(struct hd__ranked **highest, struct hd__ranked *x)
{
	struct hd_process *p = x->waiter.process;
	int level = p != NULL ? ld_seq(&p->priority) : HD_PRIORITY_USER; /* pairs with heed in life/steer.c: see hd__boosts */
	struct hd__ranked **link = highest, *leader;

	while (*link != NULL && (*link)->level > level)
		link = &(*link)->below;
	leader = *link;
	x->level = (uint8_t)level;
	if (leader != NULL && leader->level == level) {
		x->next = leader;
		x->prev = leader->prev;
		x->prev->next = leader->prev = x;
	} else {
		x->next = x->prev = x;
		x->below = leader;
		*link = x;
	}
}

void hd__unrank(struct hd__ranked **highest, struct hd__ranked *x)
{
	struct hd__ranked **link = highest;

	if (x->level == 0)
		return;
	while ((*link)->level > x->level)
		link = &(*link)->below;
	if (*link == x) {
		*link = x->next != x ? x->next : x->below;
		x->next->below = x->below;
	}
	x->prev->next = x->next;
	x->next->prev = x->prev;
	x->level = 0;
}
