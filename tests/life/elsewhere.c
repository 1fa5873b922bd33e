/* life/elsewhere.c - what is asked of a process from other workers, whatever it is doing: nothing is lost, nobody runs twice. */
#include "sched/worker.h"
#include "sched/workers.h"

static int stop;

static int one_of(int err, int a, int b)
{
	return err == 0 || err == a || err == b;
}

/* ---- steering processes that live on ---- */

#define VICTIMS 16

struct victim {
	hd_pid pid;
	long begun, alone, turns;
	struct hd_semaphore own;
	struct victim *partner;
	long given, taken;
};
static struct victim victims[VICTIMS];

/* A few instructions during which nobody else may run this very process. */
static void be_alone(struct victim *v)
{
	CHECK_EQ(add(&v->alone, 1), 1);
	v->turns++;
	CHECK_EQ(add(&v->alone, -1), 0);
}

static void *compute(void *arg)
{
	struct victim *v = arg;

	CHECK_EQ(add(&v->begun, 1), 1);
	while (!read_flag(&stop)) {
		be_alone(v);
		if (v->turns % 64 == 0)
			hd_yield();
		else
			hd_checkpoint();
	}
	return NULL;
}

static void *doze(void *arg)
{
	struct victim *v = arg;

	CHECK_EQ(add(&v->begun, 1), 1);
	while (!read_flag(&stop)) {
		be_alone(v);
		CHECK_EQ(hd_sleep(HD_US(v->turns % 30)), 0);
	}
	return NULL;
}

/* With its partner: signals it, and waits for it, not for long. */
static void *play(void *arg)
{
	struct victim *v = arg;

	CHECK_EQ(add(&v->begun, 1), 1);
	while (!read_flag(&stop)) {
		be_alone(v);
		CHECK_EQ(hd_semaphore_signal(&v->partner->own), 0);
		add(&v->partner->given, 1);
		int err = hd_semaphore_wait(&v->own, v->turns % 4 == 0 ? hd_after(HD_US(50)) : HD_FOREVER);
		CHECK(one_of(err, -ETIMEDOUT, 0));
		v->taken += err == 0;
	}
	hd_semaphore_signal(&v->partner->own); /* it may be waiting without a deadline */
	add(&v->partner->given, 1);
	return NULL;
}

static long steered;

static void steer_at_random(unsigned *seed, int n)
{
	for (int i = 0; i < n; i++) {
		hd_pid pid = victims[next_random(seed) % VICTIMS].pid;
		switch (next_random(seed) % 6) {
		case 0:
			CHECK(one_of(hd_suspend(pid, 0), -EINPROGRESS, 0));
			break;
		case 1:
			CHECK_EQ(hd_suspend(pid, HD_FOREVER), 0);
			break;
		case 2:
			CHECK_EQ(hd_set_priority(pid, 20 + (int)(next_random(seed) % 20)), 0);
			break;
		case 3:
			CHECK_EQ(hd_set_policy(pid, HD_FIFO + (int)(next_random(seed) % 3)), 0);
			break;
		default:
			CHECK(one_of(hd_resume(pid), -EALREADY, 0));
		}
		add(&steered, 1);
	}
}

static int each_steers;

static void *steer(void *arg)
{
	unsigned seed = (unsigned)(long)arg;

	for (int i = 0; i < each_steers; i += 100) {
		steer_at_random(&seed, 100);
		hd_sleep(HD_US(next_random(&seed) % 50)); /* the victims are of a lower priority */
	}
	return NULL;
}

static void steer_victims(int workers, int n)
{
	static const hd_entry entries[] = { compute, play, play, doze };
	struct crew steerers;
	void *seeds[WORKERS_MAX];

	stop = 0;
	steered = 0;
	each_steers = n / (workers + 1);
	for (int i = 0; i < VICTIMS; i++)
		victims[i] = (struct victim){ .partner = &victims[i % 4 == 1 ? i + 1 : i % 4 == 2 ? i - 1 : i] };
	for (int i = 0; i < VICTIMS; i++) {
		struct hd_spawn how = { .priority = 30, .pinned = i / 4 % 2 == 0, .suspended = i / 8 % 2 };
		victims[i].pid = hd_spawn_with(&how, entries[i % 4], &victims[i]);
		CHECK(victims[i].pid > 0);
	}
	for (long i = 0; i < workers; i++)
		seeds[i] = (void *)(i + 1);
	struct plain_thread *thread = start_thread(steer, (void *)99L);
	start_crew(&steerers, &(struct hd_spawn){ .priority = 50 }, workers, steer, seeds);
	join_crew_members(&steerers);
	join_thread(thread);
	set_flag(&stop, 1);
	for (int i = 0; i < VICTIMS; i++)
		CHECK(one_of(hd_resume(victims[i].pid), -EALREADY, -ESRCH));
	for (int i = 0; i < VICTIMS; i++)
		CHECK_EQ(hd_join(victims[i].pid, NULL, HD_FOREVER), 0);
	for (int i = 0; i < VICTIMS; i++) {
		struct victim *v = &victims[i];
		CHECK_EQ(v->begun, 1);
		for (; hd_semaphore_try_wait(&v->own) == 0; v->taken++)
			;
		CHECK_EQ(v->taken, v->given);
	}
}

HD_WORKERS_TEST(elsewhere_steering_loses_nobody_and_runs_nobody_twice)
{
	steer_victims(workers, hd_scaled(20000));
}

HD_WORKERS_STRESS(elsewhere_two_hundred_thousand_requests_lose_nobody)
{
	steer_victims(workers, hd_scaled(200000));
}

/* ---- processes that come and go under requests ---- */

#define KNOWN 64

static hd_pid known[KNOWN];
static uint8_t *runs;
static long next_id, collected;
static struct hd_semaphore never;

static void *live_shortly(void *arg)
{
	long id = (long)arg;
	hd_pid self = hd_self();

	CHECK_EQ(__atomic_add_fetch(&runs[id], 1, __ATOMIC_RELAXED), 1);
	switch (id % 8) {
	case 0:
		hd_yield();
		break;
	case 1:
		hd_sleep(HD_US(id % 16));
		break;
	case 2:
		CHECK_EQ(hd_semaphore_wait(&never, hd_after(id % 5000)), -ETIMEDOUT);
		break;
	case 3:
		for (int i = 0; i < 20; i++)
			hd_checkpoint();
		break;
	case 4:
		hd_exit(arg);
		break;
	case 5:
		hd_fail(EIO);
	}
	CHECK_EQ(hd_self(), self);
	return arg;
}

static void collect(int err)
{
	if (err == 0)
		add(&collected, 1);
}

/* Asks something of somebody known, who may be gone. */
static void bother(unsigned *seed)
{
	hd_pid pid = __atomic_load_n(&known[next_random(seed) % KNOWN], __ATOMIC_RELAXED);
	int err;

	switch (next_random(seed) % 8) {
	case 0:
		CHECK(one_of(hd_suspend(pid, 0), -EINPROGRESS, -ESRCH));
		break;
	case 1:
		err = hd_suspend(pid, hd_after(HD_MS(1)));
		CHECK(one_of(err, -ETIMEDOUT, -ESRCH) || err == -EINPROGRESS); /* that may be over before it is asked */
		break;
	case 2:
		CHECK(one_of(hd_set_priority(pid, 30 + (int)(next_random(seed) % 20)), -ESRCH, 0));
		break;
	case 3:
		CHECK(one_of(hd_set_policy(pid, HD_FIFO + (int)(next_random(seed) % 3)), -ESRCH, 0));
		break;
	case 4:
		err = hd_join(pid, NULL, hd_after(next_random(seed) % 20000));
		CHECK(one_of(err, -ETIMEDOUT, -ESRCH) || err == -EBUSY || err == -EINVAL);
		collect(err);
		break;
	case 5:
		if (next_random(seed) % 4 == 0) {
			err = hd_detach(pid);
			CHECK(one_of(err, -EBUSY, -ESRCH) || err == -EINVAL);
			collect(err);
		}
		break;
	default:
		CHECK(one_of(hd_resume(pid), -EALREADY, -ESRCH));
	}
}

/* Sees to it that somebody ends: whoever else stops him, or wants to join him. */
static void see_off(hd_pid pid)
{
	for (;;) {
		CHECK(one_of(hd_resume(pid), -EALREADY, -ESRCH));
		int err = hd_join(pid, NULL, hd_after(HD_US(500)));
		collect(err);
		if (one_of(err, -ESRCH, 0))
			return;
		CHECK(one_of(err, -ETIMEDOUT, -EBUSY) || err == -EINVAL);
		if (err != -ETIMEDOUT)
			hd_sleep(HD_US(
				20)); /* somebody else joins him; or he is detached, and must be resumed until he is gone */
	}
}

static int each_spawns;

static void *spawn_and_bother(void *arg)
{
	unsigned seed = (unsigned)(long)arg;

	for (int i = 0; i < each_spawns; i++) {
		struct hd_spawn how = { .priority = 35 + (int)(next_random(&seed) % 10),
					.pinned = next_random(&seed) % 2 == 0,
					.suspended = next_random(&seed) % 4 == 0 };
		hd_pid pid = hd_spawn_with(&how, live_shortly, (void *)add(&next_id, 1));
		CHECK(pid > 0);
		bother(&seed);
		pid = __atomic_exchange_n(&known[next_random(&seed) % KNOWN], pid, __ATOMIC_RELAXED);
		if (pid != 0)
			see_off(pid);
		bother(&seed);
	}
	return NULL;
}

static struct hd_stats stats_now(void)
{
	struct hd_stats stats;

	CHECK_EQ(hd_stats(&stats), 0);
	return stats;
}

static void come_and_go(int workers, int n)
{
	struct crew spawners;
	void *seeds[WORKERS_MAX];

	each_spawns = n / (workers + 1);
	n = each_spawns * (workers + 1);
	runs = calloc((size_t)n + 1, sizeof *runs);
	CHECK(runs != NULL);
	next_id = collected = 0;
	for (long i = 0; i < workers; i++)
		seeds[i] = (void *)(i + 1);
	struct plain_thread *thread = start_thread(spawn_and_bother, (void *)77L);
	start_crew(&spawners, NULL, workers, spawn_and_bother, seeds);
	join_crew_members(&spawners);
	join_thread(thread);
	for (int i = 0; i < KNOWN; i++) {
		see_off(known[i]);
		known[i] = 0;
	}
	struct hd_stats stats = stats_now();
	CHECK_EQ(stats.spawned, (unsigned long)(n + workers + 1));
	CHECK_EQ(stats.ended, (unsigned long)(n + workers));
	CHECK_EQ(stats.live_processes, 1);
	CHECK_EQ(collected, n); /* each was joined or detached once */
	for (int i = 1; i <= n; i++)
		CHECK_EQ(runs[i], 1);
	free(runs);
}

HD_WORKERS_TEST(elsewhere_each_process_runs_once_and_is_collected_once)
{
	come_and_go(workers, hd_scaled(10000));
}

HD_WORKERS_STRESS(elsewhere_each_of_a_million_is_collected_once)
{
	come_and_go(workers, hd_scaled(300000));
}

/* ---- hd_suspend from elsewhere ---- */

static void *count_turns(void *arg)
{
	struct victim *v = arg;

	while (!read_flag(&stop)) {
		add(&v->turns, 1);
		if (value_of(&v->turns) % 16 == 0)
			hd_yield();
		else
			hd_checkpoint();
	}
	return NULL;
}

static void *sleep_in_turns(void *arg)
{
	struct victim *v = arg;

	while (!read_flag(&stop)) {
		add(&v->turns, 1);
		hd_sleep(HD_US(2));
	}
	return NULL;
}

/* When hd_suspend has returned 0, the target makes no step more, wherever it is. Each has a target of its own. */
static void *stop_and_look(void *arg)
{
	struct victim *v = arg;
	struct hd_process_info info;

	for (int i = 0; i < each_steers; i++) {
		CHECK_EQ(hd_suspend(v->pid, HD_FOREVER), 0);
		long turns = value_of(&v->turns);
		CHECK_EQ(hd_process_info(v->pid, &info), 0);
		CHECK(info.suspended && (info.state == HD_SUSPENDED || info.state == HD_WAITING));
		if (i % 64 == 0)
			hd_sleep(HD_US(10));
		CHECK_EQ(value_of(&v->turns), turns);
		CHECK_EQ(hd_resume(v->pid), 0);
		CHECK_EQ(hd_resume(v->pid), -EALREADY);
	}
	return NULL;
}

static void suspend_from_elsewhere(int workers, bool movable, hd_entry entry)
{
	struct crew targets, stoppers;
	void *args[WORKERS_MAX] = { NULL };

	stop = 0;
	each_steers = hd_scaled(2000) / (workers * workers); /* more workers than CPUs: each request waits for the kernel */
	for (int i = 0; i < workers; i++) {
		victims[i] = (struct victim){ .turns = 0 };
		args[i] = &victims[i];
	}
	start_crew_that(!movable, &targets, &(struct hd_spawn){ .priority = 30 }, workers, entry, args);
	for (int i = 0; i < workers; i++)
		victims[i].pid = targets.members[i].pid;
	start_crew(&stoppers, NULL, workers, stop_and_look, args);
	join_crew_members(&stoppers);
	set_flag(&stop, 1);
	join_crew_members(&targets);
}

HD_WORKERS_TEST(elsewhere_suspended_process_makes_no_step)
{
	suspend_from_elsewhere(workers, false, count_turns);
	suspend_from_elsewhere(workers, true, count_turns);
	suspend_from_elsewhere(workers, false, sleep_in_turns);
	suspend_from_elsewhere(workers, true, sleep_in_turns);
}

/* ---- hd_suspend of the caller itself ---- */

static void *stop_itself(void *arg)
{
	struct victim *v = arg;

	for (int i = 0; i < each_steers; i++) {
		be_alone(v);
		hd__raise(hd__self(), HD__OUTSIDE); /* as the watcher does, if the worker watches descriptors */
		CHECK_EQ(hd_suspend(hd_self(), HD_FOREVER), 0);
	}
	set_flag(&stop, 1);
	return NULL;
}

static void *resume_the_first(void *arg)
{
	while (!read_flag(&stop))
		CHECK(one_of(hd_resume(victims[0].pid), -EALREADY, -ESRCH));
	return arg;
}

/* The resume comes while the process is about to leave its stack: it is ready then, and another worker, which runs less, would take it.
 * What has happened outside, its worker looks at outside the lane: but not with this process in the run queue. */
HD_MANY_WORKERS_TEST(elsewhere_process_that_stops_itself_is_not_taken_off_its_stack)
{
	struct crew resumers;

	stop = 0;
	each_steers = hd_scaled(20000);
	victims[0] = (struct victim){ .turns = 0 };
	victims[0].pid = hd_spawn_with(&(struct hd_spawn){ .priority = 60, .suspended = true }, stop_itself, &victims[0]);
	CHECK(victims[0].pid > 0);
	start_crew(&resumers, &(struct hd_spawn){ .priority = 30 }, workers, resume_the_first, NULL);
	join_crew_members(&resumers);
	CHECK_EQ(hd_join(victims[0].pid, NULL, HD_FOREVER), 0);
	CHECK_EQ(victims[0].turns, each_steers);
}

/* ---- joins ---- */

static long joined;
static hd_pid wanted;

static void *join_the_wanted(void *arg)
{
	int err;

	while ((err = hd_join(wanted, NULL, hd_after(HD_US(50)))) == -ETIMEDOUT || err == -EBUSY)
		hd_yield(); /* it may be behind us */
	CHECK(one_of(err, -ESRCH, 0));
	add(&joined, err == 0);
	return arg;
}

/* All workers and a thread want the same one: one of them has it. */
HD_WORKERS_TEST(elsewhere_one_joiner_of_many_succeeds)
{
	for (int i = 0; another_round(i, hd_scaled(200)); i++) {
		struct crew joiners;

		joined = 0;
		hd_semaphore_init(&never, 0);
		runs = calloc(3, 1);
		wanted = hd_spawn_with(&(struct hd_spawn){ .pinned = i % 2 == 0 }, live_shortly, (void *)(1L + i % 2));
		CHECK(wanted > 0);
		start_crew(&joiners, NULL, workers, join_the_wanted, NULL);
		join_crew_members(&joiners);
		CHECK_EQ(joined, 1);
		free(runs);
	}
}

/* The deadline of a join may come at any moment of the hand-off to a child that has not run: the child is not lost, and runs once. */
static void *run_once(void *arg)
{
	CHECK_EQ(__atomic_add_fetch(&runs[(long)arg], 1, __ATOMIC_RELAXED), 1);
	return arg;
}

HD_WORKERS_TEST(elsewhere_join_that_times_out_loses_nobody)
{
	long n = hd_scaled(20000);
	void *result;

	(void)workers;
	runs = calloc((size_t)n, 1);
	for (long i = 0; i < n; i++) {
		hd_pid pid = hd_spawn_with(&(struct hd_spawn){ .pinned = i % 2 == 0 }, run_once, (void *)i);
		int tries = 0;
		while (hd_join(pid, &result, tries < 3 ? hd_after(i % 400) : HD_FOREVER) == -ETIMEDOUT)
			tries++;
		CHECK_EQ((long)result, i);
		CHECK_EQ(runs[i], 1);
	}
	free(runs);
}

/* Children wait for so long that idle workers come for them, and are joined just then: by hand-off, or wherever they are. */
HD_WORKERS_TEST(elsewhere_child_that_is_joined_and_stolen_at_once_runs_once)
{
	enum { CHILDREN = 64 };
	hd_pid pids[CHILDREN];
	unsigned seed = 5;

	(void)workers;
	for (int round = 0; another_round(round, hd_scaled(300)); round++) {
		runs = calloc(CHILDREN, 1);
		for (long i = 0; i < CHILDREN; i++)
			CHECK((pids[i] = hd_spawn_with(&(struct hd_spawn){ .pinned = round % 2 == 0 }, run_once, (void *)i)) >
			      0);
		for (volatile unsigned i = next_random(&seed) % 200000; i > 0; i--)
			; /* until somebody idle is on the way */
		for (int i = 0; i < CHILDREN; i++)
			CHECK_EQ(hd_join(pids[round % 3 ? i : CHILDREN - 1 - i], NULL, HD_FOREVER), 0);
		for (int i = 0; i < CHILDREN; i++)
			CHECK_EQ(runs[i], 1);
		free(runs);
	}
}

/* A tree of processes, each of which joins its children, wherever they ran. */
#define FAN 8

static bool tree_moves;

static void *grow(void *arg)
{
	long depth = (long)arg, sum = 1;
	hd_pid children[FAN];

	if (depth == 0)
		return (void *)1L;
	for (int i = 0; i < FAN; i++) {
		children[i] = hd_spawn_with(&(struct hd_spawn){ .pinned = !tree_moves }, grow, (void *)(depth - 1));
		CHECK(children[i] > 0);
	}
	for (int i = 0; i < FAN; i++) {
		void *result;
		CHECK_EQ(hd_join(children[i], &result, HD_FOREVER), 0);
		sum += (long)result;
	}
	return (void *)sum;
}

static void grow_tree(int depth)
{
	long size = 1, level = 1;
	void *result;

	for (int i = 0; i < depth; i++)
		size += level *= FAN;
	for (int i = 0; i < 2; i++) {
		struct hd_stats before = stats_now();
		tree_moves = i == 1;
		CHECK_EQ(hd_join(hd_spawn(grow, (void *)(long)depth), &result, HD_FOREVER), 0);
		CHECK_EQ((long)result, size);
		struct hd_stats after = stats_now();
		CHECK_EQ(after.spawned - before.spawned, size);
		CHECK_EQ(after.ended - before.ended, size);
		CHECK_EQ(after.live_processes, 1);
	}
}

HD_WORKERS_TEST(elsewhere_tree_of_joins_counts_every_leaf)
{
	(void)workers;
	grow_tree(hd_is_simulated() ? 2 : HD_UNDER_TSAN ? 3 : HD_UNDER_ASAN ? 4 : 5);
}

HD_WORKERS_STRESS(elsewhere_tree_of_two_million_joins_counts_every_leaf)
{
	(void)workers;
	grow_tree(HD_UNDER_TSAN ? 3 : HD_UNDER_ASAN ? 5 : 7);
}
