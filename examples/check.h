/* check.h - CHECK: what must hold, in every build and under every schedule. */
#ifndef EXAMPLES_CHECK_H
#define EXAMPLES_CHECK_H

#include <stdio.h>
#include <stdlib.h>

/* Says what was violated, and aborts, unless cond holds. NDEBUG does not matter. */
#define CHECK(cond)                                                                                                            \
	do {                                                                                                                   \
		if (!(cond)) {                                                                                                 \
			fprintf(stderr, "%s:%d: %s: violated: %s\n", __FILE__, __LINE__, __func__, #cond);                     \
			abort();                                                                                               \
		}                                                                                                              \
	} while (0)

#endif
