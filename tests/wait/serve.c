/* wait/serve.c - many are let go by one call, in batches: in their order, all of them and no others, and nothing is touched too late. */
#include <stdlib.h>

#include "sync/common.h"

#define MANY 100 /* waiters: some batches */
#define BATCH 32 /* as in wait.c */

static hd_pid pids[MANY];

/* Each with its number as its argument, unless `arg` is another one. */
static void spawn_many(hd_entry entry, void *arg)
{
	for (int i = 0; i < MANY; i++)
		pids[i] = spawned(hd_spawn(entry, arg != NULL ? arg : (void *)(long)i));
}

static void join_many(void)
{
	for (int i = 0; i < MANY; i++)
		CHECK_EQ(hd_join(pids[i], NULL, HD_FOREVER), 0);
}

/* ---- their order ---- */

static struct hd_event event;
static struct hd_rwlock lock;
static int next;

static void *be_next_of_event(void *arg)
{
	CHECK_EQ(hd_event_wait(&event, HD_FOREVER), 0);
	CHECK_EQ(next++, (long)arg);
	return NULL;
}

static void *be_next_reader(void *arg)
{
	CHECK_EQ(hd_rwlock_read(&lock, HD_FOREVER), 0);
	CHECK_EQ(next++, (long)arg);
	CHECK_EQ(lock.readers, MANY - (long)arg); /* all came in together */
	CHECK_EQ(hd_rwlock_unlock(&lock), 0);
	return NULL;
}

HD_PROCESS_TEST(serve_lets_many_go_in_their_order)
{
	spawn_many(be_next_of_event, NULL);
	hd_yield();
	CHECK_EQ(hd_event_set(&event), 0);
	CHECK_EQ(queued(&event.waiters), 0);
	join_many();
	CHECK_EQ(next, MANY);
}

HD_PROCESS_TEST(serve_lets_many_readers_in_together)
{
	CHECK_EQ(hd_rwlock_write(&lock, HD_FOREVER), 0);
	spawn_many(be_next_reader, NULL);
	hd_yield();
	CHECK_EQ(hd_rwlock_unlock(&lock), 0);
	join_many();
	CHECK_EQ(next, MANY);
}

/* ---- all of them, and no others ---- */

static long came, went, timed_out;

static void *wait_with_a_deadline(void *arg)
{
	add(&came, 1);
	int err = hd_event_wait(&event, hd_after((long)arg % 3 == 0 ? HD_FOREVER : HD_US((long)arg % 50)));
	CHECK(err == 0 || (err == -ETIMEDOUT && (long)arg % 3 != 0) || err == -ECANCELED);
	add(err == 0 ? &went : &timed_out, 1);
	return NULL;
}

/* Deadlines and cancels compete with the call that lets them go. */
HD_WORKERS_TEST(serve_beside_deadlines_and_cancels)
{
	unsigned seed = 5;

	for (int round = 0; another_round(round, hd_scaled(200)); round++) {
		hd_event_init(&event, 0);
		came = went = timed_out = 0;
		spawn_many(wait_with_a_deadline, NULL);
		while (value_of(&came) < MANY / 2)
			hd_yield();
		for (int i = 0; i < MANY / 10; i++)
			CHECK_EQ(hd_cancel(pids[next_random(&seed) % MANY]) % ESRCH, 0);
		CHECK_EQ(hd_event_set(&event), 0);
		join_many();
		CHECK_EQ(value_of(&went) + value_of(&timed_out), MANY);
		CHECK_EQ(queued(&event.waiters), 0);
	}
	(void)workers;
}

static int reset;

static void *wait_after_the_reset(void *arg)
{
	while (!read_flag(&reset))
		hd_yield();
	CHECK_EQ(hd_event_wait(&event, hd_after(HD_MS(1))), -ETIMEDOUT);
	return arg;
}

static void *reset_at_once(void *arg)
{
	while (!hd_event_is_set(&event))
		hd_yield();
	CHECK_EQ(hd_event_reset(&event), 0);
	set_flag(&reset, 1);
	return arg;
}

static void *set_event(void *which)
{
	CHECK_EQ(hd_event_set(which), 0);
	return NULL;
}

/* The event is set for many; a process sees it and resets it meanwhile. A waiter that comes after that is not let go. The event is set by a
 * plain thread: from inside a lane, those that it wakes could not run before the call returns. */
HD_WORKERS_TEST(serve_does_not_reach_those_that_come_later)
{
	for (int round = 0; another_round(round, hd_scaled(30)); round++) {
		hd_event_init(&event, 0);
		set_flag(&reset, 0);
		came = went = timed_out = 0;
		for (int i = 0; i < MANY; i++)
			pids[i] = spawned(hd_spawn(wait_with_a_deadline, (void *)0L));
		await_queued(&event.waiters, MANY);
		hd_pid late = spawned(hd_spawn(wait_after_the_reset, NULL)), resetter = spawned(hd_spawn(reset_at_once, NULL));
		struct plain_thread *setter = start_thread(set_event, &event);
		CHECK_EQ(hd_join(resetter, NULL, HD_FOREVER), 0);
		CHECK_EQ(hd_join(late, NULL, HD_FOREVER), 0);
		join_many();
		join_thread(setter);
		CHECK_EQ(value_of(&went), MANY);
	}
	(void)workers;
}

static struct hd_mutex mutex;
static struct hd_condition condition;
static int generation; /* under the mutex */
static long late_waits;

static void *wait_for_generation(void *arg)
{
	int mine = (int)(long)arg;

	CHECK_EQ(hd_mutex_lock(&mutex, HD_FOREVER), 0);
	while (generation < mine) {
		add(&late_waits, mine == 2);
		CHECK_EQ(hd_condition_wait(&condition, &mutex, HD_FOREVER), 0);
	}
	CHECK_EQ(hd_mutex_unlock(&mutex), 0);
	return NULL;
}

static void begin_generation(int n)
{
	CHECK_EQ(hd_mutex_lock(&mutex, HD_FOREVER), 0);
	generation = n;
	CHECK_EQ(hd_mutex_unlock(&mutex), 0);
}

static void *signal_the_late_one(void *arg)
{
	while (value_of(&late_waits) < 2)
		hd_yield();
	begin_generation(2);
	CHECK_EQ(hd_condition_signal(&condition), 0);
	return arg;
}

static void *signal_all(void *arg)
{
	CHECK_EQ(hd_condition_signal_all(&condition), 0);
	return arg;
}

/* One call signals many; the first of them waits again, and a process signals then: that signal is not spent on one of the many. */
HD_WORKERS_TEST(serve_takes_all_that_wait_in_one_step)
{
	for (int round = 0; another_round(round, hd_scaled(50)); round++) {
		begin_generation(0);
		late_waits = 0;
		hd_pid late = spawned(hd_spawn(wait_for_generation, (void *)2L));
		await_queued(&condition.waiters, 1);
		spawn_many(wait_for_generation, (void *)1L);
		await_queued(&condition.waiters, MANY + 1);
		hd_pid signaller = spawned(hd_spawn(signal_the_late_one, NULL));
		begin_generation(1);
		struct plain_thread *thread = start_thread(signal_all, NULL);
		join_many();
		join_thread(thread);
		CHECK_EQ(hd_join(signaller, NULL, HD_FOREVER), 0);
		CHECK_EQ(hd_join(late, NULL, HD_FOREVER), 0);
	}
	(void)workers;
}

/* ---- their memory ---- */

struct box {
	struct hd_event event;
	struct hd_rwlock lock;
	long users;
};

static void leave_box(struct box *box)
{
	if (add(&box->users, -1) == 0) {
		memset(box, 0xff, sizeof *box);
		free(box);
	}
}

static void *wait_and_free(void *arg)
{
	struct box *box = arg;

	CHECK_EQ(hd_event_wait(&box->event, HD_FOREVER), 0);
	leave_box(box);
	return NULL;
}

static void *read_and_free(void *arg)
{
	struct box *box = arg;

	CHECK_EQ(hd_rwlock_read(&box->lock, HD_FOREVER), 0);
	CHECK_EQ(hd_rwlock_unlock(&box->lock), 0);
	leave_box(box);
	return NULL;
}

/* The last of those that were let go frees what they waited for, while the call that let them go may not have returned. */
HD_WORKERS_TEST(serve_touches_nothing_that_the_last_waiter_frees)
{
	for (int round = 0; another_round(round, hd_scaled(200)); round++) {
		struct box *box = calloc(1, sizeof *box);
		CHECK(box != NULL);
		box->users = MANY;
		CHECK_EQ(hd_rwlock_write(&box->lock, HD_FOREVER), 0);
		spawn_many(round % 2 == 0 ? wait_and_free : read_and_free, box);
		await_queued(round % 2 == 0 ? &box->event.waiters : &box->lock.waiters, MANY);
		CHECK_EQ(round % 2 == 0 ? hd_event_set(&box->event) : hd_rwlock_unlock(&box->lock), 0);
		join_many();
	}
	(void)workers;
}

static uint8_t state_of(struct hd_worker *w, int i)
{
	return ld_rlx(&hd__table_find(&w->sched->table, pids[i])->state);
}

/* When the lock is taken anew, the last of the first batch has been claimed and not let go: its call has not returned, so the event exists,
 * whatever has become of the others meanwhile. */
HD_AS_RUNTIME static struct hd_waiter *claim_and_look(struct hd_worker *w, void *claimed)
{
	int n = (*(int *)claimed)++;

	if (n == BATCH) {
		CHECK_EQ(state_of(w, BATCH - 2), HD_READY);
		CHECK_EQ(state_of(w, BATCH - 1), HD_WAITING);
	}
	return hd__waitq_claim(w, &event.waiters, HD__GRANTED);
}

HD_AS_RUNTIME static void serve_event(struct hd_worker *w, int *claimed)
{
	hd__enter(w);
	hd__waitq_lock(&event.waiters);
	hd__waitq_serve(w, &event.waiters, claim_and_look, claimed, NULL);
	hd__leave(w);
}

HD_PROCESS_TEST(serve_keeps_a_waiter_in_hand_between_batches)
{
	int claimed = 0;

	spawn_many(be_next_of_event, NULL);
	hd_yield();
	serve_event(hd__self(), &claimed);
	CHECK_EQ(claimed, MANY + 1);
	join_many();
	CHECK_EQ(next, MANY);
}
