/* wait/assertions.c - each assertion of the wait room, tripped. They stay on in release builds: this shows that they do. */
#include <errno.h>

#include "wait/wait.h"

#include "harness/process.h"
#include "wait/threads.h"

static struct hd_waitq queue;

/* As HD_PROCESS_TEST, for a body that must not survive. */
#define PROCESS_TEST_DIES(name, words)                                                                                         \
	static void *name##_main(void *arg);                                                                                   \
	HD_TEST_DIES(name, words)                                                                                              \
	{                                                                                                                      \
		CHECK_EQ(hd_run(&(struct hd_config){ .fixed = true, .workers = 1 }, name##_main, NULL), 0);                    \
	}                                                                                                                      \
	static void *name##_main(void *arg)

static void *wait_in_queue(void *until)
{
	struct hd_worker *w = hd__self();

	hd__waitq_lock(&queue);
	hd__park(w, &queue, until != NULL ? *(hd_time *)until : HD_FOREVER, HD_WAIT_SEMAPHORE);
	return NULL;
}

HD_TEST_DIES(wait_claim_without_the_lock_dies, "a wait queue was used without its lock")
{
	hd__waitq_claim(NULL, &queue, HD__GRANTED);
}

HD_TEST_DIES(wait_claim_all_without_the_lock_dies, "a wait queue was used without its lock")
{
	hd__waitq_claim_all(NULL, &queue, HD__GRANTED, HD_WAIT_NONE);
}

PROCESS_TEST_DIES(wait_park_without_the_lock_dies, "a process tried to wait in a queue without its lock")
{
	hd__park(hd__self(), &queue, HD_FOREVER, HD_WAIT_SEMAPHORE);
	return arg;
}

PROCESS_TEST_DIES(wait_park_while_waiting_dies, "a process that waits tried to wait")
{
	struct hd_worker *w = hd__self();
	struct hd_waiter another = { .process = w->current };

	w->current->waiter = &another;
	hd__waitq_lock(&queue);
	hd__park(w, &queue, HD_FOREVER, HD_WAIT_SEMAPHORE);
	return arg;
}

PROCESS_TEST_DIES(wait_unpark_of_an_unclaimed_waiter_dies, "a waiter was unparked that nobody had claimed")
{
	CHECK(hd_spawn_at(50, wait_in_queue, NULL) > 0);
	hd__unpark(hd__self(), queue.head);
	return arg;
}

PROCESS_TEST_DIES(wait_unpark_twice_dies, "a process that does not wait was woken")
{
	struct hd_worker *w = hd__self();

	CHECK(hd_spawn_at(50, wait_in_queue, NULL) > 0);
	hd__waitq_lock(&queue);
	struct hd_waiter *x = hd__waitq_claim(w, &queue, HD__GRANTED);
	hd__waitq_unlock(&queue);
	hd__unpark(w, x);
	hd__unpark(w, x);
	return arg;
}

PROCESS_TEST_DIES(wait_wake_before_the_outcome_dies, "a process was woken from a wait that is not over")
{
	struct hd_worker *w = hd__self();

	CHECK(hd_spawn_at(50, wait_in_queue, NULL) > 0);
	hd__wake_here(w, queue.head->process);
	hd_yield();
	hd_sleep(HD_MS(1));
	return arg;
}

PROCESS_TEST_DIES(wait_deadline_of_one_that_does_not_wait_dies, "a deadline came for a process that does not wait")
{
	struct hd_worker *w = hd__self();

	hd__wait_expired(w, w->current, 0);
	return arg;
}

PROCESS_TEST_DIES(wait_move_that_cannot_be_dies, "a process changed state in a way that cannot be")
{
	struct hd_worker *w = hd__self();

	hd__move(w, w->current, HD_RUNNING);
	return arg;
}

/* And the machinery when it is used as it should be: closed queues, chains, outcomes. */
static int results[4];

static void *note_result(void *where)
{
	struct hd_worker *w = hd__self();

	hd__waitq_lock(&queue);
	*(int *)where = hd__park(w, &queue, HD_FOREVER, HD_WAIT_SEMAPHORE);
	return NULL;
}

HD_PROCESS_TEST(wait_claim_all_wakes_processes_and_threads)
{
	struct hd_worker *w = hd__self();
	struct plain_thread *thread = start_thread(note_result, &results[0]);

	for (int waiting = 0; waiting == 0; hd_yield()) {
		hd__waitq_lock(&queue);
		waiting = queue.head != NULL;
		hd__waitq_unlock(&queue);
	}
	hd_pid a = hd_spawn_at(50, note_result, &results[1]), b = hd_spawn_at(60, note_result, &results[2]);
	hd__waitq_lock(&queue);
	CHECK(hd__waitq_claim_all(w, &queue, HD__CLOSED, HD_WAIT_JOIN) == NULL); /* nobody waits for that */
	struct hd_waiter *chain = hd__waitq_claim_all(w, &queue, HD__CLOSED, HD_WAIT_SEMAPHORE);
	CHECK(queue.head == NULL && queue.tail == NULL);
	hd__waitq_unlock(&queue);
	hd__unpark_all(w, chain);
	join_thread(thread);
	CHECK_EQ(hd_join(a, NULL, HD_FOREVER), 0);
	CHECK_EQ(hd_join(b, NULL, HD_FOREVER), 0);
	for (int i = 0; i < 3; i++)
		CHECK_EQ(results[i], -EPIPE);
}
