/* port/mailbox.c - where all letters to a process arrive.
 *
 * Owns:       struct hd__mailbox: the lines of letters in it and in its ports, and its end.
 * Invariant:  a letter that has arrived is in the line of the mailbox; if that has had several ports, also in that of its port, in the same
 *             order in both. The owner waits
 *             only if there is no letter for it; then the next one goes from hand to hand. A sender waits for room only if the port is full;
 *             the letter that leaves makes room for the first one, which is then in the port. A mailbox that is closed has no letters.
 * Locking:    the lock of `receiver` guards all of it; inside it, that of a port's `room`.
 * Callers:    senders, on any thread; the owner. */
#include "os/memory.h"
#include "port/port.h"

/* The owner of the mailbox has its id, or requests find it. What was called before will be answered by it. The locks of reply ports are taken
 * inside this one; where it is the other way round, the mailbox is that of a caller, which is born. */
static void born(struct hd__mourner *mourner, hd_pid pid)
{
	struct hd__mailbox *box = (struct hd__mailbox *)mourner;

	hd__mailbox_lock(box);
	st_rlx(&box->owner, pid); /* pairs with call's second look */
	for (int class = 0; class < HD__CLASSES; class ++)
		for (struct hd__link *x = hd__line_first(&box->arrived[class]); x != NULL;
		     x = hd__line_after(&box->arrived[class], x)) {
			hd_port *carried = hd__carried(hd__in_box(x));
			if (carried != NULL && carried->head.kind == HD__REPLY_PORT)
				hd__reply_pass_on((struct hd__reply *)carried, pid);
		}
	hd__mailbox_unlock(box);
}

struct hd__mailbox *hd__mailbox_new(void)
{
	static uint32_t made; /* any thread */
	struct hd__mailbox *box = hd__os_alloc(sizeof *box);

	if (box != NULL) {
		box->number = add_rlx(&made, 1);
		box->mourner.ops = &hd__mailbox_ops;
		box->refs = 1;
	}
	return box;
}

void hd__mailbox_free(struct hd__mailbox *box)
{
	if (box == NULL)
		return;
	hd__os_free(box->more);
	hd__os_free(box->first.limits);
	hd__os_free(box);
}

struct hd__more *hd__more_own(struct hd__mailbox *box)
{
	struct hd__more *more = ld_acq(&box->more); /* pairs with hd__more_give */

	if (more != NULL)
		return more;
	more = hd__os_alloc(sizeof *more);
	if (more != NULL)
		hd__more_give(box, &more);
	hd__os_free(more); /* another thread's was first */
	return ld_acq(&box->more);
}

struct hd__mailbox *hd__mailbox_own(struct hd_worker *w)
{
	struct hd_process *me = w->current;
	struct hd__mailbox *box = hd__mailbox_of(me), *mine;

	if (likely(box != NULL))
		return box;
	mine = hd__mailbox_new();
	if (mine == NULL)
		return NULL;
	hd__waitq_lock(&me->news);
	box = hd__mailbox_of(me); /* another process may have made it meanwhile, to link itself with the caller */
	if (box == NULL)
		hd__mailbox_give(mine, me, hd__pid(&w->sched->table, me));
	hd__waitq_unlock(&me->news);
	if (box == NULL)
		return mine;
	hd__mailbox_free(mine);
	return box;
}

void hd__mailbox_give(struct hd__mailbox *box, struct hd_process *p, hd_pid pid)
{
	box->bound = true;
	st_rlx(&box->owner, pid);
	box->mourner.next = p->mourner;
	st_rel(&p->mourner, &box->mourner); /* pairs with hd__mailbox_of */
}

void hd__mailbox_release(struct hd__mailbox *box)
{
	bool last = --box->refs == 0;

	hd__mailbox_unlock(box);
	if (last)
		hd__mailbox_free(box);
}

/* ---- letters ---- */

static bool is_full(const struct hd__limits *limits, const struct hd__letter *l)
{
	return limits->count >= limits->capacity || limits->bytes > limits->memory - hd__letter_size(l);
}

void hd__pull_from_odd(struct hd__mailbox *box, struct hd__letter *l)
{
	struct hd__look *look = box->look;

	if (box->odd & HD__LOOKS && look->looked[l->class] == l)
		look->looked[l->class] = hd__letter_before(box, look->port, l->class, l);
	if (box->odd & HD__SEVERAL)
		hd__line_remove(&hd__lines_of(l->port)[l->class], &l->in_port);
}

void hd__set_look(struct hd__mailbox *box, struct hd__look *look)
{
	box->look = look;
	box->odd = (uint8_t)((box->odd & HD__SEVERAL) | (look != NULL ? HD__LOOKS : 0));
}

struct hd__letter *hd__letter_after(const struct hd__mailbox *box, const hd_port *port, int class, const struct hd__letter *l)
{
	if (port == NULL || !(box->odd & HD__SEVERAL)) {
		const struct hd__line *line = &box->arrived[class];
		return hd__in_box(l == NULL ? hd__line_first(line) : hd__line_after(line, &l->in_box));
	}
	const struct hd__line *line = &hd__lines_of(port)[class];
	return hd__in_port(l == NULL ? hd__line_first(line) : hd__line_after(line, &l->in_port));
}

struct hd__letter *hd__letter_before(const struct hd__mailbox *box, const hd_port *port, int class, const struct hd__letter *l)
{
	if (port == NULL || !(box->odd & HD__SEVERAL)) {
		const struct hd__line *line = &box->arrived[class];
		return hd__in_box(l == NULL ? line->last : hd__line_before(line, &l->in_box));
	}
	const struct hd__line *line = &hd__lines_of(port)[class];
	return hd__in_port(l == NULL ? line->last : hd__line_before(line, &l->in_port));
}

void hd__untake(struct hd__mailbox *box)
{
	struct hd__more *more = ld_acq(&box->more);
	struct hd__link *first = more != NULL ? more->taken : NULL, *last;

	if (first == NULL)
		return;
	last = box->arrived[HD__PLAIN].last;
	if (last == NULL) {
		last = more->taken_last;
		st_rlx(&box->arrived[HD__PLAIN].last, last);
	} else {
		more->taken_last->next = last->next;
		last->next->prev = more->taken_last;
	}
	last->next = first;
	first->prev = last;
	more->taken = NULL;
	if (unlikely(box->first.head.kind == HD__NO_PORT)) /* it ended while the letter was in hand */
		hd__port_revive(&box->first);
	box->first.length -= more->received;
	st_rlx(&more->received, 0);
	if (box->first.length > box->first.high_water)
		box->first.high_water = box->first.length;
}

/* Claims the first sender that waits for room, if there is room for its letter; or NULL. */
static struct hd_waiter *claim_sender(struct hd_worker *w, struct hd__limits *limits)
{
	struct hd_waiter *x = NULL;

	hd__waitq_lock(&limits->room);
	while (limits->room.head != NULL && !is_full(limits, limits->room.head->data)) {
		struct hd_waiter *first = limits->room.head;
		if (hd__waitq_claim_one(w, &limits->room, first, HD__GRANTED)) {
			x = first;
			break;
		}
	}
	hd__waitq_unlock(&limits->room);
	return x;
}

/* A letter has left a port with limits, whose owner does not wait: the first sender that waits for room has some, perhaps. When that goes on, it
 * lets in those behind it (let_others_in). */
static struct hd_waiter *let_in(struct hd_worker *w, struct hd__mailbox *box, hd_port *port)
{
	struct hd_waiter *x = claim_sender(w, port->limits);

	if (x != NULL)
		hd__push_letter(box, port, x->data);
	return x;
}

/* Under the lock, by the owner: the port is gone, or will be with hd__free_gone. */
static void retire(struct hd__mailbox *box, hd_port *port)
{
	struct hd__later_port *later = hd__port_retire(port);

	if (later == NULL) {
		box->refs--; /* the owner's own is left */
		return;
	}
	later->next = box->more->gone;
	box->more->gone = later;
}

struct hd_waiter *hd__letter_left(struct hd_worker *w, struct hd__mailbox *box, struct hd__letter *l)
{
	hd_port *port = l->port;
	struct hd_waiter *x = port->limits != NULL ? let_in(w, box, port) : NULL;

	if (port->head.freed && port->length == 0) {
		retire(box, port);
		l->port = NULL;
	}
	return x;
}

void hd__free_emptied(struct hd_worker *w, struct hd__mailbox *box)
{
	struct hd__letter *l;

	while ((l = hd__in_box(hd__line_first(&box->held))) != NULL && ld_acq(&l->emptied)) { /* pairs with drop_elsewhere */
		hd__line_remove(&box->held, &l->in_box);
		hd__letter_free(w, l);
	}
}

void hd__free_gone(struct hd__mailbox *box)
{
	struct hd__more *more = ld_acq(&box->more);
	struct hd__later_port *gone = more != NULL ? more->gone : NULL;

	if (gone != NULL)
		more->gone = NULL;
	while (gone != NULL) {
		struct hd__later_port *next = gone->next;
		hd__port_free(gone);
		hd__mailbox_lock(box); /* the owner's own reference is left */
		hd__mailbox_release(box);
		gone = next;
	}
}

/* Whether the owner waits for a letter in this port, and where it goes: NULL if the owner wants to look for itself. */
static bool waits_for(const struct hd_waiter *x, const hd_port *port, struct hd_message **m)
{
	const hd_port *wanted;

	if (x->several) {
		const struct hd_case *c = (const void *)((const char *)x - offsetof(struct hd_case, record));
		wanted = c->object;
		*m = c->data;
	} else {
		wanted = ((const struct hd__receiver *)x)->port;
		*m = ((const struct hd__receiver *)x)->m;
	}
	return wanted == NULL || wanted == port;
}

/* Claims the owner's wait, if it waits for this; *m is where the message goes. */
static struct hd_waiter *claim_owner(struct hd_worker *w, struct hd__mailbox *box, const hd_port *port, struct hd_message **m)
{
	struct hd_waiter *x, *next;

	for (x = box->receiver.head; x != NULL; x = next) { /* one record; more only in hd_select */
		next = x->next;
		if (waits_for(x, port, m) && hd__waitq_claim_one(w, &box->receiver, x, HD__GRANTED))
			return x;
	}
	*m = NULL;
	return NULL;
}

/* The oldest letter of a full port that counts and is not being looked at; NULL: none. */
static struct hd__letter *oldest(const struct hd__mailbox *box, const hd_port *port)
{
	const struct hd__letter *shown = hd__shown(box);

	for (int class = HD__CLASSES; class -- > 0;)
		for (struct hd__letter *l = NULL; (l = hd__letter_after(box, port, class, l)) != NULL;)
			if (!l->exempt && l != shown)
				return l;
	return NULL;
}

/* The port is full: makes room, or answers what the sender hears; `*dropped` receives what is to be dropped. */
static int make_room(struct hd__mailbox *box, hd_port *port, struct hd__letter *l, struct hd__letter **dropped)
{
	struct hd__limits *limits = port->limits;

	if (limits->full == HD_FULL_FAIL || limits->full == HD_FULL_BLOCK)
		return -ENOBUFS;
	struct hd__link *chain = NULL;
	while (limits->full == HD_FULL_DROP_OLD && is_full(limits, l)) {
		struct hd__letter *old = oldest(box, port);
		if (old == NULL)
			break;
		hd__pull_letter(box, old);
		old->in_box.next = chain;
		chain = &old->in_box;
		limits->dropped++;
	}
	*dropped = hd__in_box(chain);
	if (!is_full(limits, l))
		return 0;
	l->in_box.next = chain; /* the new one goes the same way */
	*dropped = l;
	limits->dropped++;
	return 1;
}

int hd__put_letter(struct hd_worker *w, hd_port *port, struct hd__letter *l, struct hd__wakee *woken,
		   struct hd__letter **dropped, struct hd__letter **spare)
{
	struct hd__mailbox *box = port->box;
	struct hd_message *m = NULL;
	int err = 0;

	*woken = (struct hd__wakee){ NULL, NULL };
	*dropped = *spare = NULL;
	if (unlikely(box->closed))
		return -ESRCH;
	if (unlikely(port->limits != NULL && !l->exempt && is_full(port->limits, l)))
		err = make_room(box, port, l, dropped);
	if (unlikely(err != 0))
		return err < 0 ? err : 0;
	if (box->receiver.head != NULL)
		woken->record = claim_owner(w, box, port, &m);
	if (m != NULL) {
		hd__trace_received(w, l, ld_rlx(&box->owner));
		*spare = hd__hold_letter(box, l, port, m);
	} else {
		hd__push_letter(box, port, l);
		if (unlikely(box->sleeper))
			woken->machine = hd__wake_sleeper(w, box, port);
	}
	return 0;
}

bool hd__has_room(const hd_port *port, size_t count, size_t bytes)
{
	const struct hd__limits *limits = port->limits;

	if (limits == NULL || limits->full == HD_FULL_DROP_NEW || limits->full == HD_FULL_DROP_OLD)
		return true;
	return limits->room.head == NULL && count <= limits->capacity && limits->count <= limits->capacity - count &&
	       bytes <= limits->memory && limits->bytes <= limits->memory - bytes;
}

/* Under the lock, which it releases. */
static int deliver(struct hd_worker *w, hd_port *port, struct hd__letter *l, struct hd__wakee *woken,
		   struct hd__letter **dropped)
{
	struct hd__letter *spare;
	int err = hd__put_letter(w, port, l, woken, dropped, &spare);

	hd__mailbox_unlock(port->box);
	if (spare != NULL)
		hd__letter_free(w, spare);
	return err;
}

int hd__deliver(struct hd_worker *w, hd_port *port, struct hd__letter *l, struct hd__wakee *woken, struct hd__letter **dropped)
{
	*woken = (struct hd__wakee){ NULL, NULL };
	*dropped = NULL;
	if (unlikely(port->head.kind == HD__REPLY_PORT))
		return hd__answer(w, (struct hd__reply *)port, l, woken);
	if (unlikely(port->limits != NULL && hd__letter_size(l) > port->limits->memory && !l->exempt))
		return -EMSGSIZE;
	hd__mailbox_lock(port->box);
	return deliver(w, port, l, woken, dropped);
}

int hd__deliver_locked(struct hd_worker *w, hd_port *port, struct hd__letter *l, struct hd__wakee *woken)
{
	struct hd__letter *none;

	return deliver(w, port, l, woken, &none);
}

/* A sender does not wait any more: those behind it may have room, if its letter needs less than there is, or has not been sent. No locks are
 * held. */
static void let_others_in(struct hd_worker *w, hd_port *port, void (*let_go)(struct hd_worker *w, struct hd_waiter *x))
{
	struct hd_waiter *x, bare;
	struct hd__wakee owner;
	struct hd__letter *dropped, *spare;

	do {
		owner = (struct hd__wakee){ NULL, NULL };
		spare = NULL;
		hd__mailbox_lock(port->box);
		x = claim_sender(w, port->limits);
		int err = x != NULL ? hd__put_letter(w, port, x->data, &owner, &dropped, &spare) : 0;
		HD_ASSERT(err == 0, "a sender was let in for which there was no room");
		hd__mailbox_unlock(port->box);
		if (spare != NULL)
			hd__letter_free(w, spare);
		bare = (struct hd_waiter){ .process = owner.machine };
		if (owner.record != NULL || owner.machine != NULL)
			let_go(w, owner.record != NULL ? owner.record : &bare);
		if (x != NULL)
			let_go(w, x);
	} while (x != NULL);
}

static void unpark(struct hd_worker *w, struct hd_waiter *x)
{
	hd__unpark(w, x);
}

/* A sender's record: x.data is its letter, which may be gone once its wait is granted. */
struct sender {
	struct hd_waiter waiter;
	hd_port *port; /* the sender has a reference */
};

static hd_port *port_of(const struct hd_waiter *x)
{
	return ((const struct sender *)x)->port;
}

/* A sender was called off, or its deadline came. */
static void sender_left(struct hd_worker *w, struct hd_waiter *x)
{
	hd__waitq_unlock(x->queue);
	let_others_in(w, port_of(x), unpark);
}

/* A sender that has waited for room does not go on. If it is in the port, those behind it do not wait for it. If it never runs again, nothing of it
 * holds a letter that was not sent. What was to be moved is not dropped: it is the sender's. */
static void sender_stalled(struct hd_worker *w, struct hd_waiter *x, bool for_good)
{
	struct hd__letter *l = x->data;
	bool granted = hd__outcome(ld_acq(&x->process->wait)) == HD__GRANTED;

	if (!for_good && granted)
		let_others_in(w, port_of(x), hd__unpark_later);
	if (!for_good || l == NULL || granted)
		return;
	x->data = NULL;
	if (l->kind != HD__BARE)
		l->drop = NULL;
	l->in_box.next = NULL;
	hd__letters_leave(w, &l->in_box);
}

static const struct hd__wait_ops sender_ops = { .left = sender_left, .stalled = sender_stalled };

int hd__deliver_slowly(struct hd_worker **w, hd_port *port, struct hd__letter *l, struct hd__wakee *woken,
		       struct hd__letter **dropped, hd_time until)
{
	if (port->head.kind == HD__REPLY_PORT || port->limits->full != HD_FULL_BLOCK ||
	    hd__letter_size(l) > port->limits->memory)
		return hd__deliver(*w, port, l, woken, dropped);
	struct hd__mailbox *box = port->box;
	struct hd_waitq *room = &port->limits->room;
	*woken = (struct hd__wakee){ NULL, NULL };
	*dropped = NULL;
	hd__mailbox_lock(box);
	hd__waitq_lock(room);
	/* if other senders wait, for more room than this one needs, it stands behind them */
	if (box->closed || (room->head == NULL && !is_full(port->limits, l))) {
		hd__waitq_unlock(room);
		return deliver(*w, port, l, woken, dropped);
	}
	hd__mailbox_unlock(box);
	struct sender x = { .waiter = { .data = l, .owner = &box->owner, .rules = HD__HEEDS_LATER, .ops = &sender_ops },
			    .port = port };
	bool thread = *w == NULL;
	if (thread)
		hd__gate_leave(); /* the runtime may end before there is room */
	int err = hd__park_as(*w, &x.waiter, room, until, HD_WAIT_SEND, NULL);
	if (thread)
		hd__gate_enter_surely();
	else
		hd__enter(*w = hd__self());
	if (err == 0)
		let_others_in(*w, port, unpark);
	return err == -EPIPE ? -ESRCH : err;
}

/* ---- the end ---- */

/* All letters of a line, before `chain`; they are in no line then. */
static struct hd__link *take_all(struct hd__line *line, struct hd__link *chain)
{
	if (line->last != NULL) {
		struct hd__link *first = line->last->next;
		line->last->next = chain;
		chain = first;
		st_rlx(&line->last, NULL);
	}
	return chain;
}

struct hd__link *hd__mailbox_close(struct hd_worker *w, struct hd__mailbox *box)
{
	struct hd__link *chain = NULL;
	struct hd_waiter *senders = NULL;

	hd__mailbox_lock(box);
	box->closed = true;
	hd__untake(box);
	hd__set_look(box, NULL); /* of an owner that will never go on: its stack is there no longer than this */
	st_rlx(&box->sleeper, false);
	for (struct hd__link *x = hd__line_first(&box->held); x != NULL; x = hd__line_after(&box->held, x))
		hd__in_box(x)->holder = NULL;
	for (int class = HD__CLASSES; class -- > 0;)
		chain = take_all(&box->arrived[class], chain);
	chain = take_all(&box->held, chain);
	for (hd_port *port = NULL; (port = hd__port_after(box, port)) != NULL;) {
		if (box->odd & HD__SEVERAL)
			hd__lines_of(port)[HD__URGENT].last = hd__lines_of(port)[HD__PLAIN].last = NULL;
		port->length = 0;
		chain = hd__afters_end(port, chain);
		if (port->limits == NULL)
			continue;
		port->limits->count = port->limits->bytes = 0;
		hd__waitq_lock(&port->limits->room);
		struct hd_waiter *all = hd__waitq_claim_all(w, &port->limits->room, HD__CLOSED, HD_WAIT_NONE), **end = &all;
		hd__waitq_unlock(&port->limits->room);
		while (*end != NULL)
			end = &(*end)->next;
		*end = senders;
		senders = all;
	}
	hd__mailbox_unlock(box);
	hd__unpark_all(w, senders);
	return chain;
}

/* Gives up what its owner had of the ports: the references that are heddle's to release, and the ports without any. By the thread of w. */
static void release_ports(struct hd_worker *w, struct hd__mailbox *box)
{
	for (;;) {
		struct hd_waiter *woken = NULL;
		hd__mailbox_lock(box);
		hd_port *port = NULL;
		while ((port = hd__port_after(box, port)) != NULL && !port->head.owners && !port->head.freed)
			;
		if (port == NULL)
			break;
		bool freed = port->head.freed;
		port->head.owners = false;
		if (freed)
			retire(box, port);
		hd__mailbox_unlock(box);
		if (!freed)
			hd__port_release(w, port, &woken); /* of a mail port of an owner: none is woken, nothing is left */
	}
	hd__mailbox_unlock(box);
	hd__free_gone(box);
}

static void forget_reply(struct hd__mailbox *box)
{
	struct hd__more *more = ld_acq(&box->more);

	if (more == NULL || more->reply == NULL)
		return;
	hd__reply_forget(more->reply);
	more->reply = NULL;
}

/* The owner ends. */
static void ending(struct hd__mourner *mourner, struct hd_process *me, enum hd_end_kind kind, int err)
{
	struct hd__mailbox *box = (struct hd__mailbox *)mourner;
	struct hd_worker *w;

	me->inner->more = NULL;	 /* hd__mailbox_close sees to what it has */
	hd__afters_end_all(box); /* while it is open: there may be many */
	w = hd__self();
	hd__enter(w);
	struct hd__link *chain = hd__mailbox_close(w, box);
	hd__leave(w);
	forget_reply(box);
	hd__names_end(w, w->sched, box);
	hd__letters_drop(chain);
	release_ports(hd__self(), box);
	hd__ties_end(box, kind, err);
}

/* The process is dead. If it has never run, or never will again, all is still there. */
static void ended(struct hd__mourner *mourner, struct hd_worker *w, const struct hd_end *end)
{
	struct hd__mailbox *box = (struct hd__mailbox *)mourner;

	if (unlikely(!box->closed)) {
		struct hd__link *chain = hd__mailbox_close(w, box);
		hd__names_end(w, w->sched, box); /* it is closed: there will be no more names */
		hd__letters_leave(w, chain);
		release_ports(w, box);
	}
	forget_reply(box); /* also one for a call that was made in the process's end */
	hd__ties_tell(w, box, end);
	st_rlx(&box->owner, 0); /* the id may be another process's, in another runtime */
	hd__mailbox_lock(box);
	hd__mailbox_release(box);
}

const struct hd__mourner_ops hd__mailbox_ops = { .born = born, .ending = ending, .ended = ended };

void hd__letters_leave(struct hd_worker *w, struct hd__link *chain)
{
	while (chain != NULL) {
		struct hd__letter *l = hd__in_box(chain);
		struct hd_waiter *woken = NULL;
		chain = chain->next;
		if (hd__carried(l) != NULL) {
			chain = hd__chain(hd__port_release(w, l->carried, &woken), chain);
			l->carried = NULL;
		}
		if (woken != NULL)
			hd__unpark(w, woken);
		if (l->kind == HD__BARE || l->drop == NULL) {
			hd__letter_free(w, l);
			continue;
		}
		hd__lock(&w->sched->unread_lock);
		l->in_box.next = w->sched->unread;
		w->sched->unread = &l->in_box;
		hd__unlock(&w->sched->unread_lock);
	}
}

void hd__letters_drop_left(struct hd__sched *sched)
{
	struct hd__link *chain = sched->unread;

	sched->unread = NULL;
	hd__letters_drop(chain);
}

void hd__ports_forget(struct hd__sched *parents)
{
	hd__afters_forget(parents);
	for (uint32_t slot = 0; slot < ld_rlx(&parents->table.made); slot++) {
		struct hd_process *p = &parents->table.blocks[slot];
		struct hd__mailbox *box = ld_rlx(&p->control) & HD__DEAD ? NULL : hd__mailbox_of(p);
		if (box == NULL || box->closed)
			continue;
		box->closed = true;
		st_rlx(&box->owner, 0);
		hd__waitq_forget(&box->receiver);
		hd__mailbox_unlock(box); /* another thread of the parent may have had it */
		if (box->more != NULL && box->more->reply != NULL)
			hd__reply_abandon(box->more->reply);
		for (hd_port *port = NULL; (port = hd__port_after(box, port)) != NULL;) {
			hd__afters_abandon(port);
			if (port->limits != NULL) {
				hd__waitq_forget(&port->limits->room);
				hd__waitq_unlock(&port->limits->room);
			}
		}
	}
}
