/* arch/carry.h - what other runtimes keep for each kernel thread, though it is a process's: it is carried along.
 *
 * The C++ runtime keeps the exceptions that are being handled in thread-local variables. A process that gives its worker away inside a
 * `catch` must find its own there when it goes on, on whatever kernel thread that is. All of it is exchanged before the switch, by the
 * stack that leaves (hd__carry): so a program without such a runtime pays nothing at its switches, where chores are looked for anyway. */
#ifndef ARCH_CARRY_H
#define ARCH_CARRY_H

#include <stdbool.h>

/* As the C++ ABI has it (Itanium C++ ABI, 2.2.2). */
struct hd__exceptions {
	void *caught;
	unsigned uncaught;
};

/* What a stack carries. Zeroed: nothing yet. */
struct hd__carried {
	struct hd__exceptions exceptions;
};

/* A kernel thread that changes stacks. */
struct hd__carrier {
	struct hd__carried own;	    /* of the thread's own stack */
	struct hd__carried gone;    /* of a stack that is being left for good */
	struct hd__carried *aboard; /* of the stack that the thread is on */
};

/* Whether one of these runtimes is in the program; constant once the program has begun. */
extern bool hd__carries __attribute__((visibility("hidden")));

/* On the calling thread's own stack, before it first leaves it. */
void hd__carrier_init(struct hd__carrier *c);

/* Before the calling thread goes to the stack that carries `next`. Between this and the switch nothing is called that is not heddle's. */
void hd__carry(struct hd__carrier *c, struct hd__carried *next);

/* The process on the calling stack is about to end: drops what it carries. Destructors of exceptions are called, and may wait. */
void hd__carried_drop(void);

/* The calling stack is about to be left for good, and the memory in which it has what it carries may be another stack's before it is. */
void hd__carry_for_the_last_time(struct hd__carrier *c);

#endif
