/* posix/signal.c - handlers of signals, on whichever kernel thread a signal comes: while a handler runs, that thread counts as a plain one.
 *
 * A handler may interrupt a worker anywhere, inside heddle too, or while no process runs. So its calls must not be taken for the runner's. (Those of one that
 * handles a fault are: the program's own code has raised it.) The one call that POSIX allows in a handler, sem_post, leaves a note for a worker
 * (hd_semaphore_signal_from_handler). The handler finds the thread-local variables of the thread that it has interrupted.
 *
 * Owns:       the program's handlers; the actions of these signals.
 * Locking:    one lock, for both; a handler reads the table without.
 * Callers:    any thread; the kernel. */
#include "posix/posix.h"

#include "os/lock.h"
#include "sched/worker.h"

static unsigned char guard;
static struct sigaction wanted[NSIG]; /* what the program has said, while ours is installed */
static _Thread_local unsigned depth;

bool hd__posix_in_handler(void)
{
	return depth > 0;
}

/* Raised by the program's own code, where it is: its thread may end in the handler. */
static bool is_fault(int signal, const siginfo_t *info)
{
	return info->si_code > 0 &&
	       (signal == SIGSEGV || signal == SIGBUS || signal == SIGFPE || signal == SIGILL || signal == SIGTRAP);
}

static void on_signal(int signal, siginfo_t *info, void *context)
{
	struct hd_worker *w = hd__self();
	const struct sigaction *action = &wanted[signal];

	if (!is_fault(signal, info))
		hd__set_self(NULL);
	depth++;
	if (action->sa_flags & SA_SIGINFO)
		action->sa_sigaction(signal, info, context);
	else
		action->sa_handler(signal);
	depth--;
	hd__set_self(w);
}

static bool is_handler(const struct sigaction *action)
{
	return action->sa_flags & SA_SIGINFO || (action->sa_handler != SIG_DFL && action->sa_handler != SIG_IGN);
}

static bool is_ours(const struct sigaction *action)
{
	return action->sa_flags & SA_SIGINFO && action->sa_sigaction == on_signal;
}

int hd_posix_sigaction(int signal, const struct sigaction *action, struct sigaction *old)
{
	struct sigaction ours, before;
	int err;

	if (signal <= 0 || signal >= NSIG)
		return sigaction(signal, action, old);
	hd__lock(&guard);
	const struct sigaction was = wanted[signal];
	if (action != NULL && is_handler(action)) {
		ours = *action;
		ours.sa_flags |= SA_SIGINFO;
		ours.sa_sigaction = on_signal;
		wanted[signal] = *action; /* before a signal can come */
		err = sigaction(signal, &ours, &before);
		if (err != 0)
			wanted[signal] = was;
	} else {
		err = sigaction(signal, action, &before);
	}
	if (err == 0 && old != NULL)
		*old = is_ours(&before) ? was : before;
	hd__unlock(&guard);
	return err;
}

void (*hd_posix_signal(int signal, void (*handler)(int)))(int)
{
	struct sigaction action = { .sa_handler = handler, .sa_flags = SA_RESTART }, old;

	return hd_posix_sigaction(signal, &action, &old) == 0 ? old.sa_handler : SIG_ERR;
}
