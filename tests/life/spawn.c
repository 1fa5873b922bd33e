/* life/spawn.c - processes begin: the three forms, their attributes, what is refused. */
#include "life/common.h"

#include <string.h>

HD_PROCESS_TEST(spawn_passes_the_argument_and_the_result)
{
	static int argument;
	void *result = NULL;

	CHECK_EQ(hd_join(born(hd_spawn(nothing, &argument)), &result, HD_FOREVER), 0);
	CHECK(result == &argument);
	CHECK_EQ(hd_join(born(hd_spawn_at(30, nothing, &argument)), &result, HD_FOREVER), 0);
	CHECK(result == &argument);
	CHECK_EQ(hd_join(born(hd_spawn_with(NULL, nothing, NULL)), &result, HD_FOREVER), 0);
	CHECK(result == NULL);
}

HD_PROCESS_TEST(spawned_equal_runs_when_its_creator_gives_way)
{
	spawn_word(say, "a");
	spawn_word_with(NULL, say, "b");
	spawn_word_at(40, say, "c");
	CHECK_STR(trace_text(), "");
	hd_yield();
	CHECK_STR(trace_text(), "abc");
}

HD_PROCESS_TEST(spawned_better_runs_at_once_and_lower_later)
{
	spawn_word_at(39, say, "low ");
	spawn_word_at(41, say, "high ");
	CHECK_STR(trace_text(), "high ");
	hd_yield();
	CHECK_STR(trace_text(), "high ");
	hd_sleep(HD_US(1));
	while (stats_now().ended < 2)
		hd_sleep(HD_MS(1));
	CHECK_STR(trace_text(), "high low ");
}

static void *grandchild(void *arg)
{
	*(int *)arg = hd_priority(hd_self());
	return NULL;
}

static void *child(void *arg)
{
	return (void *)(intptr_t)hd_join(hd_spawn(grandchild, arg), NULL, HD_FOREVER);
}

HD_PROCESS_TEST(spawn_inherits_the_priority)
{
	int priority = 0;

	CHECK_EQ(hd_priority(hd_self()), HD_PRIORITY_USER);
	CHECK_EQ(hd_join(hd_spawn_at(33, child, &priority), NULL, HD_FOREVER), 0);
	CHECK_EQ(priority, 33);
	CHECK_EQ(hd_set_priority(hd_self(), 50), 0);
	CHECK_EQ(hd_priority(born(hd_spawn(nothing, NULL))), 50);
}

HD_PROCESS_TEST(spawn_with_sets_what_it_is_told)
{
	struct hd_spawn how = { .name = "weaver",
				.priority = 33,
				.policy = HD_RR,
				.stack_size = 200000,
				.suspended = true,
				.daemon = true,
				.detached = true };
	hd_pid pid = born(hd_spawn_with(&how, nothing, NULL));
	struct hd_process_info info = info_of(pid);

	CHECK_STR(info.name, "weaver");
	CHECK_EQ(info.priority, 33);
	CHECK_EQ(info.policy, HD_RR);
	CHECK_EQ(info.state, HD_SUSPENDED);
	CHECK(info.suspended && info.daemon && info.detached);
	CHECK_EQ(info.switches, 0);
	CHECK_EQ(hd_resume(pid), 0);
}

static void *measure(void *arg)
{
	*(size_t *)arg = info_of(hd_self()).stack_size;
	return NULL;
}

/* Usable bytes; the guard page takes its part. */
HD_PROCESS_TEST_WITH(spawn_stack_size_is_rounded_up_to_a_power_of_two, .stack_size = 32 << 10)
{
	static const struct {
		size_t asked, given;
	} cases[] = { { 0, 32 << 10 },	     { 1, 16 << 10 },	  { 16 << 10, 16 << 10 }, { (16 << 10) + 1, 32 << 10 },
		      { 200000, 256 << 10 }, { 8 << 20, 8 << 20 } };

	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		size_t size = 0;
		hd_pid pid = born(hd_spawn_with(&(struct hd_spawn){ .stack_size = cases[i].asked }, measure, &size));
		CHECK_EQ(hd_join(pid, NULL, HD_FOREVER), 0);
		CHECK(size <= cases[i].given && size + 4096 * 2 >= cases[i].given);
	}
	CHECK(info_of(hd_self()).stack_size >= (8 << 20) - 8192); /* the first process */
}

static void *use_deep_stack(void *arg)
{
	volatile char deep[100 << 10];

	for (size_t i = 0; i < sizeof deep; i += 1024)
		deep[i] = 1;
	*(size_t *)arg = info_of(hd_self()).stack_used;
	return NULL;
}

HD_PROCESS_TEST(spawn_gives_the_stack_that_was_asked_for)
{
	size_t used = 0;
	hd_pid pid = born(hd_spawn_with(&(struct hd_spawn){ .stack_size = 128 << 10 }, use_deep_stack, &used));

	CHECK_EQ(hd_join(pid, NULL, HD_FOREVER), 0);
	CHECK(used >= 100 << 10);
	CHECK(used <= 128 << 10);
}

HD_PROCESS_TEST(spawn_name_is_copied_and_limited)
{
	char name[HD_NAME_SIZE + 1];
	struct hd_spawn how = { .name = name, .suspended = true };

	memset(name, 'n', sizeof name);
	name[HD_NAME_SIZE - 1] = '\0'; /* the longest: 31 letters */
	hd_pid pid = born(hd_spawn_with(&how, nothing, NULL));
	memset(name, 'm', sizeof name);
	name[HD_NAME_SIZE] = '\0'; /* one letter too many */
	CHECK_EQ(hd_spawn_with(&how, nothing, NULL), -ENAMETOOLONG);
	CHECK_STR(info_of(pid).name, "nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn");
	CHECK_EQ(hd_resume(pid), 0);

	name[0] = '\0';
	pid = born(hd_spawn_with(&how, nothing, NULL));
	CHECK_STR(info_of(pid).name, "");
	CHECK_EQ(hd_resume(pid), 0);
	CHECK_STR(info_of(born(hd_spawn(nothing, NULL))).name, "");
	CHECK_STR(info_of(hd_self()).name, "main");
}

/* A slot is used again at once; its name must not be. */
HD_PROCESS_TEST(spawn_forgets_the_name_of_the_slot_before)
{
	for (int i = 0; i < 100; i++) {
		hd_pid named = born(hd_spawn_with(&(struct hd_spawn){ .name = "ghost" }, nothing, NULL));
		CHECK_EQ(hd_join(named, NULL, HD_FOREVER), 0);
		hd_pid nameless = born(hd_spawn(nothing, NULL));
		CHECK(nameless != named);
		CHECK_STR(info_of(nameless).name, "");
		CHECK_EQ(hd_join(nameless, NULL, HD_FOREVER), 0);
	}
}

HD_PROCESS_TEST(spawn_refuses_what_is_out_of_range)
{
	static const int bad_priorities[] = { -1, 1, 9, 81, 256 + 40, 1 << 30 };
	uint64_t spawned = stats_now().spawned, live = stats_now().live_processes;

	CHECK_EQ(hd_spawn(NULL, NULL), -EINVAL);
	CHECK_EQ(hd_spawn_at(40, NULL, NULL), -EINVAL);
	CHECK_EQ(hd_spawn_with(NULL, NULL, NULL), -EINVAL);
	CHECK_EQ(hd_spawn_at(0, nothing, NULL), -EINVAL);
	for (size_t i = 0; i < sizeof bad_priorities / sizeof bad_priorities[0]; i++) {
		CHECK_EQ(hd_spawn_at(bad_priorities[i], nothing, NULL), -EINVAL);
		CHECK_EQ(hd_spawn_with(&(struct hd_spawn){ .priority = bad_priorities[i] }, nothing, NULL), -EINVAL);
	}
	CHECK_EQ(hd_spawn_with(&(struct hd_spawn){ .policy = (enum hd_policy)(HD_IO + 1) }, nothing, NULL), -EINVAL);
	CHECK_EQ(hd_spawn_with(&(struct hd_spawn){ .policy = (enum hd_policy) - 1 }, nothing, NULL), -EINVAL);
	CHECK_EQ(hd_spawn_with(&(struct hd_spawn){ .stack_size = SIZE_MAX }, nothing, NULL), -EINVAL);
	CHECK_EQ(stats_now().spawned, spawned);
	CHECK_EQ(stats_now().live_processes, live);
}

HD_PROCESS_TEST(spawn_takes_every_priority)
{
	for (int priority = 10; priority <= 80; priority++) {
		hd_pid pid = born(hd_spawn_with(&(struct hd_spawn){ .priority = priority, .suspended = true }, nothing, NULL));
		CHECK_EQ(hd_priority(pid), priority);
		CHECK_EQ(hd_resume(pid), 0);
		CHECK_EQ(hd_join(pid, NULL, HD_FOREVER), 0);
	}
}

HD_PROCESS_TEST(spawned_suspended_does_not_start_before_resume)
{
	hd_pid pid = spawn_word_with(&(struct hd_spawn){ .suspended = true, .priority = 60 }, say, "ran");

	for (int i = 0; i < 10; i++)
		hd_yield();
	hd_sleep(HD_MS(1));
	CHECK_STR(trace_text(), "");
	CHECK_EQ(state_of(pid), HD_SUSPENDED);
	CHECK_EQ(hd_resume(pid), 0);
	CHECK_STR(trace_text(), "ran"); /* at once: its priority is higher */
	CHECK_EQ(hd_resume(pid), -ESRCH);
}

HD_PROCESS_TEST(pids_are_positive_and_never_used_again)
{
	hd_pid seen[2000];

	for (int i = 0; i < 2000; i++) {
		seen[i] = born(hd_spawn(nothing, NULL));
		if (i % 3 != 0)
			CHECK_EQ(hd_join(seen[i], NULL, HD_FOREVER), 0);
	}
	for (int i = 0; i < 2000; i++)
		for (int k = 0; k < i; k++)
			CHECK(seen[i] != seen[k]);
}

static void *endless(void *arg)
{
	struct hd_semaphore never = HD_SEMAPHORE(0);

	CHECK_EQ(hd_semaphore_wait(&never, HD_FOREVER), 0);
	CHECK(!"it was woken");
	return arg;
}

static void *only_daemons(void *arg)
{
	for (int i = 0; i < 3; i++)
		born(hd_spawn_with(&(struct hd_spawn){ .daemon = true, .priority = 30 + 10 * i }, endless, NULL));
	return arg;
}

HD_TEST(daemon_does_not_keep_the_runtime_running)
{
	CHECK_EQ(hd_run(&(struct hd_config){ .fixed = true, .workers = 1 }, only_daemons, NULL), 0);
}

static void *sleeper(void *arg)
{
	hd_sleep(HD_MS(2));
	trace("slept");
	return arg;
}

static void *leave_a_child(void *arg)
{
	born(hd_spawn(sleeper, NULL));
	return arg;
}

HD_TEST(child_keeps_the_runtime_running_when_main_has_ended)
{
	CHECK_EQ(hd_run(&(struct hd_config){ .fixed = true, .workers = 1 }, leave_a_child, NULL), 0);
	CHECK_STR(trace_text(), "slept");
}

/* ---- plain threads ---- */

static void on_no_runtime(void)
{
	struct hd_process_info info;
	struct hd_stats stats;
	hd_pid pid = (1 << 24) + 1;

	CHECK_EQ(hd_self(), 0);
	CHECK_EQ(hd_spawn(nothing, NULL), -ENXIO);
	CHECK_EQ(hd_spawn_at(40, nothing, NULL), -ENXIO);
	CHECK_EQ(hd_spawn_with(NULL, nothing, NULL), -ENXIO);
	CHECK_EQ(hd_suspend(pid, 0), -ENXIO);
	CHECK_EQ(hd_resume(pid), -ENXIO);
	CHECK_EQ(hd_join(pid, NULL, 0), -ENXIO);
	CHECK_EQ(hd_join_end(pid, NULL, 0), -ENXIO);
	CHECK_EQ(hd_detach(pid), -ENXIO);
	CHECK_EQ(hd_priority(pid), -ENXIO);
	CHECK_EQ(hd_set_priority(pid, 40), -ENXIO);
	CHECK_EQ(hd_set_policy(pid, HD_RR), -ENXIO);
	CHECK_EQ(hd_process_info(pid, &info), -ENXIO);
	CHECK_EQ(hd_each_process(NULL, NULL), -ENXIO);
	CHECK_EQ(hd_stats(&stats), -ENXIO);
	CHECK_EQ(hd_hold_open(1), -ENXIO);
	CHECK_EQ(hd_shutdown(0), -ENXIO);
}

static void on_processes_only(void)
{
	static struct hd_local local;

	CHECK_EQ(hd_self(), 0);
	CHECK_EQ(hd_yield(), -ENOTSUP);
	CHECK_EQ(hd_checkpoint(), -ENOTSUP);
	CHECK_EQ(hd_exit(NULL), -ENOTSUP);
	CHECK_EQ(hd_fail(EIO), -ENOTSUP);
	CHECK_EQ(hd_waiting_at(40, NULL, 0), -ENOTSUP);
	CHECK(hd_local_get(&local) == NULL);
	CHECK_EQ(hd_local_set(&local, &local), -ENOTSUP);
	CHECK(hd_local_get(&local) == NULL);
}

HD_TEST(without_a_runtime_calls_answer_eperm)
{
	on_no_runtime();
	on_processes_only();
	CHECK_EQ(hd_run(&(struct hd_config){ .fixed = true, .workers = 1 }, nothing, NULL), 0);
	on_no_runtime(); /* nothing is left of it */
	on_processes_only();
}

static void wrong_thread(void *arg)
{
	(void)arg;
	on_processes_only();
}

HD_PROCESS_TEST(on_plain_threads_calls_for_processes_answer_eperm)
{
	on_plain_thread(wrong_thread, NULL);
	CHECK(hd_self() > 0);
}

static void spawn_and_join(void *arg)
{
	void *result = NULL;

	for (int i = 0; i < 100; i++) {
		hd_pid pid = born(i % 2 == 0 ? hd_spawn(nothing, arg) : hd_spawn_at(10 + i % 71, nothing, arg));
		CHECK_EQ(hd_join(pid, &result, HD_FOREVER), 0);
		CHECK(result == arg);
		CHECK(is_gone(pid));
	}
	hd_pid pid = born(hd_spawn_with(&(struct hd_spawn){ .suspended = true, .name = "foreign" }, nothing, arg));
	CHECK_EQ(hd_priority(pid), HD_PRIORITY_USER);
	CHECK_STR(info_of(pid).name, "foreign");
	CHECK_EQ(state_of(pid), HD_SUSPENDED);
	CHECK_EQ(hd_join(pid, NULL, hd_after(HD_MS(1))), -ETIMEDOUT);
	CHECK_EQ(hd_resume(pid), 0);
	CHECK_EQ(hd_join(pid, &result, HD_FOREVER), 0);
}

static void spawn_badly(void *arg)
{
	CHECK_EQ(hd_spawn(NULL, arg), -EINVAL);
	CHECK_EQ(hd_spawn_at(81, nothing, arg), -EINVAL);
	CHECK_EQ(hd_spawn_at(40, NULL, arg), -EINVAL);
	CHECK_EQ(hd_spawn_with(NULL, NULL, arg), -EINVAL);
}

/* If the refused call still counted as being inside, hd_run would wait for it for good. */
HD_PROCESS_TEST(refused_spawn_of_a_plain_thread_does_not_keep_the_runtime)
{
	on_plain_thread(spawn_badly, NULL);
}

HD_PROCESS_TEST(plain_threads_spawn_and_join)
{
	struct plain threads[4];
	uint64_t before = stats_now().live_processes;

	CHECK_EQ(hd_set_priority(hd_self(), 50), 0); /* not what a plain thread's processes inherit */
	for (int i = 0; i < 4; i++)
		plain_start(&threads[i], spawn_and_join, &threads[i]);
	for (int i = 0; i < 4; i++)
		plain_join(&threads[i]);
	CHECK_EQ(stats_now().spawned, 1 + 4 * 101);
	CHECK_EQ(stats_now().ended, 4 * 101);
	CHECK_EQ(stats_now().live_processes, before);
}

/* ---- stack overflow ---- */

static int dig(int depth)
{
	volatile char hole[512];

	hole[0] = (char)depth;
	return depth == 0 ? hole[0] : dig(depth - 1) + hole[0];
}

static void *dig_deep(void *arg)
{
	dig(1 << 20);
	return arg;
}

static void *spawn_digger(void *arg)
{
	CHECK_EQ(hd_join(hd_spawn_with(&(struct hd_spawn){ .name = "digger" }, dig_deep, NULL), NULL, HD_FOREVER), 0);
	return arg;
}

static void skip_if_faults_are_not_ours(void)
{
	if (HD_UNDER_ASAN || HD_UNDER_TSAN)
		SKIP("the sanitizer takes the fault, and instrumented frames are too large");
}

HD_TEST_DIES(stack_overflow_names_the_process, "\"digger\": it needed more than its ")
{
	skip_if_faults_are_not_ours();
	CHECK_EQ(hd_run(&(struct hd_config){ .fixed = true, .workers = 1 }, spawn_digger, NULL), 0);
}

HD_TEST_DIES(stack_overflow_says_how_to_get_more, "HEDDLE_STACK_SIZE")
{
	skip_if_faults_are_not_ours();
	CHECK_EQ(hd_run(&(struct hd_config){ .fixed = true, .workers = 1 }, spawn_digger, NULL), 0);
}

HD_TEST_DIES(stack_overflow_of_the_first_process, "\"main\": it needed more than its 8")
{
	skip_if_faults_are_not_ours();
	CHECK_EQ(hd_run(&(struct hd_config){ .fixed = true, .workers = 1 }, dig_deep, NULL), 0);
}
