/* book/chapter4.c - chapter 4, section 4.6: rendez-vous. What may come out of it on several workers: outcomes.c. */
#include "book/book.h"

#include <stdio.h>
#include <string.h>

static struct hd_semaphore reading_is_done;
static const char file[] = "Pharo is cool\nand this is the second line\n"; /* in place of the book's file */
static char line[64];

static void *read_line(void *arg)
{
	trace("Reading line\n");
	memcpy(line, file, strcspn(file, "\n"));
	CHECK_EQ(hd_semaphore_signal(&reading_is_done), 0);
	return arg;
}

static void *display_line(void *arg)
{
	CHECK_EQ(hd_semaphore_wait(&reading_is_done, HD_FOREVER), 0);
	trace("Displaying line\n%s\n", line);
	return arg;
}

static void prepare(void)
{
	reading_is_done = (struct hd_semaphore)HD_SEMAPHORE(0);
	memset(line, 0, sizeof line);
}

/* The semaphore puts reading before displaying, */
static void *reader_first(void *arg)
{
	prepare();
	fork_equal(read_line, NULL);
	fork_equal(display_line, NULL);
	return arg;
}

/* whoever comes first. */
static void *displayer_first(void *arg)
{
	prepare();
	fork_equal(display_line, NULL);
	fork_equal(read_line, NULL);
	return arg;
}

HD_TEST(book_4_6_reading_comes_before_displaying)
{
	static const char expected[] = "Reading line\nDisplaying line\nPharo is cool\n";

	play(reader_first);
	CHECK_STR(trace_text(), expected);
	play(displayer_first);
	CHECK_STR(trace_text(), expected);
}

/* ---- two prisoners at a barrier ---- */

#define RUN(who) who " running to the barrier\n"
#define JUMP(who) who " jumping over the barrier\n"

static const char *const forbidden[] = {
	RUN("a") JUMP("a") RUN("b") JUMP("b"),
	RUN("b") JUMP("b") RUN("a") JUMP("a"),
};
static const char *const permitted[] = {
	RUN("a") RUN("b") JUMP("b") JUMP("a"),
	RUN("a") RUN("b") JUMP("a") JUMP("b"),
	RUN("b") RUN("a") JUMP("b") JUMP("a"),
	RUN("b") RUN("a") JUMP("a") JUMP("b"),
};

struct prisoner {
	const char *name;
	struct hd_semaphore *mine, *other;
};
static struct hd_semaphore a_at_barrier, b_at_barrier;
static struct prisoner prisoners[] = {
	{ "a", &a_at_barrier, &b_at_barrier },
	{ "b", &b_at_barrier, &a_at_barrier },
};

static void *escape_alone(void *arg)
{
	const struct prisoner *me = arg;

	trace(RUN("%s"), me->name);
	trace(JUMP("%s"), me->name);
	return NULL;
}

static void *escape_together(void *arg)
{
	const struct prisoner *me = arg;

	trace(RUN("%s"), me->name);
	CHECK_EQ(hd_semaphore_signal(me->mine), 0);
	CHECK_EQ(hd_semaphore_wait(me->other, HD_FOREVER), 0);
	trace(JUMP("%s"), me->name);
	return NULL;
}

static struct hd_barrier both;
static int came_last;

/* The same with the barrier that heddle has. */
static void *escape_by_barrier(void *arg)
{
	const struct prisoner *me = arg;

	trace(RUN("%s"), me->name);
	int last = hd_barrier_wait(&both, HD_FOREVER);
	CHECK(last == 0 || last == 1);
	came_last += last;
	trace(JUMP("%s"), me->name);
	return NULL;
}

/* One of the cases that the book's `shuffled` may give, and more: who starts first, and at which priorities. */
static struct escape {
	hd_entry entry;
	int first;
	int priority[2];
} escape;

static void *set_out(void *arg)
{
	a_at_barrier = b_at_barrier = (struct hd_semaphore)HD_SEMAPHORE(0);
	both = (struct hd_barrier)HD_BARRIER(2);
	came_last = 0;
	for (int i = 0; i < 2; i++) {
		int who = i == 0 ? escape.first : 1 - escape.first;
		fork_at(escape.priority[who], escape.entry, &prisoners[who]);
	}
	return arg;
}

/* Without synchronisation whoever starts first is over the barrier before the other has reached it. */
HD_TEST(book_4_6_without_rendezvous_the_output_is_not_permitted)
{
	for (int first = 0; first < 2; first++) {
		escape = (struct escape){ escape_alone, first, { 40, 40 } };
		play(set_out);
		CHECK_STR(trace_text(), forbidden[first]);
	}
}

/* Who is first at the barrier, and who is first over it. If the script starts them (at 40) and goes on, the higher priority
 * is the first to run; if both are higher than the script, the one that is started first. The second to arrive finds the
 * first waiting and lets it go: a lower or equal one does not get the processor for that, so the second jumps first; a
 * higher one does. */
static const char *expected_escape(void)
{
	int a = escape.priority[0], b = escape.priority[1];
	int runs_first = a == b || (a > 40 && b > 40) ? escape.first : a < b;
	int jumps_first = a == b ? 1 - runs_first : a < b;

	return permitted[runs_first == 0 ? (jumps_first == 0 ? 1 : 0) : (jumps_first == 0 ? 3 : 2)];
}

static void check_escapes(hd_entry entry)
{
	static const int priorities[][2] = { { 40, 40 }, { 30, 30 }, { 30, 31 }, { 31, 30 }, { 50, 30 }, { 30, 50 },
					     { 40, 41 }, { 41, 40 }, { 50, 50 }, { 50, 51 }, { 51, 50 } };

	for (unsigned i = 0; i < sizeof priorities / sizeof priorities[0]; i++)
		for (int first = 0; first < 2; first++)
			for (int preempted = HD_PREEMPTED_TAIL; preempted <= HD_PREEMPTED_HEAD; preempted++) {
				escape = (struct escape){ entry, first, { priorities[i][0], priorities[i][1] } };
				play_with((enum hd_preempted)preempted, set_out);
				CHECK_STR(trace_text(), expected_escape());
				CHECK_EQ(came_last, entry == escape_by_barrier);
			}
}

/* With two semaphores nobody jumps before both are there, whoever starts first and whoever has the higher priority. */
HD_TEST(book_4_6_rendezvous_with_two_semaphores)
{
	check_escapes(escape_together);
}

/* Nor with a barrier for two. */
HD_TEST(book_4_6_rendezvous_at_a_barrier)
{
	check_escapes(escape_by_barrier);
}

/* The exact ones for equals: the second to arrive finds the first waiting, signals it and, not being preempted by an equal,
 * jumps before it. */
HD_TEST(book_4_6_rendezvous_of_equals)
{
	static const hd_entry ways[] = { escape_together, escape_by_barrier };

	for (int i = 0; i < 2; i++) {
		escape = (struct escape){ ways[i], 0, { 40, 40 } };
		play(set_out);
		CHECK_STR(trace_text(), permitted[0]);
		escape.first = 1;
		play(set_out);
		CHECK_STR(trace_text(), permitted[3]);
	}
}

/* ---- many, again and again ---- */

enum { CROWD = 5, ROUNDS = 3 };

static struct hd_barrier barrier;

static void *go_round(void *name)
{
	for (int i = 0; i < ROUNDS; i++) {
		trace("%s", (const char *)name);
		CHECK_EQ(hd_barrier_wait(&barrier, HD_FOREVER), *(const char *)name == "edc"[i]);
		trace("%c", *(const char *)name - 'a' + 'A');
	}
	return NULL;
}

/* Small letters arrive, capitals leave. The last to arrive goes on at once, up to the barrier of the next round; those that
 * it let go are in the order in which they came. */
static void *five_meet_three_times(void *arg)
{
	static const char *const names[CROWD] = { "a", "b", "c", "d", "e" };

	barrier = (struct hd_barrier)HD_BARRIER(CROWD);
	for (int i = 0; i < CROWD; i++)
		fork_equal(go_round, names[i]);
	return arg;
}

HD_TEST(book_4_6_many_meet_again_and_again)
{
	play(five_meet_three_times);
	CHECK_STR(trace_text(), "abcde"
				"EeAaBbCcDd"
				"DdEeAaBbCc"
				"CDEAB");
}
