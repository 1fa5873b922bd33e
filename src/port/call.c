/* port/call.c - a message, and its answer.
 *
 * Owns:       struct hd__reply, the port to which the answer to a call goes. A process has one for all its calls; if another process still
 *             has a reference to it when the next call begins, it gets a new one.
 * Invariant:  a call ends once: answered, broken (no reference but the caller's own is left), or abandoned by its caller.
 *             While a process is in hd_call, and its answer has not been decided, p->why is HD_WAIT_CALL and p->arrival the process that will
 *             answer. That is decided before p can be ready again.
 * Locking:    the lock of the queue in which the caller waits guards the call. It is not taken inside a mailbox's.
 * Loans:      a caller whose priority is above that of the process that will answer lends it its own (sync/lend.c) while it waits: its record says
 *             so (x->boosts), from before it waits until the call ends; r->to is the process that it lends to.
 * Callers:    call: a process. Answers and references: any thread. What is usual between two processes of one worker is in direct.c, where hd_call and
 *             hd_reply begin.
 *
 *     IDLE --> ASKED       hd_call
 *     ASKED --> ANSWERED   hd__answer
 *     ASKED --> BROKEN     hd__reply_release: the last reference but the caller's own
 *     ASKED --> ABANDONED  abandon: time is up, the caller is cancelled or ends; despair: it waits for itself
 *
 * Circles: a process that calls says for which process it waits, and then follows the calls from there on. If it comes back to itself, it
 * would wait for ever. Of two processes that close a circle at the same moment at least one sees the other; perhaps both do, and neither calls.
 * A process that passes a call on does the same in the caller's place: it says for which process the caller waits from now on, and then looks
 * whether that one waits for the caller; if so, it keeps the call.
 * A caller that had to wait for room has not said for which process it waits, until it goes on: by then the process that has received its message may
 * have called it, or passed its call on. It finds that out when it looks, and the message cannot be taken back: its call is broken then. */
#include "os/memory.h"
#include "port/reply.h"
#include "sched/switch.h"

#define CHAIN_MAX 4096 /* calls that are followed */

static void lock(struct hd__reply *r)
{
	hd__waitq_lock(&r->caller);
}

static void unlock(struct hd__reply *r)
{
	hd__waitq_unlock(&r->caller);
}

/* ---- loans ---- */

/* Under the lock, of a caller that waits in a call or was claimed this moment. */
static struct hd__sched *sched_of(const struct hd__reply *r)
{
	return ld_acq(&r->process->home)->sched;
}

/* Under the lock: the caller, whose call ends, lends nothing any more. `self` finds its boost anew without being asked. */
__attribute__((noinline)) static void end_loan(struct hd__reply *r, struct hd_waiter *x, const struct hd_process *self)
{
	struct hd__sched *sched = sched_of(r);

	if (hd__unlend(sched, (struct hd__ranked *)x, r->to) && hd__table_find(&sched->table, r->to) != self)
		hd__ask_reboost(sched, r->to);
}

/* Under the lock: the caller waits, or is about to, and has lent to the process that was to answer; now it is `to`. */
__attribute__((noinline)) static void move_loan(struct hd__reply *r, struct hd_waiter *x, hd_pid from, hd_pid to)
{
	struct hd__sched *sched = sched_of(r);
	struct hd__ranked *lender = (struct hd__ranked *)x;

	if (x->boosts && hd__unlend(sched, lender, from))
		hd__ask_reboost(sched, from);
	if (hd__lend(sched, lender, to))
		hd__ask_reboost(sched, to);
}

/* The runner is about to wait for the answer of `to`, whose wait it has claimed (`woken`), or NULL: lends to it. If that is at home here, or can
 * come, it finds its boost at once, and can run in place of the runner. No locks are held. */
__attribute__((noinline)) static void begin_loan(struct hd_worker *w, struct hd__ranked *x, hd_pid to, struct hd_waiter *woken)
{
	x->waiter.process = w->current;
	if (woken != NULL)
		hd__come_home(w, woken);
	if (hd__lend(w->sched, x, to))
		hd__ask((struct hd__caller){ w, w->sched }, to, 0, HD__REBOOST, 0);
}

/* ---- the end of a call ---- */

/* Under the lock: the call ends so. Whether its caller hears of it; *x is to be unparked then, or NULL. `self`: as for end_loan. */
__attribute__((always_inline)) static inline bool decide(struct hd_worker *w, struct hd__reply *r, uint8_t state,
							 enum hd__outcome outcome, struct hd_waiter **x,
							 const struct hd_process *self)
{
	*x = NULL;
	if (r->waits) {
		if ((*x = hd__waitq_claim(w, &r->caller, outcome)) == NULL) {
			r->state = HD__ABANDONED; /* its caller, whose wait is over, is about to do the same */
			return false;
		}
		if (unlikely((*x)->boosts))
			end_loan(r, *x, self);
	}
	r->state = state;
	st_rlx(&r->process->why,
	       HD_WAIT_NONE); /* also if it does not wait yet: the process that has answered it may call it now */
	return true;
}

/* Under the lock, which it releases. */
static void release(struct hd__reply *r)
{
	uint32_t left = r->head.refs - 1;

	st_rel(&r->head.refs, left); /* pairs with prepare's acquire */
	unlock(r);
	if (left == 0)
		hd__os_free(r);
}

void hd__reply_retain(struct hd__reply *r)
{
	lock(r);
	st_rel(&r->head.refs, r->head.refs + 1);
	unlock(r);
}

void hd__reply_release(struct hd_worker *w, struct hd__reply *r, struct hd_waiter **woken)
{
	lock(r);
	if (r->state == HD__ASKED && r->head.refs == 2)
		decide(w, r, HD__BROKEN, HD__CLOSED, woken, NULL);
	release(r);
}

void hd__reply_forget(struct hd__reply *r)
{
	lock(r);
	if (r->state == HD__ASKED)
		r->state = HD__ABANDONED;
	release(r);
}

void hd__reply_abandon(struct hd__reply *r)
{
	r->state = HD__ABANDONED;
	hd__waitq_forget(&r->caller);
	unlock(r); /* another thread of the parent may have had it */
}

/* Under the lock: the process that will answer is this one. */
static void point_at(struct hd__reply *r, hd_pid to)
{
	if (r->state != HD__ASKED)
		return;
	if (r->caller.head != NULL)
		move_loan(r, r->caller.head, r->to, to);
	r->to = to;
	if (r->stands) /* else it may be in a run queue, where arrival is another thing */
		(void)xchg_seq(&r->process->arrival, (uint64_t)to); /* and a fence: hd__reply_delegate looks next */
}

void hd__reply_pass_on(struct hd__reply *r, hd_pid to)
{
	lock(r);
	point_at(r, to);
	unlock(r);
}

hd_pid hd__reply_owner(struct hd__reply *r)
{
	lock(r);
	hd_pid pid = r->state == HD__ASKED ? ld_rlx(&r->box->owner) : 0; /* the mailbox is there as long as its owner waits */
	unlock(r);
	return pid;
}

/* The caller's wait was called off: called under the lock, which it releases. */
static void abandon(struct hd_worker *w, struct hd_waiter *x)
{
	struct hd__reply *r = (struct hd__reply *)((char *)x->queue - offsetof(struct hd__reply, caller));

	(void)w;
	if (unlikely(x->boosts))
		end_loan(r, x, NULL);
	if (r->state == HD__ASKED)
		r->state = HD__ABANDONED;
	st_rlx(&r->process->why, HD_WAIT_NONE);
	unlock(r);
}

const struct hd__wait_ops hd__call_ops = { .left = abandon };

/* Under the lock: whether the call can be answered now: 0, and its caller is claimed; -ESRCH; -EALREADY. With `give_up` a reference is
 * given up, if it can. */
__attribute__((always_inline)) static inline int begin_answer(struct hd_worker *w, struct hd__reply *r, bool give_up,
							      struct hd_waiter **woken)
{
	if (unlikely(r->state != HD__ASKED))
		return r->state == HD__ABANDONED ? -ESRCH : -EALREADY;
	if (unlikely(!decide(w, r, HD__ANSWERED, HD__GRANTED, woken, give_up ? w->current : NULL)))
		return -ESRCH;
	if (give_up)
		st_rel(&r->head.refs, r->head.refs - 1); /* pairs with prepare's acquire; the caller's own is left */
	return 0;
}

static int answer(struct hd_worker *w, struct hd__reply *r, struct hd__letter *l, bool give_up, struct hd_waiter **woken)
{
	struct hd__letter *spare;

	lock(r);
	int err = begin_answer(w, r, give_up, woken);
	if (err != 0) {
		unlock(r);
		return err;
	}
	if (likely(r->waits)) {
		spare = hd__hold_letter(r->box, l, NULL, r->answer); /* its caller is claimed */
	} else {						     /* its caller runs, and may be dropping messages */
		r->early = l;
		spare = NULL;
	}
	unlock(r);
	if (spare != NULL)
		hd__letter_free(w, spare);
	return 0;
}

int hd__answer(struct hd_worker *w, struct hd__reply *r, struct hd__letter *l, struct hd__wakee *woken)
{
	*woken = (struct hd__wakee){ NULL, NULL };
	return answer(w, r, l, false, &woken->record);
}

/* As `answer`, with a mere tag, and gives a reference up: no letter is needed. */
static inline int answer_tag(struct hd_worker *w, struct hd__reply *r, int64_t tag, struct hd_waiter **woken)
{
	if (unlikely(tag < 0))
		return -EINVAL;
	lock(r);
	int err = begin_answer(w, r, true, woken);
	if (likely(err == 0))
		*r->answer = (struct hd_message){ .sender = hd__pid(&w->sched->table, w->current), .tag = tag };
	unlock(r);
	return err;
}

/* ---- circles ---- */

/* Follows the calls from `to` on. Whether they come to `me`; *seen tells two walks apart that did not find the same calls. */
static bool leads_back(struct hd__sched *sched, const struct hd_process *me, hd_pid to, uint64_t *seen)
{
	*seen = 0;
	for (int i = 0; i < CHAIN_MAX; i++) {
		struct hd_process *p = hd__table_find(&sched->table, to);
		if (p == NULL || !hd__alive(ld_acq(&p->control), to))
			return false;
		if (p == me)
			return true;
		uint64_t switches = ld_acq(&p->switches);
		if (ld_seq(&p->why) != HD_WAIT_CALL) /* pairs with begin_calling */
			return false;
		*seen = (*seen ^ (uint64_t)to ^ switches) * UINT64_C(0x9E3779B97F4A7C15);
		to = (hd_pid)ld_acq(&p->arrival);
	}
	return false;
}

/* Twice the same chain: all its calls were there at once, for none of its processes has run meanwhile. */
static bool waits_for(struct hd__sched *sched, const struct hd_process *me, hd_pid to)
{
	uint64_t seen, again;

	return leads_back(sched, me, to, &seen) && leads_back(sched, me, to, &again) && seen == again;
}

int hd__reply_delegate(struct hd__sched *sched, struct hd__reply *r, hd_pid from, hd_pid to)
{
	hd__reply_pass_on(r, to);
	/* pairs with the fence in call: if that process calls the caller now, it sees what we have said, or we see its call */
	if (to == 0 || !waits_for(sched, r->process, to))
		return 0;
	lock(r);
	bool refused = r->state == HD__ASKED && r->to == to; /* else the caller does not wait any more, or not for this one */
	if (refused)
		point_at(r, from);
	unlock(r);
	if (!refused)
		return 0;
	if (sched->config.deadlock != HD_DEADLOCK_IGNORE)
		sched->hooks.call_refused(sched, r->process, from, to);
	return -EDEADLK;
}

/* The caller waits for `to` from now on, as other workers see it. */
static inline void begin_calling(struct hd_process *me, hd_pid to)
{
	st_rlx(&me->arrival, (uint64_t)to);
	st_rel(&me->why, HD_WAIT_CALL);
}

/* The message has been delivered. The caller may have been ready since it said for which process it waits, or that process was not born then:
 * says so now. Answers for which it waits; *late: it has not said so till now. */
__attribute__((noinline)) static hd_pid begin_again(struct hd_worker *w, struct hd__reply *r, hd_pid owner, bool *late)
{
	lock(r);
	if (r->to == 0)
		r->to = owner;
	hd_pid to = r->to;
	*late = ld_rlx(&w->current->why) != HD_WAIT_CALL || ld_rlx(&w->current->arrival) != (uint64_t)to;
	if (r->state == HD__ASKED) {
		r->stands = true;
		st_rlx(&w->current->arrival, (uint64_t)to);
		(void)xchg_seq(&w->current->why,
			       HD_WAIT_CALL); /* as begin_calling, and no lock is taken before the caller looks */
	}
	unlock(r);
	return to;
}

static inline void end_calling(struct hd_process *me)
{
	st_rlx(&me->why, HD_WAIT_NONE);
}

/* The caller, which has not said till now for which process it waits, waits for itself, and its message has been received: no answer can come. */
static void despair(struct hd_worker *w, struct hd__reply *r, hd_pid to)
{
	lock(r);
	bool hopeless = r->state == HD__ASKED && r->to == to;
	if (hopeless)
		r->state = HD__ABANDONED;
	unlock(r);
	if (hopeless && w->sched->config.deadlock != HD_DEADLOCK_IGNORE)
		w->sched->hooks.call_refused(w->sched, w->current, hd__pid(&w->sched->table, w->current), to);
}

/* The message has been delivered, and the process that will answer waits in a call itself. Whether that call waits for the caller, through
 * others, perhaps: then the message is taken back, and the call is refused. (If it is not in the port any more, the process that received it has
 * gone on, and has seen the caller, unless that is late.) */
__attribute__((noinline)) static bool is_refused(struct hd_worker *w, hd_port *port, struct hd__reply *r, hd_pid to, bool late)
{
	struct hd_process *me = w->current;
	struct hd__letter *l;

	if (!waits_for(w->sched, me, to))
		return false;
	hd__mailbox_lock(port->box);
	l = hd__letter_before(port->box, port, HD__PLAIN, NULL);
	while (l != NULL && hd__carried(l) != (hd_port *)r)
		l = hd__letter_before(port->box, port, HD__PLAIN, l);
	if (l != NULL && l == hd__shown(port->box)) /* that process has gone on, and is looking at it */
		l = NULL;
	struct hd_waiter *woken = l != NULL ? hd__take_letter(w, port->box, l) : NULL;
	hd__mailbox_unlock(port->box);
	if (woken != NULL)
		hd__unpark(w, woken);
	if (l == NULL && late)
		despair(w, r, to);
	if (l == NULL)
		return false;
	if (w->sched->config.deadlock != HD_DEADLOCK_IGNORE)
		w->sched->hooks.call_refused(w->sched, me, hd__pid(&w->sched->table, me), to);
	l->carried = NULL;
	l->drop = NULL; /* what was moved is the caller's again */
	hd__letter_free(w, l);
	return true;
}

/* ---- the call ---- */

/* The caller's reply port, to which no other process has a reference; NULL: no memory. Outside its lane. */
__attribute__((noinline)) static struct hd__reply *prepare_slowly(struct hd_worker *w)
{
	struct hd__mailbox *box = hd__mailbox_own(w);
	struct hd__reply *r;

	struct hd__more *more = box != NULL ? hd__more_own(box) : NULL;
	if (more == NULL)
		return NULL;
	r = more->reply;
	if (r != NULL && ld_acq(&r->head.refs) != 1) { /* pairs with release */
		hd__reply_forget(r);
		r = NULL;
	}
	if (r == NULL && (r = hd__os_alloc(sizeof *r)) != NULL) {
		r->head = (struct hd__port_head){ .refs = 1, .kind = HD__REPLY_PORT };
		r->box = box;
		r->process = w->current;
		r->pid = hd__pid(&w->sched->table, w->current);
	}
	more->reply = r;
	w->current->inner->more = more;
	return r;
}

static inline struct hd__reply *prepare(struct hd_worker *w)
{
	const struct hd__more *more = w->current->inner->more;
	struct hd__reply *r = likely(more != NULL) ? more->reply : NULL;

	return likely(r != NULL && ld_acq(&r->head.refs) == 1) ? r : prepare_slowly(w); /* pairs with release */
}

/* The process that will answer, if it can run at once in place of the caller: ready, and in no queue. NULL: it cannot. `woken`, if any, is its
 * wait, which the caller has claimed: it is ended in any case. */
static inline struct hd_process *answerer(struct hd_worker *w, struct hd__wakee woken, struct hd_process *server, hd_pid owner)
{
	if (woken.record != NULL || woken.machine != NULL)
		return hd__wake_for_hand_off(w, woken);
	return server != NULL && hd__alive(ld_rlx(&server->control), owner) && hd__take_ready(w, server) ? server : NULL;
}

/* Inside the lane, which is left: the message has been delivered, to `owner`, to which x lends, if it does. */
__attribute__((always_inline)) static inline int await(struct hd_worker *w, struct hd__reply *r, struct hd__ranked *x,
						       hd_pid owner, struct hd_process *next, hd_time until)
{
	struct hd_process *me = w->current;

	lock(r);
	if (unlikely(r->to != owner)) { /* it has been passed on, or was not born */
		x->waiter.process = me;
		move_loan(r, &x->waiter, owner, r->to);
	}
	if (unlikely(r->state != HD__ASKED)) { /* it has been answered, on another worker, or dropped */
		int err = r->state == HD__ANSWERED ? 0 : -EPIPE;
		struct hd__letter *early = r->early;
		r->early = NULL;
		if (unlikely(x->waiter.boosts))
			end_loan(r, &x->waiter, NULL);
		unlock(r);
		if (early != NULL)
			early = hd__hold_letter(r->box, early, NULL, r->answer);
		if (early != NULL)
			hd__letter_free(w, early);
		end_calling(me);
		if (next != NULL)
			hd__runq_push_tail(&w->runq, next);
		hd__leave_call(w);
		return err;
	}
	r->waits = true;
	return hd__park_as(w, &x->waiter, &r->caller, until, HD_WAIT_CALL, next);
}

/* Something was asked of the caller, inside its lane. Returns 0, and it calls; or the lane is left. */
__attribute__((noinline)) static int heed_first(struct hd_worker *w, void (*drop)(void *data), const void *data)
{
	struct hd_process *me = w->current;

	if (hd__called_off(me, ld_acq(&me->control), 0) == HD__WAITING && !(ld_rlx(&me->control) & HD__LOGGED))
		return 0;
	hd__leave(w);
	if (drop != NULL)
		drop((void *)(uintptr_t)data);
	return hd__heed();
}

/* As hd__begin_wait, on a process. Whether a call that was called off had been sent, its caller cannot know: what was to be moved is dropped in
 * any case. */
__attribute__((always_inline)) static inline int begin(struct hd_worker **w, const struct hd_sending *what, hd_time until)
{
	if (hd__is_duration(until))
		return -EINVAL;
	hd__enter(*w);
	*w = hd__safe_point(*w);
	return likely(!hd__must_heed(*w, until)) ? 0 : heed_first(*w, what->drop, what->data);
}

/* The call was called off, or its time was up, while it waited for room. Likewise. */
static int give_up(struct hd__letter *l, int err)
{
	hd__letter_drop(l);
	if (err == -ECANCELED)
		hd__heed(); /* does not return if the caller must end */
	return err;
}

/* Inside the lane: nothing was sent. */
__attribute__((noinline)) static int did_not_call(struct hd_worker *w, struct hd__reply *r, struct hd__letter *l, int err)
{
	r->state = HD__IDLE;
	st_rlx(&r->head.refs, 1);
	if (l != NULL)
		l->carried = NULL;
	end_calling(w->current);
	hd__leave_call(w);
	return err == -ETIMEDOUT || err == -ECANCELED ? give_up(l, err) : hd__did_not_send(l, err);
}

/* What becomes of a call while its message is delivered. */
struct delivery {
	struct hd__wakee woken;
	hd_pid owner; /* the process that will answer */
	bool late;    /* the caller has not said for which process it waits till now */
};

/* Delivers the message of a call to a port with limits, where the caller may wait for room or have to drop what it displaces; or to one that had no
 * owner. As hd__deliver_slowly. */
__attribute__((noinline)) static int deliver_slowly(struct hd_worker **w, hd_port *port, struct hd__reply *r,
						    struct hd__letter *l, struct delivery *d, hd_time until)
{
	struct hd__letter *dropped = NULL;
	int err = hd__deliver_surely(w, port, l, HD__PLAIN, &d->woken, &dropped, until);

	if (err != 0)
		return err;
	if (dropped != NULL) {
		hd__wake(*w, d->woken);
		d->woken = (struct hd__wakee){ NULL, NULL };
		end_calling((*w)->current);
		hd__leave(*w);
		hd__letters_drop(&dropped->in_box);
		hd__enter(*w = hd__self());
	}
	d->owner = begin_again(*w, r, ld_rlx(&port->box->owner), &d->late);
	return 0;
}

__attribute__((always_inline)) static inline int call(hd_port *port, const struct hd_sending *what, struct hd_message *answer,
						      hd_time until)
{
	struct hd_worker *w = hd__self();
	struct hd__letter *l = NULL;
	struct hd__wakee woken = { NULL, NULL };

	if (unlikely(w == NULL))
		return -ENOTSUP;
	if (unlikely(port->head.kind != HD__MAIL_PORT))
		return -EINVAL;
	struct hd__reply *r = prepare(w);
	if (unlikely(r == NULL))
		return -ENOMEM;
	int err = begin(&w, what, until);
	if (unlikely(err != 0))
		return err;
	struct hd_process *me = w->current;
	struct hd__mailbox *box = port->box;
	hd_pid owner = ld_rlx(&box->owner);
	struct hd_process *server = hd__table_find(&w->sched->table, owner); /* NULL: none yet */
	bool limited = port->limits != NULL, late = false;
	if (unlikely(server == me))
		err = -EDEADLK;
	else
		err = hd__write_letter(w, what, true, &l);
	if (unlikely(err != 0))
		return did_not_call(w, r, l, err);
	begin_calling(me, owner);
	l->carried = (hd_port *)r;
	r->state = HD__ASKED;
	r->waits = false;
	r->stands = !limited;
	r->to = owner;
	r->answer = answer;
	st_rlx(&r->head.refs, 2);
	if (unlikely(limited || owner == 0)) {
		struct hd_worker *mine = w;
		struct delivery d = { .owner = owner };
		err = deliver_slowly(&mine, port, r, l, &d, until);
		w = mine;
		woken = d.woken;
		owner = d.owner;
		late = d.late;
		server = hd__table_find(&w->sched->table, owner);
	} else {
		hd__trace_sent(w, l);
		hd__mailbox_lock(box);
		if (hd__is_at_rest(box)) {
			hd__push_unlimited(box, port, l, HD__PLAIN);
			hd__mailbox_unlock(box);
		} else {
			struct hd__wakee who;
			err = hd__deliver_locked(w, port, l, &who);
			woken = who;
		}
	}
	if (unlikely(err != 0))
		return did_not_call(w, r, l, err);
	hd__arch_fence_after_lock(); /* pairs with that of another caller: one of the two sees what the other has said in begin_calling */
	if (server != NULL && unlikely(ld_rlx(&server->why) == HD_WAIT_CALL) && is_refused(w, port, r, owner, late)) {
		hd__wake(w, woken);
		return did_not_call(w, r, NULL, -EDEADLK);
	}
	struct hd__ranked x;
	hd__waiter_init(&x.waiter);
	x.waiter.ops = &hd__call_ops;
	x.waiter.owner = (const int64_t *)&me->arrival;
	if (server != NULL && unlikely(me->priority > ld_rlx(&server->lowest)))
		begin_loan(w, &x, owner, woken.record);
	return await(w, r, &x, owner, answerer(w, woken, server, owner), until);
}

int hd__call_slowly(hd_port *port, const struct hd_sending *what, struct hd_message *answer, hd_time until)
{
	struct hd_message unwanted;
	int err = call(port, what, answer != NULL ? answer : &unwanted, until);

	if (answer == NULL && err == 0)
		hd_message_drop(&unwanted);
	return err;
}

/* ---- the answer ---- */

int hd__reply_slowly(struct hd_message *m, const struct hd_sending *what)
{
	struct hd_worker *w = hd__self();
	struct hd__letter *call = m->letter, *l = NULL;
	struct hd_waiter *woken = NULL;
	hd_port *to = call != NULL ? call->carried : NULL; /* not m's: there may be copies of m, one of which was used */
	int err;

	if (unlikely(w == NULL))
		return -ENOTSUP;
	if (unlikely(to == NULL || to->head.kind != HD__REPLY_PORT))
		return call != NULL && call->answered ? -EALREADY : -EINVAL;
	struct hd__reply *r = (struct hd__reply *)to;
	struct hd__mailbox *box = hd__mailbox_of(w->current);
	if (unlikely(box != NULL && w->current->inner->more == NULL))
		w->current->inner->more = hd__more_own(box); /* so the next call can be handed to the runner (direct.c) */
	hd__enter(w);
	w = hd__beginning(w);
	if (likely(what->size == 0 && !what->move)) {
		err = answer_tag(w, r, what->tag, &woken);
	} else {
		struct hd_waiter *x = NULL;
		err = hd__write_letter(w, what, false, &l);
		if (likely(err == 0))
			err = answer(w, r, l, true, &x);
		woken = x;
	}
	if (unlikely(err != 0)) {
		hd__leave_call(w);
		return hd__did_not_send(l, err);
	}
	m->carried = call->carried = NULL;
	call->answered = true;
	if (unlikely(HD__CONTROL_BOOST(ld_rlx(&w->current->control)) != 0))
		hd__boost_self(w, w->current);
	struct hd_process *caller = woken != NULL ? hd__unpark_for_hand_off(w, woken) : NULL;
	if (caller != NULL)
		hd__leave(hd__yield_to(w, caller));
	else
		hd__leave_call(w);
	return 0;
}
