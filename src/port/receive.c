/* port/receive.c - receiving.
 *
 * Owns:       the wait of a mailbox's owner, its looks at what has arrived, and what it has taken of that.
 * Invariant:  the owner waits only if there is no letter for it. hd_receive_where shows each letter once in a call: it remembers the last one
 *             of each class that it has shown, and what arrives later stands behind that. What the owner has taken (more->taken) stands before all that
 *             is in the mailbox, and is two letters or more when hd_receive ends, or none but what is on its way back. A letter
 *             that was handed to it (direct.c) stands there too, alone.
 * Locking:    the mailbox's lock; not while a function of the program looks at a message.
 * Callers:    the owner. */
#include "port/port.h"

/* The mailbox in which the runner, inside its lane, looks for messages to `port`; NULL: the port is not its own. */
static inline struct hd__mailbox *mailbox_for(struct hd_worker *w, const hd_port *port)
{
	if (likely(port != NULL))
		return port->head.kind == HD__MAIL_PORT && &port->box->mourner == ld_acq(&w->current->mourner) ? port->box
													       : NULL;
	return hd__mailbox_of(w->current);
}

/* Under the lock, which it releases: the letter is received, and the call ends. */
__attribute__((always_inline)) static inline int finish(struct hd_worker *w, struct hd__mailbox *box, struct hd__letter *l,
							struct hd_message *m)
{
	hd__trace_event(w, HD__TRACED_RECEIVE, hd__pid(&w->sched->table, w->current), 0, (uintptr_t)l);
	struct hd_waiter *woken = hd__take_letter(w, box, l);
	bool holds = box->held.last != NULL;
	struct hd__letter *spare = hd__hold_letter(box, l, l->port, m);

	hd__mailbox_unlock(box);
	if (spare != NULL)
		hd__letter_free(w, spare);
	if (unlikely(holds) && ld_rlx(&hd__in_box(hd__line_first(&box->held))->emptied))
		hd__free_emptied(w, box);
	if (unlikely(woken != NULL))
		hd__unpark(w, woken);
	hd__leave(hd__safe_point(w));
	if (unlikely(box->odd & HD__SEVERAL && box->more->gone != NULL))
		hd__free_gone(box);
	return 0;
}

/* ---- many at once ---- */

#define TAKE_MIN 8 /* letters */

/* Under the lock: l is the first letter of a line that is not short. The owner takes those behind it: it receives them without the lock, which senders on
 * other workers have to themselves meanwhile. Not if an urgent letter is there, or the mailbox has several ports: then others may be received first; nor if it
 * matters at once that a letter has left: the port has limits, or no references. A machine's inner block is gone after its turn. Returns
 * whether the owner could take them if the mailbox had its `more`. */
static bool take_rest(struct hd_worker *w, struct hd__mailbox *box, struct hd__letter *l)
{
	struct hd__more *more = ld_acq(&box->more);
	struct hd__link *last = box->arrived[HD__PLAIN].last, *x = &l->in_box;

	if (box->odd != 0 || box->arrived[HD__URGENT].last != NULL || l->port->limits != NULL || l->port->head.freed ||
	    x == last || w->current->nature & HD__MACHINE)
		return false;
	if (more == NULL)
		return true;
	more->taken = x->next;
	more->taken_last = last;
	st_rlx(&more->hurry, false);
	last->next = NULL;
	x->next = x->prev = x;
	st_rlx(&box->arrived[HD__PLAIN].last, x);
	w->current->inner->more = more;
	return false;
}

/* As finish, when there are many letters behind l. */
__attribute__((noinline)) static int finish_many(struct hd_worker *w, struct hd__mailbox *box, struct hd__letter *l,
						 struct hd_message *m)
{
	bool lacks = take_rest(w, box, l);
	int err = finish(w, box, l, m);

	if (lacks)
		hd__more_own(box); /* for the next time; without memory there will be none */
	return err;
}

/* The runner, inside its lane, has taken letters: receives the first of them, and touches nothing of the mailbox, if it need not. False: it has none any
 * more; they are in the mailbox. The last one goes there too: it is received under the lock, so that the end of its port finds it or sees it leave. */
static bool receive_taken(struct hd_worker *w, const hd_port *port, struct hd_message *m)
{
	struct hd_process *me = w->current;
	struct hd__mailbox *box = (struct hd__mailbox *)me->mourner;
	struct hd__more *more = me->inner->more;
	struct hd__letter *l = hd__in_box(more->taken);

	if (unlikely(l->in_box.next == NULL || ld_rlx(&more->hurry) || (port != NULL && port != &box->first))) {
		hd__mailbox_lock(box);
		hd__untake(box);
		hd__mailbox_unlock(box);
		return false;
	}
	__builtin_prefetch(l->in_box.next);
	more->taken = l->in_box.next;
	bump(&more->received, 1);
	hd__trace_event(w, HD__TRACED_RECEIVE, hd__pid(&w->sched->table, me), 0, (uintptr_t)l);
	l = hd__hold_letter(box, l, l->port, m);
	if (l != NULL)
		hd__letter_free(w, l);
	else if (unlikely(ld_rlx(&hd__in_box(hd__line_first(&box->held))->emptied)))
		hd__free_emptied(w, box);
	hd__leave(hd__safe_point(w));
	return true;
}

/* Begins a call: *w is the caller's worker, its lane entered. */
__attribute__((always_inline)) static inline int begin(struct hd_worker **w, hd_time until)
{
	int err = hd__begin_wait(w, until);

	return likely(err == 0) && unlikely(*w == NULL) ? -ENOTSUP : err;
}

/* *box is the caller's mailbox, locked; else its lane is left. */
__attribute__((always_inline)) static inline int begin_in(struct hd_worker **w, struct hd__mailbox **box, const hd_port *port)
{
	*box = mailbox_for(*w, port);
	if (unlikely(*box == NULL)) {
		hd__leave(*w);
		return -EPERM;
	}
	hd__mailbox_lock(*box);
	return 0;
}

/* As hd_receive, inside the lane of w, by an owner that has taken no letters: `box` is its mailbox, and locked. */
__attribute__((noinline)) static int receive_locked(struct hd_worker *w, hd_port *port, struct hd_message *m, hd_time until,
						    struct hd__mailbox *box)
{
	struct hd__letter *l = hd__first_letter(box, port);
	if (l != NULL)
		return likely(l->port->length < TAKE_MIN) ? finish(w, box, l, m) : finish_many(w, box, l, m);
	struct hd__receiver r;

	hd__waiter_init(&r.waiter);
	r.port = port;
	r.m = m;
	return hd__park_as(w, &r.waiter, &box->receiver, until, HD_WAIT_RECEIVE, NULL);
}

/* As receive_locked, before it is. */
static int receive(struct hd_worker *w, hd_port *port, struct hd_message *m, hd_time until)
{
	struct hd__mailbox *box;
	int err = begin_in(&w, &box, port);

	return unlikely(err != 0) ? err : receive_locked(w, port, m, until, box);
}

/* As hd_receive, inside the lane of w, at any time. */
__attribute__((noinline)) static int receive_any(struct hd_worker *w, hd_port *port, struct hd_message *m, hd_time until)
{
	const struct hd__more *more = w->current->inner->more;

	return more != NULL && more->taken != NULL && receive_taken(w, port, m) ? 0 : receive(w, port, m, until);
}

__attribute__((noinline)) static int receive_slowly(hd_port *port, struct hd_message *m, hd_time until)
{
	struct hd_worker *w;
	int err = begin(&w, until);

	return err != 0 ? err : receive_any(w, port, m, until);
}

/* As receive, with a short way for what is usual. */
__attribute__((always_inline)) static inline int receive_quickly(struct hd_worker *w, hd_port *port, struct hd_message *m,
								 hd_time until)
{
	if (unlikely(port == NULL || mailbox_for(w, port) == NULL || !hd__try_lock_told(&port->box->receiver.lock)))
		return receive_any(w, port, m, until);
	struct hd__mailbox *box = port->box;
	struct hd__letter *l = hd__in_box(hd__line_first(&box->arrived[HD__PLAIN]));
	if (l == NULL || unlikely(box->odd != 0 || box->arrived[HD__URGENT].last != NULL || port->limits != NULL ||
				  port->head.freed || port->length >= TAKE_MIN || box->held.last != NULL))
		return receive_locked(w, port, m, until, box);
	hd__line_remove(&box->arrived[HD__PLAIN], &l->in_box);
	port->length--;
	l = hd__hold_letter(box, l, port, m);
	hd__mailbox_unlock(box);
	if (l != NULL)
		hd__letter_free(w, l);
	hd__leave_call(w);
	return 0;
}

/* Whether the letter that was handed to the owner is its next one, and the port in which that is has not ended. */
static inline bool is_next(const struct hd__mailbox *box, const struct hd__more *more, const hd_port *port)
{
	return likely(ld_rlx(&more->received) == HD__HANDED && !ld_rlx(&more->hurry) && (port == NULL || port == &box->first) &&
		      ld_rlx(&box->first.head.kind) == HD__MAIL_PORT);
}

int hd_receive(hd_port *port, struct hd_message *m, hd_time until)
{
	struct hd_worker *w = hd__self();

	if (unlikely(!hd__begin_quietly(w, until)))
		return hd__keep_frame(receive_slowly(port, m, until));
	struct hd_process *me = w->current;
	struct hd__mailbox *box = (struct hd__mailbox *)me->mourner; /* if it has taken letters */
	struct hd__more *more = me->inner->more;
	if (more == NULL || more->taken == NULL)
		return receive_quickly(w, port, m, until);
	if (!is_next(box, more, port))
		return receive_any(w, port, m, until);
	struct hd__letter *l = hd__in_box(more->taken);
	struct hd__link *held = hd__line_first(&box->held);
	more->taken = NULL;
	st_rlx(&more->received, 0);
	hd__hold_letter(box, l, &box->first, m); /* it is not bare: it is a call */
	if (unlikely(held != NULL && ld_rlx(&hd__in_box(held)->emptied)))
		hd__free_emptied(w, box);
	hd__leave_call(w);
	return 0;
}

/* Under the lock: the next letter that this call has not looked at. */
static struct hd__letter *next_letter(const struct hd__mailbox *box, const struct hd__look *look)
{
	struct hd__letter *next = NULL;

	for (int class = 0; class < HD__CLASSES && next == NULL; class ++)
		next = hd__letter_after(box, look->port, class, look->looked[class]);
	return next;
}

/* The owner's wait in hd_receive_where was called off: called under the lock, which it releases. */
static void stop_looking(struct hd_worker *w, struct hd_waiter *x)
{
	struct hd__mailbox *box = (struct hd__mailbox *)((char *)x->queue - offsetof(struct hd__mailbox, receiver));

	(void)w;
	hd__set_look(box, NULL);
	hd__mailbox_unlock(box);
}

static const struct hd__wait_ops looking = { .left = stop_looking };

/* Under the lock: the owner has looked at all letters in `port` (NULL: in all its ports). */
static void look_past(struct hd__mailbox *box, hd_port *port)
{
	if (port == NULL || !(box->odd & HD__SEVERAL))
		box->fresh = false;
	else
		port->head.fresh = false;
}

int hd_receive_where(hd_port *port, bool (*wanted)(const struct hd_message *m, void *arg), void *arg, struct hd_message *m,
		     hd_time until)
{
	struct hd_worker *w;
	struct hd__mailbox *box;
	struct hd__letter *l;
	struct hd__look look = { .port = port };

	if (wanted == NULL)
		return -EINVAL;
	int err = begin(&w, until);
	if (err == 0)
		err = begin_in(&w, &box, port);
	if (err != 0)
		return err;
	hd__untake(box);
	hd__set_look(box, &look);
	for (;;) {
		while ((l = next_letter(box, &look)) != NULL) {
			look.looked[l->class] = look.shown = l; /* no sender drops it now */
			hd__mailbox_unlock(box);
			hd__leave(w);
			struct hd_message seen;
			hd__read_letter(l, l->port, &seen);
			bool is_wanted = wanted(&seen, arg);
			hd__enter(w); /* it has made no heddle calls: it is still here */
			hd__mailbox_lock(box);
			look.shown = NULL;
			if (is_wanted) {
				hd__set_look(box, NULL);
				return finish(w, box, l, m);
			}
		}
		look_past(box, port);
		struct hd__receiver r = { .waiter = { .ops = &looking },
					  .port = port }; /* it is woken by the next letter to the port, and looks at that */
		err = hd__park_as(w, &r.waiter, &box->receiver, until, HD_WAIT_RECEIVE, NULL);
		if (err != 0)
			return err;
		hd__enter(w = hd__self());
		hd__mailbox_lock(box);
	}
}

static bool has_tag(const struct hd_message *m, void *arg)
{
	return m->tag == *(const int64_t *)arg;
}

int hd_receive_tag(hd_port *port, int64_t tag, struct hd_message *m, hd_time until)
{
	return hd_receive_where(port, has_tag, &tag, m, until);
}

/* ---- for select ---- */

static struct hd_waitq *lock_case(struct hd_worker *w, struct hd_case *c)
{
	struct hd__mailbox *box = mailbox_for(w, c->object);

	c->err = -EPERM;
	if (box == NULL)
		return NULL;
	hd__mailbox_lock(box);
	hd__untake(box);
	return &box->receiver;
}

static bool has_letter(const struct hd_worker *w, const struct hd_case *c)
{
	return hd__first_letter(hd__mailbox_of(w->current), c->object) != NULL;
}

static int take(struct hd_worker *w, struct hd_case *c, struct hd_waiter **woken)
{
	struct hd__mailbox *box = hd__mailbox_of(w->current);
	struct hd__letter *l = hd__first_letter(box, c->object);

	hd__trace_event(w, HD__TRACED_RECEIVE, hd__pid(&w->sched->table, w->current), 0, (uintptr_t)l);
	*woken = hd__take_letter(w, box, l);
	l = hd__hold_letter(box, l, l->port, c->data);
	if (l != NULL)
		hd__letter_free(w, l);
	return 0;
}

static void free_gone(struct hd_worker *w, struct hd_case *c)
{
	(void)c;
	hd__free_gone(hd__mailbox_of(w->current));
}

const struct hd__case_ops hd__receive_case = {
	.why = HD_WAIT_RECEIVE, .lock = lock_case, .can = has_letter, .happen = take, .finish = free_gone
};
