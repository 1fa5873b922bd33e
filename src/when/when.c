/* when/when.c - behaviours: made with a ticket for each of their cowns, run when all tickets have them.
 *
 * Owns:       struct hd__behaviour.
 * Invariant:  a behaviour is a process from the moment it is made, a guest that waits (life/guest.c) until `awaits` is 0. Its memory is one piece, which is
 *             never moved; it is given back when the behaviour has left all its lines, however it ended.
 * Locking:    none: b->awaits counts down, and the thread that brings it to 0 makes the process ready. The call that makes it counts as one more, until all
 *             tickets are in their lines: so it does not run, and is not gone, before.
 * Callers:    any thread; the behaviour itself, at its end.
 *
 *   hd_when: memory --> block --> born, WAITING --> joins its lines --> placed
 *                                                                        |
 *                              awaits == 0: READY --> a turn of a machine: fn(arg, data) --> leaves its lines --> gone
 *                                                                        |
 *                              never will run, for the runtime is over: forsaken; leaves its lines when awaits == 0 */
#include <errno.h>
#include <heddle/machine.h>
#include <stdlib.h>
#include <heddle/cancel.h>

#include "base/assert.h"
#include "life/guest.h"
#include "os/memory.h"
#include "port/port.h"
#include "sync/sync.h"
#include "when/when.h"

#define SPARE_SIZE(i) (size_t)(128 << (i))
#define SPARES_MAX 256 /* of one size, in a worker's store */
#define SORT_MAX 16    /* tickets that are sorted by insertion */

static inline void **data_of(struct hd__behaviour *b)
{
	return (void **)&b->tickets[b->n];
}

/* ---- memory ---- */

__attribute__((noinline)) static struct hd__behaviour *new_memory(size_t size, unsigned i)
{
	struct hd__behaviour *b = hd__os_alloc(i < HD__SPARE_SIZES ? SPARE_SIZE(i) : size);

	if (b != NULL)
		b->size = (uint8_t)i;
	return b;
}

/* By the thread of w; NULL: a plain thread. */
static inline struct hd__behaviour *take_memory(struct hd_worker *w, size_t size)
{
	unsigned i = 0;

	while (i < HD__SPARE_SIZES && size > SPARE_SIZE(i))
		i++;
	struct hd__behaviour *b = likely(w != NULL && i < HD__SPARE_SIZES) ? w->spares.first[i] : NULL;
	if (unlikely(b == NULL))
		return new_memory(size, i);
	w->spares.first[i] = b->next;
	w->spares.count[i]--;
	return b;
}

static inline void give_memory_back(struct hd_worker *w, struct hd__behaviour *b)
{
	unsigned i = b->size;

	if (unlikely(w == NULL || i == HD__SPARE_SIZES || w->spares.count[i] >= SPARES_MAX)) {
		hd__os_free(b);
		return;
	}
	b->next = w->spares.first[i];
	w->spares.first[i] = b;
	w->spares.count[i]++;
}

void hd__spares_fini(struct hd__spares *spares)
{
	for (unsigned i = 0; i < HD__SPARE_SIZES; i++)
		while (spares->first[i] != NULL) {
			struct hd__behaviour *b = spares->first[i];
			spares->first[i] = b->next;
			hd__os_free(b);
		}
}

/* ---- the end ---- */

/* The behaviour did not return: what it was writing may be half done. */
static void mark_failed(struct hd__behaviour *b)
{
	for (uint32_t i = 0; i < b->distinct; i++)
		if (b->tickets[i].use != NULL && !hd__ticket_reads(&b->tickets[i]))
			st_rlx(&hd__cown_of(&b->tickets[i])->failed, true); /* the line publishes it */
}

/* b, which has all its cowns, gives those up that it still has. Inside the lane of w, or on a plain thread. */
static inline void leave_lines(struct hd_worker *w, struct hd__behaviour *b, struct hd__aftermath *after)
{
	for (uint32_t i = 0; i < b->distinct; i++)
		if (likely(b->tickets[i].use != NULL)) {
			hd__publish(hd__cown_of(&b->tickets[i]));
			hd__line_leave(w, &b->tickets[i], after);
		}
}

/* Forsaken behaviours leave their lines, and let others have their cowns that are forsaken too; a plain thread is the only caller: the runtime
 * is over. */
void hd__settle(struct hd__aftermath *after)
{
	while (after->forsaken != NULL) {
		struct hd__behaviour *b = after->forsaken;
		after->forsaken = b->next;
		if (b->drop != NULL)
			b->drop(b->arg);
		leave_lines(NULL, b, after);
		hd__cowns_drop(after->dead);
		after->dead = NULL;
		hd__behaviour_is_over(b->process->home->sched, NULL); /* its block is there as long as the runtime */
		give_memory_back(NULL, b);
	}
	hd__cowns_drop(after->dead);
}

/* The runtime is over, and the process of b is gone: b will not run. */
static void forsake(struct hd__behaviour *b)
{
	struct hd__aftermath after = { .dead = NULL };

	if ((or_acq_rel(&b->awaits, HD__FORSAKEN) & ~HD__FORSAKEN) == 0) { /* pairs with hd__behaviour_got */
		b->next = NULL;
		after.forsaken = b;
		hd__settle(&after);
	}
}

/* The behaviour is over, and has left its lines. */
static inline struct hd_worker *count_over(struct hd_worker *w, struct hd__aftermath *after)
{
	if (unlikely(after->dead != NULL)) {
		hd__leave(w);
		hd__cowns_drop(after->dead);
		hd__enter(w = hd__self());
	}
	hd__behaviour_is_over(w->sched, w); /* last: hd_quiesce waits for all of this */
	return w;
}

/* Called when the behaviour ends in any other way than by returning: a machine's drop. */
static void end(void *self)
{
	struct hd__behaviour *b = self;
	struct hd__aftermath after = { .dead = NULL };
	struct hd_worker *w = hd__self();

	if (w == NULL) {
		forsake(b);
		return;
	}
	if (w->current->end_kind != HD_END_RETURNED && b->began)
		mark_failed(b);
	if (b->drop != NULL)
		b->drop(b->arg);
	hd__enter(w = hd__self());
	leave_lines(w, b, &after);
	w = count_over(w, &after);
	w->current->value = NULL; /* for hd__behaviour_boost and hd__quiet_look */
	hd__leave(w);
	give_memory_back(hd__self(), b);
}

/* ---- the turn ---- */

static struct hd_interrupt never_called(void *self, uint64_t budget)
{
	(void)self, (void)budget;
	return hd_want_end(NULL, EINVAL);
}

/* So that what knows machines knows behaviours: hd__behave takes the place of interpret. */
static const struct hd_machine_ops behaviour_ops = { .interpret = never_called, .drop = end };

static void learn_all(struct hd__behaviour *b)
{
	for (uint32_t i = 0; i < b->distinct; i++)
		hd__learn(hd__cown_of(&b->tickets[i]));
}

struct hd_worker *hd__behave(struct hd_process *me, struct hd_process **next)
{
	struct hd__behaviour *b = me->value;
	struct hd__aftermath after = { .dead = NULL };
	struct hd_cleanup last = { end, b, NULL };
	void *result = NULL;

	me->inner->cleanups = &last; /* however it ends */
	if (unlikely(ld_rlx(&me->control) & HD__DOOMED))
		hd__end(me, HD_END_KILLED, NULL, 0);
	if (unlikely(hd__tells))
		learn_all(b);
	b->began = true;
	if (likely(!b->answers))
		b->fn(b->arg, data_of(b));
	else
		result = b->maker(b->arg, data_of(b));
	struct hd_worker *w = hd__self();
	if (unlikely(w == NULL))
		exit(0); /* a forked child came back: as with threads, its last one has ended */
	HD_ASSERT(me->inner->cleanups == &last, "a behaviour returned without hd_cleanup_pop of what it had pushed");
	HD_ASSERT(me->inner->groups == NULL, "a behaviour returned without hd_group_wait of a group that it had opened");
	if (unlikely(b->drop != NULL)) {
		b->drop(b->arg);
		w = hd__self();
	}
	me->inner->cleanups = NULL;
	hd__enter(w);
	leave_lines(w, b, &after);
	w = count_over(w, &after);
	me->value = NULL; /* for hd__behaviour_boost and hd__quiet_look */
	give_memory_back(w, b);
	return hd__end_inside(w, me, result, next);
}

/* The process of b may run. */
__attribute__((always_inline)) static inline void make_ready(struct hd_worker *w, struct hd_process *p)
{
	if (likely(hd__decide_bare(w, p, HD__GRANTED))) /* unless the runtime is over, and has ended its wait */
		hd__unpark_bare(w, p);
}

/* As make_ready; while it waited, the counts of its cowns have changed (urgency.c). */
__attribute__((noinline)) static void make_ready_and_boost(struct hd_worker *w, struct hd_process *p)
{
	struct hd__sched *sched = ld_rlx(&p->home)->sched;
	hd_pid pid = hd__pid(&sched->table, p);

	make_ready(w, p);
	hd__ask_reboost(sched, pid);
}

void hd__behaviour_got(struct hd_worker *w, struct hd__behaviour *b, unsigned tickets, struct hd__aftermath *after)
{
	struct hd_process *p = b->process;
	uint32_t left;

	/* A worker that finds nothing else awaited is alone: what is forsaken is so when no worker runs any more. Otherwise the thread releases what it knows of the
	 * cown, and the one that comes to 0 acquires it from all the others. */
	if (likely(w != NULL && ld_acq(&b->awaits) == tickets)) {
		st_rlx(&b->awaits, 0);
		left = 0;
	} else {
		left = add_acq_rel(&b->awaits, -tickets) - tickets;
	}
	if (left == 0) {
		if (unlikely(ld_rlx(&b->mixed)))
			make_ready_and_boost(w, p);
		else
			make_ready(w, p);
	} else if (unlikely(left == HD__FORSAKEN)) {
		b->next = after->forsaken;
		after->forsaken = b;
	}
}

/* ---- making one ---- */

static int compare_ids(const void *x, const void *y)
{
	uint64_t a = hd__cown_of(x)->id, b = hd__cown_of(y)->id;

	return (a > b) - (a < b);
}

/* By the ids of their cowns. */
static void sort_tickets(struct hd__ticket *t, size_t n)
{
	if (n > SORT_MAX) {
		qsort(t, n, sizeof *t, compare_ids);
		return;
	}
	for (size_t i = 1; i < n; i++)
		for (size_t j = i; j > 0 && compare_ids(&t[j - 1], &t[j]) > 0; j--) {
			struct hd__ticket x = t[j];
			t[j] = t[j - 1];
			t[j - 1] = x;
		}
}

/* A cown that is named twice has one ticket: a writer's, if it is written once. Returns how many are left. */
static uint32_t sort_and_merge(struct hd__ticket *t, size_t n)
{
	size_t kept = 1;

	sort_tickets(t, n);
	for (size_t i = 1; i < n; i++)
		if (hd__cown_of(&t[i]) != hd__cown_of(&t[kept - 1]))
			t[kept++] = t[i];
		else if (!hd__ticket_reads(&t[i]))
			t[kept - 1].use = t[i].use;
	return (uint32_t)kept;
}

static inline int check(const struct hd__making *m)
{
	const struct hd_when *how = &m->how;

	if ((how->fn == NULL && m->maker == NULL) || (how->uses == NULL && how->n > 0) || (how->arg == NULL && how->size > 0))
		return -EINVAL;
	if (how->priority != 0 && (how->priority < HD__PRIORITY_MIN || how->priority > HD__PRIORITY_MAX))
		return -EINVAL;
	for (size_t i = 0; i < how->n; i++)
		if (((uintptr_t)how->uses[i] & ~HD__READS) == 0)
			return -EINVAL;
	return 0;
}

/* Inlined where much of *m is constant, so that nothing is left of what is not asked for. */
__attribute__((always_inline)) static inline struct hd__behaviour *new_behaviour(const struct hd__making *m)
{
	const size_t each = sizeof(struct hd__ticket) + sizeof(void *), align = _Alignof(max_align_t);
	const struct hd_when *how = &m->how;

	if (how->n > UINT32_MAX / 2 || how->size > SIZE_MAX / 2)
		return NULL;
	size_t copied = sizeof(struct hd__behaviour) + how->n * each;
	if (how->size > 0)
		copied = (copied + align - 1) & ~(align - 1);
	struct hd_worker *w = hd__self();
	struct hd__behaviour *b = take_memory(w, copied + how->size);
	if (unlikely(b == NULL))
		return NULL;
	int level = how->priority != 0 ? how->priority
		    : w != NULL	       ? HD__CONTROL_PRIORITY(ld_rlx(&w->current->control))
				       : HD_PRIORITY_USER;
	b->n = (uint32_t)how->n;
	b->began = b->mixed = false;
	b->level = (uint8_t)level;
	b->answers = m->maker != NULL;
	if (likely(m->maker == NULL))
		b->fn = how->fn;
	else
		b->maker = m->maker;
	b->arg = how->arg;
	b->drop = how->drop;
	if (how->size > 0)
		hd__copy(b->arg = (char *)b + copied, how->arg, how->size);
	for (uint32_t i = 0; i < b->n; i++) {
		hd_cown *c = (hd_cown *)((uintptr_t)how->uses[i] & ~HD__READS);
		b->tickets[i].use = how->uses[i];
		b->tickets[i].behaviour = b;
		hd__cown_look(c);
		data_of(b)[i] = c->data;
		if (unlikely(ld_rlx(&c->level) != level) && !hd__cown_mix(c, level)) {
			give_memory_back(w, b);
			return NULL;
		}
	}
	b->distinct = likely(b->n < 2) ? b->n : sort_and_merge(b->tickets, b->n);
	return b;
}

int hd__behaviour_check(const struct hd__making *m)
{
	return check(m);
}

struct hd__behaviour *hd__behaviour_new(const struct hd__making *m)
{
	return new_behaviour(m);
}

void hd__behaviour_unmake(struct hd__behaviour *b)
{
	if (b != NULL)
		give_memory_back(hd__self(), b); /* nothing is dropped: it is still the caller's */
}

/* b counts, and is about to be a process. */
static inline void prepare(struct hd__caller caller, struct hd__behaviour *b, struct hd_process *p)
{
	b->process = p;
	b->awaits = b->distinct + 1;
	hd__behaviour_counts(caller.sched, caller.w);
}

__attribute__((always_inline)) static inline void bear(struct hd__caller caller, struct hd__behaviour *b,
						       const struct hd__making *m, enum hd_wait why)
{
	hd__guest_born(caller, b->process,
		       &(struct hd__guest){ .nature = HD__MACHINE | HD__BEHAVIOUR,
					    .ops = &behaviour_ops,
					    .self = b,
					    .priority = b->level,
					    .why = why,
					    .mourner = m->mourner });
}

void hd__behaviour_bear(struct hd__caller caller, struct hd__behaviour *b, struct hd_process *p, const struct hd__making *m)
{
	prepare(caller, b, p);
	bear(caller, b, m, HD_WAIT_COWN);
}

/* A ticket joins its line. Whether it has the cown. */
static inline bool join(struct hd__caller caller, struct hd__ticket *t, bool all, struct hd__aftermath *after)
{
	hd_cown *c = hd__cown_of(t);
	bool mixed = unlikely(ld_rlx(&c->urgency) != NULL);

	if (mixed)
		hd__ticket_counts(t);
	bool has = hd__line_join(caller.w, t, t, all, after); /* if not, and it is the only ticket, the behaviour may be over */
	if (mixed && !has)
		hd__cown_urge(caller.sched, c);
	return has;
}

/* b is a process, and joins its lines. The block is there. If it has all its cowns at once, no other thread knows of it, and it is born ready. */
__attribute__((always_inline)) static inline void begin(struct hd__caller caller, struct hd__behaviour *b, struct hd_process *p,
							const struct hd__making *m, struct hd__aftermath *after)
{
	unsigned got = 1, n = b->distinct;

	prepare(caller, b, p);
	if (likely(n == 1) && ld_rlx(&hd__cown_of(&b->tickets[0])->last) !=
				      NULL) { /* it will have to wait, most likely: then it does not await the call */
		b->awaits = 1;
		bear(caller, b, m, HD_WAIT_COWN);
		if (unlikely(join(caller, &b->tickets[0], true, after)))
			hd__behaviour_got(caller.w, b, 1, after);
		return;
	}
	for (unsigned i = 0; i < n; i++)
		got += join(caller, &b->tickets[i], i == n - 1, after);
	for (unsigned i = 0; i + 1 < n; i++)
		hd__line_placed(&b->tickets[i]);
	if (likely(got == n + 1 && caller.w != NULL)) {
		st_rlx(&b->awaits, 0);
		bear(caller, b, m, HD_WAIT_NONE);
		if (unlikely(b->mixed))
			hd__ask_reboost(caller.sched, hd__pid(&caller.sched->table, p));
		return;
	}
	bear(caller, b, m, HD_WAIT_COWN);
	hd__behaviour_got(caller.w, b, got, after);
}

__attribute__((always_inline)) static inline int make(const struct hd__making *m, hd_pid *pid)
{
	struct hd__aftermath after = { .dead = NULL };
	int err = check(m);

	if (unlikely(err != 0))
		return err;
	struct hd__behaviour *b = new_behaviour(m);
	if (unlikely(b == NULL))
		return -ENOMEM;
	struct hd__caller caller = hd__call_begin();
	struct hd_process *p = NULL;
	err = -ENXIO;
	if (likely(caller.sched != NULL))
		p = hd__guest_take(caller, &err);
	if (unlikely(p == NULL)) {
		hd__call_end(caller);
		hd__behaviour_unmake(b);
		return err;
	}
	if (pid != NULL)
		*pid = hd__pid(&caller.sched->table, p);
	begin(caller, b, p, m, &after);
	if (unlikely(
		    after.forsaken !=
		    NULL)) /* on a plain thread: the runtime is over, and has abandoned b meanwhile; it is there until the call ends */
		hd__settle(&after);
	hd__call_end(caller);
	return 0;
}

int hd__behaviour_make(const struct hd__making *m, hd_pid *pid)
{
	return make(m, pid);
}

int hd__behaviour_begin(struct hd__caller caller, struct hd__behaviour *b, const struct hd__making *m)
{
	struct hd__aftermath after = { .dead = NULL };
	int err;
	struct hd_process *p = hd__guest_take(caller, &err);

	if (p == NULL)
		return err;
	begin(caller, b, p, m, &after);
	if (unlikely(after.forsaken != NULL)) /* as in make */
		hd__settle(&after);
	return 0;
}

int hd_when_n(hd_behaviour fn, void *arg, hd_cown *const *uses, size_t n)
{
	if (likely(n == 1)) /* with a constant, the compiler leaves most of it out */
		return make(&(struct hd__making){ .how = { .fn = fn, .arg = arg, .uses = uses, .n = 1 } }, NULL);
	return make(&(struct hd__making){ .how = { .fn = fn, .arg = arg, .uses = uses, .n = n } }, NULL);
}

int hd_when_args_n(hd_behaviour fn, const void *args, size_t size, void (*drop)(void *args), hd_cown *const *uses, size_t n)
{
	return make(
		&(struct hd__making){
			.how = { .fn = fn, .arg = (void *)args, .size = size, .drop = drop, .uses = uses, .n = n } },
		NULL);
}

/* ---- what a behaviour says of its cowns ---- */

int hd_cown_release_early(hd_cown *c)
{
	struct hd__aftermath after = { .dead = NULL };
	struct hd_worker *w = hd__self();

	if (w == NULL)
		return -ENOTSUP;
	if (!hd__is_behaviour(w->current))
		return -EPERM;
	struct hd__behaviour *b = w->current->value;
	struct hd__ticket *t = NULL;
	for (uint32_t i = 0; i < b->distinct && t == NULL; i++)
		if (b->tickets[i].use != NULL && hd__cown_of(&b->tickets[i]) == c)
			t = &b->tickets[i];
	if (t == NULL)
		return -EPERM;
	hd__publish(c);
	w = hd__enter_call();
	hd__line_leave(w, t, &after);
	t->use = NULL;
	hd__leave_call(w);
	hd__settle(&after);
	return 0;
}
