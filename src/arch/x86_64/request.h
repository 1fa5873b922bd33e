/* arch/x86_64/request.h - a request to Valgrind, on x86-64.
 *
 * These instructions do nothing: the register is turned by 128 bits in all, and another one is exchanged with itself. Valgrind, which runs a
 * program in its own way, knows the sequence: it reads the request at %rax and answers in %rdx. */
#ifndef ARCH_REQUEST_H
#define ARCH_REQUEST_H

#include <stddef.h>

/* Returns Valgrind's answer; 0 when the program does not run under it. */
static inline size_t hd__valgrind_request(size_t code, size_t first, size_t second)
{
	const size_t request[6] = { code, first, second, 0, 0, 0 };
	size_t answer = 0;

	__asm__ volatile("rolq $3, %%rdi\n\trolq $13, %%rdi\n\trolq $61, %%rdi\n\trolq $51, %%rdi\n\txchgq %%rbx, %%rbx"
			 : "+d"(answer)
			 : "a"(request)
			 : "cc", "memory");
	return answer;
}

#endif
