/* hd_fd_lock: a turn that is kept over several calls; on the simulated runtime too. */
#include <heddle.h>

#include "io/common.h"

/* ---- exchanges are not mixed ---- */

#define PARTS 3
#define WRITERS 5

static void *write_in_parts(void *arg)
{
	int fd = *(int *)arg;
	char letter = (char)('a' + hd_self() % 26);

	CHECK_EQ(hd_fd_lock(fd, HD_FD_WRITING, HD_FOREVER), 0);
	CHECK_EQ(hd_fd_lock(fd, HD_FD_WRITING, HD_FOREVER), 0); /* they nest */
	for (int i = 0; i < PARTS; i++) {
		CHECK_EQ(hd_write(fd, &letter, 1, HD_FOREVER), 1);
		if (i == 1)
			CHECK_EQ(hd_fd_unlock(fd, HD_FD_WRITING), 0);
		hd_yield();
	}
	CHECK_EQ(hd_fd_unlock(fd, HD_FD_WRITING), 0);
	CHECK_EQ(hd_fd_unlock(fd, HD_FD_WRITING), -EPERM);
	return NULL;
}

static void *read_whole_exchanges(void *arg)
{
	int pair[2];
	hd_pid pids[WRITERS];
	char data[PARTS];

	(void)arg;
	CHECK_EQ(hd_pipe(pair), 0);
	for (int i = 0; i < WRITERS; i++)
		pids[i] = spawned(write_in_parts, &pair[1]);
	for (int i = 0; i < WRITERS; i++) {
		CHECK_EQ(hd_read_full(pair[0], data, PARTS, HD_FOREVER), PARTS);
		for (int k = 1; k < PARTS; k++)
			CHECK_EQ(data[k], data[0]);
	}
	for (int i = 0; i < WRITERS; i++)
		joined(pids[i]);
	CHECK_EQ(hd_close(pair[0]), 0);
	CHECK_EQ(hd_close(pair[1]), 0);
	return NULL;
}

HD_TEST(fd_lock_keeps_exchanges_whole)
{
	WORKERS(w) run_on(w, read_whole_exchanges, NULL);
}

/* ---- a holder that ends gives it up ---- */

enum ending { RETURNS, EXITS, IS_TERMINATED, IS_UNWOUND };

struct holder {
	int fd;
	enum ending ending;
	struct hd_semaphore holds;
};

static void *hold(void *arg)
{
	struct holder *h = arg;

	CHECK_EQ(hd_fd_lock(h->fd, HD_FD_READING | HD_FD_WRITING, HD_FOREVER), 0);
	if (h->ending == IS_UNWOUND)
		hd_set_cancel_type(HD_CANCEL_UNWIND);
	hd_semaphore_signal(&h->holds);
	if (h->ending == EXITS)
		hd_exit(NULL);
	if (h->ending != RETURNS)
		ANY_ANSWER(hd_sleep(HD_FOREVER));
	return NULL;
}

static void *wait_for_lock(void *arg)
{
	int fd = *(int *)arg;

	CHECK_EQ(hd_fd_lock(fd, HD_FD_WRITING, HD_FOREVER), 0);
	CHECK_EQ(hd_fd_unlock(fd, HD_FD_WRITING), 0);
	return NULL;
}

static void *outlive_holder(void *arg)
{
	int pair[2];
	struct hd_end end;
	struct holder h = { .ending = *(enum ending *)arg };

	CHECK_EQ(hd_pipe(pair), 0);
	h.fd = pair[1];
	hd_pid pid = spawned(hold, &h);
	CHECK_EQ(hd_semaphore_wait(&h.holds, HD_FOREVER), 0);
	hd_pid waiter = spawned(wait_for_lock, &pair[1]);
	if (h.ending >= IS_TERMINATED) {
		struct hd_process_info info = when_it_waits(waiter, HD_WAIT_FD_WRITE_TURN);
		CHECK_EQ(info.holder, pid);
		CHECK_EQ(info.fd, pair[1]);
		CHECK_EQ(hd_fd_lock(pair[1], HD_FD_READING, hd_after(HD_MS(1))), -ETIMEDOUT);
		CHECK_EQ(hd_fd_unlock(pair[1], HD_FD_READING), -EPERM);
		CHECK_EQ(h.ending == IS_TERMINATED ? hd_terminate(pid, HD_FOREVER) : hd_cancel(pid), 0);
	}
	joined(waiter);
	CHECK_EQ(hd_join_end(pid, &end, HD_FOREVER), 0);
	CHECK_EQ(hd_fd_lock(pair[1], HD_FD_READING | HD_FD_WRITING, HD_FOREVER), 0); /* both flows are free */
	CHECK_EQ(hd_close(pair[1]), 0);						     /* which takes the locks away */
	CHECK_EQ(hd_fd_unlock(pair[1], HD_FD_READING), -EPERM);
	CHECK_EQ(hd_close(pair[0]), 0);
	return NULL;
}

HD_TEST(fd_lock_is_given_up_when_its_holder_ends)
{
	WORKERS(w)
	for (enum ending ending = RETURNS; ending <= IS_UNWOUND; ending++)
		run_on(w, outlive_holder, &ending);
}

/* ---- hd_close takes it away ---- */

static void *close_under_holder(void *arg)
{
	int pair[2], next[2];
	struct holder h = { .ending = IS_TERMINATED };
	char c;

	(void)arg;
	CHECK_EQ(hd_pipe(pair), 0);
	h.fd = pair[1];
	hd_pid pid = spawned(hold, &h);
	CHECK_EQ(hd_semaphore_wait(&h.holds, HD_FOREVER), 0);
	CHECK_EQ(hd_close(pair[1]), 0);
	CHECK_EQ(hd_pipe(next), 0); /* one of its ends has the number */
	CHECK_EQ(hd_write(next[1], "x", 1, HD_FOREVER), 1);
	CHECK_EQ(hd_fd_lock(next[1], HD_FD_WRITING, HD_FOREVER), 0);
	CHECK_EQ(hd_terminate(pid, HD_FOREVER), 0); /* it gives up nothing that is not its own any more */
	ANY_ANSWER(hd_join_end(pid, &(struct hd_end){ 0 }, HD_FOREVER));
	CHECK_EQ(hd_fd_unlock(next[1], HD_FD_WRITING), 0);
	CHECK_EQ(hd_read(next[0], &c, 1, HD_FOREVER), 1);
	CHECK_EQ(hd_close(pair[0]), 0);
	CHECK_EQ(hd_close(next[0]), 0);
	CHECK_EQ(hd_close(next[1]), 0);
	return NULL;
}

HD_TEST(fd_lock_is_taken_away_by_close)
{
	WORKERS(w) run_on(w, close_under_holder, NULL);
}

/* Holders unlock, and others come, while the descriptor is closed: each call answers one thing or the other, and no turn is passed on twice. */
static void *lock_and_unlock(void *arg)
{
	int fd = *(int *)arg;

	for (int i = 0; i < 4; i++) {
		int err = hd_fd_lock(fd, HD_FD_READING | HD_FD_WRITING, HD_FOREVER);
		CHECK(err == 0 || err == -EBADF);
		if (i % 2 == 0)
			hd_yield();
		if (err == 0) {
			err = hd_fd_unlock(fd, HD_FD_READING | HD_FD_WRITING);
			CHECK(err == 0 || err == -EPERM);
		}
	}
	return NULL;
}

static void *close_under_lockers(void *arg)
{
	(void)arg;
	for (int i = 0; i < (hd_is_simulated() ? 2 : hd_scaled(200)); i++) {
		int pair[2];
		hd_pid pids[4];
		CHECK_EQ(hd_pipe(pair), 0);
		for (int k = 0; k < 4; k++)
			pids[k] = spawned(lock_and_unlock, &pair[0]);
		if (i % 2 == 0)
			hd_yield();
		CHECK_EQ(hd_close(pair[0]), 0);
		for (int k = 0; k < 4; k++)
			joined(pids[k]);
		CHECK_EQ(hd_close(pair[1]), 0);
	}
	return NULL;
}

HD_TEST(fd_lock_races_with_close)
{
	WORKERS(w) run_on(w, close_under_lockers, NULL);
}

HD_TEST(fd_lock_answers_misuse)
{
	CHECK_EQ(hd_fd_lock(0, HD_FD_READING, HD_FOREVER), -ENOTSUP); /* a plain thread has no turns */
	CHECK_EQ(hd_fd_unlock(0, HD_FD_READING), -ENOTSUP);
}

static void *misuse(void *arg)
{
	(void)arg;
	CHECK_EQ(hd_fd_lock(0, 0, HD_FOREVER), -EINVAL);
	CHECK_EQ(hd_fd_lock(0, 4, HD_FOREVER), -EINVAL);
	CHECK_EQ(hd_fd_lock(-1, HD_FD_READING, HD_FOREVER), -EBADF);
	CHECK_EQ(hd_fd_lock(99, HD_FD_READING, HD_FOREVER), -EBADF); /* it is not open */
	CHECK_EQ(hd_fd_unlock(100, HD_FD_READING), -EPERM);
	return NULL;
}

HD_TEST(fd_lock_answers_misuse_of_processes)
{
	run_on(1, misuse, NULL);
}
