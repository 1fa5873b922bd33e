/* harness.h - what every bench program in C and C++ shares: the repetitions, the median, the line that is printed.
 *
 * A program is run as `program CASE [args]` and prints a line `NAME VALUE` per measurement; lines `# NAME VALUE` count what
 * its runtime did meanwhile. It exits with 0, with BENCH_SKIP after saying on stderr why the case makes no sense for it, or
 * with another code after saying what went wrong. BENCH_WORKERS says how many workers (kernel threads that run processes) it
 * has, one unless it is set; BENCH_CREW, how many processes some shapes have; BENCH_MEALS, how often
 * each of the philosophers eats, and BENCH_MEAL_US, for how long; BENCH_QUICK=1 asks for short repetitions and few of them. */
#ifndef BENCH_HARNESS_H
#define BENCH_HARNESS_H

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { BENCH_SKIP = 77, BENCH_MAX_REPETITIONS = 15, BENCH_STEPS_PER_US = 750, BENCH_CRUNCH_US = 200 };

/* The mixed load, the same for every peer: for a second, each of some mixers makes a process that computes, a pair that
 * passes a token to and fro, and a burst of empty ones, sleeps for 200 us times its number, joins them all and begins again.
 * That is more than one CPU can do and less than two can: of two workers, one falls asleep and is woken all the time. */
enum {
	BENCH_MIXERS = 4,
	BENCH_MIX_BURST = 100,
	BENCH_MIX_ROUND_TRIPS = 100,
	BENCH_MIX_SLEEP_US = 200,
	BENCH_MIX_NS = 1000000000
};

/* The queues, and how many of them a consumer chooses among. */
enum { BENCH_QUEUE_CAPACITY = 128, BENCH_CHOICES = 8 };

/* The everyday shapes, the same for every peer: how many items a repetition has, and how many microseconds of work each item is
 * for each process that handles it. On one CPU a repetition is some 200 ms of work. An item of the sort is 1024 numbers. */
enum {
	BENCH_CREW = 8, /* processes, where neither the shape nor the environment says otherwise */
	BENCH_CREW_MAX = 256,
	BENCH_POOL_ITEMS = 6400,
	BENCH_POOL_US = 30,
	BENCH_POOL_CAPACITY = 64,
	BENCH_JOBS = 6400,
	BENCH_JOB_US = 30,
	BENCH_PIPELINE_ITEMS = 2000,
	BENCH_PIPELINE_US = 20,
	BENCH_PIPELINE_STAGES = 5,
	BENCH_PIPELINE_CAPACITY = 16,
	BENCH_MONITOR_ITEMS = 4800,
	BENCH_MONITOR_US = 20,
	BENCH_MONITOR_CAPACITY = 16,
	BENCH_MUTEX_ITEMS = 3840,
	BENCH_MUTEX_US = 50,
	BENCH_RWLOCK_ITEMS = 9600,
	BENCH_RWLOCK_US = 20,
	BENCH_RWLOCK_WRITE_EVERY = 16,
	BENCH_SLEEPERS = 400,
	BENCH_SLEEPER_ITEMS = 6400,
	BENCH_SLEEPER_US = 30,
	BENCH_SLEEPER_NAP_US = 1000,
	BENCH_PROMISES = 6400,
	BENCH_PROMISE_US = 30,
	BENCH_PROMISE_BATCH = 64,
	BENCH_SORT_ITEMS = 1024,
	BENCH_SORT_ITEM = 1024,
	BENCH_SORT_CUTOFF = 8192, /* no more numbers than these are sorted without another process */
	BENCH_SORT_BY_INSERTION = 16,
	BENCH_TRANSFERS = 6400,
	BENCH_TRANSFER_US = 30,
	BENCH_MEALS = 40, /* of each philosopher */
	BENCH_MEAL_US = 50
};

/* Behaviours: how many cowns a producer has, and how many behaviours on each it makes before it waits for all; accounts, transfers that are made before the
 * bank waits for all, philosophers. How many behaviours make themselves anew, how often, and after how many runs one of them looks at the others. */
enum {
	BENCH_COWNS = 256,
	BENCH_COWN_RUNS = 100,
	BENCH_ACCOUNTS = 1000,
	BENCH_AHEAD = 10000,
	BENCH_PHILOSOPHERS = 100,
	BENCH_SHARERS = 6,
	BENCH_SHARE = 1000000,
	BENCH_SHARE_LOOK = 250
};

/* The mutex that one process locks again and again, and the waiters that want it once in a while. */
enum { BENCH_STARVE_NS = 300000000, BENCH_STARVE_US = 20, BENCH_STARVE_WAITERS = 7, BENCH_STARVE_NAP_US = 200 };

/* The ticker, and the process beside it that keeps its kernel thread for as long as all the ticks take. */
enum { BENCH_TICKS = 100, BENCH_TICK_NS = 10000000 };

struct bench_case {
	const char *name;
	void (*run)(void);
};

/* Performs n operations and answers how many nanoseconds they took. */
typedef double (*bench_body)(long n);

static inline void bench_die(const char *what, int error)
{
	fprintf(stderr, "%s: %s\n", what, strerror(error < 0 ? -error : error));
	exit(1);
}

static inline void bench_skip(const char *why)
{
	fprintf(stderr, "%s\n", why);
	exit(BENCH_SKIP);
}

/* Checks a call that answers -errno. */
static inline int64_t bench_ok(int64_t answer, const char *what)
{
	if (answer < 0)
		bench_die(what, (int)answer);
	return answer;
}

static inline void *bench_array(size_t count, size_t size)
{
	void *memory = malloc(count * size);
	if (memory == NULL)
		bench_die("malloc", ENOMEM);
	memset(memory, 1, count * size); /* touched now, so that no measurement pays for it */
	return memory;
}

static inline double bench_clock(clockid_t clock)
{
	struct timespec t;
	clock_gettime(clock, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static inline double bench_now(void)
{
	return bench_clock(CLOCK_MONOTONIC);
}

static inline double bench_cpu(void)
{
	return bench_clock(CLOCK_PROCESS_CPUTIME_ID);
}

/* Bytes of memory that this program has resident now. */
static inline double bench_resident(void)
{
	long pages = 0;
	FILE *f = fopen("/proc/self/statm", "r");
	if (f == NULL || fscanf(f, "%*d %ld", &pages) != 1)
		bench_die("/proc/self/statm", errno);
	fclose(f);
	return (double)pages * (double)sysconf(_SC_PAGESIZE);
}

/* The most MiB that it ever had. */
static inline double bench_peak(void)
{
	struct rusage usage;
	getrusage(RUSAGE_SELF, &usage);
	return (double)usage.ru_maxrss / 1024;
}

static inline unsigned bench_workers(void)
{
	const char *s = getenv("BENCH_WORKERS");
	return s == NULL || atoi(s) < 1 ? 1 : (unsigned)atoi(s);
}

/* Divides the items of each shape. */
static inline int bench_crew(void)
{
	const char *s = getenv("BENCH_CREW");
	int crew = s == NULL ? BENCH_CREW : atoi(s);

	return crew < 2 ? 2 : crew > BENCH_CREW_MAX ? BENCH_CREW_MAX : crew;
}

/* What the environment says, if that is a number above 0. */
static inline int bench_setting(const char *name, int usual)
{
	const char *s = getenv(name);
	return s == NULL || atoi(s) < 1 ? usual : atoi(s);
}

static inline int bench_quick(void)
{
	const char *s = getenv("BENCH_QUICK");
	return s != NULL && strcmp(s, "1") == 0;
}

static inline int bench_repetitions(void)
{
	return bench_quick() ? 3 : 7;
}

static inline void bench_print(const char *name, double value)
{
	printf("%s %.3f\n", name, value);
	fflush(stdout);
}

static inline int bench_compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

static inline double bench_median(double *values, int n)
{
	qsort(values, (size_t)n, sizeof *values, bench_compare);
	return n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

/* Prints the median over the repetitions of body(n) / n * scale; one more run before them warms up. */
static inline void bench_fixed(const char *name, bench_body body, long n, double scale)
{
	double values[BENCH_MAX_REPETITIONS];
	int repetitions = bench_repetitions();

	body(n);
	for (int i = 0; i < repetitions; i++)
		values[i] = body(n) / (double)n * scale;
	bench_print(name, bench_median(values, repetitions));
}

/* As many operations, a multiple of `unit`, as take some `target` nanoseconds. A first run, on new stacks, would mislead. */
static inline long bench_size(bench_body body, long unit, double target)
{
	long n = unit;
	double took;

	body(unit);
	while ((took = body(n)) < target / 4)
		n *= 2;
	return (long)((double)n * target / took / (double)unit + 1) * unit;
}

/* Prints nanoseconds per operation, from repetitions of some 100 ms. */
static inline void bench_rate(const char *name, bench_body body, long unit)
{
	bench_fixed(name, body, bench_size(body, unit, bench_quick() ? 20e6 : 100e6), 1);
}

/* The same straight after `load`, which is run before each repetition. These are short: after the load there is most to see
 * at first, and should it leave operations a thousand times as slow, they still come to an end. */
static inline void bench_rate_after(const char *name, void (*load)(void), bench_body body, long unit)
{
	enum { REPETITIONS = 3 };
	double values[REPETITIONS];
	long n = bench_size(body, unit, 20e6);

	for (int i = 0; i < REPETITIONS; i++) {
		load();
		values[i] = body(n) / (double)n;
	}
	bench_print(name, bench_median(values, REPETITIONS));
}

/* Prints microseconds per item of a shape. Its repetitions are long and few: bench/run has rounds of them. */
static inline void bench_shape(const char *name, bench_body body, long items)
{
	enum { REPETITIONS = 3 };
	double values[REPETITIONS];
	long n = bench_quick() ? items / 4 : items;

	body(n);
	for (int i = 0; i < REPETITIONS; i++)
		values[i] = body(n) / (double)n / 1e3;
	bench_print(name, bench_median(values, REPETITIONS));
}

/* One step of work, and the next of a sequence of numbers that is the same for every peer. */
static inline uint64_t bench_step(uint64_t x)
{
	return x * 6364136223846793005u + 1442695040888963407u;
}

/* Some `us` microseconds of arithmetic at 3 GHz, the same work for every peer, in steps that each need the one before. */
static inline uint64_t bench_work(uint64_t x, int us)
{
	for (int i = 0; i < us * BENCH_STEPS_PER_US; i++)
		x = bench_step(x);
	return x;
}

/* So many numbers were merged so many times, or as much as that was done to them. Work that is not bench_work says so, for bench/virtual, where none is done. */
static inline void bench_merged(long numbers, double times)
{
	(void)numbers, (void)times;
}

static inline uint64_t bench_crunch(uint64_t x)
{
	return bench_work(x, BENCH_CRUNCH_US);
}

/* The sleeps of the sleepers: 1 to 1000 ms, the same sequence for every peer. */
static inline int bench_next_sleep_ms(uint64_t *seed)
{
	*seed = bench_step(*seed);
	return 1 + (int)((*seed >> 33) % 1000);
}

/* What a producer's items add up to: they are n, n - 1 and so on to 1. */
static inline int64_t bench_sum(long n)
{
	return (int64_t)n * (n + 1) / 2;
}

/* Checks what a repetition came to, so that none is fast by losing something. */
static inline void bench_same(const char *what, int64_t is, int64_t should)
{
	if (is != should)
		bench_die(what, EINVAL);
}

/* Runs the case that argv names. */
static inline int bench_main(int argc, char **argv, const struct bench_case *cases)
{
	for (const struct bench_case *c = cases; argc > 1 && c->name != NULL; c++)
		if (strcmp(c->name, argv[1]) == 0) {
			c->run();
			return 0;
		}
	fprintf(stderr, argc > 1 ? "no such case here\n" : "usage: program CASE, with CASE one of\n");
	for (const struct bench_case *c = cases; argc < 2 && c->name != NULL; c++)
		fprintf(stderr, "  %s\n", c->name);
	return argc > 1 ? BENCH_SKIP : 2;
}

#ifdef __cplusplus
}
#endif
#endif
