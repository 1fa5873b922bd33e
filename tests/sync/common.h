/* sync/common.h - what the tests of the primitives share: who is in a queue, and processes that run before or after each other. */
#ifndef TESTS_SYNC_COMMON_H
#define TESTS_SYNC_COMMON_H

#include <limits.h>
#include <string.h>

#include "sched/workers.h"
#include "wait/wait.h"

/* How many wait there. Any thread. */
HD_AS_RUNTIME static int queued(struct hd_waitq *q)
{
	int n = 0;

	hd__waitq_lock(q);
	for (struct hd_waiter *x = q->head; x != NULL; x = x->next)
		n++;
	hd__waitq_unlock(q);
	return n;
}

static inline void await_queued(struct hd_waitq *q, int n)
{
	while (queued(q) != n)
		CHECK_EQ(hd_sleep(HD_US(50)), 0);
}

static inline hd_pid spawned(hd_pid pid)
{
	CHECK(pid > 0);
	return pid;
}

/* Runs it at a priority that may be lower than the caller's, to its end. */
static inline void run_at(int priority, hd_entry entry, void *arg)
{
	CHECK_EQ(hd_join(spawned(hd_spawn_at(priority, entry, arg)), NULL, HD_FOREVER), 0);
}

/* Adds a word to the trace, and ends. */
static inline void *say_word(void *word)
{
	trace("%s ", (const char *)word);
	return NULL;
}

static inline struct hd_process_info info_on(hd_pid pid)
{
	struct hd_process_info info;

	CHECK_EQ(hd_process_info(pid, &info), 0);
	return info;
}

static inline struct hd_end end_of(hd_pid pid)
{
	struct hd_end end;

	CHECK_EQ(hd_join_end(pid, &end, HD_FOREVER), 0);
	return end;
}

#endif
