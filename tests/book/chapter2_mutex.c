/* book/chapter2_mutex.c - chapter 2, sections 2.6 to 2.8: critical sections and mutexes. */
#include "rt/capture.h" /* first: it wants _GNU_SOURCE */

#include <errno.h>

#include "book/book.h"

/* ---- what guards a critical section ---- */

static struct hd_semaphore semaphore;
static struct hd_mutex mutex;

/* The mutex that 2.8 builds: a semaphore, and who is inside. */
static struct {
	struct hd_semaphore semaphore;
	hd_pid owner;
} books_mutex;

static int by_semaphore(void (*fn)(void *arg), void *arg)
{
	return hd_semaphore_critical(&semaphore, fn, arg, HD_FOREVER);
}

static int by_mutex(void (*fn)(void *arg), void *arg)
{
	return hd_mutex_critical(&mutex, fn, arg, HD_FOREVER);
}

struct section {
	void (*fn)(void *arg);
	void *arg;
};

static void disown(void *arg)
{
	(void)arg;
	books_mutex.owner = 0;
}

static void owned(void *arg)
{
	const struct section *section = arg;
	struct hd_cleanup ensure;

	books_mutex.owner = hd_self();
	CHECK_EQ(hd_cleanup_push(&ensure, disown, NULL), 0);
	section->fn(section->arg);
	CHECK_EQ(hd_cleanup_pop(&ensure, true), 0);
}

static int by_books_mutex(void (*fn)(void *arg), void *arg)
{
	if (books_mutex.owner == hd_self()) {
		fn(arg);
		return 0;
	}
	return hd_semaphore_critical(&books_mutex.semaphore, owned, &(struct section){ fn, arg }, HD_FOREVER);
}

typedef int (*guard)(void (*fn)(void *arg), void *arg);
static const guard all[] = { by_semaphore, by_mutex, by_books_mutex, NULL };
static const guard mutexes[] = { by_mutex, by_books_mutex, NULL };

static guard guarded;

static void critical(void (*fn)(void *arg), const void *arg)
{
	CHECK_EQ(guarded(fn, (void *)arg), 0);
}

/* All of them ready for mutual exclusion: whoever comes first is not blocked. */
static void prepare(guard by)
{
	semaphore = books_mutex.semaphore = (struct hd_semaphore)HD_SEMAPHORE(1);
	mutex = (struct hd_mutex)HD_MUTEX(0);
	books_mutex.owner = 0;
	guarded = by;
}

/* Nobody is inside. */
static void check_free(void)
{
	CHECK_EQ(hd_semaphore_try_wait(&semaphore), 0);
	CHECK_EQ(hd_semaphore_try_wait(&semaphore), -EAGAIN); /* and no signal was made */
	CHECK_EQ(hd_mutex_try_lock(&mutex), 0);
	CHECK_EQ(hd_mutex_unlock(&mutex), 0);
	CHECK_EQ(books_mutex.owner, 0);
	CHECK_EQ(hd_semaphore_try_wait(&books_mutex.semaphore), 0);
	CHECK_EQ(hd_semaphore_try_wait(&books_mutex.semaphore), -EAGAIN);
}

/* The same script with each, and the same output. */
static void play_with_each(const guard *by, hd_entry script, const char *expected)
{
	for (; *by != NULL; by++) {
		prepare(*by);
		play(script);
		CHECK_STR(trace_text(), expected);
		check_free();
	}
}

/* ---- 2.6: critical sections ---- */

static int recordings;

static void record(void *arg)
{
	int seen = recordings;

	(void)arg;
	hd_yield(); /* give everybody the chance to come in between */
	recordings = seen + 1;
}

static void *records_alone(void *arg)
{
	for (int i = 0; i < 3; i++)
		critical(record, NULL);
	return arg;
}

static void *records(void *arg)
{
	for (int i = 0; i < 3; i++)
		record(NULL);
	return arg;
}

static void *four_record_alone(void *arg)
{
	recordings = 0;
	for (int i = 0; i < 4; i++)
		fork_equal(records_alone, NULL);
	return arg;
}

static void *four_record(void *arg)
{
	recordings = 0;
	for (int i = 0; i < 4; i++)
		fork_equal(records, NULL);
	return arg;
}

/* Nobody comes between a wait and its signal. */
HD_TEST(book_2_6_critical_section_excludes)
{
	for (const guard *by = all; *by != NULL; by++) {
		prepare(*by);
		play(four_record_alone);
		CHECK_EQ(recordings, 12);
	}
}

/* Without a critical section all four do, each time. */
HD_TEST(book_2_6_without_it_recordings_are_lost)
{
	play(four_record);
	CHECK_EQ(recordings, 3);
}

static void says_twice(void *name)
{
	trace("%s in\n", (const char *)name);
	hd_yield();
	trace("%s out\n", (const char *)name);
}

static void *wants_in(void *name)
{
	trace("%s wants in\n", (const char *)name);
	critical(says_twice, name);
	trace("%s ends\n", (const char *)name);
	return NULL;
}

/* Who comes while the section is executed is executed after it; the first passes without having to wait. */
static void *one_after_the_other(void *arg)
{
	fork_equal(wants_in, "a");
	fork_equal(wants_in, "b");
	fork_equal(wants_in, "c");
	return arg;
}

HD_TEST(book_2_6_second_critical_section_runs_when_the_first_has_finished)
{
	play_with_each(all, one_after_the_other,
		       "a wants in\na in\nb wants in\nc wants in\na out\na ends\nb in\nb out\nb ends\nc in\nc out\nc ends\n");
}

/* The memory logger: adding and resetting exclude each other, announcing is done outside. */
static char logged[64];

static void add(void *signal)
{
	char *end = logged + strlen(logged);

	hd_yield();
	strcpy(end, signal);
}

static void reset(void *arg)
{
	(void)arg;
	trace("%s reset\n", logged);
	hd_yield();
	logged[0] = 0;
}

static void *next_put(void *signal)
{
	critical(add, signal);
	trace("%s announced\n", (const char *)signal);
	return NULL;
}

static void *logger_reset(void *arg)
{
	critical(reset, NULL);
	return arg;
}

static void *memory_logger(void *arg)
{
	logged[0] = 0;
	fork_equal(next_put, "one");
	fork_equal(next_put, "two");
	fork_equal(logger_reset, NULL);
	fork_equal(next_put, "three");
	fork_equal(next_put, "four");
	return arg;
}

HD_TEST(book_2_6_memory_logger)
{
	play_with_each(all, memory_logger, "one announced\ntwo announced\nonetwo reset\nthree announced\nfour announced\n");
	CHECK_STR(logged, "threefour");
}

/* ---- 2.7 and 2.8: sections in sections ---- */

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

static hd_pid stuck;

static void outer_for_good(void *s)
{
	trace("outer\n");
	CHECK_EQ(hd_semaphore_critical(s, nested, NULL, HD_FOREVER), 0);
}

static void *deadlocked(void *s)
{
	stuck = hd_self();
	CHECK_EQ(hd_semaphore_critical(s, outer_for_good, s, HD_FOREVER), 0);
	CHECK(!"it went on");
	return NULL;
}

static void *fork_deadlocked(void *s)
{
	CHECK(hd_spawn_with(&(struct hd_spawn){ .name = "nesting", .priority = 30 }, deadlocked, s) > 0);
	return NULL;
}

/* A runtime in which nobody can go on ends, and says who waits, and in which call. */
static void check_deadlock(hd_entry script, const char *name, unsigned signals, const char *expected)
{
	const struct hd_config config = { .workers = 1, .fixed = true };
	struct hd_semaphore s = HD_SEMAPHORE(signals);
	char who[64];

	trace_clear();
	capture_begin();
	int err = hd_run(&config, script, &s);
	const char *text = capture_end();

	CHECK_EQ(err, -EDEADLK);
	CHECK_STR(trace_text(), expected);
	CHECK(says(text, "heddle: deadlock: "));
	snprintf(who, sizeof who, "heddle:   %s #%u of priority ", name, (unsigned)(stuck & 0xffffff));
	CHECK(says(text, who));
	CHECK_EQ(times_said(text, " of priority "), 1);
	CHECK_EQ(times_said(text, " waits in hd_semaphore_wait"), 1);
}

HD_TEST(book_2_7_nested_critical_section_is_a_deadlock)
{
	if (hd_is_haunted())
		SKIP("there is a thread that could wake somebody, as far as heddle knows");
	check_deadlock(deadlocked, "main", 0, "");
	check_deadlock(deadlocked, "main", 1, "outer\n");
	check_deadlock(fork_deadlocked, "nesting", 0, "");
	check_deadlock(fork_deadlocked, "nesting", 1, "outer\n");
}

static void outer_nests(void *arg)
{
	critical(nested, arg);
}

static void *nests(void *arg)
{
	critical(outer_nests, NULL);
	return arg;
}

/* The same with a mutex passes. */
HD_TEST(book_2_8_nested_critical_sections_of_a_mutex_pass)
{
	play_with_each(mutexes, nests, "Nested passes!\n");
}

static void descend(void *depth)
{
	if (*(int *)depth == 100)
		trace("at the bottom\n");
	else
		critical(descend, &(int){ *(int *)depth + 1 });
	hd_yield(); /* on the way up, at each level: nobody else is let in */
}

static void enters(void *name)
{
	trace("%s in\n", (const char *)name);
}

static void *enters_once(void *name)
{
	critical(enters, name);
	return NULL;
}

/* However deep the owner is: the others come in when it has left the outermost section. */
static void *recursion(void *arg)
{
	fork_equal(enters_once, "before");
	hd_yield();
	fork_equal(enters_once, "after");
	critical(descend, &(int){ 1 });
	trace("out again\n");
	return arg;
}

HD_TEST(book_2_8_recursion)
{
	play_with_each(mutexes, recursion, "before in\nat the bottom\nout again\nafter in\n");
}

static void inside_inside(void *arg)
{
	(void)arg;
	CHECK(hd_mutex_is_mine(&mutex));
}

static void *stranger(void *arg)
{
	CHECK(!hd_mutex_is_mine(&mutex));
	CHECK_EQ(hd_mutex_try_lock(&mutex), -EAGAIN);
	CHECK_EQ(hd_mutex_unlock(&mutex), -EPERM);
	trace("not the owner\n");
	return arg;
}

static void inside(void *arg)
{
	(void)arg;
	CHECK(hd_mutex_is_mine(&mutex));
	CHECK_EQ(hd_mutex_critical(&mutex, inside_inside, NULL, HD_FOREVER), 0);
	CHECK(hd_mutex_is_mine(&mutex)); /* the inner section's end was not the end */
	fork_at(50, stranger, NULL);
}

/* A mutex is a semaphore that knows who is inside. */
static void *ownership(void *arg)
{
	CHECK(!hd_mutex_is_mine(&mutex));
	CHECK_EQ(hd_mutex_critical(&mutex, inside, NULL, HD_FOREVER), 0);
	CHECK(!hd_mutex_is_mine(&mutex));
	return arg;
}

HD_TEST(book_2_8_mutex_has_an_owner)
{
	prepare(by_mutex);
	play(ownership);
	CHECK_STR(trace_text(), "not the owner\n");
}

static void with_priority(void *message)
{
	at_priority(message);
}

static void *enters_with_priority(void *name)
{
	critical(with_priority, name);
	return NULL;
}

static void while_four_come(void *arg)
{
	(void)arg;
	fork_at(45, enters_with_priority, "first");
	fork_at(60, enters_with_priority, "second");
	fork_at(50, enters_with_priority, "third");
	fork_equal(enters_with_priority, "fourth");
	hd_yield();
	at_priority("still inside");
}

/* Access is granted in the order of the requests, whatever the priorities. (Who leaves is preempted by the first: that puts
 * it behind its equals, but the fourth is not ready yet.) */
static void *order_of_requests(void *arg)
{
	critical(while_four_come, NULL);
	at_priority("left");
	return arg;
}

HD_TEST(book_2_8_access_is_granted_in_the_order_of_requests)
{
	play_with_each(all, order_of_requests, "@40 still inside\n@45 first\n@60 second\n@50 third\n@40 left\n@40 fourth\n");
}

/* ---- the `ensure:` of 2.8: who ends inside has left ---- */

static void exits(void *arg)
{
	trace("exits\n");
	hd_exit(arg);
}

static void fails(void *arg)
{
	(void)arg;
	trace("fails\n");
	hd_fail(EIO);
}

static void sleeps(void *arg)
{
	(void)arg;
	trace("sleeps\n");
	hd_sleep(HD_SEC(1000));
	trace("woken\n");
}

static void *ends_inside(void *how)
{
	critical(*(void (**)(void *))how, NULL);
	trace("went on\n");
	return NULL;
}

static void *end_inside(void *arg)
{
	static void (*const how[])(void *) = { exits, fails, sleeps };
	hd_pid pids[3];

	for (int i = 0; i < 3; i++)
		pids[i] = fork_equal(ends_inside, &how[i]);
	fork_equal(enters_once, "the next");
	for (int i = 0; i < 5; i++)
		hd_yield(); /* the third is inside now, and the last waits */
	CHECK_EQ(hd_terminate(pids[2], HD_FOREVER), 0);
	return arg;
}

HD_TEST(book_2_8_who_ends_inside_leaves)
{
	play_with_each(all, end_inside, "exits\nfails\nsleeps\nthe next in\n");
}

static void while_waiters_end(void *arg)
{
	hd_pid waiting = fork_at(50, enters_once, "one that is terminated");

	(void)arg;
	fork_at(50, enters_once, "the next");
	CHECK_EQ(hd_terminate(waiting, HD_FOREVER), 0);
	trace("inside all the time\n");
}

/* Who ends waiting was never inside: it frees nothing, and is not let in. */
static void *end_waiting(void *arg)
{
	critical(while_waiters_end, NULL);
	return arg;
}

HD_TEST(book_2_8_who_ends_waiting_was_never_inside)
{
	play_with_each(all, end_waiting, "inside all the time\nthe next in\n");
}
