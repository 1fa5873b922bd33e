/* port/send.c - sending.
 *
 * Owns:       nothing: it writes a letter, delivers it, and wakes the process that waits for it.
 * Callers:    any thread. */
#include "port/port.h"

/* Begins a call that may wait for room: as hd__begin_wait, and a plain thread is inside the gate. */
__attribute__((always_inline)) static inline int begin(struct hd__caller *caller, hd_time until)
{
	int err = hd__begin_wait(&caller->w, until);

	if (err != 0)
		return err;
	caller->sched = likely(caller->w != NULL) ? caller->w->sched : hd__gate_enter();
	return caller->sched != NULL ? 0 : -ENXIO;
}

static struct hd__reply *call_in(const struct hd__letter *l)
{
	hd_port *carried = hd__carried(l);

	return carried != NULL && carried->head.kind == HD__REPLY_PORT ? (struct hd__reply *)carried : NULL;
}

int hd__pass_on(struct hd__sched *sched, const struct hd__letter *l, hd_port *port)
{
	struct hd__reply *call = call_in(l);

	if (call == NULL)
		return 0;
	if (port->head.kind == HD__MAIL_PORT)
		return hd__reply_delegate(sched, call, l->sender, ld_rlx(&port->box->owner));
	hd__reply_pass_on(call, hd__reply_owner((struct hd__reply *)port)); /* whose own call ends with this */
	return 0;
}

void hd__keep_call(const struct hd__letter *l)
{
	struct hd__reply *call = call_in(l);

	if (call != NULL)
		hd__reply_pass_on(call, l->sender);
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
	struct hd__wakee woken = { NULL, NULL };
	int err = begin(&caller, until);

	if (unlikely(err != 0))
		return err;
	err = hd__write_letter(caller.w, what, false, &l);
	if (likely(err == 0)) {
		if (unlikely(what->carried != NULL))
			err = hd__pass_on(caller.sched, l, port);
		if (likely(err == 0))
			err = hd__deliver_surely(&caller.w, port, l, what->urgent ? HD__URGENT : HD__PLAIN, &woken, &dropped,
						 until);
		if (unlikely(err != 0 && what->carried != NULL))
			hd__keep_call(l);
	}
	if (woken.record != NULL || woken.machine != NULL)
		hd__wake(caller.w, woken);
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
