/* memory.h - the memory of a program, as a tool reads it: of one that runs (live.c), or in a core file (core.c).
 *
 * Everything that is read was written by another program, which may be changing it, or have overwritten it: a reader of this memory checks each number
 * before it relies on it. */
#ifndef MEMORY_H
#define MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct memory;
struct registers;

/* Something to be read: `done` says whether all of it was. */
struct piece {
	uint64_t from;
	void *to;
	size_t size;
	bool done;
};

struct memory_ops {
	void (*read)(struct memory *m, struct piece *pieces, size_t n);
	/* The lowest address in [base, base + size), pages of a stack, that has been used; base + size: none has, or it is not known. */
	uint64_t (*lowest_used)(struct memory *m, uint64_t base, uint64_t size);
	/* What is known of a kernel thread, for people to read: " (name)", ", which has ended", "". */
	void (*thread)(struct memory *m, int64_t tid, char *text, size_t size);
	/* The registers of a kernel thread, in a core file. False: they are not there. NULL: they are in the kernel (stop.h). */
	bool (*registers)(struct memory *m, int64_t tid, struct registers *r);
	void (*close)(struct memory *m);
};

/* Where the beginning of an ELF file is mapped. */
struct image {
	uint64_t at;
	char path[256]; /* "" when it is not known */
};

struct memory {
	const struct memory_ops *ops;
	void *own;	/* the reader's */
	char name[400]; /* "process 1234 (server)", "core file core.1234, of server" */
	bool live;	/* it may change */
	bool truncated; /* a core file of which the end is missing */
	pid_t pid;	/* of the program; 0: not known */
	struct image *images;
	size_t image_count;
	/* Stretches in which the description can be found by its first words, if no image leads there. */
	struct stretch {
		uint64_t at, size;
	} * stretches;
	size_t stretch_count;
};

/* Whether all of it could be read. */
bool memory_read(struct memory *m, uint64_t from, void *to, size_t size);
void memory_close(struct memory *m);

/* Adds an image, or a stretch. */
void memory_add_image(struct memory *m, uint64_t at, const char *path);
void memory_add_stretch(struct memory *m, uint64_t at, uint64_t size);

/* These two fill `m` with what memory_close drops. They answer false when it cannot be read, and `why` says why: text for people. */
bool live_open(struct memory *m, pid_t pid, char *why, size_t why_size);
bool core_open(struct memory *m, const char *path, char *why, size_t why_size);

/* Why the system forbids to read the memory of a program, and what can be done: `scope` is Yama's ptrace_scope, -1 where there is no Yama; `same_user`: the
 * program runs for the caller. */
void live_explain(char *why, size_t why_size, const char *program, int scope, bool same_user);

/* The program that a word of the command line means, opened: a number is a process id, a file is a core file, else it is the name of a program that runs and
 * has heddle in it. Dies when there is none, or when there are several. */
void target_open(struct memory *m, const char *word);

/* Memory of the tool's own; dies when there is none. */
void *need(void *memory);

#endif
