/* What a review of the io room has found: kernel answers that mean something else than they seem to, and races around the end of a
 * descriptor. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <heddle.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

#include "io/common.h"

static void run_first(hd_entry first)
{
	WORKERS(w) run_on(w, first, NULL);
}

/* ---- connections that do not come about ---- */

/* A listening socket of the loopback net whose backlog is full: a further connection stays under way. */
static int full_listener(struct sockaddr_in *at, int fillers[4])
{
	socklen_t size = sizeof *at;
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	*at = (struct sockaddr_in){ .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	CHECK_EQ(bind(fd, (struct sockaddr *)at, sizeof *at), 0);
	CHECK_EQ(listen(fd, 0), 0);
	CHECK_EQ(getsockname(fd, (struct sockaddr *)at, &size), 0);
	for (int i = 0; i < 4; i++) {
		fillers[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
		(void)!connect(fillers[i], (struct sockaddr *)at, sizeof *at);
	}
	return fd;
}

static void *connect_in_vain(void *arg)
{
	struct sockaddr_in at;
	int fillers[4], listener = full_listener(&at, fillers), fd = hd_socket(AF_INET, SOCK_STREAM, 0);

	CHECK_EQ(hd_connect(fd, (struct sockaddr *)&at, sizeof at, hd_after(HD_MS(50))), -ETIMEDOUT);
	/* It is under way still: a second call waits for the same. */
	CHECK_EQ(hd_connect(fd, (struct sockaddr *)&at, sizeof at, hd_after(HD_MS(50))), -ETIMEDOUT);
	CHECK_EQ(hd_close(fd), 0);
	for (int i = 0; i < 4; i++)
		close(fillers[i]);
	close(listener);
	return arg;
}

HD_TEST(net_connect_that_is_under_way_at_its_deadline_has_not_succeeded)
{
	if (!hd_is_simulated())
		run_first(connect_in_vain);
}

/* ---- a Unix listener whose backlog is full ---- */

static void *connect_to(void *arg)
{
	int fd = hd_socket(AF_UNIX, SOCK_STREAM, 0);

	CHECK_EQ(hd_connect(fd, arg, sizeof(struct sockaddr_un), HD_FOREVER), 0);
	CHECK_EQ(hd_write(fd, "x", 1, HD_FOREVER), 1);
	CHECK_EQ(hd_close(fd), 0);
	return NULL;
}

static void *connect_when_there_is_room(void *arg)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	hd_pid pids[4];
	char byte;
	int listener = hd_socket(AF_UNIX, SOCK_STREAM, 0), one;

	memcpy(at.sun_path + 1, &(int[2]){ getpid(), listener }, 2 * sizeof(int));
	CHECK_EQ(bind(listener, (struct sockaddr *)&at, sizeof at), 0);
	CHECK_EQ(listen(listener, 0), 0);
	for (int i = 0; i < 4; i++)
		pids[i] = spawned(connect_to, &at);
	CHECK_EQ(hd_sleep(HD_MS(5)), 0);
	for (int i = 0; i < 4; i++) {
		one = hd_accept(listener, NULL, NULL, 0, HD_FOREVER);
		CHECK(one >= 0);
		CHECK_EQ(hd_read(one, &byte, 1, HD_FOREVER), 1);
		CHECK_EQ(hd_close(one), 0);
	}
	for (int i = 0; i < 4; i++)
		joined(pids[i]);
	CHECK_EQ(hd_close(listener), 0);
	return arg;
}

HD_TEST(net_connect_waits_for_room_at_a_unix_listener)
{
	if (!hd_is_simulated())
		run_first(connect_when_there_is_room);
}

/* ---- a vector of many parts ---- */

#define PARTS 60 /* of one byte, each behind an empty one: as many as heddle goes on with are less than a pipe holds */

static void *write_parts(void *arg)
{
	static char data[PARTS];
	struct iovec parts[2 * PARTS] = { { NULL, 0 } };
	int fd = *(int *)arg;
	static char full[65536 - 10];

	for (int i = 0; i < PARTS; i++) {
		data[i] = (char)i;
		parts[2 * i + 1] = (struct iovec){ data + i, 1 };
	}
	if (!hd_is_simulated()) /* there is little room */
		CHECK_EQ(hd_write(fd, full, sizeof full, HD_FOREVER), sizeof full);
	CHECK_EQ(hd_writev(fd, parts, 2 * PARTS, HD_FOREVER), PARTS);
	return NULL;
}

static void *read_parts(void *arg)
{
	static char data[65536];
	int pair[2];

	CHECK_EQ(hd_pipe(pair), 0);
	hd_pid pid = spawned(write_parts, &pair[1]);
	if (!hd_is_simulated()) {
		when_it_waits(pid, HD_WAIT_FD_WRITE);
		CHECK_EQ(hd_read_full(pair[0], data, 65536 - 10, HD_FOREVER), 65536 - 10);
	}
	CHECK_EQ(hd_read_full(pair[0], data, PARTS, HD_FOREVER), PARTS);
	for (int i = 0; i < PARTS; i++)
		CHECK_EQ(data[i], (char)i);
	joined(pid);
	CHECK_EQ(hd_close(pair[0]), 0);
	CHECK_EQ(hd_close(pair[1]), 0);
	return arg;
}

HD_TEST(io_vector_of_many_parts_is_written_whole)
{
	run_first(read_parts);
}

/* ---- nothing to read ---- */

static void *read_nothing(void *arg)
{
	int pair[2];
	char byte;

	CHECK_EQ(hd_socketpair(AF_UNIX, SOCK_STREAM, pair), 0);
	CHECK_EQ(hd_read(pair[0], &byte, 0, HD_FOREVER), 0);
	CHECK_EQ(hd_readv(pair[0], NULL, 0, HD_FOREVER), 0);
	CHECK_EQ(hd_writev(pair[0], NULL, 0, HD_FOREVER), 0);
	CHECK_EQ(hd_close(pair[0]), 0);
	CHECK_EQ(hd_close(pair[1]), 0);
	CHECK_EQ(hd_pipe(pair), 0);
	CHECK_EQ(hd_read(pair[0], &byte, 0, HD_FOREVER), 0);
	CHECK_EQ(hd_readv(pair[0], NULL, 0, HD_FOREVER), 0);
	CHECK_EQ(hd_writev(pair[1], NULL, 0, HD_FOREVER), 0);
	CHECK_EQ(hd_close(pair[0]), 0);
	CHECK_EQ(hd_close(pair[1]), 0);
	return arg;
}

HD_TEST(io_reading_no_bytes_does_not_wait)
{
	run_first(read_nothing);
}

/* ---- peeking ---- */

static void *peek_all(void *arg)
{
	int pair[2];
	char data[10];

	CHECK_EQ(hd_socketpair(AF_UNIX, SOCK_STREAM, pair), 0);
	CHECK_EQ(hd_write(pair[1], "abcde", 5, HD_FOREVER), 5);
	CHECK_EQ(hd_sock_recv(pair[0], data, 10, MSG_PEEK | MSG_WAITALL, hd_after(HD_MS(20))), 5);
	CHECK_EQ(memcmp(data, "abcde", 5), 0);
	CHECK_EQ(hd_close(pair[0]), 0);
	CHECK_EQ(hd_close(pair[1]), 0);
	return arg;
}

HD_TEST(net_peeking_for_all_tells_no_byte_twice)
{
	if (!hd_is_simulated()) /* it knows no flags */
		run_first(peek_all);
}

/* ---- -EAGAIN that says nothing of the flow ---- */

static int udp(struct sockaddr_in *at)
{
	int fd = hd_socket(AF_INET, SOCK_DGRAM, 0);

	*at = (struct sockaddr_in){ .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	CHECK_EQ(bind(fd, (struct sockaddr *)at, sizeof *at), 0);
	CHECK_EQ(getsockname(fd, (struct sockaddr *)at, &(socklen_t){ sizeof *at }), 0);
	return fd;
}

static void *ask_for_errors(void *arg)
{
	struct sockaddr_in at;
	int fd = udp(&at);
	char byte;

	CHECK_EQ(hd_read(fd, &byte, 1, hd_after(HD_MS(1))), -ETIMEDOUT); /* it is watched */
	for (int i = 0; i < 2; i++)
		CHECK_EQ(hd_sock_sendto(fd, &"ab"[i], 1, 0, (struct sockaddr *)&at, sizeof at, HD_FOREVER), 1);
	CHECK_EQ(hd_read(fd, &byte, 1, HD_FOREVER), 1);
	CHECK_EQ(hd_sleep(HD_MS(5)), 0); /* what was said of it is heard */
	CHECK_EQ(hd_sock_recv(fd, &byte, 1, MSG_ERRQUEUE | MSG_DONTWAIT, HD_FOREVER), -EAGAIN);
	CHECK_EQ(hd_read(fd, &byte, 1, HD_FOREVER), 1);
	CHECK_EQ(byte, 'b');
	CHECK_EQ(hd_close(fd), 0);
	return arg;
}

HD_TEST(net_empty_error_queue_does_not_hide_data)
{
	if (!hd_is_simulated())
		run_first(ask_for_errors);
}

/* ---- the end of a descriptor ---- */

static void *read_once(void *arg)
{
	char byte;

	CHECK_EQ(hd_read(*(int *)arg, &byte, 1, HD_FOREVER), -EBADF);
	return NULL;
}

static void *poll_once(void *arg)
{
	struct pollfd p = { .fd = *(int *)arg, .events = POLLIN };

	CHECK_EQ(hd_fd_poll(&p, 1, HD_FOREVER), 1);
	CHECK_EQ(p.revents, POLLNVAL);
	return NULL;
}

static void *close_it(void *arg)
{
	CHECK_EQ(hd_close(*(int *)arg), 0);
	return NULL;
}

/* A pipe whose first number is not given out again as soon as it is closed: a worker may open its set at any time. */
static void high_pipe(int pair[2])
{
	CHECK_EQ(hd_pipe(pair), 0);
	if (!hd_is_simulated()) {
		int high = fcntl(pair[0], F_DUPFD, 500);
		CHECK(high >= 500);
		CHECK_EQ(hd_close(pair[0]), 0);
		pair[0] = high;
	}
}

static void *close_under_beginners(void *arg)
{
	int rounds = hd_is_simulated() ? 2 : hd_scaled(2000);

	for (int i = 0; i < rounds; i++) {
		int pair[2];
		high_pipe(pair);
		hd_pid pids[3] = { spawned(close_it, &pair[0]), spawned(read_once, &pair[0]), spawned(poll_once, &pair[0]) };
		for (int k = 0; k < 3; k++)
			joined(pids[k]);
		CHECK_EQ(hd_close(pair[1]), 0);
	}
	return arg;
}

HD_TEST(io_close_ends_calls_that_begin_meanwhile)
{
	run_first(close_under_beginners);
}

/* ---- a lock, and a close ---- */

static void *lock_and_read(void *arg)
{
	char byte;
	int fd = *(int *)arg, err = hd_fd_lock(fd, HD_FD_READING, HD_FOREVER);

	CHECK(err == 0 || err == -EBADF);
	CHECK_EQ(hd_read(fd, &byte, 1, HD_FOREVER), -EBADF);
	if (err == 0)
		CHECK_EQ(hd_fd_unlock(fd, HD_FD_READING), -EPERM);
	return NULL;
}

static void *close_under_lock(void *arg)
{
	int rounds = hd_is_simulated() ? 2 : hd_scaled(2000);

	for (int i = 0; i < rounds; i++) {
		int pair[2];
		high_pipe(pair);
		hd_pid holder = spawned(lock_and_read, &pair[0]);
		when_it_waits(holder, HD_WAIT_FD_READ);
		hd_pid pids[7] = { spawned(close_it, &pair[0]) };
		for (int k = 1; k < 7; k++)
			pids[k] = spawned(read_once, &pair[0]);
		for (int k = 0; k < 7; k++)
			joined(pids[k]);
		joined(holder);
		CHECK_EQ(hd_close(pair[1]), 0);
	}
	return arg;
}

HD_TEST(fd_lock_of_a_reader_is_taken_away_by_close)
{
	run_first(close_under_lock);
}

/* ---- a number that is the same open file again ---- */

static void *read_byte(void *arg)
{
	char byte;

	CHECK_EQ(hd_read(*(int *)arg, &byte, 1, HD_FOREVER), 1);
	return NULL;
}

static void *read_copy_again(void *arg)
{
	int pair[2], copy;
	char byte;

	CHECK_EQ(pipe(pair), 0);
	CHECK_EQ(hd_read(pair[0], &byte, 1, hd_after(HD_MS(1))), -ETIMEDOUT); /* it is watched */
	copy = dup(pair[0]);
	close(pair[0]);
	CHECK_EQ(hd_fd_forget(pair[0]), 0);
	CHECK_EQ(dup2(copy, pair[0]), pair[0]);
	hd_pid pid = spawned(read_byte, &pair[0]);
	when_it_waits(pid, HD_WAIT_FD_READ);
	CHECK_EQ(hd_write(pair[1], "x", 1, HD_FOREVER), 1);
	joined(pid);
	CHECK_EQ(hd_close(pair[0]), 0);
	CHECK_EQ(hd_close(pair[1]), 0);
	close(copy);
	return arg;
}

HD_TEST(io_number_of_the_same_open_file_is_heard_of)
{
	if (!hd_is_simulated())
		run_first(read_copy_again);
}

/* ---- all of it, in one turn ---- */

static void *write_until_soon(void *arg)
{
	static char data[100000];
	int *fds = arg;

	memset(data, 'a', sizeof data);
	int err = hd_write_all(fds[1], data, hd_is_simulated() ? 40 : sizeof data, hd_after(HD_US(300)));
	CHECK(err == 0 || err == -ETIMEDOUT || err == -EBADF);
	return NULL;
}

static void *write_other(void *arg)
{
	int *fds = arg;

	CHECK_EQ(hd_write(fds[1], "b", 1, HD_FOREVER), 1);
	CHECK_EQ(hd_sleep(HD_US(200)), 0);
	CHECK_EQ(hd_close(fds[1]), 0);
	return NULL;
}

static void *write_all_or_not(void *arg)
{
	static char data[30000];
	int rounds = hd_is_simulated() ? 1 : 300;

	for (int i = 0; i < rounds; i++) {
		int pair[2];
		ssize_t n;
		bool begun = false, other = false, mixed = false;

		CHECK_EQ(hd_pipe(pair), 0);
		hd_pid writer = spawned(write_until_soon, pair);
		struct hd_process_info info = { .state = HD_READY };
		for (int k = 0; k < 1000 && info.state != HD_WAITING; k++) {
			hd_yield();
			CHECK_EQ(hd_process_info(writer, &info), 0);
		}
		hd_pid second = spawned(write_other, pair);
		CHECK_EQ(hd_sleep(HD_US(300)), 0);
		while ((n = hd_read(pair[0], data, sizeof data, HD_FOREVER)) > 0)
			for (ssize_t k = 0; k < n; k++) {
				mixed |= other && data[k] == 'a';
				begun |= data[k] == 'a';
				other |= begun && data[k] == 'b'; /* on a busy machine it may be the first */
			}
		joined(second);
		joined(writer);
		CHECK(!mixed);
		CHECK_EQ(hd_close(pair[0]), 0);
	}
	return arg;
}

HD_TEST(io_write_all_takes_one_turn)
{
	run_first(write_all_or_not);
}

/* ---- a plain thread closes what a process is abandoned with ---- */

static struct {
	int pair[2];
	int go; /* atomic */
	pthread_t thread;
} last;

static void *close_on_thread(void *arg)
{
	while (!__atomic_load_n(&last.go, __ATOMIC_ACQUIRE))
		sched_yield();
	CHECK_EQ(hd_close(last.pair[0]), 0);
	return arg;
}

/* The reader is woken, and has its turn still, but never runs again: there is one worker, and something more urgent on it. */
static void *end_above_a_reader(void *arg)
{
	CHECK_EQ(hd_pipe(last.pair), 0);
	hd_pid reader = spawned(read_once, &last.pair[0]);
	struct hd_process_info info = when_it_waits(reader, HD_WAIT_FD_READ);
	CHECK(hd_set_priority(hd_self(), HD_PRIORITY_TIMING) >= 0);
	CHECK_EQ(pthread_create(&last.thread, NULL, close_on_thread, NULL), 0);
	__atomic_store_n(&last.go, 1, __ATOMIC_RELEASE);
	do {
		hd_yield();
		CHECK_EQ(hd_process_info(reader, &info), 0);
	} while (info.state == HD_WAITING);
	CHECK_EQ(hd_shutdown(3), 0);
	for (;;)
		hd_yield();
	return arg;
}

HD_TEST(io_close_on_a_thread_outlasts_an_abandoned_reader)
{
	struct hd_config config = { .workers = 1, .fixed = true };

	if (hd_is_simulated())
		return;
	CHECK_EQ(hd_run(&config, end_above_a_reader, NULL), 3);
	CHECK_EQ(pthread_join(last.thread, NULL), 0);
	close(last.pair[1]);
}

/* ---- what the kernel has, but has not said yet ---- */

static void *select_until_soon(void *arg)
{
	struct hd_case c = hd_case_fd(*(int *)arg, POLLIN, NULL);

	CHECK_EQ(hd_select(&c, 1, hd_after(HD_MS(200))), 0);
	CHECK_EQ(c.err, 0);
	return NULL;
}

static void *write_late(void *arg)
{
	int pair[2];

	CHECK_EQ(hd_pipe(pair), 0);
	hd_pid pid = spawned(select_until_soon, &pair[0]);
	when_it_waits(pid, HD_WAIT_SELECT);
	hd_time late = hd_after(HD_MS(210));
	while (hd_now() < late)
		;
	CHECK_EQ(write(pair[1], "x", 1), 1); /* the deadline and the byte are found together */
	joined(pid);
	CHECK_EQ(hd_close(pair[0]), 0);
	CHECK_EQ(hd_close(pair[1]), 0);
	return arg;
}

HD_TEST(ready_select_takes_what_is_there_at_its_deadline)
{
	if (!hd_is_simulated())
		run_on(1, write_late, NULL);
}

/* ---- what hd_accept answers ---- */

static void *connect_inet(void *arg)
{
	int fd = hd_socket(AF_INET, SOCK_STREAM, 0);

	CHECK_EQ(hd_connect(fd, arg, sizeof(struct sockaddr_in), HD_FOREVER), 0);
	CHECK_EQ(hd_close(fd), 0);
	return NULL;
}

static void *accept_one(void *arg)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int listener = hd_socket(AF_INET, SOCK_STREAM, 0);

	CHECK_EQ(bind(listener, (struct sockaddr *)&at, sizeof at), 0);
	CHECK_EQ(listen(listener, 1), 0);
	CHECK_EQ(getsockname(listener, (struct sockaddr *)&at, &(socklen_t){ sizeof at }), 0);
	hd_pid pid = spawned(connect_inet, &at);
	int fd = hd_accept(listener, NULL, NULL, 0, HD_FOREVER);
	CHECK(fd >= 0);
	CHECK_EQ(fcntl(fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
	CHECK(fcntl(fd, F_GETFL) & O_NONBLOCK);
	joined(pid);
	CHECK_EQ(hd_close(fd), 0);
	CHECK_EQ(hd_close(listener), 0);
	return arg;
}

HD_TEST(net_accepted_connections_are_close_on_exec)
{
	if (!hd_is_simulated())
		run_first(accept_one);
}

/* ---- a receiver that is full, of a socket that is not ---- */

static struct sockaddr_un full_at;

static void *send_one(void *arg)
{
	int fd = hd_socket(AF_UNIX, SOCK_DGRAM, 0);

	CHECK_EQ(hd_sock_sendto(fd, "x", 1, 0, (struct sockaddr *)&full_at, sizeof full_at, HD_FOREVER), 1);
	CHECK_EQ(hd_close(fd), 0);
	return arg;
}

static void *send_to_full(void *arg)
{
	int to = hd_socket(AF_UNIX, SOCK_DGRAM, 0), fd = hd_socket(AF_UNIX, SOCK_DGRAM, 0);
	char byte;

	full_at = (struct sockaddr_un){ .sun_family = AF_UNIX };
	memcpy(full_at.sun_path + 1, &(int[2]){ getpid(), to }, 2 * sizeof(int));
	CHECK_EQ(bind(to, (struct sockaddr *)&full_at, sizeof full_at), 0);
	while (hd_sock_sendto(fd, "x", 1, MSG_DONTWAIT, (struct sockaddr *)&full_at, sizeof full_at, HD_FOREVER) == 1)
		;
	hd_pid pid = spawned(send_one, NULL);
	when_it_waits(pid, HD_WAIT_SLEEP); /* not for its own socket, which is ready */
	CHECK_EQ(hd_read(to, &byte, 1, HD_FOREVER), 1);
	joined(pid);
	CHECK_EQ(hd_close(to), 0);
	CHECK_EQ(hd_close(fd), 0);
	return arg;
}

HD_TEST(net_wait_for_a_full_receiver_is_no_loop)
{
	if (!hd_is_simulated())
		run_first(send_to_full);
}

/* ---- a listener that other programs share: its O_NONBLOCK stays as it is ---- */

static void *connect_once(void *arg)
{
	int fd = hd_socket(AF_INET, SOCK_STREAM, 0);

	CHECK_EQ(hd_connect(fd, arg, sizeof(struct sockaddr_in), HD_FOREVER), 0);
	return (void *)(intptr_t)fd;
}

static void *accept_at_blocking_listener(void *arg)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t size = sizeof at;
	int listener = socket(AF_INET, SOCK_STREAM, 0), flags = fcntl(listener, F_GETFL);

	CHECK(bind(listener, (struct sockaddr *)&at, size) == 0 && listen(listener, 8) == 0);
	CHECK_EQ(getsockname(listener, (struct sockaddr *)&at, &size), 0);
	CHECK_EQ(hd_accept(listener, NULL, NULL, 0, 0), -ETIMEDOUT);
	CHECK_EQ(hd_accept(listener, NULL, NULL, 0, hd_after(HD_MS(2))), -ETIMEDOUT);
	for (int i = 0; i < 5; i++) {
		hd_pid pid = spawned(connect_once, &at);
		int here = hd_accept(listener, NULL, NULL, 0, HD_FOREVER), there = (int)(intptr_t)joined(pid);
		char c;
		CHECK(here >= 0);
		CHECK_EQ(hd_write(there, "x", 1, HD_FOREVER), 1);
		CHECK_EQ(hd_read(here, &c, 1, HD_FOREVER), 1);
		CHECK_EQ(fcntl(listener, F_GETFL), flags);
		CHECK_EQ(fcntl(here, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
		hd_close(here);
		hd_close(there);
	}
	CHECK_EQ(hd_close(listener), 0);
	return arg;
}

HD_TEST(net_accept_leaves_a_blocking_listener_as_it_is)
{
	if (hd_is_simulated())
		SKIP("there are no connections");
	WORKERS(w) run_on(w, accept_at_blocking_listener, NULL);
}

/* ---- a number that is given out again in the moment of its end ---- */

static void *use_own_pipes(void *arg)
{
	for (int i = 0; i < hd_scaled(3000); i++) {
		int ends[2];
		char c;
		struct pollfd p = { .events = POLLIN };
		CHECK_EQ(pipe(ends), 0); /* not by heddle, which therefore does not hear of their birth */
		CHECK_EQ(hd_write(ends[1], "x", 1, HD_FOREVER), 1);
		p.fd = ends[0];
		CHECK_EQ(hd_fd_poll(&p, 1, HD_FOREVER), 1);
		CHECK_EQ(p.revents, POLLIN);
		CHECK_EQ(hd_read(ends[0], &c, 1, HD_FOREVER), 1);
		CHECK_EQ(hd_fd_lock(ends[0], HD_FD_READING, HD_FOREVER), 0);
		CHECK_EQ(hd_close(ends[0]), 0);
		CHECK_EQ(hd_close(ends[1]), 0);
		CHECK_EQ(pipe(ends), 0);
		CHECK_EQ(hd_close(ends[0]), 0);
		CHECK_EQ(hd_close(ends[1]), 0);
	}
	return arg;
}

static void *use_pipes_together(void *arg)
{
	hd_pid pids[8];

	for (int i = 0; i < 8; i++)
		pids[i] = spawned(use_own_pipes, NULL);
	for (int i = 0; i < 8; i++)
		joined(pids[i]);
	return arg;
}

HD_TEST(close_spoils_no_descriptor_that_has_the_number_next)
{
	if (hd_is_simulated())
		SKIP("all descriptors are heddle's");
	WORKERS(w) run_on(w, use_pipes_together, NULL);
}
