/* io/findings2.c - what a review of files, rings and descriptors looked for: hd_close against calls that begin or go on at that moment. */
#define _GNU_SOURCE
#include <heddle/io.h>

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <unistd.h>

#include "os/io.h"
#include "sync/common.h"

static char path[] = "/tmp/heddle-found-XXXXXX";

/* Two open files of one inode, by open(2): heddle has not heard of them. */
static void open_twice(int fds[2])
{
	strcpy(path + sizeof path - 7, "XXXXXX");
	fds[0] = mkstemp(path);
	CHECK(fds[0] >= 0);
	fds[1] = open(path, O_RDWR | O_CLOEXEC);
	CHECK(fds[1] >= 0);
	CHECK_EQ(unlink(path), 0);
}

static void *lock_it(void *fd)
{
	return (void *)(long)hd_flock(*(int *)fd, LOCK_EX, HD_FOREVER);
}

static long answer_of(hd_pid pid)
{
	void *result;

	CHECK_EQ(hd_join(pid, &result, HD_FOREVER), 0);
	return (long)result;
}

/* hd_close ends a call on a descriptor of which heddle knows nothing but that call. */
HD_WORKERS_TEST(close_ends_a_call_on_a_strange_descriptor)
{
	int fds[2];

	if (hd_is_simulated())
		SKIP("it has no locks");
	open_twice(fds);
	CHECK_EQ(flock(fds[0], LOCK_EX), 0);
	hd_pid pid = spawned(hd_spawn(lock_it, &fds[1]));
	while (info_on(pid).why != HD_WAIT_FILE_LOCK)
		CHECK_EQ(hd_sleep(HD_US(50)), 0);
	CHECK_EQ(hd_close(fds[1]), 0);
	CHECK_EQ(answer_of(pid), -EBADF);
	CHECK_EQ(hd_close(fds[0]), 0);
	(void)workers;
}

/* ---- calls that begin while a descriptor is closed ---- */

static int ends[2];
static long closed;

static void *read_often(void *arg)
{
	ssize_t n;
	char c;

	do {
		n = hd_read(ends[0], &c, 1, HD_FOREVER);
		hd_yield();
	} while (n == -EBADF && !value_of(&closed));
	CHECK_EQ(n, -EBADF);
	return arg;
}

static void *poll_often(void *arg)
{
	int n;

	do {
		struct pollfd p = { .fd = ends[0], .events = POLLIN };
		n = hd_fd_poll(&p, 1, HD_FOREVER);
		CHECK(n == 1 && p.revents == POLLNVAL);
		hd_yield();
	} while (!value_of(&closed));
	return arg;
}

/* A call that begins at any moment of hd_close does not wait for what was closed. */
static void close_under(hd_entry entry)
{
	hd_pid pids[2];

	for (int round = 0; round < hd_scaled(2000); round++) {
		set(&closed, 0);
		CHECK_EQ(hd_pipe(ends), 0);
		for (int i = 0; i < 2; i++)
			pids[i] = spawned(hd_spawn(entry, NULL));
		hd_yield();
		CHECK_EQ(hd_close(ends[0]), 0);
		set(&closed, 1);
		for (int i = 0; i < 2; i++)
			CHECK_EQ(answer_of(pids[i]), 0);
		CHECK_EQ(hd_close(ends[1]), 0);
	}
}

HD_WORKERS_TEST(close_lets_no_read_wait_for_a_closed_descriptor)
{
	close_under(read_often);
	(void)workers;
}

static long arrived;

static void *watch_a_pipe(void *workers)
{
	int fds[2];

	add(&arrived, 1);
	while (value_of(&arrived) < (long)workers)
		hd_checkpoint();
	CHECK_EQ(hd_pipe(fds), 0);
	struct pollfd p = { .fd = fds[0], .events = POLLIN };
	CHECK_EQ(hd_fd_poll(&p, 1, 0), -ETIMEDOUT);
	CHECK_EQ(hd_close(fds[0]), 0);
	CHECK_EQ(hd_close(fds[1]), 0);
	return NULL;
}

/* Each worker has its set afterwards. A set has the least free number for a moment when it is made, and a poll that comes too late would meet it. */
static void have_all_sets_made(int workers)
{
	hd_pid pids[8];

	CHECK(workers <= 8);
	set(&arrived, 0);
	for (int i = 0; i < workers; i++)
		pids[i] = spawned(hd_spawn(watch_a_pipe, (void *)(long)workers));
	for (int i = 0; i < workers; i++)
		CHECK_EQ(answer_of(pids[i]), 0);
}

HD_WORKERS_TEST(close_lets_no_poll_wait_for_a_closed_descriptor)
{
	have_all_sets_made(workers);
	close_under(poll_often);
}

/* ---- closing twice ---- */

static void *close_it(void *arg)
{
	(void)arg;
	add(&closed, 1);
	while (value_of(&closed) < 2)
		hd_yield();
	return (void *)(long)hd_close(ends[0]);
}

/* Of two that close a descriptor at the same moment one does; and nothing of that is left for the next descriptor of this number. */
HD_WORKERS_TEST(close_is_done_once)
{
	char c;

	for (int round = 0; round < hd_scaled(2000); round++) {
		set(&closed, 0);
		CHECK_EQ(hd_pipe(ends), 0);
		hd_pid a = spawned(hd_spawn(close_it, NULL)), b = spawned(hd_spawn(close_it, NULL));
		long answers[] = { answer_of(a), answer_of(b) };
		CHECK((answers[0] == 0 && answers[1] == -EBADF) || (answers[0] == -EBADF && answers[1] == 0));
		CHECK_EQ(hd_close(ends[1]), 0);
		CHECK_EQ(hd_pipe(ends), 0);
		CHECK_EQ(hd_write(ends[1], "x", 1, HD_FOREVER), 1);
		CHECK_EQ(hd_read(ends[0], &c, 1, HD_FOREVER), 1);
		CHECK_EQ(hd_close(ends[0]), 0);
		CHECK_EQ(hd_close(ends[1]), 0);
	}
	(void)workers;
}

/* ---- the other descriptor ---- */

#define MUCH 1000000

static int pair[2], in;

static int file_of(char c)
{
	static char data[MUCH];
	int fds[2];

	open_twice(fds);
	CHECK_EQ(close(fds[1]), 0);
	memset(data, c, sizeof data);
	CHECK_EQ(write(fds[0], data, sizeof data), sizeof data);
	return fds[0];
}

static void *send_much(void *arg)
{
	off_t at = 0;

	(void)arg;
	return (void *)(long)hd_sendfile(pair[0], in, &at, MUCH, HD_FOREVER);
}

/* A file that is closed while the socket has no room is not sent any more, nor the next one that has its number. */
HD_WORKERS_TEST(close_ends_what_is_read_for_another_descriptor)
{
	static char data[MUCH];

	if (hd_is_simulated())
		SKIP("it has no sendfile");
	CHECK_EQ(hd_socketpair(AF_UNIX, SOCK_STREAM, pair), 0);
	in = file_of('a');
	hd_pid pid = spawned(hd_spawn(send_much, NULL));
	do
		CHECK_EQ(hd_sleep(HD_MS(1)), 0);
	while (hd__os_is_ready(pair[0], true) || info_on(pid).why != HD_WAIT_FD_WRITE);
	CHECK_EQ(hd_close(in), 0);
	CHECK_EQ(file_of('b'), in);
	ssize_t n = hd_read(pair[1], data, sizeof data, HD_FOREVER), all = 0, sent;
	for (; n > 0; n = hd_read(pair[1], data, sizeof data, hd_after(HD_MS(20)))) {
		all += n;
		CHECK(memchr(data, 'b', (size_t)n) == NULL);
	}
	CHECK_EQ(n, -ETIMEDOUT);
	sent = answer_of(pid);
	CHECK_EQ(sent, all);
	CHECK(sent > 0 && sent < MUCH);
	CHECK_EQ(hd_close(in), 0);
	CHECK_EQ(hd_close(pair[0]), 0);
	CHECK_EQ(hd_close(pair[1]), 0);
	(void)workers;
}

/* ---- the end of the runtime ---- */

static void *lock_deaf(void *fd)
{
	CHECK_EQ(hd_set_cancel_state(HD_CANCEL_DISABLED), HD_CANCEL_ENABLED);
	CHECK_EQ(hd_flock(*(int *)fd, LOCK_EX, HD_FOREVER), -EBADF);
	return NULL;
}

static void *write_deaf(void *fd)
{
	static char much[1 << 20];

	CHECK_EQ(hd_set_cancel_state(HD_CANCEL_DISABLED), HD_CANCEL_ENABLED);
	CHECK_EQ(hd_write(*(int *)fd, much, sizeof much, HD_FOREVER), -EBADF);
	return NULL;
}

static int strange[2];

static void *close_strange(void *arg)
{
	while (!value_of(&closed))
		usleep(100);
	usleep(100000);
	CHECK_EQ(hd_close(strange[1]), 0);
	return arg;
}

/* The process that waits for the lock never has the worker again. */
static void *end_over_a_call(void *entry)
{
	hd_pid pid = spawned(hd_spawn((hd_entry)entry, &strange[1]));

	while (info_on(pid).state != HD_WAITING)
		CHECK_EQ(hd_sleep(HD_US(50)), 0);
	CHECK_EQ(hd_shutdown(3), 0);
	set(&closed, 1);
	CHECK_EQ(hd_set_cancel_state(HD_CANCEL_DISABLED), HD_CANCEL_ENABLED);
	CHECK_EQ(hd_set_priority(hd_self(), 60), 0);
	for (;;)
		hd_checkpoint();
	return NULL;
}

/* A plain thread that is in hd_close when the runtime ends over a process that uses the descriptor comes out of it, and so does hd_run. */
static void close_at_the_end(hd_entry entry)
{
	pthread_t closer;

	set(&closed, 0);
	CHECK_EQ(pthread_create(&closer, NULL, close_strange, NULL), 0);
	CHECK_EQ(run_with_workers(1, end_over_a_call, (void *)entry), 3);
	CHECK_EQ(pthread_join(closer, NULL), 0);
}

HD_TEST(close_ends_with_the_runtime)
{
	if (hd_is_simulated())
		SKIP("it has no locks");
	open_twice(strange);
	CHECK_EQ(flock(strange[0], LOCK_EX), 0);
	close_at_the_end(lock_deaf);
	CHECK_EQ(pipe(strange), 0);
	close_at_the_end(write_deaf);
}
