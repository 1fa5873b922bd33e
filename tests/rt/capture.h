/* rt/capture.h - what a runtime says to stderr, as text. */
#ifndef TESTS_CAPTURE_H
#define TESTS_CAPTURE_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "harness/harness.h"

static int capture_file = -1, capture_stderr = -1;

/* From here on stderr goes to a file, until capture_end. */
static inline void capture_begin(void)
{
	capture_file = memfd_create("stderr", MFD_CLOEXEC);
	capture_stderr = dup(STDERR_FILENO);
	CHECK(capture_file >= 0 && capture_stderr >= 0);
	dup2(capture_file, STDERR_FILENO);
}

/* What has been written so far. */
static inline const char *captured(void)
{
	static char text[65536];
	ssize_t n = pread(capture_file, text, sizeof text - 1, 0);

	text[n > 0 ? n : 0] = '\0';
	return text;
}

static inline const char *capture_end(void)
{
	const char *text = captured();

	dup2(capture_stderr, STDERR_FILENO);
	close(capture_stderr);
	close(capture_file);
	return text;
}

/* Whether the text has the words in it; says what it is if not. */
static inline bool says(const char *text, const char *words)
{
	if (strstr(text, words) != NULL)
		return true;
	fprintf(stderr, "not said: %s\nsaid: %s\n", words, text);
	return false;
}

static inline int times_said(const char *text, const char *words)
{
	int n = 0;

	for (const char *at = text; (at = strstr(at, words)) != NULL; at++)
		n++;
	return n;
}

#endif
