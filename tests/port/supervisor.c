/* port/supervisor.c - what supervisors promise: the order of stops and starts, no child lost, none doubled, none left behind. */
#define _GNU_SOURCE /* memfd_create */
#include <stdlib.h>

#include "port/common.h"
#include "rt/capture.h"

enum { CHILDREN = 3 };

/* The dead may still be telling of their end, on other workers. */
static void check_all_gone_soon(void)
{
	struct hd_stats stats;

	do {
		hd_yield();
		stats = stats_now();
	} while (stats.live_messages != 0 || stats.live_ports != 0);
}

/* ---- children that say when they come and go ---- */

enum way { STAYS, RETURNS, FAILS, CANCELLED, KILLED };

struct toy {
	const char *name;
	long lives;		   /* processes that run it: 0 or 1 */
	long starts;		   /* times that it has begun */
	hd_pid pid;		   /* of the last one */
	struct hd_semaphore ended; /* asks it to return */
};

static struct toy a = { .name = "a" }, b = { .name = "b" }, c = { .name = "c" }, d = { .name = "d" };
static struct toy *const toys[] = { &a, &b, &c };
static struct hd_semaphore began;
static long doubled;
static bool quiet; /* no trace: there are several workers */

static void note(const char *sign, const struct toy *toy)
{
	if (!quiet)
		trace("%s%s ", sign, toy->name);
}

static void toy_ends(void *arg)
{
	struct toy *toy = arg;

	note("-", toy);
	add(&toy->lives, -1);
}

static void toy_begins(struct toy *toy)
{
	if (add(&toy->lives, 1) != 1)
		add(&doubled, 1);
	add(&toy->starts, 1);
	__atomic_store_n(&toy->pid, hd_self(), __ATOMIC_RELEASE);
	note("+", toy);
	hd_semaphore_signal(&began);
}

/* Lives until it is terminated, or asked to return. */
static void *lives(void *arg)
{
	struct toy *toy = arg;
	struct hd_cleanup cleanup;

	hd_cleanup_push(&cleanup, toy_ends, toy);
	toy_begins(toy);
	CHECK_EQ(hd_semaphore_wait(&toy->ended, HD_FOREVER), 0);
	hd_cleanup_pop(&cleanup, true);
	return toy;
}

static hd_pid pid_of(const struct toy *toy)
{
	return __atomic_load_n(&toy->pid, __ATOMIC_ACQUIRE);
}

static void wait_for_starts(int n)
{
	while (n-- > 0)
		CHECK_EQ(hd_semaphore_wait(&began, HD_FOREVER), 0);
}

/* The deadline is far: in simulations deadlines may come early. */
#define LIVES(toy, ...)                                                                                                        \
	{                                                                                                                      \
		.name = #toy, .entry = lives, .arg = &toy, .shutdown = HD_FOREVER, __VA_ARGS__                                 \
	}

/* Runs as a process of its own; the children have begun. */
static hd_pid supervised(const struct hd_supervisor *plan)
{
	hd_pid pid = born(hd_spawn_with(&(struct hd_spawn){ .name = "supervisor" }, hd_supervisor_entry, (void *)plan));

	wait_for_starts((int)plan->count);
	trace("| ");
	return pid;
}

static struct hd_end end_of(hd_pid pid)
{
	struct hd_end end;

	CHECK_EQ(hd_join_end(pid, &end, HD_FOREVER), 0);
	return end;
}

static void check_failed(hd_pid pid, int err)
{
	struct hd_end end = end_of(pid);

	CHECK_EQ(end.kind, HD_END_FAILED);
	CHECK_EQ(end.err, err);
}

static void terminate(hd_pid supervisor)
{
	trace("| ");
	CHECK_EQ(hd_terminate(supervisor, HD_FOREVER), 0);
	CHECK_EQ(hd_join(supervisor, NULL, HD_FOREVER), 0);
	check_all_gone_soon();
}

/* ---- strategies ---- */

static const char *trace_of(enum hd_strategy strategy, const struct toy *victim, int restarted)
{
	const struct hd_supervised children[] = { LIVES(a), LIVES(b), LIVES(c) };
	const struct hd_supervisor plan = { .strategy = strategy, .children = children, .count = CHILDREN };

	trace_clear();
	hd_pid supervisor = supervised(&plan);
	CHECK_EQ(hd_kill(pid_of(victim), 5), 0);
	wait_for_starts(restarted);
	terminate(supervisor);
	return trace_text();
}

HD_PROCESS_TEST(supervisor_one_for_one_restarts_one)
{
	CHECK_STR(trace_of(HD_ONE_FOR_ONE, &b, 1), "+a +b +c | -b +b | -c -b -a ");
}

HD_PROCESS_TEST(supervisor_one_for_all_stops_backwards_and_starts_forwards)
{
	CHECK_STR(trace_of(HD_ONE_FOR_ALL, &b, 3), "+a +b +c | -b -c -a +a +b +c | -c -b -a ");
}

HD_PROCESS_TEST(supervisor_rest_for_one_takes_those_after_it)
{
	CHECK_STR(trace_of(HD_REST_FOR_ONE, &b, 2), "+a +b +c | -b -c +b +c | -c -b -a ");
	CHECK_STR(trace_of(HD_REST_FOR_ONE, &c, 1), "+a +b +c | -c +c | -c -b -a ");
}

/* Siblings that have returned come back with the others; those that are never started again do not. */
static const char *trace_of_returned(enum hd_restart restart)
{
	const struct hd_supervised children[] = { LIVES(a, .restart = restart), LIVES(b), LIVES(c, .restart = restart) };
	const struct hd_supervisor plan = { .strategy = HD_ONE_FOR_ALL, .children = children, .count = CHILDREN };

	trace_clear();
	hd_pid supervisor = supervised(&plan);
	hd_semaphore_signal(&a.ended);
	while (value_of(&a.lives) != 0)
		hd_sleep(HD_US(100));
	CHECK_EQ(hd_kill(pid_of(&b), 5), 0);
	wait_for_starts(restart == HD_RESTART_NEVER ? 1 : 3);
	terminate(supervisor);
	return trace_text();
}

HD_PROCESS_TEST(supervisor_one_for_all_and_children_that_have_returned)
{
	CHECK_STR(trace_of_returned(HD_RESTART_ON_FAILURE), "+a +b +c | -a -b -c +a +b +c | -c -b -a ");
	CHECK_STR(trace_of_returned(HD_RESTART_NEVER), "+a +b +c | -a -b -c +b | -b ");
}

/* A child that was stopped by name stays so when its siblings are restarted. */
HD_PROCESS_TEST(supervisor_one_for_all_leaves_a_stopped_child)
{
	const struct hd_supervised children[] = { LIVES(a), LIVES(b), LIVES(c) };
	const struct hd_supervisor plan = {
		.strategy = HD_ONE_FOR_ALL, .name = "top", .children = children, .count = CHILDREN
	};
	hd_pid supervisor = supervised(&plan);
	hd_port *top = hd_whereis("top");

	CHECK_EQ(hd_supervisor_stop(top, "b", HD_FOREVER), 0);
	hd_port_release(top);
	CHECK_EQ(hd_kill(pid_of(&a), 5), 0);
	wait_for_starts(2);
	terminate(supervisor);
	CHECK_STR(trace_text(), "+a +b +c | -b -a -c +a +c | -c -a ");
}

/* ---- which ends count ---- */

static void *ends_so(void *way)
{
	switch ((enum way)(long)way) {
	case FAILS:
		hd_fail(EIO);
		break;
	case CANCELLED:
		hd_set_cancel_type(HD_CANCEL_UNWIND);
		CHECK_EQ(hd_cancel(hd_self()), 0);
		hd_test_cancel();
		break;
	case KILLED:
		hd_kill(hd_self(), 9);
		break;
	default:
		break;
	}
	return NULL;
}

static void *supervises_one(void *plan)
{
	return (void *)(long)hd_supervise(plan);
}

/* What hd_supervise answers in a process of its own. */
static int answer_of(const struct hd_supervisor *plan)
{
	struct hd_end end = end_of(born(hd_spawn(supervises_one, (void *)plan)));

	CHECK_EQ(end.kind, HD_END_RETURNED);
	check_all_gone_soon();
	return (int)(long)end.result;
}

HD_PROCESS_TEST(supervisor_restarts_as_the_end_says)
{
	for (int restart = HD_RESTART_ALWAYS; restart <= HD_RESTART_NEVER; restart++)
		for (long way = RETURNS; way <= KILLED; way++) {
			const struct hd_supervised child = { .entry = ends_so,
							     .arg = (void *)way,
							     .restart = (enum hd_restart)restart };
			const struct hd_supervisor plan = { .restarts = HD_RESTARTS_NONE, .children = &child, .count = 1 };
			bool again = restart == HD_RESTART_ALWAYS || (restart == HD_RESTART_ON_FAILURE && way != RETURNS);
			CHECK_EQ(answer_of(&plan), again ? -ENOTRECOVERABLE : 0);
		}
	CHECK_EQ(answer_of(&(struct hd_supervisor){ .count = 0 }), 0);
}

/* It goes on while one child is left. */
HD_PROCESS_TEST(supervisor_returns_when_all_have_returned)
{
	const struct hd_supervised children[] = { LIVES(a, .restart = HD_RESTART_ON_FAILURE),
						  LIVES(b, .restart = HD_RESTART_NEVER) };
	const struct hd_supervisor plan = { .children = children, .count = 2 };
	hd_pid supervisor = supervised(&plan);

	hd_semaphore_signal(&a.ended);
	CHECK_EQ(hd_join(supervisor, NULL, hd_after(HD_MS(5))), -ETIMEDOUT);
	hd_semaphore_signal(&b.ended);
	CHECK_EQ(end_of(supervisor).kind, HD_END_RETURNED);
	CHECK_STR(trace_text(), "+a +b | -a -b ");
}

/* ---- how often, and when ---- */

static long runs;

static void *fails(void *after)
{
	add(&runs, 1);
	CHECK_EQ(hd_sleep((hd_time)(long)after), 0);
	hd_fail(EIO);
	return NULL;
}

HD_WORKERS_TEST(supervisor_gives_up_after_so_many_restarts)
{
	static const int counts[][2] = { { 0, 3 }, { HD_RESTARTS_NONE, 0 }, { 1, 1 }, { 7, 7 } };

	(void)workers;
	quiet = true;
	for (int strategy = HD_ONE_FOR_ONE; strategy <= HD_REST_FOR_ONE; strategy++)
		for (unsigned i = 0; i < 4; i++) {
			const struct hd_supervised children[] = { LIVES(a),
								  { .entry = fails, .shutdown = HD_FOREVER },
								  LIVES(b) };
			const struct hd_supervisor plan = { .strategy = (enum hd_strategy)strategy,
							    .restarts = counts[i][0],
							    .within = HD_SEC(1000),
							    .children = children,
							    .count = CHILDREN };
			set(&runs, 0);
			CHECK_EQ(answer_of(&plan), -ENOTRECOVERABLE);
			CHECK_EQ(value_of(&runs), counts[i][1] + 1);
			CHECK_EQ(value_of(&a.lives) + value_of(&b.lives), 0);
		}
}

static long enough; /* runs after which children return */

static void *fails_often(void *after)
{
	if (add(&runs, 1) > value_of(&enough))
		return NULL;
	CHECK_EQ(hd_sleep((hd_time)(long)after), 0);
	hd_fail(EIO);
	return NULL;
}

static int answer_of_failing(struct hd_supervisor plan, long times, hd_time after)
{
	const struct hd_supervised child = { .entry = fails_often,
					     .arg = (void *)(long)after,
					     .restart = HD_RESTART_ON_FAILURE };

	plan.children = &child;
	plan.count = 1;
	set(&runs, 0);
	set(&enough, times);
	return answer_of(&plan);
}

/* A sleep is never too short: each of these ends comes after the window of the one before. */
HD_PROCESS_TEST(supervisor_forgets_restarts_that_are_past)
{
	CHECK_EQ(answer_of_failing((struct hd_supervisor){ .restarts = 1, .within = HD_US(10) }, 20, HD_US(50)), 0);
	CHECK_EQ(value_of(&runs), 21);
	CHECK_EQ(answer_of_failing((struct hd_supervisor){ .restarts = 19, .within = HD_SEC(1000) }, 20, 0), -ENOTRECOVERABLE);
	CHECK_EQ(answer_of_failing((struct hd_supervisor){ .restarts = 20, .within = HD_SEC(1000) }, 20, 0), 0);
	CHECK_EQ(answer_of_failing((struct hd_supervisor){ .restarts = HD_RESTARTS_UNLIMITED, .within = HD_SEC(1000) }, 100, 0),
		 0);
	CHECK_EQ(value_of(&runs), 101);
}

static hd_time last_end, delays[64];
static long ends;

static void note_delay(const struct hd_supervised *child, const struct hd_end *end, void *arg)
{
	CHECK(child->entry != NULL && arg == &ends);
	CHECK_EQ(end->kind, ends < 60 ? HD_END_FAILED : HD_END_RETURNED);
	ends++;
	last_end = hd_now();
}

static void *notes_delay(void *arg)
{
	delays[ends] = hd_now() - last_end;
	if (ends < 60)
		hd_fail(EIO);
	return arg;
}

/* Each wait is at least as long as it should be. If the bound did not hold, the last of them would be the age of the universe. */
HD_PROCESS_TEST(supervisor_backs_off_up_to_a_bound)
{
	const struct hd_supervised child = { .entry = notes_delay, .restart = HD_RESTART_ON_FAILURE };
	const struct hd_supervisor plan = { .restarts = 100,
					    .within = HD_SEC(1000),
					    .backoff = HD_US(100),
					    .backoff_max = HD_US(800),
					    .children = &child,
					    .count = 1,
					    .ended = note_delay,
					    .arg = &ends };

	CHECK_EQ(answer_of(&plan), 0);
	CHECK_EQ(ends, 61);
	for (int i = 1; i <= 60; i++)
		CHECK(delays[i] >= (i < 4 ? HD_US(100) << (i - 1) : HD_US(800)));
}

/* A child that has lived long enough begins anew: or the last waits would be half a minute each. */
HD_PROCESS_TEST(supervisor_forgets_back_off_after_a_calm_time)
{
	const struct hd_supervisor plan = { .restarts = HD_RESTARTS_UNLIMITED, .within = HD_US(10), .backoff = HD_US(50) };

	CHECK_EQ(answer_of_failing(plan, 40, HD_US(50)), 0);
	CHECK_EQ(value_of(&runs), 41);
}

/* While one child waits for its restart, the others go on, and end, and are restarted. */
HD_PROCESS_TEST(supervisor_back_off_of_one_holds_up_no_other)
{
	const struct hd_supervised children[] = { LIVES(a), { .entry = fails_often, .shutdown = HD_FOREVER } };
	const struct hd_supervisor plan = { .restarts = 100,
					    .within = HD_SEC(1000),
					    .backoff = HD_US(10),
					    .backoff_max = HD_SEC(10000),
					    .children = children,
					    .count = 2 };

	set(&enough, 1000); /* its delay doubles, until it is never started again */
	hd_pid supervisor = born(hd_spawn(hd_supervisor_entry, (void *)&plan));
	wait_for_starts(1);
	for (int i = 0; i < 5; i++) {
		CHECK_EQ(hd_kill(pid_of(&a), 1), 0);
		wait_for_starts(1);
	}
	terminate(supervisor);
	CHECK_EQ(value_of(&a.lives), 0);
}

/* rest-for-one: a child ends while those after it wait for their restart. They start together, in order: in virtual time, which comes. */
HD_PROCESS_TEST(supervisor_restart_that_is_due_joins_an_earlier_one)
{
	const struct hd_supervised children[] = { LIVES(a), LIVES(b), LIVES(c) };
	const struct hd_supervisor plan = { .strategy = HD_REST_FOR_ONE,
					    .backoff = HD_SEC(1000),
					    .backoff_max = HD_SEC(1000),
					    .name = "top",
					    .children = children,
					    .count = 3 };
	hd_pid supervisor = supervised(&plan);
	hd_port *top = hd_whereis("top");
	struct hd_supervised_info info[CHILDREN];

	for (int i = 1; i >= 0; i--) {
		CHECK_EQ(hd_kill(pid_of(toys[i]), 5), 0);
		do
			CHECK_EQ(hd_supervisor_children(top, info, CHILDREN, HD_FOREVER), CHILDREN);
		while (info[i].state == HD_SUPERVISED_RUNS);
		for (int k = 0; k < CHILDREN; k++)
			CHECK_EQ(info[k].state, k < i ? HD_SUPERVISED_RUNS : HD_SUPERVISED_DUE);
	}
	hd_port_release(top);
	CHECK_STR(trace_text(), "+a +b +c | -b -c -a ");
	if (hd_is_simulated()) {
		wait_for_starts(CHILDREN);
		CHECK_STR(trace_text(), "+a +b +c | -b -c -a +a +b +c ");
	}
	terminate(supervisor);
}

/* ---- the end of the supervisor ---- */

static struct hd_semaphore let_go;

/* Does not hear that it is terminated until it is let go. */
static void *is_deaf(void *arg)
{
	struct toy *toy = arg;
	struct hd_cleanup cleanup;

	hd_set_cancel_state(HD_CANCEL_DISABLED);
	hd_cleanup_push(&cleanup, toy_ends, toy);
	toy_begins(toy);
	CHECK_EQ(hd_semaphore_wait(&let_go, HD_FOREVER), 0);
	hd_set_cancel_state(HD_CANCEL_ENABLED);
	hd_test_cancel();
	CHECK(false);
	hd_cleanup_pop(&cleanup, true);
	return toy;
}

static void release_deaf(const struct toy *toy)
{
	CHECK_EQ(value_of(&toy->lives), 1);
	hd_semaphore_signal(&let_go);
	while (!is_gone(pid_of(toy)))
		hd_sleep(HD_US(100));
	CHECK_EQ(value_of(&toy->lives), 0);
	check_all_gone_soon();
}

static void check_complaint(const char *said)
{
	CHECK_EQ(times_said(said, "heddle: the child b, process "), 1);
	CHECK_EQ(times_said(said, " was terminated 0.001 s ago and has not ended"), 1);
}

/* A child outlives its deadline: it is named, its siblings are stopped, the supervisor fails. */
HD_PROCESS_TEST(supervisor_fails_if_a_child_outlives_its_deadline)
{
	const struct hd_supervised children[] = { LIVES(a),
						  { .name = "b", .entry = is_deaf, .arg = &b, .shutdown = HD_MS(1) },
						  LIVES(c) };

	for (int cause = 0; cause < 3; cause++) {
		const struct hd_supervisor plan = { .strategy = cause == 0 ? HD_ONE_FOR_ALL : HD_ONE_FOR_ONE,
						    .name = "top",
						    .children = children,
						    .count = CHILDREN };
		trace_clear();
		capture_begin();
		hd_pid supervisor = supervised(&plan);
		if (cause == 0) { /* it is stopped with a sibling */
			CHECK_EQ(hd_kill(pid_of(&c), 5), 0);
		} else if (cause == 1) { /* the supervisor is cancelled */
			CHECK_EQ(hd_cancel(supervisor), 0);
		} else { /* it is stopped by name */
			hd_port *top = hd_whereis("top");
			CHECK_EQ(hd_supervisor_stop(top, "b", HD_FOREVER), -ETIMEDOUT);
			hd_port_release(top);
		}
		check_failed(supervisor, -ETIMEDOUT);
		check_complaint(capture_end());
		CHECK_STR(trace_text(), "+a +b +c | -c -a ");
		release_deaf(&b);
	}
}

HD_PROCESS_TEST(supervisor_that_is_terminated_reports_a_child_that_outlives_it)
{
	const struct hd_supervised children[] = { LIVES(a),
						  { .name = "b", .entry = is_deaf, .arg = &b, .shutdown = HD_MS(1) },
						  LIVES(c) };
	const struct hd_supervisor plan = { .children = children, .count = CHILDREN };

	capture_begin();
	hd_pid supervisor = supervised(&plan);
	CHECK_EQ(hd_terminate(supervisor, HD_FOREVER), 0);
	check_complaint(capture_end());
	CHECK_EQ(end_of(supervisor).kind, HD_END_KILLED);
	CHECK_STR(trace_text(), "+a +b +c | -c -a ");
	release_deaf(&b);
}

static void *supervises_and_goes_on(void *plan)
{
	CHECK_EQ(hd_supervise(plan), -ECANCELED);
	trace("cancelled ");
	uint64_t spawned = stats_now().spawned;
	CHECK_EQ(hd_supervise(plan), -ECANCELED);
	CHECK_EQ(stats_now().spawned, spawned);
	CHECK_EQ(hd_cancel_clear(), 1);
	return NULL;
}

HD_PROCESS_TEST(supervisor_that_is_cancelled_stops_its_children_and_goes_on)
{
	const struct hd_supervised children[] = { LIVES(a), LIVES(b) };
	const struct hd_supervisor plan = { .children = children, .count = 2 };
	hd_pid supervisor = born(hd_spawn(supervises_and_goes_on, (void *)&plan));

	wait_for_starts(2);
	CHECK_EQ(hd_cancel(supervisor), 0);
	CHECK_EQ(hd_join(supervisor, NULL, HD_FOREVER), 0);
	CHECK_STR(trace_text(), "+a +b -b -a cancelled ");
	check_all_gone_soon();
}

/* ---- trees ---- */

HD_PROCESS_TEST(supervisor_tree_fails_upwards_and_stops_from_the_leaves)
{
	const struct hd_supervised leaves[] = { LIVES(b), LIVES(c) };
	const struct hd_supervisor inner = { .restarts = 1, .within = HD_SEC(1000), .children = leaves, .count = 2 };
	const struct hd_supervised branches[] = { LIVES(a),
						  { .name = "inner", .entry = hd_supervisor_entry, .arg = (void *)&inner },
						  LIVES(d) };
	const struct hd_supervisor outer = {
		.strategy = HD_REST_FOR_ONE, .restarts = 1, .within = HD_SEC(1000), .children = branches, .count = 3
	};
	hd_pid supervisor = born(hd_spawn(hd_supervisor_entry, (void *)&outer));

	wait_for_starts(4);
	CHECK_STR(trace_text(), "+a +d +b +c "); /* the inner one starts its own when it runs */
	trace_clear();
	CHECK_EQ(hd_kill(pid_of(&b), 5), 0);
	wait_for_starts(1);
	CHECK_STR(trace_text(), "-b +b ");
	trace_clear();
	CHECK_EQ(hd_kill(pid_of(&b), 5), 0); /* the inner one gives up */
	wait_for_starts(3);
	CHECK_STR(trace_text(), "-b -c -d +d +b +c ");
	trace_clear();
	CHECK_EQ(hd_kill(pid_of(&c), 5), 0);
	wait_for_starts(1);
	CHECK_EQ(hd_kill(pid_of(&c), 5), 0); /* the outer one, too */
	check_failed(supervisor, -ENOTRECOVERABLE);
	CHECK_STR(trace_text(), "-c +c -c -b -d -a ");
	check_all_gone_soon();
}

/* Of a tree that is terminated each leaf ends before its supervisor. */
HD_PROCESS_TEST(supervisor_tree_that_is_terminated_leaves_nothing)
{
	const struct hd_supervised leaves[] = { LIVES(b), LIVES(c) };
	const struct hd_supervisor inner = { .children = leaves, .count = 2 };
	const struct hd_supervised branches[] = { LIVES(a),
						  { .entry = hd_supervisor_entry, .arg = (void *)&inner, .how.priority = 50 },
						  LIVES(d) };
	const struct hd_supervisor outer = { .children = branches, .count = 3 };
	hd_pid supervisor = born(hd_spawn(hd_supervisor_entry, (void *)&outer));

	wait_for_starts(4);
	trace_clear();
	terminate(supervisor);
	CHECK_STR(trace_text(), "| -d -c -b -a ");
	CHECK_EQ(stats_now().live_processes, 1);
}

static void *ends_slowly(void *arg)
{
	struct toy *toy = arg;

	hd_set_cancel_state(HD_CANCEL_DISABLED);
	toy_begins(toy);
	CHECK_EQ(hd_sleep(HD_SEC(100)), 0);
	add(&toy->lives, -1);
	return toy;
}

/* A supervisor has as much time to end as its children need. */
HD_PROCESS_TEST(supervisor_waits_for_a_supervisor)
{
	const struct hd_supervised leaf = { .name = "b", .entry = ends_slowly, .arg = &b, .shutdown = HD_FOREVER };
	const struct hd_supervisor inner = { .children = &leaf, .count = 1 };
	const struct hd_supervised branch = { .name = "inner", .entry = hd_supervisor_entry, .arg = (void *)&inner };
	const struct hd_supervisor outer = { .children = &branch, .count = 1 };

	if (!hd_is_simulated())
		SKIP("it takes 100 s, unless time is virtual");
	capture_begin();
	hd_pid supervisor = supervised(&outer);
	terminate(supervisor);
	CHECK_STR(capture_end(), "");
	CHECK_EQ(value_of(&b.lives), 0);
}

/* ---- asking ---- */

static void release(void *port)
{
	hd_port_release(port);
}

static void *asks_for_its_own_restart(void *arg)
{
	hd_port *top = hd_whereis("top");
	struct hd_cleanup cleanup;

	CHECK(top != NULL);
	hd_cleanup_push(&cleanup, release, top);
	if (add(&runs, 1) == 1) {
		ANY_ANSWER(hd_supervisor_restart(top, "selfish", HD_FOREVER)); /* it ends here */
		CHECK(false);
	}
	hd_cleanup_pop(&cleanup, true);
	hd_semaphore_signal(&began);
	CHECK_EQ(hd_semaphore_wait(&let_go, HD_FOREVER), 0);
	return arg;
}

HD_WORKERS_TEST(supervisor_answers_about_its_children)
{
	const struct hd_supervised children[] = {
		LIVES(a),
		LIVES(b, .restart = HD_RESTART_NEVER),
		{ .name = "selfish", .entry = asks_for_its_own_restart, .shutdown = HD_FOREVER }
	};
	const struct hd_supervisor plan = {
		.strategy = HD_ONE_FOR_ALL, .restarts = HD_RESTARTS_NONE, .name = "top", .children = children, .count = CHILDREN
	};
	struct hd_supervised_info info[CHILDREN + 1];

	(void)workers;
	quiet = true;
	set(&runs, 0);
	hd_pid supervisor = supervised(&plan);
	hd_port *top = hd_whereis("top");
	CHECK_EQ(hd_supervisor_children(top, info, CHILDREN + 1, HD_FOREVER), CHILDREN);
	CHECK_STR(info[0].name, "a");
	CHECK_EQ(info[0].pid, pid_of(&a));
	CHECK_EQ(info[0].state, HD_SUPERVISED_RUNS);
	CHECK_EQ(info[2].restarts, 1);
	CHECK_EQ(hd_supervisor_stop(top, "a", HD_FOREVER), 0);
	CHECK_EQ(value_of(&a.lives), 0);
	CHECK_EQ(hd_supervisor_stop(top, "a", HD_FOREVER), 0);
	hd_semaphore_signal(&b.ended);
	while (hd_supervisor_children(top, info, CHILDREN, HD_FOREVER) == CHILDREN && info[1].state != HD_SUPERVISED_ENDED)
		hd_sleep(HD_US(100));
	CHECK_EQ(info[0].state, HD_SUPERVISED_STOPPED);
	CHECK_EQ(info[0].pid, 0);
	CHECK_EQ(hd_supervisor_restart(top, "a", HD_FOREVER), 0);
	wait_for_starts(1);
	CHECK_EQ(hd_supervisor_restart(top, "b", HD_FOREVER), 0);
	wait_for_starts(1);
	CHECK_EQ(hd_supervisor_children(top, info, 1, HD_FOREVER), CHILDREN);
	CHECK_EQ(info[0].restarts, 1);
	CHECK_EQ(hd_supervisor_children(top, NULL, 0, HD_FOREVER), CHILDREN);
	CHECK_EQ(hd_supervisor_stop(top, "nobody", HD_FOREVER), -ENOENT);
	CHECK_EQ(hd_supervisor_stop(top, NULL, HD_FOREVER), -EINVAL);
	CHECK_EQ(hd_supervisor_stop(top, "a name that is longer than any name", HD_FOREVER), -EINVAL);
	send_tag(top, 5); /* not meant for a supervisor */
	CHECK_EQ(hd_call(top, 5, NULL, 0, NULL, HD_FOREVER), -EPIPE);
	check_failed(born(hd_spawn(hd_supervisor_entry, (void *)&plan)), -EEXIST);
	CHECK_EQ(hd_terminate(supervisor, HD_FOREVER), 0);
	CHECK_EQ(hd_supervisor_stop(top, "a", HD_FOREVER), -ESRCH);
	CHECK(hd_whereis("top") == NULL);
	hd_port_release(top);
	CHECK_EQ(hd_join(supervisor, NULL, HD_FOREVER), 0);
	CHECK_EQ(value_of(&a.lives) + value_of(&b.lives), 0);
	check_all_gone_soon();
}

static hd_port *top_port;

static void wait_for_requests(const struct hd_supervised *child, const struct hd_end *end, void *n)
{
	CHECK_EQ(end->kind, child->entry == lives ? HD_END_KILLED : HD_END_RETURNED);
	hd_semaphore_signal(&began);
	while (length_of(top_port) < (size_t)(long)n)
		hd_sleep(HD_US(100));
}

static void *gives_up_and_goes_on(void *plan)
{
	CHECK_EQ(hd_supervise(plan), -ENOTRECOVERABLE);
	CHECK(hd_whereis("top") == NULL);
	CHECK_EQ(hd_semaphore_wait(&let_go, HD_FOREVER), 0);
	return NULL;
}

static void *hears_of_the_end(void *arg)
{
	CHECK_EQ(hd_supervisor_children(top_port, NULL, 0, HD_FOREVER), -EPIPE);
	return arg;
}

/* Requests that are there when the supervisor gives up are answered, though its process goes on. */
HD_WORKERS_TEST(supervisor_that_gives_up_answers_what_has_come)
{
	const struct hd_supervised children[] = { LIVES(a) };
	const struct hd_supervisor plan = { .restarts = HD_RESTARTS_NONE,
					    .name = "top",
					    .children = children,
					    .count = 1,
					    .ended = wait_for_requests,
					    .arg = (void *)4L };
	hd_pid asking[4], supervisor;

	(void)workers;
	quiet = true;
	supervisor = born(hd_spawn(gives_up_and_goes_on, (void *)&plan));
	wait_for_starts(1);
	top_port = hd_whereis("top");
	CHECK_EQ(hd_kill(pid_of(&a), 1), 0);
	CHECK_EQ(hd_semaphore_wait(&began, HD_FOREVER), 0); /* the supervisor has heard of it */
	for (int i = 0; i < 4; i++)
		asking[i] = born(hd_spawn(hears_of_the_end, NULL));
	join_all(asking, 4);
	hd_semaphore_signal(&let_go);
	CHECK_EQ(hd_join(supervisor, NULL, HD_FOREVER), 0);
	hd_port_release(top_port);
	check_all_gone_soon();
}

static size_t waiting;

static void fill_port(const struct hd_supervised *child, const struct hd_end *end, void *arg)
{
	CHECK(child->entry != NULL && arg == NULL);
	hd_port *top = hd_whereis("top");
	for (int i = 0; i < 100 && end->kind == HD_END_FAILED; i++)
		send_tag(top, 5);
	hd_port_release(top);
}

static void *looks_into_port(void *arg)
{
	hd_port *top = hd_whereis("top");

	waiting = length_of(top);
	hd_port_release(top);
	if (add(&runs, 1) == 1)
		hd_fail(EIO);
	return arg;
}

/* However many messages come, what is due is started. */
HD_PROCESS_TEST(supervisor_messages_do_not_hold_up_restarts)
{
	const struct hd_supervised child = { .entry = looks_into_port, .restart = HD_RESTART_ON_FAILURE, .how.priority = 50 };
	const struct hd_supervisor plan = { .name = "top", .children = &child, .count = 1, .ended = fill_port };

	CHECK_EQ(hd_supervise(&plan), 0);
	CHECK_EQ(value_of(&runs), 2);
	CHECK(waiting > 90);
	check_all_gone_soon();
}

static void *asks_too_late(void *arg)
{
	int err = hd_supervisor_children(top_port, NULL, 0, HD_FOREVER);

	CHECK(err == 1 || err == -EPIPE || err == -ESRCH);
	return arg;
}

/* A request that comes while the supervisor gives up is answered, also if its process goes on. */
HD_WORKERS_TEST(supervisor_that_ends_answers_all_requests)
{
	const struct hd_supervised children[] = { LIVES(a) };
	const struct hd_supervisor plan = { .restarts = HD_RESTARTS_NONE, .name = "top", .children = children, .count = 1 };

	(void)workers;
	quiet = true;
	for (int round = 0; another_round(round, many(100)); round++) {
		hd_pid supervisor = supervised(&plan), asking[4];
		top_port = hd_whereis("top");
		for (int i = 0; i < 4; i++)
			asking[i] = born(hd_spawn(asks_too_late, NULL));
		CHECK_EQ(hd_kill(pid_of(&a), 1), 0);
		check_failed(supervisor, -ENOTRECOVERABLE);
		join_all(asking, 4);
		hd_port_release(top_port);
		check_all_gone_soon();
	}
}

/* ---- wrong values, no memory ---- */

static void supervise_on_plain_thread(void *plan)
{
	CHECK_EQ(hd_supervise(plan), -ENOTSUP);
}

HD_PROCESS_TEST(supervisor_refuses_nonsense)
{
	hd_port *port = made_port(NULL);
	struct hd_group group = { 0 };
	const struct hd_supervised fine = { .entry = nothing, .restart = HD_RESTART_NEVER };
	const struct hd_supervised children[] = {
		{ .entry = NULL },
		{ .entry = nothing, .restart = (enum hd_restart)3 },
		{ .entry = nothing, .shutdown = -1 },
		{ .entry = nothing, .how = { .link = true } },
		{ .entry = nothing, .how = { .watch = port } },
		{ .entry = nothing, .how = { .port = port } },
		{ .entry = nothing, .how = { .group = &group } },
		{ .entry = nothing, .how = { .priority = 81 } },
	};
	const struct hd_supervisor plans[] = {
		{ .strategy = (enum hd_strategy)3 },
		{ .restarts = -2 },
		{ .restarts = HD_RESTARTS_MAX + 1 },
		{ .within = -1 },
		{ .backoff = -1 },
		{ .backoff_max = -1 },
		{ .children = NULL, .count = 1 },
	};

	for (unsigned i = 0; i < sizeof children / sizeof children[0]; i++)
		CHECK_EQ(hd_supervise(&(struct hd_supervisor){ .children = &children[i], .count = 1 }), -EINVAL);
	for (unsigned i = 0; i < sizeof plans / sizeof plans[0]; i++)
		CHECK_EQ(hd_supervise(&plans[i]), -EINVAL);
	on_plain_thread(supervise_on_plain_thread, (void *)&plans[0]);
	CHECK_EQ(hd_supervise(&(struct hd_supervisor){ .restarts = HD_RESTARTS_MAX, .children = &fine, .count = 1 }), 0);
	hd_port_release(port);
	check_all_gone_soon();
}

/* Each allocation fails once: hd_supervise says so, and what it had started is stopped. */
HD_PROCESS_TEST(supervisor_survives_want_of_memory_at_its_start)
{
	const struct hd_supervised children[] = { LIVES(a), LIVES(b), { .entry = nothing, .restart = HD_RESTART_NEVER } };
	const struct hd_supervisor plan = { .name = "top", .children = children, .count = CHILDREN };
	int failed = 0;
	hd_pid supervisor = 0;

	for (unsigned nth = 1; nth < 40; nth++) {
		hd__fault_arm(HD__FAULT_ALLOC, nth, false);
		supervisor = hd_spawn(hd_supervisor_entry, (void *)&plan);
		for (int i = 0; i < 20; i++)
			hd_yield();
		hd__fault_arm(HD__FAULT_ALLOC, 0, false);
		if (supervisor > 0 && state_of(supervisor) != HD_ENDED)
			break;
		if (supervisor > 0)
			check_failed(supervisor, -ENOMEM);
		failed++;
		CHECK_EQ(value_of(&a.lives) + value_of(&b.lives), 0);
		check_all_gone_soon();
	}
	CHECK(failed >= 8);
	CHECK_EQ(hd_terminate(supervisor, HD_FOREVER), 0);
	CHECK_EQ(hd_join(supervisor, NULL, HD_FOREVER), 0);
	CHECK_EQ(value_of(&a.lives) + value_of(&b.lives), 0);
	check_all_gone_soon();
}

static void starve(const struct hd_supervised *child, const struct hd_end *end, void *arg)
{
	(void)child;
	(void)end;
	hd__fault_arm(HD__FAULT_ALLOC, 1, (bool)(long)arg);
}

static void *feeds_and_fails_once(void *arg)
{
	hd__fault_arm(HD__FAULT_ALLOC, 0, false);
	if (add(&runs, 1) == 1)
		hd_fail(EIO);
	return arg;
}

/* A restart for which there is no memory is tried again, and counts. */
HD_PROCESS_TEST(supervisor_tries_again_when_there_is_no_memory_for_a_restart)
{
	const struct hd_supervised child = { .entry = feeds_and_fails_once, .restart = HD_RESTART_ON_FAILURE };
	struct hd_supervisor plan = { .restarts = 2, .within = HD_SEC(1000), .children = &child, .count = 1, .ended = starve };

	for (int strategy = HD_ONE_FOR_ONE; strategy <= HD_REST_FOR_ONE; strategy++) {
		plan.strategy = (enum hd_strategy)strategy;
		plan.restarts = 2;
		plan.arg = NULL;
		set(&runs, 0);
		int err = hd_supervise(&plan);
		hd__fault_arm(HD__FAULT_ALLOC, 0, false);
		CHECK_EQ(err, 0);
		CHECK_EQ(value_of(&runs), 2);
		for (plan.restarts = 1; plan.restarts < 5; plan.restarts += 3) {
			plan.arg = plan.restarts == 1 ? NULL : (void *)1L; /* once, or from then on */
			set(&runs, 0);
			err = hd_supervise(&plan);
			hd__fault_arm(HD__FAULT_ALLOC, 0, false);
			CHECK_EQ(err, -ENOMEM);
			CHECK_EQ(value_of(&runs), 1);
		}
	}
	check_all_gone_soon();
}

/* ---- races ---- */

static unsigned seed = 1;

static void check_none_lives(void)
{
	for (int i = 0; i < CHILDREN; i++)
		CHECK_EQ(value_of(&toys[i]->lives), 0);
	CHECK_EQ(value_of(&doubled), 0);
	check_all_gone_soon();
}

static void *kills_toy(void *toy)
{
	ANY_ANSWER(hd_kill(pid_of(toy), 77));
	return NULL;
}

struct ending {
	hd_pid supervisor;
	unsigned how;
};

static void *ends_supervisor(void *arg)
{
	const struct ending *ending = arg;

	if (ending->how == 0)
		ANY_ANSWER(hd_cancel(ending->supervisor));
	else if (ending->how == 1)
		ANY_ANSWER(hd_kill(ending->supervisor, 1));
	else
		ANY_ANSWER(hd_terminate(ending->supervisor, HD_FOREVER));
	return NULL;
}

static const struct hd_supervised three[] = { LIVES(a), LIVES(b), LIVES(c) };

/* Two children end at once. Every one lives again, once. */
HD_WORKERS_TEST(supervisor_of_two_that_end_at_once)
{
	(void)workers;
	quiet = true;
	for (int round = 0; another_round(round, many(300)); round++) {
		const struct hd_supervisor plan = { .strategy = (enum hd_strategy)(round % 3),
						    .restarts = HD_RESTARTS_UNLIMITED,
						    .name = "top",
						    .children = three,
						    .count = CHILDREN };
		struct hd_supervised_info info[CHILDREN];
		hd_pid supervisor = supervised(&plan), killed[2];
		hd_port *top = hd_whereis("top");
		int one = (int)(next_random(&seed) % CHILDREN), other = (one + 1 + (int)(next_random(&seed) % 2)) % CHILDREN;

		killed[0] = pid_of(toys[one]);
		killed[1] = pid_of(toys[other]);
		hd_pid x = born(hd_spawn(kills_toy, toys[one])), y = born(hd_spawn(kills_toy, toys[other]));
		join_all((hd_pid[]){ x, y }, 2);
		for (int up = 0; up < CHILDREN;) {
			up = 0;
			CHECK_EQ(hd_supervisor_children(top, info, CHILDREN, HD_FOREVER), CHILDREN);
			for (int i = 0; i < CHILDREN; i++)
				up += info[i].state == HD_SUPERVISED_RUNS && info[i].pid != killed[0] &&
				      info[i].pid != killed[1];
			hd_yield();
		}
		hd_port_release(top);
		struct ending ending = { supervisor, next_random(&seed) % 3 };
		hd_pid z = born(hd_spawn(ends_supervisor, &ending));
		join_all((hd_pid[]){ z, supervisor }, 2);
		check_none_lives();
		hd_semaphore_init(&began, 0);
	}
}

/* The supervisor ends while children end, are stopped, and are started. */
HD_WORKERS_TEST(supervisor_that_ends_at_any_moment_leaves_no_child)
{
	(void)workers;
	quiet = true;
	for (int round = 0; another_round(round, many(500)); round++) {
		const struct hd_supervisor plan = { .strategy = (enum hd_strategy)(round % 3),
						    .restarts = round % 2 == 0 ? HD_RESTARTS_UNLIMITED : 1,
						    .backoff = round % 5 == 0 ? 1 : 0,
						    .name = "top",
						    .children = three,
						    .count = CHILDREN };
		hd_pid supervisor = born(hd_spawn(hd_supervisor_entry, (void *)&plan)), pids[5];

		wait_for_starts((int)(next_random(&seed) % 4));
		for (int i = 0; i < 4; i++)
			pids[i] = born(hd_spawn(kills_toy, toys[next_random(&seed) % CHILDREN]));
		struct ending ending = { supervisor, next_random(&seed) % 3 };
		pids[4] = born(hd_spawn(ends_supervisor, &ending));
		join_all(pids, 5);
		CHECK_EQ(hd_join(supervisor, NULL, HD_FOREVER), 0);
		check_none_lives();
		hd_semaphore_init(&began, 0);
	}
}

static void *fails_at_once(void *arg)
{
	struct toy *toy = arg;

	if (add(&toy->lives, 1) != 1)
		add(&doubled, 1);
	hd_yield();
	add(&toy->lives, -1);
	hd_fail(EIO);
	return NULL;
}

/* Children that end as soon as they begin, of any priority: during the start of the next, and during their own. */
HD_WORKERS_TEST(supervisor_of_children_that_end_while_they_are_started)
{
	(void)workers;
	for (int round = 0; another_round(round, many(200)); round++) {
		struct hd_supervised children[CHILDREN];
		for (int i = 0; i < CHILDREN; i++)
			children[i] = (struct hd_supervised){
				.entry = fails_at_once,
				.shutdown = HD_FOREVER,
				.arg = toys[i],
				.how.priority = 30 + 10 * (int)(next_random(&seed) % 3),
			};
		const struct hd_supervisor plan = { .strategy = (enum hd_strategy)(round % 3),
						    .restarts = 10,
						    .within = HD_SEC(1000),
						    .children = children,
						    .count = 3 };
		CHECK_EQ(answer_of(&plan), -ENOTRECOVERABLE);
		CHECK_EQ(value_of(&doubled), 0);
	}
}

enum { STOP, RESTART, KILL, ACTS };

static void *acts_on_b(void *act)
{
	int err = 0;

	switch ((long)act) {
	case STOP:
		err = hd_supervisor_stop(top_port, "b", HD_FOREVER);
		break;
	case RESTART:
		err = hd_supervisor_restart(top_port, "b", HD_FOREVER);
		break;
	default:
		ANY_ANSWER(hd_kill(pid_of(&b), 77));
	}
	CHECK_EQ(err, 0);
	return NULL;
}

/* A child is stopped, started and killed, by several at once: it lives at most once, and as the last one said. */
HD_WORKERS_TEST(supervisor_requests_race_with_ends)
{
	const struct hd_supervisor plan = { .strategy = HD_REST_FOR_ONE,
					    .restarts = HD_RESTARTS_UNLIMITED,
					    .name = "top",
					    .children = three,
					    .count = CHILDREN };
	struct hd_supervised_info info[CHILDREN];

	(void)workers;
	quiet = true;
	hd_pid supervisor = supervised(&plan);
	top_port = hd_whereis("top");
	for (int round = 0; another_round(round, many(300)); round++) {
		hd_pid pids[4];
		for (int i = 0; i < 4; i++)
			pids[i] = born(hd_spawn(acts_on_b, (void *)(long)(next_random(&seed) % ACTS)));
		join_all(pids, 4);
		if (round % 2 == 0) {
			CHECK_EQ(hd_supervisor_stop(top_port, "b", HD_FOREVER), 0);
			CHECK_EQ(value_of(&b.lives), 0);
		} else {
			CHECK_EQ(hd_supervisor_restart(top_port, "b", HD_FOREVER), 0);
		}
		CHECK_EQ(hd_supervisor_children(top_port, info, CHILDREN, HD_FOREVER), CHILDREN);
		CHECK_EQ(info[0].state, HD_SUPERVISED_RUNS);
		CHECK_EQ(info[1].state, round % 2 == 0 ? HD_SUPERVISED_STOPPED : HD_SUPERVISED_RUNS);
	}
	hd_port_release(top_port);
	CHECK_EQ(hd_terminate(supervisor, HD_FOREVER), 0);
	CHECK_EQ(hd_join(supervisor, NULL, HD_FOREVER), 0);
	check_none_lives();
	hd_semaphore_init(&began, 0);
}

static hd_time end_of_grace;

static void *shuts_down(void *plan)
{
	hd_pid supervisor = born(hd_spawn(hd_supervisor_entry, plan));

	wait_for_starts(CHILDREN);
	CHECK_EQ(hd_kill(pid_of(&b), 1), 0);
	end_of_grace = hd_after(HD_SEC(1));
	CHECK_EQ(hd_shutdown(7), 0);
	ANY_ANSWER(hd_join(supervisor, NULL, HD_FOREVER));
	return NULL;
}

/* The runtime ends: its children too, and none is started again. Children that take longer than a second are abandoned: simulated time may jump. */
HD_TEST(supervisor_ends_with_the_runtime)
{
	const struct hd_supervisor plan = {
		.strategy = HD_ONE_FOR_ALL, .restarts = HD_RESTARTS_UNLIMITED, .children = three, .count = CHILDREN
	};

	quiet = true;
	for (int workers = 1; workers <= WORKERS_MAX; workers *= 2) {
		CHECK_EQ(run_with_workers(workers, shuts_down, (void *)&plan), 7);
		if (hd_now() < end_of_grace)
			CHECK_EQ(value_of(&a.lives) + value_of(&b.lives) + value_of(&c.lives), 0);
		CHECK_EQ(value_of(&doubled), 0);
		a.lives = b.lives = c.lives = 0;
		hd_semaphore_init(&began, 0);
	}
}
