/* arch/x86_64/ticks.h - a counter that is cheap to read, on x86-64: the time stamp counter. */
#ifndef ARCH_TICKS_H
#define ARCH_TICKS_H

#include <cpuid.h>
#include <stdbool.h>
#include <stdint.h>

/* 8 ns. A few instructions before or after it may be counted in. */
static inline uint64_t hd__arch_ticks(void)
{
	return __builtin_ia32_rdtsc();
}

/* Whether it counts evenly, whatever the CPU does: then it is the same on all CPUs, too, as far as a kernel has them in step. */
static inline bool hd__arch_ticks_are_even(void)
{
	unsigned a, b, c, d;
	return __get_cpuid(0x80000007, &a, &b, &c, &d) && (d >> 8 & 1) != 0;
}

#endif
