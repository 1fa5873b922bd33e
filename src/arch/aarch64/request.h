/* arch/aarch64/request.h - a request to Valgrind, on 64-bit ARM.
 *
 * These instructions do nothing: the register is turned by 128 bits in all, and another one is combined with itself. Valgrind, which runs a
 * program in its own way, knows the sequence: it reads the request at x4 and answers in x3. */
#ifndef ARCH_REQUEST_H
#define ARCH_REQUEST_H

#include <stddef.h>

/* Returns Valgrind's answer; 0 when the program does not run under it. */
static inline size_t hd__valgrind_request(size_t code, size_t first, size_t second)
{
	const size_t request[6] = { code, first, second, 0, 0, 0 };
	register size_t answer __asm__("x3") = 0;
	register const size_t *at __asm__("x4") = request;

	__asm__ volatile("ror x12, x12, #3\n\tror x12, x12, #13\n\tror x12, x12, #51\n\tror x12, x12, #61\n\torr x10, x10, x10"
			 : "+r"(answer)
			 : "r"(at)
			 : "cc", "memory");
	return answer;
}

#endif
