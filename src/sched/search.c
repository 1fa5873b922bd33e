/* sched/search.c - a worker with nothing to run looks for something, before it sleeps.
 *
 * Owns:      w->search, sched->patience; board.searching together with board.c.
 * Callers:   the worker itself, outside its lane. */
#include "sched/search.h"

#include "context.h"
#include "sched/lane.h"

#define RARELY 16	/* without luck it searches one in so many idle times */
#define TALK HD_US(1)	/* a process that waits for a lock once in so long talks to another worker's */
#define SCRAP HD_US(12) /* what has run for less was not worth the theft, however long it had waited */
#define REST_MAX HD_US(1600)
#define PATIENCE_MIN 2 /* calls for which surplus waits for its worker: see hd__is_surplus */
#define PATIENCE_MAX 65536

void hd__end_search(struct hd_worker *w)
{
	if (w->search.on) {
		w->search.on = false;
		st_rel(&w->sched->board.searching, false);
	}
}

struct hd_worker *hd__with_surplus(struct hd_worker *w, unsigned last)
{
	struct hd__sched *sched = w->sched;
	unsigned n = hd__workers(sched);

	for (unsigned i = 1; i <= n; i++) {
		struct hd_worker *x = &sched->workers[(last + i) % n];
		if (x != w && ld_rlx(&x->runq.highest) != 0)
			return x;
	}
	return NULL;
}

/* What w took last has run, and w is idle again. If it ran for less than it had waited, or met the other worker at a lock all the time, it
 * had better stayed where it was: the next time w is more patient. Partners that are torn apart are slow, and so wait for long: if thefts of
 * scraps do not end, w takes nothing for a while, and they come together. */
static void learn_from_theft(struct hd_worker *w, hd_time now)
{
	struct hd__search *s = &w->search;
	hd_time ran = now - s->stole_at, met = hd__lock_waits() - s->lock_waits;
	bool talked = ran < met * TALK;

	if (s->stole_at == 0)
		return;
	s->stole_at = 0;
	if (s->ripe == HD__SEARCH_LONG && (talked || ran < SCRAP)) {
		s->rest = s->rest == 0 ? HD__SEARCH_LONG : s->rest < REST_MAX ? 2 * s->rest : REST_MAX;
		s->until = now + s->rest;
		return;
	}
	s->rest = 0;
	if (talked || ran < s->ripe)
		s->ripe = 2 * s->ripe < HD__SEARCH_LONG ? 2 * s->ripe : HD__SEARCH_LONG;
	else
		s->ripe = s->ripe > HD__RIPE ? s->ripe / 2 : HD__RIPE;
}

/* Looks about, for as long as waking w would cost: for news, and for processes that have been ready behind another worker's runner for a
 * while, of which it takes half. Those that wait for less are partners of the runner, or soon run there. In any case it looks at
 * each worker once; and no longer than that if it watches something outside, of which it would not hear meanwhile. */
static bool find_something(struct hd_worker *w)
{
	struct hd__sched *sched = w->sched;
	hd_time now = hd__clock(sched), since = now, cost = ld_rlx(&sched->wake_cost);
	hd_time until = now + (w->watched != NULL ? 0 : cost < HD__SEARCH_LONG ? cost : HD__SEARCH_LONG);
	struct hd_worker *v = NULL; /* which is being watched, */
	uint64_t ripe = 0;	    /* since it had had so many arrivals */
	unsigned last = w->index, looks = 0;

	learn_from_theft(w, now);
	if (now < w->search.until && sched->watched)
		return ld_rlx(&w->attention) != 0;
	for (;;) {
		if (v == NULL && (now < until || looks < hd__workers(sched)) && (v = hd__with_surplus(w, last)) != NULL) {
			looks++;
			last = v->index;
			since = now;
			ripe = ld_rlx(&v->runq.arrivals);
		}
		if (v == NULL && now >= until)
			return false;
		for (int i = 0; i < 16; i++) {
			if (ld_rlx(&w->attention) != 0)
				return true;
			if (v != NULL && ld_rlx(&v->runq.highest) == 0)
				v = NULL; /* it has run out of surplus */
			hd__arch_pause();
		}
		now = hd__clock(sched);
		if (v == NULL || now - since < w->search.ripe)
			continue;
		unsigned n = hd__runq_is_ripe(&v->runq, ripe) ? hd__take_half(w, v, ripe) : 0;
		if (n > 0) {
			w->search.stole_at = now;
			w->search.lock_waits = hd__lock_waits();
			hd__end_search(w);
			if (n > 1 && ld_rlx(&sched->board.idlers) > 0)
				hd__wake_searcher(sched); /* there is more than w can run at once */
			return true;
		}
		v = NULL; /* its worker was faster, or what it has is fresh, or pinned */
	}
}

/* What has happened to what w watches is nearer than what other workers have. */
static bool finds_outside(struct hd_worker *w)
{
	if (w->watched == NULL)
		return false;
	hd__look_outside(w);
	return ld_rlx(&w->runq.highest) != 0; /* a hint: another thread may visit the lane, and tells w then */
}

/* Whether one searches, and half as many as are awake. */
static bool are_enough(struct hd__sched *sched)
{
	return ld_rlx(&sched->board.searching) &&
	       2 * ld_rlx(&sched->board.searchers) >= sched->nregular - ld_rlx(&sched->board.idlers);
}

bool hd__search(struct hd_worker *w)
{
	struct hd__sched *sched = w->sched;
	bool woken = w->search.on;

	if (!w->crowd)
		return false;
	if (!woken) {
		if ((w->search.luck == 0 && ++w->search.gloom % RARELY != 0) || are_enough(sched))
			return false;
		if (finds_outside(w))
			return true;
		w->search.on = !xchg_acq(&sched->board.searching, true);
	}
	add_rlx(&sched->board.searchers, 1);
	bool found = find_something(w);
	add_rlx(&sched->board.searchers, -1u);
	hd__end_search(w);
	if (found)
		w->search.luck = HD__SEARCH_LUCK;
	else if (w->search.luck > 0)
		w->search.luck--;
	if (woken) { /* was it worth the wake? */
		unsigned patience = ld_rlx(&sched->patience);
		if (!found && patience < PATIENCE_MAX)
			st_rlx(&sched->patience, 2 * patience);
		else if (found && w->search.rest == 0 && patience > PATIENCE_MIN)
			st_rlx(&sched->patience, PATIENCE_MIN);
	}
	return found;
}
