/* latency.c - how long a process waits because of another: for a mutex that one process locks all the time, and for its worker. */
#include "../harness.h"
#include "cases.h"

static hd_pid spawn(hd_entry entry, void *arg)
{
	return bench_ok(hd_spawn(entry, arg), "hd_spawn");
}

static void join(hd_pid pid)
{
	bench_ok(hd_join(pid, NULL, HD_FOREVER), "hd_join");
}

static struct hd_mutex mutex;
static hd_time over;	      /* when the repetition ends */
static hd_time longest, late; /* guarded by the mutex: a waiter's longest wait, and the latest that one got the mutex */
static uint64_t result;	      /* of the work, so that no compiler leaves it out */

static void lock(void)
{
	bench_ok(hd_mutex_lock(&mutex, HD_FOREVER), "hd_mutex_lock");
}

static void unlock(void)
{
	bench_ok(hd_mutex_unlock(&mutex), "hd_mutex_unlock");
}

static void *locks_all_the_time(void *arg)
{
	while (hd_now() < over) {
		lock();
		result = bench_work(result, BENCH_STARVE_US);
		unlock();
	}
	return arg;
}

/* The wait is counted from the call; the lateness from when the waiter wanted to call, which is when its sleep should have ended,
 * and at first shortly after it was made. */
static void *waiter(void *arg)
{
	hd_time due = over - BENCH_STARVE_NS + HD_US(BENCH_STARVE_NAP_US), now;

	do {
		bench_ok(hd_sleep_until(due), "hd_sleep_until");
		hd_time called = hd_now();
		lock();
		now = hd_now();
		if (now - called > longest)
			longest = now - called;
		if (now - due > late)
			late = now - due;
		unlock();
		due = now + HD_US(BENCH_STARVE_NAP_US);
	} while (now < over);
	return arg;
}

void mutex_starve(void)
{
	hd_pid waiters[BENCH_STARVE_WAITERS];

	for (int repetition = bench_quick() ? 1 : 3; repetition > 0; repetition--) {
		over = hd_after(BENCH_STARVE_NS);
		for (int i = 0; i < BENCH_STARVE_WAITERS; i++)
			waiters[i] = spawn(waiter, NULL);
		join(spawn(locks_all_the_time, NULL));
		for (int i = 0; i < BENCH_STARVE_WAITERS; i++)
			join(waiters[i]);
	}
	bench_print("mutex_starve", (double)longest / 1e3);
	bench_print("mutex_starve_late", (double)late / 1e3);
}

/* A process that wants to run every 10 ms, made by a keeper, which keeps its kernel thread for as long as all the ticks take.
 * The keeper waits until the ticker has begun: mostly on the keeper's worker, where its first sleep begins too. */
struct ticker {
	struct hd_semaphore begun;
	hd_time start;
	double *late; /* ns, of each tick */
};

static void *ticker(void *arg)
{
	struct ticker *t = arg;

	bench_ok(hd_semaphore_signal(&t->begun), "hd_semaphore_signal");
	for (int i = 0; i < BENCH_TICKS; i++) {
		hd_time due = t->start + (i + 1) * (hd_time)BENCH_TICK_NS;
		bench_ok(hd_sleep_until(due), "hd_sleep_until");
		t->late[i] = (double)(hd_now() - due);
	}
	return NULL;
}

static void loop_until(double end)
{
	while (bench_now() < end)
		result = bench_work(result, 1);
}

/* A signal may end a usleep early. */
static void usleep_until(double end)
{
	for (double left; (left = end - bench_now()) > 0;)
		usleep((useconds_t)(left / 1e3) + 1);
}

static void (*keep_the_thread)(double end);

static void *keeper(void *arg)
{
	struct ticker t = { .start = hd_now(), .late = arg };
	hd_pid ticking = spawn(ticker, &t);

	bench_ok(hd_semaphore_wait(&t.begun, HD_FOREVER), "hd_semaphore_wait");
	keep_the_thread(bench_now() + (double)BENCH_TICKS * BENCH_TICK_NS);
	join(ticking);
	return NULL;
}

/* Prints the microseconds by which a tick in a hundred is late, or more. */
static void tick(const char *name, void (*keep)(double end))
{
	static double late_by[3 * BENCH_TICKS];
	int repetitions = bench_quick() ? 1 : 3, ticks = repetitions * BENCH_TICKS;

	keep_the_thread = keep;
	for (int i = 0; i < repetitions; i++)
		join(spawn(keeper, &late_by[i * BENCH_TICKS]));
	qsort(late_by, (size_t)ticks, sizeof *late_by, bench_compare);
	bench_print(name, late_by[ticks * 99 / 100 - 1] / 1e3);
}

void ticker_loop(void)
{
	tick("ticker_loop", loop_until);
}

void ticker_usleep(void)
{
	tick("ticker_usleep", usleep_until);
}
