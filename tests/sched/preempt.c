/* sched/preempt.c - processes that make no heddle calls are preempted all the same, and do not notice. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sched/workers.h"

#define LOW 20
#define HIGH 70

/* Where no signal can come, nothing of this can be shown. */
static void need_signals(void)
{
	if (hd_is_simulated() || hd_is_emulated() || HD_UNDER_TSAN)
		SKIP("no preemption by signals here");
}

static struct hd_stats stats_now(void)
{
	struct hd_stats stats;

	CHECK_EQ(hd_stats(&stats), 0);
	return stats;
}

static long stop, passes;

/* Without a call of any kind. */
static void *loop(void *arg)
{
	while (!value_of(&stop))
		__atomic_add_fetch(&passes, 1, __ATOMIC_RELAXED);
	return arg;
}

static void spawn_loops(int n, int priority, enum hd_policy policy)
{
	set(&stop, 0);
	for (int i = 0; i < n; i++)
		CHECK(hd_spawn_with(&(struct hd_spawn){ .priority = priority, .policy = policy, .detached = true }, loop, NULL) > 0);
}

/* ---- what preempts ---- */

HD_WORKERS_TEST(preempt_deadline_of_a_better_one_takes_a_worker_from_a_loop)
{
	need_signals();
	CHECK_EQ(hd_set_priority(hd_self(), HIGH), 0);
	spawn_loops(workers, LOW, HD_FIFO);
	for (int i = 0; i < 10; i++)
		CHECK_EQ(hd_sleep(HD_MS(2)), 0); /* all workers are in the loop meanwhile */
	CHECK(stats_now().forced > 0);
	set(&stop, 1);
}

static struct hd_semaphore bell = HD_SEMAPHORE(0);

static void *ring_from_outside(void *arg)
{
	for (int i = 0; i < 5; i++) {
		usleep(3000);
		CHECK_EQ(hd_semaphore_signal(&bell), 0);
	}
	return arg;
}

HD_WORKERS_TEST(preempt_wake_by_a_plain_thread_takes_a_worker_from_a_loop)
{
	pthread_t thread;

	need_signals();
	CHECK_EQ(hd_set_priority(hd_self(), HIGH), 0);
	spawn_loops(workers, LOW, HD_FIFO);
	CHECK_EQ(pthread_create(&thread, NULL, ring_from_outside, NULL), 0);
	for (int i = 0; i < 5; i++)
		CHECK_EQ(hd_semaphore_wait(&bell, HD_FOREVER), 0);
	set(&stop, 1);
	CHECK_EQ(pthread_join(thread, NULL), 0);
}

static void *write_from_outside(void *arg)
{
	for (int i = 0; i < 5; i++) {
		usleep(3000);
		CHECK_EQ(write(*(int *)arg, "x", 1), 1);
	}
	return NULL;
}

HD_WORKERS_TEST(preempt_descriptor_of_a_better_one_takes_a_worker_from_a_loop)
{
	pthread_t thread;
	int ends[2];
	char byte;

	need_signals();
	CHECK_EQ(pipe(ends), 0);
	CHECK_EQ(hd_set_priority(hd_self(), HIGH), 0);
	spawn_loops(workers, LOW, HD_FIFO);
	CHECK_EQ(pthread_create(&thread, NULL, write_from_outside, &ends[1]), 0);
	for (int i = 0; i < 5; i++)
		CHECK_EQ(hd_read(ends[0], &byte, 1, HD_FOREVER), 1);
	set(&stop, 1);
	CHECK_EQ(pthread_join(thread, NULL), 0);
	CHECK_EQ(close(ends[0]), 0);
	CHECK_EQ(close(ends[1]), 0);
}

static long woken;

static void *note_that_it_ran(void *arg)
{
	add(&woken, 1);
	return arg;
}

/* The waker has the highest priority and goes on: what it has made ready is for the worker with the loop. */
HD_MANY_WORKERS_TEST(preempt_wake_by_a_process_takes_another_worker_from_a_loop)
{
	need_signals();
	set(&woken, 0);
	CHECK_EQ(hd_set_priority(hd_self(), 80), 0);
	spawn_loops(workers, LOW, HD_FIFO);
	CHECK_EQ(hd_sleep(HD_MS(5)), 0); /* now all other workers are in the loop */
	hd_pid pid = hd_spawn_at(HIGH, note_that_it_ran, NULL);
	CHECK(pid > 0);
	while (!value_of(&woken)) /* no call: this worker is not free */
		;
	CHECK_EQ(hd_join(pid, NULL, HD_FOREVER), 0);
	set(&stop, 1);
}

/* The lowest runner gives way, and nobody else. */
static long order[2];

static void *count_own_loops(void *arg)
{
	long *mine = arg;

	while (!value_of(&stop))
		__atomic_add_fetch(mine, 1, __ATOMIC_RELAXED);
	return NULL;
}


static void *lowest_gives_way(void *arg)
{
	struct hd_process_info of_middle, of_lowest;

	need_signals();
	set(&stop, 0);
	CHECK_EQ(hd_set_priority(hd_self(), HIGH), 0);
	hd_pid middle = hd_spawn_at(LOW + 10, count_own_loops, &order[0]);
	hd_pid lowest = hd_spawn_at(LOW, count_own_loops, &order[1]);
	do { /* if its thread has no CPU just then, it is the other one; but not as often */
		CHECK_EQ(hd_sleep(HD_MS(2)), 0);
		CHECK_EQ(hd_process_info(middle, &of_middle), 0);
		CHECK_EQ(hd_process_info(lowest, &of_lowest), 0);
	} while (of_lowest.switches < of_middle.switches + 15 && of_middle.switches < of_lowest.switches + 15);
	CHECK(of_lowest.switches > of_middle.switches);
	set(&stop, 1);
	CHECK_EQ(hd_join(middle, NULL, HD_FOREVER), 0);
	CHECK_EQ(hd_join(lowest, NULL, HD_FOREVER), 0);
	return arg;
}

/* On a busy machine threads that could run do not, and then it is often the other one: so this is run alone. */
HD_STRESS(preempt_lowest_runner_gives_way)
{
	CHECK_EQ(run_with_workers(2, lowest_gives_way, NULL), 0);
}

/* ---- the first process of another priority ---- */

/* All run at one priority until something better comes where only the worker itself could see it. */
static long better_ran;

static void *sleep_then_run(void *arg)
{
	CHECK_EQ(hd_sleep(HD_MS(3)), 0);
	set(&better_ran, 1);
	return arg;
}

HD_PROCESS_TEST(preempt_priority_that_was_given_to_a_sleeper_counts_when_it_wakes)
{
	need_signals();
	set(&better_ran, 0);
	hd_pid better = hd_spawn(sleep_then_run, NULL);
	CHECK_EQ(hd_yield(), 0);
	CHECK_EQ(hd_set_priority(better, HIGH), 0);
	while (!value_of(&better_ran))
		;
	CHECK_EQ(hd_join(better, NULL, HD_FOREVER), 0);
}

static void *say_that_better_ran(void *arg)
{
	set(&better_ran, 1);
	return arg;
}

static void *spawn_from_outside(void *arg)
{
	usleep(3000);
	CHECK(hd_spawn_with(&(struct hd_spawn){ .priority = HIGH, .detached = true }, say_that_better_ran, NULL) > 0);
	return arg;
}

HD_WORKERS_TEST(preempt_process_that_a_plain_thread_spawns_takes_a_worker_from_a_loop)
{
	pthread_t thread;

	need_signals();
	set(&better_ran, 0);
	set(&stop, 0);
	for (int i = 1; i < workers; i++)
		CHECK(hd_spawn_with(&(struct hd_spawn){ .detached = true }, loop, NULL) > 0);
	CHECK_EQ(pthread_create(&thread, NULL, spawn_from_outside, NULL), 0);
	while (!value_of(&better_ran))
		;
	set(&stop, 1);
	CHECK_EQ(pthread_join(thread, NULL), 0);
}

/* ---- policies ---- */

/* Two loops on one worker: each must see the other get on, often. With HD_FIFO the first would never end. */
static long turns[2], changes;

static void *take_turns(void *arg)
{
	long me = (long)arg, seen = value_of(&turns[1 - me]);

	while (value_of(&changes) < 10) {
		__atomic_add_fetch(&turns[me], 1, __ATOMIC_RELAXED);
		if (value_of(&turns[1 - me]) != seen) {
			seen = value_of(&turns[1 - me]);
			add(&changes, 1);
		}
	}
	return NULL;
}

static void take_turns_with(enum hd_policy policy)
{
	hd_pid pids[2];

	changes = turns[0] = turns[1] = 0;
	for (long i = 0; i < 2; i++)
		CHECK((pids[i] = hd_spawn_with(&(struct hd_spawn){ .policy = policy }, take_turns, (void *)i)) > 0);
	for (int i = 0; i < 2; i++)
		CHECK_EQ(hd_join(pids[i], NULL, HD_FOREVER), 0);
	CHECK(stats_now().expired_quanta >= 9);
}

HD_PROCESS_TEST_WITH(preempt_quantum_of_round_robin_ends_in_a_loop, .quantum = HD_MS(2))
{
	need_signals();
	take_turns_with(HD_RR);
	CHECK(stats_now().forced >= 9);
}

HD_PROCESS_TEST_WITH(preempt_quantum_of_io_policy_ends_in_a_loop, .quantum = HD_MS(2))
{
	need_signals();
	take_turns_with(HD_IO);
}

static void *count_up(void *arg)
{
	long *counter = arg, before = value_of(&passes);

	for (long i = 0; i < 20 * 1000 * 1000; i++)
		__atomic_add_fetch(counter, 1, __ATOMIC_RELAXED);
	CHECK_EQ(value_of(&passes), before); /* the other one has not run meanwhile */
	__atomic_add_fetch(&passes, 1, __ATOMIC_RELAXED);
	return NULL;
}

static long foreign;

static void on_foreign(int signal)
{
	(void)signal;
	add(&foreign, 1);
}

/* Also that a program with one priority sees no signal. */
HD_PROCESS_TEST_WITH(preempt_fifo_loops_of_one_priority_run_one_after_the_other_without_a_signal, .quantum = HD_MS(1))
{
	static long counters[2];
	hd_pid pids[2];

	set(&foreign, 0);
	CHECK(signal(SIGURG, on_foreign) != SIG_ERR);
	for (int i = 0; i < 2; i++)
		CHECK((pids[i] = hd_spawn(count_up, &counters[i])) > 0);
	for (int i = 0; i < 2; i++)
		CHECK_EQ(hd_join(pids[i], NULL, HD_FOREVER), 0);
	CHECK_EQ(stats_now().forced, 0);
	CHECK_EQ(foreign, 0);
}

/* ---- nothing is lost ---- */

/* Work whose result any lost register, vector or flag changes. */
static uint64_t integers(long n)
{
	uint64_t a = 1, b = 2, c = 3, d = 4, e = 5, f = 6, g = 7, h = 8;

	for (long i = 0; i < n; i++) {
		a = a * 6364136223846793005u + b;
		b ^= c << 7 | c >> 57;
		c += d * a;
		d = (d << 13 | d >> 51) - e;
		e ^= f + (uint64_t)i;
		f = f * 3 + (g > h);
		g += h ^ a;
		h = h << 1 | h >> 63;
	}
	return a ^ b ^ c ^ d ^ e ^ f ^ g ^ h;
}

static uint64_t vectors(long n)
{
	typedef uint64_t wide __attribute__((vector_size(64)));
	wide x = { 1, 2, 3, 4, 5, 6, 7, 8 }, y = { 8, 7, 6, 5, 4, 3, 2, 1 };
	uint64_t sum = 0;

	for (long i = 0; i < n; i++) {
		x = x * 2862933555777941757u + y;
		y = (y ^ x >> 17) + 3037000493u;
	}
	for (int i = 0; i < 8; i++)
		sum = sum * 31 + x[i] + y[i];
	return sum;
}

static uint64_t floats(long n)
{
	double a = 1.0, b = 0.5;
	long double c = 1.25L;
	uint64_t bits;

	for (long i = 0; i < n; i++) {
		a = a * 1.0000001 + b;
		b = b * 0.999999 + 1.0 / (a + 2);
		c = c * 1.0000001L + 0.25L;
		if (a > 1e6)
			a -= 1e6;
		if (c > 1e6L)
			c -= 1e6L;
	}
	a += b + (double)c;
	memcpy(&bits, &a, sizeof bits);
	return bits;
}

static int by_value(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	return x < y ? -1 : x > y;
}

static uint64_t sorts(long n)
{
	uint32_t items[512], dice = 1;
	uint64_t sum = 0;

	for (long round = 0; round < n / 5000 + 1; round++) {
		for (int i = 0; i < 512; i++)
			items[i] = dice = dice * 1664525 + 1013904223;
		qsort(items, 512, sizeof items[0], by_value);
		for (int i = 0; i < 512; i++)
			sum = sum * 31 + items[i];
	}
	return sum;
}

static uint64_t allocates(long n)
{
	uint64_t sum = 0;

	for (long i = 0; i < n / 30; i++) {
		char *p = malloc(16 + (size_t)i % 500);
		CHECK(p != NULL);
		p[0] = (char)i;
		sum = sum * 31 + (uint64_t)p[0];
		free(p);
	}
	return sum;
}

static uint64_t prints(long n)
{
	char text[64];
	uint64_t sum = 0;

	for (long i = 0; i < n / 100; i++) {
		snprintf(text, sizeof text, "%ld %lx %.3f", i, i, (double)i / 3);
		for (const char *c = text; *c != 0; c++)
			sum = sum * 31 + (unsigned char)*c;
	}
	return sum;
}

/* Variables below the stack pointer, where the machine has a red zone. */
__attribute__((noinline)) static uint64_t leaf(uint64_t x)
{
	volatile uint64_t below[8] = { x, x + 1, x + 2, x + 3, x + 4, x + 5, x + 6, x + 7 };

	for (int i = 0; i < 50; i++)
		below[i % 8] += below[(i + 3) % 8] * 31;
	return below[0] ^ below[1] ^ below[2] ^ below[3] ^ below[4] ^ below[5] ^ below[6] ^ below[7];
}

static uint64_t leaves(long n)
{
	uint64_t sum = 0;

	for (long i = 0; i < n / 20; i++)
		sum = sum * 31 + leaf((uint64_t)i);
	return sum;
}

/* Down to where its stack has no room for a preemption any more. */
__attribute__((noinline)) static uint64_t deep(uintptr_t top, uint64_t n)
{
	volatile char frame[256];

	frame[0] = (char)n;
	if (top - (uintptr_t)frame < (HD_UNDER_ASAN ? 20 : 60) << 10)
		return deep(top, n + 1) * 31 + (unsigned char)frame[0];
	for (volatile int i = 0; i < 20000; i++)
		;
	return 1;
}

static uint64_t recurses(long n)
{
	return deep((uintptr_t)__builtin_frame_address(0), (uint64_t)n & 1) != 0;
}

/* Calls of heddle's, with work between that makes it stay for long. */
static struct hd_mutex shared;

static uint64_t calls(long n)
{
	uint64_t sum = 0;

	for (long i = 0; i < n / 2000 && hd_self() != 0; i++) {
		sum += integers(3000) & 1;
		for (int j = 0; j < 200; j++) {
			CHECK_EQ(hd_mutex_lock(&shared, HD_FOREVER), 0);
			CHECK_EQ(hd_mutex_unlock(&shared), 0);
		}
	}
	return 1 + (sum > (uint64_t)n);
}

static uint64_t keeps_errno(long n)
{
	for (long i = 0; i < n; i++) {
		errno = (int)(i % 100);
		for (volatile int j = 0; j < 20; j++)
			;
		CHECK_EQ(errno, i % 100);
	}
	return 1;
}

static uint64_t (*const works[])(long n) = { integers, vectors, floats, sorts, allocates, prints, leaves, recurses, calls, keeps_errno };
#define WORKS ((int)(sizeof works / sizeof works[0]))

static struct hog {
	int work;
	long n;
	uint64_t expected;
	long rounds;
} hogs[2 * WORKS];
static long until_stopped;

static void *work_exactly(void *arg)
{
	struct hog *h = arg;

	while (!value_of(&until_stopped)) {
		CHECK_EQ(works[h->work](h->n), h->expected);
		h->rounds++;
	}
	return NULL;
}

/* Hogs of all kinds share the workers by quanta, until so many preemptions have been forced, or enough time has passed: a busy machine has few. */
static void force(uint64_t preemptions, hd_time time)
{
	hd_time end = kernel_now() + time;
	hd_pid pids[2 * WORKS];

	CHECK_EQ(hd_set_priority(hd_self(), HIGH), 0);
	set(&until_stopped, 0);
	for (int i = 0; i < 2 * WORKS; i++) {
		struct hog *h = &hogs[i];
		*h = (struct hog){ .work = i % WORKS, .n = i < WORKS ? 20000 : 50000 };
		h->expected = works[h->work](h->n); /* on a stack of 8 MiB, where nothing is preempted */
		pids[i] = hd_spawn_with(&(struct hd_spawn){ .priority = LOW, .policy = HD_RR }, work_exactly, h);
		CHECK(pids[i] > 0);
	}
	while (stats_now().forced < preemptions && (kernel_now() < end || stats_now().forced == 0))
		CHECK_EQ(hd_sleep(HD_MS(5)), 0);
	set(&until_stopped, 1);
	for (int i = 0; i < 2 * WORKS; i++)
		CHECK_EQ(hd_join(pids[i], NULL, HD_FOREVER), 0);
}

static void *force_some(void *arg)
{
	need_signals();
	force((uint64_t)hd_scaled(300), HD_MS(1500));
	return arg;
}

HD_TEST(preempt_loses_nothing_of_what_was_interrupted)
{
	for (unsigned workers = 1; workers <= 8; workers = workers == 1 ? 2 : workers * 4)
		CHECK_EQ(hd_run(&(struct hd_config){ .workers = workers, .quantum = HD_US(100), .fixed = true }, force_some, NULL), 0);
}

static void *force_many(void *arg)
{
	need_signals();
	force((uint64_t)hd_scaled(40000), HD_SEC(35));
	return arg;
}

HD_STRESS(stress_preempt_loses_nothing)
{
	for (unsigned workers = 1; workers <= 8; workers = workers == 1 ? 2 : workers * 4)
		CHECK_EQ(hd_run(&(struct hd_config){ .workers = workers, .quantum = HD_US(50), .fixed = true }, force_many, NULL), 0);
}

/* A process that was preempted by a signal goes on on its kernel thread. */
static pthread_t (*volatile ask_for_thread)(void) = pthread_self; /* or the compiler would ask once */

static void *stay_on_thread(void *arg)
{
	pthread_t mine = ask_for_thread();

	while (!value_of(&until_stopped))
		CHECK(pthread_equal(ask_for_thread(), mine));
	return arg;
}

HD_MANY_WORKERS_TEST(preempt_keeps_the_kernel_thread)
{
	need_signals();
	set(&until_stopped, 0);
	CHECK_EQ(hd_set_priority(hd_self(), HIGH), 0);
	for (int i = 0; i < 2 * workers; i++)
		CHECK(hd_spawn_with(&(struct hd_spawn){ .priority = LOW, .policy = HD_RR, .detached = true }, stay_on_thread, NULL) > 0);
	for (int i = 0; i < 20; i++)
		CHECK_EQ(hd_sleep(HD_MS(2)), 0);
	set(&until_stopped, 1);
}

/* ---- what is not preempted ---- */

static long ran;

static void *say_that_it_ran(void *arg)
{
	CHECK_EQ(hd_sleep(HD_MS(3)), 0);
	set(&ran, 1);
	return arg;
}

HD_PROCESS_TEST(preempt_waits_while_it_is_disabled)
{
	need_signals();
	set(&ran, 0);
	CHECK_EQ(hd_preempt_disable(), 0);
	CHECK_EQ(hd_preempt_disable(), 0);
	hd_pid better = hd_spawn_at(HIGH, say_that_it_ran, NULL);
	for (hd_time end = kernel_now() + HD_MS(30); kernel_now() < end;)
		CHECK_EQ(value_of(&ran), 0);
	CHECK_EQ(hd_preempt_enable(), 0);
	CHECK_EQ(value_of(&ran), 0); /* once more */
	CHECK_EQ(hd_preempt_enable(), 0);
	CHECK_EQ(value_of(&ran), 1); /* at once */
	CHECK_EQ(hd_preempt_enable(), -EPERM);
	CHECK_EQ(hd_join(better, NULL, HD_FOREVER), 0);
}

HD_PROCESS_TEST(preempt_disable_counts_up_to_its_limit)
{
	for (int i = 0; i < 255; i++)
		CHECK_EQ(hd_preempt_disable(), 0);
	CHECK_EQ(hd_preempt_disable(), -EOVERFLOW);
	for (int i = 0; i < 255; i++)
		CHECK_EQ(hd_preempt_enable(), 0);
	CHECK_EQ(hd_preempt_enable(), -EPERM);
}

HD_TEST(preempt_disable_is_for_processes)
{
	CHECK_EQ(hd_preempt_disable(), -ENOTSUP);
	CHECK_EQ(hd_preempt_enable(), -ENOTSUP);
}

static void *spin_unless_told(void *arg)
{
	set(&ran, 0);
	hd_pid better = hd_spawn_at(HIGH, say_that_it_ran, NULL);
	for (hd_time end = kernel_now() + HD_MS(30); kernel_now() < end;)
		CHECK_EQ(value_of(&ran), 0);
	CHECK_EQ(hd_join(better, NULL, HD_FOREVER), 0);
	CHECK_EQ(stats_now().forced, 0);
	return arg;
}

HD_TEST(preempt_can_be_switched_off)
{
	if (hd_is_simulated())
		SKIP("simulated time may pass so fast that the better one does not sleep");
	CHECK_EQ(hd_run(&(struct hd_config){ .workers = 1, .preempt_signal = -1, .fixed = true }, spin_unless_told, NULL), 0);
	CHECK_EQ(setenv("HEDDLE_PREEMPT_SIGNAL", "off", 1), 0);
	CHECK_EQ(hd_run(&(struct hd_config){ .workers = 1 }, spin_unless_told, NULL), 0);
}

HD_TEST(preempt_signal_out_of_range_is_an_error)
{
	CHECK_EQ(hd_run(&(struct hd_config){ .preempt_signal = 65 }, spin_unless_told, NULL), -EINVAL);
	CHECK_EQ(hd_run(&(struct hd_config){ .preempt_signal = -2 }, spin_unless_told, NULL), -EINVAL);
	CHECK_EQ(setenv("HEDDLE_PREEMPT_SIGNAL", "urgent", 1), 0);
	CHECK_EQ(hd_run(NULL, spin_unless_told, NULL), -EINVAL);
}

/* ---- signals of the program's own ---- */

static void *send_its_own(void *arg)
{
	need_signals();
	set(&foreign, 0);
	CHECK_EQ(hd_set_priority(hd_self(), HIGH), 0);
	spawn_loops(1, LOW, HD_FIFO);
	for (int i = 0; i < 5; i++) {
		CHECK_EQ(hd_sleep(HD_MS(2)), 0);
		CHECK_EQ(kill(getpid(), SIGURG), 0);
	}
	set(&stop, 1);
	CHECK(stats_now().forced > 0);
	return arg;
}

HD_TEST(preempt_signal_that_others_send_is_the_programs)
{
	struct sigaction mine = { .sa_handler = on_foreign }, now;

	CHECK_EQ(sigaction(SIGURG, &mine, NULL), 0);
	CHECK_EQ(run_with_workers(1, send_its_own, NULL), 0);
	CHECK_EQ(foreign, 5);
	CHECK_EQ(sigaction(SIGURG, NULL, &now), 0);
	CHECK(now.sa_handler == on_foreign);
	CHECK_EQ(raise(SIGURG), 0);
	CHECK_EQ(foreign, 6);
}

/* Where the program blocks the signal, none may wait for the time when it is the program's again: its default action ends the program. */
static void *outrank_a_loop(void *arg)
{
	need_signals();
	CHECK_EQ(hd_set_priority(hd_self(), HIGH), 0);
	spawn_loops(1, LOW, HD_FIFO);
	for (int i = 0; i < 3; i++)
		CHECK_EQ(hd_sleep(HD_MS(2)), 0);
	set(&stop, 1);
	return arg;
}

static void *stop_after_a_while(void *arg)
{
	while (value_of(&passes) == 0) /* it has not begun */
		usleep(1000);
	usleep(20000);
	set(&stop, 1);
	return arg;
}

HD_TEST(preempt_leaves_no_signal_behind_that_the_program_blocks)
{
	pthread_t thread;
	sigset_t blocked, pending;

	sigemptyset(&blocked);
	sigaddset(&blocked, SIGUSR1);
	CHECK_EQ(pthread_sigmask(SIG_BLOCK, &blocked, NULL), 0);
	set(&passes, 0);
	CHECK_EQ(pthread_create(&thread, NULL, stop_after_a_while, NULL), 0); /* the loop is not preempted */
	CHECK_EQ(hd_run(&(struct hd_config){ .workers = 1, .preempt_signal = SIGUSR1, .fixed = true }, outrank_a_loop, NULL), 0);
	CHECK_EQ(pthread_join(thread, NULL), 0);
	CHECK_EQ(sigpending(&pending), 0);
	CHECK_EQ(sigismember(&pending, SIGUSR1), 0);
}

/* In a forked child the signal is the program's, as it was before, and a runtime of the child's own preempts as any does. */
static void *fork_and_outrank(void *arg)
{
	int status;

	need_signals();
	outrank_a_loop(NULL);
	CHECK(stats_now().forced > 0);
	pid_t child = fork();
	if (child == 0) {
		struct sigaction now;
		bool back = sigaction(SIGURG, NULL, &now) == 0 && now.sa_handler == SIG_DFL;
		_exit(back ? run_with_workers(1, outrank_a_loop, NULL) : 99);
	}
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK(WIFEXITED(status));
	CHECK_EQ(WEXITSTATUS(status), 0);
	return arg;
}

HD_TEST(preempt_works_in_a_runtime_of_a_forked_child)
{
	if (HD_UNDER_ASAN)
		SKIP("the locks of its allocator may stay locked in a forked child: by a thread that was about to start");
	CHECK_EQ(run_with_workers(1, fork_and_outrank, NULL), 0);
}

/* What the thread has come to use for signals while a process was stopped stays so when that process goes on. */
static void *give_another_signal_stack(void *arg)
{
	static char memory[64 << 10];
	stack_t mine = { .ss_sp = memory, .ss_size = sizeof memory }, was;

	CHECK_EQ(hd_sleep(HD_MS(2)), 0);
	CHECK_EQ(sigaltstack(&mine, &was), 0);
	*(stack_t *)arg = was;
	set(&ran, 1);
	return memory;
}

HD_PROCESS_TEST(preempt_keeps_the_signal_stack_that_another_process_has_set)
{
	stack_t before, now;
	void *given;

	need_signals();
	set(&ran, 0);
	hd_pid better = hd_spawn_at(HIGH, give_another_signal_stack, &before);
	while (!value_of(&ran))
		;
	CHECK_EQ(sigaltstack(NULL, &now), 0);
	CHECK_EQ(sigaltstack(&before, NULL), 0);
	CHECK_EQ(hd_join(better, &given, HD_FOREVER), 0);
	CHECK(now.ss_sp == given);
}

/* A handler of the program's runs with signals blocked that other processes should not find blocked. */
static long in_handler;

static void on_user(int signal)
{
	(void)signal;
	set(&in_handler, 1);
	for (hd_time end = kernel_now() + HD_MS(150); kernel_now() < end;)
		CHECK_EQ(value_of(&ran), 0);
	add(&foreign, 1);
}

static void *ring_when_in_handler(void *arg)
{
	while (!value_of(&in_handler))
		usleep(100);
	CHECK_EQ(hd_semaphore_signal(&bell), 0);
	return arg;
}

static void *say_that_it_was_woken(void *arg)
{
	CHECK_EQ(hd_semaphore_wait(&bell, HD_FOREVER), 0);
	set(&ran, 1);
	return arg;
}

static void *be_interrupted(void *arg)
{
	pthread_t thread;

	need_signals();
	hd_pid better = hd_spawn_at(HIGH, say_that_it_was_woken, NULL);
	CHECK_EQ(pthread_create(&thread, NULL, ring_when_in_handler, NULL), 0);
	CHECK_EQ(pthread_kill(pthread_self(), SIGUSR1), 0);
	CHECK_EQ(foreign, 1);
	while (!value_of(&ran))
		;
	CHECK_EQ(hd_join(better, NULL, HD_FOREVER), 0);
	CHECK_EQ(pthread_join(thread, NULL), 0);
	return arg;
}

HD_TEST(preempt_spares_handlers_of_the_program)
{
	struct sigaction mine = { .sa_handler = on_user };

	CHECK_EQ(sigaction(SIGUSR1, &mine, NULL), 0);
	CHECK_EQ(run_with_workers(1, be_interrupted, NULL), 0);
}

/* ---- the end ---- */

static void *loop_for_ever(void *arg)
{
	for (;;)
		__atomic_add_fetch(&passes, 1, __ATOMIC_RELAXED);
	return arg;
}

static void *shut_down_over_loops(void *arg)
{
	need_signals();
	for (long i = 0; i < (long)arg; i++)
		CHECK(hd_spawn_at(LOW, loop_for_ever, NULL) > 0);
	CHECK_EQ(hd_sleep(HD_MS(2)), 0);
	CHECK_EQ(hd_shutdown(7), 0);
	return NULL;
}

HD_TEST(preempt_end_of_the_runtime_does_not_wait_for_loops)
{
	CHECK_EQ(run_with_workers(1, shut_down_over_loops, (void *)1), 7);
	CHECK_EQ(run_with_workers(2, shut_down_over_loops, (void *)3), 7);
}

/* ---- the book ---- */

static enum hd_preempted setting;

/* Example 3.11, with loops that never look up. */
static void *two_real_loops(void *arg)
{
	hd_pid process[2], listed[2];
	struct hd_process_info info;

	need_signals();
	set(&stop, 0);
	for (int i = 0; i < 2; i++)
		CHECK((process[i] = hd_spawn_at(LOW, loop, NULL)) > 0);
	CHECK_EQ(hd_sleep(HD_MS(5)), 0);
	CHECK_EQ(hd_process_info(process[0], &info), 0);
	CHECK_EQ(info.switches, 1);
	CHECK_EQ(hd_process_info(process[1], &info), 0);
	CHECK_EQ(info.switches, 0);
	CHECK_EQ(hd_waiting_at(LOW, listed, 2), 2);
	CHECK_EQ(listed[0], process[setting == HD_PREEMPTED_TAIL ? 1 : 0]);
	CHECK_EQ(listed[1], process[setting == HD_PREEMPTED_TAIL ? 0 : 1]);
	set(&stop, 1);
	for (int i = 0; i < 2; i++)
		CHECK_EQ(hd_join(process[i], NULL, HD_FOREVER), 0);
	return arg;
}

HD_TEST(preempt_loop_goes_to_the_back_or_stays_at_the_front_as_in_the_book)
{
	for (setting = HD_PREEMPTED_TAIL; setting <= HD_PREEMPTED_HEAD; setting++)
		CHECK_EQ(hd_run(&(struct hd_config){ .workers = 1, .preempted = setting, .fixed = true }, two_real_loops, NULL), 0);
}
