/* wait/across.c - waits that are ended from other workers: no signal is lost, none is doubled. */
#include "sched/workers.h"

/* ---- a ring ---- */

#define RING_MAX (2 * WORKERS_MAX)

static struct hd_semaphore ring[RING_MAX];
static int ring_size;
static long hops, laps, inside[RING_MAX];

/* Passes on what comes; whoever is woken is alone with its place in the ring. */
static void *pass_on(void *arg)
{
	long place = (long)arg;

	for (long lap = 0; lap < laps; lap++) {
		CHECK_EQ(hd_semaphore_wait(&ring[place], HD_FOREVER), 0);
		CHECK_EQ(add(&inside[place], 1), 1);
		add(&hops, 1);
		CHECK_EQ(add(&inside[place], -1), 0);
		CHECK_EQ(hd_semaphore_signal(&ring[(place + 1) % ring_size]), 0);
	}
	return NULL;
}

/* Two places on each worker, neighbours on different ones. `tokens` go round at once. */
static void go_round(int workers, const struct hd_spawn *how, int tokens, long n)
{
	struct crew halves[2];
	void *places[2][WORKERS_MAX];

	ring_size = 2 * workers;
	hops = 0;
	laps = n / ring_size * tokens;
	for (long i = 0; i < ring_size; i++) {
		hd_semaphore_init(&ring[i], 0);
		places[i / workers][i % workers] = (void *)i;
	}
	for (int i = 0; i < 2; i++)
		start_crew(&halves[i], how, workers, pass_on, places[i]);
	for (int i = 0; i < tokens; i++)
		CHECK_EQ(hd_semaphore_signal(&ring[i * ring_size / tokens]), 0);
	for (int i = 0; i < 2; i++) {
		join_crew_members(&halves[i]);
		CHECK(is_apart(&halves[i]));
	}
	CHECK_EQ(hops, laps * ring_size);
	int held = 0;
	for (int i = 0; i < ring_size; i++) {
		CHECK(ring[i].waiters.head == NULL);
		while (hd_semaphore_try_wait(&ring[i]) == 0)
			held++;
	}
	CHECK_EQ(held, tokens);
}

static const struct hd_spawn movable = { .pinned = false };

HD_WORKERS_TEST(across_ring_of_pinned_processes_loses_no_signal)
{
	go_round(workers, NULL, 1, hd_scaled(20000));
}

HD_WORKERS_TEST(across_ring_of_movable_processes_loses_no_signal)
{
	go_round(workers, &movable, 1, hd_scaled(100000));
}

HD_WORKERS_TEST(across_ring_with_two_tokens_loses_neither)
{
	go_round(workers, NULL, 2, hd_scaled(20000));
	go_round(workers, &movable, 2, hd_scaled(50000));
}

HD_WORKERS_STRESS(across_ring_of_a_million_hops_loses_no_signal)
{
	go_round(workers, NULL, 1, hd_scaled(300000));
	go_round(workers, &movable, 2, hd_scaled(1000000));
}

/* ---- deadlines against grants ---- */

static struct hd_semaphore pool;
static long given, taken, timed_out, givers_left;
static int each_gives;

static void *give(void *arg)
{
	unsigned seed = (unsigned)(long)arg;

	for (int i = 0; i < each_gives; i++) {
		CHECK_EQ(hd_semaphore_signal(&pool), 0);
		add(&given, 1);
		switch (next_random(&seed) % 16) {
		case 0:
			hd_yield();
			break;
		case 1:
			hd_sleep(next_random(&seed) % 20000);
		}
	}
	add(&givers_left, -1);
	return NULL;
}

/* A wait without a deadline, now and then, must never be ended by one: not by its own of before either. */
static void *take(void *arg)
{
	unsigned seed = (unsigned)(long)arg;

	while (value_of(&givers_left) > 0) {
		struct hd_semaphore own = HD_SEMAPHORE(1);
		int err = hd_semaphore_wait(&pool, hd_after(next_random(&seed) % 8000));
		CHECK(err == 0 || err == -ETIMEDOUT);
		add(err == 0 ? &taken : &timed_out, 1);
		CHECK_EQ(hd_semaphore_wait(&own, HD_FOREVER), 0);
		if (next_random(&seed) % 8 == 0)
			hd_yield();
	}
	return NULL;
}

static void meet_deadlines(int workers, const struct hd_spawn *how, int n)
{
	struct crew givers, takers;
	void *seeds[WORKERS_MAX];

	for (long i = 0; i < workers; i++)
		seeds[i] = (void *)(i + 1);
	hd_semaphore_init(&pool, 0);
	given = taken = timed_out = 0;
	givers_left = workers;
	each_gives = n / workers;
	start_crew(&takers, how, workers, take, seeds);
	start_crew(&givers, how, workers, give, seeds);
	join_crew_members(&givers);
	join_crew_members(&takers);
	long held = 0;
	while (hd_semaphore_try_wait(&pool) == 0)
		held++;
	CHECK(pool.waiters.head == NULL);
	CHECK_EQ(given, (long)workers * each_gives);
	CHECK_EQ(taken + held, given);
}

HD_WORKERS_TEST(across_grants_and_deadlines_of_pinned_processes_decide_once)
{
	meet_deadlines(workers, NULL, hd_scaled(50000));
}

HD_WORKERS_TEST(across_grants_and_deadlines_of_movable_processes_decide_once)
{
	meet_deadlines(workers, &movable, hd_scaled(50000));
}

HD_WORKERS_STRESS(across_millions_of_grants_and_deadlines_decide_once)
{
	meet_deadlines(workers, NULL, hd_scaled(1000000));
	meet_deadlines(workers, &movable, hd_scaled(1000000));
}

/* ---- deadlines, then waits without one ---- */

static struct hd_semaphore first[WORKERS_MAX], second[WORKERS_MAX];
static long rounds;

/* The first wait ends by its deadline or by a grant, as it happens; the second only by its grant, which comes afterwards. */
static void *wait_twice(void *arg)
{
	long i = (long)arg;
	unsigned seed = (unsigned)i + 1;

	for (long n = 0; n < rounds; n++) {
		int err = hd_semaphore_wait(&first[i], hd_after(next_random(&seed) % 5000));
		CHECK(err == 0 || err == -ETIMEDOUT);
		CHECK_EQ(hd_semaphore_wait(&second[i], HD_FOREVER), 0);
		if (err == -ETIMEDOUT) /* then its signal is still there */
			CHECK_EQ(hd_semaphore_wait(&first[i], HD_FOREVER), 0);
	}
	return NULL;
}

static void *signal_twice(void *arg)
{
	long i = (long)arg;
	unsigned seed = (unsigned)i + 100;

	for (long n = 0; n < rounds; n++) {
		for (unsigned k = next_random(&seed) % 1000; k > 0; k--)
			__asm__ volatile("");
		CHECK_EQ(hd_semaphore_signal(&first[i]), 0);
		CHECK_EQ(hd_yield(), 0); /* if it is movable, and was waiting, it runs here now, and waits again */
		for (unsigned k = next_random(&seed) % 2000; k > 0; k--)
			__asm__ volatile("");
		CHECK_EQ(hd_semaphore_signal(&second[i]), 0);
		if (n % 4 == 0)
			hd_sleep(next_random(&seed) % 10000);
	}
	return NULL;
}

static void wait_twice_each(int workers, const struct hd_spawn *how, long n)
{
	struct crew waiters, signallers;
	void *places[WORKERS_MAX];

	rounds = n / workers;
	for (long i = 0; i < workers; i++) {
		places[i] = (void *)i;
		hd_semaphore_init(&first[i], 0);
		hd_semaphore_init(&second[i], 0);
	}
	start_crew(&waiters, how, workers, wait_twice, places);
	start_crew(&signallers, how, workers, signal_twice, places);
	join_crew_members(&waiters);
	join_crew_members(&signallers);
	for (int i = 0; i < workers; i++) {
		CHECK_EQ(hd_semaphore_try_wait(&first[i]), -EAGAIN);
		CHECK_EQ(hd_semaphore_try_wait(&second[i]), -EAGAIN);
	}
}

HD_WORKERS_TEST(across_deadline_of_one_wait_never_ends_the_next)
{
	wait_twice_each(workers, NULL, hd_scaled(10000));
	wait_twice_each(workers, &movable, hd_scaled(20000));
}

HD_WORKERS_STRESS(across_half_a_million_deadlines_never_end_the_next_wait)
{
	wait_twice_each(workers, NULL, hd_scaled(100000));
	wait_twice_each(workers, &movable, hd_scaled(400000));
}

/* ---- deadlines that stay behind ---- */

static struct hd_semaphore turn[2], there[2];
static hd_pid traveller;
static long journeys, moved;
static bool selects;

/* Pinned, each on a worker of its own: ends the traveller's wait when it surely waits, so that its worker adopts it. */
static void *fetch(void *arg)
{
	long me = (long)arg;
	struct hd_process_info info;

	for (long i = 0; i < journeys; i++) {
		CHECK_EQ(hd_semaphore_wait(&turn[me], HD_FOREVER), 0);
		do {
			sched_yield();
			CHECK_EQ(hd_process_info(traveller, &info), 0);
		} while (info.state != HD_WAITING);
		CHECK_EQ(hd_semaphore_signal(&there[me]), 0);
	}
	return arg;
}

/* In one queue, or in two. */
static int wait_for(struct hd_semaphore *mine, struct hd_semaphore *other, hd_time until)
{
	struct hd_case cases[2] = { hd_case_semaphore(mine), hd_case_semaphore(other) };

	return selects ? hd_select(cases, 2, until) : hd_semaphore_wait(mine, until);
}

/* Every one of its waits has a deadline, and leaves it behind in the heap of the worker that it goes away from. */
static void *travel(void *arg)
{
	struct hd_stats stats;

	__atomic_store_n(&traveller, hd_self(), __ATOMIC_RELEASE);
	for (long i = 0; i < 2 * journeys; i++) {
		int before = worker_of(hd_self());
		CHECK_EQ(hd_semaphore_signal(&turn[i % 2]), 0);
		int err;
		do /* where time is virtual it may jump to the deadline */
			err = wait_for(&there[i % 2], &there[1 - i % 2], hd_after(HD_SEC(3600)));
		while (err == -ETIMEDOUT);
		CHECK_EQ(err, 0);
		moved += worker_of(hd_self()) != before;
		CHECK_EQ(hd_stats(&stats), 0);
		CHECK(stats.timers < 300); /* 64 and half of the others in each of two heaps */
	}
	return arg;
}

static void *travel_between_two(void *arg)
{
	struct crew crew;
	void *places[2] = { (void *)0, (void *)1 };

	CHECK_EQ(hd_pin(), 0);
	start_crew(&crew, NULL, 2, fetch, places);
	CHECK_EQ(hd_join(hd_spawn(travel, NULL), NULL, HD_FOREVER), 0);
	join_crew_members(&crew);
	return arg;
}

/* Without a sweep there would be one more at each move. */
HD_TEST(across_deadlines_that_a_process_leaves_behind_are_swept)
{
	journeys = hd_is_simulated() ? 10 : 500;
	CHECK_EQ(run_with_workers(2, travel_between_two, NULL), 0);
	CHECK(moved > 0 || hd_is_simulated());
}

HD_TEST(across_process_that_selects_comes_to_the_worker_that_wakes_it)
{
	selects = true;
	journeys = hd_is_simulated() ? 10 : 500;
	CHECK_EQ(run_with_workers(2, travel_between_two, NULL), 0);
	CHECK(moved > 0 || hd_is_simulated());
}
