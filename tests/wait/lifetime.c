/* wait/lifetime.c - nothing is touched after it could be known to be done: the memory of a semaphore may go at once.
 *
 * The checks are ASan's; without it these tests only show that nothing crashes. */
#include <errno.h>
#include <stdlib.h>

#include "harness/process.h"
#include "wait/threads.h"

/* A semaphore on the heap for each round, passed to the other side through `current`. */
static struct hd_semaphore *current;
static struct hd_semaphore made, gone;
static int rounds;

static struct hd_semaphore *make_one(void)
{
	struct hd_semaphore *s = malloc(sizeof *s);

	CHECK(s != NULL);
	hd_semaphore_init(s, 0);
	__atomic_store_n(&current, s, __ATOMIC_RELEASE);
	return s;
}

static void *signal_each(void *arg)
{
	for (int i = 0; i < rounds; i++) {
		CHECK_EQ(hd_semaphore_wait(&made, HD_FOREVER), 0);
		CHECK_EQ(hd_semaphore_signal(__atomic_load_n(&current, __ATOMIC_ACQUIRE)), 0);
		CHECK_EQ(hd_semaphore_signal(&gone), 0);
	}
	return arg;
}

/* The waiter frees it as soon as its wait returns, while the signaller may still be inside hd_semaphore_signal. */
static void free_after_wait(void)
{
	for (int i = 0; i < rounds; i++) {
		struct hd_semaphore *s = make_one();
		CHECK_EQ(hd_semaphore_signal(&made), 0);
		CHECK_EQ(hd_semaphore_wait(s, HD_FOREVER), 0);
		free(s);
		CHECK_EQ(hd_semaphore_wait(&gone, HD_FOREVER), 0);
	}
}

static void *free_after_wait_on_thread(void *arg)
{
	free_after_wait();
	return arg;
}

HD_TEST(lifetime_waiting_thread_frees_what_a_thread_signals)
{
	rounds = hd_scaled(5000);
	struct plain_thread *signaller = start_thread(signal_each, NULL);
	free_after_wait();
	join_thread(signaller);
}

HD_PROCESS_TEST(lifetime_waiting_process_frees_what_a_thread_signals)
{
	rounds = hd_scaled(5000);
	struct plain_thread *signaller = start_thread(signal_each, NULL);
	free_after_wait();
	join_thread(signaller);
}

HD_PROCESS_TEST(lifetime_waiting_process_frees_what_a_process_signals)
{
	rounds = hd_scaled(20000);
	hd_pid signaller = hd_spawn_at(50, signal_each, NULL);
	free_after_wait();
	CHECK_EQ(hd_join(signaller, NULL, HD_FOREVER), 0);
}

HD_PROCESS_TEST(lifetime_waiting_thread_frees_what_a_process_signals)
{
	rounds = hd_scaled(5000);
	struct plain_thread *waiter = start_thread(free_after_wait_on_thread, NULL);
	signal_each(NULL);
	join_thread(waiter);
}

static struct hd_semaphore waiting;

/* The waiter does not touch it again once it has been granted: the granter frees it. */
static void *wait_for_each(void *arg)
{
	for (int i = 0; i < rounds; i++) {
		CHECK_EQ(hd_semaphore_wait(&made, HD_FOREVER), 0);
		struct hd_semaphore *s = __atomic_load_n(&current, __ATOMIC_ACQUIRE);
		CHECK_EQ(hd_semaphore_signal(&waiting), 0);
		CHECK_EQ(hd_semaphore_wait(s, hd_after(HD_SEC(1000))), 0);
		CHECK_EQ(hd_semaphore_signal(&gone), 0);
	}
	return arg;
}

static void free_after_signal(void)
{
	for (int i = 0; i < rounds; i++) {
		struct hd_semaphore *s = make_one();
		CHECK_EQ(hd_semaphore_signal(&made), 0);
		CHECK_EQ(hd_semaphore_wait(&waiting, HD_FOREVER), 0);
		while (__atomic_load_n(&s->waiters.head, __ATOMIC_RELAXED) == NULL) /* until it has come to wait there */
			if (hd_self() != 0)
				hd_yield();
			else
				sched_yield();
		CHECK_EQ(hd_semaphore_signal(s), 0);
		free(s);
		CHECK_EQ(hd_semaphore_wait(&gone, HD_FOREVER), 0);
	}
}

HD_PROCESS_TEST(lifetime_signalling_process_frees_what_a_process_waits_for)
{
	rounds = hd_scaled(20000);
	hd_pid waiter = hd_spawn(wait_for_each, NULL);
	free_after_signal();
	CHECK_EQ(hd_join(waiter, NULL, HD_FOREVER), 0);
}

#if !HD_UNDER_TSAN /* looking at a queue without its lock is the test's own race */
static void *free_after_signal_on_thread(void *arg)
{
	free_after_signal();
	return arg;
}

HD_PROCESS_TEST(lifetime_signalling_thread_frees_what_a_process_waits_for)
{
	rounds = hd_scaled(5000);
	struct plain_thread *signaller = start_thread(free_after_signal_on_thread, NULL);
	wait_for_each(NULL);
	join_thread(signaller);
}

HD_TEST(lifetime_signalling_thread_frees_what_a_thread_waits_for)
{
	rounds = hd_scaled(5000);
	struct plain_thread *waiter = start_thread(wait_for_each, NULL);
	free_after_signal();
	join_thread(waiter);
}
#endif
