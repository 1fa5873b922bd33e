/* port/send.c - sending.
 *
 * Owns:       nothing: it writes a letter, delivers it, and wakes the process that waits for it.
 * Callers:    any thread. */
#include "port/port.h"

/* Begins a call that may wait for room: as hd__begin_wait, and a plain thread is inside the gate. */
static int begin(struct hd__caller *caller, hd_time until)
{
	int err = hd__begin_wait(&caller->w, until);

	if (err != 0)
		return err;
	caller->sched = likely(caller->w != NULL) ? caller->w->sched : hd__gate_enter();
	return caller->sched != NULL ? 0 : -ENXIO;
}

/* The port that the letter carries may be where a call is answered: the process that will answer is another one then. */
static void pass_on(const struct hd__letter *l, hd_pid to)
{
	if (l->m.carried->head.kind == HD__REPLY_PORT)
		hd__reply_pass_on((struct hd__reply *)l->m.carried, to);
}

/* The process that a message to this port reaches; 0: none, or not known yet. */
static hd_pid receiver_at(hd_port *port)
{
	return port->head.kind == HD__MAIL_PORT ? ld_rlx(&port->box->owner) : hd__reply_owner((struct hd__reply *)port);
}

int hd__did_not_send(struct hd__letter *l, int err)
{
	if (l != NULL)
		hd__unwrite_letter(l);
	if (err == -ECANCELED && hd__self() != NULL)
		hd__heed(); /* does not return if the caller must end */
	return err;
}

__attribute__((always_inline)) static inline int send(hd_port *port, const struct hd_sending *what, hd_time until)
{
	struct hd__caller caller;
	struct hd__letter *l = NULL, *dropped = NULL;
	struct hd_waiter *woken = NULL;
	int err = begin(&caller, until);

	if (unlikely(err != 0))
		return err;
	err = hd__write_letter(caller.w, what, &l);
	if (likely(err == 0)) {
		if (unlikely(l->m.carried != NULL))
			pass_on(l, receiver_at(port));
		err = hd__deliver_surely(&caller.w, port, l, &woken, &dropped, until);
		if (unlikely(err != 0 && l->m.carried != NULL)) /* the caller has it still */
			pass_on(l, l->m.sender);
	}
	if (woken != NULL)
		hd__unpark_claimed(caller.w, woken);
	hd__call_end(caller);
	if (unlikely(err != 0))
		return hd__did_not_send(l, err);
	if (unlikely(dropped != NULL))
		hd__letters_drop(&dropped->in_box);
	return 0;
}

int hd_send(hd_port *port, int64_t tag, const void *data, size_t size, hd_time until)
{
	return send(port, &(struct hd_sending){ .tag = tag, .data = data, .size = size }, until);
}

int hd_send_move(hd_port *port, int64_t tag, void *data, size_t size, void (*drop)(void *data), hd_time until)
{
	return send(port, &(struct hd_sending){ .tag = tag, .data = data, .size = size, .move = true, .drop = drop }, until);
}

int hd_send_with(hd_port *port, const struct hd_sending *what, hd_time until)
{
	return send(port, what, until);
}
