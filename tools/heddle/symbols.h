/* symbols.h - what is at an address of a program. */
#ifndef SYMBOLS_H
#define SYMBOLS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define PLACES_MAX 3

struct symbol {
	char function[96];	    /* "" when it is not known */
	bool in_heddle;		    /* in libheddle.so */
	unsigned places;	    /* more than one where functions were inlined: the innermost first */
	char place[PLACES_MAX][96]; /* file:line, or module+offset */
};

/* Looks up all of them at once, with addr2line if there is one. `pid` has them mapped. */
void look_up(pid_t pid, const uintptr_t *addresses, unsigned n, struct symbol *symbols);

#endif
