/* sched/worker.c - a worker's life: run, sleep, wake.
 *
 * Owns:      the attention word's protocol, the worker's own stack (the kernel thread's), on which it is idle.
 * Callers:   rt/ starts it; any thread raises attention and posts notes. */
#define _GNU_SOURCE
#include "sched/worker.h"

#include <errno.h>

#include "context.h"
#include "os/signal.h"
#include "sched/preempt.h"
#include "sched/record.h"
#include "sched/sched.h"
#include "sched/search.h"
#include "sched/state.h"

#define WARM_STACKS 64	     /* kept with their memory, however long all are idle */
#define IDLE_LONG HD_MS(100) /* after this, memory is given back */
#define EVENTS 128	     /* that an idle worker takes at a time */
#define EVENTS_FEW 32	     /* that a busy one takes, on a process's stack */

_Thread_local void *hd__own __attribute__((used)); /* the thread's worker; NULL: a plain thread */

/* Not inlined: the compiler does not see that hd__self loads what this stores. */
__attribute__((noinline)) void hd__set_self(struct hd_worker *w)
{
	hd__own = w;
}

const struct hd__clock *hd__plain_clock = &hd__os_clock;

hd_time hd__clock(struct hd__sched *sched)
{
	hd_time now = sched->doors.clock->now(sched->doors.clock);
	st_rlx(&sched->now, now); /* bookkeeping: no order needed */
	return now;
}

/* Counters that only grow: if what has ended, read first, equals what has begun, read second, then nothing lived at the moment
 * between. A process counts as begun before it is published, as ended after its joiners were told. */
bool hd__nobody_counts(struct hd__sched *sched, int *hold)
{
	uint64_t ends = 0, births = 0;

	for (unsigned i = 0; i < hd__workers(sched); i++)
		ends += ld_acq(
			&sched->workers[i].stats.ends); /* pairs with hd__end: what an ended process has begun is visible */
	/* The hold is read between the two, at a moment when no process counted, if none did: the last one may have raised it and ended,
	 * and a thread may lower it when it has spawned one. */
	*hold = ld_seq(&sched->hold);
	for (unsigned i = 0; i < hd__workers(sched); i++)
		births += ld_acq(&sched->workers[i].stats.births);
	return births + ld_seq(&sched->births) == ends;
}

/* As hd__nobody_counts: the ends are read first. */
bool hd__awaits_outside(struct hd__sched *sched)
{
	uint64_t back = 0, outside = 0;

	for (unsigned i = 0; i < hd__workers(sched); i++)
		back += ld_acq(&sched->workers[i].back);
	for (unsigned i = 0; i < hd__workers(sched); i++)
		outside += ld_acq(&sched->workers[i].outside);
	return outside != back;
}

bool hd__nobody_lives(struct hd__sched *sched)
{
	uint64_t ended = 0, spawned = 0;

	for (unsigned i = 0; i < hd__workers(sched); i++)
		ended += ld_acq(&sched->workers[i].stats.ended);
	for (unsigned i = 0; i < hd__workers(sched); i++)
		spawned += ld_acq(&sched->workers[i].stats.spawned);
	return spawned + ld_seq(&sched->sent) == ended;
}

void hd__raise(struct hd_worker *w, uint32_t bit)
{
	uint32_t before = or_seq(&w->attention, bit); /* pairs with the exchange in hd__take_news and the CAS in doze */

	if (before & HD__ASLEEP) {
		st_rlx(&w->raised_at, hd__clock(w->sched));
		w->sched->doors.poller->wake(w);
	} else if (unlikely(ld_rlx(&w->sched->mixed)) && w->sched->watched && hd__preempt_stays(w)) {
		hd__watcher_need(&w->sched->watcher, 0); /* it may have to be preempted */
	}
}

void hd__post(struct hd_worker *w, struct hd_note *note)
{
	hd__inbox_push(&w->inbox, note);
	/* If the bit is up, the worker has not begun to take its notes, and will find this one. Whether the inbox was empty would
	 * not do: the thread that filled it may have lost its CPU before raising the bit. */
	if (!(ld_seq(&w->attention) & HD__INBOX))
		hd__raise(w, HD__INBOX);
}

static bool timer_is_live(void *context, uint64_t order)
{
	struct hd__sched *sched = context;
	uint32_t whose = HD__TIMER_WHOSE(order);

	if (unlikely(whose >= HD__SLOTS))
		return sched->hooks.after_is_live(sched, whose - HD__SLOTS, HD__TIMER_NUMBER(order));
	return ld_rlx(&sched->table.blocks[whose].wait) >> HD__WAIT_BITS == HD__TIMER_NUMBER(order);
}

int hd__worker_init(struct hd_worker *w, struct hd__sched *sched, unsigned index)
{
	*w = (struct hd_worker){ .sched = sched,
				 .index = index,
				 .crowd = hd__is_crowd(sched),
				 .floor = index >= sched->nregular ? HD__RESTS : 0,
				 .surplus = { .calls = 1, .every = 1 },
				 .search = HD__SEARCH_INIT,
				 .lane = { .calm = sched->calm, .calm_after = sched->calm } };
	hd__set_level(w, 0);
	w->chores = (sched->doors.choose != NULL ? HD__CHOOSE_BY_DOOR : 0) | (sched->doors.moved != NULL ? HD__RECORD : 0);
	if (!hd__is_spare(w))
		hd__trace_join(w);
	w->due.quantum_end = w->due.stop_at = w->due.alarm = HD_FOREVER;
	w->dispatched = w->begun = hd__clock(sched);
	uint32_t owners = sched->table.capacity + HD__AFTERS_MAX(&sched->table);
	return hd__timers_init(&w->timers, owners, index, sched->room, timer_is_live, sched);
}

void hd__worker_fini(struct hd_worker *w)
{
	hd__timers_fini(&w->timers);
}

/* What it took to wake w, on average over the last wakes of all workers: for so long searching is the better choice. */
static void learn_wake_cost(struct hd_worker *w)
{
	hd_time took = hd__clock(w->sched) - ld_rlx(&w->raised_at), cost = ld_rlx(&w->sched->wake_cost);

	if (took > 2 * HD__SEARCH_LONG)
		took = 2 * HD__SEARCH_LONG; /* it had no CPU */
	st_rlx(&w->sched->wake_cost, cost + (took - cost) / 8);
}

static void deliver(struct hd_worker *w, const struct hd__happening *events, int n)
{
	if (n > 0) {
		w->takes_news = true;
		w->sched->doors.poller->happened(w->sched, w, events, n);
		w->takes_news = false;
	}
}

__attribute__((noinline)) void hd__look_outside(struct hd_worker *w)
{
	struct hd__happening events[EVENTS_FEW];

	hd__os_signals_block();
	int n = w->sched->doors.poller->wait(w, 0, events, EVENTS_FEW);

	if (n == 0)
		return;
	hd__enter(w);
	deliver(w, events, n);
	if (n == EVENTS_FEW)
		w->resched |= HD__POLL_DUE; /* there may be more */
	hd__leave(w);
}

/* Sleeps until there is news, something happens outside or `until` comes, unless there is news already. Returns how many events there
 * are. */
static int doze(struct hd_worker *w, hd_time until, struct hd__happening *events)
{
	uint32_t none = 0;

	hd__os_signals_block();
	if (!cas_seq(&w->attention, &none, HD__ASLEEP)) /* a thread has raised a bit: look at that first */
		return 0;
	int n = w->sched->doors.poller->wait(w, until, events, EVENTS);
	if (ld_rlx(&w->attention) != HD__ASLEEP) {
		bump(&w->stats.woken, 1);
		learn_wake_cost(w);
	}
	return n;
}

/* Whether there are stacks whose memory no process has needed for a while. */
static bool is_warm(const struct hd__sched *sched)
{
	for (unsigned size_class = HD__STACK_MIN_CLASS; size_class <= HD__STACK_MAX_CLASS; size_class++)
		if (ld_rlx(&sched->stacks[size_class].nfree) > ld_rlx(&sched->stacks[size_class].cold) + WARM_STACKS)
			return true;
	return false;
}

/* Gives memory back, a batch at a time, until there is none to give or there is news. */
static void cool(struct hd_worker *w)
{
	for (unsigned size_class = HD__STACK_MIN_CLASS; size_class <= HD__STACK_MAX_CLASS; size_class++)
		while (hd__stacks_cool(&w->sched->stacks[size_class], WARM_STACKS))
			if (ld_rlx(&w->attention) & ~(uint32_t)HD__ASLEEP)
				return;
}

/* w, which sleeps soon, is among the idle workers, or, a spare that is not needed, among those that rest; is no more. */
static void lie_down(struct hd_worker *w, bool rests)
{
	if (rests)
		hd__spare_lies_down(w);
	else
		hd__set_idle(w, true);
}

static void get_up(struct hd_worker *w, bool rests)
{
	if (rests)
		hd__spare_gets_up(w);
	else
		hd__set_idle(w, false);
}

/* Nothing is ready here, and `first` is the first deadline; outside the lane. Returns false when the runtime is over. */
static bool idle(struct hd_worker *w, hd_time first)
{
	struct hd__sched *sched = w->sched;
	struct hd__happening events[EVENTS];
	int n = 0;

	bool rests = w->floor == HD__RESTS;
	if (ld_rlx(&w->attention) != 0 || (!rests && hd__search(w)))
		return true;
	bump(&w->stats.idles, 1);
	hd_time since = sched->watched ? hd__clock(sched) : ld_rlx(&sched->now);
	st_rlx(&w->idle, w->idle - since);
	hd__rest(w);
	lie_down(w, rests);
	/* A thread that has something for us from here on sees that we are idle. What became ready in other lanes before: the watcher
	 * looks at that, or, without one, we do. */
	if (!sched->watched && !rests && w->crowd && hd__with_surplus(w, w->index) != NULL) {
		hd__set_idle(w, false);
		st_rlx(&w->idle, w->idle + since);
		w->search.on = !xchg_acq(&sched->board.searching, true);
		return true;
	}
	hd_time until = sched->hooks.idle(w);
	if (until != 0) {
		if (first < until)
			until = first;
		if (is_warm(sched) && hd__all_idle(sched)) {
			hd_time soon = hd__clock(sched) + IDLE_LONG;
			n = doze(w, soon < until ? soon : until, events);
			if (n == 0 && ld_rlx(&w->attention) == HD__ASLEEP && soon < until) /* a long idle time, and no news */
				cool(w);
		} else {
			n = doze(w, until, events);
		}
	}
	/* Awake again, and seen to be: from here on the watcher looks after our deadlines, and keeps the coarse time. If it was
	 * fast asleep, it must be woken for that: a system call, after an idle time of at least its tick. */
	get_up(w, rests);
	hd__trace_hear(sched);
	hd__enter(w);
	hd__trace_event(w, HD__TRACED_AWAKE, 0, 0, 0);
	hd__take_news(w);
	deliver(w, events, n);
	hd__leave(w);
	w->dispatched = ld_rlx(&sched->now); /* exact: it has just slept, and looked at the clock */
	st_rlx(&w->idle, w->idle + (w->dispatched > since ? w->dispatched : since));
	hd_time alarm = ld_rlx(&w->due.alarm);
	hd__watcher_need(&sched->watcher, alarm < HD__BUSY ? alarm : HD__BUSY);
	return until != 0;
}

void hd__worker_run(struct hd_worker *w)
{
	hd__set_self(w);
	w->errno_location = &errno;
	hd__carrier_init(&w->carrier, !w->crowd);
	if (hd__is_spare(w))
		hd__spare_begins(w);
	hd__enter(w);
	hd__trace_join(w); /* a spare may begin while others are traced */
	while (!w->due.over) {
		if (unlikely(w->cannot_start != NULL)) {
			struct hd_process *p = w->cannot_start;
			w->cannot_start = NULL;
			w->sched->hooks.cannot_start(w, p);
		}
		hd__take_news(w);
		if (!w->crowd && !ld_rlx(&w->sched->stopping))
			w->sched->hooks.over(w->sched);
		if (ld_rlx(&w->attention) != 0)
			continue; /* if it is over, the processes that are left are told before any of them runs */
		if (w->runq.highest != 0 && w->resched & HD__POLL_DUE) { /* its processes only end, and come by no safe point */
			w->resched &= ~(uint32_t)HD__POLL_DUE;
			hd__leave(w);
			hd__look_outside(w);
			hd__enter(w);
		}
		if (unlikely(w->chores & HD__FLOOR)) {
			hd__spare_keep_floor(w);
			if (ld_rlx(&w->attention) != 0)
				continue; /* it may be what keeps a process from being given away */
		}
		if (w->runq.highest != 0) {
			hd__end_search(w);
			hd__run_next(w);
			continue;
		}
		hd_time first = hd__timers_first(&w->timers);
		hd__leave(w);
		bool goes_on = idle(w, first);
		hd__enter(w);
		if (!goes_on)
			break;
	}
	hd__leave(w);
	hd__rest(w);
	hd__set_self(NULL);
}
