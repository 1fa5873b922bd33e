/* port/batch.c - several messages in one indivisible step.
 *
 * Owns:       nothing: it locks the mailboxes of all ports, looks whether all messages can be sent, sends them, and unlocks.
 * Locking:    the mailboxes in the order of their numbers; no other code holds the locks of two mailboxes.
 * Callers:    any thread.
 *
 * A receiver that waits is claimed under the locks and woken when all of them are released. So every process that receives one of the messages
 * can see that all others have been sent. */
#include "port/port.h"

struct batch {
	size_t n, nboxes;
	const struct hd_parcel *parcels;
	struct hd__letter *letters[HD_SEND_ALL_MAX];
	struct hd__mailbox *boxes[HD_SEND_ALL_MAX]; /* each once, in order */
};

static bool is_before(const struct hd__mailbox *a, const struct hd__mailbox *b)
{
	return a->number != b->number ? a->number < b->number : (uintptr_t)a < (uintptr_t)b;
}

static void add_box(struct batch *b, struct hd__mailbox *box)
{
	size_t i = b->nboxes;

	while (i > 0 && is_before(box, b->boxes[i - 1]))
		i--;
	if (i > 0 && b->boxes[i - 1] == box)
		return;
	for (size_t k = b->nboxes++; k > i; k--)
		b->boxes[k] = b->boxes[k - 1];
	b->boxes[i] = box;
}

/* Under the locks: whether the i-th message can be sent, with those before it that go to the same port. */
static int look_at(const struct batch *b, size_t i)
{
	const hd_port *port = b->parcels[i].port;
	size_t count = 0, bytes = 0;

	if (port->box->closed)
		return -ESRCH;
	if (port->limits != NULL && hd__letter_size(b->letters[i]) > port->limits->memory)
		return -EMSGSIZE;
	for (size_t k = 0; k <= i; k++)
		if (b->parcels[k].port == port) {
			count++;
			bytes += hd__letter_size(b->letters[k]);
		}
	return hd__has_room(port, count, bytes) ? 0 : -ENOBUFS;
}

/* Under the locks: sends the i-th message, which can be sent. */
static void put(struct hd_worker *w, struct batch *b, size_t i, struct hd__wakee *woken, struct hd__link **dropped)
{
	struct hd__letter *l = b->letters[i], *old, *spare;

	hd__trace_sent(w, l);
	int err = hd__put_letter(w, b->parcels[i].port, l, woken, &old, &spare);

	HD_ASSERT(err == 0, "a message could not be sent for which there was room");
	if (spare != NULL)
		hd__letter_free(w, spare);
	if (old != NULL)
		*dropped = hd__chain(&old->in_box, *dropped);
}

static int send_locked(struct hd_worker *w, struct batch *b, struct hd__wakee *woken, struct hd__link **dropped)
{
	for (size_t i = 0; i < b->n; i++) {
		int err = look_at(b, i);
		if (err != 0)
			return err;
	}
	for (size_t i = 0; i < b->n; i++)
		put(w, b, i, &woken[i], dropped);
	return 0;
}

/* The calls that are passed on with the first n messages stay with the caller. */
static void keep_calls(const struct batch *b, size_t n)
{
	for (size_t i = 0; i < n; i++)
		hd__keep_call(b->letters[i]);
}

static int pass_calls_on(struct hd__sched *sched, const struct batch *b)
{
	for (size_t i = 0; i < b->n; i++) {
		int err = hd__pass_on(sched, b->letters[i], b->parcels[i].port);
		if (err != 0) {
			keep_calls(b, i);
			return err;
		}
	}
	return 0;
}

/* Inside the caller's lane, or on a plain thread inside the gate. */
static int send_all(struct hd__caller caller, struct batch *b, struct hd__link **dropped)
{
	struct hd__wakee woken[HD_SEND_ALL_MAX] = { { NULL, NULL } };
	struct hd_worker *w = caller.w;
	int err = 0;

	for (size_t i = 0; i < b->n && err == 0; i++)
		err = hd__write_letter(w, &b->parcels[i].what, false, &b->letters[i]);
	if (err == 0)
		err = pass_calls_on(caller.sched, b);
	if (err != 0)
		return err;
	for (size_t i = 0; i < b->n; i++)
		add_box(b, b->parcels[i].port->box);
	for (size_t i = 0; i < b->nboxes; i++)
		hd__mailbox_lock(b->boxes[i]);
	err = send_locked(w, b, woken, dropped);
	for (size_t i = b->nboxes; i-- > 0;)
		hd__mailbox_unlock(b->boxes[i]);
	for (size_t i = 0; i < b->n; i++)
		hd__wake(w, woken[i]);
	if (err != 0)
		keep_calls(b, b->n);
	return err;
}

int hd_send_all(const struct hd_parcel *parcels, size_t n)
{
	struct batch b = { .n = n, .parcels = parcels };
	struct hd__link *dropped = NULL;

	if (n > HD_SEND_ALL_MAX)
		return -E2BIG;
	for (size_t i = 0; i < n; i++)
		if (parcels[i].port->head.kind != HD__MAIL_PORT)
			return -EINVAL;
	struct hd__caller caller = hd__call_begin();
	int err = caller.sched == NULL ? -ENXIO : send_all(caller, &b, &dropped);
	hd__call_end(caller);
	for (size_t i = 0; i < n && err != 0; i++)
		if (b.letters[i] != NULL)
			hd__unwrite_letter(b.letters[i]);
	hd__letters_drop(dropped);
	return err;
}
