/* book/chapter4.c - chapter 4: semaphores at work. */
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

/* One of the cases that the book's `shuffled` may give, and more: who starts first, and at which priorities. */
static struct escape {
	hd_entry entry;
	int first;
	int priority[2];
} escape;

static void *set_out(void *arg)
{
	a_at_barrier = b_at_barrier = (struct hd_semaphore)HD_SEMAPHORE(0);
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

/* With two semaphores nobody jumps before both are there, whoever starts first and whoever has the higher priority. */
HD_TEST(book_4_6_rendezvous_with_two_semaphores)
{
	static const int priorities[][2] = { { 40, 40 }, { 30, 30 }, { 30, 31 }, { 31, 30 },
					     { 50, 30 }, { 30, 50 }, { 50, 51 }, { 51, 50 } };

	for (unsigned i = 0; i < sizeof priorities / sizeof priorities[0]; i++)
		for (int first = 0; first < 2; first++)
			for (int preempted = HD_PREEMPTED_TAIL; preempted <= HD_PREEMPTED_HEAD; preempted++) {
				bool is_permitted = false;

				escape = (struct escape){ escape_together, first, { priorities[i][0], priorities[i][1] } };
				play_with((enum hd_preempted)preempted, set_out);
				for (int k = 0; k < 4; k++)
					is_permitted |= strcmp(trace_text(), permitted[k]) == 0;
				if (!is_permitted)
					fprintf(stderr, "%s", trace_text());
				CHECK(is_permitted);
			}
}

/* The exact ones for equals: the second to arrive finds the first waiting, signals it and, not being preempted by an equal,
 * jumps before it. */
HD_TEST(book_4_6_rendezvous_of_equals)
{
	escape = (struct escape){ escape_together, 0, { 40, 40 } };
	play(set_out);
	CHECK_STR(trace_text(), permitted[0]);
	escape.first = 1;
	play(set_out);
	CHECK_STR(trace_text(), permitted[3]);
}
