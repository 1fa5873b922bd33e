/* wait/signals.c - a million signals from four plain threads and a signal handler: none is lost. */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/time.h>

#include "harness/process.h"
#include "wait/threads.h"

#define THREADS 4

static struct hd_semaphore sem;
static int per_thread, finished;
static long handler_gave;

static void on_signal(int sig)
{
	int before = errno;

	(void)sig;
	if (hd_semaphore_signal_from_handler(&sem) == 0)
		__atomic_fetch_add(&handler_gave, 1, __ATOMIC_RELAXED);
	if (errno != before)
		_Exit(3);
}

static void handle(int sig)
{
	struct sigaction action;

	memset(&action, 0, sizeof action);
	action.sa_handler = on_signal;
	action.sa_flags = SA_RESTART;
	CHECK_EQ(sigaction(sig, &action, NULL), 0);
}

static void *give(void *arg)
{
	for (int i = 0; i < per_thread; i++)
		CHECK_EQ(hd_semaphore_signal(&sem), 0);
	__atomic_fetch_add(&finished, 1, __ATOMIC_RELEASE);
	return arg;
}

/* All of them hit a handler that interrupts the worker wherever it is, and the givers. */
static void *pester(void *worker)
{
	while (read_flag(&finished) < THREADS) {
		pthread_kill(*(pthread_t *)worker, SIGUSR1);
		sched_yield();
	}
	return NULL;
}

static void count_signals(int total)
{
	struct plain_thread *threads[THREADS], *pesterer;
	pthread_t worker = pthread_self();
	const struct itimerval often = { { 0, 200 }, { 0, 200 } }, never = { { 0, 0 }, { 0, 0 } };
	long got = 0;

	per_thread = total / THREADS;
	handle(SIGALRM);
	handle(SIGUSR1);
	CHECK_EQ(setitimer(ITIMER_REAL, &often, NULL), 0);
	for (int i = 0; i < THREADS; i++)
		threads[i] = start_thread(give, NULL);
	pesterer = start_thread(pester, &worker);
	for (; got < (long)THREADS * per_thread; got++)
		CHECK_EQ(hd_semaphore_wait(&sem, HD_FOREVER), 0);
	for (int i = 0; i < THREADS; i++)
		join_thread(threads[i]);
	join_thread(pesterer);
	CHECK_EQ(setitimer(ITIMER_REAL, &never, NULL), 0);
	hd_sleep(HD_MS(5)); /* whatever the handlers posted is delivered */
	signal(SIGALRM, SIG_IGN);
	while (hd_semaphore_try_wait(&sem) == 0)
		got++;
	CHECK_EQ(got, (long)THREADS * per_thread + __atomic_load_n(&handler_gave, __ATOMIC_RELAXED));
	CHECK(handler_gave > 0);
	CHECK_EQ(sem.posted, 0);
}

HD_PROCESS_TEST(signals_from_threads_and_handlers_are_never_lost)
{
	if (hd_is_simulated())
		SKIP("signals come in real time");
	count_signals(hd_scaled(400000));
}

HD_PROCESS_STRESS(signals_a_million_from_threads_and_handlers_are_never_lost)
{
	count_signals(1000000);
}

/* A worker that sleeps is woken by a handler, on its own thread or on another. */
static struct hd_semaphore next;

static void *pester_on_demand(void *worker)
{
	for (int i = 0; i < per_thread; i++) {
		CHECK_EQ(hd_semaphore_wait(&next, HD_FOREVER), 0);
		if (i % 2)
			pthread_kill(*(pthread_t *)worker, SIGUSR1);
		else
			raise(SIGUSR1);
	}
	return NULL;
}

HD_PROCESS_TEST(signals_from_a_handler_wake_an_idle_worker)
{
	pthread_t worker = pthread_self();
	struct plain_thread *thread;

	if (hd_is_simulated())
		SKIP("signals come in real time");
	per_thread = hd_scaled(3000);
	handle(SIGUSR1);
	thread = start_thread(pester_on_demand, &worker);
	for (int i = 0; i < per_thread; i++) {
		CHECK_EQ(hd_semaphore_signal(&next), 0);
		CHECK_EQ(hd_semaphore_wait(&sem, HD_FOREVER), 0);
	}
	join_thread(thread);
	CHECK_EQ(handler_gave, per_thread);
	CHECK(!hd_semaphore_is_signaled(&sem));
}

/* What handlers post in the last moment of a runtime that had to abandon a process does not spoil the semaphore for the next. */
static int run_is_over;

static void *post_until_over(void *arg)
{
	while (!read_flag(&run_is_over)) {
		hd_semaphore_signal_from_handler(&sem);
		sched_yield(); /* so that there are not too many to take, where time is virtual */
	}
	return arg;
}

static void *never_end(void *arg)
{
	hd_shutdown(0);
	while (arg == NULL)
		hd_now(); /* a safe point, and time passes where it is virtual */
	return arg;
}

static void *take_from_handler(void *arg)
{
	while (hd_semaphore_try_wait(&sem) == 0)
		;
	CHECK_EQ(hd_semaphore_signal_from_handler(&sem), 0);
	CHECK_EQ(hd_semaphore_wait(&sem, hd_after(HD_SEC(2))), 0);
	return arg;
}

HD_TEST(signals_posted_as_a_runtime_is_abandoned_do_not_spoil_the_next)
{
	struct plain_thread *poster = start_thread(post_until_over, NULL);

	CHECK_EQ(hd_run(NULL, never_end, NULL), 0);
	set_flag(&run_is_over, 1);
	join_thread(poster);
	CHECK_EQ(hd_run(NULL, take_from_handler, NULL), 0);
}

/* Many remote wakes at once: every sleeper hears of its own. */
#define SLEEPERS 64

static struct hd_semaphore own[SLEEPERS], all_done;

static void *sleep_on_own(void *which)
{
	struct hd_semaphore *mine = which;

	for (int i = 0; i < per_thread; i++)
		CHECK_EQ(hd_semaphore_wait(mine, HD_FOREVER), 0);
	CHECK_EQ(hd_semaphore_signal(&all_done), 0);
	return NULL;
}

static void *wake_all(void *arg)
{
	for (int i = 0; i < per_thread; i++)
		for (int k = 0; k < SLEEPERS; k++)
			CHECK_EQ(hd_semaphore_signal(&own[k]), 0);
	return arg;
}

HD_PROCESS_TEST(signals_many_remote_wakes_all_arrive)
{
	struct hd_stats stats;

	per_thread = hd_scaled(2000);
	for (int k = 0; k < SLEEPERS; k++)
		CHECK(hd_spawn(sleep_on_own, &own[k]) > 0);
	hd_yield(); /* now they wait */
	struct plain_thread *waker = start_thread(wake_all, NULL);
	for (int k = 0; k < SLEEPERS; k++)
		CHECK_EQ(hd_semaphore_wait(&all_done, HD_FOREVER), 0);
	join_thread(waker);
	CHECK_EQ(hd_stats(&stats), 0);
	CHECK(stats.remote_wakes > 0);
}
