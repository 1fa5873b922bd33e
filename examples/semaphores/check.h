/* check.h - CHECK: what must hold, in every build and under every schedule. */
#ifndef SEMAPHORES_CHECK_H
#define SEMAPHORES_CHECK_H

#include <stdio.h>
#include <stdlib.h>

/* Says what was violated, and aborts, unless cond holds. NDEBUG does not matter. */
#define CHECK(cond)                                                                                                            \
	do {                                                                                                                   \
		if (!(cond))                                                                                                   \
			check_failed(__FILE__, __LINE__, __func__, #cond);                                                     \
	} while (0)

static inline _Noreturn void check_failed(const char *file, int line, const char *function, const char *cond)
{
	fprintf(stderr, "%s:%d: %s: violated: %s\n", file, line, function, cond);
	abort();
}

#endif
