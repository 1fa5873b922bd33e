/* heddle/semaphore.h - counting semaphores.
 *
 * A semaphore holds signals. hd_semaphore_wait takes one, sleeping until there is one to take; hd_semaphore_signal gives
 * one. Waiters are served in the order they came, whatever their priority. Zeroed memory is a semaphore with no signals. */
#ifndef HEDDLE_SEMAPHORE_H
#define HEDDLE_SEMAPHORE_H

#include <heddle/base.h>

HD_BEGIN

/* All of it is private. The taker of the last signal may free it: hd_semaphore_signal does not touch it after giving the
 * signal. */
struct hd_semaphore {
	struct hd_waitq waiters;
	unsigned excess;
	unsigned posted; /* by signal handlers, on its way */
	struct hd_note delivery;
};

/* A semaphore with `n` signals. HD_SEMAPHORE(1) is Pharo's forMutualExclusion. hd_semaphore_init makes one of memory that is
 * not in use; any thread. */
#define HD_SEMAPHORE(n)                                                                                                        \
	{                                                                                                                      \
		{ NULL, NULL, 0 }, (n), 0,                                                                                     \
		{                                                                                                              \
			NULL, NULL                                                                                             \
		}                                                                                                              \
	}
HD_API void hd_semaphore_init(struct hd_semaphore *s, unsigned n);

/* Takes a signal. Returns 0; -ETIMEDOUT when `until` has passed or -ECANCELED when the caller was cancelled, and then no
 * signal was taken. Cancellation point. Call it on a process or on a plain thread. */
HD_API HD_MUST_USE int hd_semaphore_wait(struct hd_semaphore *s, hd_time until);

/* Takes a signal if there is one. Returns 0; -EAGAIN when there is none. Process or plain thread. */
HD_API HD_MUST_USE int hd_semaphore_try_wait(struct hd_semaphore *s);

/* Gives a signal: to the first waiter, or to the next caller of hd_semaphore_wait. A waiter of higher priority than the caller
 * runs at once. Returns 0; -EOVERFLOW when 2^32 - 1 signals are held already. Process or plain thread. */
HD_API int hd_semaphore_signal(struct hd_semaphore *s);

/* Whether a wait would find a signal now. Process or plain thread. */
HD_API bool hd_semaphore_is_signaled(const struct hd_semaphore *s);

/* Takes a signal, calls fn(arg), gives the signal back. Returns 0, or what hd_semaphore_wait answered and then fn was not
 * called; -EOVERFLOW when there was no room to give it back. Cancellation point. Process or plain thread. */
HD_API HD_MUST_USE int hd_semaphore_critical(struct hd_semaphore *s, void (*fn)(void *arg), void *arg, hd_time until);

/* The one call that a signal handler may make: as hd_semaphore_signal, delivered by a worker at its next safe point. The
 * semaphore must outlive that delivery. Returns 0; -ENXIO when no runtime runs. Any thread, any handler. A program that waits for
 * nothing but a handler says so with hd_hold_open. */
HD_API int hd_semaphore_signal_from_handler(struct hd_semaphore *s);

HD_END
#endif
