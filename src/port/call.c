/* port/call.c - a message, and its answer.
 *
 * Owns:       struct hd__reply, the port to which the answer to a call goes. A process has one for all its calls; if another process still
 *             has a reference to it when the next call begins, it gets a new one.
 * Invariant:  a call ends once: answered, broken (no reference but the caller's own is left), or abandoned by its caller.
 *             While a process is in hd_call, and its answer has not been decided, p->why is HD_WAIT_CALL and p->arrival the process that will
 *             answer. That is decided before p can be ready again.
 * Locking:    the lock of the queue in which the caller waits guards the call. It is not taken inside a mailbox's.
 * Callers:    call: a process. Answers and references: any thread.
 *
 *     IDLE --> ASKED       hd_call
 *     ASKED --> ANSWERED   hd__answer
 *     ASKED --> BROKEN     hd__reply_release: the last reference but the caller's own
 *     ASKED --> ABANDONED  abandon: time is up, the caller is cancelled or ends
 *
 * Circles: a process that calls says for which process it waits, and then follows the calls from there on. If it comes back to itself, it
 * would wait for ever. Of two processes that close a circle at the same moment at least one sees the other; perhaps both do, and neither calls. */
#include "os/memory.h"
#include "port/port.h"
#include "sched/switch.h"

#define CHAIN_MAX 4096 /* calls that are followed */

enum { IDLE, ASKED, ANSWERED, BROKEN, ABANDONED };

struct hd__reply {
	struct hd__port_head head; /* one reference is the caller's own */
	uint8_t state;		   /* of the call */
	bool waits;		   /* the caller is in `caller`, or has been until its wait was decided */
	bool stands;		 /* its p->arrival says which process will answer; else it will say so when it has been ready */
	hd_pid to;		 /* that process; 0: unknown */
	struct hd_waitq caller;	 /* where it waits */
	struct hd__mailbox *box; /* its mailbox */
	struct hd_process *process; /* it itself */
	struct hd_message *answer;  /* where the answer goes */
	struct hd__letter *early;   /* the answer that came before its caller waited, and that the caller holds then; or NULL */
};

static void lock(struct hd__reply *r)
{
	hd__waitq_lock(&r->caller);
}

static void unlock(struct hd__reply *r)
{
	hd__waitq_unlock(&r->caller);
}

/* Under the lock: the call ends so. Whether its caller hears of it; *x is to be unparked then, or NULL. */
static inline bool decide(struct hd_worker *w, struct hd__reply *r, uint8_t state, enum hd__outcome outcome,
			  struct hd_waiter **x)
{
	*x = NULL;
	if (r->waits && (*x = hd__waitq_claim(w, &r->caller, outcome)) == NULL) {
		r->state = ABANDONED; /* its caller, whose wait is over, is about to do the same */
		return false;
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
	if (r->state == ASKED && r->head.refs == 2)
		decide(w, r, BROKEN, HD__CLOSED, woken);
	release(r);
}

void hd__reply_forget(struct hd__reply *r)
{
	lock(r);
	if (r->state == ASKED)
		r->state = ABANDONED;
	release(r);
}

void hd__reply_abandon(struct hd__reply *r)
{
	r->state = ABANDONED;
	hd__waitq_forget(&r->caller);
	unlock(r); /* another thread of the parent may have had it */
}

void hd__reply_pass_on(struct hd__reply *r, hd_pid to)
{
	lock(r);
	if (r->state == ASKED) {
		r->to = to;
		if (r->stands) /* else it may be in a run queue, where arrival is another thing */
			st_rel(&r->process->arrival, (uint64_t)to);
	}
	unlock(r);
}

hd_pid hd__reply_owner(struct hd__reply *r)
{
	lock(r);
	hd_pid pid = r->state == ASKED ? ld_rlx(&r->box->owner) : 0; /* the mailbox is there as long as its owner waits */
	unlock(r);
	return pid;
}

/* The caller's wait was called off: called under the lock, which it releases. */
static void abandon(struct hd_worker *w, struct hd_waiter *x)
{
	struct hd__reply *r = (struct hd__reply *)((char *)x->queue - offsetof(struct hd__reply, caller));

	(void)w;
	if (r->state == ASKED)
		r->state = ABANDONED;
	st_rlx(&r->process->why, HD_WAIT_NONE);
	unlock(r);
}

static const struct hd__wait_ops ops = { .left = abandon };

/* Under the lock: whether the call can be answered now: 0, and its caller is claimed; -ESRCH; -EALREADY. With `give_up` a reference is
 * given up, if it can. */
__attribute__((always_inline)) static inline int begin_answer(struct hd_worker *w, struct hd__reply *r, bool give_up,
							      struct hd_waiter **woken)
{
	if (unlikely(r->state != ASKED))
		return r->state == ABANDONED ? -ESRCH : -EALREADY;
	if (unlikely(!decide(w, r, ANSWERED, HD__GRANTED, woken)))
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
		spare = hd__hold_letter(r->box, l, r->answer); /* its caller is claimed */
		r->answer->port = NULL;
	} else { /* its caller runs, and may be dropping messages */
		l->m.port = NULL;
		r->early = l;
		spare = NULL;
	}
	unlock(r);
	if (spare != NULL)
		hd__letter_free(w, spare);
	return 0;
}

int hd__answer(struct hd_worker *w, struct hd__reply *r, struct hd__letter *l, struct hd_waiter **woken)
{
	return answer(w, r, l, false, woken);
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

/* The caller waits for `to` from now on, as other workers see it. */
static inline void begin_calling(struct hd_process *me, hd_pid to)
{
	st_rlx(&me->arrival, (uint64_t)to);
	st_rel(&me->why, HD_WAIT_CALL);
}

/* The message has been delivered. The caller may have been ready since it said for which process it waits, or that process was not born then:
 * says so now. Answers for which it waits. */
__attribute__((noinline)) static hd_pid begin_again(struct hd_worker *w, struct hd__reply *r, hd_pid owner)
{
	lock(r);
	if (r->to == 0)
		r->to = owner;
	hd_pid to = r->to;
	if (r->state == ASKED) {
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

/* The message has been delivered, and the process to which it went waits in a call itself. Whether that call waits for the caller, through
 * others, perhaps: then the message is taken back, and the call is refused. (If it is not in the port any more, that process has gone on.)
 * Twice the same chain: all its calls were there at once, for none of its processes has run meanwhile. */
__attribute__((noinline)) static bool is_refused(struct hd_worker *w, hd_port *port, struct hd__reply *r, hd_pid to)
{
	struct hd_process *me = w->current;
	struct hd__letter *l;
	uint64_t seen, again;

	if (!leads_back(w->sched, me, to, &seen) || !leads_back(w->sched, me, to, &again) || seen != again)
		return false;
	hd__mailbox_lock(port->box);
	l = hd__in_port(port->line[HD__PLAIN].last);
	while (l != NULL && l->m.carried != (hd_port *)r)
		l = hd__in_port(hd__line_before(&port->line[HD__PLAIN], &l->in_port));
	if (l == port->box->shown) /* that process has gone on, and is looking at it */
		l = NULL;
	struct hd_waiter *woken = l != NULL ? hd__take_letter(w, port->box, l) : NULL;
	hd__mailbox_unlock(port->box);
	if (woken != NULL)
		hd__unpark(w, woken);
	if (l == NULL)
		return false;
	if (w->sched->config.deadlock != HD_DEADLOCK_IGNORE)
		w->sched->hooks.call_refused(w->sched, me, to);
	l->m.carried = NULL;
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

	if (box == NULL)
		return NULL;
	if (box->reply != NULL)
		hd__reply_forget(box->reply);
	box->reply = r = hd__os_alloc(sizeof *r);
	if (r != NULL) {
		r->head = (struct hd__port_head){ .refs = 1, .kind = HD__REPLY_PORT };
		r->box = box;
		r->process = w->current;
	}
	return r;
}

static inline struct hd__reply *prepare(struct hd_worker *w)
{
	struct hd__mailbox *box = hd__mailbox_of(w->current);

	if (likely(box != NULL && box->reply != NULL && ld_acq(&box->reply->head.refs) == 1)) /* pairs with release */
		return box->reply;
	return prepare_slowly(w);
}

/* The process that will answer, if it can run at once in place of the caller: ready, and in no queue. NULL: it cannot. `woken`, if any, is its
 * wait, which the caller has claimed: it is ended in any case. */
static inline struct hd_process *answerer(struct hd_worker *w, struct hd_waiter *woken, struct hd_process *server, hd_pid owner)
{
	if (woken != NULL)
		return hd__unpark_for_hand_off(w, woken);
	return server != NULL && hd__alive(ld_rlx(&server->control), owner) && hd__take_ready(w, server) ? server : NULL;
}

/* Inside the lane, which is left: the message has been delivered. */
static inline int await(struct hd_worker *w, struct hd__reply *r, struct hd_process *next, hd_time until)
{
	struct hd_process *me = w->current;
	struct hd_waiter x;

	lock(r);
	if (unlikely(r->state != ASKED)) { /* it has been answered, on another worker, or dropped */
		int err = r->state == ANSWERED ? 0 : -EPIPE;
		struct hd__letter *early = r->early;
		r->early = NULL;
		unlock(r);
		if (early != NULL)
			early = hd__hold_letter(r->box, early, r->answer);
		if (early != NULL)
			hd__letter_free(w, early);
		end_calling(me);
		if (next != NULL)
			hd__runq_push_tail(&w->runq, next);
		hd__leave_call(w);
		return err;
	}
	r->waits = true;
	hd__waiter_init(&x);
	x.ops = &ops;
	x.owner = (const int64_t *)&me->arrival;
	return hd__park_as(w, &x, &r->caller, until, HD_WAIT_CALL, next);
}

/* As hd__begin_wait, on a process. Whether a call that was called off had been sent, its caller cannot know: what was to be moved is dropped in
 * any case. */
static inline int begin(struct hd_worker **w, const struct hd_sending *what, hd_time until)
{
	if (hd__is_duration(until))
		return -EINVAL;
	hd__enter(*w);
	*w = hd__safe_point(*w);
	struct hd_process *me = (*w)->current;
	if (likely(!hd__must_heed(*w, until)) || hd__called_off(me, ld_acq(&me->control), 0) == HD__WAITING)
		return 0;
	hd__leave(*w);
	if (what->drop != NULL)
		what->drop((void *)(uintptr_t)what->data);
	return hd__heed();
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
	r->state = IDLE;
	st_rlx(&r->head.refs, 1);
	if (l != NULL)
		l->m.carried = NULL;
	end_calling(w->current);
	hd__leave_call(w);
	return err == -ETIMEDOUT || err == -ECANCELED ? give_up(l, err) : hd__did_not_send(l, err);
}

__attribute__((always_inline)) static inline int call(hd_port *port, const struct hd_sending *what, struct hd_message *answer,
						      hd_time until)
{
	struct hd_worker *w = hd__self();
	struct hd__letter *l = NULL, *dropped = NULL;
	struct hd_waiter *woken = NULL;

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
	hd_pid owner = ld_rlx(&port->box->owner);
	struct hd_process *server = hd__table_find(&w->sched->table, owner); /* NULL: none yet */
	bool limited = port->limits != NULL; /* the caller may wait for room, or have to drop what it displaces */
	if (unlikely(server == me))
		err = -EDEADLK;
	else
		err = hd__write_letter(w, what, &l);
	if (unlikely(err != 0))
		return did_not_call(w, r, l, err);
	begin_calling(me, owner);
	l->m.carried = (hd_port *)r;
	r->state = ASKED;
	r->waits = false;
	r->stands = !limited;
	r->to = owner;
	r->answer = answer;
	st_rlx(&r->head.refs, 2);
	err = hd__deliver_surely(&w, port, l, &woken, &dropped, until);
	if (unlikely(err != 0))
		return did_not_call(w, r, l, err);
	if (unlikely(dropped != NULL)) {
		if (woken != NULL)
			hd__unpark(w, woken);
		woken = NULL;
		end_calling(me);
		hd__leave(w);
		hd__letters_drop(&dropped->in_box);
		hd__enter(w = hd__self());
	}
	if (unlikely(limited || owner == 0)) {
		owner = begin_again(w, r, ld_rlx(&port->box->owner));
		server = hd__table_find(&w->sched->table, owner);
	}
	hd__arch_fence_after_lock(); /* pairs with that of another caller: one of the two sees what the other has said in begin_calling */
	if (server != NULL && unlikely(ld_rlx(&server->why) == HD_WAIT_CALL) && is_refused(w, port, r, owner)) {
		if (woken != NULL)
			hd__unpark(w, woken);
		return did_not_call(w, r, NULL, -EDEADLK);
	}
	return await(w, r, answerer(w, woken, server, owner), until);
}

__attribute__((always_inline)) static inline int call_for(hd_port *port, const struct hd_sending *what,
							  struct hd_message *answer, hd_time until)
{
	struct hd_message unwanted;
	int err = call(port, what, answer != NULL ? answer : &unwanted, until);

	if (unlikely(answer == NULL && err == 0))
		hd_message_drop(&unwanted);
	return err;
}

int hd_call(hd_port *port, int64_t tag, const void *data, size_t size, struct hd_message *answer, hd_time until)
{
	return call_for(port, &(struct hd_sending){ .tag = tag, .data = data, .size = size }, answer, until);
}

int hd_call_move(hd_port *port, int64_t tag, void *data, size_t size, void (*drop)(void *data), struct hd_message *answer,
		 hd_time until)
{
	return call_for(port, &(struct hd_sending){ .tag = tag, .data = data, .size = size, .move = true, .drop = drop },
			answer, until);
}

/* ---- the answer ---- */

__attribute__((always_inline)) static inline int reply(struct hd_message *m, const struct hd_sending *what)
{
	struct hd_worker *w = hd__self();
	struct hd__letter *call = m->letter, *l = NULL;
	struct hd_waiter *woken = NULL;
	hd_port *to = call != NULL ? call->m.carried : NULL; /* not m's: there may be copies of m, one of which was used */
	int err;

	if (unlikely(w == NULL))
		return -ENOTSUP;
	if (unlikely(to == NULL || to->head.kind != HD__REPLY_PORT))
		return call != NULL && call->answered ? -EALREADY : -EINVAL;
	struct hd__reply *r = (struct hd__reply *)to;
	hd__enter(w);
	w = hd__beginning(w);
	if (likely(what->size == 0 && !what->move)) {
		err = answer_tag(w, r, what->tag, &woken);
	} else {
		err = hd__write_letter(w, what, &l);
		if (likely(err == 0))
			err = answer(w, r, l, true, &woken);
	}
	if (unlikely(err != 0)) {
		hd__leave_call(w);
		return hd__did_not_send(l, err);
	}
	m->carried = call->m.carried = NULL;
	call->answered = true;
	struct hd_process *caller = woken != NULL ? hd__unpark_for_hand_off(w, woken) : NULL;
	if (caller != NULL)
		hd__leave(hd__yield_to(w, caller));
	else
		hd__leave_call(w);
	return 0;
}

int hd_reply(struct hd_message *m, int64_t tag, const void *data, size_t size)
{
	return reply(m, &(struct hd_sending){ .tag = tag, .data = data, .size = size });
}

int hd_reply_move(struct hd_message *m, int64_t tag, void *data, size_t size, void (*drop)(void *data))
{
	return reply(m, &(struct hd_sending){ .tag = tag, .data = data, .size = size, .move = true, .drop = drop });
}
