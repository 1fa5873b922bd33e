/* arch/x86_64/bump.h - counters with one writer, on x86-64.
 *
 * An addition in memory is one instruction; what the compiler makes of a load, an addition and a store that must each be atomic, is three. A reader
 * sees the old value or the new one. TSan does not see what an instruction does: for it, there are the three. */
#ifndef ARCH_BUMP_H
#define ARCH_BUMP_H

#include <stdint.h>

#ifdef __SANITIZE_THREAD__
static inline void hd__arch_bump(uint64_t *counter, int64_t n)
{
	__atomic_store_n(counter, __atomic_load_n(counter, __ATOMIC_RELAXED) + (uint64_t)n, __ATOMIC_RELAXED);
}

static inline void hd__arch_bump_rel(uint64_t *counter)
{
	__atomic_store_n(counter, __atomic_load_n(counter, __ATOMIC_RELAXED) + 1, __ATOMIC_RELEASE);
}
#else
static inline void hd__arch_bump(uint64_t *counter, int64_t n)
{
	__asm__ volatile("addq %1, %0" : "+m"(*counter) : "er"(n) : "cc");
}

/* By one, with release. */
static inline void hd__arch_bump_rel(uint64_t *counter)
{
	__asm__ volatile("addq $1, %0" : "+m"(*counter) : : "cc", "memory");
}
#endif

#endif
