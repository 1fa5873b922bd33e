/* sync/once.c - what hd_once promises: it is done once, by somebody who lives to do it, and who comes later waits for that. */
#include "sync/common.h"

static struct hd_once once;
static long calls, product; /* product: what is to be done; nothing but `once` guards it */

static void make(void *arg)
{
	CHECK(!hd_once_is_done(&once));
	product = 42;
	add(&calls, 1);
	(void)arg;
}

static void check_once(void)
{
	struct hd_once zeroed;

	memset(&zeroed, 0, sizeof zeroed);
	CHECK(!hd_once_is_done(&zeroed));
	CHECK(!hd_once_is_done(&once));
	CHECK_EQ(hd_once(&once, make, NULL, 0), 0); /* who does it need not wait */
	CHECK(hd_once_is_done(&once));
	for (int i = 0; i < 3; i++)
		CHECK_EQ(hd_once(&once, make, NULL, i == 0 ? 0 : HD_FOREVER), 0);
	CHECK_EQ(calls, 1);
}

HD_TEST(once_is_done_once_on_plain_thread)
{
	check_once();
}

HD_PROCESS_TEST(once_is_done_once_on_process)
{
	check_once();
}

static void do_again(void *arg)
{
	CHECK_EQ(hd_once(arg, do_again, arg, HD_FOREVER), -EDEADLK);
	CHECK_EQ(hd_once(arg, do_again, arg, 0), -EDEADLK);
	calls++;
}

HD_TEST(once_inside_itself_is_an_error_on_plain_thread)
{
	CHECK_EQ(hd_once(&once, do_again, &once, HD_FOREVER), 0);
	CHECK_EQ(calls, 1);
}

HD_PROCESS_TEST(once_inside_itself_is_an_error_on_process)
{
	CHECK_EQ(hd_once(&once, do_again, &once, HD_FOREVER), 0);
	CHECK_EQ(calls, 1);
}

static struct hd_once inner_once;

static void make_by_another(void *arg)
{
	CHECK_EQ(hd_once(&inner_once, make, NULL, HD_FOREVER), 0);
	(void)arg;
}

HD_PROCESS_TEST(once_may_need_another)
{
	CHECK_EQ(hd_once(&once, make_by_another, NULL, HD_FOREVER), 0);
	CHECK_EQ(calls, 1);
	CHECK(hd_once_is_done(&inner_once));
}

/* ---- who comes later ---- */

static struct hd_semaphore go;

/* A doer that is slow, and says who it is. */
static void make_slowly(void *word)
{
	trace("%s-begins ", (const char *)word);
	CHECK_EQ(hd_semaphore_wait(&go, HD_FOREVER), 0);
	trace("%s-done ", (const char *)word);
	add(&calls, 1);
}

static void *come(void *word)
{
	int err = hd_once(&once, make_slowly, word, HD_FOREVER);

	trace(err == 0 ? "%s " : "%s-not ", (const char *)word);
	return NULL;
}

HD_PROCESS_TEST(once_is_waited_for_by_those_who_come_later)
{
	hd_pid a = spawned(hd_spawn_at(50, come, (void *)"a"));
	hd_pid b = spawned(hd_spawn_at(50, come, (void *)"b"));
	spawned(hd_spawn_at(50, come, (void *)"c"));
	CHECK_EQ(info_on(b).why, HD_WAIT_ONCE);
	CHECK_EQ(info_on(b).holder, a);
	CHECK(!hd_once_is_done(&once));
	errno = 6;
	CHECK_EQ(hd_once(&once, make_slowly, NULL, 0), -ETIMEDOUT);
	CHECK_EQ(hd_once(&once, make_slowly, NULL, hd_now()), -ETIMEDOUT);
	CHECK_EQ(hd_once(&once, make_slowly, NULL, hd_after(HD_MS(1))), -ETIMEDOUT);
	CHECK_EQ(errno, 6);
	CHECK_EQ(queued(&once.waiters), 2);
	CHECK_EQ(hd_semaphore_signal(&go), 0);
	CHECK_STR(trace_text(), "a-begins a-done a b c ");
	CHECK_EQ(calls, 1);
}

HD_PROCESS_TEST(once_wait_can_be_cancelled)
{
	spawned(hd_spawn_at(50, come, (void *)"a"));
	hd_pid b = spawned(hd_spawn_at(50, come, (void *)"b"));
	hd_pid c = spawned(hd_spawn_at(50, come, (void *)"c"));
	CHECK_EQ(hd_cancel(b), 0);
	CHECK_EQ(hd_terminate(c, HD_FOREVER), 0);
	CHECK_EQ(queued(&once.waiters), 0);
	CHECK_EQ(hd_semaphore_signal(&go), 0);
	CHECK_STR(trace_text(), "a-begins b-not a-done a ");
}

HD_PROCESS_TEST(once_suspended_waiter_is_let_go_when_it_is_resumed)
{
	spawned(hd_spawn_at(50, come, (void *)"a"));
	hd_pid b = spawned(hd_spawn_at(50, come, (void *)"b"));
	CHECK_EQ(hd_suspend(b, HD_FOREVER), 0);
	CHECK_EQ(hd_semaphore_signal(&go), 0);
	CHECK_STR(trace_text(), "a-begins a-done a ");
	CHECK_EQ(hd_resume(b), 0);
	CHECK_STR(trace_text(), "a-begins a-done a b ");
}

/* ---- a doer that ends ---- */

HD_PROCESS_TEST(once_whose_doer_is_terminated_is_done_by_the_next)
{
	hd_pid a = spawned(hd_spawn_at(50, come, (void *)"a"));
	hd_pid b = spawned(hd_spawn_at(50, come, (void *)"b"));
	hd_pid c = spawned(hd_spawn_at(50, come, (void *)"c"));
	CHECK_EQ(hd_terminate(a, HD_FOREVER), 0);
	CHECK_EQ(info_on(c).holder, b);
	CHECK_EQ(hd_terminate(b, HD_FOREVER), 0);
	CHECK(!hd_once_is_done(&once));
	CHECK_EQ(hd_semaphore_signal(&go), 0);
	CHECK_STR(trace_text(), "a-begins b-begins c-begins c-done c ");
	CHECK_EQ(calls, 1);
	CHECK(hd_once_is_done(&once));
}

static void give_up(void *how)
{
	if (how != NULL)
		hd_exit(NULL);
	hd_fail(EIO);
}

static void *come_and_give_up(void *how)
{
	CHECK_EQ(hd_once(&once, give_up, how, HD_FOREVER), 0);
	CHECK(false);
	return NULL;
}

HD_PROCESS_TEST(once_whose_doer_ended_is_as_new)
{
	run_at(50, come_and_give_up, NULL);
	CHECK(!hd_once_is_done(&once));
	run_at(50, come_and_give_up, &once);
	CHECK(!hd_once_is_done(&once));
	CHECK_EQ(hd_once(&once, make, NULL, 0), 0);
	CHECK_EQ(calls, 1);
}

/* The next was chosen, and is ended before it can begin: it passes it on too. */
HD_PROCESS_TEST(once_passes_by_a_doer_that_ends_before_it_begins)
{
	hd_pid a = spawned(hd_spawn_at(50, come, (void *)"a"));
	hd_pid b = spawned(hd_spawn_at(50, come, (void *)"b"));
	spawned(hd_spawn_at(50, come, (void *)"c"));
	CHECK_EQ(hd_suspend(b, HD_FOREVER), 0);
	CHECK_EQ(hd_terminate(a, HD_FOREVER), 0);
	CHECK_EQ(info_on(b).state, HD_SUSPENDED); /* it is the doer, but does not run */
	CHECK_EQ(hd_terminate(b, HD_FOREVER), 0);
	CHECK_EQ(hd_semaphore_signal(&go), 0);
	CHECK_EQ(calls, 1);
	CHECK_STR(trace_text(), "a-begins b-begins c-begins c-done c ");
}

static void *come_on_a_thread(void *word)
{
	CHECK_EQ(hd_once(&once, make_slowly, word, HD_FOREVER), 0);
	return NULL;
}

HD_PROCESS_TEST(once_whose_doer_is_terminated_is_done_by_a_thread)
{
	hd_pid a = spawned(hd_spawn_at(50, come, (void *)"a"));
	struct plain_thread *thread = start_thread(come_on_a_thread, (void *)"thread");
	await_queued(&once.waiters, 1);
	CHECK_EQ(hd_terminate(a, HD_FOREVER), 0);
	CHECK_EQ(hd_semaphore_signal(&go), 0);
	CHECK_EQ(hd_once(&once, make_slowly, (void *)"main", HD_FOREVER), 0);
	join_thread(thread);
	CHECK_STR(trace_text(), "a-begins thread-begins thread-done ");
}

HD_PROCESS_TEST(once_done_by_a_thread_lets_processes_go)
{
	struct plain_thread *thread = start_thread(come_on_a_thread, (void *)"thread");

	await_queued(&go.waiters, 1);
	CHECK_EQ(hd_once(&once, make, NULL, hd_after(HD_MS(1))), -ETIMEDOUT);
	hd_pid pid = spawned(hd_spawn(come, (void *)"process"));
	await_queued(&once.waiters, 1);
	CHECK(info_on(pid).holder <= 0); /* no process */
	CHECK_EQ(hd_semaphore_signal(&go), 0);
	join_thread(thread);
	CHECK_EQ(hd_join(pid, NULL, HD_FOREVER), 0);
	CHECK_EQ(calls, 1);
}

/* ---- all at once ---- */

static void *come_and_look(void *arg)
{
	CHECK_EQ(hd_once(&once, make, NULL, HD_FOREVER), 0);
	CHECK_EQ(product, 42);
	CHECK(hd_once_is_done(&once));
	return arg;
}

static void *look_until_done(void *arg)
{
	while (!hd_once_is_done(&once))
		sched_yield();
	CHECK_EQ(product, 42); /* what was done is visible without the lock */
	return arg;
}

HD_TEST(once_is_done_once_by_threads_without_a_runtime)
{
	struct plain_thread *threads[4];

	for (int round = 0; another_round(round, hd_scaled(500)); round++) {
		once = (struct hd_once)HD_ONCE;
		calls = product = 0;
		for (int i = 0; i < 4; i++)
			threads[i] = start_thread(i < 3 ? come_and_look : look_until_done, NULL);
		for (int i = 0; i < 4; i++)
			join_thread(threads[i]);
		CHECK_EQ(calls, 1);
	}
}

static void make_or_end(void *arg)
{
	unsigned *seed = arg;

	CHECK_EQ(add(&calls, 1), 1); /* one doer at a time */
	hd_yield();
	if (next_random(seed) % 3 != 0) {
		add(&calls, -1);
		hd_exit(NULL);
	}
	product = 42;
}

static void *come_or_end(void *arg)
{
	unsigned seed = (unsigned)(long)arg;
	int err =
		hd_once(&once, make_or_end, &seed, next_random(&seed) % 4 ? HD_FOREVER : hd_after(next_random(&seed) % 20000));

	CHECK(err == 0 || err == -ETIMEDOUT || err == -ECANCELED);
	if (err == 0)
		CHECK_EQ(product, 42);
	return NULL;
}

static void come_all(int n)
{
	hd_pid pids[8];
	unsigned seed = 1;

	for (int round = 0; another_round(round, n); round++) {
		once = (struct hd_once)HD_ONCE;
		calls = product = 0;
		for (long i = 0; i < 8; i++) {
			struct hd_spawn how = { .pinned = i % 2 == 0 };
			pids[i] = spawned(hd_spawn_with(&how, come_or_end, (void *)(long)next_random(&seed)));
		}
		int err = hd_cancel(pids[next_random(&seed) % 8]);
		CHECK(err == 0 || err == -ESRCH);
		for (int i = 0; i < 8; i++)
			CHECK_EQ(hd_join(pids[i], NULL, HD_FOREVER), 0);
		CHECK_EQ(queued(&once.waiters), 0);
		bool done = hd_once_is_done(&once);
		CHECK_EQ(product, done ? 42 : 0);
		CHECK_EQ(calls, done);
		if (!done)
			CHECK_EQ(hd_once(&once, make, NULL, 0), 0);
	}
}

HD_WORKERS_TEST(once_has_one_doer_at_a_time_however_many_end)
{
	come_all(hd_scaled(1000));
	(void)workers;
}

HD_WORKERS_STRESS(once_has_one_doer_at_a_time_for_long)
{
	under_stress = true;
	come_all(hd_scaled(50000));
	(void)workers;
}
