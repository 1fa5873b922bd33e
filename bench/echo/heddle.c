/* heddle.c - the echo server on heddle: a process per connection. */
#include <fcntl.h>
#include <heddle.h>

#include "echo.h"

static void *serve(void *arg)
{
	int fd = (int)(intptr_t)arg;
	char buffer[ECHO_BUFFER];
	ssize_t n;

	while ((n = hd_read(fd, buffer, sizeof buffer, HD_FOREVER)) > 0)
		if (hd_write(fd, buffer, (size_t)n, HD_FOREVER) != n)
			break;
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
