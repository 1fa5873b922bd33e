/* rt/circle.c - circles of processes that wait for each other are reported when they close, and nothing else is. */
#include "rt/capture.h"

#include <errno.h>

#include "harness/process.h"
#include "sched/workers.h"

static struct hd_mutex a, b;
static struct hd_monitor monitor;
static struct hd_rwlock rwlock;
static struct hd_semaphore held;

static hd_pid named(const char *name, hd_entry entry)
{
	hd_pid pid = hd_spawn_with(&(struct hd_spawn){ .name = name }, entry, NULL);
	CHECK(pid > 0);
	return pid;
}

static void meet(void)
{
	static struct hd_barrier barrier = HD_BARRIER(2);
	CHECK(hd_barrier_wait(&barrier, HD_FOREVER) >= 0);
}

static void *a_then_b(void *arg)
{
	CHECK_EQ(hd_mutex_lock(&a, HD_FOREVER), 0);
	meet();
	hd_mutex_lock(&b, HD_FOREVER);
	return arg;
}

static void *b_then_a(void *arg)
{
	CHECK_EQ(hd_mutex_lock(&b, HD_FOREVER), 0);
	meet();
	hd_mutex_lock(&a, HD_FOREVER);
	return arg;
}

/* Both are stuck, and the first process is not. */
static void *close_circle(void *arg)
{
	hd_pid pids[] = { named("ann", a_then_b), named("bob", b_then_a) };
	struct hd_process_info info = { .why = HD_WAIT_NONE };

	for (int i = 0; i < 2; i++) {
		do {
			hd_yield();
			CHECK_EQ(hd_process_info(pids[i], &info), 0);
		} while (info.why != HD_WAIT_MUTEX);
		CHECK_EQ(info.holder, pids[!i]);
	}
	hd_shutdown(0);
	return arg;
}

/* What it said. */
static const char *run(hd_entry entry, enum hd_deadlock deadlock, unsigned workers)
{
	const struct hd_config config = { .workers = workers, .deadlock = deadlock, .fixed = true };

	capture_begin();
	int code = hd_run(&config, entry, NULL);
	const char *said = capture_end();
	CHECK_EQ(code, 0);
	return said;
}

HD_TEST(circle_of_two_mutexes_is_reported_once_with_names_and_places)
{
	for (unsigned workers = 1; workers <= 2; workers++) {
		const char *said = run(close_circle, HD_DEADLOCK_REPORT, workers);
		CHECK(times_said(said, "a circle of 2 processes") >= 1);
		CHECK(times_said(said, "a circle of 2 processes") <= 2); /* both may have closed it, at the same moment */
		CHECK(times_said(said, "\"ann\" waits in hd_mutex_lock for process") >= 1);
		CHECK(times_said(said, "\"bob\" waits in hd_mutex_lock for process") >= 1);
		CHECK(times_said(said, "[0x") >= 4); /* at least two places for each */
		a = b = (struct hd_mutex){ .depth = 0 };
	}
}

HD_TEST(circle_is_not_looked_for_unless_asked)
{
	const char *said = run(close_circle, HD_DEADLOCK_IGNORE, 1);
	CHECK_STR(said, "");
}

HD_TEST_DIES(circle_aborts_where_that_was_asked, "a circle of 2 processes")
{
	const struct hd_config config = { .workers = 1, .deadlock = HD_DEADLOCK_ABORT, .fixed = true };
	hd_run(&config, close_circle, NULL);
}

/* ann waits for the end of bob, who waits to write what cid writes; he waits to enter the monitor that ann is in. */
static hd_pid bob;
static struct hd_semaphore go;

static void *cid_enters(void *arg)
{
	CHECK_EQ(hd_rwlock_write(&rwlock, HD_FOREVER), 0);
	CHECK_EQ(hd_semaphore_wait(&go, HD_FOREVER), 0);
	hd_monitor_enter(&monitor, HD_FOREVER);
	return arg;
}

static void *bob_writes(void *arg)
{
	hd_rwlock_write(&rwlock, HD_FOREVER);
	return arg;
}

static void *ann_joins(void *arg)
{
	CHECK_EQ(hd_monitor_enter(&monitor, HD_FOREVER), 0);
	hd_join(bob, NULL, HD_FOREVER);
	return arg;
}

static void *close_mixed_circle(void *arg)
{
	named("cid", cid_enters);
	hd_yield();
	bob = named("bob", bob_writes);
	hd_yield();
	named("ann", ann_joins);
	hd_yield();
	CHECK_EQ(hd_semaphore_signal(&go), 0);
	hd_yield();
	hd_shutdown(0);
	return arg;
}

HD_TEST(circle_of_a_join_a_rwlock_and_a_monitor_is_reported)
{
	const char *said = run(close_mixed_circle, HD_DEADLOCK_REPORT, 1);
	CHECK_EQ(times_said(said, "a circle of 3 processes"), 1);
	CHECK_EQ(times_said(said, "\"ann\" waits in hd_join for process"), 1);
	CHECK_EQ(times_said(said, "\"bob\" waits in hd_rwlock_write for process"), 1);
	CHECK_EQ(times_said(said, "\"cid\" waits in hd_mutex_lock for process"), 1);
}

/* One of them waits with a deadline: that is no deadlock. */
static void *b_then_a_for_a_while(void *arg)
{
	CHECK_EQ(hd_mutex_lock(&b, HD_FOREVER), 0);
	meet();
	CHECK_EQ(hd_mutex_lock(&a, hd_after(HD_MS(2))), -ETIMEDOUT);
	CHECK_EQ(hd_mutex_unlock(&b), 0);
	return arg;
}

static void *almost_close_circle(void *arg)
{
	hd_pid pids[] = { named("ann", a_then_b), named("bob", b_then_a_for_a_while) };

	for (int i = 0; i < 2; i++)
		CHECK_EQ(hd_join(pids[i], NULL, HD_FOREVER), 0);
	return arg;
}

HD_TEST(circle_that_a_deadline_opens_is_none)
{
	const char *said = run(almost_close_circle, HD_DEADLOCK_REPORT, 1);
	CHECK_STR(said, "");
}

/* Many who lock in the same order meet all the time, and never in a circle. */
static void *in_order(void *arg)
{
	for (int i = 0; i < hd_scaled(200); i++) {
		CHECK_EQ(hd_mutex_lock(&a, HD_FOREVER), 0);
		hd_yield();
		CHECK_EQ(hd_mutex_lock(&b, HD_FOREVER), 0);
		hd_yield();
		CHECK_EQ(hd_mutex_unlock(&a), 0);
		hd_yield();
		CHECK_EQ(hd_mutex_unlock(&b), 0);
	}
	return arg;
}

static void *lock_in_order(void *arg)
{
	hd_pid pids[8];

	for (int i = 0; i < 8; i++)
		pids[i] = named("one of many", in_order);
	for (int i = 0; i < 8; i++)
		CHECK_EQ(hd_join(pids[i], NULL, HD_FOREVER), 0);
	return arg;
}

HD_TEST(circle_is_not_seen_where_there_is_none)
{
	for (unsigned workers = 1; workers <= 4; workers++) {
		const char *said = run(lock_in_order, HD_DEADLOCK_REPORT, workers);
		CHECK_STR(said, "");
	}
}

/* Its friend waits for it, and it asks something of the friend, who lives elsewhere: that ends the friend's wait, a moment later. */
enum request { TERMINATE, SUSPEND, CANCEL };
static enum request request;
static struct crew friends;

static void *ask_friend(void *arg)
{
	struct hd_process_info info = { .why = HD_WAIT_NONE };
	hd_pid friend = friends.members[1].pid;

	if (arg != NULL) {
		hd_join(friends.members[0].pid, NULL, HD_FOREVER);
		return NULL;
	}
	while (info.why != HD_WAIT_JOIN) {
		CHECK_EQ(hd_process_info(friend, &info), 0);
		sched_yield();
	}
	switch (request) {
	case TERMINATE:
		CHECK_EQ(hd_terminate(friend, HD_FOREVER), 0);
		break;
	case SUSPEND:
		CHECK_EQ(hd_suspend(friend, HD_FOREVER), 0);
		CHECK_EQ(hd_resume(friend), 0);
		break;
	case CANCEL:
		CHECK_EQ(hd_cancel(friend), 0);
		CHECK_EQ(hd_join(friend, NULL, HD_FOREVER), 0);
	}
	return NULL;
}

static void *ask_among_friends(void *arg)
{
	start_crew(&friends, NULL, 2, ask_friend, (void *[]){ NULL, &friends });
	return arg;
}

HD_TEST(circle_that_a_request_on_its_way_opens_is_none)
{
	for (request = TERMINATE; request <= CANCEL; request++) {
		const char *said = run(ask_among_friends, HD_DEADLOCK_REPORT, 2);
		CHECK_STR(said, "");
	}
}

/* ---- priorities upside down ---- */

static void *hold_a(void *arg)
{
	CHECK_EQ(hd_mutex_lock(&a, HD_FOREVER), 0);
	CHECK_EQ(hd_semaphore_signal(&held), 0);
	hd_yield();
	CHECK_EQ(hd_mutex_unlock(&a), 0);
	return arg;
}

static void *want_a(void *arg)
{
	CHECK_EQ(hd_mutex_lock(&a, HD_FOREVER), 0);
	CHECK_EQ(hd_mutex_unlock(&a), 0);
	return arg;
}

static void *invert(void *arg)
{
	hd_pid low = hd_spawn_at(20, hold_a, NULL);

	CHECK_EQ(hd_semaphore_wait(&held, HD_FOREVER), 0);
	hd_pid high =
		hd_spawn_with(&(struct hd_spawn){ .name = "high", .priority = 60 }, want_a, NULL); /* and we are between them */
	CHECK_EQ(hd_join(high, NULL, HD_FOREVER), 0);
	CHECK_EQ(hd_join(low, NULL, HD_FOREVER), 0);
	return arg;
}

HD_TEST(inversion_is_reported_unless_the_mutex_prevents_it)
{
	const char *said = run(invert, HD_DEADLOCK_REPORT, 1);
	CHECK_EQ(times_said(said, "priority inversion: process "), 1);
	CHECK_EQ(times_said(said, "\"high\" of priority 60 waits in hd_mutex_lock for process"), 1);
	hd_mutex_init(&a, HD_INHERIT);
	said = run(invert, HD_DEADLOCK_REPORT, 1);
	CHECK_STR(said, "");
}
