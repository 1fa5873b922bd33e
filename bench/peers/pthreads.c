/* pthreads.c - the bench cases that make sense with kernel threads: 64 KiB stacks, POSIX semaphores.
 *
 * They share as many CPUs as there are to be workers: with more than one, a yield would often switch to nobody. */
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>

#include "../harness.h"

enum { CROWD = 1000, STACK = 64 * 1024 };

static pthread_attr_t attributes;
static pthread_t threads[CROWD];
static long rounds;

static pthread_t spawn(void *(*entry)(void *), void *arg)
{
	pthread_t t;
	int error = pthread_create(&t, &attributes, entry, arg);
	if (error != 0)
		bench_die("pthread_create", error);
	return t;
}

static double time_all(int count, void *(*entry)(void *))
{
	double start = bench_now();
	for (int i = 0; i < count; i++)
		threads[i] = spawn(entry, (void *)(intptr_t)i);
	for (int i = 0; i < count; i++)
		pthread_join(threads[i], NULL);
	return bench_now() - start;
}

static void *yielder(void *arg)
{
	(void)arg;
	for (long i = rounds; i > 0; i--)
		sched_yield();
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
	bench_rate("yield1000", yield_among_crowd, CROWD * 10);
}

static sem_t turn[CROWD];
static int members;

static void *member(void *arg)
{
	int i = (int)(intptr_t)arg, next = (i + 1) % members;

	for (long k = rounds; k > 0; k--) {
		while (sem_wait(&turn[i]) != 0)
			;
		sem_post(&turn[next]);
	}
	return NULL;
}

static double pass_token(int count, long laps)
{
	members = count;
	rounds = laps;
	for (int i = 0; i < count; i++)
		sem_init(&turn[i], 0, i == 0);
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
	bench_rate("ring1000", hops, CROWD * 10);
}

static void *nothing(void *arg)
{
	return arg;
}

static double one_by_one(long n)
{
	double start = bench_now();
	for (long i = 0; i < n; i++)
		pthread_join(spawn(nothing, NULL), NULL);
	return bench_now() - start;
}

static void spawn_join(void)
{
	bench_rate("spawn_join", one_by_one, 100);
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

/* A thread costs more to make than many critical sections: the clock runs from the first that comes through the gate to the
 * last that is done. */
static pthread_barrier_t gate;
static struct {
	double began, ended;
} spans[CROWD];

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static long counter;

static void *contender(void *arg)
{
	intptr_t me = (intptr_t)arg;

	pthread_barrier_wait(&gate);
	spans[me].began = bench_now();
	for (long i = rounds; i > 0; i--) {
		pthread_mutex_lock(&mutex);
		counter++;
		pthread_mutex_unlock(&mutex);
	}
	spans[me].ended = bench_now();
	return NULL;
}

static double contend(int count, long n)
{
	counter = 0;
	rounds = n / count;
	pthread_barrier_init(&gate, NULL, (unsigned)count);
	time_all(count, contender);
	pthread_barrier_destroy(&gate);
	bench_same("mutex: wrong count", counter, n);

	double began = spans[0].began, ended = spans[0].ended;
	for (int i = 1; i < count; i++) {
		began = spans[i].began < began ? spans[i].began : began;
		ended = spans[i].ended > ended ? spans[i].ended : ended;
	}
	return ended - began;
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
	bench_rate("mutex1000", contend_crowd, CROWD * 1000);
}

static void mutex1000_barging(void)
{
	bench_rate("mutex1000_barging", contend_crowd, CROWD * 1000);
}

static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int whose;

static void *taker(void *arg)
{
	int me = (int)(intptr_t)arg;

	for (long i = rounds; i > 0; i--) {
		pthread_mutex_lock(&mutex);
		while (whose != me)
			pthread_cond_wait(&changed, &mutex);
		whose = 1 - me;
		pthread_cond_signal(&changed);
		pthread_mutex_unlock(&mutex);
	}
	return NULL;
}

static double hand_offs(long n)
{
	whose = 0;
	rounds = n / 2;
	return time_all(2, taker);
}

static void condition(void)
{
	bench_rate("condition", hand_offs, 1000);
}

static void million(void)
{
	bench_skip("a million kernel threads is more than Linux allows by default");
}

static const struct bench_case cases[] = {
	{ "yield2", yield2 },	      { "yield1000", yield1000 },
	{ "spawn_join", spawn_join }, { "spawn_1m", million },
	{ "pingpong", pingpong },     { "ring1000", ring1000 },
	{ "skynet", million },	      { "fanout", fanout },
	{ "mutex2", mutex2 },	      { "mutex2_barging", mutex2_barging },
	{ "mutex1000", mutex1000 },   { "mutex1000_barging", mutex1000_barging },
	{ "condition", condition },   { "blocked_1m", million },
	{ "sleepers_1m", million },   { NULL, NULL },
};

/* Keeps this thread, and those that it makes, on the first CPUs that it may use. */
static void stay_on_cpus(unsigned count)
{
	cpu_set_t all, few;

	if (sched_getaffinity(0, sizeof all, &all) != 0)
		bench_die("sched_getaffinity", errno);
	CPU_ZERO(&few);
	for (int cpu = 0; cpu < CPU_SETSIZE && count > 0; cpu++)
		if (CPU_ISSET(cpu, &all)) {
			CPU_SET(cpu, &few);
			count--;
		}
	if (sched_setaffinity(0, sizeof few, &few) != 0)
		bench_die("sched_setaffinity", errno);
}

int main(int argc, char **argv)
{
	stay_on_cpus(bench_workers());
	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, STACK);
	return bench_main(argc, argv, cases);
}
