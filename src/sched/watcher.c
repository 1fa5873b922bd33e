/* sched/watcher.c - the thread that looks at the clock for workers that are busy.
 *
 * Owns:      watcher.until, and the coarse time while workers are busy.
 * Protocol:  a worker stores its alarm (or stops being asleep), then reads `until`; the watcher stores `until`, then reads all
 *            alarms and attention words again before it sleeps. All four are sequentially consistent, so one of the two sees
 *            the other: no alarm is slept through.
 *
 * A worker that sleeps looks after its own deadlines; the watcher sleeps for good when all do. While one is busy it wakes at
 * the earliest alarm, or every TICK to keep the coarse time. Between two alarms it sleeps for at least its pause: short
 * while workers need to be told, longer and longer while they look at the clock often enough by themselves (sched/switch.h:
 * a worker that switches fast does). */
#include "sched/watcher.h"

#include "os/futex.h"
#include "sched/worker.h"

#define TICK HD_MS(10)
#define PAUSE_MIN HD_US(50)
#define PAUSE_MAX HD__WATCHER_SLACK

/* When to look again, no sooner than after a pause. */
static hd_time look_again_at(struct hd__sched *sched, hd_time now)
{
	struct hd_worker *w = &sched->worker;
	struct hd__watcher *watcher = &sched->watcher;
	uint32_t attention = ld_seq(&w->attention);
	hd_time alarm = ld_seq(&w->alarm);

	if (attention & HD__ASLEEP && ld_rlx(&w->stats.switches) == watcher->seen_switches)
		return HD_FOREVER; /* it has been idle since we last looked; if it had not, it might be back in no time */
	if (attention & HD__ALARM || alarm > now + TICK)
		return now + TICK; /* told already: when it has looked, and has another alarm, it will call us */
	return alarm > now + watcher->pause ? alarm : now + watcher->pause;
}

/* Tells the worker if its alarm is due. One that is due but was not there when we last looked is not worth it yet: the worker has
 * just looked at the clock, and may well do so again by itself. */
static void look(struct hd__sched *sched, hd_time now)
{
	struct hd_worker *w = &sched->worker;
	struct hd__watcher *watcher = &sched->watcher;
	hd_time alarm = ld_seq(&w->alarm);

	if (alarm <= now && alarm == watcher->seen_alarm && !(ld_seq(&w->attention) & (HD__ASLEEP | HD__ALARM))) {
		hd__raise(w, HD__ALARM);
		watcher->pause = PAUSE_MIN;
	}
	watcher->seen_alarm = alarm;
}

static void *watch(void *arg)
{
	struct hd__sched *sched = arg;
	struct hd__watcher *watcher = &sched->watcher;

	for (;;) {
		uint32_t kicks = ld_acq(&watcher->kicks);
		if (ld_acq(&watcher->stop))
			return NULL;
		hd_time now = hd__clock(sched);
		look(sched, now);
		hd_time until = look_again_at(sched, now);
		st_seq(&watcher->until, until);
		if (look_again_at(sched, now) < until)
			continue; /* somebody became busy, or its alarm earlier, before it could see until when we sleep */
		watcher->seen_switches = ld_rlx(&sched->worker.stats.switches);
		hd__os_futex_wait(&watcher->kicks, kicks, until);
		st_seq(&watcher->until, 0); /* awake: whatever a worker stores now will be seen */
		if (2 * watcher->pause <= PAUSE_MAX)
			watcher->pause *= 2; /* until somebody turns out to be late */
	}
}

int hd__watcher_start(struct hd__sched *sched)
{
	sched->watcher = (struct hd__watcher){ .pause = PAUSE_MIN };
	return hd__os_thread_start(&sched->watcher.thread, "heddle-watcher", watch, sched);
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
