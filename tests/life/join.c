/* life/join.c - join, join_end, detach in every order; the hand-off to a child that never ran. */
#include "life/common.h"

HD_PROCESS_TEST(join_of_an_ended_process_collects_at_once)
{
	int there;
	void *result = NULL;
	hd_pid pid = born(hd_spawn_at(41, nothing, &there));

	CHECK_EQ(state_of(pid), HD_ENDED);
	CHECK_EQ(hd_join(pid, &result, 0), 0);
	CHECK(result == &there);
	CHECK(is_gone(pid));
	CHECK_EQ(hd_join(pid, &result, HD_FOREVER), -ESRCH);
}

static void *yield_twice(void *arg)
{
	hd_yield();
	hd_yield();
	return arg;
}

HD_PROCESS_TEST(join_waits_for_the_end)
{
	int there;
	void *result = NULL;
	hd_pid pid = born(hd_spawn(yield_twice, &there));

	CHECK_EQ(hd_join(pid, &result, HD_FOREVER), 0);
	CHECK(result == &there);
	CHECK(is_gone(pid));
	CHECK_EQ(hd_join(born(hd_spawn(yield_twice, NULL)), NULL, HD_FOREVER), 0);
}

HD_PROCESS_TEST(join_that_timed_out_can_be_tried_again)
{
	struct patient patient = { .word = "" };
	hd_pid pid = born(hd_spawn(wait_and_say, &patient));

	CHECK_EQ(hd_join(pid, NULL, 0), -ETIMEDOUT);
	CHECK_EQ(info_of(pid).switches, 0); /* trying once hands nothing over */
	CHECK_EQ(hd_join(pid, NULL, hd_now()), -ETIMEDOUT);
	CHECK_EQ(hd_join(pid, NULL, hd_after(HD_MS(1))), -ETIMEDOUT);
	CHECK_EQ(hd_join_end(pid, NULL, hd_after(HD_MS(1))), -ETIMEDOUT);
	CHECK_EQ(hd_semaphore_signal(&patient.s), 0);
	CHECK_EQ(hd_join(pid, NULL, HD_FOREVER), 0);
}

HD_PROCESS_TEST(join_of_itself_is_a_deadlock)
{
	CHECK_EQ(hd_join(hd_self(), NULL, HD_FOREVER), -EDEADLK);
	CHECK_EQ(hd_join_end(hd_self(), NULL, 0), -EDEADLK);
}

static void *join_it(void *arg)
{
	return (void *)(intptr_t)hd_join(*(hd_pid *)arg, NULL, HD_FOREVER);
}

HD_PROCESS_TEST(second_joiner_is_refused)
{
	struct patient patient = { .word = "" };
	void *answer = &patient;
	hd_pid pid = born(hd_spawn(wait_and_say, &patient)), joiner = born(hd_spawn_at(41, join_it, &pid));

	CHECK_EQ(hd_join(pid, NULL, HD_FOREVER), -EBUSY);
	CHECK_EQ(hd_join(pid, NULL, 0), -EBUSY);
	CHECK_EQ(hd_detach(pid), -EBUSY);
	CHECK_EQ(hd_semaphore_signal(&patient.s), 0);
	CHECK_EQ(hd_join(joiner, &answer, HD_FOREVER), 0);
	CHECK(answer == NULL);
	CHECK_EQ(hd_join(pid, NULL, HD_FOREVER), -ESRCH);
}

static void *join_for_a_moment(void *arg)
{
	return (void *)(intptr_t)hd_join(*(hd_pid *)arg, NULL, hd_after(HD_MS(1)));
}

HD_PROCESS_TEST(joiner_that_gave_up_makes_room_for_another)
{
	struct patient patient = { .word = "" };
	void *answer = NULL;
	hd_pid pid = born(hd_spawn(wait_and_say, &patient)), first = born(hd_spawn_at(41, join_for_a_moment, &pid));

	CHECK_EQ(hd_join(first, &answer, HD_FOREVER), 0);
	CHECK_EQ((intptr_t)answer, -ETIMEDOUT);
	CHECK_EQ(hd_semaphore_signal(&patient.s), 0);
	CHECK_EQ(hd_join(pid, NULL, HD_FOREVER), 0);
}

HD_PROCESS_TEST(each_other_joining_ends_by_deadline)
{
	hd_pid me = hd_self();
	hd_pid pid = born(hd_spawn(join_for_a_moment, &me));
	void *answer = NULL;

	CHECK_EQ(hd_join(pid, &answer, HD_FOREVER), 0);
	CHECK_EQ((intptr_t)answer, -ETIMEDOUT);
}

HD_PROCESS_TEST(detach_before_the_end_forgets_at_the_end)
{
	uint64_t live = stats_now().live_processes;
	hd_pid pid = born(hd_spawn(yield_twice, NULL));

	CHECK_EQ(hd_detach(pid), 0);
	CHECK(info_of(pid).detached);
	CHECK_EQ(hd_detach(pid), -EINVAL);
	CHECK_EQ(hd_join(pid, NULL, HD_FOREVER), -EINVAL);
	for (int i = 0; i < 4; i++)
		hd_yield();
	CHECK(is_gone(pid));
	CHECK_EQ(hd_join(pid, NULL, HD_FOREVER), -ESRCH);
	CHECK_EQ(hd_detach(pid), -ESRCH);
	CHECK_EQ(stats_now().live_processes, live);
}

HD_PROCESS_TEST(detach_after_the_end_forgets_now)
{
	uint64_t live = stats_now().live_processes;
	hd_pid pid = born(hd_spawn_at(41, nothing, NULL));

	CHECK_EQ(state_of(pid), HD_ENDED);
	CHECK_EQ(stats_now().live_processes, live + 1);
	CHECK_EQ(hd_detach(pid), 0);
	CHECK(is_gone(pid));
	CHECK_EQ(hd_detach(pid), -ESRCH);
	CHECK_EQ(stats_now().live_processes, live);
}

HD_PROCESS_TEST(spawned_detached_is_forgotten_when_it_ends)
{
	uint64_t live = stats_now().live_processes;
	hd_pid pid = born(hd_spawn_with(&(struct hd_spawn){ .detached = true }, nothing, NULL));

	CHECK_EQ(hd_join(pid, NULL, HD_FOREVER), -EINVAL);
	CHECK_EQ(state_of(pid), HD_READY);
	hd_yield();
	CHECK(is_gone(pid));
	CHECK_EQ(stats_now().live_processes, live);
}

static void *detach_itself(void *arg)
{
	CHECK_EQ(hd_detach(hd_self()), 0);
	CHECK_EQ(hd_detach(hd_self()), -EINVAL);
	return arg;
}

HD_PROCESS_TEST(process_may_detach_itself)
{
	CHECK(is_gone(born(hd_spawn_at(41, detach_itself, NULL))));
}

/* ---- how it ended ---- */

static void *exit_deep(void *arg)
{
	hd_exit(arg);
	CHECK(!"hd_exit returned");
	return NULL;
}

static void *fail_with(void *arg)
{
	hd_fail(*(int *)arg);
	CHECK(!"hd_fail returned");
	return NULL;
}

static void *fail_with_nothing(void *arg)
{
	CHECK_EQ(hd_fail(0), -EINVAL);
	return arg;
}

HD_PROCESS_TEST(join_end_tells_how_it_ended)
{
	int there, positive = EIO, negative = -EIO;
	struct hd_end end = { 0 };
	void *result = &there;

	CHECK_EQ(hd_join_end(born(hd_spawn(nothing, &there)), &end, HD_FOREVER), 0);
	CHECK_EQ(end.kind, HD_END_RETURNED);
	CHECK(end.result == &there);

	CHECK_EQ(hd_join_end(born(hd_spawn(exit_deep, &there)), &end, HD_FOREVER), 0);
	CHECK_EQ(end.kind, HD_END_RETURNED);
	CHECK(end.result == &there);

	CHECK_EQ(hd_join_end(born(hd_spawn(fail_with, &positive)), &end, HD_FOREVER), 0);
	CHECK_EQ(end.kind, HD_END_FAILED);
	CHECK_EQ(end.err, -EIO);
	CHECK_EQ(hd_join_end(born(hd_spawn(fail_with, &negative)), &end, HD_FOREVER), 0);
	CHECK_EQ(end.err, -EIO);

	CHECK_EQ(hd_join_end(born(hd_spawn(fail_with_nothing, &there)), &end, HD_FOREVER), 0);
	CHECK_EQ(end.kind, HD_END_RETURNED);

	CHECK_EQ(hd_join(born(hd_spawn(fail_with, &positive)), &result, HD_FOREVER), 0);
	CHECK(result == NULL); /* it did not end by returning */
	CHECK_EQ(hd_join_end(born(hd_spawn(nothing, NULL)), NULL, HD_FOREVER), 0);
}

static void *exit_from_main(void *arg)
{
	spawn_word(say, "still runs");
	hd_exit(arg);
	return NULL;
}

HD_TEST(exit_of_the_first_process_ends_only_that)
{
	CHECK_EQ(hd_run(&(struct hd_config){ .fixed = true, .workers = 1 }, exit_from_main, NULL), 0);
	CHECK_STR(trace_text(), "still runs");
}

/* ---- by plain threads ---- */

static struct patient patient;

static void join_from_outside(void *arg)
{
	hd_pid pid = *(hd_pid *)arg;
	struct hd_end end = { 0 };

	CHECK_EQ(hd_join(pid, NULL, 0), -ETIMEDOUT);
	CHECK_EQ(hd_join(pid, NULL, hd_after(HD_MS(1))), -ETIMEDOUT);
	CHECK_EQ(hd_semaphore_signal(&patient.s), 0);
	CHECK_EQ(hd_join_end(pid, &end, HD_FOREVER), 0);
	CHECK_EQ(end.kind, HD_END_RETURNED);
	CHECK_EQ(hd_join(pid, NULL, HD_FOREVER), -ESRCH);
	CHECK_EQ(hd_detach(pid), -ESRCH);

	pid = born(hd_spawn(nothing, NULL));
	CHECK_EQ(hd_detach(pid) == 0 || is_gone(pid), true);
	pid = born(hd_spawn_with(&(struct hd_spawn){ .suspended = true, .detached = true }, nothing, NULL));
	CHECK_EQ(hd_join(pid, NULL, HD_FOREVER), -EINVAL);
	CHECK_EQ(hd_resume(pid), 0);
}

HD_PROCESS_TEST(plain_thread_joins_and_detaches)
{
	uint64_t live = stats_now().live_processes;

	patient = (struct patient){ .word = "" };
	hd_pid pid = born(hd_spawn(wait_and_say, &patient));
	on_plain_thread(join_from_outside, &pid);
	while (stats_now().ended < stats_now().spawned - 1)
		hd_sleep(HD_US(100));
	CHECK_EQ(stats_now().live_processes, live);
}

static int joined, refused;

static void join_for_good(void *arg)
{
	int err = hd_join(*(hd_pid *)arg, NULL, HD_FOREVER);

	CHECK(err == 0 || err == -EBUSY);
	__atomic_fetch_add(err == 0 ? &joined : &refused, 1, __ATOMIC_ACQ_REL);
}

HD_PROCESS_TEST(one_joiner_of_many_threads_gets_the_end)
{
	struct plain threads[3];

	patient = (struct patient){ .word = "" };
	hd_pid pid = born(hd_spawn(wait_and_say, &patient));
	for (int i = 0; i < 3; i++)
		plain_start(&threads[i], join_for_good, &pid);
	while (__atomic_load_n(&refused, __ATOMIC_ACQUIRE) < 2)
		hd_sleep(HD_US(100));
	CHECK_EQ(hd_join(pid, NULL, HD_FOREVER), -EBUSY);
	CHECK_EQ(hd_detach(pid), -EBUSY);
	CHECK_EQ(hd_semaphore_signal(&patient.s), 0);
	for (int i = 0; i < 3; i++)
		plain_join(&threads[i]);
	CHECK_EQ(joined, 1);
	CHECK(is_gone(pid));
}

/* ---- hand-off (rule 9) ---- */

HD_PROCESS_TEST(join_hands_over_to_a_child_that_never_ran)
{
	spawn_word(say, "a");
	spawn_word(say, "b");
	hd_pid c = spawn_word(say, "c");
	uint64_t direct = stats_now().direct_switches;

	CHECK_EQ(stats_now().handoffs, 0);
	CHECK_EQ(hd_join(c, NULL, HD_FOREVER), 0);
	CHECK_STR(trace_text(), "c"); /* it went before its equals, and the joiner went on where it had been */
	CHECK_EQ(stats_now().handoffs, 2);
	CHECK(stats_now().direct_switches > direct);
	hd_yield();
	CHECK_STR(trace_text(), "cab");
}

static void *yield_and_say(void *word)
{
	hd_yield();
	return say(word);
}

/* Who has been off the worker has used up the turn that its joiner lent it. */
HD_PROCESS_TEST(join_goes_to_the_tail_if_the_child_did_not_end_at_once)
{
	spawn_word(say, "a");
	hd_pid b = spawn_word(yield_and_say, "b");
	spawn_word(say, "c");

	CHECK_EQ(hd_join(b, NULL, HD_FOREVER), 0);
	CHECK_STR(trace_text(), "acb");
	spawn_word(say, "d");
	hd_pid e = spawn_word(yield_and_say, "e");
	spawn_word(yield_and_say, "f");
	CHECK_EQ(hd_join(e, NULL, HD_FOREVER), 0);
	CHECK_STR(trace_text(), "acbdef");
}

static void *join_and_say(void *word)
{
	CHECK_EQ(hd_join(spawn_word(say, "child "), NULL, HD_FOREVER), 0);
	return say(word);
}

/* A turn that was lent can be lent on, and comes back the whole way. */
HD_PROCESS_TEST(join_gets_its_turn_back_through_a_chain)
{
	spawn_word(say, "bystander ");
	CHECK_EQ(hd_join(spawn_word(join_and_say, "parent "), NULL, HD_FOREVER), 0);
	CHECK_STR(trace_text(), "child parent ");
	CHECK_EQ(stats_now().handoffs, 4);
}

static hd_pid joiner;

static void *stop_joiner_and_say(void *word)
{
	CHECK_EQ(hd_suspend(joiner, HD_FOREVER), 0);
	return say(word);
}

static void *join_b_and_say(void *word)
{
	spawn_word(say, "a");
	CHECK_EQ(hd_join(spawn_word(stop_joiner_and_say, "b"), NULL, HD_FOREVER), 0);
	return say(word);
}

HD_PROCESS_TEST(join_of_a_suspended_joiner_does_not_get_its_turn_back)
{
	joiner = spawn_word(join_b_and_say, "joiner");
	hd_yield();
	CHECK_STR(trace_text(), "b");
	hd_yield();
	CHECK_STR(trace_text(), "ba");
	CHECK_EQ(hd_resume(joiner), 0);
	CHECK_EQ(hd_join(joiner, NULL, HD_FOREVER), 0);
	CHECK_STR(trace_text(), "bajoiner");
}

static void *spawn_better_and_say(void *word)
{
	say(word);
	CHECK_EQ(hd_set_priority(hd_self(), 50), 0);
	spawn_word_at(45, say, "better ");
	return NULL;
}

HD_PROCESS_TEST(join_does_not_get_its_turn_back_past_a_higher_priority)
{
	spawn_word(say, "a");
	CHECK_EQ(hd_join(spawn_word(spawn_better_and_say, "b "), NULL, HD_FOREVER), 0);
	CHECK_STR(trace_text(), "b better a");
}

HD_PROCESS_TEST(join_hands_over_to_a_child_of_lower_priority_if_nobody_better_is_ready)
{
	spawn_word_at(30, say, "a");
	hd_pid b = spawn_word_at(30, say, "b");

	CHECK_EQ(hd_join(b, NULL, HD_FOREVER), 0);
	CHECK_STR(trace_text(), "b");
	CHECK_EQ(stats_now().handoffs, 2);
}

HD_PROCESS_TEST(join_does_not_hand_over_past_a_higher_priority)
{
	spawn_word_at(30, say, "a");
	hd_pid b = spawn_word_at(30, say, "b");
	spawn_word_at(31, say, "better ");

	CHECK_EQ(hd_join(b, NULL, HD_FOREVER), 0);
	CHECK_STR(trace_text(), "better ab");
	CHECK_EQ(stats_now().handoffs, 0);
}

HD_PROCESS_TEST(join_does_not_hand_over_to_a_child_that_has_run)
{
	hd_pid a = spawn_word(yield_and_say, "a");

	hd_yield();
	hd_yield(); /* a has ended its first turn, or its last */
	hd_pid b = spawn_word(yield_and_say, "b");
	hd_yield();
	spawn_word(say, "c");
	CHECK_EQ(state_of(b), HD_READY);
	CHECK_EQ(hd_join(b, NULL, HD_FOREVER), 0);
	CHECK_STR(trace_text(), "abc");
	CHECK_EQ(stats_now().handoffs, 0);
	CHECK_EQ(hd_join(a, NULL, 0), 0);
}

HD_PROCESS_TEST(join_does_not_hand_over_to_a_suspended_child)
{
	hd_pid pid = spawn_word_with(&(struct hd_spawn){ .suspended = true }, say, "suspended");

	CHECK_EQ(hd_join(pid, NULL, hd_after(HD_MS(1))), -ETIMEDOUT);
	CHECK_STR(trace_text(), "");
	CHECK_EQ(hd_resume(pid), 0);
	CHECK_EQ(hd_join(pid, NULL, HD_FOREVER), 0);
	CHECK_EQ(stats_now().handoffs, 2);
}

static uint64_t handoffs_at_bystander;
static int depth_at_bystander, depth;

static void *look(void *arg)
{
	handoffs_at_bystander = stats_now().handoffs;
	depth_at_bystander = depth;
	return arg;
}

static void *nest(void *arg)
{
	int left = (int)(intptr_t)arg;

	depth++;
	if (left > 0)
		CHECK_EQ(hd_join(born(hd_spawn(nest, (void *)(intptr_t)(left - 1))), NULL, HD_FOREVER), 0);
	return NULL;
}

/* Each joins a child of its own: every join is a hand-off, until the level's head has waited for 64 of them. */
HD_PROCESS_TEST(at_most_64_handoffs_in_a_row)
{
	born(hd_spawn(look, NULL));
	CHECK_EQ(hd_join(born(hd_spawn(nest, (void *)(intptr_t)199)), NULL, HD_FOREVER), 0);
	CHECK_EQ(handoffs_at_bystander, 64);
	CHECK_EQ(depth_at_bystander, 64);
	CHECK_EQ(depth, 200);
	CHECK(stats_now().handoffs > 64 && stats_now().handoffs < 400);
}

/* There and back are two: the level's head waits for no more than 32 children that do nothing. */
HD_PROCESS_TEST(at_most_64_handoffs_there_and_back)
{
	born(hd_spawn(look, NULL));
	for (depth = 0; depth < 40; depth++)
		CHECK_EQ(hd_join(born(hd_spawn(nothing, NULL)), NULL, HD_FOREVER), 0);
	CHECK_EQ(depth_at_bystander, 32);
	CHECK_EQ(handoffs_at_bystander, 64);
}

HD_PROCESS_TEST(join_that_only_tries_starts_nothing)
{
	hd_pid pid = born(hd_spawn(nothing, NULL));
	uint64_t stacks = stats_now().live_stacks;

	CHECK_EQ(hd_join(pid, NULL, 0), -ETIMEDOUT);
	CHECK_EQ(hd_join(pid, NULL, hd_now()), -ETIMEDOUT);
	CHECK_EQ(stats_now().live_stacks, stacks);
	CHECK_EQ(info_of(pid).switches, 0);
	CHECK_EQ(hd_join(pid, NULL, HD_FOREVER), 0);
}
