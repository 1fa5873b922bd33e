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

/* When to look again, no sooner than after `pause`; tells the workers whose alarm is due. */
static hd_time look_round(struct hd__sched *sched, hd_time now, hd_time *pause)
{
	struct hd_worker *w = &sched->worker;
	struct hd__watcher *watcher = &sched->watcher;
	bool asleep = ld_seq(&w->attention) & HD__ASLEEP;
	hd_time alarm = ld_seq(&w->alarm), before = watcher->seen_alarm;
	uint64_t switches = ld_rlx(&w->stats.switches);

	if (asleep && switches == watcher->seen_switches)
		return HD_FOREVER; /* it has been idle since we last looked; if it had not, it might be back in no time */
	watcher->seen_switches = switches;
	watcher->seen_alarm = alarm;
	/* A due alarm that is new: the worker has just looked at the clock, and may well do so again by itself. */
	if (!asleep && alarm <= now && alarm == before) {
		if (!(ld_rlx(&w->attention) & HD__ALARM))
			hd__raise(w, HD__ALARM);
		*pause = PAUSE_MIN;
	}
	if (alarm < now + *pause)
		alarm = now + *pause;
	return alarm < now + TICK ? alarm : now + TICK;
}

static void *watch(void *arg)
{
	struct hd__sched *sched = arg;
	struct hd__watcher *watcher = &sched->watcher;
	hd_time pause = PAUSE_MIN;

	for (;;) {
		uint32_t kicks = ld_acq(&watcher->kicks);
		if (ld_acq(&watcher->stop))
			return NULL;
		hd_time until = look_round(sched, hd__clock(sched), &pause);
		st_seq(&watcher->until, until);
		if (look_round(sched, hd__clock(sched), &pause) < until)
			continue;
		hd__os_futex_wait(&watcher->kicks, kicks, until);
		st_seq(&watcher->until, 0); /* awake: whatever a worker stores now will be seen */
		if (2 * pause <= PAUSE_MAX)
			pause *= 2; /* until somebody turns out to be late */
	}
}

int hd__watcher_start(struct hd__sched *sched)
{
	sched->watcher = (struct hd__watcher){ .until = 0 };
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
