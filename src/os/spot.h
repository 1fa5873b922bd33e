/* os/spot.h - which file an address of the program lies in: for signal handlers, which may call next to nothing. */
#ifndef OS_SPOT_H
#define OS_SPOT_H

#include <stdint.h>

struct hd__spot {
	uintptr_t address; /* set by the caller */
	uintptr_t offset;  /* in the file, as addr2line takes it */
	char path[200];	   /* "": no file */
};

/* Fills in the rest, from what the kernel says is mapped. Takes no lock, allocates nothing. Any thread, any signal handler. */
void hd__os_find_spots(struct hd__spot *spots, unsigned n);

/* The return addresses on the stack of a signal handler's caller, from the code that the signal has interrupted on: that was at `pc`. A stack that is
 * corrupt ends the walk, and not the program. Returns how many there are, at most n. In a handler whose program is about to die: the actions of SIGSEGV and SIGBUS
 * are changed meanwhile. */
unsigned hd__os_walk_from(uintptr_t pc, uintptr_t *spots, unsigned n);

#endif
