/* io/net.c - the plain calls on sockets: connecting, slow and broken peers, too many descriptors. */
#include "io/sockets.h"

#include "io/fd.h"

/* ---- connecting ---- */

/* "No error yet" is not a connection. */
HD_WORKERS_TEST(net_connect_ends_at_its_deadline)
{
	struct silent s;

	SKIP_IF_SIMULATED();
	silent_open(&s);
	int fd = checked(hd_socket(AF_INET, SOCK_STREAM, 0));
	CHECK_EQ(hd_connect(fd, (struct sockaddr *)&s.address, sizeof s.address, hd_after(HD_MS(5))), -ETIMEDOUT);
	CHECK_EQ(hd_close(fd), 0);
	fd = checked(hd_socket(AF_INET, SOCK_STREAM, 0));
	CHECK_EQ(hd_connect(fd, (struct sockaddr *)&s.address, sizeof s.address, 0), -ETIMEDOUT);
	CHECK_EQ(hd_close(fd), 0);
	silent_close(&s);
	(void)workers;
}

HD_WORKERS_TEST(net_connect_is_refused)
{
	char port[16];

	SKIP_IF_SIMULATED();
	CHECK_EQ(hd_close(listener_at("127.0.0.1", 1, port)), 0);
	struct sockaddr_in address = { .sin_family = AF_INET,
				       .sin_port = htons((uint16_t)atoi(port)),
				       .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = checked(hd_socket(AF_INET, SOCK_STREAM, 0));
	CHECK_EQ(hd_connect(fd, (struct sockaddr *)&address, sizeof address, HD_FOREVER), -ECONNREFUSED);
	CHECK_EQ(hd_close(fd), 0);
	(void)workers;
}

static char unix_path[64];

static void *connect_unix(void *arg)
{
	int fd = hd_unix_connect(unix_path, HD_FOREVER);

	if (fd >= 0)
		CHECK_EQ(hd_close(fd), 0);
	(void)arg;
	return (void *)(long)(fd < 0 ? fd : 0);
}

/* The kernel says of a Unix socket neither that it is under way nor when there is room. */
HD_WORKERS_TEST(net_unix_connect_waits_for_room)
{
	hd_pid pids[10];
	int fd, fillers = 0;

	SKIP_IF_SIMULATED();
	snprintf(unix_path, sizeof unix_path, "@heddle-test-%d", (int)getpid());
	int listener = checked(hd_unix_listen(unix_path, 1));
	for (; (fd = hd_unix_connect(unix_path, 0)) >= 0; fillers++)
		CHECK_EQ(hd_close(fd), 0);
	CHECK_EQ(fd, -ETIMEDOUT);
	CHECK_EQ(hd_unix_connect(unix_path, hd_after(HD_MS(1))), -ETIMEDOUT);
	for (int i = 0; i < 10; i++)
		pids[i] = await_why(spawned(hd_spawn(connect_unix, NULL)), HD_WAIT_SLEEP);
	CHECK_EQ(hd_cancel(pids[9]), 0);
	CHECK_EQ(result_of(pids[9]), -ECANCELED);
	for (int i = 0; i < fillers + 9; i++)
		CHECK_EQ(hd_close(checked(hd_accept(listener, NULL, NULL, 0, HD_FOREVER))), 0);
	for (int i = 0; i < 9; i++)
		CHECK_EQ(result_of(pids[i]), 0);
	CHECK_EQ(hd_close(listener), 0);
	(void)workers;
}

/* ---- peers that are slow, half gone, or gone ---- */

#define MUCH 1000000

/* The kernel keeps little of what is written to it. */
static void hold_little(int fd)
{
	CHECK_EQ(setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &(int){ 20000 }, sizeof(int)), 0);
}

static void *write_much(void *arg)
{
	static char data[MUCH];
	int fd = *(int *)arg;

	for (int i = 0; i < MUCH; i++)
		data[i] = (char)(i * 7 + i / 256);
	ssize_t n = hd_write(fd, data, sizeof data, HD_FOREVER);
	return (void *)n;
}

/* A reader that takes a little at a time gets all of it, and the writer waits for it. */
HD_WORKERS_TEST(net_slow_reader_gets_everything)
{
	int pair[2];
	char data[5000];
	long got = 0;
	ssize_t n;

	SKIP_IF_SIMULATED();
	tcp_pair(pair);
	hold_little(pair[1]);
	hd_pid writer = await_why(spawned(hd_spawn(write_much, &pair[1])), HD_WAIT_FD_WRITE);
	while (got < MUCH && (n = hd_read(pair[0], data, sizeof data, HD_FOREVER)) > 0) {
		for (ssize_t i = 0; i < n; i++, got++)
			CHECK_EQ(data[i], (char)(got * 7 + got / 256));
		if (got % 7 == 0)
			CHECK_EQ(hd_sleep(HD_US(10)), 0);
	}
	CHECK_EQ(got, MUCH);
	CHECK_EQ(result_of(writer), MUCH);
	CHECK_EQ(hd_close(pair[0]), 0);
	CHECK_EQ(hd_close(pair[1]), 0);
	(void)workers;
}

static void *read_to_the_end(void *arg)
{
	int fd = *(int *)arg;
	char data[64];
	ssize_t n, got = 0;

	while ((n = hd_read(fd, data, sizeof data, HD_FOREVER)) > 0)
		got += n;
	CHECK_EQ(n, 0);
	CHECK_EQ(hd_write_all(fd, "goodbye", 7, HD_FOREVER), 0);
	return (void *)got;
}

/* One direction ends, the other goes on. */
HD_WORKERS_TEST(net_half_closed_socket_still_answers)
{
	int pair[2];
	char data[8];

	SKIP_IF_SIMULATED();
	tcp_pair(pair);
	hd_pid reader = await_why(spawned(hd_spawn(read_to_the_end, &pair[0])), HD_WAIT_FD_READ);
	CHECK_EQ(hd_write_all(pair[1], "hello", 5, HD_FOREVER), 0);
	CHECK_EQ(shutdown(pair[1], SHUT_WR), 0);
	CHECK_EQ(hd_read_full(pair[1], data, 7, HD_FOREVER), 7);
	CHECK_EQ(hd_write(pair[1], "x", 1, HD_FOREVER), -EPIPE);
	CHECK_EQ(result_of(reader), 5);
	CHECK_EQ(hd_close(pair[0]), 0);
	CHECK_EQ(hd_read(pair[1], data, 1, HD_FOREVER), 0);
	CHECK_EQ(hd_close(pair[1]), 0);
	(void)workers;
}

/* The end came together with the last bytes, and the kernel has said both at once: it will not say it again. */
HD_WORKERS_TEST(net_end_is_seen_behind_data)
{
	int pair[2], err;
	char data[64];

	SKIP_IF_SIMULATED();
	tcp_pair(pair);
	CHECK_EQ(hd_read(pair[0], data, sizeof data, hd_after(HD_US(100))), -ETIMEDOUT); /* it is watched from now on */
	const struct hd__fd *f = hd__fd_get(hd__self()->sched, pair[0], &err);
	CHECK_EQ(hd_write_all(pair[1], "hello", 5, HD_FOREVER), 0);
	CHECK_EQ(hd_close(pair[1]), 0);
	while (!ld_acq(&f->hung_up))
		CHECK_EQ(hd_sleep(HD_US(50)), 0);
	CHECK_EQ(hd_read(pair[0], data, sizeof data, HD_FOREVER), 5);
	CHECK_EQ(hd_read(pair[0], data, sizeof data, HD_FOREVER), 0);
	CHECK_EQ(hd_close(pair[0]), 0);
	(void)workers;
}

static void *read_full(void *arg)
{
	static char data[1000];
	return (void *)(long)hd_read_full(*(int *)arg, data, sizeof data, HD_FOREVER);
}

/* The other side breaks the connection in the middle of a message: what has come is answered, then the error. */
HD_WORKERS_TEST(net_reset_in_mid_message_ends_reader_and_writer)
{
	const struct linger at_once = { .l_onoff = 1 };
	int pair[2], written;
	char c;

	SKIP_IF_SIMULATED();
	tcp_pair(pair);
	hd_pid reader = spawned(hd_spawn(read_full, &pair[0]));
	written = (int)hd_write(pair[1], "0123456789", 10, HD_FOREVER);
	CHECK_EQ(written, 10);
	await_why(reader, HD_WAIT_FD_READ);
	hold_little(pair[0]);
	hd_pid writer = await_why(spawned(hd_spawn(write_much, &pair[0])), HD_WAIT_FD_WRITE);
	CHECK_EQ(setsockopt(pair[1], SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once), 0);
	CHECK_EQ(hd_close(pair[1]), 0);
	long got = result_of(reader), sent = result_of(writer);
	CHECK(got == 10 || got == -ECONNRESET); /* the kernel may drop what was not read */
	CHECK(sent > 0 && sent < MUCH);
	ssize_t n = hd_read(pair[0], &c, 1, HD_FOREVER);
	CHECK(n == 0 || n == -ECONNRESET);
	CHECK_EQ(hd_write(pair[0], "x", 1, HD_FOREVER), -EPIPE);
	CHECK_EQ(hd_close(pair[0]), 0);
	(void)workers;
}

static void *close_it(void *fd)
{
	return (void *)(long)hd_close(*(int *)fd);
}

/* With SO_LINGER, close(2) waits until the other side has all. Here that reads only when another process gets to run, on the same worker. */
HD_WORKERS_TEST(net_close_that_lingers_lets_others_run)
{
	const struct linger long_enough = { .l_onoff = 1, .l_linger = 1000 };
	static char data[MUCH];
	int pair[2];

	SKIP_IF_SIMULATED();
	tcp_pair(pair);
	hold_little(pair[1]);
	CHECK_EQ(setsockopt(pair[1], SOL_SOCKET, SO_LINGER, &long_enough, sizeof long_enough), 0);
	ssize_t sent = hd_write(pair[1], data, sizeof data, hd_after(HD_MS(10)));
	CHECK(sent > 0 && sent < MUCH);
	hd_pid closer = await_why(spawned(hd_spawn(close_it, &pair[1])), HD_WAIT_FD_CLOSE);
	CHECK_EQ(hd_cancel(closer), 0); /* it is no cancellation point */
	CHECK_EQ(hd_read_full(pair[0], data, sizeof data, HD_FOREVER), sent);
	CHECK_EQ(result_of(closer), 0);
	CHECK_EQ(hd_close(pair[0]), 0);
	(void)workers;
}

/* ---- too many descriptors ---- */

static void *connect_and_ask(void *arg)
{
	char c = 0;
	int fd = hd_tcp_connect("127.0.0.1", arg, HD_FOREVER);

	if (fd < 0)
		return (void *)(long)fd;
	CHECK_EQ(hd_write_all(fd, "?", 1, HD_FOREVER), 0);
	CHECK_EQ(hd_read(fd, &c, 1, HD_FOREVER), 1);
	CHECK_EQ(hd_close(fd), 0);
	return NULL;
}

static void allow_fds(rlim_t n)
{
	struct rlimit limit;

	CHECK_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
	limit.rlim_cur = n;
	CHECK_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

/* The connection waits in the kernel's queue, and is there when a descriptor is free again. */
HD_WORKERS_TEST(net_accept_without_descriptors_goes_on)
{
	struct rlimit before;
	char port[16], c;

	SKIP_IF_SIMULATED();
	CHECK_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
	wait_for_fd(NULL);
	int listener = listener_at("127.0.0.1", 16, port);
	hd_pid client = await_why(spawned(hd_spawn(connect_and_ask, port)), HD_WAIT_FD_READ);
	allow_fds(3); /* below what there is: none can be had */
	for (int i = 0; i < 3; i++)
		CHECK_EQ(hd_accept(listener, NULL, NULL, 0, hd_after(HD_SEC(5))), -EMFILE);
	CHECK_EQ(hd_socket(AF_INET, SOCK_STREAM, 0), -EMFILE);
	CHECK_EQ(hd_tcp_connect("127.0.0.1", port, HD_FOREVER), -EMFILE);
	CHECK_EQ(hd_tcp_listen("127.0.0.1", "0", 0, HD_FOREVER), -EMFILE);
	allow_fds(before.rlim_cur);
	int fd = checked(hd_accept(listener, NULL, NULL, 0, HD_FOREVER));
	CHECK_EQ(hd_read(fd, &c, 1, HD_FOREVER), 1);
	CHECK_EQ(hd_write_all(fd, "!", 1, HD_FOREVER), 0);
	CHECK_EQ(result_of(client), 0);
	CHECK_EQ(hd_close(fd), 0);
	CHECK_EQ(hd_close(listener), 0);
	(void)workers;
}
