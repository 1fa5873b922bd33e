/* arch/carry.h - what other runtimes keep for each kernel thread, though it is a process's: it is carried along.
 *
 *   the C library     thread-local storage, of a process that has its own (arch/tls.h)
 *   the C++ runtime   the exceptions that are being handled; in that storage, if there is one
 *   ASan              where the stack begins and ends, and its fake stack
 *   TSan              a fiber: what the process has done, and what has happened before that
 *
 * Their functions are weak symbols. So a program that is compiled with -fsanitize=address or =thread, or is written in C++, works with the
 * one library that there is. All of it is exchanged before a switch, by the stack that leaves (hd__carry): so a program without such a
 * runtime pays nothing at its switches, where chores are looked for anyway. */
#ifndef ARCH_CARRY_H
#define ARCH_CARRY_H

#include <stdbool.h>
#include <stddef.h>

#include "arch/tls.h"

#ifndef __has_feature /* clang's way to say it; gcc defines macros */
#define __has_feature(x) 0
#endif

/* Whether heddle itself is compiled with a sanitizer, as for its own tests. */
#if defined(__SANITIZE_ADDRESS__) || __has_feature(address_sanitizer)
#define HD__ASAN 1
#endif
#if defined(__SANITIZE_THREAD__) || __has_feature(thread_sanitizer)
#define HD__TSAN 1
#endif

/* As the C++ ABI has it (Itanium C++ ABI: Exception Handling, 2.2.2). */
struct hd__exceptions {
	void *caught;
	unsigned uncaught;
};

/* What a stack carries. */
struct hd__carried {
	struct hd__exceptions exceptions;
	void *fake_stack;   /* ASan's; NULL: none yet */
	const void *bottom; /* NULL, of a kernel thread's own stack: ASan knows it */
	size_t size;
	void *fiber; /* TSan's */
	struct hd__tls *tls; /* its own thread-local storage; NULL: that of the kernel thread */
};

/* A kernel thread that changes stacks. */
struct hd__carrier {
	struct hd__carried own;	    /* of the thread's own stack */
	struct hd__carried gone;    /* of a stack that is being left for good */
	struct hd__carried *aboard; /* of the stack that the thread is on; NULL: not on any */
	bool alone; /* no other thread runs processes: what was done before a switch happens before what is done after it */
};

/* Constant once the program has begun. */
extern bool hd__carries __attribute__((visibility("hidden"))); /* one of these runtimes is in the program */
extern bool hd__sanitized
	__attribute__((visibility("hidden")));		     /* ASan or TSan is: they keep shadows of all that is reserved */
extern bool hd__tells __attribute__((visibility("hidden"))); /* TSan is, and sees nothing of heddle: it is told */

/* How many kernel threads of the program are a sanitizer's. */
int hd__sanitizer_threads(void);

/* On the calling thread's own stack, before it first leaves it. */
void hd__carrier_init(struct hd__carrier *c, bool alone);

/* On c's thread: what a new process on the stack of `size` bytes at `bottom` carries. */
void hd__carried_init(struct hd__carrier *c, struct hd__carried *carried, void *bottom, size_t size);

/* Before the calling thread goes to the stack that carries `next`. Between this and the switch nothing is called that is not heddle's. */
void hd__carry(struct hd__carrier *c, struct hd__carried *next);

/* Right before the stack is changed. If TSan sees heddle, it must see no function of heddle's begin on one fiber and end on another: so the
 * fiber is changed here, and not by hd__carry. */
#if HD__TSAN
void hd__carry_fiber(struct hd__carrier *c);
#else
static inline void hd__carry_fiber(struct hd__carrier *c)
{
	(void)c;
}
#endif

/* The process on the calling stack is about to end: drops the exceptions that it handles. Their destructors may wait. */
void hd__exceptions_drop(void);

/* The calling stack is about to be left for good, by hd__carry; what it carries may be another stack's memory before that. */
void hd__carry_for_the_last_time(struct hd__carrier *c);

/* The process whose stack this is has ended without a switch from it, or its stack is thrown away. */
void hd__carried_fini(struct hd__carried *carried);

/* From one stack to another of the same kernel thread; `last`: there is no way back. hd__carry, and for simulated threads. */
void hd__carried_exchange(struct hd__carried *from, struct hd__carried *to, bool last, bool alone);

/* What TSan is told, since it sees none of heddle's atomic operations: what the caller, or in its place the process that runs on its thread,
 * has done so far happens before what any other does after it has learned of the same thing. `what` is an address, and nothing is there any
 * more, perhaps. */
void hd__publish_slowly(const void *what);
void hd__learn_slowly(const void *what);

static inline void hd__publish(const void *what)
{
	if (__builtin_expect(hd__tells, 0))
		hd__publish_slowly(what);
}

static inline void hd__learn(const void *what)
{
	if (__builtin_expect(hd__tells, 0))
		hd__learn_slowly(what);
}

/* A context is about to be saved; a thread has seen that it is. TSan, if it sees heddle, does not see the store by which the switch says so. */
static inline void hd__context_is_left(const void *context)
{
#if HD__TSAN
	hd__publish_slowly(context);
#else
	(void)context;
#endif
}

static inline void hd__context_is_seen(const void *context)
{
#if HD__TSAN
	hd__learn_slowly(context);
#else
	(void)context;
#endif
}

#endif
