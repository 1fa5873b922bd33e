/* sched/record.c - what workers put on their tapes, and how the trace is turned on and off.
 *
 * Owns:       struct hd__trace but for `wish`; w->tape.
 * Invariant:  a worker has a tape only while HD__RECORD is up, and the tapes exist as long as one worker has its own. Only the thread that is inside a worker's
 *             lane writes its tape, only the holder of trace.lock the last one.
 * Callers:    hd__move; the watcher; workers. */
#include "sched/record.h"

#include <errno.h>
#include <heddle/machine.h>
#include <string.h>

#include "sched/sched.h"
#include "sched/state.h"
#include "ticks.h"

#define KEPT HD_SEC(10) /* the tapes, after the last event, for a tool that has not read them yet */

static uint64_t time_of(const struct hd__sched *sched)
{
	return sched->trace.by_ticks ? hd__arch_ticks() : (uint64_t)sched->doors.clock->now(sched->doors.clock);
}

/* ---- on and off ---- */

void hd__trace_time(struct hd__sched *sched, uint64_t *ticks, uint64_t *ns)
{
	st_rlx(ticks, time_of(sched));
	st_rlx(ns, (uint64_t)hd__clock(sched));
}

static void renew_clock(struct hd__sched *sched)
{
	hd__trace_time(sched, &sched->trace.clock.last_ticks, &sched->trace.clock.last_ns);
}

/* By the holder of `turn`, or when no worker is there yet. */
static bool begin(struct hd__sched *sched, unsigned order)
{
	struct hd__trace *t = &sched->trace;

	if (t->tapes == NULL && !hd__trace_make(t, sched->room + 1, order))
		return false;
	t->by_ticks = sched->doors.clock == &hd__os_clock && hd__arch_ticks_are_even();
	renew_clock(sched);
	st_rlx(&t->clock.begin_ticks, t->clock.last_ticks);
	st_rel(&t->clock.begin_ns, t->clock.last_ns); /* for the tool: there is a trace */
	st_rel(&t->on, true);			      /* pairs with hd__trace_join */
	return true;
}

static void tell_workers(struct hd__sched *sched)
{
	for (unsigned i = 0; i < hd__workers(sched); i++)
		hd__raise(&sched->workers[i], HD__TRACE);
}

int hd__trace_from_start(struct hd__sched *sched, unsigned order)
{
	sched->trace.from_start = true;
	sched->trace.until = HD_FOREVER;
	return begin(sched, order) ? 0 : -ENOMEM;
}

static void turn_off(struct hd__sched *sched, hd_time forget)
{
	struct hd__trace *t = &sched->trace;

	t->forget = forget;
	if (!t->on)
		return;
	renew_clock(sched);
	st_rel(&t->on, false);
	tell_workers(sched);
}

static void obey(struct hd__sched *sched, uint64_t wish, hd_time now)
{
	struct hd__trace *t = &sched->trace;
	unsigned order = HD__WISH_ORDER(wish);

	if (order == 0) {
		turn_off(sched, now);
	} else if (order >= HD__TRACE_ORDER_MIN && order <= HD__TRACE_ORDER_MAX && begin(sched, order)) {
		t->until = now + HD_MS((hd_time)HD__WISH_MS(wish));
		tell_workers(sched);
	}
}

/* Whether no worker writes any more. */
static bool are_all_off(struct hd__sched *sched)
{
	for (unsigned i = 0; i < hd__workers(sched); i++)
		if (ld_acq(&sched->workers[i].tape) != NULL) /* pairs with hd__trace_join */
			return false;
	return true;
}

static void drop(struct hd__sched *sched)
{
	hd__lock(&sched->trace.lock);
	hd__trace_drop(&sched->trace);
	hd__unlock(&sched->trace.lock);
}

hd_time hd__trace_see(struct hd__sched *sched, hd_time now)
{
	struct hd__trace *t = &sched->trace;
	uint64_t wish = ld_rlx(&t->wish);

	hd__lock(&t->turn);
	if (wish != t->obeyed && wish == hd__wish(wish) && !t->from_start) /* else some of its bytes have not come yet */
		obey(sched, wish, now);
	if (wish == hd__wish(wish))
		st_rel(&t->obeyed, wish);
	if (t->on)
		renew_clock(sched);
	if (t->on && now >= t->until)
		turn_off(sched, now + KEPT);
	if (!t->on && t->tapes != NULL && now >= t->forget && are_all_off(sched))
		drop(sched);
	hd_time again = t->on ? t->until : t->tapes == NULL ? HD_FOREVER : now < t->forget ? t->forget : now + HD_MS(1);
	hd__unlock(&t->turn);
	return again;
}

void hd__trace_join(struct hd_worker *w)
{
	struct hd__trace *t = &w->sched->trace;
	uint32_t others = w->sched->doors.moved != NULL ? HD__RECORD : 0;

	if (!ld_acq(&t->on)) { /* pairs with begin */
		w->chores = (w->chores & ~(uint32_t)HD__RECORD) | others;
		st_rel(&w->tape, NULL);
		return;
	}
	if (w->tape != NULL)
		return;
	w->tape = &t->tapes[w->index];
	w->chores |= HD__RECORD;
	if (w->current != NULL && w->current->state == HD_RUNNING)
		hd__trace_put(w, HD__TRACED_RUNS, hd__pid(&w->sched->table, w->current), 0, 0);
}

void hd__trace_end(struct hd__sched *sched)
{
	st_rel(&sched->trace.on, false);
	drop(sched);
}

/* ---- events ---- */

void hd__trace_put(struct hd_worker *w, enum hd__traced kind, hd_pid pid, unsigned why, uint64_t more)
{
	struct hd__tape *tape = w->tape;

	if (tape == NULL)
		return;
	tape->left = 0;
	hd__tape_put(tape,
		     (struct hd__event){
			     .kind = (uint8_t)kind, .why = (uint8_t)why, .when = time_of(w->sched), .pid = pid, .more = more });
}

void hd__trace_put_outside(struct hd__sched *sched, enum hd__traced kind, hd_pid pid, uint64_t more)
{
	struct hd__trace *t = &sched->trace;

	hd__lock(&t->lock);
	if (t->tapes != NULL)
		hd__tape_put(&t->tapes[t->ntapes - 1],
			     (struct hd__event){ .kind = (uint8_t)kind, .when = time_of(sched), .pid = pid, .more = more });
	hd__unlock(&t->lock);
}

/* A process is born: its name, in pieces, and where it begins. */
static void introduce(struct hd_worker *w, const struct hd_process *p, hd_pid pid)
{
	uint64_t piece;

	for (unsigned i = 0; i < sizeof p->name && p->name[i] != 0; i += sizeof piece) {
		memcpy(&piece, &p->name[i], sizeof piece);
		hd__trace_put(w, HD__TRACED_NAME, pid, i / sizeof piece, piece);
	}
	if (p->name[0] == 0)
		hd__trace_put(w, HD__TRACED_ENTRY, pid, 0,
			      p->nature & HD__MACHINE ? (uintptr_t)p->ops->interpret : (uintptr_t)p->entry);
}
_Static_assert(HD_NAME_SIZE % sizeof(uint64_t) == 0, "a name is some pieces");

void hd__record(struct hd_worker *w, struct hd_process *p, unsigned to)
{
	struct hd__tape *tape = w->tape;
	unsigned from = p->state, why = 0;
	uint64_t more = 0, when;
	hd_pid pid = hd__pid(&w->sched->table, p);

	if (unlikely(w->sched->doors.moved != NULL))
		w->sched->doors.moved(w, p, to);
	if (unlikely(tape == NULL))
		return;
	/* The next process runs when the runner has left its worker: one look at the time for a switch. */
	when = to == HD_RUNNING && tape->left != 0 ? tape->left : time_of(w->sched);
	tape->left = from == HD_RUNNING ? when : 0;
	if (to == HD_RUNNING) {
		why = w->hands_over ? HD__TRACED_HANDED : 0;
	} else if (to == HD_WAITING) {
		why = p->why;
		more = w->sched->hooks.waits_for(p);
	} else if (to == HD_READY && from != HD_RUNNING) {
		why = from == HD_WAITING ? (uint8_t)ld_rlx(&p->wait) : 0;
		more = hd__trace_source(w);
	}
	hd__tape_put(tape, (struct hd__event){ .kind = HD__TRACED_STATE,
					       .how = (uint8_t)(from << 4 | to),
					       .why = (uint8_t)why,
					       .level = p->priority,
					       .when = when,
					       .pid = pid,
					       .more = more });
	if (unlikely(from == 0))
		introduce(w, p, pid);
}
