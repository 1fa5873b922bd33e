/* rt/abandoned.c - a process that does not listen when the runtime ends is abandoned after a second, and leaves nothing behind: no record
 * in a queue that others go on using, no block in a list, no memory, no mark in a lock. */
#include <errno.h>
#include <malloc.h>

#include "harness/process.h"
#include "sync/common.h"

static struct hd_semaphore first, second;

static void do_not_listen(void)
{
	CHECK_EQ(hd_set_cancel_state(HD_CANCEL_DISABLED), HD_CANCEL_ENABLED);
}

static void *select_deaf(void *arg)
{
	struct hd_case cases[] = { hd_case_semaphore(&first), hd_case_semaphore(&second) };

	do_not_listen();
	CHECK_EQ(hd_select(cases, 2, HD_FOREVER), 0);
	return arg;
}

static void *wait_deaf(void *arg)
{
	do_not_listen();
	CHECK_EQ(hd_semaphore_wait(&first, HD_FOREVER), 0);
	return arg;
}

static void *select_and_listen(void *arg)
{
	struct hd_case cases[] = { hd_case_semaphore(&first), hd_case_semaphore(&second) };

	CHECK_EQ(hd_select(cases, 2, HD_FOREVER), 0);
	return arg;
}

static void shut_down_over(hd_entry entry)
{
	struct hd_process_info info = { .why = HD_WAIT_NONE };
	hd_pid pid = hd_spawn(entry, NULL);

	do {
		hd_yield();
		CHECK_EQ(hd_process_info(pid, &info), 0);
	} while (info.state != HD_WAITING);
	CHECK_EQ(hd_shutdown(3), 0);
}

static void *leave_a_deaf_selector(void *arg)
{
	shut_down_over(select_deaf);
	return arg;
}

static void *leave_a_deaf_waiter(void *arg)
{
	shut_down_over(wait_deaf);
	return arg;
}

/* It is told to end and made ready, and never has the worker to leave its queues. */
static void *keep_the_worker_to_the_end(void *arg)
{
	shut_down_over(select_and_listen);
	do_not_listen();
	CHECK_EQ(hd_set_priority(hd_self(), 60), 0);
	for (;;)
		hd_checkpoint();
	return arg;
}

/* A semaphore that somebody who is gone has waited for works. */
static void check_semaphores(void)
{
	struct hd_semaphore *semaphores[] = { &first, &second };

	for (int i = 0; i < 2; i++) {
		CHECK(semaphores[i]->waiters.head == NULL);
		CHECK_EQ(hd_semaphore_signal(semaphores[i]), 0);
		CHECK_EQ(hd_semaphore_try_wait(semaphores[i]), 0);
		CHECK_EQ(hd_semaphore_try_wait(semaphores[i]), -EAGAIN);
	}
}

HD_TEST(abandoned_waiter_is_in_no_queue)
{
	CHECK_EQ(run_with_workers(1, leave_a_deaf_waiter, NULL), 3);
	check_semaphores();
}

HD_TEST(abandoned_selector_is_in_no_queue)
{
	CHECK_EQ(run_with_workers(1, leave_a_deaf_selector, NULL), 3);
	check_semaphores();
}

HD_TEST(abandoned_selector_that_never_ran_again_is_in_no_queue)
{
	CHECK_EQ(run_with_workers(1, keep_the_worker_to_the_end, NULL), 3);
	check_semaphores();
}

static void *sleep_deaf(void *arg)
{
	do_not_listen();
	hd_sleep(HD_SEC(1000));
	return arg;
}

static void *own_a_group_of_the_deaf(void *arg)
{
	struct hd_group group = { .owner = 0 };

	for (int i = 0; i < 5; i++) {
		hd_pid pid = hd_group_spawn(&group, sleep_deaf, NULL);
		CHECK(pid > 0 || pid == -ESHUTDOWN); /* it may begin late */
	}
	CHECK_EQ(hd_group_wait(&group, HD_FOREVER), 0);
	return arg;
}

/* So many that their blocks go back to the table while others are still being abandoned. */
static void *leave_a_deaf_crowd(void *arg)
{
	for (int i = 0; i < 200; i++)
		CHECK(hd_spawn_with(&(struct hd_spawn){ .detached = true }, sleep_deaf, NULL) > 0);
	for (int i = 0; i < 20; i++)
		CHECK(hd_spawn(own_a_group_of_the_deaf, NULL) > 0);
	hd_sleep(HD_MS(5));
	CHECK_EQ(hd_shutdown(3), 0);
	return arg;
}

HD_TEST(abandoned_crowd_lets_the_runtime_end)
{
	CHECK_EQ(run_with_workers(1, leave_a_deaf_crowd, NULL), 3);
	CHECK_EQ(run_with_workers(4, leave_a_deaf_crowd, NULL), 3);
}

/* Runs in the turn that its joiner has lent it, to the end of the runtime and beyond. */
static void *keep_the_lent_turn(void *arg)
{
	do_not_listen();
	CHECK_EQ(hd_shutdown(3), 0);
	for (;;)
		hd_checkpoint();
	return arg;
}

static void *join_deaf(void *pid)
{
	do_not_listen();
	CHECK_EQ(hd_join(*(hd_pid *)pid, NULL, HD_FOREVER), 0);
	CHECK(!"a process went on after the runtime had ended");
	return NULL;
}

/* The joiner is younger than the process that it joins, which is therefore abandoned first, while the joiner waits for it. */
static void *lend_a_turn_that_is_kept(void *arg)
{
	hd_pid child = hd_spawn(keep_the_lent_turn, NULL);

	CHECK(child > 0);
	CHECK(hd_spawn_at(50, join_deaf, &child) > 0);
	return arg;
}

/* Its child was abandoned and did not hand the turn back: the joiner is made ready like any waiter, in a run queue, and is
 * abandoned from there. */
HD_TEST(abandoned_joiner_is_ready_in_a_queue_when_its_child_was_abandoned)
{
	CHECK_EQ(run_with_workers(1, lend_a_turn_that_is_kept, NULL), 3);
}

/* ---- hd_promise_all: its record of the call is freed ---- */

#define PROMISES 300

static hd_promise *promise;

static void *await_promises(void *arg)
{
	hd_promise *promises[PROMISES];

	for (int i = 0; i < PROMISES; i++)
		promises[i] = promise;
	CHECK_EQ(hd_promise_all(promises, PROMISES, HD_FOREVER), 0);
	return arg;
}

static void *await_promises_deaf(void *arg)
{
	do_not_listen();
	return await_promises(arg);
}

static void *leave_one_that_awaits_promises(void *arg)
{
	shut_down_over(await_promises_deaf);
	return arg;
}

/* The caller of hd_promise_all is ready when the runtime ends, and never has the worker: `kept`, its promises were kept; else it was told
 * to end. */
static void *leave_one_that_is_ready(void *kept)
{
	hd_pid pid = hd_spawn(kept != NULL ? await_promises_deaf : await_promises, NULL);
	struct hd_process_info info;

	do {
		hd_yield();
		CHECK_EQ(hd_process_info(pid, &info), 0);
	} while (info.state != HD_WAITING);
	do_not_listen();
	CHECK_EQ(hd_set_priority(hd_self(), 60), 0);
	if (kept != NULL)
		CHECK_EQ(hd_promise_set(promise, NULL), 0);
	CHECK_EQ(hd_shutdown(3), 0);
	for (;;)
		hd_checkpoint();
	return NULL;
}

static size_t memory_in_use(void)
{
	struct mallinfo2 info = mallinfo2();

	return info.uordblks + info.hblkhd;
}

static void *return_at_once(void *arg)
{
	return arg;
}

/* The call has more than a hundred bytes for each promise. (Where a sanitizer has malloc, it looks for leaks itself.) */
static void check_that_it_frees_its_memory(hd_entry entry, void *arg)
{
	promise = hd_promise_new();
	CHECK(promise != NULL);
	CHECK_EQ(run_with_workers(1, return_at_once, NULL), 0);
	size_t before = memory_in_use();
	CHECK_EQ(run_with_workers(1, entry, arg), 3);
	CHECK(memory_in_use() < before + 50 * PROMISES);
	hd_promise_release(promise);
}

HD_TEST(abandoned_caller_of_promise_all_frees_its_memory)
{
	check_that_it_frees_its_memory(leave_one_that_awaits_promises, NULL);
}

HD_TEST(abandoned_caller_of_promise_all_that_was_told_to_end_frees_its_memory)
{
	check_that_it_frees_its_memory(leave_one_that_is_ready, NULL);
}

HD_TEST(abandoned_caller_of_promise_all_whose_promises_were_kept_frees_its_memory)
{
	check_that_it_frees_its_memory(leave_one_that_is_ready, &promise);
}

/* ---- a process that was woken to try for a lock, and never has the worker ---- */

static struct hd_mutex mutex;
static struct hd_rwlock rwlock;

static int lock_one(struct hd_rwlock *l)
{
	return l != NULL ? hd_rwlock_write(l, HD_FOREVER) : hd_mutex_lock(&mutex, HD_FOREVER);
}

static void unlock_one(struct hd_rwlock *l)
{
	CHECK_EQ(l != NULL ? hd_rwlock_unlock(l) : hd_mutex_unlock(&mutex), 0);
}

static bool has_waiters(struct hd_rwlock *l, int n)
{
	return queued(l != NULL ? &l->waiters : &mutex.waiters) == n;
}

static void *take_and_give(void *l)
{
	CHECK_EQ(lock_one(l), 0);
	unlock_one(l);
	return NULL;
}

static void *take_and_give_deaf(void *l)
{
	do_not_listen();
	return take_and_give(l);
}

static struct plain_thread *waiting_thread; /* behind the process */

static void *leave_one_that_may_try(void *l)
{
	CHECK_EQ(lock_one(l), 0);
	CHECK(hd_spawn(take_and_give_deaf, l) > 0);
	while (!has_waiters(l, 1))
		hd_yield();
	waiting_thread = start_thread(take_and_give, l);
	while (!has_waiters(l, 2))
		hd_yield();
	do_not_listen();
	CHECK_EQ(hd_set_priority(hd_self(), 60), 0);
	CHECK_EQ(hd_shutdown(3), 0);
	unlock_one(l);
	for (;;)
		hd_checkpoint();
	return NULL;
}

static void *use_it_again(void *l)
{
	CHECK_EQ(lock_one(l), 0);
	hd_pid pid = hd_spawn(take_and_give, l);
	CHECK(pid > 0);
	while (!has_waiters(l, 1))
		hd_yield();
	unlock_one(l);
	CHECK_EQ(hd_join(pid, NULL, HD_FOREVER), 0);
	CHECK_EQ(hd_rwlock_try_read(&rwlock), 0);
	CHECK_EQ(hd_rwlock_unlock(&rwlock), 0);
	return NULL;
}

static void check_that_another_gets_it(struct hd_rwlock *l)
{
	CHECK_EQ(run_with_workers(1, leave_one_that_may_try, l), 3);
	join_thread(waiting_thread);
	CHECK_EQ(run_with_workers(1, use_it_again, l), 0);
}

HD_TEST(abandoned_waiter_that_may_try_leaves_the_mutex_to_others)
{
	check_that_another_gets_it(NULL);
}

HD_TEST(abandoned_writer_that_may_try_leaves_the_rwlock_to_others)
{
	check_that_another_gets_it(&rwlock);
}
