/* rt/stop.c - how the runtime ends.
 *
 *   the last process that counts has ended ----+
 *   hd_shutdown(code) -------------------------+--> hd__stop: everybody left is doomed
 *   deadlock ----------------------------------+        |
 *                                                       v
 *              nobody is left <---------- waits end, locals are destroyed, or one second passes
 *                    |
 *                    v
 *              hd__stop_finish: whoever is left is abandoned, and the gate is shut: no plain thread is inside any more
 *
 * Owns:      the end of the runtime: its code, its deadline, the verdict of deadlock.
 * Callers:   the worker; hd_shutdown and hd_hold_open from any thread. */
#include <errno.h>

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
		if (control & HD__DEAD || p->state == 0)
			return; /* free, or on its way here: apply_spawn's news will be looked at again */
		bool unstarted = p->switches == 0 && (p->state == HD_READY || p->state == HD_SUSPENDED);
		if (!unstarted)
			break;
		if (p->state == HD_READY) {
			hd__runq_remove(&w->runq, p);
			hd__move(w, p, HD_SUSPENDED);
		}
		if (hd__end_from_outside(w, p, HD_END_KILLED, 0))
			return;
		wait_for_news(w);
	}
	while (!cas_acq_rel(&p->control, &control, (control | HD__DOOMED) & ~(uint64_t)HD__SUSPEND))
		;
	if (p->state == HD_SUSPENDED)
		hd__resume_owner(w, p);
	else if (p->state == HD_WAITING && !p->ending)
		hd__wait_terminate(w, p);
}

static void doom_all(struct hd_worker *w)
{
	struct hd__table *table = &w->sched->table;

	w->sched->doomed_spawned = w->stats.spawned;
	for (uint32_t slot = 0; w->alive > 0 && slot < ld_acq(&table->made); slot++)
		doom(w, &table->blocks[slot]);
}

void hd__stop(struct hd_worker *w, int code)
{
	struct hd__sched *sched = w->sched;

	if (sched->stopping)
		return;
	int none = HD__NO_CODE;
	cas_acq_rel(&sched->stop_code, &none, code); /* hd_shutdown may have set its own */
	st_rel(&sched->stopping, true);
	w->stop_at = hd__clock(sched) + GRACE;
	hd__set_alarm(w);
	doom_all(w);
}

/* Only remembers it: what is behind this note in its batch must be taken in before anybody is ended. */
static void apply_stop(void *worker, struct hd_note *note)
{
	struct hd_worker *w = worker;

	(void)note;
	w->stop_asked = true;
}

void hd__stop_asked(struct hd_worker *w)
{
	hd__stop(w, 0);
}

int hd_shutdown(int code)
{
	if (code < 0)
		return -EINVAL;
	struct hd__caller caller = hd__call_begin();
	if (caller.sched == NULL)
		return -EPERM;
	int none = HD__NO_CODE, err = 0;
	if (!cas_acq_rel(&caller.sched->stop_code, &none, code)) {
		err = -EALREADY;
	} else if (caller.w != NULL) {
		hd__stop(caller.w, code);
	} else {
		caller.sched->stop_note.apply = apply_stop;
		hd__post(&caller.sched->worker, &caller.sched->stop_note);
	}
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
		hd__raise(&caller.sched->worker, HD__LOOK);
	hd__call_end(caller);
	return now;
}

/* Ends p where it stands: the runtime is over. */
static void abandon(struct hd_worker *w, struct hd_process *p)
{
	/* Its record is in somebody's queue, on a stack that is about to vanish. A grant that came first is on its way through
	 * the inbox, and is waited for. */
	if (p->state == HD_WAITING)
		hd__wait_terminate(w, p);
	while (p->state == HD_WAITING)
		wait_for_news(w);
	hd__os_free(p->locals);
	p->locals = NULL;
	while (!hd__end_from_outside(w, p, HD_END_KILLED, 0))
		wait_for_news(w);
}

void hd__stop_finish(struct hd_worker *w)
{
	struct hd__table *table = &w->sched->table;

	w->over = true;
	hd__gate_shut();
	for (;;) {
		hd__take_news(w);
		for (uint32_t slot = 0; w->alive > 0 && slot < ld_acq(&table->made); slot++) {
			struct hd_process *p = &table->blocks[slot];
			if (!(ld_acq(&p->control) & HD__DEAD) && p->state != 0)
				abandon(w, p);
		}
		if (w->alive == 0 && hd__gate_is_empty()) {
			hd__take_news(w); /* the last word of whoever was inside; nobody can come in any more */
			if (w->alive == 0)
				return;
		}
		hd__os_thread_yield(); /* whoever is inside has been told, and is on the way out */
	}
}

/* Nobody can run and nothing that we know of can wake anybody. With other threads about, that is no verdict: say so once.
 * Counting threads is a system call, so a program that has some is asked again only after a while. */
static hd_time judge(struct hd_worker *w)
{
	struct hd__sched *sched = w->sched;
	hd_time now = hd__clock(sched);

	if (sched->stuck_since == 0 || sched->stuck_switches != w->stats.switches) {
		sched->stuck_since = now;
		sched->stuck_switches = w->stats.switches;
	}
	if (now >= sched->count_threads_at) {
		bool alone = hd__os_thread_count() == 1 + sched->watched;
		if (alone && (ld_seq(&w->attention) != 0 || ld_acq(&sched->hold) > 0))
			return now; /* the last thing that another thread did was to wake somebody, or to ask us to wait */
		if (alone) {
			hd__report_stuck(w, "deadlock: nobody can run, and nothing can wake anybody");
			hd__stop(w, -EDEADLK);
			return 0;
		}
		sched->count_threads_at = now + STUCK_LONG;
	}
	if (sched->stuck_reported)
		return HD_FOREVER;
	if (now < sched->stuck_since + STUCK_LONG)
		return sched->stuck_since + STUCK_LONG;
	hd__report_stuck(w,
			 "stuck: nobody has run for a second, and only a thread that heddle did not start can wake somebody");
	sched->stuck_reported = true;
	return HD_FOREVER;
}

hd_time hd__idle(struct hd_worker *w)
{
	struct hd__sched *sched = w->sched;
	bool held = ld_acq(&sched->hold) > 0;

	if (!sched->stopping && w->counted == 0 && !held)
		hd__stop(w, 0);
	if (!sched->stopping) {
		if (w->counted == 0 || held || hd__timers_live(&w->timers) > 0)
			return HD_FOREVER;
		hd_time until = judge(w);
		if (!sched->stopping)
			return until;
	}
	if (sched->doomed_spawned != w->stats.spawned)
		doom_all(w); /* whom plain threads have sent since */
	return w->alive > 0 ? w->stop_at : 0;
}
