/* sync/monitor.c - what monitors and conditions promise: who waits leaves the monitor and comes back as deep, no signal is lost. */
#include "sync/common.h"

static struct hd_monitor monitor;
static struct hd_condition other_condition;

static void enter(void)
{
	CHECK_EQ(hd_monitor_enter(&monitor, HD_FOREVER), 0);
}

static void leave(void)
{
	CHECK_EQ(hd_monitor_exit(&monitor), 0);
}

static void signal_one(void)
{
	enter();
	CHECK_EQ(hd_monitor_signal(&monitor, NULL), 0);
	leave();
}

static bool is_true(void *flag)
{
	CHECK(hd_mutex_is_mine(&monitor.mutex));
	return *(int *)flag != 0;
}

/* ---- answers ---- */

static void check_answers(unsigned flags)
{
	struct hd_monitor m = HD_MONITOR(flags);
	int yes = 1;

	CHECK_EQ(hd_monitor_exit(&m), -EPERM);
	CHECK_EQ(hd_monitor_wait(&m, NULL, HD_FOREVER), -EPERM);
	CHECK_EQ(hd_monitor_wait_while(&m, NULL, is_true, &yes, HD_FOREVER), -EPERM);
	CHECK_EQ(hd_monitor_signal(&m, NULL), -EPERM);
	CHECK_EQ(hd_monitor_signal_all(&m, NULL), -EPERM);
	CHECK_EQ(hd_condition_wait(&m.changed, &m.mutex, HD_FOREVER), -EPERM);
	CHECK_EQ(hd_condition_signal(&m.changed), 0); /* nobody waits; one need not have the mutex */
	CHECK_EQ(hd_condition_signal_all(&m.changed), 0);
	CHECK_EQ(hd_monitor_enter(&m, HD_FOREVER), 0);
	CHECK_EQ(hd_monitor_enter(&m, 0), 0);
	CHECK_EQ(hd_monitor_signal(&m, NULL), 0);
	CHECK_EQ(hd_monitor_signal_all(&m, &other_condition), 0);
	CHECK_EQ(hd_monitor_exit(&m), 0);
	CHECK_EQ(hd_monitor_exit(&m), 0);
	CHECK_EQ(hd_monitor_exit(&m), -EPERM);
	hd_monitor_init(&m, flags);
	CHECK_EQ(hd_monitor_enter(&m, HD_FOREVER), 0);
	CHECK_EQ(hd_monitor_exit(&m), 0);
}

HD_TEST(monitor_answers_on_plain_thread)
{
	for (unsigned flags = 0; flags < 8; flags++)
		check_answers(flags);
}

HD_PROCESS_TEST(monitor_answers_on_process)
{
	for (unsigned flags = 0; flags < 8; flags++)
		check_answers(flags);
}

static int depth_of(struct hd_monitor *m)
{
	CHECK(hd_mutex_is_mine(&m->mutex));
	return (int)m->mutex.depth;
}

static void check_timeouts(unsigned flags)
{
	hd_monitor_init(&monitor, flags);
	enter();
	enter();
	hd_time past[] = { INT64_MIN, -1, 0, hd_now(), hd_after(HD_MS(1)) };
	for (size_t i = 0; i < sizeof past / sizeof past[0]; i++) {
		CHECK_EQ(hd_monitor_wait(&monitor, NULL, past[i]), -ETIMEDOUT);
		CHECK(hd_now() >= past[i]);
		CHECK_EQ(depth_of(&monitor), 2);
		CHECK_EQ(hd_condition_wait(&other_condition, &monitor.mutex, past[i]), -ETIMEDOUT);
		CHECK_EQ(depth_of(&monitor), 2);
		CHECK_EQ(queued(&monitor.changed.waiters), 0);
	}
	leave();
	leave();
}

HD_TEST(monitor_wait_times_out_inside_on_plain_thread)
{
	for (unsigned flags = 0; flags < 8; flags++)
		check_timeouts(flags);
}

HD_PROCESS_TEST(monitor_wait_times_out_inside_on_process)
{
	for (unsigned flags = 0; flags < 8; flags++)
		check_timeouts(flags);
}

static void count_inside(void *arg)
{
	++*(int *)arg;
	CHECK_EQ(depth_of(&monitor), 1);
	CHECK_EQ(hd_monitor_wait(&monitor, NULL, hd_after(HD_US(10))), -ETIMEDOUT);
	if (hd_self() != 0)
		hd_exit(NULL);
}

static void *critical_once(void *arg)
{
	CHECK_EQ(hd_monitor_critical(&monitor, count_inside, arg, HD_FOREVER), 0);
	return NULL;
}

HD_PROCESS_TEST(monitor_critical_leaves_it_also_when_the_process_ends)
{
	int calls = 0;

	run_at(40, critical_once, &calls);
	join_thread(start_thread(critical_once, &calls));
	CHECK_EQ(calls, 2);
	CHECK_EQ(hd_monitor_enter(&monitor, 0), 0);
}

static void *wait_with_errno(void *arg)
{
	errno = 22;
	enter();
	CHECK_EQ(hd_monitor_wait(&monitor, NULL, HD_FOREVER), 0);
	leave();
	CHECK_EQ(errno, 22);
	return arg;
}

HD_PROCESS_TEST(monitor_calls_leave_errno_alone)
{
	errno = 11;
	struct plain_thread *thread = start_thread(wait_with_errno, NULL);
	hd_pid pid = spawned(hd_spawn(wait_with_errno, NULL));
	await_queued(&monitor.changed.waiters, 2);
	signal_one();
	signal_one();
	CHECK_EQ(hd_join(pid, NULL, HD_FOREVER), 0);
	join_thread(thread);
	CHECK_EQ(errno, 11);
}

/* ---- as deep as before ---- */

static int expected;

/* Three deep, then waits; whatever is answered, it is three deep again. */
static void *wait_deep(void *arg)
{
	hd_time until = arg != NULL ? hd_after(HD_MS(40)) : HD_FOREVER;

	for (int i = 0; i < 3; i++)
		enter();
	CHECK_EQ(hd_monitor_wait(&monitor, NULL, until), expected);
	CHECK_EQ(depth_of(&monitor), 3);
	trace("back ");
	for (int i = 0; i < 3; i++)
		leave();
	CHECK_EQ(hd_monitor_exit(&monitor), -EPERM);
	return NULL;
}

HD_PROCESS_TEST(monitor_wait_gives_up_every_level_and_restores_it)
{
	for (unsigned flags = 0; flags < 8; flags++) {
		hd_monitor_init(&monitor, flags);
		trace_clear();
		hd_pid pid = spawned(hd_spawn_at(50, wait_deep, NULL));
		CHECK_EQ(hd_monitor_enter(&monitor, 0), 0); /* nobody is in */
		CHECK_EQ(depth_of(&monitor), 1);
		CHECK_EQ(hd_monitor_signal(&monitor, NULL), 0);
		trace("main ");
		leave();
		CHECK_EQ(hd_join(pid, NULL, HD_FOREVER), 0);
		CHECK_STR(trace_text(), "main back ");
	}
}

/* We are in when its deadline comes: it gets the monitor when we leave, and as deep. */
HD_PROCESS_TEST(monitor_wait_that_times_out_waits_for_the_monitor)
{
	expected = -ETIMEDOUT;
	for (unsigned flags = 0; flags < 8; flags++) {
		hd_monitor_init(&monitor, flags);
		trace_clear();
		hd_pid pid = spawned(hd_spawn_at(50, wait_deep, &pid));
		enter();
		await_queued(&monitor.changed.waiters, 0);
		CHECK_EQ(hd_monitor_signal(&monitor, NULL), 0); /* too late */
		trace("main ");
		leave();
		CHECK_EQ(hd_join(pid, NULL, HD_FOREVER), 0);
		if (!hd_is_simulated()) /* else the deadline may have come before we did */
			CHECK_STR(trace_text(), "main back ");
	}
}

HD_PROCESS_TEST(monitor_wait_that_is_cancelled_enters_again_first)
{
	expected = -ECANCELED;
	for (unsigned flags = 0; flags < 8; flags++) {
		hd_monitor_init(&monitor, flags);
		trace_clear();
		hd_pid pid = spawned(hd_spawn_at(50, wait_deep, NULL));
		enter();
		CHECK_EQ(hd_cancel(pid), 0);
		struct hd_process_info info = info_on(pid);
		CHECK_EQ(info.state, HD_WAITING);
		CHECK_EQ(info.why, HD_WAIT_REENTER);
		CHECK_EQ(info.holder, hd_self());
		trace("main ");
		leave();
		CHECK_EQ(hd_join(pid, NULL, HD_FOREVER), 0);
		CHECK_STR(trace_text(), "main back ");
	}
}

HD_PROCESS_TEST(monitor_wait_of_who_is_cancelled_already_answers_at_once)
{
	enter();
	CHECK_EQ(hd_cancel(hd_self()), 0);
	CHECK_EQ(hd_monitor_wait(&monitor, NULL, HD_FOREVER), -ECANCELED);
	CHECK_EQ(hd_monitor_wait(&monitor, NULL, HD_FOREVER), -ECANCELED);
	CHECK_EQ(depth_of(&monitor), 1);
	CHECK_EQ(hd_cancel_clear(), 1);
	CHECK_EQ(hd_monitor_wait(&monitor, NULL, hd_after(HD_US(10))), -ETIMEDOUT);
	leave();
}

/* ---- who is signalled ---- */

static void *wait_in_turn(void *word)
{
	enter();
	int err = hd_monitor_wait(&monitor, NULL, HD_FOREVER);
	trace(err == 0 ? "%s " : "%s-cancelled ", (const char *)word);
	leave();
	return NULL;
}

static void *wait_briefly(void *arg)
{
	enter();
	CHECK_EQ(hd_monitor_wait(&monitor, NULL, hd_after(HD_MS(1))), -ETIMEDOUT);
	leave();
	return arg;
}

static hd_pid spawn_waiter(int priority, const char *word)
{
	return spawned(hd_spawn_at(priority, wait_in_turn, (void *)word));
}

HD_PROCESS_TEST(monitor_signal_goes_to_the_first_that_waits)
{
	spawn_waiter(50, "a");
	spawn_waiter(70, "b");
	spawn_waiter(60, "c");
	for (int i = 0; i < 3; i++) {
		signal_one();
		trace("%d ", i);
	}
	signal_one(); /* nobody keeps it */
	spawn_waiter(50, "d");
	CHECK_STR(trace_text(), "a 0 b 1 c 2 ");
	signal_one();
	CHECK_STR(trace_text(), "a 0 b 1 c 2 d ");
}

HD_PROCESS_TEST(monitor_signal_all_lets_all_come_in_their_order)
{
	spawn_waiter(50, "a");
	spawn_waiter(70, "b");
	spawn_waiter(60, "c");
	enter();
	CHECK_EQ(hd_monitor_signal_all(&monitor, NULL), 0);
	spawn_waiter(80, "late"); /* waits to enter, behind them */
	CHECK_EQ(queued(&monitor.mutex.waiters), 4);
	trace("main ");
	leave();
	CHECK_STR(trace_text(), "main a b c ");
	signal_one();
	CHECK_STR(trace_text(), "main a b c late ");
}

static void *come_in(void *word)
{
	enter();
	trace("%s ", (const char *)word);
	leave();
	return NULL;
}

/* Who is signalled is in line behind those who wanted to enter before. */
HD_PROCESS_TEST(monitor_signalled_waiter_comes_in_its_turn)
{
	spawn_waiter(70, "signalled");
	enter();
	spawned(hd_spawn_at(50, come_in, (void *)"before"));
	CHECK_EQ(hd_monitor_signal(&monitor, NULL), 0);
	spawned(hd_spawn_at(60, come_in, (void *)"after"));
	leave();
	CHECK_STR(trace_text(), "before signalled after ");
}

HD_PROCESS_TEST(monitor_by_priority_lets_the_highest_come_first)
{
	hd_monitor_init(&monitor, HD_BY_PRIORITY);
	spawn_waiter(50, "50");
	spawn_waiter(70, "70");
	hd_pid pid = spawn_waiter(60, "was-60");
	enter();
	CHECK_EQ(hd_monitor_signal_all(&monitor, NULL), 0);
	CHECK_EQ(hd_set_priority(pid, 80), 0); /* it waits to enter */
	leave();
	CHECK_STR(trace_text(), "was-60 70 50 ");
}

static void *wait_for_other(void *word)
{
	enter();
	CHECK_EQ(hd_monitor_wait(&monitor, &other_condition, HD_FOREVER), 0);
	trace("%s ", (const char *)word);
	leave();
	return NULL;
}

HD_PROCESS_TEST(monitor_conditions_are_apart)
{
	spawn_waiter(50, "own");
	spawned(hd_spawn_at(50, wait_for_other, (void *)"other"));
	enter();
	CHECK_EQ(hd_monitor_signal_all(&monitor, &other_condition), 0);
	CHECK_EQ(hd_monitor_signal_all(&monitor, &other_condition), 0);
	leave();
	CHECK_STR(trace_text(), "other ");
	signal_one();
	CHECK_STR(trace_text(), "other own ");
}

/* Wait morphing: it goes from one queue to the other without running in between. */
HD_PROCESS_TEST(monitor_signalled_waiter_does_not_run_before_it_has_the_monitor)
{
	hd_pid pid = spawn_waiter(70, "waiter");
	uint64_t before = info_on(pid).switches;

	enter();
	CHECK_EQ(hd_monitor_signal(&monitor, NULL), 0);
	struct hd_process_info info = info_on(pid);
	CHECK_EQ(info.switches, before);
	CHECK_EQ(info.why, HD_WAIT_REENTER);
	CHECK_EQ(info.holder, hd_self());
	CHECK_EQ(hd_monitor_signal(&monitor, NULL), 0); /* it does not wait for that any more */
	hd_yield();
	CHECK_EQ(info_on(pid).switches, before);
	trace("main ");
	CHECK_EQ(hd_suspend(pid, HD_FOREVER), 0); /* so that it is there to be asked */
	leave();
	CHECK_EQ(info_on(pid).switches, before);
	CHECK_EQ(hd_resume(pid), 0);
	CHECK_STR(trace_text(), "main waiter ");
}

static void *wait_and_stay(void *switches)
{
	enter();
	CHECK_EQ(hd_monitor_wait(&monitor, NULL, HD_FOREVER), 0);
	*(uint64_t *)switches = info_on(hd_self()).switches;
	leave();
	return NULL;
}

/* A crowd that is signalled at once: each is run once, not once to find the monitor taken and then again. */
HD_PROCESS_TEST(monitor_signal_all_runs_each_waiter_once)
{
	uint64_t switches[8];

	for (int i = 0; i < 8; i++)
		spawned(hd_spawn_at(50, wait_and_stay, &switches[i]));
	enter();
	CHECK_EQ(hd_monitor_signal_all(&monitor, NULL), 0);
	leave();
	for (int i = 0; i < 8; i++)
		CHECK_EQ(switches[i], 2);
}

/* ---- who does not take a signal ---- */

HD_PROCESS_TEST(monitor_timed_out_waiter_takes_no_signal)
{
	hd_pid brief = spawned(hd_spawn_at(50, wait_briefly, NULL));

	spawn_waiter(50, "second");
	CHECK_EQ(hd_join(brief, NULL, HD_FOREVER), 0);
	signal_one();
	CHECK_STR(trace_text(), "second ");
}

HD_PROCESS_TEST(monitor_cancelled_waiter_takes_no_signal)
{
	hd_pid first = spawn_waiter(50, "first");

	spawn_waiter(50, "second");
	enter();
	CHECK_EQ(hd_cancel(first), 0); /* it waits to enter */
	CHECK_EQ(hd_monitor_signal(&monitor, NULL), 0);
	leave();
	CHECK_STR(trace_text(), "first-cancelled second ");
}

static void *wait_then_see(void *arg)
{
	enter();
	CHECK_EQ(hd_monitor_wait(&monitor, NULL, HD_FOREVER), 0);
	trace("signalled ");
	CHECK_EQ(hd_monitor_wait(&monitor, NULL, HD_FOREVER), -ECANCELED);
	CHECK_EQ(depth_of(&monitor), 1);
	leave();
	return arg;
}

/* The signal came first: it is taken, and the cancel is answered by the next wait. */
HD_PROCESS_TEST(monitor_signal_that_comes_first_beats_a_cancel)
{
	hd_pid pid = spawned(hd_spawn_at(50, wait_then_see, NULL));

	enter();
	CHECK_EQ(hd_monitor_signal(&monitor, NULL), 0);
	CHECK_EQ(hd_cancel(pid), 0);
	CHECK_EQ(info_on(pid).state, HD_WAITING);
	leave();
	CHECK_EQ(hd_join(pid, NULL, HD_FOREVER), 0);
	CHECK_STR(trace_text(), "signalled ");
}

/* The same for a deadline, which passes while it waits to enter. */
static void *wait_until_granted(void *arg)
{
	hd_time *until = arg;

	enter();
	*until = hd_after(HD_MS(20));
	CHECK_EQ(hd_monitor_wait(&monitor, NULL, *until), 0);
	leave();
	return NULL;
}

HD_PROCESS_TEST(monitor_signal_that_comes_first_beats_a_deadline)
{
	hd_time until = 0;
	hd_pid pid = spawned(hd_spawn_at(50, wait_until_granted, &until));
	enter();
	CHECK_EQ(hd_monitor_signal(&monitor, NULL), 0);
	if (hd_now() >= until)
		SKIP("the machine is too busy: the deadline may have come before the signal");
	CHECK_EQ(hd_sleep_until(until + HD_MS(2)), 0);
	leave();
	CHECK_EQ(hd_join(pid, NULL, HD_FOREVER), 0);
}

/* ---- terminate, unwind ---- */

static void say_depth(void *arg)
{
	trace(hd_mutex_is_mine(&monitor.mutex) ? "cleanup-%u " : "outside-%u ", monitor.mutex.depth);
	while (hd_mutex_is_mine(&monitor.mutex))
		leave();
	(void)arg;
}

static void *wait_to_be_ended(void *arg)
{
	struct hd_cleanup cleanup;

	if (arg != NULL)
		CHECK_EQ(hd_set_cancel_type(HD_CANCEL_UNWIND), HD_CANCEL_RETURN);
	enter();
	enter();
	CHECK_EQ(hd_cleanup_push(&cleanup, say_depth, NULL), 0);
	CHECK_EQ(hd_monitor_wait(&monitor, NULL, HD_FOREVER), 0);
	CHECK(false);
	return NULL;
}

/* Its cleanups run inside the monitor: so it must wait until we have left. */
HD_PROCESS_TEST(monitor_is_had_again_before_cleanups_run)
{
	for (unsigned flags = 0; flags < 8; flags++)
		for (int unwind = 0; unwind < 2; unwind++) {
			hd_monitor_init(&monitor, flags);
			trace_clear();
			hd_pid pid = spawned(hd_spawn_at(50, wait_to_be_ended, unwind ? &pid : NULL));
			hd_pid next = spawn_waiter(50, "next");
			enter();
			CHECK_EQ(unwind ? hd_cancel(pid) : hd_kill(pid, 0), 0);
			CHECK_EQ(hd_monitor_signal(&monitor, NULL), 0); /* not for it */
			trace("main ");
			leave();
			CHECK_EQ(end_of(pid).kind, unwind ? HD_END_CANCELLED : HD_END_KILLED);
			CHECK_EQ(hd_join(next, NULL, HD_FOREVER), 0);
			CHECK_STR(trace_text(), "main cleanup-2 next ");
			CHECK_EQ(hd_monitor_enter(&monitor, 0), 0);
			leave();
		}
}

static void *wait_then_end(void *arg)
{
	struct hd_cleanup cleanup;

	enter();
	CHECK_EQ(hd_cleanup_push(&cleanup, say_depth, NULL), 0);
	CHECK_EQ(hd_monitor_wait(&monitor, NULL, HD_FOREVER), 0);
	trace("signalled ");
	hd_test_cancel();
	CHECK(false);
	return arg;
}

/* It has its signal already, and ends at the next cancellation point. */
HD_PROCESS_TEST(monitor_terminate_of_who_was_signalled_does_not_lose_the_monitor)
{
	hd_pid pid = spawned(hd_spawn_at(50, wait_then_end, NULL));

	enter();
	CHECK_EQ(hd_monitor_signal(&monitor, NULL), 0);
	CHECK_EQ(hd_kill(pid, 0), 0);
	trace("main ");
	leave();
	CHECK_EQ(end_of(pid).kind, HD_END_KILLED);
	CHECK_STR(trace_text(), "main signalled cleanup-1 ");
	CHECK_EQ(hd_monitor_enter(&monitor, 0), 0);
}

/* ---- suspend ---- */

HD_PROCESS_TEST(monitor_signal_to_a_suspended_waiter_is_kept_for_it)
{
	hd_monitor_init(&monitor, HD_IN_ORDER);
	hd_pid a = spawn_waiter(50, "a");

	spawn_waiter(50, "b");
	CHECK_EQ(hd_suspend(a, HD_FOREVER), 0);
	signal_one();
	CHECK_EQ(hd_monitor_enter(&monitor, 0), -ETIMEDOUT); /* it is a's, who does not run */
	CHECK_STR(trace_text(), "");
	CHECK_EQ(hd_resume(a), 0);
	signal_one();
	CHECK_STR(trace_text(), "a b ");
}

/* ---- wait_while ---- */

static int blocked, ended;

static void *wait_while_blocked(void *arg)
{
	hd_time until = *(hd_time *)arg;

	enter();
	enter();
	int err = hd_monitor_wait_while(&monitor, NULL, is_true, &blocked, until);
	CHECK_EQ(err, expected);
	CHECK_EQ(depth_of(&monitor), 2);
	if (err == -ETIMEDOUT)
		CHECK(hd_now() >= until);
	ended = 1;
	leave();
	leave();
	return NULL;
}

/* It is signalled again and again for nothing: its deadline is one and the same. */
HD_PROCESS_TEST(monitor_wait_while_has_one_deadline)
{
	hd_time until = hd_after(HD_MS(3));

	blocked = 1;
	expected = -ETIMEDOUT;
	hd_pid pid = spawned(hd_spawn_at(50, wait_while_blocked, &until));
	while (!ended) {
		signal_one();
		CHECK_EQ(hd_sleep(HD_US(100)), 0);
	}
	CHECK_EQ(hd_join(pid, NULL, HD_FOREVER), 0);
}

HD_PROCESS_TEST(monitor_wait_while_goes_on_when_it_is_not_so_any_more)
{
	hd_time until = HD_FOREVER;

	blocked = 1;
	hd_pid pid = spawned(hd_spawn_at(50, wait_while_blocked, &until));
	signal_one();
	CHECK(!ended);
	enter();
	blocked = 0;
	CHECK_EQ(hd_monitor_signal(&monitor, NULL), 0);
	leave();
	CHECK_EQ(hd_join(pid, NULL, HD_FOREVER), 0);
}

/* It is not so any more, but nobody has said so when the deadline comes. */
HD_PROCESS_TEST(monitor_wait_while_looks_once_more_after_its_deadline)
{
	hd_time until = hd_after(HD_MS(20));

	blocked = 1;
	hd_pid pid = spawned(hd_spawn_at(50, wait_while_blocked, &until));
	enter();
	if (hd_now() >= until)
		SKIP("the machine is too busy: it has looked already");
	CHECK_EQ(hd_sleep_until(until + HD_MS(2)), 0);
	blocked = 0;
	leave();
	CHECK_EQ(hd_join(pid, NULL, HD_FOREVER), 0);
}

HD_PROCESS_TEST(monitor_wait_while_does_not_wait_for_what_is_not_so)
{
	enter();
	CHECK_EQ(hd_monitor_wait_while(&monitor, NULL, is_true, &blocked, 0), 0);
	CHECK_EQ(hd_monitor_wait_while(&monitor, NULL, is_true, &blocked, HD_FOREVER), 0);
	blocked = 1;
	CHECK_EQ(hd_monitor_wait_while(&monitor, NULL, is_true, &blocked, 0), -ETIMEDOUT);
	leave();
}

HD_PROCESS_TEST(monitor_wait_while_is_cancelled_inside)
{
	hd_time until = HD_FOREVER;

	blocked = 1;
	expected = -ECANCELED;
	hd_pid pid = spawned(hd_spawn_at(50, wait_while_blocked, &until));
	CHECK_EQ(hd_cancel(pid), 0);
	CHECK_EQ(hd_join(pid, NULL, HD_FOREVER), 0);
}

/* ---- without the mutex ---- */

/* The mutex is free: it is the waiter's before it runs. */
HD_PROCESS_TEST(condition_signal_without_the_mutex_passes_it_on)
{
	hd_monitor_init(&monitor, HD_IN_ORDER);
	hd_pid low = spawn_waiter(30, "low");

	await_queued(&monitor.changed.waiters, 1);
	CHECK_EQ(hd_condition_signal(&monitor.changed), 0);
	CHECK_EQ(hd_monitor_enter(&monitor, 0), -ETIMEDOUT);
	trace("main ");
	CHECK_EQ(hd_join(low, NULL, HD_FOREVER), 0);
	CHECK_EQ(hd_monitor_enter(&monitor, 0), 0);
	CHECK_STR(trace_text(), "main low ");
}

/* ---- plain threads ---- */

HD_PROCESS_TEST(monitor_passes_between_threads_and_processes)
{
	for (unsigned flags = 0; flags < 4; flags++) {
		hd_monitor_init(&monitor, flags);
		trace_clear();
		struct plain_thread *thread = start_thread(wait_in_turn, (void *)"thread");
		await_queued(&monitor.changed.waiters, 1);
		hd_pid pid = spawned(hd_spawn(wait_in_turn, (void *)"process"));
		await_queued(&monitor.changed.waiters, 2);
		struct plain_thread *last = start_thread(wait_in_turn, (void *)"last");
		await_queued(&monitor.changed.waiters, 3);
		enter();
		CHECK_EQ(hd_monitor_signal_all(&monitor, NULL), 0);
		trace("main ");
		leave();
		join_thread(thread);
		join_thread(last);
		CHECK_EQ(hd_join(pid, NULL, HD_FOREVER), 0);
		CHECK_STR(trace_text(), "main thread process last ");
	}
}

static void *signal_on_a_thread(void *arg)
{
	await_queued(&monitor.changed.waiters, 3);
	for (int i = 0; i < 3; i++)
		signal_one();
	return arg;
}

HD_TEST(monitor_threads_wake_each_other_without_a_runtime)
{
	for (unsigned flags = 0; flags < 8; flags++) {
		hd_monitor_init(&monitor, flags);
		struct plain_thread *threads[4];
		for (int i = 0; i < 4; i++)
			threads[i] = start_thread(i < 3 ? wait_deep : signal_on_a_thread, NULL);
		for (int i = 0; i < 4; i++)
			join_thread(threads[i]);
	}
}

/* ---- no signal is lost ---- */

#define PATIENT 4
#define IMPATIENT 4

static long tokens, taken, errors, stop; /* tokens: inside the monitor */
static int each;

/* Takes its tokens, one for each signal. */
static void *take_tokens(void *arg)
{
	for (int i = 0; i < each; i++) {
		enter();
		while (tokens == 0)
			CHECK_EQ(hd_monitor_wait(&monitor, NULL, HD_FOREVER), 0);
		tokens--;
		leave();
		add(&taken, 1);
	}
	return arg;
}

/* Waits for a signal now and then, and passes it on. When it is told that it has none, it need not. */
static void *wait_impatiently(void *arg)
{
	unsigned seed = (unsigned)(long)arg;
	bool thread = hd_self() == 0;

	while (value_of(&stop) == 0) {
		enter();
		if (next_random(&seed) % 2)
			enter();
		unsigned depth = monitor.mutex.depth;
		int err = hd_monitor_wait(&monitor, NULL, hd_after(next_random(&seed) % 30000));
		CHECK(err == 0 || err == -ETIMEDOUT || (err == -ECANCELED && !thread));
		CHECK_EQ((unsigned)depth_of(&monitor), depth);
		if (err == 0)
			CHECK_EQ(hd_monitor_signal(&monitor, NULL), 0);
		add(&errors, err != 0);
		for (; depth > 0; depth--)
			leave();
		if (err == -ECANCELED)
			CHECK_EQ(hd_cancel_clear(), 1);
		if (thread)
			sched_yield();
		else
			hd_yield();
	}
	return NULL;
}

static void *make_tokens(void *arg)
{
	for (int i = 0; i < each; i++) {
		enter();
		tokens++;
		CHECK_EQ(hd_monitor_signal(&monitor, NULL), 0);
		leave();
		if (i % 4 == 0)
			hd_sleep(HD_US(1));
	}
	return arg;
}

static void play_tokens(unsigned flags, int n)
{
	hd_pid makers[PATIENT], takers[PATIENT], others[IMPATIENT];
	unsigned seed = 1;

	hd_monitor_init(&monitor, flags);
	tokens = taken = stop = 0;
	each = n;
	struct plain_thread *thread = start_thread(wait_impatiently, (void *)9L);
	for (long i = 0; i < PATIENT; i++) {
		struct hd_spawn how = { .pinned = i % 2 == 0 };
		takers[i] = spawned(hd_spawn_with(&how, take_tokens, NULL));
		others[i] = spawned(hd_spawn_with(&how, wait_impatiently, (void *)(i + 1)));
		makers[i] = spawned(hd_spawn_with(&how, make_tokens, NULL));
	}
	while (value_of(&taken) < (long)PATIENT * each) {
		CHECK_EQ(hd_cancel(others[next_random(&seed) % IMPATIENT]), 0);
		hd_sleep(HD_US(next_random(&seed) % 20));
	}
	set(&stop, 1);
	for (int i = 0; i < PATIENT; i++) {
		CHECK_EQ(hd_join(makers[i], NULL, HD_FOREVER), 0);
		CHECK_EQ(hd_join(takers[i], NULL, HD_FOREVER), 0);
		CHECK_EQ(hd_join(others[i], NULL, HD_FOREVER), 0);
	}
	join_thread(thread);
	CHECK_EQ(tokens, 0);
	CHECK_EQ(queued(&monitor.changed.waiters), 0);
	CHECK_EQ(hd_monitor_enter(&monitor, 0), 0);
	leave();
}

HD_WORKERS_TEST(monitor_signal_is_not_lost_to_timeouts_and_cancels)
{
	play_tokens(0, hd_scaled(300));
	(void)workers;
}

HD_WORKERS_TEST(monitor_of_every_kind_loses_no_signal)
{
	for (unsigned flags = 0; flags < 8; flags++)
		play_tokens(flags, hd_scaled(60));
	(void)workers;
}

HD_WORKERS_STRESS(monitor_of_every_kind_loses_no_signal_for_long)
{
	for (unsigned flags = 0; flags < 8; flags++)
		play_tokens(flags, hd_scaled(3000));
	(void)workers;
}

/* ---- processes that are ended while they wait ---- */

static void leave_all(void *arg)
{
	CHECK_EQ(depth_of(&monitor), 2);
	leave();
	leave();
	(void)arg;
}

static void *wait_for_the_end(void *arg)
{
	struct hd_cleanup cleanup;

	enter();
	enter();
	CHECK_EQ(hd_cleanup_push(&cleanup, leave_all, NULL), 0);
	for (;;) {
		int err = hd_monitor_wait(&monitor, NULL, HD_FOREVER);
		CHECK_EQ(err, 0);
	}
	return arg;
}

static void *signal_until_told(void *arg)
{
	while (value_of(&stop) == 0) {
		enter();
		CHECK_EQ(arg ? hd_monitor_signal_all(&monitor, NULL) : hd_monitor_signal(&monitor, NULL), 0);
		leave();
		hd_sleep(HD_US(3));
	}
	return NULL;
}

HD_WORKERS_TEST(monitor_is_had_by_whoever_is_ended_in_it)
{
	hd_pid victims[6], signallers[2];
	unsigned seed = 1;

	for (unsigned flags = 0; flags < 8; flags++) {
		hd_monitor_init(&monitor, flags);
		stop = 0;
		for (int i = 0; i < 6; i++)
			victims[i] = spawned(hd_spawn_at(40, wait_for_the_end, NULL));
		for (long i = 0; i < 2; i++)
			signallers[i] = spawned(hd_spawn(signal_until_told, (void *)i));
		for (int round = 0; another_round(round, hd_scaled(100)); round++) {
			int i = (int)(next_random(&seed) % 6);
			hd_sleep(HD_US(next_random(&seed) % 10));
			CHECK_EQ(hd_terminate(victims[i], HD_FOREVER), 0);
			CHECK_EQ(end_of(victims[i]).kind, HD_END_KILLED);
			victims[i] = spawned(hd_spawn_at(40, wait_for_the_end, NULL));
		}
		set(&stop, 1);
		for (int i = 0; i < 2; i++)
			CHECK_EQ(hd_join(signallers[i], NULL, HD_FOREVER), 0);
		for (int i = 0; i < 6; i++) {
			CHECK_EQ(hd_terminate(victims[i], HD_FOREVER), 0);
			CHECK_EQ(hd_join(victims[i], NULL, HD_FOREVER), 0);
		}
		CHECK_EQ(hd_monitor_enter(&monitor, 0), 0);
		leave();
	}
	(void)workers;
}
