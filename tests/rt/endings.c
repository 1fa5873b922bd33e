/* rt/endings.c - however the runtime ends, hd_run returns, and everybody is told. */
#include <errno.h>

#include "harness/process.h"
#include "wait/threads.h"

static void compute(hd_time ns)
{
	hd_time until = kernel_now() + ns;

	while (kernel_now() < until) /* no safe point */
		;
}

static void *return_argument(void *arg)
{
	return arg;
}

/* The second of grace passes while the last process computes; then it ends by itself. */
static void *outlast_the_grace(void *arg)
{
	CHECK_EQ(hd_shutdown(3), 0);
	compute(HD_MS(1200));
	return arg;
}

HD_TEST(ending_after_the_grace_but_in_good_order)
{
	CHECK_EQ(hd_run(NULL, outlast_the_grace, NULL), 3);
	CHECK_EQ(hd_run(NULL, return_argument, NULL), 0);
}

static struct hd_local local;

/* It never waits: it is abandoned at a safe point, and nothing of it is left. */
static void *never_wait(void *arg)
{
	CHECK_EQ(hd_local_set(&local, arg), 0);
	CHECK_EQ(hd_shutdown(4), 0);
	while (arg == NULL)
		hd_checkpoint();
	return arg;
}

HD_TEST(ending_over_a_process_that_never_waits)
{
	CHECK_EQ(hd_run(NULL, never_wait, NULL), 4);
	CHECK_EQ(hd_run(NULL, return_argument, NULL), 0);
}

static void *yield_for_ever(void *arg)
{
	while (arg == NULL)
		hd_yield();
	return arg;
}

static void *leave_yielders(void *arg)
{
	for (int i = 0; i < 10; i++)
		CHECK(hd_spawn_with(&(struct hd_spawn){ .detached = i % 2, .daemon = i % 3 == 0 }, yield_for_ever, NULL) > 0);
	hd_yield();
	CHECK_EQ(hd_shutdown(5), 0);
	return arg;
}

HD_TEST(ending_over_processes_that_only_yield)
{
	CHECK_EQ(hd_run(NULL, leave_yielders, NULL), 5);
	CHECK_EQ(hd_run(NULL, return_argument, NULL), 0);
}

/* A request to a process that never ran comes in right behind the request to end. */
static int stage;
static hd_pid child;
static struct plain_thread *steerer;

static void *end_then_steer(void *arg)
{
	CHECK_EQ(hd_shutdown(6), 0);
	CHECK_EQ(hd_set_priority(child, 30), 0);
	set_flag(&stage, 1);
	return arg;
}

static void *be_steered_late(void *arg)
{
	child = hd_spawn(return_argument, NULL);
	steerer = start_thread(end_then_steer, NULL);
	await_flag(&stage, 1);
	hd_checkpoint(); /* both come in */
	return arg;
}

HD_TEST(ending_with_a_request_on_its_way_to_an_unstarted_process)
{
	CHECK_EQ(hd_run(NULL, be_steered_late, NULL), 6);
	join_thread(steerer);
}

/* Trying is not waiting: whoever called hd_shutdown goes on. */
static int went_on;

static void *try_after_shutdown(void *arg)
{
	struct hd_semaphore s = HD_SEMAPHORE(1);

	CHECK_EQ(hd_shutdown(0), 0);
	CHECK_EQ(hd_semaphore_try_wait(&s), 0);
	CHECK_EQ(hd_semaphore_try_wait(&s), -EAGAIN);
	CHECK_EQ(hd_sleep(0), 0);
	went_on = 1;
	hd_sleep(HD_MS(1));
	went_on = 2;
	return arg;
}

HD_TEST(ending_lets_the_caller_go_on_until_it_waits)
{
	CHECK_EQ(hd_run(NULL, try_after_shutdown, NULL), 0);
	CHECK_EQ(went_on, 1);
}

/* Suspending somebody who is to end does not keep him. */
static int destroyed;

static void count_destroyed(void *value)
{
	(void)value;
	destroyed++;
}

static struct hd_local counted = HD_LOCAL(count_destroyed);
static struct hd_semaphore never;

static void *wait_for_ever(void *arg)
{
	CHECK_EQ(hd_local_set(&counted, &destroyed), 0);
	CHECK_EQ(hd_semaphore_wait(&never, HD_FOREVER), 0);
	return arg;
}

static void *suspend_after_shutdown(void *arg)
{
	hd_pid pid = hd_spawn(wait_for_ever, NULL);

	hd_yield();
	CHECK_EQ(hd_shutdown(0), 0);
	ANY_ANSWER(hd_suspend(pid, 0)); /* it may have ended */
	return arg;
}

HD_TEST(ending_is_not_held_up_by_suspend)
{
	CHECK_EQ(hd_run(NULL, suspend_after_shutdown, NULL), 0);
	CHECK_EQ(destroyed, 1);
	CHECK(never.waiters.head == NULL);
}

/* A plain thread that joins is told when the runtime ends over the one it waits for. */
static void *join_from_thread(void *arg)
{
	struct hd_end end;

	set_flag(&stage, 1);
	CHECK_EQ(hd_join_end(child, &end, HD_FOREVER), 0);
	CHECK_EQ(end.kind, HD_END_KILLED);
	return arg;
}

static void *end_over_a_joiner(void *thread)
{
	child = hd_spawn(wait_for_ever, NULL);
	*(struct plain_thread **)thread = start_thread(join_from_thread, NULL);
	await_flag(&stage, 1);
	hd_sleep(HD_MS(2));
	CHECK_EQ(hd_shutdown(0), 0);
	return NULL;
}

HD_TEST(ending_tells_a_thread_that_joins)
{
	struct plain_thread *thread;

	CHECK_EQ(hd_run(NULL, end_over_a_joiner, &thread), 0);
	join_thread(thread);
}

/* The only thread that can wake us does so and is gone: when nobody else is left, the wake is in the inbox already. */
static struct hd_semaphore last_wake;

static void *wake_and_vanish(void *arg)
{
	hd_semaphore_signal(&last_wake);
	return arg;
}

static void *wait_for_the_last_wake(void *arg)
{
	pthread_t thread;

	CHECK_EQ(pthread_create(&thread, NULL, wake_and_vanish, NULL), 0);
	pthread_detach(thread);
	CHECK_EQ(hd_semaphore_wait(&last_wake, HD_FOREVER), 0);
	return arg;
}

HD_TEST(ending_no_verdict_over_a_wake_that_is_on_its_way)
{
	for (int i = 0; i < hd_scaled(1000); i++)
		CHECK_EQ(hd_run(NULL, wait_for_the_last_wake, NULL), 0);
}
