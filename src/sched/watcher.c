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
/* How long a process waits in a share before an idle worker is woken for it. Behind a worker that gets on with its queue, or that
 * does nothing but spawn, that is longer: most likely they will all have run before somebody else is awake, and those that belong
 * together stay together. */
#define SURPLUS_LONG HD_US(100)
#define SURPLUS_LONG_IF_FAST HD_MS(4)
#define FAST 8		  /* switches in SURPLUS_LONG */
#define FAST_SPAWNING 250 /* processes made ready in SURPLUS_LONG */
#define PATIENCE 20

/* When to look at this worker again, no sooner than after a pause. */
static hd_time look_again_at(const struct hd__watcher *watcher, struct hd_worker *w, hd_time now)
{
	uint32_t attention = ld_seq(&w->attention);
	hd_time alarm = ld_seq(&w->alarm);

	if (attention & HD__ASLEEP && ld_rlx(&w->stats.switches) == w->seen_switches)
		return HD_FOREVER; /* it has been idle since we last looked; if it had not, it might be back in no time */
	if (attention & HD__ALARM || alarm > now + TICK)
		return now + TICK; /* told already: when it has looked, and has another alarm, it will call us */
	return alarm > now + watcher->pause ? alarm : now + watcher->pause;
}

/* Tells the worker if its alarm is due. One that is due but was not there when we last looked is not worth it yet: the worker has
 * just looked at the clock, and may well do so again by itself. */
static void look(struct hd__watcher *watcher, struct hd_worker *w, hd_time now)
{
	hd_time alarm = ld_seq(&w->alarm);

	if (alarm <= now && alarm == w->seen_alarm && !(ld_seq(&w->attention) & (HD__ASLEEP | HD__ALARM))) {
		hd__raise(w, HD__ALARM);
		watcher->pause = PAUSE_MIN;
	}
	w->seen_alarm = alarm;
}

/* Whether there is something to see in the shares: somebody has something that somebody idle might take. */
static bool is_surplus(struct hd__sched *sched)
{
	return sched->nworkers > 1 && hd__anybody_shares(sched) && hd__anybody_idle(sched);
}

/* Who has been ready on w since the last look may be taken by others. */
static void ripen(struct hd_worker *w, hd_time now, hd_time passed)
{
	uint64_t switches = ld_rlx(&w->stats.switches), ripe = 0;
	uint64_t arrivals = ld_rlx(&w->arrivals);
	bool fast = (hd_time)(switches - w->seen_pace) * SURPLUS_LONG >= FAST * passed ||
		    (hd_time)(arrivals - w->seen_arrivals) * SURPLUS_LONG >= FAST_SPAWNING * passed;

	w->seen_pace = switches;
	uint64_t first = ld_rlx(&w->share.first);
	if (!fast)
		ripe = w->seen_arrivals;
	if (!fast && first != 0 && first == w->seen_first && hd__rank_arrival(first) > ripe)
		ripe = hd__rank_arrival(first); /* its number may be ahead: see link_elsewhere_locked */
	w->seen_first = first;
	w->seen_arrivals = arrivals;
	if (now >= w->old_at + SURPLUS_LONG_IF_FAST) {
		if (ripe == 0)
			ripe = w->old_arrivals;
		w->old_arrivals = w->seen_arrivals;
		w->old_at = now;
	}
	if (ripe > ld_rlx(&w->share.ripe))
		st_rlx(&w->share.ripe, ripe);
}

/* What has waited in a share for long enough has an idle worker woken for it. After a while without anything new the watcher
 * leaves the shares alone: whoever has something again will call. */
static void look_at_shares(struct hd__sched *sched, hd_time now)
{
	struct hd__watcher *watcher = &sched->watcher;
	bool ripe = false, news = is_surplus(sched);
	hd_time passed = now - watcher->shares_at;

	if (passed < SURPLUS_LONG)
		return;
	watcher->shares_at = now;
	for (unsigned i = 0; i < sched->nworkers; i++) {
		struct hd_worker *w = &sched->workers[i];
		uint64_t first = ld_rlx(&w->share.first), shared = ld_rlx(&w->stats.shared);
		ripen(w, now, passed);
		ripe |= first != 0 && hd__rank_arrival(first) <= ld_rlx(&w->share.ripe);
		news |= shared != w->seen_shared;
		w->seen_shared = shared;
	}
	if (ripe)
		hd__wake_one(sched);
	if (news)
		watcher->patience = PATIENCE;
	else if (watcher->patience > 0)
		watcher->patience--;
}

/* When to look again at anything; *eager: the shares are part of it. */
static hd_time look_again(struct hd__sched *sched, hd_time now, bool *eager)
{
	struct hd__watcher *watcher = &sched->watcher;
	hd_time until = HD_FOREVER;

	for (unsigned i = 0; i < sched->nworkers; i++) {
		hd_time t = look_again_at(watcher, &sched->workers[i], now);
		if (t < until)
			until = t;
	}
	*eager = is_surplus(sched) || (watcher->patience > 0 && until != HD_FOREVER);
	if (*eager && watcher->shares_at + SURPLUS_LONG < until)
		until = watcher->shares_at + SURPLUS_LONG;
	return until;
}

static void *watch(void *arg)
{
	struct hd__sched *sched = arg;
	struct hd__watcher *watcher = &sched->watcher;
	bool eager;

	for (;;) {
		uint32_t kicks = ld_acq(&watcher->kicks);
		if (ld_acq(&watcher->stop))
			return NULL;
		hd_time now = hd__clock(sched);
		for (unsigned i = 0; i < sched->nworkers; i++)
			look(watcher, &sched->workers[i], now);
		if (sched->nworkers > 1)
			look_at_shares(sched, now);
		hd_time until = look_again(sched, now, &eager);
		st_seq(&watcher->eager, eager);
		st_seq(&watcher->until, until);
		bool eager_now;
		if (look_again(sched, now, &eager_now) < until)
			continue; /* somebody became busy, or its alarm earlier, before it could see until when we sleep */
		for (unsigned i = 0; i < sched->nworkers; i++)
			sched->workers[i].seen_switches = ld_rlx(&sched->workers[i].stats.switches);
		hd__os_futex_wait(&watcher->kicks, kicks, until);
		st_seq(&watcher->until, 0); /* awake: whatever a worker stores now will be seen */
		if (2 * watcher->pause <= PAUSE_MAX)
			watcher->pause *= 2; /* until somebody turns out to be late */
	}
}

int hd__watcher_start(struct hd__sched *sched)
{
	sched->watcher = (struct hd__watcher){ .pause = PAUSE_MIN };
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
