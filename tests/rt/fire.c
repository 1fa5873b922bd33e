/* rt/fire.c - runtimes with many workers that come and go under fire: plain threads call in at every moment. */
#include "rt/capture.h"

#include "os/fault.h"
#include "os/thread.h"
#include "sched/workers.h"

static int stop;

/* ---- calls from threads against the end ---- */

#define KNOWN 8

static hd_pid known[KNOWN];
static struct hd_semaphore pool;
static long given, taken, began, finished;

static void *count_and_end(void *arg)
{
	add(&began, 1);
	if ((long)arg % 3 == 0)
		hd_yield();
	add(&finished, 1);
	return arg;
}

/* Waits again and again; a signal that it was granted is counted unless the end of the runtime comes between. */
static void *take_until_the_end(void *arg)
{
	while (arg != &stop)
		add(&taken, hd_semaphore_wait(&pool, hd_after(HD_US(200))) == 0);
	return arg;
}

/* However a call from outside can end. */
static bool is_answer(int err)
{
	return err == 0 || err == -ENXIO || err == -ESRCH || err == -ESHUTDOWN || err == -EALREADY;
}

static void *call_in(void *arg)
{
	unsigned seed = (unsigned)(long)arg;

	for (; !read_flag(&stop); sched_yield()) {
		unsigned n = next_random(&seed);
		hd_pid victim = __atomic_load_n(&known[n % KNOWN], __ATOMIC_RELAXED), pid;
		struct hd_stats stats;
		int err;
		switch (n / KNOWN % 8) {
		case 0:
		case 1:
			pid = hd_spawn_with(&(struct hd_spawn){ .suspended = n % 3 == 0, .pinned = n % 2 == 0 }, count_and_end,
					    (void *)(long)(n % 7));
			CHECK(pid > 0 || pid == -ENXIO || pid == -ESHUTDOWN);
			if (pid > 0) {
				CHECK(is_answer(hd_resume(pid)));
				err = hd_join(pid, NULL, HD_FOREVER);
				CHECK(is_answer(err) || err == -EBUSY); /* in the next runtime the id is another process's */
			}
			break;
		case 2:
			CHECK(is_answer(hd_suspend(victim, HD_FOREVER)));
			CHECK(is_answer(hd_resume(victim)));
			break;
		case 3:
			CHECK(is_answer(hd_set_priority(victim, 20 + (int)(n % 40))));
			break;
		case 4:
			err = hd_join(victim, NULL, hd_after(HD_US(20)));
			CHECK(is_answer(err) || err == -ETIMEDOUT || err == -EBUSY);
			break;
		case 5:
			CHECK(is_answer(hd_stats(&stats)));
			break;
		default: /* not so many that nobody ever waits */
			if (!hd_semaphore_is_signaled(&pool)) {
				CHECK_EQ(hd_semaphore_signal(&pool), 0);
				add(&given, 1);
			}
		}
	}
	return NULL;
}

/* Takers everywhere, daemons among them; one of them is each thread's to ask things of. */
static void populate(void)
{
	for (long i = 0; i < KNOWN; i++) {
		struct hd_spawn how = { .daemon = i % 4 != 0, .pinned = i % 2 == 0 };
		__atomic_store_n(&known[i], hd_spawn_with(&how, take_until_the_end, NULL), __ATOMIC_RELAXED);
	}
}

static void *shut_down_soon(void *arg)
{
	populate();
	hd_sleep(HD_US(300));
	CHECK_EQ(hd_shutdown(7), 0);
	return arg;
}

/* Only daemons are left. */
static void *end_soon(void *arg)
{
	for (long i = 0; i < KNOWN; i++) {
		struct hd_spawn how = { .daemon = true, .pinned = i % 2 == 0 };
		__atomic_store_n(&known[i], hd_spawn_with(&how, take_until_the_end, NULL), __ATOMIC_RELAXED);
	}
	hd_sleep(HD_US(100));
	return arg;
}

static void under_fire(hd_entry first, int code, int rounds)
{
	static const int counts[] = { 2, WORKERS_MAX };
	struct plain_thread *threads[3];

	for (long i = 0; i < 3; i++)
		threads[i] = start_thread(call_in, (void *)(i + 1));
	for (int round = 0; another_round(round, rounds); round++)
		CHECK_EQ(run_with_workers(counts[round % 2], first, NULL), code);
	set_flag(&stop, 1);
	for (int i = 0; i < 3; i++)
		join_thread(threads[i]);
	CHECK(pool.waiters.head == NULL && pool.waiters.lock == 0);
	CHECK(value_of(&began) >= value_of(&finished));
	long held = 0;
	while (hd_semaphore_try_wait(&pool) == 0)
		held++;
	/* whoever was granted a signal and then ended by the runtime has taken it without counting */
	CHECK(taken + held <= given);
}

HD_TEST(fire_calls_from_threads_against_shutdown)
{
	under_fire(shut_down_soon, 7, HD_UNDER_TSAN || hd_is_simulated() ? 30 : 300);
}

HD_TEST(fire_calls_from_threads_against_the_last_end)
{
	under_fire(end_soon, 0, HD_UNDER_TSAN || hd_is_simulated() ? 30 : 300);
}

HD_STRESS(fire_calls_from_threads_against_thousands_of_ends)
{
	under_stress = true;
	under_fire(shut_down_soon, 7, hd_scaled(2000));
	set_flag(&stop, 0);
	under_fire(end_soon, 0, hd_scaled(2000));
}

/* ---- nobody ends too early ---- */

static struct hd_semaphore ready;
static hd_pid late;
static long ran;

static void *run_late(void *arg)
{
	add(&ran, 1);
	return arg;
}

/* The first process may end as soon as it is told; the one that a thread has spawned counts from the moment it has an id. */
static void *spawn_and_tell(void *arg)
{
	const struct hd_spawn *how = arg;

	late = hd_spawn_with(how, run_late, NULL);
	CHECK(late > 0);
	CHECK_EQ(hd_semaphore_signal(&ready), 0);
	for (int i = 0; i < 20; i++)
		sched_yield();
	if (how->suspended)
		CHECK_EQ(hd_resume(late), 0);
	return NULL;
}

static void *end_when_told(void *arg)
{
	*(struct plain_thread **)arg =
		start_thread(spawn_and_tell, (void *)*(const struct hd_spawn *const *)((void **)arg + 1));
	CHECK_EQ(hd_semaphore_wait(&ready, HD_FOREVER), 0);
	return NULL;
}

static void spawn_last(const struct hd_spawn *how, int rounds)
{
	static const int counts[] = { 1, 2, WORKERS_MAX };

	for (int round = 0; another_round(round, rounds); round++) {
		void *args[2] = { NULL, (void *)how };
		ran = 0;
		CHECK_EQ(run_with_workers(counts[round % 3], end_when_told, args), 0);
		CHECK_EQ(pthread_join(((struct plain_thread *)args[0])->handle, NULL), 0);
		free(args[0]);
		CHECK_EQ(ran, 1);
	}
}

HD_TEST(fire_process_from_a_thread_outlives_the_first)
{
	spawn_last(&(struct hd_spawn){ .detached = true }, hd_scaled(200));
	spawn_last(&(struct hd_spawn){ .detached = true, .pinned = false }, hd_scaled(200));
}

HD_TEST(fire_suspended_process_from_a_thread_outlives_the_first)
{
	spawn_last(&(struct hd_spawn){ .detached = true, .suspended = true }, hd_scaled(200));
	spawn_last(&(struct hd_spawn){ .detached = true, .suspended = true, .pinned = false }, hd_scaled(200));
}

/* ---- processes that come while the runtime ends ---- */

static int alive; /* hd_run has been called, and has not returned */
static long entered, gone, returned;

static void count_leaver(void *arg)
{
	add(&gone, 1);
	(void)arg;
}

/* Runs while there is a runtime, and leaves before that is gone, by its end or by a termination. */
static void *enter_and_leave(void *how_long)
{
	struct hd_cleanup cleanup;

	CHECK_EQ(read_flag(&alive), 1);
	CHECK_EQ(hd_cleanup_push(&cleanup, count_leaver, NULL), 0);
	add(&entered, 1);
	*(const hd_time *)how_long > 0 ? hd_sleep(*(const hd_time *)how_long) : hd_yield();
	CHECK_EQ(hd_cleanup_pop(&cleanup, true), 0);
	return NULL;
}

static const hd_time at_once = 0, for_good = HD_SEC(100000);

static int spawning; /* threads that have had a process spawned */

/* From the first that a runtime takes to the first that it refuses; or none, if it is over too soon. */
static void *spawn_to_the_end(void *arg)
{
	unsigned seed = (unsigned)(long)arg;
	struct hd_end end;
	hd_pid pid;

	for (bool taken_any = false; read_flag(&alive); taken_any |= pid > 0) {
		unsigned n = next_random(&seed);
		struct hd_spawn how = { .detached = n % 8 != 0, .daemon = n % 8 != 1, .pinned = n % 5 == 0 };
		pid = hd_spawn_with(&how, enter_and_leave, (void *)&at_once);
		CHECK(pid > 0 || pid == -ESHUTDOWN || pid == -ENXIO);
		if (pid > 0 && !taken_any)
			__atomic_fetch_add(&spawning, 1, __ATOMIC_ACQ_REL);
		if (pid > 0 && !how.detached && hd_join_end(pid, &end, HD_FOREVER) == 0)
			add(&returned, end.kind == HD_END_RETURNED);
		if (pid == -ESHUTDOWN || (pid < 0 && taken_any))
			break;
		if (pid < 0)
			sched_yield(); /* it has not begun */
	}
	return NULL;
}

static void *end_while_they_spawn(void *arg)
{
	while (read_flag(&spawning) == 0)
		hd_sleep(HD_US(5));
	if ((long)arg % 2)
		hd_shutdown(0);
	return NULL;
}

HD_TEST(fire_process_that_a_thread_spawns_at_the_end_is_neither_lost_nor_late)
{
	static const int counts[] = { 1, 2, 3 };
	struct plain_thread *threads[2];

	for (long round = 0; another_round((int)round, hd_is_simulated() ? 6 : hd_scaled(3000)); round++) {
		set_flag(&spawning, 0);
		set_flag(&alive, 1);
		for (long i = 0; i < 2; i++)
			threads[i] = start_thread(spawn_to_the_end, (void *)(2 * round + i + 1));
		CHECK_EQ(run_with_workers(counts[round / 2 % 3], end_while_they_spawn, (void *)round), 0);
		set_flag(&alive, 0);
		for (int i = 0; i < 2; i++)
			join_thread(threads[i]);
		CHECK_EQ(gone, entered);
		CHECK(returned <= gone);
	}
}

/* Threads that are in the middle of hd_spawn, past the question whether the runtime ends, until all its workers have left. */
#define SENDERS 3

static int sender_ids[SENDERS];

/* Asked when a sender has room reserved for the stacks of a new size. */
static bool hold_senders(enum hd__fault kind)
{
	struct hd_stats stats;
	int me = hd__os_thread_id();

	for (int i = 0; kind == HD__FAULT_MAP && i < SENDERS; i++)
		if (__atomic_load_n(&sender_ids[i], __ATOMIC_RELAXED) == me) {
			__atomic_store_n(&sender_ids[i], 0, __ATOMIC_RELAXED);
			__atomic_fetch_add(&spawning, 1, __ATOMIC_ACQ_REL);
			while (hd_stats(&stats) == 0) /* until no thread is let in */
				sched_yield();
		}
	return false;
}

static void *send_too_late(void *arg)
{
	long i = (long)arg;
	struct hd_spawn how = { .stack_size = (size_t)1 << (17 + i), .daemon = i == 0, .detached = i == 1 };

	__atomic_store_n(&sender_ids[i], hd__os_thread_id(), __ATOMIC_RELAXED);
	CHECK(hd_spawn_with(&how, enter_and_leave, (void *)&at_once) > 0);
	return NULL;
}

static void *end_while_senders_are_held(void *threads)
{
	for (long i = 0; i < SENDERS; i++)
		((struct plain_thread **)threads)[i] = start_thread(send_too_late, (void *)i);
	while (read_flag(&spawning) < SENDERS)
		hd_sleep(HD_US(5));
	return NULL;
}

HD_TEST(fire_process_that_comes_when_the_workers_have_left_never_runs)
{
	static const int counts[] = { 1, 2, WORKERS_MAX };
	struct plain_thread *threads[SENDERS];

	hd__fault_door = hold_senders;
	for (int round = 0; another_round(round, hd_is_simulated() ? 30 : hd_scaled(600)); round++) {
		set_flag(&spawning, 0);
		CHECK_EQ(run_with_workers(counts[round % 3], end_while_senders_are_held, threads), 0);
		for (int i = 0; i < SENDERS; i++)
			join_thread(threads[i]);
		CHECK_EQ(entered, 0);
	}
}

static void *shut_down_when_they_spawn(void *arg)
{
	await_flag(&spawning, 1);
	CHECK_EQ(hd_shutdown(7), 0);
	return arg;
}

/* Each of them would sleep for good, and would be abandoned without its cleanups, if it were not told of the end. */
static void *spawn_into_the_end(void *arg)
{
	hd_pid pid;

	*(struct plain_thread **)arg = start_thread(shut_down_when_they_spawn, NULL);
	set_flag(&spawning, 1);
	do
		pid = hd_spawn_with(&(struct hd_spawn){ .detached = true, .priority = 50 }, enter_and_leave, (void *)&for_good);
	while (pid > 0);
	CHECK_EQ(pid, -ESHUTDOWN);
	return NULL;
}

HD_TEST(fire_process_that_a_process_spawns_at_the_end_is_told_of_it)
{
	static const int counts[] = { 1, 2, WORKERS_MAX };
	struct plain_thread *thread;

	set_flag(&alive, 1);
	for (int round = 0; another_round(round, hd_scaled(600)); round++) {
		set_flag(&spawning, 0);
		CHECK_EQ(run_with_workers(counts[round % 3], spawn_into_the_end, &thread), 7);
		join_thread(thread);
		CHECK_EQ(gone, entered);
	}
}

/* The first process ends at once; whoever it has spawned spawns the next, wherever it is: the chain has all its links. */
static long links_left;

static void *link_on(void *arg)
{
	static const struct hd_spawn hows[] = { { .detached = true },
						{ .detached = true, .pinned = false },
						{ .detached = true, .priority = 30 },
						{ .detached = true, .priority = 50 } };
	long left = add(&links_left, -1);

	if (left % 5 == 0)
		hd_sleep(HD_US(left % 7));
	if (left > 0)
		CHECK(hd_spawn_with(&hows[left % 4], link_on, NULL) > 0);
	return arg;
}

HD_TEST(fire_chain_of_processes_keeps_the_runtime_running)
{
	static const int counts[] = { 1, 2, WORKERS_MAX };

	for (int round = 0; another_round(round, hd_scaled(300)); round++) {
		links_left = 50;
		CHECK_EQ(run_with_workers(counts[round % 3], link_on, NULL), 0);
		CHECK_EQ(links_left, 0);
	}
}

/* ---- daemons ---- */

static bool daemons_wait;

/* Some wait now and then, and are ended there; others never do, and are abandoned when the second of grace is over. */
static void *never_end(void *arg)
{
	long kind = (long)arg % 4;

	for (;;) {
		if (daemons_wait && kind < 2)
			hd_sleep(HD_US(10));
		else if (daemons_wait)
			ANY_ANSWER(hd_semaphore_wait(&pool, kind == 2 ? HD_FOREVER : hd_after(HD_US(30))));
		else if (kind < 2)
			hd_checkpoint();
		else
			hd_yield();
	}
	return NULL;
}

static void *leave_daemons(void *arg)
{
	int workers = (int)(long)arg;
	struct crew crew;
	void *kinds[WORKERS_MAX];

	for (long i = 0; i < workers; i++)
		kinds[i] = (void *)(i + 1);
	start_crew(&crew, &(struct hd_spawn){ .daemon = true, .priority = 30 }, workers, never_end, kinds);
	for (long i = 0; i < 4; i++)
		CHECK(hd_spawn_with(&(struct hd_spawn){ .daemon = true, .pinned = false, .priority = 30 }, never_end,
				    (void *)i) > 0);
	hd_sleep(HD_US(200));
	return NULL;
}

HD_TEST(fire_daemons_on_every_worker_do_not_keep_the_runtime)
{
	static const int counts[] = { 1, 2, WORKERS_MAX };

	daemons_wait = true;
	for (int round = 0; another_round(round, hd_scaled(300)); round++)
		CHECK_EQ(run_with_workers(counts[round % 3], leave_daemons, (void *)(long)counts[round % 3]), 0);
}

HD_TEST(fire_daemons_that_never_wait_do_not_keep_the_runtime)
{
	if (hd_is_simulated())
		SKIP("they run for the whole second of grace: too many steps");
	CHECK_EQ(run_with_workers(2, leave_daemons, (void *)2L), 0);
	CHECK_EQ(run_with_workers(WORKERS_MAX, leave_daemons, (void *)(long)WORKERS_MAX), 0);
}

/* ---- deadlock ---- */

static struct hd_semaphore nobody_signals;

static void *wait_for_nothing(void *arg)
{
	CHECK_EQ(hd_semaphore_wait(&nobody_signals, HD_FOREVER), 0);
	return arg;
}

static void *everybody_waits(void *arg)
{
	int workers = (int)(long)arg;
	struct crew crew;

	start_crew(&crew, &(struct hd_spawn){ .name = "stuck" }, workers, wait_for_nothing, NULL);
	CHECK(hd_spawn_with(&(struct hd_spawn){ .name = "suspended", .suspended = true }, wait_for_nothing, NULL) > 0);
	CHECK(hd_spawn_with(&(struct hd_spawn){ .name = "movable", .pinned = false }, wait_for_nothing, NULL) > 0);
	CHECK_EQ(hd_join(crew.members[workers - 1].pid, NULL, HD_FOREVER), 0);
	return NULL;
}

HD_TEST(fire_deadlock_on_many_workers_is_declared_and_names_everybody)
{
	static const int counts[] = { 1, 2, WORKERS_MAX };

	if (hd_is_haunted())
		SKIP("there are threads that we did not start");
	for (int round = 0; another_round(round, hd_scaled(60)); round++) {
		int workers = counts[round % 3];
		capture_begin();
		int err = run_with_workers(workers, everybody_waits, (void *)(long)workers);
		const char *text = capture_end();
		CHECK_EQ(err, -EDEADLK);
		CHECK(says(text, "deadlock"));
		CHECK_EQ(times_said(text, "  stuck #"), workers);
		CHECK_EQ(times_said(text, "suspended #"), 1);
		CHECK_EQ(times_said(text, "movable #"), 1);
		CHECK_EQ(times_said(text, "main #"), 1);
	}
}

static void *nothing(void *arg)
{
	return arg;
}

static void *end_everywhere(void *arg)
{
	int workers = (int)(long)arg;
	struct crew crew;

	CHECK(hd_spawn_with(&(struct hd_spawn){ .daemon = true }, wait_for_nothing, NULL) > 0);
	start_crew(&crew, &(struct hd_spawn){ .detached = true }, workers, nothing, NULL);
	return NULL;
}

/* The last ones end on all workers at once: that is the end, and no deadlock. */
HD_TEST(fire_ends_on_all_workers_at_once_are_no_deadlock)
{
	static const int counts[] = { 2, 3, WORKERS_MAX };

	for (int round = 0; another_round(round, hd_scaled(200)); round++)
		CHECK_EQ(run_with_workers(counts[round % 3], end_everywhere, (void *)(long)counts[round % 3]), 0);
}

static struct hd_semaphore ping[WORKERS_MAX], pong[WORKERS_MAX];
static int exchanges;

/* Between exchanges all workers are idle, but for a timer of somebody's. */
static void *serve(void *arg)
{
	long i = (long)arg;

	for (int n = 0; n < exchanges; n++) {
		if (n % 3 == 0)
			hd_sleep(HD_US(n % 70));
		CHECK_EQ(hd_semaphore_signal(&ping[i]), 0);
		CHECK_EQ(hd_semaphore_wait(&pong[i], HD_FOREVER), 0);
	}
	return NULL;
}

static void *answer(void *arg)
{
	long i = (long)arg;

	for (int n = 0; n < exchanges; n++) {
		CHECK_EQ(hd_semaphore_wait(&ping[i], HD_FOREVER), 0);
		if (n % 5 == 0)
			hd_sleep(HD_US(n % 50));
		CHECK_EQ(hd_semaphore_signal(&pong[i]), 0);
	}
	return NULL;
}

HD_MANY_WORKERS_TEST(fire_no_verdict_while_somebody_sleeps_or_wakes_another)
{
	struct crew servers, answerers;
	void *places[WORKERS_MAX];

	exchanges = hd_scaled(4000) / workers;
	for (long i = 0; i < workers; i++)
		places[i] = (void *)i;
	start_crew(&servers, NULL, workers, serve, places);
	start_crew(&answerers, NULL, workers, answer, places);
	join_crew_members(&servers);
	join_crew_members(&answerers);
}

/* ---- hd_hold_open ---- */

static void *hold_then_let_go(void *arg)
{
	for (int i = 0; i < 100; i++)
		sched_yield();
	late = hd_spawn_with(&(struct hd_spawn){ .detached = true }, run_late, NULL);
	CHECK(late > 0);
	CHECK_EQ(hd_hold_open(-1), 0);
	return arg;
}

struct holder {
	int workers;
	struct plain_thread *thread;
};

/* The other workers are just becoming idle, and ask whether all is over. */
static void *hold_and_end(void *arg)
{
	struct holder *holder = arg;
	struct crew crew;

	start_crew(&crew, &(struct hd_spawn){ .detached = true }, holder->workers, nothing, NULL);
	CHECK_EQ(hd_hold_open(1), 1);
	holder->thread = start_thread(hold_then_let_go, NULL);
	return NULL;
}

HD_TEST(fire_runtime_that_is_held_open_waits_for_threads)
{
	static const int counts[] = { 1, 2, WORKERS_MAX };

	for (int round = 0; another_round(round, hd_scaled(300)); round++) {
		struct holder holder = { .workers = counts[round % 3] };
		ran = 0;
		CHECK_EQ(run_with_workers(holder.workers, hold_and_end, &holder), 0);
		join_thread(holder.thread);
		CHECK_EQ(ran, 1);
	}
}
