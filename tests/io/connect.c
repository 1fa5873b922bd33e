/* io/connect.c - sockets that are ready to be used: listening, connecting to names, passing descriptors; and that none is left behind. */
#include "io/sockets.h"

#include <fcntl.h>
#include <sys/un.h>

#include "io/net.h"

/* ---- listening and connecting ---- */

static int option_of(int fd, int level, int option)
{
	int value = -1;
	socklen_t size = sizeof value;

	CHECK_EQ(getsockopt(fd, level, option, &value, &size), 0);
	return value;
}

/* A byte goes there and back, and both sides are as promised. */
static void check_connection(int client, int server, const char *from)
{
	char c = 0, text[HD_ADDRESS_SIZE], expected[HD_ADDRESS_SIZE];

	CHECK_EQ(hd_write_all(client, "x", 1, HD_FOREVER), 0);
	CHECK_EQ(hd_read(server, &c, 1, HD_FOREVER), 1);
	CHECK_EQ(c, 'x');
	for (int i = 0; i < 2; i++) {
		int fd = i == 0 ? client : server;
		CHECK(option_of(fd, IPPROTO_TCP, TCP_NODELAY) != 0);
		CHECK(fcntl(fd, F_GETFD) & FD_CLOEXEC);
		CHECK(fcntl(fd, F_GETFL) & O_NONBLOCK);
	}
	CHECK_EQ(hd_sock_peer(server, text), 0);
	snprintf(expected, sizeof expected, "%s:%d", from, hd_sock_port(client));
	CHECK_STR(text, expected);
	CHECK_EQ(hd_close(client), 0);
	CHECK_EQ(hd_close(server), 0);
}

static void check_between(const char *listen_at, const char *connect_to, const char *from)
{
	char port[16];
	int listener = listener_at(listen_at, 0, port), client = checked(hd_tcp_connect(connect_to, port, HD_FOREVER));

	check_connection(client, checked(hd_accept(listener, NULL, NULL, 0, HD_FOREVER)), from);
	CHECK_EQ(hd_close(listener), 0);
}

HD_WORKERS_TEST(connect_by_ipv4)
{
	SKIP_IF_SIMULATED();
	check_between("127.0.0.1", "127.0.0.1", "127.0.0.1");
	check_between("127.0.0.1", "localhost", "127.0.0.1"); /* which may have an IPv6 address, too */
	check_between(NULL, "127.0.0.1", "127.0.0.1");
	check_between("0.0.0.0", NULL, "127.0.0.1");
	(void)workers;
}

HD_WORKERS_TEST(connect_by_ipv6)
{
	SKIP_IF_SIMULATED();
	if (!has_ipv6())
		SKIP("this machine has no IPv6");
	check_between("::1", "::1", "[::1]");
	check_between("::", "::1", "[::1]");
	check_between(NULL, "::1", "[::1]");
	(void)workers;
}

HD_PROCESS_TEST(connect_and_listen_say_what_is_wrong)
{
	char port[16];

	SKIP_IF_SIMULATED();
	wait_for_fd(NULL);
	int before = count_fds(), listener = listener_at("127.0.0.1", 0, port);
	CHECK_EQ(hd_tcp_listen("127.0.0.1", port, 0, HD_FOREVER), -EADDRINUSE);
	CHECK_EQ(hd_tcp_listen("192.0.2.1", port, 0, HD_FOREVER), -EADDRNOTAVAIL);
	CHECK_EQ(hd_tcp_listen("127.0.0.1", NULL, 0, HD_FOREVER), -EINVAL);
	CHECK(hd_tcp_listen("127.0.0.1", "no-such-service", 0, HD_FOREVER) < HD_EAI(0));
	CHECK(hd_tcp_connect("no-such-host.invalid", "80", HD_FOREVER) < HD_EAI(0));
	CHECK_EQ(hd_tcp_connect("127.0.0.1", NULL, HD_FOREVER), -EINVAL);
	CHECK_EQ(hd_tcp_connect("127.0.0.1", port, HD_SEC(1)), -EINVAL);
	CHECK_EQ(hd_close(listener), 0);
	CHECK_EQ(hd_tcp_connect("127.0.0.1", port, HD_FOREVER), -ECONNREFUSED);
	CHECK_EQ(hd_tcp_connect("localhost", port, HD_FOREVER), -ECONNREFUSED);
	CHECK_EQ(hd_sock_port(listener), -EBADF);
	CHECK_EQ(count_fds(), before);
}

HD_TEST(connect_on_plain_threads)
{
	SKIP_IF_SIMULATED();
	check_between("127.0.0.1", "localhost", "127.0.0.1");
}

/* A port that is used again at once, while old connections linger. */
HD_PROCESS_TEST(connect_to_a_port_that_is_used_again)
{
	char port[16];

	SKIP_IF_SIMULATED();
	int listener = listener_at("127.0.0.1", 0, port), client = checked(hd_tcp_connect("127.0.0.1", port, HD_FOREVER));
	CHECK_EQ(hd_close(checked(hd_accept(listener, NULL, NULL, 0, HD_FOREVER))), 0); /* the server closes first */
	CHECK_EQ(hd_close(listener), 0);
	CHECK_EQ(hd_close(client), 0);
	CHECK_EQ(hd_close(checked(hd_tcp_listen("127.0.0.1", port, 0, HD_FOREVER))), 0);
}

HD_WORKERS_TEST(connect_udp)
{
	char port[16], data[8], text[HD_ADDRESS_SIZE];
	struct sockaddr_storage from;
	socklen_t size = sizeof from;

	SKIP_IF_SIMULATED();
	int server = checked(hd_udp_bind("127.0.0.1", "0", HD_FOREVER));
	snprintf(port, sizeof port, "%d", hd_sock_port(server));
	int client = checked(hd_udp_connect("127.0.0.1", port, HD_FOREVER));
	CHECK_EQ(hd_sock_send(client, "ping", 4, 0, HD_FOREVER), 4);
	CHECK_EQ(hd_sock_recvfrom(server, data, sizeof data, 0, (struct sockaddr *)&from, &size, HD_FOREVER), 4);
	CHECK_EQ(hd_sock_sendto(server, "pong!", 5, 0, (struct sockaddr *)&from, size, HD_FOREVER), 5);
	CHECK_EQ(hd_sock_recv(client, data, sizeof data, 0, HD_FOREVER), 5);
	CHECK_EQ(hd_sock_peer(client, text), 0);
	CHECK_EQ(hd_sock_peer(server, text), -ENOTCONN);
	CHECK_EQ(hd_close(client), 0);
	CHECK_EQ(hd_close(server), 0);
	(void)workers;
}

/* ---- happy eyeballs ---- */

#define PLACES 6

/* A list of addresses, as the resolver would answer it. */
struct places {
	struct addrinfo list[PLACES];
	struct sockaddr_storage addresses[PLACES];
	int n;
};

static void add_place(struct places *p, const void *address, socklen_t size)
{
	struct addrinfo *at = &p->list[p->n];

	memcpy(&p->addresses[p->n], address, size);
	*at = (struct addrinfo){ .ai_family = p->addresses[p->n].ss_family,
				 .ai_socktype = SOCK_STREAM,
				 .ai_addr = (struct sockaddr *)&p->addresses[p->n],
				 .ai_addrlen = size };
	if (p->n > 0)
		p->list[p->n - 1].ai_next = at;
	p->n++;
}

static struct sockaddr_in loopback(const char *port)
{
	return (struct sockaddr_in){ .sin_family = AF_INET,
				     .sin_port = htons((uint16_t)atoi(port)),
				     .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
}

static struct silent silent;
static char open_port[16], closed_port[16];
static int open_listener;

static void begin_places(void)
{
	silent_open(&silent);
	open_listener = listener_at("127.0.0.1", 1000, open_port);
	CHECK_EQ(hd_close(listener_at("127.0.0.1", 1, closed_port)), 0);
}

static void end_places(void)
{
	silent_close(&silent);
	CHECK_EQ(hd_close(open_listener), 0);
}

/* Connects to places: 's'ilent, 'r'efusing, 'o'pen. */
static int connect_along(const char *kinds, hd_time until)
{
	struct places p = { .n = 0 };
	const struct sockaddr_in refusing = loopback(closed_port), open = loopback(open_port);

	for (; *kinds != '\0'; kinds++)
		add_place(&p, *kinds == 's' ? &silent.address : *kinds == 'r' ? &refusing : &open, sizeof open);
	return hd__connect_any(p.list, until);
}

static void check_connected(int fd)
{
	char text[HD_ADDRESS_SIZE];

	CHECK_EQ(hd_sock_peer(checked(fd), text), 0);
	CHECK_STR(strchr(text, ':') + 1, open_port);
	CHECK_EQ(hd_write_all(fd, "x", 1, HD_FOREVER), 0);
	CHECK_EQ(hd_close(fd), 0);
}

HD_TEST(connect_takes_the_first_that_answers)
{
	static const char *const along[] = { "o", "ro", "so", "sso", "sro", "rso", "srsro", "oss" };

	SKIP_IF_SIMULATED();
	begin_places();
	for (int i = 0; i < 8; i++)
		check_connected(connect_along(along[i], HD_FOREVER));
	end_places();
}

static void check_places(void)
{
	wait_for_fd(NULL);
	int before = count_fds();
	begin_places();
	check_connected(connect_along("so", HD_FOREVER));
	check_connected(connect_along("rsr"
				      "o",
				      HD_FOREVER));
	CHECK_EQ(connect_along("rr", HD_FOREVER), -ECONNREFUSED);
	CHECK_EQ(connect_along("ss", hd_after(HD_MS(5))), -ETIMEDOUT);
	CHECK_EQ(connect_along("ssr", hd_after(HD_MS(600))), -ETIMEDOUT);
	CHECK_EQ(connect_along("rs", hd_after(HD_MS(1))), -ETIMEDOUT);
	end_places();
	CHECK_EQ(count_fds(), before);
}

HD_WORKERS_TEST(connect_tries_the_next_address)
{
	SKIP_IF_SIMULATED();
	check_places();
	(void)workers;
}

static void *fall_silent(void *arg)
{
	CHECK_EQ(hd_sleep(HD_MS(400)), 0);
	CHECK_EQ(hd_close(*(int *)arg), 0); /* the kernel refuses when it is asked again, a second after the first time */
	return NULL;
}

/* All have failed, the first one long after the others have joined it. */
HD_PROCESS_TEST(connect_fails_when_all_addresses_have)
{
	SKIP_IF_SIMULATED();
	begin_places();
	hd_pid pid = spawned(hd_spawn(fall_silent, &silent.listener));
	CHECK_EQ(connect_along("srr", HD_FOREVER), -ECONNREFUSED);
	CHECK_EQ(result_of(pid), 0);
	silent.listener = checked(hd_socket(AF_INET, SOCK_STREAM, 0)); /* for the end */
	end_places();
}

/* The families alternate, and each keeps its order. */
HD_PROCESS_TEST(connect_alternates_families)
{
	static const int families[] = { AF_INET, AF_INET, AF_INET, AF_INET6, AF_INET6 }, expected[] = { 0, 3, 1, 4, 2 };
	struct places p = { .n = 0 };

	SKIP_IF_SIMULATED();
	for (int i = 0; i < 5; i++) {
		struct sockaddr_storage address = { .ss_family = (sa_family_t)families[i] };
		add_place(&p, &address, families[i] == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6));
		p.list[i].ai_socktype = -1; /* no socket can be made: each is passed over */
	}
	CHECK(hd__connect_any(p.list, HD_FOREVER) < 0);
	const struct addrinfo *at = p.list;
	for (int i = 0; i < 5; i++, at = at->ai_next)
		CHECK_EQ(at - p.list, expected[i]);
	CHECK(at == NULL);
}

/* ---- nothing is left behind ---- */

static void *connect_at_random(void *arg)
{
	static const char *const along[] = { "so", "sso", "ss", "rs", "sr", "so" };
	unsigned seed = (unsigned)(uintptr_t)arg;
	hd_time until = next_random(&seed) % 3 == 0 ? hd_after(HD_MS(next_random(&seed) % 700)) : HD_FOREVER;
	int fd = connect_along(along[next_random(&seed) % 6], until);

	if (fd >= 0)
		CHECK_EQ(hd_close(fd), 0);
	else
		CHECK(fd == -ETIMEDOUT || fd == -ECANCELED);
	return NULL;
}

static void *stop_at_random(void *arg)
{
	hd_pid pid = *(hd_pid *)arg;
	unsigned seed = (unsigned)pid;

	ANY_ANSWER(hd_sleep(HD_US(next_random(&seed) * 37ULL % 600000)));
	int err = next_random(&seed) % 2 ? hd_cancel(pid) : hd_terminate(pid, HD_FOREVER);
	CHECK(err == 0 || err == -ESRCH);
	return NULL;
}

/* Cancels, terminations and deadlines at any moment of a race. */
HD_WORKERS_TEST(connect_leaves_nothing_behind)
{
	enum { RACERS = 40 };
	hd_pid pids[RACERS], stoppers[RACERS];

	SKIP_IF_SIMULATED();
	for (int i = 0; i < 4 * workers; i++)
		CHECK_EQ(result_of(spawned(hd_spawn(wait_for_fd, NULL))), 0);
	begin_places();
	check_connected(connect_along("so", HD_FOREVER));
	int before = count_fds();
	for (long i = 0; i < RACERS; i++) {
		pids[i] = spawned(hd_spawn(connect_at_random, (void *)(i + workers)));
		stoppers[i] = spawned(hd_spawn(stop_at_random, &pids[i]));
	}
	for (int i = 0; i < RACERS; i++)
		CHECK_EQ(hd_join(stoppers[i], NULL, HD_FOREVER), 0);
	for (int i = 0; i < RACERS; i++)
		CHECK_EQ(hd_join(pids[i], NULL, HD_FOREVER), 0);
	int after = count_fds();
	CHECK(after <= before + 2 * (workers - 1)); /* of workers that have waited for the first time */
	end_places();
}

/* ---- many at once ---- */

static long served;

static void *serve_one(void *arg)
{
	int fd = (int)(long)arg;
	char c;

	CHECK_EQ(hd_read(fd, &c, 1, HD_FOREVER), 1);
	CHECK_EQ(hd_write_all(fd, &c, 1, HD_FOREVER), 0);
	CHECK_EQ(hd_close(fd), 0);
	add(&served, 1);
	return NULL;
}

static void *ask_one(void *arg)
{
	char c = 0;
	ssize_t n;

	do { /* the kernel may break a connection that finds the listener's queue full, and has not been accepted */
		int fd = checked(hd_tcp_connect("127.0.0.1", arg, HD_FOREVER));
		CHECK_EQ(hd_write_all(fd, "q", 1, HD_FOREVER), 0);
		n = hd_read(fd, &c, 1, HD_FOREVER);
		CHECK_EQ(hd_close(fd), 0);
	} while (n == -ECONNRESET);
	CHECK_EQ(n, 1);
	CHECK_EQ(c, 'q');
	return NULL;
}

static void *accept_many(void *arg)
{
	struct hd_group all = { 0 };
	int listener = *(int *)arg;

	for (int fd; (fd = hd_accept(listener, NULL, NULL, 0, HD_FOREVER)) != -EBADF;)
		CHECK(hd_group_spawn(&all, serve_one, (void *)(long)checked(fd)) > 0);
	CHECK_EQ(hd_group_wait(&all, HD_FOREVER), 0);
	return NULL;
}

/* Ten thousand, or as many as there are descriptors for. */
static long how_many_at_once(void)
{
	struct rlimit limit;
	long n = hd_scaled(10000);

	CHECK_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
	if (limit.rlim_cur < limit.rlim_max) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
	if ((long)limit.rlim_cur < 2 * n + 200)
		n = ((long)limit.rlim_cur - 200) / 2;
	return n;
}

/* The most memory that the program has had, in bytes. */
static long memory_peak(void)
{
	struct rusage usage;

	CHECK_EQ(getrusage(RUSAGE_SELF, &usage), 0);
	return 1024 * usage.ru_maxrss;
}

HD_MANY_WORKERS_TEST(connect_many_at_once)
{
	struct hd_group clients = { 0 };
	char port[16];

	SKIP_IF_SIMULATED();
	long n = how_many_at_once();
	long memory = memory_peak();
	set(&served, 0);
	int listener = listener_at("127.0.0.1", 0, port);
	hd_pid server = spawned(hd_spawn(accept_many, &listener));
	for (long i = 0; i < n; i++)
		CHECK(hd_group_spawn(&clients, ask_one, port) > 0);
	CHECK_EQ(hd_group_wait(&clients, HD_FOREVER), 0);
	CHECK_EQ(hd_close(listener), 0);
	CHECK_EQ(result_of(server), 0);
	CHECK_EQ(value_of(&served), n);
	if (!HD_UNDER_ASAN && !HD_UNDER_TSAN && !hd_is_emulated()) /* which have memory of their own for each */
		CHECK(memory_peak() - memory < n * 32768);
	(void)workers;
}

/* ---- Unix sockets ---- */

HD_WORKERS_TEST(connect_unix_sockets)
{
	char path[64], long_path[200], text[HD_ADDRESS_SIZE], c;

	SKIP_IF_SIMULATED();
	for (int with_file = 0; with_file < 2; with_file++) {
		snprintf(path, sizeof path, "%s%d", with_file ? "/tmp/heddle-test-" : "@heddle-test-", (int)getpid());
		CHECK_EQ(hd_unix_connect(path, HD_FOREVER), with_file ? -ENOENT : -ECONNREFUSED);
		int listener = checked(hd_unix_listen(path, 0)), client = checked(hd_unix_connect(path, HD_FOREVER));
		CHECK_EQ(hd_unix_listen(path, 0), -EADDRINUSE);
		int server = checked(hd_accept(listener, NULL, NULL, 0, HD_FOREVER));
		CHECK_EQ(hd_write_all(client, "x", 1, HD_FOREVER), 0);
		CHECK_EQ(hd_read(server, &c, 1, HD_FOREVER), 1);
		CHECK_EQ(hd_sock_peer(client, text), 0);
		CHECK_STR(text, path);
		CHECK_EQ(hd_sock_peer(server, text), 0);
		CHECK_STR(text, "");
		CHECK_EQ(hd_sock_port(client), -EAFNOSUPPORT);
		CHECK_EQ(hd_close(client), 0);
		CHECK_EQ(hd_close(server), 0);
		CHECK_EQ(hd_close(listener), 0);
		if (with_file)
			CHECK_EQ(unlink(path), 0);
	}
	memset(long_path, 'x', sizeof long_path);
	long_path[108] = '\0';
	CHECK_EQ(hd_unix_listen(long_path, 0), -ENAMETOOLONG);
	CHECK_EQ(hd_unix_connect("", HD_FOREVER), -EINVAL);
	CHECK_EQ(hd_unix_connect(NULL, HD_FOREVER), -EINVAL);
	(void)workers;
}

/* ---- descriptors on their way ---- */

#define PASSED 1000

static void *pass_many(void *arg)
{
	int sock = *(int *)arg;

	for (int i = 0; i < PASSED; i++) {
		int pipe[2];
		CHECK_EQ(hd_pipe(pipe), 0);
		CHECK_EQ(hd_write_all(pipe[1], &i, sizeof i, HD_FOREVER), 0);
		CHECK_EQ(hd_sock_send_fd(sock, pipe[0], HD_FOREVER), 0);
		CHECK_EQ(hd_close(pipe[0]), 0);
		CHECK_EQ(hd_close(pipe[1]), 0);
	}
	CHECK_EQ(hd_close(sock), 0);
	return NULL;
}

HD_WORKERS_TEST(connect_passes_descriptors)
{
	int pair[2], fd;

	SKIP_IF_SIMULATED();
	wait_for_fd(NULL);
	int before = count_fds();
	CHECK_EQ(hd_socketpair(AF_UNIX, SOCK_STREAM, pair), 0);
	hd_pid sender = spawned(hd_spawn(pass_many, &pair[1]));
	for (int i = 0; i < PASSED; i++) {
		int number = -1;
		fd = checked(hd_sock_recv_fd(pair[0], HD_FOREVER));
		CHECK(fcntl(fd, F_GETFD) & FD_CLOEXEC);
		CHECK_EQ(hd_read(fd, &number, sizeof number, HD_FOREVER), sizeof number);
		CHECK_EQ(number, i);
		CHECK_EQ(hd_read(fd, &number, sizeof number, HD_FOREVER), 0);
		CHECK_EQ(hd_close(fd), 0);
	}
	CHECK_EQ(hd_sock_recv_fd(pair[0], HD_FOREVER), -EPIPE);
	CHECK_EQ(result_of(sender), 0);
	CHECK_EQ(hd_close(pair[0]), 0);
	int after = count_fds();
	CHECK(after <= before + 2 * (workers - 1));
}

/* Sends n descriptors in one message. */
static void send_several(int sock, int n)
{
	union {
		struct cmsghdr header;
		char room[CMSG_SPACE(8 * sizeof(int))];
	} beside = { .room = { 0 } };
	char byte = 'b';
	struct iovec part = { &byte, 1 };
	struct msghdr m = { .msg_iov = &part, .msg_iovlen = 1 };

	if (n > 0) {
		m.msg_control = &beside;
		m.msg_controllen = CMSG_SPACE((size_t)n * sizeof(int));
		*CMSG_FIRSTHDR(&m) = (struct cmsghdr){ .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS };
		CMSG_FIRSTHDR(&m)->cmsg_len = CMSG_LEN((size_t)n * sizeof(int));
		memset(CMSG_DATA(CMSG_FIRSTHDR(&m)), 0, (size_t)n * sizeof(int)); /* all are descriptor 0 */
	}
	CHECK_EQ(hd_sock_sendmsg(sock, &m, 0, HD_FOREVER), 1);
}

/* None, or more than one, are refused, and none of them stays open. */
HD_PROCESS_TEST(connect_takes_one_descriptor_at_a_time)
{
	int pair[2];

	SKIP_IF_SIMULATED();
	if (hd_is_emulated())
		SKIP("qemu-user asks the kernel for more descriptors than there is room for, and leaves those open that it "
		     "cannot hand on");
	CHECK_EQ(hd_socketpair(AF_UNIX, SOCK_STREAM, pair), 0);
	CHECK_EQ(hd_sock_recv_fd(pair[0], 0), -ETIMEDOUT);
	wait_for_fd(NULL);
	int before = count_fds();
	for (int n = 0; n <= 8; n++) {
		send_several(pair[1], n);
		int fd = hd_sock_recv_fd(pair[0], HD_FOREVER);
		CHECK_EQ(fd >= 0, n == 1);
		if (fd >= 0)
			CHECK_EQ(hd_close(fd), 0);
		else
			CHECK_EQ(fd, -EPROTO);
		CHECK_EQ(count_fds(), before);
	}
	CHECK_EQ(hd_sock_send_fd(pair[1], -1, HD_FOREVER), -EBADF);
	CHECK_EQ(hd_close(pair[0]), 0);
	CHECK_EQ(hd_close(pair[1]), 0);
}
