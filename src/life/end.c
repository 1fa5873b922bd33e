/* life/end.c - a process ends.
 *
 * Owns:       the last steps of a process, in this order: run its cleanups, destroy its locals (its own code still, it may wait);
 *             under news.lock mark it dead and decide which waiters hear of it; give its stack back; go on with the next process.
 * Invariant:  dead is decided under news.lock, so hd_join either waits before it or collects after it; after the release the
 *             block may be another process's. No request is on its way to a dead process: HD__NUDGED keeps it alive until the
 *             note has been taken in.
 * Callers:    the process itself; for one that never ran, its home worker. */
#include <errno.h>
#include <stdlib.h>

#include "base/assert.h"
#include "life/life.h"
#include "os/memory.h"
#include "os/thread.h"
#include "sched/switch.h"

/* Dead if no nudge is on its way. */
static bool die(struct hd_process *p)
{
	uint64_t control = ld_acq(&p->control);

	do
		if (control & HD__NUDGED)
			return false;
	while (!cas_acq_rel(&p->control, &control, control | HD__DEAD));
	return true;
}

/* Wakes the first waiter for the end of a process. If it has lent the process its turn, and the process ends in that (`lent`), it is
 * not queued but goes on at once, as after a call of a function: then it is returned. */
__attribute__((always_inline)) static inline struct hd_process *wake_first(struct hd_worker *w, struct hd_waiter *first,
									   bool lent)
{
	struct hd_process *joiner = first->process;

	if (lent && joiner != NULL && ld_rlx(&joiner->home) == w && first->rules & HD__HANDS_BACK &&
	    hd__may_hand_back(w, joiner))
		return hd__unpark_to_run(w, first);
	hd__unpark(w, first);
	return NULL;
}

__attribute__((cold)) static void tell_mourners(struct hd_worker *w, struct hd__mourner *mourner, struct hd_end end)
{
	while (mourner != NULL) {
		struct hd__mourner *next = mourner->next; /* the mourner may be gone when it has been told */
		mourner->ops->ended(mourner, w, &end);
		mourner = next;
	}
}

/* Tells the world that p has ended; p is gone when it returns true. `back`: receives the joiner, if it goes on next; NULL when the
 * caller has no turn to give back. */
__attribute__((always_inline)) static inline bool announce_end(struct hd_worker *w, struct hd_process *p, enum hd_end_kind kind,
							       void *result, int err, struct hd_process **back)
{
	struct hd_waiter *first, *others = NULL; /* the waiters for it: nearly always one, the joiner */

	hd__waitq_lock(&p->news);
	if (unlikely(!die(p))) {
		hd__waitq_unlock(&p->news);
		return false;
	}
	st_rlx(&p->stack, NULL);
	p->end_kind = (uint8_t)kind;
	p->value = result;
	if (kind == HD_END_KILLED)
		err = p->end_err; /* it says why already */
	else
		p->end_err = err;
	if (unlikely(ld_rlx(&p->lent) != 0)) /* pairs with hd__lend */
		w->sched->hooks.loans_end(w->sched, p);
	struct hd__mourner *mourner = p->mourner;
	st_rel(&w->stats.ended, w->stats.ended + 1); /* pairs with hd__nobody_lives */
	hd__move(w, p, HD_ENDED);
	first = hd__waitq_claim(w, &p->news, HD__CLOSED);
	if (unlikely(p->news.head != NULL))
		others = hd__waitq_claim_all(w, &p->news, HD__CLOSED, HD_WAIT_NONE);
	uint64_t arrival = p->arrival;
	bool forget = p->bond == HD__DETACHED, counts = !(p->nature & HD__DAEMON);
	hd__waitq_unlock(&p->news);
	/* unless we forget it, p may be joined and spawned anew from here on */
	if (forget)
		hd__table_drop(&w->sched->table, &w->blocks, p);
	/* before its joiner, which so finds that all others have been told */
	if (unlikely(mourner != NULL))
		tell_mourners(w, mourner, (struct hd_end){ .kind = kind, .result = result, .err = err });
	if (unlikely(others != NULL)) {
		hd__unpark(w, first);
		hd__unpark_all(w, others);
	} else if (first != NULL) {
		struct hd_process *joiner = wake_first(w, first, back != NULL && arrival == hd__turn(w));
		if (joiner != NULL)
			*back = joiner;
	}
	if (unlikely(w->sched->config.deadlock != HD_DEADLOCK_IGNORE))
		w->sched->hooks.owner_ended(w);
	/* it counts until all that waited for it have been told: they may be all that is left */
	st_rel(&w->stats.ends, w->stats.ends + counts); /* pairs with hd__nobody_counts */
	return true;
}

/* What an ending process has left to do itself, on its own stack: it may wait. */
__attribute__((cold)) static void settle(struct hd_process *me, enum hd_end_kind kind, int err)
{
	st_rlx(&me->ending, true);
	me->end_kind = (uint8_t)kind;
	hd__clean_up(me);
	if (hd__carries)
		hd__exceptions_drop(); /* no code of the program handles these exceptions any more */
	if (me->inner->locals != NULL)
		hd__locals_destroy(me);
	for (struct hd__mourner *m = ld_acq(&me->mourner); m != NULL; m = m->next)
		if (m->ops->ending != NULL)
			m->ops->ending(m, me, kind, err);
	if (me->inner->trail != NULL)
		hd__os_free(me->inner->trail);
}

static inline bool is_settled(const struct hd_process *me)
{
	const struct hd__inner *inner = me->inner;

	return inner->cleanups == NULL && inner->groups == NULL && hd__is_bare(inner) && ld_rlx(&me->mourner) == NULL &&
	       !hd__carries;
}

/* The runner, which is settled, ends. Inside the lane of w; answers the worker inside whose lane it is then. */
__attribute__((always_inline)) static inline struct hd_worker *
announce(struct hd_worker *w, struct hd_process *me, enum hd_end_kind kind, void *result, int err, struct hd_process **back)
{
	hd__account(w, me, ld_rlx(&w->sched->now));
	while (unlikely(!announce_end(w, me, kind, result, err, back))) {
		hd__leave(w);
		hd__os_thread_yield(); /* to the thread that is about to post the nudge */
		hd__enter(w);
		w = hd__attend(w); /* the request may be to suspend it: then it ends when it is resumed */
	}
	return w;
}

/* Everything but leaving the stack, on the thread of `w`, outside its lane. Answers the worker, whose lane is entered; *back is the joiner to which the
 * runner, whose turn it was lent, hands the worker back, or NULL. */
__attribute__((always_inline)) static inline struct hd_worker *
end(struct hd_worker *w, struct hd_process *me, enum hd_end_kind kind, void *result, int err, struct hd_process **back)
{
	if (unlikely(!is_settled(me))) {
		settle(me, kind, err);
		w = hd__self();
	}
	*back = NULL;
	hd__enter(w);
	return announce(w, me, kind, result, err, back);
}

/* No process runs on this stack before we are off it: it stays in this worker's hands for now, and the worker is here. A process that
 * starts now may be given it, and its first two words are written above our frames (arch: begin.S). */
__attribute__((always_inline)) static inline void leave_stack(struct hd_worker *w, char *stack, unsigned size_class,
							      struct hd_process *next)
{
	struct hd__stacks *stacks = &w->sched->stacks[size_class];

	hd__stacks_drop(stacks, &w->stacks[size_class], stack);
	hd__stacks_unpromise(stacks);
	if (unlikely(hd__carries)) {
		hd__publish(w->sched); /* to the caller of hd_run, */
		hd__publish(w);	       /* to pinned processes of this thread, */
		hd__publish(stack);    /* and to the process that has the stack next */
		hd__carry_for_the_last_time(&w->carrier);
	}
	hd__leave_for_good(w, next);
}

void hd__leave_stack(struct hd_worker *w, char *stack, unsigned size_class, struct hd_process *next)
{
	leave_stack(w, stack, size_class, next);
}

struct hd_worker *hd__end_on_stack(struct hd_worker *w, struct hd_process *me, enum hd_end_kind kind, void *result, int err,
				   struct hd_process **back)
{
	return end(w, me, kind, result, err, back);
}

struct hd_worker *hd__end_inside(struct hd_worker *w, struct hd_process *me, void *result, struct hd_process **back)
{
	if (unlikely(!is_settled(me)) && !(ld_rlx(&me->control) & HD__DEAD)) { /* dead by hd__guest_dies: it is settled */
		hd__leave(w);
		return end(w, me, HD_END_RETURNED, result, 0, back);
	}
	*back = NULL;
	return announce(w, me, HD_END_RETURNED, result, 0, back);
}

__attribute__((always_inline)) static inline void end_and_leave(struct hd_worker *w, struct hd_process *me,
								enum hd_end_kind kind, void *result, int err)
{
	char *stack = me->stack;
	unsigned size_class = me->stack_class;
	struct hd_process *back;

	w = end(w, me, kind, result, err, &back);
	leave_stack(w, stack, size_class, back);
}

void hd__end(struct hd_process *me, enum hd_end_kind kind, void *result, int err)
{
	if (unlikely(me->ending) &&
	    me->end_kind >= HD_END_CANCELLED) /* a cleanup that ends it again does not change how it ended */
		kind = me->end_kind;
	end_and_leave(hd__self(), me, kind, result, err);
}

void hd__begin(void *process)
{
	struct hd_process *me = process;
	struct hd_worker *w = me->home;

	*w->errno_location = 0;
	hd__leave(w);
	if (unlikely(me->nature & HD__MACHINE)) {
		w->sched->hooks.turn(me);
		__builtin_unreachable();
	}
	if (unlikely(ld_rlx(&me->control) & HD__DOOMED))
		hd__end(me, HD_END_KILLED, NULL, 0); /* terminated before it began */
	void *result = me->entry(me->value);
	w = hd__self();
	if (unlikely(w == NULL))
		exit(0); /* a forked child came back: as with threads, its last one has ended */
	HD_ASSERT(me->inner->cleanups == NULL, "a process returned without hd_cleanup_pop of what it had pushed");
	HD_ASSERT(me->inner->groups == NULL, "a process returned without hd_group_wait of a group that it had opened");
	end_and_leave(w, me, HD_END_RETURNED, result, 0);
}

bool hd__end_from_outside(struct hd_worker *w, struct hd_process *p, enum hd_end_kind kind, int err)
{
	unsigned size_class = p->stack_class;
	struct hd__stacks *stacks = &w->sched->stacks[size_class];
	char *stack = p->stack; /* hd__take_for_hand_off may have bound one */
	struct hd__carried *carried = stack != NULL ? hd__carried_of(p) : NULL;

	bool promised = !(p->nature & HD__MACHINE) || stack != NULL;

	HD_ASSERT(p->switches == 0 || w->due.over, "a process that has run was ended from outside");
	if (!announce_end(w, p, kind, NULL, err, NULL))
		return false;
	if (stack != NULL) {
		if (hd__carries)
			hd__carried_fini(carried);
		hd__stacks_drop(stacks, &w->stacks[size_class], stack);
	}
	if (promised)
		hd__stacks_unpromise(stacks);
	return true;
}

void hd__cannot_start(struct hd_worker *w, struct hd_process *p)
{
	if (p->nature & HD__MACHINE) { /* it waits until a process or another machine has given a stack back */
		hd__runq_push_tail(&w->runq, p);
		hd__os_thread_yield();
		return;
	}
	if (!hd__end_from_outside(w, p, HD_END_FAILED, -ENOMEM))
		hd__runq_push_head(&w->runq, p); /* a request to it comes first; then it is tried again */
}

void hd__unwind(struct hd_process *me, enum hd_end_kind kind)
{
	hd__end(me, kind, NULL, 0);
	__builtin_unreachable();
}

int hd_exit(void *result)
{
	struct hd_worker *w = hd__self();
	if (w == NULL)
		return -ENOTSUP;
	hd__end(w->current, HD_END_RETURNED, result, 0);
	__builtin_unreachable();
}

int hd_fail(int err)
{
	struct hd_worker *w = hd__self();
	if (w == NULL)
		return -ENOTSUP;
	if (err == 0)
		return -EINVAL;
	hd__end(w->current, HD_END_FAILED, NULL, err > 0 ? -err : err);
	__builtin_unreachable();
}
