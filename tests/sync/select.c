/* sync/select.c - exactly one of several things happens, and of the others nothing is taken. */
#include <errno.h>
#include <string.h>

#include "life/common.h"
#include "sched/workers.h"

static int many(int n)
{
	return hd_is_simulated() ? n / 100 + 2 : hd_scaled(n);
}

static hd_queue *q, *q2;
static struct hd_semaphore sem;
static hd_promise *promise;

static void make_things(size_t capacity)
{
	q = hd_queue_new(sizeof(long), capacity);
	q2 = hd_queue_new(sizeof(long), capacity);
	promise = hd_promise_new();
	CHECK(q != NULL && q2 != NULL && promise != NULL);
	hd_semaphore_init(&sem, 0);
}

static void drop_things(void)
{
	CHECK(sem.waiters.head == NULL);
	hd_queue_drop(q); /* dies if anybody is left in it */
	hd_queue_drop(q2);
	hd_promise_release(promise);
}

static void put_long(hd_queue *queue, long item)
{
	CHECK_EQ(hd_queue_put(queue, &item, 0), 0);
}

static long joined(hd_pid pid)
{
	void *result;

	CHECK_EQ(hd_join(pid, &result, HD_FOREVER), 0);
	return (long)result;
}

/* ---- each kind ---- */

HD_PROCESS_TEST(select_takes_what_is_there)
{
	long item = 0, gift = 5;
	void *value;
	struct hd_end end;

	make_things(1);
	struct hd_case c = hd_case_put(q, &gift);
	CHECK_EQ(hd_select(&c, 1, 0), 0);
	CHECK_EQ(c.err, 0);
	CHECK_EQ(hd_select(&c, 1, 0), -ETIMEDOUT);
	c = hd_case_next(q, &item);
	CHECK_EQ(hd_select(&c, 1, HD_FOREVER), 0);
	CHECK_EQ(item, 5);
	CHECK_EQ(hd_select(&c, 1, 0), -ETIMEDOUT);
	CHECK_EQ(hd_semaphore_signal(&sem), 0);
	c = hd_case_semaphore(&sem);
	CHECK_EQ(hd_select(&c, 1, 0), 0);
	CHECK_EQ(c.err, 0);
	CHECK_EQ(hd_select(&c, 1, 0), -ETIMEDOUT);
	c = hd_case_promise(promise, &value);
	CHECK_EQ(hd_select(&c, 1, 0), -ETIMEDOUT);
	CHECK_EQ(hd_promise_set(promise, &c), 0);
	CHECK_EQ(hd_select(&c, 1, 0), 0);
	CHECK(value == &c);
	hd_pid pid = born(hd_spawn(nothing, &item));
	c = hd_case_join(pid, &end);
	CHECK_EQ(hd_select(&c, 1, 0), -ETIMEDOUT);
	hd_yield();
	CHECK_EQ(hd_select(&c, 1, 0), 0);
	CHECK_EQ(c.err, 0);
	CHECK(end.kind == HD_END_RETURNED && end.result == &item);
	CHECK(is_gone(pid));
	drop_things();
}

static void *do_each(void *arg)
{
	static void *value;
	static struct hd_end end;
	static long item, gift = 9;
	struct hd_case cases[] = { hd_case_next(q, &item), hd_case_semaphore(&sem), hd_case_promise(promise, &value),
				   hd_case_join((hd_pid)(long)arg, &end), hd_case_put(q2, &gift) };

	for (int i = 0; i < 5; i++) {
		int which = hd_select(cases, 5, HD_FOREVER);
		CHECK_EQ(cases[which].err, 0);
		cases[which].kind = HD_CASE_NOTHING;
		trace("%d ", which);
	}
	CHECK(item == 3 && value == &sem && end.kind == HD_END_RETURNED);
	return NULL;
}

HD_PROCESS_TEST(select_waits_for_each_kind)
{
	make_things(1);
	put_long(q2, 1);
	hd_pid target = born(hd_spawn_with(&(struct hd_spawn){ .suspended = true, .priority = 60 }, nothing, NULL));
	hd_pid pid = born(hd_spawn_at(50, do_each, (void *)target));

	CHECK_EQ(info_of(pid).why, HD_WAIT_SELECT);
	CHECK_EQ(hd_resume(target), 0);
	CHECK_EQ(hd_semaphore_signal(&sem), 0);
	put_long(q, 3);
	long item;
	CHECK_EQ(hd_queue_next(q2, &item, 0), 0);
	CHECK_EQ(item, 1);
	CHECK_EQ(hd_promise_set(promise, &sem), 0);
	CHECK_EQ(hd_join(pid, NULL, HD_FOREVER), 0);
	CHECK_STR(trace_text(), "3 1 0 4 2 ");
	CHECK_EQ(hd_queue_next(q2, &item, 0), 0);
	CHECK_EQ(item, 9);
	CHECK(!hd_semaphore_is_signaled(&sem));
	drop_things();
}

HD_PROCESS_TEST(select_of_nothing_waits_for_time)
{
	struct hd_case cases[2];
	hd_time until = hd_after(HD_MS(2));

	memset(cases, 0, sizeof cases);
	CHECK_EQ(hd_select(NULL, 0, 0), -ETIMEDOUT);
	CHECK_EQ(hd_select(NULL, 0, until), -ETIMEDOUT);
	CHECK(hd_now() >= until);
	CHECK_EQ(hd_select(cases, 2, 0), -ETIMEDOUT);
	CHECK_EQ(hd_select(cases, 2, hd_after(HD_MS(1))), -ETIMEDOUT);
	CHECK_EQ(hd_select_first(cases, 2, hd_after(HD_MS(1))), -ETIMEDOUT);
	cases[1].kind = (enum hd_case_kind)(HD_CASE_RECEIVE + 1);
	CHECK_EQ(hd_select(cases, 2, 0), -EINVAL);
	cases[1].kind = (enum hd_case_kind) - 1;
	CHECK_EQ(hd_select(cases, 2, HD_FOREVER), -EINVAL);
}

static void check_plain(void *arg)
{
	struct hd_case c = hd_case_time(0);

	(void)arg;
	CHECK_EQ(hd_select(&c, 1, 0), -ENOTSUP);
	CHECK_EQ(hd_select_first(&c, 1, 0), -ENOTSUP);
	CHECK_EQ(hd_select(NULL, 0, 0), -ENOTSUP);
}

HD_TEST(select_is_for_processes)
{
	check_plain(NULL);
}

HD_PROCESS_TEST(select_is_not_for_plain_threads)
{
	on_plain_thread(check_plain, NULL);
}

/* ---- time ---- */

HD_PROCESS_TEST(select_time_that_has_passed_happens_at_once)
{
	struct hd_case cases[] = { hd_case_semaphore(&sem), hd_case_time(hd_after(-1)) };

	CHECK_EQ(hd_select(cases, 2, 0), 1);
	CHECK_EQ(cases[1].err, 0);
	cases[1] = hd_case_time(0);
	CHECK_EQ(hd_select(cases, 2, HD_FOREVER), 1);
	cases[1] = hd_case_time(HD_FOREVER);
	CHECK_EQ(hd_select(cases, 2, hd_after(HD_MS(1))), -ETIMEDOUT);
}

HD_PROCESS_TEST(select_first_of_several_times_happens)
{
	hd_time now = hd_now(), soon = hd_is_simulated() ? HD_SEC(1) : HD_MS(3); /* simulated time may jump by some ms */
	struct hd_case cases[] = { hd_case_time(now + 3 * soon), hd_case_semaphore(&sem), hd_case_time(now + soon),
				   hd_case_time(now + HD_SEC(5)) };

	CHECK_EQ(hd_select(cases, 4, HD_FOREVER), 2);
	CHECK(hd_now() >= now + soon);
	cases[2] = hd_case_time(hd_after(HD_SEC(9)));
	CHECK_EQ(hd_select(cases, 4, hd_after(HD_SEC(8))), 0);
	cases[0] = hd_case_time(hd_after(HD_SEC(4)));
	CHECK_EQ(hd_select(cases, 4, hd_after(HD_MS(1))), -ETIMEDOUT); /* `until` comes before any */
	CHECK_EQ(hd_semaphore_signal(&sem), 0);
	cases[2] = hd_case_time(hd_after(soon));
	CHECK_EQ(hd_select(cases, 4, HD_FOREVER), 1);
	CHECK(!hd_semaphore_is_signaled(&sem));
}

/* ---- events and wait groups ---- */

HD_PROCESS_TEST(select_takes_an_event_and_a_wait_group_as_they_are)
{
	struct hd_event gate = HD_EVENT(HD_EVENT_SET), turnstile = HD_EVENT(HD_EVENT_AUTO | HD_EVENT_SET);
	struct hd_waitgroup group = HD_WAITGROUP(1);
	struct hd_case cases[] = { hd_case_waitgroup(&group), hd_case_event(&turnstile), hd_case_event(&gate) };

	CHECK_EQ(hd_select_first(cases, 3, 0), 1);
	CHECK(!hd_event_is_set(&turnstile)); /* it lets one through */
	CHECK_EQ(hd_select_first(cases, 3, 0), 2);
	CHECK_EQ(hd_select_first(cases, 3, 0), 2);
	CHECK(hd_event_is_set(&gate));
	CHECK_EQ(hd_waitgroup_done(&group), 0);
	CHECK_EQ(hd_select_first(cases, 3, 0), 0);
	CHECK_EQ(hd_select_first(cases, 3, 0), 0);
	CHECK_EQ(cases[0].err, 0);
}

static struct hd_event gate, turnstile = HD_EVENT(HD_EVENT_AUTO);
static struct hd_waitgroup tasks;

static void *select_gates(void *arg)
{
	struct hd_case cases[] = { hd_case_event(&gate), hd_case_event(&turnstile), hd_case_waitgroup(&tasks),
				   hd_case_semaphore(&sem) };
	int which = hd_select(cases, 4, HD_FOREVER);

	(void)arg;
	return (void *)(long)(which >= 0 && cases[which].err != 0 ? -1000 : which);
}

HD_PROCESS_TEST(select_waits_for_events_and_wait_groups)
{
	hd_pid pids[3];

	CHECK_EQ(hd_waitgroup_add(&tasks, 1), 0);
	for (int i = 0; i < 3; i++)
		pids[i] = born(hd_spawn_at(50, select_gates, NULL));
	CHECK_EQ(hd_event_set(&turnstile), 0); /* the first of them, and no other */
	CHECK_EQ(joined(pids[0]), 1);
	CHECK(!hd_event_is_set(&turnstile));
	CHECK_EQ(hd_semaphore_signal(&sem), 0);
	CHECK_EQ(joined(pids[1]), 3);
	CHECK_EQ(hd_event_set(&turnstile), 0);
	CHECK_EQ(joined(pids[2]), 1);
	CHECK_EQ(hd_event_set(&turnstile), 0); /* none of them is left in its queue */
	CHECK(hd_event_is_set(&turnstile));
	CHECK_EQ(hd_event_reset(&turnstile), 0);

	for (int i = 0; i < 3; i++)
		pids[i] = born(hd_spawn_at(50, select_gates, NULL));
	CHECK_EQ(hd_waitgroup_done(&tasks), 0); /* all of them */
	for (int i = 0; i < 3; i++)
		CHECK_EQ(joined(pids[i]), 2);
	CHECK(gate.waiters.head == NULL && turnstile.waiters.head == NULL && tasks.waiters.head == NULL &&
	      sem.waiters.head == NULL);
}

/* A set of an event that resets by itself, and a cancel, race for the same select: the set is taken or kept. */
static void *set_turnstile(void *arg)
{
	CHECK_EQ(hd_event_set(&turnstile), 0);
	return arg;
}

static void *cancel_it(void *pid)
{
	hd_cancel((hd_pid)(long)pid); /* it may have ended */
	return NULL;
}

HD_WORKERS_TEST(select_loses_no_set_of_an_event_to_a_cancel)
{
	(void)workers;
	hd_waitgroup_init(&tasks, 1);
	for (int round = many(2000); round > 0; round--) {
		hd_pid pid = born(hd_spawn(select_gates, NULL));
		hd_pid setter = born(hd_spawn(set_turnstile, NULL)), canceller = born(hd_spawn(cancel_it, (void *)pid));
		long which = joined(pid);
		joined(setter);
		joined(canceller);
		CHECK(which == 1 || which == -ECANCELED);
		CHECK_EQ(hd_event_try_wait(&turnstile), which == 1 ? -EAGAIN : 0);
	}
}

/* ---- errors of what a case stands for ---- */

HD_PROCESS_TEST(select_of_a_closed_queue_happens_with_its_error)
{
	long item = 1;

	make_things(2);
	put_long(q, 4);
	CHECK_EQ(hd_queue_close(q), 0);
	struct hd_case put = hd_case_put(q, &item), next = hd_case_next(q, &item);
	CHECK_EQ(hd_select(&put, 1, HD_FOREVER), 0);
	CHECK_EQ(put.err, -EPIPE);
	CHECK_EQ(hd_select(&next, 1, HD_FOREVER), 0);
	CHECK_EQ(next.err, 0);
	CHECK_EQ(item, 4);
	CHECK_EQ(hd_select(&next, 1, HD_FOREVER), 0);
	CHECK_EQ(next.err, -EPIPE);
	drop_things();
}

HD_PROCESS_TEST(select_of_a_failed_promise_happens_with_its_error)
{
	void *value = &value;

	make_things(1);
	struct hd_case c = hd_case_promise(promise, &value);
	CHECK_EQ(hd_promise_fail(promise, EIO), 0);
	CHECK_EQ(hd_select(&c, 1, 0), 0);
	CHECK_EQ(c.err, -EIO);
	CHECK(value == &value);
	c = hd_case_promise(promise, NULL);
	CHECK_EQ(hd_select(&c, 1, 0), 0);
	drop_things();
}

static void *select_two(void *arg)
{
	struct hd_case *cases = arg;
	int which = hd_select(cases, 2, HD_FOREVER);

	return (void *)(long)(which < 0 ? which : which * 1000 - cases[which].err);
}

HD_PROCESS_TEST(select_that_waits_is_told_of_a_close_and_of_a_failure)
{
	long item;

	make_things(1);
	struct hd_case a[] = { hd_case_semaphore(&sem), hd_case_next(q, &item) };
	hd_pid pid = born(hd_spawn_at(50, select_two, a));
	CHECK_EQ(hd_queue_close(q), 0);
	CHECK_EQ(joined(pid), 1000 + EPIPE);

	put_long(q2, 1);
	struct hd_case b[] = { hd_case_semaphore(&sem), hd_case_put(q2, &item) };
	pid = born(hd_spawn_at(50, select_two, b));
	CHECK_EQ(hd_queue_close(q2), 0);
	CHECK_EQ(joined(pid), 1000 + EPIPE);
	CHECK_EQ(hd_queue_length(q2), 1);

	struct hd_case c[] = { hd_case_semaphore(&sem), hd_case_promise(promise, NULL) };
	pid = born(hd_spawn_at(50, select_two, c));
	CHECK_EQ(hd_promise_fail(promise, EIO), 0);
	CHECK_EQ(joined(pid), 1000 + EIO);
	drop_things();
}

static struct hd_semaphore hold;

static void *wait_for_hold(void *arg)
{
	CHECK_EQ(hd_semaphore_wait(&hold, HD_FOREVER), 0);
	return arg;
}

static void *join_it(void *pid)
{
	return (void *)(long)hd_join((hd_pid)(long)pid, NULL, HD_FOREVER);
}

static int error_of_join(hd_pid pid)
{
	struct hd_case cases[] = { hd_case_semaphore(&sem), hd_case_join(pid, NULL) };

	CHECK_EQ(hd_select(cases, 2, HD_FOREVER), 1);
	return cases[1].err;
}

HD_PROCESS_TEST(select_of_a_join_that_cannot_be_happens_with_its_error)
{
	hd_pid detached = born(hd_spawn_with(&(struct hd_spawn){ .detached = true, .priority = 50 }, wait_for_hold, NULL));
	hd_pid busy = born(hd_spawn_at(50, wait_for_hold, NULL)), gone = born(hd_spawn(nothing, NULL));
	hd_pid joiner = born(hd_spawn_at(50, join_it, (void *)busy));

	CHECK_EQ(hd_join(gone, NULL, HD_FOREVER), 0);
	CHECK_EQ(error_of_join(gone), -ESRCH);
	CHECK_EQ(error_of_join(0), -ESRCH);
	CHECK_EQ(error_of_join(-5), -ESRCH);
	CHECK_EQ(error_of_join(hd_self()), -EDEADLK);
	CHECK_EQ(error_of_join(detached), -EINVAL);
	CHECK_EQ(error_of_join(busy), -EBUSY);
	CHECK_EQ(hd_semaphore_signal(&hold), 0);
	CHECK_EQ(hd_semaphore_signal(&hold), 0);
	CHECK_EQ(joined(joiner), 0);
}

/* While it waits nobody else may join; when something else has happened, anybody may: before the end and after it. */
HD_PROCESS_TEST(select_that_did_not_join_leaves_it_to_others)
{
	hd_pid target = born(hd_spawn_at(50, wait_for_hold, &sem));
	struct hd_case cases[] = { hd_case_semaphore(&sem), hd_case_join(target, NULL) };

	for (int round = 0; round < 3; round++) {
		hd_pid pid = born(hd_spawn_at(50, select_two, cases));
		CHECK_EQ(hd_join(target, NULL, HD_FOREVER), -EBUSY);
		CHECK_EQ(hd_detach(target), -EBUSY);
		if (round == 2)
			CHECK_EQ(hd_semaphore_signal(&hold), 0); /* it ends, and is joined */
		else if (round == 0)
			CHECK_EQ(hd_semaphore_signal(&sem), 0);
		else
			CHECK_EQ(hd_cancel(pid), 0);
		CHECK_EQ(joined(pid), round == 0 ? 0 : round == 1 ? -ECANCELED : 1000);
		if (round < 2)
			CHECK_EQ(hd_join(target, NULL, hd_after(HD_MS(1))), -ETIMEDOUT);
	}
	CHECK(is_gone(target));
}

/* It ends in the moment when something else has happened already, and the selecting process has not yet run. */
HD_PROCESS_TEST(select_that_did_not_join_leaves_a_zombie_to_others)
{
	hd_pid target = born(hd_spawn_at(60, wait_for_hold, &sem));
	struct hd_case cases[] = { hd_case_semaphore(&sem), hd_case_join(target, NULL) };
	hd_pid pid = born(hd_spawn_at(50, select_two, cases));

	CHECK_EQ(hd_set_priority(hd_self(), 55), 0);
	CHECK_EQ(hd_semaphore_signal(&sem), 0);
	CHECK_EQ(hd_semaphore_signal(&hold), 0);
	CHECK_EQ(state_of(target), HD_ENDED);
	CHECK_EQ(joined(pid), 0);
	void *result;
	CHECK_EQ(hd_join(target, &result, 0), 0);
	CHECK(result == &sem);
}

/* ---- the same thing more than once ---- */

HD_PROCESS_TEST(select_both_directions_of_a_queue)
{
	long item = 0, gift = 3;

	make_things(1);
	struct hd_case cases[] = { hd_case_put(q, &gift), hd_case_next(q, &item) };
	for (int i = 0; i < 10; i++) {
		CHECK_EQ(hd_select(cases, 2, HD_FOREVER), i % 2);
		CHECK_EQ(hd_queue_length(q), (i + 1) % 2);
	}
	CHECK_EQ(item, 3);
	hd_queue *wide = hd_queue_new(sizeof(long), 2);
	put_long(wide, 1);
	cases[0] = hd_case_put(wide, &gift);
	cases[1] = hd_case_next(wide, &item);
	for (int i = 0; i < 50; i++) {
		long before = (long)hd_queue_length(wide);
		int which = hd_select(cases, 2, HD_FOREVER);
		CHECK_EQ(hd_queue_length(wide), before + (which == 0 ? 1 : -1));
	}
	hd_queue_drop(wide);
	drop_things();
}

HD_PROCESS_TEST(select_same_thing_twice_happens_once)
{
	long a = 0, b = 0;

	make_things(1);
	struct hd_case two[] = { hd_case_next(q, &a), hd_case_next(q, &b) };
	hd_pid pid = born(hd_spawn_at(50, select_two, two));
	put_long(q, 1);
	CHECK(joined(pid) % 1000 == 0);
	CHECK_EQ(a + b, 1);
	put_long(q, 1);
	CHECK(hd_select(two, 2, 0) >= 0);
	CHECK_EQ(hd_queue_length(q), 0);

	struct hd_case sems[] = { hd_case_semaphore(&sem), hd_case_semaphore(&sem) };
	pid = born(hd_spawn_at(50, select_two, sems));
	CHECK_EQ(hd_semaphore_signal(&sem), 0);
	CHECK_EQ(hd_semaphore_signal(&sem), 0);
	CHECK(joined(pid) % 1000 == 0);
	CHECK_EQ(hd_semaphore_try_wait(&sem), 0);
	CHECK_EQ(hd_semaphore_try_wait(&sem), -EAGAIN);

	struct hd_case promises[] = { hd_case_promise(promise, NULL), hd_case_promise(promise, NULL) };
	pid = born(hd_spawn_at(50, select_two, promises));
	CHECK_EQ(hd_promise_set(promise, NULL), 0);
	CHECK(joined(pid) % 1000 == 0);
	drop_things();
}

/* Two that select meet: one puts, one takes, in the same queue; and each leaves its other queue alone. */
HD_PROCESS_TEST(select_meets_select)
{
	long gift = 4, item = 0;

	make_things(1);
	struct hd_case takes[] = { hd_case_semaphore(&sem), hd_case_next(q, &item) };
	hd_pid pid = born(hd_spawn_at(50, select_two, takes));
	struct hd_case puts[] = { hd_case_semaphore(&sem), hd_case_put(q, &gift) };
	CHECK_EQ(hd_select(puts, 2, HD_FOREVER), 1);
	CHECK_EQ(joined(pid), 1000);
	CHECK_EQ(item, 4);
	put_long(q, 1);
	pid = born(hd_spawn_at(50, select_two, puts));
	CHECK_EQ(hd_select(takes, 2, HD_FOREVER), 1);
	CHECK_EQ(joined(pid), 1000);
	CHECK_EQ(item, 1);
	CHECK_EQ(hd_queue_length(q), 1);
	drop_things();
}

/* ---- who is chosen ---- */

HD_PROCESS_TEST(select_chooses_each_case_that_could_happen)
{
	int chosen[5] = { 0 };
	long item;

	make_things(0);
	CHECK_EQ(hd_promise_set(promise, NULL), 0);
	struct hd_case cases[] = { hd_case_promise(promise, NULL), hd_case_put(q, &item), hd_case_time(0),
				   hd_case_semaphore(&sem), hd_case_next(q2, &item) };
	for (int i = 0; i < 400; i++) {
		hd_semaphore_init(&sem, 1);
		put_long(q2, 1);
		chosen[hd_select(cases, 5, HD_FOREVER)]++;
	}
	for (int i = 0; i < 5; i++)
		CHECK(chosen[i] > 20); /* of 80; each call throws the same dice */
	drop_things();
}

HD_PROCESS_TEST(select_first_chooses_in_the_order_of_the_list)
{
	long item;

	make_things(2);
	struct hd_case cases[] = { hd_case_semaphore(&sem), hd_case_next(q, &item), hd_case_time(0),
				   hd_case_promise(promise, NULL) };
	CHECK_EQ(hd_promise_set(promise, NULL), 0);
	for (int i = 0; i < 20; i++)
		CHECK_EQ(hd_select_first(cases, 4, HD_FOREVER), 2);
	put_long(q, 1);
	put_long(q, 1);
	CHECK_EQ(hd_semaphore_signal(&sem), 0);
	CHECK_EQ(hd_select_first(cases, 4, 0), 0);
	CHECK_EQ(hd_select_first(cases, 4, 0), 1);
	CHECK_EQ(hd_select_first(cases, 4, 0), 1);
	CHECK_EQ(hd_select_first(cases, 4, 0), 2);
	drop_things();
}

/* It has its place in each queue, among those who wait there alone. */
static void *wait_for_sem(void *word)
{
	CHECK_EQ(hd_semaphore_wait(&sem, HD_FOREVER), 0);
	trace("%s ", (const char *)word);
	return NULL;
}

static void *select_sem(void *word)
{
	struct hd_case cases[] = { hd_case_promise(promise, NULL), hd_case_semaphore(&sem) };

	CHECK_EQ(hd_select(cases, 2, HD_FOREVER), 1);
	trace("%s ", (const char *)word);
	return NULL;
}

HD_PROCESS_TEST(select_is_served_in_order_of_arrival)
{
	make_things(1);
	spawn_word_at(50, wait_for_sem, "a");
	spawn_word_at(60, select_sem, "b");
	spawn_word_at(70, wait_for_sem, "c");
	spawn_word_at(50, select_sem, "d");
	for (int i = 0; i < 4; i++)
		CHECK_EQ(hd_semaphore_signal(&sem), 0);
	CHECK_STR(trace_text(), "a b c d ");
	drop_things();
}

/* ---- time, cancel, terminate ---- */

HD_PROCESS_TEST(select_that_times_out_or_is_cancelled_takes_nothing)
{
	long item = 0, gift = 2;

	make_things(1);
	put_long(q2, 1);
	struct hd_case cases[] = { hd_case_next(q, &item), hd_case_put(q2, &gift), hd_case_semaphore(&sem) };
	CHECK_EQ(hd_select(cases, 3, hd_after(HD_MS(1))), -ETIMEDOUT);
	hd_pid pid = born(hd_spawn_at(50, select_two, cases));
	CHECK_EQ(hd_cancel(pid), 0);
	CHECK_EQ(joined(pid), -ECANCELED);
	CHECK_EQ(hd_cancel(hd_self()), 0);
	CHECK_EQ(hd_select(cases, 3, HD_FOREVER), -ECANCELED);
	CHECK_EQ(hd_select(cases, 3, 0), -ETIMEDOUT); /* a mere try is no cancellation point */
	CHECK_EQ(hd_cancel_clear(), 1);
	put_long(q, 5); /* nobody is left in the queues to take it */
	CHECK_EQ(hd_queue_length(q), 1);
	CHECK_EQ(hd_queue_next(q2, &item, 0), 0);
	CHECK_EQ(item, 1);
	CHECK_EQ(hd_queue_length(q2), 0);
	drop_things();
}

static struct hd_semaphore *heap_sem;

static void say_cleanup(void *word)
{
	trace("%s ", (const char *)word);
}

static void *select_with_cleanup(void *arg)
{
	struct hd_cleanup cleanup;
	long item;
	struct hd_case cases[] = { hd_case_next(q, &item), hd_case_semaphore(heap_sem), hd_case_join((hd_pid)(long)arg, NULL) };

	hd_cleanup_push(&cleanup, say_cleanup, (void *)"cleanup");
	CHECK_EQ(hd_select(cases, 3, HD_FOREVER), 0);
	CHECK(!"it came back");
	return NULL;
}

HD_PROCESS_TEST(select_that_is_terminated_is_in_no_queue_any_more)
{
	make_things(1);
	for (int how = 0; how < 2; how++) {
		hd_pid target = born(hd_spawn_at(50, wait_for_hold, NULL));
		heap_sem = calloc(1, sizeof *heap_sem);
		hd_pid pid = born(hd_spawn_at(50, select_with_cleanup, (void *)target));
		if (how == 1)
			CHECK_EQ(hd_suspend(pid, HD_FOREVER), 0);
		CHECK_EQ(hd_terminate(pid, HD_FOREVER), 0);
		CHECK_EQ(hd_join(pid, NULL, 0), 0);
		CHECK(heap_sem->waiters.head == NULL);
		free(heap_sem);
		put_long(q, 1);
		CHECK_EQ(hd_queue_length(q), 1);
		CHECK_EQ(hd_queue_next(q, &(long){ 0 }, 0), 0);
		CHECK_EQ(hd_semaphore_signal(&hold), 0);
		CHECK_EQ(joined(target), 0);
	}
	CHECK_STR(trace_text(), "cleanup cleanup ");
	drop_things();
}

/* Granted while it is suspended: it is the one, and kept; what comes later is for others. */
HD_PROCESS_TEST(select_that_is_suspended_keeps_what_happened)
{
	long item = 0;

	make_things(1);
	struct hd_case cases[] = { hd_case_semaphore(&sem), hd_case_next(q, &item) };
	hd_pid pid = born(hd_spawn_at(50, select_two, cases));
	CHECK_EQ(hd_suspend(pid, HD_FOREVER), 0);
	put_long(q, 7);
	CHECK_EQ(hd_semaphore_signal(&sem), 0);
	CHECK_EQ(hd_queue_length(q), 0);
	CHECK(hd_semaphore_is_signaled(&sem));
	CHECK_EQ(hd_cancel(pid), 0); /* too late */
	CHECK_EQ(hd_resume(pid), 0);
	CHECK_EQ(joined(pid), 1000);
	CHECK_EQ(item, 7);
	drop_things();
}

/* Its deadline runs on; and after it nothing is for it. */
HD_PROCESS_TEST(select_that_is_suspended_times_out)
{
	hd_time soon = hd_after(hd_is_emulated() ? HD_SEC(3) : HD_MS(100)); /* it waits before that */

	make_things(1);
	struct hd_case cases[] = { hd_case_semaphore(&sem), hd_case_time(soon) };
	hd_pid pid = born(hd_spawn_at(50, select_two, cases));
	CHECK_EQ(hd_suspend(pid, HD_FOREVER), 0);
	CHECK_EQ(hd_sleep_until(soon + 1), 0);
	CHECK_EQ(hd_semaphore_signal(&sem), 0);
	CHECK(hd_semaphore_is_signaled(&sem));
	CHECK_EQ(hd_resume(pid), 0);
	CHECK_EQ(joined(pid), 1000);
	drop_things();
}

/* ---- conservation: what was given was had by exactly one, or is there still ---- */

#define SELECTORS 4
#define GRANTORS 3

static hd_queue *a, *b;
static struct hd_semaphore s1, s2;
static long had_a, put_b, had_s1, had_s2, given_a, taken_b, given_s, none;
static int each_selects, each_gives;

static void *select_at_random(void *arg)
{
	unsigned seed = (unsigned)(long)arg;

	for (int i = 0; i < each_selects; i++) {
		long item, gift = 1;
		struct hd_case cases[] = { hd_case_next(a, &item), hd_case_put(b, &gift), hd_case_semaphore(&s1),
					   hd_case_semaphore(&s2) };
		long *counts[] = { &had_a, &put_b, &had_s1, &had_s2 };
		hd_time until = hd_after(next_random(&seed) % 3 == 0 ? next_random(&seed) % 20000 : HD_MS(1));
		int which = next_random(&seed) % 2 ? hd_select(cases, 4, until) : hd_select_first(cases, 4, until);
		if (which >= 0) {
			CHECK_EQ(cases[which].err, 0);
			add(counts[which], 1);
		} else {
			CHECK(which == -ETIMEDOUT || which == -ECANCELED);
			hd_cancel_clear();
			add(&none, 1);
		}
	}
	return NULL;
}

static void *give_at_random(void *arg)
{
	unsigned seed = (unsigned)(long)arg;
	long item = 1;

	for (int i = 0; i < each_gives; i++) {
		switch (next_random(&seed) % 4) {
		case 0:
			add(&given_a, hd_queue_put(a, &item, hd_after(next_random(&seed) % 20000)) == 0);
			break;
		case 1:
			add(&taken_b, hd_queue_next(b, &item, hd_after(next_random(&seed) % 20000)) == 0);
			break;
		default:
			CHECK_EQ(hd_semaphore_signal(next_random(&seed) % 2 ? &s1 : &s2), 0);
			add(&given_s, 1);
		}
	}
	return NULL;
}

static long held(struct hd_semaphore *s)
{
	long n = 0;

	while (hd_semaphore_try_wait(s) == 0)
		n++;
	return n;
}

static void conserve(int workers, int n, bool movable, bool cancels)
{
	hd_pid selectors[SELECTORS], grantors[GRANTORS];
	unsigned seed = 9;

	(void)workers;
	had_a = put_b = had_s1 = had_s2 = given_a = taken_b = given_s = none = 0;
	each_selects = n / SELECTORS + 1;
	each_gives = n / GRANTORS + 1;
	a = hd_queue_new(sizeof(long), 2);
	b = hd_queue_new(sizeof(long), 1);
	hd_semaphore_init(&s1, 0);
	hd_semaphore_init(&s2, 0);
	struct plain_thread *thread = start_thread(give_at_random, (void *)33L);
	for (long i = 0; i < SELECTORS; i++)
		selectors[i] = born(hd_spawn_with(&(struct hd_spawn){ .pinned = !movable }, select_at_random, (void *)(i + 1)));
	for (long i = 0; i < GRANTORS; i++)
		grantors[i] = born(hd_spawn_with(&(struct hd_spawn){ .pinned = !movable }, give_at_random, (void *)(i + 50)));
	for (int i = 0; cancels && i < n / 8; i++) {
		hd_cancel(selectors[next_random(&seed) % SELECTORS]);
		hd_sleep(HD_US(next_random(&seed) % 10));
	}
	join_all(selectors, SELECTORS);
	join_all(grantors, GRANTORS);
	join_thread(thread);
	CHECK_EQ(given_a, had_a + (long)hd_queue_length(a));
	CHECK_EQ(put_b, taken_b + (long)hd_queue_length(b));
	CHECK_EQ(given_s, had_s1 + had_s2 + held(&s1) + held(&s2));
	CHECK_EQ(had_a + put_b + had_s1 + had_s2 + none, (long)SELECTORS * each_selects);
	hd_queue_drop(a);
	hd_queue_drop(b);
}

HD_WORKERS_TEST(select_neither_loses_nor_doubles_anything)
{
	conserve(workers, many(3000), false, false);
	conserve(workers, many(3000), true, false);
}

HD_WORKERS_TEST(select_that_is_cancelled_neither_loses_nor_doubles_anything)
{
	conserve(workers, many(2000), false, true);
	conserve(workers, many(2000), true, true);
}

HD_WORKERS_STRESS(select_neither_loses_nor_doubles_one_of_a_million)
{
	for (int i = 0; i < 4; i++)
		conserve(workers, many(60000), i % 2, i / 2);
}

/* Selectors that are terminated: what they had is known, as they count before the next cancellation point. */
static void *select_until_stopped(void *arg)
{
	long item;
	struct hd_case cases[] = { hd_case_next(a, &item), hd_case_semaphore(&s1), hd_case_semaphore(&s2) };
	long *counts[] = { &had_a, &had_s1, &had_s2 };
	int which;

	while ((which = hd_select(cases, 3, HD_FOREVER)) >= 0)
		add(counts[which], 1);
	return arg;
}

HD_WORKERS_TEST(select_that_is_terminated_neither_loses_nor_doubles_anything)
{
	unsigned seed = 7;

	(void)workers;
	for (int round = 0; another_round(round, many(300)); round++) {
		hd_pid selectors[SELECTORS], grantor;
		had_a = had_s1 = had_s2 = given_a = given_s = taken_b = 0;
		each_gives = 20;
		a = hd_queue_new(sizeof(long), 2);
		b = hd_queue_new(sizeof(long), 1);
		hd_semaphore_init(&s1, 0);
		hd_semaphore_init(&s2, 0);
		for (int i = 0; i < SELECTORS; i++)
			selectors[i] =
				born(hd_spawn_with(&(struct hd_spawn){ .pinned = round % 2 == 0 }, select_until_stopped, NULL));
		grantor = born(hd_spawn(give_at_random, (void *)(long)(round + 1)));
		hd_sleep(HD_US(next_random(&seed) % 50));
		for (int i = 0; i < SELECTORS; i++)
			CHECK_EQ(next_random(&seed) % 2 ? hd_kill(selectors[i], 0) : hd_terminate(selectors[i], HD_FOREVER), 0);
		join_all(selectors, SELECTORS);
		CHECK_EQ(hd_join(grantor, NULL, HD_FOREVER), 0);
		CHECK_EQ(given_a, had_a + (long)hd_queue_length(a));
		CHECK_EQ(given_s, had_s1 + had_s2 + held(&s1) + held(&s2));
		hd_queue_drop(a);
		hd_queue_drop(b);
	}
}

/* ---- joins and promises: each end is had by one ---- */

#define TARGETS 3

static hd_pid targets[TARGETS];
static hd_promise *promises[TARGETS];
static long ends[TARGETS], values;

static void *end_soon(void *arg)
{
	long i = (long)arg;

	if (i % 2)
		hd_sleep(HD_US(i * 3));
	hd_promise_set(promises[i], arg);
	return arg;
}

/* Joins as many as it can get; whoever is busy is somebody else's for now. */
static void *select_ends(void *arg)
{
	unsigned seed = (unsigned)(long)arg;
	struct hd_end end;
	void *value;

	for (int gone = 0; gone < TARGETS;) {
		struct hd_case cases[TARGETS + 2];
		gone = 0;
		for (int i = 0; i < TARGETS; i++)
			if ((cases[i] = hd_case_join(targets[i], &end)), value_of(&ends[i]) != 0)
				cases[i].kind = HD_CASE_NOTHING, gone++;
		long one = seed % TARGETS;
		cases[TARGETS] = hd_case_promise(promises[one], &value);
		cases[TARGETS + 1] = hd_case_time(hd_after(next_random(&seed) % 5000));
		int which = hd_select(cases, TARGETS + 2, HD_FOREVER);
		CHECK(which >= 0);
		if (which < TARGETS && cases[which].err == 0) {
			CHECK(end.kind == HD_END_RETURNED && (long)end.result == which);
			CHECK_EQ(add(&ends[which], 1), 1);
		} else if (which < TARGETS) {
			CHECK(cases[which].err == -EBUSY || cases[which].err == -ESRCH);
			hd_sleep(HD_US(1));
		} else if (which == TARGETS) {
			CHECK_EQ((long)value, one);
			add(&values, 1);
		}
		hd_yield();
	}
	return NULL;
}

HD_WORKERS_TEST(select_each_end_is_joined_by_one)
{
	hd_pid selectors[SELECTORS];

	(void)workers;
	for (int round = 0; another_round(round, many(400)); round++) {
		struct hd_spawn how = { .pinned = round % 2 == 0 };
		for (long i = 0; i < TARGETS; i++) {
			ends[i] = 0;
			promises[i] = hd_promise_new();
			targets[i] = born(hd_spawn_with(&how, end_soon, (void *)i));
		}
		for (long i = 0; i < SELECTORS; i++)
			selectors[i] = born(hd_spawn_with(&how, select_ends, (void *)(i + round)));
		join_all(selectors, SELECTORS);
		for (int i = 0; i < TARGETS; i++) {
			CHECK_EQ(ends[i], 1);
			CHECK(is_gone(targets[i]));
			hd_promise_release(promises[i]);
		}
	}
}
