/* wait/races.c - whoever ends a wait first, ends it once.
 *
 * Every test sends a known number of signals at waiters that time out, are suspended or end meanwhile, from plain threads, and then
 * asks where each signal is: signals given = signals taken + signals still held. */
#include <errno.h>

#include "harness/process.h"
#include "wait/threads.h"

#define WAITERS 8
#define THREADS 3

static struct hd_semaphore sem;
static int each_gives, stop;
static long taken, timed_out, resumed;

static void *give_signals(void *arg)
{
	unsigned seed = (unsigned)(long)arg;

	for (int i = 0; i < each_gives; i++) {
		CHECK_EQ(hd_semaphore_signal(&sem), 0);
		if (next_random(&seed) % 8 == 0)
			sched_yield();
	}
	return NULL;
}

static void start_givers(struct plain_thread **threads, int n, int each)
{
	each_gives = each;
	for (long i = 0; i < n; i++)
		threads[i] = start_thread(give_signals, (void *)(i + 1));
}

static void join_givers(struct plain_thread **threads, int n)
{
	for (int i = 0; i < n; i++)
		join_thread(threads[i]);
}

static long held(void)
{
	long n = 0;

	while (hd_semaphore_try_wait(&sem) == 0)
		n++;
	return n;
}

/* Waits with deadlines so near that grant and timeout meet; counts on its own, because processes share a worker. */
static void *take_with_tiny_deadlines(void *arg)
{
	unsigned seed = (unsigned)(long)arg;

	while (!read_flag(&stop)) {
		int err = hd_semaphore_wait(&sem, hd_after(next_random(&seed) % 4000));
		if (err == 0)
			taken++;
		else if (err == -ETIMEDOUT)
			timed_out++;
		else
			CHECK_EQ(err, 0);
	}
	return NULL;
}

HD_PROCESS_TEST(race_grant_against_timeout_of_processes)
{
	struct plain_thread *givers[THREADS];
	hd_pid waiters[WAITERS];
	int each = hd_scaled(10000);

	start_givers(givers, THREADS, each);
	for (long i = 0; i < WAITERS; i++)
		waiters[i] = hd_spawn(take_with_tiny_deadlines, (void *)(i + 1));
	while (taken < (long)THREADS * each / 2)
		hd_sleep(HD_US(100));
	join_givers(givers, THREADS);
	set_flag(&stop, 1);
	for (int i = 0; i < WAITERS; i++)
		CHECK_EQ(hd_join(waiters[i], NULL, HD_FOREVER), 0);
	CHECK_EQ(taken + held(), (long)THREADS * each);
	CHECK(sem.waiters.head == NULL);
}

static long thread_taken;

static void *take_on_a_thread(void *arg)
{
	unsigned seed = (unsigned)(long)arg;
	long mine = 0;

	while (!read_flag(&stop))
		mine += hd_semaphore_wait(&sem, hd_after(next_random(&seed) % 60000)) == 0;
	__atomic_fetch_add(&thread_taken, mine, __ATOMIC_RELAXED);
	return NULL;
}

static void race_on_threads(void)
{
	struct plain_thread *givers[2], *takers[2];
	int each = hd_scaled(10000);

	start_givers(givers, 2, each);
	for (long i = 0; i < 2; i++)
		takers[i] = start_thread(take_on_a_thread, (void *)(i + 7));
	join_givers(givers, 2);
	set_flag(&stop, 1);
	for (int i = 0; i < 2; i++)
		join_thread(takers[i]);
	CHECK_EQ(thread_taken + held(), 2L * each);
	CHECK(sem.waiters.head == NULL);
}

HD_TEST(race_grant_against_timeout_of_threads_without_a_runtime)
{
	race_on_threads();
}

HD_PROCESS_TEST(race_grant_against_timeout_of_threads_beside_a_runtime)
{
	race_on_threads();
}

/* Processes and threads in one queue, signals from processes and threads. */
HD_PROCESS_TEST(race_processes_and_threads_share_a_queue)
{
	struct plain_thread *givers[2], *takers[2];
	hd_pid waiters[4];
	int each = hd_scaled(10000);

	start_givers(givers, 2, each);
	for (long i = 0; i < 2; i++)
		takers[i] = start_thread(take_on_a_thread, (void *)(i + 7));
	for (long i = 0; i < 4; i++)
		waiters[i] = hd_spawn(take_with_tiny_deadlines, (void *)(i + 1));
	for (int i = 0; i < each; i++) {
		CHECK_EQ(hd_semaphore_signal(&sem), 0);
		if (i % 16 == 0)
			hd_sleep(HD_US(1));
	}
	join_givers(givers, 2);
	set_flag(&stop, 1);
	for (int i = 0; i < 4; i++)
		CHECK_EQ(hd_join(waiters[i], NULL, HD_FOREVER), 0);
	for (int i = 0; i < 2; i++)
		join_thread(takers[i]);
	CHECK_EQ(taken + thread_taken + held(), 3L * each);
}

/* ---- suspend ---- */

static hd_pid victims[WAITERS];
static int suspender_result_errors;

/* From a plain thread: stops and starts the waiters in every state they can be in. */
static void *suspend_and_resume(void *arg)
{
	unsigned seed = 99;

	while (!read_flag(&stop)) {
		hd_pid victim = victims[next_random(&seed) % WAITERS];
		int err = hd_suspend(victim, next_random(&seed) % 2 ? HD_FOREVER : 0);
		if (err != 0 && err != -EINPROGRESS)
			__atomic_fetch_add(&suspender_result_errors, 1, __ATOMIC_RELAXED);
		err = hd_resume(victim);
		if (err == 0)
			__atomic_fetch_add(&resumed, 1, __ATOMIC_RELAXED);
		else if (err != -EALREADY)
			__atomic_fetch_add(&suspender_result_errors, 1, __ATOMIC_RELAXED);
	}
	return arg;
}

static void *take_forever(void *arg)
{
	do {
		CHECK_EQ(hd_semaphore_wait(&sem, HD_FOREVER), 0);
		taken++;
	} while (!read_flag(&stop));
	return arg;
}

static void race_with_suspend(hd_entry waiter)
{
	struct plain_thread *givers[2], *suspender;
	int each = hd_scaled(5000);

	for (long i = 0; i < WAITERS; i++)
		victims[i] = hd_spawn(waiter, (void *)(i + 1));
	suspender = start_thread(suspend_and_resume, NULL);
	start_givers(givers, 2, each);
	while (taken < each || __atomic_load_n(&resumed, __ATOMIC_RELAXED) < hd_scaled(1000))
		hd_sleep(HD_US(100));
	join_givers(givers, 2);
	set_flag(&stop, 1);
	join_thread(suspender); /* it has resumed the last one that it suspended */
	long extra = 0;
	for (; waiter == take_forever && extra < WAITERS; extra++) /* one for each that still waits */
		CHECK_EQ(hd_semaphore_signal(&sem), 0);
	for (int i = 0; i < WAITERS; i++)
		CHECK_EQ(hd_join(victims[i], NULL, HD_FOREVER), 0);
	CHECK_EQ(taken + held(), 2L * each + extra);
	CHECK_EQ(suspender_result_errors, 0);
}

HD_PROCESS_TEST(race_grant_against_suspend)
{
	race_with_suspend(take_forever);
}

HD_PROCESS_TEST(race_grant_against_timeout_and_suspend)
{
	race_with_suspend(take_with_tiny_deadlines);
}

/* Nobody signals: only the deadline and the suspender are after the waiter. It is woken once for each wait. */
static void *time_out_often(void *arg)
{
	struct hd_semaphore own = HD_SEMAPHORE(0);
	unsigned seed = (unsigned)(long)arg;

	while (!read_flag(&stop)) {
		CHECK_EQ(hd_semaphore_wait(&own, hd_after(next_random(&seed) % 3000)), -ETIMEDOUT);
		CHECK(own.waiters.head == NULL);
		timed_out++;
	}
	return NULL;
}

HD_PROCESS_TEST(race_timeout_against_suspend)
{
	for (long i = 0; i < WAITERS; i++)
		victims[i] = hd_spawn(time_out_often, (void *)(i + 1));
	struct plain_thread *suspender = start_thread(suspend_and_resume, NULL);
	while (timed_out < hd_scaled(20000) || __atomic_load_n(&resumed, __ATOMIC_RELAXED) < hd_scaled(1000))
		hd_sleep(HD_US(100));
	set_flag(&stop, 1);
	join_thread(suspender);
	for (int i = 0; i < WAITERS; i++)
		CHECK_EQ(hd_join(victims[i], NULL, HD_FOREVER), 0);
	CHECK_EQ(suspender_result_errors, 0);
}

/* ---- the end of the runtime ---- */

static long given;

/* Signals for as long as it is told, whatever becomes of the runtime. */
static void *give_until_stopped(void *arg)
{
	while (!read_flag(&stop)) {
		CHECK_EQ(hd_semaphore_signal(&sem), 0);
		__atomic_fetch_add(&given, 1, __ATOMIC_RELAXED);
		sched_yield();
	}
	return arg;
}

/* A signal that was granted to a process which the end of the runtime then takes away is counted all the same: it was taken. */
static void *take_until_the_end(void *arg)
{
	while (arg == NULL) {
		int err = hd_semaphore_wait(&sem, hd_after(HD_US(200)));
		taken += err == 0;
	}
	return arg;
}

static void *run_shortly(void *arg)
{
	for (long i = 0; i < WAITERS; i++)
		CHECK(hd_spawn_with(&(struct hd_spawn){ .daemon = i % 2 }, take_until_the_end, NULL) > 0);
	hd_sleep(HD_US(300));
	hd_shutdown(7);
	return arg;
}

HD_TEST(race_grant_against_the_end_of_the_runtime)
{
	if (hd_is_simulated())
		SKIP("a taker who never has to wait keeps the one worker from the process that ends the runtime");
	struct plain_thread *giver = start_thread(give_until_stopped, NULL);

	for (int round = 0; round < hd_scaled(200); round++)
		CHECK_EQ(hd_run(&(struct hd_config){ .fixed = true, .workers = 1 }, run_shortly, NULL), 7);
	set_flag(&stop, 1);
	join_thread(giver);
	CHECK(sem.waiters.head == NULL && sem.waiters.lock == 0);
	CHECK_EQ(taken + held(), given);
}

/* Plain threads call in while runtimes come and go: each call finds one that runs, or none. */
static void *call_in(void *arg)
{
	while (!read_flag(&stop)) {
		hd_pid pid = hd_spawn(give_signals, NULL); /* each_gives is 0 */
		if (pid > 0) {
			int err = hd_join(pid, NULL, HD_FOREVER);
			CHECK(err == 0 || err == -ESRCH || err == -ENXIO);
		} else {
			CHECK(pid == -ENXIO || pid == -ESHUTDOWN);
		}
		int err = hd_hold_open(0);
		CHECK(err == 0 || err == -ENXIO);
		hd_pid victim = __atomic_load_n(&victims[0], __ATOMIC_RELAXED);
		err = hd_suspend(victim, HD_FOREVER);
		CHECK(err == 0 || err == -ESRCH || err == -ENXIO);
		err = hd_resume(victim);
		CHECK(err == 0 || err == -EALREADY || err == -ESRCH || err == -ENXIO);
	}
	return arg;
}

static void *come_and_go(void *arg)
{
	__atomic_store_n(&victims[0], hd_spawn(take_until_the_end, NULL), __ATOMIC_RELAXED);
	hd_sleep(HD_US(100));
	hd_shutdown(0);
	return arg;
}

HD_TEST(race_calls_from_threads_against_the_end_of_the_runtime)
{
	struct plain_thread *callers[2];

	for (int i = 0; i < 2; i++)
		callers[i] = start_thread(call_in, NULL);
	for (int round = 0; round < hd_scaled(300); round++)
		CHECK_EQ(hd_run(&(struct hd_config){ .fixed = true, .workers = 1 }, come_and_go, NULL), 0);
	set_flag(&stop, 1);
	for (int i = 0; i < 2; i++)
		join_thread(callers[i]);
}
