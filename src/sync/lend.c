/* sync/lend.c - loans: a process that waits for an answer lends its priority to the process that is to give it.
 *
 * Owns:       sched->loans, the lenders to each process; p->lent, the highest priority among them; p->lowest.
 * Invariant:  a record is among the lenders to a process, in the rank of its own process's priority (rank.c), from hd__lend to hd__unlend, or
 *             until that process has ended. p->lent is the highest of these ranks, 0 if there are none. When it changes, and is or was above
 *             p's own priority, p is asked to find its boost anew (inherit.c), where a loan counts as a waiter for a mutex does; else p does
 *             so when it is given another priority.
 * Locking:    a lock for each process, taken last. The lock of the queue in which the lender waits guards whether, and to which process, it
 *             lends.
 * Callers:    port/call.c, which knows which process will answer; inherit.c, when the priority of a lender has changed.
 *
 * A lender whose priority is not above any that the process has had of its own (p->lowest) lends nothing that it could ever use, and is not
 * recorded: a call between equals costs a comparison. The lenders are apart from the control block, in memory that is used when there is
 * one; like the block, they are there as long as the runtime: an id that is out of date finds a lock, and then that its process is dead.
 *
 * Against the end of p, and against another priority of its own: the lender stores p->lent, then looks at p's control word by a read-modify-write;
 * p's end, and the change of its priority, are one too, and p->lent is looked at after it. The one that comes second in the order of that word sees
 * the other. */
#include "os/memory.h"
#include "sync/sync.h"

struct hd__loans {
	struct hd__ranked *highest;
	unsigned char lock;
};

int hd__loans_init(struct hd__sched *sched)
{
	sched->loans = hd__os_reserve(sched->table.capacity * sizeof *sched->loans, 0);
	if (sched->loans == NULL)
		return -ENOMEM;
	hd__os_dump_first(sched->loans, sched->table.capacity * sizeof *sched->loans);
	return 0;
}

void hd__loans_fini(struct hd__sched *sched)
{
	if (sched->loans != NULL)
		hd__os_unreserve(sched->loans, sched->table.capacity * sizeof *sched->loans);
}

const void *hd__loans_memory(const struct hd__sched *sched, size_t *size)
{
	*size = sched->table.capacity * sizeof *sched->loans;
	return sched->loans;
}

static struct hd__loans *loans_of(const struct hd__sched *sched, const struct hd_process *p)
{
	return &sched->loans[hd__slot(&sched->table, p)];
}

/* Under the lock: lenders to p have come or gone. Whether that changes what it is lent. */
static bool count(struct hd_process *p, const struct hd__loans *loans)
{
	uint8_t lent = loans->highest != NULL ? loans->highest->level : 0;

	if (lent == ld_rlx(&p->lent))
		return false;
	st_rlx(&p->lent, lent);
	return true;
}

bool hd__lend(struct hd__sched *sched, struct hd__ranked *x, hd_pid to)
{
	struct hd_process *p = hd__table_find(&sched->table, to), *lender = x->waiter.process;

	x->waiter.boosts = false;
	if (p == NULL || p == lender || ld_rlx(&lender->priority) <= ld_rlx(&p->lowest))
		return false;
	struct hd__loans *loans = loans_of(sched, p);
	hd__lock(&loans->lock);
	hd__rank(&loans->highest, x);
	bool changed = count(p, loans);
	uint64_t control = or_acq_rel(&p->control, 0); /* pairs with die in life/end.c, and with change_word in life/steer.c */
	x->waiter.boosts = hd__alive(control, to);
	if (!x->waiter.boosts) {
		hd__unrank(&loans->highest, x);
		count(p, loans);
	}
	changed = changed && x->waiter.boosts && x->level > HD__CONTROL_PRIORITY(control);
	hd__unlock(&loans->lock);
	return changed;
}

bool hd__unlend(struct hd__sched *sched, struct hd__ranked *x, hd_pid to)
{
	struct hd_process *p = hd__table_find(&sched->table, to);
	struct hd__loans *loans = loans_of(sched, p);

	x->waiter.boosts = false;
	hd__lock(&loans->lock);
	int level = x->level;
	hd__unrank(&loans->highest, x);
	bool changed = count(p, loans) && level > HD__CONTROL_PRIORITY(or_acq_rel(&p->control, 0)); /* as in hd__lend */
	hd__unlock(&loans->lock);
	return changed;
}

hd_pid hd__lend_anew(struct hd__sched *sched, struct hd_process *p)
{
	struct hd__ranked *x = (struct hd__ranked *)p->waiter;
	struct hd_waitq *q = x->waiter.queue;
	bool changed = false;
	hd_pid to = 0;

	hd__waitq_lock(q);
	if (x->waiter.place == HD__LINKED) { /* else the call is over, and p about to go on */
		to = (hd_pid)ld_rlx(&p->arrival);
		if (x->waiter.boosts)
			changed = hd__unlend(sched, x, to);
		changed |= hd__lend(sched, x, to);
	}
	hd__waitq_unlock(q);
	return changed ? to : 0;
}

int hd__lent(struct hd__sched *sched, struct hd_process *p)
{
	struct hd__loans *loans = loans_of(sched, p);

	hd__lock(&loans->lock); /* a lender that found HD__REBOOST set comes before this */
	int lent = ld_rlx(&p->lent);
	hd__unlock(&loans->lock);
	return lent;
}

/* Calls that are still to be answered though p, which was to answer them, has ended: another process has a reference to their reply ports. */
void hd__loans_end(struct hd__sched *sched, struct hd_process *p)
{
	struct hd__loans *loans = loans_of(sched, p);

	hd__lock(&loans->lock);
	while (loans->highest != NULL)
		hd__unrank(&loans->highest, loans->highest);
	count(p, loans);
	hd__unlock(&loans->lock);
}
