/* sync/queue.c - what a queue promises: every item once, in order, or an error and no item. */
#include <errno.h>
#include <string.h>

#include "life/common.h"
#include "os/fault.h"
#include "sched/workers.h"

static int many(int n)
{
	return hd_is_simulated() ? n / 100 + 2 : hd_scaled(n);
}

static hd_queue *q;

static hd_queue *made(hd_queue *queue)
{
	CHECK(queue != NULL);
	return queue;
}

static void put_long(long item)
{
	CHECK_EQ(hd_queue_put(q, &item, HD_FOREVER), 0);
}

static long next_long(void)
{
	long item = -1;

	CHECK_EQ(hd_queue_next(q, &item, HD_FOREVER), 0);
	return item;
}

/* ---- items ---- */

static void fill_item(unsigned char *item, size_t size, unsigned n)
{
	for (size_t i = 0; i < size; i++)
		item[i] = (unsigned char)(n * 31 + i);
}

/* Through the ring, and from hand to hand is below. Nothing outside the item is touched. */
static void check_items(size_t size, size_t capacity)
{
	unsigned char item[1002], expected[1000];

	q = made(hd_queue_new(size, capacity));
	for (unsigned put = 0, taken = 0; taken < 100;) {
		for (unsigned i = 0; put < 100 && i < 5; i++, put++) {
			fill_item(item, size, put);
			CHECK_EQ(hd_queue_put(q, item, HD_FOREVER), 0);
		}
		CHECK_EQ(hd_queue_length(q), put - taken);
		for (unsigned i = 0; taken < put && i < 4 + (put == 100) * 100; i++, taken++) {
			memset(item, 0xee, sizeof item);
			fill_item(expected, size, taken);
			CHECK_EQ(hd_queue_next(q, item + 1, HD_FOREVER), 0);
			CHECK(memcmp(item + 1, expected, size) == 0);
			CHECK(item[0] == 0xee && item[size + 1] == 0xee);
		}
	}
	CHECK_EQ(hd_queue_length(q), 0);
	hd_queue_drop(q);
}

static void check_sizes(void)
{
	static const size_t sizes[] = { 0, 1, 8, 24, 1000 };

	for (int i = 0; i < 5; i++) {
		check_items(sizes[i], 0);
		check_items(sizes[i], 100);
		check_items(sizes[i], 33);
	}
}

HD_TEST(queue_holds_items_of_any_size_in_order_on_plain_thread)
{
	check_sizes();
}

HD_PROCESS_TEST(queue_holds_items_of_any_size_in_order_on_process)
{
	check_sizes();
}

static void check_answers(void)
{
	long item = 5;

	q = made(hd_queue_new(sizeof item, 2));
	CHECK(!hd_queue_is_closed(q));
	CHECK_EQ(hd_queue_try_next(q, &item), -EAGAIN);
	CHECK_EQ(hd_queue_next(q, &item, 0), -ETIMEDOUT);
	CHECK_EQ(hd_queue_next(q, &item, hd_after(HD_MS(1))), -ETIMEDOUT);
	CHECK_EQ(hd_queue_peek(q, &item), -EAGAIN);
	CHECK_EQ(item, 5);
	CHECK_EQ(hd_queue_put(q, &(long){ 1 }, 0), 0);
	CHECK_EQ(hd_queue_try_put(q, &(long){ 2 }), 0);
	CHECK_EQ(hd_queue_try_put(q, &(long){ 3 }), -EAGAIN);
	CHECK_EQ(hd_queue_put(q, &(long){ 3 }, 0), -ETIMEDOUT);
	CHECK_EQ(hd_queue_put(q, &(long){ 3 }, hd_after(HD_MS(1))), -ETIMEDOUT);
	CHECK_EQ(hd_queue_length(q), 2);
	CHECK_EQ(hd_queue_peek(q, &item), 0);
	CHECK_EQ(item, 1);
	CHECK_EQ(hd_queue_length(q), 2);
	CHECK_EQ(next_long(), 1);
	CHECK_EQ(hd_queue_try_next(q, &item), 0);
	CHECK_EQ(item, 2);
	CHECK_EQ(hd_queue_length(q), 0);
	hd_queue_drop(q);
	hd_queue_drop(NULL);
}

HD_TEST(queue_tries_waits_and_peeks_on_plain_thread)
{
	check_answers();
}

HD_PROCESS_TEST(queue_tries_waits_and_peeks_on_process)
{
	check_answers();
}

/* The ring grows when its first item is at any place of it. */
static void *take_signal(void *arg)
{
	CHECK_EQ(hd_queue_next(q, NULL, HD_FOREVER), 0);
	return arg;
}

/* Items of no size are signals, and need no memory on either side. That memcpy gets no NULL, the sanitizer for undefined behaviour sees. */
HD_PROCESS_TEST(queue_of_signals_takes_no_memory_from_its_callers)
{
	q = made(hd_queue_new(0, 0));
	for (int i = 0; i < 20; i++) /* it grows once */
		CHECK_EQ(hd_queue_put(q, NULL, HD_FOREVER), 0);
	CHECK_EQ(hd_queue_put_many(q, NULL, 5, 0), 5);
	CHECK_EQ(hd_queue_peek(q, NULL), 0);
	CHECK_EQ(hd_queue_next_many(q, NULL, 24, 0), 24);
	struct hd_case cases[] = { hd_case_next(q, NULL), hd_case_put(q, NULL) };
	CHECK_EQ(hd_select_first(cases, 2, 0), 0);
	CHECK_EQ(hd_queue_length(q), 0);
	hd_pid pid = born(hd_spawn_at(50, take_signal, NULL)); /* from hand to hand */
	CHECK_EQ(hd_queue_put(q, NULL, 0), 0);
	CHECK_EQ(hd_join(pid, NULL, HD_FOREVER), 0);
	hd_queue_drop(q);
}

HD_TEST(queue_without_capacity_grows_wherever_its_ring_begins)
{
	for (long first = 0; first < 40; first++) {
		q = made(hd_queue_new(sizeof(long), 0));
		for (long i = 0; i < first; i++)
			put_long(i), CHECK_EQ(next_long(), i);
		for (long i = 0; i < 150; i++)
			put_long(i);
		for (long i = 0; i < 60; i++)
			CHECK_EQ(next_long(), i);
		for (long i = 150; i < 500; i++)
			put_long(i);
		for (long i = 60; i < 500; i++)
			CHECK_EQ(next_long(), i);
		CHECK_EQ(hd_queue_length(q), 0);
		hd_queue_drop(q);
	}
}

/* ---- close ---- */

static void check_close(void)
{
	long item = 7;

	q = made(hd_queue_new(sizeof item, 3));
	put_long(1);
	put_long(2);
	CHECK_EQ(hd_queue_close(q), 0);
	CHECK_EQ(hd_queue_close(q), -EALREADY);
	CHECK(hd_queue_is_closed(q));
	CHECK_EQ(hd_queue_put(q, &item, HD_FOREVER), -EPIPE);
	CHECK_EQ(hd_queue_try_put(q, &item), -EPIPE);
	CHECK_EQ(hd_queue_put_many(q, &item, 1, HD_FOREVER), -EPIPE);
	CHECK_EQ(hd_queue_length(q), 2);
	CHECK_EQ(hd_queue_peek(q, &item), 0);
	CHECK_EQ(next_long(), 1);
	CHECK_EQ(hd_queue_try_next(q, &item), 0);
	CHECK_EQ(item, 2);
	CHECK_EQ(hd_queue_next(q, &item, HD_FOREVER), -EPIPE);
	CHECK_EQ(hd_queue_try_next(q, &item), -EPIPE);
	CHECK_EQ(hd_queue_next_many(q, &item, 1, HD_FOREVER), -EPIPE);
	CHECK_EQ(hd_queue_peek(q, &item), -EPIPE);
	CHECK_EQ(item, 2);
	hd_queue_drop(q);
}

HD_TEST(queue_closed_can_be_emptied_and_not_filled_on_plain_thread)
{
	check_close();
}

HD_PROCESS_TEST(queue_closed_can_be_emptied_and_not_filled_on_process)
{
	check_close();
}

/* A full ring that could only be put into by growing is closed all the same. */
HD_TEST(queue_closed_does_not_grow)
{
	q = made(hd_queue_new(sizeof(long), 0));
	for (long i = 0; i < 16; i++)
		put_long(i);
	CHECK_EQ(hd_queue_close(q), 0);
	CHECK_EQ(hd_queue_put(q, &(long){ 1 }, HD_FOREVER), -EPIPE);
	CHECK_EQ(hd_queue_put_many(q, (long[]){ 1, 2 }, 2, HD_FOREVER), -EPIPE);
	CHECK_EQ(hd_queue_length(q), 16);
	hd_queue_drop(q);
}

static void *take_and_say(void *word)
{
	long item = 0;
	int err = hd_queue_next(q, &item, HD_FOREVER);

	trace("%s:%d,%ld ", (const char *)word, err, item);
	return NULL;
}

struct putter {
	const char *word;
	long item;
};

static void *put_and_say(void *arg)
{
	struct putter *putter = arg;
	int err = hd_queue_put(q, &putter->item, HD_FOREVER);

	trace("%s:%d ", putter->word, err);
	return NULL;
}

HD_PROCESS_TEST(queue_close_tells_whoever_waits_to_take)
{
	q = made(hd_queue_new(sizeof(long), 1));
	spawn_word_at(50, take_and_say, "a");
	spawn_word_at(50, take_and_say, "b");
	put_long(3);
	CHECK_EQ(hd_queue_close(q), 0);
	CHECK_STR(trace_text(), "a:0,3 b:-32,0 ");
	hd_queue_drop(q);
}

HD_PROCESS_TEST(queue_close_tells_whoever_waits_to_put)
{
	struct putter a = { "a", 1 }, b = { "b", 2 }, c = { "c", 3 };

	q = made(hd_queue_new(sizeof(long), 1));
	born(hd_spawn_at(50, put_and_say, &a));
	born(hd_spawn_at(50, put_and_say, &b));
	born(hd_spawn_at(50, put_and_say, &c));
	CHECK_EQ(hd_queue_close(q), 0);
	CHECK_STR(trace_text(), "a:0 b:-32 c:-32 ");
	CHECK_EQ(next_long(), 1);
	CHECK_EQ(hd_queue_try_next(q, &(long){ 0 }), -EPIPE);
	hd_queue_drop(q);
}

/* ---- waiters ---- */

HD_PROCESS_TEST(queue_serves_takers_in_order_of_arrival_whatever_the_priority)
{
	q = made(hd_queue_new(sizeof(long), 0));
	spawn_word_at(50, take_and_say, "a");
	hd_pid b = spawn_word_at(80, take_and_say, "b");
	spawn_word_at(60, take_and_say, "c");
	CHECK_EQ(info_of(b).why, HD_WAIT_NEXT);
	for (long i = 1; i <= 3; i++) {
		put_long(i); /* it has a higher priority than we: it has run when this returns */
		trace("%ld ", i);
	}
	CHECK_STR(trace_text(), "a:0,1 1 b:0,2 2 c:0,3 3 ");
	CHECK_EQ(hd_queue_length(q), 0);
	hd_queue_drop(q);
}

HD_PROCESS_TEST(queue_serves_putters_in_order_of_arrival_whatever_the_priority)
{
	struct putter a = { "a", 1 }, b = { "b", 2 }, c = { "c", 3 };

	q = made(hd_queue_new(sizeof(long), 1));
	put_long(0);
	born(hd_spawn_at(50, put_and_say, &a));
	hd_pid pid = born(hd_spawn_at(80, put_and_say, &b));
	born(hd_spawn_at(60, put_and_say, &c));
	CHECK_EQ(info_of(pid).why, HD_WAIT_PUT);
	for (long i = 0; i <= 3; i++) {
		CHECK_EQ(next_long(), i);
		trace("%ld ", i);
	}
	CHECK_STR(trace_text(), "a:0 0 b:0 1 c:0 2 3 ");
	hd_queue_drop(q);
}

HD_PROCESS_TEST(queue_lower_priority_taker_runs_later_but_has_its_item)
{
	q = made(hd_queue_new(sizeof(long), 0));
	hd_pid low = spawn_word_at(30, take_and_say, "low");

	while (state_of(low) != HD_WAITING)
		CHECK_EQ(hd_sleep(HD_MS(1)), 0);
	put_long(1);
	CHECK_EQ(hd_queue_length(q), 0); /* handed over, not kept */
	CHECK_EQ(hd_queue_try_next(q, &(long){ 0 }), -EAGAIN);
	put_long(2);
	trace("main ");
	CHECK_EQ(hd_join(low, NULL, HD_FOREVER), 0);
	CHECK_STR(trace_text(), "main low:0,1 ");
	CHECK_EQ(next_long(), 2);
	hd_queue_drop(q);
}

/* Whoever leaves the middle of the queue, its neighbours are served as if it had never been there. */
HD_PROCESS_TEST(queue_waiters_that_leave_take_and_put_nothing)
{
	struct putter d = { "d", 4 }, e = { "e", 5 }, f = { "f", 6 };

	q = made(hd_queue_new(sizeof(long), 1));
	spawn_word_at(50, take_and_say, "a");
	hd_pid b = spawn_word_at(50, take_and_say, "b"), c = spawn_word_at(50, take_and_say, "c");
	CHECK_EQ(hd_cancel(b), 0);
	CHECK_EQ(hd_terminate(c, HD_FOREVER), 0);
	put_long(1);
	put_long(2);
	hd_pid pids[] = { born(hd_spawn_at(50, put_and_say, &d)), born(hd_spawn_at(50, put_and_say, &e)) };
	born(hd_spawn_at(50, put_and_say, &f));
	CHECK_EQ(hd_cancel(pids[0]), 0);
	CHECK_EQ(hd_terminate(pids[1], HD_FOREVER), 0);
	CHECK_EQ(next_long(), 2);
	CHECK_EQ(next_long(), 6);
	CHECK_STR(trace_text(), "b:-125,0 a:0,1 d:-125 f:0 ");
	CHECK_EQ(hd_queue_length(q), 0);
	hd_queue_drop(q);
}

static void *take_1000(void *to)
{
	CHECK_EQ(hd_queue_next(q, to, HD_FOREVER), 0);
	return NULL;
}

HD_PROCESS_TEST(queue_item_goes_from_hand_to_hand_whole)
{
	static unsigned char item[1000], got[1002];

	q = made(hd_queue_new(1000, 1));
	fill_item(item, 1000, 3);
	memset(got, 0xee, sizeof got);
	hd_pid taker = born(hd_spawn_at(50, take_1000, got + 1));
	CHECK_EQ(hd_queue_put(q, item, HD_FOREVER), 0);
	CHECK_EQ(hd_join(taker, NULL, HD_FOREVER), 0);
	CHECK(memcmp(item, got + 1, 1000) == 0 && got[0] == 0xee && got[1001] == 0xee);
	hd_queue_drop(q);
}

/* ---- many at a time ---- */

static void check_many(void)
{
	long items[] = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9 }, got[10] = { 0 };

	q = made(hd_queue_new(sizeof(long), 4));
	CHECK_EQ(hd_queue_put_many(q, items, 0, 0), 0);
	CHECK_EQ(hd_queue_next_many(q, got, 0, 0), 0);
	CHECK_EQ(hd_queue_next_many(q, got, 10, 0), -ETIMEDOUT);
	CHECK_EQ(hd_queue_next_many(q, got, 10, hd_after(HD_MS(1))), -ETIMEDOUT);
	CHECK_EQ(hd_queue_put_many(q, items, 3, HD_FOREVER), 3);
	CHECK_EQ(hd_queue_next_many(q, got, 2, HD_FOREVER), 2);
	CHECK_EQ(hd_queue_put_many(q, items + 3, 7, 0), 3); /* and then it is full */
	CHECK_EQ(hd_queue_put_many(q, items + 6, 4, 0), -ETIMEDOUT);
	CHECK_EQ(hd_queue_put_many(q, items + 6, 4, hd_after(HD_MS(1))), -ETIMEDOUT);
	CHECK_EQ(hd_queue_next_many(q, got + 2, 8, HD_FOREVER), 4);
	for (long i = 0; i < 6; i++)
		CHECK_EQ(got[i], i);
	CHECK_EQ(hd_queue_put_many(q, items + 6, 1, 0), 1);
	CHECK_EQ(hd_queue_close(q), 0);
	CHECK_EQ(hd_queue_put_many(q, items + 6, 1, HD_FOREVER), -EPIPE);
	CHECK_EQ(hd_queue_next_many(q, got, 8, HD_FOREVER), 1);
	CHECK_EQ(got[0], 6);
	CHECK_EQ(hd_queue_next_many(q, got, 8, HD_FOREVER), -EPIPE);
	hd_queue_drop(q);
}

HD_TEST(queue_many_answers_how_many_on_plain_thread)
{
	check_many();
}

HD_PROCESS_TEST(queue_many_answers_how_many_on_process)
{
	check_many();
}

static void *put_ten(void *until)
{
	static const long items[] = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9 };
	return (void *)(long)hd_queue_put_many(q, items, 10, *(hd_time *)until);
}

static long joined(hd_pid pid)
{
	void *result;

	CHECK_EQ(hd_join(pid, &result, HD_FOREVER), 0);
	return (long)result;
}

/* What stops it in the middle: each time some are in, and are to be had. */
HD_PROCESS_TEST(queue_put_many_tells_how_far_it_came)
{
	hd_time soon = hd_after(HD_MS(2)), never = HD_FOREVER;

	for (int how = 0; how < 4; how++) {
		q = made(hd_queue_new(sizeof(long), 3));
		hd_pid pid = born(hd_spawn_at(50, put_ten, how == 0 ? &soon : &never));
		for (long i = 0; i < (how == 0 ? 0 : 2); i++)
			CHECK_EQ(next_long(), i);
		if (how == 1)
			CHECK_EQ(hd_queue_close(q), 0);
		else if (how == 2)
			CHECK_EQ(hd_cancel(pid), 0);
		else if (how == 3)
			for (long i = 2; i < 7; i++)
				CHECK_EQ(next_long(), i);
		long put = how == 0 ? 3 : how == 3 ? 10 : 5;
		CHECK_EQ(joined(pid), put);
		for (long i = put - 3; i < put; i++)
			CHECK_EQ(next_long(), i);
		CHECK_EQ(hd_queue_length(q), 0);
		hd_queue_drop(q);
	}
}

HD_PROCESS_TEST(queue_put_many_serves_takers_first_and_grows_for_the_rest)
{
	static long items[100], got[100];

	q = made(hd_queue_new(sizeof(long), 0));
	for (long i = 0; i < 100; i++)
		items[i] = i;
	spawn_word_at(50, take_and_say, "a");
	spawn_word_at(50, take_and_say, "b");
	CHECK_EQ(hd_queue_put_many(q, items, 100, 0), 100);
	CHECK_STR(trace_text(), "a:0,0 b:0,1 ");
	CHECK_EQ(hd_queue_next_many(q, got, 100, 0), 98);
	for (long i = 0; i < 98; i++)
		CHECK_EQ(got[i], i + 2);
	hd_queue_drop(q);
}

HD_PROCESS_TEST(queue_next_many_makes_room_for_putters_and_takes_theirs_too)
{
	struct putter a = { "a", 2 }, b = { "b", 3 }, c = { "c", 4 };
	long got[4];

	q = made(hd_queue_new(sizeof(long), 2));
	put_long(0);
	put_long(1);
	born(hd_spawn_at(50, put_and_say, &a));
	born(hd_spawn_at(50, put_and_say, &b));
	born(hd_spawn_at(50, put_and_say, &c));
	CHECK_EQ(hd_queue_next_many(q, got, 4, HD_FOREVER), 4);
	for (long i = 0; i < 4; i++)
		CHECK_EQ(got[i], i);
	CHECK_STR(trace_text(), "a:0 b:0 c:0 ");
	CHECK_EQ(next_long(), 4);
	hd_queue_drop(q);
}

static void *take_many(void *arg)
{
	long got[5] = { 0 };

	trace("%lld,", (long long)hd_queue_next_many(q, got, 5, HD_FOREVER));
	trace("%ld ", got[0]);
	return arg;
}

HD_PROCESS_TEST(queue_next_many_waits_only_for_the_first)
{
	q = made(hd_queue_new(sizeof(long), 0));
	hd_pid a = born(hd_spawn_at(50, take_many, NULL)), b = born(hd_spawn_at(50, take_many, NULL));
	put_long(8);
	CHECK_EQ(hd_cancel(b), 0);
	CHECK_STR(trace_text(), "1,8 -125,0 ");
	join_all((hd_pid[]){ a, b }, 2);
	hd_queue_drop(q);
}

/* ---- no memory ---- */

HD_TEST(queue_without_memory_is_none)
{
	for (unsigned nth = 1; nth <= 2; nth++) {
		hd__fault_arm(HD__FAULT_ALLOC, nth, false);
		CHECK(hd_queue_new(8, 8) == NULL);
	}
	hd__fault_arm(HD__FAULT_ALLOC, 0, false);
	CHECK(hd_queue_new(8, SIZE_MAX) == NULL);
	CHECK(hd_queue_new(SIZE_MAX, 8) == NULL);
	CHECK(hd_queue_new(SIZE_MAX / 8, 0) == NULL);
}

HD_PROCESS_TEST(queue_that_cannot_grow_says_so_and_loses_nothing)
{
	static long items[40], got[40];

	q = made(hd_queue_new(sizeof(long), 0));
	for (long i = 0; i < 40; i++)
		items[i] = i;
	for (long i = 0; i < 5; i++)
		put_long(-1), next_long();
	hd__fault_arm(HD__FAULT_ALLOC, 1, true);
	CHECK_EQ(hd_queue_put_many(q, items, 40, HD_FOREVER), 16);
	CHECK_EQ(hd_queue_put_many(q, items + 16, 24, HD_FOREVER), -ENOMEM);
	CHECK_EQ(hd_queue_put(q, &items[16], HD_FOREVER), -ENOMEM);
	CHECK_EQ(hd_queue_try_put(q, &items[16]), -ENOMEM);
	struct hd_case c = hd_case_put(q, &items[16]);
	CHECK_EQ(hd_select(&c, 1, HD_FOREVER), 0);
	CHECK_EQ(c.err, -ENOMEM);
	CHECK_EQ(hd_queue_length(q), 16);
	CHECK_EQ(next_long(), 0);
	CHECK_EQ(hd_queue_put(q, &items[16], 0), 0); /* there is room without memory */
	hd__fault_arm(HD__FAULT_ALLOC, 0, false);
	CHECK_EQ(hd_queue_put_many(q, items + 17, 23, 0), 23);
	CHECK_EQ(hd_queue_next_many(q, got, 40, 0), 39);
	for (long i = 0; i < 39; i++)
		CHECK_EQ(got[i], i + 1);
	hd_queue_drop(q);
}

HD_TEST_DIES(queue_drop_of_one_that_is_waited_for_dies, "hd_queue_drop of a queue that somebody waits for")
{
	q = made(hd_queue_new(1, 1));
	start_thread(take_1000, &(char[1]){ 0 });
	while (__atomic_load_n((void **)q, __ATOMIC_ACQUIRE) == NULL) /* its first word is the first waiter */
		sched_yield();
	hd_queue_drop(q);
}

/* ---- many to many ---- */

#define SIDES 4

static long put_sum, put_count, taken_sum, taken_count, next_item;
static int each_puts;

/* Items are numbers that nobody else puts; whoever is not served tries again, or gives up. */
static void *produce(void *arg)
{
	unsigned seed = (unsigned)(long)arg;

	for (int i = 0; i < each_puts; i++) {
		long items[3], n = 1 + next_random(&seed) % 3;
		for (long k = 0; k < n; k++)
			items[k] = add(&next_item, 1);
		hd_time until = next_random(&seed) % 2 ? HD_FOREVER : hd_after(next_random(&seed) % 20000);
		long put = n == 1 ? hd_queue_put(q, items, until) == 0 : hd_queue_put_many(q, items, (size_t)n, until);
		for (long k = 0; k < put; k++)
			add(&put_sum, items[k]);
		if (put > 0)
			add(&put_count, put);
		if (next_random(&seed) % 8 == 0 && hd_self() != 0)
			hd_yield();
	}
	return NULL;
}

/* Until it is closed and empty. What it takes that was put by one putter is in order; that is checked elsewhere. */
static void *consume(void *arg)
{
	unsigned seed = (unsigned)(long)arg;

	for (;;) {
		long items[4];
		hd_time until = next_random(&seed) % 2 ? HD_FOREVER : hd_after(next_random(&seed) % 20000);
		long n = next_random(&seed) % 2 ? hd_queue_next_many(q, items, 4, until) : hd_queue_next(q, items, until);
		if (n == -EPIPE)
			return NULL;
		if (n == -ETIMEDOUT)
			continue;
		CHECK(n >= 0);
		for (long k = 0; k < (n > 0 ? n : 1); k++)
			add(&taken_sum, items[k]);
		add(&taken_count, n > 0 ? n : 1);
	}
}

static void move_items(size_t capacity, bool movable, int n, bool threads)
{
	hd_pid producers[SIDES], consumers[SIDES];
	struct plain_thread *producer = NULL, *consumer = NULL;

	put_sum = put_count = taken_sum = taken_count = next_item = 0;
	each_puts = n / SIDES + 1;
	q = made(hd_queue_new(sizeof(long), capacity));
	struct hd_spawn how = { .pinned = !movable };
	for (long i = 0; i < SIDES; i++) {
		consumers[i] = born(hd_spawn_with(&how, consume, (void *)(i + 11)));
		producers[i] = born(hd_spawn_with(&how, produce, (void *)(i + 1)));
	}
	if (threads) {
		consumer = start_thread(consume, (void *)21L);
		producer = start_thread(produce, (void *)22L);
		join_thread(producer);
	}
	join_all(producers, SIDES);
	CHECK_EQ(hd_queue_close(q), 0);
	join_all(consumers, SIDES);
	if (threads)
		join_thread(consumer);
	CHECK_EQ(hd_queue_length(q), 0);
	CHECK_EQ(taken_count, put_count);
	CHECK_EQ(taken_sum, put_sum);
	CHECK(put_count > 0);
	hd_queue_drop(q);
}

HD_WORKERS_TEST(queue_neither_loses_nor_doubles_an_item)
{
	(void)workers;
	for (int i = 0; i < 6; i++)
		move_items(i % 3 == 0 ? 0 : i % 3 == 1 ? 1 : 7, i / 3, many(3000), i % 2);
}

HD_WORKERS_STRESS(queue_neither_loses_nor_doubles_one_of_a_million_items)
{
	(void)workers;
	for (int i = 0; i < 6; i++)
		move_items(i % 3 == 0 ? 0 : i % 3 == 1 ? 1 : 7, i / 3, many(100000), i % 2);
}

/* ---- order ---- */

static void *put_numbered(void *arg)
{
	for (long i = 0; i < each_puts; i++)
		CHECK_EQ(hd_queue_put(q, &(long[]){ (long)arg << 32 | i }[0], HD_FOREVER), 0);
	return NULL;
}

/* One taker sees what each putter put in the order in which it was put, whether it waits or comes late. */
HD_WORKERS_TEST(queue_keeps_the_order_of_each_putter)
{
	hd_pid pids[SIDES];

	(void)workers;
	each_puts = many(2000);
	for (int round = 0; round < 4; round++) {
		long last[SIDES] = { 0 };
		q = made(hd_queue_new(sizeof(long), round % 2 ? 3 : 0));
		for (long i = 0; i < SIDES; i++)
			pids[i] = born(hd_spawn_with(&(struct hd_spawn){ .pinned = !(round / 2) }, put_numbered, (void *)i));
		for (int i = 0; i < SIDES * each_puts; i++) {
			long item = next_long();
			CHECK_EQ(item & 0xffffffff, last[item >> 32]++);
		}
		join_all(pids, SIDES);
		CHECK_EQ(hd_queue_length(q), 0);
		hd_queue_drop(q);
	}
}

/* ---- close meets everybody ---- */

static long closers, put_in, taken_out;

static void *put_until_closed(void *arg)
{
	int err;

	while ((err = hd_queue_put(q, &(long){ 1 }, HD_FOREVER)) == 0)
		add(&put_in, 1);
	CHECK_EQ(err, -EPIPE);
	return arg;
}

static void *take_until_closed(void *arg)
{
	int err;

	while ((err = hd_queue_next(q, &(long){ 0 }, HD_FOREVER)) == 0)
		add(&taken_out, 1);
	CHECK_EQ(err, -EPIPE);
	return arg;
}

static void *close_it(void *arg)
{
	hd_sleep(HD_US(50));
	add(&closers, hd_queue_close(q) == 0);
	return arg;
}

HD_WORKERS_TEST(queue_close_reaches_everybody_and_loses_nothing)
{
	(void)workers;
	for (int round = 0; another_round(round, many(300)); round++) {
		hd_pid pids[6];
		closers = put_in = taken_out = 0;
		q = made(hd_queue_new(sizeof(long), 2));
		for (int i = 0; i < 6; i++)
			pids[i] = born(hd_spawn_with(&(struct hd_spawn){ .pinned = round % 2 == 0 },
						     i % 3 == 0	  ? close_it
						     : i % 3 == 1 ? put_until_closed
								  : take_until_closed,
						     NULL));
		join_all(pids, 6);
		CHECK_EQ(closers, 1);
		CHECK_EQ(put_in, taken_out + (long)hd_queue_length(q));
		hd_queue_drop(q);
	}
}

/* ---- those who wait are stopped ---- */

static void *take_until_stopped(void *arg)
{
	while (hd_queue_next(q, &(long){ 0 }, HD_FOREVER) == 0)
		add(&taken_out, 1);
	return arg;
}

static void *put_until_stopped(void *arg)
{
	while (hd_queue_put(q, &(long){ 1 }, HD_FOREVER) == 0)
		add(&put_in, 1);
	return arg;
}

/* Cancelled or terminated at any moment: what was put was put, what was taken was taken. */
HD_WORKERS_TEST(queue_loses_nothing_by_cancel_and_terminate)
{
	unsigned seed = 3;

	(void)workers;
	for (int round = 0; another_round(round, many(300)); round++) {
		hd_pid pids[6];
		put_in = taken_out = 0;
		q = made(hd_queue_new(sizeof(long), 1 + next_random(&seed) % 3));
		for (int i = 0; i < 6; i++)
			pids[i] = born(hd_spawn_with(&(struct hd_spawn){ .pinned = round % 2 == 0 },
						     i % 2 ? put_until_stopped : take_until_stopped, NULL));
		hd_sleep(HD_US(next_random(&seed) % 100));
		for (int i = 0; i < 6; i++)
			CHECK_EQ(next_random(&seed) % 2 ? hd_cancel(pids[i]) : hd_terminate(pids[i], HD_FOREVER), 0);
		join_all(pids, 6);
		CHECK_EQ(put_in, taken_out + (long)hd_queue_length(q));
		hd_queue_drop(q);
	}
}
