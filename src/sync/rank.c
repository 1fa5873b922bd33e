/* sync/rank.c - the waiters of a mutex by their level, for HD_BY_PRIORITY and HD_INHERIT.
 *
 *     m->highest --> a (70) <-> d <-> e      the waiters of a level are a ring, in the order in which they came to it;
 *                    |                       the first of them leads
 *                  below
 *                    v
 *                    b (40) <-> c            there is a leader for each level at most: no walk is longer than 71 links
 *
 * Owns:       the ranks of waiters.
 * Invariant:  a waiter in the mutex's queue has the rank of its process's priority, or a thread is about to change it.
 * Locking:    the lock of the mutex's queue.
 * Callers:    mutex.c, as waiters come and go; inherit.c, when the priority of one has changed. */
#include "sync/sync.h"

void hd__rank(struct hd_mutex *m, struct hd__ranked *x)
{
	struct hd_process *p = x->waiter.process;
	int level = p != NULL ? ld_seq(&p->priority) : HD_PRIORITY_USER; /* pairs with heed in life/steer.c: see hd__boosts */
	struct hd__ranked **link = &m->highest, *leader;

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

void hd__unrank(struct hd_mutex *m, struct hd__ranked *x)
{
	struct hd__ranked **link = &m->highest;

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
