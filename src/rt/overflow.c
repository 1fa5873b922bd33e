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

static struct sigaction before; /* also after the run: the program may have kept on_fault, and install it again */
static bool watching;

/* As the kernel would: for the action that was there before. heddle's stays, for faults that are heddle's. */
static void pass_on(int signal, siginfo_t *info, void *context)
{
	struct sigaction to = before;
	bool sent = info->si_code <= 0; /* by kill or raise: no instruction has faulted */

	if (to.sa_handler == SIG_IGN && sent)
		return;
	if (to.sa_handler == SIG_DFL || to.sa_handler == SIG_IGN) { /* the program dies of it */
		to.sa_handler = SIG_DFL;
		to.sa_flags = 0;
		sigaction(signal, &to, NULL); /* and the instruction faults again, */
		if (sent)
			raise(signal); /* unless there was none */
		return;
	}
	if (to.sa_flags & SA_RESETHAND)
		before.sa_handler = SIG_DFL;
	if (to.sa_flags & SA_NODEFER) {
		sigset_t itself;
		sigemptyset(&itself);
		sigaddset(&itself, signal);
		pthread_sigmask(SIG_UNBLOCK, &itself, NULL);
	}
	pthread_sigmask(SIG_BLOCK, &to.sa_mask, NULL); /* until the return from on_fault */
	if (to.sa_flags & SA_SIGINFO)
		to.sa_sigaction(signal, info, context);
	else
		to.sa_handler(signal);
}

static void on_fault(int signal, siginfo_t *info, void *context)
{
	struct hd_worker *w = hd__self();
	struct hd_process *me = w != NULL ? w->current : NULL;
	char *address = info->si_addr;

	if (me == NULL || me->stack == NULL || address >= me->stack || address < me->stack - hd__guard_size()) {
		pass_on(signal, info, context);
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
	struct sigaction now;
	void *frame;

	backtrace(&frame, 1); /* its first call loads libgcc, for which it allocates */
	sigemptyset(&action.sa_mask);
	sigaction(SIGSEGV, NULL, &now);
	if (now.sa_sigaction != on_fault)
		before = now;
	sigaction(SIGSEGV, &action, NULL);
	watching = true;
}

void hd__overflow_watch_stop(void)
{
	struct sigaction now;

	if (watching && sigaction(SIGSEGV, NULL, &now) == 0 && now.sa_sigaction == on_fault)
		sigaction(SIGSEGV, &before, NULL); /* else the program has installed another one meanwhile */
	watching = false;
}
