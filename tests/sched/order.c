/* sched/order.c - strict priorities across workers: while somebody who may run anywhere is ready, nobody lower passes safe points.
 *
 * How soon a thread gets a CPU is the kernel's affair, so nothing here is timed. Hogs count their own safe points: whoever makes
 * a process ready has told the workers when the call returns, so from then on a lower hog passes one safe point, not many. */
#include "rt/rt.h"
#include "sched/workers.h"

/* Safe points that a hog may pass after it should have given way; one or two would do. Under TSan a thread that spawns several processes may be
 * off its CPU for long between two of them. */
#define FEW (HD_UNDER_TSAN ? 100000 : 100)

struct hog {
	hd_pid pid;
	long turns;
	int blind; /* it comes by no safe point, and is not preempted */
};

static struct hog hogs[WORKERS_MAX]; /* of the worker with that number */
static struct crew hog_crew;
static int hogs_stop;

static void be_blind(struct hog *me)
{
	CHECK_EQ(hd_preempt_disable(), 0);
	while (read_flag(&me->blind)) {
		add(&me->turns, 1);
		sched_yield();
	}
	CHECK_EQ(hd_preempt_enable(), 0);
}

static void *be_a_hog(void *arg)
{
	struct hog *me = &hogs[worker_of(hd_self()) + (long)arg];

	me->pid = hd_self();
	while (!read_flag(&hogs_stop)) {
		add(&me->turns, 1);
		if (read_flag(&me->blind))
			be_blind(me);
		else
			hd_checkpoint();
	}
	return NULL;
}

static void start_hogs(int workers, int priority)
{
	CHECK_EQ(hd_pin(), 0);
	CHECK_EQ(hd_set_priority(hd_self(), 80), 0); /* they shall not be in our way */
	hogs_stop = 0;
	for (int i = 0; i < workers; i++)
		hogs[i] = (struct hog){ .turns = 0 };
	start_crew(&hog_crew, &(struct hd_spawn){ .priority = priority }, workers, be_a_hog, NULL);
	for (int i = 0; i < workers; i++)
		while (value_of(&hogs[i].turns) == 0)
			hd_sleep(HD_US(50));
}

static void stop_hogs(void)
{
	set_flag(&hogs_stop, 1);
	join_crew_members(&hog_crew);
}

/* What the hogs had done when somebody became ready. */
struct count {
	long turns[WORKERS_MAX];
};

static struct count count_hogs(void)
{
	struct count c;

	for (int i = 0; i < WORKERS_MAX; i++)
		c.turns[i] = value_of(&hogs[i].turns);
	return c;
}

/* Waits, without a safe point, until `*what` has come to `n`. The hogs from worker `low` on must not pass safe points meanwhile. */
static void expect_before_hogs(const long *what, long n, struct count since, int low, int workers)
{
	while (value_of(what) < n) {
		for (int i = low; i < workers; i++)
			if (value_of(&hogs[i].turns) > since.turns[i] + FEW && !read_flag(&hogs[i].blind))
				CHECK_EQ(value_of(what), n); /* it may have come this moment */
		sched_yield();
	}
}

/* ---- from a worker, from a thread ---- */

static long begun, enough;

/* Starts, and keeps its worker until enough have: no two of them can be run by the same one. */
static void *begin_and_hold(void *arg)
{
	add(&begun, 1);
	while (value_of(&begun) < enough)
		sched_yield();
	return arg;
}

/* We are on the first worker, and keep it. */
static void spawn_above_hogs(int workers, const struct hd_spawn *how)
{
	hd_pid pids[WORKERS_MAX];

	begun = 0;
	enough = workers - 1;
	for (int i = 0; i < enough; i++) {
		pids[i] = hd_spawn_with(how, begin_and_hold, NULL);
		CHECK(pids[i] > 0);
	}
	expect_before_hogs(&begun, enough, count_hogs(), 1, workers);
	for (int i = 0; i < enough; i++)
		CHECK_EQ(hd_join(pids[i], NULL, HD_FOREVER), 0);
}

HD_WORKERS_TEST(order_spawn_takes_every_worker_from_lower_ones)
{
	start_hogs(workers, 30);
	for (int i = 0; another_round(i, hd_scaled(1000) / (workers * workers)); i++)
		spawn_above_hogs(workers, &(struct hd_spawn){ .priority = 31 + i % 49 });
	stop_hogs();
}

static void *spawn_from_a_thread(void *arg)
{
	int workers = (int)(long)arg;

	for (int round = 0; another_round(round, hd_scaled(500) / (workers * workers)); round++) {
		hd_pid pids[WORKERS_MAX];
		begun = 0;
		enough = workers;
		for (int i = 0; i < workers; i++) {
			pids[i] = hd_spawn_with(&(struct hd_spawn){ .priority = 31 + round % 49 }, begin_and_hold, NULL);
			CHECK(pids[i] > 0);
		}
		expect_before_hogs(&begun, enough, count_hogs(), 0, workers);
		for (int i = 0; i < workers; i++)
			CHECK_EQ(hd_join(pids[i], NULL, HD_FOREVER), 0);
	}
	return NULL;
}

HD_WORKERS_TEST(order_spawn_from_a_thread_takes_every_worker_from_lower_ones)
{
	start_hogs(workers, 30);
	join_thread(start_thread(spawn_from_a_thread, (void *)(long)workers));
	stop_hogs();
}

/* ---- a wake ---- */

static struct hd_semaphore gate;

static void *wait_and_hold(void *arg)
{
	CHECK_EQ(hd_semaphore_wait(&gate, HD_FOREVER), 0);
	return begin_and_hold(arg);
}

/* Movable ones that wait, wherever they did, run on every worker that has something lower. */
static void wake_above_hogs(int workers)
{
	hd_pid pids[WORKERS_MAX];

	hd_semaphore_init(&gate, 0);
	begun = 0;
	enough = workers - 1;
	for (int i = 0; i < enough; i++) {
		struct hd_process_info info;
		pids[i] = hd_spawn_with(&(struct hd_spawn){ .priority = 50, .pinned = false }, wait_and_hold, NULL);
		do {
			hd_sleep(HD_US(20));
			CHECK_EQ(hd_process_info(pids[i], &info), 0);
		} while (info.state != HD_WAITING);
	}
	for (int i = 0; i < enough; i++)
		CHECK_EQ(hd_semaphore_signal(&gate), 0);
	expect_before_hogs(&begun, enough, count_hogs(), 1, workers);
	for (int i = 0; i < enough; i++)
		CHECK_EQ(hd_join(pids[i], NULL, HD_FOREVER), 0);
}

HD_WORKERS_TEST(order_wake_takes_every_worker_from_lower_ones)
{
	start_hogs(workers, 30);
	for (int i = 0; another_round(i, hd_scaled(300) / (workers * workers)); i++)
		wake_above_hogs(workers);
	stop_hogs();
}

/* ---- corners ---- */

static const struct hd_config two = { .workers = 2, .fixed = true }, three = { .workers = 3, .fixed = true };

/* One of the lower ones computes on and on without a safe point: that must not hide the ready one from the other. */
static void *one_is_blind(void *arg)
{
	start_hogs(3, 35);
	set_flag(&hogs[1].blind, 1);
	hd_sleep(HD_MS(1));
	CHECK_EQ(hd_set_priority(hogs[2].pid, 36), 0); /* the blind one is the lower */
	hd_sleep(HD_MS(1));
	begun = 0;
	enough = 1;
	hd_pid pid = hd_spawn_at(50, begin_and_hold, NULL);
	expect_before_hogs(&begun, 1, count_hogs(), 2, 3);
	CHECK_EQ(hd_join(pid, NULL, HD_FOREVER), 0);
	set_flag(&hogs[1].blind, 0);
	stop_hogs();
	return arg;
}

HD_TEST(order_worker_without_safe_points_hides_nobody_from_the_others)
{
	for (int i = 0; another_round(i, hd_scaled(30)); i++)
		CHECK_EQ(hd_run(&three, one_is_blind, NULL), 0);
}

static void *spawn_one_at_50(void *arg)
{
	hd_pid pid = hd_spawn_at(50, begin_and_hold, NULL);

	CHECK(pid > 0);
	expect_before_hogs(&begun, 1, count_hogs(), 2, 3);
	CHECK_EQ(hd_join(pid, NULL, HD_FOREVER), 0);
	return arg;
}

/* The same for one from a thread; we keep the first worker at 80. */
static void *one_is_blind_and_a_thread_spawns(void *arg)
{
	start_hogs(3, 35);
	set_flag(&hogs[1].blind, 1);
	hd_sleep(HD_MS(1));
	CHECK_EQ(hd_set_priority(hogs[2].pid, 36), 0);
	hd_sleep(HD_MS(1));
	begun = 0;
	enough = 1;
	struct plain_thread *thread = start_thread(spawn_one_at_50, NULL);
	while (value_of(&begun) == 0)
		sched_yield();
	join_thread(thread);
	set_flag(&hogs[1].blind, 0);
	stop_hogs();
	return arg;
}

HD_TEST(order_worker_without_safe_points_hides_nobody_sent_by_a_thread)
{
	for (int i = 0; another_round(i, hd_scaled(30)); i++)
		CHECK_EQ(hd_run(&three, one_is_blind_and_a_thread_spawns, NULL), 0);
}

/* The runner of another worker is lowered from here: from then on something else is better. */
static void *lower_the_other(void *arg)
{
	start_hogs(2, 50);
	for (int i = 0; another_round(i, hd_scaled(200)); i++) {
		begun = 0;
		enough = 1;
		hd_pid pid = hd_spawn_at(45, begin_and_hold, NULL); /* nobody is told: both run more */
		CHECK_EQ(hd_set_priority(hogs[1].pid, 30), 0);
		expect_before_hogs(&begun, 1, count_hogs(), 1, 2);
		CHECK_EQ(hd_join(pid, NULL, HD_FOREVER), 0);
		CHECK_EQ(hd_set_priority(hogs[1].pid, 50), 0);
		long turns = value_of(&hogs[1].turns);
		while (value_of(&hogs[1].turns) < turns + 2) /* it has looked */
			hd_sleep(HD_US(10));
	}
	stop_hogs();
	return arg;
}

HD_TEST(order_lowered_runner_gives_way_to_what_others_share)
{
	CHECK_EQ(hd_run(&two, lower_the_other, NULL), 0);
}

/* A movable process that a higher one takes the worker from goes on where somebody lower runs. */
static long turns_of_displaced;
static struct hd_semaphore wake_main;

static void *be_displaced(void *arg)
{
	set_flag(arg, 1);
	while (value_of(&begun) == 0)
		sched_yield();			      /* on the first worker, until the hog of the second is lowered */
	CHECK_EQ(hd_semaphore_signal(&wake_main), 0); /* it is pinned here, and higher */
	set(&turns_of_displaced, 1);
	return NULL;
}

static void *lower_hog_of_second(void *arg)
{
	await_flag(arg, 1);
	CHECK_EQ(hd_set_priority(hogs[1].pid, 30), 0);
	long turns = value_of(&hogs[1].turns);
	while (value_of(&hogs[1].turns) < turns + 2) /* it has looked */
		sched_yield();
	set(&begun, 1);
	return NULL;
}

static void *displace(void *arg)
{
	int runs;

	start_hogs(2, 60);
	for (int i = 0; another_round(i, hd_scaled(100)); i++) {
		begun = turns_of_displaced = runs = 0;
		hd_semaphore_init(&wake_main, 0);
		CHECK_EQ(hd_set_priority(hogs[0].pid, 20), 0);
		hd_pid pid = hd_spawn_with(&(struct hd_spawn){ .priority = 40, .pinned = false }, be_displaced, &runs);
		struct plain_thread *thread = start_thread(lower_hog_of_second, &runs);
		CHECK_EQ(hd_semaphore_wait(&wake_main, HD_FOREVER), 0);
		expect_before_hogs(&turns_of_displaced, 1, count_hogs(), 1, 2);
		CHECK_EQ(hd_join(pid, NULL, HD_FOREVER), 0);
		join_thread(thread);
		CHECK_EQ(hd_set_priority(hogs[1].pid, 60), 0);
		hd_sleep(HD_US(50));
	}
	stop_hogs();
	return arg;
}

HD_TEST(order_displaced_movable_process_goes_on_where_lower_ones_run)
{
	CHECK_EQ(hd_run(&two, displace, NULL), 0);
}

/* Many that must stay, and are higher, do not hide one that may move from a worker that runs less. */
static struct hd_semaphore pinned_gate;
static long pinned_wait;

static void *wait_pinned(void *arg)
{
	CHECK_EQ(hd_pin(), 0);
	add(&pinned_wait, 1);
	CHECK_EQ(hd_semaphore_wait(&pinned_gate, HD_FOREVER), 0);
	return arg;
}

/* They wait on the first worker; the hog of the second comes by no safe point meanwhile, and so takes none of them. */
static void pin_here(hd_pid *pids, int n)
{
	pinned_wait = 0;
	set_flag(&hogs[1].blind, 1);
	for (long turns = value_of(&hogs[1].turns); value_of(&hogs[1].turns) < turns + 2;)
		hd_sleep(HD_US(50)); /* until it has seen that */
	for (int i = 0; i < n; i++)
		CHECK((pids[i] = hd_spawn_at(79, wait_pinned, NULL)) > 0);
	while (value_of(&pinned_wait) < n)
		hd_sleep(HD_US(50));
	set_flag(&hogs[1].blind, 0);
}

static void *hide_behind_pinned(void *arg)
{
	hd_pid pids[200];
	int n = *(int *)arg;

	start_hogs(2, 30);
	pin_here(pids, n);
	for (int i = 0; i < n; i++) {
		CHECK_EQ(worker_of(pids[i]), 0);
		CHECK_EQ(hd_set_priority(pids[i], 60), 0);
		CHECK_EQ(hd_semaphore_signal(&pinned_gate), 0);
	}
	begun = 0;
	enough = 1;
	hd_pid pid = hd_spawn_at(55, begin_and_hold, NULL);
	expect_before_hogs(&begun, 1, count_hogs(), 1, 2);
	CHECK_EQ(worker_of(pid), 1);
	CHECK_EQ(hd_join(pid, NULL, HD_FOREVER), 0);
	for (int i = 0; i < n; i++)
		CHECK_EQ(hd_join(pids[i], NULL, HD_FOREVER), 0);
	stop_hogs();
	return arg;
}

HD_TEST(order_many_pinned_ones_hide_nobody_that_may_move)
{
	int counts[] = { 1, 63, 64, 65, 200 };

	for (unsigned i = 0; i < sizeof counts / sizeof counts[0]; i++)
		CHECK_EQ(hd_run(&two, hide_behind_pinned, &counts[i]), 0);
}

/* Two are woken in one go on the first worker, both better than what runs there: one runs here, the other elsewhere. */
static void *wait_and_hold_both(void *arg)
{
	CHECK_EQ(hd_semaphore_wait(&gate, HD_FOREVER), 0);
	if (add(&begun, 1) == 1) {
		struct count now = count_hogs();
		if (worker_of(hd_self()) == 0)
			expect_before_hogs(&begun, 2, now, 1, 2);
	}
	return arg;
}

static void *signal_both(void *arg)
{
	CHECK_EQ(hd_semaphore_signal(&gate), 0);
	CHECK_EQ(hd_semaphore_signal(&gate), 0);
	set_flag(arg, 1);
	return NULL;
}

static void *wake_two_at_once(void *arg)
{
	hd_pid pids[2];
	int signalled;

	start_hogs(2, 60);
	for (int i = 0; another_round(i, hd_scaled(100)); i++) {
		begun = signalled = 0;
		hd_semaphore_init(&gate, 0);
		CHECK_EQ(hd_set_priority(hogs[0].pid, 20), 0);
		for (int k = 0; k < 2; k++) { /* on the first worker: the other one runs more */
			pids[k] =
				hd_spawn_with(&(struct hd_spawn){ .priority = 50, .pinned = false }, wait_and_hold_both, NULL);
			hd_sleep(HD_US(50));
		}
		CHECK_EQ(hd_set_priority(hogs[1].pid, 30), 0);
		long turns = value_of(&hogs[1].turns);
		while (value_of(&hogs[1].turns) < turns + 2)
			sched_yield();
		struct plain_thread *thread = start_thread(signal_both, &signalled);
		await_flag(&signalled, 1); /* both notes are here */
		CHECK_EQ(hd_set_priority(hd_self(), 40), 0);
		for (int k = 0; k < 2; k++)
			CHECK_EQ(hd_join(pids[k], NULL, HD_FOREVER), 0);
		CHECK_EQ(hd_set_priority(hd_self(), 80), 0);
		join_thread(thread);
		CHECK_EQ(hd_set_priority(hogs[1].pid, 60), 0);
		hd_sleep(HD_US(50));
	}
	stop_hogs();
	return arg;
}

HD_TEST(order_two_woken_at_once_run_on_two_workers)
{
	CHECK_EQ(hd_run(&two, wake_two_at_once, NULL), 0);
}

/* A process that waits in a queue leaves its worker to a lower one, while a better one is ready in the lane of a worker that comes by no
 * safe point, and so does not answer. The lower one makes no call either: it must not begin before. */
static int better_is_ready;
static long better_has_run, lower_was_first;

static void *be_better(void *arg)
{
	set(&better_has_run, 1);
	return arg;
}

static void *hide_the_better(void *arg)
{
	for (int i = 0; i < (hd_is_simulated() ? 30 : 3000); i++)
		hd_yield(); /* until the lane is biased */
	CHECK(hd_spawn_with(&(struct hd_spawn){ .priority = 60, .detached = true }, be_better, NULL) > 0);
	set_flag(&better_is_ready, 1);
	while (value_of(&better_has_run) == 0 && value_of(&lower_was_first) == 0)
		sched_yield();
	return arg;
}

static void *be_lower(void *arg)
{
	set(&lower_was_first, value_of(&better_has_run) == 0);
	CHECK_EQ(hd_semaphore_signal(&gate), 0);
	return arg;
}

static void *wait_for_blind_worker(void *arg)
{
	CHECK_EQ(hd_pin(), 0);
	CHECK_EQ(hd_set_priority(hd_self(), 80), 0);
	hd_semaphore_init(&gate, 0);
	better_is_ready = 0;
	better_has_run = lower_was_first = 0;
	hd_pid hider = hd_spawn_at(70, hide_the_better, NULL);
	await_flag(&better_is_ready, 1); /* the other worker has taken it, and it has made the better one ready there */
	hd_pid lower = hd_spawn_with(&(struct hd_spawn){ .priority = 20, .pinned = true }, be_lower, NULL);
	CHECK_EQ(hd_semaphore_wait(&gate, HD_FOREVER), 0);
	CHECK_EQ(value_of(&lower_was_first), 0);
	CHECK_EQ(hd_join(lower, NULL, HD_FOREVER), 0);
	CHECK_EQ(hd_join(hider, NULL, HD_FOREVER), 0);
	return arg;
}

HD_TEST(order_worker_that_does_not_answer_hides_nobody_from_one_that_waits)
{
	for (int i = 0; another_round(i, hd_scaled(30)); i++)
		CHECK_EQ(hd_run(&two, wait_for_blind_worker, NULL), 0);
}

/* The runner is stopped by the same news that tell of something better elsewhere: its equal must not run on instead of that. */
#define SECOND 4 /* hogs[SECOND + i] is the second hog of worker i */

/* Two hogs of the same level on one worker, neither of which comes by a safe point: whichever runs. */
static struct hog *who_runs(struct hog *a, struct hog *b)
{
	long turns = value_of(&a->turns), turns_of_b = value_of(&b->turns);

	for (;;) {
		if (value_of(&a->turns) > turns + 1)
			return a;
		if (value_of(&b->turns) > turns_of_b + 1)
			return b;
		sched_yield();
	}
}

static void stop_one_of(struct hog *a, struct hog *b)
{
	set_flag(&a->blind, 1);
	set_flag(&b->blind, 1);
	struct hog *runs = who_runs(a, b), *next = runs == a ? b : a;
	int index = (int)(next - hogs);

	begun = 0;
	enough = 1;
	CHECK_EQ(hd_suspend(runs->pid, 0), -EINPROGRESS);
	hd_pid pid = hd_spawn_at(50, begin_and_hold, NULL);
	set_flag(&next->blind, 0);
	struct count since = count_hogs();
	set_flag(&runs->blind, 0); /* it looks up, and stops */
	expect_before_hogs(&begun, 1, since, index, index + 1);
	CHECK_EQ(hd_join(pid, NULL, HD_FOREVER), 0);
	CHECK_EQ(hd_resume(runs->pid), 0);
}

static void *stop_the_runner(void *arg)
{
	struct crew seconds;
	void *second[2] = { (void *)SECOND, (void *)SECOND };

	start_hogs(2, 30);
	hogs[SECOND] = hogs[SECOND + 1] = (struct hog){ .turns = 0 };
	start_crew(&seconds, &(struct hd_spawn){ .priority = 31 }, 2, be_a_hog, second);
	while (value_of(&hogs[SECOND + 1].turns) == 0)
		hd_sleep(HD_US(50));
	CHECK_EQ(hd_set_priority(hogs[SECOND + 1].pid, 30), 0); /* behind the first */
	for (int i = 0; another_round(i, hd_scaled(100)); i++) {
		stop_one_of(&hogs[1], &hogs[SECOND + 1]);
		hd_sleep(HD_US(50));
	}
	set_flag(&hogs_stop, 1);
	join_crew_members(&seconds);
	stop_hogs();
	return arg;
}

HD_TEST(order_stopped_runner_does_not_leave_its_worker_to_an_equal)
{
	CHECK_EQ(hd_run(&two, stop_the_runner, NULL), 0);
}

/* ---- every choice, seen from inside ---- */

#define EVENTS (1 << 18)

/* A process goes from a state to another, on a worker. */
struct event {
	hd_pid pid;
	uint8_t from, to;
	uint8_t level;	  /* its priority */
	uint8_t eligible; /* when `to` is HD_RUNNING: the highest priority that was ready for this worker and not taken */
	uint16_t worker;
};

static struct event events[EVENTS];
static uint64_t recorded;
static unsigned char recording; /* lock */
static struct hd_semaphore bowl;
static long things_left;

/* The highest level in a run queue, found the long way. */
static uint8_t highest_in(struct hd__runq *q)
{
	if (q->only != NULL)
		return q->only->priority;
	for (int priority = HD__PRIORITY_MAX; priority >= HD__PRIORITY_MIN; priority--)
		if (hd__runq_level(q, priority)->head != NULL)
			return (uint8_t)priority;
	return 0;
}

HD_AS_RUNTIME static void record_move(struct hd_worker *w, struct hd_process *p, unsigned to)
{
	hd__lock(&recording);
	CHECK(recorded < EVENTS);
	events[recorded++] = (struct event){ .pid = hd__pid(&w->sched->table, p),
					     .from = p->state,
					     .to = (uint8_t)to,
					     .level = p->priority,
					     .eligible = to == HD_RUNNING ? highest_in(&w->runq) : 0,
					     .worker = (uint16_t)w->index };
	hd__unlock(&recording);
}

static void *do_things(void *arg)
{
	unsigned seed = (unsigned)(long)arg;

	while (add(&things_left, -1) > 0) {
		struct hd_spawn how = { .priority = 10 + (int)(next_random(&seed) % 71),
					.pinned = next_random(&seed) % 2 == 0,
					.detached = true,
					.policy = HD_FIFO + (int)(next_random(&seed) % 2) };
		switch (next_random(&seed) % 8) {
		case 0:
			hd_yield();
			break;
		case 1:
			hd_sleep(next_random(&seed) % 20000);
			break;
		case 2:
			ANY_ANSWER(hd_semaphore_wait(&bowl, hd_after(next_random(&seed) % 20000)));
			break;
		case 3:
			hd_semaphore_signal(&bowl);
			break;
		case 4:
			CHECK(hd_spawn_with(&how, do_things, (void *)(long)next_random(&seed)) > 0);
			return NULL;
		case 5:
			hd_set_priority(hd_self(), how.priority);
			break;
		case 6: {
			how.detached = false;
			hd_pid pid = hd_spawn_with(&how, begin_and_hold, NULL); /* which need not hold */
			CHECK_EQ(hd_join(pid, NULL, HD_FOREVER), 0);
			break;
		}
		default:
			hd_checkpoint();
		}
	}
	return NULL;
}

static void *many_do_things(void *arg)
{
	begun = enough = 0;
	for (long i = 0; i < 40; i++)
		CHECK(hd_spawn_with(&(struct hd_spawn){ .detached = true, .pinned = i % 2 == 0 }, do_things, (void *)(i + 1)) >
		      0);
	return arg;
}

/* What one process did, event by event: each begins where the last one ended, and it stops running where it ran. */
struct past {
	hd_pid pid;
	uint8_t state;
	uint16_t worker;
};

static void check_events(uint64_t n)
{
	struct past *pasts = calloc(1 << 16, sizeof *pasts);

	CHECK(pasts != NULL && n <= EVENTS);
	for (uint64_t i = 0; i < n; i++) {
		struct event *e = &events[i];
		struct past *past = &pasts[e->pid & 0xffff];
		if (e->to == HD_RUNNING)
			CHECK(e->level >= e->eligible);
		if (past->pid != e->pid)
			CHECK_EQ(e->from, 0);
		else
			CHECK_EQ(e->from, past->state);
		if (e->from == HD_RUNNING)
			CHECK_EQ(e->worker, past->worker);
		*past = (struct past){ e->pid, e->to, e->worker };
	}
	free(pasts);
}

HD_TEST(order_nobody_is_chosen_over_a_higher_one_on_its_worker)
{
	static const unsigned counts[] = { 1, 2, WORKERS_MAX };

	for (int i = 0; i < 6; i++) {
		const struct hd_config config = { .workers = counts[i % 3],
						  .preempted = i < 3 ? HD_PREEMPTED_TAIL : HD_PREEMPTED_HEAD,
						  .quantum = HD_US(200),
						  .fixed = true };
		recorded = 0;
		things_left = hd_scaled(20000);
		CHECK_EQ(hd__run_with(&config, &(struct hd__doors){ .moved = record_move }, many_do_things, NULL), 0);
		check_events(recorded);
	}
}
