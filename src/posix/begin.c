/* posix/begin.c - a program becomes the first process of a runtime, where it stands.
 *
 * Owns:       the runtime of a program with the POSIX face. hd_run is called on a stack of its own; its first process goes to the stack that the program is on,
 *             and goes on there. So main is the program's own function, called by the C library as ever, and what it returns is the program's exit code; static
 *             objects of all files are made before it, and their constructors may start threads.
 *
 *                  the program's stack          the runtime's stack         the first process's stack
 *                  hd_posix_begin  ---------->  hd_run, the worker -------> first
 *                  goes on  <------------------------------------------------+
 *
 *             The first process stays on its kernel thread: thread-local variables that were set before are that thread's.
 * Callers:    files that include heddle/pthread.h, before main; hd_pthread_create, in a forked child. The program has one thread then. */
#include "posix/posix.h"

#include <stdio.h>
#include <stdlib.h>

#include "arch/carry.h"
#include "context.h"
#include "os/memory.h"

#define STACK_SIZE ((size_t)256 << 10)

static struct hd__context program, before;

static void *first(void *arg)
{
	(void)hd_pin();
	hd_hold_open(1); /* a handler of signals may wake a process at any time; the last thread exits (posix/thread.c) */
	hd_set_cancel_type(HD_CANCEL_UNWIND);
	hd__faces_begin();
	hd__arch_switch(&before, &program);
	return arg; /* is never reached */
}

static void run(void *arg)
{
	const struct hd_config config = { .policy = HD_IO, .preempted = HD_PREEMPTED_HEAD };
	int code = hd_run(&config, first, arg);

	if (code < 0)
		fprintf(stderr, "heddle: the runtime of a program with POSIX threads could not begin: %s\n", hd_error(code));
	exit(code < 0 ? 1 : code);
}

void hd_posix_begin(void)
{
	char *stack;

	if (hd_self() != 0)
		return;
	if (hd__sanitized) {
		fprintf(stderr, "heddle: programs with POSIX threads on heddle run without ASan and TSan: they know one stack "
				"for main\n");
		exit(1);
	}
	stack = hd__os_reserve(STACK_SIZE, 0);
	if (stack == NULL) {
		fprintf(stderr, "heddle: no memory for the runtime of a program with POSIX threads\n");
		exit(1);
	}
	hd__arch_make(&before, stack + STACK_SIZE, run, NULL);
	hd__arch_switch(&program, &before);
}
