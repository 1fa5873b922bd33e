/* sync/inherit.c - priority inheritance: a process runs with at least the priority of those that wait for its mutexes or its answers.
 *
 * Owns:       the boost in the control word, but for the one that a terminated process has until it is dead.
 * Invariant:  a process's boost is the highest priority among the waiters for the HD_INHERIT mutexes that it has, and what its callers lend
 *             it (lend.c), or it has been asked to find it anew (HD__REBOOST). It finds it from nothing, so it does not matter what changed or how often.
 * Locking:    finding it takes the lock of each mutex, one at a time, for a look at its highest waiter (rank.c). It is done on the home worker, whose process cannot run
 *             meanwhile: so the mutexes that it has, or waits for, exist.
 *
 * A chain (I wait for you, you wait for him) is followed step by step (pass_boost_on in steer.c), and where it leaves a worker by a note:
 * each finds another boost, and if its process waits in turn, the next one's turn comes. Walking the chain in one go would need all
 * its locks, or one for all mutexes. */
#include "sync/sync.h"

static struct hd_mutex *mutex_of(const struct hd_waiter *x)
{
	return (struct hd_mutex *)((char *)ld_rlx(&x->queue) - offsetof(struct hd_mutex, waiters));
}

/* The mutex whose waiters have ranks that p waits for, or was given and has not come to know of; NULL when there is none. */
static struct hd_mutex *wanted_by(struct hd_process *p)
{
	struct hd_waiter *x = p->waiter; /* until it runs */

	if (x == NULL)
		return NULL;
	unsigned why = ld_seq(&x->why); /* pairs with the thread that moves it to the mutex's queue */
	if (why != HD_WAIT_MUTEX && why != HD_WAIT_REENTER)
		return NULL;
	struct hd_mutex *m = mutex_of(x);
	return m->flags & (HD_BY_PRIORITY | HD_INHERIT) ? m : NULL;
}

static int highest_waiter(struct hd_mutex *m)
{
	hd__waitq_lock(&m->waiters);
	int highest = m->highest != NULL ? m->highest->level : 0;
	hd__waitq_unlock(&m->waiters);
	return highest;
}

uint64_t hd__find_boost(struct hd__sched *sched, struct hd_process *p)
{
	uint64_t control = and_acq_rel(&p->control, ~(uint64_t)HD__REBOOST),
		 after; /* before we look: what changes then asks again */
	struct hd_mutex *given = wanted_by(p);
	int boost = hd__lent(sched, p), queued = p->nature & HD__BEHAVIOUR ? sched->hooks.behaviour_boost(p) : 0;

	if (queued > boost)
		boost = queued;

	if (given != NULL && given->flags & HD_INHERIT && ld_rlx(&given->owner) == hd__pid(&sched->table, p)) {
		int highest = highest_waiter(given);
		if (highest > boost)
			boost = highest;
	}
	for (struct hd_mutex *m = p->inner != NULL ? p->inner->held : NULL; m != NULL; m = m->next_held) {
		int highest = highest_waiter(m);
		if (highest > boost)
			boost = highest;
	}
	control &= ~(uint64_t)HD__REBOOST;
	do {
		int least = ld_rlx(&p->doom_boost);
		after = (control & ~HD__BOOST(0x7f)) | HD__BOOST(boost > least ? boost : least);
	} while (!cas_acq_rel(&p->control, &control, after));
	return after;
}

/* While p waited for a condition, its waker may be moving it to the mutex this moment. The caller changed the priority, then looks why p
 * waits; the waker says why, then looks at the priority (hd__rank). All four are sequentially consistent: one of the two sees the other. */
hd_pid hd__boosts(struct hd__sched *sched, struct hd_process *p)
{
	if (p->state == HD_WAITING && p->waiter != NULL && ld_rlx(&p->waiter->why) == HD_WAIT_CALL)
		return hd__lend_anew(sched, p);
	struct hd_mutex *m = p->state == HD_WAITING ? wanted_by(p) : NULL;
	if (m == NULL)
		return 0;
	struct hd__ranked *x = (struct hd__ranked *)p->waiter;
	hd__waitq_lock(&m->waiters);
	if (x->level != 0) {
		hd__unrank(&m->highest, x);
		hd__rank(&m->highest, x);
	}
	int64_t owner = m->flags & HD_INHERIT ? m->owner : 0;
	hd__waitq_unlock(&m->waiters);
	return owner > 0 && owner != hd__pid(&sched->table, p) ? owner : 0;
}
