/* arch/aarch64/context.h - contexts on 64-bit ARM: make one, switch to it.
 *
 * As on x86-64 (see there for why): a stack pointer, a frame pointer and where to go on; the compiler saves what else is in
 * use. */
#ifndef ARCH_CONTEXT_H
#define ARCH_CONTEXT_H

#include <stddef.h>
#include <stdint.h>

#include "base/point.h"

struct hd__context {
	void *sp, *bp, *ip;
};

/* The registers that a call keeps, as DWARF numbers them; but for v8 to v15. */
#define HD__KEPT_REGISTERS                                                                                                     \
	{                                                                                                                      \
		19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29                                                                     \
	}

/* Saves the caller in `from` and goes on with `to`; returns when `from` is switched to. from->ip is stored last, on the next stack, and publishes
 * what the caller has stored: once it is visible, another thread may go on on the caller's stack, and a signal that comes now is not handled there. */
__attribute__((always_inline)) static inline void hd__arch_switch(struct hd__context *from, const struct hd__context *to)
{
	register struct hd__context *f __asm__("x0") = from;
	register const struct hd__context *t __asm__("x1") = to;

	__asm__ volatile("adr x2, 1f\n\t"
			 "mov x3, sp\n\t"
			 "stp x3, x29, [x0]\n\t"
			 "add x0, x0, #16\n\t"
			 "ldp x3, x29, [x1]\n\t"
			 "ldr x4, [x1, #16]\n\t"
			 "mov sp, x3\n\t"
			 "stlr x2, [x0]\n\t"
			 "br x4\n"
			 "1:\n\t"
			 "hint #36" /* bti j */
			 : "+r"(f), "+r"(t)
			 :
			 : "x2", "x3", "x4", "x5", "x6", "x7", "x8", "x9", "x10", "x11", "x12", "x13", "x14", "x15", "x16",
			   "x17", "x18", "x19", "x20", "x21", "x22", "x23", "x24", "x25", "x26", "x27", "x28", "x30", "v0",
			   "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9", "v10", "v11", "v12", "v13", "v14", "v15",
			   "v16", "v17", "v18", "v19", "v20", "v21", "v22", "v23", "v24", "v25", "v26", "v27", "v28", "v29",
			   "v30", "v31", "cc", "memory");
}

/* Goes on with `to` and forgets the caller. */
__attribute__((always_inline, noreturn)) static inline void hd__arch_jump(const struct hd__context *to)
{
	register const struct hd__context *t __asm__("x1") = to;

	__asm__ volatile("ldp x3, x29, [x1]\n\t"
			 "ldr x2, [x1, #16]\n\t"
			 "mov sp, x3\n\t"
			 "br x2"
			 :
			 : "r"(t)
			 : "x2", "x3", "memory");
	__builtin_unreachable();
}

/* Begins the function whose address is on the stack above its argument; the end of every backtrace. */
void hd__arch_begin(void);

/* A context that will call entry(arg), which must not return, on a stack that ends at `top`. */
static inline void hd__arch_make(struct hd__context *c, void *top, void (*entry)(void *), void *arg)
{
	void **sp = (void **)((uintptr_t)top & ~(uintptr_t)15);

	*--sp = (void *)(uintptr_t)entry;
	*--sp = arg;
	*c = (struct hd__context){ sp, NULL, (void *)(uintptr_t)hd__arch_begin };
}

/* Calls the function below the return address of a context that hd__arch_make_call has made. */
void hd__arch_call(void);

/* Makes of a saved context one that will call fn(arg), which must not return, as if the code that was left had called it: so that a
 * backtrace by fn is that of the context. What is below its stack pointer is overwritten; that must be a multiple of 16. */
static inline void hd__arch_make_call(struct hd__context *c, void (*fn)(void *), void *arg)
{
	void **sp = c->sp;

	*--sp = c->ip;
	*--sp = NULL;
	*--sp = (void *)(uintptr_t)fn;
	*--sp = arg;
	c->sp = sp;
	c->ip = (void *)(uintptr_t)hd__arch_call;
}

/* What was stored before a locked operation is seen by other CPUs before what is loaded after this; a locked operation is between. */
static inline void hd__arch_fence_after_lock(void)
{
	__asm__ volatile("dmb ish" ::: "memory"); /* a lock only orders what comes after it */
}

static inline void hd__arch_pause(void)
{
	hd__pause_passes();
	__asm__ volatile("yield");
}

#endif
