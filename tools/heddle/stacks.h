/* stacks.h - the stacks of many processes, equal ones folded: each is unwound, in effect, but the unwinder is asked only for those that are new. */
#ifndef STACKS_H
#define STACKS_H

#include "modules.h"
#include "registers.h"

#define FRAMES_MAX 256
#define STACKS_MAX 100000 /* different ones */

/* The memory of one stack, from a stack pointer up, as far as it was read; it grows as it is asked for. */
struct window {
	struct memory *m;
	uint64_t sp, top;     /* nothing at `top` and above is its own */
	unsigned char *bytes; /* from sp on */
	size_t have, room;
	bool fixed; /* no more of it can be read at once */
	/* What was asked for since window_record. */
	struct word {
		uint64_t at, value;
	} * words;
	size_t count;
	bool records, lost; /* lost: not all of it could be kept */
};

/* Another stack: `size` bytes of it, from the stack pointer up, have been read. A window is all zeroes before the first. */
void window_set(struct window *w, struct memory *m, uint64_t sp, uint64_t top, const void *bytes, size_t size);
void window_fini(struct window *w);

/* A word of the stack, or of any other memory. */
bool window_read(struct window *w, uint64_t at, uint64_t *value);

/* What the unwinder finds: places, the innermost first. */
struct frames {
	uint64_t pc[FRAMES_MAX];
	bool exact[FRAMES_MAX]; /* the place itself; else it is behind a call */
	size_t count;
	bool cut; /* there are more */
};

typedef void (*unwind_fn)(void *unwinder, const struct registers *r, struct window *w, struct frames *found);

struct stack {
	uint64_t *pc;
	bool *exact;
	uint32_t count;
	bool cut;
};

struct stacks {
	const struct modules *modules;
	unwind_fn unwind;
	void *unwinder;
	struct stack *list;
	uint32_t count;
	uint64_t walked, unwound; /* stacks; those for which the unwinder was asked */
	struct node *nodes;
	uint32_t node_count;
	struct edge *edges;
	uint32_t edge_count, edge_room;
	uint32_t *by_places, places_room;
	struct frames *found;
};

#define NO_STACK UINT32_MAX /* nothing could be unwound, or there are too many different ones */

void stacks_init(struct stacks *s, const struct modules *modules, unwind_fn unwind, void *unwinder);
void stacks_drop(struct stacks *s);

/* The number of the stack with these registers, in s->list. `parked`: it is a process's that does not run. */
uint32_t stacks_add(struct stacks *s, const struct registers *r, struct window *w, bool parked);

#endif
