/* sync/barrier.c - what a barrier promises: n go on together, one of them is told so, and who left before was not there. */
#include "sync/common.h"

static struct hd_barrier barrier;

static void check_alone(void)
{
	struct hd_barrier zeroed, one = HD_BARRIER(1), two = HD_BARRIER(2);
	hd_time past[] = { INT64_MIN, -1, 0, hd_now(), hd_after(HD_MS(1)) };

	memset(&zeroed, 0, sizeof zeroed);
	for (int i = 0; i < 3; i++) { /* nobody else is needed */
		CHECK_EQ(hd_barrier_wait(&zeroed, HD_FOREVER), 1);
		CHECK_EQ(hd_barrier_wait(&one, 0), 1);
	}
	for (size_t i = 0; i < sizeof past / sizeof past[0]; i++)
		CHECK_EQ(hd_barrier_wait(&two, past[i]), -ETIMEDOUT);
	CHECK_EQ(queued(&two.waiters), 0);
	CHECK_EQ(hd_barrier_wait(&two, hd_after(HD_US(10))), -ETIMEDOUT); /* none of them counts as having come */
	hd_barrier_init(&two, 1);
	CHECK_EQ(hd_barrier_wait(&two, HD_FOREVER), 1);
}

HD_TEST(barrier_answers_on_plain_thread)
{
	check_alone();
}

HD_PROCESS_TEST(barrier_answers_on_process)
{
	check_alone();
}

static void *meet(void *word)
{
	int err = hd_barrier_wait(&barrier, HD_FOREVER);

	CHECK(err == 0 || err == 1 || err == -ECANCELED);
	trace(err == 0 ? "%s " : err == 1 ? "%s! " : "%s-not ", (const char *)word);
	return NULL;
}

HD_PROCESS_TEST(barrier_lets_all_go_in_their_order_and_tells_the_last)
{
	hd_barrier_init(&barrier, 3);
	for (int round = 0; round < 2; round++) {
		trace_clear();
		spawned(hd_spawn_at(50, meet, (void *)"a"));
		hd_pid b = spawned(hd_spawn_at(50, meet, (void *)"b"));
		CHECK_EQ(info_on(b).why, HD_WAIT_BARRIER);
		CHECK_STR(trace_text(), "");
		hd_pid c = spawned(hd_spawn_at(40, meet, (void *)"c"));
		CHECK_EQ(hd_join(c, NULL, HD_FOREVER), 0);
		CHECK_STR(trace_text(), "a b c! ");
	}
}

static void *meet_briefly(void *arg)
{
	errno = 3;
	CHECK_EQ(hd_barrier_wait(&barrier, hd_after(HD_MS(1))), -ETIMEDOUT);
	CHECK_EQ(errno, 3);
	return arg;
}

HD_PROCESS_TEST(barrier_does_not_count_who_timed_out)
{
	hd_barrier_init(&barrier, 3);
	spawned(hd_spawn_at(50, meet, (void *)"a"));
	run_at(50, meet_briefly, NULL);
	join_thread(start_thread(meet_briefly, NULL));
	spawned(hd_spawn_at(50, meet, (void *)"b"));
	CHECK_STR(trace_text(), "");
	CHECK_EQ(hd_barrier_wait(&barrier, HD_FOREVER), 1);
	CHECK_STR(trace_text(), "a b ");
}

HD_PROCESS_TEST(barrier_does_not_count_who_was_cancelled_or_terminated)
{
	hd_barrier_init(&barrier, 3);
	spawned(hd_spawn_at(50, meet, (void *)"a"));
	hd_pid b = spawned(hd_spawn_at(50, meet, (void *)"b"));
	CHECK_EQ(hd_cancel(b), 0);
	hd_pid c = spawned(hd_spawn_at(50, meet, (void *)"c"));
	CHECK_EQ(hd_terminate(c, HD_FOREVER), 0);
	CHECK_STR(trace_text(), "b-not ");
	CHECK_EQ(hd_barrier_wait(&barrier, hd_after(HD_MS(1))), -ETIMEDOUT);
	spawned(hd_spawn_at(50, meet, (void *)"d"));
	CHECK_EQ(hd_barrier_wait(&barrier, 0), 1);
	CHECK_STR(trace_text(), "b-not a d ");
	CHECK_EQ(hd_cancel(hd_self()), 0);
	CHECK_EQ(hd_barrier_wait(&barrier, HD_FOREVER), -ECANCELED);
	CHECK_EQ(hd_cancel_clear(), 1);
	CHECK_EQ(queued(&barrier.waiters), 0);
}

HD_PROCESS_TEST(barrier_counts_who_is_suspended_there)
{
	hd_barrier_init(&barrier, 3);
	hd_pid a = spawned(hd_spawn_at(50, meet, (void *)"a"));
	spawned(hd_spawn_at(50, meet, (void *)"b"));
	CHECK_EQ(hd_suspend(a, HD_FOREVER), 0);
	CHECK_EQ(hd_barrier_wait(&barrier, HD_FOREVER), 1);
	CHECK_STR(trace_text(), "b ");
	CHECK_EQ(hd_resume(a), 0);
	CHECK_STR(trace_text(), "b a ");
}

/* ---- many rounds ---- */

#define MEETERS 4

static long phase[MEETERS + 1], last_ones, rounds;

/* Nobody is a round ahead of anybody. */
static void *meet_often(void *arg)
{
	long me = (long)arg;

	for (long round = 0; round < rounds; round++) {
		set(&phase[me], round);
		int err = hd_barrier_wait(&barrier, HD_FOREVER);
		CHECK(err == 0 || err == 1);
		add(&last_ones, err);
		for (int i = 0; i <= MEETERS; i++) {
			long other = value_of(&phase[i]);
			CHECK(other == round || other == round + 1);
		}
		CHECK(hd_barrier_wait(&barrier, HD_FOREVER) >= 0); /* all have looked */
	}
	return NULL;
}

static void meet_in_rounds(int n)
{
	hd_pid pids[MEETERS];

	hd_barrier_init(&barrier, MEETERS + 1);
	rounds = n;
	last_ones = 0;
	memset(phase, 0, sizeof phase);
	for (long i = 0; i < MEETERS; i++)
		pids[i] = spawned(hd_spawn_with(&(struct hd_spawn){ .pinned = i % 2 == 0 }, meet_often, (void *)i));
	join_thread(start_thread(meet_often, (void *)(long)MEETERS));
	for (int i = 0; i < MEETERS; i++)
		CHECK_EQ(hd_join(pids[i], NULL, HD_FOREVER), 0);
	CHECK_EQ(last_ones, rounds);
	CHECK_EQ(queued(&barrier.waiters), 0);
}

HD_WORKERS_TEST(barrier_can_be_used_again_and_again)
{
	meet_in_rounds(hd_scaled(1000));
	(void)workers;
}

HD_WORKERS_STRESS(barrier_can_be_used_again_and_again_for_long)
{
	meet_in_rounds(hd_scaled(100000));
	(void)workers;
}

static void *meet_on_a_thread(void *arg)
{
	long *last = arg;

	for (int i = 0; i < 100; i++) {
		int err = hd_barrier_wait(&barrier, HD_FOREVER);
		CHECK(err == 0 || err == 1);
		add(last, err);
	}
	return NULL;
}

HD_TEST(barrier_threads_meet_without_a_runtime)
{
	struct plain_thread *threads[3];
	long last = 0;

	hd_barrier_init(&barrier, 3);
	for (int i = 0; i < 3; i++)
		threads[i] = start_thread(meet_on_a_thread, &last);
	for (int i = 0; i < 3; i++)
		join_thread(threads[i]);
	CHECK_EQ(last, 100);
}

/* ---- who leaves while others come ---- */

static long passed, told, left, stop;

/* However they come and go: those who pass are so many times n, and as many times one is told. */
static void *come_and_go(void *arg)
{
	unsigned seed = (unsigned)(long)arg;

	while (value_of(&stop) == 0) {
		hd_time until = next_random(&seed) % 4 == 0 ? 0 : hd_after(next_random(&seed) % 20000);
		int err = hd_barrier_wait(&barrier, until);
		add(&passed, err >= 0);
		add(&told, err == 1);
		add(&left, err < 0);
		CHECK(err == 0 || err == 1 || err == -ETIMEDOUT || err == -ECANCELED);
		if (err == -ECANCELED)
			CHECK_EQ(hd_cancel_clear(), 1);
		if (hd_self() != 0)
			hd_yield();
		else
			sched_yield();
	}
	return NULL;
}

static void come_and_go_all(unsigned n, int enough)
{
	hd_pid pids[5];
	unsigned seed = 3;

	hd_barrier_init(&barrier, n);
	passed = told = left = stop = 0;
	for (long i = 0; i < 5; i++)
		pids[i] = spawned(hd_spawn_with(&(struct hd_spawn){ .pinned = i % 2 == 0 }, come_and_go, (void *)(i + 1)));
	struct plain_thread *thread = start_thread(come_and_go, (void *)77L);
	for (int round = 0; another_round(round, enough); round++) {
		CHECK_EQ(hd_cancel(pids[next_random(&seed) % 5]), 0);
		hd_sleep(HD_US(next_random(&seed) % 40));
	}
	set(&stop, 1);
	for (int i = 0; i < 5; i++)
		CHECK_EQ(hd_join(pids[i], NULL, HD_FOREVER), 0);
	join_thread(thread);
	CHECK_EQ(passed, told * (long)n);
	CHECK_EQ(queued(&barrier.waiters), 0);
	if (n > 1) {
		for (unsigned i = 0; i < n; i++) /* it is as good as new */
			CHECK_EQ(hd_barrier_wait(&barrier, 0), -ETIMEDOUT);
	}
}

HD_WORKERS_TEST(barrier_is_passed_by_n_at_a_time_however_others_come_and_go)
{
	for (unsigned n = 2; n <= 4; n++)
		come_and_go_all(n, hd_scaled(500));
	(void)workers;
}

HD_WORKERS_STRESS(barrier_is_passed_by_n_at_a_time_for_long)
{
	for (unsigned n = 1; n <= 6; n++)
		come_and_go_all(n, hd_scaled(20000));
	(void)workers;
}

/* ---- a termination while all are let go ---- */

/* More than the last caller lets go under one lock: a process that came after them waits for long when its round is over. */
#define CROWD 40

static long back, back_of[WORKERS_MAX];

static void *come_back(void *count)
{
	CHECK(hd_barrier_wait(&barrier, HD_FOREVER) >= 0);
	add(count, 1);
	return NULL;
}

/* On a plain thread. A process that does not come back was not there: another one comes in its place. */
static void *terminate_and_replace(void *member)
{
	struct member *victim = member;
	int err = hd_terminate(victim->pid, HD_FOREVER);

	CHECK(err == 0 || err == -ESRCH);
	return value_of(victim->arg) != 0 ? NULL : come_back(&back);
}

/* The victim is not on the worker of the last caller, where a request would wait for the end of that call. */
HD_MANY_WORKERS_TEST(barrier_counts_no_terminated_process_that_does_not_come_back)
{
	hd_pid pids[CROWD];
	struct crew crew;
	void *counts[WORKERS_MAX];
	long all = 0;

	hd_barrier_init(&barrier, (unsigned)(CROWD + workers + 1));
	back = 0;
	for (int i = 0; i < WORKERS_MAX; i++) {
		back_of[i] = 0;
		counts[i] = &back_of[i];
	}
	for (int i = 0; i < CROWD; i++)
		pids[i] = spawned(hd_spawn(come_back, &back));
	await_queued(&barrier.waiters, CROWD);
	start_crew(&crew, NULL, workers, come_back, counts);
	await_queued(&barrier.waiters, CROWD + workers);
	struct plain_thread *other = start_thread(terminate_and_replace, &crew.members[crew.members[0].worker == 0]);
	come_back(&back);
	for (int i = 0; i < CROWD; i++)
		CHECK_EQ(hd_join(pids[i], NULL, HD_FOREVER), 0);
	join_crew_members(&crew);
	join_thread(other);
	for (int i = 0; i < workers; i++)
		all += back_of[i];
	CHECK_EQ(all + back, CROWD + workers + 1);
	CHECK_EQ(queued(&barrier.waiters), 0);
}

/* Small enough for every schedule: one comes for a moment, two more come for a while. With two there at a time or three, two pass together or
 * nobody does. */
static int answers[2];

static void *try_to_meet(void *answer)
{
	*(int *)answer = hd_barrier_wait(&barrier, hd_after(HD_US(20)));
	return NULL;
}

HD_TEST(barrier_is_not_completed_by_one_that_has_left)
{
	struct plain_thread *threads[2];

	for (int round = 0; another_round(round, hd_scaled(500)); round++) {
		hd_barrier_init(&barrier, 2);
		for (int i = 0; i < 2; i++)
			threads[i] = start_thread(try_to_meet, &answers[i]);
		for (int i = 0; i < 2; i++)
			join_thread(threads[i]);
		if (answers[0] == -ETIMEDOUT || answers[1] == -ETIMEDOUT)
			CHECK_EQ(answers[0], answers[1]);
		else
			CHECK_EQ(answers[0] + answers[1], 1);
		CHECK_EQ(hd_barrier_wait(&barrier, 0), -ETIMEDOUT);
	}
}
