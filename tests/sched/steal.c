/* sched/steal.c - where processes run: those that belong together stay together, those that compute are spread, and whoever moves
 * takes everything along. */
#include "sched/board.h"
#include "sched/worker.h"
#include "sched/workers.h"

/* ---- a pair stays together ---- */

static struct hd_semaphore ping, pong;
static int exchanges;

static void *serve(void *arg)
{
	for (int i = 0; i < exchanges; i++) {
		CHECK_EQ(hd_semaphore_signal(&ping), 0);
		CHECK_EQ(hd_semaphore_wait(&pong, HD_FOREVER), 0);
	}
	return arg;
}

static void *answer(void *arg)
{
	for (int i = 0; i < exchanges; i++) {
		CHECK_EQ(hd_semaphore_wait(&ping, HD_FOREVER), 0);
		CHECK_EQ(hd_semaphore_signal(&pong), 0);
	}
	return arg;
}

static struct hd_stats stats_now(void)
{
	struct hd_stats stats;

	CHECK_EQ(hd_stats(&stats), 0);
	return stats;
}

/* Whether a new pair plays on one worker. If so, nearly nothing comes from another: apart, each exchange would be two notes. */
static bool plays_together(int n)
{
	struct hd_stats before = stats_now();

	exchanges = n;
	hd_pid a = hd_spawn(serve, NULL), b = hd_spawn(answer, NULL);
	CHECK(a > 0 && b > 0);
	CHECK_EQ(hd_yield(), 0);
	while (stats_now().ended - before.ended < 2)
		hd_sleep(HD_US(100));
	bool together = worker_of(a) == worker_of(b);
	CHECK_EQ(hd_join(a, NULL, HD_FOREVER), 0);
	CHECK_EQ(hd_join(b, NULL, HD_FOREVER), 0);
	struct hd_stats after = stats_now();
	if (together && !HD_UNDER_TSAN) { /* under which a turn may take longer than a thief waits */
		CHECK(after.remote_wakes - before.remote_wakes < (uint64_t)n / 5);
		CHECK(after.wakes - before.wakes < (uint64_t)n / 5);
		CHECK(after.stolen - before.stolen < (uint64_t)n / 5);
	}
	return together;
}

/* The kernel may take the CPU away between the two spawns' first runs, and then the second is taken by an idle worker. Not often. */
static void play_in_pairs(int n)
{
	int together = 0;

	for (int i = 0; i < 20; i++)
		together += plays_together(n / 20);
	CHECK(together >= 10 || HD_UNDER_TSAN /* which takes a millisecond to start one */);
}

HD_WORKERS_TEST(steal_leaves_a_pair_together)
{
	(void)workers;
	if (hd_is_simulated())
		SKIP("who stays where is a matter of time, and time here is not like the kernel's");
	play_in_pairs(hd_scaled(100000));
}

/* ---- computing is spread ---- */

static long ran_on[WORKERS_MAX], ran;

/* Some 300 us, in one piece, without a call of heddle's. */
static void compute(void)
{
	volatile unsigned x = 1;

	for (int i = 0; i < 100000; i++)
		x = x * 1664525u + 1013904223u;
}

static void *compute_and_count(void *arg)
{
	compute();
	add(&ran_on[worker_of(hd_self())], 1);
	add(&ran, 1);
	return arg;
}

static void fan_out(const struct hd_spawn *how, int n)
{
	hd_pid *pids = calloc((size_t)n, sizeof *pids);

	CHECK(pids != NULL);
	ran = 0;
	for (int i = 0; i < n; i++)
		CHECK((pids[i] = hd_spawn_with(how, compute_and_count, NULL)) > 0);
	for (int i = n; i-- > 0;)
		CHECK_EQ(hd_join(pids[i], NULL, HD_FOREVER), 0);
	CHECK_EQ(ran, n);
	free(pids);
}

/* How many each runs is up to the kernel; but both run some, because the other one's have waited for long. The one that spawned
 * them runs until the other has had some. */
static void spread(int workers, const struct hd_spawn *how)
{
	struct hd_stats before = stats_now();
	int busy = 0;

	for (int i = 0; i < WORKERS_MAX; i++)
		ran_on[i] = 0;
	for (int round = 0; busy < 2 && round < 200; round++) {
		fan_out(how, 40);
		busy = 0;
		for (int i = 0; i < workers; i++)
			busy += value_of(&ran_on[i]) > 0;
	}
	struct hd_stats after = stats_now();
	CHECK(busy >= 2);
	CHECK(after.steals > before.steals);
	CHECK(after.stolen - before.stolen >= after.steals - before.steals);
}

HD_MANY_WORKERS_TEST(steal_spreads_what_computes)
{
	spread(workers, NULL);
	spread(workers, &(struct hd_spawn){ .pinned = false });
	spread(workers, &(struct hd_spawn){ .priority = 30 });
}

/* ---- and a pair still stays together after that ---- */

static void *wait_a_little(void *arg)
{
	for (int i = 0; i < 20; i++) {
		compute_and_count(NULL);
		hd_sleep(HD_US((long)arg));
		hd_yield();
	}
	return NULL;
}

HD_MANY_WORKERS_TEST(steal_leaves_a_pair_together_after_a_mixed_load)
{
	hd_pid pids[32];

	(void)workers;
	if (hd_is_simulated())
		SKIP("who stays where is a matter of time, and time here is not like the kernel's");
	for (long i = 0; i < 32; i++)
		CHECK((pids[i] = hd_spawn_with(&(struct hd_spawn){ .pinned = i % 2 == 0, .priority = 30 + (int)i % 3 * 10 },
					       wait_a_little, (void *)i)) > 0);
	for (int i = 0; i < 32; i++)
		CHECK_EQ(hd_join(pids[i], NULL, HD_FOREVER), 0);
	play_in_pairs(hd_scaled(50000));
}

/* ---- nobody idles over what may run there ---- */

#define SENT 4

static long others, sent, arrived;

/* Computes on, without a safe point, until the thread has sent all; it is on another worker than the first. */
static void *keep_worker(void *arg)
{
	add(&others, 1);
	while (value_of(&sent) < SENT)
		sched_yield();
	return arg;
}

static void *arrive(void *arg)
{
	add(&arrived, 1);
	return arg;
}

static void *send(void *how)
{
	for (int i = 0; i < SENT; i++) {
		CHECK(hd_spawn_with(how, arrive, NULL) > 0);
		add(&sent, 1);
	}
	return NULL;
}

/* The first worker computes on and makes nobody ready, and some of those that a thread sends come to it: they are taken from there. */
static void *keep_first_worker(void *how)
{
	struct hd_stats stats = stats_now();

	others = sent = arrived = 0;
	for (unsigned i = 1; i < stats.workers; i++)
		CHECK(hd_spawn(keep_worker, NULL) > 0);
	while (value_of(&others) + 1 < (long)stats.workers)
		sched_yield();
	struct plain_thread *thread = start_thread(send, how);
	while (value_of(&arrived) < SENT)
		sched_yield();
	join_thread(thread);
	return NULL;
}

HD_TEST(steal_takes_what_a_thread_sent_to_a_busy_worker)
{
	static const struct hd_spawn hows[] = { { .detached = true }, { .detached = true, .pinned = false } };

	for (int i = 0; another_round(i, hd_scaled(200)); i++)
		CHECK_EQ(run_with_workers(i % 2 ? 2 : WORKERS_MAX, keep_first_worker, (void *)&hows[i / 2 % 2]), 0);
}

/* ---- the searcher's token ---- */

/* The caller's worker is told to search while it runs something, as if it had been claimed when it was idle. */
static void be_told_to_search(void)
{
	struct hd_worker *w = hd__self();

	__atomic_store_n(&w->sched->board.searching, true, __ATOMIC_RELEASE);
	hd__raise(w, HD__SEARCH);
	CHECK_EQ(hd_checkpoint(), 0);
	CHECK(!w->search.on); /* the token is not its: it would keep it for as long as it runs */
}

/* The caller keeps its worker until another one has run something. */
static void have_one_taken(bool checkpoints)
{
	arrived = 0;
	hd_pid pid = hd_spawn(arrive, NULL);
	CHECK(pid > 0);
	while (value_of(&arrived) == 0)
		checkpoints ? (void)hd_checkpoint() : (void)sched_yield();
	CHECK(worker_of(pid) != worker_of(hd_self()));
	CHECK_EQ(hd_join(pid, NULL, HD_FOREVER), 0);
}

HD_MANY_WORKERS_TEST(steal_goes_on_when_a_busy_worker_was_told_to_search)
{
	for (int i = 0; another_round(i, hd_scaled(100)); i++) {
		be_told_to_search();
		have_one_taken(i % 2);
	}
	(void)workers;
}

/* The worker that has the token computes, or has lost its CPU: the watcher takes the token from it. */
HD_MANY_WORKERS_TEST(steal_goes_on_when_the_searcher_does_not)
{
	for (int i = 0; another_round(i, hd_scaled(100)); i++) {
		__atomic_store_n(&hd__self()->sched->board.searching, true, __ATOMIC_RELEASE);
		have_one_taken(i % 2);
	}
	(void)workers;
}

/* ---- what a process takes along ---- */

static struct hd_local name_tag;
static long moves;

/* Nothing that belongs to the process may be asked for by way of the kernel thread: not even errno, by an address from before. */
__attribute__((noinline)) static int read_errno(void)
{
	__asm__ volatile("");
	return errno;
}

__attribute__((noinline)) static void write_errno(int value)
{
	__asm__ volatile("");
	errno = value;
}

static int turns;

/* Wanders about as it yields, sleeps and waits; its stack, its errno, its locals and its name come along. */
static void *wander(void *arg)
{
	long me = (long)arg;
	hd_pid self = hd_self();
	volatile long stack[512];
	struct hd_semaphore own = HD_SEMAPHORE(0);

	CHECK_EQ(hd_local_set(&name_tag, arg), 0);
	for (int i = 0; i < 512; i++)
		stack[i] = me + i;
	int worker = worker_of(self);
	for (int i = 0; i < turns; i++) {
		write_errno((int)me);
		switch ((me + i) % 4) {
		case 0:
			hd_sleep(HD_US(i % 20));
			break;
		case 1:
			CHECK_EQ(hd_semaphore_wait(&own, hd_after(i % 3000)), -ETIMEDOUT);
			break;
		default:
			hd_yield();
		}
		CHECK_EQ(read_errno(), me);
		CHECK_EQ(hd_self(), self);
		CHECK_EQ((long)hd_local_get(&name_tag), me);
		CHECK_EQ(stack[i % 512], me + i % 512);
		int now = worker_of(self);
		add(&moves, now != worker);
		worker = now;
		if (i % 16 == 0)
			compute();
	}
	for (int i = 0; i < 512; i++)
		CHECK_EQ(stack[i], me + i);
	return arg;
}

static void wander_about(bool movable)
{
	enum { N = 24 };
	hd_pid pids[N];

	turns = hd_scaled(400);
	for (long i = 0; i < N; i++) {
		struct hd_spawn how = { .pinned = !movable, .stack_size = 32768 };
		CHECK((pids[i] = hd_spawn_with(&how, wander, (void *)(i + 1))) > 0);
	}
	for (long i = 0; i < N; i++) {
		void *result;
		CHECK_EQ(hd_join(pids[i], &result, HD_FOREVER), 0);
		CHECK_EQ((long)result, i + 1);
	}
}

HD_WORKERS_TEST(steal_takes_stack_errno_locals_and_name_along)
{
	moves = 0;
	for (int round = 0; round < (workers == 1 ? 1 : 50) && moves == 0; round++)
		wander_about(true);
	CHECK(workers == 1 ? moves == 0 : moves > 0 || hd_is_simulated());
}

HD_WORKERS_TEST(steal_never_moves_a_pinned_process_that_has_run)
{
	(void)workers;
	moves = 0;
	wander_about(false);
	CHECK_EQ(moves, 0);
}

/* ---- from a thread ---- */

static void *tell_who(void *arg)
{
	*(hd_pid *)arg = hd_self();
	return arg;
}

static void *spawn_and_join(void *arg)
{
	for (int i = 0; i < hd_scaled(2000); i++) {
		hd_pid who = 0;
		void *result;
		struct hd_spawn how = { .suspended = i % 2, .pinned = i / 2 % 2 == 0, .priority = 10 + i % 71 };
		hd_pid pid = hd_spawn_with(&how, tell_who, &who);
		CHECK(pid > 0);
		if (how.suspended) {
			struct hd_process_info info;
			CHECK_EQ(hd_process_info(pid, &info), 0);
			CHECK(info.state == HD_SUSPENDED && info.suspended);
			CHECK_EQ(__atomic_load_n(&who, __ATOMIC_RELAXED), 0);
			CHECK_EQ(hd_resume(pid), 0);
		}
		CHECK_EQ(hd_join(pid, &result, HD_FOREVER), 0);
		CHECK(result == &who);
		CHECK_EQ(who, pid);
	}
	return arg;
}

HD_WORKERS_TEST(steal_or_not_what_a_thread_spawns_runs_once)
{
	struct plain_thread *threads[2];

	(void)workers;
	struct hd_stats before = stats_now();
	for (int i = 0; i < 2; i++)
		threads[i] = start_thread(spawn_and_join, NULL);
	for (int i = 0; i < 2; i++)
		join_thread(threads[i]);
	struct hd_stats after = stats_now();
	CHECK_EQ(after.spawned - before.spawned, 2L * hd_scaled(2000));
	CHECK_EQ(after.ended - before.ended, 2L * hd_scaled(2000));
	CHECK_EQ(after.live_processes, 1);
}
