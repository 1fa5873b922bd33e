/* sched/board.c - what workers tell each other without entering each other's lanes.
 *
 * Owns:       the board: levels that run, adverts, the set of idle workers.
 * Invariant:  outside its lane a worker's advert is at least the highest level in its run queue that may move. So a worker that comes to run less than
 *             before finds everything better that is ready elsewhere: it stores its own level, then reads the adverts; a worker that
 *             raises its advert stores it, then reads the levels. All four accesses are sequentially consistent: one of the two sees
 *             the other. Below an advert that is high enough a worker enqueues without telling the others: either no other worker has
 *             come to run less since it was raised, or that one is about to visit the lane, and finds what was enqueued, or lowers
 *             the advert. Idle bits: the bit is set before the last look, and cleared by the worker that claims the sleeper.
 * Callers:    workers; hd__some_worker and hd__claim_idle: any thread. */
#include "sched/board.h"

#include "base/atomic.h"
#include "sched/worker.h"

#define EACH_BYTE UINT64_C(0x0101010101010101)
#define HIGH_BITS UINT64_C(0x8080808080808080)

static uint8_t *byte_of(uint64_t *bytes, unsigned index)
{
	return (uint8_t *)bytes + index;
}

static unsigned words(const struct hd__sched *sched)
{
	return (hd__workers(sched) + 7) / 8;
}

void hd__board_init(struct hd__board *board)
{
	*board = (struct hd__board){ .searching = false };
	for (unsigned i = 0; i < HD__WORKERS_MAX / 8; i++)
		board->running[i] = HD__NOBODY * EACH_BYTE;
}

/* Whether a byte of `word` is below `level`. */
static bool any_below(uint64_t word, int level)
{
	return (((word | HIGH_BITS) - (uint64_t)level * EACH_BYTE) & HIGH_BITS) != HIGH_BITS;
}

/* Whether a byte of `word` is above `level`. */
static bool any_above(uint64_t word, int level)
{
	return ((word + (uint64_t)(127 - level) * EACH_BYTE) & HIGH_BITS) != 0;
}

bool hd__set_level(struct hd_worker *w, int level)
{
	bool less = level < w->running_priority || w->running_priority == 0;

	st_rlx(&w->running_priority, level);
	if (!w->crowd)
		return false;
	st_seq(byte_of(w->sched->board.running, w->index),
	       (uint8_t)(level > 0 ? level : HD__NOBODY)); /* pairs with hd__tell_those_below */
	return less && level > 0 && hd__next_advert(w, NULL, level) != NULL;
}

void hd__set_advert(struct hd_worker *w, int level)
{
	w->lane.advert = level;
	st_seq(byte_of(w->sched->board.adverts, w->index), (uint8_t)level); /* pairs with hd__set_level */
}

void hd__tell_those_below(struct hd_worker *w, int level)
{
	struct hd__sched *sched = w->sched;

	for (unsigned i = 0; i < words(sched); i++) {
		if (!any_below(ld_seq(&sched->board.running[i]), level))
			continue;
		for (unsigned j = 8 * i; j < 8 * i + 8 && j < hd__workers(sched); j++) {
			struct hd_worker *x = &sched->workers[j];
			if (ld_rlx(byte_of(sched->board.running, j)) < level && x != w && !(ld_seq(&x->attention) & HD__BETTER))
				hd__raise(x, HD__BETTER);
		}
	}
}

struct hd_worker *hd__next_advert(struct hd_worker *w, struct hd_worker *v, int level)
{
	struct hd__sched *sched = w->sched;
	unsigned from = v != NULL ? v->index + 1 : 0;

	for (unsigned i = from / 8; i < words(sched); i++) {
		if (!any_above(ld_seq(&sched->board.adverts[i]), level))
			continue;
		for (unsigned j = 8 * i > from ? 8 * i : from; j < 8 * i + 8 && j < hd__workers(sched); j++)
			if (j != w->index && ld_rlx(byte_of(sched->board.adverts, j)) > level)
				return &sched->workers[j];
	}
	return NULL;
}

void hd__set_idle(struct hd_worker *w, bool idle)
{
	struct hd__board *board = &w->sched->board;
	uint64_t *word = &board->idle[w->index / 64], bit = UINT64_C(1) << (w->index % 64);

	if (idle ? !(or_seq(word, bit) & bit) : (ld_rlx(word) & bit) != 0 && (and_seq(word, ~bit) & bit) != 0)
		add_rlx(&board->idlers, idle ? 1u : -1u);
}

bool hd__all_idle(struct hd__sched *sched)
{
	unsigned n = 0;

	for (unsigned i = 0; i * 64 < hd__workers(sched); i++)
		for (uint64_t bits = ld_seq(&sched->board.idle[i]) | ld_seq(&sched->board.resting[i]); bits != 0;
		     bits &= bits - 1) /* no popcount: it may be a function of the compiler's */
			n++;
	return n == hd__workers(sched);
}

static uint64_t bit_of(const struct hd_worker *w)
{
	return UINT64_C(1) << (w->index % 64);
}

void hd__set_resting(struct hd_worker *w)
{
	or_seq(&w->sched->board.resting[w->index / 64], bit_of(w)); /* pairs with hd__claim_resting */
}

bool hd__rests(const struct hd_worker *w)
{
	return (ld_seq(&w->sched->board.resting[w->index / 64]) & bit_of(w)) != 0;
}

bool hd__claim_resting(struct hd_worker *w)
{
	return (and_seq(&w->sched->board.resting[w->index / 64], ~bit_of(w)) & bit_of(w)) != 0;
}

bool hd__end_resting(struct hd_worker *w)
{
	return hd__claim_resting(w);
}

void hd__set_away(struct hd_worker *w)
{
	or_seq(&w->sched->board.away[w->index / 64], bit_of(w)); /* pairs with hd__end_away */
}

bool hd__end_away(struct hd_worker *w)
{
	uint64_t *word = &w->sched->board.away[w->index / 64];

	return (ld_seq(word) & bit_of(w)) != 0 && (and_seq(word, ~bit_of(w)) & bit_of(w)) != 0;
}

bool hd__is_away(const struct hd_worker *w)
{
	return (ld_seq(&w->sched->board.away[w->index / 64]) & bit_of(w)) != 0;
}

struct hd_worker *hd__claim_idle(struct hd__sched *sched)
{
	for (unsigned i = 0; i * 64 < hd__workers(sched); i++) {
		uint64_t bits = ld_seq(&sched->board.idle[i]);
		while (bits != 0) {
			uint64_t bit = bits & -bits;
			bits = and_seq(&sched->board.idle[i], ~bit);
			if (bits & bit) {
				add_rlx(&sched->board.idlers, -1u);
				return &sched->workers[64 * i + (unsigned)__builtin_ctzll(bit)];
			}
		}
	}
	return NULL;
}

void hd__wake_searcher(struct hd__sched *sched)
{
	if (ld_rlx(&sched->board.searching) || xchg_acq(&sched->board.searching, true))
		return;
	struct hd_worker *x = hd__claim_idle(sched);
	if (x != NULL)
		hd__raise(x, HD__SEARCH); /* which clears board.searching when it has looked */
	else
		st_rel(&sched->board.searching, false);
}

struct hd_worker *hd__some_worker(struct hd__sched *sched)
{
	struct hd_worker *lowest = &sched->workers[0];
	int level = HD__NOBODY + 1;

	for (unsigned i = 0; i * 64 < hd__workers(sched); i++) {
		uint64_t bits = ld_rlx(&sched->board.idle[i]);
		if (bits != 0)
			return &sched->workers[64 * i + (unsigned)__builtin_ctzll(bits)];
	}
	for (unsigned j = 0; j < hd__workers(sched); j++) {
		struct hd_worker *x = &sched->workers[j];
		int running = ld_rlx(byte_of(sched->board.running, j));
		if (running < level && ld_rlx(&x->floor) == 0 && !hd__is_away(x)) {
			lowest = x;
			level = running;
		}
	}
	return lowest;
}

bool hd__is_better_there(struct hd_worker *w, int level)
{
	int running = ld_rlx(byte_of(w->sched->board.running, w->index));
	return running < level || running == HD__NOBODY;
}
