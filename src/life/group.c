/* life/group.c - processes that begin and end together.
 *
 * Owns:       struct hd_group, and a record for each member, from its spawn to its end.
 * Invariant:  count is the number of records. A record is in `members`, or, once its process has been told to stop, in
 *             `cancelled_members`. A group that has an owner is in the owner's list, until it is closed.
 * Locking:    the wait queue's lock guards it all. It is held over a spawn, so that a member cannot end before its record is whole; it
 *             is not held when a member is asked to stop, for that may take other locks.
 * Callers:    the owner and members; the end of a process; hd_group_cancel from any thread. */
#include <errno.h>
#include <heddle/group.h>

#include "base/assert.h"
#include "life/life.h"
#include "os/memory.h"

struct hd__member {
	struct hd__mourner mourner;
	struct hd_group *group;
	struct hd__member *next, **link; /* link: what points to this one */
	hd_pid pid;
};

static void insert(struct hd__member **list, struct hd__member *m)
{
	m->next = *list;
	m->link = list;
	if (m->next != NULL)
		m->next->link = &m->next;
	*list = m;
}

static void take_out(struct hd__member *m)
{
	*m->link = m->next;
	if (m->next != NULL)
		m->next->link = m->link;
}

/* Lets no new member in any more and asks all members to stop, one after the other: by a cancel, or by termination. Others may do the same
 * meanwhile: a caller that finds it doomed terminates each member that it comes to. The caller keeps the group open. */
static void stop_members(struct hd__caller caller, struct hd_group *g, bool doom)
{
	hd__waitq_lock(&g->waiters);
	g->cancelled = true;
	if (doom && !g->doomed) { /* also the members that were only cancelled */
		g->doomed = true;
		while (g->cancelled_members != NULL) {
			struct hd__member *m = g->cancelled_members;
			take_out(m);
			insert(&g->members, m);
		}
	}
	while (g->members != NULL) {
		struct hd__member *m = g->members;
		hd_pid pid = m->pid;
		doom = g->doomed;
		take_out(m);
		insert(&g->cancelled_members, m);
		hd__waitq_unlock(&g->waiters);
		hd__ask(caller, pid, doom ? HD__SUSPEND : 0, doom ? HD__DOOMED : HD__CANCEL, 0);
		hd__waitq_lock(&g->waiters);
	}
	hd__waitq_unlock(&g->waiters);
}

/* A member has ended. It counts until it has told the others, so the group is there. */
static void member_ended(struct hd__mourner *mourner, struct hd_worker *w, const struct hd_end *end)
{
	struct hd__member *m = (struct hd__member *)mourner;
	struct hd_group *g = m->group;
	struct hd_waiter *owner = NULL;

	if (end->kind == HD_END_FAILED) {
		hd__waitq_lock(&g->waiters);
		bool first = g->err == 0;
		if (first)
			g->err = end->err;
		hd__waitq_unlock(&g->waiters);
		if (first)
			stop_members((struct hd__caller){ w, w->sched }, g, false);
	}
	hd__waitq_lock(&g->waiters);
	take_out(m);
	if (--g->count == 0)
		owner = hd__waitq_claim(w, &g->waiters, HD__GRANTED);
	hd__waitq_unlock(&g->waiters);
	hd__os_free(m);
	if (owner != NULL)
		hd__unpark(w, owner);
}

static const struct hd__mourner_ops member_ops = { .ended = member_ended };

/* The first spawn into it: the caller's from now on. */
static void open_locked(struct hd_group *g, struct hd_worker *w)
{
	struct hd__inner *inner = w->current->inner;

	g->owner = hd__pid(&w->sched->table, w->current);
	g->outer = inner->groups;
	g->below = inner->cleanups;
	inner->groups = g;
}

hd_pid hd__group_spawn(const struct hd_spawn *how, struct hd__mourner *also, hd_entry entry, void *arg)
{
	struct hd_group *g = how->group;
	struct hd_spawn detached = *how;

	if (hd__self() == NULL)
		return -ENOTSUP;
	struct hd__member *m = hd__os_alloc(sizeof *m);
	if (m == NULL)
		return -ENOMEM;
	m->mourner.ops = &member_ops;
	m->group = g;
	detached.detached = true;
	if (also != NULL)
		also->next = &m->mourner;
	struct hd__caller caller = hd__call_begin();
	hd__waitq_lock(&g->waiters);
	hd_pid pid =
		g->cancelled ? -ECANCELED : hd__spawn_mourned(caller, &detached, also != NULL ? also : &m->mourner, entry, arg);
	if (pid > 0) {
		if (g->owner == 0)
			open_locked(g, caller.w);
		m->pid = pid;
		insert(&g->members, m);
		g->count++;
	}
	hd__waitq_unlock(&g->waiters);
	if (pid < 0)
		hd__os_free(m);
	hd__call_end(caller);
	return pid;
}

hd_pid hd_group_spawn(struct hd_group *g, hd_entry entry, void *arg)
{
	return hd_spawn_with(&(struct hd_spawn){ .group = g }, entry, arg);
}

/* Tells the members of a group of the runner's to stop. */
static void stop_own_members(struct hd_group *g, bool doom)
{
	struct hd_worker *w = hd__self();

	hd__enter(w);
	stop_members((struct hd__caller){ w, w->sched }, g, doom);
	hd__leave(w);
}

/* Waits until no member is left; if the caller is terminated meanwhile, so are they. */
static void wait_for_rest(struct hd_group *g, struct hd_process *me)
{
	bool deaf = me->inner->deaf;

	for (;;) {
		struct hd_worker *w = hd__self();
		hd__enter(w);
		hd__waitq_lock(&g->waiters);
		if (g->count == 0) {
			hd__waitq_unlock(&g->waiters);
			hd__leave(w);
			break;
		}
		struct hd_waiter x = { .rules = HD__NO_CANCEL | HD__HEEDS_LATER };
		if (hd__park_as(w, &x, &g->waiters, HD_FOREVER, HD_WAIT_REST, NULL) != 0) {
			stop_own_members(g, true);
			me->inner->deaf = true; /* once is enough */
		}
	}
	me->inner->deaf = deaf;
}

/* It has no members any more: it is as new. */
static void close_group(struct hd_group *g, struct hd_process *me)
{
	HD_ASSERT(me->inner->groups == g, "hd_group_wait of a group that was not opened last");
	me->inner->groups = g->outer;
	*g = (struct hd_group){ .owner = 0 };
}

void hd__group_close(struct hd_group *g)
{
	struct hd_process *me = hd__self()->current;

	stop_own_members(g, true);
	wait_for_rest(g, me);
	close_group(g, me);
}

/* 0 when no member is left; else why the wait ended. */
static int wait_for_members(struct hd_group *g, hd_time until)
{
	struct hd_worker *w;
	int err = hd__begin_wait(&w, until);

	if (err == 0) {
		hd__waitq_lock(&g->waiters);
		struct hd_waiter x = { .rules = HD__HEEDS_LATER };
		if (g->count > 0)
			return hd__park_as(w, &x, &g->waiters, until, HD_WAIT_GROUP, NULL);
		hd__waitq_unlock(&g->waiters);
		hd__leave(w);
	}
	return err;
}

int hd_group_wait(struct hd_group *g, hd_time until)
{
	struct hd_worker *w = hd__self();

	if (w == NULL)
		return -ENOTSUP;
	if (hd__is_duration(until))
		return -EINVAL;
	struct hd_process *me = w->current;
	if (g->owner == 0) {
		g->cancelled = false;
		int err = hd__begin_wait(&w, until);
		if (err == 0)
			hd__leave(w);
		return err;
	}
	if (g->owner != hd__pid(&w->sched->table, me))
		return -EPERM;
	int err = wait_for_members(g, until);
	if (err != 0) {
		stop_own_members(g, ld_rlx(&me->control) & HD__DOOMED);
		wait_for_rest(g, me);
	}
	int failed = g->err;
	close_group(g, me);
	if (err == -ECANCELED || ld_rlx(&me->control) & HD__DOOMED)
		hd__heed(); /* and perhaps it ends here */
	hd__pass_by();
	return err != 0 ? err : failed;
}

int hd_group_cancel(struct hd_group *g)
{
	struct hd__caller caller = hd__call_begin();

	if (caller.sched == NULL)
		return -ENXIO;
	stop_members(caller, g, false);
	hd__call_end(caller);
	return 0;
}
