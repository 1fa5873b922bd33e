/* life/steer.c - suspend, resume, priority, policy: what anybody may ask of a process.
 *
 * Owns:       the control word after spawn, and the nudge that carries a change of it to the home worker.
 * Invariant:  a request is one compare-and-swap that also checks the generation, so its answer is exact; the home worker does
 *             what the word says, the last word only. HD__NUDGED is set exactly while the nudge is on its way or being
 *             obeyed; only the nudge clears it (or it could be posted twice), under news.lock: whoever waits there for its
 *             effect sees it or is woken.
 * Callers:    any thread. */
#include <errno.h>

#include "life/life.h"
#include "sched/switch.h"

/* Another level: queued at its tail, running behind its new equals, waiting or suspended where it is. */
static void obey_priority(struct hd_worker *w, struct hd_process *p, int priority)
{
	if (priority == p->priority)
		return;
	bool ready = p->state == HD_READY;
	if (ready)
		hd__dequeue(w, p);
	st_rlx(&p->priority, (uint8_t)priority);
	if (ready) {
		hd__enqueue(w, p);
	} else if (p->state == HD_RUNNING) {
		w->resched |= HD__BETTER_READY | HD__GO_TO_TAIL;
		if (hd__set_level(w, priority))
			w->resched |= HD__STEAL_DUE;
	}
}

static void obey_suspend(struct hd_worker *w, struct hd_process *p, bool suspend)
{
	if (suspend && p->state == HD_READY) {
		hd__dequeue(w, p);
		hd__move(w, p, HD_SUSPENDED);
	} else if (suspend && p->state == HD_RUNNING) {
		hd__move(w, p, HD_SUSPENDED);
		w->resched |= HD__BETTER_READY; /* it is at a safe point, which will find it stopped */
	} else if (!suspend && p->state == HD_SUSPENDED) {
		hd__resume_owner(w, p);
	}
}

/* Does what p's control word said a moment ago; on its home worker, at a safe point. */
static void obey(struct hd_worker *w, struct hd_process *p, uint64_t control)
{
	obey_priority(w, p, HD__CONTROL_PRIORITY(control));
	hd__set_policy_owner(w, p, HD__CONTROL_POLICY(control));
	obey_suspend(w, p, hd__should_stop(control));
}

/* p roams and waits, for a worker or for something else: until its lock is ours, others may take it to theirs. Returns false when
 * it is not at home here. */
static bool obey_roaming(struct hd_worker *w, struct hd_process *p, uint64_t control)
{
	int priority = HD__CONTROL_PRIORITY(control);
	bool stop = hd__should_stop(control);

	hd__share_lock(w);
	if (ld_rlx(&p->home) != w) {
		hd__share_unlock(w);
		return false;
	}
	if (!p->shared && p->state != HD_WAITING) { /* then it is here for good, as far as others are concerned */
		hd__share_unlock(w);
		obey(w, p, control);
		return true;
	}
	bool taken = p->shared && (stop || priority != p->priority);
	if (taken)
		hd__share_remove_locked(w, p);
	st_rlx(&p->priority, (uint8_t)priority);
	hd__set_policy_owner(w, p, HD__CONTROL_POLICY(control));
	hd__share_unlock(w);
	if (taken && stop)
		hd__move(w, p, HD_SUSPENDED);
	else if (taken)
		hd__enqueue(w, p);
	return true;
}

static void apply_nudge(void *worker, struct hd_note *note)
{
	struct hd_worker *w = worker;
	struct hd_process *p = (struct hd_process *)((char *)note - offsetof(struct hd_process, nudge));
	uint64_t control = ld_acq(&p->control); /* pairs with change's release */

	for (;;) {
		if (unlikely(!hd__is_pinned_to(p, w))) {
			if (!obey_roaming(w, p, control)) {
				hd__post(ld_rlx(&p->home), note); /* after it */
				return;
			}
		} else {
			obey(w, p, control);
		}
		hd__waitq_lock(&p->news);
		if (cas_acq_rel(&p->control, &control, control & ~(uint64_t)HD__NUDGED))
			break;
		hd__waitq_unlock(&p->news); /* it says something else now */
	}
	struct hd_waiter *waiting = hd__waitq_claim_all(w, &p->news, HD__GRANTED, HD_WAIT_SUSPEND);
	hd__waitq_unlock(&p->news);
	hd__unpark_all(w, waiting);
}

/* Clears and sets bits of the control word of the live process `pid`, and sees to it that they are obeyed: now, if it is at
 * home here, else as soon as its worker looks. Returns 0; -ESRCH; -EALREADY when nothing would change. */
static int change(struct hd__caller caller, hd_pid pid, uint64_t clear, uint64_t set, struct hd_process **found)
{
	struct hd_process *p = *found = hd__table_find(&caller.sched->table, pid);

	if (p == NULL)
		return -ESRCH;
	uint64_t control = ld_acq(&p->control), changed;
	bool local;
	do {
		if (!hd__alive(control, pid))
			return -ESRCH;
		changed = (control & ~clear) | set;
		if (changed == control)
			return -EALREADY;
		local = hd__is_pinned_to(p, caller.w); /* if it is another tenant's by now, the CAS fails */
		if (!local)
			changed |= HD__NUDGED;
	} while (!cas_acq_rel(&p->control, &control, changed));
	if (local) {
		obey(caller.w, p, changed); /* if it has changed again, a nudge is on its way */
	} else if (!(control & HD__NUDGED)) {
		p->nudge.apply = apply_nudge;
		hd__post(ld_rlx(&p->home), &p->nudge);
	}
	return 0;
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
	int err = change(caller, pid, 0, HD__SUSPEND, &p);
	if ((err == 0 || err == -EALREADY) && !hd__is_pinned_to(p, caller.w) && pid != hd_self()) {
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

	if (caller.sched == NULL)
		return -EPERM;
	int err = change(caller, pid, HD__SUSPEND, 0, &p);
	hd__call_end(caller);
	return err;
}

int hd_set_priority(hd_pid pid, int priority)
{
	struct hd__caller caller = hd__call_begin();
	struct hd_process *p;
	int err = -EPERM;

	if (caller.sched == NULL)
		return err;
	if (priority < HD__PRIORITY_MIN || priority > HD__PRIORITY_MAX)
		err = -EINVAL;
	else
		err = change(caller, pid, HD__CONTROL(0, 0, 0xff, 0), HD__CONTROL(0, 0, priority, 0), &p);
	hd__call_end(caller);
	return err == -EALREADY ? 0 : err;
}

int hd_set_policy(hd_pid pid, enum hd_policy policy)
{
	struct hd__caller caller = hd__call_begin();
	struct hd_process *p;
	int err = -EPERM;

	if (caller.sched == NULL)
		return err;
	if (policy < HD_POLICY_DEFAULT || policy > HD_IO) {
		err = -EINVAL;
	} else {
		if (policy == HD_POLICY_DEFAULT)
			policy = caller.sched->config.policy;
		err = change(caller, pid, HD__CONTROL(0, 3, 0, 0), HD__CONTROL(0, policy, 0, 0), &p);
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
