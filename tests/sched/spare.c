/* sched/spare.c - workers that are blocked in the kernel, or held by a process that cannot be preempted, hold up no other process: spare ones take their places.
 *
 * No test looks at a clock: what must go on is what ends the block, so that a test without spares never ends. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "os/fault.h"
#include "os/futex.h"
#include "sched/workers.h"

#define MANY 24 /* spares */

static int counts[] = { 1, 2, WORKERS_MAX };

/* With one worker, with two and with eight, and spares. */
static void run_each(hd_entry first)
{
	for (unsigned i = 0; i < sizeof counts / sizeof counts[0]; i++)
		CHECK_EQ(hd_run(&(struct hd_config){ .workers = (unsigned)counts[i], .spares = MANY, .fixed = true }, first,
				(void *)(long)counts[i]),
			 0);
}

static struct hd_stats stats_now(void)
{
	struct hd_stats stats;

	CHECK_EQ(hd_stats(&stats), 0);
	return stats;
}

/* ---- something that blocks a kernel thread until another one ends that ---- */

static int ends[2];
static uint32_t is_open; /* simulated: there is no kernel in which a thread could block in a read */

static void shut_the_door(void)
{
	__atomic_store_n(&is_open, 0, __ATOMIC_SEQ_CST);
	if (!hd_is_simulated())
		CHECK_EQ(pipe(ends), 0);
}

static void wait_at_the_door(void)
{
	char byte;

	while (hd_is_simulated() && !__atomic_load_n(&is_open, __ATOMIC_SEQ_CST))
		hd__os_futex_wait(&is_open, 0, HD_FOREVER);
	if (!hd_is_simulated())
		CHECK_EQ(read(ends[0], &byte, 1), 0);
}

static void open_the_door(void)
{
	__atomic_store_n(&is_open, 1, __ATOMIC_SEQ_CST);
	for (int i = 0; i < 64; i++)
		hd__os_futex_wake(&is_open);
	if (!hd_is_simulated())
		CHECK_EQ(close(ends[1]), 0);
}

static void take_the_door_away(void)
{
	if (!hd_is_simulated())
		CHECK_EQ(close(ends[0]), 0);
}

static long blocked;

static void *block(void *arg)
{
	add(&blocked, 1);
	wait_at_the_door();
	return arg;
}

/* Spawns so many processes that block, into a group. */
static void spawn_blockers(struct hd_group *group, int n)
{
	set(&blocked, 0);
	for (int i = 0; i < n; i++)
		CHECK(hd_group_spawn(group, block, NULL) > 0);
}

/* ---- the others go on ---- */

static long counted, expected;
static struct hd_semaphore all_counted = HD_SEMAPHORE(0);

static void count(void)
{
	if (add(&counted, 1) == expected)
		CHECK_EQ(hd_semaphore_signal(&all_counted), 0);
}

static void *yield_and_count(void *arg)
{
	for (int i = 0; i < 20; i++)
		CHECK_EQ(hd_yield(), 0);
	count();
	return arg;
}

static void await_count(void)
{
	CHECK_EQ(hd_semaphore_wait(&all_counted, HD_FOREVER), 0);
}

static void *open_when_all_have_counted(void *arg)
{
	await_count();
	open_the_door();
	return arg;
}

static void expect(long n)
{
	set(&counted, 0);
	expected = n;
}

static void *block_all_workers(void *arg)
{
	int workers = (int)(long)arg;
	struct hd_group blockers = { 0 }, others = { 0 };

	expect(50);
	shut_the_door();
	spawn_blockers(&blockers, 2 * workers);
	for (int i = 0; i < 50; i++)
		CHECK(hd_group_spawn(&others, yield_and_count, NULL) > 0);
	hd_pid opener = hd_spawn(open_when_all_have_counted, NULL);
	CHECK(opener > 0);
	wait_at_the_door();
	CHECK_EQ(value_of(&counted), 50);
	CHECK(stats_now().handovers >= (unsigned)workers);
	CHECK_EQ(hd_join(opener, NULL, HD_FOREVER), 0);
	CHECK_EQ(hd_group_wait(&others, HD_FOREVER), 0);
	CHECK_EQ(hd_group_wait(&blockers, HD_FOREVER), 0);
	take_the_door_away();
	return NULL;
}

HD_TEST(spare_workers_run_what_is_ready_while_all_others_are_blocked)
{
	run_each(block_all_workers);
}

/* Deadlines, messages to processes at home on blocked workers, and descriptors that these watch. */
static struct hd_semaphore bell = HD_SEMAPHORE(0);
static int fds[2];

static void *sleep_some(void *arg)
{
	for (int i = 0; i < 5; i++)
		CHECK_EQ(hd_sleep(HD_MS(1)), 0);
	count();
	return arg;
}

static void *wait_for_bell(void *arg)
{
	CHECK_EQ(hd_semaphore_wait(&bell, HD_FOREVER), 0);
	count();
	return arg;
}

static void *ring_from_outside(void *arg)
{
	CHECK_EQ(hd_semaphore_signal(&bell), 0);
	return arg;
}

static void *read_a_byte(void *arg)
{
	char byte;

	CHECK_EQ(hd_read(fds[0], &byte, 1, HD_FOREVER), 1);
	count();
	return arg;
}

static void *write_from_outside(void *arg)
{
	CHECK_EQ(write(fds[1], "x", 1), 1);
	return arg;
}

static void *wake_in_all_ways(void *arg)
{
	int workers = (int)(long)arg;
	struct hd_group blockers = { 0 }, others = { 0 };
	pthread_t ringer, writer;

	expect(hd_is_simulated() ? 2 : 3);
	shut_the_door();
	CHECK(hd_group_spawn(&others, sleep_some, NULL) > 0);
	CHECK(hd_group_spawn(&others, wait_for_bell, NULL) > 0);
	if (!hd_is_simulated()) {
		CHECK_EQ(pipe(fds), 0);
		CHECK(hd_group_spawn(&others, read_a_byte, NULL) > 0);
	}
	hd_pid opener = hd_spawn(open_when_all_have_counted, NULL);
	CHECK(opener > 0);
	for (int i = 0; i < 5; i++)
		CHECK_EQ(hd_yield(), 0); /* they wait now, wherever they are at home */
	spawn_blockers(&blockers, 2 * workers);
	CHECK_EQ(pthread_create(&ringer, NULL, ring_from_outside, NULL), 0);
	if (!hd_is_simulated())
		CHECK_EQ(pthread_create(&writer, NULL, write_from_outside, NULL), 0);
	wait_at_the_door();
	CHECK_EQ(value_of(&counted), expected);
	CHECK_EQ(pthread_join(ringer, NULL), 0);
	if (!hd_is_simulated()) {
		CHECK_EQ(pthread_join(writer, NULL), 0);
		CHECK_EQ(close(fds[0]), 0);
		CHECK_EQ(close(fds[1]), 0);
	}
	CHECK_EQ(hd_join(opener, NULL, HD_FOREVER), 0);
	CHECK_EQ(hd_group_wait(&blockers, HD_FOREVER), 0);
	CHECK_EQ(hd_group_wait(&others, HD_FOREVER), 0);
	take_the_door_away();
	return NULL;
}

HD_TEST(spare_workers_serve_deadlines_wakes_and_descriptors_of_blocked_ones)
{
	run_each(wake_in_all_ways);
}

/* A plain thread has a lock that the C library knows, and processes block for it. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long locked, got_it;

static void *hold_the_lock(void *arg)
{
	CHECK_EQ(pthread_mutex_lock(&lock), 0);
	set(&locked, 1);
	CHECK_EQ(hd_semaphore_wait(&bell, HD_FOREVER), 0);
	CHECK_EQ(pthread_mutex_unlock(&lock), 0);
	return arg;
}

static void *want_the_lock(void *arg)
{
	CHECK_EQ(pthread_mutex_lock(&lock), 0);
	got_it++;
	CHECK_EQ(pthread_mutex_unlock(&lock), 0);
	return arg;
}

static void *ring_when_all_have_counted(void *arg)
{
	await_count();
	CHECK_EQ(hd_semaphore_signal(&bell), 0);
	return arg;
}

static void *block_for_a_lock(void *arg)
{
	int workers = (int)(long)arg;
	struct hd_group wanting = { 0 }, others = { 0 };
	pthread_t holder;

	expect(20);
	set(&locked, 0);
	got_it = 0;
	CHECK_EQ(pthread_create(&holder, NULL, hold_the_lock, NULL), 0);
	while (!value_of(&locked))
		sched_yield();
	for (int i = 0; i < 2 * workers; i++)
		CHECK(hd_group_spawn(&wanting, want_the_lock, NULL) > 0);
	for (int i = 0; i < 20; i++)
		CHECK(hd_group_spawn(&others, yield_and_count, NULL) > 0);
	hd_pid ringer = hd_spawn(ring_when_all_have_counted, NULL);
	CHECK(ringer > 0);
	CHECK_EQ(hd_group_wait(&others, HD_FOREVER), 0);
	CHECK_EQ(hd_group_wait(&wanting, HD_FOREVER), 0);
	CHECK_EQ(got_it, 2 * workers);
	CHECK_EQ(value_of(&counted), 20);
	CHECK_EQ(hd_join(ringer, NULL, HD_FOREVER), 0);
	CHECK_EQ(pthread_join(holder, NULL), 0);
	return NULL;
}

HD_TEST(spare_workers_run_what_is_ready_while_others_want_a_plain_threads_mutex)
{
	if (hd_is_simulated())
		SKIP("a simulated thread must not block for a lock of the C library");
	run_each(block_for_a_lock);
}

/* flockfile, held over a call that blocks; and all others print. */
static FILE *file;

static void *hold_the_file(void *arg)
{
	flockfile(file);
	set(&locked, 1);
	wait_at_the_door();
	funlockfile(file);
	return arg;
}

static void *print(void *arg)
{
	CHECK(fputs("a line\n", file) >= 0);
	return arg;
}

static void *block_for_a_file(void *arg)
{
	int workers = (int)(long)arg;
	struct hd_group printing = { 0 }, others = { 0 };
	char line[32];
	int lines = 0;

	CHECK((file = tmpfile()) != NULL);
	expect(20);
	shut_the_door();
	set(&locked, 0);
	hd_pid holder = hd_spawn(hold_the_file, NULL);
	CHECK(holder > 0);
	while (!value_of(&locked))
		CHECK_EQ(hd_yield(), 0); /* on one worker this is where the holder blocks it */
	for (int i = 0; i < 2 * workers; i++)
		CHECK(hd_group_spawn(&printing, print, NULL) > 0);
	for (int i = 0; i < 20; i++)
		CHECK(hd_group_spawn(&others, yield_and_count, NULL) > 0);
	hd_pid opener = hd_spawn(open_when_all_have_counted, NULL);
	CHECK(opener > 0);
	CHECK_EQ(hd_group_wait(&others, HD_FOREVER), 0);
	CHECK_EQ(hd_group_wait(&printing, HD_FOREVER), 0);
	CHECK_EQ(value_of(&counted), 20);
	CHECK_EQ(hd_join(opener, NULL, HD_FOREVER), 0);
	CHECK_EQ(hd_join(holder, NULL, HD_FOREVER), 0);
	rewind(file);
	while (fgets(line, sizeof line, file) != NULL) {
		CHECK_STR(line, "a line\n");
		lines++;
	}
	CHECK_EQ(lines, 2 * workers);
	CHECK_EQ(fclose(file), 0);
	take_the_door_away();
	return NULL;
}

HD_TEST(spare_workers_run_what_is_ready_while_others_want_a_locked_file)
{
	if (hd_is_simulated())
		SKIP("a simulated thread must not block for a lock of the C library");
	run_each(block_for_a_file);
}

/* ---- what a spare keeps ---- */

static int regular;				       /* workers */
static struct hd_semaphore on_spare = HD_SEMAPHORE(0); /* a process runs on a spare */

static void come_to_spare(void)
{
	while (worker_of(hd_self()) < regular)
		CHECK_EQ(hd_sleep(HD_US(200)), 0);
}

static void *stay_on_spare(void *arg)
{
	come_to_spare();
	CHECK_EQ(hd_semaphore_signal(&on_spare), 0);
	return arg;
}

static void wait_until_spares_rest(void)
{
	while (stats_now().spares_active > 0)
		CHECK_EQ(hd_sleep(HD_US(500)), 0);
}

static void *sleep_on_spare(void *arg)
{
	stay_on_spare(arg);
	CHECK_EQ(hd_semaphore_wait(&bell, HD_FOREVER), 0); /* its home is the spare, which rests when the bell rings */
	while (worker_of(hd_self()) >= regular)
		CHECK_EQ(hd_yield(), 0);
	CHECK_EQ(hd_sleep(HD_MS(2)), 0);
	return arg;
}

static void *nap_on_spare(void *arg)
{
	stay_on_spare(arg);
	CHECK_EQ(hd_sleep(HD_MS(20)), 0);
	return arg;
}

static void *open_when_on_spare(void *arg)
{
	CHECK_EQ(hd_semaphore_wait(&on_spare, HD_FOREVER), 0);
	open_the_door();
	return arg;
}

/* Blocks all regular workers until `entry` has said that it runs on a spare. Returns its pid. The blockers are pinned, for such a process begins on no spare; and the caller
 * keeps its worker, the first one, until all others are blocked. */
static hd_pid run_on_spare(int workers, hd_entry entry)
{
	struct hd_group blockers = { 0 };

	regular = workers;
	set(&blocked, 0);
	shut_the_door();
	CHECK_EQ(hd_pin(), 0);
	CHECK_EQ(hd_yield(), 0);
	CHECK(worker_of(hd_self()) < regular);
	for (int i = 1; i < workers; i++)
		CHECK(hd_spawn_with(&(struct hd_spawn){ .group = &blockers, .pinned = true }, block, NULL) > 0);
	while (value_of(&blocked) < workers - 1)
		sched_yield();
	hd_pid pid = hd_spawn(entry, NULL), opener = hd_spawn(open_when_on_spare, NULL);
	CHECK(pid > 0 && opener > 0);
	wait_at_the_door();
	CHECK_EQ(hd_join(opener, NULL, HD_FOREVER), 0);
	CHECK_EQ(hd_group_wait(&blockers, HD_FOREVER), 0);
	CHECK_EQ(hd_unpin(), 0);
	take_the_door_away();
	return pid;
}

static void *come_home(void *arg)
{
	pthread_t ringer;

	CHECK_EQ(hd_pin(), 0); /* the caller does not go to a spare */
	hd_pid pid = run_on_spare((int)(long)arg, sleep_on_spare);
	wait_until_spares_rest();
	CHECK(stats_now().spares > 0);
	CHECK_EQ(pthread_create(&ringer, NULL, ring_from_outside, NULL), 0);
	CHECK_EQ(hd_join(pid, NULL, HD_FOREVER), 0);
	CHECK_EQ(pthread_join(ringer, NULL), 0);
	pid = run_on_spare((int)(long)arg, nap_on_spare);
	CHECK_EQ(hd_join(pid, NULL, HD_FOREVER), 0);
	wait_until_spares_rest();
	return NULL;
}

HD_TEST(spare_workers_rest_when_the_others_are_back_and_what_was_theirs_goes_on_elsewhere)
{
	run_each(come_home);
}

static void *pin_on_spare(void *arg)
{
	come_to_spare();
	CHECK_EQ(hd_pin(), 0);
	int64_t thread = hd_is_simulated() ? 0 : gettid();
	CHECK_EQ(hd_semaphore_signal(&on_spare), 0);
	for (int i = 0; i < 20; i++) {
		CHECK_EQ(hd_yield(), 0);
		CHECK_EQ(hd_sleep(HD_US(300)), 0);
		CHECK(worker_of(hd_self()) >= regular);
		CHECK_EQ(hd_is_simulated() ? 0 : gettid(), thread);
	}
	CHECK_EQ(hd_unpin(), 0);
	while (worker_of(hd_self()) >= regular) /* the blockers are back, or come back soon */
		CHECK_EQ(hd_sleep(HD_US(300)), 0);
	return arg;
}

static void *pin_there(void *arg)
{
	hd_pid pid = run_on_spare((int)(long)arg, pin_on_spare);

	CHECK_EQ(hd_join(pid, NULL, HD_FOREVER), 0);
	wait_until_spares_rest();
	return NULL;
}

HD_TEST(spare_workers_keep_what_is_pinned_there_until_it_is_not)
{
	run_each(pin_there);
}

/* ---- runners that cannot be preempted ---- */

static long stop;

static void *hog(void *arg)
{
	CHECK_EQ(hd_preempt_disable(), 0);
	add(&blocked, 1);
	while (!value_of(&stop))
		sched_yield(); /* simulated: a point; else a busy machine goes on sooner */
	CHECK_EQ(hd_preempt_enable(), 0);
	return arg;
}

static void *stop_hogs(void *arg)
{
	set(&stop, 1);
	return arg;
}

static void *hog_all_workers(void *arg)
{
	int workers = (int)(long)arg;
	struct hd_group hogs = { 0 };
	hd_pid better;

	if (hd_is_simulated())
		return NULL; /* it has no CPU time, so that no process is seen to compute */
	for (int round = 0; round < 3; round++) {
		set(&stop, 0);
		set(&blocked, 0);
		CHECK_EQ(hd_set_priority(hd_self(), 70), 0);
		for (int i = 0; i < workers; i++)
			CHECK(hd_spawn_with(&(struct hd_spawn){ .priority = 20, .group = &hogs }, hog, NULL) > 0);
		CHECK_EQ(hd_sleep(HD_MS(3)), 0); /* every worker is a hog's now, or the caller comes back to one that is not */
		better = hd_spawn_at(70, stop_hogs, NULL);
		CHECK(better > 0);
		CHECK_EQ(hd_set_priority(hd_self(), 10), 0); /* now all of them are the hogs' */
		CHECK_EQ(hd_join(better, NULL, HD_FOREVER), 0);
		CHECK_EQ(hd_group_wait(&hogs, HD_FOREVER), 0);
	}
	return NULL;
}

HD_TEST(spare_workers_run_a_higher_priority_when_no_worker_can_be_taken)
{
	run_each(hog_all_workers);
}

static void *sleep_above_hogs(void *arg)
{
	int workers = (int)(long)arg;
	struct hd_group hogs = { 0 };

	if (hd_is_simulated())
		return NULL;
	set(&stop, 0);
	CHECK_EQ(hd_set_priority(hd_self(), 70), 0);
	for (int i = 0; i < workers; i++)
		CHECK(hd_spawn_with(&(struct hd_spawn){ .priority = 20, .group = &hogs }, hog, NULL) > 0);
	for (int i = 0; i < 20; i++)
		CHECK_EQ(hd_sleep(HD_MS(1)), 0); /* the caller runs on spares by now, and its deadlines are theirs */
	set(&stop, 1);
	CHECK_EQ(hd_group_wait(&hogs, HD_FOREVER), 0);
	wait_until_spares_rest();
	return NULL;
}

HD_TEST(spare_workers_serve_deadlines_above_runners_that_cannot_be_preempted)
{
	run_each(sleep_above_hogs);
}

/* ---- how many, and when none ---- */

static int64_t cpu_time(void)
{
	struct timespec t;

	CHECK_EQ(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t), 0);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void *compute(void *arg)
{
	for (int64_t from = cpu_time(); cpu_time() - from < HD_MS(15);)
		;
	return arg;
}

static void *compute_on_all(void *arg)
{
	struct hd_group group = { 0 };

	for (int i = 0; i < 4 * (int)(long)arg; i++)
		CHECK(hd_group_spawn(&group, compute, NULL) > 0);
	CHECK_EQ(hd_group_wait(&group, HD_FOREVER), 0);
	CHECK_EQ(stats_now().spares, 0);
	return NULL;
}

HD_TEST(spare_workers_are_not_started_for_processes_that_compute)
{
	if (hd_is_simulated())
		SKIP("computing takes no time here");
	if (HD_UNDER_TSAN || HD_UNDER_ASAN)
		SKIP("a sanitizer has locks, and sleeps for them");
	run_each(compute_on_all);
}

static void *count_spares(void *arg)
{
	long n = (long)arg;
	struct hd_group blockers = { 0 };

	shut_the_door();
	spawn_blockers(&blockers, 8);
	while (value_of(&blocked) < 1 + n)
		sched_yield();
	CHECK_EQ(stats_now().spares, (unsigned)n);
	open_the_door();
	CHECK_EQ(hd_group_wait(&blockers, HD_FOREVER), 0);
	take_the_door_away();
	return NULL;
}

HD_TEST(spare_workers_are_no_more_than_were_allowed)
{
	/* one of two workers is kept by the first process, which only looks; the other one and n spares block */
	for (long n = 1; n < 4; n++)
		CHECK_EQ(hd_run(&(struct hd_config){ .workers = 2, .spares = (int)n, .fixed = true }, count_spares, (void *)n),
			 0);
}

static void *sleep_in_kernel(void *arg)
{
	hd_pid pid = hd_spawn(yield_and_count, NULL);

	CHECK(pid > 0);
	usleep(20000);
	CHECK_EQ(stats_now().spares, 0);
	CHECK_EQ(hd_join(pid, NULL, HD_FOREVER), 0);
	return arg;
}

HD_TEST(spare_workers_are_none_for_one_worker_or_if_told_so)
{
	CHECK_EQ(hd_run(&(struct hd_config){ .workers = 1, .fixed = true }, sleep_in_kernel, NULL), 0);
	CHECK_EQ(hd_run(&(struct hd_config){ .workers = 1, .spares = -1, .fixed = true }, sleep_in_kernel, NULL), 0);
	CHECK_EQ(hd_run(&(struct hd_config){ .workers = 2, .spares = -1, .fixed = true }, sleep_in_kernel, NULL), 0);
}

static void *wait_for_ever(void *arg)
{
	hd_pid pid = run_on_spare((int)(long)arg, stay_on_spare);

	CHECK_EQ(hd_join(pid, NULL, HD_FOREVER), 0);
	return hd_semaphore_wait(&bell, HD_FOREVER) == 0 ? arg : NULL; /* in vain */
}

HD_TEST(spare_workers_that_rest_do_not_hide_a_deadlock)
{
	if (hd_is_haunted())
		SKIP("there is a thread that could wake a process, as far as heddle knows");
	for (unsigned i = 0; i < sizeof counts / sizeof counts[0]; i++)
		CHECK_EQ(hd_run(&(struct hd_config){ .workers = (unsigned)counts[i], .spares = MANY, .fixed = true },
				wait_for_ever, (void *)(long)counts[i]),
			 -EDEADLK);
}

static void *shut_down_beside_spares(void *arg)
{
	hd_pid pid = run_on_spare((int)(long)arg, nap_on_spare);

	CHECK(pid > 0);
	CHECK_EQ(hd_shutdown(0), 0);
	return NULL;
}

HD_TEST(spare_workers_end_with_the_runtime)
{
	for (int i = 0; i < 3; i++)
		run_each(shut_down_beside_spares);
}

/* No kernel thread can be had: the program goes on as far as it can. */
static void *block_without_threads(void *arg)
{
	int workers = (int)(long)arg;
	hd_pid pid = hd_spawn(yield_and_count, NULL);

	CHECK(pid > 0);
	hd__fault_arm(HD__FAULT_THREAD, 1, true);
	for (int i = 0; i < workers; i++)
		usleep(10000);
	CHECK_EQ(stats_now().spares, 0);
	hd__fault_arm(HD__FAULT_THREAD, 0, false);
	CHECK_EQ(hd_join(pid, NULL, HD_FOREVER), 0);
	return block_all_workers(arg);
}

HD_TEST(spare_workers_that_cannot_be_started_are_done_without)
{
	run_each(block_without_threads);
}

/* ---- under stress ---- */

enum { PLAYERS = 40 };
static long turns_left, running[PLAYERS], played, handovers;

/* Each player blocks its worker, or gives way, or wakes another one; none is ever on two workers, none is lost. */
static void *play(void *arg)
{
	static struct hd_semaphore turn[PLAYERS];
	long me = (long)arg, n = 0;
	unsigned seed = (unsigned)me + 1;

	while (add(&turns_left, -1) >= 0) {
		CHECK_EQ(add(&running[me], 1), 1);
		seed = seed * 1664525 + 1013904223;
		if (seed >> 28 < 6)
			usleep(1000 + (seed >> 16) % 2000);
		else if (seed >> 28 < 8)
			CHECK_EQ(hd_sleep(HD_US((seed >> 16) % 500)), 0);
		CHECK_EQ(hd_semaphore_signal(&turn[(me + 1) % PLAYERS]), 0);
		CHECK_EQ(add(&running[me], -1), 0);
		if (seed >> 28 > 12)
			while (hd_semaphore_try_wait(&turn[me]) == 0)
				;
		CHECK_EQ(hd_yield(), 0);
		n++;
	}
	add(&played, n);
	return NULL;
}

static void *play_all(void *arg)
{
	struct hd_group players = { 0 };
	long turns = (long)arg;

	set(&turns_left, turns);
	set(&played, 0);
	for (long i = 0; i < PLAYERS; i++)
		CHECK(hd_group_spawn(&players, play, (void *)i) > 0);
	CHECK_EQ(hd_group_wait(&players, HD_FOREVER), 0);
	CHECK_EQ(played, turns);
	add(&handovers, (long)stats_now().handovers);
	return NULL;
}

static void play_with(int workers, long turns)
{
	CHECK_EQ(hd_run(&(struct hd_config){ .workers = (unsigned)workers, .spares = MANY, .fixed = true }, play_all,
			(void *)turns),
		 0);
}

HD_TEST(spare_workers_lose_no_process_and_run_none_twice)
{
	for (unsigned i = 0; i < sizeof counts / sizeof counts[0]; i++)
		play_with(counts[i], hd_is_simulated() ? 200 : 1000);
}

HD_STRESS(spare_workers_lose_no_process_and_run_none_twice_in_thousands_of_hand_overs)
{
	for (unsigned i = 0; i < sizeof counts / sizeof counts[0]; i++)
		for (set(&handovers, 0); value_of(&handovers) < 1000;)
			play_with(counts[i], 5000);
}
