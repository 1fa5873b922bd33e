/* rt/stop.c - how the runtime ends.
 *
 *   the last process that counts has ended ----+
 *   hd_shutdown(code) -------------------------+--> hd__stop: all processes that are left are doomed, every worker is told (HD__LOOK)
 *   deadlock ----------------------------------+        |
 *                                                       v
 *                              waits end, cleanups run, locals are destroyed, or one second passes
 *                                                       |
 *                                                       v
 *      the workers leave; then the first one: hd__stop_finish: what is left is abandoned, and the gate is shut: no plain thread is
 *      inside
 *
 * Owns:      the end of the runtime: its code, its deadline, the verdict of deadlock.
 * Callers:   the workers; hd_shutdown and hd_hold_open from any thread. */
#include <errno.h>
#include <heddle/machine.h>

#include "io/fd.h"
#include "io/pool.h"
#include "os/lock.h"
#include "os/memory.h"
#include "os/ring.h"
#include "os/thread.h"
#include "port/port.h"
#include "rt/rt.h"
#include "sched/gate.h"
#include "sched/state.h"

#define GRACE HD_SEC(1)
#define COUNT_MIN HD_SEC(1) /* between two counts of the kernel threads, which are system calls */
#define COUNT_MAX HD_SEC(60)
#define PAUSE_MIN HD_US(50) /* between two looks at the inboxes, while a plain thread is inside a call */
#define PAUSE_MAX HD_MS(10)

/* Every process goes on only to end. One that is spawned at this moment: inside a lane, and then it can be seen when that lane has been
 * left; or by a plain thread, which looks at `stopping` when it can be seen (life/spawn.c). */
static void doom_all(struct hd__sched *sched)
{
	for (unsigned i = 0; i < hd__workers(sched); i++)
		if (hd__visit_surely(&sched->workers[i]))
			hd__unvisit(&sched->workers[i]);
	for (uint32_t slot = 0; slot < ld_acq(&sched->table.made); slot++)
		hd__ask((struct hd__caller){ NULL, sched }, hd__pid(&sched->table, &sched->table.blocks[slot]), HD__SUSPEND,
			HD__DOOMED, 0);
}

static void tell_all(struct hd__sched *sched)
{
	for (unsigned i = 0; i < hd__workers(sched); i++)
		hd__raise(&sched->workers[i], HD__LOOK);
}

void hd__stop(struct hd__sched *sched, int code)
{
	int none = HD__NO_CODE;

	cas_acq_rel(&sched->stop_code, &none, code); /* hd_shutdown, or the verdict of deadlock, may have set its own */
	hd__lock(&sched->verdict);
	bool first = !sched->stopping;
	if (first) {
		sched->stop_at = hd__clock(sched) + GRACE;
		st_seq(&sched->stopping, true); /* pairs with spawn in life/spawn.c */
	}
	hd__unlock(&sched->verdict);
	if (first) {
		doom_all(sched);
		tell_all(sched);
	}
}

void hd__stop_if_over(struct hd__sched *sched)
{
	int hold;

	if (!ld_rlx(&sched->stopping) && hd__nobody_counts(sched, &hold) && hold <= 0)
		hd__stop(sched, 0);
}

void hd__look(struct hd_worker *w)
{
	if (ld_seq(&w->sched->stopping)) {
		st_rlx(&w->due.stop_at, w->sched->stop_at);
		hd__set_alarm(w);
		if (!w->crowd)
			doom_all(w->sched); /* once more: its runner may have been spawning when another thread did so */
	} else if (!w->crowd) {
		hd__stop_if_over(w->sched); /* there is no lane to be outside of; among several workers the watcher asks */
	}
}

int hd_shutdown(int code)
{
	if (code < 0)
		return -EINVAL;
	struct hd__caller caller = hd__call_begin();
	if (caller.sched == NULL)
		return -ENXIO;
	int none = HD__NO_CODE, err = 0;
	if (!cas_acq_rel(&caller.sched->stop_code, &none, code)) {
		err = -EALREADY;
	} else {
		if (caller.w != NULL) {
			hd__leave(caller.w);
			hd__rest(caller.w); /* hd__stop visits every lane, this one too */
		}
		hd__stop(caller.sched, code);
		if (caller.w != NULL)
			hd__enter(caller.w);
	}
	hd__call_end(caller);
	return err;
}

int hd_hold_open(int delta)
{
	struct hd__caller caller = hd__call_begin();

	if (caller.sched == NULL)
		return -ENXIO;
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

/* When all workers have left, only plain threads come into a lane, until the gate is shut and empty. */
static void enter_left(struct hd_worker *w)
{
	(void)hd__visit_surely(w); /* or there is one worker, and no lane */
}

static void leave_left(struct hd_worker *w)
{
	if (w->crowd)
		hd__unlock(&w->lane.lock);
}

/* A note may be in any inbox. Lets the thread that is about to post it get on. */
static void take_all_news(struct hd__sched *sched)
{
	hd__os_thread_yield();
	for (unsigned i = 0; i < hd__workers(sched); i++) {
		enter_left(&sched->workers[i]);
		hd__take_news(&sched->workers[i]);
		leave_left(&sched->workers[i]);
	}
}

/* A process that is ended must not be left in a run queue: its block may be another one's next. */
static void take_off_queue(struct hd_worker *w, struct hd_process *p)
{
	if (w->cannot_start == p)
		w->cannot_start = NULL;
	else if (p->state == HD_READY)
		hd__runq_remove(&w->runq, p);
	if (p->state == HD_READY)
		hd__move(w, p, HD_SUSPENDED);
}

/* Ends p's wait, if it waits. False: a grant came first and is on its way, through the inbox or (a plain thread has signalled a condition)
 * into a mutex's queue. */
static bool end_wait(struct hd_worker *w, struct hd_process *p)
{
	enter_left(w);
	hd__wait_abandon(w, p);
	bool ended = p->state != HD_WAITING;
	leave_left(w);
	return ended;
}

/* Ends p. False: a request to it is on its way. */
static bool end(struct hd_worker *w, struct hd_process *p)
{
	enter_left(w);
	take_off_queue(w, p);
	bool ended = hd__end_from_outside(w, p, HD_END_KILLED, 0);
	leave_left(w);
	return ended;
}

/* Ends p where it stands: the runtime is over. Its record may be in the queue of a primitive, on a stack that is about to vanish. */
static void abandon(struct hd_worker *w, struct hd_process *p)
{
	while (!end_wait(w, p))
		take_all_news(w->sched);
	if (p->inner != NULL) {
		hd__os_free(p->inner->locals);
		hd__os_free(p->inner->trail);
	}
	void (*drop)(void *self) = hd__machine_is_whole(p) ? p->ops->drop : NULL;
	void *self = p->value;
	while (!end(w, p))
		take_all_news(w->sched);
	if (drop != NULL)
		drop(self);
}

/* Whether p is alive and has come to its home: a plain thread may be sending it this moment. */
static bool has_come(struct hd_process *p)
{
	struct hd_worker *home = ld_rlx(&p->home);

	enter_left(home); /* the sender has this lock meanwhile */
	bool come = !(ld_acq(&p->control) & HD__DEAD) && ld_acq(&p->state) != 0 && ld_rlx(&p->home) == home;
	leave_left(home);
	return come;
}

void hd__stop_finish(struct hd__sched *sched)
{
	struct hd__table *table = &sched->table;
	hd_time pause = PAUSE_MIN;

	hd__gate_shut();
	for (unsigned i = 0; i < hd__workers(sched); i++)
		sched->workers[i].due.over = true;
	if (!hd__gate_is_empty())
		hd__io_forsake_uses(sched); /* before their stacks vanish: a plain thread in hd_close looks at them */
	for (bool empty = false, left = true; left || !empty;) {
		empty = hd__gate_is_empty();
		take_all_news(sched); /* if no thread was inside before this, nothing can come any more */
		left = false;
		for (uint32_t slot = 0; slot < ld_acq(&table->made); slot++) {
			struct hd_process *p = &table->blocks[slot];
			if (ld_acq(&p->control) & HD__DEAD)
				continue;
			left = true;
			if (has_come(p))
				abandon(ld_rlx(&p->home), p);
		}
		/* A plain thread may be inside for long. What it posts meanwhile is looked at now and then. */
		if (!left && !empty) {
			hd__io_forsake(sched);
			hd__gate_wait(hd__os_clock.now(&hd__os_clock) + pause);
			if (pause < PAUSE_MAX)
				pause *= 2;
		}
	}
}

/* Whether all workers are idle and nothing is on its way to any of them. A worker whose bit is up has nothing of its own and has
 * not begun to take in what has come; and if none has gone to sleep while we looked, none was awake. */
static bool all_is_quiet(struct hd__sched *sched)
{
	uint64_t idles = 0, idles_after = 0;

	for (unsigned i = 0; i < hd__workers(sched); i++)
		idles += ld_acq(&sched->workers[i].stats.idles);
	if (!hd__all_idle(sched))
		return false;
	for (unsigned i = 0; i < hd__workers(sched); i++) {
		struct hd_worker *x = &sched->workers[i];
		if (ld_seq(&x->attention) & ~(uint32_t)HD__ASLEEP || hd__timers_live(&x->timers) > 0)
			return false;
	}
	if (!hd__all_idle(sched))
		return false;
	for (unsigned i = 0; i < hd__workers(sched); i++)
		idles_after += ld_acq(&sched->workers[i].stats.idles);
	return idles == idles_after;
}

static uint64_t all_switches(struct hd__sched *sched)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < hd__workers(sched); i++)
		sum += ld_rlx(&sched->workers[i].stats.switches);
	return sum;
}

/* How long to wait before the kernel threads are counted again, when no process has run for so long: heddle is not told
 * when a thread ends that it did not start. So a deadlock is declared a second after the end of the last such thread, or a quarter of the time that all
 * had waited by then, at most a minute; and a runtime that is fed by such threads hardly ever wakes up to count them. */
static hd_time count_again_after(hd_time waited)
{
	hd_time pause = waited / 4;

	return pause < COUNT_MIN ? COUNT_MIN : pause > COUNT_MAX ? COUNT_MAX : pause;
}

/* Whether all kernel threads of the program are heddle's, or a sanitizer's. The pool is asked last: a thread of it that ends meanwhile is
 * then taken for a strange one, and a strange one never for it. */
static bool has_own_threads_only(struct hd__sched *sched)
{
	int all = hd__os_thread_count();

	return all == (int)ld_acq(&sched->threads) + sched->watched + hd__sanitizer_threads() + hd__os_ring_threads() +
			      hd__pool_threads(sched->pool);
}

/* No process can run and nothing that the runtime knows of can wake one. With other threads about, that is no verdict, and the worker
 * looks again later. Returns when to look again; 0: it is a deadlock. */
static hd_time judge_locked(struct hd_worker *w)
{
	struct hd__sched *sched = w->sched;
	hd_time now = hd__clock(sched);
	uint64_t switches = all_switches(sched);
	int hold;
	uint64_t jobs, jobs_after;
	uint32_t visits = ld_seq(&sched->watcher.visits); /* pairs with the watcher's */

	if (hd__pool_is_busy(sched->pool, &jobs) || !all_is_quiet(sched) || hd__nobody_counts(sched, &hold))
		return HD_FOREVER; /* the worker that is not quiet, or ended the last process, or will run the one with the job, will
				    * be here after us */
	if (sched->stuck_since == 0 || sched->stuck_switches != switches) {
		sched->stuck_since = now;
		sched->stuck_switches = switches;
		if (sched->count_threads_at > now + COUNT_MIN)
			sched->count_threads_at = now + COUNT_MIN;
	}
	if (now < sched->count_threads_at)
		return sched->count_threads_at;
	if (has_own_threads_only(sched)) {
		if (visits % 2 != 0 || !all_is_quiet(sched) || hd__pool_is_busy(sched->pool, &jobs_after) ||
		    jobs_after != jobs || hd__nobody_counts(sched, &hold) || hold > 0 || hd__awaits_outside(sched) ||
		    ld_seq(&sched->watcher.visits) != visits)
			return now; /* the last thing that another thread did was to wake a process, or hd_hold_open; or the watcher
				     * was in a lane */
		int none = HD__NO_CODE;
		if (!cas_acq_rel(&sched->stop_code, &none, -EDEADLK))
			return HD_FOREVER; /* another worker was here before us, or hd_shutdown was called: hd__stop will tell us */
		return 0;
	}
	hd_time waited = now - sched->stuck_since;
	if (sched->config.warn_stuck && waited >= COUNT_MIN && !sched->stuck_reported) {
		sched->stuck_reported = true;
		hd__report(sched,
			   "stuck: no process has run for a second, and only a thread that heddle did not start can wake one");
	}
	sched->count_threads_at = now + count_again_after(waited);
	/* without a watcher the clock is not the kernel's: it stands still while that thread runs */
	return sched->watched ? sched->count_threads_at : HD_FOREVER;
}

hd_time hd__idle(struct hd_worker *w)
{
	struct hd__sched *sched = w->sched;

	if (!ld_seq(&sched->stopping))
		hd__stop_if_over(sched);
	if (ld_seq(&sched->stopping)) {
		if (ld_seq(&w->attention) != 0)
			return HD_FOREVER; /* something has come, and is looked at first */
		if (!hd__nobody_lives(sched))
			return w->due.stop_at;
		tell_all(sched); /* those that sleep: it is over */
		return 0;
	}
	int hold;
	if (hd__nobody_counts(sched, &hold) || hold > 0 || hd__timers_live(&w->timers) > 0 || hd__awaits_outside(sched))
		return HD_FOREVER;
	hd__lock(&sched->verdict);
	hd_time until = judge_locked(w);
	hd__unlock(&sched->verdict);
	if (until == 0) {
		hd__report(sched, "deadlock: no process can run, and nothing can wake one");
		hd__stop(sched, -EDEADLK);
		return HD_FOREVER;
	}
	return until;
}
