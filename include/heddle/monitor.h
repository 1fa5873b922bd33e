/* heddle/monitor.h - monitors, and condition variables.
 *
 * A monitor is a mutex and any number of conditions to wait for inside it. A wait leaves the monitor, however often the caller
 * had entered it, and enters it again before it returns. The signaller goes on; the signalled waiter enters as hd_mutex_lock
 * would, so another process may have been inside in between: test again what was waited for. A process that is ended while it
 * waits is inside when its cleanups run. Zeroed memory is ready. */
#ifndef HEDDLE_MONITOR_H
#define HEDDLE_MONITOR_H

#include <heddle/base.h>
#include <heddle/mutex.h>

HD_BEGIN

/* Something to wait for. All of it is private. */
struct hd_condition {
	struct hd_waitq waiters;
};
/* A condition without waiters. */
#define HD_CONDITION                                                                                                           \
	{                                                                                                                      \
		{                                                                                                              \
			NULL, NULL, 0                                                                                          \
		}                                                                                                              \
	}

/* All of it is private. */
struct hd_monitor {
	struct hd_mutex mutex;
	struct hd_condition changed; /* the condition that NULL means */
};
/* A free monitor; flags as of a mutex. hd_monitor_init makes one of memory that is not in use; any thread. */
#define HD_MONITOR(flags)                                                                                                      \
	{                                                                                                                      \
		HD_MUTEX(flags), HD_CONDITION                                                                                  \
	}
HD_API void hd_monitor_init(struct hd_monitor *m, unsigned flags);

/* As hd_mutex_lock, hd_mutex_unlock and hd_mutex_critical. */
HD_API HD_MUST_USE int hd_monitor_enter(struct hd_monitor *m, hd_time until);
HD_API int hd_monitor_exit(struct hd_monitor *m);
HD_API HD_MUST_USE int hd_monitor_critical(struct hd_monitor *m, void (*fn)(void *arg), void *arg, hd_time until);

/* Waits for a signal to c (NULL: the monitor's own condition). Returns 0 when signalled; -ETIMEDOUT or -ECANCELED, and then no
 * signal was taken; in all three cases the caller has the monitor again, as deep as before. -EPERM when the caller was not
 * inside. Cancellation point. Process or plain thread. */
HD_API HD_MUST_USE int hd_monitor_wait(struct hd_monitor *m, struct hd_condition *c, hd_time until);

/* Waits for signals to c as long as is_so(arg), called inside the monitor, is true. One deadline for all of it. Returns 0 when
 * it is not so any more; errors as hd_monitor_wait. Cancellation point if it waits. Process or plain thread. */
HD_API HD_MUST_USE int hd_monitor_wait_while(struct hd_monitor *m, struct hd_condition *c, bool (*is_so)(void *arg), void *arg,
					     hd_time until);

/* Ends the wait of the first waiter for c (NULL: the monitor's own condition), or of all. Returns 0, also when there is none;
 * -EPERM when the caller is not inside. Process or plain thread. */
HD_API int hd_monitor_signal(struct hd_monitor *m, struct hd_condition *c);
HD_API int hd_monitor_signal_all(struct hd_monitor *m, struct hd_condition *c);

/* As hd_monitor_wait, hd_monitor_signal and hd_monitor_signal_all, with a mutex of the program's. A signaller need not own it.
 * All waiters of a condition at one time must use the same mutex. */
HD_API HD_MUST_USE int hd_condition_wait(struct hd_condition *c, struct hd_mutex *m, hd_time until);
HD_API int hd_condition_signal(struct hd_condition *c);
HD_API int hd_condition_signal_all(struct hd_condition *c);

HD_END
#endif
