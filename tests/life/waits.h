/* life/waits.h - every call that waits, each with something that does not come: for the tests of cancel and terminate. */
#ifndef TESTS_LIFE_WAITS_H
#define TESTS_LIFE_WAITS_H

#include "life/common.h"

static struct {
	struct hd_semaphore none, release;
	hd_queue *empty, *full;
	hd_promise *pending;
	struct hd_event event;
	struct hd_waitgroup waitgroup;
	struct hd_barrier barrier;
	struct hd_rwlock written;
	struct hd_once once;
	struct hd_mutex held;
	struct hd_monitor monitor;
	struct hd_condition condition;
	hd_pid holder, stubborn;
} things;

static inline void wait_for_release(void *arg)
{
	(void)arg;
	CHECK_EQ(hd_semaphore_wait(&things.release, HD_FOREVER), 0);
}

/* Has what others want, until it is released. */
static inline void *hold_things(void *arg)
{
	CHECK_EQ(hd_mutex_lock(&things.held, 0), 0);
	CHECK_EQ(hd_rwlock_write(&things.written, 0), 0);
	CHECK_EQ(hd_once(&things.once, wait_for_release, NULL, 0), 0);
	CHECK_EQ(hd_rwlock_unlock(&things.written), 0);
	CHECK_EQ(hd_mutex_unlock(&things.held), 0);
	return arg;
}

static inline void *be_stubborn(void *arg)
{
	CHECK_EQ(hd_set_cancel_state(HD_CANCEL_DISABLED), HD_CANCEL_ENABLED);
	wait_for_release(NULL);
	return arg;
}

/* On one worker, by a process of a priority below 80. */
static inline void make_things(void)
{
	memset(&things, 0, sizeof things);
	things.empty = hd_queue_new(sizeof(long), 1);
	things.full = hd_queue_new(sizeof(long), 1);
	things.pending = hd_promise_new();
	CHECK(things.empty != NULL && things.full != NULL && things.pending != NULL);
	CHECK_EQ(hd_queue_put(things.full, &(long){ 1 }, 0), 0);
	hd_waitgroup_init(&things.waitgroup, 1);
	hd_barrier_init(&things.barrier, 2);
	things.holder = born(hd_spawn_at(80, hold_things, NULL));
	things.stubborn = born(hd_spawn_at(80, be_stubborn, NULL));
}

/* Nobody is left in any queue, and nothing was taken or given. */
static inline void drop_things(void)
{
	CHECK(things.none.waiters.head == NULL);
	CHECK(things.event.waiters.head == NULL);
	CHECK(things.waitgroup.waiters.head == NULL);
	CHECK(things.barrier.waiters.head == NULL);
	CHECK(things.written.waiters.head == NULL);
	CHECK(things.once.waiters.head == NULL);
	CHECK(things.held.waiters.head == NULL);
	CHECK(things.monitor.changed.waiters.head == NULL);
	CHECK(things.condition.waiters.head == NULL);
	CHECK_EQ(hd_mutex_try_lock(&things.monitor.mutex), 0);
	CHECK_EQ(hd_mutex_unlock(&things.monitor.mutex), 0);
	CHECK_EQ(hd_queue_length(things.empty), 0);
	CHECK_EQ(hd_queue_length(things.full), 1);
	CHECK(!hd_promise_has_value(things.pending));
	CHECK_EQ(hd_barrier_wait(&things.barrier, 0), -ETIMEDOUT); /* nobody counts as having come */
	CHECK(!hd_once_is_done(&things.once));
	CHECK_EQ(hd_semaphore_signal(&things.release), 0);
	CHECK_EQ(hd_semaphore_signal(&things.release), 0);
	CHECK_EQ(hd_join(things.holder, NULL, HD_FOREVER), 0);
	CHECK_EQ(hd_join(things.stubborn, NULL, HD_FOREVER), 0);
	CHECK(hd_once_is_done(&things.once));
	CHECK_EQ(hd_rwlock_try_write(&things.written), 0);
	hd_queue_drop(things.empty);
	hd_queue_drop(things.full);
	hd_promise_release(things.pending);
}

/* ---- the calls ---- */

static inline void not_called(void *arg)
{
	(void)arg;
	CHECK(!"this must not be called");
}

static inline bool is_always_so(void *arg)
{
	(void)arg;
	return true;
}

static inline int wait_sleep(void)
{
	return hd_sleep(HD_SEC(1000));
}

static inline int wait_sleep_until(void)
{
	return hd_sleep_until(HD_FOREVER);
}

static inline int wait_semaphore(void)
{
	return hd_semaphore_wait(&things.none, HD_FOREVER);
}

static inline int wait_semaphore_for_long(void)
{
	return hd_semaphore_wait(&things.none, hd_after(HD_SEC(1000)));
}

static inline int wait_critical(void)
{
	return hd_semaphore_critical(&things.none, not_called, NULL, HD_FOREVER);
}

static inline void exit_monitor(void *arg)
{
	(void)arg;
	CHECK_EQ(hd_monitor_exit(&things.monitor), 0);
	CHECK_EQ(hd_monitor_exit(&things.monitor), 0);
	CHECK_EQ(hd_monitor_exit(&things.monitor), -EPERM);
}

static inline void enter_monitor(struct hd_cleanup *cleanup)
{
	CHECK_EQ(hd_monitor_enter(&things.monitor, HD_FOREVER), 0);
	CHECK_EQ(hd_monitor_enter(&things.monitor, HD_FOREVER), 0);
	CHECK_EQ(hd_cleanup_push(cleanup, exit_monitor, NULL), 0);
}

static inline int wait_monitor(void)
{
	struct hd_cleanup cleanup;

	enter_monitor(&cleanup);
	int err = hd_monitor_wait(&things.monitor, NULL, HD_FOREVER);
	CHECK_EQ(hd_cleanup_pop(&cleanup, true), 0);
	return err;
}

static inline int wait_monitor_while(void)
{
	struct hd_cleanup cleanup;

	enter_monitor(&cleanup);
	int err = hd_monitor_wait_while(&things.monitor, NULL, is_always_so, NULL, HD_FOREVER);
	CHECK_EQ(hd_cleanup_pop(&cleanup, true), 0);
	return err;
}

static inline int wait_condition(void)
{
	struct hd_cleanup cleanup;

	enter_monitor(&cleanup);
	int err = hd_condition_wait(&things.condition, &things.monitor.mutex, hd_after(HD_SEC(1000)));
	CHECK_EQ(hd_cleanup_pop(&cleanup, true), 0);
	return err;
}

static inline int wait_read(void)
{
	return hd_rwlock_read(&things.written, HD_FOREVER);
}

static inline int wait_write(void)
{
	return hd_rwlock_write(&things.written, HD_FOREVER);
}

static inline int wait_barrier(void)
{
	return hd_barrier_wait(&things.barrier, HD_FOREVER);
}

static inline int wait_once(void)
{
	return hd_once(&things.once, not_called, NULL, HD_FOREVER);
}

static inline int wait_event(void)
{
	return hd_event_wait(&things.event, HD_FOREVER);
}

static inline int wait_waitgroup(void)
{
	return hd_waitgroup_wait(&things.waitgroup, HD_FOREVER);
}

static inline int wait_promise(void)
{
	return hd_promise_value(things.pending, NULL, HD_FOREVER);
}

static inline int wait_all(void)
{
	return hd_promise_all(&things.pending, 1, HD_FOREVER);
}

static inline int wait_any(void)
{
	return hd_promise_any(&things.pending, 1, HD_FOREVER);
}

static inline int wait_put(void)
{
	return hd_queue_put(things.full, &(long){ 2 }, HD_FOREVER);
}

static inline int wait_next(void)
{
	return hd_queue_next(things.empty, &(long){ 2 }, HD_FOREVER);
}

static inline int wait_put_many(void)
{
	return (int)hd_queue_put_many(things.full, (long[]){ 2, 3 }, 2, HD_FOREVER);
}

static inline int wait_next_many(void)
{
	long items[2];
	return (int)hd_queue_next_many(things.empty, items, 2, HD_FOREVER);
}

static inline int wait_select(void)
{
	long item = 2;
	struct hd_case cases[] = { hd_case_put(things.full, &item),   hd_case_next(things.empty, &item),
				   hd_case_semaphore(&things.none),   hd_case_promise(things.pending, NULL),
				   hd_case_join(things.holder, NULL), hd_case_time(hd_after(HD_SEC(1000))) };
	return hd_select(cases, 6, HD_FOREVER);
}

static inline int wait_join(void)
{
	return hd_join(things.holder, NULL, HD_FOREVER);
}

static inline int wait_join_end(void)
{
	struct hd_end end;
	return hd_join_end(things.holder, &end, hd_after(HD_SEC(1000)));
}

static inline int wait_terminate(void)
{
	return hd_terminate(things.stubborn, HD_FOREVER);
}

static inline void *wait_for_none(void *arg)
{
	(void)arg;
	return (void *)(long)hd_semaphore_wait(&things.none, HD_FOREVER);
}

static inline int wait_group(void)
{
	struct hd_group group = { .count = 0 };

	born(hd_group_spawn(&group, wait_for_none, NULL));
	born(hd_group_spawn(&group, wait_for_none, NULL));
	return hd_group_wait(&group, HD_FOREVER);
}

static const struct wait {
	const char *name;
	int (*call)(void);
	enum hd_wait why;
} waits[] = {
	{ "hd_sleep", wait_sleep, HD_WAIT_SLEEP },
	{ "hd_sleep_until", wait_sleep_until, HD_WAIT_SLEEP },
	{ "hd_semaphore_wait", wait_semaphore, HD_WAIT_SEMAPHORE },
	{ "hd_semaphore_wait with a deadline", wait_semaphore_for_long, HD_WAIT_SEMAPHORE },
	{ "hd_semaphore_critical", wait_critical, HD_WAIT_SEMAPHORE },
	{ "hd_monitor_wait", wait_monitor, HD_WAIT_CONDITION },
	{ "hd_monitor_wait_while", wait_monitor_while, HD_WAIT_CONDITION },
	{ "hd_condition_wait", wait_condition, HD_WAIT_CONDITION },
	{ "hd_rwlock_read", wait_read, HD_WAIT_READ },
	{ "hd_rwlock_write", wait_write, HD_WAIT_WRITE },
	{ "hd_barrier_wait", wait_barrier, HD_WAIT_BARRIER },
	{ "hd_once", wait_once, HD_WAIT_ONCE },
	{ "hd_event_wait", wait_event, HD_WAIT_EVENT },
	{ "hd_waitgroup_wait", wait_waitgroup, HD_WAIT_WAITGROUP },
	{ "hd_promise_value", wait_promise, HD_WAIT_PROMISE },
	{ "hd_promise_all", wait_all, HD_WAIT_PROMISE },
	{ "hd_promise_any", wait_any, HD_WAIT_PROMISE },
	{ "hd_queue_put", wait_put, HD_WAIT_PUT },
	{ "hd_queue_next", wait_next, HD_WAIT_NEXT },
	{ "hd_queue_put_many", wait_put_many, HD_WAIT_PUT },
	{ "hd_queue_next_many", wait_next_many, HD_WAIT_NEXT },
	{ "hd_select", wait_select, HD_WAIT_SELECT },
	{ "hd_join", wait_join, HD_WAIT_JOIN },
	{ "hd_join_end", wait_join_end, HD_WAIT_JOIN },
	{ "hd_terminate", wait_terminate, HD_WAIT_TERMINATE },
	{ "hd_group_wait", wait_group, HD_WAIT_GROUP },
};
#define WAITS ((int)(sizeof waits / sizeof waits[0]))

/* An entry that makes one of the calls, and returns what it answers. */
static inline void *make_call(void *wait)
{
	return (void *)(long)((const struct wait *)wait)->call();
}

#endif
