/* say.h - what the command says when it cannot go on, and how it reads numbers. */
#ifndef SAY_H
#define SAY_H

#include <stdint.h>

/* Says why to stderr and exits with 2. */
_Noreturn void die(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The number that an option was given; dies when it is none from `least` to `most`. */
uint64_t number_option(const char *option, const char *text, uint64_t least, uint64_t most);

#endif
