/* life/steer.c - suspend, resume, priority, policy: what anybody may ask of a process.
 *
 * Owns:       the control word after spawn, and the nudge that carries a change of it to the home worker.
 * Invariant:  a request is one compare-and-swap that also checks the generation, so its answer is exact; the home worker does
 *             what the word says, the last word only. HD__NUDGED is set exactly while the nudge is on its way or being
 *             obeyed; only the nudge clears it (or it could be posted twice), under news.lock: whoever waits there for its
 *             effect sees it or is woken. Meanwhile the process stays with its home worker.
 * Callers:    any thread. */
#include <errno.h>

#include "base/assert.h"
#include "life/life.h"
#include "os/thread.h"
#include "sched/switch.h"

/* Does what p's control word said a moment ago; on its home worker, at a safe point. Another level: queued at its tail, running
 * behind its new equals, waiting or suspended where it is. */
static void obey(struct hd_worker *w, struct hd_process *p, uint64_t control)
{
	int priority = HD__CONTROL_PRIORITY(control);
	bool stop = hd__should_stop(control), another = priority != p->priority;

	hd__set_policy_owner(w, p, HD__CONTROL_POLICY(control));
	if (p->state == HD_READY) { /* in the worker's own queue */
		if (!another && !stop)
			return;
		hd__runq_remove(&w->runq, p);
		st_rlx(&p->priority, (uint8_t)priority);
		if (stop)
			hd__move(w, p, HD_SUSPENDED);
		else
			hd__enqueue(w, p); /* and then it may be somebody else's */
		return;
	}
	st_rlx(&p->priority, (uint8_t)priority);
	if (another && p->state == HD_RUNNING) {
		w->resched |= HD__BETTER_READY | HD__GO_TO_TAIL;
		if (hd__set_level(w, priority))
			w->resched |= HD__STEAL_DUE;
	}
	if (stop && p->state == HD_RUNNING) {
		hd__move(w, p, HD_SUSPENDED);
		w->resched |= HD__BETTER_READY; /* it is at a safe point, which will find it stopped */
	} else if (!stop && p->state == HD_SUSPENDED) {
		hd__resume_owner(w, p);
	}
}

/* The same for one that waits for a worker, or was stopped before it ever had one; on any thread, which holds it. */
static void obey_held(struct hd_worker *home, struct hd_process *p, uint64_t control)
{
	hd__share_held_priority(home, p, HD__CONTROL_PRIORITY(control));
	hd__set_policy_queued(p, HD__CONTROL_POLICY(control));
	if (hd__should_stop(control))
		hd__share_held_suspend(home, p);
	else
		hd__share_held_resume(home, p);
}

/* The nudge has come. What the word says when HD__NUDGED is cleared is obeyed before anybody else can act on p: who waits in news
 * for that must see both or neither; one in a share is held meanwhile; and the home of one that waits for something is
 * kept by the lock of our share. Whoever changes the word afterwards holds it or sends another nudge. */
static void apply_nudge(void *worker, struct hd_note *note)
{
	struct hd_worker *w = worker, *home = NULL;
	struct hd_process *p = (struct hd_process *)((char *)note - offsetof(struct hd_process, nudge));

	HD_ASSERT(ld_rlx(&p->home) == w, "a process moved away from a request");
	hd__waitq_lock(&p->news);
	bool roams = ld_rlx(&p->roams);
	if (unlikely(roams) && (home = hd__share_hold(w->sched, p)) == NULL)
		hd__share_lock(w);
	uint64_t control = and_acq_rel(&p->control, ~(uint64_t)HD__NUDGED); /* pairs with change_word */
	if (home != NULL) {
		obey_held(home, p, control);
		hd__share_let_go(home, p);
	} else if (roams && p->state == HD_WAITING) {
		st_rlx(&p->priority, (uint8_t)HD__CONTROL_PRIORITY(control));
		hd__set_policy_queued(p, HD__CONTROL_POLICY(control));
		hd__share_unlock(w);
	} else {
		if (roams)
			hd__share_unlock(w);
		obey(w, p, control);
	}
	struct hd_waiter *waiting = hd__waitq_claim_all(w, &p->news, HD__GRANTED, HD_WAIT_SUSPEND);
	hd__waitq_unlock(&p->news);
	hd__unpark_all(w, waiting);
}

/* Clears and sets bits of the control word of the live process `pid`; *before and *after are what it said and says. `flag` is set
 * too if anything is. Returns 0; -ESRCH; -EALREADY when nothing would change. */
static int change_word(struct hd_process *p, hd_pid pid, uint64_t clear, uint64_t set, uint64_t flag, uint64_t *before,
		       uint64_t *after)
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
		*after = (*before & ~clear) | set;
		if (*after == *before)
			return -EALREADY;
		*after |= flag;
	} while (!cas_acq_rel(&p->control, before, *after));
	return 0;
}

/* Changes the control word of `pid` as above and sees to it that it is obeyed: now, if it is at home here or waits for a worker, else
 * as soon as its worker looks. *done: now. */
static int change(struct hd__caller caller, hd_pid pid, uint64_t clear, uint64_t set, struct hd_process **found, bool *done)
{
	struct hd_process *p = *found = hd__table_find(&caller.sched->table, pid);
	struct hd_worker *home;
	uint64_t before, after;

	*done = true;
	if (p == NULL || !hd__alive(ld_acq(&p->control), pid))
		return -ESRCH;
	if (hd__is_pinned_to(p, caller.w)) { /* if it is another tenant's by now, its id is dead */
		int err = change_word(p, pid, clear, set, 0, &before, &after);
		if (err == 0)
			obey(caller.w, p, after); /* if it has changed again, a nudge is on its way */
		return err;
	}
	if (ld_acq(&p->roams) && (home = hd__share_hold(caller.sched, p)) != NULL) {
		int err = change_word(p, pid, clear, set, 0, &before, &after);
		if (err != -ESRCH)
			obey_held(home, p, after); /* even if it said so already: that request may be on its way still */
		hd__share_let_go(home, p);
		return err;
	}
	*done = false;
	int err = change_word(p, pid, clear, set, HD__NUDGED, &before, &after);
	if (err == 0 && !(before & HD__NUDGED)) {
		p->nudge.apply = apply_nudge;
		hd__post(ld_acq(&p->home), &p->nudge);
	}
	return err;
}

/* The process lives elsewhere, or roams: waits until its worker has obeyed. */
static int wait_until_obeyed(struct hd__caller caller, struct hd_process *p, hd_pid pid, hd_time until)
{
	bool past = hd__is_past(caller.w, until);
	hd__waitq_lock(&p->news);
	uint64_t control = ld_acq(&p->control);
	if (past || !hd__alive(control, pid) || !(control & HD__NUDGED)) {
		hd__waitq_unlock(&p->news);
		if (!hd__alive(control, pid))
			return -ESRCH;
		return control & HD__NUDGED ? -EINPROGRESS : 0;
	}
	int err = hd__park(caller.w, &p->news, until, HD_WAIT_SUSPEND);
	return err == -EPIPE ? -ESRCH : err;
}

int hd_suspend(hd_pid pid, hd_time until)
{
	struct hd__caller caller = hd__call_begin();
	struct hd_process *p;

	if (caller.sched == NULL)
		return -EPERM;
	bool done;
	int err = change(caller, pid, 0, HD__SUSPEND, &p, &done);
	if ((err == 0 || err == -EALREADY) && !done && pid != hd_self()) {
		if (caller.w != NULL)
			caller.w = hd__safe_point(caller.w); /* the request may be in our own inbox */
		err = wait_until_obeyed(caller, p, pid, until);
		if (caller.w != NULL)
			caller.w = hd__self();
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
		return -EPERM;
	int err = change(caller, pid, HD__SUSPEND, 0, &p, &done);
	hd__call_end(caller);
	return err;
}

int hd_set_priority(hd_pid pid, int priority)
{
	struct hd__caller caller = hd__call_begin();
	struct hd_process *p;
	bool done;
	int err = -EPERM;

	if (caller.sched == NULL)
		return err;
	if (priority < HD__PRIORITY_MIN || priority > HD__PRIORITY_MAX)
		err = -EINVAL;
	else
		err = change(caller, pid, HD__CONTROL(0, 0, 0xff, 0), HD__CONTROL(0, 0, priority, 0), &p, &done);
	hd__call_end(caller);
	return err == -EALREADY ? 0 : err;
}

int hd_set_policy(hd_pid pid, enum hd_policy policy)
{
	struct hd__caller caller = hd__call_begin();
	struct hd_process *p;
	bool done;
	int err = -EPERM;

	if (caller.sched == NULL)
		return err;
	if (policy < HD_POLICY_DEFAULT || policy > HD_IO) {
		err = -EINVAL;
	} else {
		if (policy == HD_POLICY_DEFAULT)
			policy = caller.sched->config.policy;
		err = change(caller, pid, HD__CONTROL(0, 3, 0, 0), HD__CONTROL(0, policy, 0, 0), &p, &done);
	}
	hd__call_end(caller);
	return err == -EALREADY ? 0 : err;
}

int hd_priority(hd_pid pid)
{
	struct hd__caller caller = hd__call_begin();

	if (caller.sched == NULL)
		return -EPERM;
	struct hd_process *p = hd__table_find(&caller.sched->table, pid);
	uint64_t control = p != NULL ? ld_acq(&p->control) : HD__DEAD;
	hd__call_end(caller);
	return hd__alive(control, pid) ? HD__CONTROL_PRIORITY(control) : -ESRCH;
}
