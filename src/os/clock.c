/* os/clock.c - the kernel's monotonic clock, moved so that it begins with the program. 23 ns a reading: callers use the coarse time
 * where that will do. */
#define _GNU_SOURCE
#include "os/clock.h"

#include <time.h>

static hd_time start; /* of the program, as the kernel counts it; constant once main runs */

static hd_time kernel_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return HD_SEC(t.tv_sec) + t.tv_nsec;
}

/* Before the constructors of the program, which may read the clock: 101 is the first priority that is not the compiler's own. */
__attribute__((constructor(101))) static void begin(void)
{
	start = kernel_now();
}

static hd_time now(const struct hd__clock *clock)
{
	(void)clock;
	return kernel_now() - start + HD__BEGINNING;
}

hd_time hd__os_kernel_time(hd_time t)
{
	return t - HD__BEGINNING + start;
}

const struct hd__clock hd__os_clock = { now };
