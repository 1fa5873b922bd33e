/* os/signal.c - signals that processes wait for, and signals that functions are told of.
 *
 * Owns:       the actions of these signals from the first use to the end of the runtime, and the bits of them in threads' masks.
 * Invariant:  an awaited signal is blocked in every thread, so that it stays pending until a process takes it; or the thread that it interrupts
 *             blocks it at that moment, by the mask to which its handler returns, and sends it to the program again. So no
 *             signal is lost, and none does what it does by default, whichever threads the program has.
 *             A thread knows which of `awaited` it has blocked, or found blocked (signals_seen), and which of these the program had not (signals_ours).
 * Locking:    one lock, for the table. The handler takes none: it reads `told` and, of a signal in it, `tell` and `arg`; of one that
 *             has gone back to the program, `before`.
 * Callers:    processes; workers, for their masks; rt/ at the end; the handler on any thread.
 *
 * Rejected: to send a note to every thread that has not blocked the signal yet. Threads of the program take no notes.
 * Rejected: a handler that puts the signal into a queue of our own. It would have to allocate, and the kernel has such a queue. */
#define _GNU_SOURCE
#include "os/signal.h"

#include <errno.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include "base/atomic.h"
#include "os/fault.h"
#include "os/interrupt.h"
#include "os/preempt.h"
#include "os/lock.h"
#include "os/thread.h"

/* The kernel lets no thread but the first send a signal with a code that says that the kernel, or kill(2), has sent it. So a signal that is sent on
 * carries its code as a number below all codes, until it is taken. */
#define SENT_ON (-0x10000)
#define TRIES 1000 /* to send a signal on, when the queue of the kernel is full */

struct entry {
	struct sigaction before; /* the program's action, if the signal is in `awaited` or `told` */
	void (*tell)(void *arg); /* written before the bit in `told`, release; read by the handler */
	void *arg;
};

static struct entry entries[HD__SIGNAL_MAX + 1];
static unsigned char table;	       /* lock: the entries; `awaited` and `told` are written under it */
static hd__signals awaited, told;      /* release; any thread reads them, acquire */

/* Sends it to the program once more: to a thread that has not blocked it either, or it stays pending. */
static void send_on(int signal, siginfo_t *info)
{
	siginfo_t copy = *info;

	if (copy.si_code >= 0 || copy.si_code == SI_TKILL)
		copy.si_code += SENT_ON;
	for (int i = 0; i < TRIES; i++) {
		if (syscall(SYS_rt_sigqueueinfo, getpid(), signal, &copy) == 0 || errno != EAGAIN)
			return;
		nanosleep(&(struct timespec){ .tv_nsec = 50000 }, NULL);
	}
}

static void on_signal(int signal, siginfo_t *info, void *context);

static bool has_our_action(int signal, struct sigaction *now)
{
	return sigaction(signal, NULL, now) == 0 && now->sa_flags & SA_SIGINFO && now->sa_sigaction == on_signal;
}

/* In the handler, without the lock. The program may have kept our action, as system(3) does, and put it in place again when the runtime had
 * ended: the signal would go round for ever. If another runtime takes the signal at this moment, the action stays ours. */
static void step_aside(int signal, hd__signals bit)
{
	struct sigaction now;

	if (!has_our_action(signal, &now))
		return;
	sigaction(signal, &entries[signal].before, NULL);
	if ((ld_seq(&awaited) | ld_seq(&told)) & bit)
		sigaction(signal, &now, NULL);
}

static void on_signal(int signal, siginfo_t *info, void *context)
{
	ucontext_t *interrupted = context;
	hd__signals bit = HD__SIGNAL_BIT(signal);
	int saved = errno;

	if (ld_acq(&told) & bit) { /* pairs with hd__os_signal_tell */
		entries[signal].tell(ld_rlx(&entries[signal].arg));
	} else {
		if (ld_acq(&awaited) & bit) {
			sigaddset(&interrupted->uc_sigmask, signal);
			hd__os_of_thread()->signals_ours |= bit;
		} else { /* it has just gone back to the program */
			step_aside(signal, bit);
		}
		send_on(signal, info);
	}
	errno = saved;
}

/* Those that a fault raises on the thread that is at fault, and those that no program can block. */
static bool can_be_taken(int signal)
{
	static const int never[] = { SIGKILL, SIGSTOP, SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS };

	for (unsigned i = 0; i < sizeof never / sizeof never[0]; i++)
		if (signal == never[i])
			return false;
	return signal > 0 && signal <= SIGRTMAX && (signal < 32 || signal >= SIGRTMIN) && !hd__os_is_interrupt(signal) &&
	       !hd__os_is_preempt(signal);
}

/* The signal's action is ours; again, if the program has changed it. */
static void take_locked(int signal)
{
	struct sigaction action = { .sa_sigaction = on_signal }, now;

	if (has_our_action(signal, &now))
		return;
	entries[signal].before = now;
	sigfillset(&action.sa_mask);
	action.sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK | (now.sa_flags & (SA_NOCLDSTOP | SA_NOCLDWAIT));
	if (!(now.sa_flags & SA_SIGINFO) && now.sa_handler == SIG_IGN)
		action.sa_flags |= SA_NOCLDWAIT; /* SIGCHLD: children of a program that ignores it leave no zombies */
	sigaction(signal, &action, NULL);
}

static void give_back_locked(int signal)
{
	struct sigaction now;

	if (has_our_action(signal, &now))
		sigaction(signal, &entries[signal].before, NULL);
}

static void to_sigset(hd__signals set, sigset_t *to)
{
	sigemptyset(to);
	for (int signal = 1; signal <= HD__SIGNAL_MAX; signal++)
		if (set & HD__SIGNAL_BIT(signal))
			sigaddset(to, signal);
}

int hd__os_signals_await(hd__signals set, bool *first)
{
	int saved = errno, err = 0;

	*first = false;
	for (int signal = 1; signal <= HD__SIGNAL_MAX; signal++)
		if (set & HD__SIGNAL_BIT(signal) && !can_be_taken(signal))
			return -EINVAL;
	hd__lock(&table);
	if (set == 0 || set & told) {
		err = set == 0 ? -EINVAL : -EBUSY;
	} else {
		*first = set & ~awaited;
		st_rel(&awaited, awaited | set); /* pairs with hd__os_signals_block; before the handler needs it */
		hd__os_signals_block();
		for (int signal = 1; signal <= HD__SIGNAL_MAX; signal++)
			if (set & HD__SIGNAL_BIT(signal))
				take_locked(signal);
	}
	hd__unlock(&table);
	errno = saved;
	return err;
}

void hd__os_signals_block(void)
{
	hd__signals news = ld_acq(&awaited) & ~hd__os_of_thread()->signals_seen;
	sigset_t set, before;
	int saved = errno;

	if (likely(news == 0))
		return;
	to_sigset(news, &set);
	pthread_sigmask(SIG_BLOCK, &set, &before);
	hd__os_of_thread()->signals_seen |= news;
	for (int signal = 1; signal <= HD__SIGNAL_MAX; signal++)
		if (news & HD__SIGNAL_BIT(signal) && !sigismember(&before, signal))
			hd__os_of_thread()->signals_ours |= HD__SIGNAL_BIT(signal);
	errno = saved;
}

int hd__os_signal_take(hd__signals set, siginfo_t *info)
{
	int saved = errno;
	sigset_t from;

	if (unlikely(hd__fault_strikes(HD__FAULT_EINTR)))
		return -EINTR;
	to_sigset(set, &from);
	int signal = sigtimedwait(&from, info, &(struct timespec){ 0 });
	int err = signal > 0 ? 0 : errno;
	errno = saved;
	if (err != 0)
		return -err;
	if (info->si_code <= SENT_ON / 2)
		info->si_code -= SENT_ON;
	return signal;
}

int hd__os_signal_fd(hd__signals set)
{
	int saved = errno;
	sigset_t of;

	to_sigset(set, &of);
	int fd = hd__fault_strikes(HD__FAULT_FD) ? (errno = EMFILE, -1) : signalfd(-1, &of, SFD_NONBLOCK | SFD_CLOEXEC);
	int err = fd >= 0 ? 0 : -errno;
	errno = saved;
	return err != 0 ? err : fd;
}

int hd__os_signal_tell(int signal, void (*tell)(void *arg), void *arg)
{
	int saved = errno, err = 0;

	if (!can_be_taken(signal))
		return -EINVAL;
	struct entry *e = &entries[signal];
	hd__signals bit = HD__SIGNAL_BIT(signal);
	hd__lock(&table);
	if (awaited & bit || (tell != NULL && told & bit)) {
		err = -EBUSY;
	} else if (tell != NULL) {
		e->tell = tell;
		st_rlx(&e->arg, arg);	   /* a handler that began before the last one was stopped may read it */
		st_rel(&told, told | bit); /* pairs with on_signal */
		take_locked(signal);
	} else if (told & bit) {
		give_back_locked(signal);
		st_rel(&told, told & ~bit);
		err = 1;
	}
	hd__unlock(&table);
	errno = saved;
	return err;
}

bool hd__os_signal_is_awaited(int signal)
{
	return (ld_seq(&awaited) | ld_seq(&told)) & HD__SIGNAL_BIT(signal);
}

hd__signals hd__os_signals_ours(void)
{
	return hd__os_of_thread()->signals_ours;
}

void hd__os_signals_mask(sigset_t *mask)
{
	pthread_sigmask(SIG_BLOCK, NULL, mask);
	for (int signal = 1; signal <= HD__SIGNAL_MAX; signal++)
		if (hd__os_signals_ours() & HD__SIGNAL_BIT(signal))
			sigdelset(mask, signal);
}

void hd__os_signals_set(const sigset_t *mask)
{
	pthread_sigmask(SIG_SETMASK, mask, NULL);
	hd__os_signals_block();
}

void hd__os_signals_return(void)
{
	int saved = errno;
	sigset_t set;

	hd__lock(&table);
	for (int signal = 1; signal <= HD__SIGNAL_MAX; signal++)
		if ((awaited | told) & HD__SIGNAL_BIT(signal))
			give_back_locked(signal);
	st_rel(&awaited, 0);
	st_rel(&told, 0);
	hd__unlock(&table);
	to_sigset(hd__os_signals_ours(), &set);
	hd__os_of_thread()->signals_seen = hd__os_of_thread()->signals_ours = 0;
	pthread_sigmask(SIG_UNBLOCK, &set, NULL); /* what is pending now does what it does by the program's action */
	errno = saved;
}

void hd__os_signals_forget(void)
{
	st_rlx(&table, 0); /* of the parent's threads, none is here */
	hd__os_signals_return();
}
