/* heddle/time.h - sleeping.
 *
 * A sleeping process costs its stack and sixteen bytes; a worker with only sleepers uses no CPU. Sleepers on one worker that
 * wake at the same time wake in the order in which they went to sleep. */
#ifndef HEDDLE_TIME_H
#define HEDDLE_TIME_H

#include <heddle/base.h>

HD_BEGIN

/* Sleeps for `ns`, or until a time. Returns 0, at once when there is nothing to sleep for; -EINVAL when ns is negative, or t
 * is a duration (base.h); -ECANCELED when the caller was cancelled. Cancellation point, unless ns or the time is 0 or less. Process or plain thread. */
HD_API int hd_sleep(hd_time ns);
HD_API int hd_sleep_until(hd_time t);

HD_END
#endif
