/* posix/sleep.c - deadlines of POSIX's clocks, and sleeping.
 *
 * Callers:    any thread. A plain one sleeps in the C library, where signals interrupt it. */
#include "posix/posix.h"

#define BILLION 1000000000

int hd__posix_until(clockid_t clock, const struct timespec *until, hd_time *to)
{
	struct timespec now;

	if (until->tv_nsec < 0 || until->tv_nsec >= BILLION || (clock != CLOCK_REALTIME && clock != CLOCK_MONOTONIC) ||
	    clock_gettime(clock, &now) != 0)
		return EINVAL;
	__int128 left = (__int128)((__int128)until->tv_sec - now.tv_sec) * BILLION + (until->tv_nsec - now.tv_nsec);
	*to = left <= 0 ? 0 : hd_after(left < HD_FOREVER ? (hd_time)left : HD_FOREVER);
	return 0;
}

unsigned hd_posix_sleep(unsigned seconds)
{
	if (hd_self() == 0)
		return sleep(seconds);
	hd_test_cancel();
	hd_sleep(HD_SEC(seconds));
	return 0;
}

int hd_posix_usleep(unsigned microseconds)
{
	if (hd_self() == 0)
		return usleep(microseconds);
	hd_test_cancel();
	hd_sleep(HD_US(microseconds));
	return 0;
}

int hd_posix_clock_nanosleep(clockid_t clock, int flags, const struct timespec *time, struct timespec *rest)
{
	hd_time until;

	if (hd_self() == 0 || (clock != CLOCK_REALTIME && clock != CLOCK_MONOTONIC))
		return clock_nanosleep(clock, flags, time, rest);
	if (time->tv_sec < 0 || time->tv_nsec < 0 || time->tv_nsec >= BILLION)
		return EINVAL;
	hd_test_cancel();
	if (flags & TIMER_ABSTIME) {
		int err = hd__posix_until(clock, time, &until);
		if (err != 0)
			return err;
		hd_sleep_until(until);
	} else {
		hd_sleep(time->tv_sec < HD_FOREVER / BILLION - 1 ? HD_SEC(time->tv_sec) + time->tv_nsec : HD_FOREVER);
	}
	return 0;
}

int hd_posix_nanosleep(const struct timespec *time, struct timespec *rest)
{
	if (hd_self() == 0)
		return nanosleep(time, rest);
	int err = hd_posix_clock_nanosleep(CLOCK_MONOTONIC, 0, time, rest);
	if (err == 0)
		return 0;
	errno = err;
	return -1;
}
