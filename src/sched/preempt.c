/* sched/preempt.c - the watcher takes a worker from a runner that does not give way by itself: it computes, and makes no heddle call.
 *
 *   the watcher    at two looks, with no switch between: something better is ready for this worker, or its runner's quantum is over; the
 *                  thread has used CPU time meanwhile, so that it is not blocked in the kernel: a signal is sent to it
 *   the handler    on the worker's thread (os/preempt.c): the program's own code was interrupted, on the stack of the runner, which allows it and has room:
 *                  that code calls give_way, as if it stood between its two instructions
 *   give_way       a safe point. If the runner loses the worker, it is pinned until it is back: its code may have the address of a thread-local variable in
 *                  a register; not if these variables are its own
 *
 * Owns:      the runner's part of a preemption, and the decision that one is due.
 * Invariant: in a program with one priority and without quanta, no signal is ever sent: sched->mixed is false.
 * Callers:   the watcher; give_way: the runner, at any instruction of the program's, outside its lane and with no lock of heddle's. */
#include "sched/preempt.h"

#include <heddle/blocking.h>
#include <errno.h>

#include "os/preempt.h"
#include "sched/record.h"
#include "sched/sched.h"

#define ROOM ((size_t)8 << 10)		/* of the stack, for what the safe point does; */
#define ROOM_CARRIED ((size_t)24 << 10) /* with a sanitizer, whose frames are larger */

static bool may(uintptr_t sp, size_t size)
{
	struct hd_worker *w = hd__self();
	struct hd_process *me = w != NULL ? w->current : NULL;

	if (me == NULL || me->state != HD_RUNNING || me->inner == NULL || me->inner->unpreemptible > 0 ||
	    me->pins == UINT16_MAX)
		return false;
	uintptr_t low = (uintptr_t)me->stack, need = size + (hd__carries ? ROOM_CARRIED : ROOM);
	return sp > low && sp <= (uintptr_t)me->inner &&
	       sp - low >= need; /* else it is on a stack of the program's, or has no room */
}

static void give_way(void)
{
	struct hd_worker *w = hd__self();
	struct hd_process *me = w->current;

	bool stays = !(me->nature & HD__OWN_TLS);

	hd__enter(w);
	me->pins += stays;
	if (hd__is_wanted(w)) {
		bump(&w->stats.forced, 1);
		hd__trace_event(w, HD__TRACED_FORCED, hd__pid(&w->sched->table, me), 0, 0);
		w = hd__attend(w);
	}
	me->pins -= stays;
	hd__leave(w);
}

/* What the first runner that stays is worth. Later on there is nothing to do. */
static bool can_send(struct hd__sched *sched)
{
	if (sched->preempts == HD__PREEMPTS_UNKNOWN) {
		const struct hd__preemption how = { .signal = sched->config.preempt_signal,
						    .objects = sched->config.preemptible,
						    .may = may,
						    .call = give_way };
		bool works = sched->config.preempt_signal > 0 && hd__os_preempt_begin(&how);
		sched->preempts = works ? HD__PREEMPTS : HD__PREEMPTS_NOT;
	}
	return sched->preempts == HD__PREEMPTS;
}

/* Whether the runner computes: its thread has used the CPU since the last look. */
static bool computes(struct hd_worker *w)
{
	hd_time used = hd__os_thread_cpu_time(ld_rlx(&w->thread.id)), before = w->seen.cpu_time;

	w->seen.cpu_time = used;
	return before != 0 && used > before;
}

/* Whether w's runner, whatever other workers do, has had its time. What is in the inbox of the only worker, and whom its deadlines would wake, is not known: no
 * other thread can enter its lane. */
static bool is_over_time(struct hd__sched *sched, struct hd_worker *w, uint32_t attention, hd_time now)
{
	if ((ld_rlx(&w->due.quantum_end) <= now && ld_rlx(&w->runq.highest) >= ld_rlx(&w->running_priority)) ||
	    (ld_rlx(&w->due.eventful) && attention != 0))
		return true;
	if (ld_rlx(&sched->stopping) && (attention & HD__LOOK || ld_rlx(&w->due.stop_at) <= now))
		return true;
	return !w->crowd && ld_rlx(&sched->mixed) && attention & (HD__INBOX | HD__ALARM | HD__OUTSIDE);
}

/* Whether something better is ready here; or w was told that there is elsewhere, and there is: another worker may have taken it meanwhile. */
static bool is_outranked(struct hd_worker *w, uint32_t attention)
{
	struct hd__sched *sched = w->sched;
	int level = ld_rlx(&w->running_priority);

	if (!ld_rlx(&sched->mixed)) /* BETTER is also raised for a worker that was idle, and may have found something to run meanwhile */
		return false;
	for (unsigned i = 0; attention & HD__BETTER && i < hd__workers(sched); i++)
		if (ld_rlx(&sched->workers[i].runq.highest) > level)
			return true;
	return ld_rlx(&w->runq.highest) > level;
}

/* Which of two workers whose runners are outranked should be taken: the one that runs less; of equals, one whose runner stays. */
static struct hd_worker *lower(struct hd_worker *a, struct hd_worker *b)
{
	int of_a = ld_rlx(&a->running_priority), of_b = ld_rlx(&b->running_priority);

	return of_a != of_b ? (of_a < of_b ? a : b) : hd__preempt_stays(a) ? a : b;
}

enum hd__preempt_found hd__preempt_look(struct hd__sched *sched, hd_time now)
{
	struct hd_worker *lowest = NULL;
	bool due = false, sent = false;

	for (unsigned i = 0; i < hd__workers(sched); i++) {
		struct hd_worker *w = &sched->workers[i];
		uint32_t attention = ld_seq(&w->attention);
		if (attention & HD__ASLEEP || ld_rlx(&w->running_priority) == 0 || hd__is_away(w))
			continue;
		bool late = is_over_time(sched, w, attention, now), outranked = is_outranked(w, attention),
		     stays = hd__preempt_stays(w);
		bool blocked = stays &&
			       (late || outranked || ld_rlx(&sched->mixed) || ld_rlx(&w->due.quantum_end) != HD_FOREVER) &&
			       !computes(w);
		due |= late || outranked;
		if (late && stays && !blocked && can_send(sched)) {
			hd__os_preempt(&w->thread);
			sent = true;
		} else if (outranked && !blocked)
			lowest = lowest == NULL ? w : lower(lowest, w);
	}
	/* One at a time: what is better may be for any of them. If the lowest runner has just begun, it may come by a safe point by itself. */
	if (lowest != NULL && hd__preempt_stays(lowest)) {
		if (can_send(sched)) {
			hd__os_preempt(&lowest->thread);
			sent = true;
		}
		hd__spare_refused(lowest); /* so far */
	}
	return sent ? HD__PREEMPT_SENT : due && sched->preempts != HD__PREEMPTS_NOT ? HD__PREEMPT_DUE : HD__PREEMPT_NONE;
}

void hd__preempt_end(struct hd__sched *sched)
{
	if (sched->preempts == HD__PREEMPTS)
		hd__os_preempt_end();
}

int hd_preempt_disable(void)
{
	struct hd_worker *w = hd__self();

	if (w == NULL)
		return -ENOTSUP;
	struct hd__inner *mine = w->current->inner;
	if (mine->unpreemptible == UINT8_MAX)
		return -EOVERFLOW;
	mine->unpreemptible++;
	return 0;
}

int hd_preempt_enable(void)
{
	struct hd_worker *w = hd__self();

	if (w == NULL)
		return -ENOTSUP;
	struct hd__inner *mine = w->current->inner;
	if (mine->unpreemptible == 0)
		return -EPERM;
	if (--mine->unpreemptible == 0)
		hd__pass_by(); /* what would have preempted it meanwhile does so now */
	return 0;
}
