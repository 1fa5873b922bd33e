/* malloc.c - memory that the simulator may refuse: loaded before a program that is explored with --fail malloc.
 *
 * Everything that asks the C library for memory comes by here: the program, heddle, the C library itself. The simulator
 * (src/sim/doors.c) puts a function into the door, which says whether this call fails. */
#include <errno.h>
#include <malloc.h>
#include <stdbool.h>
#include <stdlib.h>

#define SHOWN __attribute__((visibility("default")))

SHOWN bool (*heddle_malloc_door)(void);

/* What the C library calls its own. */
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *old, size_t size);
void *__libc_memalign(size_t alignment, size_t size);

static bool fails(void)
{
	if (heddle_malloc_door == NULL || !heddle_malloc_door())
		return false;
	errno = ENOMEM;
	return true;
}

SHOWN void *malloc(size_t size)
{
	return fails() ? NULL : __libc_malloc(size);
}

SHOWN void *calloc(size_t n, size_t size)
{
	return fails() ? NULL : __libc_calloc(n, size);
}

SHOWN void *realloc(void *old, size_t size)
{
	return fails() ? NULL : __libc_realloc(old, size);
}

SHOWN void *memalign(size_t alignment, size_t size)
{
	return fails() ? NULL : __libc_memalign(alignment, size);
}

SHOWN void *aligned_alloc(size_t alignment, size_t size)
{
	return memalign(alignment, size);
}

SHOWN int posix_memalign(void **p, size_t alignment, size_t size)
{
	if (alignment < sizeof(void *) || (alignment & (alignment - 1)) != 0)
		return EINVAL;
	void *memory = memalign(alignment, size);
	if (memory == NULL)
		return ENOMEM;
	*p = memory;
	return 0;
}
