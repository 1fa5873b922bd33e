/* calibrate.c - what this machine charges for the things that no runtime can avoid, measured in the same run as the rest.
 *
 * `calibrate CASE` prints one figure, `calibrate all` every one; nanoseconds each. What cannot be had here, because of the
 * processor or for want of a second CPU, prints no line. */
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "harness.h"

/* The bare switch: the callee-saved registers on the stack, the stack pointer swapped, nothing chosen, nothing queued. */
#if defined(__x86_64__)

void bare_switch(void **save, void *load);
__asm__(".text\n"
	".type bare_switch, @function\n"
	"bare_switch:\n"
	"	push %rbp\n"
	"	push %rbx\n"
	"	push %r12\n"
	"	push %r13\n"
	"	push %r14\n"
	"	push %r15\n"
	"	mov %rsp, (%rdi)\n"
	"	mov %rsi, %rsp\n"
	"	pop %r15\n"
	"	pop %r14\n"
	"	pop %r13\n"
	"	pop %r12\n"
	"	pop %rbx\n"
	"	pop %rbp\n"
	"	pop %rcx\n" /* not ret: the processor would expect the caller of the other stack */
	"	jmp *%rcx\n"
	".size bare_switch, . - bare_switch\n");

enum { RING = 1000, SLOT = 64 * 1024, COLOURS = 31 };

/* A ring of contexts, each on a stack of its own, that hand the CPU on and never end. The caller is one more. */
static void *contexts[RING + 1];
static int ring_size, current;
static char *slots;

static void pass_on(void)
{
	int me = current;
	current = me == ring_size ? 0 : me + 1;
	bare_switch(&contexts[me], contexts[current]);
}

static void pass_on_forever(void)
{
	for (;;)
		pass_on();
}

/* The ring is contexts 0..size-1 and, at index size, the caller. Stack tops differ in colour, as a runtime's would. */
static double switch_around(int size, long n)
{
	if (slots == NULL) {
		slots = mmap(NULL, (size_t)RING * SLOT, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1,
			     0);
		if (slots == MAP_FAILED)
			bench_die("mmap", errno);
	}
	for (int i = 0; i < size; i++) {
		void **top = (void **)(slots + (size_t)(i + 1) * SLOT - (size_t)(i % COLOURS + 1) * 128);
		*--top = NULL; /* no caller; keeps the stack aligned as the ABI wants it at a function's first instruction */
		*--top = (void *)(uintptr_t)pass_on_forever;
		contexts[i] = top - 6;
	}
	ring_size = current = size;
	double start = bench_now();
	for (long i = n / (size + 1); i > 0; i--)
		pass_on();
	return bench_now() - start;
}

static double switch_among_2(long n)
{
	return switch_around(1, n);
}

static double switch_among_1000(long n)
{
	return switch_around(RING - 1, n);
}

static void switch2(void)
{
	bench_rate("switch2", switch_among_2, 2000);
}

static void switch1000(void)
{
	bench_rate("switch1000", switch_among_1000, RING);
}

#else

static void switch2(void)
{
	fprintf(stderr, "switch2, switch1000: only written for x86-64\n");
}

static void switch1000(void)
{
}

#endif

/* A lock's least: one locked read-modify-write to take it, a plain store to release it. */
static double lock_and_unlock(long n)
{
	static int word;
	double start = bench_now();
	for (long i = 0; i < n; i++) {
		int expected = 0;
		__atomic_compare_exchange_n(&word, &expected, 1, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
		__atomic_store_n(&word, 0, __ATOMIC_RELEASE);
	}
	return bench_now() - start;
}

static void rmw(void)
{
	bench_rate("rmw", lock_and_unlock, 1000);
}

/* Mapping and unmapping are not in the time. */
static double touch_pages(long n)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), size = (size_t)n * page;
	char *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED)
		bench_die("mmap", errno);
	madvise(memory, size, MADV_NOHUGEPAGE);
	double start = bench_now();
	for (size_t at = 0; at < size; at += page)
		((volatile char *)memory)[at] = 1;
	double took = bench_now() - start;
	munmap(memory, size);
	return took;
}

static void page_touch(void)
{
	bench_fixed("page_touch", touch_pages, 16384, 1);
}

static double cheap_calls(long n)
{
	double start = bench_now();
	for (long i = 0; i < n; i++)
		syscall(SYS_getppid);
	return bench_now() - start;
}

static void system_call(void)
{
	bench_rate("syscall", cheap_calls, 1000);
}

static double clock_reads(long n)
{
	struct timespec t;
	double start = bench_now();
	for (long i = 0; i < n; i++)
		clock_gettime(CLOCK_MONOTONIC, &t);
	return bench_now() - start;
}

static void clock_read(void)
{
	bench_rate("clock", clock_reads, 1000);
}

/* Two kernel threads that wake each other in turn. */
static unsigned turn[2];
static long turns;
static int cpus[2];

static void stay_on(int cpu)
{
	cpu_set_t set;
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof set, &set) != 0)
		bench_die("sched_setaffinity", errno);
}

static void *wake_and_wait(void *arg)
{
	int me = (int)(intptr_t)arg;

	stay_on(cpus[me]);
	for (long i = 0; i < turns; i++) {
		while (__atomic_load_n(&turn[me], __ATOMIC_ACQUIRE) == 0)
			syscall(SYS_futex, &turn[me], FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0);
		__atomic_store_n(&turn[me], 0, __ATOMIC_RELAXED);
		__atomic_store_n(&turn[1 - me], 1, __ATOMIC_RELEASE);
		syscall(SYS_futex, &turn[1 - me], FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
	}
	return NULL;
}

static double futex_round_trips(long n)
{
	pthread_t threads[2];

	turns = n;
	turn[0] = 1;
	turn[1] = 0;
	double start = bench_now();
	for (intptr_t i = 0; i < 2; i++) {
		int error = pthread_create(&threads[i], NULL, wake_and_wait, (void *)i);
		if (error != 0)
			bench_die("pthread_create", error);
	}
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	return bench_now() - start;
}

/* Chooses the CPUs: the first that this program may use, and the `other`th. Answers whether there are so many. */
static int choose_cpus(int other)
{
	cpu_set_t set;
	int found = 0;

	if (sched_getaffinity(0, sizeof set, &set) != 0)
		bench_die("sched_getaffinity", errno);
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(cpu, &set)) {
			if (found == 0)
				cpus[0] = cpu;
			if (found++ == other)
				cpus[1] = cpu;
		}
	return found > other;
}

static void futex_same_cpu(void)
{
	choose_cpus(0);
	bench_rate("futex_same_cpu", futex_round_trips, 1000);
}

static void futex_two_cpus(void)
{
	if (choose_cpus(1))
		bench_rate("futex_two_cpus", futex_round_trips, 1000);
}

static void all(void);

static const struct bench_case cases[] = {
	{ "all", all },
	{ "switch2", switch2 },
	{ "switch1000", switch1000 },
	{ "rmw", rmw },
	{ "page_touch", page_touch },
	{ "syscall", system_call },
	{ "clock", clock_read },
	{ "futex_same_cpu", futex_same_cpu },
	{ "futex_two_cpus", futex_two_cpus },
	{ NULL, NULL },
};

static void all(void)
{
	for (const struct bench_case *c = cases + 1; c->name != NULL; c++)
		c->run();
}

int main(int argc, char **argv)
{
	return bench_main(argc, argv, cases);
}
