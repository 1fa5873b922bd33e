/* port/machine.c - machines: processes that have a stack in their turns only.
 *
 * Owns:       what happens between two turns of a machine.
 * Invariant:  between two turns a machine is READY in a run queue, or WAITING, or SUSPENDED, and has neither a stack nor an inner block; HD__START is up,
 *             so it is lent a stack, the hottest of its worker's, when it is chosen, and begins anew in hd__machine_turn. While it waits for a
 *             message, box->sleeper is up, and the sender that finds it so has to end the wait.
 * Locking:    a turn ends inside the lane. The machine begins to wait under the lock of its mailbox.
 * Callers:    the machine itself; a sender.
 *
 *     READY --lent a stack--> RUNNING: interpret(self, budget)
 *       ^                        |
 *       |<--- HD_WANT_TURN, -----+---- HD_WANT_MESSAGE ---> WAITING --a letter, the time, a cancel--> READY
 *       |     HD_WANT_SWITCH     |
 *       |                        +---- HD_WANT_END, terminated, hd_exit and its like ---> hd__end
 *
 * A machine that has something at the end of a turn which lives in its inner block keeps its stack, and with it the block: it yields and waits
 * there like any other process. So does one with no equal to give way to: its next turn is a call. And if the process that runs next is a machine
 * too, it is given this stack as it is: the stack is a host, on which turns of machines are calls, one after another. */
#include <heddle/cancel.h>
#include <heddle/machine.h>

#include "base/assert.h"
#include "life/guest.h"
#include "os/thread.h"
#include "port/port.h"

#include <stdlib.h>

#define BUDGET 1000

int hd_machine_waited(void)
{
	struct hd_worker *w = hd__self();

	if (w == NULL)
		return -ENOTSUP;
	enum hd__outcome outcome = w->current->inner->waited;
	return outcome == HD__TIMED_OUT ? -ETIMEDOUT : outcome == HD__CANCELLED ? -ECANCELED : 0;
}

struct hd_process *hd__wake_sleeper(struct hd_worker *w, struct hd__mailbox *box, const hd_port *port)
{
	struct hd_process *p = box->asleep;
	uint64_t where =
		ld_rlx(&p->arrival); /* if its time has come, it is ready, and this is a number: then its wait is decided */

	if (where != 0 && where != (uintptr_t)port)
		return NULL;
	box->asleep = NULL;
	st_rlx(&box->sleeper, false); /* wake_up reads it without the lock */
	return hd__decide_bare(w, p, HD__GRANTED) ? p : NULL;
}

/* Whether the machine has something in its inner block that must outlive its turn. */
static bool keeps_stack(const struct hd__inner *inner)
{
	return inner->locals != NULL || inner->held != NULL || inner->trail != NULL || inner->deaf || inner->unwinds;
}

/* The machine needs its stack no more. Before any other thread can see it ready, or waiting. */
static inline void shed_stack(struct hd_worker *w, struct hd_process *me)
{
	hd__account(w, me, ld_rlx(&w->sched->now));
	st_rlx(&me->stack, NULL);
	st_rlx(&me->inner, NULL);
	me->chores = (uint8_t)((me->chores & ~HD__CARRY) | HD__START);
	if (unlikely(hd__carries))
		hd__publish(me); /* to its next turn, on another stack */
}

/* ---- what a machine wants ----
 *
 * Each answers the worker that the machine has left, inside its lane: the machine is where it belongs, and nothing of it is touched any more. `*next`, which
 * was NULL, is the process that runs then, ready and in no queue; NULL: the first. Or it answers NULL: the machine has its next turn at once. */

/* Another turn, after that of *next, if it is not NULL. Inside the lane. */
static struct hd_worker *want_turn(struct hd_worker *w, struct hd_process *me, struct hd_process **next)
{
	st_rlx(&me->wait, HD__WAITING); /* for hd_machine_waited: whatever it waited for inside its turn does not count */
	if (*next == NULL && !hd__is_wanted(w) && w->runq.highest < me->priority) {
		hd__leave(w);
		return NULL;
	}
	if (unlikely(keeps_stack(me->inner))) {
		if (*next != NULL) {
			hd__leave(hd__yield_to(w, *next));
		} else {
			hd__leave(w);
			hd_yield();
		}
		return NULL;
	}
	shed_stack(w, me);
	hd__move(w, me, HD_READY);
	hd__runq_push_tail(&w->runq, me);
	return w;
}

/* Another turn, after that of the owner of `port`. */
static struct hd_worker *want_switch(struct hd_process *me, hd_port *port, struct hd_process **next)
{
	if (port == NULL || port->head.kind != HD__MAIL_PORT)
		hd__end(me, HD_END_FAILED, NULL, -EINVAL);
	struct hd_worker *w = hd__self();
	hd__enter(w);
	w = hd__beginning(w);
	hd_pid owner = ld_rlx(&port->box->owner);
	struct hd_process *p = hd__table_find(&w->sched->table, owner);
	if (p != NULL && p != me && hd__alive(ld_rlx(&p->control), owner) && hd__take_ready(w, p))
		*next = p;
	return want_turn(w, me, next);
}

/* Under the lock: whether there is a message that ends the wait before it begins. */
static bool is_there(const struct hd__mailbox *box, const hd_port *port)
{
	return (port != NULL && box->odd & HD__SEVERAL ? port->head.fresh : box->fresh) && hd__first_letter(box, port) != NULL;
}

/* Waits on the stack that the machine keeps. Under the lock of its mailbox, if it has one. */
static int wait_here(struct hd_worker *w, struct hd__mailbox *box, hd_port *port, hd_time until)
{
	if (box == NULL)
		return hd__park_for_time(w, until, HD_WAIT_RECEIVE);
	struct hd__receiver r = { .port = port };
	return hd__park_as(w, &r.waiter, &box->receiver, until, HD_WAIT_RECEIVE, NULL);
}

/* The wait is over, and the machine still has its stack. */
static struct hd_worker *waited(struct hd_process *me, int err)
{
	st_rlx(&me->wait, err == 0 ? HD__GRANTED : err == -ETIMEDOUT ? HD__TIMED_OUT : HD__CANCELLED);
	return NULL;
}

/* To wait for a message. */
static struct hd_worker *want_message(struct hd_process *me, hd_port *port, hd_time until)
{
	struct hd__mailbox *box = hd__mailbox_of(me);
	struct hd_worker *w;

	if (port != NULL && (box == NULL || port->head.kind != HD__MAIL_PORT || port->box != box))
		hd__end(me, HD_END_FAILED, NULL, -EPERM);
	int err = hd__begin_wait(&w, until);
	if (err == -EINVAL)
		hd__end(me, HD_END_FAILED, NULL, err);
	if (err != 0)
		return waited(me, err);
	bool past = until != HD_FOREVER && hd__is_past(w, until);
	if (box != NULL)
		hd__mailbox_lock(box);
	bool there = box != NULL && is_there(box, port);
	if (there || past) {
		if (box != NULL)
			hd__mailbox_unlock(box);
		hd__leave(w);
		return waited(me, there ? 0 : -ETIMEDOUT);
	}
	if (unlikely(keeps_stack(me->inner)))
		return waited(me, wait_here(w, box, port, until));
	shed_stack(w, me);
	if (box != NULL) {
		st_rlx(&me->arrival, (uintptr_t)port);
		box->asleep = me;
		st_rlx(&box->sleeper, true);
	}
	hd__wait_bare(w, until, HD_WAIT_RECEIVE);
	if (box != NULL)
		hd__mailbox_unlock(box); /* from here on another worker may give the machine its next turn */
	return w;
}

static inline struct hd_worker *settle(struct hd_worker *w, struct hd_process *me, const struct hd_interrupt *i,
				       struct hd_process **next)
{
	int err;

	switch (i->want) {
	case HD_WANT_TURN:
		hd__enter(w);
		return want_turn(w, me, next);
	case HD_WANT_MESSAGE:
		return want_message(me, i->port, i->until);
	case HD_WANT_SWITCH:
		return want_switch(me, i->port, next);
	case HD_WANT_END:
		err = i->err > 0 ? -i->err : i->err;
		break;
	default:
		err = -EINVAL;
	}
	if (err != 0)
		return hd__end_on_stack(w, me, HD_END_FAILED, NULL, err, next);
	return hd__end_on_stack(w, me, HD_END_RETURNED, i->result, 0, next);
}

/* ---- turns ---- */

/* The machine has been woken, by the sender that lowered `sleeper` or otherwise. From here on no sender may end a wait of its. */
static inline void wake_up(struct hd_process *me)
{
	struct hd__mailbox *box = hd__mailbox_of(me);

	if (likely(box == NULL || !ld_rlx(&box->sleeper))) /* the machine alone raises it */
		return;
	hd__mailbox_lock(box);
	box->asleep = NULL;
	st_rlx(&box->sleeper, false);
	hd__mailbox_unlock(box);
}

/* A turn of a machine that has a stack. Answers as what it wants does. */
static inline struct hd_worker *run(struct hd_process *me, struct hd_process **next)
{
	const struct hd_machine_ops *ops = me->ops;
	struct hd_cleanup last = { ops->drop, me->value, NULL }, *first = ops->drop != NULL ? &last : NULL;

	wake_up(me);
	me->inner->cleanups = first;				     /* however it ends */
	me->inner->waited = (uint8_t)hd__outcome(ld_acq(&me->wait)); /* pairs with hd__decide's release */
	if (unlikely(ld_rlx(&me->control) & HD__DOOMED) && !me->inner->deaf)
		return hd__end_on_stack(hd__self(), me, HD_END_KILLED, NULL, 0, next);
	struct hd_interrupt i = ops->interpret(me->value, ops->budget != 0 ? ops->budget : BUDGET);
	struct hd_worker *w = hd__self();
	if (unlikely(w == NULL))
		exit(0); /* a forked child came back: as with threads, its last one has ended */
	HD_ASSERT(me->inner->cleanups == first, "a machine's turn ended without hd_cleanup_pop of what it had pushed");
	HD_ASSERT(me->inner->groups == NULL, "a machine's turn ended without hd_group_wait of a group that it had opened");
	return settle(w, me, &i, next);
}

bool hd__machine_is_whole(const struct hd_process *p)
{
	if (!(p->nature & HD__MACHINE) || p->inner == NULL)
		return p->nature & HD__MACHINE;
	const struct hd_cleanup *c = p->inner->cleanups;
	while (c != NULL && (c->fn != p->ops->drop || c->next != NULL)) /* it is the first that was pushed */
		c = c->next;
	return c != NULL;
}

/* It never returns; without `hot` the compiler takes its loop for what runs once. */
__attribute__((hot)) void hd__machine_turn(struct hd_process *me)
{
	const struct hd__host host = { me->stack, me->inner, me->stack_class };

	for (;;) {
		struct hd_process *next = NULL;
		struct hd_worker *w =
			unlikely(me->nature & HD__BEHAVIOUR) ? me->home->sched->hooks.behave(me, &host, &next) : run(me, &next);
		if (w == NULL)
			continue;
		me = next == NULL && w->chores == 0 && !hd__carries ? hd__next_guest(w, &host, HD__MACHINE) : NULL;
		if (me == NULL)
			hd__leave_stack(w, host.stack, host.size_class, next); /* does not return */
	}
}
