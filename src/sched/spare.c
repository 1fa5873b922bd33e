/* sched/spare.c - spare workers: when one goes to work, and when it rests again.
 *
 * The watcher looks for a worker whose runner stays, and whose thread hardly uses the CPU and sleeps in the kernel, at two looks and between them; but only while something is ready that
 * no worker is free for: in a program that has nothing to gain, nothing is asked of the kernel. Such a worker loses its seat, and a spare takes it, and
 * what is ready in the lane. A thread that waits for a CPU does not sleep: an overloaded machine alone brings no spare.
 *
 * Owns:       sched->seats, board.away, board.resting together with board.c; w->floor, w->doubt, w->offer; that there are more workers than at first.
 * Invariant:  the workers that have a seat (no floor, not away) are as many as regular workers, less `seats`. Whoever changes one of these changes the other at once
 *             afterwards. If `seats` is below 0, each worker without a floor that is a spare has been told SEAT since.
 * Locking:    `seats` is changed by compare-and-swap and the like. A bit of `away` is set by the watcher, and whoever clears it changes `seats`. A bit of `resting` is set by the
 *             spare, and cleared by it when it wakes or by the watcher, which so claims it: one of the two finds it set. What moves from lane to lane does so inside both.
 * Callers:    the watcher; workers, of themselves. */
#include "sched/spare.h"

#include "os/blocked.h"
#include "sched/sched.h"

#define SUSPECT HD_US(500) /* between two samples of a thread's CPU time */
#define SHARE 8		   /* of that time, on the CPU: then it computes */
#define LOOK HD_MS(1)	   /* while something is ready that no worker is free for, and a worker was blocked not long ago: */
#define LATELY HD_SEC(1)
#define REFUSALS 4	 /* until a spare is lent */
#define IN_VAIN 256	 /* refusals more, if there was nothing to be given to it */
#define RETRY HD_MS(100) /* until a thread is started again, after one could not be */
#define ROUNDS 50	 /* in which a spare tries to give away what it must not run, before it runs it */

bool hd__has_spares(const struct hd__sched *sched)
{
	return sched->room > sched->nregular;
}

unsigned hd__spares_active(struct hd__sched *sched)
{
	unsigned n = 0;

	for (unsigned i = sched->nregular; i < hd__workers(sched); i++)
		n += ld_seq(&sched->workers[i].floor) != HD__RESTS;
	return n;
}

/* ---- seats ---- */

static bool take_seat(struct hd__sched *sched)
{
	int seats = ld_seq(&sched->seats);

	while (seats > 0)
		if (cas_seq(&sched->seats, &seats, seats - 1))
			return true;
	return false;
}

/* More workers than there are seats: each spare that has one looks whether it must step down. One that goes to work at this moment looks by itself, after it has lost its
 * floor. */
static void tell_spares(struct hd__sched *sched)
{
	for (unsigned i = sched->nregular; i < hd__workers(sched); i++) {
		struct hd_worker *x = &sched->workers[i];
		if (ld_seq(&x->floor) == 0 && !hd__is_away(x)) /* pairs with hd__spare_begins */
			hd__raise(x, HD__SEAT);
	}
}

/* By the watcher. */
static void mark_away(struct hd_worker *w)
{
	hd__set_away(w);
	add_seq(&w->sched->seats, 1);
	hd__raise(w, HD__SEAT); /* it says so when it is back */
}

static bool take_back(struct hd_worker *w)
{
	if (!hd__end_away(w))
		return false;
	if (add_seq(&w->sched->seats, -1) < 1)
		tell_spares(w->sched);
	return true;
}

static void set_floor(struct hd_worker *w, int floor)
{
	st_seq(&w->floor, floor); /* pairs with tell_spares */
	if (floor == 0) {
		w->chores &= ~(uint32_t)HD__FLOOR;
		w->resched &= ~(uint32_t)HD__BELOW_FLOOR;
	} else {
		w->chores |= HD__FLOOR;
		w->resched |= HD__BELOW_FLOOR;
	}
}

static void step_down(struct hd_worker *w)
{
	int seats = ld_seq(&w->sched->seats);

	while (seats < 0)
		if (cas_seq(&w->sched->seats, &seats, seats + 1)) {
			set_floor(w, HD__RESTS);
			return;
		}
}

void hd__spare_settle(struct hd_worker *w)
{
	(void)take_back(w);
	if (hd__is_spare(w) && w->floor == 0)
		step_down(w);
}

/* ---- a spare's life ---- */

/* w was claimed while it rested, or begins. SEAT is raised for it, and has not been heeded: so it sees if it must step down at once. */
void hd__spare_begins(struct hd_worker *w)
{
	hd__enter(w);		/* a visitor may look at the chores, and add to them */
	set_floor(w, w->offer); /* pairs with the claim in begin_one, or with the start of the thread */
	hd__leave(w);
	w->search.luck = HD__SEARCH_LUCK;
}

void hd__spare_lies_down(struct hd_worker *w)
{
	hd__set_resting(w);
}

void hd__spare_gets_up(struct hd_worker *w)
{
	if (!hd__end_resting(w))
		hd__spare_begins(w);
}

void hd__spare_give(struct hd_worker *w)
{
	struct hd_worker *x;

	while (w->runq.highest != 0 && (x = hd__some_worker(w->sched)) != w &&
	       hd__give_away(w, x, HD__PRIORITY_MIN, w->floor) > 0)
		;
}

/* Whether something is ready here that is not to run here, and may move. */
static bool has_to_give(struct hd_worker *w)
{
	hd__runq_spill(&w->runq);
	for (int l = w->runq.highest < w->floor ? w->runq.highest : w->floor; l >= HD__PRIORITY_MIN; l--)
		for (struct hd_process *p = hd__runq_level(&w->runq, l)->head; p != NULL; p = p->next)
			if (hd__is_movable(p))
				return true;
	return false;
}

void hd__spare_keep_floor(struct hd_worker *w)
{
	if (w->floor == HD__RESTS && w->runq.highest != 0 && take_seat(w->sched)) {
		set_floor(w, 0);
		return;
	}
	hd__spare_give(w);
	for (int i = 0; i < ROUNDS && has_to_give(w) && ld_rlx(&w->attention) == 0; i++) {
		hd__leave(w); /* another lane could not be entered */
		hd__os_thread_yield();
		hd__enter(w);
		hd__spare_give(w);
	}
	if (w->runq.highest == 0 && w->floor != HD__RESTS)
		set_floor(w, HD__RESTS);
}

/* ---- the watcher: a spare goes to work ---- */

/* Another kernel thread. NULL: there are as many as there may be, or none can be had. */
static struct hd_worker *start_one(struct hd__sched *sched, int floor, hd_time now)
{
	unsigned n = sched->nworkers;
	struct hd_worker *x = &sched->workers[n];
	int err = -1;

	if (n == sched->room || now < sched->watcher.start_again)
		return NULL;
	hd__lock(&sched->starting); /* the thread that called hd_run waits for it once, when all is over */
	if (!sched->full)
		err = x->sched != NULL ? 0 : hd__worker_init(x, sched, n); /* it may have been tried before */
	if (err == 0) {
		x->offer = floor;
		st_seq(&sched->nworkers, n + 1); /* pairs with hd__workers: before anything can run there */
		err = sched->hooks.start_spare(x);
		if (err != 0)
			st_seq(&sched->nworkers, n);
	}
	hd__unlock(&sched->starting);
	if (err == 0)
		return x;
	sched->watcher.start_again = now + RETRY;
	return NULL;
}

/* A spare goes to work: one that rests, or a new one. NULL: there is none. */
static struct hd_worker *begin_one(struct hd__sched *sched, int floor, hd_time now)
{
	for (unsigned i = sched->nregular; i < hd__workers(sched); i++) {
		struct hd_worker *x = &sched->workers[i];
		if (!hd__rests(x))
			continue; /* one that was claimed before may not have read its offer yet */
		x->offer = floor;
		if (hd__claim_resting(x))
			return x;
	}
	return start_one(sched, floor, now);
}

/* What is ready in v's lane, and v cannot run, goes to x. */
static void relieve(struct hd_worker *v, struct hd_worker *x, int least)
{
	if (x != v && hd__visit(v, true)) {
		(void)hd__give_away(v, x, least, HD__PRIORITY_MAX);
		hd__unvisit(v);
	}
}

/* ---- the watcher: who is blocked ---- */

/* Something is ready that no worker is free for: it was so at the look before, or its worker has run nothing else since. */
static bool is_needed(struct hd__sched *sched)
{
	bool needed = false;

	for (unsigned i = 0; i < hd__workers(sched); i++) {
		struct hd_worker *w = &sched->workers[i];
		if (!(ld_seq(&w->attention) & HD__ASLEEP) && ld_rlx(&w->runq.highest) != 0)
			needed |= ld_rlx(&w->stats.switches) == w->doubt.switches ||
				  hd__runq_is_ripe(&w->runq, w->doubt.arrivals);
		w->doubt.arrivals = ld_rlx(&w->runq.arrivals);
	}
	return needed && ld_rlx(&sched->board.idlers) == 0;
}

/* Whether the doubt is still about w's runner; else it is about the one there is now, if any. */
static bool is_same(struct hd_worker *w)
{
	uint64_t switches = ld_rlx(&w->stats.switches), arrivals = w->doubt.arrivals;

	if (!(ld_seq(&w->attention) & HD__ASLEEP) && ld_rlx(&w->running_priority) != 0 && switches == w->doubt.switches)
		return true;
	w->doubt = (struct hd__doubt){ .switches = switches, .arrivals = arrivals };
	return false;
}

static void sample(struct hd__doubt *d, hd_time now, hd_time used)
{
	d->sampled = true;
	d->since = now;
	d->cpu_time = used;
}

/* Whether w, which has a seat, is blocked. *again: when to look again, if that is not sure yet. */
static bool is_blocked(struct hd_worker *w, hd_time now, hd_time *again)
{
	struct hd__doubt *d = &w->doubt;
	int id = ld_rlx(&w->thread.number);

	if (!is_same(w) || ld_seq(&w->floor) != 0 || id == 0)
		return false;
	if (d->sampled && now - d->since < SUSPECT) {
		if (d->sleeps && d->since + SUSPECT < *again)
			*again = d->since + SUSPECT;
		return false;
	}
	hd_time used = hd__os_thread_cpu_time(id);
	d->computes = d->sampled && SHARE * (used - d->cpu_time) > now - d->since;
	bool slept = d->sampled && d->sleeps;
	d->sleeps = !d->computes && hd__os_thread_sleeps(id);
	sample(d, now, used);
	if (slept && d->sleeps)
		return true;
	if (d->sleeps && now + SUSPECT < *again)
		*again = now + SUSPECT;
	return false;
}

/* w, which is away, computes, and has not said that it is back: it has made no heddle call. */
static bool computes(struct hd_worker *w, hd_time now)
{
	struct hd__doubt *d = &w->doubt;
	hd_time used, from = d->cpu_time, time = now - d->since;

	if (time < SUSPECT)
		return false;
	used = hd__os_thread_cpu_time(ld_rlx(&w->thread.number));
	sample(d, now, used);
	return 2 * (used - from) > time;
}

void hd__spare_refused(struct hd_worker *w)
{
	if (is_same(w))
		w->doubt.refusals++;
}

/* w's runner computes where it cannot be stopped, and something better is ready: a spare takes that. */
static void lend_for(struct hd_worker *w, hd_time now)
{
	struct hd__sched *sched = w->sched;
	int level = ld_rlx(&w->running_priority);
	struct hd_worker *best = NULL, *x;

	w->doubt.refusals = -IN_VAIN;
	if (level == 0 || ld_rlx(&sched->board.idlers) > 0)
		return; /* an idle worker takes it */
	for (unsigned i = 0; i < hd__workers(sched); i++) {
		struct hd_worker *v = &sched->workers[i];
		int highest = ld_rlx(&v->runq.highest);
		if (highest > level && (best == NULL || highest > ld_rlx(&best->runq.highest)))
			best = v;
	}
	if (best == NULL || (x = begin_one(sched, level, now)) == NULL)
		return;
	relieve(best, x, level + 1);
	hd__raise(x, HD__SEAT);
	bump(&sched->handovers, 1);
	w->doubt.refusals = 0;
}

/* Seats that are free are taken, if something is ready that no worker is free for. */
static void fill_seats(struct hd__sched *sched, hd_time now)
{
	struct hd_worker *x;

	while (take_seat(sched)) {
		if ((x = begin_one(sched, 0, now)) == NULL) {
			add_seq(&sched->seats, 1);
			return;
		}
		for (unsigned i = 0; i < hd__workers(sched); i++)
			if (hd__is_away(&sched->workers[i]))
				relieve(&sched->workers[i], x, HD__PRIORITY_MIN);
		hd__raise(x, HD__SEAT);
		bump(&sched->handovers, 1);
	}
}

hd_time hd__spare_look(struct hd__sched *sched, hd_time now)
{
	struct hd__watcher *watcher = &sched->watcher;
	hd_time again = HD_FOREVER;

	if (!hd__has_spares(sched))
		return again;
	bool needed = is_needed(sched);
	st_seq(&watcher->visits, watcher->visits + 1);
	for (unsigned i = 0; i < hd__workers(sched); i++) {
		struct hd_worker *w = &sched->workers[i];
		if (hd__is_away(w)) {
			watcher->vigil = now + LATELY;
			if (computes(w, now))
				(void)take_back(w);
			else if (needed && ld_rlx(&w->runq.highest) != 0)
				relieve(w, hd__some_worker(sched), HD__PRIORITY_MIN); /* what has come there since */
		} else if (needed && is_blocked(w, now, &again)) {
			mark_away(w);
		} else if (w->doubt.refusals >= REFUSALS && is_same(w)) {
			lend_for(w, now);
		}
	}
	if (needed)
		fill_seats(sched, now);
	st_seq(&watcher->visits, watcher->visits + 1);
	if (needed && now < watcher->vigil && now + LOOK < again)
		again = now + LOOK;
	return again;
}
