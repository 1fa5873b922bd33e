/* rt/deadlock.c - no process can run and nothing can wake one: this is declared, when it is certain, and never before. */
#include "rt/capture.h"

#include <alloca.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "life/common.h"
#include "wait/threads.h"

static const struct hd_config one_worker = { .workers = 1, .fixed = true };

static struct hd_semaphore never;

static void *wait_for_ever(void *arg)
{
	CHECK_EQ(hd_semaphore_wait(&never, HD_FOREVER), 0);
	return arg;
}

static hd_pid main_pid;

static void *wait_and_join(void *arg)
{
	return hd_join(main_pid, NULL, HD_FOREVER) == 0 ? arg : NULL;
}

static void *stop_yourself(void *arg)
{
	CHECK_EQ(hd_suspend(hd_self(), HD_FOREVER), 0);
	return arg;
}

static void *deadlock(void *arg)
{
	hd_semaphore_init(&never, 0);
	main_pid = hd_self();
	born(hd_spawn_with(&(struct hd_spawn){ .name = "child", .priority = 50 }, wait_and_join, NULL));
	born(hd_spawn_at(50, stop_yourself, NULL));
	CHECK_EQ(hd_semaphore_wait(&never, HD_FOREVER), 0);
	trace("woken");
	return arg;
}

static void skip_if_there_is_a_strange_thread(void)
{
	if (hd_is_haunted())
		SKIP("there is a thread that could wake somebody, as far as heddle knows");
}

HD_TEST(deadlock_is_declared_and_reported)
{
	skip_if_there_is_a_strange_thread();
	capture_begin();
	int err = hd_run(&one_worker, deadlock, NULL);
	const char *text = capture_end();

	CHECK_EQ(err, -EDEADLK);
	CHECK_STR(trace_text(), "");
	CHECK(says(text, "heddle: deadlock: no process can run, and nothing can wake one\n"));
	CHECK_EQ(times_said(text, "\n"), 7);
	CHECK(says(text, "heddle:   main #0 of priority 40 waits in hd_semaphore_wait, for "));
	CHECK(says(text, "heddle:     in deadlock, deadlock.c:"));
	CHECK(says(text, "heddle:   child #1 of priority 50 waits in hd_join for main #0, for "));
	CHECK(says(text, "heddle:     in wait_and_join, deadlock.c:"));
	CHECK(says(text, "heddle:   process #2 of priority 50 is suspended, for "));
	CHECK(says(text, "heddle:     in stop_yourself, deadlock.c:"));
	CHECK_EQ(hd_run(&one_worker, nothing, NULL), 0);
}

/* ---- where they wait ---- */

/* Each function on the way has a frame of its own, of any size, and keeps something over the call. */
__attribute__((noinline)) static int wait_deep(int depth, int line)
{
	size_t size = depth % 3 == 0 ? 4000 : 16;
	volatile char room[1000];
	char *more = alloca(size);

	memset(more, depth, size);
	room[0] = room[999] = more[3];
	if (depth == 0)
		CHECK_EQ(hd_semaphore_wait(&never, HD_FOREVER), 0);
	else
		line += wait_deep(depth - 1, line);
	return line + room[0] + more[7];
}

static int call_line;

static void *wait_in_the_deep(void *arg)
{
	call_line = __LINE__ + 1;
	wait_deep(20, (int)(intptr_t)arg);
	return arg;
}

static void *wait_two_deep(void *arg)
{
	call_line = __LINE__ + 1;
	wait_deep(1, (int)(intptr_t)arg);
	return arg;
}

HD_TEST(report_says_where_a_process_waits_however_deep)
{
	char line[64];

	skip_if_there_is_a_strange_thread();
	for (int deep = 0; deep < 2; deep++) {
		capture_begin();
		int err = hd_run(&one_worker, deep ? wait_in_the_deep : wait_two_deep, NULL);
		const char *text = capture_end();
		CHECK_EQ(err, -EDEADLK);
		CHECK_EQ(times_said(text, "in wait_deep, deadlock.c:"), deep ? 4 : 2); /* the innermost ones */
		snprintf(line, sizeof line, "in wait_two_deep, deadlock.c:%d\n", call_line);
		if (!deep)
			CHECK(says(text, line));
	}
}

static struct hd_mutex locked_before;

static void *want_what_the_thread_has(void *arg)
{
	CHECK_EQ(hd_mutex_lock(&locked_before, HD_FOREVER), 0);
	return arg;
}

HD_TEST(report_names_the_thread_that_called_run)
{
	skip_if_there_is_a_strange_thread();
	CHECK_EQ(hd_mutex_lock(&locked_before, HD_FOREVER), 0);
	capture_begin();
	int err = hd_run(&one_worker, want_what_the_thread_has, NULL);
	const char *text = capture_end();
	CHECK_EQ(err, -EDEADLK);
	CHECK(says(text, "main #0 of priority 40 waits in hd_mutex_lock for the thread that called hd_run, for "));
}

static void *lock_and_end(void *arg)
{
	CHECK_EQ(hd_mutex_lock(&locked_before, HD_FOREVER), 0);
	return arg;
}

static void *want_what_the_ended_has(void *arg)
{
	hd_pid keeper = born(hd_spawn_with(&(struct hd_spawn){ .name = "keeper" }, lock_and_end, NULL));

	CHECK_EQ(hd_join(keeper, NULL, HD_FOREVER), 0);
	CHECK_EQ(hd_mutex_lock(&locked_before, HD_FOREVER), 0);
	return arg;
}

HD_TEST(report_says_that_the_owner_has_ended)
{
	skip_if_there_is_a_strange_thread();
	capture_begin();
	int err = hd_run(&one_worker, want_what_the_ended_has, NULL);
	const char *text = capture_end();
	CHECK_EQ(err, -EDEADLK);
	CHECK(says(text, "main #0 of priority 40 waits in hd_mutex_lock for keeper #1, which has ended, for "));
}

/* ---- what is none ---- */

static void *sleep_a_little(void *arg)
{
	hd_sleep(HD_MS(5));
	hd_semaphore_signal(&never);
	return arg;
}

static void *wait_for_sleeper(void *arg)
{
	hd_semaphore_init(&never, 0);
	born(hd_spawn_with(&(struct hd_spawn){ .daemon = true }, sleep_a_little, NULL));
	CHECK_EQ(hd_semaphore_wait(&never, HD_FOREVER), 0);
	return arg;
}

HD_TEST(no_deadlock_while_a_timer_is_pending)
{
	capture_begin();
	int err = hd_run(&one_worker, wait_for_sleeper, NULL);
	const char *text = capture_end();

	CHECK_EQ(err, 0);
	CHECK_STR(text, "");
}

static void *spawn_suspended_and_return(void *arg)
{
	born(hd_spawn_with(&(struct hd_spawn){ .suspended = true, .name = "forgotten" }, nothing, NULL));
	return arg;
}

HD_TEST(suspended_process_that_nobody_can_resume_is_a_deadlock)
{
	skip_if_there_is_a_strange_thread();
	capture_begin();
	int err = hd_run(&one_worker, spawn_suspended_and_return, NULL);
	const char *text = capture_end();

	CHECK_EQ(err, -EDEADLK);
	CHECK(says(text, "forgotten #1 of priority 40 is suspended and has not begun, for "));
	CHECK(says(text, "heddle:     in nothing, common.h:"));
}

static void *wait_many(void *arg)
{
	hd_semaphore_init(&never, 0);
	for (int i = 0; i < 199; i++)
		born(hd_spawn_at(41, wait_for_ever, NULL));
	CHECK_EQ(hd_semaphore_wait(&never, HD_FOREVER), 0);
	return arg;
}

HD_TEST(long_deadlock_report_is_cut)
{
	skip_if_there_is_a_strange_thread();
	capture_begin();
	int err = hd_run(&one_worker, wait_many, NULL);
	const char *text = capture_end();

	CHECK_EQ(err, -EDEADLK);
	CHECK(says(text, "heddle:   and 150 more\n"));
	CHECK_EQ(times_said(text, "waits in hd_semaphore_wait"), 50);
}

/* ---- with threads that heddle did not start ---- */

static const unsigned worker_counts[] = { 1, 2, 8 };
static pthread_t outside;

static void nap(hd_time ns)
{
	nanosleep(&(struct timespec){ ns / HD_SEC(1), ns % HD_SEC(1) }, NULL);
}

/* What a runtime says to stderr while a thread runs `outer` and the first process `inner`, and what hd_run answers. */
static int run_beside(void *(*outer)(void *), hd_entry inner, struct hd_config config, const char **said)
{
	hd_semaphore_init(&never, 0);
	capture_begin();
	CHECK_EQ(pthread_create(&outside, NULL, outer, NULL), 0);
	int err = hd_run(&config, inner, NULL);
	*said = capture_end();
	CHECK_EQ(pthread_join(outside, NULL), 0);
	return err;
}

/* Waits until the report has come, then for longer than it took, makes the worker look up now and then, and at last wakes the
 * waiter. */
static void *wake_after_report(void *arg)
{
	while (strstr(captured(), "stuck: ") == NULL)
		nap(HD_MS(10));
	for (int i = 0; i < 130; i++) {
		CHECK_EQ(hd_set_policy(__atomic_load_n(&main_pid, __ATOMIC_ACQUIRE), i % 2 == 0 ? HD_RR : HD_FIFO), 0);
		nap(HD_MS(10));
	}
	CHECK_EQ(hd_semaphore_signal(&never), 0);
	return arg;
}

static void *wait_once(void *arg)
{
	__atomic_store_n(&main_pid, hd_self(), __ATOMIC_RELEASE);
	CHECK_EQ(hd_semaphore_wait(&never, HD_FOREVER), 0);
	return arg;
}

HD_TEST(with_a_foreign_thread_being_stuck_is_told_once_if_asked_and_slept_through)
{
	const char *said;

	setenv("HEDDLE_WARN", "stuck", 1);
	CHECK_EQ(run_beside(wake_after_report, wait_once, (struct hd_config){ .workers = 1 }, &said), 0);
	CHECK_EQ(times_said(said, "stuck: "), 1);
	CHECK(says(said, "main #0 of priority 40 waits in hd_semaphore_wait, for "));
}

static void *wake_late(void *arg)
{
	nap(HD_MS(1200)); /* the runtime has looked twice by now */
	CHECK_EQ(hd_semaphore_signal(&never), 0);
	return arg;
}

HD_TEST(with_a_foreign_thread_nothing_is_said)
{
	const char *said;

	for (int i = 0; i < 3; i++) {
		CHECK_EQ(run_beside(wake_late, wait_once, (struct hd_config){ .workers = worker_counts[i], .fixed = true },
				    &said),
			 0);
		CHECK_STR(said, "");
	}
}

/* Signals when the runtime has been idle for some time, and ends; for the second signal there is no thread any more. */
static hd_time pause_of_signaller;

static void *signal_and_end(void *arg)
{
	nap(pause_of_signaller);
	CHECK_EQ(hd_semaphore_signal(&never), 0);
	nap(HD_MS(20)); /* the runtime counts it once more */
	return arg;
}

static void *wait_twice(void *arg)
{
	wait_once(NULL);
	trace("once ");
	CHECK_EQ(hd_semaphore_wait(&never, HD_FOREVER), 0);
	trace("twice ");
	return arg;
}

HD_TEST(deadlock_is_declared_when_the_last_foreign_thread_has_ended)
{
	const char *said;

	skip_if_there_is_a_strange_thread();
	for (int i = 0; i < 3; i++) {
		pause_of_signaller = i == 1 ? HD_MS(1300) : HD_MS(20);
		trace_clear();
		struct hd_config config = { .workers = worker_counts[i], .warn_stuck = i == 1, .fixed = true };
		CHECK_EQ(run_beside(signal_and_end, wait_twice, config, &said), -EDEADLK);
		CHECK_STR(trace_text(), "once ");
		CHECK_EQ(times_said(said, "heddle: deadlock: "), 1);
	}
}

/* The thread never calls heddle. */
static void *end_later(void *arg)
{
	nap(pause_of_signaller);
	return arg;
}

HD_TEST(deadlock_is_declared_when_a_thread_that_never_called_heddle_has_ended)
{
	const char *said;

	skip_if_there_is_a_strange_thread();
	for (int i = 0; i < 3; i++) {
		pause_of_signaller = i == 1 ? HD_MS(1300) : HD_MS(20);
		CHECK_EQ(run_beside(end_later, wait_for_ever, (struct hd_config){ .workers = worker_counts[i], .fixed = true },
				    &said),
			 -EDEADLK);
		CHECK_EQ(times_said(said, "heddle: deadlock: "), 1);
	}
}

/* ---- what it costs to look for the end of a foreign thread ---- */

static struct rusage before, after;

static void *measure_and_wake(void *arg)
{
	nap(HD_SEC(1)); /* settle */
	CHECK_EQ(getrusage(RUSAGE_SELF, &before), 0);
	nap(HD_SEC(3));
	CHECK_EQ(getrusage(RUSAGE_SELF, &after), 0);
	CHECK_EQ(hd_semaphore_signal(&never), 0);
	return arg;
}

static long cpu_us(const struct rusage *u)
{
	return (u->ru_utime.tv_sec + u->ru_stime.tv_sec) * 1000000L + u->ru_utime.tv_usec + u->ru_stime.tv_usec;
}

HD_TEST(idle_runtime_beside_a_foreign_thread_hardly_wakes)
{
	const char *said;

	CHECK_EQ(run_beside(measure_and_wake, wait_once, (struct hd_config){ .workers = 2, .fixed = true }, &said), 0);
	if (HD_UNDER_TSAN)
		SKIP("TSan's own thread is never idle");
	CHECK(after.ru_nvcsw - before.ru_nvcsw <= 60);
	CHECK(cpu_us(&after) - cpu_us(&before) < 20000);
}
