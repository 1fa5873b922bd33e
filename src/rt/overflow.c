/* rt/overflow.c - a stack overflow is named, with its process, size and backtrace, before the program aborts.
 *
 * Owns:      the SIGSEGV action and the workers' signal stacks while the runtime runs. A fault that is not in the guard of
 *            the running process's stack is the program's own: the action that was there before gets it. The
 *            stack may have overflowed inside malloc, with its lock held: nothing here allocates. */
#define _GNU_SOURCE
#include <errno.h>
#include <execinfo.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/assert.h"
#include "os/memory.h"
#include "rt/rt.h"

#define SIGNAL_STACK_SIZE ((size_t)64 << 10)
#define FRAMES_MAX 64

static struct sigaction before; /* while a runtime runs */
static bool watching;

static void on_fault(int signal, siginfo_t *info, void *context)
{
	struct hd_worker *w = hd__self();
	struct hd_process *me = w != NULL ? w->current : NULL;
	char *address = info->si_addr;

	(void)context;
	if (me == NULL || me->stack == NULL || address >= me->stack || address < me->stack - hd__guard_size()) {
		sigaction(signal, &before, NULL); /* and the instruction faults again, for the handler that was there before */
		if (info->si_code <= 0)
			raise(signal); /* unless there was none: the signal was sent */
		return;
	}
	void *frames[FRAMES_MAX];
	hd__complain("heddle: stack overflow in process %lld%s%s%s: it needed more than its %zu bytes\n"
		     "heddle: give it more with hd_spawn.stack_size, or all of them with HEDDLE_STACK_SIZE; it was here:\n",
		     (long long)hd__pid(&w->sched->table, me), me->name[0] ? " \"" : "", me->name, me->name[0] ? "\"" : "",
		     hd__stack_size(me->stack_class));
	int n = backtrace(frames, FRAMES_MAX);
	backtrace_symbols_fd(frames, n, STDERR_FILENO);
	abort();
}

int hd__signal_stack_start(struct hd__signal_stack *s)
{
	s->memory = hd__os_reserve(SIGNAL_STACK_SIZE, 0); /* hardly ever touched */
	if (s->memory == NULL)
		return -ENOMEM;
	stack_t stack = { .ss_sp = s->memory, .ss_size = SIGNAL_STACK_SIZE };
	sigaltstack(&stack, &s->before);
	return 0;
}

void hd__signal_stack_stop(struct hd__signal_stack *s)
{
	sigaltstack(&s->before, NULL);
	hd__os_unreserve(s->memory, SIGNAL_STACK_SIZE);
}

void hd__overflow_watch_start(void)
{
	struct sigaction action = { .sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_ONSTACK };
	void *frame;

	backtrace(&frame, 1); /* its first call loads libgcc, for which it allocates */
	sigemptyset(&action.sa_mask);
	sigaction(SIGSEGV, &action, &before);
	watching = true;
}

void hd__overflow_watch_stop(void)
{
	if (watching)
		sigaction(SIGSEGV, &before, NULL);
	watching = false;
}
