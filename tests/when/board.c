/* when/board.c - noticeboards: every read is one whole value, and none is older than one before. */
#include "when/common.h"

#include <stddef.h>

/* ---- one thread ---- */

HD_TEST(noticeboard_shows_the_newest_value_and_counts_them)
{
	long value = 40, seen = 0;
	hd_noticeboard *board = hd_noticeboard_new(&value, sizeof value);

	CHECK(board != NULL);
	for (long i = 1; i <= 5; i++) {
		for (int again = 0; again < 2; again++) {
			CHECK_EQ(hd_noticeboard_read(board, &seen), i);
			CHECK_EQ(seen, 39 + i);
		}
		value++;
		hd_noticeboard_publish(board, &value);
		value += 1000; /* the board has a copy */
		CHECK_EQ(hd_noticeboard_read(board, &seen), i + 1);
		CHECK_EQ(seen, 40 + i);
		value -= 1000;
	}
	hd_noticeboard_drop(board);
}

static void fill(unsigned char *bytes, size_t n, unsigned seed)
{
	for (size_t i = 0; i < n; i++)
		bytes[i] = (unsigned char)(seed + i * 7 + i / 256);
}

/* The source has not a byte more than the value: ASan would see a read beyond it. */
static void check_size(size_t size)
{
	enum { AFTER = 16 };
	unsigned char *source = malloc(size), *copy = malloc(size + AFTER), after[AFTER];

	CHECK(source != NULL && copy != NULL);
	memset(after, 0xee, AFTER);
	fill(source, size, 1);
	hd_noticeboard *board = hd_noticeboard_new(source, size);
	CHECK(board != NULL);
	for (unsigned i = 1; i <= 3; i++) {
		memset(copy, 0xee, size + AFTER);
		CHECK_EQ(hd_noticeboard_read(board, copy), i);
		CHECK_EQ(memcmp(copy, source, size), 0);
		CHECK_EQ(memcmp(copy + size, after, AFTER), 0);
		fill(source, size, i + 100);
		hd_noticeboard_publish(board, source);
	}
	hd_noticeboard_drop(board);
	free(source);
	free(copy);
}

HD_TEST(noticeboard_copies_as_many_bytes_as_it_was_made_for)
{
	for (size_t size = 1; size <= 25; size++)
		check_size(size);
	check_size(4096);
	check_size(4099);
}

/* Neither end of the program's copies need be where a word could be. */
HD_TEST(noticeboard_copies_to_and_from_any_address)
{
	unsigned char source[40] = { 0 }, copy[40];
	hd_noticeboard *board = hd_noticeboard_new(source, 19);

	CHECK(board != NULL);
	for (size_t from = 0; from < 8; from++)
		for (size_t to = 0; to < 8; to++) {
			fill(source, sizeof source, (unsigned)(from * 8 + to));
			hd_noticeboard_publish(board, source + from);
			memset(copy, 0xee, sizeof copy);
			CHECK_EQ(hd_noticeboard_read(board, copy + to), 2 + from * 8 + to);
			CHECK_EQ(memcmp(copy + to, source + from, 19), 0);
			CHECK_EQ(copy[to + 19], 0xee);
		}
	hd_noticeboard_drop(board);
}

HD_TEST(noticeboard_is_not_made_of_nothing_nor_without_memory)
{
	long value = 1;

	CHECK(hd_noticeboard_new(NULL, sizeof value) == NULL);
	CHECK(hd_noticeboard_new(&value, 0) == NULL);
	CHECK(hd_noticeboard_new(NULL, 0) == NULL);
	CHECK(hd_noticeboard_new(&value, SIZE_MAX) == NULL);
	CHECK(hd_noticeboard_new(&value, SIZE_MAX - sizeof value) == NULL);
	hd__fault_arm(HD__FAULT_ALLOC, 1, false);
	errno = 77;
	CHECK(hd_noticeboard_new(&value, sizeof value) == NULL);
	CHECK_EQ(errno, 77);
	hd__fault_arm(HD__FAULT_ALLOC, 0, false);
	hd_noticeboard_drop(NULL);
}

/* ---- many publishers and readers ---- */

enum { PUBLISHERS = 3, READERS = 3, WORDS = 5, NOTICES_MAX = 8192 };

/* All of it is the same stamp: a copy that is not of one publish shows. */
struct notice {
	uint64_t stamps[WORDS];
	uint32_t tail; /* the board's last word is a partial one */
};
#define NOTICE_SIZE (offsetof(struct notice, tail) + sizeof(uint32_t))

static hd_noticeboard *board;
static long stamp_of[NOTICES_MAX]; /* by number; 0: no reader has seen it yet */

static struct notice notice_of(uint64_t stamp)
{
	struct notice notice = { .tail = (uint32_t)stamp };

	for (int i = 0; i < WORDS; i++)
		notice.stamps[i] = stamp;
	return notice;
}

static void start_board(void)
{
	struct notice first = notice_of(1);

	memset(stamp_of, 0, sizeof stamp_of);
	board = hd_noticeboard_new(&first, NOTICE_SIZE);
	CHECK(board != NULL);
}

/* One read: it is whole, all readers have the same under its number, and it is not older than `least`. Returns the number. */
static long look(long least)
{
	struct notice seen = notice_of(0);
	long number = (long)hd_noticeboard_read(board, &seen), stamp = (long)seen.stamps[0], known = 0;

	for (int i = 1; i < WORDS; i++)
		CHECK_EQ(seen.stamps[i], stamp);
	CHECK_EQ(seen.tail, (uint32_t)stamp);
	CHECK(number >= least && number < NOTICES_MAX);
	if (!__atomic_compare_exchange_n(&stamp_of[number], &known, stamp, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
		CHECK_EQ(known, stamp);
	return number;
}

static void publish(uint64_t stamp)
{
	struct notice notice = notice_of(stamp);

	hd_noticeboard_publish(board, &notice);
}

static void let_others_run(int i)
{
	if (i % 16 == 0 && hd_yield() != 0)
		sched_yield();
}

/* What was published is seen by its publisher: the number has gone up. */
static void publish_many(void *number)
{
	long least = 1;

	for (int i = many(2000); i > 0; i--) {
		publish((uint64_t)(long)number * 100000 + (uint64_t)i);
		least = look(least + 1);
		let_others_run(i);
	}
}

static void read_many(void *arg)
{
	long least = 1;

	(void)arg;
	for (int i = many(10000); i > 0; i--) {
		least = look(least);
		let_others_run(i);
	}
}

static void finish_board(void)
{
	CHECK_EQ(look(1), 1 + PUBLISHERS * many(2000)); /* no publish was lost */
	hd_noticeboard_drop(board);
}

static void *publishing(void *number)
{
	publish_many(number);
	return NULL;
}

static void *reading(void *arg)
{
	read_many(arg);
	return NULL;
}

HD_WORKERS_TEST(noticeboard_shows_processes_whole_values_that_never_get_older)
{
	hd_pid pids[PUBLISHERS + READERS];

	(void)workers;
	start_board();
	for (long i = 0; i < PUBLISHERS + READERS; i++)
		pids[i] = born(hd_spawn(i < PUBLISHERS ? publishing : reading, (void *)(i + 1)));
	join_all(pids, PUBLISHERS + READERS);
	finish_board();
}

HD_TEST(noticeboard_shows_plain_threads_whole_values_that_never_get_older)
{
	struct plain threads[PUBLISHERS + READERS];

	start_board();
	for (long i = 0; i < PUBLISHERS + READERS; i++)
		plain_start(&threads[i], i < PUBLISHERS ? publish_many : read_many, (void *)(i + 1));
	for (int i = 0; i < PUBLISHERS + READERS; i++)
		plain_join(&threads[i]);
	finish_board();
}

HD_WORKERS_TEST(noticeboard_is_shared_by_processes_and_plain_threads)
{
	struct plain threads[PUBLISHERS];
	hd_pid pids[READERS];

	(void)workers;
	start_board();
	for (long i = 0; i < READERS; i++)
		pids[i] = born(hd_spawn(reading, NULL));
	for (long i = 0; i < PUBLISHERS; i++)
		plain_start(&threads[i], publish_many, (void *)(i + 1));
	for (int i = 0; i < PUBLISHERS; i++)
		plain_join(&threads[i]);
	join_all(pids, READERS);
	finish_board();
}

/* ---- behaviours ---- */

/* The cown has the number that the behaviour before it has seen. */
static void look_after_the_last(void *arg, void *const data[])
{
	long *least = data[0];

	(void)arg;
	*least = look(*least);
}

static void publish_and_look(void *stamp, void *const data[])
{
	long *least = data[0];

	publish((uint64_t)(long)stamp);
	*least = look(*least + 1);
}

HD_WORKERS_TEST(noticeboard_shows_behaviours_whole_values_that_never_get_older_along_a_cown)
{
	enum { COWNS = 6 };
	static long least[COWNS];
	hd_cown *cowns[COWNS];
	int rounds = many(1000);

	(void)workers;
	start_board();
	for (int i = 0; i < COWNS; i++) {
		least[i] = 1;
		cowns[i] = made_cown(&least[i]);
	}
	for (long round = 1; round <= rounds; round++)
		for (long i = 0; i < COWNS; i++)
			CHECK_EQ(hd_when(i < PUBLISHERS ? publish_and_look : look_after_the_last,
					 (void *)(round * COWNS + i), cowns[i]),
				 0);
	quiesce();
	CHECK_EQ(look(1), 1 + PUBLISHERS * rounds);
	for (int i = 0; i < COWNS; i++)
		hd_cown_release(cowns[i]);
	hd_noticeboard_drop(board);
	check_none_left();
}

static void look_from(void *least, void *const data[])
{
	(void)data;
	look((long)least);
}

/* The process is the only publisher, so it knows the number of what it has published. */
HD_WORKERS_TEST(noticeboard_shows_a_behaviour_what_was_published_before_it_was_made)
{
	long n = many(3000);

	(void)workers;
	start_board();
	for (long number = 2; number <= n; number++) {
		publish((uint64_t)number);
		CHECK_EQ(hd_when_n(look_from, (void *)number, NULL, 0), 0);
		if (number % 64 == 0)
			hd_yield();
	}
	quiesce();
	for (long number = 2; number <= n; number++)
		CHECK(stamp_of[number] == 0 || stamp_of[number] == number);
	hd_noticeboard_drop(board);
	check_none_left();
}

/* ---- the order that a read makes ---- */

static long behind[2];

static void *follow_the_index(void *arg)
{
	long index = -1;

	while (index < 0) {
		hd_noticeboard_read(board, &index);
		hd_yield();
	}
	CHECK_EQ(behind[index], 7);
	return arg;
}

/* behind[index] is written and read without atomic operations: TSan reports it if the board does not order the two. */
HD_WORKERS_TEST(noticeboard_orders_what_came_before_a_publish_before_what_follows_a_read)
{
	long none = -1, index = workers > 1;

	behind[0] = behind[1] = 0;
	board = hd_noticeboard_new(&none, sizeof none);
	CHECK(board != NULL);
	hd_pid pid = born(hd_spawn(follow_the_index, NULL));
	hd_yield();
	behind[index] = 7;
	hd_noticeboard_publish(board, &index);
	CHECK_EQ(hd_join(pid, NULL, HD_FOREVER), 0);
	hd_noticeboard_drop(board);
}
