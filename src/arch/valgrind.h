/* arch/valgrind.h - what Valgrind must be told about stacks. */
#ifndef ARCH_VALGRIND_H
#define ARCH_VALGRIND_H

#include <stddef.h>

#if defined(__has_include)
#if __has_include(<valgrind/valgrind.h>)
#include <valgrind/valgrind.h>
#endif
#endif

/* Valgrind complains about system calls that it does not know. */
static inline int hd__under_valgrind(void)
{
#ifdef RUNNING_ON_VALGRIND
	return RUNNING_ON_VALGRIND;
#else
	return 0;
#endif
}

static inline void hd__valgrind_new_stack(void *bottom, size_t size)
{
	(void)bottom, (void)size;
#ifdef VALGRIND_STACK_REGISTER
	(void)VALGRIND_STACK_REGISTER(bottom, (char *)bottom + size);
#endif
}

#endif
