/* port/port.c - ports: what senders have references to.
 *
 * Owns:       struct hd_port, from hd_port_new to its last reference or its last letter.
 * Invariant:  a port is in the list of its mailbox, and counts as a reference to it. Without references, it is there as long as it has
 *             letters: no thread can send to it any more, and its owner receives what is left.
 * Locking:    references are counted without a lock; the thread that takes the last one away does the rest under the mailbox's.
 * Callers:    any thread, with or without a runtime. */
#include "os/memory.h"
#include "port/port.h"

static int64_t live; /* ports, without those for answers; any thread, relaxed */

int64_t hd__ports_live(void)
{
	return ld_rlx(&live);
}

static bool is_sound(const struct hd_port_options *options)
{
	return options->full >= HD_FULL_FAIL && options->full <= HD_FULL_BLOCK;
}

static struct hd__limits *new_limits(const struct hd_port_options *options)
{
	struct hd__limits *limits = hd__os_alloc(sizeof *limits);

	if (limits != NULL) {
		limits->capacity = options->capacity > 0 ? options->capacity : SIZE_MAX;
		limits->memory = options->memory > 0 ? options->memory : SIZE_MAX;
		limits->full = options->full;
	}
	return limits;
}

/* The first other port of the mailbox: from now on each has lines of its own. All letters that have arrived are in the first one. */
static void keep_lines(struct hd__mailbox *box)
{
	for (int class = 0; class < HD__CLASSES; class ++)
		for (struct hd__letter *l = NULL; (l = hd__letter_after(box, NULL, class, l)) != NULL;)
			hd__line_push(&box->more->first[class], &l->in_port);
	box->first.head.fresh = box->fresh;
	box->odd |= HD__SEVERAL;
}

static void list(struct hd__mailbox *box, struct hd__later_port *later)
{
	struct hd__later_port **list = &box->more->ports;

	later->next = *list;
	later->link = list;
	if (later->next != NULL)
		later->next->link = &later->next;
	*list = later;
	if (!(box->odd & HD__SEVERAL)) {
		hd__untake(box);
		keep_lines(box);
	}
}

struct hd__later_port *hd__port_retire(hd_port *port)
{
	struct hd__later_port *later = (struct hd__later_port *)port;

	add_rlx(&live, -1);
	if (port == &port->box->first) {
		port->head.kind = HD__NO_PORT; /* its limits are freed with the mailbox, or by the next port */
		return NULL;
	}
	*later->link = later->next;
	if (later->next != NULL)
		later->next->link = later->link;
	return later;
}

void hd__port_revive(hd_port *port)
{
	add_rlx(&live, 1);
	port->head.kind = HD__MAIL_PORT;
	port->head.freed = true;
	port->box->refs++;
}

void hd__port_free(struct hd__later_port *port)
{
	if (port != NULL)
		hd__os_free(port->port.limits);
	hd__os_free(port);
}

/* Puts the port into the mailbox, if there is room; *limits is what is to be freed. By the owner, or by the thread that alone has the mailbox. */
static bool put_first(struct hd__mailbox *box, const hd_port *port, struct hd__limits **limits)
{
	hd__mailbox_lock(box);
	const struct hd__more *more = ld_acq(&box->more);
	bool room = box->first.head.kind == HD__NO_PORT && (more == NULL || more->taken == NULL);
	if (room) {
		*limits = box->first.limits;
		box->first = *port;
		box->refs += box->bound; /* without an owner, the one that it has is the port's */
	}
	hd__mailbox_unlock(box);
	return room;
}

/* Makes a place for another port of the mailbox, by its owner; NULL: no memory. */
static hd_port *put_later(struct hd__mailbox *box, const hd_port *port)
{
	struct hd__later_port *later = hd__os_alloc(sizeof *later);

	if (later == NULL || hd__more_own(box) == NULL) {
		hd__os_free(later);
		return NULL;
	}
	later->port = *port;
	hd__mailbox_lock(box);
	box->refs++;
	list(box, later);
	hd__mailbox_unlock(box);
	return &later->port;
}

hd_port *hd_port_new(const struct hd_port_options *options)
{
	static const struct hd_port_options defaults;
	struct hd_worker *w = hd__self();

	if (options == NULL)
		options = &defaults;
	if (!is_sound(options))
		return NULL;
	bool limited = options->capacity > 0 || options->memory > 0, owned = w != NULL && !options->unowned;
	struct hd__limits *limits = limited ? new_limits(options) : NULL, *old = NULL;
	struct hd__mailbox *box = owned ? hd__mailbox_own(w) : hd__mailbox_new();
	hd_port *made = NULL;
	if (box != NULL && (!limited || limits != NULL)) {
		const hd_port port = { .head = { .refs = 1, .kind = HD__MAIL_PORT, .owners = owned },
				       .box = box,
				       .limits = limits };
		made = put_first(box, &port, &old) ? &box->first : put_later(box, &port);
	}
	if (made != NULL) {
		add_rlx(&live, 1);
	} else {
		if (!owned)
			hd__mailbox_free(box);
		old = limits;
	}
	hd__os_free(old);
	return made;
}

hd_port *hd_port_retain(hd_port *port)
{
	if (unlikely(port->head.kind == HD__REPLY_PORT))
		hd__reply_retain((struct hd__reply *)port);
	else
		add_rlx(&port->head.refs, 1); /* relaxed: the caller has a reference */
	return port;
}

/* There are no references any more. Answers letters that no process will receive. */
static struct hd__link *end_port(struct hd_worker *w, hd_port *port)
{
	struct hd__mailbox *box = port->box;
	struct hd__link *unread = NULL;

	hd__mailbox_lock(box);
	bool orphan = !box->bound; /* it had no owner, and will have none */
	if (orphan) {
		hd__mailbox_unlock(box);
		unread = hd__mailbox_close(w, box);
		hd__mailbox_lock(box);
	}
	unread = hd__afters_end(port, unread);
	if (port->length > 0) {
		port->head.freed = true;
		hd__mailbox_unlock(box);
		return unread;
	}
	struct hd__later_port *later = hd__port_retire(port);
	hd__mailbox_release(box);
	hd__port_free(later);
	return unread;
}

struct hd__link *hd__port_release(struct hd_worker *w, hd_port *port, struct hd_waiter **woken)
{
	if (port->head.kind == HD__REPLY_PORT)
		hd__reply_release(w, (struct hd__reply *)port, woken);
	else if (add_acq_rel(&port->head.refs, -1u) == 1)
		return end_port(w, port);
	return NULL;
}

struct hd__link *hd__port_let_go(hd_port *port)
{
	struct hd_waiter *woken = NULL;
	struct hd_worker *w = hd__enter_call();
	struct hd__link *unread = hd__port_release(w, port, &woken);
	if (woken != NULL)
		hd__unpark(w, woken);
	hd__leave_call(w);
	return unread;
}

void hd_port_release(hd_port *port)
{
	struct hd_worker *w = hd__self();

	if (port == NULL)
		return;
	if (port->head.kind == HD__MAIL_PORT && w != NULL && hd__mailbox_of(w->current) == port->box)
		port->head.owners = false; /* the owner sees to it itself; not so if it drops a message that carries its port */
	hd__letters_drop(hd__port_let_go(port));
}

void hd_port_info(hd_port *port, struct hd_port_info *info)
{
	*info = (struct hd_port_info){ .owner = 0 };
	if (port->head.kind == HD__REPLY_PORT)
		return;
	struct hd_worker *w = hd__enter_call();
	struct hd__mailbox *box = port->box;
	hd__mailbox_lock(box);
	const struct hd__more *more = port == &box->first ? ld_acq(&box->more) : NULL;
	*info = (struct hd_port_info){ .owner = ld_rlx(&box->owner),
				       .closed = box->closed,
				       .length = port->length - (more != NULL ? ld_rlx(&more->received) : 0),
				       .high_water = port->high_water };
	if (port->limits != NULL) {
		info->bytes = port->limits->bytes;
		info->dropped = port->limits->dropped;
	}
	hd__mailbox_unlock(box);
	hd__leave_call(w);
}
