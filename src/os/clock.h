/* os/clock.h - the kernel's monotonic clock, as a clock that the runtime can be given. */
#ifndef OS_CLOCK_H
#define OS_CLOCK_H

#include <heddle/base.h>

/* A clock: what time it is. The simulator hands in another one. */
struct hd__clock {
	hd_time (*now)(const struct hd__clock *clock);
};

extern const struct hd__clock hd__os_clock;

/* The clock of plain threads: the kernel's, unless the program is simulated. */
extern const struct hd__clock *hd__plain_clock;

#endif
