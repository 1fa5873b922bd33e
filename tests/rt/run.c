/* rt/run.c - the runtime begins, ends, and begins again; what it counts. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "rt/capture.h"

#include <stdlib.h>
#include <sys/resource.h>

#include "life/common.h"

static const struct hd_config one_worker = { .workers = 1, .fixed = true };

static void *spawn_a_few(void *arg)
{
	for (int i = 0; i < 5; i++)
		born(hd_spawn_at(38 + i, nothing, NULL));
	hd_sleep(HD_US(100));
	return arg;
}

HD_TEST(run_returns_0_when_the_last_process_has_ended)
{
	CHECK_EQ(hd_run(&one_worker, nothing, NULL), 0);
	CHECK_EQ(hd_run(&one_worker, spawn_a_few, NULL), 0);
}

static void *take_argument(void *arg)
{
	*(hd_pid *)arg = hd_self();
	CHECK_EQ(hd_priority(hd_self()), 40);
	CHECK_STR(info_of(hd_self()).name, "main");
	return NULL;
}

HD_TEST(run_gives_main_its_argument)
{
	hd_pid pid = 0;

	CHECK_EQ(hd_run(&one_worker, take_argument, &pid), 0);
	CHECK(pid > 0);
	CHECK_EQ(hd_self(), 0);
}

static void *check_fresh_and_leave_a_mess(void *arg)
{
	static struct hd_semaphore never;
	struct hd_stats stats = stats_now();

	CHECK_EQ(stats.spawned, 1);
	CHECK_EQ(stats.ended, 0);
	CHECK_EQ(stats.live_processes, 1);
	CHECK_EQ(stats.live_stacks, 1);
	CHECK_EQ(stats.timers, 0);
	CHECK_EQ(stats.handoffs, 0);
	CHECK_EQ(hd_hold_open(0), 0);

	hd_semaphore_init(&never, 0);
	for (int i = 0; i < 20; i++)
		born(hd_spawn_with(&(struct hd_spawn){ .daemon = true, .suspended = i % 2 }, nothing, NULL));
	CHECK_EQ(hd_join(born(hd_spawn(nothing, NULL)), NULL, HD_FOREVER), 0);
	CHECK_EQ(hd_semaphore_wait(&never, hd_after(HD_US(50))), -ETIMEDOUT);
	if ((intptr_t)arg % 3 == 0)
		CHECK_EQ(hd_shutdown(0), 0);
	return NULL;
}

HD_TEST(run_again_a_hundred_times_finds_nothing_of_the_run_before)
{
	for (int i = 0; i < hd_scaled(100); i++)
		CHECK_EQ(hd_run(&one_worker, check_fresh_and_leave_a_mess, (void *)(intptr_t)i), 0);
}

/* ---- busy ---- */

static void *run_nested(void *arg)
{
	*(int *)arg = hd_run(&one_worker, nothing, NULL);
	return NULL;
}

HD_TEST(run_on_a_process_is_busy)
{
	int answer = 0;

	CHECK_EQ(hd_run(&one_worker, run_nested, &answer), 0);
	CHECK_EQ(answer, -EBUSY);
}

static void run_beside(void *arg)
{
	*(int *)arg = hd_run(&one_worker, nothing, NULL);
}

static void *run_concurrently(void *arg)
{
	on_plain_thread(run_beside, arg);
	return NULL;
}

HD_TEST(second_concurrent_run_is_busy)
{
	int answer = 0;

	CHECK_EQ(hd_run(&one_worker, run_concurrently, &answer), 0);
	CHECK_EQ(answer, -EBUSY);
	CHECK_EQ(hd_run(&one_worker, nothing, NULL), 0);
}

static void *run_elsewhere(void *arg)
{
	int *turns = arg;

	for (int i = 0; i < hd_scaled(50); i++) {
		int err;
		do
			err = hd_run(&one_worker, nothing, NULL);
		while (err == -EBUSY);
		CHECK_EQ(err, 0);
		__atomic_fetch_add(turns, 1, __ATOMIC_RELAXED);
	}
	return NULL;
}

HD_TEST(threads_may_take_turns_in_running)
{
	pthread_t threads[3];
	int turns = 0;

	for (int i = 0; i < 3; i++)
		CHECK_EQ(pthread_create(&threads[i], NULL, run_elsewhere, &turns), 0);
	for (int i = 0; i < 3; i++)
		CHECK_EQ(pthread_join(threads[i], NULL), 0);
	CHECK_EQ(turns, 3 * hd_scaled(50));
}

/* ---- shutdown ---- */

static void *shut_down(void *arg)
{
	CHECK_EQ(hd_shutdown(-1), -EINVAL);
	CHECK_EQ(hd_shutdown(*(int *)arg), 0);
	CHECK_EQ(hd_shutdown(7), -EALREADY);
	CHECK_EQ(hd_spawn(nothing, NULL), -ESHUTDOWN);
	trace("goes on, ");
	hd_sleep(HD_SEC(1000)); /* until it waits */
	trace("never ");
	return NULL;
}

HD_TEST(shutdown_makes_run_return_its_code)
{
	static int codes[] = { 0, 1, 42, 255, INT32_MAX };

	for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++) {
		trace_clear();
		CHECK_EQ(hd_run(&one_worker, shut_down, &codes[i]), codes[i]);
		CHECK_STR(trace_text(), "goes on, ");
	}
}

static void shut_down_from_outside(void *arg)
{
	(void)arg;
	CHECK_EQ(hd_shutdown(-7), -EINVAL);
	CHECK_EQ(hd_shutdown(7), 0);
	int err = hd_shutdown(8);
	CHECK(err == -EALREADY || err == -ENXIO); /* -ENXIO: it has ended by now */
}

static pthread_t outside;

static void *call_shutdown(void *arg)
{
	shut_down_from_outside(arg);
	return NULL;
}

static void *sleep_while_shut_down(void *arg)
{
	CHECK_EQ(pthread_create(&outside, NULL, call_shutdown, NULL), 0);
	if (arg == NULL)
		hd_sleep(HD_SEC(1000));
	while (true)
		hd_checkpoint();
	return NULL;
}

HD_TEST(shutdown_from_a_plain_thread_of_an_idle_runtime)
{
	CHECK_EQ(hd_run(&one_worker, sleep_while_shut_down, NULL), 7);
	pthread_join(outside, NULL);
}

HD_TEST(shutdown_from_a_plain_thread_of_a_busy_runtime)
{
	CHECK_EQ(hd_run(&one_worker, sleep_while_shut_down, &outside), 7);
	pthread_join(outside, NULL);
}

/* ---- whoever is left ---- */

static void note_end(void *value)
{
	trace("%s ", (const char *)value);
}

static struct hd_local last_words = HD_LOCAL(note_end);
static struct hd_semaphore never;

static void speak_at_the_end(const char *words)
{
	CHECK_EQ(hd_local_set(&last_words, (void *)words), 0);
}

static void *left_waiting(void *arg)
{
	speak_at_the_end("waiting");
	CHECK_EQ(hd_semaphore_wait(&never, HD_FOREVER), 0);
	trace("woken ");
	return arg;
}

static void *left_sleeping(void *arg)
{
	speak_at_the_end("sleeping");
	hd_sleep(HD_SEC(1000));
	trace("woken ");
	return arg;
}

static void *left_suspended(void *arg)
{
	speak_at_the_end("suspended");
	CHECK_EQ(hd_suspend(hd_self(), HD_FOREVER), 0);
	hd_sleep(HD_SEC(1000));
	trace("woken ");
	return arg;
}

static void *left_joining(void *arg)
{
	speak_at_the_end("joining");
	CHECK_EQ(hd_join(*(hd_pid *)arg, NULL, HD_FOREVER), 0);
	trace("woken ");
	return NULL;
}

static void *left_ready(void *arg)
{
	speak_at_the_end("ready");
	for (int i = 0; i < 10; i++)
		hd_yield();
	CHECK_EQ(hd_semaphore_wait(&never, HD_FOREVER), 0); /* it goes on until it waits */
	trace("woken ");
	return arg;
}

static void *left_waiting_and_suspended(void *arg)
{
	speak_at_the_end("both");
	CHECK_EQ(hd_semaphore_wait(&never, HD_FOREVER), 0);
	trace("woken ");
	return arg;
}

static void *leave_everybody(void *arg)
{
	static hd_pid sleeping;

	hd_semaphore_init(&never, 0);
	born(hd_spawn_with(&(struct hd_spawn){ .suspended = true }, left_waiting, NULL)); /* never ran: has no last words */
	born(hd_spawn_at(20, left_waiting, NULL));					  /* nor does this one */
	born(hd_spawn_at(41, left_waiting, NULL));
	sleeping = born(hd_spawn_at(41, left_sleeping, NULL));
	born(hd_spawn_at(41, left_suspended, NULL));
	born(hd_spawn_at(41, left_joining, &sleeping));
	born(hd_spawn(left_ready, NULL));
	hd_yield();
	CHECK_EQ(hd_suspend(born(hd_spawn_at(41, left_waiting_and_suspended, NULL)), HD_FOREVER), 0);
	CHECK_EQ(hd_shutdown(3), 0);
	return arg;
}

HD_TEST(whoever_is_left_is_terminated_and_its_locals_destroyed)
{
	static const char *const words[] = { "waiting ", "sleeping ", "suspended ", "joining ", "ready ", "both " };
	size_t length = 0;

	CHECK_EQ(hd_run(&one_worker, leave_everybody, NULL), 3);
	for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
		CHECK_EQ(times_said(trace_text(), words[i]), 1);
		length += strlen(words[i]);
	}
	CHECK_EQ(strlen(trace_text()), length); /* and nothing else was said: nobody was woken */
	CHECK(never.waiters.head == NULL);
}

static void *spin_on_yield(void *arg)
{
	for (;;)
		hd_yield();
	return arg;
}

static void *spin_on_checkpoint(void *arg)
{
	for (;;)
		hd_checkpoint();
	return arg;
}

static void *spin_on_try_wait(void *arg)
{
	static struct hd_semaphore empty;

	for (;;)
		CHECK_EQ(hd_semaphore_try_wait(&empty), -EAGAIN);
	return arg;
}

static void *leave_spinners(void *arg)
{
	hd_entry spinner = *(hd_entry *)arg;

	for (int i = 0; i < 3; i++)
		born(hd_spawn_with(&(struct hd_spawn){ .daemon = true, .priority = 30 }, spinner, NULL));
	born(hd_spawn_with(&(struct hd_spawn){ .daemon = true, .priority = 41 }, left_waiting, NULL));
	hd_sleep(HD_MS(1)); /* so that one of them spins */
	return NULL;
}

static void outlast(hd_entry spinner)
{
	hd_semaphore_init(&never, 0);
	CHECK_EQ(hd_run(&one_worker, leave_spinners, &spinner), 0);
	CHECK_STR(trace_text(), "waiting "); /* the others still ended well */
}

HD_TEST(spinner_on_yield_does_not_keep_the_runtime_from_ending)
{
	outlast(spin_on_yield);
}

HD_TEST(spinner_on_checkpoint_does_not_keep_the_runtime_from_ending)
{
	outlast(spin_on_checkpoint);
}

HD_TEST(spinner_on_try_wait_does_not_keep_the_runtime_from_ending)
{
	outlast(spin_on_try_wait);
}

static void *shut_down_and_spin(void *arg)
{
	born(hd_spawn(spin_on_yield, NULL));
	CHECK_EQ(hd_shutdown(5), 0);
	return spin_on_yield(arg);
}

HD_TEST(shutdown_ends_those_that_spin_on_yield)
{
	CHECK_EQ(hd_run(&one_worker, shut_down_and_spin, NULL), 5);
}

static void wait_in_destructor(void *value)
{
	(void)value;
	trace("begins ");
	hd_sleep(HD_MS(2));
	trace("ends ");
}

static struct hd_local slow = HD_LOCAL(wait_in_destructor);

static void *leave_slowly(void *arg)
{
	CHECK_EQ(hd_local_set(&slow, &slow), 0);
	CHECK_EQ(hd_semaphore_wait(&never, HD_FOREVER), 0);
	return arg;
}

static void *end_before_slow_daemon(void *arg)
{
	hd_semaphore_init(&never, 0);
	born(hd_spawn_with(&(struct hd_spawn){ .daemon = true, .priority = 41 }, leave_slowly, NULL));
	return arg;
}

HD_TEST(destructors_of_whoever_is_left_may_wait)
{
	CHECK_EQ(hd_run(&one_worker, end_before_slow_daemon, NULL), 0);
	CHECK_STR(trace_text(), "begins ends ");
}

static void wait_for_ever(void *value)
{
	(void)value;
	trace("begins ");
	CHECK_EQ(hd_semaphore_wait(&never, HD_FOREVER), 0);
	trace("ends ");
}

static struct hd_local endless = HD_LOCAL(wait_for_ever);

static void *leave_never(void *arg)
{
	CHECK_EQ(hd_local_set(&endless, &endless), 0);
	CHECK_EQ(hd_semaphore_wait(&never, HD_FOREVER), 0);
	return arg;
}

static void *end_before_endless_daemon(void *arg)
{
	hd_semaphore_init(&never, 0);
	born(hd_spawn_with(&(struct hd_spawn){ .daemon = true, .priority = 41 }, leave_never, NULL));
	return arg;
}

/* It is abandoned, and nothing of it stays in the queue that it waited in. */
HD_TEST(destructor_that_waits_for_ever_is_abandoned)
{
	CHECK_EQ(hd_run(&one_worker, end_before_endless_daemon, NULL), 0);
	CHECK_STR(trace_text(), "begins ");
	CHECK(never.waiters.head == NULL);
	CHECK_EQ(hd_semaphore_signal(&never), 0);
	CHECK(hd_semaphore_is_signaled(&never));
}

static void *join_to_the_end(void *arg)
{
	struct hd_end end = { 0 };

	CHECK_EQ(hd_join_end(*(hd_pid *)arg, &end, HD_FOREVER), 0);
	CHECK_EQ(end.kind, HD_END_KILLED);
	CHECK(end.result == NULL);
	return NULL;
}

static void *shut_down_under_a_joiner(void *arg)
{
	static hd_pid victim;

	hd_semaphore_init(&never, 0);
	victim = born(hd_spawn_at(41, left_waiting, NULL));
	CHECK_EQ(pthread_create(&outside, NULL, join_to_the_end, &victim), 0);
	while (hd_join(victim, NULL, 0) != -EBUSY)
		hd_sleep(HD_US(50)); /* until the thread has come */
	CHECK_EQ(hd_shutdown(0), 0);
	return arg;
}

HD_TEST(plain_thread_that_joins_hears_that_the_runtime_killed_it)
{
	CHECK_EQ(hd_run(&one_worker, shut_down_under_a_joiner, NULL), 0);
	CHECK_EQ(pthread_join(outside, NULL), 0);
	CHECK_STR(trace_text(), "waiting ");
}

/* ---- hold open ---- */

static void let_go(void *arg)
{
	(void)arg;
	CHECK_EQ(hd_hold_open(1), 2);
	CHECK_EQ(hd_hold_open(-1), 1);
	CHECK_EQ(hd_hold_open(-2), -EINVAL);
	hd_pid pid = born(spawn_word(say, "spawned from outside"));
	CHECK_EQ(hd_join(pid, NULL, HD_FOREVER), 0);
	CHECK_EQ(hd_hold_open(-1), 0);
}

static void *let_go_later(void *arg)
{
	struct timespec pause = { 0, 5000000 };

	nanosleep(&pause, NULL);
	let_go(arg);
	return NULL;
}

static void *hold(void *arg)
{
	CHECK_EQ(hd_hold_open(0), 0);
	CHECK_EQ(hd_hold_open(-1), -EINVAL);
	CHECK_EQ(hd_hold_open(1), 1);
	CHECK_EQ(pthread_create(&outside, NULL, let_go_later, NULL), 0);
	return arg; /* nobody is left, but the runtime waits for the thread */
}

HD_TEST(hold_open_keeps_the_runtime_without_processes)
{
	CHECK_EQ(hd_run(&one_worker, hold, NULL), 0);
	CHECK_STR(trace_text(), "spawned from outside");
	pthread_join(outside, NULL);
}

static int yields;

static void *let_go_and_yield(void *arg)
{
	for (;; yields++) {
		if (yields == 10)
			CHECK_EQ(hd_hold_open(-1), 0);
		hd_yield();
	}
	return arg;
}

static void *hold_for_daemons(void *arg)
{
	CHECK_EQ(hd_hold_open(1), 1);
	for (int i = 0; i < 2; i++)
		born(hd_spawn_with(&(struct hd_spawn){ .daemon = true }, i == 0 ? let_go_and_yield : spin_on_yield, NULL));
	return arg;
}

/* Only daemons are left, and they never stop: once the runtime is not held open any more, it ends under them. */
HD_TEST(letting_go_ends_the_runtime_under_busy_daemons)
{
	CHECK_EQ(hd_run(&one_worker, hold_for_daemons, NULL), 0);
	CHECK(yields >= 10);
}

static void *only_daemon_waits(void *arg)
{
	born(hd_spawn_with(&(struct hd_spawn){ .daemon = true, .priority = 41 }, left_waiting, NULL));
	return arg;
}

HD_TEST(waiting_daemons_are_no_deadlock)
{
	CHECK_EQ(hd_run(&one_worker, only_daemon_waits, NULL), 0);
	CHECK_STR(trace_text(), "waiting ");
}

/* ---- plain threads come and go ---- */

static int joined_outside;

/* Each spawns and joins until there is no runtime any more. One that shutdown finds is killed, and joined all the same; or
 * the runtime is gone before it can be joined. */
static void *spawn_until_over(void *arg)
{
	for (;;) {
		hd_pid pid = hd_spawn(nothing, NULL);
		if (pid == -ENXIO)
			return arg;
		if (pid == -ESHUTDOWN)
			continue;
		CHECK(pid > 0);
		int err = hd_join(pid, NULL, HD_FOREVER);
		if (err == -ENXIO)
			return arg;
		CHECK_EQ(err, 0);
		__atomic_fetch_add(&joined_outside, 1, __ATOMIC_RELAXED);
	}
}

static pthread_t threads[4];

static void *shut_down_among_spawners(void *arg)
{
	for (int i = 0; i < 4; i++)
		CHECK_EQ(pthread_create(&threads[i], NULL, spawn_until_over, NULL), 0);
	while (stats_now().ended < (uint64_t)hd_scaled(2000))
		hd_sleep(HD_US(100));
	CHECK_EQ(hd_shutdown(9), 0);
	return arg;
}

HD_TEST(shutdown_while_plain_threads_spawn)
{
	CHECK_EQ(hd_run(&one_worker, shut_down_among_spawners, NULL), 9);
	for (int i = 0; i < 4; i++)
		CHECK_EQ(pthread_join(threads[i], NULL), 0);
	CHECK(joined_outside >= hd_scaled(2000) - 4);
}

/* ---- a plain thread that is inside a call for long ---- */

static int inside;

static int stay_inside(const struct hd_process_info *info, void *arg)
{
	(void)info, (void)arg;
	raise_flag(&inside);
	nanosleep(&(struct timespec){ .tv_sec = 1 }, NULL);
	return 1;
}

static void *look_at_length(void *arg)
{
	CHECK_EQ(hd_each_process(stay_inside, NULL), 1);
	return arg;
}

static void *leave_thread_inside(void *arg)
{
	CHECK_EQ(pthread_create(&outside, NULL, look_at_length, NULL), 0);
	while (!is_raised(&inside))
		hd_yield();
	return arg;
}

static long cpu_us(void)
{
	struct rusage u;

	CHECK_EQ(getrusage(RUSAGE_THREAD, &u), 0);
	return (u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1000000L + u.ru_utime.tv_usec + u.ru_stime.tv_usec;
}

static long began_to_end;

static void note_the_end(void *arg)
{
	(void)arg;
	began_to_end = cpu_us();
}

static void *leave_thread_inside_and_note(void *arg)
{
	static struct hd_local at_the_end = HD_LOCAL(note_the_end);

	CHECK_EQ(hd_local_set(&at_the_end, &at_the_end), 0);
	return leave_thread_inside(arg);
}

HD_TEST(run_sleeps_while_a_plain_thread_is_inside_a_call)
{
	CHECK_EQ(hd_run(&one_worker, leave_thread_inside_and_note, NULL), 0);
	long used = cpu_us() - began_to_end;
	CHECK_EQ(pthread_join(outside, NULL), 0);
	CHECK(HD_UNDER_TSAN || used < 100000); /* of a second */
}

/* ---- stats ---- */

static void *ping(void *arg)
{
	for (int i = 0; i < 10; i++)
		hd_yield();
	return arg;
}

/* Its end, which plain_join waits for, then comes as a request from another thread. */
static void wait_until_it_waits(void *arg)
{
	while (state_of(*(hd_pid *)arg) != HD_WAITING)
		;
}

HD_PROCESS_TEST(stats_count_what_happens)
{
	struct hd_semaphore s = HD_SEMAPHORE(0);
	struct hd_stats before = stats_now(), after;
	hd_pid pids[2];

	CHECK_EQ(before.spawned, 1);
	CHECK_EQ(before.ended, 0);
	CHECK_EQ(before.switches, 1);
	CHECK_EQ(before.direct_switches, 0); /* the first was from the idle worker */
	CHECK_EQ(before.live_processes, 1);
	CHECK_EQ(before.live_stacks, 1);

	for (int i = 0; i < 2; i++)
		pids[i] = born(hd_spawn(ping, NULL));
	after = stats_now();
	CHECK_EQ(after.spawned, 3);
	CHECK_EQ(after.live_processes, 3);
	CHECK_EQ(after.live_stacks, 1); /* a stack is bound at the first run */
	hd_yield();
	CHECK_EQ(stats_now().live_stacks, 3);
	CHECK_EQ(stats_now().switches, before.switches + 3);
	CHECK_EQ(stats_now().direct_switches, before.direct_switches + 3);
	join_all(pids, 2);
	after = stats_now();
	CHECK_EQ(after.ended, 2);
	CHECK_EQ(after.live_processes, 1);
	CHECK_EQ(after.live_stacks, 1);
	CHECK(after.cached_stacks >= 2);
	CHECK(after.made_stacks >= after.live_stacks + after.cached_stacks);
	CHECK_EQ(after.preemptions, 0);
	CHECK_EQ(after.idles, before.idles);
	CHECK_EQ(after.timeouts, 0);

	/* simulated time may jump by some ms, and then there is no wait */
	CHECK_EQ(hd_semaphore_wait(&s, hd_after(hd_is_simulated() ? HD_SEC(1) : HD_MS(1))), -ETIMEDOUT);
	after = stats_now();
	CHECK_EQ(after.timeouts, 1);
	CHECK(after.idles > before.idles);
	CHECK_EQ(after.timers, 0);

	born(hd_spawn_at(41, nothing, NULL));
	CHECK_EQ(stats_now().preemptions, 1);
	uint64_t remote = stats_now().remote_wakes;
	hd_pid me = hd_self();
	on_plain_thread(wait_until_it_waits, &me);
	CHECK(stats_now().remote_wakes > remote);
}

HD_PROCESS_TEST(stats_count_pending_deadlines)
{
	for (int i = 0; i < 10; i++)
		born(hd_spawn_with(&(struct hd_spawn){ .daemon = true, .priority = 41 }, left_sleeping, NULL));
	CHECK_EQ(stats_now().timers, 10);
}

/* ---- time ---- */

HD_TEST(now_and_after_without_a_runtime)
{
	hd_time now = hd_now();

	CHECK(now > 0);
	CHECK(hd_now() >= now);
	CHECK(hd_after(HD_SEC(1)) >= now + HD_SEC(1));
	CHECK_EQ(hd_after(HD_FOREVER), HD_FOREVER);
	CHECK_EQ(hd_after(HD_FOREVER - 1), HD_FOREVER);
	CHECK_EQ(HD_US(1), 1000);
	CHECK_EQ(HD_MS(1), 1000000);
	CHECK_EQ(HD_SEC(1), 1000000000);
	CHECK_EQ(hd_sleep(-1), -EINVAL);
	CHECK_EQ(hd_sleep(0), 0);
	CHECK_EQ(hd_sleep(HD_MS(2)), 0);
	CHECK(hd_now() >= now + HD_MS(2));
}

HD_TEST(run_leaves_errno_alone)
{
	errno = EDOM;
	CHECK_EQ(hd_run(&one_worker, spawn_a_few, NULL), 0);
	CHECK_EQ(errno, EDOM);
	capture_begin();
	int err = hd_run(&(struct hd_config){ .quantum = -1 }, nothing, NULL);
	capture_end();
	CHECK_EQ(err, -EINVAL);
	CHECK_EQ(hd_run(&one_worker, NULL, NULL), -EINVAL);
	CHECK_EQ(errno, EDOM);
}
