/* arch/aarch64/own.h - the pointer that each kernel thread has for itself, on 64-bit ARM. As on x86-64 (see there for why). */
#ifndef ARCH_OWN_H
#define ARCH_OWN_H

#include <stdint.h>

extern _Thread_local void *hd__own __attribute__((visibility("hidden")));

static inline void *hd__arch_own(void)
{
	void *own;
	uintptr_t offset;

	__asm__ volatile("adrp %1, :gottprel:hd__own\n\t"
			 "ldr %1, [%1, :gottprel_lo12:hd__own]\n\t"
			 "mrs %0, tpidr_el0\n\t"
			 "ldr %0, [%0, %1]"
			 : "=&r"(own), "=&r"(offset));
	return own;
}

#endif
