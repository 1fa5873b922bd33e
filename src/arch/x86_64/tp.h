/* arch/x86_64/tp.h - the thread pointer on x86-64: the base of the segment FS, where the C library has what belongs to a thread. */
#ifndef ARCH_TP_H
#define ARCH_TP_H

#include <asm/prctl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/syscall.h>

#include "call.h"

static inline uintptr_t hd__arch_tp(void)
{
	uintptr_t tp;

	__asm__ volatile("movq %%fs:0, %0" : "=r"(tp));
	return tp;
}

/* Whether a program may set it without the kernel. */
static inline bool hd__arch_tp_is_ours(void)
{
	return getauxval(AT_HWCAP2) & 2;
}

static inline void hd__arch_set_tp(uintptr_t tp, bool is_ours)
{
	if (is_ours)
		__asm__ volatile("wrfsbase %0" : : "r"(tp) : "memory");
	else
		hd__arch_call_kernel(SYS_arch_prctl, ARCH_SET_FS, (long)tp, 0, 0, 0, 0);
}

/* Where the C library's description of a thread is: it has `size` bytes, and this thread pointer. */
static inline char *hd__arch_thread_of(uintptr_t tp, size_t size)
{
	(void)size;
	return (char *)tp;
}

/* What compilers and the C library read there by number: two pointers to itself, whether there are threads, the guard of stacks, and what
 * addresses in jump buffers are mangled with. Compilers put their reads into any function, so these must be the same everywhere. */
enum {
	HD__TP_SELF = 0,
	HD__TP_THREAD = 16,
	HD__TP_THREADED = 24,
	HD__TP_SYSTEM = 32,
	HD__TP_GUARD = 40,
	HD__TP_MANGLE = 48,
	HD__TP_FEATURES = 72
};

static inline void hd__arch_tp_init(uintptr_t tp, uintptr_t like)
{
	char *to = (char *)tp;
	const char *from = (const char *)like;
	const int threaded = 1;

	memcpy(to + HD__TP_SELF, &tp, sizeof tp);
	memcpy(to + HD__TP_THREAD, &tp, sizeof tp);
	memcpy(to + HD__TP_THREADED, &threaded, sizeof threaded);
	memcpy(to + HD__TP_SYSTEM, from + HD__TP_SYSTEM, sizeof tp);
	memcpy(to + HD__TP_GUARD, from + HD__TP_GUARD, sizeof tp);
	memcpy(to + HD__TP_MANGLE, from + HD__TP_MANGLE, sizeof tp);
	memcpy(to + HD__TP_FEATURES, from + HD__TP_FEATURES, sizeof threaded);
}

/* Whether what the calling thread has there is as expected. */
static inline bool hd__arch_tp_is_known(uintptr_t tp)
{
	return memcmp((const char *)tp + HD__TP_SELF, &tp, sizeof tp) == 0 &&
	       memcmp((const char *)tp + HD__TP_THREAD, &tp, sizeof tp) == 0;
}

#endif
