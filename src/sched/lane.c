/* sched/lane.c - entering other workers' lanes, and taking processes from there.
 *
 * Owns:       w->lane, `home` of processes that are ready; w->advert together with board.c.
 * Invariant:  a process that is READY is in the run queue of its home's lane, or in the hands of the worker that is its home.
 * Callers:    workers; the watcher visits. */
#include "sched/lane.h"

#include "base/assert.h"
#include "context.h"

#define TRIES 100     /* to enter another lane, before its owner is left alone */
#define ROOM 200      /* pauses that an owner waits for a visitor */
#define LOOK_MAX 1024 /* processes that must stay, before a thief gives up */
#define HALF_MAX 256  /* processes taken at a time */

bool hd__visit(struct hd_worker *v)
{
	bool inside = false;

	if (!v->crowd)
		return false; /* its owner does not lock it */
	for (int i = 0; i < TRIES && !inside; i++) {
		unsigned char free = 0;
		inside = ld_rlx(&v->lane) == 0 && cas_acq(&v->lane, &free, 1); /* pairs with hd__leave's release */
		if (!inside && i == 0)
			st_rlx(&v->wanted, true); /* an owner that enters again and again makes room */
		if (!inside)
			hd__arch_pause();
	}
	if (ld_rlx(&v->wanted))
		st_rlx(&v->wanted, false);
	return inside;
}

bool hd__visit_surely(struct hd_worker *v)
{
	if (v->crowd)
		hd__lock(&v->lane);
	return v->crowd;
}

/* The highest level above `level` at which a process of w's may move; `level` when there is none. */
static int highest_movable(struct hd_worker *w, int level)
{
	int looks = LOOK_MAX;

	hd__runq_spill(&w->runq);
	for (int l = w->runq.highest; l > level && l >= HD__PRIORITY_MIN; l--)
		for (struct hd_process *p = hd__runq_level(&w->runq, l)->head; p != NULL; p = p->next)
			if (hd__is_movable(p) || looks-- == 0)
				return l;
	return level;
}

/* Before the lane is left: other workers that run less than what is ready here, and may move, hear of it. */
static void advertise(struct hd_worker *w)
{
	int level = w->runq.highest > w->advert ? highest_movable(w, w->advert) : 0;

	if (level > w->advert) {
		hd__set_advert(w, level);
		hd__tell_those_below(w, level);
	}
}

void hd__unvisit(struct hd_worker *v)
{
	bool ready = v->runq.highest != 0;

	advertise(v);
	hd__unlock(&v->lane);
	if (ready && hd__is_better_there(v, 0)) /* idle: it looked at its queue before we came, or looks again */
		hd__raise(v, HD__BETTER);
	else if (ready && ld_rlx(&v->sched->board.idlers) != 0)
		hd__wake_searcher(v->sched);
}

/* Whether two processes or more are ready, at the highest level. */
static bool is_crowded(struct hd__runq *q)
{
	return q->only == NULL && hd__runq_level(q, q->highest)->head->next != NULL;
}

/* Something is ready behind the runner, while other workers sleep. If partners talk to each other, the runner waits soon, and the
 * other one goes on here: waking a worker for that would tear them apart, and cost a thousand switches. So a worker is woken when the
 * runner has made a few calls since and still goes on, or when more than one have been ready for as long. How many calls, depends on
 * whether the workers that were woken lately have found something (sched->patience). For a runner that makes no calls the watcher
 * looks. */
void hd__leave_surplus(struct hd_worker *w)
{
	struct hd__sched *sched = w->sched;
	bool wake = false, surplus = w->runq.highest != 0;

	advertise(w);
	if (surplus && ld_rlx(&sched->board.idlers) != 0) {
		uint64_t turn = w->stats.switches;
		if (turn != w->surplus_turn && !is_crowded(&w->runq))
			w->surplus_calls = 0;
		else if (++w->surplus_calls > ld_rlx(&sched->patience)) {
			w->surplus_calls = 0;
			wake = true;
		}
		w->surplus_turn = turn;
	}
	hd__unlock(&w->lane);
	if (unlikely(wake || (surplus && !sched->watched)))
		hd__wake_searcher(sched);
	for (int i = 0; i < ROOM && ld_rlx(&w->wanted); i++)
		hd__arch_pause(); /* a visitor waits outside */
}

bool hd__move_home(struct hd_process *p, struct hd_worker *w)
{
	uint64_t control = ld_acq(&p->control);

	if (!hd__is_movable(p))
		return false;
	do
		if (control & HD__NUDGED)
			return false;
	while (!cas_acq_rel(&p->control, &control, control | HD__MOVING)); /* pairs with change_word in life/steer.c */
	st_rlx(&p->home, w);
	and_acq_rel(&p->control, ~(uint64_t)HD__MOVING); /* a request after this sees its new home */
	return true;
}

/* Inside v's lane: the first that may move to w, of a level above `level`; NULL when there is none. *stays: one could not move because
 * a request to it is on its way, or not all were looked at. */
static struct hd_process *take_first_above(struct hd_worker *w, struct hd_worker *v, int level, bool *stays)
{
	int looks = LOOK_MAX;

	hd__runq_spill(&v->runq);
	for (int l = v->runq.highest; l > level && l >= HD__PRIORITY_MIN; l--)
		for (struct hd_process *p = hd__runq_level(&v->runq, l)->head; p != NULL; p = p->next) {
			if (hd__move_home(p, w)) {
				hd__runq_remove(&v->runq, p);
				return p;
			}
			*stays |= hd__is_movable(p) || looks-- == 0;
			if (looks < 0)
				return NULL;
		}
	return NULL;
}

struct hd_process *hd__take_better(struct hd_worker *w, int level)
{
	struct hd_process *best = NULL;
	bool again = false;

	for (struct hd_worker *v = NULL; (v = hd__next_advert(w, v, level)) != NULL;) {
		if (!hd__visit(v)) {
			again = true;
			continue;
		}
		bool stays = false;
		struct hd_process *p = take_first_above(w, v, level, &stays);
		int left = p != NULL ? p->priority
				     : level; /* nothing above this can be taken there; unless something stays for now */
		if (left < v->advert && !stays)
			hd__set_advert(v, left);
		again |= stays;
		hd__unlock(&v->lane);
		if (p == NULL)
			continue;
		if (best != NULL)
			hd__runq_push_tail(&w->runq, best);
		best = p;
		level = p->priority;
		bump(&w->stats.steals, 1);
		bump(&w->stats.stolen, 1);
	}
	if (again)
		w->resched |= HD__LOOK_ELSEWHERE;
	return best;
}

unsigned hd__take_half(struct hd_worker *w, struct hd_worker *v, uint64_t ripe)
{
	struct hd_process *chain = NULL, **end = &chain, *p, *next;
	unsigned n = 0, looks = LOOK_MAX;
	bool leave_it = false;

	hd__enter(w); /* so that what is w's is in its queue when the lane can be visited */
	if (!hd__visit(v)) {
		hd__leave(w);
		return 0;
	}
	hd__runq_spill(&v->runq);
	for (int l = v->runq.highest; l >= HD__PRIORITY_MIN && n < HALF_MAX && looks > 0; l--)
		for (p = hd__runq_level(&v->runq, l)->head; p != NULL && p->arrival < ripe && n < HALF_MAX && looks > 0;
		     p = next) {
			next = p->next;
			if (leave_it || !hd__move_home(p, w)) {
				looks -= !leave_it;
				leave_it = false;
				continue;
			}
			hd__runq_remove(&v->runq, p);
			p->next = NULL;
			*end = p;
			end = &p->next;
			leave_it = true;
			n++;
		}
	hd__unvisit(v);
	bump(&w->stats.steals, n > 0);
	bump(&w->stats.stolen, n);
	for (p = chain; p != NULL; p = next) {
		next = p->next;
		hd__runq_push_tail(&w->runq, p);
	}
	hd__leave(w);
	return n;
}
