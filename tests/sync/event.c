/* sync/event.c - what an event promises: set lets all go, or one; no set is lost, unless it was set already. */
#include "sync/common.h"

static struct hd_event event;

static void check_manual(void)
{
	struct hd_event e = HD_EVENT(0), already = HD_EVENT(HD_EVENT_SET);

	CHECK(!hd_event_is_set(&e));
	CHECK_EQ(hd_event_try_wait(&e), -EAGAIN);
	CHECK_EQ(hd_event_wait(&e, 0), -ETIMEDOUT);
	CHECK_EQ(hd_event_wait(&e, hd_now()), -ETIMEDOUT);
	hd_time until = hd_after(HD_MS(1));
	CHECK_EQ(hd_event_wait(&e, until), -ETIMEDOUT);
	CHECK(hd_now() >= until);
	CHECK_EQ(queued(&e.waiters), 0);
	CHECK_EQ(hd_event_set(&e), 0);
	CHECK_EQ(hd_event_set(&e), 0);
	for (int i = 0; i < 3; i++) {
		CHECK(hd_event_is_set(&e));
		CHECK_EQ(hd_event_try_wait(&e), 0);
		CHECK_EQ(hd_event_wait(&e, HD_FOREVER), 0);
	}
	CHECK_EQ(hd_event_reset(&e), 0);
	CHECK_EQ(hd_event_reset(&e), 0);
	CHECK_EQ(hd_event_try_wait(&e), -EAGAIN);
	CHECK_EQ(hd_event_wait(&already, HD_FOREVER), 0);
	hd_event_init(&e, HD_EVENT_SET);
	CHECK_EQ(hd_event_try_wait(&e), 0);
}

static void check_auto(void)
{
	struct hd_event e = HD_EVENT(HD_EVENT_AUTO), already = HD_EVENT(HD_EVENT_AUTO | HD_EVENT_SET);

	CHECK_EQ(hd_event_try_wait(&e), -EAGAIN);
	CHECK_EQ(hd_event_set(&e), 0);
	CHECK_EQ(hd_event_set(&e), 0); /* lost */
	CHECK(hd_event_is_set(&e));
	CHECK_EQ(hd_event_wait(&e, HD_FOREVER), 0);
	CHECK(!hd_event_is_set(&e));
	CHECK_EQ(hd_event_try_wait(&e), -EAGAIN);
	CHECK_EQ(hd_event_set(&e), 0);
	CHECK_EQ(hd_event_reset(&e), 0);
	CHECK_EQ(hd_event_wait(&e, hd_after(HD_US(10))), -ETIMEDOUT);
	CHECK_EQ(hd_event_set(&e), 0);
	CHECK_EQ(hd_event_try_wait(&e), 0);
	CHECK_EQ(hd_event_try_wait(&already), 0);
	CHECK_EQ(hd_event_try_wait(&already), -EAGAIN);
	hd_event_init(&e, HD_EVENT_AUTO | HD_EVENT_SET);
	CHECK_EQ(hd_event_try_wait(&e), 0);
	CHECK_EQ(hd_event_try_wait(&e), -EAGAIN);
}

HD_TEST(event_answers_on_plain_thread)
{
	errno = 9;
	check_manual();
	check_auto();
	CHECK_EQ(errno, 9);
}

HD_PROCESS_TEST(event_answers_on_process)
{
	errno = 9;
	check_manual();
	check_auto();
	CHECK_EQ(errno, 9);
}

HD_TEST(event_zeroed_memory_has_not_happened)
{
	CHECK(!hd_event_is_set(&event));
	CHECK_EQ(hd_event_try_wait(&event), -EAGAIN);
	CHECK_EQ(hd_event_set(&event), 0);
	CHECK_EQ(hd_event_try_wait(&event), 0);
	CHECK(hd_event_is_set(&event)); /* and does not reset by itself */
}

static void *await(void *word)
{
	int err = hd_event_wait(&event, HD_FOREVER);

	CHECK(err == 0 || err == -ECANCELED);
	trace(err == 0 ? "%s " : "%s-not ", (const char *)word);
	return NULL;
}

static void *await_briefly(void *arg)
{
	CHECK_EQ(hd_event_wait(&event, hd_after(HD_MS(1))), -ETIMEDOUT);
	return arg;
}

HD_PROCESS_TEST(event_set_lets_all_go_in_their_order)
{
	hd_pid a = spawned(hd_spawn_at(50, await, (void *)"a"));
	CHECK_EQ(info_on(a).why, HD_WAIT_EVENT);
	spawned(hd_spawn_at(50, await, (void *)"b"));
	spawned(hd_spawn_at(50, await, (void *)"c"));
	CHECK_EQ(hd_event_set(&event), 0);
	spawned(hd_spawn_at(50, await, (void *)"later"));
	CHECK_STR(trace_text(), "a b c later ");
	CHECK_EQ(hd_event_reset(&event), 0);
	spawned(hd_spawn_at(50, await, (void *)"d"));
	CHECK_STR(trace_text(), "a b c later ");
	CHECK_EQ(hd_event_set(&event), 0);
	CHECK_STR(trace_text(), "a b c later d ");
}

/* Who was let go is not held back by a reset that comes before it runs. */
HD_PROCESS_TEST(event_reset_does_not_call_back_who_was_let_go)
{
	hd_pid pids[2];

	pids[0] = spawned(hd_spawn_at(30, await, (void *)"a"));
	await_queued(&event.waiters, 1);
	pids[1] = spawned(hd_spawn_at(30, await, (void *)"b"));
	await_queued(&event.waiters, 2);
	CHECK_EQ(hd_event_set(&event), 0);
	CHECK_EQ(hd_event_reset(&event), 0);
	CHECK(!hd_event_is_set(&event));
	CHECK_EQ(hd_join(pids[0], NULL, HD_FOREVER), 0);
	CHECK_EQ(hd_join(pids[1], NULL, HD_FOREVER), 0);
	CHECK_STR(trace_text(), "a b ");
}

HD_PROCESS_TEST(event_auto_lets_one_go_for_each_set_in_order_of_arrival)
{
	hd_event_init(&event, HD_EVENT_AUTO);
	spawned(hd_spawn_at(50, await, (void *)"a"));
	spawned(hd_spawn_at(70, await, (void *)"b"));
	spawned(hd_spawn_at(60, await, (void *)"c"));
	for (int i = 0; i < 3; i++) {
		CHECK_EQ(hd_event_set(&event), 0);
		CHECK(!hd_event_is_set(&event));
		trace("%d ", i);
	}
	CHECK_STR(trace_text(), "a 0 b 1 c 2 ");
	CHECK_EQ(hd_event_set(&event), 0);
	CHECK(hd_event_is_set(&event));
}

/* A set goes by those who have left, and is kept if they were the last. */
HD_PROCESS_TEST(event_auto_set_is_not_lost_to_who_has_left)
{
	hd_event_init(&event, HD_EVENT_AUTO);
	hd_pid brief = spawned(hd_spawn_at(50, await_briefly, NULL));
	hd_pid cancelled = spawned(hd_spawn_at(50, await, (void *)"cancelled"));
	hd_pid ended = spawned(hd_spawn_at(50, await, (void *)"ended"));
	spawned(hd_spawn_at(50, await, (void *)"last"));
	CHECK_EQ(hd_cancel(cancelled), 0);
	CHECK_EQ(hd_terminate(ended, HD_FOREVER), 0);
	CHECK_EQ(hd_join(brief, NULL, HD_FOREVER), 0);
	CHECK_EQ(hd_event_set(&event), 0);
	CHECK_STR(trace_text(), "cancelled-not last ");
	CHECK(!hd_event_is_set(&event));
	run_at(50, await_briefly, NULL);
	CHECK_EQ(hd_event_set(&event), 0);
	CHECK_EQ(hd_event_try_wait(&event), 0);
}

HD_PROCESS_TEST(event_wait_of_who_is_cancelled_takes_nothing)
{
	hd_event_init(&event, HD_EVENT_AUTO | HD_EVENT_SET);
	CHECK_EQ(hd_cancel(hd_self()), 0);
	CHECK_EQ(hd_event_wait(&event, HD_FOREVER), -ECANCELED);
	CHECK(hd_event_is_set(&event));
	CHECK_EQ(hd_event_try_wait(&event), 0); /* to try is no cancellation point */
	CHECK_EQ(hd_cancel_clear(), 1);
}

HD_PROCESS_TEST(event_set_for_a_suspended_waiter_is_kept_for_it)
{
	hd_event_init(&event, HD_EVENT_AUTO);
	hd_pid a = spawned(hd_spawn_at(50, await, (void *)"a"));
	spawned(hd_spawn_at(50, await, (void *)"b"));
	CHECK_EQ(hd_suspend(a, HD_FOREVER), 0);
	CHECK_EQ(hd_event_set(&event), 0);
	CHECK(!hd_event_is_set(&event));
	CHECK_EQ(hd_event_set(&event), 0);
	CHECK_STR(trace_text(), "b ");
	CHECK_EQ(hd_resume(a), 0);
	CHECK_STR(trace_text(), "b a ");
}

static void *set_later(void *arg)
{
	hd_sleep(HD_MS(1));
	CHECK_EQ(hd_event_set(&event), 0);
	return arg;
}

/* A loop that only asks gives way to the one that will set it. */
HD_PROCESS_TEST(event_can_be_polled)
{
	spawned(hd_spawn_at(50, set_later, NULL));
	while (!hd_event_is_set(&event))
		;
}

/* ---- plain threads ---- */

static void *await_silently(void *arg)
{
	CHECK_EQ(hd_event_wait(&event, HD_FOREVER), 0);
	return arg;
}

static void *set_when_awaited(void *n)
{
	await_queued(&event.waiters, (int)(long)n);
	CHECK_EQ(hd_event_set(&event), 0);
	return NULL;
}

HD_TEST(event_threads_let_each_other_go_without_a_runtime)
{
	struct plain_thread *threads[4];

	for (int i = 0; i < 4; i++)
		threads[i] = i < 3 ? start_thread(await_silently, NULL) : start_thread(set_when_awaited, (void *)3L);
	for (int i = 0; i < 4; i++)
		join_thread(threads[i]);
}

HD_PROCESS_TEST(event_threads_and_processes_let_each_other_go)
{
	struct plain_thread *waiter = start_thread(await_silently, NULL), *setter;

	await_queued(&event.waiters, 1);
	hd_pid pid = spawned(hd_spawn(await_silently, NULL));
	await_queued(&event.waiters, 2);
	setter = start_thread(set_when_awaited, (void *)2L);
	join_thread(setter);
	join_thread(waiter);
	CHECK_EQ(hd_join(pid, NULL, HD_FOREVER), 0);
}

/* ---- no set is lost or doubled ---- */

#define ACTORS 6

static long taken, stop;

static void *take_sets(void *arg)
{
	unsigned seed = (unsigned)(long)arg;

	while (value_of(&stop) == 0) {
		int err = hd_event_wait(&event, hd_after(next_random(&seed) % 20000));
		CHECK(err == 0 || err == -ETIMEDOUT || err == -ECANCELED);
		add(&taken, err == 0);
		if (err == -ECANCELED)
			CHECK_EQ(hd_cancel_clear(), 1);
		if (hd_self() == 0)
			sched_yield();
	}
	return NULL;
}

/* Each is taken before the next is given, so none can be lost because it was set already. */
static void give_and_take(int n)
{
	hd_pid pids[ACTORS];
	unsigned seed = 3;
	int given = 0;

	hd_event_init(&event, HD_EVENT_AUTO);
	taken = stop = 0;
	for (long i = 0; i < ACTORS; i++)
		pids[i] = spawned(hd_spawn_with(&(struct hd_spawn){ .pinned = i % 2 == 0 }, take_sets, (void *)(i + 1)));
	struct plain_thread *thread = start_thread(take_sets, (void *)99L);
	for (; another_round(given, n); given++) {
		CHECK_EQ(hd_event_set(&event), 0);
		CHECK_EQ(hd_cancel(pids[next_random(&seed) % ACTORS]), 0);
		while (value_of(&taken) <= given)
			hd_sleep(HD_US(5));
		CHECK_EQ(value_of(&taken), given + 1);
	}
	set(&stop, 1);
	for (int i = 0; i < ACTORS; i++)
		CHECK_EQ(hd_join(pids[i], NULL, HD_FOREVER), 0);
	join_thread(thread);
	CHECK_EQ(taken, given);
	CHECK(!hd_event_is_set(&event));
	CHECK_EQ(queued(&event.waiters), 0);
}

HD_WORKERS_TEST(event_auto_set_is_taken_once)
{
	give_and_take(hd_scaled(1000));
	(void)workers;
}

HD_WORKERS_STRESS(event_auto_set_is_taken_once_for_long)
{
	under_stress = true;
	give_and_take(hd_scaled(50000));
	(void)workers;
}

/* A manual event: all who wait go on, round after round. */
static struct hd_event begin_round, end_round;
static long arrived;

static void *follow(void *rounds)
{
	for (long i = 0; i < (long)rounds; i++) {
		CHECK_EQ(hd_event_wait(&begin_round, HD_FOREVER), 0);
		add(&arrived, 1);
		CHECK_EQ(hd_event_wait(&end_round, HD_FOREVER), 0);
		add(&arrived, 1);
	}
	return NULL;
}

HD_WORKERS_TEST(event_set_lets_all_go_on_every_worker)
{
	hd_pid pids[ACTORS];
	long rounds = hd_scaled(300);

	hd_event_init(&begin_round, 0);
	hd_event_init(&end_round, 0);
	arrived = 0;
	for (int i = 0; i < ACTORS; i++)
		pids[i] = spawned(hd_spawn(follow, (void *)rounds));
	for (long i = 0; i < 2 * rounds; i++) {
		CHECK_EQ(hd_event_reset(i % 2 ? &begin_round : &end_round), 0);
		CHECK_EQ(hd_event_set(i % 2 ? &end_round : &begin_round), 0);
		while (value_of(&arrived) < ACTORS * (i + 1))
			hd_sleep(HD_US(5));
	}
	for (int i = 0; i < ACTORS; i++)
		CHECK_EQ(hd_join(pids[i], NULL, HD_FOREVER), 0);
	(void)workers;
}
