/* life/guest.h - a process that may wait from its birth, and has a stack in its turns only: a behaviour, or a machine.
 *
 * Made in two steps: its block is taken, which can fail, and it is born, which cannot. Born waiting, it waits without a record (hd__wait_bare) for the thread
 * that decides its wait and unparks it; neither a cancel nor a termination ends that wait: it begins, and finds then that it was called off. */
#ifndef LIFE_GUEST_H
#define LIFE_GUEST_H

#include <errno.h>

#include "life/life.h"

/* A block; NULL: *err says why. It is born, or returned. */
static inline struct hd_process *hd__guest_take(struct hd__caller caller, int *err)
{
	if (unlikely(ld_rlx(&caller.sched->stopping))) {
		*err = -ESHUTDOWN;
		return NULL;
	}
	*err = -EAGAIN;
	return hd__table_take(&caller.sched->table, hd__own_blocks(caller));
}

static inline void hd__guest_return(struct hd__caller caller, struct hd_process *p)
{
	hd__table_drop(&caller.sched->table, hd__own_blocks(caller), p);
}

struct hd__guest {
	uint8_t nature;
	const struct hd_machine_ops *ops;
	void *self;
	int priority;		     /* 0: the caller's */
	enum hd_wait why;	     /* it waits; HD_WAIT_NONE: it is ready at once, on the caller's worker */
	struct hd__mourner *mourner; /* or NULL */
};

/* From a plain thread: the worker to which its wake will be sent. */
struct hd_worker *hd__guest_home(struct hd__sched *sched, int priority);

/* Inside the lane of the caller's worker, if it has one. */
__attribute__((always_inline)) static inline void hd__guest_born(struct hd__caller caller, struct hd_process *p,
								 const struct hd__guest *g)
{
	struct hd__sched *sched = caller.sched;
	struct hd_worker *w = caller.w;
	int priority = g->priority != 0 ? g->priority
		       : w != NULL	? HD__CONTROL_PRIORITY(ld_rlx(&w->current->control))
					: HD_PRIORITY_USER;
	enum hd_policy policy = sched->config.policy;
	struct hd_worker *home = likely(w != NULL) ? w : hd__guest_home(sched, priority);

	/* What hd__describe reads is stored with release: see life/spawn.c. */
	st_rlx(&p->home, home);
	p->pins = 0;
	p->chores = HD__START | (policy != HD_FIFO ? HD__BEGIN_QUANTUM : 0);
	p->priority = (uint8_t)priority;
	st_rlx(&p->lowest, (uint8_t)priority);
	p->policy = (uint8_t)policy;
	st_rlx(&p->waiter, NULL);
	st_rlx(&p->wait, HD__WAITING);
	st_rel(&p->cpu_time, 0);
	st_rel(&p->switches, 0);
	p->saved_errno = 0;
	st_rlx(&p->inner, NULL);
	p->mourner = g->mourner;
	p->end_err = 0;
	p->ops = g->ops;
	p->value = g->self;
	st_rel(&p->bond, HD__DETACHED);
	st_rel(&p->stack_class, (uint8_t)sched->stack_class);
	st_rel(&p->nature, g->nature);
	st_rlx(&p->ending, false);
	p->doom_boost = 0;
	st_rel(&p->name[0], 0);
	hd__publish(p);
	if (likely(w != NULL)) {
		bump(&w->stats.births, 1); /* it counts before it can end */
		bump(&w->stats.spawned, 1);
	} else {
		add_seq(&sched->births, 1);
		add_acq_rel(&sched->sent, 1);
	}
	if (g->why != HD_WAIT_NONE) {
		st_rlx(&p->why, (uint8_t)g->why);
		st_rlx(&p->rules, HD__NO_CANCEL | HD__NO_KILL);
		hd__has_no_stack(p);
		if (likely(w != NULL)) {
			hd__move(w, p, HD_WAITING);
		} else { /* it is in no lane */
			st_rel(&p->state, HD_WAITING);
			st_rel(&p->since, ld_rlx(&sched->now));
		}
	}
	uint64_t generation = HD__GENERATION(ld_rlx(&p->control));
	st_rel(&p->control, HD__CONTROL(generation, policy, priority, 0)); /* published: from here on requests by id find it */
	if (unlikely(w == NULL)) {
		if (ld_seq(&sched->stopping)) /* pairs with hd__stop, which may have doomed all others before p could be seen */
			hd__ask(caller, hd__pid(&sched->table, p), HD__SUSPEND, HD__DOOMED, 0);
	} else if (g->why == HD_WAIT_NONE) {
		hd__move(w, p, HD_READY);
		hd__runq_push_tail(&w->runq, p);
	}
}

#endif
