/* http.c - a small HTTP/1.1 server: a process for each connection, which stays open; limits on time and size; clients that try it.
 *
 * What a client can do to a server that has no limits: send nothing, send slowly, send headers without end. Here a request has a deadline,
 * and its head must fit into HEAD_MAX bytes, no line of it longer than LINE_MAX. */
#include "../check.h"

#include <errno.h>
#include <heddle.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

enum { CLIENTS = 50, EACH = 10, LINE_MAX = 512, HEAD_MAX = 2048 };

static const char page[] = "Hello from a process of its own.\n";

/* ---- the server ---- */

struct server {
	int listener;
	char port[16];
	hd_time patience; /* with a request, from the first wait for it to the end of the answer */
};

struct request {
	char method[8], path[64];
	int minor; /* HTTP/1.minor */
	bool keep_alive;
};

/* What to answer when a line could not be read; 0: nothing, the client is gone. */
static int status_of(ssize_t n)
{
	switch (n) {
	case -EMSGSIZE:
		return 431;
	case -ETIMEDOUT:
		return 408;
	default:
		return 0;
	}
}

static bool says(const char *header, const char *name, const char *value)
{
	size_t n = strlen(name);

	if (strncasecmp(header, name, n) != 0)
		return false;
	header += n + strspn(header + n, " \t");
	return value == NULL || strcasecmp(header, value) == 0;
}

/* Reads the head of a request. Returns the status of the answer; 0: there is none to give. */
static int read_request(struct hd_reader *in, struct request *q, hd_time until)
{
	char *line;
	int status = 200;
	ssize_t n = hd_reader_line(in, &line, until);

	if (n <= 0)
		return status_of(n);
	if (sscanf(line, "%7s %63s HTTP/1.%d", q->method, q->path, &q->minor) != 3)
		return 400;
	q->keep_alive = q->minor >= 1;
	for (size_t size = (size_t)n;; size += (size_t)n) {
		n = hd_reader_line(in, &line, until);
		if (n <= 0)
			return status_of(n);
		if (*line == '\0')
			break;
		if (size + (size_t)n > HEAD_MAX)
			return 431;
		if (says(line, "Connection:", "close"))
			q->keep_alive = false;
		if (says(line, "Content-Length:", NULL) || says(line, "Transfer-Encoding:", NULL))
			status = 413; /* this server takes no bodies, and does not read them */
	}
	if (status == 200 && strcmp(q->method, "GET") != 0)
		return 501;
	return status == 200 && strcmp(q->path, "/") != 0 ? 404 : status;
}

/* Puts the answer, and writes it. */
static int answer(struct hd_writer *out, int status, bool keep_alive, hd_time until)
{
	const char *body = status == 200 ? page : "";

	hd_writer_printf(out, until, "HTTP/1.1 %d %s\r\n", status, status == 200 ? "OK" : "Sorry");
	hd_writer_printf(out, until, "Content-Type: text/plain\r\nContent-Length: %zu\r\n", strlen(body));
	hd_writer_printf(out, until, "Connection: %s\r\n\r\n", keep_alive ? "keep-alive" : "close");
	hd_writer_put(out, body, strlen(body), until);
	return hd_writer_flush(out, until); /* the first error of them all */
}

/* Closes when the client has: if something that it sent were left unread, the kernel would throw our last answer away. */
static void close_gently(int fd, hd_time until)
{
	char rest[512];

	shutdown(fd, SHUT_WR);
	while (hd_read(fd, rest, sizeof rest, until) > 0)
		;
	hd_close(fd);
}

struct connection {
	const struct server *server;
	int fd;
};

static void *serve(void *arg)
{
	struct connection c = *(struct connection *)arg;
	char lines[LINE_MAX], block[1024];
	struct hd_reader in;
	struct hd_writer out;
	bool keep_alive = true;

	free(arg);
	hd_reader_init(&in, c.fd, lines, sizeof lines);
	hd_writer_init(&out, c.fd, block, sizeof block);
	while (keep_alive) {
		struct request q = { .minor = 0 };
		hd_time until = hd_after(c.server->patience);
		int status = read_request(&in, &q, until);
		if (status == 0)
			break;
		keep_alive = q.keep_alive && (status == 200 || status == 404);
		if (answer(&out, status, keep_alive, hd_after(c.server->patience)) != 0)
			break;
	}
	close_gently(c.fd, hd_after(HD_SEC(10)));
	return NULL;
}

/* Accepts until the listener is closed. */
static void *run_server(void *arg)
{
	const struct server *s = arg;
	struct hd_group connections = { 0 };
	int fd;

	while ((fd = hd_accept(s->listener, NULL, NULL, 0, HD_FOREVER)) != -EBADF) {
		struct connection *c = fd >= 0 ? malloc(sizeof *c) : NULL;
		if (c == NULL) { /* no descriptor, no memory: others will end and give some back */
			hd_close(fd);
			hd_sleep(HD_MS(10));
			continue;
		}
		*c = (struct connection){ s, fd };
		if (hd_group_spawn(&connections, serve, c) < 0) {
			hd_close(fd);
			free(c);
		}
	}
	CHECK(hd_group_wait(&connections, HD_FOREVER) == 0);
	return NULL;
}

static hd_pid start_server(struct server *s, hd_time patience)
{
	s->patience = patience;
	s->listener = hd_tcp_listen("127.0.0.1", "0", 0, HD_FOREVER);
	CHECK(s->listener >= 0);
	snprintf(s->port, sizeof s->port, "%d", hd_sock_port(s->listener));
	hd_pid pid = hd_spawn(run_server, s);
	CHECK(pid > 0);
	return pid;
}

static void stop_server(struct server *s, hd_pid pid)
{
	CHECK(hd_close(s->listener) == 0);
	CHECK(hd_join(pid, NULL, HD_FOREVER) == 0);
}

/* ---- clients ---- */

static struct server server, hasty;
static struct hd_mutex counting;
static int pages; /* guarded by it */

/* Sends a request, if there is one, and reads the answer. Returns its status, and whether its body is the page in *is_page. */
static int ask(int fd, struct hd_reader *in, const char *request, bool *is_page)
{
	hd_time until = hd_after(HD_SEC(30));
	char *line, *body;
	int status = 0;
	size_t length = 0;

	CHECK(hd_write_all(fd, request, strlen(request), until) == 0);
	CHECK(hd_reader_line(in, &line, until) > 0 && sscanf(line, "HTTP/1.1 %d", &status) == 1);
	do {
		CHECK(hd_reader_line(in, &line, until) > 0);
		sscanf(line, "Content-Length: %zu", &length);
	} while (*line != '\0');
	CHECK(hd_reader_exactly(in, length, &body, until) == (ssize_t)length);
	*is_page = length == sizeof page - 1 && memcmp(body, page, length) == 0;
	return status;
}

/* Asks again and again over one connection. */
static void *client(void *arg)
{
	char lines[LINE_MAX];
	struct hd_reader in;
	bool is_page;
	int fd = hd_tcp_connect("127.0.0.1", server.port, hd_after(HD_SEC(30)));

	CHECK(fd >= 0);
	hd_reader_init(&in, fd, lines, sizeof lines);
	for (int i = 0; i < EACH; i++) {
		CHECK(ask(fd, &in, "GET / HTTP/1.1\r\nHost: here\r\n\r\n", &is_page) == 200 && is_page);
		CHECK(hd_mutex_lock(&counting, HD_FOREVER) == 0);
		pages++;
		hd_mutex_unlock(&counting);
	}
	hd_close(fd);
	return arg;
}

/* Asks once, and the server must close after its answer if the status says so. */
static void try_it(const struct server *s, const char *what, const char *request)
{
	char lines[LINE_MAX], *line;
	struct hd_reader in;
	bool is_page;
	int fd = hd_tcp_connect("127.0.0.1", s->port, hd_after(HD_SEC(30)));

	CHECK(fd >= 0);
	hd_reader_init(&in, fd, lines, sizeof lines);
	int status = ask(fd, &in, request, &is_page);
	printf("%s: %d\n", what, status);
	if (status != 200 && status != 404)
		CHECK(hd_reader_line(&in, &line, hd_after(HD_SEC(30))) == 0);
	hd_close(fd);
}

static void *first(void *arg)
{
	static char endless[LINE_MAX + 100], many[HEAD_MAX + 100];
	struct hd_group clients = { 0 };
	hd_pid pid = start_server(&server, HD_SEC(30)), other = start_server(&hasty, HD_MS(20));

	for (int i = 0; i < CLIENTS; i++)
		CHECK(hd_group_spawn(&clients, client, NULL) > 0);
	CHECK(hd_group_wait(&clients, HD_FOREVER) == 0);
	printf("%d clients, %d pages\n", CLIENTS, pages);

	try_it(&server, "another path", "GET /nothing HTTP/1.1\r\nHost: here\r\n\r\n");
	try_it(&server, "another method", "DELETE / HTTP/1.1\r\nHost: here\r\n\r\n");
	try_it(&server, "a body", "POST / HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello");
	try_it(&server, "something else", "Hello?\r\n\r\n");
	memset(endless, 'x', sizeof endless - 1);
	try_it(&server, "a line without end", endless);
	strcpy(many, "GET / HTTP/1.1\r\n");
	while (strlen(many) < HEAD_MAX)
		strcat(many, "X-Header: of no use\r\n");
	strcat(many, "\r\n");
	try_it(&server, "headers without end", many);
	try_it(&hasty, "a client that falls asleep", "GET / HTTP/1.1\r\nHost:");

	stop_server(&server, pid);
	stop_server(&hasty, other);
	return arg;
}

int main(void)
{
	return hd_run(NULL, first, NULL) != 0;
}
