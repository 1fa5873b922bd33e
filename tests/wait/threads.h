/* wait/threads.h - plain threads for tests: start, join, and a flag that needs nothing of heddle. */
#ifndef TESTS_WAIT_THREADS_H
#define TESTS_WAIT_THREADS_H

#include <heddle.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

#include "harness/harness.h"
#include "os/clock.h"

struct plain_thread {
	void *(*fn)(void *);
	void *arg;
	pthread_t handle;
	struct hd_semaphore done;
};

static inline void *run_plain_thread(void *arg)
{
	struct plain_thread *thread = arg;

	thread->fn(thread->arg);
	CHECK_EQ(hd_semaphore_signal(&thread->done), 0);
	return NULL;
}

static inline struct plain_thread *start_thread(void *(*fn)(void *), void *arg)
{
	struct plain_thread *thread = calloc(1, sizeof *thread);

	CHECK(thread != NULL);
	thread->fn = fn;
	thread->arg = arg;
	CHECK_EQ(pthread_create(&thread->handle, NULL, run_plain_thread, thread), 0);
	return thread;
}

/* On a process, the worker goes on meanwhile: the thread may be waiting for it. */
static inline void join_thread(struct plain_thread *thread)
{
	CHECK_EQ(hd_semaphore_wait(&thread->done, HD_FOREVER), 0);
	CHECK_EQ(pthread_join(thread->handle, NULL), 0);
	free(thread);
}

/* Set on one thread, awaited on another. await_flag is no safe point: a process that calls it keeps its worker. */
static inline void set_flag(int *flag, int value)
{
	__atomic_store_n(flag, value, __ATOMIC_RELEASE);
}

static inline int read_flag(int *flag)
{
	return __atomic_load_n(flag, __ATOMIC_ACQUIRE);
}

static inline void await_flag(int *flag, int value)
{
	while (read_flag(flag) != value)
		sched_yield();
}

/* The time on heddle's clock, without a call of heddle's: those are safe points. */
static inline hd_time kernel_now(void)
{
	return hd__os_clock.now(&hd__os_clock);
}

/* A small generator, so that threads need not share one. */
static inline unsigned next_random(unsigned *state)
{
	*state = *state * 1664525u + 1013904223u;
	return *state >> 8;
}

#endif
