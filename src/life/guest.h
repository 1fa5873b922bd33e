/* life/guest.h - a process that may wait from its birth, and has a stack in its turns only: a behaviour, or a machine.
 *
 * Made in two steps: its block is taken, which can fail, and it is born, which cannot. Born waiting, it waits without a record (hd__wait_bare) for the thread
 * that decides its wait and unparks it; neither a cancel nor a termination ends that wait: it begins, and finds then that it was called off.
 *
 * Most guests have one turn, in which they do nothing that would be seen in their block, and their end is nobody's business. Such a one *dies* (hd__guest_dies): its
 * block keeps what all guests of its kind have in common, and stays with its maker, who has it *reborn* as the next one. The id is another one each time. */
#ifndef LIFE_GUEST_H
#define LIFE_GUEST_H

#include <errno.h>

#include "life/life.h"
#include "sched/preempt.h"

/* Whether the caller may make a guest: 0 or -errno. */
static inline int hd__guest_check(struct hd__caller caller)
{
	if (unlikely(ld_rlx(&caller.sched->stopping)))
		return -ESHUTDOWN;
	if (likely(caller.w != NULL) && unlikely(ld_rlx(&caller.w->current->control) & HD__LOGGED))
		return -ENOTSUP;
	return 0;
}

/* A block; NULL: *err says why. It is born, or returned. */
static inline struct hd_process *hd__guest_take(struct hd__caller caller, int *err)
{
	if (unlikely((*err = hd__guest_check(caller)) != 0))
		return NULL;
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
	enum hd_wait why;	     /* what it waits for */
	bool ready;		     /* it does not wait: it is ready at once, on the caller's worker */
	uint8_t chores;		     /* HD__HOLDS, or none */
	uint8_t flags;		     /* of the control word: HD__LOGGED, or none */
	struct hd__mourner *mourner; /* or NULL */
};

/* From a plain thread: the worker to which its wake will be sent. */
struct hd_worker *hd__guest_home(struct hd__sched *sched, int priority);

/* Inside the lane of the caller's worker, if it has one. Answers the control word with which it was born; 0: such a one does not die, because more than its
 * block is to be seen to, now or at its end. */
__attribute__((always_inline)) static inline uint64_t hd__guest_born(struct hd__caller caller, struct hd_process *p,
								     const struct hd__guest *g)
{
	struct hd__sched *sched = caller.sched;
	struct hd_worker *w = caller.w;
	int priority = g->priority != 0 ? g->priority
		       : w != NULL	? HD__CONTROL_PRIORITY(ld_rlx(&w->current->control))
					: HD_PRIORITY_USER;
	enum hd_policy policy = sched->config.policy;
	struct hd_worker *home = likely(w != NULL) ? w : hd__guest_home(sched, priority);

	hd__preempt_mix(sched, priority);
	/* What hd__describe reads is stored with release: see life/spawn.c. */
	st_rlx(&p->home, home);
	p->pins = 0;
	p->chores = HD__START | g->chores | (policy != HD_FIFO ? HD__BEGIN_QUANTUM : 0);
	st_rlx(&p->priority, (uint8_t)priority);
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
	st_rlx(&p->why, (uint8_t)g->why);
	st_rlx(&p->rules, HD__NO_CANCEL | HD__NO_KILL);
	hd__has_no_stack(p);
	if (!g->ready) {
		if (likely(w != NULL)) {
			hd__move(w, p, HD_WAITING);
		} else { /* it is in no lane */
			st_rel(&p->state, HD_WAITING);
			st_rel(&p->since, ld_rlx(&sched->now));
		}
	}
	uint64_t control = HD__CONTROL(HD__GENERATION(ld_rlx(&p->control)), policy, priority, g->flags);
	st_rel(&p->control, control); /* published: from here on requests by id find it */
	if (unlikely(w == NULL)) {
		if (ld_seq(&sched->stopping)) /* pairs with hd__stop, which may have doomed all others before p could be seen */
			hd__ask(caller, hd__pid(&sched->table, p), HD__SUSPEND, HD__DOOMED, 0);
	} else if (g->ready) {
		hd__move(w, p, HD_READY);
		hd__runq_push_tail(&w->runq, p);
	}
	return policy == HD_FIFO && sched->config.deadlock == HD_DEADLOCK_IGNORE && !hd__carries ? control : 0;
}

/* As hd__guest_born, on the worker of the caller, of the block of a guest of the same kind that has died: only what differs from life to life is written. Its value is
 * what it was. Its policy is HD_FIFO, and nothing is recorded. */
__attribute__((always_inline)) static inline uint64_t hd__guest_reborn(struct hd_worker *w, struct hd_process *p,
								       const struct hd__guest *g)
{
	uint64_t control = HD__CONTROL(HD__GENERATION(ld_rlx(&p->control)), HD_FIFO, g->priority, g->flags);

	hd__preempt_mix(w->sched, g->priority);
	st_rlx(&p->home, w);
	p->chores = HD__START | g->chores;
	st_rlx(&p->priority, (uint8_t)g->priority);
	st_rlx(&p->lowest, (uint8_t)g->priority);
	st_rlx(&p->wait, HD__WAITING);
	st_rel(&p->cpu_time, 0);
	st_rel(&p->switches, 0);
	p->mourner = g->mourner;
	p->end_err = 0;
	p->doom_boost = 0;
	bump(&w->blocks.taken, 1);
	bump(&w->stats.births, 1); /* it counts before it can end */
	bump(&w->stats.spawned, 1);
	hd__has_no_stack(p);
	hd__move_unrecorded(p, 0, g->ready ? HD_READY : HD_WAITING, ld_rlx(&w->sched->now));
	st_rel(&p->control, control); /* published: from here on requests by id find it */
	if (g->ready)
		hd__runq_push_tail(&w->runq, p);
	return control;
}

/* The runner, a guest that has returned, and has neither cleanups nor groups, dies: if nothing but its one turn can be seen in its block since it was born with the
 * control word `born`, and no thread has to be told. Then its stack is the caller's, and its block stays with its maker; p->value is what it was. False: it ends by
 * hd__end_inside. Inside the lane. */
__attribute__((always_inline)) static inline bool hd__guest_dies(struct hd_worker *w, struct hd_process *me, uint64_t born)
{
	uint64_t control = born, next = ((born >> HD__SLOT_BITS) + 1) << HD__SLOT_BITS;

	/* The generations may be used up. */
	if (unlikely(me->switches != 1 || me->pins != 0 || ld_rlx(&me->mourner) != NULL || !hd__is_bare(me->inner) ||
		     w->chores != 0 || (int64_t)next < 0))
		return false;
	hd__account(w, me, ld_rlx(&w->sched->now));
	st_rlx(&me->state, 0); /* before it is dead: it is never a zombie */
	/* It lives on if something was asked of it. It is dead, but must tell of it, if another thread has found it alive and has the lock of its news, or
	 * has lent it something: pairs with hd__news_lock and hd__lend. */
	if (unlikely(!cas_acq_rel(&me->control, &control, born | HD__DEAD) || ld_acq(&me->news.lock) != 0 ||
		     me->news.head != NULL || ld_rlx(&me->mourner) != NULL || ld_rlx(&me->lent) != 0)) {
		st_rlx(&me->state, HD_RUNNING);
		return false;
	}
	st_rlx(&me->stack, NULL);
	st_rlx(&me->inner, NULL);
	st_rel(&me->control, next | HD__DEAD); /* as in hd__table_drop */
	bump(&w->blocks.taken, -1);
	bump_rel(&w->stats.ended); /* pairs with hd__nobody_lives */
	bump_rel(&w->stats.ends);  /* pairs with hd__nobody_counts */
	return true;
}

/* The runner, a guest, has left the host: the first process that is ready, if it is a guest of this nature that can have its turn there. It runs now; NULL: it is not such a
 * one. No chores, and nothing to be carried. A daemon is none: the runtime may be over. */
__attribute__((always_inline)) static inline struct hd_process *hd__next_guest(struct hd_worker *w, const struct hd__host *host,
									       unsigned nature)
{
	if (unlikely((ld_rlx(&w->attention) | w->resched) != 0 || w->due.over) || w->runq.highest != w->running_priority)
		return NULL;
	struct hd_process *p = hd__runq_peek(&w->runq);
	if ((p->nature & (nature | HD__DAEMON)) != nature || (p->chores & ~HD__HOLDS) != HD__START ||
	    (!(nature & HD__BEHAVIOUR) && p->stack_class != host->size_class)) /* all behaviours have stacks of one size */
		return NULL;
	hd__runq_take(&w->runq);
	w->chores = p->chores & HD__HOLDS;
	hd__bind_stack(p, host->stack, host->inner);
	w->handoffs = 0;
	hd__give(w, p, ld_rlx(&w->sched->now));
	*w->errno_location = 0;
	hd__leave(w);
	return p;
}

#endif
