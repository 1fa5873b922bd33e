/* harness/harness.c - registering tests, checking, and writing traces.
 *
 * Owns:       the list of tests; the trace text.
 * Invariant:  a failing check writes with write(2) from static buffers and leaves by _exit: it needs neither stdio's locks
 *             nor more than some 2 KiB of stack, so that it works inside a process on a small stack, in the middle of
 *             anything.
 * Callers:    checks: any thread, any stack; when two fail at once only the first one prints. */
#include "harness/harness.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct harness_test *harness_tests;
bool harness_abort_on_failure;

static struct harness_test **last = &harness_tests;
static atomic_flag failing = ATOMIC_FLAG_INIT;

void harness_register(struct harness_test *test)
{
	*last = test;
	last = &test->next;
}

static void put(const char *text, size_t size)
{
	while (size > 0) {
		ssize_t n = write(STDERR_FILENO, text, size);
		if (n <= 0)
			return;
		text += n;
		size -= (size_t)n;
	}
}

/* Everything that is shown passes this one buffer; only the thread that set `failing` gets here. */
__attribute__((format(printf, 1, 2))) static void say(const char *fmt, ...)
{
	static char line[512];
	va_list args;

	va_start(args, fmt);
	int n = vsnprintf(line, sizeof line, fmt, args);
	va_end(args);
	put(line, n < (int)sizeof line ? (size_t)n : sizeof line - 1);
}

/* The build directory is below the source's: paths begin with "../". */
static const char *short_path(const char *file)
{
	while (strncmp(file, "../", 3) == 0)
		file += 3;
	return file;
}

static void begin_failure(const char *file, int line)
{
	while (atomic_flag_test_and_set(&failing))
		pause();
	say("%s:%d: ", short_path(file), line);
}

__attribute__((noreturn)) static void end_failure(void)
{
	if (harness_abort_on_failure)
		abort();
	_exit(1);
}

void harness_fail(const char *file, int line, const char *what)
{
	begin_failure(file, line);
	put(what, strlen(what));
	say(" does not hold\n");
	end_failure();
}

void harness_check_eq(const char *file, int line, const char *got_text, const char *expected_text, long long got,
		      long long expected)
{
	if (got == expected)
		return;
	begin_failure(file, line);
	say("CHECK_EQ(%s, %s)\n", got_text, expected_text);
	say("       got: %lld\n", got);
	say("  expected: %lld\n", expected);
	end_failure();
}

/* Some forty characters from `from` on, with what cannot be seen made visible; answers the column of the byte `mark`. */
static int show(const char *label, const char *text, size_t from, size_t mark)
{
	int column = 0, mark_column = 0;

	say("%s", label);
	for (size_t i = from; column < 64; i++) {
		if (i == mark)
			mark_column = column;
		if (text[i] == '\0')
			break;
		else if (text[i] == '\n')
			say("\\n"), column += 2;
		else if (text[i] == '\t')
			say("\\t"), column += 2;
		else
			say("%c", text[i]), column++;
	}
	say("\n");
	return mark_column;
}

void harness_check_str(const char *file, int line, const char *got_text, const char *expected_text, const char *got,
		       const char *expected)
{
	if (got == expected || (got != NULL && expected != NULL && strcmp(got, expected) == 0))
		return;
	begin_failure(file, line);
	say("CHECK_STR(%s, %.200s)\n", got_text, expected_text);
	if (got == NULL || expected == NULL) {
		say("  %s is NULL\n", got == NULL ? "got" : "expected");
		end_failure();
	}

	size_t at = 0;
	while (got[at] != '\0' && got[at] == expected[at])
		at++;
	size_t from = at > 30 ? at - 30 : 0;
	say("  got:\n");
	put(got, strlen(got));
	say("\n  expected:\n");
	put(expected, strlen(expected));
	say("\n  they differ from byte %zu on:\n", at);
	show("       got: ", got, from, at);
	int column = show("  expected: ", expected, from, at);
	say("%*s^\n", 12 + column, "");
	end_failure();
}

void harness_skip(const char *why)
{
	while (atomic_flag_test_and_set(&failing))
		pause();
	say("skip: %s\n", why);
	_exit(HARNESS_SKIPPED);
}

static char text[64 * 1024];
static size_t length;

void trace(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	int n = vsnprintf(text + length, sizeof text - length, fmt, args);
	va_end(args);
	if (n < 0 || (size_t)n >= sizeof text - length)
		harness_fail(__FILE__, __LINE__, "the trace fits its 64 KiB: this");
	length += (size_t)n;
}

const char *trace_text(void)
{
	return text;
}

void trace_clear(void)
{
	length = 0;
	text[0] = '\0';
}

int hd_scaled(int n)
{
	const char *scale = getenv("HD_TEST_SCALE");
	int divisor = (HD_UNDER_TSAN   ? 20
		       : HD_UNDER_ASAN ? 5
				       : 1) *
		      (hd_is_simulated() ? 1000 : 1) * (scale != NULL && atoi(scale) > 0 ? atoi(scale) : 1);

	return n / divisor > 0 ? n / divisor : 1;
}

bool hd_is_haunted(void)
{
	struct stat tasks;

	return stat("/proc/self/task", &tasks) != 0 || tasks.st_nlink != 3; /* itself, its parent, one thread */
}

bool hd_is_emulated(void)
{
	return getenv("HD_TEST_SCALE") != NULL; /* make test-aarch64 sets it */
}
