/* epoll.c - the echo server on bare epoll: a loop per worker, one kernel thread each.
 *
 * Edge-triggered, a connection registered once for both directions: a level-triggered one is polled by the kernel once more after each
 * message, and takes some 5 % more CPU time. The first loop accepts, and deals the connections out to the loops in turn. */
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <sys/epoll.h>

#include "echo.h"

enum { EVENTS = 256, WORKERS_MAX = 64 };

struct connection {
	int fd;
	size_t begin, end; /* of what was read and is not written yet */
	char buffer[ECHO_BUFFER];
};

static int loops[WORKERS_MAX];
static unsigned workers;
static int listener;

static void accept_all(void)
{
	static unsigned turn;
	int fd;

	while ((fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK)) >= 0) {
		struct connection *c = bench_array(1, sizeof *c);
		struct epoll_event event = { .events = EPOLLIN | EPOLLOUT | EPOLLET, .data.ptr = c };

		c->fd = fd;
		c->begin = c->end = 0;
		if (epoll_ctl(loops[turn++ % workers], EPOLL_CTL_ADD, fd, &event) != 0)
			bench_die("epoll_ctl", errno);
	}
	if (errno != EAGAIN)
		bench_die("accept", errno);
}

static void drop(struct connection *c)
{
	close(c->fd);
	free(c);
}

/* Writes what was read. False if it could not: there is no room, of which an event will tell, or no connection any more. */
static bool flush(struct connection *c)
{
	while (c->begin < c->end) {
		ssize_t n = send(c->fd, c->buffer + c->begin, c->end - c->begin, MSG_NOSIGNAL);
		if (n < 0) {
			if (errno != EAGAIN)
				drop(c);
			return false;
		}
		c->begin += (size_t)n;
	}
	return true;
}

static void serve(struct connection *c)
{
	ssize_t n = sizeof c->buffer;

	while (flush(c) && n == sizeof c->buffer) { /* a read that did not fill the buffer has emptied the socket */
		n = recv(c->fd, c->buffer, sizeof c->buffer, 0);
		if (n <= 0) {
			if (n == 0 || errno != EAGAIN)
				drop(c);
			return;
		}
		c->begin = 0;
		c->end = (size_t)n;
	}
}

static void *loop(void *epoll)
{
	struct epoll_event events[EVENTS];

	for (;;) {
		int n = epoll_wait(*(int *)epoll, events, EVENTS, -1);
		for (int i = 0; i < n; i++)
			if (events[i].data.ptr == NULL)
				accept_all();
			else
				serve(events[i].data.ptr);
	}
	return NULL;
}

int main(void)
{
	struct epoll_event event = { .events = EPOLLIN, .data.ptr = NULL };

	workers = bench_workers();
	if (workers > WORKERS_MAX)
		bench_skip("has 64 loops at most");
	for (unsigned i = 0; i < workers; i++)
		if ((loops[i] = epoll_create1(0)) < 0)
			bench_die("epoll_create", errno);
	listener = echo_listen();
	if (fcntl(listener, F_SETFL, O_NONBLOCK) != 0 || epoll_ctl(loops[0], EPOLL_CTL_ADD, listener, &event) != 0)
		bench_die("epoll_ctl", errno);
	for (unsigned i = 1; i < workers; i++) {
		pthread_t thread;
		int error = pthread_create(&thread, NULL, loop, &loops[i]);
		if (error != 0)
			bench_die("pthread_create", error);
	}
	loop(&loops[0]);
	return 0;
}
