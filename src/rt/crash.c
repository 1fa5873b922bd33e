/* rt/crash.c - a process that crashes is named, with its worker and its backtrace, before the program dies: by a fault, by abort, by an assertion of heddle's, by
 * an overflow of its stack.
 *
 * Owns:      the actions of the signals that programs crash by, and the workers' signal stacks, while the runtime runs. A signal for which the program has an action of its
 *            own keeps that; but SIGSEGV is looked at first, for it may be an overflow. What is not a crash of a process that heddle runs is passed on: of another thread, a
 *            signal that another program has sent.
 * Invariant: the program dies of the signal that it would have died of, with the core file that it would have left.
 * Locking:   `crashing`: the first thread that crashes tells, others that crash meanwhile wait for the end.
 *
 * The program may have crashed inside malloc, with its lock held, or in the loader: nothing here allocates, or takes a lock. So places are told as file and offset; `heddle bt
 * --resolve` names them. Sanitizers and Valgrind tell more than this: with them, only overflows are told. */
#define _GNU_SOURCE
#include <errno.h>
#include <execinfo.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "arch/carry.h"
#include "arch/valgrind.h"
#include "base/assert.h"
#include "divert.h"
#include "os/memory.h"
#include "os/spot.h"
#include "os/thread.h"
#include "rt/rt.h"
#include "sim/threads.h"

#define SIGNAL_STACK_SIZE ((size_t)64 << 10)
#define FRAMES_MAX 64
#define PATIENCE 20000 /* naps of 50 us that a second thread which crashes waits for the end */

static const int signals[] = { SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT };
#define SIGNALS (sizeof signals / sizeof signals[0])

static struct sigaction before[SIGNALS]; /* also after the run: the program may have kept on_crash, and install it again */
static bool watched[SIGNALS];
static bool tells; /* else overflows only */
static int crashing;

static struct sigaction *before_of(int signal)
{
	for (size_t i = 0; i < SIGNALS; i++)
		if (signals[i] == signal)
			return &before[i];
	return NULL;
}

/* ---- what is told ---- */

static const char *name_of(int signal)
{
	static const char *const names[] = { "SIGSEGV", "SIGBUS", "SIGILL", "SIGFPE", "SIGABRT" };

	for (size_t i = 0; i < SIGNALS; i++)
		if (signals[i] == signal)
			return names[i];
	return "a signal";
}

static void print_frames(const ucontext_t *context)
{
	static struct hd__spot spots[FRAMES_MAX];
	uintptr_t addresses[FRAMES_MAX], pc = hd__arch_pc(context), caller;
	unsigned n = hd__os_walk_from(pc, addresses, FRAMES_MAX);
	char byte;

	if (n == 1 && !hd__os_peek(&byte, (const void *)pc, 1) && (caller = hd__arch_caller(context, hd__os_peek)) != 0)
		addresses[n++] = caller - 1; /* a call of what is no function: nothing says how to go on from there */

	for (unsigned i = 0; i < n; i++)
		spots[i].address = addresses[i];
	hd__os_find_spots(spots, n);
	for (unsigned i = 0; i < n; i++)
		hd__complain(spots[i].path[0] != 0 ? "heddle:     at %s+0x%zx\n" : "heddle:     at %s0x%zx\n", spots[i].path,
			     (size_t)spots[i].offset);
	hd__complain("heddle: `heddle bt --resolve <LOG` names these places\n");
}

/* Whether the caller is the first thread that crashes. Another one waits here for the end. */
static bool is_first(void)
{
	int first = 0, me = (int)hd__os_thread_id();

	if (cas_acq_rel(&crashing, &first, me))
		return true;
	for (int i = 0; first != me && i < PATIENCE; i++)
		hd__os_thread_nap();
	return false;
}

static void tell_crash(int signal, const siginfo_t *info, const ucontext_t *context)
{
	struct hd_worker *w = hd__self();
	struct hd_process *me = w != NULL ? w->current : NULL;
	bool addressed = info->si_code > 0 && (signal == SIGSEGV || signal == SIGBUS);
	char text[64] = "";

	if (!ld_rlx(&tells) || w == NULL || (info->si_code <= 0 && info->si_pid != getpid()))
		return;
	if (!is_first())
		return;
	if (addressed)
		snprintf(text, sizeof text, " at the address %p", info->si_addr);
	if (me != NULL)
		hd__complain("heddle: process %lld%s%s%s on worker %u has crashed by %s%s; it was here:\n",
			     (long long)hd__pid(&w->sched->table, me), me->name[0] ? " \"" : "", me->name,
			     me->name[0] ? "\"" : "", w->index, name_of(signal), text);
	else
		hd__complain("heddle: worker %u has crashed by %s%s, between two processes; it was here:\n", w->index,
			     name_of(signal), text);
	print_frames(context);
}

/* ---- the actions ---- */

/* As the kernel would: for the action that was there before. heddle's stays, for faults that are heddle's. */
static void pass_on(int signal, siginfo_t *info, void *context)
{
	struct sigaction *old = before_of(signal), to = *old;
	bool sent = info->si_code <= 0; /* by kill or raise: no instruction has faulted */

	if (to.sa_handler == SIG_IGN && sent)
		return;
	if (to.sa_handler == SIG_DFL || to.sa_handler == SIG_IGN) { /* the program dies of it */
		tell_crash(signal, info, context);
		to.sa_handler = SIG_DFL;
		to.sa_flags = 0;
		sigaction(signal, &to, NULL); /* and the instruction faults again, */
		if (sent)
			raise(signal); /* unless there was none */
		return;
	}
	if (to.sa_flags & SA_RESETHAND)
		old->sa_handler = SIG_DFL;
	if (to.sa_flags & SA_NODEFER) {
		sigset_t itself;
		sigemptyset(&itself);
		sigaddset(&itself, signal);
		pthread_sigmask(SIG_UNBLOCK, &itself, NULL);
	}
	pthread_sigmask(SIG_BLOCK, &to.sa_mask, NULL); /* until the return from on_crash */
	if (to.sa_flags & SA_SIGINFO)
		to.sa_sigaction(signal, info, context);
	else
		to.sa_handler(signal);
}

static void on_crash(int signal, siginfo_t *info, void *context)
{
	struct hd_worker *w = hd__self();
	struct hd_process *me = w != NULL ? w->current : NULL;
	char *address = info->si_addr;

	if (signal != SIGSEGV || info->si_code <= 0 || me == NULL || me->stack == NULL || address >= me->stack ||
	    address < me->stack - hd__guard_size()) {
		pass_on(signal, info, context);
		return;
	}
	if (!is_first())
		abort();
	hd__complain("heddle: stack overflow in process %lld%s%s%s: it needed more than its %zu bytes\n"
		     "heddle: give it more with hd_spawn.stack_size, or all of them with HEDDLE_STACK_SIZE; it was here:\n",
		     (long long)hd__pid(&w->sched->table, me), me->name[0] ? " \"" : "", me->name, me->name[0] ? "\"" : "",
		     hd__stack_size(me->stack_class));
	print_frames(context);
	st_rlx(&tells, false); /* abort is no second crash */
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

static bool is_ours(const struct sigaction *action)
{
	return action->sa_flags & SA_SIGINFO && action->sa_sigaction == on_crash;
}

void hd__crash_watch_start(void)
{
	struct sigaction action = { .sa_sigaction = on_crash, .sa_flags = SA_SIGINFO | SA_ONSTACK };
	struct sigaction now;
	void *frame;

	backtrace(&frame, 1); /* its first call loads libgcc, for which it allocates */
	sigemptyset(&action.sa_mask);
	tells = !hd__sanitized && !hd__under_valgrind() && !hd__sim_threads;
	for (size_t i = 0; i < SIGNALS; i++) {
		if (sigaction(signals[i], NULL, &now) != 0)
			continue;
		if (!is_ours(&now))
			before[i] = now;
		watched[i] = signals[i] == SIGSEGV || (tells && before[i].sa_handler == SIG_DFL);
		if (watched[i])
			sigaction(signals[i], &action, NULL);
	}
}

void hd__crash_watch_stop(void)
{
	struct sigaction now;

	for (size_t i = 0; i < SIGNALS; i++) {
		if (watched[i] && sigaction(signals[i], NULL, &now) == 0 && is_ours(&now))
			sigaction(signals[i], &before[i], NULL); /* else the program has installed another one meanwhile */
		watched[i] = false;
	}
}
