/* heddle.c - the HTTP server on heddle: a process per connection, as in examples/programs/http.c. */
#include <fcntl.h>
#include <heddle.h>
#include <stdbool.h>
#include <strings.h>
#include <time.h>

#include "../echo/echo.h"
#include "http.h"

enum { LINE_MAX = 1024, HEAD_MAX = 8192, OUT_MAX = 512 };

struct connection {
	struct hd_reader in;
	struct hd_writer out;
	time_t second; /* of `date` */
	char date[40];
	char lines[LINE_MAX], block[OUT_MAX];
};

static bool begins_with(const char *line, const char *name, size_t n)
{
	return strncasecmp(line, name, n) == 0;
}

/* Reads the head of a request. Returns the status of the answer; 0: there is none to give, because the client is gone or too slow. */
static int read_request(struct hd_reader *in, bool *keep_alive, hd_time until)
{
	char *line, *path, *version;
	ssize_t n = hd_reader_line(in, &line, until);
	int status;

	if (n <= 0)
		return n == -EMSGSIZE ? 431 : 0;
	if (strncmp(line, "GET ", 4) != 0)
		return 501;
	path = line + 4;
	version = strchr(path, ' ');
	if (version == NULL || strncmp(version + 1, "HTTP/1.", 7) != 0)
		return 400;
	*version = '\0';
	*keep_alive = version[8] != '0';
	status = strcmp(path, "/") == 0 ? 200 : 404;
	for (ssize_t size = n;; size += n) {
		n = hd_reader_line(in, &line, until);
		if (n <= 0)
			return n == -EMSGSIZE ? 431 : 0;
		if (*line == '\0')
			return status;
		if (size + n > HEAD_MAX)
			return 431;
		if (begins_with(line, "Connection: close", 17))
			*keep_alive = false;
		else if (begins_with(line, "Content-Length:", 15) || begins_with(line, "Transfer-Encoding:", 18))
			status = 413; /* it takes no bodies */
	}
}

/* The date, made anew once a second. */
static const char *date(struct connection *c)
{
	struct timespec now;
	struct tm tm;

	clock_gettime(CLOCK_REALTIME_COARSE, &now);
	if (now.tv_sec != c->second) {
		c->second = now.tv_sec;
		strftime(c->date, sizeof c->date, "%a, %d %b %Y %H:%M:%S GMT", gmtime_r(&now.tv_sec, &tm));
	}
	return c->date;
}

static int answer(struct connection *c, int status, bool keep_alive, hd_time until)
{
	size_t size = status == 200 ? sizeof HTTP_PAGE - 1 : 0;

	hd_writer_printf(&c->out, until,
			 "HTTP/1.1 %d %s\r\nDate: %s\r\nContent-Type: text/plain\r\nContent-Length: %zu\r\n%s\r\n", status,
			 status == 200 ? "OK" : "Sorry", date(c), size, keep_alive ? "" : "Connection: close\r\n");
	hd_writer_put(&c->out, HTTP_PAGE, size, until);
	return hd_writer_flush(&c->out, until);
}

static void *serve(void *arg)
{
	int fd = (int)(intptr_t)arg;
	struct connection c;
	bool keep_alive = true;

	c.second = 0;
	hd_reader_init(&c.in, fd, c.lines, sizeof c.lines);
	hd_writer_init(&c.out, fd, c.block, sizeof c.block);
	while (keep_alive) {
		hd_time until = hd_after(HD_SEC(HTTP_PATIENCE_S));
		int status = read_request(&c.in, &keep_alive, until);
		if (status == 0)
			break;
		keep_alive = keep_alive && (status == 200 || status == 404);
		if (answer(&c, status, keep_alive, until) != 0)
			break;
	}
	hd_close(fd);
	return NULL;
}

static void *accept_all(void *arg)
{
	struct hd_spawn how = { .detached = true };
	int listener = *(int *)arg, fd;

	while ((fd = hd_accept(listener, NULL, NULL, 0, HD_FOREVER)) >= 0)
		if (hd_spawn_with(&how, serve, (void *)(intptr_t)fd) < 0)
			bench_die("spawn", ENOMEM);
	bench_die("accept", -fd);
	return NULL;
}

int main(void)
{
	struct hd_config config = { .workers = bench_workers(), .fixed = true };
	int listener = echo_listen();

	if (fcntl(listener, F_SETFL, O_NONBLOCK) != 0)
		bench_die("fcntl", errno);
	return hd_run(&config, accept_all, &listener) != 0;
}
