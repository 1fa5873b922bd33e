/* life/terminate.c - whoever is terminated ends, cleanly and once, whatever it does; and nothing that it waited for is lost. */
#include <errno.h>
#include <string.h>

#include "life/waits.h"
#include "sched/worker.h"
#include "sched/workers.h"

static int many(int n)
{
	return hd_is_simulated() ? n / 100 + 2 : hd_scaled(n);
}

static struct hd_end end_of(hd_pid pid)
{
	struct hd_end end;

	CHECK_EQ(hd_join_end(pid, &end, HD_FOREVER), 0);
	return end;
}

static void check_killed(hd_pid pid, int reason)
{
	struct hd_end end = end_of(pid);

	CHECK_EQ(end.kind, HD_END_KILLED);
	CHECK_EQ(end.err, reason);
	CHECK(end.result == NULL);
}

static void say_word(void *word)
{
	trace("%s ", (const char *)word);
}

static void *sleep_for_ever(void *word)
{
	struct hd_cleanup cleanup;

	hd_cleanup_push(&cleanup, say_word, word != NULL ? word : (void *)"cleanup");
	hd_sleep_until(HD_FOREVER);
	CHECK(!"it came back");
	return NULL;
}

/* ---- answers ---- */

HD_TEST(terminate_needs_a_runtime)
{
	CHECK_EQ(hd_terminate(1, 0), -ENXIO);
	CHECK_EQ(hd_kill(1, 0), -ENXIO);
}

HD_PROCESS_TEST(terminate_of_nobody_is_an_error)
{
	hd_pid pid = born(hd_spawn_at(50, nothing, &pid));

	CHECK_EQ(hd_terminate(0, HD_FOREVER), -ESRCH);
	CHECK_EQ(hd_terminate(-1, HD_FOREVER), -ESRCH);
	CHECK_EQ(hd_kill(0, 1), -ESRCH);
	CHECK_EQ(hd_terminate(pid, HD_FOREVER), -ESRCH); /* a zombie has ended */
	CHECK_EQ(hd_kill(pid, 7), -ESRCH);
	CHECK_EQ(end_of(pid).kind, HD_END_RETURNED);
	CHECK_EQ(hd_terminate(pid, HD_FOREVER), -ESRCH);
	CHECK_EQ(hd_kill(pid, 7), -ESRCH);
}

HD_PROCESS_TEST(terminate_returns_when_it_is_dead_and_can_be_joined)
{
	hd_pid pid = born(hd_spawn_at(50, sleep_for_ever, NULL));

	CHECK_EQ(hd_terminate(pid, HD_FOREVER), 0);
	CHECK_STR(trace_text(), "cleanup ");
	CHECK_EQ(state_of(pid), HD_ENDED);
	CHECK_EQ(hd_terminate(pid, HD_FOREVER), -ESRCH);
	check_killed(pid, 0);
}

HD_PROCESS_TEST(terminate_of_a_detached_process_forgets_it)
{
	hd_pid pid = born(hd_spawn_with(&(struct hd_spawn){ .detached = true, .priority = 50 }, sleep_for_ever, NULL));

	CHECK_EQ(hd_terminate(pid, HD_FOREVER), 0);
	CHECK(is_gone(pid));
}

static void *terminate_self(void *arg)
{
	struct hd_cleanup cleanup;

	hd_cleanup_push(&cleanup, say_word, (void *)"cleanup");
	if (arg == NULL)
		CHECK_EQ(hd_terminate(hd_self(), 0), 0);
	else
		hd_kill(hd_self(), 7);
	CHECK(!"it came back");
	return arg;
}

HD_PROCESS_TEST(terminate_of_oneself_is_exit_and_kill_of_oneself_is_kill)
{
	struct hd_end end = end_of(born(hd_spawn(terminate_self, NULL)));

	CHECK(end.kind == HD_END_RETURNED && end.result == NULL);
	check_killed(born(hd_spawn(terminate_self, &end)), 7);
	CHECK_STR(trace_text(), "cleanup cleanup ");
}

/* ---- whatever it does ---- */

static void *call_and_never_return(void *wait)
{
	struct hd_cleanup cleanup;

	hd_cleanup_push(&cleanup, say_word, (void *)"cleanup");
	make_call(wait);
	CHECK(!"it came back");
	return NULL;
}

HD_PROCESS_TEST(terminate_ends_every_kind_of_wait)
{
	make_things();
	for (int i = 0; i < WAITS; i++) {
		trace_clear();
		hd_pid pid = born(hd_spawn_at(50, call_and_never_return, (void *)&waits[i]));
		CHECK_EQ(hd_sleep(HD_MS(1)), 0); /* members of a group start */
		CHECK_EQ(info_of(pid).why, waits[i].why);
		CHECK_EQ(hd_terminate(pid, HD_FOREVER), 0);
		check_killed(pid, 0);
		CHECK_STR(trace_text(), "cleanup ");
	}
	drop_things();
}

static void *doom_self_and_call(void *wait)
{
	struct hd_cleanup cleanup;

	hd_cleanup_push(&cleanup, say_word, (void *)"cleanup");
	trace("doomed ");
	CHECK_EQ(hd_semaphore_signal(&things.release), 0); /* wakes main, of a higher priority, which kills us here */
	trace("running ");
	make_call(wait);
	CHECK(!"it came back");
	return NULL;
}

static void *kill_when_released(void *pid)
{
	wait_for_release(NULL);
	CHECK_EQ(hd_kill(*(hd_pid *)pid, 9), 0);
	return NULL;
}

HD_PROCESS_TEST(terminate_of_a_running_process_is_heard_at_its_next_point)
{
	static hd_pid pid;

	for (int i = 0; i < WAITS; i++) {
		memset(&things, 0, sizeof things);
		CHECK((things.empty = things.full = hd_queue_new(sizeof(long), 1)) != NULL);
		trace_clear();
		hd_pid killer = born(hd_spawn_at(60, kill_when_released, &pid));
		hd_pid holder = killer;
		pid = born(hd_spawn(doom_self_and_call, (void *)&waits[i]));
		if (waits[i].call == wait_terminate || waits[i].why == HD_WAIT_GROUP || waits[i].why == HD_WAIT_CONDITION ||
		    waits[i].why == HD_WAIT_JOIN || waits[i].why == HD_WAIT_SELECT || waits[i].call == wait_any ||
		    waits[i].call == wait_all)
			things.holder = things.stubborn = holder;
		check_killed(pid, 9);
		CHECK_EQ(hd_join(killer, NULL, HD_FOREVER), 0);
		CHECK_STR(trace_text(), "doomed running cleanup ");
		hd_queue_drop(things.empty);
	}
}

static void *lock_held(void *arg)
{
	struct hd_cleanup cleanup;

	hd_cleanup_push(&cleanup, say_word, (void *)"cleanup");
	CHECK_EQ(hd_mutex_lock(&things.held, HD_FOREVER), 0);
	CHECK(!"it came back");
	return arg;
}

HD_PROCESS_TEST(terminate_ends_a_wait_for_a_mutex)
{
	make_things();
	hd_pid pid = born(hd_spawn_at(50, lock_held, NULL));
	CHECK_EQ(hd_cancel(pid), 0); /* that alone does not */
	CHECK_EQ(state_of(pid), HD_WAITING);
	CHECK_EQ(hd_terminate(pid, HD_FOREVER), 0);
	check_killed(pid, 0);
	CHECK_STR(trace_text(), "cleanup ");
	drop_things();
}

HD_PROCESS_TEST(terminate_of_a_suspended_process_ends_it)
{
	hd_pid waiting = born(hd_spawn_at(50, sleep_for_ever, NULL)), ready = born(hd_spawn(sleep_for_ever, NULL));

	CHECK_EQ(hd_suspend(waiting, HD_FOREVER), 0);
	CHECK_EQ(hd_terminate(waiting, HD_FOREVER), 0);
	check_killed(waiting, 0);
	hd_yield();
	CHECK_EQ(hd_suspend(ready, HD_FOREVER), 0);
	CHECK_EQ(hd_kill(ready, 3), 0);
	check_killed(ready, 3);
	CHECK_STR(trace_text(), "cleanup cleanup ");
}

static void *not_started(void *arg)
{
	CHECK(!"it was started");
	return arg;
}

HD_PROCESS_TEST(terminate_of_a_process_that_never_ran_does_not_start_it)
{
	hd_pid ready = born(hd_spawn(not_started, NULL)), low = born(hd_spawn_at(10, not_started, NULL));
	hd_pid suspended = born(hd_spawn_with(&(struct hd_spawn){ .suspended = true }, not_started, NULL));
	hd_pid movable = born(hd_spawn_with(&(struct hd_spawn){ .pinned = false }, not_started, NULL));

	CHECK_EQ(hd_kill(movable, 5), 0);
	CHECK_EQ(hd_terminate(ready, HD_FOREVER), 0);
	CHECK_EQ(hd_terminate(low, HD_FOREVER), 0);
	CHECK_EQ(hd_terminate(suspended, HD_FOREVER), 0);
	check_killed(ready, 0);
	check_killed(low, 0);
	check_killed(suspended, 0);
	check_killed(movable, 5);
	CHECK_EQ(stats_now().live_processes, 1);
}

static void *compute_disabled(void *arg)
{
	struct hd_cleanup cleanup;

	hd_cleanup_push(&cleanup, say_word, (void *)"cleanup");
	CHECK_EQ(hd_set_cancel_state(HD_CANCEL_DISABLED), 0);
	CHECK_EQ(hd_semaphore_wait(&things.release, HD_FOREVER), 0);
	trace("goes on ");
	CHECK_EQ(hd_sleep(1), 0);
	CHECK_EQ(hd_set_cancel_state(HD_CANCEL_ENABLED), HD_CANCEL_DISABLED);
	hd_test_cancel();
	CHECK(!"it came back");
	return arg;
}

HD_PROCESS_TEST(terminate_waits_for_a_process_that_has_disabled_it)
{
	hd_pid pid = born(hd_spawn_at(50, compute_disabled, NULL));

	CHECK_EQ(hd_terminate(pid, 0), -ETIMEDOUT);
	CHECK_EQ(hd_terminate(pid, hd_after(HD_MS(1))), -ETIMEDOUT);
	CHECK_EQ(state_of(pid), HD_WAITING);
	CHECK_EQ(hd_set_priority(hd_self(), 60), 0);
	CHECK_EQ(hd_semaphore_signal(&things.release), 0);
	CHECK_EQ(hd_terminate(pid, HD_FOREVER), 0);
	check_killed(pid, 0);
	CHECK_STR(trace_text(), "goes on cleanup ");
}

static void *return_disabled(void *arg)
{
	CHECK_EQ(hd_set_cancel_state(HD_CANCEL_DISABLED), 0);
	CHECK_EQ(hd_semaphore_wait(&things.release, HD_FOREVER), 0);
	return arg;
}

HD_PROCESS_TEST(terminate_of_one_that_returns_instead_is_the_same_to_the_terminator)
{
	hd_pid pid = born(hd_spawn_at(50, return_disabled, &pid));

	CHECK_EQ(hd_kill(pid, 7), 0);
	CHECK_EQ(hd_semaphore_signal(&things.release), 0);
	struct hd_end end = end_of(pid);
	CHECK_EQ(end.kind, HD_END_RETURNED);
	CHECK(end.result == &pid && end.err == 0);
}

static void *take_then_wait(void *arg)
{
	CHECK_EQ(hd_semaphore_wait(&things.none, HD_FOREVER), 0);
	trace("took ");
	hd_sleep(1);
	CHECK(!"it came back");
	return arg;
}

HD_PROCESS_TEST(terminate_that_comes_after_the_grant_is_heard_later)
{
	hd_pid pid = born(hd_spawn_at(50, take_then_wait, NULL));

	CHECK_EQ(hd_suspend(pid, HD_FOREVER), 0);
	CHECK_EQ(hd_semaphore_signal(&things.none), 0);
	CHECK_EQ(hd_terminate(pid, HD_FOREVER), 0);
	check_killed(pid, 0);
	CHECK_STR(trace_text(), "took ");
	CHECK(!hd_semaphore_is_signaled(&things.none));
}

/* ---- reasons ---- */

HD_PROCESS_TEST(kill_tells_the_first_reason)
{
	hd_pid pid = born(hd_spawn(sleep_for_ever, NULL)), negative = born(hd_spawn(sleep_for_ever, NULL));
	hd_pid both = born(hd_spawn_at(50, sleep_for_ever, NULL));

	CHECK_EQ(hd_kill(pid, 42), 0);
	CHECK_EQ(hd_kill(pid, 43), 0);
	CHECK_EQ(hd_kill(negative, -EIO), 0);
	CHECK_EQ(hd_set_priority(hd_self(), 60), 0);
	CHECK_EQ(hd_kill(both, 8), 0);
	CHECK_EQ(hd_terminate(both, HD_FOREVER), 0);
	check_killed(both, 8);
	check_killed(pid, 42);
	check_killed(negative, -EIO);
}

/* ---- the terminator ---- */

static void *terminate_stubborn(void *until)
{
	return (void *)(long)hd_terminate(things.stubborn, until != NULL ? *(hd_time *)until : HD_FOREVER);
}

static void *end_when_enabled(void *arg)
{
	CHECK_EQ(hd_set_cancel_state(HD_CANCEL_DISABLED), 0);
	CHECK_EQ(hd_semaphore_wait(&things.release, HD_FOREVER), 0);
	CHECK_EQ(hd_set_cancel_state(HD_CANCEL_ENABLED), HD_CANCEL_DISABLED);
	hd_sleep_until(HD_FOREVER);
	CHECK(!"it came back");
	return arg;
}

/* Whatever becomes of whoever asked, it will end. */
HD_PROCESS_TEST(terminate_is_not_lost_with_its_terminator)
{
	for (int how = 0; how < 3; how++) {
		hd_time soon = hd_after(HD_MS(1));
		void *answer;
		things.stubborn = born(hd_spawn_at(50, end_when_enabled, NULL));
		hd_pid terminator = born(hd_spawn_at(45, terminate_stubborn, how == 0 ? &soon : NULL));
		if (how == 1)
			CHECK_EQ(hd_cancel(terminator), 0);
		else if (how == 2)
			CHECK_EQ(hd_terminate(terminator, HD_FOREVER), 0);
		CHECK_EQ(hd_join(terminator, &answer, HD_FOREVER), 0);
		CHECK_EQ((long)answer, how == 0 ? -ETIMEDOUT : how == 1 ? -ECANCELED : 0);
		CHECK_EQ(state_of(things.stubborn), HD_WAITING);
		CHECK_EQ(hd_semaphore_signal(&things.release), 0);
		check_killed(things.stubborn, 0);
	}
}

HD_PROCESS_TEST(terminate_by_many_is_told_to_each)
{
	hd_pid terminators[3], joiner;
	void *answer;

	things.stubborn = things.holder = born(hd_spawn_at(50, end_when_enabled, NULL));
	joiner = born(hd_spawn_at(50, make_call, (void *)&(struct wait){ "", wait_join, HD_WAIT_JOIN }));
	for (int i = 0; i < 3; i++)
		terminators[i] = born(hd_spawn_at(50, terminate_stubborn, NULL));
	CHECK_EQ(info_of(terminators[2]).why, HD_WAIT_TERMINATE);
	CHECK_EQ(hd_semaphore_signal(&things.release), 0);
	for (int i = 0; i < 3; i++) {
		CHECK_EQ(hd_join(terminators[i], &answer, HD_FOREVER), 0);
		CHECK_EQ((long)answer, 0);
	}
	CHECK_EQ(hd_join(joiner, &answer, HD_FOREVER), 0);
	CHECK_EQ((long)answer, 0);
	CHECK(is_gone(things.stubborn));
}

/* Whoever may run before it, does: when it begins to clean up, when it yields and when it waits. */
static void clean_up_slowly(void *word)
{
	hd_yield();
	say_word(word);
	hd_sleep(HD_US(50));
	hd_yield();
	say_word(word);
}

static void *wait_to_say(void *word)
{
	struct hd_cleanup cleanup;

	hd_cleanup_push(&cleanup, clean_up_slowly, word);
	hd_sleep_until(HD_FOREVER);
	return NULL;
}

/* It has the worker whenever nobody better wants it, and does not let go by itself. */
static void *until_both_speak(void *word)
{
	while (strstr(trace_text(), "high high ") == NULL) {
		CHECK(strlen(trace_text()) < 1000);
		CHECK_EQ(hd_checkpoint(), 0);
		sched_yield();
	}
	return say(word);
}

HD_PROCESS_TEST(terminate_lends_its_priority_to_the_victim)
{
	hd_pid low = born(hd_spawn_at(20, wait_to_say, (void *)"low"));
	hd_pid high = born(hd_spawn_at(70, wait_to_say, (void *)"high"));

	while (state_of(low) != HD_WAITING)
		CHECK_EQ(hd_sleep(HD_MS(1)), 0);
	CHECK_EQ(hd_set_priority(hd_self(), 60), 0);
	spawn_word_at(55, until_both_speak, "middle ");
	CHECK_EQ(hd_terminate(low, HD_FOREVER), 0);
	CHECK_EQ(hd_terminate(high, HD_FOREVER), 0);
	check_killed(low, 0);
	check_killed(high, 0);
	CHECK_EQ(hd_set_priority(hd_self(), 40), 0);
	CHECK_STR(trace_text(), "low low high high middle ");
}

/* ---- two at a time ---- */

static void *terminate_it(void *pid)
{
	return (void *)(long)hd_terminate(*(hd_pid *)pid, HD_FOREVER);
}

HD_PROCESS_TEST(terminate_of_a_joiner_leaves_its_target_to_others)
{
	hd_pid target = born(hd_spawn_at(50, return_disabled, &target));
	void *result;

	things.holder = target;
	hd_pid joiner = born(hd_spawn_at(50, make_call, (void *)&(struct wait){ "", wait_join, HD_WAIT_JOIN }));
	CHECK_EQ(hd_join(target, NULL, HD_FOREVER), -EBUSY);
	CHECK_EQ(hd_terminate(joiner, HD_FOREVER), 0);
	check_killed(joiner, 0);
	CHECK_EQ(hd_join(target, NULL, hd_after(HD_MS(1))), -ETIMEDOUT);
	CHECK_EQ(hd_semaphore_signal(&things.release), 0);
	CHECK_EQ(hd_join(target, &result, HD_FOREVER), 0);
	CHECK(result == &target);
}

/* Each wants the other's end: both end. */
HD_WORKERS_TEST(terminate_of_each_other_ends_both)
{
	static hd_pid pids[2];

	(void)workers;
	for (int round = 0; another_round(round, many(500)); round++) {
		struct hd_spawn how = { .suspended = true, .pinned = round % 2 == 0 };
		pids[0] = born(hd_spawn_with(&how, terminate_it, &pids[1]));
		pids[1] = born(hd_spawn_with(&how, terminate_it, &pids[0]));
		hd_resume(pids[0]);
		hd_resume(pids[1]); /* it may be dead already */
		int killed = 0;
		for (int i = 0; i < 2; i++)
			killed += end_of(pids[i]).kind == HD_END_KILLED;
		CHECK(killed >= 1);
	}
}

/* ---- from elsewhere ---- */

#define VICTIMS 6

static hd_pid victims[VICTIMS];
static struct hd_semaphore sem;
static struct hd_mutex mutex;
static hd_queue *queue;
static long begun, cleaned, balance;
static int inside;

static void count_cleaned(void *arg)
{
	(void)arg;
	add(&cleaned, 1);
}

static void unlock(void *m)
{
	CHECK_EQ(__atomic_exchange_n(&inside, 0, __ATOMIC_RELAXED), 1);
	CHECK_EQ(hd_mutex_unlock(m), 0);
}

static void give_back(void *s)
{
	CHECK_EQ(hd_semaphore_signal(s), 0);
}

static void hold_shortly(void *arg)
{
	hd_sleep(HD_US((long)arg % 8));
}

/* A bit of everything, with a cleanup for all that it has. */
static void *live(void *arg)
{
	unsigned seed = (unsigned)(long)arg;
	struct hd_cleanup cleanup, inner;
	long item = 1;

	add(&begun, 1);
	hd_cleanup_push(&cleanup, count_cleaned, NULL);
	for (;;)
		switch (next_random(&seed) % 6) {
		case 0:
			if (hd_mutex_lock(&mutex, hd_after(HD_US(100))) != 0)
				break;
			hd_cleanup_push(&inner, unlock, &mutex);
			CHECK_EQ(__atomic_exchange_n(&inside, 1, __ATOMIC_RELAXED), 0);
			hd_sleep(HD_US(next_random(&seed) % 8));
			hd_cleanup_pop(&inner, true);
			break;
		case 1:
			CHECK_EQ(hd_semaphore_critical(&sem, hold_shortly, (void *)(long)next_random(&seed), HD_FOREVER), 0);
			break;
		case 2:
			if (hd_semaphore_wait(&sem, HD_FOREVER) == 0) {
				hd_cleanup_push(&inner, give_back, &sem);
				hd_yield();
				hd_sleep(1);
				hd_cleanup_pop(&inner, true);
			}
			break;
		case 3:
			add(&balance, hd_queue_put(queue, &item, hd_after(HD_US(20))) == 0);
			break;
		case 4:
			add(&balance, -(hd_queue_next(queue, &item, hd_after(HD_US(20))) == 0));
			break;
		default:
			hd_sleep(HD_US(next_random(&seed) % 10));
		}
	return NULL;
}

static void *kill_some(void *arg)
{
	for (long i = (long)arg; i < VICTIMS; i += 2) {
		int err = i % 3 ? hd_terminate(victims[i], HD_FOREVER) : hd_kill(victims[i], (int)i + 1);
		CHECK(err == 0 || err == -ESRCH);
	}
	return NULL;
}

static void terminate_round(int round, unsigned *seed)
{
	begun = cleaned = balance = inside = 0;
	hd_semaphore_init(&sem, 2);
	hd_mutex_init(&mutex, round % 3 == 2 ? HD_INHERIT : 0);
	queue = hd_queue_new(sizeof(long), 2);
	for (int i = 0; i < VICTIMS; i++)
		victims[i] = born(
			hd_spawn_with(&(struct hd_spawn){ .pinned = round % 2 == 0, .suspended = i == 5 && round % 4 == 0 },
				      live, (void *)(long)(round * VICTIMS + i)));
	hd_sleep(HD_US(next_random(seed) % 200));
	hd_pid killers[] = { born(hd_spawn(kill_some, (void *)0L)), born(hd_spawn(kill_some, (void *)0L)) };
	struct plain_thread *thread = start_thread(kill_some, (void *)1L);
	join_all(killers, 2);
	join_thread(thread);
	for (int i = 0; i < VICTIMS; i++)
		check_killed(victims[i], i % 3 ? 0 : i + 1);
	CHECK_EQ(cleaned, begun); /* who never ran has nothing to clean up */
	CHECK_EQ(sem.excess, 2);
	CHECK(sem.waiters.head == NULL && mutex.waiters.head == NULL);
	CHECK_EQ(hd_mutex_try_lock(&mutex), 0);
	CHECK_EQ(hd_mutex_unlock(&mutex), 0);
	CHECK_EQ(balance, hd_queue_length(queue));
	hd_queue_drop(queue);
}

HD_WORKERS_TEST(terminate_from_elsewhere_loses_nothing)
{
	unsigned seed = 5;

	(void)workers;
	for (int round = 0; another_round(round, many(100)); round++)
		terminate_round(round, &seed);
}

HD_WORKERS_STRESS(terminate_of_thousands_from_elsewhere_loses_nothing)
{
	unsigned seed = 5;

	(void)workers;
	under_stress = true;
	for (int round = 0; another_round(round, many(3000)); round++)
		terminate_round(round, &seed);
}

/* It ends by itself in the same moment: then it was nobody, or is dead, but never both or neither. */
static void *end_shortly(void *arg)
{
	if ((long)arg % 2)
		hd_sleep(HD_US((long)arg % 5));
	return arg;
}

HD_WORKERS_TEST(terminate_of_one_that_ends_meanwhile)
{
	(void)workers;
	for (long i = 0; another_round((int)i, many(3000)); i++) {
		hd_pid pid = born(hd_spawn_with(&(struct hd_spawn){ .pinned = !(i % 3 == 0) }, end_shortly, (void *)i));
		if (i % 4)
			hd_yield();
		int err = hd_terminate(pid, HD_FOREVER);
		CHECK(err == 0 || err == -ESRCH);
		CHECK_EQ(state_of(pid), HD_ENDED);
		struct hd_end end = end_of(pid);
		CHECK(end.kind == HD_END_RETURNED || (end.kind == HD_END_KILLED && err == 0));
	}
}

static void terminate_on_thread(void *pid)
{
	CHECK_EQ(hd_terminate(*(hd_pid *)pid, HD_FOREVER), 0);
	CHECK_EQ(hd_terminate(*(hd_pid *)pid, HD_FOREVER), -ESRCH);
}

HD_PROCESS_TEST(terminate_from_a_plain_thread)
{
	hd_pid pid = born(hd_spawn_at(50, sleep_for_ever, NULL));

	on_plain_thread(terminate_on_thread, &pid);
	check_killed(pid, 0);
}

/* ---- what it has for others' sake ---- */

static struct hd_mutex lent = HD_MUTEX(HD_INHERIT);
static struct hd_semaphore may_unlock;
static int with_waiter, without;

static int level(void)
{
	return hd__self()->current->priority;
}

static void *serve_though_doomed(void *arg)
{
	hd_set_cancel_state(HD_CANCEL_DISABLED);
	CHECK_EQ(hd_mutex_lock(&lent, HD_FOREVER), 0);
	CHECK_EQ(hd_semaphore_wait(&may_unlock, HD_FOREVER), 0);
	with_waiter = level();
	CHECK_EQ(hd_mutex_unlock(&lent), 0);
	without = level();
	return arg;
}

static void *want_it(void *arg)
{
	CHECK_EQ(hd_mutex_lock(&lent, HD_FOREVER), 0);
	CHECK_EQ(hd_mutex_unlock(&lent), 0);
	return arg;
}

HD_PROCESS_TEST(terminate_lends_the_terminators_priority_and_keeps_no_others)
{
	hd_pid victim = born(hd_spawn_at(50, serve_though_doomed, NULL));

	CHECK_EQ(hd_set_priority(victim, 30), 0);
	hd_pid waiter = born(hd_spawn_at(70, want_it, NULL));
	CHECK_EQ(hd_kill(victim, 5), 0);
	CHECK_EQ(hd_semaphore_signal(&may_unlock), 0);
	CHECK_EQ(hd_join(waiter, NULL, HD_FOREVER), 0);
	CHECK_EQ(hd_join(victim, NULL, HD_FOREVER), 0);
	CHECK_EQ(with_waiter, 70);
	CHECK_EQ(without, 40);
}
