/* book/chapter2.c - chapter 2: semaphores. */
#include "book/book.h"

#include <errno.h>

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

static int recordings;

static void record(void *arg)
{
	int seen = recordings;

	(void)arg;
	hd_yield(); /* give everybody the chance to come in between */
	recordings = seen + 1;
}

static void *logger(void *mutex)
{
	for (int i = 0; i < 3; i++)
		CHECK_EQ(hd_semaphore_critical(mutex, record, NULL, HD_FOREVER), 0);
	return NULL;
}

/* forMutualExclusion: one signal from the start, and nobody comes between a wait and its signal. */
static void *mutual_exclusion(void *arg)
{
	static struct hd_semaphore mutex = HD_SEMAPHORE(1);

	recordings = 0;
	for (int i = 0; i < 4; i++)
		fork_equal(logger, &mutex);
	return arg;
}

HD_TEST(book_2_6_critical_section_excludes)
{
	play(mutual_exclusion);
	CHECK_EQ(recordings, 12);
}

static void nested(void *arg)
{
	(void)arg;
	trace("Nested passes!\n");
}

static int nested_answer;

static void outer(void *s)
{
	trace("outer\n");
	nested_answer = hd_semaphore_critical(s, nested, NULL, hd_after(HD_MS(1)));
}

/* A critical section of a semaphore cannot be nested. The book's semaphore comes from `Semaphore new`, which holds no signal,
 * so its program stops at the outer section already and shows nothing about nesting. With the semaphore prearmed, as
 * section 2.6 demands, the outer section is entered and the inner one waits for good; a deadline shows where. */
static void *deadlocking(void *arg)
{
	struct hd_semaphore never_prearmed = HD_SEMAPHORE(0), for_mutual_exclusion = HD_SEMAPHORE(1);

	CHECK_EQ(hd_semaphore_critical(&never_prearmed, outer, &never_prearmed, hd_after(HD_MS(1))), -ETIMEDOUT);
	CHECK_STR(trace_text(), "");
	CHECK_EQ(hd_semaphore_critical(&for_mutual_exclusion, outer, &for_mutual_exclusion, HD_FOREVER), 0);
	CHECK_EQ(nested_answer, -ETIMEDOUT);
	CHECK(hd_semaphore_is_signaled(&for_mutual_exclusion));
	return arg;
}

HD_TEST(book_2_7_nested_critical_section_waits_for_good)
{
	play(deadlocking);
	CHECK_STR(trace_text(), "outer\n");
}

static void outer_for_good(void *s)
{
	trace("outer\n");
	hd_semaphore_critical(s, nested, NULL, HD_FOREVER);
}

static void *deadlocked(void *arg)
{
	hd_semaphore_critical(arg, outer_for_good, arg, HD_FOREVER);
	CHECK(!"it went on");
	return NULL;
}

HD_TEST(book_2_7_nested_critical_section_is_a_deadlock)
{
	static struct hd_semaphore never_prearmed = HD_SEMAPHORE(0), for_mutual_exclusion = HD_SEMAPHORE(1);
	const struct hd_config config = { .workers = 1, .fixed = true };

	if (hd_is_haunted())
		SKIP("there is a thread that could wake somebody, as far as heddle knows");
	CHECK_EQ(hd_run(&config, deadlocked, &never_prearmed), -EDEADLK);
	CHECK_STR(trace_text(), "");
	CHECK_EQ(hd_run(&config, deadlocked, &for_mutual_exclusion), -EDEADLK);
	CHECK_STR(trace_text(), "outer\n");
}
