/* life/cancel.c - a cancel is heard at the next call that waits, which takes nothing; cleanups run, last in, first out. */
#include <errno.h>
#include <string.h>

#include "life/waits.h"
#include "sched/workers.h"

static int many(int n)
{
	return hd_is_simulated() ? n / 100 + 2 : hd_scaled(n);
}

static long joined(hd_pid pid)
{
	void *result;

	CHECK_EQ(hd_join(pid, &result, HD_FOREVER), 0);
	return (long)result;
}

static struct hd_end end_of(hd_pid pid)
{
	struct hd_end end;

	CHECK_EQ(hd_join_end(pid, &end, HD_FOREVER), 0);
	return end;
}

static void say_word(void *word)
{
	trace("%s ", (const char *)word);
}

/* ---- answers ---- */

static void check_plain(void *arg)
{
	struct hd_cleanup cleanup;

	(void)arg;
	CHECK_EQ(hd_set_cancel_state(HD_CANCEL_DISABLED), -ENOTSUP);
	CHECK_EQ(hd_set_cancel_type(HD_CANCEL_UNWIND), -ENOTSUP);
	CHECK_EQ(hd_test_cancel(), -ENOTSUP);
	CHECK_EQ(hd_cancel_clear(), -ENOTSUP);
	CHECK_EQ(hd_cleanup_push(&cleanup, not_called, NULL), -ENOTSUP);
	CHECK_EQ(hd_cleanup_pop(&cleanup, true), -ENOTSUP);
}

HD_TEST(cancel_needs_a_runtime)
{
	CHECK_EQ(hd_cancel(1), -ENXIO);
	check_plain(NULL);
}

HD_PROCESS_TEST(cancel_states_are_for_processes)
{
	on_plain_thread(check_plain, NULL);
}

HD_PROCESS_TEST(cancel_of_nobody_is_an_error)
{
	hd_pid pid = born(hd_spawn_at(50, nothing, NULL));

	CHECK_EQ(hd_cancel(0), -ESRCH);
	CHECK_EQ(hd_cancel(-1), -ESRCH);
	CHECK_EQ(hd_cancel(pid), -ESRCH); /* it has ended, though it can be joined */
	CHECK_EQ(joined(pid), 0);
	CHECK_EQ(hd_cancel(pid), -ESRCH);
}

HD_PROCESS_TEST(cancel_states_and_types_answer_what_they_were)
{
	CHECK_EQ(hd_set_cancel_state(HD_CANCEL_DISABLED), HD_CANCEL_ENABLED);
	CHECK_EQ(hd_set_cancel_state(HD_CANCEL_DISABLED), HD_CANCEL_DISABLED);
	CHECK_EQ(hd_set_cancel_state((enum hd_cancel_state)2), -EINVAL);
	CHECK_EQ(hd_set_cancel_state((enum hd_cancel_state) - 1), -EINVAL);
	CHECK_EQ(hd_set_cancel_state(HD_CANCEL_ENABLED), HD_CANCEL_DISABLED);
	CHECK_EQ(hd_set_cancel_type(HD_CANCEL_UNWIND), HD_CANCEL_RETURN);
	CHECK_EQ(hd_set_cancel_type((enum hd_cancel_type)2), -EINVAL);
	CHECK_EQ(hd_set_cancel_type((enum hd_cancel_type) - 1), -EINVAL);
	CHECK_EQ(hd_set_cancel_type(HD_CANCEL_RETURN), HD_CANCEL_UNWIND);
	CHECK_EQ(hd_test_cancel(), 0);
	CHECK_EQ(hd_cancel_clear(), 0);
}

/* ---- type return ---- */

HD_PROCESS_TEST(cancel_is_heard_until_it_is_cleared)
{
	CHECK_EQ(hd_cancel(hd_self()), 0);
	CHECK_EQ(hd_cancel(hd_self()), 0); /* twice is the same as once */
	for (int i = 0; i < 3; i++) {
		CHECK_EQ(hd_test_cancel(), -ECANCELED);
		CHECK_EQ(hd_sleep(1), -ECANCELED);
	}
	CHECK_EQ(hd_cancel_clear(), 1);
	CHECK_EQ(hd_cancel_clear(), 0);
	CHECK_EQ(hd_test_cancel(), 0);
	CHECK_EQ(hd_sleep(1), 0);
}

HD_PROCESS_TEST(cancel_is_kept_while_disabled)
{
	CHECK_EQ(hd_set_cancel_state(HD_CANCEL_DISABLED), 0);
	CHECK_EQ(hd_cancel(hd_self()), 0);
	CHECK_EQ(hd_test_cancel(), 0);
	CHECK_EQ(hd_sleep(1), 0);
	CHECK_EQ(hd_set_cancel_state(HD_CANCEL_ENABLED), HD_CANCEL_DISABLED);
	CHECK_EQ(hd_sleep(1), -ECANCELED);
	CHECK_EQ(hd_set_cancel_state(HD_CANCEL_DISABLED), 0);
	CHECK_EQ(hd_sleep(1), 0);
	CHECK_EQ(hd_cancel_clear(), 1); /* it can be forgotten unheard */
	CHECK_EQ(hd_set_cancel_state(HD_CANCEL_ENABLED), HD_CANCEL_DISABLED);
	CHECK_EQ(hd_sleep(1), 0);
}

HD_PROCESS_TEST(cancel_ends_every_kind_of_wait)
{
	make_things();
	for (int i = 0; i < WAITS; i++) {
		trace_clear();
		trace("%s", waits[i].name);
		hd_pid pid = born(hd_spawn_at(50, make_call, (void *)&waits[i]));
		CHECK_EQ(hd_sleep(HD_MS(1)), 0); /* members of a group start */
		CHECK_EQ(info_of(pid).why, waits[i].why);
		CHECK_EQ(hd_cancel(pid), 0);
		CHECK_EQ(joined(pid), -ECANCELED);
	}
	drop_things();
}

static void *call_when_cancelled(void *wait)
{
	CHECK_EQ(hd_cancel(hd_self()), 0);
	return make_call(wait);
}

HD_PROCESS_TEST(cancel_that_came_before_is_heard_by_every_call_that_waits)
{
	make_things();
	for (int i = 0; i < WAITS; i++) {
		trace_clear();
		trace("%s", waits[i].name);
		CHECK_EQ(joined(born(hd_spawn_at(50, call_when_cancelled, (void *)&waits[i]))), -ECANCELED);
	}
	drop_things();
}

/* Also when there is something to take: it stays. */
HD_PROCESS_TEST(cancel_that_came_before_takes_nothing)
{
	make_things();
	CHECK_EQ(hd_semaphore_signal(&things.none), 0);
	CHECK_EQ(hd_queue_put(things.empty, &(long){ 5 }, 0), 0);
	CHECK_EQ(hd_queue_next(things.full, &(long){ 0 }, 0), 0);
	hd_pid zombie = born(hd_spawn_at(50, nothing, NULL));
	CHECK_EQ(hd_cancel(hd_self()), 0);
	CHECK_EQ(wait_semaphore(), -ECANCELED);
	CHECK_EQ(wait_critical(), -ECANCELED);
	CHECK_EQ(wait_next(), -ECANCELED);
	CHECK_EQ(wait_next_many(), -ECANCELED);
	CHECK_EQ(wait_put(), -ECANCELED);
	CHECK_EQ(wait_put_many(), -ECANCELED);
	CHECK_EQ(wait_select(), -ECANCELED);
	CHECK_EQ(hd_join(zombie, NULL, HD_FOREVER), -ECANCELED);
	CHECK_EQ(hd_cancel_clear(), 1);
	CHECK_EQ(joined(zombie), 0);
	CHECK_EQ(hd_semaphore_try_wait(&things.none), 0);
	CHECK_EQ(hd_semaphore_try_wait(&things.none), -EAGAIN);
	CHECK_EQ(hd_queue_length(things.full), 0);
	CHECK_EQ(hd_queue_put(things.full, &(long){ 1 }, 0), 0);
	CHECK_EQ(hd_queue_next(things.empty, &(long){ 0 }, 0), 0);
	drop_things();
}

static void lock_and_say(void *m)
{
	CHECK_EQ(hd_mutex_lock(m, HD_FOREVER), 0);
	trace("locked ");
	CHECK_EQ(hd_mutex_unlock(m), 0);
}

static void *lock_cancelled(void *arg)
{
	lock_and_say(&things.held);
	CHECK_EQ(hd_monitor_enter(&things.monitor, HD_FOREVER), 0);
	CHECK_EQ(hd_monitor_exit(&things.monitor), 0);
	CHECK_EQ(hd_test_cancel(), -ECANCELED);
	return arg;
}

HD_PROCESS_TEST(cancel_is_not_heard_in_hd_mutex_lock)
{
	make_things();
	hd_pid pid = born(hd_spawn_at(50, lock_cancelled, NULL));
	CHECK_EQ(hd_cancel(pid), 0);
	CHECK_EQ(info_of(pid).why, HD_WAIT_MUTEX);
	CHECK_EQ(hd_semaphore_signal(&things.release), 0);
	CHECK_EQ(joined(pid), 0);
	CHECK_STR(trace_text(), "locked ");
	CHECK_EQ(hd_semaphore_signal(&things.release), 0);
	join_all((hd_pid[]){ things.holder, things.stubborn }, 2);
	hd_queue_drop(things.empty);
	hd_queue_drop(things.full);
	hd_promise_release(things.pending);
}

HD_PROCESS_TEST(cancel_is_not_heard_by_mere_tries)
{
	struct hd_case c = hd_case_semaphore(&things.none);
	struct hd_group group = { .count = 0 };

	make_things();
	CHECK_EQ(hd_cancel(hd_self()), 0);
	CHECK_EQ(hd_semaphore_try_wait(&things.none), -EAGAIN);
	CHECK_EQ(hd_semaphore_signal(&things.none), 0);
	CHECK_EQ(hd_semaphore_try_wait(&things.none), 0);
	CHECK_EQ(hd_semaphore_wait(&things.none, 0), -ETIMEDOUT);
	CHECK_EQ(hd_queue_try_next(things.full, &(long){ 0 }), 0);
	CHECK_EQ(hd_queue_try_put(things.full, &(long){ 1 }), 0);
	CHECK_EQ(hd_queue_try_put(things.full, &(long){ 1 }), -EAGAIN);
	CHECK_EQ(hd_queue_peek(things.full, &(long){ 0 }), 0);
	CHECK_EQ(hd_mutex_try_lock(&things.held), -EAGAIN);
	CHECK_EQ(hd_rwlock_try_read(&things.written), -EAGAIN);
	CHECK_EQ(hd_event_try_wait(&things.event), -EAGAIN);
	CHECK_EQ(hd_promise_value(things.pending, NULL, 0), -ETIMEDOUT);
	CHECK_EQ(hd_select(&c, 1, 0), -ETIMEDOUT);
	CHECK_EQ(hd_join(things.holder, NULL, 0), -ETIMEDOUT);
	CHECK_EQ(hd_group_wait(&group, 0), 0);
	CHECK_EQ(hd_yield(), 0);
	CHECK_EQ(hd_checkpoint(), 0);
	CHECK_EQ(hd_cancel_clear(), 1);
	drop_things();
}

/* ---- at what moment ---- */

static void *sleep_then_test(void *arg)
{
	trace("%d ", hd_sleep_until(HD_FOREVER));
	trace("%d ", hd_test_cancel());
	return arg;
}

HD_PROCESS_TEST(cancel_before_the_first_run_is_heard_in_it)
{
	hd_pid pid = born(hd_spawn(sleep_then_test, NULL));

	CHECK_EQ(hd_cancel(pid), 0);
	CHECK_EQ(joined(pid), 0);
	pid = born(hd_spawn_with(&(struct hd_spawn){ .suspended = true }, sleep_then_test, NULL));
	CHECK_EQ(hd_cancel(pid), 0);
	CHECK_EQ(state_of(pid), HD_SUSPENDED);
	CHECK_EQ(hd_resume(pid), 0);
	CHECK_EQ(joined(pid), 0);
	CHECK_STR(trace_text(), "-125 -125 -125 -125 ");
}

HD_PROCESS_TEST(cancel_does_not_resume)
{
	hd_pid pid = born(hd_spawn_at(50, sleep_then_test, NULL));

	CHECK_EQ(hd_suspend(pid, HD_FOREVER), 0);
	CHECK_EQ(hd_cancel(pid), 0);
	CHECK_EQ(hd_sleep(HD_MS(1)), 0);
	CHECK_STR(trace_text(), "");
	CHECK(info_of(pid).suspended);
	CHECK_EQ(hd_resume(pid), 0);
	CHECK_STR(trace_text(), "-125 -125 ");
	CHECK_EQ(joined(pid), 0);
}

static void *wait_then_test(void *arg)
{
	trace("%d ", hd_semaphore_wait(&things.none, HD_FOREVER));
	trace("%d ", hd_test_cancel());
	return arg;
}

HD_PROCESS_TEST(cancel_that_comes_after_the_grant_is_heard_later)
{
	hd_pid pid = born(hd_spawn_at(50, wait_then_test, NULL));

	CHECK_EQ(hd_suspend(pid, HD_FOREVER), 0);
	CHECK_EQ(hd_semaphore_signal(&things.none), 0);
	CHECK_EQ(hd_cancel(pid), 0);
	CHECK_EQ(hd_resume(pid), 0);
	CHECK_STR(trace_text(), "0 -125 ");
	CHECK(!hd_semaphore_is_signaled(&things.none));
	CHECK_EQ(joined(pid), 0);
}

static void *wait_disabled(void *arg)
{
	CHECK_EQ(hd_set_cancel_state(HD_CANCEL_DISABLED), 0);
	return wait_then_test(arg);
}

HD_PROCESS_TEST(cancel_leaves_a_wait_alone_that_does_not_hear_it)
{
	hd_pid pid = born(hd_spawn_at(50, wait_disabled, NULL));

	CHECK_EQ(hd_cancel(pid), 0);
	CHECK_EQ(state_of(pid), HD_WAITING);
	CHECK_EQ(hd_semaphore_signal(&things.none), 0);
	CHECK_EQ(joined(pid), 0);
	CHECK_STR(trace_text(), "0 0 ");
}

/* ---- type unwind ---- */

static void *call_to_unwind(void *wait)
{
	struct hd_cleanup a, b;

	CHECK_EQ(hd_set_cancel_type(HD_CANCEL_UNWIND), 0);
	CHECK_EQ(hd_cleanup_push(&a, say_word, (void *)"a"), 0);
	CHECK_EQ(hd_cleanup_push(&b, say_word, (void *)"b"), 0);
	make_call(wait);
	CHECK(!"it came back");
	return NULL;
}

HD_PROCESS_TEST(cancel_of_type_unwind_does_not_come_back_from_any_wait)
{
	make_things();
	for (int i = 0; i < WAITS; i++) {
		trace_clear();
		hd_pid pid = born(hd_spawn_at(50, call_to_unwind, (void *)&waits[i]));
		CHECK_EQ(hd_sleep(HD_MS(1)), 0);
		CHECK_EQ(hd_cancel(pid), 0);
		struct hd_end end = end_of(pid);
		CHECK_EQ(end.kind, HD_END_CANCELLED);
		CHECK(end.err == 0 && end.result == NULL);
		CHECK_STR(trace_text(), "b a ");
	}
	drop_things();
}

static void *unwind_at_once(void *arg)
{
	struct hd_cleanup cleanup;

	hd_cleanup_push(&cleanup, say_word, (void *)"cleanup");
	CHECK_EQ(hd_cancel(hd_self()), 0);
	CHECK_EQ(hd_test_cancel(), -ECANCELED);
	CHECK_EQ(hd_set_cancel_type(HD_CANCEL_UNWIND), HD_CANCEL_RETURN);
	CHECK_EQ(hd_set_cancel_state(HD_CANCEL_DISABLED), HD_CANCEL_ENABLED);
	CHECK_EQ(hd_test_cancel(), 0);
	CHECK_EQ(hd_set_cancel_state(HD_CANCEL_ENABLED), HD_CANCEL_DISABLED);
	CHECK_EQ(hd_semaphore_try_wait(&things.none), -EAGAIN);
	hd_test_cancel();
	CHECK(!"it came back");
	return arg;
}

HD_PROCESS_TEST(cancel_of_type_unwind_waits_for_the_next_point_that_hears_it)
{
	hd_pid pid = born(hd_spawn(unwind_at_once, NULL));

	CHECK_EQ(end_of(pid).kind, HD_END_CANCELLED);
	CHECK_STR(trace_text(), "cleanup ");
}

/* ---- cleanups ---- */

HD_PROCESS_TEST(cleanup_is_popped_last_in_first_out)
{
	struct hd_cleanup a, b, c;

	CHECK_EQ(hd_cleanup_push(&a, NULL, NULL), -EINVAL);
	CHECK_EQ(hd_cleanup_pop(&a, true), -EINVAL);
	CHECK_EQ(hd_cleanup_push(&a, say_word, (void *)"a"), 0);
	CHECK_EQ(hd_cleanup_push(&b, say_word, (void *)"b"), 0);
	CHECK_EQ(hd_cleanup_push(&c, not_called, NULL), 0);
	CHECK_EQ(hd_cleanup_pop(&a, true), -EINVAL);
	CHECK_EQ(hd_cleanup_pop(&b, true), -EINVAL);
	CHECK_EQ(hd_cleanup_pop(&c, false), 0);
	CHECK_EQ(hd_cleanup_pop(&c, true), -EINVAL);
	CHECK_EQ(hd_cleanup_pop(&b, true), 0);
	CHECK_EQ(hd_cleanup_pop(&a, true), 0);
	CHECK_EQ(hd_cleanup_pop(&a, true), -EINVAL);
	CHECK_STR(trace_text(), "b a ");
}

static struct hd_local local = HD_LOCAL(say_word);

static void *end_with_cleanups(void *how)
{
	struct hd_cleanup a, b;

	CHECK_EQ(hd_local_set(&local, (void *)"local"), 0);
	hd_cleanup_push(&a, say_word, (void *)"a");
	hd_cleanup_push(&b, say_word, (void *)"b");
	if (how == NULL)
		hd_exit((void *)3L);
	else
		hd_fail(EIO);
	return NULL;
}

HD_PROCESS_TEST(cleanup_runs_by_exit_and_by_fail_and_before_locals_are_destroyed)
{
	struct hd_end end = end_of(born(hd_spawn(end_with_cleanups, NULL)));

	CHECK_EQ(end.kind, HD_END_RETURNED);
	CHECK_EQ((long)end.result, 3);
	CHECK_STR(trace_text(), "b a local ");
	trace_clear();
	end = end_of(born(hd_spawn(end_with_cleanups, &local)));
	CHECK_EQ(end.kind, HD_END_FAILED);
	CHECK_EQ(end.err, -EIO);
	CHECK_STR(trace_text(), "b a local ");
}

static void wait_in_cleanup(void *word)
{
	CHECK_EQ(hd_sleep(HD_US(10)), 0); /* does not hear cancels any more */
	CHECK_EQ(hd_test_cancel(), 0);
	CHECK_EQ(hd_cancel(hd_self()), 0);
	CHECK_EQ(hd_semaphore_wait(&things.none, hd_after(HD_US(10))), -ETIMEDOUT);
	say_word(word);
}

static void end_in_cleanup(void *word)
{
	say_word(word);
	hd_exit(NULL);
}

static void *wait_with_cleanups(void *type)
{
	struct hd_cleanup a, b, c;

	hd_set_cancel_type(type != NULL ? HD_CANCEL_UNWIND : HD_CANCEL_RETURN);
	CHECK_EQ(hd_local_set(&local, (void *)"local"), 0);
	hd_cleanup_push(&a, wait_in_cleanup, (void *)"a");
	hd_cleanup_push(&b, end_in_cleanup, (void *)"b");
	hd_cleanup_push(&c, wait_in_cleanup, (void *)"c");
	hd_sleep_until(HD_FOREVER);
	return NULL;
}

/* One that ends the process again is not the last that runs. */
HD_PROCESS_TEST(cleanup_may_wait_and_may_end_the_process_again)
{
	hd_pid pid = born(hd_spawn_at(50, wait_with_cleanups, &local));

	CHECK_EQ(hd_cancel(pid), 0);
	end_of(pid);
	CHECK_STR(trace_text(), "c b a local ");
	trace_clear();
	pid = born(hd_spawn_at(50, wait_with_cleanups, NULL));
	CHECK_EQ(hd_terminate(pid, HD_FOREVER), 0);
	end_of(pid);
	CHECK_STR(trace_text(), "c b a local ");
}

/* Each frame has something to free, which it would free itself if it came back. */
static void descend(int depth)
{
	struct hd_cleanup cleanup;
	char frame[100], *memory = malloc(50);

	memset(frame, depth, sizeof frame);
	hd_cleanup_push(&cleanup, free, memory);
	if (depth > 0)
		descend(depth - 1);
	else
		hd_sleep_until(HD_FOREVER);
	CHECK(frame[50] == (char)depth);
	hd_cleanup_pop(&cleanup, true);
}

static void *descend_and_wait(void *type)
{
	hd_set_cancel_type(type != NULL ? HD_CANCEL_UNWIND : HD_CANCEL_RETURN);
	descend(40);
	return NULL;
}

HD_PROCESS_TEST(cleanup_runs_from_any_depth)
{
	for (int i = 0; i < 20; i++) {
		hd_pid pid = born(hd_spawn_at(50, descend_and_wait, i % 2 ? &local : NULL));
		CHECK_EQ(i % 3 ? hd_cancel(pid) : hd_terminate(pid, HD_FOREVER), 0);
		CHECK_EQ(end_of(pid).kind, i % 3 == 0 ? HD_END_KILLED : i % 2 ? HD_END_CANCELLED : HD_END_RETURNED);
	}
}

static void *forget_to_pop(void *arg)
{
	static struct hd_cleanup cleanup;

	hd_cleanup_push(&cleanup, not_called, NULL);
	return arg;
}

HD_TEST_DIES(cleanup_that_is_not_popped_dies_when_its_process_returns, "returned without hd_cleanup_pop")
{
	CHECK_EQ(hd_run(&(struct hd_config){ .fixed = true, .workers = 1 }, forget_to_pop, NULL), 0);
}

static void *shut_down(void *arg)
{
	struct hd_cleanup cleanup;

	(void)arg;
	hd_cleanup_push(&cleanup, say_word, (void *)"main");
	born(hd_spawn_at(50, wait_with_cleanups, NULL));
	CHECK_EQ(hd_shutdown(4), 0);
	hd_sleep_until(HD_FOREVER);
	CHECK(!"it came back");
	return NULL;
}

HD_TEST(cleanup_runs_when_the_runtime_ends)
{
	CHECK_EQ(hd_run(&(struct hd_config){ .fixed = true, .workers = 1 }, shut_down, NULL), 4);
	CHECK(strstr(trace_text(), "main ") != NULL);
	CHECK(strstr(trace_text(), "a local ") != NULL);
}

/* ---- from elsewhere ---- */

#define VICTIMS 6

static struct hd_semaphore sem;
static long taken, heard, given;
static int stop;

static void *take_and_clear(void *arg)
{
	unsigned seed = (unsigned)(long)arg;

	while (!read_flag(&stop)) {
		int err = hd_semaphore_wait(&sem, next_random(&seed) % 2 ? HD_FOREVER : hd_after(next_random(&seed) % 10000));
		if (err == 0)
			add(&taken, 1);
		else if (err == -ECANCELED)
			add(&heard, hd_cancel_clear());
		else
			CHECK_EQ(err, -ETIMEDOUT);
	}
	return NULL;
}

static hd_pid victims[VICTIMS];
static int each_cancels;

static void *cancel_and_give(void *arg)
{
	unsigned seed = (unsigned)(long)arg;

	for (int i = 0; i < each_cancels; i++) {
		CHECK_EQ(hd_cancel(victims[next_random(&seed) % VICTIMS]), 0);
		if (next_random(&seed) % 2) {
			CHECK_EQ(hd_semaphore_signal(&sem), 0);
			add(&given, 1);
		}
		if (hd_self() != 0)
			hd_sleep(HD_US(next_random(&seed) % 4));
	}
	return NULL;
}

static void cancel_from_elsewhere(int workers, bool movable, int n)
{
	hd_pid cancellers[2];

	(void)workers;
	hd_semaphore_init(&sem, 0);
	taken = heard = given = 0;
	set_flag(&stop, 0);
	each_cancels = n;
	for (long i = 0; i < VICTIMS; i++)
		victims[i] = born(hd_spawn_with(&(struct hd_spawn){ .pinned = !movable }, take_and_clear, (void *)(i + 1)));
	struct plain_thread *thread = start_thread(cancel_and_give, (void *)7L);
	for (long i = 0; i < 2; i++)
		cancellers[i] = born(hd_spawn(cancel_and_give, (void *)(i + 20)));
	join_all(cancellers, 2);
	join_thread(thread);
	set_flag(&stop, 1);
	for (int i = 0; i < VICTIMS; i++) {
		int err = hd_cancel(victims[i]);
		CHECK(err == 0 || err == -ESRCH);
	}
	join_all(victims, VICTIMS);
	while (hd_semaphore_try_wait(&sem) == 0)
		taken++;
	CHECK_EQ(taken, given);
	CHECK(heard > 0 || hd_is_simulated() || HD_UNDER_TSAN); /* the victims may all have begun too late */
	CHECK(sem.waiters.head == NULL);
}

HD_WORKERS_TEST(cancel_from_elsewhere_loses_no_signal)
{
	cancel_from_elsewhere(workers, false, many(2000));
	cancel_from_elsewhere(workers, true, many(2000));
}

HD_WORKERS_STRESS(cancel_from_elsewhere_loses_none_of_many_signals)
{
	cancel_from_elsewhere(workers, false, many(40000));
	cancel_from_elsewhere(workers, true, many(40000));
}

static long cleaned;

static void count_cleaned(void *arg)
{
	(void)arg;
	add(&cleaned, 1);
}

static void *wait_to_unwind(void *arg)
{
	struct hd_cleanup cleanup;

	hd_set_cancel_type(HD_CANCEL_UNWIND);
	hd_cleanup_push(&cleanup, count_cleaned, NULL);
	while (hd_semaphore_wait(&sem, HD_FOREVER) == 0) {
		hd_semaphore_signal(&sem);
		hd_yield();
	}
	return arg;
}

HD_WORKERS_TEST(cancel_from_elsewhere_unwinds_each_once)
{
	(void)workers;
	for (int round = 0; another_round(round, many(200)); round++) {
		cleaned = 0;
		hd_semaphore_init(&sem, round % 3);
		for (int i = 0; i < VICTIMS; i++)
			victims[i] = born(hd_spawn_with(&(struct hd_spawn){ .pinned = round % 2 == 0 }, wait_to_unwind, NULL));
		if (round % 4)
			hd_sleep(HD_US(round % 50));
		for (int i = 0; i < VICTIMS; i++)
			CHECK_EQ(hd_cancel(victims[i]), 0);
		for (int i = 0; i < VICTIMS; i++)
			CHECK_EQ(end_of(victims[i]).kind, HD_END_CANCELLED);
		CHECK_EQ(cleaned, VICTIMS);
		CHECK(sem.waiters.head == NULL);
		CHECK_EQ(sem.excess, round % 3); /* between wait and signal nobody was ended */
	}
}
