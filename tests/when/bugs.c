/* when/bugs.c - bugs that other runtimes with behaviours have had, where the tests of when.c and random.c do not show them anyhow. */
#include "when/common.h"

/* ---- the line is empty while readers have the cown ---- */

static long stage, inside;

static void await_stage(long n)
{
	while (value_of(&stage) < n)
		hd_yield();
}

static void read_until_told(void *arg, void *const data[])
{
	(void)arg, (void)data;
	add(&inside, 1);
	set(&stage, 1);
	await_stage(3);
	add(&inside, -1);
}

static void read_and_go(void *arg, void *const data[])
{
	(void)arg, (void)data;
	await_stage(1);
	set(&stage, 2);
}

static void write_alone(void *arg, void *const data[])
{
	(void)data;
	CHECK_EQ(value_of(&inside), 0);
	set(arg, 1);
}

static int make_reader(hd_behaviour fn, hd_cown *c)
{
	hd_cown *uses[] = { HD_READ(c) };

	return hd_when_batch(&(struct hd_when){ .fn = fn, .uses = uses, .n = 1 }, 1);
}

/* The second reader goes first, and leaves an empty line behind; the writer that comes then must wait for the first. */
HD_WORKERS_TEST(when_writer_in_an_empty_line_waits_for_the_readers_that_have_the_cown)
{
	hd_cown *c = made_cown(NULL);
	long written = 0;

	(void)workers;
	stage = inside = 0;
	CHECK_EQ(make_reader(read_until_told, c), 0);
	CHECK_EQ(make_reader(read_and_go, c), 0);
	await_stage(2);
	while (stats_now().live_behaviours > 1)
		hd_yield();
	CHECK_EQ(hd_when(write_alone, &written, c), 0);
	for (int i = 0; i < 20; i++)
		hd_yield();
	CHECK_EQ(value_of(&written), 0);
	set(&stage, 3);
	hd_cown_release(c);
	quiesce();
	CHECK_EQ(written, 1);
	check_none_left();
}

/* ---- a behaviour that is counted too late ---- */

static void do_nothing(void *arg, void *const data[])
{
	(void)arg, (void)data;
}

static struct hd_semaphore told;

static void wait_until_told(void *arg, void *const data[])
{
	(void)arg, (void)data;
	CHECK_EQ(hd_semaphore_wait(&told, HD_FOREVER), 0);
}

static void make_many(void *c)
{
	for (int i = many(1000); i > 0; i--)
		CHECK_EQ(hd_when(do_nothing, NULL, c), 0);
	set(&stage, 1);
	CHECK_EQ(hd_semaphore_signal(&told), 0);
}

/* What a plain thread makes may be over before the call that makes it is: another one, which is not over, must not go unseen for that. */
HD_WORKERS_TEST(when_quiesce_is_not_early_if_what_is_made_is_over_at_once)
{
	hd_cown *a = made_cown(NULL), *b = made_cown(NULL);
	struct plain thread;

	(void)workers;
	for (int i = 0; i < 5; i++) {
		stage = 0;
		CHECK_EQ(hd_when_batch(&(struct hd_when){ .fn = wait_until_told, .uses = &a, .n = 1, .flags = HD_WHEN_MAY_BLOCK }, 1), 0);
		plain_start(&thread, make_many, b);
		quiesce();
		CHECK_EQ(value_of(&stage), 1);
		plain_join(&thread);
		quiesce();
	}
	hd_cown_release(a);
	hd_cown_release(b);
	check_none_left();
}

/* ---- a call that overtakes another one ---- */

static hd_cown *three[3];

static void *call_often(void *number)
{
	for (int i = many(3000); i > 0; i--) {
		switch ((long)number) {
		case 0:
			CHECK_EQ(hd_when(do_nothing, NULL, three[0], three[1]), 0);
			break;
		case 1:
			CHECK_EQ(hd_when(do_nothing, NULL, three[0]), 0);
			break;
		case 2:
			CHECK_EQ(hd_when(do_nothing, NULL, three[0], three[2]), 0);
			break;
		default:
			CHECK_EQ(hd_when(do_nothing, NULL, three[1], three[2]), 0);
		}
		if (i % 8 == 0)
			hd_yield();
	}
	return NULL;
}

/* With a ticket that is placed before the one before it, the third call could pass the first, and the fourth close the circle. */
HD_WORKERS_TEST(when_four_calls_in_a_circle_never_overtake_each_other)
{
	hd_pid pids[4];

	(void)workers;
	for (int i = 0; i < 3; i++)
		three[i] = made_cown(NULL);
	for (long i = 0; i < 4; i++)
		pids[i] = born(hd_spawn(call_often, (void *)i));
	join_all(pids, 4);
	for (int i = 0; i < 3; i++)
		hd_cown_release(three[i]);
	quiesce();
	check_none_left();
}
