/* arch/aarch64/tp.h - the thread pointer on 64-bit ARM: the register TPIDR_EL0. As on x86-64 (see there). */
#ifndef ARCH_TP_H
#define ARCH_TP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

static inline uintptr_t hd__arch_tp(void)
{
	uintptr_t tp;

	__asm__ volatile("mrs %0, tpidr_el0" : "=r"(tp));
	return tp;
}

static inline bool hd__arch_tp_is_ours(void)
{
	return true;
}

static inline void hd__arch_set_tp(uintptr_t tp, bool is_ours)
{
	(void)is_ours;
	__asm__ volatile("msr tpidr_el0, %0" : : "r"(tp) : "memory");
}

static inline char *hd__arch_thread_of(uintptr_t tp, size_t size)
{
	return (char *)tp - size; /* variables are above the pointer, the thread is below it */
}

/* Guards are variables of the program here, not of the thread. */
static inline void hd__arch_tp_init(uintptr_t tp, uintptr_t like)
{
	(void)tp, (void)like;
}

static inline bool hd__arch_tp_is_known(uintptr_t tp)
{
	return tp != 0;
}

#endif
