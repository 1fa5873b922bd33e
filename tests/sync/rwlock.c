/* sync/rwlock.c - what a read-write lock promises: many readers or one writer, and who goes first. */
#include "sync/common.h"

static struct hd_rwlock lock;

#define KINDS 6
static const unsigned kinds[KINDS] = { HD_PREFER_NOBODY,
				       HD_PREFER_READERS,
				       HD_PREFER_WRITERS,
				       HD_PREFER_NOBODY | HD_IN_ORDER,
				       HD_PREFER_READERS | HD_IN_ORDER,
				       HD_PREFER_WRITERS | HD_IN_ORDER };

/* ---- answers ---- */

static void check_answers(unsigned how)
{
	struct hd_rwlock l = HD_RWLOCK(how);

	CHECK_EQ(hd_rwlock_unlock(&l), -EPERM);
	CHECK_EQ(hd_rwlock_read(&l, HD_FOREVER), 0);
	CHECK_EQ(hd_rwlock_try_read(&l), 0);
	CHECK_EQ(hd_rwlock_try_write(&l), -EAGAIN);
	CHECK_EQ(hd_rwlock_write(&l, 0), -ETIMEDOUT);
	CHECK_EQ(hd_rwlock_write(&l, hd_now()), -ETIMEDOUT);
	CHECK_EQ(hd_rwlock_write(&l, hd_after(HD_MS(1))), -ETIMEDOUT);
	CHECK_EQ(hd_rwlock_read(&l, 0), 0); /* no writer is left in line */
	for (int i = 0; i < 3; i++)
		CHECK_EQ(hd_rwlock_unlock(&l), 0);
	CHECK_EQ(hd_rwlock_unlock(&l), -EPERM);
	CHECK_EQ(hd_rwlock_write(&l, HD_FOREVER), 0);
	CHECK_EQ(hd_rwlock_write(&l, HD_FOREVER), -EDEADLK);
	CHECK_EQ(hd_rwlock_read(&l, HD_FOREVER), -EDEADLK);
	CHECK_EQ(hd_rwlock_try_read(&l), -EDEADLK);
	CHECK_EQ(hd_rwlock_try_write(&l), -EDEADLK);
	CHECK_EQ(hd_rwlock_unlock(&l), 0);
	CHECK_EQ(hd_rwlock_unlock(&l), -EPERM);
	CHECK_EQ(hd_rwlock_try_write(&l), 0);
	hd_rwlock_init(&l, how);
	CHECK_EQ(hd_rwlock_try_write(&l), 0);
}

HD_TEST(rwlock_answers_on_plain_thread)
{
	for (int i = 0; i < KINDS; i++)
		check_answers(kinds[i]);
}

HD_PROCESS_TEST(rwlock_answers_on_process)
{
	for (int i = 0; i < KINDS; i++)
		check_answers(kinds[i]);
}

HD_TEST(rwlock_zeroed_memory_is_free)
{
	CHECK_EQ(hd_rwlock_unlock(&lock), -EPERM);
	CHECK_EQ(hd_rwlock_try_write(&lock), 0);
	CHECK_EQ(hd_rwlock_unlock(&lock), 0);
}

HD_TEST(rwlock_too_many_readers_are_an_error_and_lose_nothing)
{
	CHECK_EQ(hd_rwlock_read(&lock, HD_FOREVER), 0);
	lock.readers = UINT_MAX;
	CHECK_EQ(hd_rwlock_read(&lock, HD_FOREVER), -EOVERFLOW);
	CHECK_EQ(hd_rwlock_try_read(&lock), -EOVERFLOW);
	CHECK_EQ(hd_rwlock_unlock(&lock), 0);
	CHECK_EQ(hd_rwlock_try_read(&lock), 0);
	CHECK_EQ(lock.readers, UINT_MAX);
}

/* Of a lock that somebody else has for writing. */
static void *be_foreign(void *arg)
{
	CHECK_EQ(hd_rwlock_unlock(&lock), -EPERM);
	CHECK_EQ(hd_rwlock_try_read(&lock), -EAGAIN);
	CHECK_EQ(hd_rwlock_try_write(&lock), -EAGAIN);
	CHECK_EQ(hd_rwlock_read(&lock, hd_after(HD_MS(1))), -ETIMEDOUT);
	CHECK_EQ(hd_rwlock_write(&lock, hd_after(HD_MS(1))), -ETIMEDOUT);
	CHECK_EQ(queued(&lock.waiters), 0);
	return arg;
}

HD_TEST(rwlock_of_a_writer_is_nobody_elses_among_threads)
{
	for (int i = 0; i < KINDS; i++) {
		hd_rwlock_init(&lock, kinds[i]);
		CHECK_EQ(hd_rwlock_write(&lock, HD_FOREVER), 0);
		join_thread(start_thread(be_foreign, NULL));
		CHECK_EQ(hd_rwlock_unlock(&lock), 0);
	}
}

HD_PROCESS_TEST(rwlock_of_a_writer_is_nobody_elses_among_processes)
{
	for (int i = 0; i < KINDS; i++) {
		hd_rwlock_init(&lock, kinds[i]);
		CHECK_EQ(hd_rwlock_write(&lock, HD_FOREVER), 0);
		run_at(40, be_foreign, NULL);
		join_thread(start_thread(be_foreign, NULL));
		CHECK_EQ(hd_rwlock_unlock(&lock), 0);
	}
}

/* ---- who goes first ---- */

struct user {
	const char *word;
	bool writes;
	hd_time until; /* 0: HD_FOREVER */
	int answer;
};

static int use(bool writes, hd_time until)
{
	return writes ? hd_rwlock_write(&lock, until) : hd_rwlock_read(&lock, until);
}

/* Says its word when it has it, and when it gives it back; others may have it in between. */
static void *use_once(void *arg)
{
	struct user *me = arg;

	me->answer = use(me->writes, me->until != 0 ? me->until : HD_FOREVER);
	trace(me->answer == 0 ? "%s " : "%s-not ", me->word);
	if (me->answer == 0) {
		hd_yield();
		trace("/%s ", me->word);
		CHECK_EQ(hd_rwlock_unlock(&lock), 0);
	}
	return NULL;
}

static struct user users[] = { { .word = "r1" }, { .word = "w1", .writes = true }, { .word = "r2" },
			       { .word = "r3" }, { .word = "w2", .writes = true }, { .word = "r4" } };

/* All of them come, in this order, while we have it. */
static const char *serve(unsigned how, bool we_write)
{
	hd_rwlock_init(&lock, how);
	trace_clear();
	CHECK_EQ(use(we_write, HD_FOREVER), 0);
	for (int i = 0; i < 6; i++)
		spawned(hd_spawn_at(50, use_once, &users[i]));
	trace("main ");
	CHECK_EQ(hd_rwlock_unlock(&lock), 0);
	CHECK_EQ(queued(&lock.waiters), 0);
	return trace_text();
}

/* Readers that wait next to each other read together. */
HD_PROCESS_TEST(rwlock_that_prefers_nobody_serves_in_order_of_arrival)
{
	CHECK_STR(serve(HD_PREFER_NOBODY | HD_IN_ORDER, true), "main r1 /r1 w1 /w1 r2 r3 /r2 /r3 w2 /w2 r4 /r4 ");
}

HD_PROCESS_TEST(rwlock_that_prefers_readers_serves_them_all_first)
{
	CHECK_STR(serve(HD_PREFER_READERS | HD_IN_ORDER, true), "main r1 r2 r3 r4 /r1 /r2 /r3 /r4 w1 /w1 w2 /w2 ");
}

HD_PROCESS_TEST(rwlock_that_prefers_writers_serves_them_all_first)
{
	CHECK_STR(serve(HD_PREFER_WRITERS | HD_IN_ORDER, true), "main w1 /w1 w2 /w2 r1 r2 r3 r4 /r1 /r2 /r3 /r4 ");
}

/* We only read: the first reader need not wait, and who comes after a writer must, or need not. (Each gives it back as soon as it
 * was let go on by a yield.) */
HD_PROCESS_TEST(rwlock_reader_waits_for_a_writer_that_came_before)
{
	CHECK_STR(serve(HD_PREFER_NOBODY | HD_IN_ORDER, false), "r1 /r1 main w1 /w1 r2 r3 /r2 /r3 w2 /w2 r4 /r4 ");
}

HD_PROCESS_TEST(rwlock_reader_need_not_wait_for_a_writer_when_readers_are_preferred)
{
	CHECK_STR(serve(HD_PREFER_READERS | HD_IN_ORDER, false), "r1 /r1 r2 /r2 r3 /r3 r4 /r4 main w1 /w1 w2 /w2 ");
}

HD_PROCESS_TEST(rwlock_reader_waits_for_all_writers_when_they_are_preferred)
{
	CHECK_STR(serve(HD_PREFER_WRITERS | HD_IN_ORDER, false), "r1 /r1 main w1 /w1 w2 /w2 r2 r3 r4 /r2 /r3 /r4 ");
}

/* ---- taken freely ---- */

/* A writer and then a reader come to wait for the lock, which we have for writing; they run when we wait. *began is when. */
static void two_wait(hd_pid pids[2], hd_time *began)
{
	static struct user writer = { .word = "w", .writes = true }, reader = { .word = "r" };

	trace_clear();
	CHECK_EQ(hd_rwlock_write(&lock, HD_FOREVER), 0);
	*began = hd_now();
	pids[0] = spawned(hd_spawn_at(30, use_once, &writer));
	await_queued(&lock.waiters, 1);
	pids[1] = spawned(hd_spawn_at(30, use_once, &reader));
	await_queued(&lock.waiters, 2);
}

static void both_end(hd_pid pids[2])
{
	CHECK_EQ(hd_join(pids[0], NULL, HD_FOREVER), 0);
	CHECK_EQ(hd_join(pids[1], NULL, HD_FOREVER), 0);
	CHECK_EQ(queued(&lock.waiters), 0);
	CHECK_EQ(lock.writers_waiting, 0);
	CHECK_EQ(hd_rwlock_try_write(&lock), 0);
	CHECK_EQ(hd_rwlock_unlock(&lock), 0);
}

/* Another writer may take the free lock before the one that was woken; a reader may not. With an order the first waiter has it. */
HD_PROCESS_TEST(rwlock_can_be_had_for_writing_before_the_writer_that_was_woken)
{
	hd_pid pids[2];
	hd_time began;

	for (int i = 0; i < KINDS; i++) {
		hd_rwlock_init(&lock, kinds[i]);
		two_wait(pids, &began);
		CHECK_EQ(hd_rwlock_unlock(&lock), 0);
		int err = hd_rwlock_try_write(&lock);
		if (err == 0) {
			CHECK(!(kinds[i] & HD_IN_ORDER) && kinds[i] != HD_PREFER_READERS);
			await_queued(&lock.waiters, 2); /* it has tried, and waits again */
			CHECK_STR(trace_text(), "");
			CHECK_EQ(hd_rwlock_unlock(&lock), 0);
		} else {
			CHECK_EQ(err, -EAGAIN);
			CHECK(kinds[i] & HD_IN_ORDER || kinds[i] == HD_PREFER_READERS || hd_now() - began >= HD_MS(1));
		}
		if (kinds[i] % HD_IN_ORDER != HD_PREFER_READERS)
			CHECK_EQ(hd_rwlock_try_read(&lock), -EAGAIN);
		both_end(pids);
	}
}

/* The same once the waiters have waited for a millisecond: it is handed over. */
HD_PROCESS_TEST(rwlock_is_handed_to_a_writer_that_has_waited_for_a_millisecond)
{
	hd_pid pids[2];
	hd_time began;

	hd_rwlock_init(&lock, HD_PREFER_NOBODY);
	two_wait(pids, &began);
	CHECK_EQ(hd_sleep(HD_MS(1)), 0);
	CHECK_EQ(hd_rwlock_unlock(&lock), 0);
	CHECK_EQ(hd_rwlock_try_write(&lock), -EAGAIN);
	CHECK_STR(trace_text(), "");
	both_end(pids);
	CHECK_STR(trace_text(), "w /w r /r ");
}

HD_PROCESS_TEST(rwlock_for_readers_is_handed_to_a_writer_that_has_waited_for_a_millisecond)
{
	static struct user writer = { .word = "w", .writes = true };

	hd_rwlock_init(&lock, HD_PREFER_READERS);
	CHECK_EQ(hd_rwlock_read(&lock, HD_FOREVER), 0);
	hd_time began = hd_now();
	hd_pid w = spawned(hd_spawn_at(30, use_once, &writer));
	await_queued(&lock.waiters, 1);
	int err = hd_rwlock_try_read(&lock);
	CHECK(err == 0 || (err == -EAGAIN && hd_now() - began >= HD_MS(1)));
	CHECK_EQ(hd_sleep(HD_MS(1)), 0);
	CHECK_EQ(hd_rwlock_try_read(&lock), -EAGAIN);
	for (int i = 0; i < 1 + (err == 0); i++)
		CHECK_EQ(hd_rwlock_unlock(&lock), 0);
	CHECK_EQ(hd_rwlock_try_read(&lock), -EAGAIN);
	CHECK_EQ(hd_rwlock_try_write(&lock), -EAGAIN);
	CHECK_EQ(hd_join(w, NULL, HD_FOREVER), 0);
	CHECK_EQ(hd_rwlock_try_read(&lock), 0);
}

/* A reader has waited for long, the writer that came later has not: strictly, the writer goes first. */
static const char *serve_a_late_reader(unsigned how)
{
	static struct user writer = { .word = "w", .writes = true }, reader = { .word = "r" };
	hd_pid pids[2];

	trace_clear();
	hd_rwlock_init(&lock, how);
	CHECK_EQ(hd_rwlock_write(&lock, HD_FOREVER), 0);
	pids[0] = spawned(hd_spawn_at(30, use_once, &reader));
	await_queued(&lock.waiters, 1);
	CHECK_EQ(hd_sleep(HD_MS(1)), 0);
	pids[1] = spawned(hd_spawn_at(30, use_once, &writer));
	await_queued(&lock.waiters, 2);
	CHECK_EQ(hd_rwlock_unlock(&lock), 0);
	both_end(pids);
	return trace_text();
}

HD_PROCESS_TEST(rwlock_for_writers_is_handed_to_a_reader_that_has_waited_for_a_millisecond)
{
	CHECK_STR(serve_a_late_reader(HD_PREFER_WRITERS), "r /r w /w ");
	CHECK_STR(serve_a_late_reader(HD_PREFER_WRITERS | HD_IN_ORDER), "w /w r /r ");
}

/* The writer that was woken finds the lock taken, and ends: the reader behind it comes in. */
HD_PROCESS_TEST(rwlock_wake_is_not_lost_with_the_writer_that_was_woken)
{
	hd_pid pids[2];
	hd_time began;

	for (int how = 0; how < 2; how++) {
		hd_rwlock_init(&lock, HD_PREFER_NOBODY);
		two_wait(pids, &began);
		CHECK_EQ(hd_rwlock_unlock(&lock), 0);
		if (hd_rwlock_try_write(&lock) != 0) { /* a millisecond has passed: it was handed over */
			both_end(pids);
			continue;
		}
		CHECK_EQ(how == 0 ? hd_cancel(pids[0]) : hd_terminate(pids[0], HD_FOREVER), 0);
		while (lock.writers_waiting > 0) /* until it has tried, and given up */
			CHECK_EQ(hd_sleep(HD_US(50)), 0);
		CHECK_EQ(hd_rwlock_unlock(&lock), 0);
		both_end(pids);
		CHECK_STR(trace_text(), how == 0 ? "w-not r /r " : "r /r ");
	}
}

/* ---- who leaves the line ---- */

/* A writer waits for us, a reader for it; the writer's wait ends, and the reader comes in. */
static void writer_leaves(unsigned kind, int how)
{
	static struct user writer, reader;

	writer = (struct user){ .word = "w", .writes = true, .until = how == 0 ? hd_after(HD_MS(1)) : 0 };
	reader = (struct user){ .word = "r" };
	hd_rwlock_init(&lock, kind);
	trace_clear();
	CHECK_EQ(hd_rwlock_read(&lock, HD_FOREVER), 0);
	hd_pid w = spawned(hd_spawn_at(50, use_once, &writer)), r = spawned(hd_spawn_at(50, use_once, &reader));
	if (how == 1)
		CHECK_EQ(hd_cancel(w), 0);
	else if (how == 2)
		CHECK_EQ(hd_terminate(w, HD_FOREVER), 0);
	CHECK_EQ(hd_join(r, NULL, HD_FOREVER), 0);
	CHECK_EQ(hd_join(w, NULL, HD_FOREVER), 0);
	CHECK_EQ(writer.answer, how == 0 ? -ETIMEDOUT : how == 1 ? -ECANCELED : 0);
	CHECK(strstr(trace_text(), "r /r ") != NULL || strstr(trace_text(), "r w-not /r ") != NULL);
	CHECK_EQ(hd_rwlock_try_read(&lock), 0);
	CHECK_EQ(hd_rwlock_unlock(&lock), 0);
	CHECK_EQ(hd_rwlock_unlock(&lock), 0);
	CHECK_EQ(hd_rwlock_try_write(&lock), 0);
	CHECK_EQ(lock.writers_waiting, 0);
}

HD_PROCESS_TEST(rwlock_writer_that_times_out_lets_in_those_behind_it)
{
	for (int i = 0; i < KINDS; i++)
		writer_leaves(kinds[i], 0);
}

HD_PROCESS_TEST(rwlock_writer_that_is_cancelled_lets_in_those_behind_it)
{
	for (int i = 0; i < KINDS; i++)
		writer_leaves(kinds[i], 1);
}

HD_PROCESS_TEST(rwlock_writer_that_is_terminated_lets_in_those_behind_it)
{
	for (int i = 0; i < KINDS; i++)
		writer_leaves(kinds[i], 2);
}

static int over;

static void *write_in_vain(void *arg)
{
	CHECK_EQ(hd_rwlock_write(&lock, hd_after(HD_MS(5))), -ETIMEDOUT);
	set_flag(&over, 1);
	return arg;
}

HD_PROCESS_TEST(rwlock_thread_that_times_out_lets_in_those_behind_it)
{
	static struct user reader = { .word = "r" };

	CHECK_EQ(hd_rwlock_read(&lock, HD_FOREVER), 0);
	struct plain_thread *thread = start_thread(write_in_vain, NULL);
	while (queued(&lock.waiters) == 0 && !read_flag(&over))
		hd_sleep(HD_US(50));
	hd_pid r = spawned(hd_spawn_at(50, use_once, &reader));
	CHECK_EQ(hd_join(r, NULL, HD_FOREVER), 0);
	join_thread(thread);
	CHECK_STR(trace_text(), "r /r ");
}

HD_PROCESS_TEST(rwlock_reader_that_leaves_the_line_is_skipped)
{
	struct user brief = { .word = "brief" }, writer = { .word = "w", .writes = true };

	CHECK_EQ(hd_rwlock_write(&lock, HD_FOREVER), 0);
	hd_pid pid = spawned(hd_spawn_at(50, use_once, &brief));
	spawned(hd_spawn_at(50, use_once, &writer));
	CHECK_EQ(hd_cancel(pid), 0);
	CHECK_EQ(brief.answer, -ECANCELED);
	CHECK_EQ(hd_rwlock_unlock(&lock), 0);
	CHECK_STR(trace_text(), "brief-not w /w ");
}

/* Every wait is a cancellation point, also one that would not have waited. */
HD_PROCESS_TEST(rwlock_of_who_is_cancelled_is_not_taken)
{
	CHECK_EQ(hd_cancel(hd_self()), 0);
	CHECK_EQ(hd_rwlock_read(&lock, HD_FOREVER), -ECANCELED);
	CHECK_EQ(hd_rwlock_write(&lock, HD_FOREVER), -ECANCELED);
	CHECK_EQ(hd_rwlock_try_write(&lock), 0); /* to try is none */
	CHECK_EQ(hd_rwlock_unlock(&lock), 0);
	CHECK_EQ(hd_cancel_clear(), 1);
	CHECK_EQ(hd_rwlock_unlock(&lock), -EPERM);
}

/* A writer that may try for a free lock and is suspended keeps no other out: neither if it was suspended while it waited, */
HD_PROCESS_TEST(rwlock_of_a_suspended_writer_goes_to_the_next_waiters)
{
	CHECK_EQ(hd_rwlock_write(&lock, HD_FOREVER), 0);
	hd_pid w = spawned(hd_spawn_at(50, use_once, &users[1]));
	spawned(hd_spawn_at(50, use_once, &users[2]));
	CHECK_EQ(hd_suspend(w, HD_FOREVER), 0);
	CHECK_EQ(hd_rwlock_unlock(&lock), 0);
	CHECK_STR(trace_text(), "r2 /r2 ");
	CHECK_EQ(hd_rwlock_try_read(&lock), 0);
	CHECK_EQ(hd_resume(w), 0);
	CHECK_EQ(hd_rwlock_try_read(&lock), -EAGAIN); /* it waits again, and readers wait for it */
	CHECK_EQ(hd_rwlock_unlock(&lock), 0);
	CHECK_STR(trace_text(), "r2 /r2 w1 /w1 ");
}

/* nor if it was woken and is suspended before it runs. Returns whether it was woken to try: when a millisecond has passed it has the
 * lock. */
static bool suspend_the_woken_writer(unsigned how, struct user *next)
{
	hd_rwlock_init(&lock, how);
	CHECK_EQ(hd_rwlock_write(&lock, HD_FOREVER), 0);
	hd_pid woken = spawned(hd_spawn_at(30, use_once, &users[1]));
	await_queued(&lock.waiters, 1);
	hd_pid other = spawned(hd_spawn_at(30, use_once, next));
	await_queued(&lock.waiters, 2);
	CHECK_EQ(hd_rwlock_unlock(&lock), 0);
	bool may_try = lock.writer == 0;
	if (may_try) {
		CHECK_EQ(hd_suspend(woken, 0), 0);
		CHECK_EQ(hd_join(other, NULL, HD_FOREVER), 0);
		CHECK_EQ(hd_rwlock_try_read(&lock), 0);
		CHECK_EQ(hd_rwlock_unlock(&lock), 0);
		CHECK_EQ(hd_resume(woken), 0);
	} else {
		CHECK_EQ(hd_join(other, NULL, HD_FOREVER), 0);
	}
	CHECK_EQ(hd_join(woken, NULL, HD_FOREVER), 0);
	CHECK_EQ(hd_rwlock_try_write(&lock), 0);
	CHECK_EQ(hd_rwlock_unlock(&lock), 0);
	return may_try;
}

HD_PROCESS_TEST(rwlock_goes_to_the_next_waiters_if_the_woken_writer_is_suspended)
{
	static const unsigned hows[] = { HD_PREFER_NOBODY, HD_PREFER_WRITERS };

	for (int i = 0; i < 2; i++) {
		while (!suspend_the_woken_writer(hows[i], &users[2]))
			;
		while (!suspend_the_woken_writer(hows[i], &users[4]))
			;
	}
}

/* One that has waited for a millisecond is handed the lock, unless it is suspended. */
HD_PROCESS_TEST(rwlock_of_a_late_suspended_writer_goes_to_the_next_waiters)
{
	CHECK_EQ(hd_rwlock_write(&lock, HD_FOREVER), 0);
	hd_pid w = spawned(hd_spawn_at(50, use_once, &users[1]));
	spawned(hd_spawn_at(50, use_once, &users[2]));
	CHECK_EQ(hd_suspend(w, HD_FOREVER), 0);
	CHECK_EQ(hd_sleep(HD_MS(2)), 0);
	CHECK_EQ(hd_rwlock_unlock(&lock), 0);
	CHECK_STR(trace_text(), "r2 /r2 ");
	CHECK_EQ(hd_resume(w), 0);
	CHECK_STR(trace_text(), "r2 /r2 w1 /w1 ");
}

HD_PROCESS_TEST(rwlock_granted_to_a_suspended_waiter_is_kept_for_it)
{
	hd_rwlock_init(&lock, HD_IN_ORDER);
	CHECK_EQ(hd_rwlock_write(&lock, HD_FOREVER), 0);
	hd_pid w = spawned(hd_spawn_at(50, use_once, &users[1]));
	CHECK_EQ(info_on(w).why, HD_WAIT_WRITE);
	CHECK_EQ(info_on(w).holder, hd_self());
	hd_pid r = spawned(hd_spawn_at(50, use_once, &users[2]));
	CHECK_EQ(info_on(r).why, HD_WAIT_READ);
	CHECK_EQ(hd_suspend(w, HD_FOREVER), 0);
	CHECK_EQ(hd_rwlock_unlock(&lock), 0);
	CHECK_EQ(hd_rwlock_try_read(&lock), -EAGAIN);
	CHECK_STR(trace_text(), "");
	CHECK_EQ(hd_resume(w), 0);
	CHECK_STR(trace_text(), "w1 /w1 r2 /r2 ");
}

static void *write_once(void *word)
{
	errno = 5;
	CHECK_EQ(hd_rwlock_write(&lock, HD_FOREVER), 0);
	trace("%s ", (const char *)word);
	CHECK_EQ(hd_rwlock_unlock(&lock), 0);
	CHECK_EQ(errno, 5);
	return NULL;
}

HD_PROCESS_TEST(rwlock_passes_between_threads_and_processes)
{
	CHECK_EQ(hd_rwlock_read(&lock, HD_FOREVER), 0);
	struct plain_thread *thread = start_thread(write_once, (void *)"thread");
	await_queued(&lock.waiters, 1);
	hd_pid pid = spawned(hd_spawn(write_once, (void *)"process"));
	await_queued(&lock.waiters, 2);
	CHECK_EQ(hd_rwlock_unlock(&lock), 0);
	CHECK_EQ(hd_join(pid, NULL, HD_FOREVER), 0);
	join_thread(thread);
	CHECK_STR(trace_text(), "thread process ");
}

/* ---- one writer or many readers ---- */

#define ACTORS 10

static long writing, reading, written, write_count; /* writing, written: guarded by the lock alone */
static int each;

static void be_in(bool writes, unsigned *seed)
{
	if (writes) {
		CHECK_EQ(++writing, 1);
		CHECK_EQ(value_of(&reading), 0);
		written++;
	} else {
		add(&reading, 1);
		CHECK_EQ(writing, 0);
	}
	if (next_random(seed) % 8 == 0 && hd_self() != 0)
		hd_yield();
	if (writes) {
		CHECK_EQ(value_of(&reading), 0);
		CHECK_EQ(writing--, 1);
		add(&write_count, 1);
	} else {
		CHECK_EQ(writing, 0);
		add(&reading, -1);
	}
}

static void *use_often(void *arg)
{
	unsigned seed = (unsigned)(long)arg;

	for (int i = 0; i < each; i++) {
		bool writes = next_random(&seed) % 3 == 0;
		int err;
		switch (next_random(&seed) % 4) {
		case 0:
			err = writes ? hd_rwlock_try_write(&lock) : hd_rwlock_try_read(&lock);
			CHECK(err == 0 || err == -EAGAIN);
			break;
		case 1:
			err = use(writes, hd_after(next_random(&seed) % 20000));
			CHECK(err == 0 || err == -ETIMEDOUT || err == -ECANCELED);
			break;
		default:
			err = use(writes, HD_FOREVER);
			CHECK(err == 0 || err == -ECANCELED);
		}
		if (err == -ECANCELED)
			CHECK_EQ(hd_cancel_clear(), 1);
		if (err != 0)
			continue;
		be_in(writes, &seed);
		CHECK_EQ(hd_rwlock_unlock(&lock), 0);
	}
	return NULL;
}

static void use_all(unsigned how, int n)
{
	hd_pid pids[ACTORS];
	struct plain_thread *threads[2];
	unsigned seed = 7;

	hd_rwlock_init(&lock, how);
	writing = reading = written = write_count = 0;
	each = n / ACTORS + 1;
	for (long i = 0; i < ACTORS; i++)
		pids[i] = spawned(hd_spawn_with(&(struct hd_spawn){ .pinned = i % 2 == 0 }, use_often, (void *)(i + 1)));
	for (long i = 0; i < 2; i++)
		threads[i] = start_thread(use_often, (void *)(i + 50));
	for (int i = 0; i < each / 4; i++) {
		int err = hd_cancel(pids[next_random(&seed) % ACTORS]);
		CHECK(err == 0 || err == -ESRCH);
		hd_sleep(HD_US(next_random(&seed) % 10));
	}
	for (int i = 0; i < ACTORS; i++)
		CHECK_EQ(hd_join(pids[i], NULL, HD_FOREVER), 0);
	for (int i = 0; i < 2; i++)
		join_thread(threads[i]);
	CHECK_EQ(written, write_count);
	CHECK_EQ(queued(&lock.waiters), 0);
	CHECK_EQ(lock.writers_waiting, 0);
	CHECK_EQ(hd_rwlock_try_write(&lock), 0);
}

HD_WORKERS_TEST(rwlock_has_one_writer_or_many_readers)
{
	for (int i = 0; i < KINDS; i++)
		use_all(kinds[i], hd_scaled(6000));
	(void)workers;
}

HD_WORKERS_STRESS(rwlock_has_one_writer_or_many_readers_for_long)
{
	for (int i = 0; i < KINDS; i++)
		use_all(kinds[i], hd_scaled(500000));
	(void)workers;
}
