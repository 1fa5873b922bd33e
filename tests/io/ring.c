/* io/ring.c - operations that the kernel does by itself. A pipe stands for the disk: it answers when the test likes. */
#define _GNU_SOURCE
#include "rt/capture.h"

#include <heddle/io.h>

#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "io/ring.h"
#include "os/fault.h"
#include "sync/common.h"

static int disk[2]; /* the reader waits at the first for what the test writes to the second */

static ssize_t read_disk(char *to, size_t n, hd_time until)
{
	struct iovec part = { to, n };
	return hd__ring_do(&(struct hd__task){ .fd = disk[0], .iov = &part, .n = 1, .offset = -1 }, until, HD_WAIT_FILE);
}

static void need_ring(void)
{
	char c;

	if (disk[1] == 0)
		CHECK_EQ(hd_is_simulated() ? 0 : pipe(disk), 0);
	if (hd_is_simulated() || read_disk(&c, 1, hd_after(HD_US(1))) == -ENOSYS)
		SKIP("there is no io_uring here");
}

static void *read_one(void *arg)
{
	char c = 0;
	ssize_t n = read_disk(&c, 1, HD_FOREVER);

	if (n == -ECANCELED)
		hd__heed();
	(void)arg;
	return (void *)(n == 1 ? (long)c : (long)n);
}

static void await_reader(hd_pid pid)
{
	while (info_on(pid).why != HD_WAIT_FILE)
		CHECK_EQ(hd_sleep(HD_US(50)), 0);
	CHECK_EQ(info_on(pid).fd, disk[0]);
}

static long answer_of(hd_pid pid)
{
	void *result;

	CHECK_EQ(hd_join(pid, &result, HD_FOREVER), 0);
	return (long)result;
}

HD_WORKERS_TEST(ring_operation_ends_or_is_called_off)
{
	char c;

	need_ring();
	CHECK_EQ(read_disk(&c, 1, hd_after(HD_MS(1))), -ETIMEDOUT);
	hd_pid cancelled = spawned(hd_spawn(read_one, NULL)), killed = spawned(hd_spawn(read_one, NULL));
	await_reader(cancelled);
	await_reader(killed);
	CHECK_EQ(hd_cancel(cancelled), 0);
	CHECK_EQ(answer_of(cancelled), -ECANCELED);
	CHECK_EQ(hd_terminate(killed, HD_FOREVER), 0);
	hd_pid reader = spawned(hd_spawn(read_one, NULL));
	await_reader(reader);
	CHECK_EQ(write(disk[1], "x", 1), 1);
	CHECK_EQ(answer_of(reader), 'x');
	(void)workers;
}

/* Completion, deadline and cancel race for one operation: what was read is reported. */
static long reads;

static void *read_often(void *arg)
{
	unsigned seed = (unsigned)(uintptr_t)arg;
	char c;

	for (int i = 0; i < hd_scaled(200); i++) {
		ssize_t n = read_disk(&c, 1, hd_after(HD_US(next_random(&seed) % 100)));
		CHECK(n == 1 || n == -ETIMEDOUT || n == -ECANCELED);
		if (n == -ECANCELED)
			hd__heed();
		add(&reads, n == 1);
		hd_cancel_clear();
	}
	return NULL;
}

HD_WORKERS_TEST(ring_loses_no_byte_to_cancels_and_deadlines)
{
	hd_pid pids[6];
	unsigned seed = (unsigned)workers;
	long written = 0;
	char c;

	need_ring();
	set(&reads, 0);
	for (long i = 0; i < 6; i++)
		pids[i] = spawned(hd_spawn(read_often, (void *)(i + 1)));
	for (int i = 0; i < hd_scaled(300); i++) {
		int err = hd_cancel(pids[next_random(&seed) % 6]);
		CHECK(err == 0 || err == -ESRCH);
		written += write(disk[1], "x", 1);
		CHECK_EQ(hd_sleep(HD_US(next_random(&seed) % 60)), 0);
	}
	for (int i = 0; i < 6; i++)
		CHECK_EQ(hd_join(pids[i], NULL, HD_FOREVER), 0);
	while (read_disk(&c, 1, hd_after(HD_MS(5))) == 1)
		add(&reads, 1);
	CHECK_EQ(value_of(&reads), written);
}

/* The worker in whose ring the operation is computes, and comes by no safe point: the watcher sees the completion. */
static long read_at_last;

static void *read_on_first_worker(void *arg)
{
	char c;

	if (worker_of(hd_self()) != 0)
		return NULL;
	CHECK_EQ(read_disk(&c, 1, HD_FOREVER), 1);
	set(&read_at_last, 1);
	return arg;
}

HD_MANY_WORKERS_TEST(ring_of_a_stuck_worker_is_served)
{
	need_ring();
	set(&read_at_last, 0);
	for (;;) {
		hd_pid pid = spawned(hd_spawn(read_on_first_worker, NULL));
		struct hd_process_info info = { .why = HD_WAIT_NONE };
		while (hd_process_info(pid, &info) == 0 && info.state != HD_ENDED && info.why != HD_WAIT_FILE)
			hd_yield();
		if (info.why == HD_WAIT_FILE) {
			CHECK_EQ(write(disk[1], "x", 1), 1);
			while (value_of(&read_at_last) == 0)
				; /* the first process is pinned to the first worker */
		}
		CHECK_EQ(hd_join(pid, NULL, HD_FOREVER), 0);
		if (info.why == HD_WAIT_FILE)
			break;
	}
	(void)workers;
}

/* More operations than a ring takes: the others are for threads. */
static void *read_or_not(void *arg)
{
	char c;
	ssize_t n = read_disk(&c, 1, HD_FOREVER);

	CHECK(n == 1 || n == -ENOSYS);
	add(n == 1 ? &reads : arg, 1);
	return NULL;
}

HD_PROCESS_TEST(ring_takes_so_many_operations)
{
	enum { MANY = 600 };
	static hd_pid pids[MANY];
	long refused = 0;

	need_ring();
	for (int i = 0; i < MANY; i++)
		pids[i] = spawned(hd_spawn(read_or_not, &refused));
	await_reader(pids[0]);
	while (value_of(&refused) < MANY - 512)
		CHECK_EQ(hd_sleep(HD_US(50)), 0);
	char data[512] = "";
	CHECK_EQ(write(disk[1], data, sizeof data), sizeof data);
	for (int i = 0; i < MANY; i++)
		CHECK_EQ(hd_join(pids[i], NULL, HD_FOREVER), 0);
	CHECK_EQ(reads, 512);
	CHECK_EQ(refused, MANY - 512);
}

/* The runtime ends over an operation. */
static void *leave_a_reader(void *arg)
{
	need_ring();
	await_reader(spawned(hd_spawn(read_one, NULL)));
	hd_shutdown(5);
	return arg;
}

HD_TEST(ring_operation_is_called_off_when_the_runtime_ends)
{
	CHECK_EQ(run_with_workers(2, leave_a_reader, NULL), 5);
}

/* A process that does not listen is abandoned; the runtime waits for the kernel, which may take its time, and uses none. */
static void *read_deaf(void *arg)
{
	CHECK_EQ(hd_set_cancel_state(HD_CANCEL_DISABLED), HD_CANCEL_ENABLED);
	return read_one(arg);
}

static void *leave_a_deaf_reader(void *arg)
{
	char c;

	need_ring();
	CHECK_EQ(write(disk[1], "x", 1), 1);
	CHECK_EQ(read_disk(&c, 1, HD_FOREVER), 1);
	await_reader(spawned(hd_spawn(read_deaf, NULL)));
	hd_shutdown(5);
	return arg;
}

static void *write_late(void *arg)
{
	usleep(2000000);
	CHECK_EQ(write(disk[1], "x", 1), 1);
	return arg;
}

HD_TEST(ring_operation_that_takes_long_costs_nothing_at_the_end)
{
	struct timespec used;
	pthread_t late;

	if (hd_is_simulated())
		SKIP("there is no io_uring here");
	CHECK_EQ(pipe(disk), 0);
	CHECK_EQ(pthread_create(&late, NULL, write_late, NULL), 0);
	CHECK_EQ(run_with_workers(1, leave_a_deaf_reader, NULL), 5);
	CHECK_EQ(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used), 0);
	CHECK_EQ(pthread_join(late, NULL), 0);
	CHECK(used.tv_sec == 0 && used.tv_nsec < 200000000);
}

/* The kernel has threads of its own for what cannot be done otherwise: they do not hide a deadlock. */
static void *sync_and_wait(void *arg)
{
	struct hd_semaphore never = { .excess = 0 };
	char name[] = "/tmp/heddle-ring-XXXXXX";
	int fd = mkstemp(name);

	need_ring();
	CHECK(fd >= 0);
	CHECK_EQ(unlink(name), 0);
	CHECK_EQ(hd_pwrite(fd, "x", 1, 0, HD_FOREVER), 1);
	CHECK_EQ(hd_fsync(fd, HD_FOREVER), 0);
	CHECK_EQ(hd_semaphore_wait(&never, HD_FOREVER), 0);
	return arg;
}

HD_TEST(ring_threads_hide_no_deadlock)
{
	if (hd_is_haunted())
		SKIP("a thread of the sanitizer could wake a process");
	CHECK_EQ(run_with_workers(2, sync_and_wait, NULL), -EDEADLK);
}

/* Where there is no io_uring, threads do it. */
static void *move_without_ring(void *arg)
{
	char name[] = "/tmp/heddle-ring-XXXXXX", data[4] = "";
	int fd = mkstemp(name);

	CHECK(fd >= 0);
	CHECK_EQ(unlink(name), 0);
	CHECK_EQ(pipe(disk), 0);
	CHECK_EQ(read_disk(data, 1, HD_FOREVER), -ENOSYS);
	CHECK_EQ(hd_pwrite(fd, "abc", 3, 0, HD_FOREVER), 3);
	CHECK_EQ(hd_fdatasync(fd, HD_FOREVER), 0);
	CHECK_EQ(hd_read(fd, data, 3, HD_FOREVER), 3);
	CHECK_STR(data, "abc");
	CHECK_EQ(hd_close(fd), 0);
	return arg;
}

HD_TEST(ring_that_is_refused_leaves_it_to_threads)
{
	if (hd_is_simulated())
		SKIP("the simulated file has another kernel");
	hd__fault_arm(HD__FAULT_RING, 1, true);
	CHECK_EQ(run_with_workers(2, move_without_ring, NULL), 0);
}
