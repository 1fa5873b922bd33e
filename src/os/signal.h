/* os/signal.h - the door to signals: those that processes wait for, and those that a function is told of.
 *
 * A signal is taken from the program when a process first waits for it, or first asks to be told of it, and goes back when the runtime ends.
 * Each call answers 0 or what it says, or -errno; errno is left alone. The simulated runtime has no signals: there every call
 * answers -ENOSYS, or does nothing. */
#ifndef OS_SIGNAL_H
#define OS_SIGNAL_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

/* A set of signals: bit n - 1 is signal n. */
typedef uint64_t hd__signals;
#define HD__SIGNAL_MAX 64
#define HD__SIGNAL_BIT(signal) (UINT64_C(1) << ((signal)-1))

/* From now on the signals of the set wait for hd__os_signal_take. The calling thread blocks them; others must hd__os_signals_block, and if one of
 * these is sent a signal before it has, the signal is sent on. *first: one of the signals is new, so that other threads have not
 * blocked it. -EINVAL: the set is empty, or has a signal that no process can wait for. -EBUSY: a function is told of one. */
int hd__os_signals_await(hd__signals set, bool *first);

/* The calling thread blocks all signals that processes wait for. Costs two loads when it has done so already. */
void hd__os_signals_block(void);

/* Takes a pending signal of the set, the lowest number first, and answers it; -EAGAIN when there is none. */
int hd__os_signal_take(hd__signals set, siginfo_t *info);

/* A descriptor that is readable when hd__os_signal_take would find one. -EMFILE, -ENFILE, -ENOMEM. */
int hd__os_signal_fd(hd__signals set);

/* From now on tell(arg) is called at each such signal, in a signal handler on any thread; NULL: not any more, and the answer is 1 if one was.
 * -EINVAL; -EBUSY: a process waits, or has waited, for it, or another function is told of it. */
int hd__os_signal_tell(int signal, void (*tell)(void *arg), void *arg);

/* Whether a process waits, or has waited, for the signal, or a function is told of it. */
bool hd__os_signal_is_awaited(int signal);

/* What the calling thread has blocked of these. Any signal handler. */
hd__signals hd__os_signals_ours(void);

/* The mask that the calling thread would have without hd__os_signals_block. */
void hd__os_signals_mask(sigset_t *mask);

/* The calling thread, which has just begun, has this mask, and what hd__os_signals_block blocks. */
void hd__os_signals_set(const sigset_t *mask);

/* The runtime is over, and this is the thread that began it; or (forget) this is a forked child. The program's actions come back, unless it has changed them meanwhile,
 * and so does the mask of the calling thread. */
void hd__os_signals_return(void);
void hd__os_signals_forget(void);

#endif
