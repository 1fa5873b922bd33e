/* signal/port.c - signals that arrive as messages.
 *
 * Owns:       sched->signal_ports: for each signal with a port a listener, which is a process of heddle's own, a daemon: it takes the signal as
 *             hd_sigwaitinfo does and sends it.
 * Invariant:  a listener takes a signal only when it has a letter for it, and does not end in between: a signal that it takes is sent, unless the
 *             port's owner has ended. The thread that takes an entry out of the table ends what is in it.
 * Locking:    one lock, for the entries; nothing is called under it.
 * Callers:    processes; the listeners.
 *
 * Rejected: a handler that sends. It would have to allocate, and to take locks; the kernel has a queue. */
#define _GNU_SOURCE
#include <heddle/signal.h>

#include <errno.h>
#include <heddle/cancel.h>
#include <heddle/io.h>
#include <heddle/link.h>
#include <heddle/select.h>
#include <heddle/time.h>
#include <poll.h>
#include <stdio.h>

#include "io/fd.h"
#include "os/memory.h"
#include "port/port.h"
#include "signal/signal.h"

#define PAUSE HD_MS(1) /* of a listener that finds no memory: the signals stay with the kernel meanwhile */

/* What a listener is started with. */
struct listener {
	struct hd__sched *sched;
	int sig;
	int fd;			   /* readable when the signal is pending */
	hd_port *port;		   /* where the messages go; a reference */
	hd_port *news;		   /* its own: the notice of the end of that port's owner; a reference */
	struct hd__letter *letter; /* its own: for the next signal; NULL: none */
};

struct entry {
	hd_pid listener; /* 0: there is none */
	struct listener *its;
};

struct hd__signal_ports {
	unsigned char lock;
	hd__signals all; /* that have an entry; any thread, relaxed */
	struct entry entries[HD__SIGNAL_MAX + 1];
};

hd__signals hd__signals_with_port(struct hd__sched *sched)
{
	struct hd__signal_ports *ports = ld_acq(&sched->signal_ports);
	return ports != NULL ? ld_rlx(&ports->all) : 0;
}

/* The table; NULL: no memory. */
static struct hd__signal_ports *table_of(struct hd__sched *sched)
{
	struct hd__signal_ports *ports = ld_acq(&sched->signal_ports), *none = NULL;

	if (ports != NULL)
		return ports;
	ports = hd__os_alloc(sizeof *ports);
	if (ports == NULL || cas_acq_rel(&sched->signal_ports, &none, ports)) /* pairs with the loads */
		return ports;
	hd__os_free(ports);
	return none;
}

/* Takes the entry of the signal out: if it is this listener's, or (0) any. */
static struct entry take_out(struct hd__signal_ports *ports, int sig, hd_pid listener)
{
	struct entry entry = { .listener = 0 };

	hd__lock(&ports->lock);
	if (listener == 0 || ports->entries[sig].listener == listener) {
		entry = ports->entries[sig];
		ports->entries[sig].listener = 0;
		st_rlx(&ports->all, ports->all & ~HD__SIGNAL_BIT(sig));
	}
	hd__unlock(&ports->lock);
	return entry;
}

/* Whether there was no entry, or (it is *old then, to be stopped) one whose port's owner has ended. */
static bool put_in(struct hd__signal_ports *ports, int sig, const struct entry *entry, struct entry *old)
{
	hd__lock(&ports->lock);
	*old = ports->entries[sig];
	bool free = old->listener == 0 || ld_rlx(&old->its->port->box->closed);
	if (free) {
		ports->entries[sig] = *entry;
		st_rlx(&ports->all, ports->all | HD__SIGNAL_BIT(sig));
	}
	hd__unlock(&ports->lock);
	return free;
}

/* Its listener has ended, or does. */
static void end_listener(struct listener *its)
{
	if (its->fd >= 0)
		hd_close(its->fd);
	hd_port_release(its->port);
	hd_port_release(its->news);
	hd__os_free(its);
}

/* ---- the listener ---- */

static void drop_letter(void *arg)
{
	struct listener *me = arg;

	if (me->letter != NULL)
		hd__letter_drop(me->letter);
	me->letter = NULL;
}

/* Sends what is known of a signal. No cancellation point. */
static void send_one(struct listener *me, const siginfo_t *info)
{
	const struct hd_signal signal = hd__signal_of(info);
	struct hd__letter *l = me->letter, *dropped;
	struct hd__wakee woken;

	hd__write_notice(l, 0, me->sig, &signal, sizeof signal);
	struct hd_worker *w = hd__enter_call();
	if (hd__deliver(w, me->port, l, &woken, &dropped) == 0) /* else the owner has ended, and the notice of that is there */
		me->letter = NULL;
	hd__wake(w, woken);
	hd__leave_call(w);
}

/* Sends all that is pending. */
static void send_pending(struct listener *me)
{
	siginfo_t info;

	for (;;) {
		if (me->letter == NULL)
			me->letter = hd__letter_alloc(sizeof(struct hd_signal));
		if (me->letter == NULL) {
			hd_sleep(PAUSE);
			return;
		}
		int sig = hd__os_signal_take(HD__SIGNAL_BIT(me->sig), &info);
		if (sig == -EINTR)
			continue;
		if (sig < 0)
			return;
		send_one(me, &info);
	}
}

/* Until the port's owner ends, or the listener is terminated. */
static void *listen_to(void *arg)
{
	struct listener *me = arg;
	struct hd_cleanup cleanup;
	struct hd_message m;
	int happened;

	hd_cleanup_push(&cleanup, drop_letter, me);
	do {
		struct hd_case cases[] = { hd_case_receive(me->news, &m), hd_case_fd(me->fd, POLLIN, NULL) };
		happened = hd_select_first(cases, 2, HD_FOREVER);
		if (happened == 1 && cases[1].err == 0)
			send_pending(me);
		else if (happened != 0)
			hd_sleep(PAUSE); /* no memory */
	} while (happened != 0);
	hd_message_drop(&m);
	hd_cleanup_pop(&cleanup, true);
	if (take_out(me->sched->signal_ports, me->sig, hd_self()).listener != 0)
		end_listener(me);
	return NULL;
}

/* Starts a listener for the port, whose owner is `owner`. Returns 0, and *entry is its; or -errno. */
static int start(struct hd__sched *sched, int sig, hd_port *port, hd_pid owner, struct entry *entry)
{
	char name[HD_NAME_SIZE];
	struct hd_spawn how = { .name = name, .priority = HD_PRIORITY_HIGH_IO, .daemon = true, .detached = true };
	struct listener *its = hd__os_alloc(sizeof *its);

	if (its == NULL)
		return -ENOMEM;
	*its = (struct listener){ .sched = sched,
				  .sig = sig,
				  .fd = hd__os_signal_fd(HD__SIGNAL_BIT(sig)),
				  .port = hd_port_retain(port),
				  .news = hd_port_new(&(struct hd_port_options){ .unowned = true }) };
	if (its->fd >= 0)
		hd__fd_born_own(its->fd);
	int err = its->fd < 0 ? its->fd : its->news == NULL ? -ENOMEM : hd_watch(owner, its->news);
	if (err == 0) {
		snprintf(name, sizeof name, "signal %d", sig);
		how.port = its->news;
		how.suspended = true; /* until its entry is in the table */
		*entry = (struct entry){ hd_spawn_with(&how, listen_to, its), its };
		if (entry->listener > 0)
			return 0;
		err = (int)entry->listener;
		(void)(hd_unwatch(owner, its->news) == 0); /* or it has ended, and the notice is there */
	}
	end_listener(its);
	return err;
}

/* The listener may be about to send: the caller waits for its end, which does not take long, whatever was asked of the caller. */
static void stop(const struct entry *entry)
{
	int before = hd_set_cancel_state(HD_CANCEL_DISABLED);

	(void)(hd_terminate(entry->listener, HD_FOREVER) == 0); /* or it has ended */
	hd_set_cancel_state((enum hd_cancel_state)before);
	end_listener(entry->its);
}

static bool is_closed(hd_port *port)
{
	struct hd_port_info info;

	hd_port_info(port, &info);
	return info.closed;
}

static int set(struct hd__sched *sched, int sig, hd_port *port)
{
	struct hd_port_info info;
	struct entry entry, old;

	if (port->head.kind != HD__MAIL_PORT)
		return -EINVAL;
	hd_port_info(port, &info);
	if (info.owner == 0)
		return info.closed ? -ESRCH : -EINVAL;
	struct hd__signal_ports *ports = table_of(sched);
	if (ports == NULL)
		return -ENOMEM;
	int err = hd__signals_await(sched, HD__SIGNAL_BIT(sig));
	if (err == 0)
		err = start(sched, sig, port, info.owner, &entry);
	if (err != 0)
		return err;
	if (!put_in(ports, sig, &entry, &old)) {
		stop(&entry);
		return -EBUSY;
	}
	if (old.listener != 0)
		stop(&old);
	hd_resume(entry.listener);
	return is_closed(port) ? -ESRCH : 0; /* then the listener has the notice */
}

int hd_signal_port(int sig, hd_port *port)
{
	struct hd_worker *w = hd__self();

	if (w == NULL)
		return -ENOTSUP;
	struct hd__sched *sched = w->sched;
	if (sched->doors.at_call != NULL)
		return hd__fd_refuse();
	if (sig < 1 || sig > HD__SIGNAL_MAX)
		return -EINVAL;
	if (port != NULL)
		return set(sched, sig, port);
	struct hd__signal_ports *ports = ld_acq(&sched->signal_ports);
	if (ports == NULL)
		return 0;
	struct entry entry = take_out(ports, sig, 0);
	if (entry.listener != 0)
		stop(&entry);
	return 0;
}

void hd__signal_ports_drop(struct hd__sched *sched)
{
	struct hd__signal_ports *ports = sched->signal_ports;

	for (int sig = 1; ports != NULL && sig <= HD__SIGNAL_MAX; sig++)
		if (ports->entries[sig].listener != 0) {
			ports->entries[sig].its->fd = -1; /* it has been closed with those of all waits */
			drop_letter(ports->entries[sig].its);
			end_listener(ports->entries[sig].its);
		}
	hd__os_free(ports);
	sched->signal_ports = NULL;
}
