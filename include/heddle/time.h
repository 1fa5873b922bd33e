/* heddle/time.h - sleeping, and messages that are sent at a time.
 *
 * A sleeping process costs its stack and sixteen bytes; a worker with only sleepers uses no CPU. Sleepers on one worker that
 * wake at the same time wake in the order in which they went to sleep.
 *
 * A timer is a message that is sent to a port at a time, once, or a tick that is sent again and again. No process waits for it meanwhile: a process
 * with a thousand deadlines receives them from its ports, among its other messages. */
#ifndef HEDDLE_TIME_H
#define HEDDLE_TIME_H

#include <heddle/base.h>
#include <heddle/port.h>

HD_BEGIN

/* Sleeps for `ns`, or until a time. Returns 0, at once when there is nothing to sleep for; -EINVAL when ns is negative, or t
 * is a duration (base.h); -ECANCELED when the caller was cancelled. Cancellation point, unless ns or the time is 0 or less. Process or plain thread. */
HD_API int hd_sleep(hd_time ns);
HD_API int hd_sleep_until(hd_time t);

/* A timer: positive, and never used again for another one while the runtime runs. */
typedef int64_t hd_timer;

/* Sends a message to the port at the time `when`, or later, never before: hd_send_after with a copy of `size` bytes at `data`, made now;
 * hd_send_after_with with everything. A time that has passed, 0 included: the message is in the port when the call returns. HD_FOREVER: it is
 * never sent. Its sender is 0; it arrives in a full port too, and does not count there. Messages that one process sets for the same time, while it
 * stays on one worker, arrive in the order in which they were set. Returns the timer, or
 *
 *   -EINVAL   as hd_send; or `when` is a duration (base.h), or the port is one for an answer
 *   -ESRCH    the owner of the port has ended
 *   -EAGAIN   there are 4,194,304 timers, or fewer if address space is limited
 *   -ENOMEM   no memory
 *   -ENXIO    no runtime runs
 *
 * Unless it returns a timer, what was to be moved is still the caller's.
 *
 * A timer has no reference to the port: it ends with the last one, with the port's owner, and with the runtime; what it was to send is dropped then.
 * A process that waits while a timer is set is in no deadlock; but a timer does not keep the runtime running. Any thread. */
HD_API HD_MUST_USE hd_timer hd_send_after(hd_port *port, int64_t tag, const void *data, size_t size, hd_time when);
HD_API HD_MUST_USE hd_timer hd_send_after_with(hd_port *port, const struct hd_sending *what, hd_time when);

/* The data of a tick. */
struct hd_tick {
	hd_timer timer;
	hd_time when;	 /* when it was due */
	uint64_t missed; /* ticks before this one that were not sent */
};

/* Sends a message with this tag, whose data is a struct hd_tick, at the time `first` (0: now), and then every `interval` ns. A receiver that is slow is
 * not flooded: a tick that is due while the one before it has not been received, or not been dropped, is not sent, and is
 * counted in the next one; so is one that the worker is too late for. Drop a tick before the work that it is the sign for. Times are `first` and multiples of the interval from there: being late does
 * not add up. Returns and ends as hd_send_after; -EINVAL too when interval is not above 0. Any thread. */
HD_API HD_MUST_USE hd_timer hd_send_every(hd_port *port, int64_t tag, hd_time first, hd_time interval);

/* Ends a timer: nothing of it is sent any more, and what it was to send is dropped. Returns 0, once for each timer; -ESRCH when there is no such timer
 * any more: its message has been sent (it may be in the port still), it was cancelled, or it has ended with its port; -ENXIO. So of a message
 * that is sent once, one of the two is true: hd_send_cancel has answered 0, or it is sent. Of one that is sent again and again, a tick may be in the
 * port when hd_send_cancel answers 0. Any thread. */
HD_API int hd_send_cancel(hd_timer timer);

HD_END
#endif
