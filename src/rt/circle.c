/* rt/circle.c - processes that wait for each other in a circle, reported when it closes.
 *
 * Owns:       the search along "who waits for whom", and what it prints; for each process a trail: where it last began to wait.
 * Invariant:  a circle is only reported if it is one: it is walked twice, and no process of it has run between the two walks, so that all
 *             its edges were there at once. And one that closes is found: a process that begins to wait says so before it walks, so of two that
 *             close it together at least one sees the other.
 * Locking:    none; the caller holds the lock of the queue that it is about to wait in. What others wait for is read as memory that may
 *             be gone (hd__edge_of).
 *
 * A wait that will end otherwise is no edge (will_end). */
#include <execinfo.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/assert.h"
#include "os/memory.h"
#include "rt/rt.h"

#define CIRCLE_MAX 64
#define FRAMES_MAX 24
#define INVERSIONS_MAX 10 /* reports in the life of the program */

struct hd__trail {
	int count;
	void *frames[FRAMES_MAX];
};

struct walk {
	int length;
	struct hd_process *who[CIRCLE_MAX];
	struct hd__edge edges[CIRCLE_MAX];
};

/* Whether p's wait ends without the one that it waits for: it has a deadline, or was cancelled or terminated a moment ago, or will stop
 * the other one (hd_suspend) as soon as that one's worker looks. */
static bool will_end(struct hd_process *p, const struct hd__edge *edge)
{
	struct hd_process seen = { .ending = ld_rlx(&p->ending) };
	struct hd__inner inner;

	if (edge->timed || edge->why == HD_WAIT_SUSPEND)
		return true;
	seen.inner = &inner;
	return hd__os_peek(&inner, p->inner, sizeof inner) &&
	       hd__called_off(&seen, ld_acq(&p->control), edge->rules) != HD__WAITING;
}

/* From `me` along the edges, till it comes back to me. */
static bool walk_circle(struct hd__sched *sched, struct hd_process *me, struct walk *walk)
{
	struct hd_process *p = me;

	for (walk->length = 0; walk->length < CIRCLE_MAX;) {
		struct hd__edge *edge = &walk->edges[walk->length];
		if (!hd__edge_of(sched, p, edge) || edge->holder <= 0 || will_end(p, edge))
			return false;
		walk->who[walk->length++] = p;
		p = hd__table_find(&sched->table, edge->holder);
		if (p == NULL || !hd__alive(ld_acq(&p->control), edge->holder))
			return false;
		if (p == me)
			return true;
	}
	return false;
}

static bool is_same(const struct walk *a, const struct walk *b)
{
	if (a->length != b->length)
		return false;
	for (int i = 0; i < a->length; i++)
		if (a->who[i] != b->who[i] || a->edges[i].holder != b->edges[i].holder ||
		    a->edges[i].switches != b->edges[i].switches)
			return false;
	return true;
}

/* Remembers where the runner is, for the process that closes a circle with it later. */
static void leave_trail(struct hd_process *me)
{
	struct hd__trail *trail = me->inner->trail;

	if (trail == NULL)
		trail = hd__os_alloc(sizeof *trail); /* without memory there is none: the report is shorter */
	if (trail != NULL)
		trail->count = backtrace(trail->frames, FRAMES_MAX);
	st_rel(&me->inner->trail, trail);
}

static void print_trail(struct hd_process *p)
{
	struct hd__inner inner;
	struct hd__trail trail;

	if (!hd__os_peek(&inner, p->inner, sizeof inner) || inner.trail == NULL)
		return;
	if (hd__os_peek(&trail, inner.trail, sizeof trail) && trail.count > 0 && trail.count <= FRAMES_MAX)
		backtrace_symbols_fd(trail.frames, trail.count, STDERR_FILENO);
}

static void print_wait(struct hd__sched *sched, struct hd_process *p, const struct hd__edge *edge)
{
	hd__complain("heddle:   process %lld%s%s%s waits in %s for process %lld, here:\n", (long long)hd__pid(&sched->table, p),
		     p->name[0] ? " \"" : "", p->name, p->name[0] ? "\"" : "", hd__wait_name(edge->why),
		     (long long)edge->holder);
	print_trail(p);
}

/* The runner waits for a process of a lower priority, which does not run because one of a priority between the two is ready. */
static void look_for_inversion(struct hd_worker *w, struct hd_process *me)
{
	static int reported;
	struct hd__edge edge;

	if (!hd__edge_of(w->sched, me, &edge) || edge.holder <= 0 || edge.why == HD_WAIT_JOIN || edge.why == HD_WAIT_TERMINATE)
		return;
	struct hd_process *p = hd__table_find(&w->sched->table, edge.holder);
	int low = p != NULL ? ld_rlx(&p->priority) : HD__PRIORITY_MAX, between = w->runq.highest;
	if (low >= me->priority || between <= low || between >= me->priority || ld_acq(&p->state) == HD_RUNNING)
		return;
	if (add_rlx(&reported, 1) >= INVERSIONS_MAX)
		return;
	hd__complain("heddle: priority inversion: process %lld%s%s%s of priority %d waits in %s for process %lld of priority "
		     "%d, and one of "
		     "priority %d will run%s\n",
		     (long long)hd__pid(&w->sched->table, me), me->name[0] ? " \"" : "", me->name, me->name[0] ? "\"" : "",
		     me->priority, hd__wait_name(edge.why), (long long)edge.holder, low, between,
		     edge.why == HD_WAIT_MUTEX || edge.why == HD_WAIT_REENTER ? "; HD_INHERIT would prevent it" : "");
}

void hd__circle_look(struct hd_worker *w, struct hd_process *me)
{
	struct walk first, again;

	leave_trail(me);
	if (!me->waiter->boosts)
		look_for_inversion(w, me);
	(void)add_seq(&w->sched->circles,
		      0); /* a fence: a process that walks after this sees that we wait, or we see that it does */
	if (!walk_circle(w->sched, me, &first) || !walk_circle(w->sched, me, &again) || !is_same(&first, &again))
		return;
	add_seq(&w->sched->circles, 1);
	hd__complain("heddle: deadlock: a circle of %d processes, each of which waits for the next\n", first.length);
	for (int i = 0; i < first.length; i++)
		print_wait(w->sched, first.who[i], &first.edges[i]);
	if (w->sched->config.deadlock == HD_DEADLOCK_ABORT)
		abort();
}
