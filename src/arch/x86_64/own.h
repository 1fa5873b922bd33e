/* arch/x86_64/own.h - the pointer that each kernel thread has for itself, on x86-64.
 *
 * Loaded by inline assembler: the compiler, which does not know that a process may go on on another thread, cannot keep the
 * address of the variable, or its value, across a switch. */
#ifndef ARCH_OWN_H
#define ARCH_OWN_H

extern _Thread_local void *hd__own __attribute__((visibility("hidden")));

static inline void *hd__arch_own(void)
{
	void *own;

	__asm__ volatile("movq hd__own@gottpoff(%%rip), %0\n\t"
			 "movq %%fs:(%0), %0"
			 : "=r"(own));
	return own;
}

#endif
