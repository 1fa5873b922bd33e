/* port/receive.c - receiving.
 *
 * Owns:       the wait of a mailbox's owner, and its looks at what has arrived.
 * Invariant:  the owner waits only if there is no letter for it. hd_receive_where shows each letter once in a call: it remembers the last one
 *             of each class that it has shown, and what arrives later stands behind that.
 * Locking:    the mailbox's lock; not while a function of the program looks at a message.
 * Callers:    the owner. */
#include "port/port.h"

/* The mailbox in which the runner, inside its lane, looks for messages to `port`; NULL: the port is not its own. */
static inline struct hd__mailbox *mailbox_for(struct hd_worker *w, const hd_port *port)
{
	struct hd__mailbox *box = hd__mailbox_of(w->current);
	return box != NULL && (port == NULL || (port->head.kind == HD__MAIL_PORT && port->box == box)) ? box : NULL;
}

/* Under the lock, which it releases: the letter is received, and the call ends. */
__attribute__((always_inline)) static inline int finish(struct hd_worker *w, struct hd__mailbox *box, struct hd__letter *l,
							struct hd_message *m)
{
	struct hd_waiter *woken = hd__take_letter(w, box, l);
	struct hd__letter *spare = hd__hold_letter(box, l, m);

	hd__mailbox_unlock(box);
	if (spare != NULL)
		hd__letter_free(w, spare);
	else if (unlikely(ld_rlx(&hd__in_box(hd__line_first(&box->held))->emptied)))
		hd__free_emptied(w, box);
	if (unlikely(woken != NULL))
		hd__unpark(w, woken);
	hd__leave_call(w);
	if (unlikely(box->gone != NULL))
		hd__free_gone(box);
	return 0;
}

/* Begins a call: *w is the caller's worker, its lane entered, *box its mailbox, locked. */
__attribute__((always_inline)) static inline int begin(struct hd_worker **w, struct hd__mailbox **box, const hd_port *port,
						       hd_time until)
{
	if (unlikely(hd__self() == NULL))
		return -ENOTSUP;
	int err = hd__begin_wait(w, until);
	if (unlikely(err != 0))
		return err;
	*box = mailbox_for(*w, port);
	if (unlikely(*box == NULL)) {
		hd__leave(*w);
		return -EPERM;
	}
	hd__mailbox_lock(*box);
	return 0;
}

int hd_receive(hd_port *port, struct hd_message *m, hd_time until)
{
	struct hd_worker *w;
	struct hd__mailbox *box;
	int err = begin(&w, &box, port, until);

	if (unlikely(err != 0))
		return err;
	struct hd__letter *l = hd__first_letter(box, port);
	if (l != NULL)
		return finish(w, box, l, m);
	struct hd__receiver r;

	hd__waiter_init(&r.waiter);
	r.port = port;
	r.m = m;
	return hd__park_as(w, &r.waiter, &box->receiver, until, HD_WAIT_RECEIVE, NULL);
}

/* Under the lock: the next letter that this call has not looked at. */
static struct hd__letter *next_letter(const struct hd__mailbox *box, const hd_port *port)
{
	for (int class = 0; class < HD__CLASSES; class ++) {
		const struct hd__letter *looked = box->looked[class];
		const struct hd__line *line = port != NULL ? &port->line[class] : &box->arrived[class];
		struct hd__link *next = looked == NULL
						? hd__line_first(line)
						: hd__line_after(line, port != NULL ? &looked->in_port : &looked->in_box);
		if (next != NULL)
			return port != NULL ? hd__in_port(next) : hd__in_box(next);
	}
	return NULL;
}

int hd_receive_where(hd_port *port, bool (*wanted)(const struct hd_message *m, void *arg), void *arg, struct hd_message *m,
		     hd_time until)
{
	struct hd_worker *w;
	struct hd__mailbox *box;
	struct hd__letter *l;

	if (wanted == NULL)
		return -EINVAL;
	int err = begin(&w, &box, port, until);
	if (err != 0)
		return err;
	box->looks_in = port;
	box->looked[HD__URGENT] = box->looked[HD__PLAIN] = NULL;
	for (;;) {
		while ((l = next_letter(box, port)) != NULL) {
			box->looked[l->class] = box->shown = l; /* no sender drops it now */
			hd__mailbox_unlock(box);
			hd__leave(w);
			bool is_wanted = wanted(&l->m, arg);
			hd__enter(w); /* it has made no heddle calls: it is still here */
			hd__mailbox_lock(box);
			box->shown = NULL;
			if (is_wanted)
				return finish(w, box, l, m);
		}
		struct hd__receiver r = { .port = port }; /* it is woken by the next letter to the port, and looks at that */
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

	*woken = hd__take_letter(w, box, l);
	l = hd__hold_letter(box, l, c->data);
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
