/* os/errno.c - where errno is, asked anew each time.
 *
 * Callers:   programs, through the macro in heddle/errno.h. heddle's own sources use the C library's errno: inside a call they change
 *            the stack only in sched/, which saves and restores it. */
#define HD_KEEP_ERRNO
#include <heddle/errno.h>

/* Not inlined, and opaque to the optimiser: seen through, it would be as constant as the C library's function. */
__attribute__((noinline)) int *hd_errno(void)
{
	__asm__ volatile("");
	return &errno;
}
