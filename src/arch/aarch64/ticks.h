/* arch/aarch64/ticks.h - a counter that is cheap to read, on aarch64: the virtual counter of the system, the same for all CPUs. */
#ifndef ARCH_TICKS_H
#define ARCH_TICKS_H

#include <stdbool.h>
#include <stdint.h>

static inline uint64_t hd__arch_ticks(void)
{
	uint64_t ticks;

	__asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
	return ticks;
}

static inline bool hd__arch_ticks_are_even(void)
{
	return true;
}

#endif
