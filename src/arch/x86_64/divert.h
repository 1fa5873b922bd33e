/* arch/x86_64/divert.h - from a signal handler, which runs on a stack of its own: has the interrupted code call a function, on its own stack.
 *
 * What the kernel has saved of that code, all registers and vectors, lies around the handler's ucontext, in one piece: the return address of the handler,
 * the ucontext, the siginfo, then the vectors. The piece is copied to the interrupted stack, below its red zone, and the context is changed so that the
 * function begins there as a handler would have begun: with that return address, which leads to the kernel, and the kernel puts all of it back. So no
 * register is saved by hand, whatever registers this processor has; and debuggers, which know such frames, walk through it. */
#ifndef ARCH_DIVERT_H
#define ARCH_DIVERT_H

#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <ucontext.h>

#define HD__RED_ZONE 128
#define HD__DIRECTION 0x400  /* flags that a function may not find set: string instructions run downwards, */
#define HD__TRAP 0x100	     /* single steps, */
#define HD__RESUME 0x10000   /* a breakpoint is passed over, */
#define HD__ALIGNED 0x40000  /* unaligned accesses fault */

struct hd__diversion {
	char *from;  /* what the kernel saved */
	size_t size;
	uintptr_t to; /* where it will be */
};

static inline uintptr_t hd__arch_pc(const ucontext_t *uc)
{
	return (uintptr_t)uc->uc_mcontext.gregs[REG_RIP];
}

static inline uintptr_t hd__arch_sp(const ucontext_t *uc)
{
	return (uintptr_t)uc->uc_mcontext.gregs[REG_RSP];
}

/* Where the code was called from that a program counter leads to which leads nowhere: the call has stored it last. 0: it cannot be read. */
static inline uintptr_t hd__arch_caller(const ucontext_t *uc, int (*peek)(void *to, const void *from, size_t n))
{
	uintptr_t caller;

	return peek(&caller, (const void *)hd__arch_sp(uc), sizeof caller) ? caller : 0;
}

/* Looks what there is to be copied. False: it is not as expected. */
static inline int hd__arch_divert_look(const ucontext_t *uc, struct hd__diversion *d)
{
	const char *vectors = (const char *)uc->uc_mcontext.fpregs;
	struct _fpx_sw_bytes sw;

	d->from = (char *)uc - sizeof(void *);
	if (vectors == NULL || vectors < d->from || (uintptr_t)vectors % 64 != 0)
		return 0;
	memcpy(&sw, vectors + sizeof(struct _fpstate) - sizeof sw, sizeof sw);
	d->size = (size_t)(vectors - d->from) +
		  (sw.magic1 == FP_XSTATE_MAGIC1 ? sw.extended_size : sizeof(struct _fpstate));
	uintptr_t below = hd__arch_sp(uc) - HD__RED_ZONE - d->size;
	d->to = below - (below - (uintptr_t)d->from) % 64; /* aligned as it was */
	return d->size < 1 << 16;
}

/* Does it. `back` is where the handler returns to; here that is in the piece. */
static inline void hd__arch_divert(ucontext_t *uc, const struct hd__diversion *d, void (*fn)(int, siginfo_t *, void *), int signal,
				   uintptr_t back)
{
	(void)back;
	memcpy((void *)d->to, d->from, d->size);
	ptrdiff_t away = (char *)d->to - d->from;
	ucontext_t *copy = (ucontext_t *)((char *)uc + away);
	copy->uc_mcontext.fpregs = (fpregset_t)((char *)uc->uc_mcontext.fpregs + away);

	greg_t *r = uc->uc_mcontext.gregs;
	r[REG_RIP] = (greg_t)(uintptr_t)fn;
	r[REG_RSP] = (greg_t)d->to;
	r[REG_RDI] = signal;
	r[REG_RSI] = 0;
	r[REG_RDX] = (greg_t)(uintptr_t)copy;
	r[REG_EFL] &= ~(greg_t)(HD__DIRECTION | HD__TRAP | HD__RESUME | HD__ALIGNED);
	uc->uc_mcontext.fpregs = NULL; /* the function begins with no vector in use, as a handler does */
}

/* At the beginning of the function: the modes of floating point are those of the kernel thread again. */
static inline void hd__arch_diverted(const ucontext_t *uc)
{
	const struct _libc_fpstate *vectors = uc->uc_mcontext.fpregs;

	__asm__ volatile("ldmxcsr %0\n\tfldcw %1" : : "m"(vectors->mxcsr), "m"(vectors->cwd));
}

#endif
