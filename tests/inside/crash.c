/* crash.c - programs that crash: `crash HOW`.
 *
 *   segv bus ill fpe abort   the process "victim" does that
 *   panic                    an assertion of heddle fails in it
 *   jump                     it calls a function at address 16
 *   smashed                  it crashes with a stack full of nonsense
 *   both                     two processes crash at once, on two workers
 *   thread                   a plain thread crashes
 *   handled                  the program has an action of its own
 *   sent                     waits to be killed from outside, after it has printed "ready" */
#define _GNU_SOURCE
#include <heddle.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static const char *how;
static volatile uintptr_t sixteen = 16;
static struct hd_barrier together = HD_BARRIER(2);

static void on_signal(int signal)
{
	(void)signal;
	_exit(42);
}

/* The stack pointer leads to words that make no sense, and so do those that the frames have saved. */
__attribute__((noinline, no_stack_protector)) static void smash(void)
{
	volatile uintptr_t *words = __builtin_frame_address(0);

	for (uintptr_t i = 0; i < 24; i++)
		words[i] = 0x1111111111111111u * (i % 7);
}

__attribute__((noinline)) static int crash(int zero)
{
	if (strcmp(how, "segv") == 0 || strcmp(how, "both") == 0 || strcmp(how, "thread") == 0 || strcmp(how, "handled") == 0)
		*(volatile int *)sixteen = 1;
	if (strcmp(how, "bus") == 0) {
		char *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, memfd_create("empty", 0), 0);
		*(volatile char *)page = 1;
	}
	if (strcmp(how, "ill") == 0)
		__builtin_trap();
	if (strcmp(how, "fpe") == 0) {
#if defined(__x86_64__)
		return 1000 / *(volatile int *)&zero;
#else
		raise(SIGFPE);
#endif
	}
	if (strcmp(how, "abort") == 0)
		abort();
	if (strcmp(how, "jump") == 0)
		((void (*)(void))sixteen)();
	if (strcmp(how, "smashed") == 0)
		smash();
	return zero;
}

static struct hd_group left_open;

static void *idle(void *arg)
{
	return arg;
}

static void *victim(void *arg)
{
	if (strcmp(how, "both") == 0 && hd_barrier_wait(&together, HD_FOREVER) < 0)
		return NULL;
	if (strcmp(how, "panic") == 0)
		return hd_group_spawn(&left_open, idle, NULL) > 0 ? arg : NULL; /* and never waits for it */
	return crash(0) == 0 ? arg : NULL;
}

static void *thread(void *arg)
{
	crash(0);
	return arg;
}

static void *first(void *arg)
{
	pthread_t plain;

	if (strcmp(how, "thread") == 0 && pthread_create(&plain, NULL, thread, NULL) == 0) {
		for (;;)
			pause();
	}
	if (strcmp(how, "sent") == 0) {
		puts("ready");
		fflush(stdout);
		for (;;)
			pause();
	}
	for (int i = strcmp(how, "both") == 0 ? 0 : 1; i < 2; i++) {
		hd_pid pid = hd_spawn_with(&(struct hd_spawn){ .name = "victim" }, victim, NULL);
		if (pid <= 0)
			_exit(3);
	}
	if (hd_sleep(HD_SEC(30)) != 0)
		_exit(3);
	return arg;
}

int main(int argc, char **argv)
{
	how = argc > 1 ? argv[1] : "segv";
	if (strcmp(how, "handled") == 0)
		signal(SIGSEGV, on_signal);
	return hd_run(NULL, first, NULL) != 0;
}
