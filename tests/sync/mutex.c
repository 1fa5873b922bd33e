/* sync/mutex.c - what a mutex promises: one owner, whoever it is, and who is next. Priority inheritance is in inherit.c. */
#include "sync/common.h"

static struct hd_mutex mutex;

/* ---- answers ---- */

HD_TEST(mutex_zeroed_memory_is_free)
{
	struct hd_mutex m;

	memset(&m, 0, sizeof m);
	CHECK(!hd_mutex_is_mine(&m));
	CHECK_EQ(hd_mutex_unlock(&m), -EPERM);
	CHECK_EQ(hd_mutex_try_lock(&m), 0);
	CHECK(hd_mutex_is_mine(&m));
	CHECK_EQ(hd_mutex_unlock(&m), 0);
}

/* Runs on a plain thread and on a process alike. */
static void check_depth(unsigned flags)
{
	struct hd_mutex m = HD_MUTEX(flags);

	for (int round = 0; round < 2; round++) {
		CHECK_EQ(hd_mutex_unlock(&m), -EPERM);
		CHECK_EQ(hd_mutex_lock(&m, HD_FOREVER), 0);
		CHECK_EQ(hd_mutex_lock(&m, 0), 0);
		CHECK_EQ(hd_mutex_try_lock(&m), 0);
		for (int depth = 3; depth > 0; depth--) {
			CHECK(hd_mutex_is_mine(&m));
			CHECK_EQ(hd_mutex_unlock(&m), 0);
		}
		CHECK(!hd_mutex_is_mine(&m));
		CHECK_EQ(hd_mutex_unlock(&m), -EPERM);
		hd_mutex_init(&m, flags);
	}
}

HD_TEST(mutex_is_unlocked_as_often_as_locked_on_plain_thread)
{
	for (unsigned flags = 0; flags < 8; flags++)
		check_depth(flags);
}

HD_PROCESS_TEST(mutex_is_unlocked_as_often_as_locked_on_process)
{
	for (unsigned flags = 0; flags < 8; flags++)
		check_depth(flags);
}

HD_PROCESS_TEST(mutex_depth_overflow_is_an_error_and_loses_nothing)
{
	CHECK_EQ(hd_mutex_lock(&mutex, HD_FOREVER), 0);
	mutex.depth = UINT_MAX - 1;
	CHECK_EQ(hd_mutex_lock(&mutex, HD_FOREVER), 0);
	CHECK_EQ(hd_mutex_lock(&mutex, HD_FOREVER), -EOVERFLOW);
	CHECK_EQ(hd_mutex_try_lock(&mutex), -EOVERFLOW);
	CHECK_EQ(hd_mutex_unlock(&mutex), 0);
	CHECK_EQ(hd_mutex_try_lock(&mutex), 0);
	CHECK_EQ(mutex.depth, UINT_MAX);
	mutex.depth = 1;
	CHECK_EQ(hd_mutex_unlock(&mutex), 0);
	CHECK(!hd_mutex_is_mine(&mutex));
}

/* Of a mutex that somebody else has. */
static void *be_foreign(void *arg)
{
	hd_time past[] = { INT64_MIN, -1, 0, hd_now(), hd_after(-HD_SEC(1)), hd_after(HD_MS(1)) };

	CHECK(!hd_mutex_is_mine(&mutex));
	CHECK_EQ(hd_mutex_unlock(&mutex), -EPERM);
	CHECK_EQ(hd_mutex_try_lock(&mutex), -EAGAIN);
	for (size_t i = 0; i < sizeof past / sizeof past[0]; i++)
		CHECK_EQ(hd_mutex_lock(&mutex, past[i]), -ETIMEDOUT);
	CHECK(hd_now() >= past[5]);
	CHECK_EQ(hd_mutex_unlock(&mutex), -EPERM);
	CHECK(queued(&mutex.waiters) == 0);
	return arg;
}

HD_TEST(mutex_is_nobody_elses_among_threads)
{
	for (unsigned flags = 0; flags < 8; flags++) {
		hd_mutex_init(&mutex, flags);
		CHECK_EQ(hd_mutex_lock(&mutex, HD_FOREVER), 0);
		join_thread(start_thread(be_foreign, NULL));
		CHECK(hd_mutex_is_mine(&mutex));
		CHECK_EQ(hd_mutex_unlock(&mutex), 0);
		CHECK_EQ(hd_mutex_unlock(&mutex), -EPERM);
	}
}

HD_PROCESS_TEST(mutex_is_nobody_elses_among_processes)
{
	for (unsigned flags = 0; flags < 8; flags++) {
		hd_mutex_init(&mutex, flags);
		CHECK_EQ(hd_mutex_lock(&mutex, HD_FOREVER), 0);
		run_at(30 + 10 * (flags % 3), be_foreign, NULL);
		join_thread(start_thread(be_foreign, NULL));
		CHECK(hd_mutex_is_mine(&mutex));
		CHECK_EQ(hd_mutex_unlock(&mutex), 0);
		CHECK_EQ(hd_mutex_unlock(&mutex), -EPERM);
	}
}

/* A process and the thread that it runs on are not the same owner. */
HD_TEST(mutex_of_a_thread_is_not_its_processes)
{
	CHECK_EQ(hd_mutex_lock(&mutex, HD_FOREVER), 0);
	CHECK_EQ(hd_run(&(struct hd_config){ .workers = 1, .fixed = true }, be_foreign, NULL), 0);
	CHECK(hd_mutex_is_mine(&mutex));
	CHECK_EQ(hd_mutex_unlock(&mutex), 0);
}

static void *wait_with_errno(void *arg)
{
	errno = 22;
	CHECK_EQ(hd_mutex_lock(&mutex, HD_FOREVER), 0);
	CHECK_EQ(hd_mutex_unlock(&mutex), 0);
	CHECK_EQ(hd_mutex_unlock(&mutex), -EPERM);
	CHECK_EQ(errno, 22);
	return arg;
}

HD_PROCESS_TEST(mutex_calls_leave_errno_alone)
{
	errno = 11;
	CHECK_EQ(hd_mutex_lock(&mutex, HD_FOREVER), 0);
	spawned(hd_spawn_at(50, wait_with_errno, NULL));
	struct plain_thread *thread = start_thread(wait_with_errno, NULL);
	await_queued(&mutex.waiters, 2);
	CHECK_EQ(hd_mutex_unlock(&mutex), 0);
	join_thread(thread);
	CHECK_EQ(errno, 11);
}

/* ---- who is next ---- */

static void *take_turn(void *name)
{
	CHECK_EQ(hd_mutex_lock(&mutex, HD_FOREVER), 0);
	trace("%s ", (const char *)name);
	CHECK_EQ(hd_mutex_unlock(&mutex), 0);
	return NULL;
}

static const char *const names[] = { "50", "70", "60", "80", "45" };
static const int priorities[] = { 50, 70, 60, 80, 45 };

/* Each runs at once, and waits. */
static void queue_five(hd_pid pids[5])
{
	CHECK_EQ(hd_mutex_lock(&mutex, HD_FOREVER), 0);
	for (int i = 0; i < 5; i++)
		pids[i] = spawned(hd_spawn_at(priorities[i], take_turn, (void *)names[i]));
	CHECK_EQ(queued(&mutex.waiters), 5);
}

HD_PROCESS_TEST(mutex_is_had_in_order_of_arrival_whatever_the_priority)
{
	hd_pid pids[5];

	queue_five(pids);
	CHECK_EQ(hd_mutex_unlock(&mutex), 0);
	CHECK_STR(trace_text(), "50 70 60 80 45 ");
}

HD_PROCESS_TEST(mutex_by_priority_is_had_by_the_highest_that_waits)
{
	hd_pid pids[5];

	hd_mutex_init(&mutex, HD_BY_PRIORITY);
	queue_five(pids);
	CHECK_EQ(hd_mutex_unlock(&mutex), 0);
	CHECK_STR(trace_text(), "80 70 60 50 45 ");
}

HD_PROCESS_TEST(mutex_by_priority_is_had_in_order_of_arrival_among_equals)
{
	hd_mutex_init(&mutex, HD_BY_PRIORITY);
	CHECK_EQ(hd_mutex_lock(&mutex, HD_FOREVER), 0);
	static const char *const words[] = { "a", "b", "high", "c", "d" };
	for (int i = 0; i < 5; i++)
		spawned(hd_spawn_at(i == 2 ? 60 : 50, take_turn, (void *)words[i]));
	CHECK_EQ(hd_mutex_unlock(&mutex), 0);
	CHECK_STR(trace_text(), "high a b c d ");
}

HD_PROCESS_TEST(mutex_by_priority_heeds_a_change_while_waiting)
{
	hd_pid pids[5];

	hd_mutex_init(&mutex, HD_BY_PRIORITY);
	queue_five(pids);
	CHECK_EQ(hd_set_priority(pids[3], 42), 0); /* 80 is the last now */
	CHECK_EQ(hd_set_priority(pids[4], 75), 0); /* and 45 the first */
	CHECK_EQ(hd_mutex_unlock(&mutex), 0);
	CHECK_STR(trace_text(), "45 70 60 50 80 ");
}

/* It comes to the tail of its new level, also if it was there before. */
HD_PROCESS_TEST(mutex_by_priority_puts_a_changed_waiter_behind_its_new_equals)
{
	static const char *const words[] = { "a", "b", "c", "d" };
	hd_pid pids[4];

	hd_mutex_init(&mutex, HD_BY_PRIORITY);
	CHECK_EQ(hd_mutex_lock(&mutex, HD_FOREVER), 0);
	for (int i = 0; i < 4; i++)
		pids[i] = spawned(hd_spawn_at(50, take_turn, (void *)words[i]));
	CHECK_EQ(hd_set_priority(pids[0], 60), 0);
	CHECK_EQ(hd_set_priority(pids[2], 60), 0);
	CHECK_EQ(hd_set_priority(pids[0], 50), 0);
	CHECK_EQ(hd_mutex_unlock(&mutex), 0);
	CHECK_STR(trace_text(), "c b d a ");
}

HD_PROCESS_TEST(mutex_in_order_of_arrival_ignores_a_change_of_priority)
{
	hd_pid pids[5];

	queue_five(pids);
	CHECK_EQ(hd_set_priority(pids[4], 75), 0);
	CHECK_EQ(hd_mutex_unlock(&mutex), 0);
	CHECK_STR(trace_text(), "50 70 60 80 45 ");
}

/* A plain thread counts as 40, the middle of the three. */
HD_PROCESS_TEST(mutex_by_priority_ranks_a_thread_as_a_user)
{
	hd_mutex_init(&mutex, HD_BY_PRIORITY);
	CHECK_EQ(hd_mutex_lock(&mutex, HD_FOREVER), 0);
	hd_pid low = spawned(hd_spawn_at(39, take_turn, (void *)"39"));
	await_queued(&mutex.waiters, 1);
	struct plain_thread *thread = start_thread(take_turn, (void *)"thread");
	await_queued(&mutex.waiters, 2);
	spawned(hd_spawn_at(41, take_turn, (void *)"41"));
	CHECK_EQ(queued(&mutex.waiters), 3);
	CHECK_EQ(hd_mutex_unlock(&mutex), 0);
	join_thread(thread);
	CHECK_EQ(hd_join(low, NULL, HD_FOREVER), 0);
	CHECK_STR(trace_text(), "41 thread 39 ");
}

/* Handed over, not freed: nobody comes in between, though the next has not run yet. */
HD_PROCESS_TEST(mutex_is_the_next_waiters_before_it_runs)
{
	hd_mutex_init(&mutex, HD_IN_ORDER);
	CHECK_EQ(hd_mutex_lock(&mutex, HD_FOREVER), 0);
	hd_pid low = spawned(hd_spawn_at(30, take_turn, (void *)"low"));
	await_queued(&mutex.waiters, 1);
	CHECK_EQ(hd_mutex_unlock(&mutex), 0);
	trace("main ");
	CHECK_EQ(hd_mutex_try_lock(&mutex), -EAGAIN);
	CHECK_EQ(hd_mutex_unlock(&mutex), -EPERM);
	CHECK_EQ(hd_join(low, NULL, HD_FOREVER), 0);
	CHECK_EQ(hd_mutex_try_lock(&mutex), 0);
	CHECK_STR(trace_text(), "main low ");
}

HD_PROCESS_TEST(mutex_stays_with_its_owner_until_the_last_unlock)
{
	CHECK_EQ(hd_mutex_lock(&mutex, HD_FOREVER), 0);
	CHECK_EQ(hd_mutex_lock(&mutex, HD_FOREVER), 0);
	spawned(hd_spawn_at(50, take_turn, (void *)"other"));
	CHECK_EQ(hd_mutex_unlock(&mutex), 0);
	trace("main ");
	CHECK_EQ(hd_mutex_unlock(&mutex), 0);
	CHECK_STR(trace_text(), "main other ");
}

static void *give_up_soon(void *arg)
{
	CHECK_EQ(hd_mutex_lock(&mutex, hd_after(HD_MS(1))), -ETIMEDOUT);
	CHECK_EQ(hd_mutex_unlock(&mutex), -EPERM);
	return arg;
}

HD_PROCESS_TEST(mutex_timed_out_waiter_is_skipped)
{
	for (unsigned flags = 0; flags < 8; flags++) {
		trace_clear();
		hd_mutex_init(&mutex, flags);
		CHECK_EQ(hd_mutex_lock(&mutex, HD_FOREVER), 0);
		spawned(hd_spawn_at(50, take_turn, (void *)"first"));
		hd_pid middle = spawned(hd_spawn_at(50, give_up_soon, NULL));
		spawned(hd_spawn_at(50, take_turn, (void *)"third"));
		CHECK_EQ(hd_join(middle, NULL, HD_FOREVER), 0);
		CHECK_EQ(hd_mutex_unlock(&mutex), 0);
		CHECK_STR(trace_text(), "first third ");
	}
}

HD_PROCESS_TEST(mutex_wait_names_its_holder)
{
	CHECK_EQ(hd_mutex_lock(&mutex, HD_FOREVER), 0);
	hd_pid other = spawned(hd_spawn_at(50, take_turn, (void *)"other"));
	struct hd_process_info info = info_on(other);
	CHECK_EQ(info.state, HD_WAITING);
	CHECK_EQ(info.why, HD_WAIT_MUTEX);
	CHECK_EQ(info.holder, hd_self());
	CHECK_EQ(hd_mutex_unlock(&mutex), 0);
}

/* ---- barging ---- */

HD_PROCESS_TEST(mutex_barging_can_be_had_before_the_waiter_that_was_woken)
{
	hd_mutex_init(&mutex, 0);
	CHECK_EQ(hd_mutex_lock(&mutex, HD_FOREVER), 0);
	hd_pid low = spawned(hd_spawn_at(30, take_turn, (void *)"low"));
	await_queued(&mutex.waiters, 1);
	for (int i = 0; i < 3; i++) {
		CHECK_EQ(hd_mutex_unlock(&mutex), 0);
		CHECK_EQ(hd_mutex_try_lock(&mutex), 0);
		trace("main ");
	}
	await_queued(&mutex.waiters, 1); /* it has tried, and waits again */
	CHECK_EQ(hd_mutex_unlock(&mutex), 0);
	CHECK_EQ(hd_join(low, NULL, HD_FOREVER), 0);
	CHECK_STR(trace_text(), "main main main low ");
}

/* Whoever was woken for nothing is the first again. */
HD_PROCESS_TEST(mutex_barging_keeps_the_place_of_who_was_woken_in_vain)
{
	hd_pid pids[2];

	hd_mutex_init(&mutex, 0);
	CHECK_EQ(hd_mutex_lock(&mutex, HD_FOREVER), 0);
	pids[0] = spawned(hd_spawn_at(30, take_turn, (void *)"first"));
	await_queued(&mutex.waiters, 1);
	pids[1] = spawned(hd_spawn_at(30, take_turn, (void *)"second"));
	await_queued(&mutex.waiters, 2);
	CHECK_EQ(hd_mutex_unlock(&mutex), 0);
	CHECK_EQ(hd_mutex_try_lock(&mutex), 0);
	CHECK_EQ(queued(&mutex.waiters), 1);
	await_queued(&mutex.waiters, 2);
	CHECK_EQ(hd_mutex_unlock(&mutex), 0);
	CHECK_EQ(hd_join(pids[0], NULL, HD_FOREVER), 0);
	CHECK_EQ(hd_join(pids[1], NULL, HD_FOREVER), 0);
	CHECK_STR(trace_text(), "first second ");
}

/* It was woken, and ends or gives up before it has it: the wake goes on to the next. */
HD_PROCESS_TEST(mutex_barging_wake_is_not_lost_with_the_one_that_was_woken)
{
	hd_mutex_init(&mutex, 0);
	CHECK_EQ(hd_mutex_lock(&mutex, HD_FOREVER), 0);
	hd_pid a = spawned(hd_spawn_at(30, take_turn, (void *)"a"));
	await_queued(&mutex.waiters, 1);
	hd_pid b = spawned(hd_spawn_at(50, give_up_soon, NULL));
	hd_pid c = spawned(hd_spawn_at(50, take_turn, (void *)"c"));
	CHECK_EQ(hd_mutex_unlock(&mutex), 0);
	CHECK_EQ(hd_mutex_try_lock(&mutex), 0);
	CHECK_EQ(hd_kill(a, 1), 0); /* it finds the mutex taken, and ends */
	CHECK_EQ(end_of(a).kind, HD_END_KILLED);
	CHECK_EQ(hd_join(b, NULL, HD_FOREVER), 0);
	CHECK_EQ(hd_mutex_unlock(&mutex), 0);
	CHECK_EQ(hd_join(c, NULL, HD_FOREVER), 0);
	CHECK_STR(trace_text(), "c ");
}

static hd_time deadline;

static void *wait_until_deadline(void *arg)
{
	(void)arg;
	deadline = hd_after(HD_MS(20));
	int err = hd_mutex_lock(&mutex, deadline);
	if (err == 0)
		CHECK_EQ(hd_mutex_unlock(&mutex), 0);
	return (void *)(long)err;
}

/* The first waiter is woken and suspended before it runs. Returns whether that was before the deadline of the second; *err is what that
 * one was answered. */
static bool suspend_the_woken_one(long *err)
{
	void *result;

	hd_mutex_init(&mutex, 0);
	CHECK_EQ(hd_mutex_lock(&mutex, HD_FOREVER), 0);
	hd_pid woken = spawned(hd_spawn_at(30, take_turn, (void *)"woken"));
	await_queued(&mutex.waiters, 1);
	hd_pid timed = spawned(hd_spawn_at(50, wait_until_deadline, NULL));
	CHECK_EQ(hd_mutex_unlock(&mutex), 0);
	CHECK_EQ(hd_suspend(woken, 0), 0);
	bool in_time = hd_now() < deadline;
	CHECK_EQ(hd_join(timed, &result, HD_FOREVER), 0);
	CHECK_EQ(hd_resume(woken), 0);
	CHECK_EQ(hd_join(woken, NULL, HD_FOREVER), 0);
	*err = (long)result;
	return in_time;
}

/* The second waiter has the mutex before its deadline, or then at the latest. */
HD_PROCESS_TEST(mutex_barging_free_one_is_had_by_a_waiter_whose_deadline_comes)
{
	long err;

	while (!suspend_the_woken_one(&err))
		;
	CHECK_EQ(err, 0);
}

/* On one worker, where a process of a lower priority than ours does not run before we wait. */
HD_PROCESS_TEST(mutex_barging_goes_to_the_next_waiter_if_the_woken_one_is_suspended)
{
	hd_mutex_init(&mutex, 0);
	CHECK_EQ(hd_mutex_lock(&mutex, HD_FOREVER), 0);
	hd_pid woken = spawned(hd_spawn_at(30, take_turn, (void *)"woken"));
	await_queued(&mutex.waiters, 1);
	hd_pid next = spawned(hd_spawn_at(30, take_turn, (void *)"next"));
	await_queued(&mutex.waiters, 2);
	CHECK_EQ(hd_mutex_unlock(&mutex), 0);
	CHECK_EQ(hd_suspend(woken, 0), 0);
	CHECK_EQ(hd_join(next, NULL, HD_FOREVER), 0);
	CHECK_EQ(hd_resume(woken), 0);
	CHECK_EQ(hd_join(woken, NULL, HD_FOREVER), 0);
	CHECK_STR(trace_text(), "next woken ");
}

#define SUSPENDED 300 /* more than fit on a stack as nested calls */

/* However many suspended waiters are before it; and those have it when they are resumed. */
HD_WORKERS_TEST(mutex_barging_passes_by_suspended_waiters)
{
	hd_pid pids[SUSPENDED];
	hd_time now = hd_now();

	(void)workers;
	hd_mutex_init(&mutex, 0);
	CHECK_EQ(hd_mutex_lock(&mutex, HD_FOREVER), 0);
	for (int i = 0; i < SUSPENDED; i++)
		pids[i] = spawned(hd_spawn(take_turn, (void *)""));
	await_queued(&mutex.waiters, SUSPENDED);
	for (int i = 0; i < SUSPENDED; i++)
		CHECK_EQ(hd_suspend(pids[i], HD_FOREVER), 0);
	hd_pid last = spawned(hd_spawn(take_turn, (void *)"last"));
	await_queued(&mutex.waiters, SUSPENDED + 1);
	while (hd_now() < now + HD_MS(2)) /* now they are late, too */
		hd_yield();
	CHECK_EQ(hd_mutex_unlock(&mutex), 0);
	CHECK_EQ(hd_join(last, NULL, HD_FOREVER), 0);
	for (int i = 0; i < SUSPENDED; i++)
		CHECK_EQ(hd_resume(pids[i]), 0);
	for (int i = 0; i < SUSPENDED; i++)
		CHECK_EQ(hd_join(pids[i], NULL, HD_FOREVER), 0);
	CHECK_EQ(hd_mutex_try_lock(&mutex), 0);
	CHECK_EQ(hd_mutex_unlock(&mutex), 0);
}

HD_PROCESS_TEST(mutex_barging_wakes_the_first_waiter_that_is_not_suspended)
{
	hd_pid pids[4];

	hd_mutex_init(&mutex, 0);
	CHECK_EQ(hd_mutex_lock(&mutex, HD_FOREVER), 0);
	static const char *const words[] = { "a", "b", "c", "d" };
	for (int i = 0; i < 4; i++)
		pids[i] = spawned(hd_spawn_at(50, take_turn, (void *)words[i]));
	CHECK_EQ(hd_suspend(pids[0], 0), 0);
	CHECK_EQ(hd_suspend(pids[1], 0), 0);
	CHECK_EQ(hd_mutex_unlock(&mutex), 0);
	CHECK_EQ(hd_join(pids[2], NULL, HD_FOREVER), 0);
	CHECK_EQ(hd_join(pids[3], NULL, HD_FOREVER), 0);
	CHECK_EQ(hd_resume(pids[0]), 0);
	CHECK_EQ(hd_resume(pids[1]), 0);
	CHECK_EQ(hd_join(pids[0], NULL, HD_FOREVER), 0);
	CHECK_EQ(hd_join(pids[1], NULL, HD_FOREVER), 0);
	CHECK_STR(trace_text(), "c d a b ");
}

static struct hd_condition condition;

static void *wait_for_condition(void *name)
{
	CHECK_EQ(hd_mutex_lock(&mutex, HD_FOREVER), 0);
	CHECK_EQ(hd_condition_wait(&condition, &mutex, HD_FOREVER), 0);
	trace("%s ", (const char *)name);
	CHECK_EQ(hd_mutex_unlock(&mutex), 0);
	return NULL;
}

/* The signal woke it to try for the free mutex; processes that come while it has yet to run are later than it. */
HD_PROCESS_TEST(mutex_barging_keeps_the_place_of_a_signalled_waiter)
{
	hd_mutex_init(&mutex, 0);
	hd_pid signalled = spawned(hd_spawn_at(30, wait_for_condition, (void *)"signalled"));
	await_queued(&condition.waiters, 1);
	CHECK_EQ(hd_condition_signal(&condition), 0);
	CHECK_EQ(hd_mutex_try_lock(&mutex), 0);
	hd_pid later = spawned(hd_spawn_at(50, take_turn, (void *)"later"));
	CHECK_EQ(queued(&mutex.waiters), 1);
	await_queued(&mutex.waiters, 2);
	CHECK_EQ(hd_mutex_unlock(&mutex), 0);
	CHECK_EQ(hd_join(signalled, NULL, HD_FOREVER), 0);
	CHECK_EQ(hd_join(later, NULL, HD_FOREVER), 0);
	CHECK_STR(trace_text(), "signalled later ");
}

/* Gives the mutex up and takes it again before the waiter that was woken runs. False: it was handed over. */
static bool barge(void)
{
	CHECK_EQ(hd_mutex_unlock(&mutex), 0);
	int err = hd_mutex_try_lock(&mutex);
	CHECK(err == 0 || err == -EAGAIN);
	if (err == 0)
		await_queued(&mutex.waiters, 1); /* it has tried, and waits again */
	return err == 0;
}

/* A waiter that has tried in vain a millisecond after its call is handed the mutex by the next unlock. */
HD_PROCESS_TEST(mutex_barging_ends_when_a_waiter_has_waited_for_a_millisecond)
{
	bool barged = true;

	hd_mutex_init(&mutex, 0);
	CHECK_EQ(hd_mutex_lock(&mutex, HD_FOREVER), 0);
	hd_pid low = spawned(hd_spawn_at(30, take_turn, (void *)"low"));
	await_queued(&mutex.waiters, 1);
	hd_time late = hd_after(HD_MS(1));
	while (barged && hd_now() < late)
		barged = barge();
	if (barged)
		barged = barge();
	if (barged)
		CHECK(!barge());
	CHECK_EQ(hd_mutex_unlock(&mutex), -EPERM);
	CHECK_EQ(hd_join(low, NULL, HD_FOREVER), 0);
	CHECK_STR(trace_text(), "low ");
}

/* Takes the mutex, is handed it, gives it up, and takes it again, with another waiter behind it that is as late. */
static void *take_turn_twice(void *arg)
{
	CHECK_EQ(hd_mutex_lock(&mutex, HD_FOREVER), 0);
	CHECK(mutex.waiters.head != NULL);
	CHECK_EQ(hd_mutex_unlock(&mutex), 0);
	CHECK_EQ(hd_mutex_try_lock(&mutex), 0);
	trace("twice ");
	CHECK_EQ(hd_mutex_unlock(&mutex), 0);
	return arg;
}

/* If it went from one late waiter to the next, each would have to get a worker while the others wait for the mutex. On many workers that
 * makes them late again: they would queue for it for good. */
HD_PROCESS_TEST(mutex_that_was_handed_over_is_free_afterwards)
{
	hd_mutex_init(&mutex, 0);
	CHECK_EQ(hd_mutex_lock(&mutex, HD_FOREVER), 0);
	hd_pid first = spawned(hd_spawn_at(30, take_turn_twice, NULL));
	hd_pid second = spawned(hd_spawn_at(30, take_turn, (void *)"second"));
	await_queued(&mutex.waiters, 2);
	for (hd_time late = hd_after(HD_MS(2)); hd_now() < late;)
		;
	for (int tries = 0; hd_mutex_is_mine(&mutex); tries++) {
		CHECK(tries < 3);
		CHECK_EQ(hd_mutex_unlock(&mutex), 0);
		int err = hd_mutex_try_lock(&mutex);
		CHECK(err == 0 || err == -EAGAIN);
		if (err == 0)
			await_queued(&mutex.waiters, 2);
	}
	CHECK_EQ(hd_join(first, NULL, HD_FOREVER), 0);
	CHECK_EQ(hd_join(second, NULL, HD_FOREVER), 0);
	CHECK_STR(trace_text(), "twice second ");
}

/* ---- critical ---- */

static void count_up(void *arg)
{
	CHECK(hd_mutex_is_mine(&mutex));
	++*(int *)arg;
}

static void check_critical(void)
{
	int calls = 0;

	CHECK_EQ(hd_mutex_critical(&mutex, count_up, &calls, HD_FOREVER), 0);
	CHECK_EQ(hd_mutex_critical(&mutex, count_up, &calls, 0), 0);
	CHECK(!hd_mutex_is_mine(&mutex));
	CHECK_EQ(hd_mutex_lock(&mutex, HD_FOREVER), 0);
	CHECK_EQ(hd_mutex_critical(&mutex, count_up, &calls, HD_FOREVER), 0);
	CHECK(hd_mutex_is_mine(&mutex));
	CHECK_EQ(calls, 3);
	CHECK_EQ(hd_mutex_unlock(&mutex), 0);
	CHECK_EQ(hd_mutex_unlock(&mutex), -EPERM);
}

HD_TEST(mutex_critical_unlocks_once_on_plain_thread)
{
	check_critical();
}

HD_PROCESS_TEST(mutex_critical_unlocks_once_on_process)
{
	check_critical();
}

static void *critical_in_vain(void *arg)
{
	int calls = 0;

	CHECK_EQ(hd_mutex_critical(&mutex, count_up, &calls, 0), -ETIMEDOUT);
	CHECK_EQ(hd_mutex_critical(&mutex, count_up, &calls, hd_after(HD_MS(1))), -ETIMEDOUT);
	CHECK_EQ(calls, 0);
	return arg;
}

HD_PROCESS_TEST(mutex_critical_without_the_mutex_calls_nothing)
{
	CHECK_EQ(hd_mutex_lock(&mutex, HD_FOREVER), 0);
	run_at(40, critical_in_vain, NULL);
	join_thread(start_thread(critical_in_vain, NULL));
	CHECK(hd_mutex_is_mine(&mutex));
}

static void leave_by(void *how)
{
	if (strcmp(how, "exit") == 0)
		hd_exit(NULL);
	if (strcmp(how, "fail") == 0)
		hd_fail(EIO);
	hd_sleep(HD_SEC(1000));
}

static void nested_critical(void *how)
{
	CHECK_EQ(hd_mutex_critical(&mutex, leave_by, how, HD_FOREVER), 0);
}

static void *end_inside(void *how)
{
	CHECK_EQ(hd_mutex_critical(&mutex, nested_critical, how, HD_FOREVER), 0);
	return NULL;
}

HD_PROCESS_TEST(mutex_critical_unlocks_when_the_process_ends_inside)
{
	static const char *const ways[] = { "exit", "fail", "terminate" };

	for (unsigned flags = 0; flags < 8; flags++) {
		hd_mutex_init(&mutex, flags);
		for (int i = 0; i < 3; i++) {
			hd_pid pid = spawned(hd_spawn_at(50, end_inside, (void *)ways[i]));
			CHECK_EQ(hd_terminate(pid, HD_FOREVER), i == 2 ? 0 : -ESRCH);
			CHECK_EQ(hd_join(pid, NULL, HD_FOREVER), 0);
			CHECK_EQ(hd_mutex_try_lock(&mutex), 0);
			CHECK_EQ(mutex.depth, 1);
			CHECK_EQ(hd_mutex_unlock(&mutex), 0);
		}
	}
}

/* ---- cancel, terminate, suspend ---- */

static void *lock_though_cancelled(void *arg)
{
	CHECK_EQ(hd_mutex_lock(&mutex, HD_FOREVER), 0);
	trace("has ");
	CHECK_EQ(hd_test_cancel(), -ECANCELED);
	CHECK_EQ(hd_mutex_lock(&mutex, HD_FOREVER), 0);
	CHECK_EQ(hd_mutex_unlock(&mutex), 0);
	CHECK_EQ(hd_mutex_unlock(&mutex), 0);
	CHECK_EQ(hd_mutex_lock(&mutex, HD_FOREVER), 0); /* free */
	CHECK_EQ(hd_mutex_unlock(&mutex), 0);
	return arg;
}

HD_PROCESS_TEST(mutex_lock_is_not_a_cancellation_point)
{
	for (unsigned flags = 0; flags < 8; flags++) {
		hd_mutex_init(&mutex, flags);
		trace_clear();
		CHECK_EQ(hd_mutex_lock(&mutex, HD_FOREVER), 0);
		hd_pid pid = spawned(hd_spawn_at(50, lock_though_cancelled, NULL));
		CHECK_EQ(hd_cancel(pid), 0);
		CHECK_EQ(info_on(pid).state, HD_WAITING);
		trace("main ");
		CHECK_EQ(hd_mutex_unlock(&mutex), 0);
		CHECK_EQ(hd_join(pid, NULL, HD_FOREVER), 0);
		CHECK_STR(trace_text(), "main has ");
	}
}

static void *lock_and_unwind(void *arg)
{
	CHECK_EQ(hd_set_cancel_type(HD_CANCEL_UNWIND), HD_CANCEL_RETURN);
	CHECK_EQ(hd_mutex_lock(&mutex, HD_FOREVER), 0);
	trace("has ");
	CHECK_EQ(hd_mutex_unlock(&mutex), 0);
	hd_test_cancel();
	trace("never ");
	return arg;
}

HD_PROCESS_TEST(mutex_lock_is_not_where_a_cancelled_process_unwinds)
{
	CHECK_EQ(hd_mutex_lock(&mutex, HD_FOREVER), 0);
	hd_pid pid = spawned(hd_spawn_at(50, lock_and_unwind, NULL));
	CHECK_EQ(hd_cancel(pid), 0);
	CHECK_EQ(hd_mutex_unlock(&mutex), 0);
	CHECK_EQ(end_of(pid).kind, HD_END_CANCELLED);
	CHECK_STR(trace_text(), "has ");
	CHECK_EQ(hd_mutex_try_lock(&mutex), 0);
}

static void say_whether_mine(void *m)
{
	trace(hd_mutex_is_mine(m) ? "mine " : "not-mine ");
}

static void *wait_with_cleanup(void *arg)
{
	struct hd_cleanup cleanup;

	CHECK_EQ(hd_cleanup_push(&cleanup, say_whether_mine, &mutex), 0);
	CHECK_EQ(hd_mutex_lock(&mutex, HD_FOREVER), 0);
	CHECK(false);
	return arg;
}

HD_PROCESS_TEST(mutex_wait_is_left_by_who_is_terminated)
{
	for (unsigned flags = 0; flags < 8; flags++) {
		hd_mutex_init(&mutex, flags);
		trace_clear();
		CHECK_EQ(hd_mutex_lock(&mutex, HD_FOREVER), 0);
		hd_pid victim = spawned(hd_spawn_at(50, wait_with_cleanup, NULL));
		spawned(hd_spawn_at(50, take_turn, (void *)"next"));
		CHECK_EQ(hd_terminate(victim, HD_FOREVER), 0);
		CHECK_EQ(end_of(victim).kind, HD_END_KILLED);
		CHECK(hd_mutex_is_mine(&mutex));
		CHECK_EQ(hd_mutex_unlock(&mutex), 0);
		CHECK_STR(trace_text(), "not-mine next ");
	}
}

/* One that has disabled cancellation gets the mutex first, and ends when it enables it again. */
static void *lock_undisturbed(void *arg)
{
	CHECK_EQ(hd_set_cancel_state(HD_CANCEL_DISABLED), HD_CANCEL_ENABLED);
	CHECK_EQ(hd_mutex_lock(&mutex, HD_FOREVER), 0);
	trace("has ");
	CHECK_EQ(hd_mutex_unlock(&mutex), 0);
	CHECK_EQ(hd_set_cancel_state(HD_CANCEL_ENABLED), HD_CANCEL_DISABLED);
	hd_test_cancel();
	CHECK(false);
	return arg;
}

HD_PROCESS_TEST(mutex_wait_with_cancellation_disabled_is_not_left)
{
	CHECK_EQ(hd_mutex_lock(&mutex, HD_FOREVER), 0);
	hd_pid victim = spawned(hd_spawn_at(50, lock_undisturbed, NULL));
	CHECK_EQ(hd_terminate(victim, hd_after(HD_MS(1))), -ETIMEDOUT);
	CHECK_EQ(queued(&mutex.waiters), 1);
	CHECK_EQ(hd_mutex_unlock(&mutex), 0);
	CHECK_EQ(end_of(victim).kind, HD_END_KILLED);
	CHECK_STR(trace_text(), "has ");
}

static void sleep_inside(void *arg)
{
	trace("in ");
	hd_sleep(HD_SEC(1000));
	(void)arg;
}

static void *critical_then_end(void *arg)
{
	CHECK_EQ(hd_mutex_critical(&mutex, sleep_inside, NULL, HD_FOREVER), 0);
	CHECK(false);
	return arg;
}

/* It was granted the mutex, and is terminated before it runs: it has it, and gives it back on its way out. */
HD_PROCESS_TEST(mutex_granted_to_a_terminated_process_is_given_back)
{
	for (unsigned flags = 0; flags < 8; flags++) {
		hd_mutex_init(&mutex, flags);
		CHECK_EQ(hd_mutex_lock(&mutex, HD_FOREVER), 0);
		hd_pid low = spawned(hd_spawn_at(30, critical_then_end, NULL));
		await_queued(&mutex.waiters, 1);
		CHECK_EQ(hd_mutex_unlock(&mutex), 0);
		CHECK_EQ(hd_kill(low, 7), 0);
		CHECK_EQ(end_of(low).err, 7);
		CHECK_EQ(hd_mutex_try_lock(&mutex), 0);
		CHECK_EQ(hd_mutex_unlock(&mutex), 0);
	}
}

HD_PROCESS_TEST(mutex_granted_to_a_suspended_waiter_is_kept_for_it)
{
	hd_mutex_init(&mutex, HD_IN_ORDER);
	CHECK_EQ(hd_mutex_lock(&mutex, HD_FOREVER), 0);
	hd_pid a = spawned(hd_spawn_at(50, take_turn, (void *)"a"));
	spawned(hd_spawn_at(50, take_turn, (void *)"b"));
	CHECK_EQ(hd_suspend(a, HD_FOREVER), 0);
	CHECK(info_on(a).suspended);
	CHECK_EQ(hd_mutex_unlock(&mutex), 0);
	CHECK_EQ(hd_mutex_try_lock(&mutex), -EAGAIN);
	CHECK_STR(trace_text(), "");
	CHECK_EQ(hd_resume(a), 0);
	CHECK_STR(trace_text(), "a b ");
}

HD_PROCESS_TEST(mutex_suspended_waiter_keeps_its_place)
{
	CHECK_EQ(hd_mutex_lock(&mutex, HD_FOREVER), 0);
	hd_pid a = spawned(hd_spawn_at(50, take_turn, (void *)"a"));
	spawned(hd_spawn_at(50, take_turn, (void *)"b"));
	CHECK_EQ(hd_suspend(a, HD_FOREVER), 0);
	CHECK_EQ(hd_resume(a), 0);
	CHECK_EQ(info_on(a).state, HD_WAITING);
	CHECK_EQ(hd_mutex_unlock(&mutex), 0);
	CHECK_STR(trace_text(), "a b ");
}

HD_PROCESS_TEST(mutex_deadline_of_a_suspended_waiter_runs_on)
{
	CHECK_EQ(hd_mutex_lock(&mutex, HD_FOREVER), 0);
	hd_pid a = spawned(hd_spawn_at(50, give_up_soon, NULL));
	int err = hd_suspend(a, HD_FOREVER);
	if (err == -ESRCH && hd_is_simulated())
		SKIP("its time came before it could be suspended");
	CHECK_EQ(err, 0);
	await_queued(&mutex.waiters, 0);
	CHECK_EQ(hd_mutex_unlock(&mutex), 0);
	CHECK_EQ(hd_mutex_try_lock(&mutex), 0); /* too late for it */
	CHECK_EQ(hd_resume(a), 0);
	CHECK_EQ(hd_join(a, NULL, HD_FOREVER), 0);
}

/* ---- plain threads ---- */

static void *hold_on_a_thread(void *arg)
{
	CHECK_EQ(hd_mutex_lock(&mutex, HD_FOREVER), 0);
	await_queued(&mutex.waiters, (int)(long)arg);
	trace("thread ");
	CHECK_EQ(hd_mutex_unlock(&mutex), 0);
	return NULL;
}

HD_PROCESS_TEST(mutex_passes_between_threads_and_processes)
{
	for (unsigned flags = 1; flags <= HD_IN_ORDER; flags++) { /* 0 has no order */
		hd_mutex_init(&mutex, flags);
		trace_clear();
		CHECK_EQ(hd_mutex_lock(&mutex, HD_FOREVER), 0);
		struct plain_thread *holder = start_thread(hold_on_a_thread, (void *)3L);
		await_queued(&mutex.waiters, 1);
		hd_pid a = spawned(hd_spawn(take_turn, (void *)"a"));
		await_queued(&mutex.waiters, 2);
		struct plain_thread *thread = start_thread(take_turn, (void *)"other-thread");
		await_queued(&mutex.waiters, 3);
		hd_pid b = spawned(hd_spawn(take_turn, (void *)"b"));
		await_queued(&mutex.waiters, 4);
		CHECK_EQ(hd_mutex_unlock(&mutex), 0);
		join_thread(holder);
		join_thread(thread);
		CHECK_EQ(hd_join(a, NULL, HD_FOREVER), 0);
		CHECK_EQ(hd_join(b, NULL, HD_FOREVER), 0);
		CHECK_STR(trace_text(), "thread a other-thread b ");
	}
}

static struct plain_thread *outliving;

static void *contend_in_the_runtime(void *arg)
{
	outliving = start_thread(take_turn, (void *)"thread");
	await_queued(&mutex.waiters, 1);
	return arg;
}

/* The owner is a plain thread; one that waits for it outlives the runtime. */
HD_TEST(mutex_is_waited_for_across_the_life_of_a_runtime)
{
	CHECK_EQ(hd_mutex_lock(&mutex, HD_FOREVER), 0);
	CHECK_EQ(hd_run(&(struct hd_config){ .workers = 1, .fixed = true }, contend_in_the_runtime, NULL), 0);
	trace("main ");
	CHECK_EQ(hd_mutex_unlock(&mutex), 0);
	join_thread(outliving);
	CHECK_STR(trace_text(), "main thread ");
}

/* ---- one owner at a time ---- */

#define ACTORS 12

static long inside, entries; /* guarded by the mutex, and by nothing else: TSan would see two at a time */
static long successes, failures;
static int each;

static void be_inside(unsigned *seed)
{
	CHECK_EQ(++inside, 1);
	entries++;
	if (next_random(seed) % 8 == 0 && hd_self() != 0)
		hd_yield();
	if (next_random(seed) % 8 == 0) {
		CHECK_EQ(hd_mutex_lock(&mutex, HD_FOREVER), 0);
		CHECK_EQ(hd_mutex_unlock(&mutex), 0);
	}
	if (next_random(seed) % 32 == 0)
		hd_sleep(HD_US(1));
	CHECK_EQ(inside--, 1);
}

static void be_inside_critical(void *seed)
{
	be_inside(seed);
}

static void *contend(void *arg)
{
	unsigned seed = (unsigned)(long)arg;
	long got = 0, missed = 0;

	for (int i = 0; i < each; i++) {
		int err = -EAGAIN;
		switch (next_random(&seed) % 6) {
		case 0:
			err = hd_mutex_try_lock(&mutex);
			break;
		case 1:
			err = hd_mutex_lock(&mutex, hd_after(next_random(&seed) % 20000));
			break;
		case 2:
			CHECK_EQ(hd_mutex_critical(&mutex, be_inside_critical, &seed, HD_FOREVER), 0);
			got++;
			continue;
		default:
			err = hd_mutex_lock(&mutex, HD_FOREVER);
			CHECK_EQ(err, 0);
		}
		if (err != 0) {
			CHECK(err == -EAGAIN || err == -ETIMEDOUT);
			missed++;
			continue;
		}
		got++;
		be_inside(&seed);
		CHECK_EQ(hd_mutex_unlock(&mutex), 0);
	}
	add(&successes, got);
	add(&failures, missed);
	return NULL;
}

static void contend_all(unsigned flags, int n)
{
	hd_pid pids[ACTORS];
	struct plain_thread *threads[2];

	hd_mutex_init(&mutex, flags);
	inside = entries = successes = failures = 0;
	each = n / (ACTORS + 2) + 1;
	for (long i = 0; i < ACTORS; i++) {
		struct hd_spawn how = { .priority = 30 + (int)i % 3 * 5, .pinned = i % 2 == 0 };
		pids[i] = spawned(hd_spawn_with(&how, contend, (void *)(i + 1)));
	}
	for (long i = 0; i < 2; i++)
		threads[i] = start_thread(contend, (void *)(i + 77));
	unsigned seed = 5;
	for (int i = 0; i < each / 4; i++) { /* whoever waits, runs or is ready: its priority changes */
		int err = hd_set_priority(pids[next_random(&seed) % ACTORS], 30 + (int)(next_random(&seed) % 20));
		CHECK(err == 0 || err == -ESRCH);
		hd_sleep(HD_US(10));
	}
	for (int i = 0; i < ACTORS; i++)
		CHECK_EQ(hd_join(pids[i], NULL, HD_FOREVER), 0);
	for (int i = 0; i < 2; i++)
		join_thread(threads[i]);
	CHECK_EQ(successes + failures, (ACTORS + 2L) * each);
	CHECK_EQ(entries, successes);
	CHECK_EQ(queued(&mutex.waiters), 0);
	CHECK_EQ(hd_mutex_try_lock(&mutex), 0);
	CHECK_EQ(hd_mutex_unlock(&mutex), 0);
}

HD_WORKERS_TEST(mutex_has_one_owner_at_a_time)
{
	contend_all(HD_IN_ORDER, hd_scaled(20000));
	(void)workers;
}

HD_WORKERS_TEST(mutex_barging_has_one_owner_at_a_time_and_loses_no_wake)
{
	contend_all(0, hd_scaled(20000));
	(void)workers;
}

HD_WORKERS_TEST(mutex_of_every_kind_has_one_owner_at_a_time)
{
	for (unsigned flags = 0; flags < 8; flags++)
		contend_all(flags, hd_scaled(3000));
	(void)workers;
}

HD_WORKERS_STRESS(mutex_of_every_kind_has_one_owner_at_a_time_for_long)
{
	for (unsigned flags = 0; flags < 8; flags++)
		contend_all(flags, hd_scaled(200000));
	(void)workers;
}

/* ---- whoever is ended while it waits, or has just got it ---- */

static hd_pid victims[ACTORS];

static void leave_inside(void *arg)
{
	CHECK(hd_mutex_is_mine(&mutex));
	CHECK_EQ(inside--, 1);
	(void)arg;
}

static void be_inside_until_ended(void *seed)
{
	struct hd_cleanup cleanup;

	CHECK_EQ(++inside, 1);
	CHECK_EQ(hd_cleanup_push(&cleanup, leave_inside, NULL), 0);
	if (next_random(seed) % 4 == 0)
		hd_sleep(HD_US(1));
	else
		hd_yield();
	CHECK_EQ(hd_cleanup_pop(&cleanup, true), 0);
}

static void *contend_until_ended(void *arg)
{
	unsigned seed = (unsigned)(long)arg;

	for (;;) {
		CHECK_EQ(hd_mutex_critical(&mutex, be_inside_until_ended, &seed, HD_FOREVER), 0);
		hd_test_cancel();
		hd_yield();
	}
	return NULL;
}

static void end_and_replace(unsigned flags, int n)
{
	unsigned seed = flags + 1;

	hd_mutex_init(&mutex, flags);
	inside = 0;
	for (long i = 0; i < ACTORS; i++)
		victims[i] = spawned(hd_spawn_at(30, contend_until_ended, (void *)(i + 1)));
	for (int round = 0; another_round(round, n); round++) {
		hd_pid *victim = &victims[next_random(&seed) % ACTORS];
		hd_sleep(HD_US(next_random(&seed) % 20));
		CHECK_EQ(hd_terminate(*victim, HD_FOREVER), 0);
		CHECK_EQ(end_of(*victim).kind, HD_END_KILLED);
		*victim = spawned(hd_spawn_at(30, contend_until_ended, (void *)(long)(round + 100)));
	}
	for (int i = 0; i < ACTORS; i++) {
		CHECK_EQ(hd_terminate(victims[i], HD_FOREVER), 0);
		CHECK_EQ(hd_join(victims[i], NULL, HD_FOREVER), 0);
	}
	CHECK_EQ(hd_mutex_try_lock(&mutex), 0);
	CHECK_EQ(mutex.depth, 1);
	CHECK_EQ(hd_mutex_unlock(&mutex), 0);
}

HD_WORKERS_TEST(mutex_is_not_lost_with_those_who_are_terminated)
{
	for (unsigned flags = 0; flags < 8; flags++)
		end_and_replace(flags, hd_scaled(100));
	(void)workers;
}

/* ---- its memory ---- */

struct box {
	struct hd_mutex mutex;
	long users;
};

/* Whoever unlocks it does not touch it afterwards: the last one frees it. */
static void *use_and_free(void *arg)
{
	struct box *box = arg;

	CHECK_EQ(hd_mutex_lock(&box->mutex, HD_FOREVER), 0);
	bool last = --box->users == 0;
	CHECK_EQ(hd_mutex_unlock(&box->mutex), 0);
	if (last) {
		memset(box, 0xff, sizeof *box);
		free(box);
	}
	return NULL;
}

HD_WORKERS_TEST(mutex_may_be_freed_by_who_used_it_last)
{
	hd_pid pids[3];

	for (int round = 0; another_round(round, hd_scaled(3000)); round++) {
		struct box *box = calloc(1, sizeof *box);
		CHECK(box != NULL);
		box->users = 3;
		hd_mutex_init(&box->mutex, round % 8);
		for (int i = 0; i < 3; i++)
			pids[i] = spawned(hd_spawn(use_and_free, box));
		for (int i = 0; i < 3; i++)
			CHECK_EQ(hd_join(pids[i], NULL, HD_FOREVER), 0);
	}
	(void)workers;
}
