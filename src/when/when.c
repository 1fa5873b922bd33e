/* when/when.c - behaviours: made with a ticket for each of their cowns, run when all tickets have them.
 *
 * Owns:       struct hd__behaviour.
 * Invariant:  a behaviour is a process from the moment it is made, a guest that waits (life/guest.c) until `awaits` is 0. Its memory is one piece, which is
 *             never moved; it is given back when the behaviour has left all its lines, however it ended.
 * Locking:    none: b->awaits counts down, and the thread that brings it to 0 makes the process ready. The call that makes it counts as one more, until all
 *             tickets are in their lines: so it does not run, and is not gone, before.
 * Callers:    any thread; the behaviour itself, at its end.
 *
 *   hd_when: memory with a block --> born, or born again, WAITING --> joins its lines --> placed
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

	if (b != NULL) {
		b->size = (uint8_t)i;
		b->process = NULL;
		b->born = 0;
	}
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

/* Whether the worker keeps b, when that is over. */
static inline bool will_keep(const struct hd_worker *w, unsigned size)
{
	return size < HD__SPARE_SIZES && w->spares.count[size] < SPARES_MAX;
}

static inline void keep(struct hd_worker *w, struct hd__behaviour *b, unsigned size)
{
	b->next = w->spares.first[size];
	w->spares.first[size] = b;
	w->spares.count[size]++;
}

/* b's process has died, or is gone: then b->process is NULL. */
static inline void give_memory_back(struct hd_worker *w, struct hd__behaviour *b)
{
	if (unlikely(w == NULL || !will_keep(w, b->size))) {
		if (b->process != NULL) /* it has had a home */
			hd__table_give_up(&ld_rlx(&b->process->home)->sched->table, b->process);
		hd__os_free(b);
		return;
	}
	keep(w, b, b->size);
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

/* The runner has no cowns from now on: it may wait. Inside its lane. */
static inline void may_wait(struct hd_worker *w)
{
	w->current->chores &= (uint8_t)~HD__HOLDS;
	w->chores &= ~(uint32_t)HD__HOLDS;
}

static void publish_all(struct hd__behaviour *b)
{
	for (uint32_t i = 0; i < b->distinct; i++)
		if (b->tickets[i].use != NULL)
			hd__publish(hd__cown_of(&b->tickets[i]));
}

/* b, which has all its cowns, gives those up that it still has. Inside the lane of w, or on a plain thread. */
__attribute__((always_inline)) static inline void leave_lines(struct hd_worker *w, struct hd__behaviour *b,
							      struct hd__aftermath *after)
{
	struct hd__ticket *t = b->tickets, *none = t + b->distinct;

	for (; t != none; t++)
		if (likely(t->use != NULL))
			hd__line_leave(w, t, after);
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
		hd__os_free(b);
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

/* The behaviour is over, has left its lines, and counts so: last, for hd_quiesce waits for all of this. */
static inline struct hd_worker *count_over(struct hd_worker *w, struct hd__aftermath *after)
{
	if (unlikely(after->dead != NULL)) {
		hd__leave(w);
		hd__cowns_drop(after->dead);
		after->dead = NULL;
		hd__enter(w = hd__self());
	}
	hd__behaviour_counts_as_over(w->sched, w);
	return w;
}

/* b is over, and its process will be, in the usual way: b belongs to no process any more. */
static inline void part(struct hd_worker *w, struct hd_process *me, struct hd__behaviour *b)
{
	me->value = NULL; /* for hd__behaviour_boost and hd__quiet_look */
	b->process = NULL;
	b->born = 0;
	give_memory_back(w, b);
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
	if (w->current->end_kind != HD_END_RETURNED && !(b->odd & HD__SKIPPED))
		mark_failed(b);
	if (b->drop != NULL)
		b->drop(b->arg);
	publish_all(b);
	hd__enter(w = hd__self());
	leave_lines(w, b, &after);
	may_wait(w);
	w = count_over(w, &after);
	hd__behaviour_looks(w->sched, w);
	part(w, w->current, b);
	hd__leave(w);
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

static inline void check_returned(const struct hd__inner *inner, const struct hd_cleanup *last)
{
	HD_ASSERT(inner->cleanups == last, "a behaviour returned without hd_cleanup_pop of what it had pushed");
	HD_ASSERT(inner->groups == NULL, "a behaviour returned without hd_group_wait of a group that it had opened");
}

/* Calls the function of an odd behaviour. Answers its result. */
__attribute__((noinline)) static void *call_odd(struct hd__behaviour *b, const struct hd__inner *inner,
						const struct hd_cleanup *last)
{
	void *result = NULL;

	if (b->odd & HD__TELLS)
		learn_all(b);
	if (b->odd & HD__ANSWERS)
		result = b->maker(b->arg, data_of(b));
	else
		b->fn(b->arg, data_of(b));
	if (hd__self() == NULL)
		return NULL; /* in a forked child */
	check_returned(inner, last);
	if (b->odd & HD__DROPS)
		b->drop(b->arg);
	if (b->odd & HD__TELLS)
		publish_all(b);
	return result;
}

/* The turn of a behaviour, up to the end of its function, and of its argument. `last` is what it does however it ends. Answers the worker. */
__attribute__((always_inline)) static inline struct hd_worker *take_turn(struct hd_process *me, struct hd__inner *inner,
									 struct hd_cleanup *last, void **result)
{
	struct hd__behaviour *b = me->value;

	last->arg = b;
	inner->cleanups = last;
	if (unlikely(ld_rlx(&me->control) & HD__DOOMED)) {
		b->odd |= HD__SKIPPED;
		hd__end(me, HD_END_KILLED, NULL, 0);
	}
	if (unlikely(b->odd != 0))
		*result = call_odd(b, inner, last);
	else
		b->fn(b->arg, data_of(b));
	struct hd_worker *w = hd__self();
	if (unlikely(w == NULL))
		exit(0); /* a forked child came back: as with threads, its last one has ended */
	check_returned(inner, last);
	inner->cleanups = NULL;
	return w;
}

/* For the compiler it runs once without `hot`: see hd__machine_turn. */
__attribute__((hot)) struct hd_worker *hd__behave(struct hd_process *me, const struct hd__host *host, struct hd_process **next)
{
	struct hd__inner *inner = host->inner;
	struct hd_cleanup last = { end, NULL, NULL };
	struct hd__aftermath after = { .dead = NULL };
	void *result = NULL;

	for (;;) {
		struct hd_worker *w = take_turn(me, inner, &last, &result);
		struct hd__behaviour *b = last.arg;
		hd__enter(w);
		leave_lines(w, b, &after);
		w = count_over(w, &after);
		w->chores &= ~(uint32_t)HD__HOLDS;
		uint64_t born = b->born;
		unsigned size = b->size;
		if (unlikely(born == 0 || !will_keep(w, size) || !hd__guest_dies(w, me, born))) {
			hd__behaviour_looks(w->sched, w);
			part(w, me, b);
			return hd__end_inside(w, me, result, next);
		}
		keep(w, b, size); /* with its process */
		me = hd__next_guest(w, host, HD__MACHINE | HD__BEHAVIOUR);
		if (me == NULL) {
			hd__behaviour_looks(w->sched, w);
			return w;
		}
	}
}

void hd__behaviour_is_ready_slowly(struct hd_worker *w, struct hd__behaviour *b)
{
	struct hd_process *p = b->process;

	if (hd__decide_bare(w, p, HD__GRANTED)) /* unless the runtime is over, and has ended its wait */
		hd__unpark_bare(w, p);
}

/* As hd__behaviour_is_ready; while it waited, the counts of its cowns have changed (urgency.c). */
__attribute__((noinline)) static void make_ready_and_boost(struct hd_worker *w, struct hd__behaviour *b)
{
	struct hd__sched *sched = ld_rlx(&b->process->home)->sched;
	hd_pid pid = hd__pid(&sched->table, b->process);

	hd__behaviour_is_ready(w, b);
	hd__ask_reboost(sched, pid);
}

void hd__behaviour_got_slowly(struct hd_worker *w, struct hd__behaviour *b, unsigned tickets, struct hd__aftermath *after)
{
	uint32_t left;

	/* As in hd__behaviour_got. Otherwise the thread releases what it knows of the cown, and the one that comes to 0 acquires it from all the others. */
	if (likely(w != NULL && ld_acq(&b->awaits) == tickets)) {
		st_rlx(&b->awaits, 0);
		left = 0;
	} else {
		left = add_acq_rel(&b->awaits, -tickets) - tickets;
	}
	if (left == 0) {
		if (unlikely(ld_rlx(&b->mixed)))
			make_ready_and_boost(w, b);
		else
			hd__behaviour_is_ready(w, b);
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

/* As sort_and_merge, for two tickets, which are in no line: their uses are all that differs. */
static inline uint32_t order_two(struct hd__ticket *t)
{
	hd_cown *a = t[0].use, *b = t[1].use;
	uint64_t i = hd__cown_of(&t[0])->id, j = hd__cown_of(&t[1])->id;

	if (likely(i < j))
		return 2;
	if (unlikely(i == j)) {
		t[0].use = hd__ticket_reads(&t[0]) ? b : a;
		return 1;
	}
	t[0].use = b;
	t[1].use = a;
	return 2;
}

static inline int check(const struct hd__making *m)
{
	const struct hd_when *how = &m->how;

	if ((how->fn == NULL && m->maker == NULL) || (how->uses == NULL && how->n > 0) || (how->arg == NULL && how->size > 0))
		return -EINVAL;
	if (unlikely(how->flags & ~(unsigned)HD_WHEN_MAY_BLOCK) && how->flags != HD_WHEN_LOGGED)
		return -EINVAL;
	if (how->priority != 0 && (how->priority < HD__PRIORITY_MIN || how->priority > HD__PRIORITY_MAX))
		return -EINVAL;
	for (size_t i = 0; i < how->n; i++)
		if (((uintptr_t)how->uses[i] & ~HD__READS) == 0)
			return -EINVAL;
	return likely(how->flags != HD_WHEN_LOGGED) ? 0 : hd__log_may_make();
}

/* Inlined where much of *m is constant, so that nothing is left of what is not asked for. */
__attribute__((always_inline)) static inline struct hd__behaviour *new_behaviour(const struct hd__making *m)
{
	const size_t each = sizeof(struct hd__ticket) + sizeof(void *), align = _Alignof(max_align_t);
	const struct hd_when *how = &m->how;
	const uint32_t n = (uint32_t)how->n;

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
	b->n = n;
	b->level = (uint8_t)level;
	b->odd = (m->maker != NULL ? HD__ANSWERS : 0) | (how->drop != NULL ? HD__DROPS : 0) |
		 (unlikely(hd__tells) ? HD__TELLS : 0);
	b->mixed = false;
	if (likely(m->maker == NULL))
		b->fn = how->fn;
	else
		b->maker = m->maker;
	b->arg = how->arg;
	b->drop = how->drop;
	if (how->size > 0)
		hd__copy(b->arg = (char *)b + copied, how->arg, how->size);
	void **data = (void **)&b->tickets[n];
	for (uint32_t i = 0; i < n; i++) {
		hd_cown *use = how->uses[i], *c = (hd_cown *)((uintptr_t)use & ~HD__READS);
		b->tickets[i].use = use;
		b->tickets[i].behaviour = b;
		hd__cown_look(c);
		data[i] = c->data;
		if (unlikely(ld_rlx(&c->level) != level) && !hd__cown_mix(c, level)) {
			give_memory_back(w, b);
			return NULL;
		}
	}
	b->distinct = likely(n < 2) ? n : likely(n == 2) ? order_two(b->tickets) : sort_and_merge(b->tickets, n);
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

static inline int embody(struct hd__caller caller, struct hd__behaviour *b)
{
	int err = hd__guest_check(caller);

	if (likely(b->process != NULL) || unlikely(err != 0))
		return err;
	b->process = hd__guest_take(caller, &err);
	return b->process != NULL ? 0 : err;
}

int hd__behaviour_embody(struct hd__caller caller, struct hd__behaviour *b)
{
	return embody(caller, b);
}

void hd__behaviour_disembody(struct hd__caller caller, struct hd__behaviour *b)
{
	if (b->born != 0)
		return; /* it stays with b */
	hd__guest_return(caller, b->process);
	b->process = NULL;
}

/* b has a block. It counts, and is about to be a process. */
static inline void prepare(struct hd__caller caller, struct hd__behaviour *b)
{
	b->awaits = b->distinct + 1;
	hd__behaviour_counts(caller.sched, caller.w);
}

__attribute__((always_inline)) static inline void bear(struct hd__caller caller, struct hd__behaviour *b,
						       const struct hd__making *m, bool ready)
{
	const struct hd__guest guest = { .nature = HD__MACHINE | HD__BEHAVIOUR,
					 .ops = &behaviour_ops,
					 .self = b,
					 .priority = b->level,
					 .flags = m->how.flags == HD_WHEN_LOGGED ? HD__LOGGED : 0,
					 .chores = b->n > 0 && !(m->how.flags & HD_WHEN_MAY_BLOCK) ? HD__HOLDS : 0,
					 .why = HD_WAIT_COWN,
					 .ready = ready,
					 .mourner = m->mourner };

	if (likely(b->born != 0))
		b->born = hd__guest_reborn(caller.w, b->process, &guest);
	else
		b->born = hd__guest_born(caller, b->process, &guest);
}

void hd__behaviour_bear(struct hd__caller caller, struct hd__behaviour *b, const struct hd__making *m)
{
	prepare(caller, b);
	bear(caller, b, m, false);
}

/* A ticket joins its line. Whether it has the cown. */
static inline bool join(struct hd__caller caller, struct hd__ticket *t, bool all, struct hd__aftermath *after)
{
	hd_cown *c = hd__cown_of(t);
	bool mixed = unlikely(ld_rlx(&c->urgency) != NULL);

	if (mixed)
		hd__ticket_counts(t);
	bool has =
		hd__line_join_one(caller.w, t, all, after); /* if not, and it is the only ticket, the behaviour may be over */
	if (mixed && !has)
		hd__cown_urge(caller.sched, c);
	return has;
}

/* b, which has a block, is a process, and joins its lines. If it has all its cowns at once, no other thread knows of it, and it is born ready. */
__attribute__((always_inline)) static inline void begin(struct hd__caller caller, struct hd__behaviour *b,
							const struct hd__making *m, struct hd__aftermath *after)
{
	unsigned got = 1, n = b->distinct;

	prepare(caller, b);
	if (likely(n == 1) && ld_rlx(&hd__cown_of(&b->tickets[0])->last) !=
				      NULL) { /* it will have to wait, most likely: then it does not await the call */
		b->awaits = 1;
		bear(caller, b, m, false);
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
		bear(caller, b, m, true);
		if (unlikely(b->mixed))
			hd__ask_reboost(caller.sched, hd__pid(&caller.sched->table, b->process));
		return;
	}
	bear(caller, b, m, false);
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
	err = likely(caller.sched != NULL) ? embody(caller, b) : -ENXIO;
	if (unlikely(err != 0)) {
		hd__call_end(caller);
		hd__behaviour_unmake(b);
		return err;
	}
	if (pid != NULL)
		*pid = hd__pid(&caller.sched->table, b->process);
	begin(caller, b, m, &after);
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
	int err = embody(caller, b);

	if (err != 0)
		return err;
	begin(caller, b, m, &after);
	if (unlikely(after.forsaken != NULL)) /* as in make */
		hd__settle(&after);
	return 0;
}

/* ---- the usual call ----
 *
 * A process makes a behaviour on one cown or two, which it writes. Nothing is to be copied, and nothing done before; the worker has kept the memory of one, and its
 * block. What is unusual is left to functions that do all of the call in place of this one, or the rest of it. */

__attribute__((noinline)) static int when(hd_behaviour fn, void *arg, hd_cown *const *uses, size_t n)
{
	return make(&(struct hd__making){ .how = { .fn = fn, .arg = arg, .uses = uses, .n = n } }, NULL);
}

__attribute__((noinline)) static int leave_slowly(struct hd_worker *w)
{
	hd__leave_call(w);
	return 0;
}

/* As leave_slowly, when nothing has come that the caller must heed. */
__attribute__((noinline)) static int leave_quietly(struct hd_worker *w)
{
	hd__leave(w);
	return 0;
}

static inline int leave(struct hd_worker *w)
{
	return hd__is_wanted(w) ? leave_slowly(w) : w->crowd ? leave_quietly(w) : 0;
}

/* t, which came behind `before`, takes its place. Whether it has its cown. */
__attribute__((noinline)) static unsigned place(struct hd_worker *w, struct hd__ticket *t, struct hd__ticket *before, bool all)
{
	struct hd__aftermath after = { .dead = NULL }; /* nothing comes of it to one that comes */

	return hd__line_place(w, t, t, before, all, &after);
}

/* b has got so many of what it awaits. */
__attribute__((noinline)) static void got_some(struct hd_worker *w, struct hd__behaviour *b, unsigned got)
{
	struct hd__aftermath after = { .dead = NULL }; /* no behaviour is forsaken while a worker runs */

	hd__behaviour_got_slowly(w, b, got, &after);
}

static inline bool is_usual(const struct hd_worker *w)
{
	return w->resched == 0 && (w->chores & ~(uint32_t)HD__HOLDS) == 0 && !ld_rlx(&w->sched->stopping);
}

static inline bool is_usual_cown(const hd_cown *c, int level)
{
	return ld_rlx(&c->level) == level && ld_rlx(&c->urgency) == NULL && ld_acq(&c->forks) == 2u * hd__forks;
}

/* A use that writes. */
static inline bool writes(hd_cown *use)
{
	return use != NULL && !((uintptr_t)use & HD__READS);
}

/* n is 1 or 2, and constant. */
__attribute__((always_inline)) static inline int when_at_once(hd_behaviour fn, void *arg, hd_cown *const *uses,
							      const unsigned n)
{
	struct hd_worker *w = hd__self();
	struct hd__behaviour *b;

	if (unlikely(fn == NULL || uses == NULL || w == NULL || (b = w->spares.first[0]) == NULL || b->born == 0) ||
	    unlikely(!writes(uses[0]) || !writes(uses[n - 1])) || unlikely(!hd__try_enter(w)))
		return when(fn, arg, uses, n);
	hd_cown *c[2] = { uses[0], uses[n - 1] };
	const uint64_t control = ld_rlx(&w->current->control);
	const int level = HD__CONTROL_PRIORITY(control);
	if (unlikely(!is_usual(w) || control & HD__LOGGED || !is_usual_cown(c[0], level) ||
		     (n == 2 && (!is_usual_cown(c[1], level) || c[0]->id == c[1]->id)))) {
		hd__step_out(w);
		return when(fn, arg, uses, n);
	}
	w->spares.first[0] = b->next;
	w->spares.count[0]--;
	b->n = b->distinct = n;
	b->level = (uint8_t)level;
	b->odd = 0;
	b->mixed = false;
	b->fn = fn;
	b->arg = arg;
	b->drop = NULL;
	struct hd__ticket *t = b->tickets;
	void **data = (void **)&t[n];
	for (unsigned i = 0; i < n; i++) {
		data[i] = c[i]->data;
		t[i].behaviour = b;
	}
	if (n == 2 && c[0]->id > c[1]->id) {
		c[0] = uses[1];
		c[1] = uses[0];
	}
	for (unsigned i = 0; i < n; i++)
		t[i].use = c[i];
	hd__behaviour_counts(w->sched, w);

	struct hd__guest guest = { .priority = level, .chores = HD__HOLDS };
	unsigned got = 0;
	if (ld_rlx(&c[0]->last) != NULL || (n == 2 && ld_rlx(&c[1]->last) != NULL)) {
		/* It will have to wait, most likely. It awaits the call, too, if it could be over elsewhere before all is done here. */
		unsigned call = n == 2 && w->crowd;
		b->awaits = n + call;
		b->born = hd__guest_reborn(w, b->process, &guest);
		for (unsigned i = 0; i < n; i++) {
			struct hd__ticket *before = hd__line_come(c[i], &t[i]);
			if (unlikely(!hd__line_follow(&t[i], before, i == n - 1)))
				got += place(w, &t[i], before, i == n - 1);
		}
		if (n == 2)
			st_rel(&t[0].link, HD__PLACED); /* hd__line_placed */
		if (unlikely(got + call != 0))
			got_some(w, b, got + call);
		return leave(w);
	}
	b->awaits = n + 1;
	for (unsigned i = 0; i < n; i++) {
		struct hd__ticket *before = hd__line_come(c[i], &t[i]);
		if (unlikely(!hd__line_begin(&t[i], before, i == n - 1)))
			got += place(w, &t[i], before, i == n - 1);
		else
			got++;
	}
	if (n == 2)
		st_rel(&t[0].link, HD__PLACED);
	if (likely(got == n)) { /* no other thread knows of it */
		st_rlx(&b->awaits, 0);
		guest.ready = true;
		b->born = hd__guest_reborn(w, b->process, &guest);
		return leave(w);
	}
	b->born = hd__guest_reborn(w, b->process, &guest);
	got_some(w, b, got + 1);
	return leave(w);
}

__attribute__((noinline)) static int when_on_two(hd_behaviour fn, void *arg, hd_cown *const *uses)
{
	return when_at_once(fn, arg, uses, 2);
}

int hd_when_n(hd_behaviour fn, void *arg, hd_cown *const *uses, size_t n)
{
	if (likely(n == 1))
		return when_at_once(fn, arg, uses, 1);
	return n == 2 ? when_on_two(fn, arg, uses) : when(fn, arg, uses, n);
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
	uint32_t has = 0;
	for (uint32_t i = 0; i < b->distinct; i++)
		if (b->tickets[i].use != NULL) {
			has++;
			if (hd__cown_of(&b->tickets[i]) == c)
				t = &b->tickets[i];
		}
	if (t == NULL)
		return -EPERM;
	hd__publish(c);
	w = hd__enter_call();
	hd__line_leave(w, t, &after);
	t->use = NULL;
	if (has == 1)
		may_wait(w);
	hd__leave_call(w);
	hd__settle(&after);
	return 0;
}
