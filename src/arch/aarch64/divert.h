/* arch/aarch64/divert.h - from a signal handler, which runs on a stack of its own: has the interrupted code call a function, on its own stack.
 *
 * As on x86-64: what the kernel has saved lies in one piece, siginfo, ucontext and a frame record, and perhaps more vectors behind that. It is copied to the
 * interrupted stack, and the function begins there as a handler would have begun. There is no red zone. */
#ifndef ARCH_DIVERT_H
#define ARCH_DIVERT_H

#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <ucontext.h>

struct hd__diversion {
	char *from;  /* what the kernel saved */
	size_t size;
	uintptr_t to; /* where it will be */
	struct extra_context *extra; /* tells where more vectors are; or NULL */
};

static inline uintptr_t hd__arch_pc(const ucontext_t *uc)
{
	return (uintptr_t)uc->uc_mcontext.pc;
}

static inline uintptr_t hd__arch_sp(const ucontext_t *uc)
{
	return (uintptr_t)uc->uc_mcontext.sp;
}

static inline uintptr_t hd__arch_caller(const ucontext_t *uc, int (*peek)(void *to, const void *from, size_t n))
{
	(void)peek;
	return (uintptr_t)uc->uc_mcontext.regs[30];
}

static inline int hd__arch_divert_look(const ucontext_t *uc, struct hd__diversion *d)
{
	struct _aarch64_ctx *c = (struct _aarch64_ctx *)uc->uc_mcontext.__reserved;
	char *end = (char *)c + sizeof uc->uc_mcontext.__reserved;

	d->from = (char *)uc - sizeof(siginfo_t);
	d->size = (size_t)((char *)(uc + 1) - d->from) + 2 * sizeof(void *);
	d->extra = NULL;
	while ((char *)(c + 1) <= end && c->magic != 0 && c->size >= sizeof *c) {
		if (c->magic == EXTRA_MAGIC)
			d->extra = (struct extra_context *)c;
		c = (struct _aarch64_ctx *)((char *)c + c->size);
	}
	if (d->extra != NULL) {
		char *last = (char *)(uintptr_t)d->extra->datap + d->extra->size;
		if (last < d->from)
			return 0;
		if ((size_t)(last - d->from) > d->size)
			d->size = (size_t)(last - d->from);
	}
	d->to = (hd__arch_sp(uc) - d->size) & ~(uintptr_t)15;
	return d->size < 1 << 17;
}

static inline void hd__arch_divert(ucontext_t *uc, const struct hd__diversion *d, void (*fn)(int, siginfo_t *, void *), int signal,
				   uintptr_t back)
{
	memcpy((void *)d->to, d->from, d->size);
	ptrdiff_t away = (char *)d->to - d->from;
	ucontext_t *copy = (ucontext_t *)((char *)uc + away);
	if (d->extra != NULL)
		((struct extra_context *)((char *)d->extra + away))->datap += (uint64_t)away;

	mcontext_t *m = &uc->uc_mcontext;
	m->regs[0] = (unsigned long long)signal;
	m->regs[1] = 0;
	m->regs[2] = (uintptr_t)copy;
	m->regs[29] = (uintptr_t)(copy + 1); /* the frame record */
	m->regs[30] = back;
	m->sp = d->to;
	m->pc = (uintptr_t)fn;
	m->pstate &= ~(unsigned long long)0xc00; /* it is not the target of a branch */
}

static inline void hd__arch_diverted(const ucontext_t *uc)
{
	(void)uc; /* the modes of floating point have not changed */
}

#endif
