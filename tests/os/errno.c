/* os/errno.c - the errno of heddle/errno.h in processes that move.
 *
 * The loops use errno before and after heddle calls, in one function: with the C library's errno gcc and clang look up its address once,
 * before the loop, as they may; with HD_KEEP_ERRNO defined the test fails when it is compiled with -O2. */
#include "sched/workers.h"

static long moves, wrong;

/* Some 30 us, so that others are ready for long enough to be taken by another worker. */
static void compute(void)
{
	volatile unsigned x = 1;

	for (int i = 0; i < 10000; i++)
		x = x * 1664525u + 1013904223u;
}

/* Yields, sleeps and computes; each time errno has another value, which no other process has. */
static void *keep_errno(void *arg)
{
	int mine = (int)(long)arg << 16;
	struct hd_semaphore never = HD_SEMAPHORE(0);
	int worker = worker_of(hd_self());

	for (int i = hd_scaled(400); i > 0; i--) {
		errno = ++mine;
		if (mine % 4 == 0)
			CHECK_EQ(hd_semaphore_wait(&never, hd_after(mine % 3000)), -ETIMEDOUT);
		else
			hd_yield();
		if (errno != mine)
			add(&wrong, 1);
		int now = worker_of(hd_self());
		if (errno != mine)
			add(&wrong, 1);
		add(&moves, now != worker);
		worker = now;
		if (i % 16 == 0)
			compute();
	}
	return arg;
}

static void keep_errno_in_many(void)
{
	enum { N = 24 };
	hd_pid pids[N];

	for (long i = 0; i < N; i++)
		CHECK((pids[i] = hd_spawn(keep_errno, (void *)(i + 1))) > 0);
	for (int i = 0; i < N; i++)
		CHECK_EQ(hd_join(pids[i], NULL, HD_FOREVER), 0);
}

HD_WORKERS_TEST(errno_is_that_of_the_process_wherever_it_runs)
{
	moves = wrong = 0;
	for (int round = 0; round < (workers == 1 ? 1 : 50) && moves == 0; round++)
		keep_errno_in_many();
	CHECK_EQ(wrong, 0);
	CHECK(workers == 1 ? moves == 0 : moves > 0 || hd_is_simulated());
}

HD_TEST(errno_on_a_plain_thread_is_that_of_the_thread)
{
	errno = ENOENT;
	CHECK_EQ(*hd_errno(), ENOENT);
	*hd_errno() = EIO;
	CHECK_EQ(errno, EIO);
}
