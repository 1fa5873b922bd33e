/* when/urgency.c - a behaviour that has a cown runs with at least the priority of those that wait for it.
 *
 * Owns:       cown->level, cown->urgency.
 * Invariant:  as long as all behaviours on a cown have one priority, nothing is counted. From the first call with another one on, each ticket that joins the line
 *             counts in its behaviour's level until it has the cown. A behaviour's boost is found anew from these counts (sync/inherit.c) when it becomes ready, and
 *             when a more urgent one comes to wait for a cown that it has.
 * Locking:    none: counts are added to by any thread. A boost that is found too early is found again, by the request of the thread that changed a count.
 *
 * One step deep: the behaviour that has a cown is boosted, and not another one for which that one waits. Of readers that have the cown together, those are
 * boosted that get it after the urgent one came, and the last of those that had it before. Calls that overlap the first one with another priority may not
 * count. */
#include "os/memory.h"
#include "when/when.h"

struct hd__urgency {
	uint32_t count[HD__LEVELS]; /* tickets that wait, by level; any thread, by addition */
};

bool hd__cown_mix(hd_cown *c, int priority)
{
	uint8_t level = ld_rlx(&c->level);

	if (likely(level == priority || ld_acq(&c->urgency) != NULL))
		return true;
	if (level == 0 && cas_acq_rel(&c->level, &level, (uint8_t)priority))
		return true;
	if (level == priority)
		return true;
	struct hd__urgency *none = NULL, *u = hd__os_alloc(sizeof *u);
	if (u == NULL)
		return false;
	if (!cas_acq_rel(&c->urgency, &none, u)) /* pairs with ld_acq of the others */
		hd__os_free(u);
	return true;
}

void hd__cown_unmix(hd_cown *c)
{
	hd__os_free(c->urgency);
}

static uint32_t *count_of(struct hd__urgency *u, const struct hd__behaviour *b)
{
	return &u->count[b->level - HD__PRIORITY_MIN];
}

void hd__ticket_counts(struct hd__ticket *t)
{
	struct hd__urgency *u = ld_acq(&hd__cown_of(t)->urgency);

	if (u == NULL)
		return;
	t->use = (hd_cown *)((uintptr_t)t->use | HD__COUNTED);
	add_acq_rel(count_of(u, t->behaviour), 1);
}

void hd__ticket_has(struct hd__ticket *t)
{
	if ((uintptr_t)t->use & HD__COUNTED)
		add_acq_rel(count_of(hd__cown_of(t)->urgency, t->behaviour), -1u);
	st_rlx(&t->behaviour->mixed, true);
}

void hd__cown_urge(struct hd__sched *sched, hd_cown *c)
{
	/* The holder finds its boost after the count: this request comes after that. If another one gets the cown meanwhile, that one finds it too. */
	struct hd_process *holder = ld_rlx(&c->holder);

	if (holder != NULL)
		hd__ask_reboost(sched, hd__pid(&sched->table,
					       holder)); /* another process has the block by now, perhaps: that does no harm */
}

int hd__behaviour_boost(const struct hd_process *p)
{
	const struct hd__behaviour *b = p->value;
	int boost = 0;

	for (uint32_t i = 0; b != NULL && i < b->distinct; i++) {
		if (b->tickets[i].use == NULL)
			continue;
		struct hd__urgency *u = ld_acq(&hd__cown_of(&b->tickets[i])->urgency);
		for (int level = HD__LEVELS - 1; u != NULL && level >= 0 && level + HD__PRIORITY_MIN > boost; level--)
			if (ld_acq(&u->count[level]) != 0)
				boost = level + HD__PRIORITY_MIN;
	}
	return boost;
}
