/* os/clock.c - the kernel's monotonic clock. 23 ns a reading: callers use the coarse time where that will do. */
#define _GNU_SOURCE
#include "os/clock.h"

#include <time.h>

static hd_time kernel_now(const struct hd__clock *clock)
{
	struct timespec t;

	(void)clock;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return HD_SEC(t.tv_sec) + t.tv_nsec;
}

const struct hd__clock hd__os_clock = { kernel_now };
