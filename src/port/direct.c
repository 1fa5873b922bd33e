/* port/direct.c - a call and its answer when both processes are at home with one worker: nothing is locked, and the worker goes from the one to the other.
 *
 * Owns:       nothing: it does what call.c does, for what is usual. For what is not, it has looked, and done nothing, and call.c does it.
 * Invariant:  the thread inside a lane is alone with the processes at home there that are off their stacks and undecided: so it may
 *             - hand a message to one that is ready. Its mailbox is empty: so the message is its next one. It stands where the letters stand that the owner
 *               has taken (more->taken, HD__HANDED), and is received without the lock; or goes into the mailbox, before all others (hd__untake).
 *             - end the wait of one that called, if its reply port has two references: the caller's own, and that in the message which the runner
 *               answers. Other threads have none, and come by one only through the runner.
 * Circles:    a process that is ready is in no call: so the call closes no circle, and does not look. Nor is a fence needed between what it says (why, arrival)
 *             and what the process does that will answer: that is on the same thread, or comes after on another. Of two processes that close a circle
 *             at the same moment, each calls a process that is in a call: these go through call.c.
 * Locking:    the lane.
 * Callers:    processes. */
#include "port/reply.h"
#include "sched/switch.h"

/* Whether the runner, inside its lane, may hand the worker to a process of its own priority, as it is. (hd__lock_free: TSan must be told of what is
 * ordered here.) */
static inline bool is_quiet(const struct hd_worker *w)
{
	return likely((ld_rlx(&w->attention) | w->resched | w->chores) == 0 && w->runq.highest <= w->running_priority &&
		      w->handoffs < HD__HANDOFFS_MAX && hd__lock_free == 0);
}

/* `next`, ready and in no queue, runs in place of `me`, which has left the state RUNNING. As hd__switch. */
__attribute__((always_inline)) static inline struct hd_worker *hand_over(struct hd_worker *w, struct hd_process *me,
									 struct hd_process *next, hd_time now)
{
	w->handoffs++;
	bump(&w->stats.handoffs, 1);
	if (unlikely(next->chores != 0))
		hd__do_chores(w, next); /* which cannot fail: it has a stack */
	return hd__switch(w, me, next, now);
}

/* A letter with a copy of `size` bytes, if there is one in the store. NULL: there is none, or no data. */
static inline struct hd__letter *write_at_once(struct hd_worker *w, hd_pid sender, int64_t tag, const void *data, size_t size)
{
	struct hd__store *store = &w->letters.stores[HD__SHORT];

	if (unlikely(size > HD__SHORT_ROOM))
		store = &w->letters.stores[size <= HD__LONG_ROOM ? HD__LONG : HD__LARGE];
	struct hd__letter *l = store->letters[store->room];
	if (unlikely(l == NULL || (size > 0 && data == NULL)))
		return NULL;
	__builtin_prefetch(store->letters[store->room + HD__STORE_AHEAD], 1);
	store->room++;
	bump(&w->letters.live, 1);
	l->sender = sender;
	l->tag = tag;
	l->class = HD__PLAIN;
	l->exempt = l->answered = l->emptied = false;
	l->size = size;
	l->data = NULL;
	l->carried = NULL;
	l->drop = NULL;
	if (size > 0) {
		l->data = l->room;
		hd__copy(l->room, data, size);
	}
	return l;
}

/* ---- the call ---- */

/* Whether the runner, inside its lane, has nothing to heed, and r is for its next call. */
static inline bool may_call(const struct hd_worker *w, const struct hd_process *me, const struct hd__reply *r)
{
	return likely(r != NULL && ld_acq(&r->head.refs) == 1 && /* pairs with release in call.c */
		      !(ld_rlx(&me->control) & (HD__DOOMED | HD__CANCEL | HD__LOGGED)) &&
		      w->sched->config.deadlock == HD_DEADLOCK_IGNORE);
}

/* The caller has a deadline from now on; false: it has none, because its time is up. */
__attribute__((noinline)) static bool begin_deadline(struct hd_worker *w, struct hd_process *me, hd_time until)
{
	if (hd__is_duration(until) || hd__is_past(w, until))
		return false;
	st_rlx(&me->wait, hd__set_deadline(w, me, until));
	if (w->chores != 0) /* the alarm is late */
		hd__set_alarm(w);
	return true;
}

/* Whether the mailbox is open, and has no letters: what is read here without its lock is as it was when its owner was last inside this lane, or
 * what other senders do at this moment. */
static inline bool is_empty(const struct hd__mailbox *box, const struct hd__more *more)
{
	return likely(!box->closed && box->odd == 0 && ld_rlx(&box->arrived[HD__URGENT].last) == NULL &&
		      ld_rlx(&box->arrived[HD__PLAIN].last) == NULL && more->taken == NULL);
}

/* Whether p, which has this id, is ready in the lane of w and can run at once in place of the runner, who lends it nothing. It has a stack, and keeps it. */
static inline bool can_take_over(const struct hd_worker *w, const struct hd_process *p, hd_pid pid)
{
	return likely(ld_acq(&p->state) == HD_READY && ld_rlx(&p->home) == w &&
		      hd__alive(ld_rlx(&p->control), pid) && /* as hd__take_ready */
		      !(p->chores & ~HD__CARRY) && !(p->nature & (HD__MACHINE | HD__BEHAVIOUR)) &&
		      p->priority == w->running_priority && w->running_priority <= ld_rlx(&p->lowest));
}

/* The process that will answer, if the message can be handed to it; NULL: it cannot. */
static inline struct hd_process *find_server(const struct hd_worker *w, const hd_port *port)
{
	struct hd__mailbox *box = port->box;
	hd_pid owner = ld_rlx(&box->owner);
	struct hd_process *server =
		&w->sched->table.blocks[(uint64_t)owner & (HD__SLOTS - 1)]; /* of no owner: the first, with another id */

	return port == &box->first && port->limits == NULL && can_take_over(w, server, owner) && server->inner->more != NULL &&
			       is_empty(box, server->inner->more)
		       ? server
		       : NULL;
}

/* Inside the lane: the call happens. The caller has its deadline, or none. */
__attribute__((always_inline)) static inline int call(struct hd_worker *w, struct hd_process *me, struct hd__reply *r,
						      hd_port *port, struct hd_process *server, struct hd__letter *l,
						      struct hd_message *answer)
{
	struct hd__more *more = server->inner->more;
	hd_pid owner = ld_rlx(&port->box->owner);
	hd_time now = ld_rlx(&w->sched->now);
	struct hd__ranked x;

	l->in_box.next = NULL;
	l->port = port;
	l->carried = (hd_port *)r;
	more->taken = more->taken_last = &l->in_box;
	st_rlx(&more->received, HD__HANDED);
	st_rlx(&more->hurry, false); /* urgent letters that come from now on are before this one */

	r->state = HD__ASKED;
	r->waits = r->stands = true;
	r->to = owner;
	r->answer = answer;
	st_rlx(&r->head.refs, 2);

	hd__waiter_init(&x.waiter);
	x.waiter.ops = &hd__call_ops;
	x.waiter.owner = (const int64_t *)&me->arrival;
	x.waiter.queue = &r->caller;
	x.waiter.why = HD_WAIT_CALL;
	HD_ASSERT(me->waiter == NULL, "a process that waits tried to wait");
	hd__waitq_join(w, me, &r->caller, &x.waiter);
	st_rlx(&me->arrival, (uint64_t)owner);
	st_rlx(&me->rules, 0);
	st_rel(&me->why, HD_WAIT_CALL); /* pairs with leads_back */
	hd__move_unrecorded(me, HD_RUNNING, HD_WAITING, now);

	hd__runq_remove(&w->runq, server);
	w = hand_over(w, me, server, now);
	return hd__awake(w, me);
}

__attribute__((noinline)) static int call_slowly(hd_port *port, int64_t tag, const void *data, size_t size,
						 struct hd_message *answer, hd_time until)
{
	return hd__call_slowly(port, &(struct hd_sending){ .tag = tag, .data = data, .size = size }, answer, until);
}

int hd_call(hd_port *port, int64_t tag, const void *data, size_t size, struct hd_message *answer, hd_time until)
{
	struct hd_worker *w = hd__self();

	if (unlikely(w == NULL || answer == NULL || tag < 0 || port->head.kind != HD__MAIL_PORT || !hd__try_enter(w)))
		return hd__keep_frame(call_slowly(port, tag, data, size, answer, until));
	struct hd_process *me = w->current, *server = NULL;
	struct hd__reply *r = me->inner->more != NULL ? me->inner->more->reply : NULL;
	struct hd__letter *l = NULL;
	if (is_quiet(w) && may_call(w, me, r) && (server = find_server(w, port)) != NULL)
		l = write_at_once(w, r->pid, tag, data, size);
	if (likely(l != NULL)) {
		st_rlx(&me->wait, HD__WAITING);
		if (likely(until == HD_FOREVER) || begin_deadline(w, me, until))
			return call(w, me, r, port, server, l, answer);
		hd__letter_free(w, l);
	}
	hd__step_out(w);
	return hd__keep_frame(call_slowly(port, tag, data, size, answer, until));
}

int hd_call_move(hd_port *port, int64_t tag, void *data, size_t size, void (*drop)(void *data), struct hd_message *answer,
		 hd_time until)
{
	return hd__call_slowly(port, &(struct hd_sending){ .tag = tag, .data = data, .size = size, .move = true, .drop = drop },
			       answer, until);
}

/* ---- the answer ---- */

/* Whether the call waits at home here, and for its answer alone, and the runner has the only reference beside the caller's; and the caller can run at
 * once in place of the runner, which has borrowed nothing of it. */
static inline bool may_answer(const struct hd_worker *w, const struct hd__reply *r)
{
	const struct hd_process *p = r->process;

	/* Its home first: the rest is told by a caller that is in this lane. */
	return likely(ld_acq(&r->head.refs) == 2 && /* pairs with release in call.c */
		      ld_rlx(&p->home) == w && r->state == HD__ASKED && r->waits &&
		      hd__outcome(ld_rlx(&p->wait)) == HD__WAITING && !r->caller.head->boosts &&
		      !(ld_acq(&p->control) & HD__SUSPEND) && /* pairs as in hd__make_ready */
		      p->priority == w->running_priority && !(p->chores & ~HD__CARRY) &&
		      HD__CONTROL_BOOST(ld_rlx(&w->current->control)) == 0 &&
		      w->current->inner->more != NULL); /* else call.c makes it: without it, no call is handed to the runner */
}

/* Inside the lane: the answer happens, with this letter; NULL: it is a mere tag. */
__attribute__((always_inline)) static inline int answer(struct hd_worker *w, struct hd__reply *r, struct hd_message *m,
							int64_t tag, struct hd__letter *l)
{
	struct hd_process *me = w->current, *caller = r->process;
	struct hd__letter *call = m->letter;
	hd_time now = ld_rlx(&w->sched->now);

	r->state = HD__ANSWERED;
	st_rlx(&r->head.refs, 1);
	r->caller.head->place = HD__CLAIMED;
	r->caller.head = r->caller.tail = NULL;
	if (unlikely(ld_rlx(&caller->wait) != HD__WAITING)) /* it has a deadline */
		hd__timers_forget(&w->timers);
	st_rlx(&caller->wait, HD__GRANTED);
	st_rlx(&caller->why, HD_WAIT_NONE);
	if (likely(l == NULL))
		*r->answer = (struct hd_message){ .sender = hd__pid(&w->sched->table, me), .tag = tag };
	else
		hd__hold_letter(r->box, l, NULL, r->answer);
	m->carried = call->carried = NULL;
	call->answered = true;

	hd__move_unrecorded(caller, HD_WAITING, HD_READY, now);
	hd__move_unrecorded(me, HD_RUNNING, HD_READY, now);
	hd__runq_append(&w->runq, me);
	hd__leave(hand_over(w, me, caller, now));
	return 0;
}

__attribute__((noinline)) static int reply_slowly(struct hd_message *m, int64_t tag, const void *data, size_t size)
{
	return hd__reply_slowly(m, &(struct hd_sending){ .tag = tag, .data = data, .size = size });
}

int hd_reply(struct hd_message *m, int64_t tag, const void *data, size_t size)
{
	struct hd_worker *w = hd__self();
	const struct hd__letter *call = m->letter;
	struct hd__reply *r = call != NULL ? (struct hd__reply *)call->carried : NULL;

	if (unlikely(w == NULL || r == NULL || r->head.kind != HD__REPLY_PORT || tag < 0 || !hd__try_enter(w)))
		return hd__keep_frame(reply_slowly(m, tag, data, size));
	if (is_quiet(w) && may_answer(w, r)) {
		if (likely(size == 0))
			return answer(w, r, m, tag, NULL);
		struct hd__letter *l = write_at_once(w, hd__pid(&w->sched->table, w->current), tag, data, size);
		if (likely(l != NULL))
			return answer(w, r, m, tag, l);
	}
	hd__step_out(w);
	return hd__keep_frame(reply_slowly(m, tag, data, size));
}

int hd_reply_move(struct hd_message *m, int64_t tag, void *data, size_t size, void (*drop)(void *data))
{
	return hd__reply_slowly(m, &(struct hd_sending){ .tag = tag, .data = data, .size = size, .move = true, .drop = drop });
}
