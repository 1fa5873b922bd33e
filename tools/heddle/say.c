/* say.c - what the command says when it cannot go on, and how it reads numbers. */
#include "say.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

_Noreturn void die(const char *format, ...)
{
	va_list args;

	fflush(stdout);
	fputs("heddle: ", stderr);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	exit(2);
}

uint64_t number_option(const char *option, const char *text, uint64_t least, uint64_t most)
{
	char *end;

	errno = 0;
	uint64_t n = strtoull(text, &end, 10);
	if (text[0] < '0' || text[0] > '9' || errno != 0 || *end != 0 || n < least || n > most)
		die("%s %s: not a number from %" PRIu64 " to %" PRIu64, option, text, least, most);
	return n;
}
