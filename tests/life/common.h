/* life/common.h - what the tests of processes share: small entries, questions about a process, plain threads. */
#ifndef TESTS_LIFE_COMMON_H
#define TESTS_LIFE_COMMON_H

#include <errno.h>
#include <pthread.h>
#include <sched.h>

#include "harness/process.h"

/* Entries. */

/* Adds its argument, a word, to the trace. */
static inline void *say(void *word)
{
	trace("%s", (const char *)word);
	return word;
}

/* Waits for a signal, then says so. */
struct patient {
	struct hd_semaphore s;
	const char *word;
	int answer;
	hd_time until; /* 0: HD_FOREVER */
};
static inline void *wait_and_say(void *arg)
{
	struct patient *patient = arg;

	patient->answer = hd_semaphore_wait(&patient->s, patient->until != 0 ? patient->until : HD_FOREVER);
	trace("%s", patient->word);
	return NULL;
}

static inline void *nothing(void *arg)
{
	return arg;
}

/* hd_spawn_at of something that says a word; priority 0 is the caller's. */
static inline hd_pid spawn_word_with(const struct hd_spawn *how, hd_entry entry, const char *word)
{
	hd_pid pid = hd_spawn_with(how, entry, (void *)word);

	CHECK(pid > 0);
	return pid;
}

static inline hd_pid spawn_word_at(int priority, hd_entry entry, const char *word)
{
	return spawn_word_with(&(struct hd_spawn){ .priority = priority }, entry, word);
}

static inline hd_pid spawn_word(hd_entry entry, const char *word)
{
	return spawn_word_with(NULL, entry, word);
}

/* Questions. */

static inline hd_pid born(hd_pid pid)
{
	CHECK(pid > 0);
	return pid;
}

static inline struct hd_process_info info_of(hd_pid pid)
{
	struct hd_process_info info;

	CHECK_EQ(hd_process_info(pid, &info), 0);
	CHECK_EQ(info.pid, pid);
	return info;
}

static inline enum hd_state state_of(hd_pid pid)
{
	return info_of(pid).state;
}

static inline bool is_gone(hd_pid pid)
{
	struct hd_process_info info;

	return hd_process_info(pid, &info) == -ESRCH;
}

static inline struct hd_stats stats_now(void)
{
	struct hd_stats stats;

	CHECK_EQ(hd_stats(&stats), 0);
	return stats;
}

static inline void join_all(const hd_pid *pids, int n)
{
	for (int i = 0; i < n; i++)
		CHECK_EQ(hd_join(pids[i], NULL, HD_FOREVER), 0);
}

/* Flags between threads. */

static inline void raise_flag(int *flag)
{
	__atomic_store_n(flag, 1, __ATOMIC_RELEASE);
}

static inline bool is_raised(int *flag)
{
	sched_yield(); /* who waits for it in a loop, with or without safe points, lets others run */
	return __atomic_load_n(flag, __ATOMIC_ACQUIRE) != 0;
}

/* Plain threads. */

struct plain {
	pthread_t thread;
	void (*fn)(void *arg);
	void *arg;
	struct hd_semaphore done;
};

static inline void *plain_thread(void *arg)
{
	struct plain *plain = arg;

	plain->fn(plain->arg);
	CHECK_EQ(hd_semaphore_signal(&plain->done), 0);
	return NULL;
}

/* Starts fn(arg) on a thread that heddle does not know. */
static inline void plain_start(struct plain *plain, void (*fn)(void *arg), void *arg)
{
	*plain = (struct plain){ .fn = fn, .arg = arg };
	CHECK_EQ(pthread_create(&plain->thread, NULL, plain_thread, plain), 0);
}

/* The calling process waits, so that its worker is free meanwhile. */
static inline void plain_join(struct plain *plain)
{
	CHECK_EQ(hd_semaphore_wait(&plain->done, HD_FOREVER), 0);
	CHECK_EQ(pthread_join(plain->thread, NULL), 0);
}

static inline void on_plain_thread(void (*fn)(void *arg), void *arg)
{
	struct plain plain;

	plain_start(&plain, fn, arg);
	plain_join(&plain);
}

#endif
