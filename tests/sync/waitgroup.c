/* sync/waitgroup.c - what a wait group promises: who waits goes on when the count is 0, and the count is what was added to it. */
#include "sync/common.h"

static struct hd_waitgroup group;

static void check_answers(void)
{
	struct hd_waitgroup g = HD_WAITGROUP(2);

	CHECK_EQ(hd_waitgroup_wait(&g, 0), -ETIMEDOUT);
	CHECK_EQ(hd_waitgroup_wait(&g, hd_now()), -ETIMEDOUT);
	hd_time until = hd_after(HD_MS(1));
	CHECK_EQ(hd_waitgroup_wait(&g, until), -ETIMEDOUT);
	CHECK(hd_now() >= until);
	CHECK_EQ(queued(&g.waiters), 0);
	CHECK_EQ(hd_waitgroup_add(&g, -3), -EINVAL);
	CHECK_EQ(hd_waitgroup_add(&g, INT_MIN), -EINVAL);
	CHECK_EQ(g.count, 2);
	CHECK_EQ(hd_waitgroup_add(&g, 0), 0);
	CHECK_EQ(hd_waitgroup_done(&g), 0);
	CHECK_EQ(hd_waitgroup_wait(&g, 0), -ETIMEDOUT);
	CHECK_EQ(hd_waitgroup_done(&g), 0);
	CHECK_EQ(hd_waitgroup_wait(&g, 0), 0);
	CHECK_EQ(hd_waitgroup_wait(&g, HD_FOREVER), 0);
	CHECK_EQ(hd_waitgroup_done(&g), -EINVAL);
	CHECK_EQ(hd_waitgroup_add(&g, 0), 0);
	CHECK_EQ(hd_waitgroup_wait(&g, 0), 0);
	CHECK_EQ(hd_waitgroup_add(&g, 5), 0); /* and again */
	CHECK_EQ(hd_waitgroup_wait(&g, 0), -ETIMEDOUT);
	CHECK_EQ(hd_waitgroup_add(&g, -5), 0);
	CHECK_EQ(hd_waitgroup_wait(&g, HD_FOREVER), 0);
	hd_waitgroup_init(&g, UINT_MAX - 1);
	CHECK_EQ(hd_waitgroup_add(&g, 2), -EOVERFLOW);
	CHECK_EQ(hd_waitgroup_add(&g, INT_MAX), -EOVERFLOW);
	CHECK_EQ(g.count, UINT_MAX - 1);
	CHECK_EQ(hd_waitgroup_add(&g, 1), 0);
	CHECK_EQ(hd_waitgroup_add(&g, 1), -EOVERFLOW);
}

HD_TEST(waitgroup_answers_on_plain_thread)
{
	errno = 9;
	check_answers();
	CHECK_EQ(errno, 9);
}

HD_PROCESS_TEST(waitgroup_answers_on_process)
{
	errno = 9;
	check_answers();
	CHECK_EQ(errno, 9);
}

HD_TEST(waitgroup_zeroed_memory_is_of_none)
{
	CHECK_EQ(hd_waitgroup_wait(&group, HD_FOREVER), 0);
	CHECK_EQ(hd_waitgroup_done(&group), -EINVAL);
}

static void *await(void *word)
{
	int err = hd_waitgroup_wait(&group, HD_FOREVER);

	CHECK(err == 0 || err == -ECANCELED);
	trace(err == 0 ? "%s " : "%s-not ", (const char *)word);
	return NULL;
}

static void *await_briefly(void *arg)
{
	CHECK_EQ(hd_waitgroup_wait(&group, hd_after(HD_MS(1))), -ETIMEDOUT);
	return arg;
}

HD_PROCESS_TEST(waitgroup_lets_all_go_in_their_order_when_the_count_is_0)
{
	hd_waitgroup_init(&group, 2);
	hd_pid a = spawned(hd_spawn_at(50, await, (void *)"a"));
	CHECK_EQ(info_on(a).why, HD_WAIT_WAITGROUP);
	spawned(hd_spawn_at(50, await, (void *)"b"));
	CHECK_EQ(hd_waitgroup_add(&group, 1), 0);
	CHECK_EQ(hd_waitgroup_add(&group, -4), -EINVAL);
	CHECK_EQ(hd_waitgroup_done(&group), 0);
	CHECK_EQ(hd_waitgroup_done(&group), 0);
	CHECK_STR(trace_text(), "");
	CHECK_EQ(hd_waitgroup_done(&group), 0);
	CHECK_STR(trace_text(), "a b ");
}

/* Who was let go is not held back by a count that goes up before it runs. */
HD_PROCESS_TEST(waitgroup_of_0_lets_go_for_good)
{
	hd_waitgroup_init(&group, 1);
	hd_pid low = spawned(hd_spawn_at(30, await, (void *)"low"));
	await_queued(&group.waiters, 1);
	CHECK_EQ(hd_waitgroup_done(&group), 0);
	CHECK_EQ(hd_waitgroup_add(&group, 1), 0);
	CHECK_EQ(hd_join(low, NULL, HD_FOREVER), 0);
	CHECK_STR(trace_text(), "low ");
}

HD_PROCESS_TEST(waitgroup_goes_by_who_has_left)
{
	hd_waitgroup_init(&group, 1);
	hd_pid brief = spawned(hd_spawn_at(50, await_briefly, NULL));
	hd_pid cancelled = spawned(hd_spawn_at(50, await, (void *)"cancelled"));
	hd_pid ended = spawned(hd_spawn_at(50, await, (void *)"ended"));
	spawned(hd_spawn_at(50, await, (void *)"last"));
	CHECK_EQ(hd_cancel(cancelled), 0);
	CHECK_EQ(hd_terminate(ended, HD_FOREVER), 0);
	CHECK_EQ(hd_join(brief, NULL, HD_FOREVER), 0);
	CHECK_EQ(hd_waitgroup_done(&group), 0);
	CHECK_STR(trace_text(), "cancelled-not last ");
	CHECK_EQ(hd_cancel(hd_self()), 0);
	CHECK_EQ(hd_waitgroup_wait(&group, HD_FOREVER), -ECANCELED);
	CHECK_EQ(hd_cancel_clear(), 1);
}

HD_PROCESS_TEST(waitgroup_suspended_waiter_is_let_go_when_it_is_resumed)
{
	hd_waitgroup_init(&group, 1);
	hd_pid a = spawned(hd_spawn_at(50, await, (void *)"a"));
	CHECK_EQ(hd_suspend(a, HD_FOREVER), 0);
	CHECK_EQ(hd_waitgroup_done(&group), 0);
	CHECK_STR(trace_text(), "");
	CHECK_EQ(hd_resume(a), 0);
	CHECK_STR(trace_text(), "a ");
}

/* ---- work that is waited for ---- */

static long results[8];

static void *work(void *arg)
{
	long i = (long)arg;

	results[i] += i; /* nothing but the wait group orders this with who waits */
	CHECK_EQ(hd_waitgroup_done(&group), 0);
	return NULL;
}

static void *await_on_a_thread(void *arg)
{
	CHECK_EQ(hd_waitgroup_wait(&group, HD_FOREVER), 0);
	return arg;
}

static void work_in_rounds(int n)
{
	hd_pid pids[8];

	memset(results, 0, sizeof results);
	hd_waitgroup_init(&group, 0);
	for (int round = 0; another_round(round, n); round++) {
		CHECK_EQ(hd_waitgroup_add(&group, 8), 0);
		for (long i = 0; i < 7; i++)
			pids[i] = spawned(hd_spawn(work, (void *)i));
		struct plain_thread *waiter = start_thread(await_on_a_thread, NULL);
		struct plain_thread *worker = start_thread(work, (void *)7L);
		CHECK_EQ(hd_waitgroup_wait(&group, HD_FOREVER), 0);
		for (long i = 0; i < 8; i++)
			CHECK_EQ(results[i], i * (round + 1));
		join_thread(waiter);
		join_thread(worker);
		for (int i = 0; i < 7; i++)
			CHECK_EQ(hd_join(pids[i], NULL, HD_FOREVER), 0);
	}
	CHECK_EQ(group.count, 0);
}

HD_WORKERS_TEST(waitgroup_shows_what_was_done)
{
	work_in_rounds(hd_scaled(200));
	(void)workers;
}

HD_WORKERS_STRESS(waitgroup_shows_what_was_done_for_long)
{
	under_stress = true;
	work_in_rounds(hd_scaled(10000));
	(void)workers;
}

HD_TEST(waitgroup_threads_let_each_other_go_without_a_runtime)
{
	struct plain_thread *threads[4];

	hd_waitgroup_init(&group, 2);
	for (long i = 0; i < 4; i++)
		threads[i] = start_thread(i < 2 ? await_on_a_thread : work, (void *)i);
	for (int i = 0; i < 4; i++)
		join_thread(threads[i]);
	CHECK_EQ(results[2] + results[3], 5);
}

/* ---- waiters that come and go while it counts ---- */

static long stop, gone_on, left;

static void *await_often(void *arg)
{
	unsigned seed = (unsigned)(long)arg;

	while (value_of(&stop) == 0) {
		int err = hd_waitgroup_wait(&group, hd_after(next_random(&seed) % 20000));
		CHECK(err == 0 || err == -ETIMEDOUT || err == -ECANCELED);
		add(err == 0 ? &gone_on : &left, 1);
		if (err == -ECANCELED)
			CHECK_EQ(hd_cancel_clear(), 1);
		hd_yield();
	}
	return NULL;
}

static void *count_up_and_down(void *arg)
{
	for (long i = 0; i < (long)arg; i++) {
		CHECK_EQ(hd_waitgroup_add(&group, 3), 0);
		CHECK_EQ(hd_waitgroup_add(&group, -2), 0);
		CHECK_EQ(hd_waitgroup_done(&group), 0);
		if (i % 8 == 0)
			hd_sleep(HD_US(3));
	}
	return NULL;
}

HD_WORKERS_TEST(waitgroup_keeps_count_whoever_waits)
{
	hd_pid counters[4], waiters[4];
	unsigned seed = 1;
	long each = hd_scaled(500);

	hd_waitgroup_init(&group, 0);
	stop = 0;
	for (long i = 0; i < 4; i++) {
		waiters[i] = spawned(hd_spawn_with(&(struct hd_spawn){ .pinned = i % 2 == 0 }, await_often, (void *)(i + 1)));
		counters[i] = spawned(hd_spawn(count_up_and_down, (void *)each));
	}
	for (long i = 0; i < each / 4; i++) {
		CHECK_EQ(hd_cancel(waiters[next_random(&seed) % 4]), 0);
		hd_sleep(HD_US(3));
	}
	for (int i = 0; i < 4; i++)
		CHECK_EQ(hd_join(counters[i], NULL, HD_FOREVER), 0);
	CHECK_EQ(hd_waitgroup_wait(&group, 0), 0);
	set(&stop, 1);
	for (int i = 0; i < 4; i++)
		CHECK_EQ(hd_join(waiters[i], NULL, HD_FOREVER), 0);
	CHECK_EQ(group.count, 0);
	CHECK_EQ(queued(&group.waiters), 0);
	(void)workers;
}
