/* sched/own_malloc.c - a program that has an allocator of its own, linked into it, is not stopped inside it.
 *
 * The allocator's code is the program's then. It may have locks, or count on its kernel thread for itself; and heddle calls it, too. */
#include <heddle.h>
#include <stdio.h>
#include <stdlib.h>

#define LOW 20
#define HIGH 70
#define ROUNDS 100

extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t n, size_t size);

static _Thread_local volatile int inside;
static volatile int stop;

static void in_heap(void)
{
	if (inside) {
		fputs("another process of the same kernel thread came in half-way\n", stderr);
		abort();
	}
	inside = 1;
	for (volatile int i = 0; i < 20000; i++)
		;
	inside = 0;
}

void *malloc(size_t size)
{
	in_heap();
	return __libc_malloc(size);
}

void *calloc(size_t n, size_t size)
{
	in_heap();
	return __libc_calloc(n, size);
}

static void allocate_and_free(void)
{
	void *volatile p = malloc(100);

	free(p);
}

/* Without a heddle call for some milliseconds at a time. */
static void *allocate(void *arg)
{
	while (!stop) {
		for (int i = 0; i < 300; i++)
			allocate_and_free();
		if (hd_checkpoint() != 0)
			abort();
	}
	return arg;
}

static void *outrank(void *arg)
{
	if (hd_set_priority(hd_self(), HIGH) != 0 || hd_spawn_with(&(struct hd_spawn){ .priority = LOW, .detached = true }, allocate, NULL) < 0)
		abort();
	for (int i = 0; i < ROUNDS; i++) {
		if (hd_sleep(HD_US(500)) != 0)
			abort();
		allocate_and_free();
	}
	stop = 1;
	return arg;
}

int main(void)
{
	return hd_run(&(struct hd_config){ .workers = 1, .fixed = true }, outrank, NULL);
}
