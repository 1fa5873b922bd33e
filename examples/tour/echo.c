/* echo.c - a server with a process for each connection, and its clients. */
#include "chapter.h"

static long n;
static long total; /* guarded by `counting` */
static struct hd_mutex counting;

static void count(long rounds)
{
	if (hd_mutex_lock(&counting, HD_FOREVER) == 0) {
		total += rounds;
		hd_mutex_unlock(&counting);
	}
}

/* tour: begin */
static char port[16];
static struct hd_event start;
static struct hd_waitgroup connected;

static void *echo(void *connection)
{
	int fd = (int)(intptr_t)connection;
	char data[64];
	ssize_t got;

	while ((got = hd_read(fd, data, sizeof data, hd_after(HD_SEC(10)))) > 0)
		if (hd_write_all(fd, data, (size_t)got, hd_after(HD_SEC(10))) != 0)
			break;
	hd_close(fd);
	return NULL;
}

static void *client(void *arg)
{
	char reply[5];
	int fd = hd_tcp_connect("127.0.0.1", port, hd_after(HD_SEC(10)));
	long rounds = 0;

	hd_waitgroup_done(&connected);
	if (hd_event_wait(&start, HD_FOREVER) == 0)
		while (rounds < 10 && hd_write_all(fd, "hello", 5, HD_FOREVER) == 0 &&
		       hd_read_full(fd, reply, 5, hd_after(HD_SEC(10))) == 5)
			rounds++;
	hd_close(fd);
	count(rounds);
	return arg;
}

static void *first(void *arg)
{
	struct hd_group all = { 0 };
	int listener = hd_tcp_listen("127.0.0.1", "0", 0, HD_FOREVER);

	snprintf(port, sizeof port, "%d", hd_sock_port(listener));
	hd_waitgroup_add(&connected, (int)n);
	for (long i = 0; i < n; i++) {
		if (hd_group_spawn(&all, client, NULL) < 0)
			hd_shutdown(1);
		int fd = hd_accept(listener, NULL, NULL, 0, hd_after(HD_SEC(10)));
		if (fd < 0 || hd_group_spawn(&all, echo, (void *)(intptr_t)fd) < 0)
			hd_shutdown(1);
	}
	if (hd_waitgroup_wait(&connected, HD_FOREVER) != 0)
		hd_shutdown(1);

	hd_time began = hd_now();
	hd_event_set(&start);
	if (hd_group_wait(&all, HD_FOREVER) != 0)
		hd_shutdown(1);
	printf("  %s clients were connected at once; %s messages went there and back in %.2f s\n", thousands(n),
	       thousands(total), (double)(hd_now() - began) / 1e9);
	hd_close(listener);
	return arg;
}
/* tour: end */

int chapter_echo(void)
{
	n = how_many_clients();
	total = 0;
	int err = hd_run(NULL, first, NULL);
	return err != 0 ? err : total != 10 * n;
}
