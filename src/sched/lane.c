/* sched/lane.c - entering other workers' lanes, and taking processes from there.
 *
 * Owns:       w->lane, `home` of processes that are ready; w->lane.advert together with board.c.
 * Invariant:  a process that is READY is in the run queue of its home's lane, or in the hands of the worker that is its home.
 * Callers:    workers; the watcher visits. */
#include "sched/lane.h"

#include "context.h"
#include "os/thread.h"
#include "sched/record.h"

#define YIELDS 50	    /* rounds of so many tries, before a thread that must enter sleeps between two */
#define CALM_MAX (1u << 20) /* entries without a visit after which a lane is biased, at most */
#define ROOM 200	    /* pauses that an owner waits for a visitor */
#define LOOK_MAX 1024	    /* processes that must stay, before a thief gives up */
#define HALF_MAX 256	    /* processes taken at a time */
#define CALLS_MAX 32	    /* between two looks for surplus, among partners that talk */

/* The lane has been visited, or is being: it becomes biased again after a while that grows. */
static void be_calm(struct hd_worker *w)
{
	w->lane.calm = w->lane.calm_after;
}

static void be_calm_for_longer(struct hd_worker *w)
{
	w->lane.calm_after = w->lane.calm_after < CALM_MAX ? 2 * w->lane.calm_after : CALM_MAX;
	be_calm(w);
}

/* w's worker, outside its lane, gives the lock back. Not if a visitor takes it away at this moment. */
static void drop_bias(struct hd_worker *w)
{
	unsigned char asked = HD__BIAS_ASKED;

	if (cas_acq_rel(&w->lane.bias, &asked, HD__BIAS_NOT)) {
		be_calm_for_longer(w);
		hd__unlock(&w->lane.lock);
	}
}

void hd__enter_by_lock(struct hd_worker *w)
{
	for (unsigned i = 1; ld_acq(&w->lane.bias) != HD__BIAS_NOT; i++) {
		drop_bias(w);
		if (i % HD__TRIES != 0)
			hd__arch_pause();
		else if (i < (unsigned)(YIELDS * HD__TRIES)) /* a visitor waits for its barrier, */
			hd__os_thread_yield();
		else /* or for a CPU, which under SCHED_FIFO a yield does not give it */
			hd__os_thread_nap();
	}
	hd__lock(&w->lane.lock);
}

void hd__rest(struct hd_worker *w)
{
	unsigned char biased = HD__BIASED;

	if (ld_rlx(&w->lane.bias) == HD__BIAS_NOT)
		return;
	if (cas_acq_rel(&w->lane.bias, &biased, HD__BIAS_NOT)) /* pairs with hd__visit's */
		be_calm(w);
	else
		hd__enter_by_lock(w); /* a visitor has asked */
	hd__unlock(&w->lane.lock);
}

/* v was asked for its lock, and does not answer. Returns whether the caller is inside, and has the lock. */
static bool revoke(struct hd_worker *v)
{
	unsigned char asked = HD__BIAS_ASKED;

	if (!cas_acq_rel(&v->lane.bias, &asked, HD__BIAS_REVOKING))
		return false;
	/* If there is a barrier, from here on v's worker sees REVOKING when it enters; if it had entered before, `held` is visible. If not,
	 * the worker must answer, and no lane is biased any more. */
	bool fenced = hd__os_barrier();
	if (!fenced)
		st_rlx(&v->sched->calm, 0);
	for (int i = 0; fenced && i < HD__TRIES; i++) {
		if (ld_acq(&v->lane.held) == 0) { /* pairs with hd__leave's release: what the worker did inside is visible */
			be_calm_for_longer(v);
			st_rel(&v->lane.bias, HD__BIAS_NOT); /* pairs with hd__enter_by_lock */
			return true;
		}
		hd__arch_pause();
	}
	st_rel(&v->lane.bias, HD__BIAS_ASKED);
	return false;
}

bool hd__visit(struct hd_worker *v, bool at_any_cost)
{
	bool inside = false;

	if (!v->crowd)
		return false; /* its owner does not lock it */
	for (int i = 0; i < HD__TRIES && !inside; i++) {
		unsigned char free = 0, biased = HD__BIASED;
		inside = ld_rlx(&v->lane.lock) == 0 && cas_acq(&v->lane.lock, &free, 1); /* pairs with hd__leave's release */
		if (!inside && i == 0) {
			st_rlx(&v->lane.wanted, true); /* an owner that enters again and again makes room */
			if (ld_rlx(&v->lane.bias) == HD__BIASED)
				cas_acq_rel(&v->lane.bias, &biased, HD__BIAS_ASKED); /* pairs with hd__enter */
		}
		if (!inside)
			hd__arch_pause();
	}
	if (!inside && at_any_cost && ld_rlx(&v->lane.bias) == HD__BIAS_ASKED)
		inside = revoke(v);
	if (ld_rlx(&v->lane.wanted))
		st_rlx(&v->lane.wanted, false);
	if (inside)
		be_calm(v);
	return inside;
}

bool hd__visit_surely(struct hd_worker *v)
{
	for (int rounds = 0; v->crowd && !hd__visit(v, true); rounds++)
		if (rounds < YIELDS)
			hd__os_thread_yield();
		else
			hd__os_thread_nap();
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
	int level = w->runq.highest > w->lane.advert ? highest_movable(w, w->lane.advert) : 0;

	if (level > w->lane.advert) {
		hd__set_advert(w, level);
		hd__tell_those_below(w, level);
	}
}

void hd__unvisit(struct hd_worker *v)
{
	bool ready = v->runq.highest != 0;

	advertise(v);
	hd__unlock(&v->lane.lock);
	if (ready && hd__is_better_there(v, 0)) /* idle: it looked at its queue before we came, or looks again */
		hd__raise(v, HD__BETTER);
	else if (ready && ld_rlx(&v->sched->board.idlers) != 0)
		hd__wake_searcher(v->sched);
}

/* Whether the turns of w's processes since it last looked took twice as long as waking a worker would, on average: then what waits for
 * one of them waits for long, and wakes cannot take more than half of the time. */
static bool turns_are_long(struct hd_worker *w, uint64_t turn)
{
	struct hd__surplus *s = &w->surplus;
	hd_time before = s->looked, now = hd__clock(w->sched);

	s->looked = now;
	return before != 0 && now - before > (hd_time)(turn - s->turn) * 2 * ld_rlx(&w->sched->wake_cost);
}

/* Something is ready behind the runner, and has been for a few calls: whether a worker should be woken to take it.
 *
 * If partners talk to each other, the runner waits soon, and the other one goes on here: waking a worker for that would tear them apart, and
 * cost a thousand switches. So a worker is woken when there was no switch since w last looked, when turns are long, or when more than one
 * process was ready then and is now. While turns are long it looks at each call. Otherwise, after how many calls it looks again depends on whether the workers that were woken lately have found something
 * (sched->patience); and among partners that talk it looks seldom. For a runner that makes no calls the watcher looks; without one, a
 * worker is woken at once. */
static bool is_surplus(struct hd_worker *w)
{
	struct hd__sched *sched = w->sched;
	struct hd__surplus *s = &w->surplus;
	uint64_t turn = w->stats.switches;
	bool crowded = hd__runq_is_crowded(&w->runq), stays = turn == s->turn;
	bool surplus = stays || (crowded && s->crowded) || !sched->watched;
	unsigned patience = ld_rlx(&sched->patience);
	bool idlers = ld_rlx(&sched->board.idlers) != 0, slow = idlers && !stays && turns_are_long(w, turn);

	s->every = stays || crowded ? 1 : s->every < CALLS_MAX ? 2 * s->every : CALLS_MAX;
	s->calls = !sched->watched || slow ? 1 : patience > s->every ? patience : s->every;
	s->crowded = crowded;
	s->turn = turn;
	return (surplus || slow) && idlers;
}

void hd__leave_slowly(struct hd_worker *w)
{
	struct hd__sched *sched = w->sched;
	struct hd__surplus *s = &w->surplus;
	bool look = w->runq.highest != 0 && (s->calls == 0 || --s->calls == 0); /* 0: hd__leave has counted this call */
	bool wake = look && is_surplus(w);

	advertise(w);
	if (w->lane.held) {
		st_rel(&w->lane.held, 0); /* pairs with revoke's acquire */
		if (ld_rlx(&w->lane.bias) != HD__BIASED)
			drop_bias(w);
	} else if (w->lane.calm == 1 && ld_rlx(&sched->calm) != 0 && !ld_rlx(&w->lane.wanted)) {
		st_rel(&w->lane.bias, HD__BIASED); /* and keeps the lock; pairs with the CASes in hd__visit and revoke */
	} else {
		w->lane.calm = w->lane.calm > 1 ? w->lane.calm - 1 : w->lane.calm_after;
		hd__unlock(&w->lane.lock);
	}
	if (unlikely(wake))
		hd__wake_searcher(sched);
	for (int i = 0; i < ROOM && ld_rlx(&w->lane.wanted); i++)
		hd__arch_pause(); /* a visitor waits outside */
}

bool hd__move_home(struct hd_process *p, struct hd_worker *w)
{
	uint64_t control = ld_acq(&p->control);

	if (!hd__is_movable(p) ||
	    (p->pins > 0 && hd__is_spare(w))) /* one that has yet to run, and is pinned then, had better not be so to a spare */
		return false;
	do
		if (control & HD__NUDGED)
			return false;
	while (!cas_acq_rel(&p->control, &control, control | HD__MOVING)); /* pairs with change_word in life/steer.c */
	hd__trace_event(w, HD__TRACED_MOVE, hd__pid(&w->sched->table, p), 0, ld_rlx(&p->home)->index);
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
		if (!hd__visit(v, true)) {
			again = true;
			continue;
		}
		bool stays = false;
		struct hd_process *p = take_first_above(w, v, level, &stays);
		int left = p != NULL ? p->priority
				     : level; /* nothing above this can be taken there; unless something stays for now */
		if (left < v->lane.advert && !stays)
			hd__set_advert(v, left);
		again |= stays;
		hd__unlock(&v->lane.lock);
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
	if (!hd__visit(v, true)) {
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

unsigned hd__give_away(struct hd_worker *v, struct hd_worker *x, int least, int most)
{
	unsigned n = 0, looks = LOOK_MAX;

	if (!hd__visit(x, true))
		return 0;
	hd__runq_spill(&v->runq);
	for (int l = v->runq.highest < most ? v->runq.highest : most;
	     l >= least && l >= HD__PRIORITY_MIN && n < HALF_MAX && looks > 0; l--) {
		struct hd_process *first = hd__runq_level(&v->runq, l)->head, *next;
		for (struct hd_process *p = first; p != NULL && n < HALF_MAX && looks > 0; p = next) {
			next = p->next;
			if (!hd__move_home(p, x)) {
				looks--;
				continue;
			}
			bool ran = p == first && p->arrival == 0; /* as hd__runq_push_head has it */
			hd__runq_remove(&v->runq, p);
			if (ran)
				hd__runq_push_head(&x->runq, p);
			else
				hd__runq_push_tail(&x->runq, p);
			n++;
		}
	}
	hd__unvisit(x);
	return n;
}
