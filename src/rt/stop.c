/* rt/stop.c - how the runtime ends.
 *
 *   the last process that counts has ended ----+
 *   hd_shutdown(code) -------------------------+--> hd__stop: every worker is told (HD__LOOK)
 *   deadlock ----------------------------------+        |
 *                                                       v
 *                                             hd__look: each worker dooms the processes that are at home with it
 *                                                       |
 *                                                       v
 *      a worker leaves <---------- waits end, locals are destroyed, or one second passes
 *             |
 *             v
 *      the first worker, last: hd__stop_finish: whoever is left is abandoned, and the gate is shut: no plain thread is inside
 *
 * Owns:      the end of the runtime: its code, its deadline, the verdict of deadlock.
 * Callers:   the workers; hd_shutdown and hd_hold_open from any thread. */
#include <errno.h>

#include "os/lock.h"
#include "os/memory.h"
#include "os/thread.h"
#include "rt/rt.h"
#include "sched/gate.h"
#include "sched/state.h"

#define GRACE HD_SEC(1)
#define STUCK_LONG HD_SEC(1)

/* Takes in what has come, and lets whoever it came from go on. */
static void wait_for_news(struct hd_worker *w)
{
	hd__os_thread_yield();
	hd__take_news(w);
}

/* The runtime ends for p too: it goes on only to end. */
static void doom(struct hd_worker *w, struct hd_process *p)
{
	uint64_t control;

	for (;;) {
		control = ld_acq(&p->control);
		if (control & HD__DEAD)
			return;
		unsigned state = ld_acq(&p->state);
		bool unstarted = ld_rlx(&p->switches) == 0 && (state == HD_READY || state == HD_SUSPENDED);
		if (!unstarted)
			break;
		if (state == HD_READY || p->roams == HD__UNSTARTED)
			hd__share_drop(w, p);
		if (p->state == HD_READY)
			hd__move(w, p, HD_SUSPENDED);
		if (hd__end_from_outside(w, p, HD_END_KILLED, 0))
			return;
		wait_for_news(w);
	}
	hd__share_lock(w); /* who holds p to stop it has done so, or will see that it is doomed */
	while (!cas_acq_rel(&p->control, &control, (control | HD__DOOMED) & ~(uint64_t)HD__SUSPEND))
		;
	hd__unlock(&w->share.lock);
	if (p->state == HD_SUSPENDED)
		hd__resume_owner(w, p);
	else if (p->state == HD_WAITING && hd__called_off(p, ld_acq(&p->control), ld_rlx(&p->why)) != HD__WAITING)
		hd__wait_end(w, p, HD__TERMINATED);
}

/* Whether p lives and is at home with w. One that a plain thread is just sending is not there yet. */
static bool is_here(struct hd_worker *w, struct hd_process *p)
{
	if (ld_acq(&p->control) & HD__DEAD || ld_rlx(&p->home) != w)
		return false;
	hd__share_lock(w); /* who sends it has this lock meanwhile */
	bool here = ld_rlx(&p->home) == w && p->state != 0;
	hd__unlock(&w->share.lock);
	return here;
}

/* All that are at home with w. Nobody changes its worker any more; and whoever a plain thread sends later makes us look again. */
static void doom_all(struct hd_worker *w)
{
	struct hd__table *table = &w->sched->table;

	hd__share_lock(w); /* who had this lock before `stopping` was set has left */
	hd__share_unlock(w);
	for (uint32_t slot = 0; slot < ld_acq(&table->made); slot++)
		if (is_here(w, &table->blocks[slot]))
			doom(w, &table->blocks[slot]);
}

/* Whether anybody is left on w. */
static bool is_populated(struct hd_worker *w)
{
	struct hd__table *table = &w->sched->table;

	for (uint32_t slot = 0; slot < ld_acq(&table->made); slot++)
		if (is_here(w, &table->blocks[slot]))
			return true;
	return false;
}

void hd__stop(struct hd__sched *sched, int code)
{
	int none = HD__NO_CODE;

	cas_acq_rel(&sched->stop_code, &none, code); /* hd_shutdown may have set its own */
	hd__lock(&sched->verdict);
	bool first = !sched->stopping;
	if (first) {
		sched->stop_at = hd__clock(sched) + GRACE;
		st_seq(&sched->stopping, true); /* pairs with send in life/spawn.c */
	}
	hd__unlock(&sched->verdict);
	for (unsigned i = 0; first && i < sched->nworkers; i++)
		hd__raise(&sched->workers[i], HD__LOOK);
}

void hd__look(struct hd_worker *w)
{
	if (ld_seq(&w->sched->stopping)) {
		w->stop_at = w->sched->stop_at;
		hd__set_alarm(w);
		w->look_again = true;
		if (w->dooming)
			return; /* called from below: it takes in news while it waits for somebody */
		w->dooming = true;
		while (w->look_again) {
			w->look_again = false;
			doom_all(w);
		}
		w->dooming = false;
	} else if (w->counted == 0) {
		w->chores |= HD__SEE_IF_OVER;
	}
}

int hd_shutdown(int code)
{
	if (code < 0)
		return -EINVAL;
	struct hd__caller caller = hd__call_begin();
	if (caller.sched == NULL)
		return -EPERM;
	int none = HD__NO_CODE, err = 0;
	if (cas_acq_rel(&caller.sched->stop_code, &none, code))
		hd__stop(caller.sched, code);
	else
		err = -EALREADY;
	hd__call_end(caller);
	return err;
}

int hd_hold_open(int delta)
{
	struct hd__caller caller = hd__call_begin();

	if (caller.sched == NULL)
		return -EPERM;
	int held = ld_acq(&caller.sched->hold), now;
	do {
		if (__builtin_add_overflow(held, delta, &now) || now < 0) {
			now = -EINVAL;
			break;
		}
	} while (!cas_acq_rel(&caller.sched->hold, &held, now));
	if (now == 0)
		hd__raise(&caller.sched->workers[0], HD__LOOK);
	hd__call_end(caller);
	return now;
}

/* When all workers have left: a note may be in anybody's inbox. */
static void take_all_news(struct hd__sched *sched)
{
	for (unsigned i = 0; i < sched->nworkers; i++)
		hd__take_news(&sched->workers[i]);
}

/* A process that is ended must not be left in a run queue: its block may be somebody else's next. */
static void take_off_queue(struct hd_worker *w, struct hd_process *p)
{
	if (w->cannot_start == p)
		w->cannot_start = NULL;
	else if (p->state == HD_READY)
		hd__share_drop(w, p);
	if (p->state == HD_READY)
		hd__move(w, p, HD_SUSPENDED);
}

/* Ends p where it stands: the runtime is over. */
static void abandon(struct hd_worker *w, struct hd_process *p)
{
	/* Its record is in somebody's queue, on a stack that is about to vanish. A grant that came first is on its way, through the
	 * inbox or (a plain thread has signalled a condition) into a mutex's queue, and is waited for. */
	for (hd__wait_abandon(w, p); p->state == HD_WAITING; hd__wait_abandon(w, p)) {
		hd__os_thread_yield();
		take_all_news(w->sched);
	}
	if (p->inner != NULL) {
		hd__os_free(p->inner->locals);
		hd__os_free(p->inner->trail);
	}
	for (;;) {
		take_off_queue(w, p);
		if (hd__end_from_outside(w, p, HD_END_KILLED, 0))
			break;
		hd__os_thread_yield();
		take_all_news(w->sched);
	}
}

void hd__stop_finish(struct hd__sched *sched)
{
	struct hd__table *table = &sched->table;

	hd__gate_shut();
	for (unsigned i = 0; i < sched->nworkers; i++)
		sched->workers[i].over = true;
	for (bool empty = false, left = true; left || !empty;) {
		empty = hd__gate_is_empty();
		take_all_news(sched); /* if nobody was inside before this, nothing can come any more */
		left = false;
		for (uint32_t slot = 0; slot < ld_acq(&table->made); slot++) {
			struct hd_process *p = &table->blocks[slot];
			if (ld_acq(&p->control) & HD__DEAD)
				continue;
			left = true;
			if (is_here(ld_rlx(&p->home), p))
				abandon(ld_rlx(&p->home), p);
		}
		if (left || !empty)
			hd__os_thread_yield(); /* whoever is inside has been told, and is on the way out */
	}
}

/* Whether all workers are idle and nothing is on its way to any of them. A worker whose bit is up has nothing of its own and has
 * not begun to take in what has come; and if none has gone to sleep while we looked, none was awake. */
static bool all_is_quiet(struct hd__sched *sched)
{
	uint64_t idles = 0, idles_after = 0;

	for (unsigned i = 0; i < sched->nworkers; i++)
		idles += ld_acq(&sched->workers[i].stats.idles);
	if (!hd__all_idle(sched) || hd__anybody_shares(sched))
		return false;
	for (unsigned i = 0; i < sched->nworkers; i++) {
		struct hd_worker *x = &sched->workers[i];
		if (ld_seq(&x->attention) & ~(uint32_t)HD__ASLEEP || hd__timers_live(&x->timers) > 0)
			return false;
	}
	if (!hd__all_idle(sched))
		return false;
	for (unsigned i = 0; i < sched->nworkers; i++)
		idles_after += ld_acq(&sched->workers[i].stats.idles);
	return idles == idles_after;
}

static uint64_t all_switches(struct hd__sched *sched)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < sched->nworkers; i++)
		sum += ld_rlx(&sched->workers[i].stats.switches);
	return sum;
}

/* Nobody can run and nothing that we know of can wake anybody. With other threads about, that is no verdict: say so once.
 * Counting threads is a system call, so a program that has some is asked again only after a while. Returns when to look
 * again; 0: it is a deadlock. */
static hd_time judge_locked(struct hd_worker *w)
{
	struct hd__sched *sched = w->sched;
	hd_time now = hd__clock(sched);

	if (!all_is_quiet(sched) || hd__nobody_counts(sched))
		return HD_FOREVER; /* whoever is not quiet, or ended the last one, will be here after us */
	if (sched->stuck_since == 0 || sched->stuck_switches != all_switches(sched)) {
		sched->stuck_since = now;
		sched->stuck_switches = all_switches(sched);
	}
	if (now >= sched->count_threads_at) {
		bool alone = hd__os_thread_count() == (int)sched->nworkers + sched->watched;
		if (alone && (!all_is_quiet(sched) || ld_acq(&sched->hold) > 0 || hd__nobody_counts(sched)))
			return now; /* the last thing that another thread did was to wake somebody, or to ask us to wait */
		if (alone) {
			hd__report_stuck(sched, "deadlock: nobody can run, and nothing can wake anybody");
			return 0;
		}
		sched->count_threads_at = now + STUCK_LONG;
	}
	if (sched->stuck_reported)
		return HD_FOREVER;
	if (now < sched->stuck_since + STUCK_LONG)
		return sched->stuck_since + STUCK_LONG;
	hd__report_stuck(sched,
			 "stuck: nobody has run for a second, and only a thread that heddle did not start can wake somebody");
	sched->stuck_reported = true;
	return HD_FOREVER;
}

hd_time hd__idle(struct hd_worker *w)
{
	struct hd__sched *sched = w->sched;

	if (ld_seq(&sched->stopping)) {
		if (w->stop_at == HD_FOREVER || ld_seq(&w->attention) & HD__LOOK)
			return HD_FOREVER; /* not told yet: the word is in its attention */
		if (is_populated(w) || (w->index == 0 && ld_acq(&sched->at_work) > 1))
			return w->stop_at;
		return 0;
	}
	bool nobody = w->counted == 0 && hd__nobody_counts(sched);
	bool held = ld_seq(&sched->hold) > 0; /* after that: the last process may have asked for it, and ended */
	if (nobody && !held)
		hd__stop(sched, 0);
	if (nobody || held || hd__best_level(w) > 0 || hd__timers_live(&w->timers) > 0)
		return HD_FOREVER;
	hd__lock(&sched->verdict);
	hd_time until = judge_locked(w);
	hd__unlock(&sched->verdict);
	if (until == 0) {
		hd__stop(sched, -EDEADLK);
		return HD_FOREVER;
	}
	return until;
}
