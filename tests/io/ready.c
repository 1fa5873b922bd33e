/* Waiting for one of several descriptors, by hd_fd_poll, hd_fd_select and hd_select; on the simulated runtime too. */
#include <fcntl.h>
#include <heddle.h>
#include <poll.h>
#include <string.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/atomic.h"
#include "io/common.h"
#include "os/fault.h"

static void make_pipes(int pipes[][2], int n)
{
	for (int i = 0; i < n; i++)
		CHECK_EQ(hd_pipe(pipes[i]), 0);
}

static void close_pipes(int pipes[][2], int n)
{
	for (int i = 0; i < n; i++)
		for (int end = 0; end < 2; end++)
			CHECK_EQ(hd_close(pipes[i][end]), 0);
}

/* ---- what is ready at once ---- */

static void *poll_at_once(void *arg)
{
	int pipes[2][2], gone;

	(void)arg;
	make_pipes(pipes, 2);
	struct pollfd fds[] = { { .fd = pipes[0][0], .events = POLLIN },
				{ .fd = -1, .events = POLLIN, .revents = 77 },
				{ .fd = pipes[1][1], .events = POLLOUT } };
	CHECK_EQ(hd_fd_poll(fds, 1, 0), -ETIMEDOUT);
	CHECK_EQ(hd_fd_poll(fds, 1, hd_after(HD_MS(2))), -ETIMEDOUT);
	CHECK_EQ(hd_fd_poll(fds, 1, HD_MS(2)), -EINVAL);
	CHECK_EQ(hd_fd_poll(fds, 3, HD_FOREVER), 1);
	CHECK_EQ(fds[0].revents, 0);
	CHECK_EQ(fds[1].revents, 0);
	CHECK_EQ(fds[2].revents, POLLOUT);
	CHECK_EQ(hd_write(pipes[0][1], "x", 1, HD_FOREVER), 1);
	CHECK_EQ(hd_fd_poll(fds, 3, 0), 2);
	CHECK_EQ(fds[0].revents, POLLIN);
	gone = pipes[1][0];
	close_pipes(pipes, 2);
	fds[0] = (struct pollfd){ .fd = gone, .events = POLLIN };
	CHECK_EQ(hd_fd_poll(fds, 1, HD_FOREVER), 1);
	CHECK_EQ(fds[0].revents, POLLNVAL);
	CHECK_EQ(hd_fd_poll(NULL, 0, hd_after(HD_MS(1))), -ETIMEDOUT);
	return NULL;
}

HD_TEST(ready_poll_says_what_is_ready)
{
	WORKERS(w) run_on(w, poll_at_once, NULL);
}

static void *poll_file(void *arg)
{
	int fd = open("/proc/self/stat", O_RDONLY);
	struct pollfd p = { .fd = fd, .events = POLLIN | POLLOUT };
	short revents = 0;
	struct hd_case c = hd_case_fd(fd, POLLIN, &revents);

	(void)arg;
	CHECK(fd >= 0);
	CHECK_EQ(hd_fd_poll(&p, 1, HD_FOREVER), 1); /* it can be in no set of epoll's: it is always ready */
	CHECK_EQ(p.revents, POLLIN | POLLOUT);
	CHECK_EQ(hd_select(&c, 1, HD_FOREVER), 0);
	CHECK_EQ(revents, POLLIN);
	CHECK_EQ(hd_close(fd), 0);
	return NULL;
}

HD_TEST(ready_regular_files_are_always)
{
	if (hd_is_simulated())
		SKIP("there are no files");
	WORKERS(w) run_on(w, poll_file, NULL);
}

/* ---- what becomes ready ---- */

#define PIPES 12 /* more than a call can hold on its stack */

struct crowd {
	int pipes[PIPES][2];
	int rounds;
};

static void *write_here_and_there(void *arg)
{
	struct crowd *c = arg;
	unsigned seed = 1;

	for (int i = 0; i < c->rounds; i++) {
		CHECK_EQ(hd_write(c->pipes[next_random(&seed) % PIPES][1], "x", 1, HD_FOREVER), 1);
		if (next_random(&seed) % 4 == 0)
			hd_yield();
	}
	return NULL;
}

/* Each byte is found, whichever pipe it comes by. */
static void *read_what_is_ready(void *arg)
{
	struct crowd c = { .rounds = hd_is_simulated() ? 20 : hd_scaled(2000) };
	struct pollfd fds[PIPES];
	int got = 0;

	(void)arg;
	make_pipes(c.pipes, PIPES);
	for (int i = 0; i < PIPES; i++)
		fds[i] = (struct pollfd){ .fd = c.pipes[i][0], .events = POLLIN };
	hd_pid writer = spawned(write_here_and_there, &c);
	while (got < c.rounds) {
		int ready = hd_fd_poll(fds, PIPES, HD_FOREVER), seen = 0;
		for (int i = 0; i < PIPES; i++)
			if (fds[i].revents != 0) {
				char data[8];
				CHECK_EQ(fds[i].revents, POLLIN);
				ssize_t n = hd_read(fds[i].fd, data, sizeof data, 0);
				CHECK(n > 0);
				got += (int)n;
				seen++;
			}
		CHECK_EQ(seen, ready);
	}
	joined(writer);
	CHECK_EQ(hd_fd_poll(fds, PIPES, 0), -ETIMEDOUT);
	close_pipes(c.pipes, PIPES);
	return NULL;
}

HD_TEST(ready_no_byte_is_overlooked)
{
	WORKERS(w) run_on(w, read_what_is_ready, NULL);
}

/* The byte comes in any moment of the poll: before it, when it asks the kernel, when it begins to wait. No other byte makes up for it. */
static void *write_one(void *arg)
{
	CHECK_EQ(hd_write(*(int *)arg, "x", 1, HD_FOREVER), 1);
	return NULL;
}

/* The worker on which this runs watches the pipe from now on, and hears of the byte at once. */
struct errand {
	int fd;
	bool done;
};

static void *poll_once(void *arg)
{
	struct errand *e = arg;
	struct pollfd p = { .fd = e->fd, .events = POLLIN };

	CHECK_EQ(hd_fd_poll(&p, 1, 0), -ETIMEDOUT);
	st_rel(&e->done, true);
	return NULL;
}

static void poll_elsewhere(int fd)
{
	struct errand e = { .fd = fd };
	struct hd_stats stats;

	CHECK_EQ(hd_stats(&stats), 0);
	hd_pid pid = spawned(poll_once, &e);
	while (stats.workers > 1 && !ld_acq(&e.done)) /* it is no worse than its equal: so another worker takes it */
		hd_checkpoint();
	joined(pid);
}

static void *await_one(void *arg)
{
	int pipes[1][2];
	bool select = arg != NULL;

	for (int i = 0; i < (hd_is_simulated() ? 5 : hd_scaled(200)); i++) {
		make_pipes(pipes, 1);
		poll_elsewhere(pipes[0][0]);
		hd_pid writer = spawned(write_one, &pipes[0][1]);
		struct pollfd p = { .fd = pipes[0][0], .events = POLLIN };
		struct hd_case c = hd_case_fd(pipes[0][0], POLLIN, &p.revents);
		char byte;
		CHECK_EQ(select ? hd_select(&c, 1, HD_FOREVER) + 1 : hd_fd_poll(&p, 1, HD_FOREVER), 1);
		CHECK_EQ(p.revents, POLLIN);
		CHECK_EQ(hd_read(pipes[0][0], &byte, 1, 0), 1);
		joined(writer);
		close_pipes(pipes, 1);
	}
	return NULL;
}

HD_TEST(ready_poll_hears_of_the_only_byte)
{
	WORKERS(w) run_on(w, await_one, NULL);
}

HD_TEST(ready_select_hears_of_the_only_byte)
{
	WORKERS(w) run_on(w, await_one, &(bool){ true });
}

/* ---- select over descriptors and queues ---- */

struct feed {
	int fd, rounds;
	hd_queue *queue;
};

static void *feed_pipe(void *arg)
{
	struct feed *f = arg;

	for (int i = 0; i < f->rounds; i++)
		CHECK_EQ(hd_write(f->fd, "x", 1, HD_FOREVER), 1);
	return NULL;
}

static void *feed_queue(void *arg)
{
	struct feed *f = arg;

	for (int i = 0; i < f->rounds; i++)
		CHECK_EQ(hd_queue_put(f->queue, &i, HD_FOREVER), 0);
	return NULL;
}

static void *select_both(void *arg)
{
	struct feed f = { .rounds = hd_is_simulated() ? 15 : hd_scaled(2000), .queue = hd_queue_new(sizeof(int), 4) };
	int pipes[1][2], item, bytes = 0, items = 0;

	(void)arg;
	CHECK(f.queue != NULL);
	make_pipes(pipes, 1);
	f.fd = pipes[0][1];
	hd_pid feeders[] = { spawned(feed_pipe, &f), spawned(feed_queue, &f) };
	while (bytes + items < 2 * f.rounds) {
		short revents = 0;
		struct hd_case cases[] = { hd_case_fd(pipes[0][0], POLLIN, &revents), hd_case_next(f.queue, &item) };
		int i = hd_select(cases, 2, HD_FOREVER);
		CHECK(i >= 0);
		CHECK_EQ(cases[i].err, 0);
		if (i == 0) {
			char data[3];
			CHECK_EQ(revents, POLLIN);
			ssize_t n = hd_read(pipes[0][0], data, sizeof data, 0);
			CHECK(n > 0);
			bytes += (int)n;
		} else {
			CHECK_EQ(item, items);
			items++;
		}
	}
	CHECK_EQ(bytes, f.rounds);
	joined(feeders[0]);
	joined(feeders[1]);
	short revents;
	struct hd_case nothing[] = { hd_case_fd(pipes[0][0], POLLIN, &revents), hd_case_time(hd_after(HD_MS(1))) };
	CHECK_EQ(hd_select(nothing, 1, 0), -ETIMEDOUT);
	CHECK_EQ(hd_select(nothing, 2, HD_FOREVER), 1);
	hd_queue_drop(f.queue);
	close_pipes(pipes, 1);
	return NULL;
}

HD_TEST(ready_select_takes_from_pipe_and_queue)
{
	WORKERS(w) run_on(w, select_both, NULL);
}

/* Cases that do not happen take nothing: a descriptor has no part in what another case does. */
static void *select_bad_fds(void *arg)
{
	struct hd_semaphore s = HD_SEMAPHORE(1);
	short revents = 0;
	struct hd_case cases[] = { hd_case_fd(-1, POLLIN, &revents), hd_case_semaphore(&s) };

	(void)arg;
	CHECK_EQ(hd_select_first(cases, 2, HD_FOREVER), 0);
	CHECK_EQ(cases[0].err, -EBADF);
	CHECK_EQ(revents, POLLNVAL);
	CHECK_EQ(hd_semaphore_try_wait(&s), 0);
	return NULL;
}

HD_TEST(ready_select_answers_a_bad_descriptor)
{
	WORKERS(w) run_on(w, select_bad_fds, NULL);
}

/* ---- the end ---- */

static void *poll_for_ever(void *arg)
{
	struct pollfd p = { .fd = *(int *)arg, .events = POLLIN };
	int answer = hd_fd_poll(&p, 1, HD_FOREVER);
	return (void *)(intptr_t)(answer < 0 ? answer : p.revents);
}

static void *select_for_ever(void *arg)
{
	short revents = 0;
	struct hd_case c = hd_case_fd(*(int *)arg, POLLIN, &revents);
	int answer = hd_select(&c, 1, HD_FOREVER);
	return (void *)(intptr_t)(answer < 0 ? answer : c.err);
}

static void *end_under_watchers(void *arg)
{
	int pipes[1][2];
	int how = *(int *)arg;

	make_pipes(pipes, 1);
	hd_pid poller = spawned(poll_for_ever, &pipes[0][0]), selecter = spawned(select_for_ever, &pipes[0][0]);
	when_it_waits(poller, HD_WAIT_FD_POLL);
	when_it_waits(selecter, HD_WAIT_SELECT);
	if (how == 0) {
		CHECK_EQ(hd_close(pipes[0][0]), 0);
		CHECK_EQ((intptr_t)joined(poller), POLLNVAL);
		CHECK_EQ((intptr_t)joined(selecter), -EBADF);
		CHECK_EQ(hd_close(pipes[0][1]), 0);
		return NULL;
	}
	if (how == 1) {
		CHECK_EQ(hd_cancel(poller), 0);
		CHECK_EQ(hd_cancel(selecter), 0);
		CHECK_EQ((intptr_t)joined(poller), -ECANCELED);
		CHECK_EQ((intptr_t)joined(selecter), -ECANCELED);
	} else {
		struct hd_end end;
		CHECK_EQ(hd_terminate(poller, HD_FOREVER), 0);
		CHECK_EQ(hd_terminate(selecter, HD_FOREVER), 0);
		CHECK_EQ(hd_join_end(poller, &end, HD_FOREVER), 0);
		CHECK_EQ(hd_join_end(selecter, &end, HD_FOREVER), 0);
	}
	/* they are gone, and the pipe works on */
	CHECK_EQ(hd_write(pipes[0][1], "x", 1, HD_FOREVER), 1);
	CHECK_EQ((intptr_t)poll_for_ever(&pipes[0][0]), POLLIN);
	close_pipes(pipes, 1);
	return NULL;
}

HD_TEST(ready_close_wakes_watchers)
{
	WORKERS(w)
	for (int i = 0; i < 10; i++)
		run_on(w, end_under_watchers, &(int){ 0 });
}

HD_TEST(ready_cancel_ends_a_poll)
{
	WORKERS(w) run_on(w, end_under_watchers, &(int){ 1 });
}

HD_TEST(ready_terminate_ends_a_poll)
{
	WORKERS(w) run_on(w, end_under_watchers, &(int){ 2 });
}

/* A descriptor is closed while another process begins to poll it: the poll ends, and the next descriptor of that number is heard of. */
static void *close_and_open(void *arg)
{
	(void)arg;
	for (int i = 0; i < (hd_is_simulated() ? 3 : hd_scaled(300)); i++) {
		int pipes[1][2];
		make_pipes(pipes, 1);
		hd_pid poller = spawned(poll_for_ever, &pipes[0][0]);
		if (i % 3 == 0)
			hd_yield();
		CHECK_EQ(hd_close(pipes[0][0]), 0);
		CHECK_EQ(hd_close(pipes[0][1]), 0);
		make_pipes(pipes, 1); /* of the same numbers, as a rule */
		hd_pid reader = spawned(poll_for_ever, &pipes[0][0]);
		if (i % 2 == 0)
			hd_yield();
		CHECK_EQ(hd_write(pipes[0][1], "x", 1, HD_FOREVER), 1);
		CHECK_EQ((intptr_t)joined(reader), POLLIN);
		intptr_t answer = (intptr_t)joined(poller);
		if (answer != POLLNVAL) /* it may have begun late, with the new descriptor */
			CHECK_EQ(answer, POLLIN);
		close_pipes(pipes, 1);
	}
	return NULL;
}

HD_TEST(ready_close_and_open_under_pollers)
{
	WORKERS(w) run_on(w, close_and_open, NULL);
}

/* ---- sets, threads, no memory ---- */

static void *select_sets(void *arg)
{
	int pipes[2][2];
	fd_set readable, writable;

	(void)arg;
	make_pipes(pipes, 2);
	FD_ZERO(&readable);
	FD_ZERO(&writable);
	FD_SET(pipes[0][0], &readable);
	FD_SET(pipes[1][0], &readable);
	CHECK_EQ(hd_fd_select(FD_SETSIZE, &readable, NULL, NULL, hd_after(HD_MS(1))), -ETIMEDOUT);
	CHECK(FD_ISSET(pipes[0][0], &readable) && FD_ISSET(pipes[1][0], &readable)); /* left as they were */
	CHECK_EQ(hd_write(pipes[1][1], "x", 1, HD_FOREVER), 1);
	FD_SET(pipes[0][1], &writable);
	CHECK_EQ(hd_fd_select(pipes[1][1] + 1, &readable, &writable, NULL, HD_FOREVER), 2);
	CHECK(!FD_ISSET(pipes[0][0], &readable) && FD_ISSET(pipes[1][0], &readable));
	CHECK(FD_ISSET(pipes[0][1], &writable));
	CHECK_EQ(hd_fd_select(FD_SETSIZE + 1, &readable, NULL, NULL, 0), -EINVAL);
	int gone = pipes[1][0];
	close_pipes(pipes, 2);
	FD_ZERO(&readable);
	FD_SET(gone, &readable);
	CHECK_EQ(hd_fd_select(gone + 1, &readable, NULL, NULL, HD_FOREVER), -EBADF);
	return NULL;
}

HD_TEST(ready_sets_become_what_is_ready)
{
	WORKERS(w) run_on(w, select_sets, NULL);
	select_sets(NULL); /* a plain thread */
}

HD_TEST(ready_poll_waits_on_a_plain_thread)
{
	poll_at_once(NULL);
}

static void *poll_without_memory(void *arg)
{
	struct pollfd fds[PIPES];

	(void)arg;
	for (int i = 0; i < PIPES; i++)
		fds[i] = (struct pollfd){ .fd = -1 };
	hd__fault_arm(HD__FAULT_ALLOC, 1, true);
	int answer = hd_fd_poll(fds, PIPES, 0), few = hd_fd_poll(fds, 2, 0);
	hd__fault_arm(HD__FAULT_ALLOC, 0, false);
	CHECK_EQ(answer, -ENOMEM);
	CHECK_EQ(few, -ETIMEDOUT);
	return NULL;
}

HD_TEST(ready_poll_of_many_needs_memory)
{
	run_on(1, poll_without_memory, NULL);
}
