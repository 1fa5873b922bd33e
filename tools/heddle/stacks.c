/* stacks.c - the stacks of many processes, equal ones folded.
 *
 * Unwinding is slow, and a million processes are in few places. What the unwinder finds follows from the registers and from the words that it reads: the
 * same words at the same places, the same answer. So the words that it asked for are kept, as a tree: each node has the place of the next word, counted from the
 * stack pointer, and each value of that word leads to another node; a leaf is a stack. The next process goes down the tree, and only where it finds no way the
 * unwinder is asked, and the tree grows.
 *
 * Of a word only that counts which can decide where the unwinder looks next: whether it is zero; if it points into the stack, where from the stack pointer; if it
 * points into code, its value. All else is what callers had in registers, and is one class: where a frame lies is computed from the stack pointer and from
 * pointers into the stack. A stack with a place that is in no module, as of code that was made while the program ran, is not kept.
 *
 * Owns:       struct stacks, struct window.
 * Limits:     so many different stacks, so many nodes: then all others are unwound one by one, or are not told apart. */
#include "stacks.h"

#include <stdlib.h>
#include <string.h>

#define NODES_MAX (1u << 20)
#define WORDS_MAX 4096
#define STEP 4096 /* bytes by which a window grows, at first */
#define WINDOW_MAX ((size_t)1 << 20)

enum kind { ZERO, IN_STACK, IN_CODE, OTHER };

struct node {
	uint64_t offset; /* of the word that decides */
	uint32_t leaf;	 /* the stack; NO_STACK: it is none */
};

struct edge {
	uint64_t value;
	uint32_t from, to; /* nodes; to == 0: unused */
	uint32_t kind;
};

/* ---- windows ---- */

void window_set(struct window *w, struct memory *m, uint64_t sp, uint64_t top, const void *bytes, size_t size)
{
	if (size > w->room) {
		w->bytes = need(realloc(w->bytes, size));
		w->room = size;
	}
	if (size > 0)
		memcpy(w->bytes, bytes, size);
	w->m = m;
	w->sp = sp;
	w->top = top > sp ? top : sp;
	w->have = size;
	w->fixed = false;
	w->count = 0;
}

void window_fini(struct window *w)
{
	free(w->bytes);
	free(w->words);
	*w = (struct window){ 0 };
}

/* Reads up to `end`, counted from the stack pointer. */
static void grow(struct window *w, uint64_t end)
{
	uint64_t all = w->top - w->sp, size = w->have < STEP / 2 ? STEP : 2 * w->have;

	if (size < end)
		size = end;
	if (size > all)
		size = all;
	if (size > WINDOW_MAX)
		size = WINDOW_MAX;
	if (w->fixed || size <= w->have)
		return;
	if (size > w->room) {
		w->bytes = need(realloc(w->bytes, (size_t)size));
		w->room = (size_t)size;
	}
	if (memory_read(w->m, w->sp + w->have, w->bytes + w->have, (size_t)size - w->have))
		w->have = (size_t)size;
	else
		w->fixed = true; /* the rest is read word by word, as far as it is there */
}

bool window_read(struct window *w, uint64_t at, uint64_t *value)
{
	uint64_t offset = at - w->sp;
	bool done;

	if (offset < w->top - w->sp && offset % 8 == 0 && offset + 8 > w->have)
		grow(w, offset + 8);
	done = offset <= w->have && w->have - offset >= 8;
	if (done)
		memcpy(value, w->bytes + offset, sizeof *value);
	else
		done = memory_read(w->m, at, value, sizeof *value);
	if (w->records && done && w->count < WORDS_MAX) {
		if (w->words == NULL)
			w->words = need(malloc(WORDS_MAX * sizeof *w->words));
		w->words[w->count++] = (struct word){ at, *value };
	} else if (w->records) {
		w->lost = true;
	}
	return done;
}

/* ---- the tree ---- */

static enum kind kind_of_word(const struct stacks *s, const struct window *w, uint64_t *value)
{
	if (*value == 0)
		return ZERO;
	if (*value - w->sp < w->top - w->sp) {
		*value -= w->sp;
		return IN_STACK;
	}
	if (modules_have_code(s->modules, *value))
		return IN_CODE;
	*value = 0;
	return OTHER;
}

static uint64_t mix(uint64_t x)
{
	x *= UINT64_C(0x9E3779B97F4A7C15);
	return x ^ x >> 29;
}

/* The edge from a node by a value, or the place for it. */
static struct edge *find_edge(const struct stacks *s, uint32_t from, enum kind kind, uint64_t value)
{
	uint64_t i = mix(mix(value + kind) + from) >> 3;

	for (;; i++) {
		struct edge *e = &s->edges[i & (s->edge_room - 1)];
		if (e->to == 0 || (e->from == from && e->value == value && e->kind == (uint32_t)kind))
			return e;
	}
}

static void widen(struct stacks *s)
{
	struct edge *old = s->edges;
	uint32_t n = s->edge_room;

	s->edge_room = n == 0 ? 1024 : 2 * n;
	s->edges = need(calloc(s->edge_room, sizeof *s->edges));
	for (uint32_t i = 0; i < n; i++)
		if (old[i].to != 0)
			*find_edge(s, old[i].from, (enum kind)old[i].kind, old[i].value) = old[i];
	free(old);
}

static uint32_t add_node(struct stacks *s)
{
	if ((s->node_count & (s->node_count + 1)) == 0)
		s->nodes = need(realloc(s->nodes, (2 * (size_t)s->node_count + 2) * sizeof *s->nodes));
	s->nodes[s->node_count] = (struct node){ UINT64_MAX, NO_STACK };
	return s->node_count++;
}

/* Where a value leads; 0: nowhere yet. */
static uint32_t follow(const struct stacks *s, uint32_t from, enum kind kind, uint64_t value)
{
	return find_edge(s, from, kind, value)->to;
}

static uint32_t lead(struct stacks *s, uint32_t from, enum kind kind, uint64_t value)
{
	struct edge *e = find_edge(s, from, kind, value);

	if (e->to != 0)
		return e->to;
	if (2 * ++s->edge_count > s->edge_room) {
		widen(s);
		e = find_edge(s, from, kind, value);
	}
	uint32_t to = add_node(s);
	*e = (struct edge){ value, from, to, (uint32_t)kind };
	return to;
}

/* The words that come before any in memory: where to go on, and the frame pointer. */
#define BEGINNINGS 2
static uint64_t beginning(const struct registers *r, int i)
{
	return i == 0 ? r->pc : r->value[registers_frame_pointer];
}

static enum kind kind_of_beginning(const struct stacks *s, const struct window *w, int i, uint64_t *value)
{
	return i == 0 ? IN_CODE : kind_of_word(s, w, value);
}

/* Goes down the tree as far as it leads. NO_STACK: there is no leaf. */
static uint32_t look_up_stack(struct stacks *s, const struct registers *r, struct window *w)
{
	uint32_t node = 1;

	for (int i = 0; i < BEGINNINGS; i++) {
		uint64_t value = beginning(r, i);
		enum kind kind = kind_of_beginning(s, w, i, &value);
		if ((node = follow(s, node, kind, value)) == 0)
			return NO_STACK;
	}
	while (s->nodes[node].leaf == NO_STACK) {
		uint64_t value;
		if (s->nodes[node].offset == UINT64_MAX || !window_read(w, w->sp + s->nodes[node].offset, &value))
			return NO_STACK;
		enum kind kind = kind_of_word(s, w, &value);
		if ((node = follow(s, node, kind, value)) == 0)
			return NO_STACK;
	}
	return s->nodes[node].leaf;
}

/* Adds a way down to a leaf, along what the unwinder has asked for. */
static void learn(struct stacks *s, const struct registers *r, const struct window *w, uint32_t leaf)
{
	uint32_t node = 1;

	if (w->lost || s->node_count + w->count + BEGINNINGS > NODES_MAX || leaf == NO_STACK)
		return;
	for (size_t i = 0; i < w->count; i++)
		if (w->words[i].at - w->sp >= w->top - w->sp)
			return; /* not in the stack: it may differ */
	for (uint32_t i = 0; i < s->list[leaf].count; i++)
		if (!modules_have_code(s->modules, s->list[leaf].pc[i]))
			return;
	for (int i = 0; i < BEGINNINGS; i++) {
		uint64_t value = beginning(r, i);
		enum kind kind = kind_of_beginning(s, w, i, &value);
		node = lead(s, node, kind, value);
	}
	for (size_t i = 0; i < w->count; i++) {
		uint64_t value = w->words[i].value, offset = w->words[i].at - w->sp;
		if (s->nodes[node].leaf != NO_STACK || (s->nodes[node].offset != UINT64_MAX && s->nodes[node].offset != offset))
			return; /* what it asks for does not follow from what it has read */
		s->nodes[node].offset = offset;
		enum kind kind = kind_of_word(s, w, &value);
		node = lead(s, node, kind, value);
	}
	if (s->nodes[node].offset == UINT64_MAX)
		s->nodes[node].leaf = leaf;
}

/* ---- stacks ---- */

static uint64_t hash_of(const uint64_t *pc, size_t n)
{
	uint64_t hash = n;

	for (size_t i = 0; i < n; i++)
		hash = mix(hash + pc[i]);
	return hash >> 5;
}

static uint32_t *find_place(const struct stacks *s, const struct frames *f)
{
	for (uint64_t i = hash_of(f->pc, f->count);; i++) {
		uint32_t *place = &s->by_places[i & (s->places_room - 1)];
		const struct stack *k = *place != NO_STACK ? &s->list[*place] : NULL;
		if (k == NULL ||
		    (k->count == f->count && k->cut == f->cut && memcmp(k->pc, f->pc, f->count * sizeof *f->pc) == 0))
			return place;
	}
}

static void widen_places(struct stacks *s)
{
	free(s->by_places);
	s->places_room = s->places_room == 0 ? 1024 : 2 * s->places_room;
	s->by_places = need(malloc(s->places_room * sizeof *s->by_places));
	memset(s->by_places, 0xff, s->places_room * sizeof *s->by_places);
	for (uint32_t k = 0; k < s->count; k++) {
		uint64_t i = hash_of(s->list[k].pc, s->list[k].count);
		while (s->by_places[i & (s->places_room - 1)] != NO_STACK)
			i++;
		s->by_places[i & (s->places_room - 1)] = k;
	}
}

static uint32_t stack_of(struct stacks *s, const struct frames *f)
{
	uint32_t *place = find_place(s, f);

	if (f->count == 0 || (*place == NO_STACK && s->count == STACKS_MAX))
		return NO_STACK;
	if (*place != NO_STACK)
		return *place;
	if ((s->count & (s->count + 1)) == 0)
		s->list = need(realloc(s->list, (2 * (size_t)s->count + 2) * sizeof *s->list));
	struct stack *k = &s->list[s->count];
	k->count = (uint32_t)f->count;
	k->cut = f->cut;
	k->pc = need(malloc(f->count * sizeof *k->pc));
	k->exact = need(malloc(f->count * sizeof *k->exact));
	memcpy(k->pc, f->pc, f->count * sizeof *k->pc);
	memcpy(k->exact, f->exact, f->count * sizeof *k->exact);
	*place = s->count++;
	if (2 * s->count > s->places_room)
		widen_places(s);
	return s->count - 1;
}

void stacks_init(struct stacks *s, const struct modules *modules, unwind_fn unwind, void *unwinder)
{
	*s = (struct stacks){ .modules = modules, .unwind = unwind, .unwinder = unwinder };
	s->found = need(calloc(1, sizeof *s->found));
	widen_places(s);
	widen(s);
	add_node(s); /* 0 is none */
	add_node(s); /* 1 is the root */
}

void stacks_drop(struct stacks *s)
{
	for (uint32_t i = 0; i < s->count; i++) {
		free(s->list[i].pc);
		free(s->list[i].exact);
	}
	free(s->list);
	free(s->nodes);
	free(s->edges);
	free(s->by_places);
	free(s->found);
	*s = (struct stacks){ 0 };
}

uint32_t stacks_add(struct stacks *s, const struct registers *r, struct window *w, bool parked)
{
	uint32_t known = parked ? look_up_stack(s, r, w) : NO_STACK; /* one that runs may need any register */

	s->walked++;
	if (known != NO_STACK)
		return known;
	s->unwound++;
	s->found->count = 0;
	s->found->cut = false;
	w->records = true;
	w->lost = false;
	w->count = 0;
	s->unwind(s->unwinder, r, w, s->found);
	w->records = false;
	uint32_t stack = stack_of(s, s->found);
	if (parked)
		learn(s, r, w, stack);
	return stack;
}
