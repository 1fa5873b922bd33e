/* arch/aarch64/bump.h - counters with one writer, on aarch64. */
#ifndef ARCH_BUMP_H
#define ARCH_BUMP_H

#include <stdint.h>

static inline void hd__arch_bump(uint64_t *counter, int64_t n)
{
	__atomic_store_n(counter, __atomic_load_n(counter, __ATOMIC_RELAXED) + (uint64_t)n, __ATOMIC_RELAXED);
}

/* By one, with release. */
static inline void hd__arch_bump_rel(uint64_t *counter)
{
	__atomic_store_n(counter, __atomic_load_n(counter, __ATOMIC_RELAXED) + 1, __ATOMIC_RELEASE);
}

#endif
