/* os/failure.c - no memory, no mappings, no threads, no ids: an error code, nothing lost, and the program goes on. */
#include <errno.h>
#include <sys/resource.h>

#include "harness/process.h"
#include "properties/affordable.h"
#include "os/fault.h"
#include "sched/worker.h"
#include "wait/threads.h"

#define CHILDREN 40 /* more than the guards that are made at first */

static void *return_argument(void *arg)
{
	return arg;
}

static struct hd_semaphore hold;

static void *wait_for_hold(void *arg)
{
	CHECK_EQ(hd_semaphore_wait(&hold, HD_FOREVER), 0);
	return arg;
}

static bool is_shortage(long long err)
{
	return err == -ENOMEM || err == -EAGAIN;
}

/* A bit of everything that asks for memory. Answers how many of its requests failed; whatever fails, fails with a code. */
static int use_memory(void)
{
	static struct hd_local local;
	hd_pid pids[CHILDREN];
	int failures = 0, waiting = 0;

	if (hd_local_set(&local, &failures) != 0)
		failures++;
	for (int i = 0; i < CHILDREN; i++) {
		struct hd_spawn how = { .stack_size = i % 4 == 0 ? 16384 : i % 4 == 1 ? 1 << 20 : 0 };
		pids[i] = hd_spawn_with(&how, wait_for_hold, &pids[i]);
		CHECK(pids[i] > 0 || is_shortage(pids[i]));
	}
	hd_yield(); /* all that can start, wait now */
	for (int i = 0; i < CHILDREN; i++) {
		struct hd_process_info info;
		if (pids[i] > 0 && hd_process_info(pids[i], &info) == 0 && info.state == HD_WAITING)
			waiting++;
	}
	for (int i = 0; i < waiting; i++)
		CHECK_EQ(hd_semaphore_signal(&hold), 0);
	for (int i = 0; i < CHILDREN; i++) {
		struct hd_end end;
		if (pids[i] < 0) {
			failures++;
			continue;
		}
		CHECK_EQ(hd_join_end(pids[i], &end, HD_FOREVER), 0);
		if (end.kind == HD_END_FAILED) {
			CHECK_EQ(end.err, -ENOMEM);
			failures++;
		} else {
			CHECK_EQ(end.kind, HD_END_RETURNED);
			CHECK(end.result == &pids[i]);
		}
	}
	CHECK(!hd_semaphore_is_signaled(&hold));
	return failures;
}

static int failures_inside;

static void *scenario(void *arg)
{
	failures_inside = use_memory();
	for (int kind = 0; kind < HD__FAULTS; kind++)
		hd__fault_arm((enum hd__fault)kind, 0, false);
	CHECK_EQ(use_memory(), 0); /* and now there is enough again */
	return arg;
}

/* The nth request of a kind fails, for every n, until one run has had no failure at all. */
static void fail_each(enum hd__fault kind, bool from_then_on)
{
	int failed_runs = 0;

	for (unsigned nth = 1;; nth++) {
		CHECK(nth < 1000);
		failures_inside = 0;
		hd__fault_arm(kind, nth, from_then_on);
		errno = 5;
		int err = hd_run(&(struct hd_config){ .fixed = true, .workers = 1 }, scenario, NULL);
		CHECK_EQ(errno, 5);
		hd__fault_arm(kind, 0, false);
		CHECK(err == 0 || is_shortage(err));
		if (err == 0 && failures_inside == 0)
			break;
		failed_runs++;
	}
	CHECK(failed_runs > 0 || (kind == HD__FAULT_INSTALL));
	CHECK_EQ(hd_run(&(struct hd_config){ .fixed = true, .workers = 1 }, scenario, NULL), 0);
}

HD_TEST(failure_of_each_allocation)
{
	fail_each(HD__FAULT_ALLOC, false);
	fail_each(HD__FAULT_ALLOC, true);
}

HD_TEST(failure_of_each_mapping)
{
	fail_each(HD__FAULT_MAP, false);
}

HD_TEST(failure_of_all_mappings_from_one_on)
{
	fail_each(HD__FAULT_MAP, true);
}

HD_TEST(failure_of_each_guard)
{
	fail_each(HD__FAULT_GUARD, false);
}

HD_TEST(failure_of_all_guards_from_one_on)
{
	fail_each(HD__FAULT_GUARD, true);
}

HD_TEST(failure_of_each_thread)
{
	fail_each(HD__FAULT_THREAD, false);
	fail_each(HD__FAULT_THREAD, true);
}

/* ---- a stack that cannot be bound ---- */

/* Uses up the guards that exist; whoever starts now needs new ones. */
static void use_up_guards(hd_pid *pids, int n)
{
	for (int i = 0; i < n; i++)
		CHECK((pids[i] = hd_spawn(wait_for_hold, NULL)) > 0);
	hd_yield();
	hd__fault_arm(HD__FAULT_GUARD, 1, true);
}

static void release_all(hd_pid *pids, int n)
{
	hd__fault_arm(HD__FAULT_GUARD, 0, false);
	for (int i = 0; i < n; i++)
		CHECK_EQ(hd_semaphore_signal(&hold), 0);
	for (int i = 0; i < n; i++)
		CHECK_EQ(hd_join(pids[i], NULL, HD_FOREVER), 0);
}

static int guards_of(unsigned stack_class)
{
	return (int)hd__self()->sched->stacks[stack_class].guarded;
}

HD_PROCESS_TEST(failure_to_bind_a_stack_is_told_to_the_joiner)
{
	hd_pid pids[600];
	struct hd_end end;

	CHECK_EQ(hd_join(hd_spawn(return_argument, NULL), NULL, HD_FOREVER), 0);
	int n = guards_of(16);
	CHECK(n > 0 && n <= 600);
	use_up_guards(pids, n);
	hd_pid last = hd_spawn(return_argument, NULL);
	if (last > 0) { /* with guards that cost a mapping, spawn would have said so */
		CHECK_EQ(hd_join_end(last, &end, HD_FOREVER), 0);
		CHECK_EQ(end.kind, HD_END_FAILED);
		CHECK_EQ(end.err, -ENOMEM);
		CHECK_EQ(hd_join(last, NULL, 0), -ESRCH);
	}
	release_all(pids, n);
	CHECK_EQ(hd_join(hd_spawn(return_argument, NULL), NULL, HD_FOREVER), 0);
}

/* As above, but nobody waits for it when it fails, and others do wait for other things. */
HD_PROCESS_TEST(failure_to_bind_a_stack_disturbs_nobody_else)
{
	hd_pid pids[600], doomed[10];
	struct hd_end end;

	if (guards_are_dear())
		SKIP("here spawn fails, and not the first run");
	int n = guards_of(16);
	CHECK(n > 0 && n <= 600);
	use_up_guards(pids, n);
	for (int i = 0; i < 10; i++)
		doomed[i] = hd_spawn_with(&(struct hd_spawn){ .detached = i % 2, .suspended = i == 4 }, return_argument, NULL);
	CHECK_EQ(hd_sleep(HD_MS(1)), 0); /* they are tried, and fail, while we leave by waiting for time */
	for (int i = 0; i < 10; i += 2) {
		if (i == 4)
			CHECK_EQ(hd_resume(doomed[i]), 0);
		CHECK_EQ(hd_join_end(doomed[i], &end, hd_after(HD_SEC(2))), 0);
		CHECK_EQ(end.err, -ENOMEM);
	}
	for (int i = 1; i < 10; i += 2)
		CHECK_EQ(hd_join(doomed[i], NULL, 0), -ESRCH);
	release_all(pids, n);
}

/* The first process and those that hold the stacks wait: every worker that is not needed sleeps. */
static void await_idle(struct hd__sched *sched)
{
	while (!hd__all_idle(sched))
		sched_yield();
	for (unsigned i = 0; i < sched->nworkers; i++)
		CHECK(hd__is_better_there(&sched->workers[i], 0)); /* the board says so too, or no thread would wake it */
}

#define RARE_SIZE ((size_t)1 << 18) /* of stacks that no other process has */

static void *send_after_failures(void *arg)
{
	const struct hd_spawn doomed = { .stack_size = RARE_SIZE };
	struct hd_end end;

	for (int i = 0; i < 10; i++) {
		hd__fault_arm(HD__FAULT_GUARD, 1, true);
		hd_pid pid = hd_spawn_with(&doomed, return_argument, NULL);
		CHECK(pid > 0);
		CHECK_EQ(hd_join_end(pid, &end, HD_FOREVER), 0);
		CHECK_EQ(end.kind, HD_END_FAILED);
		hd__fault_arm(HD__FAULT_GUARD, 0, false);
		await_idle(arg);
		pid = hd_spawn(return_argument, NULL);
		CHECK(pid > 0);
		CHECK_EQ(hd_join(pid, NULL, HD_FOREVER), 0);
	}
	return NULL;
}

static void *use_up_rare_guards(void *arg)
{
	const struct hd_spawn rare = { .stack_size = RARE_SIZE };
	struct hd__stacks *stacks = &hd__self()->sched->stacks[18];
	hd_pid pids[600];
	int n = 0;

	if (guards_are_dear())
		SKIP("here spawn fails, and not the first run");
	do {
		CHECK(n < 600 && (pids[n] = hd_spawn_with(&rare, wait_for_hold, NULL)) > 0);
		n++;
		while (ld_rlx(&stacks->made) < (uint32_t)n)
			CHECK_EQ(hd_sleep(HD_US(50)), 0);
	} while (n < (int)stacks->guarded);
	join_thread(start_thread(send_after_failures, hd__self()->sched));
	release_all(pids, n);
	return arg;
}

/* Two workers: with one there is no board. */
HD_TEST(failure_to_bind_a_stack_leaves_its_worker_idle_to_others)
{
	CHECK_EQ(hd_run(&(struct hd_config){ .fixed = true, .workers = 2 }, use_up_rare_guards, NULL), 0);
}

/* ---- ids ---- */

HD_PROCESS_TEST(failure_for_want_of_ids_ends_with_the_next_end)
{
	struct hd__table *table = &hd__self()->sched->table;
	hd_pid pids[256];
	int n = 0;

	table->limit = 64;
	while ((pids[n] = hd_spawn_with(&(struct hd_spawn){ .suspended = true }, return_argument, NULL)) > 0)
		CHECK(++n < 256);
	CHECK_EQ(pids[n], -EAGAIN);
	CHECK_EQ(n, 63); /* and ourselves */
	for (int round = 0; round < 100; round++) {
		int i = round % n;
		CHECK_EQ(hd_spawn(return_argument, NULL), -EAGAIN);
		CHECK_EQ(hd_resume(pids[i]), 0);
		CHECK_EQ(hd_join(pids[i], NULL, HD_FOREVER), 0);
		pids[i] = hd_spawn_with(&(struct hd_spawn){ .suspended = true }, return_argument, NULL);
		CHECK(pids[i] > 0);
	}
	for (int i = 0; i < n; i++) {
		CHECK_EQ(hd_resume(pids[i]), 0);
		CHECK_EQ(hd_join(pids[i], NULL, HD_FOREVER), 0);
	}
}

/* Blocks that end on the worker come back to the plain threads that took them. */
static struct hd_semaphore ended;

static void *tell_and_end(void *arg)
{
	CHECK_EQ(hd_semaphore_signal(&ended), 0);
	return arg;
}

static void *spawn_from_thread(void *arg)
{
	for (int i = 0; i < 5000; i++) {
		hd_pid pid;
		while ((pid = hd_spawn_with(&(struct hd_spawn){ .detached = true }, tell_and_end, NULL)) == -EAGAIN && i < 100)
			sched_yield();
		CHECK(pid > 0);
		CHECK_EQ(hd_semaphore_wait(&ended, HD_FOREVER), 0);
	}
	return arg;
}

static struct hd_semaphore thread_is_done;

static void *spawn_and_tell(void *arg)
{
	spawn_from_thread(arg);
	CHECK_EQ(hd_semaphore_signal(&thread_is_done), 0);
	return arg;
}

HD_PROCESS_TEST(failure_for_want_of_ids_does_not_come_from_hoarding)
{
	hd__self()->sched->table.limit = 1000;
	struct plain_thread *thread = start_thread(spawn_and_tell, NULL);

	CHECK_EQ(hd_semaphore_wait(&thread_is_done, HD_FOREVER), 0);
	join_thread(thread);
}

/* ---- stacks as large as their region ---- */

HD_PROCESS_TEST(failure_for_want_of_address_space_is_told_at_spawn)
{
	struct hd_spawn how = { .stack_size = (size_t)1 << 30, .suspended = true };
	static hd_pid pids[4096];
	int n = 0;

	while ((pids[n] = hd_spawn_with(&how, return_argument, NULL)) > 0)
		CHECK(++n < 4096); /* 4 TiB of stacks? */
	CHECK_EQ(pids[n], -ENOMEM);
	CHECK(n > 0);
	CHECK_EQ(hd_resume(pids[--n]), 0);
	CHECK_EQ(hd_join(pids[n], NULL, HD_FOREVER), 0);
	pids[n] = hd_spawn_with(&how, return_argument, NULL);
	CHECK(pids[n++] > 0);
	for (int i = 0; i < n; i++) {
		struct hd_end end;
		CHECK_EQ(hd_resume(pids[i]), 0);
		CHECK_EQ(hd_join_end(pids[i], &end, HD_FOREVER), 0);
		CHECK_EQ(end.kind, HD_END_RETURNED);
	}
}

/* ---- ulimit -v ---- */

#if !HD_UNDER_ASAN && !HD_UNDER_TSAN /* they need terabytes for themselves */
static void *scenario_in_little_space(void *arg)
{
	failures_inside = use_memory();
	return arg;
}

static void run_with_address_space(size_t limit)
{
	struct rlimit before, small;

	CHECK_EQ(getrlimit(RLIMIT_AS, &before), 0);
	small = (struct rlimit){ limit, before.rlim_max };
	CHECK_EQ(setrlimit(RLIMIT_AS, &small), 0);
	int err = hd_run(&(struct hd_config){ .fixed = true, .workers = 1 }, scenario_in_little_space, NULL);
	CHECK(err == 0 || is_shortage(err));
	CHECK_EQ(setrlimit(RLIMIT_AS, &before), 0);
}

HD_TEST(failure_under_a_small_address_space_is_an_error)
{
	for (size_t mib = 16; mib <= 65536; mib *= 2)
		run_with_address_space(mib << 20);
	CHECK_EQ(hd_run(&(struct hd_config){ .fixed = true, .workers = 1 }, scenario, NULL), 0);
	CHECK_EQ(failures_inside, 0);
}
#endif
