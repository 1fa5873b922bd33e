/* client.c - the client of the echo and HTTP servers: `client load PORT PID CONNECTIONS OUTSTANDING SECONDS`, `client http` with the same
 * arguments, or `client idle PORT PID CONNECTIONS SECONDS`. PID is the server's: the client reads its CPU time and its memory.
 *
 * load: OUTSTANDING messages are under way at any time, no two on one connection. The client compares every byte of a reply; then the
 * connection that has been silent longest sends its next message. It prints requests per second, the server's and its own CPU time per
 * request, how much of one CPU the server used, and how long replies took: after a warm-up, for so many seconds. At the end it waits for
 * the last reply: none may be missing.
 *
 * What the client does costs as much as what a good server does, since the kernel's part is most of both. Two things keep that out of the
 * server's figures. A client that shares no CPU with the server never sleeps, so that no server pays for waking it. And it sends a batch
 * of messages after it has received a batch of replies, so that a server which is faster than the client sleeps once per batch, not once
 * per message.
 *
 * http: the same with a request for a page as the message. Of the reply the client checks the status, the length and every byte of the body.
 *
 * idle: every connection sends one message, and then none. The client prints the server's memory per connection, its CPU time while
 * nothing happened, and the number of its kernel threads. */
#include <sched.h>
#include <stdbool.h>
#include <sys/epoll.h>

#include "../histogram.h"
#include "../web/http.h"
#include "echo.h"

enum { BATCH = 256, CONNECT_BATCH = 128, WARM_UP_MS = 200, LAST_REPLY_S = 20, WORDS = ECHO_MESSAGE / 8 };

struct connection;

/* What is sent, and what comes back: room for a reply, and whether the reply is whole once so many bytes of it have come. */
struct protocol {
	unsigned room;
	void (*send)(struct connection *c);
	bool (*is_whole)(const struct connection *c);
};

struct connection {
	int fd;
	unsigned got;  /* bytes of the reply */
	uint64_t seed; /* of the message under way */
	uint64_t sent; /* when it was, in ns */
	char *reply;
};

static const struct protocol *protocol;
static struct connection *connections;
static long count;
static struct histogram times;

/* The connections without a message under way, in the order of their last reply. */
static struct {
	struct connection **ring; /* for `count` of them */
	long first, length;
} silent;

static uint64_t now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void push_silent(struct connection *c)
{
	long at = silent.first + silent.length++;
	silent.ring[at < count ? at : at - count] = c;
}

static struct connection *take_silent(void)
{
	struct connection *c = silent.ring[silent.first];
	silent.length--;
	silent.first = silent.first + 1 < count ? silent.first + 1 : 0;
	return c;
}

static void send_all(struct connection *c, const void *message, size_t size)
{
	if (send(c->fd, message, size, MSG_NOSIGNAL) != (ssize_t)size)
		bench_die("send", errno);
}

static void send_words(struct connection *c)
{
	uint64_t message[WORDS];

	c->seed = bench_step(c->seed);
	for (unsigned i = 0; i < WORDS; i++)
		message[i] = c->seed + i;
	send_all(c, message, sizeof message);
}

static bool are_words(const struct connection *c)
{
	uint64_t reply[WORDS];

	if (c->got < sizeof reply)
		return false;
	memcpy(reply, c->reply, sizeof reply);
	for (unsigned i = 0; i < WORDS; i++)
		if (reply[i] != c->seed + i)
			bench_die("the reply is not what was sent", EBADMSG);
	return true;
}

static void send_request(struct connection *c)
{
	send_all(c, HTTP_REQUEST, sizeof HTTP_REQUEST - 1);
}

static bool is_page(const struct connection *c)
{
	static const char ok[] = "HTTP/1.1 200 OK\r\n", length[] = "\r\nContent-Length: ";
	const char *end = memmem(c->reply, c->got, "\r\n\r\n", 4);

	if (end == NULL)
		return false;
	end += 2;
	const char *says = memmem(c->reply, (size_t)(end - c->reply), length, sizeof length - 1);
	if (memcmp(c->reply, ok, sizeof ok - 1) != 0 || says == NULL || atoi(says + sizeof length - 1) != sizeof HTTP_PAGE - 1)
		bench_die("the reply is not the page", EBADMSG);
	end += 2;
	if (c->reply + c->got < end + sizeof HTTP_PAGE - 1)
		return false;
	if (c->reply + c->got > end + sizeof HTTP_PAGE - 1 || memcmp(end, HTTP_PAGE, sizeof HTTP_PAGE - 1) != 0)
		bench_die("the page is not what it should be", EBADMSG);
	return true;
}

static const struct protocol echo = { ECHO_MESSAGE, send_words, are_words }, http = { HTTP_REPLY_MAX, send_request, is_page };

static void send_message(struct connection *c)
{
	c->got = 0;
	c->sent = now_ns();
	protocol->send(c);
}

/* True when the reply is whole. */
static bool receive(struct connection *c, int flags)
{
	ssize_t n = recv(c->fd, c->reply + c->got, protocol->room - c->got, flags);

	if (n < 0 && errno == EAGAIN)
		return false;
	if (n <= 0)
		bench_die("the server closed a connection", n < 0 ? errno : EPIPE);
	c->got += (unsigned)n;
	return protocol->is_whole(c);
}

/* A message and its reply on each of these. */
static void exchange(long from, long to)
{
	for (long i = from; i < to; i++)
		send_message(&connections[i]);
	for (long i = from; i < to; i++)
		while (!receive(&connections[i], 0))
			;
}

/* Connects, in batches smaller than a server's backlog, each of which waits until the server has answered the one before. */
static void connect_all(int port)
{
	struct sockaddr_in address = echo_address(port);
	struct linger reset = { 1, 0 }; /* no TIME_WAIT: the system has ports for less than three times 10,000 of them */

	echo_raise_limit();
	connections = bench_array((size_t)count, sizeof *connections);
	char *replies = bench_array((size_t)count, protocol->room);
	silent.ring = bench_array((size_t)count, sizeof *silent.ring);
	for (long i = 0; i < count; i++) {
		struct connection *c = &connections[i];
		c->seed = (uint64_t)i;
		c->reply = replies + (size_t)i * protocol->room;
		c->fd = socket(AF_INET, SOCK_STREAM, 0);
		if (c->fd < 0 || connect(c->fd, (struct sockaddr *)&address, sizeof address) != 0 ||
		    setsockopt(c->fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset) != 0)
			bench_die("connect", errno);
		if ((i + 1) % CONNECT_BATCH == 0 || i + 1 == count)
			exchange(i - i % CONNECT_BATCH, i + 1);
		push_silent(c);
	}
}

/* Receives a batch of replies and sends a batch of messages, as many as keep `outstanding` under way. */
static void run_batch(int epoll, int timeout, long outstanding)
{
	struct epoll_event events[BATCH];
	int n = epoll_wait(epoll, events, BATCH, timeout);

	for (int i = 0; i < n; i++) {
		struct connection *c = events[i].data.ptr;
		if (receive(c, MSG_DONTWAIT)) {
			histogram_add(&times, now_ns() - c->sent);
			push_silent(c);
		}
	}
	while (count - silent.length < outstanding)
		send_message(take_silent());
}

static bool shares_cpu_with(pid_t server)
{
	cpu_set_t mine, its;

	if (sched_getaffinity(0, sizeof mine, &mine) != 0 || sched_getaffinity(server, sizeof its, &its) != 0)
		bench_die("sched_getaffinity", errno);
	CPU_AND(&mine, &mine, &its);
	return CPU_COUNT(&mine) > 0;
}

/* The CPU time of all threads of the server, in ns. */
static double server_cpu(pid_t server)
{
	clockid_t clock;
	int error = clock_getcpuclockid(server, &clock);

	if (error != 0)
		bench_die("the server's CPU time", error);
	return bench_clock(clock);
}

static void run_until(uint64_t end, int epoll, int timeout, long outstanding)
{
	while (now_ns() < end)
		run_batch(epoll, timeout, outstanding);
}

static void load(pid_t server, long outstanding, double seconds)
{
	int epoll = epoll_create1(0), timeout = shares_cpu_with(server) ? 100 : 0;

	for (long i = 0; i < count; i++) {
		struct epoll_event event = { .events = EPOLLIN | EPOLLET, .data.ptr = &connections[i] };
		if (epoll_ctl(epoll, EPOLL_CTL_ADD, connections[i].fd, &event) != 0)
			bench_die("epoll_ctl", errno);
	}
	run_until(now_ns() + WARM_UP_MS * 1000000ull, epoll, timeout, outstanding);

	memset(&times, 0, sizeof times);
	double start = bench_now(), its = server_cpu(server), mine = bench_cpu();
	run_until(now_ns() + (uint64_t)(seconds * 1e9), epoll, timeout, outstanding);
	double took = bench_now() - start;
	its = server_cpu(server) - its;
	mine = bench_cpu() - mine;
	struct histogram steady = times;
	for (uint64_t end = now_ns() + LAST_REPLY_S * 1000000000ull; silent.length < count;) {
		run_batch(epoll, 100, 0);
		if (now_ns() > end)
			bench_die("a reply never came", ETIMEDOUT);
	}
	bench_print("rate", (double)steady.count / took * 1e9);
	bench_print("cpu", its / (double)steady.count / 1e3);
	bench_print("client_cpu", mine / (double)steady.count / 1e3);
	bench_print("busy", its / took);
	histogram_print(&steady);
}

/* A number out of a file of /proc/PID, from the line that begins with `name`. */
static double server_says(pid_t server, const char *file, const char *name)
{
	char path[64], line[256];
	double value = -1;

	snprintf(path, sizeof path, "/proc/%d/%s", (int)server, file);
	FILE *f = fopen(path, "r");
	if (f == NULL)
		bench_die(path, errno);
	while (value < 0 && fgets(line, sizeof line, f) != NULL)
		if (strncmp(line, name, strlen(name)) == 0)
			value = atof(line + strlen(name));
	fclose(f);
	return value;
}

static double server_memory(pid_t server)
{
	return server_says(server, "smaps_rollup", "Pss:") * 1024;
}

static void idle(pid_t server, int port, double seconds)
{
	double before = server_memory(server);

	connect_all(port);
	double cpu = server_cpu(server);
	usleep((useconds_t)(seconds * 1e6));
	cpu = server_cpu(server) - cpu;
	bench_print("memory", (server_memory(server) - before) / (double)count);
	bench_print("idle", cpu / seconds / 1e6);
	bench_print("threads", server_says(server, "status", "Threads:"));
	exchange(0, count); /* every connection is still there */
}

int main(int argc, char **argv)
{
	bool is_http = argc == 7 && strcmp(argv[1], "http") == 0,
	     is_load = is_http || (argc == 7 && strcmp(argv[1], "load") == 0);
	bool is_idle = argc == 6 && strcmp(argv[1], "idle") == 0;

	if (!is_load && !is_idle) {
		fprintf(stderr, "usage: client load|http PORT PID CONNECTIONS OUTSTANDING SECONDS\n"
				"       client idle PORT PID CONNECTIONS SECONDS\n");
		return 2;
	}
	int port = atoi(argv[2]);
	pid_t server = atoi(argv[3]);
	count = atol(argv[4]);
	protocol = is_http ? &http : &echo;
	if (is_idle) {
		idle(server, port, atof(argv[5]));
	} else {
		connect_all(port);
		load(server, atol(argv[5]), atof(argv[6]));
	}
	return 0;
}
