/* net.c - a server and its clients in one program: a process for each connection, and each waits only for itself. */
#include <heddle.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/socket.h>

#define CLIENTS 100

static struct sockaddr_in address = { .sin_family = AF_INET };
static int replies; /* guarded by `counting` */
static struct hd_mutex counting;

/* Sends back what it gets, until the client closes. */
static void *serve(void *connection)
{
	int fd = *(int *)connection;
	char data[256];
	ssize_t n;

	while ((n = hd_read(fd, data, sizeof data, HD_FOREVER)) > 0)
		if (hd_write(fd, data, (size_t)n, HD_FOREVER) != n)
			break;
	hd_close(fd);
	return NULL;
}

static void *client(void *arg)
{
	char reply[5];
	int fd = hd_socket(AF_INET, SOCK_STREAM, 0);

	if (fd >= 0 && hd_connect(fd, (struct sockaddr *)&address, sizeof address, hd_after(HD_SEC(10))) == 0 &&
	    hd_write_all(fd, "hello", 5, HD_FOREVER) == 0 && hd_read_full(fd, reply, 5, hd_after(HD_SEC(10))) == 5 &&
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
	socklen_t size = sizeof address;
	int listener = hd_socket(AF_INET, SOCK_STREAM, 0);

	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (listener < 0 || bind(listener, (struct sockaddr *)&address, size) != 0 || listen(listener, CLIENTS) != 0 ||
	    getsockname(listener, (struct sockaddr *)&address, &size) != 0)
		hd_shutdown(1);
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
