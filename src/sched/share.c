/* sched/share.c - the ready processes that may run on any worker.
 *
 * Owns:       the shares, the board on which workers tell each other what they run and share, the set of idle workers.
 * Invariant:  a process is in a share exactly while it is READY and `shared`. At every safe point of a worker nobody shares
 *             anything of a higher level than it runs: whoever puts something into a share tells the workers that run less
 *             (after storing board.shared), and whoever comes to run less looks at what is shared (after storing
 *             board.running). All four accesses are sequentially consistent, so one of the two sees the other. The same
 *             holds for sleep: the bit in board.idle is set before the last look.
 * Locking:    one byte for each share; nobody holds two. A wait queue's lock may be held outside it, never inside.
 * Callers:    the worker that is named first; plain threads where it says so. */
#include "sched/share.h"

#include "base/assert.h"
#include "os/lock.h"
#include "sched/state.h"
#include "sched/worker.h"

#define BULK_MAX 256
#define EACH_BYTE UINT64_C(0x0101010101010101)
#define HIGH_BITS UINT64_C(0x8080808080808080)

static uint8_t *byte_of(uint64_t *bytes, unsigned index)
{
	return (uint8_t *)bytes + index;
}

static unsigned words(const struct hd__sched *sched)
{
	return (sched->nworkers + 7) / 8;
}

void hd__board_init(struct hd__board *board)
{
	*board = (struct hd__board){ .searching = false };
	for (unsigned i = 0; i < HD__WORKERS_MAX / 8; i++)
		board->running[i] = HD__NOBODY * EACH_BYTE;
}

/* The worker that runs the lowest level below `level`; NULL when there is none. Idle ones run nothing. */
static struct hd_worker *lowest_below(struct hd__sched *sched, int level, const struct hd_worker *except)
{
	struct hd_worker *lowest = NULL;

	for (unsigned i = 0; i < words(sched); i++) {
		uint64_t word = ld_seq(&sched->board.running[i]);
		if ((((word | HIGH_BITS) - (uint64_t)level * EACH_BYTE) & HIGH_BITS) == HIGH_BITS)
			continue; /* none of these eight */
		for (unsigned j = 8 * i; j < 8 * i + 8 && j < sched->nworkers; j++) {
			int runs = ld_rlx(byte_of(sched->board.running, j));
			if (runs < level && &sched->workers[j] != except) {
				lowest = &sched->workers[j];
				level = runs;
			}
		}
	}
	return lowest;
}

/* Something of this level waits in a share: every worker that runs less is told, for nobody knows which of them comes to a safe
 * point first. */
static void tell_those_below(struct hd__sched *sched, int level, const struct hd_worker *except)
{
	for (unsigned i = 0; i < words(sched); i++) {
		uint64_t word = ld_seq(&sched->board.running[i]);
		if ((((word | HIGH_BITS) - (uint64_t)level * EACH_BYTE) & HIGH_BITS) == HIGH_BITS)
			continue; /* none of these eight */
		for (unsigned j = 8 * i; j < 8 * i + 8 && j < sched->nworkers; j++) {
			struct hd_worker *x = &sched->workers[j];
			if (ld_rlx(byte_of(sched->board.running, j)) < level && x != except &&
			    !(ld_seq(&x->attention) & HD__STEAL))
				hd__raise(x, HD__STEAL);
		}
	}
}

void hd__share_lock(struct hd_worker *w)
{
	hd__lock(&w->share.lock);
}

/* Under the lock: what is first now. Returns whether there was nothing before. */
static bool publish_locked(struct hd_worker *w)
{
	uint64_t first = hd__runq_first(&w->share.queue);
	uint8_t *shared = byte_of(w->sched->board.shared, w->index), level = (uint8_t)hd__rank_level(first);
	uint8_t before = ld_rlx(shared);

	st_rlx(&w->share.first, first);
	if (level != before)
		st_seq(shared, level); /* pairs with the look of whoever comes to run less, or sleeps */
	return before == 0 && level != 0;
}

bool hd__share_unlock(struct hd_worker *w)
{
	bool first = publish_locked(w);

	hd__unlock(&w->share.lock);
	return first;
}

/* Whether p is counted where it is: on a worker, or in a share. Movable ones are `loose`. */
static bool counts_here(const struct hd_process *p)
{
	return !p->daemon && p->roams != HD__MOVABLE;
}

static void link_locked(struct hd_worker *w, struct hd_process *p, bool tail)
{
	st_rlx(&p->shared, (uint16_t)(w->index + 1));
	w->share.length++;
	w->share.counted += counts_here(p);
	if (tail)
		hd__runq_push_tail(&w->share.queue, p);
	else
		hd__runq_push_head(&w->share.queue, p);
}

/* On w: p has a new place among the ready. */
static void push_locked(struct hd_worker *w, struct hd_process *p, bool tail)
{
	p->arrival = tail ? ld_rlx(&w->arrivals) : 0;
	bump(&w->arrivals, tail);
	bump(&w->stats.shared, 1);
	link_locked(w, p, tail);
}

/* p has been taken off the queue of v's share, and is w's. */
static void leave_locked(struct hd_worker *w, struct hd_worker *v, struct hd_process *p)
{
	v->share.length--;
	if (counts_here(p)) {
		v->share.counted--;
		bump(&w->counted, 1);
		st_rel(&w->taken, w->taken + 1); /* pairs with hd__nobody_counts, which sees that it counts here now */
	}
	st_rel(&p->shared, 0); /* pairs with hd__share_hold: who sees this sees its home */
}

/* Whether p may leave v for w, which it does then. A nudge that is on its way goes to its home: so it stays there. */
static bool move_locked(struct hd_worker *w, struct hd_worker *v, struct hd_process *p)
{
	if (v == w)
		return true;
	if (ld_rlx(&w->sched->stopping))
		return false;
	uint64_t control = ld_acq(&p->control);
	do
		if (control & HD__NUDGED)
			return false;
	while (!cas_acq_rel(&p->control, &control, control | HD__MOVING));
	st_rlx(&p->home, w);
	and_acq_rel(&p->control, ~(uint64_t)HD__MOVING); /* whoever nudges it after this sees its new home */
	return true;
}

/* What w shares, and does not run itself at once, must be known to others: to who runs less at once, to who is idle when it has
 * waited for a while. */
static void announce(struct hd__sched *sched, const struct hd_worker *except, int level, bool first)
{
	tell_those_below(sched, level, except);
	if (first && hd__anybody_idle(sched)) {
		if (sched->watched)
			hd__watcher_notice(&sched->watcher);
		else
			hd__wake_one(sched);
	}
}

void hd__share_announce(struct hd_worker *w)
{
	int level = hd__rank_level(ld_rlx(&w->share.first));

	w->unannounced = false;
	if (level > 0)
		announce(w->sched, w, level, true);
}

void hd__share_put(struct hd_worker *w, struct hd_process *p)
{
	hd__share_lock(w);
	push_locked(w, p, true);
	int level = p->priority;
	bool first = hd__share_unlock(w);
	/* p may be somebody else's from here on */
	if (level > w->running_priority) {
		w->resched |= HD__BETTER_READY;
		w->unannounced = true; /* unless it turns out that we do not run it at once: see hd__share_announce */
	} else {
		announce(w->sched, w, level, first);
	}
}

void hd__share_put_leaving(struct hd_worker *w, struct hd_process *me, bool tail)
{
	hd__share_lock(w);
	push_locked(w, me, tail);
	int level = me->priority;
	bool first = publish_locked(w);
	w->release = &w->share.lock;
	announce(w->sched, w, level, first); /* who wants it waits for the lock */
}

/* An idle worker, which is not idle any more to others; NULL when there is none. Whoever claims it must raise its attention. */
static struct hd_worker *claim_idle(struct hd__sched *sched)
{
	for (unsigned i = 0; i * 64 < sched->nworkers; i++) {
		uint64_t bits = ld_seq(&sched->board.idle[i]);
		while (bits != 0) {
			uint64_t bit = bits & -bits;
			bits = and_seq(&sched->board.idle[i], ~bit);
			if (bits & bit)
				return &sched->workers[64 * i + (unsigned)__builtin_ctzll(bit)];
		}
	}
	return NULL;
}

bool hd__wake_one(struct hd__sched *sched)
{
	struct hd_worker *x = claim_idle(sched);

	if (x != NULL)
		hd__raise(x, HD__STEAL);
	return x != NULL;
}

struct hd_worker *hd__some_worker(struct hd__sched *sched)
{
	for (unsigned i = 0; i * 64 < sched->nworkers; i++) {
		uint64_t bits = ld_rlx(&sched->board.idle[i]);
		if (bits != 0)
			return &sched->workers[64 * i + (unsigned)__builtin_ctzll(bits)];
	}
	struct hd_worker *x = lowest_below(sched, HD__NOBODY, NULL);
	return x != NULL ? x : &sched->workers[0];
}

/* After a change that another thread than x made in x's share. */
static void unlock_elsewhere(struct hd_worker *x, int level)
{
	bool first = hd__share_unlock(x);

	if (level == 0)
		return;
	announce(x->sched, NULL, level, first);
	if (ld_seq(byte_of(x->sched->board.running, x->index)) == HD__NOBODY)
		hd__raise(x, HD__STEAL);
}

/* If x counts an arrival of its own at this moment, two may have the same number, or a few change places: so be it. */
static void link_elsewhere_locked(struct hd_worker *x, struct hd_process *p)
{
	p->arrival = add_rlx(&x->arrivals, 1);
	link_locked(x, p, true);
}

struct hd_worker *hd__share_send(struct hd__sched *sched, struct hd_process *p, uint64_t control)
{
	int level = p->priority;
	struct hd_worker *x = claim_idle(sched);
	bool wake = x != NULL;

	if (x == NULL)
		x = lowest_below(sched, level, NULL);
	if (x == NULL)
		x = &sched->workers[add_rlx(&sched->rotor, 1) % sched->nworkers];
	hd__share_lock(x);
	st_rlx(&p->home, x);
	hd__move_locked(x, p, HD_READY);
	link_elsewhere_locked(x, p);
	st_rel(&p->control, control); /* from here on requests by id find it, and wait for the lock */
	unlock_elsewhere(x, level);
	if (wake)
		hd__raise(x, HD__STEAL);
	return x;
}

struct hd_worker *hd__share_hold(struct hd__sched *sched, struct hd_process *p)
{
	for (;;) {
		unsigned shared = ld_acq(&p->shared);
		struct hd_worker *x = shared != 0 ? &sched->workers[shared - 1] : ld_rlx(&p->home);
		hd__share_lock(x);
		if (ld_rlx(&p->shared) == shared) {
			if (shared != 0)
				return x;
			/* in no share: its home is exact under the lock, unless it is in somebody's hands, to run */
			if (ld_rlx(&p->roams) == HD__UNSTARTED && ld_acq(&p->state) == HD_SUSPENDED && ld_rlx(&p->home) == x)
				return x;
			hd__unlock(&x->share.lock);
			return NULL;
		}
		hd__unlock(&x->share.lock); /* it has been moved meanwhile: look again */
	}
}

void hd__share_let_go(struct hd_worker *home, struct hd_process *p)
{
	unlock_elsewhere(home, p->shared ? p->priority : 0);
}

void hd__share_held_priority(struct hd_worker *home, struct hd_process *p, int priority)
{
	if (priority == p->priority)
		return;
	if (p->shared)
		hd__runq_remove(&home->share.queue, p);
	st_rlx(&p->priority, (uint8_t)priority);
	if (p->shared) {
		p->arrival = add_rlx(&home->arrivals, 1);
		hd__runq_push_tail(&home->share.queue, p);
	}
}

void hd__share_held_suspend(struct hd_worker *home, struct hd_process *p)
{
	if (!p->shared)
		return;
	hd__runq_remove(&home->share.queue, p);
	home->share.length--;
	if (counts_here(p)) {
		add_acq_rel(&home->sched->shifts, 1);
		add_acq_rel(&home->sched->loose, 1);
		home->share.counted--;
	}
	st_rlx(&p->shared, 0);
	hd__move_locked(home, p, HD_SUSPENDED);
}

void hd__share_held_resume(struct hd_worker *home, struct hd_process *p)
{
	if (p->shared)
		return;
	hd__move_locked(home, p, HD_READY);
	link_elsewhere_locked(home, p);
	if (counts_here(p))
		add_acq_rel(&home->sched->loose, -1);
}

void hd__share_drop(struct hd_worker *w, struct hd_process *p)
{
	hd__share_lock(w);
	if (p->shared) {
		hd__runq_remove(&w->share.queue, p);
		leave_locked(w, w, p);
	} else if (p->state == HD_READY) {
		hd__runq_remove(&w->runq, p);
	} else if (p->roams == HD__UNSTARTED && counts_here(p)) { /* suspended before its start */
		bump(&w->counted, 1);
		st_rel(&w->taken, w->taken + 1);
		add_acq_rel(&w->sched->loose, -1);
	}
	hd__pin(p); /* nobody can hold it any more */
	hd__share_unlock(w);
}

struct hd_process *hd__share_take(struct hd_worker *w, uint64_t least)
{
	struct hd_process *p = NULL;

	hd__share_lock(w);
	uint64_t first = hd__runq_first(&w->share.queue);
	if (first != 0 && first >= least) {
		p = hd__runq_take(&w->share.queue);
		leave_locked(w, w, p);
	}
	hd__share_unlock(w);
	return p;
}

bool hd__share_take_this(struct hd_worker *w, struct hd_process *p)
{
	unsigned shared = ld_rlx(&p->shared);
	bool taken = false;

	if (shared == 0)
		return false;
	struct hd_worker *v = &w->sched->workers[shared - 1];
	hd__share_lock(v);
	if (ld_rlx(&p->shared) == shared && p->switches == 0 && move_locked(w, v, p)) {
		hd__runq_remove(&v->share.queue, p);
		leave_locked(w, v, p);
		taken = true;
	}
	hd__share_unlock(v);
	return taken;
}

bool hd__share_adopt(struct hd_worker *w, struct hd_process *p)
{
	struct hd_worker *v = ld_rlx(&p->home);

	hd__share_lock(v);
	bool may = move_locked(w, v, p);
	hd__unlock(&v->share.lock);
	return may;
}

/* Whether the first of v's share may be taken by a worker that runs `level`: strictly more; for an idle one, what has waited. */
static bool may_take(struct hd_worker *v, uint64_t first, int level)
{
	if (level > 0)
		return hd__rank_level(first) > level;
	return first != 0 && (!v->sched->watched || hd__rank_arrival(first) <= ld_rlx(&v->share.ripe));
}

/* Takes the first of v's share, if w may have it. */
static struct hd_process *take_locked(struct hd_worker *w, struct hd_worker *v, int level)
{
	struct hd__runq *q = &v->share.queue;

	if (!may_take(v, hd__runq_first(q), level))
		return NULL;
	struct hd_process *p = q->only != NULL ? q->only : hd__runq_level(q, q->highest)->head;
	if (!move_locked(w, v, p))
		return NULL;
	hd__runq_take(q);
	leave_locked(w, v, p);
	bump(&w->stats.stolen, 1);
	return p;
}

static struct hd_process *steal_one_from(struct hd_worker *w, struct hd_worker *v, int level)
{
	hd__share_lock(v);
	struct hd_process *p = take_locked(w, v, level);
	hd__share_unlock(v);
	return p;
}

/* Moves up to half of v's share to w's. */
static bool steal_ripe_from(struct hd_worker *w, struct hd_worker *v)
{
	struct hd_process *chain = NULL, **end = &chain, *p;
	unsigned n = 0;

	hd__share_lock(v);
	unsigned most = v->share.length < 2 * BULK_MAX ? (v->share.length + 1) / 2 : BULK_MAX;
	while (n < most && (p = take_locked(w, v, 0)) != NULL) {
		p->next = NULL;
		*end = p;
		end = &p->next;
		n++;
	}
	hd__share_unlock(v);
	if (n == 0)
		return false;
	hd__share_lock(w);
	while ((p = chain) != NULL) {
		chain = p->next;
		push_locked(w, p, true);
		bump(&w->counted, -(uint64_t)counts_here(p)); /* it was ours for a moment */
	}
	st_rlx(&w->share.ripe, ld_rlx(&w->arrivals) - 1);
	hd__share_unlock(w);
	/* While they were in our hands they could not be seen: an idle worker may have gone to sleep for that, and a busy one may
	 * have come to run less. */
	w->unannounced = true;
	if (n > 1 || ld_seq(byte_of(w->sched->board.shared, v->index)) > 0)
		hd__wake_one(w->sched);
	return true;
}

/* Whose share has the best that w may take; NULL when nobody's. */
static struct hd_worker *best_share(struct hd_worker *w, int level)
{
	struct hd__sched *sched = w->sched;
	struct hd_worker *best = NULL;
	int most = level;

	for (unsigned i = 0; i < words(sched); i++) {
		uint64_t word = ld_seq(&sched->board.shared[i]);
		if (((word + (uint64_t)(HD__NOBODY - most) * EACH_BYTE) & HIGH_BITS) == 0)
			continue; /* none of these eight is above that */
		for (unsigned j = 8 * i; j < 8 * i + 8 && j < sched->nworkers; j++) {
			struct hd_worker *v = &sched->workers[j];
			int has = ld_seq(byte_of(sched->board.shared, j));
			if (has > most && v != w && may_take(v, ld_rlx(&v->share.first), level)) {
				best = v;
				most = has;
			}
		}
	}
	return best;
}

bool hd__share_elsewhere(struct hd_worker *w, int level)
{
	return w->sched->nworkers > 1 && best_share(w, level) != NULL;
}

struct hd_process *hd__share_steal(struct hd_worker *w, int level)
{
	struct hd_worker *v;

	for (unsigned tries = 1; tries < w->sched->nworkers && (v = best_share(w, level)) != NULL; tries++) {
		struct hd_process *p = steal_one_from(w, v, level);
		if (p != NULL) {
			bump(&w->stats.steals, 1);
			return p;
		}
	}
	/* Others were faster each time, or a request is on its way to the first: not for ever, but at the next safe point. */
	if (best_share(w, level) != NULL)
		w->resched |= HD__STEAL_DUE;
	return NULL;
}

bool hd__share_steal_ripe(struct hd_worker *w)
{
	struct hd_worker *v;

	for (unsigned tries = 1; tries < w->sched->nworkers && (v = best_share(w, 0)) != NULL; tries++)
		if (steal_ripe_from(w, v)) {
			bump(&w->stats.steals, 1);
			return true;
		}
	return false;
}

bool hd__set_level(struct hd_worker *w, int level)
{
	bool less = level < w->running_priority || w->running_priority == 0;

	w->running_priority = level;
	if (w->sched->nworkers == 1)
		return false;
	st_seq(byte_of(w->sched->board.running, w->index),
	       (uint8_t)(level > 0 ? level : HD__NOBODY)); /* pairs with tell_those_below */
	return less && level > 0 && best_share(w, level) != NULL;
}

bool hd__shares(struct hd_worker *w)
{
	return ld_seq(byte_of(w->sched->board.shared, w->index)) != 0;
}

void hd__set_idle(struct hd_worker *w, bool idle)
{
	uint64_t *word = &w->sched->board.idle[w->index / 64], bit = UINT64_C(1) << (w->index % 64);

	if (idle)
		or_seq(word, bit); /* pairs with claim_idle: whoever has something for us sees this, or we see that */
	else if (ld_rlx(word) & bit)
		and_seq(word, ~bit);
}

bool hd__all_idle(struct hd__sched *sched)
{
	unsigned n = 0;

	for (unsigned i = 0; i * 64 < sched->nworkers; i++)
		n += (unsigned)__builtin_popcountll(ld_seq(&sched->board.idle[i]));
	return n == sched->nworkers;
}

bool hd__anybody_shares(struct hd__sched *sched)
{
	uint64_t any = 0;

	for (unsigned i = 0; i < words(sched); i++)
		any |= ld_seq(&sched->board.shared[i]);
	return any != 0;
}

bool hd__anybody_idle(struct hd__sched *sched)
{
	uint64_t any = 0;

	for (unsigned i = 0; i * 64 < sched->nworkers; i++)
		any |= ld_seq(&sched->board.idle[i]);
	return any != 0;
}

/* A process counts in one of three places: on its worker, in a share, or `loose`. It comes into a share before it is gone from
 * where it was, and out of a share only with `taken` or `shifts` raised; so a sum of nothing over workers first and shares
 * last, with these the same before and after, is true. */
bool hd__nobody_counts(struct hd__sched *sched)
{
	uint64_t taken_before = ld_acq(&sched->shifts), taken_after, counted;

	counted = (uint64_t)add_seq(
		&sched->loose, 0); /* of two workers whose last processes end at once, the second one here sees both ends */
	for (unsigned i = 0; i < sched->nworkers; i++)
		taken_before += ld_acq(&sched->workers[i].taken);
	for (unsigned i = 0; i < sched->nworkers; i++)
		counted += ld_acq(&sched->workers[i].counted);
	counted += (uint64_t)ld_acq(&sched->loose);
	for (unsigned i = 0; i < sched->nworkers; i++) {
		hd__share_lock(&sched->workers[i]);
		counted += sched->workers[i].share.counted;
		hd__unlock(&sched->workers[i].share.lock);
	}
	taken_after = ld_acq(&sched->shifts);
	for (unsigned i = 0; i < sched->nworkers; i++)
		taken_after += ld_acq(&sched->workers[i].taken);
	return counted == 0 && taken_before == taken_after;
}
