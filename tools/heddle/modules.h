/* modules.h - the program and the libraries that are mapped in a program's memory, and files with what is in them. */
#ifndef MODULES_H
#define MODULES_H

#include "memory.h"

#define TEXTS_MAX 8
#define BUILD_ID_MAX 32

struct module {
	uint64_t at, end; /* where it is mapped */
	uint64_t bias;	  /* an address less this is that of its file */
	char path[256];	  /* "" when it is not known; "[vdso]" is the kernel's own */
	unsigned texts;	  /* where it has code */
	struct {
		uint64_t from, to;
	} text[TEXTS_MAX];
	unsigned char build_id[BUILD_ID_MAX];
	size_t build_id_size; /* 0: it has none */
};

struct modules {
	struct module *list;
	size_t count;
};

/* Finds them all, by their ELF headers. */
void modules_find(struct modules *all, struct memory *m);
void modules_drop(struct modules *all);

/* The module that an address is in; NULL: none. */
const struct module *modules_at(const struct modules *all, uint64_t address);

/* Whether an address is in the code of a module. */
bool modules_have_code(const struct modules *all, uint64_t address);

/* A descriptor of the file of a module; -1: there is none. If its file cannot be had, or is not what the program has loaded, it is made of the program's memory:
 * then `why` says so, else it is "". `root`: where the files of the program are, in place of "/"; or NULL. */
int module_open(const struct module *module, struct memory *m, const char *root, char *why, size_t why_size);

#endif
