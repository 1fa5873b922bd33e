/* sim/clocks.c - what a run by the clock promises: every thread has a CPU of its own, and pays for what it does.
 *
 * A program of its own: there is one such run in a program's life, and no plan. */
#define _GNU_SOURCE
#include <heddle.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/atomic.h"
#include "os/clock.h"
#include "os/futex.h"
#include "os/lock.h"
#include "sim/runtime/costs.h"

#define SAME(is, should) same(#is, (is), (should))

enum { POINT = 2, RMW = 3, LINE = 100, CLOCK = 20, CALL = 500, WAKE = 4000, WAKING = 30000, OVERSLEEP = 70000 };

static const struct hd__sim_costs costs = {
	.ps = { [HD__SIM_BETWEEN] = 1000 * POINT,
		[HD__SIM_RMW] = 1000 * RMW,
		[HD__SIM_LINE] = 1000 * LINE,
		[HD__SIM_PAUSE] = 1000,
		[HD__SIM_CLOCK] = 1000 * CLOCK,
		[HD__SIM_CALL] = 1000 * CALL,
		[HD__SIM_WAKE] = 1000 * WAKE },
	.waking = WAKING,
	.oversleep = OVERSLEEP,
};

static void same(const char *what, int64_t is, int64_t should)
{
	if (is != should) {
		fprintf(stderr, "%s is %lld, not %lld\n", what, (long long)is, (long long)should);
		exit(1);
	}
}

/* The caller's clock. Reading it takes CLOCK and a point. */
static hd_time now(void)
{
	return hd__os_clock.now(&hd__os_clock);
}

static hd_time begun[2], ended[2];
static _Alignas(64) uint32_t word;
static _Alignas(64) unsigned char lock;
static _Alignas(64) char trace[8];
static int traced;

static void *compute(void *arg)
{
	intptr_t me = (intptr_t)arg;

	begun[me] = now();
	hd__sim_work(HD_MS(1 + me));
	ended[me] = now();
	return NULL;
}

/* The second begins while the first computes, and neither makes the other longer. */
static void threads_compute_at_the_same_time(void)
{
	pthread_t threads[2];

	for (intptr_t i = 0; i < 2; i++)
		SAME(pthread_create(&threads[i], NULL, compute, (void *)i), 0);
	for (int i = 0; i < 2; i++)
		SAME(pthread_join(threads[i], NULL), 0);
	for (int i = 0; i < 2; i++)
		SAME(ended[i] - begun[i], HD_MS(1 + i) + CLOCK + POINT);
	SAME(begun[1] < ended[0], true);
}

static void *note_times(void *arg)
{
	hd__sim_work(HD_US((intptr_t)arg));
	for (int i = 0; i < 2; i++) {
		ld_rlx(&word); /* a point: operations happen in the order of the clocks */
		trace[traced++] = (char)('0' + (intptr_t)arg);
		hd__sim_work(HD_US(10));
	}
	return NULL;
}

static void operations_happen_in_the_order_of_the_clocks(void)
{
	pthread_t threads[3];

	for (intptr_t i = 0; i < 3; i++)
		SAME(pthread_create(&threads[i], NULL, note_times, (void *)(7 - 3 * i)),
		     0); /* 7, 4 and 1 us, all but together */
	for (int i = 0; i < 3; i++)
		SAME(pthread_join(threads[i], NULL), 0);
	same("147147 in the trace", __builtin_memcmp(trace, "147147", 7), 0);
}

static void *sleep_on_word(void *arg)
{
	while (ld_acq(&word) == 0)
		hd__os_futex_wait(&word, 0, HD_FOREVER);
	ended[0] = now();
	return arg;
}

static void a_sleeper_goes_on_when_a_wake_has_reached_it(void)
{
	pthread_t thread;

	SAME(pthread_create(&thread, NULL, sleep_on_word, NULL), 0);
	hd__sim_work(HD_MS(1));
	st_rel(&word, 1);
	begun[0] = now();
	hd__os_futex_wake(&word);
	ended[1] = now();
	SAME(ended[1] - begun[0], POINT + WAKE + CLOCK + POINT); /* what the waker pays */
	SAME(pthread_join(thread, NULL), 0);
	SAME(ended[0] - begun[0], POINT + WAKING + POINT + LINE + CLOCK + POINT); /* the sleeper's load fetches the line */
}

/* The thread before has a copy of the line of `word`: the first operation takes it away. */
static void a_line_is_fetched_from_a_cpu_that_has_a_copy(void)
{
	for (int copies = 1; copies >= 0; copies--) {
		hd_time start = now();
		add_seq(&word, 1);
		SAME(now() - start, POINT + RMW + copies * LINE + CLOCK + POINT);
	}
}

static void a_deadline_is_overslept(void)
{
	uint32_t never = 0;
	hd_time start = now();

	hd__os_futex_wait(&never, 0, start + HD_MS(5));
	SAME(now() - start, HD_MS(5) + OVERSLEEP + CLOCK + POINT);
}

static void *lock_and_compute(void *arg)
{
	hd__lock(&lock);
	hd__sim_work(HD_US(10));
	hd__unlock(&lock);
	return arg;
}

/* Waiting for a lock costs time because its tries do. */
static void holders_of_a_lock_follow_each_other(void)
{
	pthread_t threads[4];
	hd_time start = now();

	for (int i = 0; i < 4; i++)
		SAME(pthread_create(&threads[i], NULL, lock_and_compute, NULL), 0);
	for (int i = 0; i < 4; i++)
		SAME(pthread_join(threads[i], NULL), 0);
	hd_time took = now() - start - 2 * WAKING; /* a thread begins as late as a woken one, and so does the caller after it */
	SAME(took >= HD_US(40) && took < HD_US(50), true);
}

static void *process(void *arg)
{
	hd__sim_work(HD_MS(10));
	return arg;
}

static void *first(void *arg)
{
	hd_time *took = arg, start = hd_now();
	hd_pid pids[8];

	for (int i = 0; i < 8; i++)
		pids[i] = hd_spawn(process, NULL);
	for (int i = 0; i < 8; i++)
		SAME(hd_join(pids[i], NULL, HD_FOREVER), 0);
	*took = hd_now() - start;
	return NULL;
}

/* 80 ms of work: on one worker, and on four, which must be woken first. */
static void workers_work_at_the_same_time(void)
{
	hd_time took[2];

	SAME(hd_run(&(struct hd_config){ .workers = 1, .fixed = true }, first, &took[0]), 0);
	SAME(hd_run(&(struct hd_config){ .workers = 4, .fixed = true }, first, &took[1]), 0);
	SAME(took[0] >= HD_MS(80) && took[0] < HD_MS(81), true);
	SAME(took[1] >= HD_MS(20) && took[1] < HD_MS(40), true);
}

int main(void)
{
	hd__sim_clocks_begin(&costs);
	threads_compute_at_the_same_time();
	operations_happen_in_the_order_of_the_clocks();
	a_sleeper_goes_on_when_a_wake_has_reached_it();
	a_line_is_fetched_from_a_cpu_that_has_a_copy();
	a_deadline_is_overslept();
	holders_of_a_lock_follow_each_other();
	workers_work_at_the_same_time();
	return 0;
}
