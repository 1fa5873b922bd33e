/* sync/promise.c - what a promise promises: one value or one error, for all who ask, before and after. */
#include <errno.h>
#include <string.h>

#include "life/common.h"
#include "os/fault.h"
#include "sched/worker.h"
#include "sched/workers.h"
#include "sync/promise.h"

static int many(int n)
{
	return hd_is_simulated() ? n / 100 + 2 : hd_scaled(n);
}

static hd_promise *made(hd_promise *p)
{
	CHECK(p != NULL);
	return p;
}

static long got(hd_promise *p)
{
	void *value = NULL;

	CHECK_EQ(hd_promise_value(p, &value, HD_FOREVER), 0);
	return (long)value;
}

/* ---- once ---- */

static void check_set(void)
{
	hd_promise *p = made(hd_promise_new());
	void *value = &value;

	CHECK(!hd_promise_has_value(p));
	CHECK(!hd_promise_has_failed(p));
	CHECK_EQ(hd_promise_value(p, &value, 0), -ETIMEDOUT);
	CHECK(value == &value);
	CHECK_EQ(hd_promise_set(p, (void *)7L), 0);
	CHECK_EQ(hd_promise_set(p, (void *)8L), -EALREADY);
	CHECK_EQ(hd_promise_fail(p, EIO), -EALREADY);
	CHECK(hd_promise_has_value(p));
	CHECK(!hd_promise_has_failed(p));
	CHECK_EQ(hd_promise_value(p, &value, 0), 0);
	CHECK_EQ((long)value, 7);
	CHECK_EQ(hd_promise_value(p, NULL, HD_FOREVER), 0);
	hd_promise_release(p);
}

HD_TEST(promise_is_set_once_on_plain_thread)
{
	check_set();
}

HD_PROCESS_TEST(promise_is_set_once_on_process)
{
	check_set();
}

static void check_fail(void)
{
	for (int sign = -1; sign <= 1; sign += 2) {
		hd_promise *p = made(hd_promise_new());
		void *value = &value;
		CHECK_EQ(hd_promise_fail(p, 0), -EINVAL);
		CHECK(!hd_promise_has_failed(p));
		CHECK_EQ(hd_promise_fail(p, sign * EIO), 0);
		CHECK_EQ(hd_promise_fail(p, ENOENT), -EALREADY);
		CHECK_EQ(hd_promise_set(p, NULL), -EALREADY);
		CHECK(hd_promise_has_failed(p));
		CHECK(!hd_promise_has_value(p));
		CHECK_EQ(hd_promise_value(p, &value, 0), -EIO);
		CHECK_EQ(hd_promise_value(p, NULL, HD_FOREVER), -EIO);
		CHECK(value == &value);
		hd_promise_release(p);
	}
}

HD_TEST(promise_fails_once_on_plain_thread)
{
	check_fail();
}

HD_PROCESS_TEST(promise_fails_once_on_process)
{
	check_fail();
}

static void check_deadline(void)
{
	hd_promise *p = made(hd_promise_new());
	hd_time until = hd_after(HD_MS(3));

	CHECK_EQ(hd_promise_value(p, NULL, hd_now()), -ETIMEDOUT);
	CHECK_EQ(hd_promise_value(p, NULL, until), -ETIMEDOUT);
	CHECK(hd_now() >= until);
	CHECK_EQ(hd_promise_set(p, NULL), 0);
	CHECK_EQ(hd_promise_value(p, NULL, until), 0); /* what is there beats a time that has passed */
	CHECK_EQ(hd_promise_value(p, NULL, INT64_MIN), 0);
	hd_promise_release(p);
}

HD_TEST(promise_deadline_comes_on_plain_thread)
{
	check_deadline();
}

HD_PROCESS_TEST(promise_deadline_comes_on_process)
{
	check_deadline();
}

/* ---- readers ---- */

static hd_promise *shared;

static void *read_shared(void *word)
{
	void *value = NULL;
	int err = hd_promise_value(shared, &value, HD_FOREVER);

	trace("%s:%d,%ld ", (const char *)word, err, (long)value);
	return NULL;
}

HD_PROCESS_TEST(promise_tells_all_readers_in_order_of_arrival)
{
	shared = made(hd_promise_new());
	spawn_word_at(50, read_shared, "a");
	spawn_word_at(70, read_shared, "b");
	spawn_word_at(50, read_shared, "c");
	CHECK_EQ(hd_set_priority(hd_self(), 80), 0);
	CHECK_EQ(hd_promise_set(shared, (void *)5L), 0);
	spawn_word_at(50, read_shared, "d");
	CHECK_EQ(hd_set_priority(hd_self(), 40), 0);
	CHECK_STR(trace_text(), "b:0,5 a:0,5 c:0,5 d:0,5 ");
	hd_promise_release(shared);
}

HD_PROCESS_TEST(promise_tells_all_readers_of_its_failure)
{
	shared = made(hd_promise_new());
	spawn_word_at(50, read_shared, "a");
	spawn_word_at(50, read_shared, "b");
	CHECK_EQ(hd_promise_fail(shared, 5), 0);
	spawn_word_at(50, read_shared, "c");
	CHECK_STR(trace_text(), "a:-5,0 b:-5,0 c:-5,0 ");
	hd_promise_release(shared);
}

HD_PROCESS_TEST(promise_reader_that_is_cancelled_or_late_leaves_the_others_alone)
{
	shared = made(hd_promise_new());
	hd_pid a = spawn_word_at(50, read_shared, "a");
	hd_pid b = spawn_word_at(50, read_shared, "b");
	hd_pid c = spawn_word_at(50, read_shared, "c");

	CHECK_EQ(info_of(b).why, HD_WAIT_PROMISE);
	CHECK_EQ(hd_cancel(b), 0);
	CHECK_EQ(hd_terminate(c, HD_FOREVER), 0);
	CHECK_EQ(hd_promise_value(shared, NULL, hd_after(HD_MS(1))), -ETIMEDOUT);
	CHECK_EQ(hd_promise_set(shared, (void *)1L), 0);
	CHECK_STR(trace_text(), "b:-125,0 a:0,1 ");
	CHECK_EQ(got(shared), 1);
	join_all((hd_pid[]){ a, b, c }, 3);
	hd_promise_release(shared);
}

/* ---- the process that keeps it ---- */

static hd_pid maker;

static void *return_it(void *arg)
{
	return arg;
}

static void *exit_with_it(void *arg)
{
	hd_exit(arg);
	return NULL;
}

static void *fail_with_it(void *arg)
{
	hd_fail((int)(long)arg);
	return NULL;
}

static void *sleep_for_ever(void *arg)
{
	maker = hd_self();
	hd_set_cancel_type((enum hd_cancel_type)(long)arg);
	return (void *)(long)hd_sleep_until(HD_FOREVER);
}

HD_PROCESS_TEST(promise_of_a_process_has_what_it_returns)
{
	hd_promise *returned = made(hd_promise_spawn(return_it, (void *)3L));
	hd_promise *exited = made(hd_promise_spawn_at(30, exit_with_it, (void *)4L));

	CHECK(!hd_promise_has_value(returned));
	CHECK_EQ(got(returned), 3);
	CHECK_EQ(got(exited), 4);
	hd_promise_release(returned);
	hd_promise_release(exited);
}

static int end_of(hd_promise *p)
{
	int err = hd_promise_value(p, NULL, HD_FOREVER);

	CHECK_EQ(hd_promise_has_failed(p), err != 0);
	hd_promise_release(p);
	return err;
}

HD_PROCESS_TEST(promise_fails_when_its_process_does_not_return)
{
	hd_promise *p = made(hd_promise_spawn(fail_with_it, (void *)(long)EIO));
	CHECK_EQ(end_of(p), -EIO);

	p = made(hd_promise_spawn_at(50, sleep_for_ever, (void *)(long)HD_CANCEL_UNWIND));
	CHECK_EQ(hd_cancel(maker), 0);
	CHECK_EQ(end_of(p), -ECANCELED);

	p = made(hd_promise_spawn_at(50, sleep_for_ever, NULL)); /* cancelled, but it returns */
	CHECK_EQ(hd_cancel(maker), 0);
	CHECK_EQ(got(p), -ECANCELED);
	hd_promise_release(p);

	p = made(hd_promise_spawn_at(50, sleep_for_ever, NULL));
	CHECK_EQ(hd_terminate(maker, HD_FOREVER), 0);
	CHECK_EQ(end_of(p), -EOWNERDEAD);

	p = made(hd_promise_spawn_at(50, sleep_for_ever, NULL));
	CHECK_EQ(hd_kill(maker, EIO), 0);
	CHECK_EQ(end_of(p), -EOWNERDEAD);
	CHECK(is_gone(maker)); /* it was detached */
}

static void *leave_a_promise(void *p)
{
	*(hd_promise **)p = made(hd_promise_spawn_at(50, sleep_for_ever, NULL));
	CHECK_EQ(hd_join(maker, NULL, 0), -EINVAL); /* it is detached */
	CHECK_EQ(hd_shutdown(0), 0);
	CHECK(hd_promise_spawn(nothing, NULL) == NULL); /* nobody begins any more */
	return NULL;
}

HD_TEST(promise_fails_when_the_runtime_ends_first)
{
	hd_promise *p;

	CHECK_EQ(hd_run(&(struct hd_config){ .fixed = true, .workers = 1 }, leave_a_promise, &p), 0);
	CHECK_EQ(end_of(p), -EOWNERDEAD);
}

static void *never_called(void *value, void *arg)
{
	(void)value, (void)arg;
	CHECK(!"this must not be called");
	return NULL;
}

HD_TEST(promise_of_a_process_needs_a_runtime)
{
	hd_promise *p = made(hd_promise_new());

	CHECK(hd_promise_spawn(nothing, NULL) == NULL);
	CHECK(hd_promise_spawn_at(40, nothing, NULL) == NULL);
	CHECK(hd_promise_then(p, never_called, NULL) == NULL);
	CHECK_EQ(hd_promise_any(&p, 1, 0), -ETIMEDOUT);
	hd_promise_release(p);
	hd_promise_release(NULL);
}

HD_PROCESS_TEST(promise_of_a_process_wants_a_priority_and_an_entry)
{
	hd_promise *p = made(hd_promise_new());

	CHECK(hd_promise_spawn_at(9, nothing, NULL) == NULL);
	CHECK(hd_promise_spawn_at(81, nothing, NULL) == NULL);
	CHECK(hd_promise_spawn(NULL, NULL) == NULL);
	CHECK(hd_promise_spawn_at(40, NULL, NULL) == NULL);
	CHECK(hd_promise_then(p, NULL, NULL) == NULL);
	CHECK_EQ(stats_now().spawned, 1);
	CHECK(hd_promise_retain(p) == p);
	hd_promise_release(p);
	hd_promise_release(p);
}

HD_PROCESS_TEST(promise_of_a_process_has_its_creators_priority_or_its_own)
{
	hd_promise *high = made(hd_promise_spawn_at(50, say, (void *)"high "));
	hd_promise *low = made(hd_promise_spawn_at(30, say, (void *)"low "));
	hd_promise *same = made(hd_promise_spawn(say, (void *)"same "));

	trace("main ");
	CHECK_EQ(hd_promise_all((hd_promise *[]){ low, same, high }, 3, HD_FOREVER), 0);
	CHECK_STR(trace_text(), "high main same low ");
	hd_promise_release(low);
	hd_promise_release(same);
	hd_promise_release(high);
}

/* ---- what is known of its process ---- */

static void *tell_name(void *arg)
{
	struct hd_process_info *info = arg;

	CHECK_EQ(hd_process_info(hd_self(), info), 0);
	return arg;
}

HD_PROCESS_TEST(promise_of_a_process_is_spawned_with_everything)
{
	struct hd_process_info info;
	const struct hd_spawn how = { .name = "miller", .priority = 50, .stack_size = (size_t)256 << 10, .suspended = true };
	hd_promise *p = made(hd_promise_spawn_with(&how, tell_name, &info));

	CHECK(hd_promise_pid(p) > 0);
	CHECK_EQ(hd_promise_value(p, NULL, 0), -ETIMEDOUT);
	CHECK_EQ(hd_resume(hd_promise_pid(p)), 0);
	CHECK(got(p) == (long)&info);
	CHECK_STR(info.name, "miller");
	CHECK_EQ(info.pid, hd_promise_pid(p));
	CHECK_EQ(info.priority, 50);
	CHECK(info.stack_size >= (size_t)256 << 10 && info.detached);
	CHECK(is_gone(hd_promise_pid(p)));
	hd_promise_release(p);

	p = made(hd_promise_spawn_with(NULL, nothing, NULL));
	CHECK_EQ(end_of(p), 0);
	struct hd_group group = { .count = 0 };
	CHECK(hd_promise_spawn_with(&(struct hd_spawn){ .group = &group }, nothing, NULL) == NULL);
	CHECK(hd_promise_spawn_with(&(struct hd_spawn){ .priority = 5 }, nothing, NULL) == NULL);
	CHECK(hd_promise_spawn_with(NULL, NULL, NULL) == NULL);
	CHECK(hd_promise_spawn_at(0, nothing, NULL) == NULL);
}

HD_PROCESS_TEST(promise_has_a_process_to_be_cancelled_or_none)
{
	hd_promise *p = made(hd_promise_new());
	CHECK_EQ(hd_promise_pid(p), 0);
	CHECK_EQ(hd_cancel(hd_promise_pid(p)), -ESRCH);
	hd_promise_release(p);

	p = made(hd_promise_spawn_at(50, sleep_for_ever, (void *)(long)HD_CANCEL_UNWIND));
	CHECK_EQ(hd_cancel(hd_promise_pid(p)), 0);
	CHECK_EQ(end_of(p), -ECANCELED);
}

/* ---- else ---- */

static void *mend(int err, void *arg)
{
	return (void *)((long)arg + err);
}

static void *pass_on(int err, void *arg)
{
	CHECK_EQ(err, (long)arg);
	hd_fail(ENOENT);
	return NULL;
}

static void *must_not_mend(int err, void *arg)
{
	(void)err, (void)arg;
	CHECK(!"this must not be called");
	return NULL;
}

HD_PROCESS_TEST(promise_else_goes_on_with_the_error)
{
	hd_promise *p = made(hd_promise_new());
	hd_promise *mended = made(hd_promise_else(p, mend, (void *)1000L)),
		   *passed_on = made(hd_promise_else(p, pass_on, (void *)(long)-EIO));

	CHECK_EQ(hd_promise_fail(p, EIO), 0);
	CHECK_EQ(got(mended), 1000 - EIO);
	CHECK_EQ(end_of(passed_on), -ENOENT);
	hd_promise_release(mended);
	mended = made(hd_promise_else(p, mend, (void *)2000L)); /* also when p has failed before */
	CHECK_EQ(got(mended), 2000 - EIO);
	hd_promise_release(mended);
	hd_promise_release(p);
}

HD_PROCESS_TEST(promise_else_has_the_value_and_calls_nothing)
{
	hd_promise *p = made(hd_promise_new());
	hd_promise *a = made(hd_promise_else(p, must_not_mend, NULL));

	CHECK_EQ(hd_promise_set(p, (void *)7L), 0);
	CHECK_EQ(got(a), 7);
	CHECK(hd_promise_else(p, NULL, NULL) == NULL);
	hd_promise_release(a);
	hd_promise_release(p);
}

/* A cancel of its own process is no failure of p. */
HD_PROCESS_TEST(promise_else_that_is_cancelled_fails_and_calls_nothing)
{
	hd_promise *p = made(hd_promise_new());
	hd_promise *a = made(hd_promise_else(p, must_not_mend, NULL));

	hd_yield();
	CHECK_EQ(hd_cancel(hd_promise_pid(a)), 0);
	CHECK_EQ(end_of(a), -ECANCELED);
	CHECK_EQ(hd_promise_set(p, NULL), 0);
	hd_promise_release(p);
}

/* ---- then ---- */

static void *plus(void *value, void *arg)
{
	return (void *)((long)value + (long)arg);
}

static void *fail_then(void *value, void *arg)
{
	(void)value;
	hd_fail((int)(long)arg);
	return NULL;
}

HD_PROCESS_TEST(promise_then_goes_on_with_the_value)
{
	hd_promise *p = made(hd_promise_new());
	hd_promise *before = made(hd_promise_then(p, plus, (void *)10L));

	hd_yield();
	CHECK(!hd_promise_has_value(before));
	CHECK_EQ(hd_promise_set(p, (void *)1L), 0);
	CHECK_EQ(got(before), 11);
	hd_promise *after = made(hd_promise_then(p, plus, (void *)20L));
	CHECK_EQ(got(after), 21);
	hd_promise_release(before);
	hd_promise_release(after);
	hd_promise_release(p);
}

HD_PROCESS_TEST(promise_then_fails_with_the_same_error_and_calls_nobody)
{
	hd_promise *p = made(hd_promise_new());
	hd_promise *a = made(hd_promise_then(p, never_called, NULL)), *b = made(hd_promise_then(a, never_called, NULL));

	CHECK_EQ(hd_promise_fail(p, EIO), 0);
	hd_promise_release(p);
	CHECK_EQ(end_of(b), -EIO);
	CHECK_EQ(end_of(a), -EIO);
}

HD_PROCESS_TEST(promise_then_fails_when_its_function_does)
{
	hd_promise *p = made(hd_promise_new());
	hd_promise *a = made(hd_promise_then(p, fail_then, (void *)(long)ENOENT)),
		   *b = made(hd_promise_then(a, never_called, NULL));

	CHECK_EQ(hd_promise_set(p, NULL), 0);
	CHECK_EQ(end_of(b), -ENOENT);
	CHECK_EQ(end_of(a), -ENOENT);
	CHECK(hd_promise_has_value(p));
	hd_promise_release(p);
}

/* Nobody keeps the links: each is held by the next. */
HD_PROCESS_TEST(promise_then_makes_chains)
{
	hd_promise *p = made(hd_promise_new()), *end = hd_promise_retain(p);
	long n = hd_is_simulated() ? 20 : 200;

	for (long i = 1; i <= n; i++) {
		hd_promise *next = made(hd_promise_then(end, plus, (void *)i));
		hd_promise_release(end);
		end = next;
	}
	CHECK_EQ(hd_promise_set(p, (void *)1000L), 0);
	CHECK_EQ(got(end), 1000 + n * (n + 1) / 2);
	hd_promise_release(end);
	hd_promise_release(p);
}

static void *release_it(void *value, void *arg)
{
	hd_promise_release(arg);
	return value;
}

/* Whoever is called for a value may be the last to know of the promise. */
HD_PROCESS_TEST(promise_then_keeps_what_it_waits_for)
{
	hd_promise *p = made(hd_promise_new());
	hd_promise *a = made(hd_promise_then(p, release_it, p));

	CHECK_EQ(hd_promise_set(p, (void *)2L), 0);
	CHECK_EQ(got(a), 2);
	hd_promise_release(a);
}

static void *chain_then_leave(void *arg)
{
	hd_promise *p = made(hd_promise_new());

	*(hd_promise **)arg = made(hd_promise_then(p, never_called, NULL));
	hd_promise_release(p);
	hd_yield();
	CHECK_EQ(hd_shutdown(3), 0);
	return NULL;
}

HD_TEST(promise_then_fails_when_the_runtime_ends_first)
{
	hd_promise *p;

	CHECK_EQ(hd_run(&(struct hd_config){ .fixed = true, .workers = 1 }, chain_then_leave, &p), 3);
	CHECK_EQ(end_of(p), -EOWNERDEAD);
}

/* ---- all, any ---- */

static void make_three(hd_promise **ps)
{
	for (int i = 0; i < 3; i++)
		ps[i] = made(hd_promise_new());
}

static void release_three(hd_promise **ps)
{
	for (int i = 0; i < 3; i++)
		hd_promise_release(ps[i]);
}

static void check_all(void)
{
	hd_promise *ps[3];

	make_three(ps);
	CHECK_EQ(hd_promise_all(NULL, 0, HD_FOREVER), 0);
	CHECK_EQ(hd_promise_set(ps[0], NULL), 0);
	CHECK_EQ(hd_promise_set(ps[2], NULL), 0);
	CHECK_EQ(hd_promise_all(ps, 1, HD_FOREVER), 0);
	CHECK_EQ(hd_promise_all(ps, 3, 0), -ETIMEDOUT);
	CHECK_EQ(hd_promise_all(ps, 3, hd_after(HD_MS(1))), -ETIMEDOUT);
	CHECK_EQ(hd_promise_fail(ps[1], EIO), 0);
	CHECK_EQ(hd_promise_all(ps, 3, HD_FOREVER), -EIO);
	release_three(ps);
	make_three(ps);
	for (int i = 0; i < 3; i++)
		CHECK_EQ(hd_promise_set(ps[i], NULL), 0);
	CHECK_EQ(hd_promise_all(ps, 3, 0), 0);
	release_three(ps);
}

HD_TEST(promise_all_waits_for_each_on_plain_thread)
{
	check_all();
}

HD_PROCESS_TEST(promise_all_waits_for_each_on_process)
{
	check_all();
}

static void check_any(void)
{
	hd_promise *ps[3];

	make_three(ps);
	CHECK_EQ(hd_promise_any(ps, 0, HD_FOREVER), -EINVAL);
	CHECK_EQ(hd_promise_any(ps, 3, 0), -ETIMEDOUT);
	CHECK_EQ(hd_promise_any(ps, 3, hd_after(HD_MS(1))), -ETIMEDOUT);
	CHECK_EQ(hd_promise_fail(ps[0], EIO), 0);
	CHECK_EQ(hd_promise_any(ps, 3, 0), -ETIMEDOUT); /* one that fails does not count */
	CHECK_EQ(hd_promise_any(ps, 1, 0), -EIO);
	CHECK_EQ(hd_promise_fail(ps[2], ENOENT), 0);
	CHECK_EQ(hd_promise_any(ps, 3, hd_after(HD_MS(1))), -ETIMEDOUT);
	CHECK_EQ(hd_promise_set(ps[1], NULL), 0);
	CHECK_EQ(hd_promise_any(ps, 3, HD_FOREVER), 1);
	release_three(ps);
	make_three(ps);
	for (int i = 0; i < 3; i++)
		CHECK_EQ(hd_promise_fail(ps[i], ECANCELED), 0);
	CHECK_EQ(hd_promise_any(ps, 3, HD_FOREVER), -ECANCELED); /* theirs, not the caller's */
	release_three(ps);
}

HD_TEST(promise_any_answers_which_on_plain_thread)
{
	check_any();
}

HD_PROCESS_TEST(promise_any_answers_which_on_process)
{
	check_any();
}

static void *any_of_three(void *ps)
{
	return (void *)(long)hd_promise_any(ps, 3, HD_FOREVER);
}

static long joined(hd_pid pid)
{
	void *result;

	CHECK_EQ(hd_join(pid, &result, HD_FOREVER), 0);
	return (long)result;
}

HD_PROCESS_TEST(promise_any_waits_for_the_last_failure)
{
	hd_promise *ps[3];

	make_three(ps);
	hd_pid pid = born(hd_spawn_at(50, any_of_three, ps));
	CHECK_EQ(hd_promise_fail(ps[1], ENOENT), 0);
	CHECK_EQ(hd_promise_fail(ps[0], EPERM), 0);
	CHECK_EQ(info_of(pid).state, HD_WAITING);
	CHECK_EQ(hd_promise_fail(ps[2], EIO), 0);
	CHECK_EQ(joined(pid), -EIO);
	release_three(ps);
}

static void *all_of_three(void *ps)
{
	return (void *)(long)hd_promise_all(ps, 3, HD_FOREVER);
}

HD_PROCESS_TEST(promise_all_answers_the_first_failure_at_once)
{
	hd_promise *ps[3];

	make_three(ps);
	hd_pid pid = born(hd_spawn_at(50, all_of_three, ps));
	CHECK_EQ(hd_promise_set(ps[1], NULL), 0);
	CHECK_EQ(info_of(pid).state, HD_WAITING);
	CHECK_EQ(hd_promise_fail(ps[2], EIO), 0); /* the first is pending still */
	CHECK_EQ(joined(pid), -EIO);
	CHECK_EQ(hd_promise_fail(ps[0], EPERM), 0);
	release_three(ps);
}

HD_PROCESS_TEST(promise_all_and_any_can_be_cancelled_and_terminated)
{
	hd_promise *ps[3];
	hd_pid pids[4];

	make_three(ps);
	for (int i = 0; i < 4; i++)
		pids[i] = born(hd_spawn_at(50, i % 2 ? all_of_three : any_of_three, ps));
	CHECK_EQ(hd_cancel(pids[0]), 0);
	CHECK_EQ(hd_cancel(pids[1]), 0);
	CHECK_EQ(hd_terminate(pids[2], HD_FOREVER), 0); /* it gives its memory back */
	CHECK_EQ(hd_terminate(pids[3], HD_FOREVER), 0);
	CHECK_EQ(joined(pids[0]), -ECANCELED);
	CHECK_EQ(joined(pids[1]), -ECANCELED);
	join_all(pids + 2, 2);
	release_three(ps);
}

#define CANDIDATES 40

static hd_promise *candidates[CANDIDATES];
static long turn;
static int winner; /* CANDIDATES: none */

static void *settle_candidates(void *arg)
{
	for (long i; (i = add(&turn, 1)) <= CANDIDATES;)
		CHECK_EQ(i - 1 == winner ? hd_promise_set(candidates[i - 1], NULL) : hd_promise_fail(candidates[i - 1], EIO),
			 0);
	return arg;
}

static void *choose_candidate(void *arg)
{
	long how = (long)arg;
	int i = hd_promise_any(candidates, CANDIDATES, how == 0 ? HD_FOREVER : hd_after(HD_US(how)));

	CHECK(i == winner || (i == -EIO && winner == CANDIDATES) || (i == -ETIMEDOUT && how > 0) ||
	      (i == -ECANCELED && how == 0));
	return NULL;
}

/* Several wait for any of many, which are settled at once on all workers and a plain thread; some of them are cancelled, or give up. */
HD_WORKERS_TEST(promise_any_of_many_is_told_of_each)
{
	hd_pid pids[8];
	struct plain_thread *threads[2];

	for (int round = 0; another_round(round, many(300)); round++) {
		winner = round % 3 == 0 ? CANDIDATES : round % CANDIDATES;
		turn = 0;
		for (int i = 0; i < CANDIDATES; i++)
			candidates[i] = made(hd_promise_new());
		for (long i = 0; i < 4; i++)
			pids[i] = born(hd_spawn(choose_candidate, (void *)(i % 2 * 20)));
		threads[0] = start_thread(choose_candidate, (void *)(round % 2 * 20L));
		hd_yield();
		for (int i = 4; i < 8; i++)
			pids[i] = born(hd_spawn(settle_candidates, NULL));
		threads[1] = start_thread(settle_candidates, NULL);
		if (round % 4 == 0)
			hd_cancel(pids[0]);
		join_all(pids, 8);
		join_thread(threads[0]);
		join_thread(threads[1]);
		for (int i = 0; i < CANDIDATES; i++) {
			CHECK(candidates[i]->waiters.head == NULL);
			hd_promise_release(candidates[i]);
		}
	}
	(void)workers;
}

/* ---- references, memory ---- */

HD_PROCESS_TEST(promise_may_be_released_before_its_process_ends)
{
	hd_promise_release(made(hd_promise_spawn(nothing, NULL)));
	hd_promise_release(made(hd_promise_spawn_at(50, nothing, NULL)));
	hd_promise *p = made(hd_promise_spawn(return_it, (void *)6L));
	hd_promise *a = made(hd_promise_then(p, plus, (void *)1L));

	hd_promise_release(p);
	hd_promise_release(hd_promise_retain(a));
	hd_promise_release(made(hd_promise_then(a, plus, NULL)));
	CHECK_EQ(got(a), 7);
	hd_promise_release(a);
}

HD_PROCESS_TEST(promise_without_memory_is_none_and_leaks_nothing)
{
	hd_promise *p = made(hd_promise_new()), *both[] = { p, p };

	hd__fault_arm(HD__FAULT_ALLOC, 1, true);
	CHECK(hd_promise_new() == NULL);
	CHECK(hd_promise_spawn(nothing, NULL) == NULL);
	CHECK(hd_promise_then(p, plus, NULL) == NULL);
	CHECK_EQ(hd_promise_any(both, 2, 0), -ENOMEM);
	hd__fault_arm(HD__FAULT_ALLOC, 0, false);
	CHECK_EQ(hd_promise_set(p, NULL), 0);
	CHECK_EQ(hd_promise_value(p, NULL, 0), 0);
	hd_promise_release(p);
}

/* There is memory for the promise, and no process to keep it. */
HD_PROCESS_TEST(promise_without_a_process_is_none_and_leaks_nothing)
{
	hd_promise *p = made(hd_promise_new());
	hd_pid pids[64];
	int n = 0;

	hd__self()->sched->table.limit = 64;
	while ((pids[n] = hd_spawn(nothing, NULL)) > 0)
		CHECK(++n < 64);
	CHECK(hd_promise_spawn(nothing, NULL) == NULL);
	CHECK(hd_promise_spawn_at(50, nothing, NULL) == NULL);
	CHECK(hd_promise_then(p, plus, NULL) == NULL);
	join_all(pids, n);
	hd_promise *a = made(hd_promise_then(p, plus, (void *)1L));
	CHECK_EQ(hd_promise_set(p, (void *)1L), 0);
	CHECK_EQ(got(a), 2);
	hd_promise_release(a);
	hd_promise_release(p);
}

/* Stacks run out before the process begins. */
HD_PROCESS_TEST(promise_whose_process_cannot_start_fails)
{
	hd_promise *ps[100];
	int n = 0, failed = 0;

	hd__fault_arm(HD__FAULT_GUARD, 1, true);
	for (; n < 100; n++)
		if ((ps[n] = hd_promise_spawn_at(50, sleep_for_ever, NULL)) == NULL || hd_promise_has_failed(ps[n]))
			break; /* here spawn says so, or the process's first run */
	hd__fault_arm(HD__FAULT_GUARD, 0, false);
	for (int i = 0; i <= n && i < 100; i++)
		if (ps[i] != NULL && hd_promise_has_failed(ps[i])) {
			failed++;
			CHECK_EQ(hd_promise_value(ps[i], NULL, 0), -ENOMEM);
		}
	CHECK(n < 100 && (failed == 1 || ps[n] == NULL));
	for (int i = 0; i <= n; i++)
		hd_promise_release(ps[i]);
	CHECK_EQ(hd_shutdown(0), 0); /* they sleep for ever */
}

/* ---- threads ---- */

static void *set_on_thread(void *p)
{
	CHECK_EQ(hd_promise_set(p, (void *)9L), 0);
	hd_promise_release(p);
	return NULL;
}

static void *read_on_thread(void *p)
{
	CHECK_EQ(got(p), 9);
	hd_promise_release(p);
	return NULL;
}

static void check_threads(void)
{
	for (int i = 0; i < many(200); i++) {
		hd_promise *p = made(hd_promise_new());
		struct plain_thread *reader = start_thread(read_on_thread, hd_promise_retain(p));
		struct plain_thread *setter = start_thread(set_on_thread, hd_promise_retain(p));
		CHECK_EQ(got(p), 9);
		hd_promise_release(p);
		join_thread(reader);
		join_thread(setter);
	}
}

HD_TEST(promise_goes_between_plain_threads_without_a_runtime)
{
	check_threads();
}

HD_PROCESS_TEST(promise_goes_between_plain_threads_and_processes)
{
	check_threads();
}

static void *promise_from_thread(void *arg)
{
	hd_promise *p = made(hd_promise_spawn(return_it, (void *)5L)), *a = made(hd_promise_then(p, plus, (void *)1L));

	CHECK_EQ(got(p), 5);
	CHECK_EQ(got(a), 6);
	CHECK_EQ(hd_promise_any(&p, 1, 0), 0);
	hd_promise_release(p);
	hd_promise_release(a);
	return arg;
}

HD_WORKERS_TEST(promise_of_a_process_is_made_and_read_by_plain_threads)
{
	struct plain_thread *threads[2];

	(void)workers;
	for (int round = 0; round < many(50); round++) {
		for (int i = 0; i < 2; i++)
			threads[i] = start_thread(promise_from_thread, NULL);
		for (int i = 0; i < 2; i++)
			join_thread(threads[i]);
	}
}

/* ---- races ---- */

#define RACERS 6

static long winners, answered;

static void *race_for_shared(void *arg)
{
	long id = (long)arg;
	void *value;

	if (id % 3 == 2) { /* some only read, and may be gone when it is set */
		int err = hd_promise_value(shared, &value, id == 2 ? HD_FOREVER : hd_after(HD_US(20)));
		CHECK(err == 0 || err == -EIO || (err == -ETIMEDOUT && id != 2));
	} else {
		int err = id % 2 ? hd_promise_fail(shared, EIO) : hd_promise_set(shared, arg);
		CHECK(err == 0 || err == -EALREADY);
		if (err == 0) {
			add(&winners, 1);
			set(&answered, id % 2 ? -EIO : id);
		}
	}
	hd_promise_release(shared);
	return NULL;
}

HD_WORKERS_TEST(promise_has_one_setter_of_many)
{
	hd_pid pids[RACERS];
	void *value;

	(void)workers;
	for (int round = 0; another_round(round, many(2000)); round++) {
		winners = 0;
		shared = made(hd_promise_new());
		for (long i = 0; i < RACERS; i++) {
			hd_promise_retain(shared);
			pids[i] = born(hd_spawn_with(&(struct hd_spawn){ .pinned = i % 2 == 0 }, race_for_shared, (void *)i));
		}
		int err = hd_promise_value(shared, &value, HD_FOREVER);
		join_all(pids, RACERS);
		CHECK_EQ(winners, 1);
		CHECK_EQ(err != 0 ? err : (long)value, answered);
		CHECK_EQ(hd_promise_value(shared, NULL, 0), err);
		hd_promise_release(shared);
	}
}

/* The last reference goes where it will: with the reader, the process that keeps it, or the one that follows. */
HD_WORKERS_TEST(promise_is_gone_with_the_last_of_many_references)
{
	(void)workers;
	for (long round = 0; another_round((int)round, many(2000)); round++) {
		hd_promise *p = made(hd_promise_spawn(return_it, (void *)round)),
			   *a = made(hd_promise_then(p, plus, (void *)1L));
		hd_promise *b = made(hd_promise_then(p, plus, (void *)2L));
		if (round % 2)
			hd_promise_release(p);
		hd_promise *both[] = { a, b };
		int i = hd_promise_any(both, 2, HD_FOREVER);
		CHECK_EQ(got(both[i]), round + 1 + i);
		hd_promise_release(a);
		if (round % 3)
			CHECK_EQ(got(b), round + 2);
		hd_promise_release(b);
		if (round % 2 == 0)
			hd_promise_release(p);
	}
}

static void *tree(void *depth)
{
	hd_promise *parts[4];
	long sum = 1;

	if (depth == NULL)
		return (void *)1L;
	for (int i = 0; i < 4; i++)
		parts[i] = made(hd_promise_spawn(tree, (void *)((long)depth - 1)));
	CHECK_EQ(hd_promise_all(parts, 4, HD_FOREVER), 0);
	for (int i = 0; i < 4; i++) {
		sum += got(parts[i]);
		hd_promise_release(parts[i]);
	}
	return (void *)sum;
}

HD_WORKERS_TEST(promise_tree_counts_every_leaf)
{
	long depth = hd_is_simulated() ? 2 : 5, expected = 1;

	(void)workers;
	for (long i = 0; i < depth; i++)
		expected = 4 * expected + 1;
	hd_promise *p = made(hd_promise_spawn(tree, (void *)depth));
	CHECK_EQ(got(p), expected);
	hd_promise_release(p);
}
