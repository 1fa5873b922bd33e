/* life/terminate.c - ending another process.
 *
 * Owns:       why a process was killed, and at which priority at least it ends: end_err while it lives, doom_boost; under news.lock.
 * Invariant:  HD__DOOMED stays; so the process that asked may go away, or be ended in turn, and nothing is lost.
 * Callers:    any thread. */
#include <errno.h>

#include "life/life.h"

/* Dooms pid, if it lives. */
int hd__doom(struct hd__caller caller, hd_pid pid, int reason)
{
	struct hd_process *p = hd__table_find(&caller.sched->table, pid);
	int boost = caller.w != NULL ? caller.w->running_priority : HD_PRIORITY_USER;

	if (p == NULL)
		return -ESRCH;
	bool alive = hd__news_lock(p, pid);
	uint64_t control = ld_acq(&p->control);
	if (alive && !(control & HD__DOOMED) && p->end_err == 0) /* the first one counts */
		p->end_err = reason;
	if (alive && boost > p->doom_boost)
		st_rlx(&p->doom_boost, (uint8_t)boost);
	hd__waitq_unlock(&p->news);
	if (!alive)
		return -ESRCH;
	int err = hd__ask(caller, pid, HD__SUSPEND, HD__DOOMED, boost);
	return err == -EALREADY ? 0 : err;
}

/* The lane of a process that calls is left. */
static int wait_until_dead(struct hd__caller caller, hd_pid pid, hd_time until)
{
	struct hd_process *p = hd__table_find(&caller.sched->table, pid);

	if (!hd__news_lock(p, pid)) {
		hd__waitq_unlock(&p->news);
		if (caller.w != NULL)
			hd__leave(caller.w);
		return 0;
	}
	struct hd_waiter x = { .owner = &pid };
	int err = hd__park_as(caller.w, &x, &p->news, until, HD_WAIT_TERMINATE, NULL);
	return err == -EPIPE ? 0 : err;
}

int hd_terminate(hd_pid pid, hd_time until)
{
	if (hd__is_duration(until))
		return -EINVAL;
	if (pid != 0 && pid == hd_self())
		return hd_exit(NULL);
	struct hd__caller caller = hd__call_begin();
	if (caller.sched == NULL)
		return -ENXIO;
	int err = hd__doom(caller, pid, 0);
	if (hd__must_heed(caller.w, until)) { /* after doom: what was asked for is not lost */
		hd__leave(caller.w);
		int off = hd__heed();
		hd__enter(caller.w = hd__self());
		if (err == 0)
			err = off;
	}
	if (err == 0) {
		err = wait_until_dead(caller, pid, until);
		if (caller.w != NULL)
			hd__enter(caller.w = hd__self());
	}
	hd__call_end(caller);
	return err;
}

int hd_kill(hd_pid pid, int reason)
{
	struct hd__caller caller = hd__call_begin();

	if (caller.sched == NULL)
		return -ENXIO;
	int err = hd__doom(caller, pid, reason);
	struct hd_process *me = caller.w != NULL ? caller.w->current : NULL;
	if (err == 0 && me != NULL && pid == hd__pid(&caller.sched->table, me)) {
		hd__leave(caller.w);
		hd__unwind(me, HD_END_KILLED);
	}
	hd__call_end(caller);
	return err;
}
