/* signal/signal.c - processes that wait for signals, and signals that signal a semaphore.
 *
 * Owns:       nothing that lasts: a wait has a descriptor of its own (signalfd), which says when a signal is pending, and is an operation of
 *             io/op.c on it. So deadlines, cancels and several waiters are as with any descriptor: the kernel tells all of them, and the
 *             first that takes the signal has it. os/signal.c owns what happens to the signals of the program.
 * Invariant:  a signal is taken by the attempt that answers it: a wait that ends otherwise has taken none.
 * Callers:    processes. */
#define _GNU_SOURCE
#include <heddle/signal.h>

#include <errno.h>
#include <heddle/cancel.h>
#include <heddle/io.h>

#include "io/fd.h"
#include "os/signal.h"
#include "sched/lane.h"
#include "signal/signal.h"

struct wait {
	struct hd__op op;
	hd__signals set;
	siginfo_t *info;
};

static hd__signals from_sigset(const sigset_t *from)
{
	hd__signals set = 0;

	for (int signal = 1; signal <= HD__SIGNAL_MAX; signal++)
		if (sigismember(from, signal) == 1)
			set |= HD__SIGNAL_BIT(signal);
	return set;
}

static ssize_t attempt(struct hd__op *op, enum hd__how how)
{
	struct wait *wait = (struct wait *)op;

	(void)how;
	return hd__os_signal_take(wait->set, wait->info);
}

/* Other workers block the signals soon: at their next safe point, or now if they sleep. */
static void tell_workers(struct hd__sched *sched)
{
	for (unsigned i = 0; i < hd__workers(sched); i++)
		hd__raise(&sched->workers[i], HD__OUTSIDE);
}

int hd__signals_await(struct hd__sched *sched, hd__signals set)
{
	bool first;
	int err = hd__os_signals_await(set, &first);

	if (err == 0 && first)
		tell_workers(sched);
	return err;
}

struct hd_signal hd__signal_of(const siginfo_t *info)
{
	return (struct hd_signal){ .signo = info->si_signo,
				   .code = info->si_code,
				   .pid = info->si_pid,
				   .uid = info->si_uid,
				   .status = info->si_signo == SIGCHLD ? info->si_status : 0,
				   .value = (intptr_t)info->si_value.sival_ptr };
}

static void close_it(void *fd)
{
	hd_close(*(int *)fd);
}

/* None is pending: waits until one is. Returns the signal. */
static ssize_t wait_for_one(struct wait *wait, hd_time until)
{
	struct hd_cleanup cleanup;
	int fd = hd__os_signal_fd(wait->set);

	if (fd < 0)
		return fd;
	hd__fd_born_own(fd);
	hd_cleanup_push(&cleanup, close_it, &fd);
	wait->op = (struct hd__op){ .attempt = attempt, .fd = fd, .way = HD__READING, .why = HD_WAIT_SIGNAL };
	ssize_t signal = hd__fd_do(&wait->op, until);
	hd_cleanup_pop(&cleanup, true);
	return signal;
}

static int wait_for(const sigset_t *set, siginfo_t *info, hd_time until)
{
	struct wait wait = { .set = set != NULL ? from_sigset(set) : 0, .info = info };

	if (hd__self() == NULL)
		return -ENOTSUP;
	int err = hd__io_begin(until);
	if (err != 0)
		return err;
	err = hd__signals_await(hd__self()->sched, wait.set);
	if (err == 0 && wait.set & hd__signals_with_port(hd__self()->sched))
		err = -EBUSY;
	if (err != 0)
		return err;
	int signal = hd__os_signal_take(wait.set, info);
	if (signal == -EAGAIN && until <= 0)
		signal = -ETIMEDOUT;
	if (signal == -EAGAIN || signal == -EINTR)
		signal = (int)wait_for_one(&wait, until);
	return signal > 0 ? 0 : signal;
}

int hd_sigwaitinfo(const sigset_t *set, struct hd_signal *info, hd_time until)
{
	siginfo_t got;
	int err = wait_for(set, &got, until);

	if (err == 0 && info != NULL)
		*info = hd__signal_of(&got);
	return err;
}

int hd_sigwait(const sigset_t *set, int *sig, hd_time until)
{
	siginfo_t got;
	int err = wait_for(set, &got, until);

	if (err == 0 && sig != NULL)
		*sig = got.si_signo;
	return err;
}

/* ---- semaphores ---- */

/* In a signal handler. */
static void signal_semaphore(void *s)
{
	hd_semaphore_signal_from_handler(s);
}

/* As long as a signal has a semaphore, something outside the program may wake a process. */
int hd_signal_semaphore(int sig, struct hd_semaphore *s)
{
	struct hd_worker *w = hd__self();

	if (w == NULL)
		return -ENOTSUP;
	if (w->sched->doors.at_call != NULL)
		return hd__fd_refuse();
	hd__pass_by();
	int err = hd__os_signal_tell(sig, s != NULL ? signal_semaphore : NULL, s);
	w = hd__self();
	if (err == 0 && s != NULL)
		st_rel(&w->outside, w->outside + 1); /* pairs with hd__awaits_outside */
	else if (err > 0)
		st_rel(&w->back, w->back + 1);
	return err > 0 ? 0 : err;
}
