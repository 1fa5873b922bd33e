/* when/when.c - behaviours: alone on what they write, in the order of their calls, and never deadlocked. */
#include "when/common.h"

/* ---- one cown ---- */

struct account {
	long balance;
	long inside; /* behaviours that have it now: writers count 1000 */
	long most;   /* readers at the same time */
};

static void deposit(void *arg, void *const data[])
{
	struct account *a = data[0];

	CHECK_EQ(add(&a->inside, 1000), 1000);
	a->balance += (long)arg;
	CHECK_EQ(add(&a->inside, -1000), 0);
}

HD_WORKERS_TEST(when_runs_behaviours_on_a_cown_one_at_a_time)
{
	struct account a = { 0 };
	hd_cown *c = made_cown(&a);
	int n = many(10000);

	(void)workers;
	for (int i = 0; i < n; i++)
		CHECK_EQ(hd_when(deposit, (void *)1L, c), 0);
	quiesce();
	CHECK_EQ(a.balance, n);
	hd_cown_release(c);
	check_none_left();
}

static void nth(void *arg, void *const data[])
{
	long *count = data[0];

	CHECK_EQ((*count)++, (long)arg);
}

HD_WORKERS_TEST(when_runs_behaviours_on_a_cown_in_the_order_of_their_calls)
{
	long count = 0;
	hd_cown *c = made_cown(&count);
	long n = many(5000);

	(void)workers;
	for (long i = 0; i < n; i++)
		CHECK_EQ(hd_when(nth, (void *)i, c), 0);
	hd_cown_release(c);
	quiesce();
	CHECK_EQ(count, n);
	check_none_left();
}

static hd_cown *again;

static void self_rescheduling(void *arg, void *const data[])
{
	long *left = data[0];

	CHECK(arg == again);
	if (--*left > 0)
		CHECK_EQ(hd_when(self_rescheduling, arg, arg), 0);
}

/* The reference is released at once: the line keeps the cown alive. */
HD_WORKERS_TEST(when_keeps_a_cown_alive_that_only_behaviours_know)
{
	long left = many(2000);

	(void)workers;
	again = made_cown(&left);
	CHECK_EQ(hd_when(self_rescheduling, again, again), 0);
	hd_cown_release(again);
	quiesce();
	CHECK_EQ(left, 0);
	check_none_left();
}

/* ---- several cowns ---- */

static void transfer(void *arg, void *const data[])
{
	struct account *from = data[0], *to = data[1];

	CHECK_EQ(add(&from->inside, 1000), 1000);
	CHECK_EQ(add(&to->inside, 1000), 1000);
	from->balance -= (long)arg;
	to->balance += (long)arg;
	CHECK_EQ(add(&from->inside, -1000), 0);
	CHECK_EQ(add(&to->inside, -1000), 0);
}

#define ACCOUNTS 10

static struct account accounts[ACCOUNTS];
static hd_cown *cowns[ACCOUNTS];

static void *transfers(void *seed)
{
	unsigned dice = (unsigned)(long)seed;

	for (int i = many(4000); i > 0; i--) {
		dice = dice * 1664525 + 1013904223;
		unsigned from = (dice >> 8) % ACCOUNTS, to = (from + 1 + (dice >> 16) % (ACCOUNTS - 1)) % ACCOUNTS;
		CHECK_EQ(hd_when(transfer, (void *)(long)(dice >> 24), cowns[from], cowns[to]), 0);
		if (i % 64 == 0)
			hd_yield();
	}
	return NULL;
}

HD_WORKERS_TEST(when_over_two_cowns_never_deadlocks_and_loses_nothing)
{
	hd_pid pids[4];
	long sum = 0;

	(void)workers;
	for (int i = 0; i < ACCOUNTS; i++) {
		accounts[i] = (struct account){ 0 };
		cowns[i] = made_cown(&accounts[i]);
	}
	for (long i = 0; i < 4; i++)
		pids[i] = born(hd_spawn(transfers, (void *)(i + 1)));
	join_all(pids, 4);
	quiesce();
	for (int i = 0; i < ACCOUNTS; i++) {
		sum += accounts[i].balance;
		hd_cown_release(cowns[i]);
	}
	CHECK_EQ(sum, 0);
	check_none_left();
}

static void see_order(void *arg, void *const data[])
{
	CHECK_STR(data[0], "b");
	CHECK_STR(data[1], "a");
	CHECK_STR(data[2], "c");
	CHECK_STR(data[3], "a");
	add(arg, 1);
}

HD_PROCESS_TEST(when_gives_data_in_the_order_of_the_call_and_takes_a_cown_twice)
{
	hd_cown *a = made_cown((char[]){ "a" }), *b = made_cown((char[]){ "b" }), *c = made_cown((char[]){ "c" });
	long runs = 0;

	CHECK_EQ(hd_when(see_order, &runs, b, a, c, a), 0);
	CHECK_EQ(hd_when(see_order, &runs, b, HD_READ(a), c, a), 0);
	CHECK_EQ(hd_when(see_order, &runs, HD_READ(b), HD_READ(a), HD_READ(c), HD_READ(a)), 0);
	quiesce();
	CHECK_EQ(runs, 3);
	hd_cown_release(a);
	hd_cown_release(b);
	hd_cown_release(c);
	check_none_left();
}

static void count_all(void *arg, void *const data[])
{
	for (long i = 0; i < (long)arg; i++)
		++*(long *)data[i];
}

HD_WORKERS_TEST(when_takes_none_one_or_many_cowns)
{
	enum { N = 200 };
	static long counts[N];
	hd_cown *all[N];

	(void)workers;
	memset(counts, 0, sizeof counts);
	for (int i = 0; i < N; i++)
		all[i] = made_cown(&counts[i]);
	for (long n = 0; n <= N; n++)
		CHECK_EQ(hd_when_n(count_all, (void *)n, all + N - n, (size_t)n), 0);
	quiesce();
	for (int i = 0; i < N; i++) {
		CHECK_EQ(counts[i], i + 1);
		hd_cown_release(all[i]);
	}
	check_none_left();
}

/* ---- readers ---- */

static long gathered, wanted;

static void read_together(void *arg, void *const data[])
{
	struct account *a = data[0];

	CHECK(add(&a->inside, 1) < 1000);
	add(&gathered, 1);
	while (value_of(&gathered) < wanted) /* all of them have it at the same time */
		hd_yield();
	*(long *)arg = a->balance;
	CHECK(add(&a->inside, -1) >= 0);
}

HD_WORKERS_TEST(when_lets_readers_have_a_cown_together)
{
	enum { N = 5 };
	struct account a = { 0 };
	hd_cown *c = made_cown(&a);
	long seen[N];

	(void)workers;
	gathered = 0;
	wanted = N;
	CHECK_EQ(hd_when(deposit, (void *)7L, c), 0);
	for (int i = 0; i < N; i++)
		CHECK_EQ(hd_when_batch(
				 &(struct hd_when){
					 .fn = read_together, .arg = &seen[i], .uses = (hd_cown *[]){ HD_READ(c) }, .n = 1 },
				 1),
			 0);
	CHECK_EQ(hd_when(deposit, (void *)1L, c), 0);
	quiesce();
	for (int i = 0; i < N; i++)
		CHECK_EQ(seen[i], 7);
	CHECK_EQ(a.balance, 8);
	hd_cown_release(c);
	check_none_left();
}

static void read_alone(void *arg, void *const data[])
{
	struct account *a = data[0];

	CHECK(add(&a->inside, 1) < 1000);
	(void)arg;
	CHECK(add(&a->inside, -1) >= 0);
}

static void *reads_and_writes(void *seed)
{
	unsigned dice = (unsigned)(long)seed * 7919;

	for (int i = many(4000); i > 0; i--) {
		dice = dice * 1664525 + 1013904223;
		hd_cown *c = cowns[(dice >> 8) % 2], *d = cowns[2 + (dice >> 16) % 2];
		switch (dice >> 29) {
		case 0:
			CHECK_EQ(hd_when(deposit, (void *)1L, c), 0);
			break;
		case 1:
			CHECK_EQ(hd_when(transfer, (void *)1L, c, d), 0);
			break;
		case 2:
			CHECK_EQ(hd_when(read_alone, NULL, HD_READ(d), c), 0);
			break;
		default:
			CHECK_EQ(hd_when(read_alone, NULL, HD_READ(c), HD_READ(d)), 0);
		}
		if (i % 32 == 0)
			hd_yield();
	}
	return NULL;
}

HD_WORKERS_TEST(when_keeps_writers_alone_among_many_readers)
{
	hd_pid pids[4];

	(void)workers;
	for (int i = 0; i < 4; i++) {
		accounts[i] = (struct account){ 0 };
		cowns[i] = made_cown(&accounts[i]);
	}
	for (long i = 0; i < 4; i++)
		pids[i] = born(hd_spawn(reads_and_writes, (void *)(i + 1)));
	join_all(pids, 4);
	for (int i = 0; i < 4; i++)
		hd_cown_release(cowns[i]);
	quiesce();
	for (int i = 0; i < 4; i++)
		CHECK_EQ(accounts[i].inside, 0);
	check_none_left();
}

/* ---- arguments ---- */

struct args {
	long n;
	long *dropped;
};

static void add_n(void *arg, void *const data[])
{
	*(long *)data[0] += ((struct args *)arg)->n;
}

static void drop_args(void *arg)
{
	add(((struct args *)arg)->dropped, 1);
}

HD_WORKERS_TEST(when_args_are_copied_and_dropped_once)
{
	long sum = 0, dropped = 0;
	hd_cown *c = made_cown(&sum);

	(void)workers;
	for (long i = 1; i <= 100; i++) {
		struct args args = { i, &dropped };
		CHECK_EQ(hd_when_args(add_n, &args, sizeof args, drop_args, c), 0);
	}
	quiesce();
	CHECK_EQ(sum, 5050);
	CHECK_EQ(dropped, 100);
	char large[1000] = { 0 };
	memcpy(large, &(struct args){ 1, &dropped }, sizeof(struct args));
	CHECK_EQ(hd_when_args(add_n, large, sizeof large, drop_args, c), 0);
	memset(large, 0xff, sizeof large);
	quiesce();
	CHECK_EQ(sum, 5051);
	hd_cown_release(c);
	check_none_left();
}

/* ---- batches ---- */

static void append(void *arg, void *const data[])
{
	char *text = data[0];

	text[strlen(text)] = *(const char *)arg;
}

static char signs[] = "()[]";

static void *writes_pairs(void *both)
{
	hd_cown **c = both;

	for (int i = many(500); i > 0; i--) {
		struct hd_when pair[] = { { .fn = append, .arg = &signs[0], .uses = &c[0], .n = 1 },
					  { .fn = append, .arg = &signs[2], .uses = &c[1], .n = 1 },
					  { .fn = append, .arg = &signs[1], .uses = &c[0], .n = 1 },
					  { .fn = append, .arg = &signs[3], .uses = &c[1], .n = 1 } };
		CHECK_EQ(hd_when_batch(pair, 4), 0);
		if (i % 16 == 0)
			hd_yield();
	}
	return NULL;
}

HD_WORKERS_TEST(when_batch_is_one_step)
{
	static char texts[2][8192];
	hd_cown *c[2];
	hd_pid pids[3];

	(void)workers;
	for (int i = 0; i < 2; i++) {
		memset(texts[i], 0, sizeof texts[i]);
		c[i] = made_cown(texts[i]);
	}
	for (int i = 0; i < 3; i++)
		pids[i] = born(hd_spawn(writes_pairs, c));
	join_all(pids, 3);
	quiesce();
	for (int i = 0; i < 2; i++) {
		size_t n = strlen(texts[i]);
		CHECK_EQ(n, 2 * 3 * many(500));
		for (size_t k = 0; k < n; k++)
			CHECK_EQ(texts[i][k], signs[2 * i + k % 2]);
		hd_cown_release(c[i]);
	}
	check_none_left();
}

/* ---- references ---- */

static void count_drop(void *data)
{
	add(data, 1);
}

static void touch(void *arg, void *const data[])
{
	(void)arg;
	CHECK_EQ(value_of(data[0]), 0);
}

HD_WORKERS_TEST(cown_drops_its_data_once_when_no_behaviour_is_left)
{
	(void)workers;
	for (int i = 0; i < many(1000); i++) {
		long dropped = 0;
		hd_cown *c = hd_cown_new(&dropped, count_drop);
		CHECK(c != NULL);
		hd_weak_cown *weak = hd_cown_weaken(c);
		CHECK(hd_cown_retain(c) == c);
		CHECK_EQ(hd_when(touch, NULL, c), 0);
		CHECK_EQ(hd_when(touch, NULL, HD_READ(c)), 0);
		hd_cown_release(c);
		CHECK(hd_weak_cown_promote(weak) == c);
		hd_cown_release(c);
		hd_cown_release(c);
		CHECK(hd_weak_cown_promote(weak) == NULL);
		quiesce();
		hd_weak_cown_release(weak);
		CHECK_EQ(dropped, 1);
	}
	check_none_left();
}

HD_TEST(cown_needs_no_runtime)
{
	long dropped = 0;
	hd_cown *c = hd_cown_new(&dropped, count_drop);

	CHECK(c != NULL);
	hd_weak_cown *weak = hd_cown_weaken(c);
	CHECK_EQ(hd_when(touch, NULL, c), -ENXIO);
	hd_cown_release(c);
	CHECK_EQ(dropped, 1);
	CHECK(hd_weak_cown_promote(weak) == NULL);
	hd_weak_cown_release(weak);
	hd_cown_release(NULL);
	hd_weak_cown_release(NULL);
}

/* ---- failure ---- */

static long told;

static void fail(void *arg, void *const data[])
{
	(void)arg;
	*(long *)data[0] = 1;
	hd_fail(EIO);
}

static void exit_early(void *arg, void *const data[])
{
	(void)arg, (void)data;
	hd_exit(NULL);
}

static void see_failure(void *c, void *const data[])
{
	told = hd_cown_failed(c) ? *(long *)data[0] : -1;
	hd_cown_clear(c);
}

HD_WORKERS_TEST(when_that_fails_gives_its_cowns_up_and_marks_them)
{
	long a = 0, b = 0;
	hd_cown *ca = made_cown(&a), *cb = made_cown(&b);

	(void)workers;
	CHECK_EQ(hd_when(fail, NULL, ca, HD_READ(cb)), 0);
	CHECK_EQ(hd_when(see_failure, ca, ca, cb), 0);
	quiesce();
	CHECK_EQ(told, 1);
	CHECK(!hd_cown_failed(ca) && !hd_cown_failed(cb));
	CHECK_EQ(hd_when(exit_early, NULL, ca), 0);
	CHECK_EQ(hd_when(see_failure, ca, ca), 0);
	quiesce();
	CHECK_EQ(told, -1);
	hd_cown_release(ca);
	hd_cown_release(cb);
	check_none_left();
}

static long began;
static hd_pid victim;

static void wait_to_be_killed(void *arg, void *const data[])
{
	(void)arg, (void)data;
	__atomic_store_n(&victim, hd_self(), __ATOMIC_RELEASE);
	set(&began, 1);
	(void)hd_sleep(HD_SEC(1000));
	CHECK(false);
}

static void count_one(void *arg, void *const data[])
{
	(void)arg;
	++*(long *)data[0];
}

static hd_pid pending_behaviour;

static int find_pending(const struct hd_process_info *info, void *arg)
{
	(void)arg;
	if (info->state == HD_WAITING && info->why == HD_WAIT_COWN)
		pending_behaviour = info->pid;
	return 0;
}

/* Also one that has not begun: it is skipped, and marks nothing. */
HD_WORKERS_TEST(when_that_is_killed_gives_its_cowns_up)
{
	long a = 0;
	hd_cown *c = made_cown(&a);

	(void)workers;
	set(&began, 0);
	CHECK_EQ(hd_when_batch(&(struct hd_when){ .fn = wait_to_be_killed, .uses = &c, .n = 1, .flags = HD_WHEN_MAY_BLOCK }, 1), 0);
	CHECK_EQ(hd_when(count_one, NULL, c), 0);
	while (value_of(&began) == 0)
		hd_yield();
	CHECK_EQ(hd_each_process(find_pending, NULL), 0);
	CHECK_EQ(hd_kill(pending_behaviour, 0), 0);
	CHECK_EQ(hd_when(count_one, NULL, c), 0);
	CHECK_EQ(hd_kill(__atomic_load_n(&victim, __ATOMIC_ACQUIRE), 0), 0);
	quiesce();
	CHECK_EQ(a, 1);
	CHECK(hd_cown_failed(c));
	hd_cown_release(c);
	check_none_left();
}

/* ---- early release ---- */

static void let_go_early(void *both, void *const data[])
{
	hd_cown **c = both;

	++*(long *)data[0];
	CHECK_EQ(hd_cown_release_early(c[0]), 0);
	CHECK_EQ(hd_cown_release_early(c[0]), -EPERM);
	while (value_of(data[1]) == 0) /* until a behaviour that needs what was given up has run */
		hd_yield();
}

static void see_and_tell(void *arg, void *const data[])
{
	CHECK_EQ(*(long *)data[0], 1);
	set(arg, 1);
}

HD_WORKERS_TEST(when_gives_a_cown_up_early)
{
	long a = 0, b = 0;
	hd_cown *c[2] = { made_cown(&a), made_cown(&b) };

	(void)workers;
	CHECK_EQ(hd_cown_release_early(c[0]), -EPERM);
	CHECK_EQ(hd_when(let_go_early, c, c[0], c[1]), 0);
	CHECK_EQ(hd_when(see_and_tell, &b, c[0]), 0);
	quiesce();
	CHECK_EQ(b, 1);
	hd_cown_release(c[0]);
	hd_cown_release(c[1]);
	check_none_left();
}

/* ---- promises ---- */

static void *double_it(void *arg, void *const data[])
{
	return (void *)((long)arg * *(long *)data[0]);
}

static void *fail_to_make(void *arg, void *const data[])
{
	(void)data;
	hd_fail(EIO);
	return arg;
}

HD_WORKERS_TEST(when_promise_is_kept_by_the_result)
{
	long two = 2;
	hd_cown *c = made_cown(&two);
	void *value = NULL;

	(void)workers;
	hd_promise *p = hd_when_promise(double_it, (void *)21L, HD_READ(c)), *q = hd_when_promise(fail_to_make, NULL, c);
	CHECK(p != NULL && q != NULL);
	CHECK_EQ(hd_promise_value(p, &value, HD_FOREVER), 0);
	CHECK_EQ((long)value, 42);
	CHECK_EQ(hd_promise_value(q, &value, HD_FOREVER), -EIO);
	CHECK(hd_when_promise_n(NULL, NULL, &c, 1) == NULL);
	hd_promise_release(p);
	hd_promise_release(q);
	hd_cown_release(c);
	quiesce();
	check_none_left();
}

HD_WORKERS_TEST(when_after_comes_to_its_cowns_when_the_promise_is_settled)
{
	long a = 0;
	hd_cown *c = made_cown(&a);
	hd_promise *p = hd_promise_new(), *broken = hd_promise_new();

	(void)workers;
	CHECK(p != NULL && broken != NULL);
	CHECK_EQ(hd_when_after(NULL, nth, NULL, c), -EINVAL);
	CHECK_EQ(hd_when_after(p, nth, (void *)1L, c), 0);
	CHECK_EQ(hd_when(nth, (void *)0L, c), 0);
	while (stats_now().live_behaviours > 1) /* the one that waits keeps no other from the cown */
		hd_yield();
	CHECK_EQ(hd_quiesce(0), -ETIMEDOUT);
	CHECK_EQ(hd_promise_set(p, NULL), 0);
	quiesce();
	CHECK_EQ(hd_promise_fail(broken, EIO), 0);
	CHECK_EQ(hd_when_after(broken, nth, (void *)2L, c), 0);
	quiesce();
	CHECK_EQ(a, 3);
	hd_promise_release(p);
	hd_promise_release(broken);
	hd_cown_release(c);
	check_none_left();
}

static void never_run(void *arg, void *const data[])
{
	(void)arg, (void)data;
	CHECK(false);
}

static void *leaves_one_after(void *promise)
{
	hd_cown *c = made_cown(NULL);

	CHECK_EQ(hd_when_after(promise, never_run, NULL, c), 0);
	hd_cown_release(c);
	hd_yield();
	CHECK_EQ(hd_shutdown(3), 0);
	return NULL;
}

HD_TEST(when_after_a_promise_that_is_never_settled_ends_with_the_runtime)
{
	for (int workers = 1; workers <= 8; workers *= 2) {
		hd_promise *p = hd_promise_new();
		CHECK(p != NULL);
		CHECK_EQ(run_with_workers(workers, leaves_one_after, p), 3);
		hd_promise_release(p);
	}
}

/* ---- priorities ---- */

static void append_letter(void *letter, void *const data[])
{
	(void)data;
	trace("%s", (const char *)letter);
}

static int when_at(int priority, const char *letter, hd_cown *c)
{
	return hd_when_batch(
		&(struct hd_when){ .fn = append_letter, .arg = (void *)letter, .uses = &c, .n = 1, .priority = priority }, 1);
}

static void *say_once(void *letter)
{
	trace("%s", (const char *)letter);
	return NULL;
}

/* A low one that has the cown, or will before a high one, runs with the high one's priority: before a process in the middle. */
HD_PROCESS_TEST(when_of_low_priority_runs_as_high_as_the_highest_behind_it)
{
	hd_cown *c = made_cown(NULL), *other = made_cown(NULL);

	CHECK_EQ(hd_set_priority(hd_self(), 70), 0); /* so that nothing runs before all is made */
	CHECK_EQ(when_at(20, "a", c), 0);
	CHECK_EQ(when_at(20, "b", c), 0);
	CHECK_EQ(when_at(30, "x", other), 0);
	CHECK(hd_spawn_with(&(struct hd_spawn){ .priority = 40, .detached = true }, say_once, (void *)"m") > 0);
	CHECK_EQ(when_at(60, "H", c), 0);
	CHECK_EQ(when_at(20, "c", c), 0);
	CHECK_EQ(hd_set_priority(hd_self(), 10), 0);
	quiesce();
	CHECK_STR(trace_text(), "abHmxc");
	trace_clear();
	hd_cown_release(c);
	hd_cown_release(other);
	check_none_left();
}

static void *raise_and_lower(void *seed)
{
	unsigned dice = (unsigned)(long)seed;

	for (int i = many(2000); i > 0; i--) {
		dice = dice * 1664525 + 1013904223;
		hd_cown *uses[2] = { cowns[(dice >> 8) % 3], cowns[(dice >> 16) % 3] };
		struct hd_when how = {
			.fn = read_alone, .uses = uses, .n = 1 + (dice >> 31), .priority = 20 + (int)(dice >> 27)
		};
		if (dice >> 30 & 1)
			uses[0] = HD_READ(uses[0]);
		CHECK_EQ(hd_when_batch(&how, 1), 0);
		if (i % 32 == 0)
			hd_yield();
	}
	return NULL;
}

HD_WORKERS_TEST(when_of_many_priorities_loses_nothing)
{
	hd_pid pids[3];

	(void)workers;
	for (int i = 0; i < 3; i++) {
		accounts[i] = (struct account){ 0 };
		cowns[i] = made_cown(&accounts[i]);
	}
	for (long i = 0; i < 3; i++)
		pids[i] = born(hd_spawn(raise_and_lower, (void *)(i + 1)));
	join_all(pids, 3);
	for (int i = 0; i < 3; i++)
		hd_cown_release(cowns[i]);
	quiesce();
	check_none_left();
}

/* ---- misuse, memory, the end ---- */

static void quiesce_inside(void *arg, void *const data[])
{
	(void)data;
	CHECK_EQ(hd_quiesce(HD_FOREVER), -EDEADLK);
	CHECK(hd_self() > 0);
	add(arg, 1);
}

HD_PROCESS_TEST(when_answers_misuse)
{
	long runs = 0;
	hd_cown *c = made_cown(&runs);
	hd_cown *none[1] = { NULL };

	CHECK_EQ(hd_when_n(NULL, NULL, &c, 1), -EINVAL);
	CHECK_EQ(hd_when_n(touch, NULL, none, 1), -EINVAL);
	CHECK_EQ(hd_when_n(touch, NULL, NULL, 1), -EINVAL);
	CHECK_EQ(hd_when(touch, NULL, HD_READ(NULL)), -EINVAL);
	CHECK_EQ(hd_when_batch(&(struct hd_when){ .fn = touch, .priority = 81 }, 1), -EINVAL);
	CHECK_EQ(hd_when_batch(NULL, 0), 0);
	struct hd_when half[] = { { .fn = quiesce_inside, .arg = &runs, .uses = &c, .n = 1 }, { .fn = NULL } };
	CHECK_EQ(hd_when_batch(half, 2), -EINVAL);
	CHECK_EQ(hd_quiesce(HD_SEC(1)), -EINVAL);
	CHECK_EQ(hd_quiesce(0), 0);
	CHECK_EQ(hd_when(quiesce_inside, &runs, c), 0);
	CHECK_EQ(hd_quiesce(0), -ETIMEDOUT);
	quiesce();
	CHECK_EQ(runs, 1);
	hd_cown_release(c);
	check_none_left();
}

static long dropped_at_end, made_before_the_end;
static bool released; /* unless the end of the runtime has abandoned the process that was to do it */

static void shut_down(void *arg, void *const data[])
{
	(void)arg, (void)data;
	CHECK_EQ(hd_shutdown(3), 0);
}

static void drop_late(void *arg)
{
	(void)arg;
	add(&dropped_at_end, 1);
}

/* Behaviours behind `first`, which ends the runtime, perhaps before all are made. */
static void leave_many_behind(hd_behaviour first)
{
	hd_cown *a = made_cown(NULL), *b = hd_cown_new(NULL, drop_late);

	CHECK(b != NULL);
	CHECK_EQ(hd_when(first, NULL, a, b), 0);
	for (int i = 0; i < 100; i++) {
		int err = hd_when_args(never_run, &(long){ 0 }, sizeof(long), drop_late, a, HD_READ(b));
		CHECK(err == 0 || err == -ESHUTDOWN);
		made_before_the_end += err == 0;
	}
	hd_cown_release(a);
	hd_cown_release(b);
	released = true;
}

static void *leaves_many(void *arg)
{
	leave_many_behind(shut_down);
	return arg;
}

HD_TEST(when_drops_what_is_pending_when_the_runtime_ends)
{
	if (hd_is_simulated() && HD_UNDER_ASAN)
		SKIP("time is taken from it: an abandoned process leaks what it has");
	for (int workers = 1; workers <= 8; workers *= 2) {
		dropped_at_end = made_before_the_end = 0;
		released = false;
		CHECK_EQ(run_with_workers(workers, leaves_many, NULL), 3);
		CHECK_EQ(dropped_at_end, made_before_the_end + released);
	}
}

static void hang(void *arg, void *const data[])
{
	(void)arg, (void)data;
	CHECK(hd_set_cancel_state(HD_CANCEL_DISABLED) >= 0);
	CHECK_EQ(hd_shutdown(3), 0);
	(void)hd_sleep(HD_SEC(100));
}

static void *leaves_one_that_hangs(void *arg)
{
	leave_many_behind(hang);
	return arg;
}

HD_TEST(when_drops_what_waits_for_a_behaviour_that_the_end_abandons)
{
	if (hd_is_simulated() && HD_UNDER_ASAN)
		SKIP("time is taken from it: an abandoned process leaks what it has");
	for (int workers = 1; workers <= 8; workers *= 8) {
		dropped_at_end = made_before_the_end = 0;
		released = false;
		CHECK_EQ(run_with_workers(workers, leaves_one_that_hangs, NULL), 3);
		CHECK_EQ(dropped_at_end, made_before_the_end + released);
	}
}

static void deposit_plain(void *c)
{
	for (int i = many(1000); i > 0; i--)
		CHECK_EQ(hd_when(deposit, (void *)1L, c), 0);
	CHECK_EQ(hd_quiesce(HD_FOREVER), 0);
}

HD_WORKERS_TEST(when_is_for_plain_threads_too)
{
	struct account a = { 0 };
	struct plain threads[3];
	hd_cown *c = made_cown(&a);

	(void)workers;
	for (int i = 0; i < 3; i++)
		plain_start(&threads[i], deposit_plain, c);
	for (int i = 0; i < 3; i++)
		plain_join(&threads[i]);
	CHECK_EQ(a.balance, 3 * many(1000));
	hd_cown_release(c);
	check_none_left();
}
