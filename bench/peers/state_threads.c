/* state_threads.c - the bench cases on State Threads: one kernel thread, 16 KiB stacks without guards.
 *
 * Its nearest primitive to a semaphore is a condition variable without a mutex, beside a plain flag. It has no yield:
 * st_usleep(0) goes to the tail of the run queue by way of the timer heap. Nothing takes the kernel thread from a thread that has
 * a mutex, so nobody ever finds one locked. */
#include <st.h>

#include "../harness.h"

enum { CROWD = 1000, MANY = 1000000, STACK = 16 * 1024, FANOUT = 10 };

static st_thread_t threads[CROWD];
static long rounds;

static st_thread_t spawn(void *(*entry)(void *), void *arg)
{
	st_thread_t t = st_thread_create(entry, arg, 1, STACK);
	if (t == NULL)
		bench_die("st_thread_create", errno);
	return t;
}

static void *join(st_thread_t t)
{
	void *result;
	if (st_thread_join(t, &result) < 0)
		bench_die("st_thread_join", errno);
	return result;
}

static double time_all(int count, void *(*entry)(void *))
{
	double start = bench_now();
	for (int i = 0; i < count; i++)
		threads[i] = spawn(entry, (void *)(intptr_t)i);
	for (int i = 0; i < count; i++)
		join(threads[i]);
	return bench_now() - start;
}

static void *yielder(void *arg)
{
	(void)arg;
	for (long i = rounds; i > 0; i--)
		st_usleep(0);
	return NULL;
}

static double yield_among_2(long n)
{
	rounds = n / 2;
	return time_all(2, yielder);
}

static double yield_among_crowd(long n)
{
	rounds = n / CROWD;
	return time_all(CROWD, yielder);
}

static void yield2(void)
{
	bench_rate("yield2", yield_among_2, 2000);
}

static void yield1000(void)
{
	bench_rate("yield1000", yield_among_crowd, CROWD);
}

static struct {
	st_cond_t changed;
	int given;
} turn[CROWD];
static int members;

static void *member(void *arg)
{
	int i = (int)(intptr_t)arg, next = (i + 1) % members;

	for (long k = rounds; k > 0; k--) {
		while (!turn[i].given)
			st_cond_wait(turn[i].changed);
		turn[i].given = 0;
		turn[next].given = 1;
		st_cond_signal(turn[next].changed);
	}
	return NULL;
}

static double pass_token(int count, long laps)
{
	members = count;
	rounds = laps;
	for (int i = 0; i < count; i++) {
		if (turn[i].changed == NULL)
			turn[i].changed = st_cond_new();
		turn[i].given = i == 0;
	}
	return time_all(count, member);
}

static double round_trips(long n)
{
	return pass_token(2, n);
}

static double hops(long n)
{
	return pass_token(CROWD, n / CROWD);
}

static void pingpong(void)
{
	bench_rate("pingpong", round_trips, 1000);
}

static void ring1000(void)
{
	bench_rate("ring1000", hops, CROWD);
}

static void *nothing(void *arg)
{
	return arg;
}

static double one_by_one(long n)
{
	double start = bench_now();
	for (long i = 0; i < n; i++)
		join(spawn(nothing, NULL));
	return bench_now() - start;
}

static void spawn_join(void)
{
	bench_rate("spawn_join", one_by_one, 1000);
}

static st_thread_t *crowd;

static double all_then_join(long n)
{
	double start = bench_now();
	for (long i = 0; i < n; i++)
		crowd[i] = spawn(nothing, NULL);
	for (long i = 0; i < n; i++)
		join(crowd[i]);
	return bench_now() - start;
}

static void spawn_1m(void)
{
	crowd = bench_array(MANY, sizeof *crowd);
	bench_fixed("spawn_1m", all_then_join, MANY, 1);
	bench_print("spawn_1m_peak", bench_peak());
}

struct node {
	long number, leaves;
};

static void *grow(void *arg)
{
	struct node me = *(struct node *)arg, children[FANOUT];
	st_thread_t growing[FANOUT];
	intptr_t sum = 0;

	if (me.leaves == 1)
		return (void *)(intptr_t)me.number;
	for (int i = 0; i < FANOUT; i++) {
		children[i].leaves = me.leaves / FANOUT;
		children[i].number = me.number + i * children[i].leaves;
		growing[i] = spawn(grow, &children[i]);
	}
	for (int i = 0; i < FANOUT; i++)
		sum += (intptr_t)join(growing[i]);
	return (void *)sum;
}

static double tree(long leaves)
{
	struct node root = { 0, leaves };
	double start = bench_now();

	if ((intptr_t)join(spawn(grow, &root)) != leaves * (leaves - 1) / 2)
		bench_die("skynet: wrong sum", EINVAL);
	return bench_now() - start;
}

static void skynet(void)
{
	bench_fixed("skynet", tree, MANY, MANY / 1e6);
}

static void *crunch(void *arg)
{
	return (void *)(uintptr_t)bench_crunch((uintptr_t)arg);
}

static double crunch_all(long n)
{
	(void)n;
	return time_all(CROWD, crunch);
}

static void fanout(void)
{
	bench_fixed("fanout", crunch_all, CROWD, CROWD / 1e6);
}

static st_mutex_t mutex;
static long counter;

static void *contender(void *arg)
{
	for (long i = rounds; i > 0; i--) {
		st_mutex_lock(mutex);
		counter++;
		st_mutex_unlock(mutex);
	}
	return arg;
}

static double contend(int count, long n)
{
	if (mutex == NULL)
		mutex = st_mutex_new();
	counter = 0;
	rounds = n / count;
	double took = time_all(count, contender);
	bench_same("mutex: wrong count", counter, n);
	return took;
}

static double contend_2(long n)
{
	return contend(2, n);
}

static double contend_crowd(long n)
{
	return contend(CROWD, n);
}

static void mutex2(void)
{
	bench_rate("mutex2", contend_2, 2000);
}

static void mutex2_barging(void)
{
	bench_rate("mutex2_barging", contend_2, 2000);
}

static void mutex1000(void)
{
	bench_rate("mutex1000", contend_crowd, CROWD * 100);
}

static void mutex1000_barging(void)
{
	bench_rate("mutex1000_barging", contend_crowd, CROWD * 100);
}

static st_cond_t changed;
static int whose;

static void *taker(void *arg)
{
	int me = (int)(intptr_t)arg;

	for (long i = rounds; i > 0; i--) {
		while (whose != me)
			st_cond_wait(changed);
		whose = 1 - me;
		st_cond_signal(changed);
	}
	return NULL;
}

static double hand_offs(long n)
{
	if (changed == NULL)
		changed = st_cond_new();
	whose = 0;
	rounds = n / 2;
	return time_all(2, taker);
}

static void condition(void)
{
	bench_rate("condition", hand_offs, 1000);
}

static st_cond_t gate;
static long arrived;

static void *block(void *arg)
{
	arrived++;
	st_cond_wait(gate);
	return arg;
}

static void blocked_1m(void)
{
	double before = bench_resident();

	gate = st_cond_new();
	for (long i = 0; i < MANY; i++)
		spawn(block, NULL);
	while (arrived < MANY)
		st_usleep(0);
	bench_print("blocked_1m", (bench_resident() - before) / MANY);
	exit(0);
}

static void *sleeper(void *arg)
{
	st_usleep((st_utime_t)(intptr_t)arg * 1000);
	return NULL;
}

static void sleep_all(double *wall, double *cpu)
{
	uint64_t seed = 1;
	double wall_start = bench_now(), cpu_start = bench_cpu();

	for (long i = 0; i < MANY; i++)
		crowd[i] = spawn(sleeper, (void *)(intptr_t)bench_next_sleep_ms(&seed));
	for (long i = 0; i < MANY; i++)
		join(crowd[i]);
	*wall = (bench_now() - wall_start) / 1e6;
	*cpu = (bench_cpu() - cpu_start) / 1e6;
}

static void sleepers_1m(void)
{
	double wall, cpu;

	crowd = bench_array(MANY, sizeof *crowd);
	sleep_all(&wall, &cpu);
	sleep_all(&wall, &cpu);
	bench_print("sleepers_1m_wall", wall);
	bench_print("sleepers_1m_cpu", cpu);
}

static const struct bench_case cases[] = {
	{ "yield2", yield2 },		{ "yield1000", yield1000 },
	{ "spawn_join", spawn_join },	{ "spawn_1m", spawn_1m },
	{ "pingpong", pingpong },	{ "ring1000", ring1000 },
	{ "skynet", skynet },		{ "fanout", fanout },
	{ "mutex2", mutex2 },		{ "mutex2_barging", mutex2_barging },
	{ "mutex1000", mutex1000 },	{ "mutex1000_barging", mutex1000_barging },
	{ "condition", condition },	{ "blocked_1m", blocked_1m },
	{ "sleepers_1m", sleepers_1m }, { NULL, NULL },
};

int main(int argc, char **argv)
{
	if (bench_workers() > 1)
		bench_skip("State Threads has one kernel thread only");
	st_set_eventsys(ST_EVENTSYS_POLL);
	if (st_init() < 0)
		bench_die("st_init", errno);
	return bench_main(argc, argv, cases);
}
