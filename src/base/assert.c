/* base/assert.c - messages to stderr, and abort. */
#include "base/assert.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

void hd__complain(const char *format, ...)
{
	char line[512];
	va_list args;

	va_start(args, format);
	int n = vsnprintf(line, sizeof line, format, args);
	va_end(args);
	if (n < 0)
		return;
	if ((size_t)n >= sizeof line)
		n = sizeof line - 1;
	ssize_t written = write(STDERR_FILENO, line, (size_t)n);
	(void)written; /* a failed write cannot be reported */
}

void hd__panic(const char *condition, const char *message, const char *file, int line)
{
	hd__complain("heddle: %s\nheddle: expected %s, at %s:%d\n", message, condition, file, line);
	abort();
}
