/* sync/ordered.c - what an ordered queue promises: the item with the least key comes first, and of equals the one that was put first. */
#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "life/common.h"
#include "os/fault.h"
#include "sched/workers.h"

static int many(int n)
{
	return hd_is_simulated() ? n / 100 + 2 : hd_scaled(n);
}

struct job {
	long number;
	int64_t key;
};

static hd_queue *q;

static void make_ordered(size_t capacity)
{
	q = hd_queue_new_ordered(sizeof(struct job), capacity, offsetof(struct job, key));
	CHECK(q != NULL);
}

static void put_job(int64_t key, long number)
{
	CHECK_EQ(hd_queue_put(q, &(struct job){ number, key }, HD_FOREVER), 0);
}

static long next_number(void)
{
	struct job job = { -1, -1 };

	CHECK_EQ(hd_queue_next(q, &job, 0), 0);
	return job.number;
}

/* ---- order ---- */

#define MODEL 600

static struct job model[MODEL];
static int in_model;

static int first_of_model(void)
{
	int first = 0;

	for (int i = 1; i < in_model; i++)
		if (model[i].key < model[first].key) /* of equals the first */
			first = i;
	return first;
}

/* Puts and takes at random, beside a list whose first least item is looked for. */
static void check_against_model(size_t capacity, unsigned seed, int keys)
{
	make_ordered(capacity);
	in_model = 0;
	for (long i = 0; i < 3 * MODEL; i++) {
		bool grows = next_random(&seed) % 3 != 0;
		struct job job = { i, (int64_t)(next_random(&seed) % (unsigned)keys) - keys / 2 };
		if (grows && in_model < (capacity > 0 ? (int)capacity : MODEL)) {
			CHECK_EQ(hd_queue_try_put(q, &job), 0);
			model[in_model++] = job;
		} else if (in_model > 0) {
			struct job seen;
			int first = first_of_model();
			CHECK_EQ(hd_queue_peek(q, &seen), 0);
			CHECK_EQ(hd_queue_try_next(q, &job), 0);
			CHECK(job.number == model[first].number && job.key == model[first].key);
			CHECK_EQ(seen.number, job.number);
			memmove(&model[first], &model[first + 1], sizeof model[0] * (size_t)(--in_model - first));
		}
		CHECK_EQ(hd_queue_length(q), (size_t)in_model);
	}
	hd_queue_drop(q);
}

static void check_orders(void)
{
	static const int keys[] = { 1, 3, 50, 1000000 };

	for (unsigned i = 0; i < 4; i++) {
		check_against_model(0, i + 1, keys[i]);
		check_against_model(7, i + 9, keys[i]);
		check_against_model(100, i + 20, keys[i]);
	}
}

HD_TEST(ordered_queue_gives_the_least_item_and_equals_in_order_on_plain_thread)
{
	check_orders();
}

HD_PROCESS_TEST(ordered_queue_gives_the_least_item_and_equals_in_order_on_process)
{
	check_orders();
}

HD_TEST(ordered_queue_compares_all_64_bits_with_their_sign)
{
	static const int64_t keys[] = { 0, INT64_MAX, -1, INT64_MIN, INT64_C(1) << 32, 1, INT64_MAX - 1, INT64_MIN + 1 };
	static const long order[] = { 3, 7, 2, 0, 5, 4, 6, 1 };

	make_ordered(0);
	for (long i = 0; i < 8; i++)
		put_job(keys[i], i);
	for (int i = 0; i < 8; i++)
		CHECK_EQ(next_number(), order[i]);
	hd_queue_drop(q);
}

/* A key at any byte of an item of any size; nothing outside the item is touched. */
HD_TEST(ordered_queue_finds_the_key_at_any_byte)
{
	static const struct {
		size_t size, at;
	} shapes[] = { { 8, 0 }, { 9, 1 }, { 13, 3 }, { 24, 16 }, { 100, 50 }, { 100, 92 } };

	for (int s = 0; s < 6; s++) {
		unsigned char item[102];
		q = hd_queue_new_ordered(shapes[s].size, 0, shapes[s].at);
		CHECK(q != NULL);
		for (int64_t i = 0; i < 50; i++) {
			int64_t key = i * 7 % 50;
			memset(item, (int)key, sizeof item);
			memcpy(item + 1 + shapes[s].at, &key, sizeof key);
			CHECK_EQ(hd_queue_put(q, item + 1, HD_FOREVER), 0);
		}
		for (int64_t i = 0; i < 50; i++) {
			int64_t key;
			memset(item, 0xee, sizeof item);
			CHECK_EQ(hd_queue_next(q, item + 1, HD_FOREVER), 0);
			memcpy(&key, item + 1 + shapes[s].at, sizeof key);
			CHECK_EQ(key, i);
			CHECK(item[0] == 0xee && item[shapes[s].size + 1] == 0xee);
			for (size_t k = 0; k < shapes[s].size; k++)
				CHECK((k >= shapes[s].at && k < shapes[s].at + 8) || item[k + 1] == (unsigned char)i);
		}
		hd_queue_drop(q);
	}
}

HD_TEST(ordered_queue_has_its_key_inside_the_item_or_is_none)
{
	CHECK(hd_queue_new_ordered(0, 0, 0) == NULL);
	CHECK(hd_queue_new_ordered(7, 0, 0) == NULL);
	CHECK(hd_queue_new_ordered(16, 0, 9) == NULL);
	CHECK(hd_queue_new_ordered(16, 0, SIZE_MAX) == NULL);
}

/* ---- no memory ---- */

HD_TEST(ordered_queue_without_memory_is_none)
{
	for (unsigned nth = 1; nth <= 2; nth++) {
		hd__fault_arm(HD__FAULT_ALLOC, nth, false);
		CHECK(hd_queue_new_ordered(8, 8, 0) == NULL);
	}
	hd__fault_arm(HD__FAULT_ALLOC, 0, false);
	CHECK(hd_queue_new_ordered(8, SIZE_MAX, 0) == NULL);
	CHECK(hd_queue_new_ordered(8, SIZE_MAX / 8, 0) == NULL);
	CHECK(hd_queue_new_ordered(SIZE_MAX, 8, 0) == NULL);
	CHECK(hd_queue_new_ordered(SIZE_MAX, 1, 0) == NULL);
	CHECK(hd_queue_new_ordered(SIZE_MAX - 24, 1, 0) == NULL);
}

HD_PROCESS_TEST(ordered_queue_that_cannot_grow_says_so_and_loses_nothing)
{
	make_ordered(0);
	for (long i = 0; i < 16; i++)
		put_job(-i, i);
	struct job job = { 16, -16 };
	struct hd_case c = hd_case_put(q, &job);
	hd__fault_arm(HD__FAULT_ALLOC, 1, true);
	CHECK_EQ(hd_queue_put(q, &job, HD_FOREVER), -ENOMEM);
	CHECK_EQ(hd_queue_put_many(q, &job, 1, HD_FOREVER), -ENOMEM);
	CHECK_EQ(hd_select(&c, 1, HD_FOREVER), 0);
	CHECK_EQ(c.err, -ENOMEM);
	hd__fault_arm(HD__FAULT_ALLOC, 0, false);
	CHECK_EQ(hd_queue_length(q), 16);
	put_job(job.key, job.number);
	for (long i = 16; i >= 0; i--)
		CHECK_EQ(next_number(), i);
	hd_queue_drop(q);
}

/* ---- waiters ---- */

static void *put_and_say(void *arg)
{
	struct job *job = arg;
	int err = hd_queue_put(q, job, HD_FOREVER);

	trace("%ld:%d ", job->number, err);
	return NULL;
}

static void *take_and_say(void *arg)
{
	struct job job = { 0 };
	int err = hd_queue_next(q, &job, HD_FOREVER);

	trace("%d,%ld ", err, job.number);
	return arg;
}

/* Putters wait in the order of arrival; what is in the queue comes out by its key, also what a putter has just brought in. */
HD_PROCESS_TEST(ordered_queue_sorts_an_item_when_it_finds_room)
{
	struct job a = { 1, 5 }, b = { 2, 0 }, c = { 3, 9 };

	make_ordered(2);
	put_job(7, 10);
	put_job(8, 11);
	born(hd_spawn_at(50, put_and_say, &a));
	hd_pid pid = born(hd_spawn_at(60, put_and_say, &b));
	born(hd_spawn_at(70, put_and_say, &c));
	CHECK_EQ(info_of(pid).why, HD_WAIT_PUT);
	CHECK_EQ(next_number(), 10); /* the first putter's item, 5, comes in */
	CHECK_EQ(next_number(), 1);
	CHECK_EQ(next_number(), 2);
	CHECK_EQ(next_number(), 11);
	CHECK_EQ(next_number(), 3);
	CHECK_STR(trace_text(), "1:0 2:0 3:0 ");
	hd_queue_drop(q);
}

HD_PROCESS_TEST(ordered_queue_hands_an_item_to_the_first_that_waits)
{
	make_ordered(2);
	born(hd_spawn_at(50, take_and_say, NULL));
	born(hd_spawn_at(50, take_and_say, NULL));
	put_job(9, 1);
	put_job(3, 2);
	put_job(5, 3);
	CHECK_STR(trace_text(), "0,1 0,2 ");
	CHECK_EQ(hd_queue_length(q), 1);
	hd_queue_drop(q);
}

static void check_many(void)
{
	struct job jobs[40], got[40];

	make_ordered(0);
	for (int i = 0; i < 40; i++)
		jobs[i] = (struct job){ i, i * 7 % 40 };
	CHECK_EQ(hd_queue_put_many(q, jobs, 40, 0), 40);
	CHECK_EQ(hd_queue_next_many(q, got, 15, 0), 15);
	CHECK_EQ(hd_queue_close(q), 0);
	CHECK_EQ(hd_queue_put(q, jobs, HD_FOREVER), -EPIPE);
	CHECK_EQ(hd_queue_next_many(q, got + 15, 40, HD_FOREVER), 25);
	for (int i = 0; i < 40; i++)
		CHECK_EQ(got[i].key, i);
	CHECK_EQ(hd_queue_next_many(q, got, 1, HD_FOREVER), -EPIPE);
	CHECK_EQ(hd_queue_next(q, got, HD_FOREVER), -EPIPE);
	CHECK_EQ(hd_queue_peek(q, got), -EPIPE);
	hd_queue_drop(q);
}

HD_TEST(ordered_queue_many_at_a_time_come_out_in_order_on_plain_thread)
{
	check_many();
}

HD_PROCESS_TEST(ordered_queue_many_at_a_time_come_out_in_order_on_process)
{
	check_many();
}

HD_PROCESS_TEST(ordered_queue_next_many_makes_room_and_takes_what_comes_in)
{
	struct job a = { 1, 1 }, b = { 2, 9 };
	struct job got[4];

	make_ordered(2);
	put_job(5, 10);
	put_job(6, 11);
	born(hd_spawn_at(50, put_and_say, &a));
	born(hd_spawn_at(50, put_and_say, &b));
	CHECK_EQ(hd_queue_next_many(q, got, 4, 0), 4);
	CHECK(got[0].number == 10 && got[1].number == 1 && got[2].number == 11 && got[3].number == 2);
	hd_queue_drop(q);
}

static void *select_next(void *arg)
{
	static struct hd_semaphore none;
	struct hd_case cases[] = { hd_case_semaphore(&none), hd_case_next(q, arg) };

	CHECK_EQ(hd_select(cases, 2, HD_FOREVER), 1);
	CHECK_EQ(cases[1].err, 0);
	return NULL;
}

HD_PROCESS_TEST(ordered_queue_select_puts_and_takes_in_order)
{
	struct job job, jobs[] = { { 0, 3 }, { 1, 1 }, { 2, 2 } };

	make_ordered(3);
	for (int i = 0; i < 3; i++) {
		struct hd_case c = hd_case_put(q, &jobs[i]);
		CHECK_EQ(hd_select(&c, 1, HD_FOREVER), 0);
		CHECK_EQ(c.err, 0);
	}
	struct hd_case full = hd_case_put(q, &jobs[0]);
	CHECK_EQ(hd_select(&full, 1, 0), -ETIMEDOUT);
	for (int i = 1; i <= 3; i++) {
		select_next(&job);
		CHECK_EQ(job.key, i);
	}
	hd_pid pid = born(hd_spawn_at(50, select_next, &job));
	put_job(8, 4);
	CHECK_EQ(hd_join(pid, NULL, HD_FOREVER), 0);
	CHECK_EQ(job.number, 4);
	CHECK_EQ(hd_queue_length(q), 0);
	hd_queue_drop(q);
}

/* ---- many to many ---- */

#define SIDES 4

static long put_sum, put_count, taken_sum, taken_count;
static int each_puts;

static void *produce(void *arg)
{
	unsigned seed = (unsigned)(long)arg;

	for (int i = 0; i < each_puts; i++) {
		struct job job = { (long)arg * 1000000 + i, next_random(&seed) % 8 };
		hd_time until = next_random(&seed) % 2 ? HD_FOREVER : hd_after(next_random(&seed) % 20000);
		if (hd_queue_put(q, &job, until) == 0) {
			add(&put_sum, job.number);
			add(&put_count, 1);
		}
	}
	return NULL;
}

static void *consume(void *arg)
{
	unsigned seed = (unsigned)(long)arg;

	for (;;) {
		struct job jobs[3];
		hd_time until = next_random(&seed) % 2 ? HD_FOREVER : hd_after(next_random(&seed) % 20000);
		long n = hd_queue_next_many(q, jobs, 1 + next_random(&seed) % 3, until);
		if (n == -EPIPE)
			return NULL;
		CHECK(n > 0 || n == -ETIMEDOUT || n == -ECANCELED);
		if (hd_self() != 0)
			hd_cancel_clear();
		for (long i = 0; i < n; i++)
			add(&taken_sum, jobs[i].number);
		if (n > 0)
			add(&taken_count, n);
	}
}

static void move_items(size_t capacity, bool movable, int n)
{
	hd_pid producers[SIDES], consumers[SIDES];
	struct hd_spawn how = { .pinned = !movable };
	unsigned seed = 5;

	put_sum = put_count = taken_sum = taken_count = 0;
	each_puts = n / SIDES + 1;
	make_ordered(capacity);
	struct plain_thread *consumer = start_thread(consume, (void *)21L), *producer = start_thread(produce, (void *)22L);
	for (long i = 0; i < SIDES; i++) {
		consumers[i] = born(hd_spawn_with(&how, consume, (void *)(i + 11)));
		producers[i] = born(hd_spawn_with(&how, produce, (void *)(i + 1)));
	}
	for (int i = 0; i < n / 16; i++) {
		hd_cancel(consumers[next_random(&seed) % SIDES]);
		hd_sleep(HD_US(next_random(&seed) % 10));
	}
	join_thread(producer);
	join_all(producers, SIDES);
	CHECK_EQ(hd_queue_close(q), 0);
	join_all(consumers, SIDES);
	join_thread(consumer);
	CHECK_EQ(hd_queue_length(q), 0);
	CHECK_EQ(taken_count, put_count);
	CHECK_EQ(taken_sum, put_sum);
	CHECK(put_count > 0);
	hd_queue_drop(q);
}

HD_WORKERS_TEST(ordered_queue_neither_loses_nor_doubles_an_item)
{
	(void)workers;
	for (int i = 0; i < 6; i++)
		move_items(i % 3 == 0 ? 0 : i % 3 == 1 ? 1 : 7, i / 3, many(2000));
}

HD_WORKERS_STRESS(ordered_queue_neither_loses_nor_doubles_one_of_many_items)
{
	(void)workers;
	for (int i = 0; i < 6; i++)
		move_items(i % 3 == 0 ? 0 : i % 3 == 1 ? 1 : 7, i / 3, many(50000));
}

/* What many put at a time comes out by key, and of one putter and one key in the order in which it was put. */
HD_WORKERS_TEST(ordered_queue_that_many_fill_at_a_time_is_in_order)
{
	hd_pid pids[SIDES];
	long last[SIDES + 1][8] = { 0 };
	int64_t before = -1;
	struct job job;

	(void)workers;
	each_puts = many(1000);
	make_ordered(0);
	for (long i = 0; i < SIDES; i++)
		pids[i] = born(hd_spawn(produce, (void *)(i + 1)));
	join_all(pids, SIDES);
	while (hd_queue_try_next(q, &job) == 0) {
		CHECK(job.key >= before);
		before = job.key;
		CHECK(job.number >= last[job.number / 1000000][job.key]);
		last[job.number / 1000000][job.key] = job.number + 1;
	}
	hd_queue_drop(q);
}
