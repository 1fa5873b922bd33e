/* Reading and writing descriptors: counts, turns, deadlines, cancels, the end of a descriptor; on the simulated runtime too. */
#include <errno.h>
#include <heddle.h>
#include <string.h>
#include <unistd.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "base/atomic.h"
#include "io/common.h"

/* ---- a stream arrives as it was sent, whatever the sizes ---- */

struct way {
	int fd;
	size_t total;
	unsigned seed;
};

static unsigned char byte_at(size_t i)
{
	return (unsigned char)(i * 31 + (i >> 8));
}

static void *send_stream(void *arg)
{
	struct way *way = arg;
	unsigned char data[64];

	for (size_t sent = 0; sent < way->total;) {
		size_t n = 1 + next_random(&way->seed) % sizeof data;
		if (n > way->total - sent)
			n = way->total - sent;
		for (size_t i = 0; i < n; i++)
			data[i] = byte_at(sent + i);
		struct iovec parts[2] = { { data, n / 3 }, { data + n / 3, n - n / 3 } };
		CHECK_EQ(way->seed & 1 ? hd_write(way->fd, data, n, HD_FOREVER) : hd_writev(way->fd, parts, 2, HD_FOREVER), n);
		sent += n;
	}
	CHECK_EQ(hd_close(way->fd), 0);
	return NULL;
}

static void *receive_stream(void *arg)
{
	struct way *way = arg;
	unsigned char data[64];
	size_t got = 0;
	ssize_t n;

	for (;;) {
		size_t most = 1 + next_random(&way->seed) % sizeof data;
		struct iovec parts[2] = { { data, most / 2 }, { data + most / 2, most - most / 2 } };
		n = way->seed & 1 ? hd_read(way->fd, data, most, HD_FOREVER) : hd_readv(way->fd, parts, 2, HD_FOREVER);
		CHECK(n >= 0 && n <= (ssize_t)most);
		if (n == 0)
			break;
		for (ssize_t i = 0; i < n; i++)
			CHECK_EQ(data[i], byte_at(got + (size_t)i));
		got += (size_t)n;
	}
	CHECK_EQ(got, way->total);
	CHECK_EQ(hd_close(way->fd), 0);
	return NULL;
}

#define STREAMS 4

static void *send_streams(void *arg)
{
	bool sockets = arg != NULL;
	struct way ways[2 * STREAMS];
	hd_pid pids[2 * STREAMS];

	for (unsigned i = 0; i < STREAMS; i++) {
		int pair[2];
		CHECK_EQ(sockets ? hd_socketpair(AF_UNIX, SOCK_STREAM, pair) : hd_pipe(pair), 0);
		size_t total = hd_is_simulated() ? 100 : 100000;
		ways[2 * i] = (struct way){ pair[0], total, 17 * i };
		ways[2 * i + 1] = (struct way){ pair[1], total, 23 * i + 1 };
	}
	for (unsigned i = 0; i < STREAMS; i++) {
		pids[2 * i] = spawned(receive_stream, &ways[2 * i]);
		pids[2 * i + 1] = spawned(send_stream, &ways[2 * i + 1]);
	}
	for (unsigned i = 0; i < 2 * STREAMS; i++)
		joined(pids[i]);
	return NULL;
}

HD_TEST(io_pipes_carry_streams_whole)
{
	WORKERS(w) run_on(w, send_streams, NULL);
}

HD_TEST(io_sockets_carry_streams_whole)
{
	WORKERS(w) run_on(w, send_streams, &(bool){ true });
}

/* ---- what one call writes is not mixed with what another one writes ---- */

#define MESSAGE 40 /* more than a simulated pipe holds */
#define WRITERS 6

static void *write_message(void *arg)
{
	int fd = *(int *)arg;
	char data[MESSAGE];
	hd_pid me = hd_self();

	memset(data, (int)('a' + me % 26), sizeof data);
	CHECK_EQ(hd_write(fd, data, sizeof data, HD_FOREVER), sizeof data);
	return NULL;
}

static void *write_messages(void *arg)
{
	int pair[2];
	hd_pid pids[WRITERS];
	char data[MESSAGE];

	(void)arg;
	CHECK_EQ(hd_pipe(pair), 0);
	for (int i = 0; i < WRITERS; i++)
		pids[i] = spawned(write_message, &pair[1]);
	for (int i = 0; i < WRITERS; i++) {
		CHECK_EQ(hd_read_full(pair[0], data, sizeof data, HD_FOREVER), sizeof data);
		for (int k = 1; k < MESSAGE; k++)
			CHECK_EQ(data[k], data[0]);
	}
	for (int i = 0; i < WRITERS; i++)
		joined(pids[i]);
	CHECK_EQ(hd_close(pair[0]), 0);
	CHECK_EQ(hd_close(pair[1]), 0);
	return NULL;
}

HD_TEST(io_messages_are_not_mixed)
{
	WORKERS(w) run_on(w, write_messages, NULL);
}

/* Readers are served in the order in which they came. */
static void *read_one(void *arg)
{
	char c = 0;
	CHECK_EQ(hd_read(*(int *)arg, &c, 1, HD_FOREVER), 1);
	return (void *)(intptr_t)c;
}

static void *read_in_turn(void *arg)
{
	int pair[2];
	hd_pid pids[3];

	(void)arg;
	CHECK_EQ(hd_pipe(pair), 0);
	for (int i = 0; i < 3; i++) {
		pids[i] = spawned(read_one, &pair[0]);
		struct hd_process_info info;
		do {
			hd_yield();
			CHECK_EQ(hd_process_info(pids[i], &info), 0);
		} while (info.state != HD_WAITING);
		CHECK_EQ(info.why, i == 0 ? HD_WAIT_FD_READ : HD_WAIT_FD_READ_TURN);
		CHECK_EQ(info.fd, pair[0]);
		if (i > 0)
			CHECK_EQ(info.holder, pids[0]);
	}
	CHECK_EQ(hd_write(pair[1], "abc", 3, HD_FOREVER), 3);
	for (int i = 0; i < 3; i++)
		CHECK_EQ((intptr_t)joined(pids[i]), 'a' + i);
	CHECK_EQ(hd_close(pair[0]), 0);
	CHECK_EQ(hd_close(pair[1]), 0);
	return NULL;
}

HD_TEST(io_readers_take_turns)
{
	WORKERS(w) run_on(w, read_in_turn, NULL);
}

/* ---- deadlines, cancels ---- */

static void *read_in_vain(void *arg)
{
	int pair[2];
	char c;

	(void)arg;
	CHECK_EQ(hd_pipe(pair), 0);
	CHECK_EQ(hd_read(pair[0], &c, 1, 0), -ETIMEDOUT);
	hd_time end = hd_after(HD_MS(2));
	CHECK_EQ(hd_read(pair[0], &c, 1, end), -ETIMEDOUT);
	CHECK(hd_now() >= end);
	CHECK_EQ(hd_read(pair[0], &c, 1, HD_MS(2)), -EINVAL);
	CHECK_EQ(hd_write(pair[1], "x", 1, 0), 1);
	CHECK_EQ(hd_read(pair[0], &c, 1, 0), 1);
	CHECK_EQ(hd_close(pair[1]), 0);
	CHECK_EQ(hd_read(pair[0], &c, 1, HD_FOREVER), 0);
	CHECK_EQ(hd_close(pair[0]), 0);
	CHECK_EQ(hd_read(pair[0], &c, 1, HD_FOREVER), -EBADF);
	CHECK_EQ(hd_read(-1, &c, 1, HD_FOREVER), -EBADF);
	CHECK_EQ(hd_close(pair[0]), -EBADF);
	return NULL;
}

HD_TEST(io_read_ends_at_its_deadline)
{
	WORKERS(w) run_on(w, read_in_vain, NULL);
}

/* A writer that is cancelled in the middle says how much it has written, and the next one goes on from there. */
struct writing {
	int fd;
	ssize_t answer, next;
};

#define MUCH 300000

static void *write_much(void *arg)
{
	static char data[MUCH];
	struct writing *w = arg;

	w->answer = hd_write(w->fd, data, sizeof data, HD_FOREVER);
	w->next = hd_write(w->fd, data, 1, HD_FOREVER);
	return NULL;
}

static void *cancel_writer(void *arg)
{
	int pair[2];
	struct hd_process_info info;

	(void)arg;
	CHECK_EQ(hd_pipe(pair), 0);
	struct writing w = { pair[1], 0, 0 };
	hd_pid pid = spawned(write_much, &w);
	do {
		hd_yield();
		CHECK_EQ(hd_process_info(pid, &info), 0);
	} while (info.why != HD_WAIT_FD_WRITE || info.state != HD_WAITING);
	CHECK_EQ(hd_cancel(pid), 0);
	joined(pid);
	CHECK(w.answer > 0 && w.answer < MUCH);
	CHECK_EQ(w.next, -ECANCELED);
	CHECK_EQ(hd_close(pair[1]), 0);
	ssize_t n, got = 0;
	char data[4096];
	while ((n = hd_read(pair[0], data, sizeof data, HD_FOREVER)) > 0)
		got += n;
	CHECK_EQ(got, w.answer);
	CHECK_EQ(hd_close(pair[0]), 0);
	return NULL;
}

HD_TEST(io_cancelled_write_says_how_much)
{
	WORKERS(w) run_on(w, cancel_writer, NULL);
}

/* Reads race against cancels, deadlines and the bytes: no byte is lost or read twice. */
#define RACERS 4
static struct race {
	int fds[2];
	int got[RACERS];
} race;

static void *race_for_byte(void *arg)
{
	char c;
	ssize_t n = hd_read(race.fds[0], &c, 1, hd_after(HD_US(100)));

	CHECK(n == 1 || n == -ETIMEDOUT || n == -ECANCELED);
	*(int *)arg = n == 1;
	return NULL;
}

static void *run_race(void *arg)
{
	hd_pid pids[RACERS];
	char rest[RACERS + 1];
	int sum = 0;

	(void)arg;
	CHECK_EQ(hd_pipe(race.fds), 0);
	for (int i = 0; i < RACERS; i++)
		pids[i] = spawned(race_for_byte, &race.got[i]);
	CHECK_EQ(hd_write(race.fds[1], "1", 1, HD_FOREVER), 1);
	ANY_ANSWER(hd_cancel(pids[1])); /* unless it has ended */
	hd_sleep(HD_US(100));
	CHECK_EQ(hd_write(race.fds[1], "23", 2, HD_FOREVER), 2);
	for (int i = 0; i < RACERS; i++) {
		joined(pids[i]);
		sum += race.got[i];
	}
	CHECK_EQ(hd_close(race.fds[1]), 0);
	ssize_t n = hd_read_full(race.fds[0], rest, sizeof rest, HD_FOREVER);
	CHECK_EQ(n + sum, 3);
	CHECK_EQ(hd_close(race.fds[0]), 0);
	return NULL;
}

HD_TEST(io_no_byte_is_lost_to_cancels_and_deadlines)
{
	WORKERS(w)
	for (int i = 0; i < 20; i++)
		run_on(w, run_race, NULL);
}

/* ---- the end of a descriptor ---- */

static void *read_until_closed(void *arg)
{
	char c;
	return (void *)(intptr_t)hd_read(*(int *)arg, &c, 1, HD_FOREVER);
}

static void *close_under_readers(void *arg)
{
	int pair[2], again[2];
	hd_pid pids[3];
	char c;

	(void)arg;
	CHECK_EQ(hd_pipe(pair), 0);
	for (int i = 0; i < 3; i++)
		pids[i] = spawned(read_until_closed, &pair[0]);
	hd_yield();
	int fd = pair[0];
	CHECK_EQ(hd_close(fd), 0);
	/* the number is another descriptor's now; the old readers have nothing to do with that */
	CHECK_EQ(hd_pipe(again), 0);
	CHECK_EQ(again[0], fd);
	CHECK_EQ(hd_write(again[1], "n", 1, HD_FOREVER), 1);
	int closed = 0, read = 0;
	for (int i = 0; i < 3; i++) {
		intptr_t answer = (intptr_t)joined(pids[i]);
		closed += answer == -EBADF;
		read += answer == 1; /* it had not begun when the number was reused */
	}
	CHECK_EQ(closed + read, 3);
	if (read == 0)
		CHECK_EQ(hd_read(again[0], &c, 1, HD_FOREVER), 1);
	CHECK_EQ(hd_close(again[0]), 0);
	CHECK_EQ(hd_close(again[1]), 0);
	CHECK_EQ(hd_close(pair[1]), 0);
	return NULL;
}

HD_TEST(io_close_wakes_readers)
{
	run_on(1, close_under_readers, NULL);
}

/* On several workers a reader may come late, and wait for the number's new owner. */
static void *close_under_waiters(void *arg)
{
	int pair[2];
	hd_pid pids[3];
	struct hd_process_info info;

	(void)arg;
	CHECK_EQ(hd_pipe(pair), 0);
	for (int i = 0; i < 3; i++) {
		pids[i] = spawned(read_until_closed, &pair[0]);
		do {
			hd_yield();
			CHECK_EQ(hd_process_info(pids[i], &info), 0);
		} while (info.state != HD_WAITING);
	}
	CHECK_EQ(hd_close(pair[0]), 0);
	for (int i = 0; i < 3; i++)
		CHECK_EQ((intptr_t)joined(pids[i]), -EBADF);
	CHECK_EQ(hd_close(pair[1]), 0);
	return NULL;
}

HD_TEST(io_close_wakes_all_that_wait)
{
	WORKERS(w)
	for (int i = 0; i < 10; i++)
		run_on(w, close_under_waiters, NULL);
}

/* The worker switches so often that it looks outside by itself, and the watcher leaves it alone; then a process computes, and only comes by
 * safe points. */
static void *yield_often(void *arg)
{
	(void)arg;
	for (int i = 0; i < hd_scaled(200000); i++)
		hd_yield();
	return NULL;
}

static bool heard;

static void *hear(void *fd)
{
	char c;

	CHECK_EQ(hd_read(*(int *)fd, &c, 1, HD_FOREVER), 1);
	st_rel(&heard, true);
	return NULL;
}

static void *compute_after_switches(void *arg)
{
	int pair[2];

	(void)arg;
	CHECK_EQ(hd_pipe(pair), 0);
	st_rel(&heard, false);
	hd_pid reader = hd_spawn_at(60, hear, &pair[0]);
	when_it_waits(reader, HD_WAIT_FD_READ);
	hd_pid other = spawned(yield_often, NULL);
	yield_often(NULL);
	joined(other);
	CHECK_EQ(write(pair[1], "x", 1), 1);
	while (!ld_acq(&heard))
		hd_checkpoint();
	joined(reader);
	CHECK_EQ(hd_close(pair[0]), 0);
	CHECK_EQ(hd_close(pair[1]), 0);
	return NULL;
}

HD_TEST(io_worker_that_computes_after_many_switches_hears_of_the_outside)
{
	if (!hd_is_simulated()) /* its pipes are not the kernel's */
		WORKERS(w)
	run_on(w, compute_after_switches, NULL);
}
