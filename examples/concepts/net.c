/* net.c - a server and its clients in one program: a process for each connection, and each waits only for itself. */
#include <heddle.h>
#include <stdio.h>

#define CLIENTS 100

static char port[16]; /* of the server */
static int replies;   /* guarded by `counting` */
static struct hd_mutex counting;

/* Sends back what it gets, until the client closes. */
static void *serve(void *connection)
{
	int fd = *(int *)connection;
	char data[256];
	ssize_t n;

	while ((n = hd_read(fd, data, sizeof data, hd_after(HD_SEC(10)))) > 0)
		if (hd_write_all(fd, data, (size_t)n, hd_after(HD_SEC(10))) != 0)
			break;
	hd_close(fd);
	return NULL;
}

static void *client(void *arg)
{
	hd_time until = hd_after(HD_SEC(10));
	char reply[5];
	int fd = hd_tcp_connect("127.0.0.1", port, until);

	if (fd < 0)
		return NULL;
	if (hd_write_all(fd, "hello", 5, until) == 0 && hd_read_full(fd, reply, 5, until) == 5 &&
	    hd_mutex_lock(&counting, HD_FOREVER) == 0) {
		replies++;
		hd_mutex_unlock(&counting);
	}
	hd_close(fd);
	return arg;
}

static void *first(void *arg)
{
	static int connections[CLIENTS];
	struct hd_group all = { 0 };
	int listener = hd_tcp_listen("127.0.0.1", "0", CLIENTS, HD_FOREVER);

	if (listener < 0)
		hd_shutdown(1);
	snprintf(port, sizeof port, "%d", hd_sock_port(listener));
	for (int i = 0; i < CLIENTS; i++)
		if (hd_group_spawn(&all, client, NULL) < 0)
			hd_shutdown(1);
	for (int i = 0; i < CLIENTS; i++) {
		connections[i] = hd_accept(listener, NULL, NULL, 0, hd_after(HD_SEC(10)));
		if (connections[i] < 0 || hd_group_spawn(&all, serve, &connections[i]) < 0)
			hd_shutdown(1);
	}
	if (hd_group_wait(&all, HD_FOREVER) != 0)
		hd_shutdown(1);
	printf("%d clients, %d replies\n", CLIENTS, replies);
	hd_close(listener);
	return arg;
}

int main(void)
{
	return hd_run(NULL, first, NULL) != 0;
}
