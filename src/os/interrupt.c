/* os/interrupt.c - ending the system call of another kernel thread, by a signal.
 *
 * Owns:      one real-time signal, the highest that had no action when it was first needed: the lower ones are what programs take first.
 *            Its action does nothing, without SA_RESTART, and stays for the life of the program: a signal that is on its way when the
 *            default action came back would end it. If the program gives the signal another action later, it is not sent any more.
 * Callers:   hear: the thread itself, which is heddle's. interrupt: any thread. */
#define _GNU_SOURCE
#include "os/interrupt.h"

#include <errno.h>
#include <signal.h>

#include "base/atomic.h"
#include "os/lock.h"

static int chosen; /* -1: there is none; 0: not looked for yet. Written once, under `choosing`; release, acquire */
static unsigned char choosing;

static void do_nothing(int signal)
{
	(void)signal;
}

static bool is_ours(int signal)
{
	struct sigaction now;

	return sigaction(signal, NULL, &now) == 0 && !(now.sa_flags & SA_SIGINFO) && now.sa_handler == do_nothing;
}

static int choose(void)
{
	struct sigaction ours = { .sa_handler = do_nothing }, now;

	sigfillset(&ours.sa_mask);
	for (int signal = SIGRTMAX; signal >= SIGRTMIN; signal--) {
		if (sigaction(signal, NULL, &now) != 0 || now.sa_flags & SA_SIGINFO || now.sa_handler != SIG_DFL ||
		    sigaction(signal, &ours, NULL) != 0)
			continue;
		if (pthread_kill(pthread_self(), signal) ==
		    0) /* it does nothing; qemu-user knows signals that it cannot send */
			return signal;
		sigaction(signal, &now, NULL);
	}
	return -1;
}

static int find(void)
{
	int signal = ld_acq(&chosen);

	if (signal == 0) {
		hd__lock(&choosing);
		if (ld_rlx(&chosen) == 0)
			st_rel(&chosen, choose()); /* pairs with the acquire above */
		signal = ld_rlx(&chosen);
		hd__unlock(&choosing);
	}
	return signal;
}

void hd__os_interrupt_hear(bool hears)
{
	int saved = errno, signal = find();
	sigset_t set;

	sigemptyset(&set);
	if (signal > 0 && sigaddset(&set, signal) == 0)
		pthread_sigmask(hears ? SIG_UNBLOCK : SIG_BLOCK, &set, NULL);
	errno = saved;
}

void hd__os_interrupt(struct hd__thread *thread)
{
	int saved = errno, signal = find();

	if (signal > 0 && is_ours(signal))
		pthread_kill(thread->handle, signal);
	errno = saved;
}

bool hd__os_is_interrupt(int signal)
{
	return ld_acq(&chosen) == signal;
}

void hd__os_interrupt_forget(void)
{
	st_rlx(&choosing, 0);
}
