/* arch/x86_64/call.h - a system call on x86-64, without the C library: its answer is a count or -errno, and errno is left alone. */
#ifndef ARCH_CALL_H
#define ARCH_CALL_H

static inline long hd__arch_call_kernel(long number, long a, long b, long c, long d, long e, long f)
{
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	register long r9 __asm__("r9") = f;
	long answer;

	__asm__ volatile("syscall"
			 : "=a"(answer)
			 : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	return answer;
}

#endif
