/* sched/watcher.c - the thread that looks at the clock, and at the lanes, for workers that are busy.
 *
 * Owns:      watcher.until, and the coarse time while workers are busy.
 * Protocol:  a worker stores its alarm (or stops being asleep), then reads `until`; the watcher stores `until`, then reads all
 *            alarms and attention words again before it sleeps. All four are sequentially consistent, so one of the two sees
 *            the other: no alarm is slept through.
 *
 * A worker that sleeps looks after its own deadlines; the watcher sleeps for good when all do. While one is busy it wakes at
 * the earliest alarm, or every tick to keep the coarse time. Between two alarms it sleeps for at least its pause: short
 * while workers need to be told, longer and longer while they look at the clock often enough by themselves (sched/switch.h:
 * a worker that switches fast does).
 *
 * A worker that does not come by a safe point (its process computes, or is in a system call) is *deaf*. The watcher visits its lane: it
 * takes in the notes and the due deadlines, and has an idle worker woken to take what is ready there. */
#include "sched/watcher.h"

#include "os/futex.h"
#include "sched/blocked.h"
#include "sched/preempt.h"
#include "sched/record.h"
#include "sched/sched.h"

#define TICK HD_MS(10)
#define TICK_IF_CROWD HD_MS(4) /* with several workers, */
#define TICK_IF_IDLE                                                                                                           \
	HD_MS(1) /* of which one is busy and another sleeps; or if a busy one watches something outside, at the least */
#define EVENTS 64
#define PAUSE_MIN HD_US(50)
#define PAUSE_MAX HD__WATCHER_SLACK
#define TRIES 1000 /* to stop a runner, each after the shortest pause; then less often: it may be in a library for long */

static hd_time tick(struct hd__sched *sched)
{
	hd_time inside = !hd__is_crowd(sched) ? TICK : ld_rlx(&sched->board.idlers) > 0 ? TICK_IF_IDLE : TICK_IF_CROWD;
	hd_time outside = ld_rlx(&sched->io) != NULL ? sched->watcher.outside : TICK;
	return inside < outside ? inside : outside;
}

/* When to look at this worker again, no sooner than after a pause. */
static hd_time look_again_at(struct hd__sched *sched, struct hd_worker *w, hd_time now)
{
	const struct hd__watcher *watcher = &sched->watcher;
	uint32_t attention = ld_seq(&w->attention);
	hd_time alarm = ld_seq(&w->due.alarm);

	if (attention & HD__ASLEEP && ld_rlx(&w->stats.switches) == w->seen.switches)
		return HD_FOREVER; /* it has been idle since we last looked; if it had not, it might be back in no time */
	if (attention & HD__ALARM && ld_rlx(&sched->board.idlers) > 0)
		return now + watcher->pause; /* told: if it is deaf, its lane must be visited */
	if (attention & HD__ALARM || alarm > now + tick(sched))
		return now + tick(sched); /* told already: when it has looked, and has another alarm, it will call us */
	return alarm > now + watcher->pause ? alarm : now + watcher->pause;
}

/* Whether w's runner may have to be preempted: no need to wait whether it comes by a safe point. */
static bool is_late(struct hd_worker *w)
{
	return ld_rlx(&w->sched->mixed) && hd__preempt_stays(w);
}

/* Tells the worker if its alarm is due. One that is due but was not there when we last looked is not worth it yet: the worker has
 * just looked at the clock, and may well do so again by itself; unless its runner stays for long. */
static void look(struct hd__watcher *watcher, struct hd_worker *w, hd_time now)
{
	hd_time alarm = ld_seq(&w->due.alarm);

	if (alarm <= now && (alarm == w->seen.alarm || is_late(w)) && !(ld_seq(&w->attention) & (HD__ASLEEP | HD__ALARM))) {
		hd__raise(w, HD__ALARM);
		watcher->pause = PAUSE_MIN;
	}
	w->seen.alarm = alarm;
}

/* Tells a busy worker that has not made enough switches to look outside by itself every millisecond. What happens to what a deaf one watches is
 * delivered here, if another worker, perhaps a spare, can run the processes that this wakes. Returns whether the worker needs the watcher. */
static bool look_outside(struct hd__sched *sched, struct hd_worker *w)
{
	uint32_t attention = ld_seq(&w->attention);
	uint64_t switches = ld_rlx(&w->stats.switches) - w->seen.switches;
	struct hd__happening events[EVENTS];

	if (attention & HD__ASLEEP || ld_acq(&w->watched) == NULL ||
	    switches >= (uint64_t)(HD__LOOK_EVERY * (sched->watcher.outside / TICK_IF_IDLE)))
		return false;
	if (!(attention & HD__OUTSIDE))
		hd__raise(w, HD__OUTSIDE);
	else if (switches == 0 && hd__is_crowd(sched) &&
		 (ld_rlx(&sched->board.idlers) > 0 || is_late(w) || hd__has_spares(sched))) {
		sched->doors.poller->happened(sched, NULL, events, sched->doors.poller->wait(w, 0, events, EVENTS));
		if (ld_seq(&w->attention) & HD__ASLEEP) /* meanwhile; and if its bell has rung, we have heard it in its place */
			sched->doors.poller->wake(w);
	}
	return true;
}

/* While all workers look often enough by themselves, the watcher would only take their CPU away: it comes less and less often. */
static void look_outside_all(struct hd__sched *sched)
{
	hd_time *pause = &sched->watcher.outside;
	bool needed = false;

	for (unsigned i = 0; i < hd__workers(sched); i++)
		needed |= look_outside(sched, &sched->workers[i]);
	*pause = needed ? TICK_IF_IDLE : *pause < TICK_IF_CROWD ? 2 * *pause : *pause;
}

/* Applies the notes in w's inbox and ends the waits there whose deadline has come. Until w has been told of what is ready then, nothing but
 * `visits` says that this is so: w may have come to sleep meanwhile (judge_locked in rt/stop.c). */
static void visit(struct hd__sched *sched, struct hd_worker *w, hd_time now)
{
	uint32_t *visits = &sched->watcher.visits;

	st_seq(visits, *visits + 1);
	if (hd__visit(w, true)) {
		hd__apply_notes(w);
		hd__expire(w, now);
		hd__unvisit(w);
	}
	st_seq(visits, *visits + 1);
}

/* If w has not come by a safe point since we last looked, its notes and deadlines are served: workers that run less than what became
 * ready there are told, and what has been ready behind its runner since then is for a worker that is idle. */
static void look_into_lane(struct hd__sched *sched, struct hd_worker *w, hd_time now)
{
	uint32_t attention = ld_seq(&w->attention);
	bool busy = !(attention & HD__ASLEEP), same = busy && ld_rlx(&w->stats.switches) == w->seen.switches;

	if (same && attention & (w->seen.attention | (is_late(w) ? HD__INBOX | HD__ALARM : 0)) & (HD__INBOX | HD__ALARM))
		visit(sched, w, now);
	if (busy && ld_rlx(&w->runq.highest) != 0 && hd__runq_is_ripe(&w->runq, w->seen.arrivals))
		hd__wake_searcher(sched);
	w->seen.arrivals = ld_rlx(&w->runq.arrivals);
	w->seen.attention = attention;
}

/* When to look again at anything. */
static hd_time look_again(struct hd__sched *sched, hd_time now)
{
	hd_time until = HD_FOREVER;

	for (unsigned i = 0; i < hd__workers(sched); i++) {
		hd_time t = look_again_at(sched, &sched->workers[i], now);
		if (t < until)
			until = t;
	}
	return until;
}

static void *watch(void *arg)
{
	struct hd__sched *sched = arg;
	struct hd__watcher *watcher = &sched->watcher;
	hd_time asked = 0;

	hd__os_thread_punctual();
	for (;;) {
		uint32_t kicks = ld_acq(&watcher->kicks);
		if (ld_acq(&watcher->stop))
			return NULL;
		if (unlikely(xchg_acq(&watcher->quit, false)))
			sched->hooks.quit(sched);
		hd_time now = hd__clock(sched);
		hd_time trace = hd__trace_look(sched, now);
		for (unsigned i = 0; i < hd__workers(sched); i++)
			look(watcher, &sched->workers[i], now);
		if (ld_rlx(&sched->io) != NULL)
			look_outside_all(sched);
		if (hd__is_crowd(sched))
			for (unsigned i = 0; i < hd__workers(sched); i++)
				look_into_lane(sched, &sched->workers[i], now);
		bool searching = ld_rlx(&sched->board.searching);
		if (searching &&
		    watcher->searching) /* its holder may be deaf, or have lost its CPU; two searchers do no harm */
			st_rel(&sched->board.searching, false);
		watcher->searching = searching;
		if (hd__is_crowd(sched) && now >= asked + TICK) { /* daemons may keep all workers busy */
			asked = now;
			sched->hooks.over(sched);
		}
		if (unlikely(sched->config.warn_blocked))
			hd__blocked_look(sched, now);
		enum hd__preempt_found found = hd__preempt_look(sched, now);
		watcher->tries = found == HD__PREEMPT_SENT ? watcher->tries + 1 : 0;
		if (found == HD__PREEMPT_SENT && watcher->tries <= TRIES)
			watcher->pause =
				PAUSE_MIN; /* a runner inside a library can be stopped only while it is back in the program's code: often is soon */
		hd_time until = look_again(sched, now), again = hd__spare_look(sched, now);
		if (again < until)
			until = again;
		if (found != HD__PREEMPT_NONE && now + watcher->pause < until)
			until = now + watcher->pause;
		if (trace < until)
			until = trace;
		st_seq(&watcher->until, until);
		if (look_again(sched, now) < until)
			continue; /* a worker became busy, or its alarm earlier, before it could see until when we sleep */
		for (unsigned i = 0; i < hd__workers(sched); i++)
			st_rlx(&sched->workers[i].seen.switches, ld_rlx(&sched->workers[i].stats.switches));
		hd__os_futex_wait(&watcher->kicks, kicks, until);
		st_seq(&watcher->until, 0); /* awake: whatever a worker stores now will be seen */
		if (2 * watcher->pause <= PAUSE_MAX)
			watcher->pause *= 2; /* until a worker turns out to be late */
	}
}

int hd__watcher_start(struct hd__sched *sched)
{
	sched->watcher = (struct hd__watcher){ .pause = PAUSE_MIN, .outside = TICK_IF_IDLE };
	return hd__os_thread_start(&sched->watcher.thread, "heddle-watcher", false, watch, sched);
}

void hd__watcher_stop(struct hd__sched *sched)
{
	st_rel(&sched->watcher.stop, true);
	hd__watcher_kick(&sched->watcher);
	hd__os_thread_join(&sched->watcher.thread);
}

void hd__watcher_kick(struct hd__watcher *watcher)
{
	add_seq(&watcher->kicks, 1);
	hd__os_futex_wake(&watcher->kicks);
}
