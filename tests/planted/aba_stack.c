/* aba_stack.c - a lock-free stack of numbered nodes.
 *
 * Wrong:      pop's compare-and-swap sees the same node on top and takes the stack for the same.
 * Schedule:   A has read top 1 and its next 2; B pops 1 and 2 and pushes 1; A's swap puts 2, which B has, on top; A pops 2.
 * Shows:      assert: a node is in two hands.
 * Fix:        a stamp beside the top that every change increments. */
#include "planted.h"

#ifdef FIXED
#define STAMPED(old) ((((old) >> 32) + 1) << 32)
#else
#define STAMPED(old) ((old)&0)
#endif

static _Atomic uint64_t top; /* stamp << 32 | node; node 0 is none */
static _Atomic uint32_t next[4];
static _Atomic bool held[4];

static void push(uint32_t node)
{
	uint64_t old = top;

	held[node] = false;
	do
		next[node] = (uint32_t)old;
	while (!atomic_compare_exchange_strong(&top, &old, STAMPED(old) | node));
}

static uint32_t pop(void)
{
	uint64_t old = top, new;

	do {
		if ((uint32_t)old == 0)
			return 0;
		new = STAMPED(old) | next[(uint32_t)old];
		hd_checkpoint(); /* it has read what it will write */
	} while (!atomic_compare_exchange_strong(&top, &old, new));
	MUST(!atomic_exchange(&held[(uint32_t)old], true));
	return (uint32_t)old;
}

/* The second one pushes its first node back. */
static void *pop_two(void *arg)
{
	uint32_t node = pop();

	pop();
	if (number_of(arg) == 1 && node != 0)
		push(node);
	return arg;
}

PLANTED_MAIN
{
	for (uint32_t node = 3; node > 0; node--)
		push(node);
	TOGETHER(pop_two, pop_two);
}
