/* os/clock.h - the kernel's monotonic clock, as a clock that the runtime can be given. */
#ifndef OS_CLOCK_H
#define OS_CLOCK_H

#include <heddle/base.h>

/* A clock: what time it is. The simulator hands in another one. */
struct hd__clock {
	hd_time (*now)(const struct hd__clock *clock);
};

extern const struct hd__clock hd__os_clock;

/* When every clock of heddle begins, with the program. What is less, and more than 0, is no time but a duration; except for the hour
 * before: a program that has just begun may reckon back from now. */
#define HD__BEGINNING INT64_C(1000000000000000)
#define HD__FIRST_TIME (HD__BEGINNING - HD_SEC(3600))

/* Whether a caller gave a duration where a time is wanted: hd_mutex_lock(&m, HD_SEC(5)). */
static inline bool hd__is_duration(hd_time t)
{
	if (__builtin_expect(t >= HD__FIRST_TIME, 1))
		return false;
	__asm__("" : "+r"(t)); /* or the compiler makes one comparison of the two, and HD_FOREVER pays for it */
	return t > 0;
}

/* A time on hd__os_clock as the kernel counts it. */
hd_time hd__os_kernel_time(hd_time t);

/* The clock of plain threads: the kernel's, unless the program is simulated. */
extern const struct hd__clock *hd__plain_clock;

#endif
