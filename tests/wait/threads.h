/* wait/threads.h - plain threads for tests: start, join, and a flag that needs nothing of heddle. */
#ifndef TESTS_WAIT_THREADS_H
#define TESTS_WAIT_THREADS_H

#include <heddle.h>
#include <pthread.h>
#include <sched.h>
#include <time.h>

#include "harness/harness.h"

static inline pthread_t start_thread(void *(*fn)(void *), void *arg)
{
	pthread_t thread;
	CHECK_EQ(pthread_create(&thread, NULL, fn, arg), 0);
	return thread;
}

static inline void join_thread(pthread_t thread)
{
	CHECK_EQ(pthread_join(thread, NULL), 0);
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

/* A small generator, so that threads need not share one. */
static inline unsigned next_random(unsigned *state)
{
	*state = *state * 1664525u + 1013904223u;
	return *state >> 8;
}

#endif
