/* sync/select.c - waiting for one of several things.
 *
 * Owns:       the records of a process that waits in several queues. What a kind of case means, its primitive says (select.h).
 * Invariant:  all records of one call share one outcome, the process's: the thread that decides it makes its case happen, and
 *             claims from other queues find it decided. The caller itself decides it to make a case happen that it finds
 *             possible while it is in other queues already; if it cannot, another thread has decided, and wakes it.
 *             To meet another process at a rendezvous takes two decisions, its own and the other one's. If the second fails, the
 *             caller leaves all queues and looks again. Two such callers may do that to each other; chance parts them.
 * Locking:    the lock of one queue at a time.
 * Callers:    a process.
 *
 * Whether a descriptor is ready, the kernel must be asked, which is not done inside a lane. So such a case is prepared before, happens when there is
 * news of the descriptor, and is confirmed after; if the news was of something else, all is done again.
 *
 *     look at each case ---- one can happen ----> it does
 *            | none   ^
 *            v        +----- leave all queues <----- we decide, and it cannot any more --+
 *     join the queue of each, looking again ---- one can happen -------------------------+
 *            | none                         \--- another thread has decided --+         we decide, and it does
 *            v                                                                 v         |
 *        sleep <-------------------------------------------------------------- +         |
 *            |                                                                           |
 *            +------------------------> leave all queues <-------------------------------+ */
#include "sync/select.h"

#include <errno.h>

_Static_assert(sizeof(struct hd_waiter) <= sizeof((struct hd_case *)0)->record, "hd_case.record is too small");

struct selection {
	struct hd_worker *w;
	struct hd_process *me;
	struct hd_waiter *woken; /* by the case that happened; to be unparked when no lock is held */
	enum hd_wait why;
};

static struct hd_waiter *record_of(struct hd_case *c)
{
	return (struct hd_waiter *)c->record;
}

/* ---- the end of a process: a case whose parts are life's ---- */

static struct hd_waitq *lock_end(struct hd_worker *w, struct hd_case *c)
{
	struct hd_process *p;

	c->err = hd__join_look((struct hd__caller){ w, w->sched }, c->number, &p);
	c->object = p;
	return c->err < 0 ? NULL : &p->news;
}

/* hd__join_look has told. */
static bool has_ended(const struct hd_worker *w, const struct hd_case *c)
{
	(void)w;
	return c->err == 1;
}

static void take_end(struct hd_case *c)
{
	hd__join_take_locked(c->object);
}

static int take_end_now(struct hd_worker *w, struct hd_case *c, struct hd_waiter **woken)
{
	(void)w, (void)woken;
	take_end(c);
	return 0;
}

static void let_end_go(struct hd_case *c)
{
	hd__join_let_go_locked(c->object);
}

static void collect_end(struct hd_worker *w, struct hd_case *c)
{
	hd__join_collect((struct hd__caller){ w, w->sched }, c->object, c->data);
}

static const struct hd__case_ops end_case = { .why = HD_WAIT_JOIN,
					      .lock = lock_end,
					      .can = has_ended,
					      .happen = take_end_now,
					      .join = take_end,
					      .leave = let_end_go,
					      .finish = collect_end };

/* ---- all cases ---- */

/* NULL: what happens by itself, at a time, or never. */
static const struct hd__case_ops *const kinds[] = { [HD_CASE_NOTHING] = NULL,
						    [HD_CASE_PUT] = &hd__put_case,
						    [HD_CASE_NEXT] = &hd__next_case,
						    [HD_CASE_SEMAPHORE] = &hd__semaphore_case,
						    [HD_CASE_PROMISE] = &hd__promise_case,
						    [HD_CASE_JOIN] = &end_case,
						    [HD_CASE_TIME] = NULL,
						    [HD_CASE_EVENT] = &hd__event_case,
						    [HD_CASE_WAITGROUP] = &hd__waitgroup_case,
						    [HD_CASE_FD] = NULL /* hooks.fd_case */,
						    [HD_CASE_RECEIVE] = NULL /* hooks.receive_case */ };

static const struct hd__case_ops *kind_of(const struct selection *s, const struct hd_case *c)
{
	if (likely(c->kind < HD_CASE_FD))
		return kinds[c->kind];
	return c->kind == HD_CASE_FD ? s->w->sched->hooks.fd_case : s->w->sched->hooks.receive_case;
}

/* It has happened, and no lock is held any more: the call ends. */
static void finish(struct selection *s, struct hd_case *c)
{
	const struct hd__case_ops *kind = kind_of(s, c);

	if (c->err == 0 && kind != NULL && kind->finish != NULL)
		kind->finish(s->w, c);
	if (s->woken != NULL)
		hd__unpark(s->w, s->woken);
	hd__leave_call(s->w);
}

/* Makes a case happen if it can. With `join` the caller may be in other queues, and must decide first; if the case cannot
 * happen, it joins the queue of this one too. Returns 1 when it happened, -EALREADY when another thread has decided, -EAGAIN when the caller has
 * decided and the case did not happen, else 0. */
static int look_at(struct selection *s, struct hd_case *c, bool join)
{
	const struct hd__case_ops *kind = kind_of(s, c);
	int answer = 0;

	if (kind == NULL)
		return 0;
	struct hd_waitq *q = kind->lock(s->w, c);
	if (q == NULL || kind->can(s->w, c))
		answer = !join || hd__waits_decide(s->me) ? 1 : -EALREADY;
	if (q == NULL)
		return answer;
	if (answer == 1) {
		c->err = kind->happen(s->w, c, &s->woken);
		if (unlikely(c->err == HD__NOT_NOW))
			answer = join ? -EAGAIN : 0;
	} else if (answer == 0 && join) {
		struct hd_waiter *x = record_of(c);
		*x = (struct hd_waiter){
			.process = s->me, .queue = q, .why = (uint8_t)kind->why, .several = true, .data = c->data
		};
		if (kind->join != NULL)
			kind->join(c);
		hd__waits_join(s->me, q, x);
	}
	hd__waitq_unlock(q);
	return answer;
}

/* Takes the caller out of a queue that it has joined. Not for the case that another thread made happen: that may have freed its
 * queue. */
static void leave(const struct selection *s, struct hd_case *c)
{
	const struct hd__case_ops *kind = kind_of(s, c);
	struct hd_waiter *x = record_of(c);
	struct hd_waitq *q = x->queue;

	hd__waitq_lock(q);
	if (x->place == HD__LINKED)
		hd__waitq_unlink(q, x);
	if (kind->leave != NULL)
		kind->leave(c);
	hd__waitq_unlock(q);
}

/* The answer to a case that another process or thread made happen. */
static void granted(const struct selection *s, struct hd_case *c)
{
	const struct hd__case_ops *kind = kind_of(s, c);

	c->err = kind->granted != NULL ? kind->granted(c, hd__outcome(ld_acq(&s->me->wait))) : 0;
}

/* In the order of the list, or from a place in it that changes from call to call. */
static size_t first_place(struct hd_process *me, size_t n, bool in_order)
{
	if (in_order)
		return 0;
	me->inner->dice = me->inner->dice * UINT32_C(1664525) + UINT32_C(1013904223);
	return (size_t)(((uint64_t)me->inner->dice * n) >> 32);
}

/* The first time in the list, and which case that is. */
static hd_time first_time(const struct hd_case *cases, size_t n, size_t *which)
{
	hd_time first = HD_FOREVER;

	for (size_t i = 0; i < n; i++)
		if (cases[i].kind == HD_CASE_TIME && cases[i].number < first) {
			first = cases[i].number;
			*which = i;
		}
	return first;
}

/* Takes the caller out of all queues that it has joined; returns the case that another thread made happen, or n. */
static size_t leave_all(const struct selection *s, struct hd_case *cases, size_t n)
{
	size_t happened = n;

	for (size_t i = 0; i < n; i++)
		if (record_of(&cases[i])->queue == NULL) {
			continue;
		} else if (record_of(&cases[i]) == s->me->inner->won) {
			happened = i;
			granted(s, &cases[i]);
		} else {
			leave(s, &cases[i]);
		}
	hd__waits_end(s->me);
	return happened;
}

/* Returns -EAGAIN, and the caller is inside its lane still, when it must look at all cases again. */
static int wait_for_one(struct selection *s, struct hd_case *cases, size_t n, size_t start, hd_time until)
{
	size_t timed = n, happened = n;
	hd_time first = first_time(cases, n, &timed);
	int err = 0;

	for (size_t i = 0; i < n; i++)
		record_of(&cases[i])->queue = NULL;
	hd__waits_begin(s->me);
	for (size_t k = 0; k < n && err == 0; k++) {
		size_t i = (start + k) % n;
		err = look_at(s, &cases[i], true);
		if (err == 1)
			happened = i;
	}
	if (happened == n && err != -EAGAIN) {
		err = hd__park_several(s->w, first < until ? first : until, s->why);
		s->w = hd__self();
		hd__enter(s->w);
	}
	size_t granted = leave_all(s, cases, n);
	if (err == -EAGAIN)
		return err;
	if (granted < n)
		happened = granted;
	if (happened == n && err == -ETIMEDOUT && first <= until && first < HD_FOREVER) {
		cases[timed].err = 0;
		happened = timed;
	}
	if (happened < n) {
		finish(s, &cases[happened]);
		return (int)happened;
	}
	hd__leave(s->w);
	return err;
}

/* Makes the first case happen that can, from the `start`th on, while the caller is in no queue. Returns which, or n. */
static size_t look_at_all(struct selection *s, struct hd_case *cases, size_t n, size_t start)
{
	for (size_t k = 0; k < n; k++) {
		struct hd_case *c = &cases[(start + k) % n];
		bool past = c->kind == HD_CASE_TIME && hd__is_past(s->w, c->number);
		if (past)
			c->err = 0;
		if (past || look_at(s, c, false) == 1)
			return (size_t)(c - cases);
	}
	return n;
}

/* Inside the lane of w, which is left. After -ECANCELED, hd__heed must follow. */
static int choose_case(struct hd_worker *w, struct hd_case *cases, size_t n, hd_time until, bool in_order, enum hd_wait why)
{
	struct selection s = { .w = w, .me = w->current, .why = why };
	int answer;

	do {
		size_t start = n > 0 ? first_place(s.me, n, in_order) : 0;
		size_t happened = look_at_all(&s, cases, n, start);
		if (happened < n) {
			finish(&s, &cases[happened]);
			return (int)happened;
		}
		if (until <= 0) {
			hd__leave(s.w);
			return -ETIMEDOUT;
		}
		answer = wait_for_one(&s, cases, n, start, until);
	} while (answer == -EAGAIN);
	return answer;
}

int hd__select_prepared(struct hd_case *cases, size_t n, hd_time until, bool in_order, enum hd_wait why)
{
	struct hd_worker *w = hd__self();

	hd__enter(w);
	w = hd__safe_point(w);
	st_rel(&w->outside, w->outside + 1); /* pairs with hd__awaits_outside */
	int answer = choose_case(w, cases, n, until, in_order, why);
	w = hd__self();
	st_rel(&w->back, w->back + 1);
	return answer;
}

/* As choose_case, outside the lane, if there are cases that only the system knows. */
static int choose_outside(const struct hd__case_ops *kind, struct hd_case *cases, size_t n, hd_time until, bool in_order)
{
	size_t prepared = 0;
	int answer = 0;

	for (; prepared < n && answer == 0; prepared += answer == 0)
		if (cases[prepared].kind == HD_CASE_FD)
			answer = kind->prepare(&cases[prepared]);
	if (answer == 0)
		do
			answer = hd__select_prepared(cases, n, until, in_order, HD_WAIT_SELECT);
		while (answer >= 0 && cases[answer].kind == HD_CASE_FD && !kind->confirm(&cases[answer]));
	for (size_t i = 0; i < n && answer == -ETIMEDOUT; i++)
		if (cases[i].kind == HD_CASE_FD && kind->confirm(&cases[i]))
			answer = (int)i; /* what the system has, but has not said yet, beats the deadline */
	for (size_t i = 0; i < prepared; i++)
		if (cases[i].kind == HD_CASE_FD)
			kind->release(&cases[i]);
	return answer;
}

static int choose(struct hd_case *cases, size_t n, hd_time until, bool in_order)
{
	struct hd_worker *w = hd__self();
	bool outside = false;

	if (w == NULL)
		return -ENOTSUP;
	for (size_t i = 0; i < n; i++)
		if (cases[i].kind < HD_CASE_NOTHING || cases[i].kind > HD_CASE_RECEIVE ||
		    (cases[i].kind == HD_CASE_TIME && hd__is_duration(cases[i].number)))
			return -EINVAL;
		else
			outside |= cases[i].kind == HD_CASE_FD;
	int answer = hd__begin_wait(&w, until);
	if (answer != 0)
		return answer;
	if (likely(!outside)) {
		answer = choose_case(w, cases, n, until, in_order, HD_WAIT_SELECT);
	} else {
		hd__leave(w);
		answer = choose_outside(w->sched->hooks.fd_case, cases, n, until, in_order);
	}
	if (unlikely(answer == -ECANCELED))
		hd__heed(); /* does not return if the caller must end */
	return answer;
}

int hd_select(struct hd_case *cases, size_t n, hd_time until)
{
	return choose(cases, n, until, false);
}

int hd_select_first(struct hd_case *cases, size_t n, hd_time until)
{
	return choose(cases, n, until, true);
}
