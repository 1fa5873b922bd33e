/* sched/worker.c - a worker's life: run, sleep, wake.
 *
 * Owns:      the attention word's protocol, the worker's own stack (the kernel thread's), on which it is idle.
 * Callers:   rt/ starts it; anybody raises attention and posts notes. */
#define _GNU_SOURCE
#include "sched/worker.h"

#include <errno.h>

#include "sched/sched.h"
#include "sched/state.h"

#define WARM_STACKS 64	     /* kept with their memory, however long the worker is idle */
#define IDLE_LONG HD_MS(100) /* after this, it gives memory back */

static _Thread_local struct hd_worker *self;

/* Not inlined, and opaque to the optimiser: no caller may keep the address of `self` across a switch. */
__attribute__((noinline)) struct hd_worker *hd__self(void)
{
	__asm__ volatile("");
	return self;
}

void hd__forget_self(void)
{
	self = NULL;
}

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

void hd__record(struct hd_worker *w, struct hd_process *p, unsigned to)
{
	hd__trace_record(w->trace, (struct hd__event){ .when = hd__clock(w->sched),
						       .pid = hd__pid(&w->sched->table, p),
						       .from = p->state,
						       .to = (uint8_t)to,
						       .why = p->why });
}

static bool timer_is_live(void *context, uint64_t order)
{
	struct hd__sched *sched = context;
	return sched->table.blocks[HD__TIMER_WHOSE(order)].timer == order;
}

int hd__worker_init(struct hd_worker *w, struct hd__sched *sched)
{
	*w = (struct hd_worker){ .sched = sched, .trace = sched->doors.trace, .errno_location = &errno };
	w->chores = (sched->doors.choose != NULL ? HD__CHOOSE_BY_DOOR : 0) | (w->trace != NULL ? HD__RECORD : 0);
	w->quantum_end = w->stop_at = w->alarm = HD_FOREVER;
	w->dispatched = hd__clock(sched);
	for (unsigned size_class = HD__STACK_MIN_CLASS; size_class <= HD__STACK_MAX_CLASS; size_class++)
		hd__stacks_init(&w->stacks[size_class], size_class);
	return hd__timers_init(&w->timers, sched->table.capacity, timer_is_live, sched);
}

void hd__worker_fini(struct hd_worker *w)
{
	for (unsigned size_class = HD__STACK_MIN_CLASS; size_class <= HD__STACK_MAX_CLASS; size_class++)
		hd__stacks_fini(&w->stacks[size_class]);
	hd__timers_fini(&w->timers);
}

/* Sleeps until there is news or `until` comes, unless there is news already. */
static void doze(struct hd_worker *w, hd_time until)
{
	struct hd__poller *poller = w->sched->doors.poller;
	uint32_t none = 0;

	bump(&w->stats.idles, 1);
	if (cas_seq(&w->attention, &none, HD__ASLEEP)) /* else somebody raised a bit: look at that first */
		poller->wait(poller, &w->attention, HD__ASLEEP, until);
}

/* Whether there are stacks whose memory nobody has needed for a while. */
static bool is_warm(const struct hd_worker *w)
{
	for (unsigned size_class = HD__STACK_MIN_CLASS; size_class <= HD__STACK_MAX_CLASS; size_class++)
		if (w->stacks[size_class].nfree - w->stacks[size_class].cold > WARM_STACKS)
			return true;
	return false;
}

/* Gives memory back, a batch at a time, until there is none to give or there is news. */
static void cool(struct hd_worker *w)
{
	for (unsigned size_class = HD__STACK_MIN_CLASS; size_class <= HD__STACK_MAX_CLASS; size_class++)
		while (hd__stacks_cool_owner(&w->stacks[size_class], WARM_STACKS))
			if (ld_rlx(&w->attention) & ~(uint32_t)HD__ASLEEP)
				return;
}

static void idle(struct hd_worker *w, hd_time until)
{
	hd_time first = hd__timers_first(&w->timers);
	if (first < until)
		until = first;
	if (is_warm(w)) {
		hd_time soon = hd__clock(w->sched) + IDLE_LONG;
		doze(w, soon < until ? soon : until);
		if (ld_rlx(&w->attention) == HD__ASLEEP && soon < until) /* a long idle time, and no news */
			cool(w);
	} else {
		doze(w, until);
	}
	/* Awake again, and seen to be: from here on the watcher looks after our deadlines, and keeps the coarse time. If it was
	 * fast asleep, it must be woken for that: a system call, after an idle time of at least its tick. */
	hd__take_news(w);
	w->dispatched = ld_rlx(&w->sched->now);
	hd__watcher_need(&w->sched->watcher, w->alarm < HD__BUSY ? w->alarm : HD__BUSY);
}

void hd__worker_run(struct hd_worker *w)
{
	self = w;
	hd__fiber_init(&w->fiber, NULL, 0);
	while (!w->over) {
		if (unlikely(w->cannot_start != NULL)) {
			struct hd_process *p = w->cannot_start;
			w->cannot_start = NULL;
			w->sched->hooks.cannot_start(w, p);
		}
		hd__take_news(w);
		if (w->counted == 0 || w->runq.highest == 0) {
			hd_time until = w->sched->hooks.idle(w);
			if (until == 0)
				break;
			if (w->runq.highest == 0) {
				idle(w, until);
				continue;
			}
		}
		hd__run_next(w);
	}
	self = NULL;
}
