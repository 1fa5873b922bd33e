/* arch/tls.c - which thread-local storage a kernel thread uses.
 *
 * Owns:      the thread pointer of heddle's threads, and the two variables by which a storage knows the thread that uses it: hd__own, its worker, and
 *            hd__tls_away. They are stored before the thread pointer is: a signal handler that comes in between finds the same worker in either storage.
 * Callers:   the switch (carry.c), and the thread of a pool that calls a function in a process's place. */
#include "arch/tls.h"

#include "own.h"
#include "tp.h"

_Thread_local ptrdiff_t hd__tls_away;

static bool is_ours;

__attribute__((constructor(101))) static void ask_processor(void)
{
	is_ours = hd__arch_tp_is_ours();
}

/* Not inlined: no caller has the address of a thread-local variable in a register. */
__attribute__((noinline)) void hd__tls_use(const struct hd__tls *tls)
{
	uintptr_t here = hd__arch_tp(), thread = here + (uintptr_t)hd__tls_away, there = tls != NULL ? tls->tp : thread;

	if (there == here)
		return;
	*(void **)((uintptr_t)&hd__own + (there - here)) = hd__arch_own();
	*(ptrdiff_t *)((uintptr_t)&hd__tls_away + (there - here)) = (ptrdiff_t)(thread - there);
	hd__arch_set_tp(there, is_ours);
}

__attribute__((noinline)) void hd__tls_keep(void)
{
	hd__tls_away = 0;
}
