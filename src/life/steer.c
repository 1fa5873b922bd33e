/* life/steer.c - suspend, resume, priority, policy: what any thread may ask of a process.
 *
 * Owns:       the control word after spawn, and the nudge that carries a change of it to the home worker.
 * Invariant:  a request is one compare-and-swap that also checks the generation, so its answer is exact; the home worker does
 *             what the word says, the last word only. HD__NUDGED is set exactly while the nudge is on its way or being
 *             obeyed; only the nudge clears it (or it could be posted twice), under news.lock: a waiter there for its
 *             effect sees it or is woken. Meanwhile the process stays with its home worker.
 * Callers:    any thread; a request is obeyed inside the lane of the process's home. */
#include <errno.h>

#include "base/assert.h"
#include "life/life.h"
#include "os/thread.h"
#include "sched/preempt.h"
#include "sched/switch.h"

/* Gives p, at home here, another level, without regard to what else its word says. One that loses a boost goes to the head of
 * its level, any other to the tail. */
static void change_level(struct hd_worker *w, struct hd_process *p, int priority, bool head)
{
	bool queued = p->state == HD_READY;

	if (queued)
		hd__runq_remove(&w->runq, p);
	st_rlx(&p->priority, (uint8_t)priority);
	if (queued && head)
		hd__runq_push_head(&w->runq, p);
	else if (queued)
		hd__runq_push_tail(&w->runq, p);
	if (p->state != HD_RUNNING)
		return;
	w->resched |= head ? HD__KEEP_PLACE : HD__GO_TO_TAIL;
	if (hd__set_level(w, priority))
		w->resched |= HD__LOOK_ELSEWHERE;
}

/* Does what p's control word said a moment ago; inside its home's lane. Another level: queued at its tail, running behind its new
 * equals, waiting or suspended where it is. */
static void obey(struct hd_worker *w, struct hd_process *p, uint64_t control)
{
	int priority = hd__effective_priority(control);
	bool stop = hd__should_stop(control);

	hd__set_policy(w, p, HD__CONTROL_POLICY(control));
	if (priority != p->priority)
		change_level(w, p, priority, false);
	if (stop && p->state == HD_READY) {
		hd__runq_remove(&w->runq, p);
		hd__move(w, p, HD_SUSPENDED);
	} else if (stop && p->state == HD_RUNNING) {
		hd__move(w, p, HD_SUSPENDED); /* it is at a safe point, which will find it stopped */
		w->resched |= HD__GO_TO_TAIL;
	} else if (!stop && p->state == HD_SUSPENDED) {
		hd__resume_here(w, p);
	}
}

/* p waits, and has another priority than before: another rank then, where waiters have ranks; and the owner of the mutex that it waits for,
 * or the process whose answer it waits for, may have another priority, and so on along the chain. The next owner's worker is asked by a nudge. A circle ends where nothing changes any
 * more. */
static void pass_boost_on(struct hd_worker *w, struct hd_process *p)
{
	hd_pid owner = w->sched->hooks.boosts(w->sched, p);

	if (owner > 0)
		hd__ask_reboost(w->sched, owner);
}

/* What a process should hear of, whatever it is doing. */
#define REQUESTS (HD__CANCEL | HD__DOOMED | HD__REBOOST)

/* The part of it that may need the locks of others: p's boost, the priority of one that waits, and the end of its wait. Inside its
 * home's lane, where it stays meanwhile; no locks are held. Returns what the word says then. */
static uint64_t heed(struct hd_worker *w, struct hd_process *p, uint64_t control)
{
	bool waits = ld_rlx(&p->state) == HD_WAITING;

	if (unlikely(HD__CONTROL_PRIORITY(control) < p->lowest))
		st_rlx(&p->lowest, (uint8_t)HD__CONTROL_PRIORITY(control));
	bool lent = (HD__CONTROL_BOOST(control) | ld_rlx(&p->lent)) != 0, asked = control & HD__REBOOST;
	if (unlikely(asked || lent)) { /* not only if asked: its own priority may be another one (sync/lend.c) */
		control = w->sched->hooks.find_boost(w->sched, p);
		if (asked && !waits && hd__effective_priority(control) < p->priority)
			change_level(w, p, hd__effective_priority(control), true);
	}
	if (waits) {
		int priority = hd__effective_priority(control);
		if (priority != p->priority) {
			st_seq(&p->priority, (uint8_t)priority); /* pairs with hd__rank */
			pass_boost_on(w, p);
		}
		enum hd__outcome off = hd__called_off(p, control, ld_rlx(&p->rules));
		if (off != HD__WAITING)
			hd__wait_end(w, p, off);
	}
	return control;
}

#define SETTINGS (HD__CONTROL(0, 3, 0x7f, 0) | HD__BOOST(0x7f))

/* Clears HD__NUDGED, unless something was asked that was not heeded yet. */
static bool end_nudge(struct hd_process *p, uint64_t heeded, uint64_t *control)
{
	*control = ld_acq(&p->control);
	do
		if (*control & REQUESTS & ~heeded || *control & HD__REBOOST || (*control ^ heeded) & SETTINGS)
			return false;
	while (!cas_acq_rel(&p->control, control, *control & ~(uint64_t)HD__NUDGED)); /* pairs with change_word */
	*control &= ~(uint64_t)HD__NUDGED;
	return true;
}

/* Does what p's word says when HD__NUDGED is cleared, before any other thread can act on p: a waiter in news for that must see both or
 * neither. A process that waits may be adopted by another worker as soon as HD__NUDGED is cleared: what concerns it is done before, and nothing of
 * it is read after that. When its wait is over, hd__make_suspended says that it stalls. */
static void heed_and_obey(struct hd_worker *w, struct hd_process *p)
{
	uint64_t control;
	bool waits;

	for (;;) {
		uint64_t heeded = heed(w, p, ld_acq(&p->control));
		waits = p->state == HD_WAITING;
		if (waits)
			hd__set_policy(w, p, HD__CONTROL_POLICY(heeded));
		hd__waitq_lock(&p->news);
		if (end_nudge(p, heeded, &control)) {
			if (!waits)
				obey(w, p, control);
			break;
		}
		hd__waitq_unlock(&p->news);
	}
	struct hd_waiter *waiting = hd__waitq_claim_all(w, &p->news, HD__GRANTED, HD_WAIT_SUSPEND);
	hd__waitq_unlock(&p->news);
	hd__unpark_all(w, waiting);
	if (!waits && p->state == HD_SUSPENDED)
		hd__wait_stalled(w, p, false);
}

/* The nudge has come. A visitor of the lane leaves one for the runner to the worker itself: the runner is at no safe point. */
static void apply_nudge(void *worker, struct hd_note *note)
{
	struct hd_worker *w = worker;
	struct hd_process *p = (struct hd_process *)((char *)note - offsetof(struct hd_process, nudge));

	HD_ASSERT(ld_rlx(&p->home) == w, "a process moved away from a request");
	if (unlikely(p == w->current && hd__self() != w))
		hd__post(w, note);
	else
		heed_and_obey(w, p);
}

/* A change of a control word: bits to clear and to set, and the least boost that it should have. */
struct change {
	uint64_t clear, set;
	int boost;
};

/* Changes the control word of the live process `pid`; *before and *after are what it said and says. `flag` is set too if anything
 * is. Returns 0; -ESRCH; -EALREADY when nothing would change. */
static int change_word(struct hd_process *p, hd_pid pid, struct change what, uint64_t flag, uint64_t *before, uint64_t *after)
{
	unsigned tries = 0;

	*before = ld_acq(&p->control);
	do {
		while (*before & HD__MOVING) { /* for a few instructions */
			if (++tries % 100 == 0)
				hd__os_thread_yield();
			*before = ld_acq(&p->control);
		}
		if (!hd__alive(*before, pid))
			return -ESRCH;
		*after = (*before & ~what.clear) | what.set;
		if (what.boost > HD__CONTROL_BOOST(*after))
			*after = (*after & ~HD__BOOST(0x7f)) | HD__BOOST(what.boost);
		if (*after == *before)
			return -EALREADY;
		*after |= flag;
	} while (!cas_acq_rel(&p->control, before, *after));
	return 0;
}

/* Sends the nudge of p, whose HD__NUDGED the caller has set. */
static void nudge(struct hd_process *p)
{
	p->nudge.apply = apply_nudge;
	hd__post(ld_acq(&p->home), &p->nudge); /* constant from now on */
}

/* Changes the control word of `pid` as change_word does and sees to it that it is obeyed: now, if it is at home here, else as soon as
 * its worker looks. *done: now. */
static int change(struct hd__caller caller, hd_pid pid, struct change what, struct hd_process **found, bool *done)
{
	struct hd_process *p = *found = hd__table_find(&caller.sched->table, pid);
	uint64_t before, after;

	*done = false;
	if (p == NULL)
		return -ESRCH;
	hd__publish(p);
	int err = change_word(p, pid, what, HD__NUDGED, &before, &after);
	if (err == -EALREADY) /* it may be obeyed yet */
		*done = !(ld_acq(&p->control) & HD__NUDGED);
	if (err != 0)
		return err;
	*done = caller.w != NULL && ld_acq(&p->home) == caller.w;
	if (*done && !(before & HD__NUDGED))
		heed_and_obey(caller.w, p);
	else if (*done)
		obey(caller.w, p, heed(caller.w, p, after)); /* the nudge of another thread is on its way, and ends there */
	else if (!(before & HD__NUDGED))
		nudge(p);
	return 0;
}

int hd__ask(struct hd__caller caller, hd_pid pid, uint64_t clear, uint64_t set, int boost)
{
	struct hd_process *p;
	bool done;

	return change(caller, pid, (struct change){ clear, set, boost }, &p, &done);
}

/* Always by a note: the caller may hold the lock of a mutex that must be looked at. */
void hd__ask_reboost(struct hd__sched *sched, hd_pid pid)
{
	struct hd_process *p = hd__table_find(&sched->table, pid);
	uint64_t before, after;

	if (p == NULL || change_word(p, pid, (struct change){ .set = HD__REBOOST }, HD__NUDGED, &before, &after) != 0)
		return;
	if (!(before & HD__NUDGED))
		nudge(p);
}

void hd__boost_self(struct hd_worker *w, struct hd_process *me)
{
	int priority = hd__effective_priority(w->sched->hooks.find_boost(w->sched, me));

	if (priority != me->priority)
		change_level(w, me, priority, true);
}

/* The process lives elsewhere: waits until its worker has obeyed. The lane of a process that calls is left. */
static int wait_until_obeyed(struct hd__caller caller, struct hd_process *p, hd_pid pid, hd_time until)
{
	bool past = hd__is_past(caller.w, until);
	(void)hd__news_lock(p, pid);
	uint64_t control = ld_acq(&p->control);
	if (past || !hd__alive(control, pid) || !(control & HD__NUDGED)) {
		hd__waitq_unlock(&p->news);
		if (caller.w != NULL)
			hd__leave(caller.w);
		if (!hd__alive(control, pid))
			return -ESRCH;
		return control & HD__NUDGED ? -EINPROGRESS : 0;
	}
	struct hd_waiter x = { .owner = &pid };
	int err = hd__park_as(caller.w, &x, &p->news, until, HD_WAIT_SUSPEND, NULL);
	return err == -EPIPE ? -ESRCH : err;
}

int hd_suspend(hd_pid pid, hd_time until)
{
	if (hd__is_duration(until))
		return -EINVAL;
	struct hd__caller caller = hd__call_begin();
	struct hd_process *p;
	if (caller.sched == NULL)
		return -ENXIO;
	bool done;
	int err = change(caller, pid, (struct change){ .set = HD__SUSPEND }, &p, &done);
	if ((err == 0 || err == -EALREADY) && ld_acq(&p->control) & HD__DOOMED)
		err = -ESRCH; /* it goes on, to its end */
	if ((err == 0 || err == -EALREADY) && !done && (caller.w == NULL || p != caller.w->current)) {
		if (caller.w != NULL)
			caller.w = hd__safe_point(caller.w); /* the request may be in our own inbox */
		err = wait_until_obeyed(caller, p, pid, until);
		if (caller.w != NULL)
			hd__enter(caller.w = hd__self());
	}
	hd__call_end(caller); /* when pid is the caller, it stops here */
	return err == -EALREADY ? 0 : err;
}

int hd_resume(hd_pid pid)
{
	struct hd__caller caller = hd__call_begin();
	struct hd_process *p;
	bool done;

	if (caller.sched == NULL)
		return -ENXIO;
	int err = change(caller, pid, (struct change){ .clear = HD__SUSPEND }, &p, &done);
	hd__call_end(caller);
	return err;
}

int hd_set_priority(hd_pid pid, int priority)
{
	struct hd__caller caller = hd__call_begin();
	struct hd_process *p;
	bool done;
	int err = -ENXIO;

	if (caller.sched == NULL)
		return err;
	if (priority < HD__PRIORITY_MIN || priority > HD__PRIORITY_MAX) {
		err = -EINVAL;
	} else {
		hd__preempt_mix(caller.sched, priority);
		err = change(caller, pid, (struct change){ HD__CONTROL(0, 0, 0x7f, 0), HD__CONTROL(0, 0, priority, 0), 0 }, &p,
			     &done);
	}
	hd__call_end(caller);
	return err == -EALREADY ? 0 : err;
}

int hd_set_policy(hd_pid pid, enum hd_policy policy)
{
	struct hd__caller caller = hd__call_begin();
	struct hd_process *p;
	bool done;
	int err = -ENXIO;

	if (caller.sched == NULL)
		return err;
	if (policy < HD_POLICY_DEFAULT || policy > HD_IO) {
		err = -EINVAL;
	} else {
		if (policy == HD_POLICY_DEFAULT)
			policy = caller.sched->config.policy;
		err = change(caller, pid, (struct change){ HD__CONTROL(0, 3, 0, 0), HD__CONTROL(0, policy, 0, 0), 0 }, &p,
			     &done);
	}
	hd__call_end(caller);
	return err == -EALREADY ? 0 : err;
}

int hd_priority(hd_pid pid)
{
	struct hd__caller caller = hd__call_begin();

	if (caller.sched == NULL)
		return -ENXIO;
	struct hd_process *p = hd__table_find(&caller.sched->table, pid);
	uint64_t control = p != NULL ? ld_acq(&p->control) : HD__DEAD;
	hd__call_end(caller);
	return hd__alive(control, pid) ? HD__CONTROL_PRIORITY(control) : -ESRCH;
}
