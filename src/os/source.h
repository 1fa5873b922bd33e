/* os/source.h - what is at an address of the program: its function, its file and line. */
#ifndef OS_SOURCE_H
#define OS_SOURCE_H

#include <stdint.h>

#define HD__SOURCE_PATH 192

struct hd__source {
	uintptr_t address; /* set by the caller; what is after a call, as in a backtrace */
	uintptr_t offset;  /* in its module: of the call, its last byte */
	unsigned line;	   /* 0: there is no debug information for it */
	char function[64]; /* "": unknown */
	char file[64];	   /* without its directory, which is */
	char directory[192];
	char module[64];	    /* likewise: the program or a shared library; "": unknown */
	char path[HD__SOURCE_PATH]; /* of the module, with its directory */
};

/* Fills in what the symbols and the debug information of the program and of its libraries say, in the files that they were loaded from.
 * Reads files and allocates nothing. Any thread, outside signal handlers. */
void hd__os_find_sources(struct hd__source *places, int n);

#endif
