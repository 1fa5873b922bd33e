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

static void list(struct hd__mailbox *box, hd_port *port)
{
	port->box = box;
	port->next = box->ports;
	port->link = &box->ports;
	if (port->next != NULL)
		port->next->link = &port->next;
	box->ports = port;
}

void hd__port_unlist(hd_port *port)
{
	*port->link = port->next;
	if (port->next != NULL)
		port->next->link = port->link;
}

void hd__port_free(hd_port *port)
{
	add_rlx(&live, -1);
	hd__os_free(port->limits);
	hd__os_free(port);
}

hd_port *hd_port_new(const struct hd_port_options *options)
{
	static const struct hd_port_options defaults;
	struct hd_worker *w = hd__self();

	if (options == NULL)
		options = &defaults;
	if (!is_sound(options))
		return NULL;
	hd_port *port = hd__os_alloc(sizeof *port);
	if (port == NULL)
		return NULL;
	add_rlx(&live, 1);
	*port = (hd_port){ .head = { .refs = 1, .kind = HD__MAIL_PORT }, .owners = w != NULL && !options->unowned };
	bool limited = options->capacity > 0 || options->memory > 0;
	if (limited)
		port->limits = new_limits(options);
	struct hd__mailbox *box = port->owners ? hd__mailbox_own(w) : hd__mailbox_new();
	if (box == NULL || (limited && port->limits == NULL)) {
		if (!port->owners)
			hd__os_free(box);
		hd__port_free(port);
		return NULL;
	}
	hd__mailbox_lock(box);
	if (port->owners)
		box->refs++; /* else the one that it has is the port's */
	list(box, port);
	hd__mailbox_unlock(box);
	return port;
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
	if (port->length > 0) {
		port->freed = true;
		hd__mailbox_unlock(box);
		return unread;
	}
	hd__port_unlist(port);
	hd__mailbox_release(box);
	hd__port_free(port);
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
	if (port->head.kind == HD__MAIL_PORT && w != NULL && hd__mailbox_of(w->current) == port->box)
		port->owners = false; /* the owner sees to it itself */
	struct hd__link *unread = hd__port_release(w, port, &woken);
	if (woken != NULL)
		hd__unpark(w, woken);
	hd__leave_call(w);
	return unread;
}

void hd_port_release(hd_port *port)
{
	if (port != NULL)
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
	*info = (struct hd_port_info){
		.owner = ld_rlx(&box->owner), .closed = box->closed, .length = port->length, .high_water = port->high_water
	};
	if (port->limits != NULL) {
		info->bytes = port->limits->bytes;
		info->dropped = port->limits->dropped;
	}
	hd__mailbox_unlock(box);
	hd__leave_call(w);
}
