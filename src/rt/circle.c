/* rt/circle.c - waits that cannot end, reported while other processes go on: a circle of processes that wait for each other, when it
 * closes; and a wait for what belongs to a process that has ended.
 *
 * Owns:       the search along "which process waits for which", and what it prints; for each process a trail: where it last began to
 *             wait; sched->told.
 * Invariant:  a circle is only reported if it is one: it is walked twice, and no process of it has run between the two walks, so that all
 *             its edges were there at once. And one that closes is found: a process that begins to wait says so before it walks, so of two that
 *             close it together at least one sees the other; the second that sees it finds it in sched->told. Likewise with an owner
 *             that ends: it dies and then looks for waiters, a waiter says so and then looks whether the owner lives.
 * Locking:    sched->telling guards sched->told and keeps reports apart. The caller is inside its lane; one that is about to wait holds the
 *             lock of that queue. What others wait for is read as memory that may be gone (hd__edge_of).
 *
 * A wait that will end otherwise is no edge (will_end). */
#include <execinfo.h>
#include <stdlib.h>

#include "base/assert.h"
#include "os/lock.h"
#include "os/memory.h"
#include "rt/rt.h"

#define CIRCLE_MAX 64
#define CIRCLES_MAX 10	  /* printed at SIGQUIT */
#define INVERSIONS_MAX 10 /* reports in the life of the program */
#define BUDGET 4096	  /* of a look for the waiters of a process that ends, so that ends stay cheap among many processes: */
#define PRICE_OF_EDGE 16  /* a process that waits for an owner counts as so many others */

struct hd__trail {
	int count;
	void *frames[HD__FRAMES_MAX];
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
	return hd__os_peek(&inner, ld_rlx(&p->inner), sizeof inner) &&
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
		trail->count = backtrace(trail->frames, HD__FRAMES_MAX);
	st_rel(&me->inner->trail, trail);
}

static void print_trail(struct hd_process *p)
{
	struct hd__inner inner;
	struct hd__trail trail;

	if (!hd__os_peek(&inner, ld_rlx(&p->inner), sizeof inner) || inner.trail == NULL)
		return;
	if (hd__os_peek(&trail, inner.trail, sizeof trail) && trail.count > 0 && trail.count <= HD__FRAMES_MAX)
		hd__print_frames(trail.frames, trail.count);
}

/* Begins a report on a wait of p's. False: it has been told, by the thread that found it at the same moment. */
static bool begin_telling(struct hd__sched *sched, struct hd_process *p, uint64_t switches)
{
	uint64_t wait = (uint64_t)hd__pid(&sched->table, p) ^ switches * UINT64_C(0x9E3779B97F4A7C15);

	hd__lock(&sched->telling);
	for (unsigned i = 0; i < HD__TOLD; i++)
		if (sched->told[i] == wait) {
			hd__unlock(&sched->telling);
			return false;
		}
	sched->told[add_rlx(&sched->reports, 1) % HD__TOLD] = wait;
	return true;
}

static void end_telling(struct hd__sched *sched)
{
	hd__unlock(&sched->telling);
	if (sched->config.deadlock == HD_DEADLOCK_ABORT)
		abort();
}

static void print_wait(struct hd__sched *sched, struct hd_process *p, const struct hd__edge *edge)
{
	char who[HD__WHO_SIZE], holder[HD__WHO_SIZE];

	hd__complain("heddle:   %s waits in %s for %s, here:\n", hd__who(sched, hd__pid(&sched->table, p), who),
		     hd__wait_name(edge->why), hd__who(sched, edge->holder, holder));
	print_trail(p);
}

/* A circle is known by the wait of its process with the lowest slot, whichever process closed it. */
static void report_circle(struct hd__sched *sched, const struct walk *walk)
{
	int first = 0;

	for (int i = 1; i < walk->length; i++)
		if (walk->who[i] < walk->who[first])
			first = i;
	if (!begin_telling(sched, walk->who[first], walk->edges[first].switches))
		return;
	hd__complain("heddle: deadlock: a circle of %d processes, each of which waits for the next\n", walk->length);
	for (int i = 0; i < walk->length; i++)
		print_wait(sched, walk->who[i], &walk->edges[i]);
	end_telling(sched);
}

/* Whether p is the first of a circle that stands: so each is found once. */
static bool begins_circle(struct hd__sched *sched, struct hd_process *p, struct walk *walk)
{
	struct walk again;

	if (ld_rlx(&p->waiter) == NULL || !walk_circle(sched, p, walk))
		return false;
	for (int i = 1; i < walk->length; i++)
		if (walk->who[i] < p)
			return false;
	return walk_circle(sched, p, &again) && is_same(walk, &again);
}

void hd__print_circles(struct hd__sched *sched)
{
	char who[HD__WHO_SIZE], holder[HD__WHO_SIZE];
	struct walk walk;
	unsigned told = 0;

	for (uint32_t slot = 0; slot < ld_acq(&sched->table.made) && told < CIRCLES_MAX; slot++) {
		if (!begins_circle(sched, &sched->table.blocks[slot], &walk))
			continue;
		told++;
		hd__complain("heddle: a circle of %d processes, each of which waits for the next: a deadlock\n", walk.length);
		for (int i = 0; i < walk.length; i++)
			hd__complain("heddle:   %s waits in %s for %s\n",
				     hd__who(sched, hd__pid(&sched->table, walk.who[i]), who), hd__wait_name(walk.edges[i].why),
				     hd__who(sched, walk.edges[i].holder, holder));
	}
}

/* Reports p's wait if the owner of what it waits for has ended: only the owner could have given that up. */
static void look_for_dead_owner(struct hd__sched *sched, struct hd_process *p)
{
	struct hd__edge edge;

	if (!hd__edge_of(sched, p, &edge) || edge.holder <= 0 || !hd__is_owned(edge.why) || will_end(p, &edge))
		return;
	struct hd_process *owner = hd__table_find(&sched->table, edge.holder);
	if (owner != NULL && hd__alive(ld_seq(&owner->control), edge.holder))
		return;
	if (ld_seq(&sched->stopping) || !begin_telling(sched, p, edge.switches))
		return; /* when the runtime ends, it ends p's wait too */
	hd__complain("heddle: deadlock: a process waits for what an ended process has not given up\n");
	print_wait(sched, p, &edge);
	end_telling(sched);
}

void hd__owner_ended(struct hd_worker *w)
{
	struct hd__sched *sched = w->sched;
	uint32_t made = ld_acq(&sched->table.made);

	(void)add_seq(&sched->reports,
		      0); /* a fence, after the caller has marked its process dead; pairs with that in hd__circle_look */
	for (uint32_t slot = 0, spent = 0; slot < made && spent < BUDGET; slot++, spent++) {
		struct hd_process *p = &sched->table.blocks[slot];
		if (ld_rlx(&p->waiter) == NULL || !hd__is_owned(ld_rlx(&p->why)))
			continue;
		look_for_dead_owner(sched, p);
		spent += PRICE_OF_EDGE;
	}
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
	char who[HD__WHO_SIZE], holder[HD__WHO_SIZE];
	hd__complain("heddle: priority inversion: %s of priority %d waits in %s for %s of priority %d, and a process of "
		     "priority %d will run%s\n",
		     hd__who(w->sched, hd__pid(&w->sched->table, me), who), me->priority, hd__wait_name(edge.why),
		     hd__who(w->sched, edge.holder, holder), low, between,
		     edge.why == HD_WAIT_MUTEX || edge.why == HD_WAIT_REENTER ? "; HD_INHERIT would prevent it" : "");
}

void hd__circle_look(struct hd_worker *w, struct hd_process *me)
{
	struct walk first, again;

	leave_trail(me);
	if (!me->waiter->boosts)
		look_for_inversion(w, me);
	st_rlx(&me->why, me->waiter->why);
	/* A fence: a process that walks after this sees that we wait, or we see that it does; and an owner that ends sees us, or we see that
	 * it has ended. */
	(void)add_seq(&w->sched->reports, 0);
	look_for_dead_owner(w->sched, me);
	if (walk_circle(w->sched, me, &first) && walk_circle(w->sched, me, &again) && is_same(&first, &again))
		report_circle(w->sched, &first);
}

void hd__call_refused(struct hd__sched *sched, struct hd_process *caller, hd_pid by, hd_pid to)
{
	char who[HD__WHO_SIZE], other[HD__WHO_SIZE], third[HD__WHO_SIZE] = "a thread";
	hd_pid pid = hd__pid(&sched->table, caller);

	hd__lock(&sched->telling);
	add_rlx(&sched->reports, 1);
	hd__complain("heddle: %s was refused: a circle of processes that would wait for each other's answers\n",
		     by == pid ? "hd_call" : "a message that passes a call on");
	hd__who(sched, pid, who);
	hd__who(sched, to, other);
	if (by == pid)
		hd__complain("heddle:   %s calls %s\n", who, other);
	else
		hd__complain("heddle:   %s passes the call of %s on to %s\n", by != 0 ? hd__who(sched, by, third) : third, who,
			     other);
	for (int i = 0; i < CIRCLE_MAX; i++) {
		struct hd_process *p = hd__table_find(&sched->table, to);
		if (p == NULL || p == caller || ld_acq(&p->why) != HD_WAIT_CALL)
			break;
		hd_pid next = (hd_pid)ld_acq(&p->arrival);
		hd__complain("heddle:   %s waits in hd_call for %s\n", hd__who(sched, to, who), hd__who(sched, next, other));
		to = next;
	}
	end_telling(sched);
}
