/* book/chapter2.c - chapter 2, sections 2.1 to 2.5, and 2.9: semaphores. */
#include "book/book.h"

static void wait_for(struct hd_semaphore *s)
{
	CHECK_EQ(hd_semaphore_wait(s, HD_FOREVER), 0);
}

static void signal_to(struct hd_semaphore *s)
{
	CHECK_EQ(hd_semaphore_signal(s), 0);
}

static struct hd_semaphore semaphore;

static void *job(void *arg)
{
	const char *name = arg;

	trace("%s started\n", name);
	wait_for(&semaphore);
	trace("%s finished\n", name);
	return NULL;
}

/* Two jobs wait; each signal, given from the inspector in the book, lets the one finish that waits longest; without a second
 * signal the other waits for good. */
static void *two_jobs(void *arg)
{
	struct hd_process_info info;

	semaphore = (struct hd_semaphore)HD_SEMAPHORE(0);
	fork_equal(job, "Job1");
	hd_pid second = fork_equal(job, "Job2");
	hd_yield();
	CHECK_STR(trace_text(), "Job1 started\nJob2 started\n");

	signal_to(&semaphore);
	hd_yield();
	CHECK_STR(trace_text(), "Job1 started\nJob2 started\nJob1 finished\n");
	hd_yield();
	CHECK_EQ(hd_process_info(second, &info), 0);
	CHECK_EQ(info.state, HD_WAITING);
	CHECK_EQ(info.why, HD_WAIT_SEMAPHORE);

	signal_to(&semaphore);
	return arg;
}

HD_TEST(book_2_2_two_jobs_wait_on_a_semaphore)
{
	play(two_jobs);
	CHECK_STR(trace_text(), "Job1 started\nJob2 started\nJob1 finished\nJob2 finished\n");
}

static void *pharo(void *arg)
{
	trace(" Pharo ");
	return arg;
}

static void *is_super(void *arg)
{
	trace(" is ");
	wait_for(&semaphore);
	trace(" super ");
	signal_to(&semaphore);
	trace(" p2 finished ");
	return arg;
}

static void *really_cool(void *arg)
{
	trace(" really ");
	signal_to(&semaphore);
	trace(" cool ");
	wait_for(&semaphore);
	trace(" and powerful! ");
	return arg;
}

/* A signal lets a waiter of higher priority run at once; a signal for which nobody waits is kept. The book prints the words
 * on two lines; its code has two spaces between them, and no line end. */
static void *interplay(void *arg)
{
	semaphore = (struct hd_semaphore)HD_SEMAPHORE(0);
	fork_at(30, pharo, NULL);
	fork_at(35, is_super, NULL);
	fork_at(33, really_cool, NULL);
	return arg;
}

HD_TEST(book_2_3_wait_and_signal_interplay)
{
	play(interplay);
	CHECK_STR(trace_text(), " is  really  super  p2 finished  cool  and powerful!  Pharo ");
}

static void *waits(void *arg)
{
	at_priority("Process 1a waits for signal on semaphore");
	wait_for(&semaphore);
	at_priority("Process 1b received signal and terminates");
	return arg;
}

static void *signals(void *arg)
{
	at_priority("Process 2a up to signalling semaphore");
	signal_to(&semaphore);
	at_priority("Process 2b continues and terminates");
	return arg;
}

/* The signaller has the higher priority: it ends first, and the signal is kept for the waiter. */
static void *signal_from_above(void *arg)
{
	semaphore = (struct hd_semaphore)HD_SEMAPHORE(0);
	fork_at(20, waits, NULL);
	fork_at(30, signals, NULL);
	return arg;
}

HD_TEST(book_2_4_signal_from_a_higher_priority)
{
	play(signal_from_above);
	CHECK_STR(trace_text(), "@30 Process 2a up to signalling semaphore\n"
				"@30 Process 2b continues and terminates\n"
				"@20 Process 1a waits for signal on semaphore\n"
				"@20 Process 1b received signal and terminates\n");
}

/* The waiter has the higher priority: the signal preempts the signaller. */
static void *signal_from_below(void *arg)
{
	semaphore = (struct hd_semaphore)HD_SEMAPHORE(0);
	fork_at(30, waits, NULL);
	fork_at(20, signals, NULL);
	return arg;
}

HD_TEST(book_2_4_signal_to_a_higher_priority)
{
	play(signal_from_below);
	CHECK_STR(trace_text(), "@30 Process 1a waits for signal on semaphore\n"
				"@20 Process 2a up to signalling semaphore\n"
				"@30 Process 1b received signal and terminates\n"
				"@20 Process 2b continues and terminates\n");
}

/* Prearmed by a signal that came before anybody waited: the waiter goes straight through. */
static void *prearmed(void *arg)
{
	semaphore = (struct hd_semaphore)HD_SEMAPHORE(0);
	signal_to(&semaphore);
	fork_at(30, waits, NULL);
	fork_at(20, signals, NULL);
	return arg;
}

HD_TEST(book_2_5_prearmed_semaphore)
{
	play(prearmed);
	CHECK_STR(trace_text(), "@30 Process 1a waits for signal on semaphore\n"
				"@30 Process 1b received signal and terminates\n"
				"@20 Process 2a up to signalling semaphore\n"
				"@20 Process 2b continues and terminates\n");
}

HD_TEST(book_2_5_is_signaled)
{
	struct hd_semaphore s = HD_SEMAPHORE(0);

	CHECK(!hd_semaphore_is_signaled(&s));
	signal_to(&s);
	CHECK(hd_semaphore_is_signaled(&s));
}

/* 2.5 warns that without a signal in advance everybody may wait for good. Its trace needs the signal that its first line
 * gives; the same program without it is 2.4's, where the waiter has to wait. */
HD_TEST(book_2_5_without_the_signal_it_is_2_4)
{
	play(signal_from_below);
	CHECK(!hd_semaphore_is_signaled(&semaphore));
	play(prearmed);
	CHECK(hd_semaphore_is_signaled(&semaphore)); /* two signals, one wait */
}

static void *takes_one(void *arg)
{
	wait_for(&semaphore);
	at_priority(arg);
	return NULL;
}

/* The list of a semaphore is first in, first out, whatever the priorities; signals are counted when nobody is in it. */
static void *first_in_first_out(void *arg)
{
	semaphore = (struct hd_semaphore)HD_SEMAPHORE(0);
	fork_at(45, takes_one, "first");
	fork_at(60, takes_one, "second");
	fork_at(50, takes_one, "third");
	for (int i = 0; i < 5; i++) {
		signal_to(&semaphore);
		trace("%d signals given\n", i + 1);
	}
	for (int i = 0; i < 2; i++)
		CHECK_EQ(hd_semaphore_try_wait(&semaphore), 0);
	CHECK(!hd_semaphore_is_signaled(&semaphore));
	return arg;
}

HD_TEST(book_2_9_waiting_list_is_first_in_first_out)
{
	play(first_in_first_out);
	CHECK_STR(trace_text(), "@45 first\n1 signals given\n"
				"@60 second\n2 signals given\n"
				"@50 third\n3 signals given\n"
				"4 signals given\n5 signals given\n");
}
