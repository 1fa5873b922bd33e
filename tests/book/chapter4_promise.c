/* book/chapter4_promise.c - chapter 4, sections 4.1 to 4.4: promises. */
#include "book/book.h"

#include <errno.h>
#include <stdio.h>

/* ---- heddle's promise, and the one that 4.4 builds ---- */

/* A semaphore protects the value. There are some of them, and a script makes them in order. */
struct books_promise {
	struct hd_semaphore value_protecting;
	void *value;
	bool has_value;
	hd_entry block;
	void *arg;
};
static struct books_promise books_promises[4];
static int made;

static void *books_block(void *arg)
{
	struct books_promise *p = arg;

	p->value = p->block(p->arg);
	p->has_value = true;
	CHECK_EQ(hd_semaphore_signal(&p->value_protecting), 0);
	return NULL;
}

static void *books_promise_at(int priority, hd_entry block, void *arg)
{
	struct books_promise *p = &books_promises[made++];

	*p = (struct books_promise){ .block = block, .arg = arg };
	fork_at(priority, books_block, p);
	return p;
}

static bool books_has_value(void *promise)
{
	return ((struct books_promise *)promise)->has_value;
}

static void *books_value(void *promise)
{
	struct books_promise *p = promise;

	CHECK_EQ(hd_semaphore_wait(&p->value_protecting, HD_FOREVER), 0);
	CHECK_EQ(hd_semaphore_signal(&p->value_protecting), 0); /* for the next who asks */
	return p->value;
}

static void books_release(void *promise)
{
	CHECK(books_has_value(promise));
}

static void *heddles_promise_at(int priority, hd_entry block, void *arg)
{
	hd_promise *p = hd_promise_spawn_at(priority, block, arg);

	CHECK(p != NULL);
	return p;
}

static bool heddles_has_value(void *promise)
{
	return hd_promise_has_value(promise);
}

static void *heddles_value(void *promise)
{
	void *value;

	CHECK_EQ(hd_promise_value(promise, &value, HD_FOREVER), 0);
	return value;
}

static void heddles_release(void *promise)
{
	hd_promise_release(promise);
}

static const struct kind {
	void *(*promise_at)(int priority, hd_entry block, void *arg);
	bool (*has_value)(void *promise);
	void *(*value)(void *promise);
	void (*release)(void *promise);
	enum hd_wait why;
} heddles = { heddles_promise_at, heddles_has_value, heddles_value, heddles_release, HD_WAIT_PROMISE },
  books = { books_promise_at, books_has_value, books_value, books_release, HD_WAIT_SEMAPHORE };
static const struct kind *kind;

static void *promise(hd_entry block, void *arg)
{
	return kind->promise_at(hd_priority(hd_self()), block, arg);
}

static void play_kind(const struct kind *which, hd_entry script, const char *expected)
{
	kind = which;
	made = 0;
	play(script);
	CHECK_STR(trace_text(), expected);
}

/* The same script with both, and the same output. */
static void play_both(hd_entry script, const char *expected)
{
	play_kind(&heddles, script, expected);
	play_kind(&books, script, expected);
}

static long number(void *value)
{
	return (long)(intptr_t)value;
}

static void *one_plus_two(void *arg)
{
	(void)arg;
	return (void *)(intptr_t)(1 + 2);
}

/* ---- 4.2 ---- */

static bool run, executed;
static void *looping;
static hd_pid asker;

/* The book's endless loop; here it ends when the test has seen enough of it. */
static void *endless_loop(void *arg)
{
	while (run)
		hd_checkpoint();
	return arg;
}

static void *watch(void *arg)
{
	struct hd_process_info info;

	do {
		CHECK_EQ(hd_sleep(HD_MS(1)), 0);
		CHECK_EQ(hd_process_info(asker, &info), 0);
	} while (info.state != HD_WAITING);
	CHECK_EQ(info.why, kind->why);
	CHECK_EQ(executed, true);
	CHECK_EQ(kind->has_value(looping), false);
	trace("executed, and waits\n");
	run = false;
	return arg;
}

/* To make a promise does not block, whatever it takes to keep it; to ask for its value does. */
static void *promise_that_loops(void *arg)
{
	run = true;
	asker = hd_self();
	executed = false;
	looping = promise(endless_loop, NULL);
	fork_at(50, watch, NULL);
	executed = true;
	kind->value(looping);
	trace("the loop has ended\n");
	kind->release(looping);
	return arg;
}

HD_TEST(book_4_2_only_asking_for_the_value_blocks)
{
	play_both(promise_that_loops, "executed, and waits\nthe loop has ended\n");
}

/* ---- 4.3: the three tests ---- */

static void *creation(void *arg)
{
	void *p = promise(one_plus_two, NULL);

	CHECK(!kind->has_value(p));
	CHECK(number(p) != 3);
	hd_yield();
	CHECK(kind->has_value(p));
	CHECK(number(p) != 3); /* it has the value, and is not it */
	kind->release(p);
	return arg;
}

HD_TEST(book_4_3_promise_creation)
{
	play_both(creation, "");
}

static void *requested(void *arg)
{
	void *p = promise(one_plus_two, NULL);

	CHECK_EQ(number(kind->value(p)), 3);
	CHECK(kind->has_value(p));
	CHECK_EQ(number(kind->value(p)), 3);
	kind->release(p);
	return arg;
}

HD_TEST(book_4_3_promise)
{
	play_both(requested, "");
}

static struct hd_semaphore controlling;
static bool signalled;

static void *one_plus_three(void *arg)
{
	(void)arg;
	CHECK_EQ(hd_semaphore_wait(&controlling, HD_FOREVER), 0);
	trace("computed\n");
	return (void *)(intptr_t)(1 + 3);
}

/* The book's seconds, where time is virtual. */
static hd_time seconds(int n)
{
	return hd_is_simulated() ? HD_SEC(n) : HD_MS(10 * n);
}

static void *delayed_signal(void *arg)
{
	CHECK_EQ(hd_sleep(seconds(2)), 0);
	trace("signal\n");
	signalled = true;
	CHECK_EQ(hd_semaphore_signal(&controlling), 0);
	return arg;
}

/* The book counts on five seconds being longer than two; here the test looks again until the signal was given, so that a slow
 * machine does not change the outcome. Whom it wakes is behind us then, if we became ready meanwhile: hence the yield. */
static void *blocking_and_unblocking(void *arg)
{
	controlling = (struct hd_semaphore)HD_SEMAPHORE(0);
	signalled = false;
	fork_equal(delayed_signal, NULL);
	void *p = promise(one_plus_three, NULL);
	CHECK(!kind->has_value(p));
	do
		CHECK_EQ(hd_sleep(seconds(5)), 0);
	while (!signalled);
	hd_yield();
	CHECK(kind->has_value(p));
	CHECK_EQ(number(kind->value(p)), 4);
	kind->release(p);
	return arg;
}

HD_TEST(book_4_3_promise_blocking_and_unblocking)
{
	play_both(blocking_and_unblocking, "signal\ncomputed\n");
}

/* The same without a clock: each step of the three processes is known. */
static void *step_by_step(void *arg)
{
	controlling = (struct hd_semaphore)HD_SEMAPHORE(0);
	void *p = promise(one_plus_three, NULL);
	hd_yield();
	CHECK(!kind->has_value(p)); /* it waits */
	CHECK_EQ(hd_semaphore_signal(&controlling), 0);
	CHECK(!kind->has_value(p)); /* it is an equal: it has not run */
	CHECK_STR(trace_text(), "");
	hd_yield();
	CHECK(kind->has_value(p));
	CHECK_EQ(number(kind->value(p)), 4);
	kind->release(p);
	return arg;
}

HD_TEST(book_4_3_promise_blocking_and_unblocking_step_by_step)
{
	play_both(step_by_step, "computed\n");
}

/* ---- 4.4: promise, promiseAt:, value, value: ---- */

static void *compute(void *arg)
{
	at_priority("computed");
	return arg;
}

/* promise: at the priority of whoever makes it. */
static void *make_promise(void *arg)
{
	void *p = promise(compute, (void *)5);

	at_priority("made");
	CHECK_EQ(number(kind->value(p)), 5);
	kind->release(p);
	return arg;
}

static void *at_the_active_priority(void *arg)
{
	fork_at(30, make_promise, NULL);
	fork_at(20, make_promise, NULL);
	fork_at(50, make_promise, NULL);
	return arg;
}

HD_TEST(book_4_4_promise_has_the_active_priority)
{
	play_both(at_the_active_priority, "@50 made\n@50 computed\n@30 made\n@30 computed\n@20 made\n@20 computed\n");
}

/* promiseAt: of a higher priority there is nothing to wait for; a lower one does not get the processor before the value is
 * asked for. */
static void *promise_at(void *arg)
{
	void *above = kind->promise_at(41, compute, (void *)1);
	at_priority("made");
	CHECK(kind->has_value(above));
	CHECK_EQ(number(kind->value(above)), 1);
	kind->release(above);

	void *below = kind->promise_at(39, compute, (void *)2);
	at_priority("made");
	for (int i = 0; i < 3; i++)
		hd_yield();
	CHECK(!kind->has_value(below));
	at_priority("asks");
	CHECK_EQ(number(kind->value(below)), 2);
	at_priority("knows");
	kind->release(below);
	return arg;
}

HD_TEST(book_4_4_promise_at)
{
	play_both(promise_at, "@41 computed\n@40 made\n@40 made\n@40 asks\n@39 computed\n@40 knows\n");
}

HD_TEST(book_4_4_promise_at_no_priority)
{
	CHECK(hd_promise_spawn(one_plus_two, NULL) == NULL); /* no runtime: nobody would keep it */
	CHECK(hd_promise_spawn_at(40, one_plus_two, NULL) == NULL);
	CHECK(hd_promise_spawn_at(9, one_plus_two, NULL) == NULL);
	CHECK(hd_promise_spawn_at(81, one_plus_two, NULL) == NULL);
}

static void *asked;

static void *ask(void *name)
{
	trace("%s asks\n", (const char *)name);
	long value = number(kind->value(asked));
	trace("%s got %ld\n", (const char *)name, value);
	return NULL;
}

/* Any number may ask, before and after: in the order in which they asked. */
static void *several_ask(void *arg)
{
	controlling = (struct hd_semaphore)HD_SEMAPHORE(0);
	asked = promise(one_plus_three, NULL);
	fork_equal(ask, "a");
	fork_equal(ask, "b");
	fork_equal(ask, "c");
	hd_yield();
	CHECK_EQ(hd_semaphore_signal(&controlling), 0);
	ask((void *)"d");
	ask((void *)"d");
	kind->release(asked);
	return arg;
}

HD_TEST(book_4_4_value_can_be_asked_for_many_times)
{
	play_both(several_ask, "a asks\nb asks\nc asks\nd asks\ncomputed\n"
			       "a got 4\nb got 4\nc got 4\nd got 4\nd asks\nd got 4\n");
}

static void *in_between(void *arg)
{
	trace("something else\n");
	return arg;
}

static void *compute_and_fork(void *arg)
{
	CHECK_EQ(hd_semaphore_wait(&controlling, HD_FOREVER), 0);
	fork_at(35, in_between, NULL);
	return arg;
}

/* Who asks is at 30 first and at 50 then, and another process at 35 is ready when the promise is kept. */
static void *better_asks_later(void *arg)
{
	controlling = (struct hd_semaphore)HD_SEMAPHORE(0);
	CHECK_EQ(hd_set_priority(hd_self(), 20), 0);
	asked = kind->promise_at(40, compute_and_fork, (void *)6);
	fork_at(30, ask, "low");
	fork_at(50, ask, "high");
	CHECK_EQ(hd_semaphore_signal(&controlling), 0);
	kind->release(asked);
	return arg;
}

/* In the book's promise each who asked wakes the next: the high one has to wait for the low one, and so for the third.
 * heddle's wakes all at once. */
HD_TEST(book_4_4_all_who_asked_are_woken_at_once)
{
	play_kind(&heddles, better_asks_later, "low asks\nhigh asks\nhigh got 6\nsomething else\nlow got 6\n");
	play_kind(&books, better_asks_later, "low asks\nhigh asks\nsomething else\nhigh got 6\nlow got 6\n");
}

/* ---- value: ---- */

static void *set(void *value)
{
	at_priority("sets");
	CHECK_EQ(hd_promise_set(asked, value), 0);
	at_priority("has set");
	return NULL;
}

/* The value may come from any process. An equal that waits runs when the setter has ended; a higher one at once. */
static void *set_by_another(void *arg)
{
	kind = &heddles;
	asked = hd_promise_new();
	fork_at(50, ask, "high");
	fork_equal(ask, "equal");
	fork_equal(set, (void *)7);
	ask((void *)"I");
	hd_yield(); /* the other reader has no reference of its own */
	hd_promise_release(asked);
	return arg;
}

HD_TEST(book_4_4_value_set_by_another_process)
{
	play(set_by_another);
	CHECK_STR(trace_text(), "high asks\nI asks\nequal asks\n@40 sets\nhigh got 7\nI got 7\nequal got 7\n@40 has set\n");
}

/* The book says that nobody but the block should set the value. Whoever tries hears that there is one. */
static void *set_again(void *arg)
{
	void *value = NULL;
	hd_promise *kept = hd_promise_spawn(one_plus_two, NULL), *mine = hd_promise_new();

	CHECK_EQ(hd_promise_value(kept, &value, HD_FOREVER), 0);
	CHECK_EQ(hd_promise_set(kept, (void *)8), -EALREADY);
	CHECK_EQ(hd_promise_fail(kept, EIO), -EALREADY);
	CHECK_EQ(hd_promise_value(kept, &value, HD_FOREVER), 0);
	CHECK_EQ(number(value), 3);

	CHECK_EQ(hd_promise_set(mine, NULL), 0); /* nil is a value */
	CHECK(hd_promise_has_value(mine));
	CHECK_EQ(hd_promise_set(mine, (void *)8), -EALREADY);
	CHECK_EQ(hd_promise_value(mine, &value, HD_FOREVER), 0);
	CHECK(value == NULL);

	hd_promise *early =
		hd_promise_spawn(one_plus_two, NULL); /* set before its block has run: the block's value is dropped */
	CHECK_EQ(hd_promise_set(early, (void *)9), 0);
	hd_yield();
	CHECK_EQ(hd_promise_value(early, &value, HD_FOREVER), 0);
	CHECK_EQ(number(value), 9);
	hd_promise_release(kept);
	hd_promise_release(mine);
	hd_promise_release(early);
	return arg;
}

HD_TEST(book_4_4_value_is_set_once)
{
	play(set_again);
}

/* ---- errors, which 4.1 leaves out ---- */

static hd_pid maker;

static void *fails(void *err)
{
	hd_yield();
	trace("fails\n");
	hd_fail((int)(intptr_t)err);
	return NULL;
}

static void *waits_for_good(void *type)
{
	maker = hd_self();
	hd_set_cancel_type((enum hd_cancel_type)(intptr_t)type);
	int err = hd_semaphore_wait(&controlling, HD_FOREVER);
	trace("%s\n", err == -ECANCELED ? "cancelled" : "woken");
	return (void *)10;
}

static void *ask_in_vain(void *err)
{
	void *value = (void *)11;

	CHECK_EQ(hd_promise_value(asked, &value, HD_FOREVER), -(int)(intptr_t)err);
	CHECK_EQ(number(value), 11);
	trace("%d\n", (int)(intptr_t)err);
	return NULL;
}

static void check_broken(int err)
{
	CHECK(hd_promise_has_failed(asked));
	CHECK(!hd_promise_has_value(asked));
	ask_in_vain((void *)(intptr_t)err); /* later too */
	hd_promise_release(asked);
}

/* A block that fails breaks the promise, and all who ask are told. */
static void *block_fails(void *arg)
{
	asked = hd_promise_spawn(fails, (void *)5);
	fork_equal(ask_in_vain, (void *)5);
	fork_at(50, ask_in_vain, (void *)5);
	CHECK(!hd_promise_has_failed(asked));
	ask_in_vain((void *)5);
	hd_yield();
	check_broken(5);
	return arg;
}

HD_TEST(book_4_4_block_that_fails_breaks_the_promise)
{
	play(block_fails);
	CHECK_STR(trace_text(), "fails\n5\n5\n5\n5\n");
}

static void *set_failed(void *arg)
{
	trace("tells\n");
	CHECK_EQ(hd_promise_fail(asked, 0), -EINVAL);
	CHECK_EQ(hd_promise_fail(asked, -5), 0);
	CHECK_EQ(hd_promise_set(asked, NULL), -EALREADY);
	return arg;
}

static void *another_fails_it(void *arg)
{
	asked = hd_promise_new();
	fork_equal(set_failed, NULL);
	ask_in_vain((void *)5);
	check_broken(5);
	return arg;
}

HD_TEST(book_4_4_failure_told_by_another_process)
{
	play(another_fails_it);
	CHECK_STR(trace_text(), "tells\n5\n5\n");
}

static void *somebody_ends_it(void *arg)
{
	controlling = (struct hd_semaphore)HD_SEMAPHORE(0);
	asked = hd_promise_spawn(waits_for_good, (void *)HD_CANCEL_RETURN);
	hd_yield();
	CHECK_EQ(hd_terminate(maker, HD_FOREVER), 0);
	check_broken(EOWNERDEAD);

	asked = hd_promise_spawn(waits_for_good, (void *)HD_CANCEL_UNWIND);
	hd_yield();
	CHECK_EQ(hd_cancel(maker), 0);
	ask_in_vain((void *)ECANCELED);
	check_broken(ECANCELED);

	asked = hd_promise_spawn(waits_for_good, (void *)HD_CANCEL_RETURN); /* it hears the cancel, and keeps its promise */
	hd_yield();
	CHECK_EQ(hd_cancel(maker), 0);
	kind = &heddles;
	ask((void *)"I");
	hd_promise_release(asked);
	return arg;
}

HD_TEST(book_4_4_block_that_is_ended_breaks_the_promise)
{
	char expected[128];

	play(somebody_ends_it);
	snprintf(expected, sizeof expected, "%d\n%d\n%d\nI asks\ncancelled\nI got 10\n", EOWNERDEAD, ECANCELED, ECANCELED);
	CHECK_STR(trace_text(), expected);
}

/* Who asks with a deadline may give up; the promise is kept all the same. */
static void *gives_up(void *arg)
{
	controlling = (struct hd_semaphore)HD_SEMAPHORE(0);
	asked = hd_promise_spawn(one_plus_three, NULL);
	hd_pid other = fork_equal(ask, "a");
	struct hd_process_info info = { .state = HD_READY };
	while (info.state != HD_WAITING) { /* it asks before the deadline can come, however late we run then */
		hd_yield();
		CHECK_EQ(hd_process_info(other, &info), 0);
	}
	CHECK_EQ(hd_promise_value(asked, NULL, hd_after(HD_MS(1))), -ETIMEDOUT);
	CHECK_EQ(hd_promise_value(asked, NULL, 0), -ETIMEDOUT);
	CHECK_EQ(hd_semaphore_signal(&controlling), 0);
	ask((void *)"I");
	hd_promise_release(asked);
	return arg;
}

HD_TEST(book_4_4_who_gives_up_takes_nothing)
{
	kind = &heddles;
	play(gives_up);
	CHECK_STR(trace_text(), "a asks\nI asks\ncomputed\na got 4\nI got 4\n");
}
