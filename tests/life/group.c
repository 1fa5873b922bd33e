/* life/group.c - members of a group end before it does, however it ends. */
#include <errno.h>
#include <string.h>

#include "life/common.h"
#include "os/fault.h"
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

static void say_word(void *word)
{
	trace("%s ", (const char *)word);
}

static struct hd_semaphore never, go;

/* Members. */

static void *say_it(void *word)
{
	hd_yield();
	say_word(word);
	return NULL;
}

static void *wait_and_tell(void *word)
{
	int err = hd_semaphore_wait(&never, HD_FOREVER);

	trace("%s:%d ", (const char *)word, err);
	return NULL;
}

static void *clean_up_slowly(void *word)
{
	struct hd_cleanup cleanup;

	hd_cleanup_push(&cleanup, say_word, word);
	hd_sleep_until(HD_FOREVER);
	hd_cleanup_pop(&cleanup, true);
	return NULL;
}

static void *fail_at_go(void *err)
{
	CHECK_EQ(hd_semaphore_wait(&go, HD_FOREVER), 0);
	hd_fail((int)(long)err);
	return NULL;
}

static void *ignore_cancels(void *word)
{
	struct hd_cleanup cleanup;

	hd_cleanup_push(&cleanup, say_word, word);
	for (;;) {
		if (hd_semaphore_wait(&never, HD_FOREVER) == -ECANCELED)
			hd_cancel_clear();
	}
	return NULL;
}

static void member(struct hd_group *g, hd_entry entry, const char *word)
{
	born(hd_group_spawn(g, entry, (void *)word));
}

/* ---- answers ---- */

static void check_plain(void *g)
{
	CHECK_EQ(hd_group_spawn(g, nothing, NULL), -ENOTSUP);
	CHECK_EQ(hd_group_wait(g, 0), -ENOTSUP);
}

HD_TEST(group_needs_a_runtime)
{
	struct hd_group g;

	memset(&g, 0, sizeof g);
	check_plain(&g);
	CHECK_EQ(hd_group_cancel(&g), -ENXIO);
}

HD_PROCESS_TEST(group_is_not_for_plain_threads)
{
	struct hd_group g = { .count = 0 };

	member(&g, wait_and_tell, "a");
	on_plain_thread(check_plain, &g);
	CHECK_EQ(hd_semaphore_signal(&never), 0);
	CHECK_EQ(hd_group_wait(&g, HD_FOREVER), 0);
}

HD_PROCESS_TEST(group_waits_for_all_members)
{
	struct hd_group g = { .count = 0 };

	CHECK_EQ(hd_group_wait(&g, HD_FOREVER), 0); /* nobody is in it */
	CHECK_EQ(hd_group_wait(&g, 0), 0);
	for (int round = 0; round < 2; round++) { /* it is as new afterwards */
		trace_clear();
		member(&g, say_it, "a");
		member(&g, say_it, "b");
		hd_pid c = born(hd_group_spawn(&g, say_it, (void *)"c"));
		CHECK_EQ(hd_join(c, NULL, HD_FOREVER), -EINVAL); /* it is detached */
		CHECK_EQ(hd_group_wait(&g, HD_FOREVER), 0);
		CHECK_STR(trace_text(), "a b c ");
		CHECK(is_gone(c));
		CHECK_EQ(g.owner, 0);
	}
	member(&g, nothing, NULL);
	hd_sleep(HD_MS(1));
	CHECK_EQ(hd_group_wait(&g, 0), 0); /* all have ended: a mere try succeeds */
}

HD_PROCESS_TEST(group_spawn_answers_as_hd_spawn)
{
	struct hd_group g = { .count = 0 };
	struct hd_spawn how = { .group = &g, .priority = 50, .name = "me", .daemon = true };

	CHECK_EQ(hd_group_spawn(&g, NULL, NULL), -EINVAL);
	CHECK_EQ(hd_spawn_with(&(struct hd_spawn){ .group = &g, .priority = 5 }, nothing, NULL), -EINVAL);
	hd_pid pid = born(hd_spawn_with(&how, wait_and_tell, (void *)"a"));
	CHECK_STR(info_of(pid).name, "me");
	CHECK_EQ(info_of(pid).priority, 50);
	CHECK(info_of(pid).detached && info_of(pid).daemon);
	how.suspended = true;
	pid = born(hd_spawn_with(&how, say_it, (void *)"b"));
	CHECK_EQ(state_of(pid), HD_SUSPENDED);
	CHECK_EQ(hd_resume(pid), 0);
	CHECK_EQ(hd_semaphore_signal(&never), 0);
	CHECK_EQ(hd_group_wait(&g, HD_FOREVER), 0);
	CHECK_STR(trace_text(), "b a:0 ");
}

static void *wait_for_anothers(void *g)
{
	return (void *)(long)hd_group_wait(g, HD_FOREVER);
}

HD_PROCESS_TEST(group_is_waited_for_by_its_owner)
{
	struct hd_group g = { .count = 0 };
	void *answer;

	member(&g, wait_and_tell, "a");
	hd_pid other = born(hd_spawn_at(50, wait_for_anothers, &g));
	CHECK_EQ(hd_join(other, &answer, HD_FOREVER), 0);
	CHECK_EQ((long)answer, -EPERM);
	born(hd_spawn_with(&(struct hd_spawn){ .group = &g, .priority = 50 }, wait_for_anothers, &g)); /* nor by a member */
	CHECK_EQ(hd_semaphore_signal(&never), 0);
	CHECK_EQ(hd_group_wait(&g, HD_FOREVER), 0);
}

/* ---- failure ---- */

HD_PROCESS_TEST(group_first_failure_cancels_the_rest_and_is_the_answer)
{
	struct hd_group g = { .count = 0 };

	member(&g, wait_and_tell, "a");
	born(hd_group_spawn(&g, fail_at_go, (void *)(long)EIO));
	born(hd_group_spawn(&g, fail_at_go, (void *)(long)ENOENT));
	member(&g, wait_and_tell, "b");
	hd_yield();
	CHECK_EQ(hd_semaphore_signal(&go), 0);
	CHECK_EQ(hd_semaphore_signal(&go), 0);
	CHECK_EQ(hd_group_wait(&g, HD_FOREVER), -EIO);
	CHECK(strstr(trace_text(), "a:-125 ") != NULL);
	CHECK(strstr(trace_text(), "b:-125 ") != NULL);
	CHECK(never.waiters.head == NULL);
	member(&g, say_it, "c"); /* as new */
	CHECK_EQ(hd_group_wait(&g, HD_FOREVER), 0);
}

HD_PROCESS_TEST(group_that_has_failed_lets_nobody_in)
{
	struct hd_group g = { .count = 0 };

	born(hd_spawn_with(&(struct hd_spawn){ .group = &g, .priority = 50 }, fail_at_go, (void *)(long)EIO));
	CHECK_EQ(hd_semaphore_signal(&go), 0);
	CHECK_EQ(hd_group_spawn(&g, nothing, NULL), -ECANCELED);
	CHECK_EQ(hd_group_wait(&g, HD_FOREVER), -EIO);
	CHECK_EQ(hd_group_wait(&g, HD_FOREVER), 0);
	member(&g, nothing, NULL);
	CHECK_EQ(hd_group_wait(&g, HD_FOREVER), 0);
}

HD_PROCESS_TEST(group_goes_on_when_a_member_is_killed_or_returns_an_error)
{
	struct hd_group g = { .count = 0 };
	hd_pid pid = born(hd_spawn_with(&(struct hd_spawn){ .group = &g, .priority = 50 }, clean_up_slowly, (void *)"killed"));

	member(&g, say_it, "a");
	CHECK_EQ(hd_kill(pid, EIO), 0);
	born(hd_group_spawn(&g, nothing, &g));
	CHECK_EQ(hd_group_wait(&g, HD_FOREVER), 0);
	CHECK_STR(trace_text(), "killed a ");
}

/* ---- cancel, time ---- */

HD_PROCESS_TEST(group_cancel_stops_members_and_lets_nobody_in)
{
	struct hd_group g = { .count = 0 };

	member(&g, wait_and_tell, "a");
	member(&g, wait_and_tell, "b");
	hd_yield();
	CHECK_EQ(hd_group_cancel(&g), 0);
	CHECK_EQ(hd_group_cancel(&g), 0);
	CHECK_EQ(hd_group_spawn(&g, nothing, NULL), -ECANCELED);
	CHECK_EQ(hd_group_wait(&g, HD_FOREVER), 0); /* nobody failed */
	CHECK(strstr(trace_text(), "a:-125 ") != NULL && strstr(trace_text(), "b:-125 ") != NULL);
}

static void cancel_on_thread(void *g)
{
	CHECK_EQ(hd_group_cancel(g), 0);
}

static void *cancel_own(void *g)
{
	CHECK_EQ(hd_group_cancel(g), 0);
	trace("%d ", hd_test_cancel()); /* it is a member too */
	return NULL;
}

HD_PROCESS_TEST(group_is_cancelled_by_a_member_or_a_plain_thread)
{
	struct hd_group g = { .count = 0 };

	member(&g, wait_and_tell, "a");
	born(hd_group_spawn(&g, cancel_own, &g));
	CHECK_EQ(hd_group_wait(&g, HD_FOREVER), 0);
	member(&g, wait_and_tell, "b");
	on_plain_thread(cancel_on_thread, &g);
	CHECK_EQ(hd_group_wait(&g, HD_FOREVER), 0);
	CHECK_STR(trace_text(), "-125 a:-125 b:-125 ");
}

HD_PROCESS_TEST(group_deadline_cancels_and_waits)
{
	struct hd_group g = { .count = 0 };
	hd_time until = hd_after(HD_MS(2));

	member(&g, wait_and_tell, "a");
	CHECK_EQ(hd_group_wait(&g, until), -ETIMEDOUT);
	CHECK(hd_now() >= until);
	member(&g, wait_and_tell, "b");
	hd_yield();
	CHECK_EQ(hd_group_wait(&g, 0), -ETIMEDOUT); /* also a mere try */
	CHECK_STR(trace_text(), "a:-125 b:-125 ");
	CHECK_EQ(g.owner, 0);
}

/* ---- nesting, spawning from inside ---- */

static void *owner_of_two(void *word)
{
	struct hd_group g = { .count = 0 };

	member(&g, wait_and_tell, "x");
	member(&g, wait_and_tell, "y");
	int err = hd_group_wait(&g, HD_FOREVER);
	trace("%s:%d ", (const char *)word, err);
	return NULL;
}

HD_PROCESS_TEST(group_in_a_group_is_cancelled_with_it)
{
	struct hd_group g = { .count = 0 };

	member(&g, owner_of_two, "owner");
	hd_sleep(HD_MS(1));
	CHECK_EQ(hd_group_cancel(&g), 0);
	CHECK_EQ(hd_group_wait(&g, HD_FOREVER), 0);
	CHECK(strcmp(trace_text(), "x:-125 y:-125 owner:-125 ") == 0 || strcmp(trace_text(), "y:-125 x:-125 owner:-125 ") == 0);
}

HD_PROCESS_TEST(group_owner_may_have_several_and_closes_the_last_first)
{
	struct hd_group outer = { .count = 0 }, inner = { .count = 0 };

	member(&outer, wait_and_tell, "outer");
	member(&inner, say_it, "inner");
	CHECK_EQ(hd_group_wait(&inner, HD_FOREVER), 0);
	member(&inner, say_it, "again");
	CHECK_EQ(hd_group_wait(&inner, HD_FOREVER), 0);
	CHECK_EQ(hd_semaphore_signal(&never), 0);
	CHECK_EQ(hd_group_wait(&outer, HD_FOREVER), 0);
	CHECK_STR(trace_text(), "inner again outer:0 ");
}

struct brood {
	struct hd_group *group;
	long left;
};

static void *breed(void *arg)
{
	struct brood *brood = arg;

	if (add(&brood->left, -1) >= 0) {
		born(hd_group_spawn(brood->group, breed, brood));
		hd_yield();
	}
	return NULL;
}

HD_PROCESS_TEST(group_waits_for_members_that_members_spawn)
{
	struct hd_group g = { .count = 0 };
	struct brood brood = { &g, 20 };

	born(hd_group_spawn(&g, breed, &brood));
	born(hd_group_spawn(&g, breed, &brood));
	CHECK_EQ(hd_group_wait(&g, HD_FOREVER), 0);
	CHECK_EQ(brood.left, -2);
	CHECK_EQ(stats_now().ended, stats_now().spawned - 1);
}

/* ---- the owner is stopped ---- */

static void *own_and_wait(void *type)
{
	struct hd_cleanup before, after;
	struct hd_group g = { .count = 0 };

	hd_set_cancel_type(type != NULL ? HD_CANCEL_UNWIND : HD_CANCEL_RETURN);
	hd_cleanup_push(&before, say_word, (void *)"before");
	member(&g, clean_up_slowly, "member");
	hd_cleanup_push(&after, say_word, (void *)"after");
	int err = hd_group_wait(&g, HD_FOREVER);
	trace("%d ", err);
	CHECK_EQ(g.owner, 0);
	hd_cleanup_pop(&after, false);
	hd_cleanup_pop(&before, false);
	return NULL;
}

HD_PROCESS_TEST(group_owner_that_is_cancelled_while_it_waits_ends_it_first)
{
	static int unwind;
	hd_pid pid = born(hd_spawn_at(50, own_and_wait, NULL));

	CHECK_EQ(hd_sleep(HD_MS(1)), 0);
	CHECK_EQ(hd_cancel(pid), 0);
	CHECK_EQ(end_of(pid).kind, HD_END_RETURNED);
	CHECK_STR(trace_text(), "member -125 ");
	trace_clear();
	pid = born(hd_spawn_at(50, own_and_wait, &unwind));
	CHECK_EQ(hd_sleep(HD_MS(1)), 0);
	CHECK_EQ(hd_cancel(pid), 0);
	CHECK_EQ(end_of(pid).kind, HD_END_CANCELLED);
	CHECK_STR(trace_text(), "member after before ");
	trace_clear();
	pid = born(hd_spawn_at(50, own_and_wait, NULL));
	CHECK_EQ(hd_sleep(HD_MS(1)), 0);
	CHECK_EQ(hd_terminate(pid, HD_FOREVER), 0);
	CHECK_EQ(end_of(pid).kind, HD_END_KILLED);
	CHECK_STR(trace_text(), "member after before ");
}

enum { EXIT, FAIL, SLEEP };

static void *own_and_end(void *how)
{
	struct hd_cleanup before, between, after;
	struct hd_group outer = { .count = 0 }, inner = { .count = 0 };

	hd_cleanup_push(&before, say_word, (void *)"before");
	member(&outer, clean_up_slowly, "outer");
	hd_cleanup_push(&between, say_word, (void *)"between");
	member(&inner, clean_up_slowly, "inner");
	hd_cleanup_push(&after, say_word, (void *)"after");
	hd_yield();
	if (*(int *)how == EXIT)
		hd_exit(NULL);
	if (*(int *)how == FAIL)
		hd_fail(EIO);
	hd_sleep_until(HD_FOREVER);
	CHECK(!"it came back");
	return NULL;
}

/* In the order in which things were begun, backwards. */
HD_PROCESS_TEST(group_of_an_owner_that_ends_is_closed_between_its_cleanups)
{
	static const enum hd_end_kind kinds[] = { HD_END_RETURNED, HD_END_FAILED, HD_END_KILLED };

	for (int how = EXIT; how <= SLEEP; how++) {
		trace_clear();
		hd_pid pid = born(hd_spawn(own_and_end, &how));
		CHECK_EQ(hd_sleep(HD_MS(1)), 0);
		if (how == SLEEP)
			CHECK_EQ(hd_terminate(pid, HD_FOREVER), 0);
		CHECK_EQ(end_of(pid).kind, kinds[how]);
		CHECK_STR(trace_text(), "after inner between outer before ");
	}
}

static void *time_out_and_wait(void *arg)
{
	struct hd_cleanup cleanup;
	struct hd_group g = { .count = 0 };

	hd_cleanup_push(&cleanup, say_word, (void *)"owner");
	member(&g, ignore_cancels, "a");
	member(&g, ignore_cancels, "b");
	CHECK_EQ(hd_group_wait(&g, *(hd_time *)arg), 0);
	hd_test_cancel();
	CHECK(!"it came back");
	return NULL;
}

/* Members that do not listen are ended when whoever waits for them is. */
HD_PROCESS_TEST(group_owner_that_is_terminated_ends_members_that_ignore_cancels)
{
	hd_time untils[] = { 0, hd_after(HD_MS(2)), HD_FOREVER };

	for (int i = 0; i < 3; i++) {
		trace_clear();
		hd_pid pid = born(hd_spawn(time_out_and_wait, &untils[i]));
		CHECK_EQ(hd_sleep(HD_MS(4)), 0);
		CHECK_EQ(info_of(pid).why, i < 2 ? HD_WAIT_REST : HD_WAIT_GROUP);
		CHECK_EQ(hd_cancel(pid), 0); /* that changes nothing any more, or cancels them */
		CHECK_EQ(hd_sleep(HD_MS(1)), 0);
		CHECK_STR(trace_text(), "");
		CHECK_EQ(hd_terminate(pid, HD_FOREVER), 0);
		CHECK_EQ(end_of(pid).kind, HD_END_KILLED);
		CHECK_EQ(strlen(trace_text()), strlen("a b owner "));
		CHECK_STR(trace_text() + 4, "owner ");
	}
}

static void *shut_down_inside(void *arg)
{
	struct hd_cleanup cleanup;
	struct hd_group g = { .count = 0 };

	hd_cleanup_push(&cleanup, say_word, (void *)"owner");
	member(&g, clean_up_slowly, "a");
	member(&g, clean_up_slowly, "b");
	hd_yield();
	CHECK_EQ(hd_shutdown(2), 0);
	if (arg == NULL)
		CHECK_EQ(hd_group_wait(&g, HD_FOREVER), 0);
	hd_sleep_until(HD_FOREVER);
	CHECK(!"it came back");
	return NULL;
}

HD_TEST(group_ends_with_the_runtime_before_its_owner)
{
	for (int i = 0; i < 2; i++) {
		trace_clear();
		CHECK_EQ(hd_run(&(struct hd_config){ .fixed = true, .workers = 1 }, shut_down_inside, i == 0 ? NULL : &never),
			 2);
		CHECK_EQ(strlen(trace_text()), strlen("a b owner "));
		CHECK_STR(trace_text() + 4, "owner ");
	}
}

/* ---- misuse ---- */

static struct hd_group leaked;

static void *leave_it_open(void *arg)
{
	born(hd_group_spawn(&leaked, nothing, NULL));
	return arg;
}

HD_TEST_DIES(group_that_is_not_waited_for_dies_when_its_owner_returns, "returned without hd_group_wait")
{
	CHECK_EQ(hd_run(&(struct hd_config){ .fixed = true, .workers = 1 }, leave_it_open, NULL), 0);
}

static void *wait_crosswise(void *arg)
{
	static struct hd_group other;

	born(hd_group_spawn(&leaked, nothing, NULL));
	born(hd_group_spawn(&other, nothing, NULL));
	CHECK_EQ(hd_group_wait(&leaked, HD_FOREVER), 0);
	return arg;
}

HD_TEST_DIES(group_that_was_not_opened_last_dies_when_it_is_waited_for, "a group that was not opened last")
{
	CHECK_EQ(hd_run(&(struct hd_config){ .fixed = true, .workers = 1 }, wait_crosswise, NULL), 0);
}

/* ---- no memory ---- */

HD_PROCESS_TEST(group_without_memory_says_so_and_loses_nobody)
{
	struct hd_group g = { .count = 0 };

	hd__fault_arm(HD__FAULT_ALLOC, 1, true);
	CHECK_EQ(hd_group_spawn(&g, nothing, NULL), -ENOMEM);
	hd__fault_arm(HD__FAULT_ALLOC, 0, false);
	CHECK_EQ(hd_group_wait(&g, HD_FOREVER), 0);
	member(&g, wait_and_tell, "a");
	hd__fault_arm(HD__FAULT_ALLOC, 1, true);
	CHECK_EQ(hd_group_spawn(&g, nothing, NULL), -ENOMEM);
	hd__fault_arm(HD__FAULT_ALLOC, 0, false);
	CHECK_EQ(hd_semaphore_signal(&never), 0);
	CHECK_EQ(hd_group_wait(&g, HD_FOREVER), 0);
	CHECK_STR(trace_text(), "a:0 ");
}

HD_PROCESS_TEST(group_without_a_process_says_so_and_loses_nobody)
{
	struct hd_group g = { .count = 0 };
	int n = 0;
	hd_pid pid;

	hd__self()->sched->table.limit = 64;
	while ((pid = hd_group_spawn(&g, nothing, NULL)) > 0)
		CHECK(++n < 64);
	CHECK_EQ(pid, -EAGAIN);
	CHECK_EQ(hd_group_wait(&g, HD_FOREVER), 0);
	member(&g, nothing, NULL);
	CHECK_EQ(hd_group_wait(&g, HD_FOREVER), 0);
}

/* ---- many ---- */

/* Trees of groups, whose members end in all ways. Who has begun is counted until its last cleanup. */
struct life {
	struct hd_group *group; /* of which it is a member */
	unsigned seed;
	int depth;
};
static struct life lives[1 << 14];
static long born_lives, alive, begun;

static void count_end(void *arg)
{
	(void)arg;
	add(&alive, -1);
}

static void *member_lives(void *arg);

/* When it has returned, or been unwound, whoever was in it has ended. */
static int run_group(unsigned seed, int depth)
{
	struct hd_group g = { .count = 0 };

	for (int i = 0; i < 3; i++) {
		struct life *life = &lives[add(&born_lives, 1) % (1 << 14)];
		*life = (struct life){ &g, next_random(&seed), depth };
		hd_pid pid = hd_spawn_with(&(struct hd_spawn){ .group = &g, .pinned = i % 2 == 0 }, member_lives, life);
		CHECK(pid > 0 || pid == -ECANCELED); /* somebody has failed already */
	}
	return hd_group_wait(&g, next_random(&seed) % 4 ? hd_after(HD_US(next_random(&seed) % 300)) : HD_FOREVER);
}

static void *member_lives(void *arg)
{
	struct life life = *(struct life *)arg;
	struct hd_cleanup cleanup;
	unsigned what = next_random(&life.seed) % 10;

	add(&alive, 1);
	add(&begun, 1);
	hd_cleanup_push(&cleanup, count_end, NULL);
	if (life.depth > 0 && what < 6)
		run_group(life.seed, life.depth - 1);
	if (what == 6)
		hd_fail(EIO);
	else if (what == 7)
		hd_exit(NULL);
	else if (what == 8)
		hd_group_cancel(life.group);
	else
		hd_sleep(HD_US(what * 5));
	hd_cleanup_pop(&cleanup, true);
	return NULL;
}

static void *live_alone(void *arg)
{
	return (void *)(long)run_group((unsigned)(long)arg, hd_is_simulated() ? 1 : 3);
}

static void live_in_groups(int rounds)
{
	unsigned seed = 11;

	alive = begun = 0;
	for (int round = 0; another_round(round, rounds); round++) {
		hd_pid pids[4];
		for (int i = 0; i < 4; i++)
			pids[i] = born(hd_spawn_with(&(struct hd_spawn){ .pinned = round % 2 == 0 }, live_alone,
						     (void *)(long)(round * 4 + i)));
		hd_sleep(HD_US(next_random(&seed) % 100));
		int err = hd_terminate(pids[0], HD_FOREVER);
		CHECK(err == 0 || err == -ESRCH);
		err = hd_cancel(pids[1]);
		CHECK(err == 0 || err == -ESRCH);
		for (int i = 0; i < 4; i++) {
			struct hd_end end = end_of(pids[i]);
			long answer = (long)end.result;
			CHECK(end.kind == HD_END_RETURNED || (i == 0 && end.kind == HD_END_KILLED));
			CHECK(answer == 0 || answer == -EIO || answer == -ETIMEDOUT || (answer == -ECANCELED && i == 1));
		}
		CHECK_EQ(value_of(&alive), 0);
	}
	CHECK(begun > 0);
}

HD_WORKERS_TEST(group_trees_leave_nobody_behind)
{
	(void)workers;
	live_in_groups(many(200));
}

HD_WORKERS_STRESS(group_thousands_of_trees_leave_nobody_behind)
{
	(void)workers;
	under_stress = true;
	live_in_groups(many(3000));
}

static void *wait_for_ever(void *arg)
{
	CHECK_EQ(hd_semaphore_wait(&never, HD_FOREVER), -ECANCELED);
	return arg;
}

/* The first failure of many at once is the answer, and each is one of those that failed. */
static void *fail_with(void *err)
{
	hd_fail((int)(long)err);
	return NULL;
}

HD_WORKERS_TEST(group_answers_one_of_many_failures)
{
	(void)workers;
	for (int round = 0; another_round(round, many(1000)); round++) {
		struct hd_group g = { .count = 0 };
		hd_pid pid = 0;
		for (long i = 1; i <= 6 && pid != -ECANCELED; i++)
			pid = hd_spawn_with(&(struct hd_spawn){ .group = &g, .pinned = round % 2 == 0 },
					    i % 2 ? fail_with : wait_for_ever, (void *)i);
		int err = hd_group_wait(&g, HD_FOREVER);
		CHECK(err == -1 || err == -3 || err == -5);
		CHECK(never.waiters.head == NULL);
	}
}
