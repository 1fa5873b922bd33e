/* base/variable.h - the environment. */
#ifndef BASE_VARIABLE_H
#define BASE_VARIABLE_H

#include <stdlib.h>

/* A variable of the environment; NULL when it is not set, or empty, which is the same to heddle: `HEDDLE_WORKERS= program`. */
static inline const char *hd__variable(const char *name)
{
	const char *text = getenv(name);
	return text != NULL && *text != 0 ? text : NULL;
}

#endif
