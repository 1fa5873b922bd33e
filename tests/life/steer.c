/* life/steer.c - suspend and resume in every state and by everybody; priorities and policies. */
#include "life/common.h"

/* ---- suspend and resume, by a process ---- */

HD_PROCESS_TEST(suspend_ready_takes_it_off_the_run_queue)
{
	hd_pid a = spawn_word(say, "a"), b = spawn_word(say, "b"), ready[2];

	CHECK_EQ(hd_suspend(a, HD_FOREVER), 0);
	CHECK_EQ(state_of(a), HD_SUSPENDED);
	CHECK(info_of(a).suspended);
	CHECK_EQ(hd_waiting_at(40, ready, 2), 1);
	CHECK_EQ(ready[0], b);
	hd_yield();
	CHECK_STR(trace_text(), "b");
	CHECK_EQ(hd_resume(a), 0);
	CHECK_EQ(state_of(a), HD_READY);
	CHECK(!info_of(a).suspended);
	hd_yield();
	CHECK_STR(trace_text(), "ba");
}

HD_PROCESS_TEST(resume_puts_at_the_tail)
{
	hd_pid a = spawn_word(say, "a");

	spawn_word(say, "b");
	CHECK_EQ(hd_suspend(a, 0), 0);
	CHECK_EQ(hd_resume(a), 0);
	spawn_word(say, "c");
	hd_yield();
	CHECK_STR(trace_text(), "bac");
}

HD_PROCESS_TEST(resume_of_a_higher_priority_preempts)
{
	hd_pid pid = spawn_word_with(&(struct hd_spawn){ .priority = 41, .suspended = true }, say, "high ");
	uint64_t preemptions = stats_now().preemptions;

	CHECK_EQ(hd_resume(pid), 0);
	trace("low ");
	CHECK_STR(trace_text(), "high low ");
	CHECK_EQ(stats_now().preemptions, preemptions + 1);
}

HD_PROCESS_TEST(suspend_is_not_counted)
{
	hd_pid pid = spawn_word(say, "ran");

	for (int i = 0; i < 3; i++)
		CHECK_EQ(hd_suspend(pid, i == 0 ? 0 : HD_FOREVER), 0);
	CHECK_EQ(hd_resume(pid), 0);
	CHECK_EQ(hd_resume(pid), -EALREADY);
	hd_yield();
	CHECK_STR(trace_text(), "ran");
}

HD_PROCESS_TEST(suspend_unstarted_is_what_spawn_suspended_is)
{
	hd_pid pid = spawn_word_with(&(struct hd_spawn){ .suspended = true }, say, "ran");

	CHECK_EQ(hd_suspend(pid, HD_FOREVER), 0);
	CHECK_EQ(state_of(pid), HD_SUSPENDED);
	CHECK_EQ(hd_resume(pid), 0);
	CHECK_EQ(hd_resume(pid), -EALREADY);
	hd_yield();
	CHECK_STR(trace_text(), "ran");
}

static void *suspend_itself(void *arg)
{
	trace("before ");
	*(int *)arg = hd_suspend(hd_self(), 0); /* whatever the deadline: it stops, and goes on when resumed */
	trace("after ");
	return NULL;
}

HD_PROCESS_TEST(suspend_itself_returns_when_resumed)
{
	int answer = -1;
	hd_pid pid = born(hd_spawn(suspend_itself, &answer));

	hd_yield();
	hd_yield();
	CHECK_EQ(state_of(pid), HD_SUSPENDED);
	CHECK_STR(trace_text(), "before ");
	CHECK_EQ(hd_resume(pid), 0);
	CHECK_STR(trace_text(), "before ");
	hd_yield();
	CHECK_STR(trace_text(), "before after ");
	CHECK_EQ(answer, 0);
}

HD_PROCESS_TEST(suspend_waiting_keeps_its_place_and_its_grant)
{
	struct patient first = { .word = "first ", .answer = 1 };
	hd_pid pid = born(hd_spawn_at(41, wait_and_say, &first));

	CHECK_EQ(hd_suspend(pid, HD_FOREVER), 0);
	CHECK_EQ(state_of(pid), HD_WAITING);
	CHECK(info_of(pid).suspended);
	CHECK_EQ(info_of(pid).why, HD_WAIT_SEMAPHORE);

	CHECK_EQ(hd_semaphore_signal(&first.s), 0); /* it is its, and nobody else's */
	CHECK_EQ(hd_semaphore_try_wait(&first.s), -EAGAIN);
	CHECK_EQ(state_of(pid), HD_SUSPENDED);
	CHECK_EQ(info_of(pid).why, HD_WAIT_NONE);
	CHECK_STR(trace_text(), "");

	CHECK_EQ(hd_resume(pid), 0);
	CHECK_STR(trace_text(), "first ");
	CHECK_EQ(first.answer, 0);
}

struct queuer {
	struct hd_semaphore *s;
	const char *word;
};

static void *queue_up(void *arg)
{
	struct queuer *me = arg;

	CHECK_EQ(hd_semaphore_wait(me->s, HD_FOREVER), 0);
	trace("%s", me->word);
	return NULL;
}

HD_PROCESS_TEST(suspended_waiter_does_not_lose_its_turn_to_the_next)
{
	struct hd_semaphore s = HD_SEMAPHORE(0);
	struct queuer a = { &s, "a" }, b = { &s, "b" };
	hd_pid pids[] = { born(hd_spawn_at(41, queue_up, &a)), born(hd_spawn_at(41, queue_up, &b)) };

	CHECK_EQ(hd_suspend(pids[0], 0), 0);
	CHECK_EQ(hd_semaphore_signal(&s), 0);
	CHECK_STR(trace_text(), "");
	CHECK_EQ(hd_semaphore_signal(&s), 0);
	CHECK_STR(trace_text(), "b");
	CHECK_EQ(hd_resume(pids[0]), 0);
	CHECK_STR(trace_text(), "ba");
	join_all(pids, 2);
}

HD_PROCESS_TEST(resume_before_the_grant_goes_on_waiting)
{
	struct patient patient = { .word = "granted" };
	hd_pid pid = born(hd_spawn_at(41, wait_and_say, &patient));

	CHECK_EQ(hd_suspend(pid, 0), 0);
	CHECK_EQ(hd_resume(pid), 0);
	CHECK_EQ(hd_resume(pid), -EALREADY);
	CHECK_EQ(state_of(pid), HD_WAITING);
	CHECK(!info_of(pid).suspended);
	CHECK_STR(trace_text(), "");
	CHECK_EQ(hd_semaphore_signal(&patient.s), 0);
	CHECK_STR(trace_text(), "granted");
}

/* Starts a process that waits, but not for good, and suspends it while it does. On a slow machine its time may be over before
 * it is suspended: then it gets more. */
static hd_pid suspend_in_time(hd_entry entry, void *arg, hd_time *deadline)
{
	for (hd_time some = HD_MS(2);; some *= 2) {
		trace_clear();
		*deadline = hd_after(some);
		hd_pid pid = born(hd_spawn_at(41, entry, arg));
		if (hd_suspend(pid, 0) == 0 && state_of(pid) == HD_WAITING)
			return pid;
		hd_resume(pid);
		CHECK_EQ(hd_join(pid, NULL, HD_FOREVER), 0);
	}
}

/* Its time runs out while it is suspended: it hears of it when resumed, and no signal goes its way afterwards. */
HD_PROCESS_TEST(deadline_runs_on_while_suspended)
{
	struct patient patient = { .word = "timed out" };
	hd_pid pid = suspend_in_time(wait_and_say, &patient, &patient.until);

	while (state_of(pid) == HD_WAITING)
		hd_sleep(HD_MS(1));
	CHECK_EQ(state_of(pid), HD_SUSPENDED);
	CHECK_EQ(hd_semaphore_signal(&patient.s), 0);
	CHECK(hd_semaphore_is_signaled(&patient.s));
	CHECK_STR(trace_text(), "");
	CHECK_EQ(hd_resume(pid), 0);
	CHECK_STR(trace_text(), "timed out");
	CHECK_EQ(patient.answer, -ETIMEDOUT);
	CHECK(hd_semaphore_is_signaled(&patient.s));
}

/* A grant that came first beats a deadline that passes while the process is suspended. */
HD_PROCESS_TEST(grant_kept_while_suspended_beats_the_deadline)
{
	struct patient patient = { .word = "granted" };
	hd_pid pid;

	do { /* until the signal comes in time too */
		hd_semaphore_init(&patient.s, 0);
		pid = suspend_in_time(wait_and_say, &patient, &patient.until);
		CHECK_EQ(hd_semaphore_signal(&patient.s), 0);
	} while (hd_semaphore_is_signaled(&patient.s) && hd_resume(pid) == 0);
	hd_sleep_until(patient.until + HD_MS(1));
	CHECK_EQ(state_of(pid), HD_SUSPENDED);
	CHECK_EQ(hd_resume(pid), 0);
	CHECK_EQ(patient.answer, 0);
}

static void *sleep_until(void *arg)
{
	CHECK_EQ(hd_sleep_until(*(hd_time *)arg), 0);
	trace("awake");
	return NULL;
}

HD_PROCESS_TEST(suspend_sleeping_wakes_only_when_resumed)
{
	hd_time when;
	hd_pid pid = suspend_in_time(sleep_until, &when, &when);

	while (state_of(pid) == HD_WAITING)
		hd_sleep(HD_MS(1));
	CHECK_EQ(state_of(pid), HD_SUSPENDED);
	CHECK_STR(trace_text(), "");
	CHECK_EQ(hd_resume(pid), 0);
	CHECK_STR(trace_text(), "awake");
}

static void *join_and_say(void *arg)
{
	CHECK_EQ(hd_join(*(hd_pid *)arg, NULL, HD_FOREVER), 0);
	trace("joined");
	return NULL;
}

HD_PROCESS_TEST(suspended_joiner_keeps_what_it_joined)
{
	hd_pid child = born(hd_spawn_with(&(struct hd_spawn){ .suspended = true }, nothing, NULL));
	hd_pid joiner = born(hd_spawn_at(41, join_and_say, &child));

	CHECK_EQ(info_of(joiner).why, HD_WAIT_JOIN);
	CHECK_EQ(hd_suspend(joiner, 0), 0);
	CHECK_EQ(hd_resume(child), 0);
	hd_yield();
	CHECK_EQ(state_of(joiner), HD_SUSPENDED);
	CHECK_EQ(hd_join(child, NULL, 0), -EBUSY);
	CHECK_EQ(hd_resume(joiner), 0);
	CHECK_STR(trace_text(), "joined");
	CHECK(is_gone(child));
}

HD_PROCESS_TEST(steering_the_dead_answers_esrch)
{
	hd_pid zombie = born(hd_spawn_at(41, nothing, NULL)), gone = born(hd_spawn_at(41, nothing, NULL));
	hd_pid never[] = { 0, -1, INT64_MIN, INT64_MAX, 12345, hd_self() + ((hd_pid)1 << 24), hd_self() | ((hd_pid)1 << 23) };

	CHECK_EQ(hd_join(gone, NULL, 0), 0);
	for (int i = -2; i < (int)(sizeof never / sizeof never[0]); i++) {
		hd_pid pid = i == -2 ? zombie : i == -1 ? gone : never[i];

		CHECK_EQ(hd_suspend(pid, 0), -ESRCH);
		CHECK_EQ(hd_suspend(pid, HD_FOREVER), -ESRCH);
		CHECK_EQ(hd_resume(pid), -ESRCH);
		CHECK_EQ(hd_priority(pid), -ESRCH);
		CHECK_EQ(hd_set_priority(pid, 50), -ESRCH);
		CHECK_EQ(hd_set_policy(pid, HD_RR), -ESRCH);
		if (pid != zombie) {
			CHECK_EQ(hd_join(pid, NULL, HD_FOREVER), -ESRCH);
			CHECK_EQ(hd_join_end(pid, NULL, 0), -ESRCH);
			CHECK_EQ(hd_detach(pid), -ESRCH);
			CHECK(is_gone(pid));
		}
	}
	CHECK_EQ(state_of(zombie), HD_ENDED);
	CHECK_EQ(hd_join(zombie, NULL, 0), 0);
}

HD_PROCESS_TEST(resume_of_one_that_is_not_suspended)
{
	struct patient patient = { .word = "" };
	hd_pid waiting = born(hd_spawn_at(41, wait_and_say, &patient)), ready = born(hd_spawn(nothing, NULL));

	CHECK_EQ(hd_resume(hd_self()), -EALREADY);
	CHECK_EQ(hd_resume(ready), -EALREADY);
	CHECK_EQ(hd_resume(waiting), -EALREADY);
	CHECK_EQ(state_of(waiting), HD_WAITING);
	CHECK_EQ(hd_semaphore_signal(&patient.s), 0);
}

/* ---- suspend and resume, by a plain thread ---- */

static hd_pid target;
static int go, stopped;

/* Runs without a safe point until it is told to go on, then with nothing but safe points. */
static void *spin(void *arg)
{
	CHECK_EQ(hd_preempt_disable(), 0);
	while (!is_raised(&go))
		;
	CHECK_EQ(hd_preempt_enable(), 0);
	while (!is_raised(&stopped))
		hd_checkpoint();
	return arg;
}

static void suspend_running(void *arg)
{
	(void)arg;
	while (state_of(target) != HD_RUNNING)
		;
	CHECK_EQ(hd_suspend(target, 0), -EINPROGRESS);
	int err = -EINPROGRESS;
	for (hd_time some = HD_MS(1); err == -EINPROGRESS; some *= 2) /* if that was over before we could wait */
		err = hd_suspend(target, hd_after(some));
	CHECK_EQ(err, -ETIMEDOUT);
	CHECK_EQ(state_of(target), HD_RUNNING);
	CHECK(info_of(target).suspended);
	raise_flag(&go);
	CHECK_EQ(hd_suspend(target, HD_FOREVER), 0);
	CHECK_EQ(state_of(target), HD_SUSPENDED);
	uint64_t switches = info_of(target).switches;
	CHECK_EQ(hd_suspend(target, HD_FOREVER), 0);
	CHECK_EQ(info_of(target).switches, switches);
	CHECK_EQ(hd_resume(target), 0);
	CHECK_EQ(hd_resume(target), -EALREADY);
	raise_flag(&stopped);
	CHECK_EQ(hd_join(target, NULL, HD_FOREVER), 0);
	CHECK_EQ(hd_suspend(target, HD_FOREVER), -ESRCH);
	CHECK_EQ(hd_resume(target), -ESRCH);
}

HD_PROCESS_TEST(plain_thread_suspends_a_running_process_at_its_next_safe_point)
{
	target = born(hd_spawn_at(30, spin, NULL));
	on_plain_thread(suspend_running, NULL);
}

/* A past deadline that is not 0 only requests it too. */
static void suspend_with_a_past_deadline(void *arg)
{
	(void)arg;
	while (state_of(target) != HD_RUNNING)
		;
	CHECK_EQ(hd_suspend(target, hd_now()), -EINPROGRESS);
	raise_flag(&go);
	CHECK_EQ(hd_suspend(target, HD_FOREVER), 0);
	CHECK_EQ(hd_resume(target), 0);
	raise_flag(&stopped);
}

HD_PROCESS_TEST(suspend_with_a_past_deadline_is_a_request)
{
	target = born(hd_spawn_at(30, spin, NULL));
	on_plain_thread(suspend_with_a_past_deadline, NULL);
}

/* Trying once is enough when it has stopped already: success comes before -EINPROGRESS. */
static void suspend_what_has_stopped(void *arg)
{
	(void)arg;
	CHECK_EQ(hd_suspend(target, HD_FOREVER), 0);
	CHECK_EQ(state_of(target), HD_SUSPENDED);
	CHECK_EQ(hd_suspend(target, 0), 0);
	CHECK_EQ(hd_resume(target), 0);
}

HD_PROCESS_TEST(suspend_by_a_plain_thread_of_what_has_stopped_succeeds_at_once)
{
	target = born(hd_spawn_with(&(struct hd_spawn){ .suspended = true }, nothing, NULL));
	on_plain_thread(suspend_what_has_stopped, NULL);
}

/* A running process that is asked to stop and to go on again before it came to a safe point does not stop. */
static void suspend_and_think_better(void *arg)
{
	(void)arg;
	while (state_of(target) != HD_RUNNING)
		;
	CHECK_EQ(hd_suspend(target, 0), -EINPROGRESS);
	CHECK_EQ(hd_resume(target), 0);
	raise_flag(&go);
	raise_flag(&stopped);
	CHECK_EQ(hd_join(target, NULL, HD_FOREVER), 0);
}

HD_PROCESS_TEST(resume_takes_back_a_suspend_that_is_in_progress)
{
	target = born(hd_spawn_at(30, spin, NULL));
	on_plain_thread(suspend_and_think_better, NULL);
}

/* It ends without another safe point: the end wins, or the suspension; never neither. */
static void *end_soon(void *arg)
{
	while (!is_raised(&go))
		;
	return arg;
}

static void suspend_as_it_ends(void *arg)
{
	(void)arg;
	while (state_of(target) != HD_RUNNING)
		;
	CHECK_EQ(hd_suspend(target, 0), -EINPROGRESS);
	raise_flag(&go);
	int err = hd_suspend(target, HD_FOREVER);
	CHECK(err == 0 || err == -ESRCH);
	if (err == 0) {
		CHECK_EQ(state_of(target), HD_SUSPENDED);
		CHECK_EQ(hd_resume(target), 0);
	}
	CHECK_EQ(hd_join(target, NULL, HD_FOREVER), 0);
}

HD_PROCESS_TEST(plain_thread_suspends_a_process_that_is_about_to_end)
{
	for (int i = 0; i < 20; i++) {
		go = 0;
		target = born(hd_spawn_at(30, end_soon, NULL));
		on_plain_thread(suspend_as_it_ends, NULL);
	}
}

static struct patient waiting_target;

static void suspend_in_other_states(void *arg)
{
	hd_pid *pids = arg; /* one waits, one is suspended, one has not started */

	for (int i = 0; i < 3; i++)
		CHECK_EQ(hd_suspend(pids[i], HD_FOREVER), 0);
	CHECK_EQ(state_of(pids[0]), HD_WAITING);
	CHECK(info_of(pids[0]).suspended);
	CHECK_EQ(state_of(pids[1]), HD_SUSPENDED);
	CHECK_EQ(state_of(pids[2]), HD_SUSPENDED);

	CHECK_EQ(hd_semaphore_signal(&waiting_target.s), 0);
	CHECK(!hd_semaphore_is_signaled(&waiting_target.s));
	CHECK_EQ(hd_join(pids[0], NULL, hd_after(HD_MS(1))), -ETIMEDOUT);
	for (int i = 0; i < 3; i++) {
		CHECK_EQ(hd_resume(pids[i]), 0);
		CHECK_EQ(hd_resume(pids[i]) == 0, false); /* -EALREADY, or -ESRCH when it has ended by now */
		CHECK_EQ(hd_join(pids[i], NULL, HD_FOREVER), 0);
	}
}

static void *stop_and_say(void *arg)
{
	CHECK_EQ(hd_suspend(hd_self(), HD_FOREVER), 0);
	trace("%s", (const char *)arg);
	return NULL;
}

HD_PROCESS_TEST(plain_thread_suspends_in_every_other_state)
{
	waiting_target = (struct patient){ .word = "a" };
	hd_pid pids[] = {
		born(hd_spawn_at(41, wait_and_say, &waiting_target)),
		spawn_word_at(41, stop_and_say, "b"),
		spawn_word_with(&(struct hd_spawn){ .suspended = true }, say, "c"),
	};

	on_plain_thread(suspend_in_other_states, pids);
	CHECK_STR(trace_text(), "abc");
	CHECK_EQ(waiting_target.answer, 0);
}

static void suspend_ready(void *arg)
{
	hd_pid ready = *(hd_pid *)arg;

	CHECK_EQ(hd_suspend(ready, 0), -EINPROGRESS); /* the worker is busy */
	raise_flag(&go);
	CHECK_EQ(hd_suspend(ready, HD_FOREVER), 0);
	CHECK_EQ(state_of(ready), HD_SUSPENDED);
	CHECK_EQ(info_of(ready).switches, 0);
	CHECK_EQ(hd_resume(ready), 0);
	CHECK_EQ(hd_join(ready, NULL, HD_FOREVER), 0);
}

HD_PROCESS_TEST(plain_thread_suspends_a_ready_process)
{
	struct plain plain;
	hd_pid ready = born(hd_spawn(nothing, NULL));

	plain_start(&plain, suspend_ready, &ready);
	while (!is_raised(&go))
		; /* the worker is ours, and `ready` waits for it */
	plain_join(&plain);
}

/* ---- priorities ---- */

HD_PROCESS_TEST(set_priority_puts_at_the_tail_of_the_new_level)
{
	hd_pid a = spawn_word_at(30, say, "a"), order[4];

	spawn_word_at(31, say, "b");
	spawn_word_at(31, say, "c");
	CHECK_EQ(hd_set_priority(a, 31), 0);
	CHECK_EQ(hd_priority(a), 31);
	CHECK_EQ(hd_waiting_at(30, NULL, 0), 0);
	CHECK_EQ(hd_waiting_at(31, order, 4), 3);
	CHECK_EQ(order[2], a);
	CHECK_EQ(hd_join(a, NULL, HD_FOREVER), 0);
}

static void *expect_bca(void *arg)
{
	CHECK_STR(trace_text(), "bca");
	return arg;
}

HD_PROCESS_TEST(set_priority_changes_the_order_of_running)
{
	hd_pid a = spawn_word_at(31, say, "a");

	spawn_word_at(30, say, "b");
	spawn_word_at(30, say, "c");
	CHECK_EQ(hd_set_priority(a, 30), 0);
	CHECK(hd_spawn_at(30, expect_bca, NULL) > 0);
}

HD_PROCESS_TEST(set_priority_to_the_same_value_changes_nothing)
{
	hd_pid a = spawn_word(say, "a"), order[2];

	spawn_word(say, "b");
	CHECK_EQ(hd_set_priority(a, 40), 0);
	CHECK_EQ(hd_waiting_at(40, order, 2), 2);
	CHECK_EQ(order[0], a);
	CHECK_EQ(hd_set_priority(hd_self(), 40), 0); /* and we do not yield */
	CHECK_STR(trace_text(), "");
	hd_yield();
	CHECK_STR(trace_text(), "ab");
}

HD_PROCESS_TEST(set_priority_above_the_runner_preempts)
{
	hd_pid a = spawn_word_at(30, say, "a");

	CHECK_EQ(hd_set_priority(a, 40), 0);
	CHECK_STR(trace_text(), "");
	CHECK_EQ(hd_set_priority(a, 41), 0);
	CHECK_STR(trace_text(), "a");
}

HD_PROCESS_TEST(set_priority_of_the_runner_yields_to_its_new_equals)
{
	spawn_word_at(30, say, "a");
	spawn_word_at(30, say, "b");
	spawn_word_at(29, say, "never before us ");
	CHECK_EQ(hd_set_priority(hd_self(), 31), 0);
	CHECK_STR(trace_text(), "");
	CHECK_EQ(hd_set_priority(hd_self(), 30), 0);
	CHECK_STR(trace_text(), "ab");
	CHECK_EQ(hd_set_priority(hd_self(), 40), 0);
}

/* At the tail, whatever hd_config.preempted says: this is no preemption. */
HD_PROCESS_TEST_WITH(set_priority_of_the_runner_goes_to_the_tail_under_preempted_head, .preempted = HD_PREEMPTED_HEAD)
{
	spawn_word_at(30, say, "a");
	spawn_word_at(31, say, "b");
	CHECK_EQ(hd_set_priority(hd_self(), 30), 0);
	CHECK_STR(trace_text(), "ba");
}

HD_PROCESS_TEST(set_priority_of_the_runner_upwards_goes_on)
{
	spawn_word(say, "a");
	CHECK_EQ(hd_set_priority(hd_self(), 41), 0);
	hd_yield();
	CHECK_STR(trace_text(), "");
	CHECK_EQ(hd_set_priority(hd_self(), 40), 0);
	CHECK_STR(trace_text(), "a");
}

HD_PROCESS_TEST(set_priority_of_a_waiting_process_counts_when_it_wakes)
{
	struct patient patient = { .word = "woken " };
	hd_pid pid = born(hd_spawn_at(41, wait_and_say, &patient));

	CHECK_EQ(hd_set_priority(pid, 30), 0);
	CHECK_EQ(hd_priority(pid), 30);
	CHECK_EQ(hd_semaphore_signal(&patient.s), 0);
	hd_yield();
	CHECK_STR(trace_text(), "");
	CHECK_EQ(hd_join(pid, NULL, HD_FOREVER), 0);
	CHECK_STR(trace_text(), "woken ");
}

HD_PROCESS_TEST(set_priority_does_not_change_the_order_of_waiters)
{
	struct hd_semaphore s = HD_SEMAPHORE(0);
	struct queuer a = { &s, "a" }, b = { &s, "b" };
	hd_pid pids[] = { born(hd_spawn_at(50, queue_up, &a)), born(hd_spawn_at(60, queue_up, &b)) };

	CHECK_EQ(hd_set_priority(pids[1], 80), 0);
	CHECK_EQ(hd_semaphore_signal(&s), 0);
	CHECK_STR(trace_text(), "a");
	CHECK_EQ(hd_semaphore_signal(&s), 0);
	join_all(pids, 2);
}

HD_PROCESS_TEST(set_priority_of_a_suspended_process_counts_when_it_is_resumed)
{
	hd_pid pid = spawn_word_with(&(struct hd_spawn){ .suspended = true }, say, "a");

	CHECK_EQ(hd_set_priority(pid, 41), 0);
	CHECK_STR(trace_text(), "");
	CHECK_EQ(hd_resume(pid), 0);
	CHECK_STR(trace_text(), "a");
}

HD_PROCESS_TEST(set_priority_refuses_what_is_out_of_range)
{
	static const int bad[] = { INT32_MIN, -40, 0, 9, 81, 256 + 40, INT32_MAX };

	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		CHECK_EQ(hd_set_priority(hd_self(), bad[i]), -EINVAL);
		CHECK_EQ(hd_priority(hd_self()), 40);
		CHECK_EQ(hd_waiting_at(bad[i], NULL, 0), -EINVAL);
	}
	CHECK_EQ(hd_set_priority(hd_self(), 10), 0);
	CHECK_EQ(hd_set_priority(hd_self(), 80), 0);
}

static void raise_from_outside(void *arg)
{
	hd_pid *pids = arg;

	while (state_of(pids[0]) != HD_RUNNING)
		;
	CHECK_EQ(hd_set_priority(pids[1], 35), 0); /* above the one that spins */
	CHECK_EQ(hd_priority(pids[1]), 35);
	CHECK_EQ(hd_join(pids[1], NULL, HD_FOREVER), 0);
	raise_flag(&stopped);
}

HD_PROCESS_TEST(plain_thread_raises_a_ready_process_above_the_runner)
{
	hd_pid pids[] = { born(hd_spawn_at(30, spin, NULL)), spawn_word_at(20, say, "raised") };

	raise_flag(&go);
	on_plain_thread(raise_from_outside, pids);
	CHECK_EQ(hd_join(pids[0], NULL, HD_FOREVER), 0);
	CHECK_STR(trace_text(), "raised");
	CHECK(stats_now().preemptions > 0);
}

/* ---- yield and checkpoint ---- */

HD_PROCESS_TEST(yield_runs_every_equal_once_and_no_lower)
{
	spawn_word(say, "a");
	spawn_word(say, "b");
	spawn_word_at(39, say, "lower");
	CHECK_EQ(hd_yield(), 0);
	CHECK_STR(trace_text(), "ab");
	for (int i = 0; i < 100; i++)
		CHECK_EQ(hd_yield(), 0);
	CHECK_STR(trace_text(), "ab");
}

HD_PROCESS_TEST(checkpoint_gives_way_to_no_equal)
{
	spawn_word(say, "a");
	for (int i = 0; i < 1000; i++)
		CHECK_EQ(hd_checkpoint(), 0);
	CHECK_STR(trace_text(), "");
}

static void *sleep_then_raise(void *arg)
{
	CHECK_EQ(hd_sleep(HD_MS(1)), 0);
	raise_flag(arg);
	return NULL;
}

/* The sleeper's time comes while we are busy: the watcher tells us, and the next checkpoint lets it run. */
HD_PROCESS_TEST(checkpoint_gives_way_to_a_higher_priority_that_wakes)
{
	int awake = 0;

	born(hd_spawn_at(41, sleep_then_raise, &awake));
	while (!is_raised(&awake))
		hd_checkpoint();
	uint64_t n = stats_now().preemptions;
	CHECK(n == 2 ||
	      (n == 1 &&
	       hd_is_simulated())); /* when it began and when it woke, unless time passed so fast that it did not sleep */
}

/* ---- policies ---- */

static void *set_flag(void *arg)
{
	raise_flag(arg);
	return NULL;
}

static void spin_until_equal_runs(enum hd_policy policy)
{
	int ran = 0;
	uint64_t expired = stats_now().expired_quanta;

	CHECK_EQ(hd_set_policy(hd_self(), policy), 0);
	CHECK_EQ(info_of(hd_self()).policy, policy);
	hd_pid pid = born(hd_spawn(set_flag, &ran));
	while (!is_raised(&ran))
		hd_checkpoint();
	CHECK(stats_now().expired_quanta > expired);
	CHECK_EQ(hd_join(pid, NULL, HD_FOREVER), 0);
}

HD_PROCESS_TEST_WITH(round_robin_lets_an_equal_run_when_the_quantum_is_over, .quantum = HD_US(200))
{
	spin_until_equal_runs(HD_RR);
}

HD_PROCESS_TEST_WITH(io_policy_lets_an_equal_run_when_the_quantum_is_over, .quantum = HD_US(200))
{
	spin_until_equal_runs(HD_IO);
}

static void *spin_for(void *arg)
{
	hd_time until = hd_after(*(hd_time *)arg);

	while (hd_now() < until)
		hd_checkpoint();
	return NULL;
}

HD_PROCESS_TEST_WITH(fifo_never_lets_an_equal_run, .quantum = HD_US(100))
{
	hd_time some = HD_MS(20);
	int ran = 0;
	hd_pid pid = born(hd_spawn(set_flag, &ran));

	spin_for(&some);
	CHECK(!is_raised(&ran));
	CHECK_EQ(stats_now().expired_quanta, 0);
	CHECK_EQ(hd_join(pid, NULL, HD_FOREVER), 0);
}

/* Two loops that never yield, each until it has seen the other move three times: under FIFO this would never end. */
struct pair {
	int mine, *other;
};

static void *watch_other(void *arg)
{
	struct pair *pair = arg;

	for (int seen = 0; seen < 3; seen++) {
		int before = __atomic_load_n(pair->other, __ATOMIC_RELAXED);
		while (__atomic_load_n(pair->other, __ATOMIC_RELAXED) == before) {
			__atomic_fetch_add(&pair->mine, 1, __ATOMIC_RELAXED);
			hd_checkpoint();
		}
	}
	__atomic_store_n(&pair->mine, -1, __ATOMIC_RELAXED);
	return NULL;
}

static void take_turns(struct hd_spawn how)
{
	struct pair a = { 0 }, b = { .other = &a.mine };

	a.other = &b.mine;
	hd_pid pids[] = { born(hd_spawn_with(&how, watch_other, &a)), born(hd_spawn_with(&how, watch_other, &b)) };
	join_all(pids, 2);
}

HD_PROCESS_TEST_WITH(round_robin_processes_take_turns, .quantum = HD_US(200))
{
	take_turns((struct hd_spawn){ .policy = HD_RR });
	CHECK(stats_now().expired_quanta >= 5);
}

HD_PROCESS_TEST_WITH(io_processes_take_turns, .quantum = HD_US(200))
{
	take_turns((struct hd_spawn){ .policy = HD_IO });
	CHECK(stats_now().expired_quanta >= 5);
}

static void *raise_attention(void *arg)
{
	CHECK_EQ(hd_hold_open(1), 1);
	CHECK_EQ(hd_hold_open(-1), 0); /* the worker should look up, and there is no safe point before we end */
	return arg;
}

static void *spin_until(void *arg)
{
	while (!is_raised(arg))
		hd_checkpoint();
	return NULL;
}

/* A quantum does not begin while an event is pending. It must when that has been taken in: else the process keeps the worker. */
HD_PROCESS_TEST_WITH(io_quantum_begins_once_the_event_is_taken_in, .quantum = HD_US(200))
{
	int ran = 0;
	hd_pid event = born(hd_spawn(raise_attention, NULL));
	hd_pid pids[] = { born(hd_spawn_with(&(struct hd_spawn){ .policy = HD_IO }, spin_until, &ran)),
			  born(hd_spawn(set_flag, &ran)) };

	CHECK_EQ(hd_join(event, NULL, HD_FOREVER), 0);
	join_all(pids, 2);
}

HD_PROCESS_TEST_WITH(policy_default_is_the_runtimes, .quantum = HD_US(200), .policy = HD_RR)
{
	take_turns((struct hd_spawn){ 0 });
	CHECK_EQ(info_of(hd_self()).policy, HD_RR);
	CHECK_EQ(hd_set_policy(hd_self(), HD_FIFO), 0);
	CHECK_EQ(info_of(hd_self()).policy, HD_FIFO);
	CHECK_EQ(hd_set_policy(hd_self(), HD_POLICY_DEFAULT), 0);
	CHECK_EQ(info_of(hd_self()).policy, HD_RR);
}

/* A quantum never lets a lower priority run. */
HD_PROCESS_TEST_WITH(round_robin_does_not_serve_lower_priorities, .quantum = HD_US(100), .policy = HD_RR)
{
	hd_time some = HD_MS(10);
	int ran = 0;
	hd_pid pid = born(hd_spawn_at(39, set_flag, &ran));

	spin_for(&some);
	CHECK(!is_raised(&ran));
	CHECK_EQ(hd_join(pid, NULL, HD_FOREVER), 0);
}

/* hd_stats counts the times that an equal got the worker, not the times that there was nobody to give it to. */
HD_PROCESS_TEST_WITH(quantum_of_a_process_without_equals_is_not_counted, .quantum = HD_US(100), .policy = HD_RR)
{
	hd_time some = HD_MS(10);

	spin_for(&some);
	CHECK_EQ(stats_now().expired_quanta, 0);
}

/* A quantum dies with its process: a FIFO process that runs next has none. */
HD_PROCESS_TEST_WITH(quantum_ends_with_its_process, .quantum = HD_MS(2))
{
	hd_time none = 0, some = HD_MS(20);
	hd_pid rr = born(hd_spawn_with(&(struct hd_spawn){ .policy = HD_RR }, spin_for, &none));
	hd_pid fifo[] = { born(hd_spawn(spin_for, &some)), spawn_word(say, "equal") };

	hd_yield();
	/* rr has ended; the first FIFO one ran to its end before its equal */
	CHECK_EQ(stats_now().expired_quanta, 0);
	CHECK_EQ(hd_join(rr, NULL, HD_FOREVER), 0);
	join_all(fifo, 2);
}

HD_PROCESS_TEST(set_policy_moves_nobody_in_the_run_queue)
{
	hd_pid a = spawn_word(say, "a");

	spawn_word(say, "b");
	CHECK_EQ(hd_set_policy(a, HD_RR), 0);
	CHECK_EQ(info_of(a).policy, HD_RR);
	CHECK_EQ(hd_set_policy(hd_self(), HD_RR), 0); /* and we do not yield */
	CHECK_EQ(hd_set_policy(hd_self(), HD_FIFO), 0);
	CHECK_STR(trace_text(), "");
	hd_yield();
	CHECK_STR(trace_text(), "ab");
}

HD_PROCESS_TEST(set_policy_refuses_what_is_out_of_range)
{
	CHECK_EQ(hd_set_policy(hd_self(), (enum hd_policy) - 1), -EINVAL);
	CHECK_EQ(hd_set_policy(hd_self(), (enum hd_policy)4), -EINVAL);
	CHECK_EQ(info_of(hd_self()).policy, HD_FIFO);
}

static void change_policy(void *arg)
{
	CHECK_EQ(hd_set_policy(*(hd_pid *)arg, HD_RR), 0);
	CHECK_EQ(info_of(*(hd_pid *)arg).policy, HD_RR);
	CHECK_EQ(hd_set_policy(*(hd_pid *)arg, (enum hd_policy)9), -EINVAL);
}

/* A FIFO loop is made RR while it runs: its equal gets its turn. (Were a preempted process put at the tail, our waking up would
 * give it that already.) */
HD_PROCESS_TEST_WITH(plain_thread_changes_the_policy_of_a_running_process, .quantum = HD_US(200),
		     .preempted = HD_PREEMPTED_HEAD)
{
	hd_pid spinner = born(hd_spawn_at(30, spin, NULL));

	born(hd_spawn_at(30, set_flag, &stopped));
	raise_flag(&go);
	on_plain_thread(change_policy, &spinner);
	CHECK_EQ(hd_join(spinner, NULL, HD_FOREVER), 0);
	CHECK(stats_now().expired_quanta > 0);
}
