/* soak/echo.c - heddle-soak [MINUTES]: an echo server and its clients in one program, with random cancels, closes, resets and timeouts, for half
 * an hour or so. Every byte of every reply is compared.
 *
 * A minute is an epoch. At its end all clients and connections are gone, and what the program holds then is counted: descriptors, processes and
 * stacks must be as many as after the first epochs. So a leak of one descriptor or process in half an hour is found. Memory goes up and down,
 * with the stacks that are kept warm and tables that have grown once: the least value of the last third of the time must not be 1 % above
 * that of the third before. */
#include <dirent.h>
#include <errno.h>
#include <heddle.h>
#include <limits.h>
#include <malloc.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { CLIENTS = 200, MESSAGE = 4096, EPOCH_SECONDS = 54, WARM_UP = 2, DRIFT = 1 /* percent */ };

static struct sockaddr_in address = { .sin_family = AF_INET };
static int listener;
static hd_time epoch_ends;

/* What has happened in this epoch; written by many processes. */
static struct {
	_Atomic unsigned long connections, messages, bytes, cancels, terminations, timeouts, resets, refused;
} count;

/* The processes that may be cancelled or terminated: a client, or the server's side of a connection. */
static struct {
	struct hd_mutex lock;
	hd_pid pids[2 * CLIENTS];
} victims;

static void fail(const char *what, long got)
{
	fprintf(stderr, "soak: %s: %ld (%s)\n", what, got, got < 0 ? hd_error((int)got) : "");
	abort();
}

static unsigned next_random(unsigned *seed)
{
	*seed = *seed * 1103515245u + 12345u;
	return *seed >> 8;
}

static bool is_over(void)
{
	return hd_now() >= epoch_ends;
}

/* ---- the processes that chaos may meet ---- */

static void expose(hd_pid pid, hd_pid instead)
{
	if (hd_mutex_lock(&victims.lock, HD_FOREVER) != 0)
		fail("hd_mutex_lock", -EINVAL);
	for (int i = 0; i < 2 * CLIENTS; i++)
		if (victims.pids[i] == pid) {
			victims.pids[i] = instead;
			break;
		}
	hd_mutex_unlock(&victims.lock);
}

struct connection {
	int fd;
	hd_pid pid;
	struct hd_cleanup cleanup;
};

static void hang_up(void *arg)
{
	struct connection *c = arg;

	if (c->fd >= 0)
		hd_close(c->fd);
	expose(c->pid, 0);
}

/* ---- the server ---- */

static void *serve(void *arg)
{
	struct connection c = { .fd = (int)(intptr_t)arg, .pid = hd_self() };
	unsigned seed = (unsigned)c.pid;
	unsigned char data[MESSAGE];
	ssize_t n = 1;

	hd_cleanup_push(&c.cleanup, hang_up, &c);
	expose(0, c.pid);
	while (n > 0) {
		n = hd_read(c.fd, data, 1 + next_random(&seed) % MESSAGE, hd_after(HD_MS(1 + next_random(&seed) % 500)));
		if (n == -ETIMEDOUT && next_random(&seed) % 4 != 0)
			n = 1;
		else if (n > 0)
			n = hd_write(c.fd, data, (size_t)n, hd_after(HD_MS(500)));
	}
	hd_cleanup_pop(&c.cleanup, true);
	return NULL;
}

/* Until the epoch is over; then it ends the connections that are left. */
static void *accept_all(void *arg)
{
	struct hd_group connections = { 0 };
	int fd;

	while ((fd = hd_accept(listener, NULL, NULL, 0, epoch_ends)) >= 0) {
		hd_pid pid = hd_group_spawn(&connections, serve, (void *)(intptr_t)fd);
		if (pid < 0)
			fail("hd_group_spawn", (long)pid);
	}
	if (fd != -ETIMEDOUT)
		fail("hd_accept", fd);
	while ((fd = hd_accept(listener, NULL, NULL, 0, hd_after(HD_SEC(6)))) >= 0) /* clients that are late, or gone */
		hd_close(fd);
	hd_group_cancel(&connections);
	int err = hd_group_wait(&connections, HD_FOREVER);
	if (err != 0 && err != -ECANCELED)
		fail("hd_group_wait", err);
	return arg;
}

/* ---- clients ---- */

static unsigned char byte_at(unsigned start, size_t i)
{
	return (unsigned char)(start + i * 7 + (i >> 8));
}

/* Sends a message and compares the reply. Less than 0: the connection is of no use any more. */
static int exchange(const struct connection *c, unsigned *seed)
{
	unsigned char data[MESSAGE];
	size_t n = 1 + next_random(seed) % MESSAGE;
	unsigned start = next_random(seed);

	for (size_t i = 0; i < n; i++)
		data[i] = byte_at(start, i);
	ssize_t moved = hd_write(c->fd, data, n, hd_after(HD_SEC(2)));
	if (moved != (ssize_t)n)
		return moved < 0 ? (int)moved : -EPIPE;
	memset(data, 0, n);
	moved = hd_read_full(c->fd, data, n, hd_after(HD_MS(1 + next_random(seed) % 2000)));
	for (ssize_t i = 0; i < moved; i++)
		if (data[i] != byte_at(start, (size_t)i))
			fail("a byte of a reply is not what was sent, at", (long)i);
	if (moved != (ssize_t)n)
		return moved < 0 ? (int)moved : -EPIPE;
	count.messages++;
	count.bytes += n;
	return 0;
}

static void talk(const struct connection *c, unsigned *seed)
{
	int err = 0;

	for (unsigned left = next_random(seed) % 50; left > 0 && err == 0 && !is_over(); left--) {
		err = exchange(c, seed);
		if (err == 0 && next_random(seed) % 20 == 0)
			err = hd_sleep(HD_MS(next_random(seed) % 20));
	}
	count.timeouts += err == -ETIMEDOUT;
	if (err == 0 && next_random(seed) % 4 == 0) { /* it ends with a reset */
		struct linger reset = { .l_onoff = 1, .l_linger = 0 };
		setsockopt(c->fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
		count.resets++;
	} else if (err == 0 && next_random(seed) % 2 == 0) { /* it ends its half, and reads to the end */
		unsigned char rest[64];
		ssize_t n = 1;
		shutdown(c->fd, SHUT_WR);
		while (n > 0)
			n = hd_read(c->fd, rest, sizeof rest, hd_after(HD_SEC(1)));
	}
}

static void *client(void *arg)
{
	struct connection c = { .fd = -1, .pid = hd_self() };
	unsigned seed = (unsigned)(intptr_t)arg * 7919 + (unsigned)c.pid;

	hd_cleanup_push(&c.cleanup, hang_up, &c);
	expose(0, c.pid);
	c.fd = hd_socket(AF_INET, SOCK_STREAM, 0);
	if (c.fd < 0)
		fail("hd_socket", c.fd);
	int err = hd_connect(c.fd, (struct sockaddr *)&address, sizeof address, hd_after(HD_SEC(5)));
	if (err == 0) {
		count.connections++;
		talk(&c, &seed);
	} else {
		count.refused++;
	}
	hd_cleanup_pop(&c.cleanup, true);
	return NULL;
}

/* One client after the other, until the epoch is over. */
static void *have_clients(void *arg)
{
	while (!is_over()) {
		hd_pid pid = hd_spawn(client, arg);
		struct hd_end end;
		int err = pid < 0 ? (int)pid : hd_join_end(pid, &end, HD_FOREVER);
		if (err != 0)
			fail("a client", err);
	}
	return NULL;
}

/* Cancels or terminates a process, every few milliseconds. */
static void *be_chaos(void *arg)
{
	unsigned seed = 1;

	(void)arg;
	while (!is_over()) {
		hd_pid pid = 0;
		if (hd_sleep(HD_MS(1 + next_random(&seed) % 5)) != 0 || hd_mutex_lock(&victims.lock, HD_FOREVER) != 0)
			fail("chaos", -ECANCELED);
		pid = victims.pids[next_random(&seed) % (2 * CLIENTS)];
		hd_mutex_unlock(&victims.lock);
		if (pid == 0)
			continue;
		if (next_random(&seed) % 2 == 0)
			count.cancels += hd_cancel(pid) == 0;
		else
			count.terminations += hd_terminate(pid, HD_FOREVER) == 0;
	}
	return NULL;
}

/* ---- what the program holds ---- */

struct holding {
	unsigned long fds, processes, stacks, heap, kib;
};

static struct holding count_holding(void)
{
	struct holding h = { 0 };
	struct hd_stats stats;
	unsigned long pages = 0, resident = 0;
	DIR *fds = opendir("/proc/self/fd");
	FILE *statm = fopen("/proc/self/statm", "r");

	if (fds == NULL || statm == NULL || hd_stats(&stats) != 0 || fscanf(statm, "%lu %lu", &pages, &resident) != 2)
		fail("cannot read what the program holds", -errno);
	while (readdir(fds) != NULL)
		h.fds++;
	closedir(fds);
	fclose(statm);
	h.processes = stats.live_processes;
	h.stacks = stats.live_stacks;
	h.heap = mallinfo2().uordblks;
	h.kib = resident * ((unsigned long)sysconf(_SC_PAGESIZE) / 1024);
	return h;
}

/* ---- epochs ---- */

static void run_epoch(void)
{
	struct hd_group clients = { 0 };

	memset(&count, 0, sizeof count);
	epoch_ends = hd_after(HD_SEC(EPOCH_SECONDS));
	hd_pid acceptor = hd_spawn(accept_all, NULL), chaos = hd_spawn(be_chaos, NULL);
	for (intptr_t i = 0; i < CLIENTS; i++)
		if (hd_group_spawn(&clients, have_clients, (void *)i) < 0)
			fail("hd_group_spawn", -ENOMEM);
	if (hd_group_wait(&clients, HD_FOREVER) != 0 || hd_join(acceptor, NULL, HD_FOREVER) != 0 ||
	    hd_join(chaos, NULL, HD_FOREVER) != 0)
		fail("the end of an epoch", -EINVAL);
}

/* By how many percent `now` is more. */
static double growth(unsigned long before, unsigned long now)
{
	return before > 0 ? 100.0 * ((double)now - (double)before) / (double)before : 0;
}

static void *soak(void *arg)
{
	int minutes = *(int *)arg;
	struct holding first = { 0 }, now = { 0 };
	struct holding least[3]; /* in each third */
	socklen_t size = sizeof address;

	for (int i = 0; i < 3; i++)
		least[i].heap = least[i].kib = ULONG_MAX;
	listener = hd_socket(AF_INET, SOCK_STREAM, 0);
	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (listener < 0 || bind(listener, (struct sockaddr *)&address, size) != 0 || listen(listener, 1024) != 0 ||
	    getsockname(listener, (struct sockaddr *)&address, &size) != 0)
		fail("cannot listen", -errno);
	printf("minute connections  messages  MiB cancels terminated timeouts resets refused | fds processes stacks  heap "
	       "resident KiB\n");
	for (int minute = 1; minute <= minutes; minute++) {
		run_epoch();
		now = count_holding();
		if (minute <= WARM_UP)
			first = now;
		struct holding *third = &least[(minute - 1) * 3 / minutes];
		third->heap = now.heap < third->heap ? now.heap : third->heap;
		third->kib = now.kib < third->kib ? now.kib : third->kib;
		printf("%6d %11lu %9lu %4lu %7lu %10lu %8lu %6lu %7lu | %3lu %9lu %6lu %5lu %lu\n", minute, count.connections,
		       count.messages, count.bytes >> 20, count.cancels, count.terminations, count.timeouts, count.resets,
		       count.refused, now.fds, now.processes, now.stacks, now.heap, now.kib);
		fflush(stdout);
		if (now.fds != first.fds || now.processes != first.processes || now.stacks != first.stacks)
			fail("descriptors, processes or stacks were lost in minute", minute);
	}
	hd_close(listener);
	double heap = minutes >= 3 ? growth(least[1].heap, least[2].heap) : 0;
	double resident = minutes >= 3 ? growth(least[1].kib, least[2].kib) : 0;
	printf("in the last third: heap %+.2f %%, resident %+.2f %%\n", heap, resident);
	if (heap >= DRIFT || resident >= DRIFT)
		hd_shutdown(1);
	return NULL;
}

int main(int argc, char **argv)
{
	int minutes = argc > 1 ? atoi(argv[1]) : 30;

	if (minutes < 1) {
		fprintf(stderr, "usage: heddle-soak [MINUTES]\n");
		return 2;
	}
	int err = hd_run(NULL, soak, &minutes);
	if (err < 0)
		fprintf(stderr, "soak: %s\n", hd_error(err));
	puts(err == 0 ? "nothing was lost" : "not well");
	return err != 0;
}
