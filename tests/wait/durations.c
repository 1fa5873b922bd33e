/* wait/durations.c - a duration where a time is wanted is refused by every call that has an `until`, whether or not it would have to
 * wait, and nothing is done. */
#include <errno.h>

#include "harness/process.h"

static struct hd_semaphore semaphore;
static struct hd_mutex mutex;
static struct hd_monitor monitor;
static struct hd_rwlock rwlock;
static struct hd_event event;
static struct hd_waitgroup waitgroup;
static struct hd_once once;
static struct hd_barrier barrier = HD_BARRIER(1);
static struct hd_group group;
static hd_queue *queue;
static hd_promise *promise;
static hd_pid other;

static void must_not_run(void *arg)
{
	(void)arg;
	CHECK(false);
}

static bool must_not_be_asked(void *arg)
{
	(void)arg;
	CHECK(false);
	return false;
}

static int64_t sleep_until(hd_time t)
{
	return hd_sleep_until(t);
}
static int64_t semaphore_wait(hd_time t)
{
	return hd_semaphore_wait(&semaphore, t);
}
static int64_t semaphore_critical(hd_time t)
{
	return hd_semaphore_critical(&semaphore, must_not_run, NULL, t);
}
static int64_t mutex_lock(hd_time t)
{
	return hd_mutex_lock(&mutex, t);
}
static int64_t mutex_critical(hd_time t)
{
	return hd_mutex_critical(&mutex, must_not_run, NULL, t);
}
static int64_t monitor_enter(hd_time t)
{
	return hd_monitor_enter(&monitor, t);
}
static int64_t monitor_critical(hd_time t)
{
	return hd_monitor_critical(&monitor, must_not_run, NULL, t);
}
/* Inside the monitor, which the caller still has afterwards. */
static int64_t inside_monitor(int64_t (*wait)(hd_time t), hd_time t)
{
	CHECK_EQ(hd_monitor_enter(&monitor, HD_FOREVER), 0);
	int64_t err = wait(t);
	CHECK_EQ(hd_monitor_exit(&monitor), 0);
	return err;
}
static int64_t wait_inside(hd_time t)
{
	return hd_monitor_wait(&monitor, NULL, t);
}
static int64_t monitor_wait(hd_time t)
{
	return inside_monitor(wait_inside, t);
}
static int64_t wait_while_inside(hd_time t)
{
	return hd_monitor_wait_while(&monitor, NULL, must_not_be_asked, NULL, t);
}
static int64_t monitor_wait_while(hd_time t)
{
	return inside_monitor(wait_while_inside, t);
}
static int64_t condition_wait_inside(hd_time t)
{
	return hd_condition_wait(&monitor.changed, &monitor.mutex, t);
}
static int64_t condition_wait(hd_time t)
{
	return inside_monitor(condition_wait_inside, t);
}
static int64_t rwlock_read(hd_time t)
{
	return hd_rwlock_read(&rwlock, t);
}
static int64_t rwlock_write(hd_time t)
{
	return hd_rwlock_write(&rwlock, t);
}
static int64_t event_wait(hd_time t)
{
	return hd_event_wait(&event, t);
}
static int64_t waitgroup_wait(hd_time t)
{
	return hd_waitgroup_wait(&waitgroup, t);
}
static int64_t once_call(hd_time t)
{
	return hd_once(&once, must_not_run, NULL, t);
}
static int64_t barrier_wait(hd_time t)
{
	return hd_barrier_wait(&barrier, t);
}
static int64_t queue_put(hd_time t)
{
	return hd_queue_put(queue, &(int){ 1 }, t);
}
static int64_t queue_next(hd_time t)
{
	return hd_queue_next(queue, &(int){ 0 }, t);
}
static int64_t queue_put_many(hd_time t)
{
	return hd_queue_put_many(queue, &(int){ 1 }, 1, t);
}
static int64_t queue_put_none(hd_time t)
{
	return hd_queue_put_many(queue, NULL, 0, t);
}
static int64_t queue_next_many(hd_time t)
{
	return hd_queue_next_many(queue, &(int){ 0 }, 1, t);
}
static int64_t queue_next_none(hd_time t)
{
	return hd_queue_next_many(queue, NULL, 0, t);
}
static int64_t promise_value(hd_time t)
{
	return hd_promise_value(promise, NULL, t);
}
static int64_t promise_all(hd_time t)
{
	return hd_promise_all(&promise, 1, t);
}
static int64_t promise_all_of_none(hd_time t)
{
	return hd_promise_all(NULL, 0, t);
}
static int64_t promise_any(hd_time t)
{
	return hd_promise_any(&promise, 1, t);
}
static int64_t select_one(hd_time t)
{
	return hd_select(&(struct hd_case){ HD_CASE_NOTHING }, 1, t);
}
static int64_t select_first(hd_time t)
{
	return hd_select_first(NULL, 0, t);
}
static int64_t select_time(hd_time t)
{
	struct hd_case cases[] = { hd_case_time(0), hd_case_time(t) };
	return hd_select(cases, 2, HD_FOREVER);
}
static int64_t join(hd_time t)
{
	return hd_join(other, NULL, t);
}
static int64_t join_end(hd_time t)
{
	return hd_join_end(other, NULL, t);
}
static int64_t suspend(hd_time t)
{
	return hd_suspend(other, t);
}
static int64_t terminate(hd_time t)
{
	return hd_terminate(other, t);
}
static int64_t terminate_self(hd_time t)
{
	return hd_terminate(hd_self(), t);
}
static int64_t group_wait(hd_time t)
{
	return hd_group_wait(&group, t);
}

static const struct {
	const char *name;
	int64_t (*call)(hd_time until);
	bool on_threads; /* a plain thread without a runtime may make this call */
} calls[] = {
	{ "hd_sleep_until", sleep_until, true },
	{ "hd_semaphore_wait", semaphore_wait, true },
	{ "hd_semaphore_critical", semaphore_critical, true },
	{ "hd_mutex_lock", mutex_lock, true },
	{ "hd_mutex_critical", mutex_critical, true },
	{ "hd_monitor_enter", monitor_enter, true },
	{ "hd_monitor_critical", monitor_critical, true },
	{ "hd_monitor_wait", monitor_wait, true },
	{ "hd_monitor_wait_while", monitor_wait_while, true },
	{ "hd_condition_wait", condition_wait, true },
	{ "hd_rwlock_read", rwlock_read, true },
	{ "hd_rwlock_write", rwlock_write, true },
	{ "hd_event_wait", event_wait, true },
	{ "hd_waitgroup_wait", waitgroup_wait, true },
	{ "hd_once", once_call, true },
	{ "hd_barrier_wait", barrier_wait, true },
	{ "hd_queue_put", queue_put, true },
	{ "hd_queue_next", queue_next, true },
	{ "hd_queue_put_many", queue_put_many, true },
	{ "hd_queue_put_many of none", queue_put_none, true },
	{ "hd_queue_next_many", queue_next_many, true },
	{ "hd_queue_next_many of none", queue_next_none, true },
	{ "hd_promise_value", promise_value, true },
	{ "hd_promise_all", promise_all, true },
	{ "hd_promise_all of none", promise_all_of_none, true },
	{ "hd_promise_any", promise_any, false },
	{ "hd_select", select_one, false },
	{ "hd_select_first", select_first, false },
	{ "hd_case_time", select_time, false },
	{ "hd_join", join, false },
	{ "hd_join_end", join_end, false },
	{ "hd_suspend", suspend, false },
	{ "hd_terminate", terminate, false },
	{ "hd_terminate of itself", terminate_self, false },
	{ "hd_group_wait", group_wait, false },
};

static void try_all(bool on_process)
{
	static const hd_time durations[] = { 1, HD_MS(1), HD_SEC(5), INT64_C(1000000000000000) - HD_SEC(3600) - 1 };

	for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++)
		for (size_t k = 0; k < sizeof durations / sizeof durations[0]; k++)
			if (on_process || calls[i].on_threads) {
				int64_t err = calls[i].call(durations[k]);
				if (err != -EINVAL)
					trace("%s(%lld) = %lld ", calls[i].name, (long long)durations[k], (long long)err);
			}
	CHECK_STR(trace_text(), "");
}

/* Everything is there that the calls wait for: none of them would have to. */
static void provide(void)
{
	queue = hd_queue_new(sizeof(int), 2);
	promise = hd_promise_new();
	CHECK(queue != NULL && promise != NULL);
	hd_semaphore_init(&semaphore, 1);
	CHECK_EQ(hd_promise_set(promise, NULL), 0);
	CHECK_EQ(hd_queue_put(queue, &(int){ 7 }, 0), 0);
	CHECK_EQ(hd_event_set(&event), 0);
}

/* Nothing of it was taken. */
static void look(void)
{
	CHECK(hd_semaphore_is_signaled(&semaphore));
	CHECK_EQ(hd_queue_length(queue), 1);
	CHECK_EQ(hd_mutex_try_lock(&mutex), 0);
	CHECK(!hd_once_is_done(&once));
	hd_promise_release(promise);
	hd_queue_drop(queue);
}

HD_TEST(durations_are_refused_on_plain_threads)
{
	provide();
	try_all(false);
	look();
}

static void *stay(void *arg)
{
	CHECK_EQ(hd_semaphore_wait(arg, HD_FOREVER), 0);
	return NULL;
}

HD_PROCESS_TEST(durations_are_refused_on_processes)
{
	struct hd_semaphore end = HD_SEMAPHORE(0);

	provide();
	other = hd_spawn(stay, &end);
	CHECK(other > 0 && hd_group_spawn(&group, stay, &end) > 0);
	try_all(true);
	look();
	CHECK_EQ(hd_semaphore_signal(&end), 0);
	CHECK_EQ(hd_semaphore_signal(&end), 0);
	CHECK_EQ(hd_group_wait(&group, HD_FOREVER), 0);
	CHECK_EQ(hd_join(other, NULL, HD_FOREVER), 0);
}

/* The same calls where they would have to wait: the mistake comes first. */
HD_PROCESS_TEST(durations_are_refused_where_the_call_would_wait)
{
	queue = hd_queue_new(sizeof(int), 1);
	CHECK(queue != NULL);
	CHECK_EQ(queue_next(HD_SEC(5)), -EINVAL);
	CHECK_EQ(hd_queue_put(queue, &(int){ 1 }, 0), 0);
	CHECK_EQ(queue_put(HD_SEC(5)), -EINVAL);
	CHECK_EQ(semaphore_wait(HD_SEC(5)), -EINVAL);
	CHECK_EQ(event_wait(HD_SEC(5)), -EINVAL);
	hd_queue_drop(queue);
}

/* What is 0 or less is past; so is every time that hd_after answers for a negative distance, also before the program began. */
HD_TEST(durations_are_told_from_past_times)
{
	static const hd_time distances[] = { -1, -HD_SEC(1), -HD_SEC(1000000), -INT64_C(1000000000000000000), INT64_MIN };

	for (size_t i = 0; i < sizeof distances / sizeof distances[0]; i++)
		CHECK_EQ(hd_semaphore_wait(&semaphore, hd_after(distances[i])), -ETIMEDOUT);
	CHECK_EQ(hd_semaphore_wait(&semaphore, 0), -ETIMEDOUT);
	CHECK_EQ(hd_semaphore_wait(&semaphore, INT64_MIN), -ETIMEDOUT);
}

static void *tell_time(void *now)
{
	*(hd_time *)now = hd_now();
	return NULL;
}

/* The clock begins at 10^15 with the program, for plain threads and for processes. */
HD_TEST(durations_are_less_than_any_time)
{
	const hd_time beginning = INT64_C(1000000000000000);
	const struct hd_config config = { .workers = 1, .fixed = true };
	hd_time before = hd_now(), inside = 0;

	CHECK_EQ(hd_run(&config, tell_time, &inside), 0);
	CHECK(before >= beginning && before < beginning + HD_SEC(3600));
	CHECK(inside >= before && hd_now() >= inside);
	CHECK_EQ(hd_semaphore_wait(&semaphore, hd_now() - HD_SEC(60)),
		 -ETIMEDOUT); /* before the program began: past, and no duration */
}
