/* unwind_none.c - a command that was built without libdw. */
#include "traces.h"

const bool unwind_is_there = false;

void unwind_program(FILE *to, const struct wish_of_traces *wish)
{
	(void)to, (void)wish;
}

void unwind_files(FILE *to, const struct in_file *wanted, uint32_t n, const char *root)
{
	(void)to, (void)wanted, (void)n, (void)root;
}
