/* sync/waitgroup.c - waiting until a number of things have been done.
 *
 * Owns:       struct hd_waitgroup.
 * Invariant:  while the count is 0 there are no undecided waiters, but for those that the call which made it 0 is about to serve.
 * Locking:    the wait queue's lock guards both fields.
 * Callers:    a process or a plain thread. */
#include <errno.h>
#include <heddle/waitgroup.h>
#include <limits.h>

#include "sync/select.h"

void hd_waitgroup_init(struct hd_waitgroup *g, unsigned n)
{
	*g = (struct hd_waitgroup){ .count = n };
}

int hd_waitgroup_add(struct hd_waitgroup *g, int delta)
{
	struct hd_worker *w = hd__enter_call();
	int err = 0;

	hd__waitq_lock(&g->waiters);
	int64_t count = (int64_t)g->count + delta;
	if (count < 0)
		err = -EINVAL;
	else if (count > UINT_MAX)
		err = -EOVERFLOW;
	else
		g->count = (unsigned)count;
	if (g->count == 0)
		hd__waitq_serve_all(w, &g->waiters, HD__GRANTED, NULL);
	else
		hd__waitq_unlock(&g->waiters);
	hd__leave_call(w);
	return err;
}

int hd_waitgroup_done(struct hd_waitgroup *g)
{
	return hd_waitgroup_add(g, -1);
}

int hd_waitgroup_wait(struct hd_waitgroup *g, hd_time until)
{
	struct hd_worker *w;
	int err = hd__begin_wait(&w, until);

	if (err != 0)
		return err;
	hd__waitq_lock(&g->waiters);
	if (g->count > 0)
		return hd__park(w, &g->waiters, until, HD_WAIT_WAITGROUP);
	hd__waitq_unlock(&g->waiters);
	hd__sync_got(w);
	return 0;
}

/* ---- for select ---- */

static struct hd_waitq *lock_case(struct hd_worker *w, struct hd_case *c)
{
	struct hd_waitgroup *g = c->object;

	(void)w;
	hd__waitq_lock(&g->waiters);
	return &g->waiters;
}

static bool is_done(const struct hd_worker *w, const struct hd_case *c)
{
	(void)w;
	return ((const struct hd_waitgroup *)c->object)->count == 0;
}

static int pass(struct hd_worker *w, struct hd_case *c, struct hd_waiter **woken)
{
	(void)w, (void)c, (void)woken;
	return 0;
}

const struct hd__case_ops hd__waitgroup_case = { .why = HD_WAIT_WAITGROUP, .lock = lock_case, .can = is_done, .happen = pass };
