/* port/mailbox.c - where all letters to a process arrive.
 *
 * Owns:       struct hd__mailbox: the lines of letters in it and in its ports, and its end.
 * Invariant:  a letter that has arrived is in the line of its port and in that of the mailbox, in the same order in both. The owner waits
 *             only if there is no letter for it; then the next one goes from hand to hand. A sender waits for room only if the port is full;
 *             the letter that leaves makes room for the first one, which is then in the port. A mailbox that is closed has no letters.
 * Locking:    the lock of `receiver` guards all of it; inside it, that of a port's `room`.
 * Callers:    senders, on any thread; the owner. */
#include "os/memory.h"
#include "port/port.h"

/* The owner of the mailbox has its id. What was called before will be answered by it. The locks of reply ports are taken inside this one; where
 * it is the other way round, the mailbox is that of a caller, which is born. */
static void born(struct hd__mourner *mourner, hd_pid pid)
{
	struct hd__mailbox *box = (struct hd__mailbox *)mourner;

	hd__mailbox_lock(box);
	st_rlx(&box->owner, pid); /* pairs with call's second look */
	for (int class = 0; class < HD__CLASSES; class ++)
		for (struct hd__link *x = hd__line_first(&box->arrived[class]); x != NULL;
		     x = hd__line_after(&box->arrived[class], x)) {
			hd_port *carried = hd__in_box(x)->m.carried;
			if (carried != NULL && carried->head.kind == HD__REPLY_PORT)
				hd__reply_pass_on((struct hd__reply *)carried, pid);
		}
	hd__mailbox_unlock(box);
}

struct hd__mailbox *hd__mailbox_new(void)
{
	static uint64_t made; /* any thread */
	struct hd__mailbox *box = hd__os_alloc(sizeof *box);

	if (box != NULL) {
		box->number = add_rlx(&made, 1);
		box->mourner = (struct hd__mourner){ .born = born, .ending = hd__mailbox_ending, .ended = hd__mailbox_ended };
		box->refs = 1;
	}
	return box;
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
	hd__os_free(mine);
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
		hd__os_free(box);
}

/* ---- letters ---- */

static bool is_full(const struct hd__limits *limits, const struct hd__letter *l)
{
	return limits->count >= limits->capacity || limits->bytes > limits->memory - l->m.size;
}

void hd__pull_looked(struct hd__mailbox *box, struct hd__letter *l)
{
	const struct hd__line *line = box->looks_in == NULL ? &box->arrived[l->class] : &l->m.port->line[l->class];

	box->looked[l->class] = box->looks_in == NULL ? hd__in_box(hd__line_before(line, &l->in_box))
						      : hd__in_port(hd__line_before(line, &l->in_port));
}

/* A letter has left a port with limits: the first sender that waits for room has some, perhaps. */
static struct hd_waiter *let_in(struct hd_worker *w, struct hd__mailbox *box, hd_port *port)
{
	struct hd__limits *limits = port->limits;
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
	if (x != NULL)
		hd__push_letter(box, port, x->data);
	return x;
}

struct hd_waiter *hd__letter_left(struct hd_worker *w, struct hd__mailbox *box, struct hd__letter *l)
{
	hd_port *port = l->m.port;
	struct hd_waiter *x = port->limits != NULL ? let_in(w, box, port) : NULL;

	if (port->freed && port->length == 0) {
		hd__port_unlist(port);
		port->next = box->gone;
		box->gone = port;
		l->m.port = NULL;
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
	hd_port *gone = box->gone;

	box->gone = NULL;
	while (gone != NULL) {
		hd_port *next = gone->next;
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
	for (int class = HD__CLASSES; class -- > 0;)
		for (struct hd__link *x = hd__line_first(&port->line[class]); x != NULL;
		     x = hd__line_after(&port->line[class], x))
			if (!hd__in_port(x)->exempt && hd__in_port(x) != box->shown)
				return hd__in_port(x);
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

int hd__put_letter(struct hd_worker *w, hd_port *port, struct hd__letter *l, struct hd_waiter **woken,
		   struct hd__letter **dropped, struct hd__letter **spare)
{
	struct hd__mailbox *box = port->box;
	struct hd_message *m = NULL;
	int err = 0;

	*woken = NULL;
	*dropped = *spare = NULL;
	if (unlikely(box->closed))
		return -ESRCH;
	if (unlikely(port->limits != NULL && !l->exempt && is_full(port->limits, l)))
		err = make_room(box, port, l, dropped);
	if (unlikely(err != 0))
		return err < 0 ? err : 0;
	if (box->receiver.head != NULL)
		*woken = claim_owner(w, box, port, &m);
	if (m != NULL) {
		*spare = hd__hold_letter(box, l, m);
		m->port = port; /* not into l->m before: the copy, 16 bytes at a time, would wait for a store of 8 */
	} else {
		hd__push_letter(box, port, l);
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
static int deliver(struct hd_worker *w, hd_port *port, struct hd__letter *l, struct hd_waiter **woken,
		   struct hd__letter **dropped)
{
	struct hd__letter *spare;
	int err = hd__put_letter(w, port, l, woken, dropped, &spare);

	hd__mailbox_unlock(port->box);
	if (spare != NULL)
		hd__letter_free(w, spare);
	return err;
}

int hd__deliver(struct hd_worker *w, hd_port *port, struct hd__letter *l, struct hd_waiter **woken, struct hd__letter **dropped)
{
	*woken = NULL;
	*dropped = NULL;
	if (unlikely(port->head.kind == HD__REPLY_PORT))
		return hd__answer(w, (struct hd__reply *)port, l, woken);
	if (unlikely(port->limits != NULL && l->m.size > port->limits->memory && !l->exempt))
		return -EMSGSIZE;
	hd__mailbox_lock(port->box);
	return deliver(w, port, l, woken, dropped);
}

int hd__deliver_locked(struct hd_worker *w, hd_port *port, struct hd__letter *l, struct hd_waiter **woken)
{
	struct hd__letter *none;

	return deliver(w, port, l, woken, &none);
}

/* A sender that waited for room never runs again: nothing of it holds the letter any more. What was to be moved is not dropped: it is the sender's. */
static void forsake(struct hd_worker *w, struct hd_waiter *x, bool for_good)
{
	struct hd__letter *l = x->data;

	if (!for_good || l == NULL || hd__outcome(ld_acq(&x->process->wait)) == HD__GRANTED)
		return;
	x->data = NULL;
	l->drop = NULL;
	l->in_box.next = NULL;
	hd__letters_leave(w, &l->in_box);
}

static const struct hd__wait_ops sender_ops = { .stalled = forsake };

int hd__deliver_slowly(struct hd_worker **w, hd_port *port, struct hd__letter *l, struct hd_waiter **woken,
		       struct hd__letter **dropped, hd_time until)
{
	if (port->head.kind == HD__REPLY_PORT || port->limits->full != HD_FULL_BLOCK || l->m.size > port->limits->memory)
		return hd__deliver(*w, port, l, woken, dropped);
	struct hd__mailbox *box = port->box;
	struct hd_waitq *room = &port->limits->room;
	*woken = NULL;
	*dropped = NULL;
	hd__mailbox_lock(box);
	hd__waitq_lock(room);
	/* if other senders wait, for more room than this one needs, it stands behind them */
	if (box->closed || (room->head == NULL && !is_full(port->limits, l))) {
		hd__waitq_unlock(room);
		return deliver(*w, port, l, woken, dropped);
	}
	hd__mailbox_unlock(box);
	struct hd_waiter x = { .data = l, .owner = &box->owner, .rules = HD__HEEDS_LATER, .ops = &sender_ops };
	bool thread = *w == NULL;
	if (thread)
		hd__gate_leave(); /* the runtime may end before there is room */
	int err = hd__park_as(*w, &x, room, until, HD_WAIT_SEND, NULL);
	if (thread)
		hd__gate_enter_surely();
	else
		hd__enter(*w = hd__self());
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
		line->last = NULL;
	}
	return chain;
}

struct hd__link *hd__mailbox_close(struct hd_worker *w, struct hd__mailbox *box)
{
	struct hd__link *chain = NULL;
	struct hd_waiter *senders = NULL;

	hd__mailbox_lock(box);
	box->closed = true;
	for (struct hd__link *x = hd__line_first(&box->held); x != NULL; x = hd__line_after(&box->held, x))
		hd__in_box(x)->holder = NULL;
	for (int class = HD__CLASSES; class -- > 0;)
		chain = take_all(&box->arrived[class], chain);
	chain = take_all(&box->held, chain);
	for (hd_port *port = box->ports; port != NULL; port = port->next) {
		port->line[HD__URGENT].last = port->line[HD__PLAIN].last = NULL;
		port->length = 0;
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
		hd_port *port = box->ports;
		while (port != NULL && !port->owners && !port->freed)
			port = port->next;
		if (port == NULL)
			break;
		bool freed = port->freed;
		port->owners = false;
		if (freed) {
			hd__port_unlist(port);
			port->next = box->gone;
			box->gone = port;
		}
		hd__mailbox_unlock(box);
		if (!freed)
			hd__port_release(w, port, &woken); /* of a mail port of an owner: none is woken, nothing is left */
	}
	hd__mailbox_unlock(box);
	hd__free_gone(box);
}

static void forget_reply(struct hd__mailbox *box)
{
	if (box->reply != NULL)
		hd__reply_forget(box->reply);
	box->reply = NULL;
}

void hd__mailbox_ending(struct hd__mourner *mourner, struct hd_process *me, enum hd_end_kind kind, int err)
{
	struct hd__mailbox *box = (struct hd__mailbox *)mourner;
	struct hd_worker *w = hd__self();

	(void)me;
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
void hd__mailbox_ended(struct hd__mourner *mourner, struct hd_worker *w, const struct hd_end *end)
{
	struct hd__mailbox *box = (struct hd__mailbox *)mourner;

	if (unlikely(!box->closed)) {
		struct hd__link *chain = hd__mailbox_close(w, box);
		hd__names_end(w, w->sched, box); /* it is closed: there will be no more names */
		forget_reply(box);
		hd__letters_leave(w, chain);
		release_ports(w, box);
	}
	hd__ties_tell(w, box, end);
	st_rlx(&box->owner, 0); /* the id may be another process's, in another runtime */
	hd__mailbox_lock(box);
	hd__mailbox_release(box);
}

void hd__letters_leave(struct hd_worker *w, struct hd__link *chain)
{
	while (chain != NULL) {
		struct hd__letter *l = hd__in_box(chain);
		struct hd_waiter *woken = NULL;
		chain = chain->next;
		if (l->m.carried != NULL)
			chain = hd__chain(hd__port_release(w, l->m.carried, &woken), chain);
		l->m.carried = NULL;
		if (woken != NULL)
			hd__unpark(w, woken);
		if (l->drop == NULL) {
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
	for (uint32_t slot = 0; slot < ld_rlx(&parents->table.made); slot++) {
		struct hd_process *p = &parents->table.blocks[slot];
		struct hd__mailbox *box = ld_rlx(&p->control) & HD__DEAD ? NULL : hd__mailbox_of(p);
		if (box == NULL || box->closed)
			continue;
		box->closed = true;
		st_rlx(&box->owner, 0);
		hd__waitq_forget(&box->receiver);
		hd__mailbox_unlock(box); /* another thread of the parent may have had it */
		if (box->reply != NULL)
			hd__reply_abandon(box->reply);
		for (hd_port *port = box->ports; port != NULL; port = port->next)
			if (port->limits != NULL) {
				hd__waitq_forget(&port->limits->room);
				hd__waitq_unlock(&port->limits->room);
			}
	}
}
