/* os/lock.c - the byte lock: one holder at a time, and a waiter gets it however long the holder keeps it. */
#define _GNU_SOURCE
#include "os/lock.h"

#include <sys/resource.h>

#include "os/thread.h"
#include "wait/threads.h"

static unsigned char lock;
static int arrived;
static long inside, passed;

static void *wait_for_lock(void *arg)
{
	__atomic_fetch_add(&arrived, 1, __ATOMIC_ACQ_REL);
	hd__lock(&lock);
	CHECK_EQ(++inside, 1);
	passed++;
	inside--;
	hd__unlock(&lock);
	return arg;
}

/* Much longer than a waiter spins and yields: it naps between its tries, and none of them gets in before the release. */
HD_TEST(lock_that_is_held_for_20_ms_is_had_by_every_waiter)
{
	struct plain_thread *threads[3];

	hd__lock(&lock);
	for (int i = 0; i < 3; i++)
		threads[i] = start_thread(wait_for_lock, NULL);
	await_flag(&arrived, 3);
	for (hd_time until = kernel_now() + HD_MS(20); kernel_now() < until;) {
		CHECK_EQ(passed, 0);
		hd__os_thread_nap();
	}
	hd__unlock(&lock);
	for (int i = 0; i < 3; i++)
		join_thread(threads[i]);
	CHECK_EQ(passed, 3);
	CHECK_EQ(lock, 0);
}

/* How often threads other than the caller have gone to sleep. A yield is no sleep. */
static long sleeps_of_others(void)
{
	struct rusage all, own;

	CHECK_EQ(getrusage(RUSAGE_SELF, &all), 0);
	CHECK_EQ(getrusage(RUSAGE_THREAD, &own), 0);
	return all.ru_nvcsw - own.ru_nvcsw;
}

/* Under SCHED_FIFO a holder of a lower priority has a CPU only while the waiter sleeps. */
HD_TEST(lock_waiter_sleeps_between_its_tries_after_a_while)
{
	if (hd_is_simulated())
		SKIP("the kernel does not know of the threads there");
	hd__lock(&lock);
	struct plain_thread *thread = start_thread(wait_for_lock, NULL);
	await_flag(&arrived, 1);
	for (long before = sleeps_of_others(); sleeps_of_others() < before + 10;)
		sched_yield();
	hd__unlock(&lock);
	join_thread(thread);
	CHECK_EQ(passed, 1);
}

static void *pass_often(void *arg)
{
	for (int i = 0; i < hd_scaled(100000); i++)
		wait_for_lock(NULL);
	return arg;
}

HD_TEST(lock_has_one_holder_at_a_time)
{
	struct plain_thread *threads[3];

	for (int i = 0; i < 3; i++)
		threads[i] = start_thread(pass_often, NULL);
	for (int i = 0; i < 3; i++)
		join_thread(threads[i]);
	CHECK_EQ(passed, 3L * hd_scaled(100000));
}
