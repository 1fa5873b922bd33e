/* book/chapter4_queue.c - chapter 4, section 4.5: shared queues. */
#include "book/book.h"

#include <errno.h>
#include <string.h>

/* ---- heddle's queue, and the one that 4.5 builds ---- */

#define ROOM_FIRST 4
#define ROOM_MOST 64

/* Positions count from 0. Its room is small at first, so that makeRoomAtEnd has something to do. */
static struct {
	const char *contents[ROOM_MOST];
	int room, read, write;
	struct hd_semaphore access_protect, read_synch;
} books_queue;

static void make_room_at_end(void)
{
	int n = books_queue.write - books_queue.read;

	memmove(books_queue.contents, books_queue.contents + books_queue.read, (size_t)n * sizeof books_queue.contents[0]);
	books_queue.read = 0;
	books_queue.write = n;
	if (n == books_queue.room)
		books_queue.room *= 2;
	CHECK(books_queue.room <= ROOM_MOST);
}

static void put_inside(void *item)
{
	if (books_queue.write == books_queue.room)
		make_room_at_end();
	books_queue.contents[books_queue.write++] = item;
}

static void take_inside(void *item)
{
	CHECK(books_queue.read < books_queue.write); /* else the book reports an error in its synchronization */
	*(const char **)item = books_queue.contents[books_queue.read];
	books_queue.contents[books_queue.read++] = NULL;
}

static void books_put(const char *item)
{
	CHECK_EQ(hd_semaphore_critical(&books_queue.access_protect, put_inside, (void *)item, HD_FOREVER), 0);
	CHECK_EQ(hd_semaphore_signal(&books_queue.read_synch), 0);
}

static const char *books_next(void)
{
	const char *item = NULL;

	CHECK_EQ(hd_semaphore_wait(&books_queue.read_synch, HD_FOREVER), 0);
	CHECK_EQ(hd_semaphore_critical(&books_queue.access_protect, take_inside, &item, HD_FOREVER), 0);
	return item;
}

static hd_queue *heddles_queue;

static void heddles_put(const char *item)
{
	CHECK_EQ(hd_queue_put(heddles_queue, &item, HD_FOREVER), 0);
}

static const char *heddles_next(void)
{
	const char *item = NULL;

	CHECK_EQ(hd_queue_next(heddles_queue, &item, HD_FOREVER), 0);
	return item;
}

static void (*put)(const char *item);
static const char *(*next)(void);

static void play_heddles(hd_entry script, const char *expected)
{
	heddles_queue = hd_queue_new(sizeof(const char *), 0);
	CHECK(heddles_queue != NULL);
	put = heddles_put;
	next = heddles_next;
	play(script);
	CHECK_STR(trace_text(), expected);
	CHECK_EQ(hd_queue_length(heddles_queue), 0);
	hd_queue_drop(heddles_queue);
}

static void play_books(hd_entry script, const char *expected)
{
	memset(&books_queue, 0, sizeof books_queue);
	books_queue.room = ROOM_FIRST;
	hd_semaphore_init(&books_queue.access_protect, 1);
	hd_semaphore_init(&books_queue.read_synch, 0);
	put = books_put;
	next = books_next;
	play(script);
	CHECK_STR(trace_text(), expected);
	CHECK_EQ(books_queue.read, books_queue.write);
	CHECK(!hd_semaphore_is_signaled(&books_queue.read_synch));
}

/* The same script with both, and the same output. */
static void play_both(hd_entry script, const char *expected)
{
	play_heddles(script, expected);
	play_books(script, expected);
}

/* ---- the tests ---- */

static const char digits[] = "0123456789abcdefghijklmnopqrstuvwxyz";

/* First in, first out, however many are in it. */
static void *in_and_out(void *arg)
{
	const char *in = digits, *end = digits + strlen(digits);

	for (int n = 1; in < end; n++) { /* more in than out, then the rest */
		for (int i = 0; i < n && in < end; i++)
			put(in++);
		for (int i = 0; i < n / 2; i++)
			trace("%c", *next());
	}
	while (strlen(trace_text()) < strlen(digits))
		trace("%c", *next());
	return arg;
}

HD_TEST(book_4_5_first_in_first_out)
{
	play_both(in_and_out, digits);
}

static void *read_one(void *name)
{
	trace("%s asks\n", (const char *)name);
	const char *item = next();
	trace("%s got %s\n", (const char *)name, item);
	return NULL;
}

static void *write_one(void *item)
{
	trace("%s comes\n", (const char *)item);
	put(item);
	trace("%s is put\n", (const char *)item);
	return NULL;
}

/* To read from an empty queue blocks, and only an addition ends it. */
static void *empty(void *arg)
{
	struct hd_process_info info;
	hd_pid reader = fork_equal(read_one, "a");

	for (int i = 0; i < 3; i++)
		hd_yield();
	CHECK_EQ(hd_process_info(reader, &info), 0);
	CHECK_EQ(info.state, HD_WAITING);
	CHECK_EQ(info.why, put == heddles_put ? HD_WAIT_NEXT : HD_WAIT_SEMAPHORE);
	write_one((void *)"x");
	return arg;
}

HD_TEST(book_4_5_reading_from_an_empty_queue_blocks)
{
	play_both(empty, "a asks\nx comes\nx is put\na got x\n");
}

/* What is there can be read without waiting. */
static void *filled(void *arg)
{
	write_one((void *)"x");
	write_one((void *)"y");
	read_one((void *)"a");
	read_one((void *)"a");
	return arg;
}

HD_TEST(book_4_5_reading_what_is_there_does_not_block)
{
	play_both(filled, "x comes\nx is put\ny comes\ny is put\na asks\na got x\na asks\na got y\n");
}

/* A reader of higher priority has it before the writer goes on. */
static void *reader_above(void *arg)
{
	fork_at(50, read_one, "high");
	write_one((void *)"x");
	fork_at(30, read_one, "low");
	write_one((void *)"y");
	return arg;
}

HD_TEST(book_4_5_reader_of_higher_priority_runs_at_once)
{
	play_both(reader_above, "high asks\nx comes\nhigh got x\nx is put\ny comes\ny is put\nlow asks\nlow got y\n");
}

/* Readers get the elements in the order in which they asked, whatever their priorities; and the elements are in order. */
static void *readers_in_order(void *arg)
{
	fork_at(45, read_one, "first");
	fork_at(60, read_one, "second");
	fork_at(50, read_one, "third");
	write_one((void *)"x");
	write_one((void *)"y");
	write_one((void *)"z");
	return arg;
}

HD_TEST(book_4_5_two_reads_are_in_order)
{
	play_both(readers_in_order, "first asks\nsecond asks\nthird asks\n"
				    "x comes\nfirst got x\nx is put\n"
				    "y comes\nsecond got y\ny is put\n"
				    "z comes\nthird got z\nz is put\n");
}

/* Writes every third of the digits and gives way each time. */
static void *write_thirds(void *from)
{
	for (int i = 0; i < 12; i++) {
		put((const char *)from + 3 * i);
		hd_yield();
	}
	return NULL;
}

static int times_read[sizeof digits];

/* What one reader gets is in order, too. */
static void read_some(int n)
{
	const char *last = NULL;

	for (int i = 0; i < n; i++) {
		const char *item = next();
		CHECK(last == NULL || last < item);
		last = item;
		times_read[item - digits]++;
		trace("%c", *item);
	}
}

static void *read_all(void *arg)
{
	read_some((int)strlen(digits));
	return arg;
}

static void *read_twelve(void *arg)
{
	read_some(12);
	return arg;
}

/* Writers that take turns: all is read, in the order in which it was put. */
static void *many_to_one(void *arg)
{
	fork_equal(read_all, NULL);
	for (int i = 0; i < 3; i++)
		fork_equal(write_thirds, &digits[i]);
	return arg;
}

static void *readers_come_late(void *arg)
{
	for (int i = 0; i < 3; i++)
		fork_equal(write_thirds, &digits[i]);
	for (int i = 0; i < 3; i++)
		fork_at(30, read_twelve, NULL);
	return arg;
}

HD_TEST(book_4_5_many_writers)
{
	play_both(many_to_one, digits);
	play_both(readers_come_late, digits);
}

/* Several readers at a time: each element is read once. Who was given one does not always run before who found the next, so
 * the trace is in no order. */
static void *many_to_many(void *arg)
{
	memset(times_read, 0, sizeof times_read);
	for (int i = 0; i < 3; i++) {
		fork_equal(write_thirds, &digits[i]);
		fork_equal(read_twelve, NULL);
	}
	return arg;
}

/* At a higher priority: all of it is over when the first call comes back. */
static void *read_once_each(void *arg)
{
	fork_at(41, many_to_many, NULL);
	for (const char *c = digits; *c != 0; c++)
		CHECK_EQ(times_read[c - digits], 1);
	trace_clear();
	return arg;
}

HD_TEST(book_4_5_many_writers_and_many_readers)
{
	play_both(read_once_each, "");
}

/* A reader waits, two elements come, and before the reader can run, the writer reads itself. */
static void *overtaking(void *arg)
{
	fork_equal(read_one, "the other");
	hd_yield();
	put("x");
	put("y");
	read_one((void *)"the writer");
	return arg;
}

/* In the book's queue a waiting reader is promised some element, and picks it when it runs: the writer is first. In
 * heddle's, the element that ends a wait belongs to whoever waited. */
HD_TEST(book_4_5_who_waited_gets_the_element_that_came)
{
	play_heddles(overtaking, "the other asks\nthe writer asks\nthe writer got y\nthe other got x\n");
	play_books(overtaking, "the other asks\nthe writer asks\nthe writer got x\nthe other got y\n");
}

/* A reader that is terminated while it waits takes nothing with it. */
static void *reader_ends(void *arg)
{
	hd_pid reader = fork_equal(read_one, "a");

	fork_equal(read_one, "b");
	hd_yield();
	CHECK_EQ(hd_terminate(reader, HD_FOREVER), 0);
	write_one((void *)"x");
	return arg;
}

HD_TEST(book_4_5_reader_that_ends_takes_nothing)
{
	play_both(reader_ends, "a asks\nb asks\nx comes\nx is put\nb got x\n");
}
