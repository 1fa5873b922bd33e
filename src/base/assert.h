/* base/assert.h - assertions that stay on in release builds.
 *
 * Misuse that a call can report has an error code; HD_ASSERT is for what must not go on: a broken invariant of heddle, or a
 * use that would corrupt memory. The message says what was expected; then the program aborts. */
#ifndef BASE_ASSERT_H
#define BASE_ASSERT_H

#define HD_ASSERT(condition, message)                                                                                          \
	do {                                                                                                                   \
		if (__builtin_expect(!(condition), 0))                                                                         \
			hd__panic(#condition, message, __FILE__, __LINE__);                                                    \
	} while (0)

__attribute__((noreturn, cold, noinline)) void hd__panic(const char *condition, const char *message, const char *file,
							 int line);

/* Writes a formatted line to stderr in one system call, from any stack and any handler; at most 512 bytes. */
__attribute__((format(printf, 1, 2), cold)) void hd__complain(const char *format, ...);

#endif
