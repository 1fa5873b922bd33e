/* sync/findings.c - interleavings that went wrong once. Most of them need the simulated runtime to happen. */
#include "life/life.h"
#include "sync/common.h"

static struct hd_process *block_of(hd_pid pid)
{
	return hd__table_find(&hd__self()->sched->table, pid);
}

HD_AS_RUNTIME static uint64_t control_of(struct hd_process *p)
{
	hd__waitq_lock(&p->news);
	uint64_t control = ld_acq(&p->control);
	hd__waitq_unlock(&p->news);
	return control;
}

/* What is asked of a process is done on its worker, with its news locked. Returns its control word when nothing is left to do. */
static uint64_t await_settled(struct hd_process *p)
{
	for (;;) {
		uint64_t control = control_of(p);
		if ((control & (HD__REBOOST | HD__NUDGED)) == 0)
			return control;
		CHECK_EQ(hd_sleep(HD_US(50)), 0);
	}
}

static void *do_nothing(void *arg)
{
	return arg;
}

/* ---- a barrier counted who had left it ---- */

static struct hd_barrier barrier;
static long at_barrier, passed;

/* Comes at the same time as the other one, and leaves at about the time when that comes. */
static void *meet_for_a_moment(void *ns)
{
	add(&at_barrier, 1);
	while (value_of(&at_barrier) % 2 != 0)
		sched_yield();
	int answer = hd_barrier_wait(&barrier, hd_after((long)ns));
	if (answer >= 0)
		add(&passed, 1);
	else
		CHECK_EQ(answer, -ETIMEDOUT);
	return NULL;
}

static void *two_meet_for_a_moment(void *arg)
{
	struct crew crew;

	for (int i = 0; i < 3; i++) {
		hd_barrier_init(&barrier, 2);
		set(&passed, 0);
		start_crew(&crew, NULL, 2, meet_for_a_moment, (void *[]){ (void *)HD_US(2), (void *)HD_US(3) });
		join_crew_members(&crew);
		CHECK_EQ(barrier.arrived, 0);
		CHECK(passed == 0 || passed == 2);
	}
	return arg;
}

HD_TEST(barrier_does_not_count_who_has_left)
{
	CHECK_EQ(run_with_workers(2, two_meet_for_a_moment, NULL), 0);
}

static void *try_to_meet(void *arg)
{
	for (int i = 0; i < 20; i++) {
		int answer = hd_barrier_wait(&barrier, 0);
		CHECK(answer == -ETIMEDOUT || answer == 1 || answer == 0);
	}
	return arg;
}

static void *two_try_to_meet(void *arg)
{
	struct crew crew;

	hd_barrier_init(&barrier, 2);
	start_crew(&crew, NULL, 2, try_to_meet, NULL);
	join_crew_members(&crew);
	CHECK_EQ(barrier.arrived, 0);
	return arg;
}

HD_TEST(barrier_try_leaves_no_trace)
{
	CHECK_EQ(run_with_workers(2, two_try_to_meet, NULL), 0);
}

/* ---- the end waited for one that was signalled, and whose mutex nobody would unlock ---- */

static struct hd_monitor monitor;

static void *wait_in_monitor(void *arg)
{
	CHECK_EQ(hd_monitor_enter(&monitor, HD_FOREVER), 0);
	CHECK_EQ(hd_monitor_wait(&monitor, NULL, HD_FOREVER), 0);
	CHECK(!"it came back");
	return arg;
}

/* Ends inside: what it has stays locked. */
static void *signal_and_stay(void *arg)
{
	CHECK_EQ(hd_monitor_enter(&monitor, HD_FOREVER), 0);
	CHECK_EQ(hd_monitor_signal(&monitor, NULL), 0);
	hd_sleep_until(HD_FOREVER);
	CHECK(!"it came back");
	return arg;
}

static void *shut_down_when_it_waits_to_reenter(void *arg)
{
	spawned(hd_spawn(wait_in_monitor, NULL));
	await_queued(&monitor.changed.waiters, 1);
	spawned(hd_spawn(signal_and_stay, NULL));
	await_queued(&monitor.mutex.waiters, 1);
	CHECK_EQ(hd_shutdown(3), 0);
	return arg;
}

HD_TEST(runtime_ends_though_somebody_signalled_waits_for_a_mutex_of_nobody)
{
	CHECK_EQ(run_with_workers(1, shut_down_when_it_waits_to_reenter, NULL), 3);
}

/* ---- an heir ran before it had the boost of those who went on waiting ---- */

static struct hd_mutex inheriting = HD_MUTEX(HD_INHERIT);

static void *lock_and_say(void *word)
{
	CHECK_EQ(hd_mutex_lock(&inheriting, HD_FOREVER), 0);
	trace("%s ", (const char *)word);
	CHECK_EQ(hd_mutex_unlock(&inheriting), 0);
	return NULL;
}

HD_PROCESS_TEST(inherit_heir_has_its_boost_before_it_runs)
{
	hd_pid pids[3];

	CHECK_EQ(hd_mutex_lock(&inheriting, HD_FOREVER), 0);
	pids[0] = spawned(hd_spawn_at(30, lock_and_say, (void *)"low"));
	await_queued(&inheriting.waiters, 1);
	pids[1] = spawned(hd_spawn_at(60, lock_and_say, (void *)"high"));
	await_queued(&inheriting.waiters, 2);
	CHECK_EQ(hd_set_priority(hd_self(), 55), 0);
	pids[2] = spawned(hd_spawn_at(50, say_word, (void *)"middle"));
	CHECK_EQ(hd_mutex_unlock(&inheriting), 0); /* low has it, and high wants it */
	for (int i = 0; i < 3; i++)
		CHECK_EQ(hd_join(pids[i], NULL, HD_FOREVER), 0);
	CHECK_STR(trace_text(), "low high middle ");
}

/* ---- who lost a boost by giving up a mutex to wait could be stopped where it may not be ---- */

static struct hd_condition condition;
static struct crew crew;

static void *wait_for_moments(void *arg)
{
	CHECK_EQ(hd_mutex_lock(&inheriting, HD_FOREVER), 0);
	for (int i = 0; i < 3; i++)
		CHECK_EQ(hd_condition_wait(&condition, &inheriting, hd_after(HD_US(20))), -ETIMEDOUT);
	CHECK_EQ(hd_mutex_unlock(&inheriting), 0);
	return arg;
}

/* The other one may have ended. */
static void *suspend_and_resume_it(void *arg)
{
	for (int i = 0; i < 4; i++) {
		ANY_ANSWER(hd_suspend(crew.members[0].pid, 0));
		hd_resume(crew.members[0].pid);
	}
	return arg;
}

static void *wait_or_suspend(void *suspends)
{
	return suspends == NULL ? wait_for_moments(NULL) : suspend_and_resume_it(suspends);
}

static void *suspend_it_as_it_waits(void *arg)
{
	start_crew(&crew, NULL, 2, wait_or_suspend, (void *[]){ NULL, &crew });
	join_crew_members(&crew);
	CHECK_EQ(inheriting.owner, 0);
	CHECK_EQ(queued(&condition.waiters), 0);
	return arg;
}

HD_TEST(condition_wait_may_be_suspended_as_it_gives_up_the_mutex)
{
	CHECK_EQ(run_with_workers(2, suspend_it_as_it_waits, NULL), 0);
}

/* ---- a boost that was asked for while another was being found was lost ---- */

enum { RIVALS = 3 };

static struct hd_semaphore enough;

static void *own_until_enough(void)
{
	CHECK_EQ(hd_mutex_lock(&inheriting, HD_FOREVER), 0);
	CHECK_EQ(hd_semaphore_wait(&enough, HD_FOREVER), 0);
	CHECK_EQ(hd_mutex_unlock(&inheriting), 0);
	return NULL;
}

/* Those who want it start all at once, each with another priority. */
static void *own_or_want(void *priority)
{
	if (priority == NULL)
		return own_until_enough();
	CHECK_EQ(hd_set_priority(hd_self(), (int)(long)priority), 0);
	while (ld_acq(&inheriting.owner) == 0)
		sched_yield();
	CHECK_EQ(hd_mutex_lock(&inheriting, HD_FOREVER), 0);
	CHECK_EQ(hd_mutex_unlock(&inheriting), 0);
	return NULL;
}

static void *ask_for_a_boost_at_once(void *arg)
{
	start_crew(&crew, NULL, 1 + RIVALS, own_or_want, (void *[]){ NULL, (void *)51L, (void *)52L, (void *)53L });
	await_queued(&inheriting.waiters, RIVALS);
	struct hd_process *owner = block_of(crew.members[0].pid);
	CHECK_EQ(HD__CONTROL_BOOST(await_settled(owner)), 53);
	CHECK_EQ(ld_rlx(&owner->priority), 53);
	CHECK_EQ(hd_semaphore_signal(&enough), 0);
	join_crew_members(&crew);
	return arg;
}

HD_TEST(inherit_boost_is_found_as_often_as_asked)
{
	CHECK_EQ(run_with_workers(1 + RIVALS, ask_for_a_boost_at_once, NULL), 0);
}

/* ---- a priority that was set while another was being obeyed was lost ---- */

static void *wait_or_set_priority(void *priority)
{
	if (priority == NULL) {
		CHECK_EQ(hd_semaphore_wait(&enough, HD_FOREVER), 0);
		return NULL;
	}
	CHECK_EQ(hd_set_priority(crew.members[0].pid, (int)(long)priority), 0);
	CHECK_EQ(hd_set_priority(crew.members[0].pid, (int)(long)priority + 1), 0);
	return NULL;
}

static void *set_its_priority_at_once(void *arg)
{
	struct hd_spawn how = { .pinned = false };

	start_crew(&crew, &how, 3, wait_or_set_priority, (void *[]){ NULL, (void *)30L, (void *)20L });
	hd_pid pid = crew.members[0].pid;
	for (int i = 1; i < 3; i++)
		CHECK_EQ(hd_join(crew.members[i].pid, NULL, HD_FOREVER), 0);
	await_queued(&enough.waiters, 1);
	await_settled(block_of(pid));
	CHECK_EQ(ld_rlx(&block_of(pid)->priority), hd_priority(pid));
	CHECK_EQ(hd_semaphore_signal(&enough), 0);
	CHECK_EQ(hd_join(pid, NULL, HD_FOREVER), 0);
	return arg;
}

HD_TEST(priority_of_a_waiting_movable_process_is_the_last_one_set)
{
	CHECK_EQ(run_with_workers(4, set_its_priority_at_once, NULL), 0);
}

/* ---- a group was cancelled while its owner was terminated, and some members were only cancelled ---- */

static struct hd_mutex taken;
static struct hd_group group;
static struct hd_semaphore is_open, is_full, may_fail;

/* Does not hear a cancel: only one who is terminated leaves this wait. */
static void *want_what_is_taken(void *arg)
{
	CHECK_EQ(hd_mutex_lock(&taken, HD_FOREVER), 0);
	CHECK(!"it came back");
	return arg;
}

static void *fail_when_it_may(void *arg)
{
	ANY_ANSWER(hd_semaphore_wait(&may_fail, HD_FOREVER));
	hd_fail(5);
	return arg;
}

static void *open_group_and_wait(void)
{
	spawned(hd_group_spawn(&group, fail_when_it_may, NULL));
	CHECK_EQ(hd_semaphore_signal(&is_open), 0);
	CHECK_EQ(hd_group_wait(&group, HD_FOREVER), 0);
	CHECK(!"it came back");
	return NULL;
}

/* More members, on this worker; then one fails and all are cancelled, at the time when the owner is terminated. */
static void *fill_group_and_cancel(void)
{
	CHECK_EQ(hd_semaphore_wait(&is_open, HD_FOREVER), 0);
	for (int i = 0; i < 6; i++)
		ANY_ANSWER(hd_group_spawn(&group, want_what_is_taken, NULL));
	CHECK_EQ(hd_semaphore_signal(&is_full), 0);
	CHECK_EQ(hd_semaphore_signal(&may_fail), 0);
	CHECK_EQ(hd_group_cancel(&group), 0);
	return NULL;
}

static void *own_or_fill_group(void *fills)
{
	return fills == NULL ? open_group_and_wait() : fill_group_and_cancel();
}

static void terminate_the_owner(void)
{
	group = (struct hd_group){ .owner = 0 };
	hd_semaphore_init(&may_fail, 0); /* who was terminated first has not taken it */
	start_crew(&crew, NULL, 2, own_or_fill_group, (void *[]){ NULL, &crew });
	CHECK_EQ(hd_semaphore_wait(&is_full, HD_FOREVER), 0);
	CHECK_EQ(hd_terminate(crew.members[0].pid, HD_FOREVER), 0);
	CHECK_EQ(end_of(crew.members[0].pid).kind, HD_END_KILLED);
	CHECK_EQ(end_of(crew.members[1].pid).kind, HD_END_RETURNED);
}

static void *terminate_owners(void *arg)
{
	CHECK_EQ(hd_mutex_lock(&taken, HD_FOREVER), 0);
	for (int i = 0; i < 20; i++)
		terminate_the_owner();
	return arg;
}

HD_TEST(group_of_a_terminated_owner_is_terminated_though_others_cancel_it)
{
	CHECK_EQ(run_with_workers(2, terminate_owners, NULL), 0);
}

/* ---- a group was opened by a spawn that failed, and its owner could not return ---- */

HD_PROCESS_TEST(group_that_nobody_could_be_spawned_into_is_not_open)
{
	struct hd_group empty = { .owner = 0 };

	CHECK_EQ(hd_group_cancel(&empty), 0);
	CHECK_EQ(hd_group_spawn(&empty, do_nothing, NULL), -ECANCELED);
}

/* ---- a group was forgotten whose owner had popped a cleanup since ---- */

static struct hd_semaphore one = HD_SEMAPHORE(1);
static long members;

static void leave(void *count)
{
	add(count, -1);
}

static void *sleep_for_ever(void *arg)
{
	struct hd_cleanup cleanup;

	add(&members, 1);
	CHECK_EQ(hd_cleanup_push(&cleanup, leave, &members), 0);
	hd_sleep_until(HD_FOREVER);
	CHECK(!"it came back");
	return arg;
}

static void open_group(void *arg)
{
	(void)arg;
	spawned(hd_group_spawn(&group, sleep_for_ever, NULL));
}

/* hd_semaphore_critical pushes a cleanup, and pops it when the group is open. */
static void *open_group_under_a_cleanup(void *arg)
{
	CHECK_EQ(hd_semaphore_critical(&one, open_group, NULL, HD_FOREVER), 0);
	hd_sleep_until(HD_FOREVER);
	CHECK(!"it came back");
	return arg;
}

HD_PROCESS_TEST(group_may_outlive_a_cleanup_pushed_before_it)
{
	hd_pid pid = spawned(hd_spawn(open_group_under_a_cleanup, NULL));

	while (value_of(&members) == 0)
		CHECK_EQ(hd_sleep(HD_US(50)), 0);
	CHECK_EQ(hd_terminate(pid, HD_FOREVER), 0);
	CHECK_EQ(value_of(&members), 0);
}
