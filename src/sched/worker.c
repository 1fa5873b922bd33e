/* sched/worker.c - a worker's life: run, sleep, wake.
 *
 * Owns:      the attention word's protocol, the worker's own stack (the kernel thread's), on which it is idle.
 * Callers:   rt/ starts it; anybody raises attention and posts notes. */
#define _GNU_SOURCE
#include "sched/worker.h"

#include <errno.h>

#include "os/lock.h"
#include "sched/sched.h"
#include "sched/state.h"

#define WARM_STACKS 64	     /* kept with their memory, however long all are idle */
#define IDLE_LONG HD_MS(100) /* after this, memory is given back */
#define SEARCH_LONG HD_US(20)
#define SEARCH_LUCK 4	 /* searches in vain until they become rare */
#define SEARCH_RARELY 16 /* then one in so many idle times */

static _Thread_local struct hd_worker *self;

/* Not inlined, and opaque to the optimiser: no caller may keep the address of `self` across a switch. */
__attribute__((noinline)) struct hd_worker *hd__self(void)
{
	__asm__ volatile("");
	return self;
}

void hd__set_self(struct hd_worker *w)
{
	self = w;
}

const struct hd__clock *hd__plain_clock = &hd__os_clock;

hd_time hd__clock(struct hd__sched *sched)
{
	hd_time now = sched->doors.clock->now(sched->doors.clock);
	st_rlx(&sched->now, now); /* bookkeeping: no order needed */
	return now;
}

void hd__raise(struct hd_worker *w, uint32_t bit)
{
	struct hd__poller *poller = w->sched->doors.poller;
	uint32_t before = or_seq(&w->attention, bit); /* pairs with the exchange in hd__take_news and the CAS in doze */

	if (before & HD__ASLEEP)
		poller->wake(poller, &w->attention);
}

void hd__post(struct hd_worker *w, struct hd_note *note)
{
	hd__inbox_push(&w->inbox, note);
	/* If the bit is up, the worker has not begun to take its notes, and will find this one. Whether the inbox was empty would
	 * not do: whoever filled it may have lost its CPU before raising the bit. */
	if (!(ld_seq(&w->attention) & HD__INBOX))
		hd__raise(w, HD__INBOX);
}

/* The highest level in a run queue, found the long way. */
static unsigned highest_in(struct hd__runq *q)
{
	if (q->only != NULL)
		return q->only->priority;
	for (int priority = HD__PRIORITY_MAX; priority >= HD__PRIORITY_MIN; priority--)
		if (hd__runq_level(q, priority)->head != NULL)
			return (unsigned)priority;
	return 0;
}

/* For a trace: what else could run on w. */
static uint8_t highest_ready(struct hd_worker *w)
{
	unsigned own = highest_in(&w->runq);
	bool locked = w->release == &w->share.lock; /* by the process that is leaving */

	if (!locked)
		hd__lock(&w->share.lock);
	unsigned shared = highest_in(&w->share.queue);
	if (!locked)
		hd__unlock(&w->share.lock);
	return (uint8_t)(own > shared ? own : shared);
}

void hd__record(struct hd_worker *w, struct hd_process *p, unsigned to)
{
	hd__trace_record(w->trace, (struct hd__event){ .when = hd__clock(w->sched),
						       .pid = hd__pid(&w->sched->table, p),
						       .from = p->state,
						       .to = (uint8_t)to,
						       .why = p->why,
						       .level = p->priority,
						       .eligible = to == HD_RUNNING ? highest_ready(w) : 0,
						       .worker = (uint16_t)w->index });
}

static bool timer_is_live(void *context, uint64_t order)
{
	struct hd__sched *sched = context;
	return ld_rlx(&sched->table.blocks[HD__TIMER_WHOSE(order)].timer) == order;
}

int hd__worker_init(struct hd_worker *w, struct hd__sched *sched, unsigned index)
{
	*w = (struct hd_worker){
		.sched = sched, .trace = sched->doors.trace, .index = index, .arrivals = 1, .luck = SEARCH_LUCK
	};
	hd__set_level(w, 0);
	w->chores = (sched->doors.choose != NULL ? HD__CHOOSE_BY_DOOR : 0) | (w->trace != NULL ? HD__RECORD : 0);
	w->quantum_end = w->stop_at = w->alarm = HD_FOREVER;
	w->dispatched = hd__clock(sched);
	return hd__timers_init(&w->timers, sched->table.capacity, index, sched->nworkers, timer_is_live, sched);
}

void hd__worker_fini(struct hd_worker *w)
{
	hd__timers_fini(&w->timers);
}

/* Sleeps until there is news or `until` comes, unless there is news already. */
static void doze(struct hd_worker *w, hd_time until)
{
	struct hd__poller *poller = w->sched->doors.poller;
	uint32_t none = 0;

	if (cas_seq(&w->attention, &none, HD__ASLEEP)) { /* else somebody raised a bit: look at that first */
		poller->wait(poller, &w->attention, HD__ASLEEP, until);
		bump(&w->stats.woken, ld_rlx(&w->attention) != HD__ASLEEP);
	}
}

/* Whether there are stacks whose memory nobody has needed for a while. */
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

/* Something has come for w: a note, or a process in its share. */
static bool has_news(struct hd_worker *w)
{
	return ld_seq(&w->attention) != 0 || hd__shares(w);
}

/* Waits for news, or for something to take from others, for some 32 pauses. */
static bool look_about(struct hd_worker *w)
{
	for (int i = 0; i < 32; i++) {
		if (has_news(w))
			return true;
		hd__arch_pause();
	}
	return hd__share_elsewhere(w, 0);
}

/* Looks about for a moment before w goes to sleep: what others send is here far sooner than the kernel could wake us. One worker
 * at a time does (whoever has just found something is about to make room), and who has found nothing for a while hardly tries. */
static void search(struct hd_worker *w)
{
	struct hd__sched *sched = w->sched;

	if (sched->nworkers == 1 || !sched->watched)
		return;
	if (w->luck == 0 && ++w->gloom % SEARCH_RARELY != 0)
		return;
	if (ld_rlx(&sched->board.searching) && look_about(w))
		return;
	if (xchg_acq(&sched->board.searching, true))
		return;
	hd_time until = hd__clock(sched) + SEARCH_LONG;
	bool found;
	do
		found = look_about(w);
	while (!found && hd__clock(sched) < until);
	st_rel(&sched->board.searching, false);
	if (found)
		w->luck = SEARCH_LUCK;
	else if (w->luck > 0)
		w->luck--;
}

/* Nothing is ready here. Returns false when the runtime is over. */
static bool idle(struct hd_worker *w)
{
	struct hd__sched *sched = w->sched;

	search(w);
	if (has_news(w) || hd__share_steal_ripe(w))
		return true;
	bump(&w->stats.idles, 1);
	hd__set_idle(w, true);
	/* Whoever has something for us from here on will see that we are idle; what there was before, we must see. */
	if (has_news(w) || hd__share_elsewhere(w, 0)) {
		hd__set_idle(w, false);
		if (has_news(w) || hd__share_steal_ripe(w))
			return true;
		bump(&w->stats.idles, 1); /* a request to it is on its way: it must stay where it is until then */
		hd__set_idle(w, true);
		if (!sched->watched && hd__share_elsewhere(w, 0)) {
			hd__set_idle(w, false);
			return true; /* nobody else would tell us */
		}
	}
	if (sched->watched && hd__anybody_shares(sched))
		hd__watcher_notice(&sched->watcher); /* too fresh to take; when it is not, we shall be woken */
	hd_time until = sched->hooks.idle(w);
	if (until != 0 && hd__best_level(w) == 0) {
		hd_time first = hd__timers_first(&w->timers);
		if (first < until)
			until = first;
		if (is_warm(sched) && hd__all_idle(sched)) {
			hd_time soon = hd__clock(sched) + IDLE_LONG;
			doze(w, soon < until ? soon : until);
			if (ld_rlx(&w->attention) == HD__ASLEEP && soon < until) /* a long idle time, and no news */
				cool(w);
		} else {
			doze(w, until);
		}
	}
	/* Awake again, and seen to be: from here on the watcher looks after our deadlines, and keeps the coarse time. If it was
	 * fast asleep, it must be woken for that: a system call, after an idle time of at least its tick. */
	hd__set_idle(w, false);
	hd__take_news(w);
	w->dispatched = ld_rlx(&sched->now);
	hd__watcher_need(&sched->watcher, w->alarm < HD__BUSY ? w->alarm : HD__BUSY);
	return until != 0;
}

void hd__worker_run(struct hd_worker *w)
{
	hd__set_self(w);
	w->errno_location = &errno;
	hd__fiber_init(&w->fiber, NULL, 0);
	while (!w->over) {
		if (unlikely(w->cannot_start != NULL)) {
			struct hd_process *p = w->cannot_start;
			w->cannot_start = NULL;
			w->sched->hooks.cannot_start(w, p);
		}
		hd__take_news(w);
		if (hd__best_level(w) == 0) {
			if (!idle(w))
				break;
			continue;
		}
		if (w->counted == 0) {
			if (w->sched->hooks.idle(w) == 0)
				break;
			if (ld_rlx(&w->attention) & HD__LOOK)
				continue; /* it is over, and whoever is left is told before anybody else runs */
		}
		hd__run_next(w);
	}
	hd__set_self(NULL);
}
