/* traces.h - where processes of a program are: their backtraces, with functions, files and lines.
 *
 * Debug information is read by libdw, which is not ours, from files that may be anything. So that happens in a child process with limits (unwind.c), which
 * answers in records; if it dies, what it had told until then is kept. */
#ifndef TRACES_H
#define TRACES_H

#include <stdio.h>

#include "census.h"
#include "registers.h"

/* A process that was stopped, or is in a core file, while it ran. */
struct stopped {
	uint32_t row;
	struct registers registers;
	uint64_t top;	      /* of the memory that is its stack */
	unsigned char *bytes; /* a copy of it from the stack pointer up; NULL: there is none */
	size_t size;
};

/* What is to be told. */
struct wish_of_traces {
	const struct census *census;
	const uint32_t *rows;
	uint32_t count;
	const struct stopped *stopped;
	uint32_t stopped_count;
	const char *root; /* see module_open; or NULL */
};

/* A place in the program. */
struct place {
	uint64_t address; /* as in struct trace */
	uint32_t index;	  /* of places with one address: where functions were inlined, the innermost first */
	uint32_t line;	  /* 0: not known */
	bool inlined;
	char *function, *file; /* "": not known; one allocation */
};

struct trace {
	uint32_t first, count; /* in `places` of struct traces, of addresses: */
	bool cut;	       /* it goes on */
};

#define NOT_WALKED UINT32_MAX	   /* it has run meanwhile */
#define NOT_FOUND (UINT32_MAX - 1) /* its stack cannot be unwound; or there are too many different ones */

struct traces {
	uint64_t *address; /* of code: the place itself, or the last byte of a call */
	uint32_t address_count;
	struct trace *list;
	uint32_t count;
	uint32_t *of; /* the trace of each of the rows that were wished for, or one of the above */
	uint32_t of_count;
	struct place *places; /* by address and index */
	uint32_t place_count;
	char why[256]; /* not all of it could be told; "": all was */
	uint64_t unwound;
};

/* Tells them. Warnings go to stderr. */
void traces_take(struct traces *t, const struct wish_of_traces *wish);
void traces_drop(struct traces *t);

/* The places of an address; NULL: none is known. */
const struct place *traces_places(const struct traces *t, uint64_t address, uint32_t *n);

/* Addresses in files, that are no program's memory: each `from` counts from the beginning of what the file has in memory. */
struct in_file {
	const char *path;
	uint64_t from;
};
void traces_of_files(struct traces *t, const struct in_file *wanted, uint32_t n, const char *root);

/* ---- the child ---- */

enum record { RECORD_STACK = 1, RECORD_ROWS, RECORD_PLACE, RECORD_WARNING, RECORD_DONE };
struct record_head {
	uint32_t kind, size; /* bytes that follow */
};
#define RECORD_MAX_SIZE (1u << 20)

/* Takes in one record. False: it is none that makes sense. */
bool traces_take_record(struct traces *t, const struct record_head *head, const unsigned char *bytes);
/* After the last record. */
void traces_sort(struct traces *t);

/* Whether this command was built with libdw. */
extern const bool unwind_is_there;

/* What the child does: writes records. */
void unwind_program(FILE *to, const struct wish_of_traces *wish);
void unwind_files(FILE *to, const struct in_file *wanted, uint32_t n, const char *root);

#endif
