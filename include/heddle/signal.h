/* heddle/signal.h - signals: a process waits for them as for anything else.
 *
 * A signal that is sent to the program stays pending until a process takes it, and is taken once: no handler runs, nothing is interrupted. The
 * first wait for a signal takes it from the program, for as long as the runtime runs: it is blocked in every kernel thread, in one
 * that does not block it by itself when it first comes there. So one that comes when no process waits is kept for the next wait. Signals that
 * no process has waited for do what they always did. When the runtime ends, the program's actions come back, and the mask of the
 * thread that called hd_run; a signal that is pending then does what the program's action says. */
#ifndef HEDDLE_SIGNAL_H
#define HEDDLE_SIGNAL_H

#include <heddle/base.h>
#include <heddle/port.h>
#include <heddle/semaphore.h>
#include <sys/types.h>
#ifdef _POSIX_C_SOURCE /* strict C11 has no sigset_t */
#include <sys/select.h>
#endif

HD_BEGIN

/* What is known of a signal that was taken: siginfo_t's fields of these names. */
struct hd_signal {
	int signo;
	int code;  /* SI_USER: kill(2); SI_QUEUE: sigqueue(3); CLD_EXITED and its like: see sigaction(2) */
	pid_t pid; /* that sent it; of SIGCHLD: the child */
	uid_t uid;
	int status;	/* SIGCHLD: its exit code, or the signal */
	intptr_t value; /* SI_QUEUE: what came with it, as a pointer */
};

#ifdef _POSIX_C_SOURCE
/* Waits for a signal of the set. hd_sigwait puts its number into *sig, hd_sigwaitinfo what is known of it into *info; either may be NULL. If
 * several are pending, the lowest number comes first; real-time signals of a number come in the order in which they were sent, and other
 * signals are merged while they are pending. Several processes may wait, for the same signals or others: each signal goes to one of them, in
 * no order. Returns
 *
 *   0            a signal was taken
 *   -ETIMEDOUT   none had come by `until`
 *   -ECANCELED   the caller was cancelled; then, too, no signal was taken
 *   -EINVAL      the set is empty, or has a signal that no process can wait for: SIGKILL, SIGSTOP, those that a fault raises
 *                (SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS), and one real-time signal that heddle may use, the highest
 *   -EBUSY       a semaphore is signalled by one of them, or a port gets its messages
 *   -EMFILE, -ENFILE, -ENOMEM
 *   -ENOTSUP     the program is explored, or the caller is a plain thread, which has sigwait(3)
 *
 * A signal that is sent to one kernel thread (pthread_kill(3), raise(3)) and not to the program (kill(2), sigqueue(3)) is found only by a
 * call on that thread. While threads still have to block the signal, the first ones may come in another order: a program that minds blocks
 * the set before hd_run. Cancellation point. Process. */
HD_API HD_MUST_USE int hd_sigwait(const sigset_t *set, int *sig, hd_time until);
HD_API HD_MUST_USE int hd_sigwaitinfo(const sigset_t *set, struct hd_signal *info, hd_time until);
#endif

/* From now on each signal `sig` that comes signals the semaphore: as by hd_semaphore_signal_from_handler in a handler for it. NULL: not any more, and
 * the program's action comes back. The semaphore must exist until the runtime ends. A process that waits while a signal has a
 * semaphore is in no deadlock. Returns 0; -EINVAL as hd_sigwait; -EBUSY when it has a semaphore already, or a process has waited for
 * it; -ENOTSUP as hd_sigwait. Process. */
HD_API int hd_signal_semaphore(int sig, struct hd_semaphore *s);

/* From now on each signal `sig` that comes is a message to the port: its tag is the signal, its data a struct hd_signal, its sender 0. It arrives in a full
 * port too, and does not count there. Real-time signals are not merged, and come in the order in which they were sent; other signals are
 * merged while they are pending, as ever, and those that came before the call and are pending still are sent too. NULL: not any more: when the call returns, no
 * message of this signal is sent that was not sent before; the signal stays heddle's, and is kept for the next wait or port. So it is
 * when the port's owner ends. Until then heddle has a reference to the port. A process that waits while a signal has a port is in no
 * deadlock. Returns 0, or
 *
 *   -EINVAL    as hd_sigwait; or the port has no owner yet, or is one for an answer
 *   -EBUSY     the signal has a port already, or a semaphore
 *   -ESRCH     the owner of the port has ended
 *   -EMFILE, -ENFILE, -ENOMEM, -EAGAIN
 *   -ENOTSUP   as hd_sigwait
 *
 * A daemon of heddle's waits for the signal, with priority HD_PRIORITY_HIGH_IO; hd_each_process shows it, as "signal 15". Process. */
HD_API int hd_signal_port(int sig, hd_port *port);

HD_END
#endif
