/* rt/blocked.c - HEDDLE_WARN=blocked: a process that blocks its worker in the kernel is reported, with its place; one that does not is not. */
#include "rt/capture.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "life/common.h"

static int ends[2]; /* of a pipe */

static void skip_if_there_is_no_kernel(void)
{
	if (hd_is_simulated() || hd_is_emulated())
		SKIP("the kernel is not simulated, and knows an emulator's system calls by other numbers");
}

/* A plain thread: all workers may be blocked. The reader is then blocked again, for long enough to be told of. */
static void *write_when_said(void *arg)
{
	while (strstr(captured(), "is blocked in the kernel") == NULL)
		usleep(1000);
	CHECK_EQ(write(ends[1], "x", 1), 1);
	usleep(100000);
	CHECK_EQ(write(ends[1], "x", 1), 1);
	return arg;
}

__attribute__((noinline)) static void read_a_byte(void)
{
	char byte;

	CHECK_EQ(read(ends[0], &byte, 1), 1);
}

static void *read_twice(void *arg)
{
	for (volatile int i = 0; i < 2; i++) { /* at one place: a loop that the compiler does not unroll */
		read_a_byte();
		CHECK_EQ(hd_sleep(HD_MS(1)), 0);
	}
	return arg;
}

static void *spawn_reader(void *arg)
{
	hd_pid pid = hd_spawn_with(&(struct hd_spawn){ .name = "parser" }, read_twice, NULL);

	CHECK_EQ(hd_join(pid, NULL, HD_FOREVER), 0);
	return arg;
}

static const char *said_of_reader(unsigned workers)
{
	pthread_t writer;

	CHECK_EQ(pipe(ends), 0);
	capture_begin();
	CHECK_EQ(pthread_create(&writer, NULL, write_when_said, NULL), 0);
	CHECK_EQ(hd_run(&(struct hd_config){ .workers = workers, .warn_blocked = true, .fixed = true }, spawn_reader, NULL), 0);
	CHECK_EQ(pthread_join(writer, NULL), 0);
	close(ends[0]);
	close(ends[1]);
	return capture_end();
}

HD_TEST(blocked_worker_is_told_of_once_with_its_place)
{
	static const unsigned workers[] = { 1, 2, 8 };

	skip_if_there_is_no_kernel();
	for (int i = 0; i < 3; i++) {
		const char *said = said_of_reader(workers[i]);
		CHECK(says(said, ": parser #1 is blocked in the kernel for "));
		CHECK(says(said, " ms, in the system call read, and the worker with it: "));
		/* a sanitizer's own read() keeps its caller's place in the frame pointer, which the kernel does not tell */
		CHECK(HD_UNDER_ASAN || HD_UNDER_TSAN || says(said, "in read_a_byte, "));
		CHECK_EQ(times_said(said, "is blocked in the kernel"), 1);
	}
}

static int64_t cpu_time(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void *compute_and_wait(void *arg)
{
	for (int64_t from = cpu_time(); cpu_time() - from < HD_MS(150);)
		;
	CHECK_EQ(hd_sleep(HD_MS(100)), 0);
	return arg;
}

HD_TEST(blocked_is_not_said_of_a_worker_that_computes_or_is_idle)
{
	skip_if_there_is_no_kernel();
	capture_begin();
	CHECK_EQ(hd_run(&(struct hd_config){ .workers = 2, .warn_blocked = true, .fixed = true }, compute_and_wait, NULL), 0);
	CHECK_STR(capture_end(), "");
}

static void *nap(void *arg)
{
	usleep(120000);
	return arg;
}

HD_TEST(blocked_is_said_if_the_environment_asks_for_it)
{
	static const struct {
		const char *warn;
		int said;
	} cases[] = { { "blocked", 1 }, { "all", 1 }, { "stuck", 0 }, { "none", 0 } };

	skip_if_there_is_no_kernel();
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		setenv("HEDDLE_WARN", cases[i].warn, 1);
		capture_begin();
		CHECK_EQ(hd_run(NULL, nap, NULL), 0);
		CHECK_EQ(times_said(capture_end(), "in the system call clock_nanosleep"), cases[i].said);
	}
	unsetenv("HEDDLE_WARN");
}
