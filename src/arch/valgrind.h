/* arch/valgrind.h - what Valgrind must be told about stacks.
 *
 * Its own header is not used: a library that was built where Valgrind is not installed works under it too. */
#ifndef ARCH_VALGRIND_H
#define ARCH_VALGRIND_H

#include "request.h"

/* Numbers of Valgrind's requests. */
#define HD__VALGRIND_RUNS_IT 0x1001
#define HD__VALGRIND_NEW_STACK 0x1501

/* Valgrind complains about system calls that it does not know. */
static inline int hd__under_valgrind(void)
{
	return hd__valgrind_request(HD__VALGRIND_RUNS_IT, 0, 0) != 0;
}

static inline void hd__valgrind_new_stack(void *bottom, size_t size)
{
	hd__valgrind_request(HD__VALGRIND_NEW_STACK, (size_t)bottom, (size_t)bottom + size);
}

#endif
