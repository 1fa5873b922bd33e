/* threads.c - the echo server with a kernel thread per connection, on small stacks. BENCH_WORKERS means nothing to it: its threads run on
 * whatever CPUs the program may use. */
#include <pthread.h>

#include "echo.h"

enum { STACK = 64 * 1024 };

static void *serve(void *arg)
{
	int fd = (int)(intptr_t)arg;
	char buffer[ECHO_BUFFER];
	ssize_t n, sent;

	while ((n = recv(fd, buffer, sizeof buffer, 0)) > 0)
		for (ssize_t done = 0; done < n; done += sent)
			if ((sent = send(fd, buffer + done, (size_t)(n - done), MSG_NOSIGNAL)) < 0)
				goto out;
out:
	close(fd);
	return NULL;
}

int main(void)
{
	pthread_attr_t small;
	int listener = echo_listen(), fd;

	pthread_attr_init(&small);
	pthread_attr_setdetachstate(&small, PTHREAD_CREATE_DETACHED);
	pthread_attr_setstacksize(&small, STACK);
	while ((fd = accept(listener, NULL, NULL)) >= 0) {
		pthread_t thread;
		int error = pthread_create(&thread, &small, serve, (void *)(intptr_t)fd);
		if (error != 0)
			bench_die("pthread_create", error);
	}
	bench_die("accept", errno);
}
