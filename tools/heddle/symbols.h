/* symbols.h - what is at an address of a program. */
#ifndef SYMBOLS_H
#define SYMBOLS_H

#include <stdint.h>
#include <sys/types.h>

struct symbol {
	char function[96]; /* "" when it is not known */
	char place[160];   /* file:line, or module+offset */
};

/* Looks up all of them at once, with addr2line if there is one. `pid` has them mapped. */
void look_up(pid_t pid, const uintptr_t *addresses, unsigned n, struct symbol *symbols);

#endif
