/* sched/sched.h - which process runs next, and when the runner gives way. Called inside the lane of the worker, mostly by its runner. */
#ifndef SCHED_SCHED_H
#define SCHED_SCHED_H

#include "sched/lane.h"

/* The slow side of a safe point: takes in what has come, then gives way if the runner should. Returns the worker that the caller
 * runs on then, inside its lane. */
struct hd_worker *hd__attend(struct hd_worker *w);

/* Whether the runner should look up: it was told something, or something better is ready. */
static inline bool hd__is_wanted(const struct hd_worker *w)
{
	return unlikely((ld_rlx(&w->attention) | w->resched) != 0 || ld_rlx(&w->runq.highest) > w->running_priority);
}

/* The runner has ended, or is a machine whose turn is over. Processes that do nothing else come by no safe point: whether something has come that is to be
 * taken in first, on the worker's own stack. With one worker the runtime is over when the last process that counts has ended, whatever
 * daemons are ready. */
static inline bool hd__must_look(const struct hd_worker *w)
{
	return unlikely((ld_rlx(&w->attention) | (w->resched & ~(uint32_t)HD__AT_CALL)) != 0 || w->due.over ||
			(!w->crowd && w->stats.ends == w->stats.births + ld_rlx(&w->sched->births)));
}

/* Where the inner block of a process on this stack is: at its top. */
static inline struct hd__inner *hd__inner_on(char *stack, unsigned size_class)
{
	return (struct hd__inner *)hd__stack_top(stack, size_class) - 1;
}

/* A stack on which machines have their turns, and behaviours theirs, one after another, as calls. */
struct hd__host {
	char *stack;
	struct hd__inner *inner; /* at its top */
	unsigned size_class;
};

/* p, which has no stack, is given this one, and the inner block at its top. */
static inline void hd__bind_stack(struct hd_process *p, char *stack, struct hd__inner *inner)
{
	st_rel(&p->stack, stack); /* as in hd__move_at */
	p->chores &= (uint8_t)~HD__START;
	*inner = (struct hd__inner){ .locals = NULL };
	st_rlx(&p->inner, inner);
}

/* A safe point, inside the lane. Returns the caller's worker, which may be another one now. */
static inline struct hd_worker *hd__safe_point(struct hd_worker *w)
{
	return hd__is_wanted(w) ? hd__attend(w) : w;
}

/* Where a call begins that has a safe point at its end: only doors.at_call must hear of it, and what the worker has told itself. */
static inline struct hd_worker *hd__beginning(struct hd_worker *w)
{
	return unlikely(w->resched != 0) ? hd__attend(w) : w;
}

/* A call of the runner, or of a plain thread, begins and ends. The worker's lane is entered between the two; NULL: a plain
 * thread. */
static inline struct hd_worker *hd__enter_call(void)
{
	struct hd_worker *w = hd__self();

	if (likely(w != NULL)) {
		hd__enter(w);
		w = hd__beginning(w);
	}
	return w;
}

static inline void hd__leave_call(struct hd_worker *w)
{
	if (likely(w != NULL))
		hd__leave(hd__safe_point(w));
}

/* As hd__leave_call, for a call that ends without a safe point. */
static inline void hd__leave_quietly(struct hd_worker *w)
{
	if (likely(w != NULL))
		hd__leave(w);
}

/* A whole call that is a safe point and nothing else; nothing on a plain thread. */
void hd__pass_by(void);

/* hd__choose, when that does not simply take the first process of the level at which the worker runs. */
struct hd_process *hd__choose_slowly(struct hd_worker *w);

/* Takes in what has come (notes, alarms) without giving way. */
void hd__take_news(struct hd_worker *w);

/* By any thread inside w's lane: applies the notes in w's inbox; ends the waits at home with w whose deadline has come, and sends
 * the messages whose time has. */
void hd__apply_notes(struct hd_worker *w);
void hd__expire(struct hd_worker *w, hd_time now);

/* The runner has left the state RUNNING and put itself where it belongs, and no process can run at once: the worker idles, on its
 * own stack. Returns when the caller runs again. */
struct hd_worker *hd__leave_idle(struct hd_worker *w, struct hd_process *me);

/* As hd__leave_idle, when the runner has ended, or is a machine whose turn is over. Does not return; see hd__end. */
void hd__leave_idle_for_good(struct hd_worker *w);

/* p, which would be ready now, is suspended instead. */
__attribute__((cold)) void hd__make_suspended(struct hd_worker *w, struct hd_process *p);

/* Idle: runs the next process; returns when nothing is ready again. */
void hd__run_next(struct hd_worker *w);

/* Rule 9: so many hand-offs in a row, then the level's head runs. */
#define HD__HANDOFFS_MAX 64

/* Rule 9: takes p off w's queue, if it is ready there, has never run, and may run at once in place of the runner, which must wait
 * now: hd__park_as switches to it. */
bool hd__take_for_hand_off(struct hd_worker *w, struct hd_process *p);

/* Rule 9: whether p may take the worker from the runner at once, as far as its priority goes. */
bool hd__may_hand_off(const struct hd_worker *w, const struct hd_process *p);

/* As hd__take_for_hand_off, also of a process that has run; any process. */
bool hd__take_ready(struct hd_worker *w, struct hd_process *p);

/* The runner goes to the tail of its level, and p, which is ready here and in no queue, runs in its place. Returns the worker that the caller
 * runs on then, inside its lane. */
struct hd_worker *hd__yield_to(struct hd_worker *w, struct hd_process *p);

/* A turn begins when the worker's next process is chosen, and lasts over hand-offs: both numbers count up then. A process that was
 * handed the worker has the turn in p->arrival, where one that was chosen from a queue has another number. So a process that ends
 * can tell whether its joiner's turn, which it was lent, is still on. */
#define HD__LENT (UINT64_C(1) << 63)
static inline uint64_t hd__turn(const struct hd_worker *w)
{
	return HD__LENT | (w->stats.switches - w->handoffs) << 10 | w->index;
}

/* The runner ends in the turn that `joiner` has lent it: whether that one may go on at once. */
static inline bool hd__may_hand_back(const struct hd_worker *w, const struct hd_process *joiner)
{
	return w->handoffs < HD__HANDOFFS_MAX && !(joiner->nature & HD__DAEMON) && w->runq.highest <= joiner->priority &&
	       !hd__should_stop(ld_acq(&joiner->control));
}

/* What must be done before `next` runs: every process that is given the worker has come through here, if it or the worker has chores. Returns next, or NULL when the worker must idle first: there is no memory for next's
 * stack. */
struct hd_process *hd__do_chores(struct hd_worker *w, struct hd_process *next);

/* `next`, of any level and in no queue, will run: the worker comes to its level, and does its chores. Returns it, or NULL when the worker must idle
 * first. */
struct hd_process *hd__prepare(struct hd_worker *w, struct hd_process *next);

/* As hd__prepare, for a hand-off. */
struct hd_process *hd__hand_over(struct hd_worker *w, struct hd_process *next);

/* The hand-off happens. Returns p, or NULL when the worker must idle first. */
static inline struct hd_process *hd__hand_off(struct hd_worker *w, struct hd_process *p)
{
	w->handoffs++;
	bump(&w->stats.handoffs, 1);
	return likely((w->chores | p->chores) == 0 && p->priority == w->running_priority) ? p : hd__hand_over(w, p);
}

/* Every so many switches: if there are deadlines, the runner's next safe point looks at the clock without being told. */
void hd__look_up(struct hd_worker *w);

/* Another policy for p, whatever it is doing. */
void hd__set_policy(struct hd_worker *w, struct hd_process *p, enum hd_policy policy);

/* The worker's alarm may have become another one. */
void hd__set_alarm(struct hd_worker *w);

#endif
