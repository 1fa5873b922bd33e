/* life/pin.c - hd_pin and hd_unpin: a pinned process stays on its worker, whatever it does there and whichever worker wakes it. */
#include "os/thread.h"
#include "sched/workers.h"

/* ---- answers ---- */

static void check_nesting(void)
{
	CHECK_EQ(hd_unpin(), -EINVAL);
	for (int depth = 0; depth < 3; depth++)
		CHECK_EQ(hd_pin(), 0);
	for (int depth = 0; depth < 3; depth++)
		CHECK_EQ(hd_unpin(), 0);
	CHECK_EQ(hd_unpin(), -EINVAL);
}

static void *nest(void *arg)
{
	check_nesting();
	return arg;
}

static void *nest_in_pinned(void *arg)
{
	CHECK_EQ(hd_unpin(), 0);
	check_nesting();
	return arg;
}

HD_PROCESS_TEST(pin_calls_nest)
{
	check_nesting();
	CHECK_EQ(hd_join(hd_spawn(nest, NULL), NULL, HD_FOREVER), 0);
}

HD_PROCESS_TEST(pin_is_undone_once_in_a_process_that_was_spawned_pinned)
{
	hd_pid pid = hd_spawn_with(&(struct hd_spawn){ .pinned = true }, nest_in_pinned, NULL);

	CHECK_EQ(hd_join(pid, NULL, HD_FOREVER), 0);
}

HD_PROCESS_TEST(pin_overflow_is_an_error_and_loses_nothing)
{
	for (int depth = 0; depth < 65535; depth++)
		CHECK_EQ(hd_pin(), 0);
	CHECK_EQ(hd_pin(), -EINVAL);
	for (int depth = 0; depth < 65535; depth++)
		CHECK_EQ(hd_unpin(), 0);
	CHECK_EQ(hd_unpin(), -EINVAL);
}

static void *pin_plain_thread(void *arg)
{
	CHECK_EQ(hd_pin(), -ENOTSUP);
	CHECK_EQ(hd_unpin(), -ENOTSUP);
	return arg;
}

HD_TEST(pin_is_refused_on_plain_thread)
{
	pin_plain_thread(NULL);
}

HD_PROCESS_TEST(pin_is_refused_on_plain_thread_beside_a_runtime)
{
	join_thread(start_thread(pin_plain_thread, NULL));
}

/* ---- staying ---- */

#define SUBJECTS 4

static struct hd_semaphore bell;
static int bells_stop;
static int turns;

/* On every worker, and on a plain thread: a subject that waits is woken from any of them. */
static void *ring(void *arg)
{
	while (!read_flag(&bells_stop)) {
		if (!hd_semaphore_is_signaled(&bell))
			CHECK_EQ(hd_semaphore_signal(&bell), 0);
		if (hd_self() == 0 || hd_sleep(HD_US(20)) != 0)
			sched_yield();
	}
	return arg;
}

static void pass_turn(int i)
{
	switch (i % 4) {
	case 0:
		CHECK_EQ(hd_yield(), 0);
		break;
	case 1:
		CHECK_EQ(hd_sleep(HD_US(i % 20)), 0);
		break;
	case 2:
		ANY_ANSWER(hd_semaphore_wait(&bell, hd_after(HD_US(i % 50))));
		break;
	default:
		CHECK_EQ(hd_semaphore_wait(&bell, HD_FOREVER), 0);
	}
}

/* With one hd_unpin of two it is pinned still; with the second it may move, and in time it does. */
static void *stay_then_move(void *arg)
{
	CHECK_EQ(hd_pin(), 0);
	CHECK_EQ(hd_pin(), 0);
	int worker = worker_of(hd_self()), thread = hd__os_thread_id();
	for (int i = 0; i < 2 * turns; i++) {
		pass_turn(i);
		CHECK_EQ(worker_of(hd_self()), worker);
		CHECK_EQ(hd__os_thread_id(), thread);
		if (i == turns)
			CHECK_EQ(hd_unpin(), 0);
	}
	CHECK_EQ(hd_unpin(), 0);
	for (int i = 0; worker_of(hd_self()) == worker; i++)
		pass_turn(i);
	return arg;
}

HD_MANY_WORKERS_TEST(pin_keeps_a_process_on_its_worker_until_unpin)
{
	struct crew bells;
	hd_pid subjects[SUBJECTS];

	turns = 1 + hd_scaled(500);
	set_flag(&bells_stop, 0);
	start_crew(&bells, NULL, workers, ring, NULL);
	struct plain_thread *thread = start_thread(ring, NULL);
	for (int i = 0; i < SUBJECTS; i++)
		CHECK((subjects[i] = hd_spawn(stay_then_move, NULL)) > 0);
	for (int i = 0; i < SUBJECTS; i++)
		CHECK_EQ(hd_join(subjects[i], NULL, HD_FOREVER), 0);
	set_flag(&bells_stop, 1);
	join_thread(thread);
	join_crew_members(&bells);
}

/* ---- all of them ---- */

static void *stay(void *arg)
{
	int worker = worker_of(hd_self()), thread = hd__os_thread_id();

	for (int i = 0; i < turns; i++) {
		i % 2 ? hd_yield() : hd_sleep(HD_US(i % 20));
		CHECK_EQ(worker_of(hd_self()), worker);
		CHECK_EQ(hd__os_thread_id(), thread);
	}
	return arg;
}

/* Pinned where they first run: that is on every worker, because none of the crew gives its worker away before all have begun. */
static void *spread_and_stay(void *workers)
{
	struct crew crew;

	turns = 1 + hd_scaled(500);
	start_crew_that(false, &crew, NULL, (int)(long)workers, stay, NULL);
	join_crew_members(&crew);
	CHECK(is_apart(&crew));
	CHECK_EQ(worker_of(hd_self()), 0);
	CHECK_EQ(hd_unpin(), 0); /* the first process is pinned like the others, once */
	CHECK_EQ(hd_unpin(), -EINVAL);
	return NULL;
}

HD_TEST(pin_of_all_by_configuration_spreads_new_processes_over_workers)
{
	for (int i = 0; another_round(i, hd_scaled(20)); i++) {
		long workers = i % 2 ? 2 : WORKERS_MAX;
		const struct hd_config config = { .workers = (unsigned)workers, .pinned = true, .fixed = true };
		CHECK_EQ(hd_run(&config, spread_and_stay, (void *)workers), 0);
	}
}

HD_TEST(pin_of_all_by_environment_spreads_new_processes_over_workers)
{
	CHECK_EQ(setenv("HEDDLE_PINNED", "1", 1), 0);
	CHECK_EQ(setenv("HEDDLE_WORKERS", "4", 1), 0);
	CHECK_EQ(hd_run(NULL, spread_and_stay, (void *)4L), 0);
}

/* ---- the first process ---- */

static void *begin_on(void *thread)
{
	CHECK_EQ(hd__os_thread_id(), *(int *)thread);
	CHECK_EQ(worker_of(hd_self()), 0);
	CHECK_EQ(hd_unpin(), -EINVAL); /* from here on it may move */
	return NULL;
}

/* The other workers are idle, and look for something to run. */
HD_TEST(pin_of_the_first_process_lasts_until_it_begins)
{
	int thread = hd__os_thread_id();

	for (int i = 0; another_round(i, hd_scaled(500)); i++)
		CHECK_EQ(run_with_workers(i % 2 ? 2 : WORKERS_MAX, begin_on, &thread), 0);
}
