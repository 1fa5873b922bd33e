/* io/file.c - files: what is written is what is read, on any number of workers; and calls that wait for a disk, a lock or another program are
 * waited for, timed out, cancelled and closed. The simulated runtime has one file, of 64 bytes, and refuses what it cannot do. */
#define _GNU_SOURCE
#include <heddle/io.h>

#include <fcntl.h>
#include <pty.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "io/pool.h"
#include "os/fault.h"
#include "sync/common.h"

#define NOT_SIMULATED()                                                                                                        \
	do                                                                                                                     \
		if (hd_is_simulated())                                                                                         \
			SKIP("the simulated file can only be read and written");                                               \
	while (0)

static char path[] = "/tmp/heddle-file-XXXXXX", fifo[sizeof path + 5];

/* A new file without a name. */
static int new_file(int flags)
{
	if (hd_is_simulated()) {
		int fd = hd_open("file", O_RDWR | O_TRUNC, 0, HD_FOREVER);
		CHECK(fd >= 0);
		return fd;
	}
	strcpy(path + sizeof path - 7, "XXXXXX");
	int made = mkstemp(path);
	CHECK(made >= 0);
	int fd = hd_open(path, O_RDWR | flags, 0, HD_FOREVER);
	CHECK(fd >= 0);
	CHECK_EQ(close(made), 0);
	CHECK_EQ(unlink(path), 0);
	return fd;
}

/* Its path is in `fifo`. */
static void new_fifo(void)
{
	strcpy(path + sizeof path - 7, "XXXXXX");
	CHECK(mkdtemp(path) != NULL);
	snprintf(fifo, sizeof fifo, "%s/fifo", path);
	CHECK_EQ(mkfifo(fifo, 0600), 0);
}

static void remove_fifo(void)
{
	CHECK_EQ(unlink(fifo), 0);
	CHECK_EQ(rmdir(path), 0);
}

static unsigned char byte_at(size_t i)
{
	return (unsigned char)(i * 31 + (i >> 8));
}

static void fill(unsigned char *data, size_t start, size_t n)
{
	for (size_t i = 0; i < n; i++)
		data[i] = byte_at(start + i);
}

static void check_bytes(const unsigned char *data, size_t start, size_t n)
{
	for (size_t i = 0; i < n; i++)
		CHECK_EQ(data[i], byte_at(start + i));
}

static long answer_of(hd_pid pid)
{
	void *result;

	CHECK_EQ(hd_join(pid, &result, HD_FOREVER), 0);
	return (long)result;
}

static void await_why(hd_pid pid, enum hd_wait why, int fd)
{
	while (info_on(pid).why != why)
		CHECK_EQ(hd_sleep(HD_US(50)), 0);
	CHECK_EQ(info_on(pid).fd, fd);
}

/* ---- contents ---- */

#define WRITERS 8

struct share {
	int fd;
	size_t start, n;
};

static size_t share_size(void)
{
	return hd_is_simulated() ? 8 : (size_t)hd_scaled(200000);
}

static void *write_share(void *arg)
{
	struct share *s = arg;
	unsigned char *data = malloc(s->n);
	struct iovec parts[2] = { { data, s->n / 3 }, { data + s->n / 3, s->n - s->n / 3 } };

	fill(data, s->start, s->n);
	CHECK_EQ(hd_pwritev(s->fd, parts, 2, (off_t)s->start, HD_FOREVER), s->n);
	free(data);
	return NULL;
}

static void *read_all(void *arg)
{
	struct share *s = arg;
	unsigned char data[1000];
	size_t at = 0;
	ssize_t n;

	while ((n = hd_pread(s->fd, data, sizeof data, (off_t)at, HD_FOREVER)) > 0) {
		check_bytes(data, at, (size_t)n);
		at += (size_t)n;
	}
	CHECK_EQ(n, 0);
	CHECK_EQ(at, WRITERS * share_size());
	return NULL;
}

static void write_and_read(int flags)
{
	struct share shares[WRITERS];
	hd_pid pids[WRITERS];
	int fd = new_file(flags);

	for (int round = 0; round < 2; round++) {
		for (int i = 0; i < WRITERS; i++) {
			shares[i] = (struct share){ fd, (size_t)i * share_size(), share_size() };
			pids[i] = spawned(hd_spawn(round == 0 ? write_share : read_all, &shares[i]));
		}
		for (int i = 0; i < WRITERS; i++)
			CHECK_EQ(hd_join(pids[i], NULL, HD_FOREVER), 0);
		if (round == 0 && !hd_is_simulated()) {
			CHECK_EQ(hd_fdatasync(fd, HD_FOREVER), 0);
			CHECK_EQ(posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED), 0); /* so that reads wait for the disk */
		}
	}
	CHECK_EQ(hd_close(fd), 0);
}

HD_WORKERS_TEST(file_holds_what_processes_write)
{
	write_and_read(0);
	(void)workers;
}

static bool often(enum hd__fault kind)
{
	static long calls;
	return (kind == HD__FAULT_EINTR || kind == HD__FAULT_SHORT) && add(&calls, 1) % 3 != 0;
}

HD_WORKERS_TEST(file_holds_what_is_written_in_spite_of_interrupts_and_short_counts)
{
	unsigned char data[300];
	int fd = new_file(0);

	if (!hd_is_simulated())
		st_rel(&hd__fault_door, often);
	size_t n = hd_is_simulated() ? 40 : sizeof data;
	fill(data, 0, n);
	CHECK_EQ(hd_write(fd, data, n, HD_FOREVER), n);
	CHECK_EQ(hd_pwrite(fd, data + 10, n - 10, 10, HD_FOREVER), n - 10);
	memset(data, 0, sizeof data);
	CHECK_EQ(hd_pread(fd, data, sizeof data, 0, HD_FOREVER), n);
	check_bytes(data, 0, n);
	CHECK_EQ(hd_read(fd, data, sizeof data, HD_FOREVER), 0);
	if (!hd_is_simulated()) {
		CHECK_EQ(hd_fsync(fd, HD_FOREVER), 0);
		st_rel(&hd__fault_door, NULL);
	}
	CHECK_EQ(hd_close(fd), 0);
	(void)workers;
}

static void do_nothing(int sig)
{
	(void)sig;
}

HD_WORKERS_TEST(file_holds_what_is_written_in_a_storm_of_signals)
{
	NOT_SIMULATED();
	struct sigaction action = { .sa_handler = do_nothing }; /* without SA_RESTART */
	struct itimerval often_enough = { { 0, 300 }, { 0, 300 } };

	CHECK_EQ(sigaction(SIGALRM, &action, NULL), 0);
	CHECK_EQ(setitimer(ITIMER_REAL, &often_enough, NULL), 0);
	write_and_read(0);
	CHECK_EQ(setitimer(ITIMER_REAL, &(struct itimerval){ { 0, 0 }, { 0, 0 } }, NULL), 0);
	(void)workers;
}

/* The position of the open file is one for all: each byte is read once, and a count is short only at the end. */
static void *read_by_position(void *arg)
{
	struct share *s = arg;
	unsigned char *data = malloc(s->n);
	long got = 0;
	ssize_t n;

	while ((n = s->start % 2 ? hd_read(s->fd, data, s->n, HD_FOREVER) : hd_read_full(s->fd, data, s->n, HD_FOREVER)) ==
	       (ssize_t)s->n) {
		size_t start = (size_t)data[0] | (size_t)data[1] << 8;
		for (size_t i = 0; i < s->n; i += 2)
			CHECK_EQ(data[i] | data[i + 1] << 8, start + i / 2);
		got += n;
	}
	CHECK_EQ(n, 0);
	free(data);
	return (void *)got;
}

HD_WORKERS_TEST(file_position_is_shared)
{
	int fd = new_file(0), numbers = hd_is_simulated() ? 30 : 30000;
	struct share shares[WRITERS];
	hd_pid pids[WRITERS];
	long got = 0;

	for (int i = 0; i < numbers; i++) {
		unsigned char number[2] = { (unsigned char)i, (unsigned char)(i >> 8) };
		CHECK_EQ(hd_pwrite(fd, number, 2, 2 * i, HD_FOREVER), 2);
	}
	if (!hd_is_simulated()) {
		CHECK_EQ(fsync(fd), 0);
		CHECK_EQ(posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED), 0);
	}
	for (int i = 0; i < WRITERS; i++) {
		shares[i] = (struct share){ fd, (size_t)i, hd_is_simulated() ? 6 : 60 };
		pids[i] = spawned(hd_spawn(read_by_position, &shares[i]));
	}
	for (int i = 0; i < WRITERS; i++)
		got += answer_of(pids[i]);
	CHECK_EQ(got, 2 * numbers);
	CHECK_EQ(hd_close(fd), 0);
	(void)workers;
}

static void *append_lines(void *arg)
{
	char line[80];

	memset(line, (int)('a' + hd_self() % 26), sizeof line - 1);
	line[sizeof line - 1] = '\n';
	for (int i = 0; i < 50; i++)
		CHECK_EQ(hd_write(*(int *)arg, line, sizeof line, HD_FOREVER), sizeof line);
	return NULL;
}

HD_WORKERS_TEST(file_lines_are_appended_whole)
{
	NOT_SIMULATED();
	int fd = new_file(O_APPEND);
	hd_pid pids[WRITERS];
	char line[80];

	for (int i = 0; i < WRITERS; i++)
		pids[i] = spawned(hd_spawn(append_lines, &fd));
	for (int i = 0; i < WRITERS; i++)
		CHECK_EQ(hd_join(pids[i], NULL, HD_FOREVER), 0);
	for (int i = 0; i < WRITERS * 50; i++) {
		CHECK_EQ(hd_pread(fd, line, sizeof line, (off_t)(i * sizeof line), HD_FOREVER), sizeof line);
		CHECK_EQ(line[sizeof line - 1], '\n');
		for (size_t k = 1; k < sizeof line - 1; k++)
			CHECK_EQ(line[k], line[0]);
	}
	CHECK_EQ(hd_close(fd), 0);
	(void)workers;
}

HD_PROCESS_TEST(file_past_the_page_cache)
{
	NOT_SIMULATED();
	unsigned char *data = aligned_alloc(4096, 8192);
	strcpy(path + sizeof path - 7, "XXXXXX");
	int made = mkstemp(path), fd = hd_open(path, O_RDWR | O_DIRECT, 0, HD_FOREVER);

	CHECK(made >= 0);
	CHECK_EQ(unlink(path), 0);
	CHECK_EQ(close(made), 0);
	if (fd == -EINVAL)
		SKIP("this file system has no O_DIRECT");
	CHECK(fd >= 0);
	fill(data, 0, 8192);
	CHECK_EQ(hd_pwrite(fd, data, 8192, 0, HD_FOREVER), 8192);
	memset(data, 0, 8192);
	CHECK_EQ(hd_read(fd, data, 4096, HD_FOREVER), 4096);
	CHECK_EQ(hd_pread(fd, data + 4096, 4096, 4096, 0), 4096); /* it cannot be tried without waiting: it is done */
	check_bytes(data, 0, 8192);
	CHECK_EQ(hd_close(fd), 0);
	free(data);
}

/* ---- the disk is full ---- */

/* Writes until no more fits: what was written is reported, then why. */
static void fill_disk(int fd, int err)
{
	static unsigned char data[1 << 20];
	size_t n = hd_is_simulated() ? 100 : sizeof data, all = 0;
	ssize_t written;

	fill(data, 0, n);
	while ((written = hd_write(fd, data + all % 1000, n - all % 1000, HD_FOREVER)) > 0)
		all += (size_t)written;
	CHECK_EQ(written, err);
	CHECK(all > 0);
	CHECK_EQ(hd_pwrite(fd, data, n, (off_t)all, HD_FOREVER), err);
	written = hd_pwrite(fd, data, n, (off_t)all - 10, HD_FOREVER);
	CHECK(written == 10 || written == err); /* a file system may have no room for a copy */
	CHECK_EQ(hd_pread(fd, data, n, (off_t)all, HD_FOREVER), 0);
	CHECK_EQ(hd_close(fd), 0);
}

HD_PROCESS_TEST(file_write_reports_a_full_disk)
{
	char at[sizeof path + 5];

	if (hd_is_simulated()) {
		fill_disk(new_file(0), -ENOSPC);
		return;
	}
	strcpy(path + sizeof path - 7, "XXXXXX");
	CHECK(mkdtemp(path) != NULL);
	bool mounted = mount("none", path, "tmpfs", 0, "size=256k") == 0;
	if (mounted) {
		snprintf(at, sizeof at, "%s/full", path);
		int fd = hd_open(at, O_RDWR | O_CREAT, 0600, HD_FOREVER);
		CHECK(fd >= 0);
		fill_disk(fd, -ENOSPC);
		CHECK_EQ(umount(path), 0);
	}
	CHECK_EQ(rmdir(path), 0);
	CHECK(signal(SIGXFSZ, SIG_IGN) != SIG_ERR);
	CHECK_EQ(setrlimit(RLIMIT_FSIZE, &(struct rlimit){ 100000, RLIM_INFINITY }), 0);
	fill_disk(new_file(0), -EFBIG);
}

/* ---- answers ---- */

static void check_answers(void)
{
	int fd = new_file(0);
	struct stat st;
	char c = 0;

	errno = 9;
	CHECK_EQ(hd_pread(fd, &c, 1, -1, HD_FOREVER), -EINVAL);
	CHECK_EQ(hd_preadv(fd, NULL, -1, 0, HD_FOREVER), -EINVAL);
	CHECK_EQ(hd_pread(-1, &c, 1, 0, HD_FOREVER), -EBADF);
	CHECK_EQ(hd_pread(fd, &c, 1, 0, HD_SEC(5)), -EINVAL);
	CHECK_EQ(hd_pread(fd, &c, 0, 0, HD_FOREVER), 0);
	CHECK_EQ(hd_pwrite(fd, "x", 1, 5, HD_FOREVER), 1);
	if (!hd_is_simulated()) {
		CHECK_EQ(hd_open("/none/such", O_RDONLY, 0, HD_FOREVER), -ENOENT);
		CHECK_EQ(hd_stat("/none/such", &st, HD_FOREVER), -ENOENT);
		CHECK_EQ(hd_stat("/tmp", &st, HD_FOREVER), 0);
		CHECK(S_ISDIR(st.st_mode));
		CHECK_EQ(hd_lstat("/proc/self/exe", &st, HD_FOREVER), 0);
		CHECK(S_ISLNK(st.st_mode));
		CHECK_EQ(hd_ftruncate(fd, 77, HD_FOREVER), 0);
		CHECK_EQ(hd_fstat(fd, &st, HD_FOREVER), 0);
		CHECK_EQ(st.st_size, 77);
		CHECK_EQ(hd_fstat(-1, &st, HD_FOREVER), -EBADF);
		CHECK_EQ(hd_fsync(-1, HD_FOREVER), -EBADF);
		CHECK_EQ(hd_fsync(fd, HD_FOREVER), 0);
		CHECK_EQ(hd_tcdrain(fd, HD_FOREVER), -ENOTTY);
		CHECK_EQ(hd_fcntl_lock(fd, F_SETLK, &(struct flock){ .l_type = F_WRLCK }, HD_FOREVER), -EINVAL);
		CHECK_EQ(fcntl(fd, F_GETFD), FD_CLOEXEC);
		void *map = mmap(NULL, 77, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		CHECK(map != MAP_FAILED);
		strcpy(map, "mapped");
		CHECK_EQ(hd_msync(map, 77, MS_SYNC, HD_FOREVER), 0);
		CHECK_EQ(munmap(map, 77), 0);
		CHECK_EQ(hd_pread(fd, &c, 1, 1, HD_FOREVER), 1);
		CHECK_EQ(c, 'a');
	}
	CHECK_EQ(errno, 9);
	CHECK_EQ(hd_close(fd), 0);
	CHECK_EQ(hd_pread(fd, &c, 1, 0, HD_FOREVER), -EBADF);
}

HD_WORKERS_TEST(file_calls_answer_on_process)
{
	check_answers();
	(void)workers;
}

HD_TEST(file_calls_answer_on_plain_thread)
{
	check_answers();
}

/* ---- what a process waits for; a call that no thread has begun is called off ---- */

static struct hd_semaphore go;

static void await_go(void *arg)
{
	CHECK_EQ(hd_semaphore_wait(&go, HD_FOREVER), 0);
	(void)arg;
}

static void *keep_the_thread(void *arg)
{
	CHECK_EQ(hd_blocking(await_go, NULL), 0);
	return arg;
}

static void *call_fstat(void *fd)
{
	struct stat st;
	return (void *)(long)hd_fstat(*(int *)fd, &st, HD_FOREVER);
}

static void *call_msync(void *map)
{
	return (void *)(long)hd_msync(map, 1, MS_SYNC, HD_FOREVER);
}

static void *call_open(void *arg)
{
	(void)arg;
	return (void *)(long)hd_open("/none/such", O_RDONLY, 0, HD_FOREVER);
}

HD_PROCESS_TEST_WITH(file_waits_say_what_for_and_are_called_off, .blocking_threads = 1)
{
	NOT_SIMULATED();
	int fd = new_file(0);
	struct stat st;
	void *map = mmap(NULL, 1, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	hd_semaphore_init(&go, 0);
	CHECK(map != MAP_FAILED);
	hd_pid keeper = spawned(hd_spawn(keep_the_thread, NULL));
	await_why(keeper, HD_WAIT_BLOCKING, -1);
	hd_pid pids[] = { hd_spawn(call_fstat, &fd), hd_spawn(call_msync, map), hd_spawn(call_open, NULL),
			  hd_spawn(call_fstat, &fd) };
	await_why(pids[0], HD_WAIT_FILE, fd);
	await_why(pids[1], HD_WAIT_FILE_SYNC, -1);
	await_why(pids[2], HD_WAIT_FILE_OPEN, -1);
	await_why(pids[3], HD_WAIT_FILE, fd);
	CHECK_EQ(hd_fstat(fd, &st, hd_after(HD_MS(1))), -ETIMEDOUT);
	for (int i = 0; i < 3; i++) {
		CHECK_EQ(hd_cancel(pids[i]), 0);
		CHECK_EQ(answer_of(pids[i]), -ECANCELED);
	}
	CHECK_EQ(hd_semaphore_signal(&go), 0);
	CHECK_EQ(answer_of(pids[3]), 0);
	CHECK_EQ(hd_join(keeper, NULL, HD_FOREVER), 0);
	CHECK_EQ(munmap(map, 1), 0);
	CHECK_EQ(hd_close(fd), 0);
}

/* ---- no thread can be started ---- */

HD_PROCESS_TEST(file_calls_work_without_threads)
{
	NOT_SIMULATED();
	char data[4] = "";
	struct stat st;

	new_fifo();
	hd__fault_arm(HD__FAULT_THREAD, 1, true);
	int fd = new_file(0); /* it changes `path` */
	CHECK_EQ(hd_pwrite(fd, "abc", 3, 0, HD_FOREVER), 3);
	CHECK_EQ(hd_read(fd, data, sizeof data, HD_FOREVER), 3);
	CHECK_STR(data, "abc");
	CHECK_EQ(hd_fstat(fd, &st, HD_FOREVER), 0);
	CHECK_EQ(hd_open(fifo, O_RDONLY, 0, HD_FOREVER), -ENOMEM);
	CHECK_EQ(hd_flock(fd, LOCK_EX, HD_FOREVER), -ENOMEM);
	CHECK_EQ(hd_flock(fd, LOCK_EX, 0), 0);
	hd__fault_arm(HD__FAULT_THREAD, 0, false);
	CHECK_EQ(hd_close(fd), 0);
	CHECK_EQ(unlink(fifo), 0);
	*strrchr(fifo, '/') = 0;
	CHECK_EQ(rmdir(fifo), 0);
}

/* ---- locks ---- */

static int told[2]; /* a pipe to the program that has the lock: it ends when that is closed */

/* Another program locks the file. */
static pid_t lock_elsewhere(bool whole)
{
	int ready[2];
	char c;

	CHECK_EQ(pipe(told), 0);
	CHECK_EQ(pipe(ready), 0);
	pid_t pid = fork();
	if (pid == 0) {
		int fd = open(path, O_RDWR);
		struct flock all = { .l_type = F_WRLCK };
		close(told[1]);
		if (fd < 0 || (whole ? flock(fd, LOCK_EX) : fcntl(fd, F_SETLK, &all)) != 0 || write(ready[1], "", 1) != 1)
			_exit(1);
		_exit(read(told[0], &c, 1) != 0);
	}
	CHECK_EQ(read(ready[0], &c, 1), 1);
	close(ready[0]);
	close(ready[1]);
	close(told[0]);
	return pid;
}

struct locking {
	int fd, cmd; /* 0: flock */
};

static int lock_until(const struct locking *l, hd_time until)
{
	struct flock all = { .l_type = F_WRLCK };
	return l->cmd == 0 ? hd_flock(l->fd, LOCK_EX, until) : hd_fcntl_lock(l->fd, l->cmd, &all, until);
}

static void *lock_in_vain(void *l)
{
	return (void *)(long)lock_until(l, HD_FOREVER);
}

static void compete_for_lock(int cmd)
{
	int status;
	strcpy(path + sizeof path - 7, "XXXXXX");
	CHECK_EQ(close(mkstemp(path)), 0);
	pid_t other = lock_elsewhere(cmd == 0);
	struct locking l = { hd_open(path, O_RDWR, 0, HD_FOREVER), cmd };
	struct locking closed = { hd_open(path, O_RDWR, 0, HD_FOREVER), cmd };

	CHECK_EQ(lock_until(&l, 0), -ETIMEDOUT);
	CHECK_EQ(lock_until(&l, hd_after(HD_MS(2))), -ETIMEDOUT);
	hd_pid cancelled = spawned(hd_spawn(lock_in_vain, &l)), killed = spawned(hd_spawn(lock_in_vain, &l));
	hd_pid loser = spawned(hd_spawn(lock_in_vain, &closed)), winner = spawned(hd_spawn(lock_in_vain, &l));
	await_why(cancelled, HD_WAIT_FILE_LOCK, l.fd);
	await_why(killed, HD_WAIT_FILE_LOCK, l.fd);
	await_why(loser, HD_WAIT_FILE_LOCK, closed.fd);
	await_why(winner, HD_WAIT_FILE_LOCK, l.fd);
	CHECK_EQ(hd_cancel(cancelled), 0);
	CHECK_EQ(answer_of(cancelled), -ECANCELED);
	CHECK_EQ(hd_terminate(killed, HD_FOREVER), 0);
	if (cmd != F_SETLKW) { /* which would give up the other waiter's claim, too */
		CHECK_EQ(hd_close(closed.fd), 0);
		CHECK_EQ(answer_of(loser), -EBADF);
	}
	CHECK_EQ(close(told[1]), 0);
	CHECK_EQ(answer_of(winner), 0);
	if (cmd == F_SETLKW) {
		CHECK_EQ(answer_of(loser), 0); /* the lock is the program's */
		CHECK_EQ(hd_close(closed.fd), 0);
	}
	CHECK_EQ(waitpid(other, &status, 0), other);
	CHECK_EQ(status, 0);
	CHECK_EQ(hd_close(l.fd), 0);
	CHECK_EQ(unlink(path), 0);
}

HD_WORKERS_TEST(file_locks_are_waited_for)
{
	NOT_SIMULATED();
	compete_for_lock(0);
	compete_for_lock(F_SETLKW);
	compete_for_lock(F_OFD_SETLKW);
	(void)workers;
}

/* ---- FIFOs ---- */

static void *open_fifo(void *flags)
{
	return (void *)(long)hd_open(fifo, (int)(long)flags, 0, HD_FOREVER);
}

HD_WORKERS_TEST(file_open_of_a_fifo_is_cancelled)
{
	NOT_SIMULATED();
	char c;

	new_fifo();
	CHECK_EQ(hd_open(fifo, O_RDONLY, 0, hd_after(HD_MS(2))), -ETIMEDOUT);
	hd_pid cancelled = spawned(hd_spawn(open_fifo, (void *)O_RDONLY)),
	       killed = spawned(hd_spawn(open_fifo, (void *)O_RDONLY));
	await_why(cancelled, HD_WAIT_FILE_OPEN, -1);
	await_why(killed, HD_WAIT_FILE_OPEN, -1);
	CHECK_EQ(hd_cancel(cancelled), 0);
	CHECK_EQ(answer_of(cancelled), -ECANCELED);
	CHECK_EQ(hd_terminate(killed, HD_FOREVER), 0);
	hd_pid reader = spawned(hd_spawn(open_fifo, (void *)O_RDONLY));
	int out = hd_open(fifo, O_WRONLY, 0, HD_FOREVER), in = (int)answer_of(reader);
	CHECK(in >= 0 && out >= 0);
	CHECK_EQ(hd_read(in, &c, 1, hd_after(HD_MS(1))), -ETIMEDOUT);
	CHECK_EQ(hd_write(out, "x", 1, HD_FOREVER), 1);
	CHECK_EQ(hd_read(in, &c, 1, HD_FOREVER), 1);
	CHECK_EQ(hd_close(in), 0);
	CHECK_EQ(hd_close(out), 0);
	remove_fifo();
	(void)workers;
}

/* ---- terminals ---- */

static void *read_terminal(void *fd)
{
	char data[10];
	return (void *)hd_read(*(int *)fd, data, sizeof data, HD_FOREVER);
}

/* Two descriptors of one terminal, which knows no reading without waiting: their readers both find it ready, and one waits on its thread. */
HD_WORKERS_TEST(file_terminal_read_is_called_off)
{
	NOT_SIMULATED();
	int master, slave;

	CHECK_EQ(openpty(&master, &slave, NULL, NULL, NULL), 0);
	int other = dup(slave);
	CHECK(other >= 0);
	CHECK_EQ(hd_tcdrain(slave, HD_FOREVER), 0);
	for (int i = 0; i < 3; i++) {
		hd_pid a = spawned(hd_spawn(read_terminal, &slave)), b = spawned(hd_spawn(read_terminal, &other));
		await_why(a, HD_WAIT_FD_READ, slave);
		await_why(b, HD_WAIT_FD_READ, other);
		CHECK_EQ(hd_write(master, "line\n", 5, HD_FOREVER), 5);
		while (info_on(a).state != HD_ENDED && info_on(b).state != HD_ENDED)
			CHECK_EQ(hd_sleep(HD_US(50)), 0);
		bool a_waits = info_on(a).state != HD_ENDED;
		hd_pid loser = a_waits ? a : b;
		CHECK_EQ(i == 0 ? hd_close(a_waits ? slave : other) : hd_cancel(loser), 0);
		CHECK_EQ(answer_of(loser), i == 0 ? -EBADF : -ECANCELED);
		CHECK_EQ(answer_of(a_waits ? b : a), 5);
		if (i == 0)
			CHECK_EQ(dup2(a_waits ? other : slave, a_waits ? slave : other), a_waits ? slave : other);
	}
	CHECK_EQ(hd_close(other), 0);
	CHECK_EQ(hd_close(slave), 0);
	CHECK_EQ(hd_close(master), 0);
	(void)workers;
}

/* ---- hd_close and calls that are under way ---- */

static void *read_until_closed(void *arg)
{
	struct share *s = arg;
	unsigned char data[16];
	long rounds = 0;
	ssize_t n;

	while ((n = hd_pread(s->fd, data, sizeof data, (off_t)s->start, HD_FOREVER)) == sizeof data) {
		check_bytes(data, s->start, sizeof data);
		rounds++;
		hd_yield();
	}
	CHECK_EQ(n, -EBADF);
	return (void *)rounds;
}

HD_WORKERS_TEST(file_close_waits_for_reads)
{
	struct share shares[4];
	hd_pid pids[4];
	unsigned char data[64];

	fill(data, 0, sizeof data);
	for (int round = 0; round < (hd_is_simulated() ? 1 : 20); round++) {
		int fd = new_file(0);
		CHECK_EQ(hd_pwrite(fd, data, sizeof data, 0, HD_FOREVER), sizeof data);
		for (size_t i = 0; i < 4; i++) {
			shares[i] = (struct share){ fd, 16 * i, 16 };
			pids[i] = spawned(hd_spawn(read_until_closed, &shares[i]));
		}
		CHECK_EQ(hd_sleep(HD_US(100)), 0);
		CHECK_EQ(hd_close(fd), 0);
		for (int i = 0; i < 4; i++)
			answer_of(pids[i]);
	}
	(void)workers;
}

/* ---- deadlines, cancels and ends race ---- */

static void *move_often(void *arg)
{
	struct share *s = arg;
	unsigned seed = (unsigned)s->start;
	unsigned char data[8];

	for (int i = 0; i < (hd_is_simulated() ? 6 : hd_scaled(200)); i++) {
		bool writes = next_random(&seed) % 2;
		hd_time until = next_random(&seed) % 2 ? hd_after(HD_US(next_random(&seed) % 30)) : HD_FOREVER;
		fill(data, s->start, sizeof data);
		ssize_t n = writes ? hd_pwrite(s->fd, data, sizeof data, (off_t)s->start, until)
				   : hd_pread(s->fd, data, sizeof data, (off_t)s->start, until);
		CHECK((n > 0 && n <= 8) || n == -ETIMEDOUT || n == -ECANCELED);
		if (!writes && n > 0)
			check_bytes(data, s->start, (size_t)n);
		hd_cancel_clear();
	}
	return NULL;
}

HD_WORKERS_TEST(file_contents_survive_deadlines_and_cancels)
{
	struct share shares[6];
	hd_pid pids[6];
	unsigned seed = (unsigned)workers;
	unsigned char data[64];
	int fd = new_file(0);

	fill(data, 0, sizeof data);
	CHECK_EQ(hd_pwrite(fd, data, sizeof data, 0, HD_FOREVER), sizeof data);
	for (size_t i = 0; i < 6; i++) {
		shares[i] = (struct share){ fd, 8 * i + 3, 8 };
		pids[i] = spawned(hd_spawn(move_often, &shares[i]));
	}
	for (int i = 0; i < (hd_is_simulated() ? 10 : hd_scaled(200)); i++) {
		int err = hd_cancel(pids[next_random(&seed) % 6]);
		CHECK(err == 0 || err == -ESRCH);
		CHECK_EQ(hd_sleep(HD_US(next_random(&seed) % 40)), 0);
	}
	for (int i = 0; i < 6; i++)
		CHECK_EQ(hd_join(pids[i], NULL, HD_FOREVER), 0);
	CHECK_EQ(hd_pread(fd, data, sizeof data, 0, HD_FOREVER), sizeof data);
	check_bytes(data, 0, sizeof data);
	CHECK_EQ(hd_close(fd), 0);
}

/* ---- from a file to a socket ---- */

#define MUCH 1000000

static void *receive_much(void *arg)
{
	int fd = *(int *)arg;
	static unsigned char data[MUCH];

	CHECK_EQ(hd_read_full(fd, data, MUCH, HD_FOREVER), MUCH);
	check_bytes(data, 0, MUCH);
	return NULL;
}

static int file_of_much(void)
{
	static unsigned char data[MUCH];
	int fd = new_file(0);

	fill(data, 0, MUCH);
	CHECK_EQ(hd_pwrite(fd, data, MUCH, 0, HD_FOREVER), MUCH);
	return fd;
}

static void send_to(const int pair[2])
{
	int file = file_of_much();
	off_t at = 0;

	ssize_t first = hd_sendfile(pair[0], file, &at, MUCH, hd_after(HD_MS(20))); /* no process reads */
	CHECK(first > 0 && first < MUCH);
	CHECK_EQ(at, first);
	CHECK_EQ(hd_sendfile(pair[0], file, &at, MUCH, hd_after(HD_MS(1))), -ETIMEDOUT);
	hd_pid reader = spawned(hd_spawn(receive_much, (void *)&pair[1]));
	CHECK_EQ(hd_sendfile(pair[0], file, &at, 2 * MUCH, HD_FOREVER), MUCH - first);
	CHECK_EQ(at, MUCH);
	CHECK_EQ(hd_join(reader, NULL, HD_FOREVER), 0);
	CHECK_EQ(hd_sendfile(pair[0], pair[0], &at, 1, HD_FOREVER), -EINVAL);
	CHECK_EQ(hd_close(file), 0);
}

HD_WORKERS_TEST(file_is_sent_whole)
{
	NOT_SIMULATED();
	int pair[2], slow[2];

	CHECK_EQ(hd_socketpair(AF_UNIX, SOCK_STREAM, pair), 0);
	send_to(pair);
	CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, slow), 0); /* without O_NONBLOCK */
	send_to(slow);
	for (int i = 0; i < 2; i++) {
		CHECK_EQ(hd_close(pair[i]), 0);
		CHECK_EQ(hd_close(slow[i]), 0);
	}
	(void)workers;
}

struct splicing {
	int in, out;
	off_t at;
	bool from_file;
};

/* All of it, then the end. */
static void *splice_on(void *arg)
{
	struct splicing *s = arg;
	ssize_t n, all = 0;

	while ((n = hd_splice(s->in, s->from_file ? &s->at : NULL, s->out, NULL, 50000, 0, HD_FOREVER)) > 0)
		all += n;
	CHECK_EQ(n, 0);
	CHECK_EQ(hd_close(s->out), 0);
	return (void *)all;
}

HD_WORKERS_TEST(file_is_spliced_through_a_pipe)
{
	NOT_SIMULATED();
	int file = file_of_much(), pipes[2], pair[2];

	CHECK_EQ(hd_pipe(pipes), 0);
	CHECK_EQ(hd_socketpair(AF_UNIX, SOCK_STREAM, pair), 0);
	CHECK_EQ(hd_splice(pipes[0], NULL, pair[0], NULL, 1, SPLICE_F_NONBLOCK, HD_FOREVER), -EAGAIN);
	CHECK_EQ(hd_splice(pipes[0], NULL, pair[0], NULL, 1, 0, hd_after(HD_MS(1))), -ETIMEDOUT);
	struct splicing to_pipe = { file, pipes[1], 0, true }, to_socket = { pipes[0], pair[0], 0, false };
	hd_pid b = spawned(hd_spawn(splice_on, &to_socket));
	await_why(b, HD_WAIT_FD_READ, pipes[0]);
	hd_pid a = spawned(hd_spawn(splice_on, &to_pipe)), reader = spawned(hd_spawn(receive_much, &pair[1]));
	CHECK_EQ(answer_of(a), MUCH);
	CHECK_EQ(answer_of(b), MUCH);
	CHECK_EQ(hd_join(reader, NULL, HD_FOREVER), 0);
	CHECK_EQ(hd_close(pipes[0]), 0);
	CHECK_EQ(hd_close(pair[1]), 0);
	CHECK_EQ(hd_close(file), 0);
	(void)workers;
}

/* ---- an open that turns out otherwise ---- */

static long turns; /* of a file into a FIFO that are left */

/* hd_open has seen a file of that name, and is about to open it. */
static bool turn_into_fifo(enum hd__fault kind)
{
	if (kind == HD__FAULT_EINTR && value_of(&turns) > 0) {
		add(&turns, -1);
		CHECK_EQ(unlink(fifo), 0);
		CHECK_EQ(mkfifo(fifo, 0600), 0);
	}
	return false;
}

static void *open_what_turns(void *arg)
{
	(void)arg;
	return (void *)(long)hd_open(fifo, O_RDONLY, 0, HD_FOREVER);
}

HD_WORKERS_TEST(file_that_becomes_a_fifo_while_it_is_opened_is_called_off)
{
	NOT_SIMULATED();
	new_fifo();
	for (int i = 0; i < 2; i++) {
		CHECK_EQ(unlink(fifo), 0);
		CHECK_EQ(close(open(fifo, O_CREAT | O_WRONLY, 0600)), 0);
		set(&turns, 1);
		st_rel(&hd__fault_door, turn_into_fifo);
		if (i == 0) {
			CHECK_EQ(hd_open(fifo, O_RDONLY, 0, hd_after(HD_MS(20))), -ETIMEDOUT);
		} else {
			hd_pid pid = spawned(hd_spawn(open_what_turns, NULL));
			while (value_of(&turns) > 0)
				CHECK_EQ(hd_sleep(HD_US(50)), 0);
			CHECK_EQ(hd_cancel(pid), 0);
			CHECK_EQ(answer_of(pid), -ECANCELED);
		}
		st_rel(&hd__fault_door, NULL);
	}
	remove_fifo();
	(void)workers;
}

static struct hd_semaphore may_open;
static long opens;

static bool open_late(enum hd__fault kind)
{
	if (kind == HD__FAULT_EINTR) {
		add(&opens, 1);
		CHECK_EQ(hd_semaphore_wait(&may_open, HD_FOREVER), 0);
	}
	return false;
}

/* The other side of a FIFO tells whether one is open for reading; with O_NONBLOCK it is opened like a file. */
static void *open_over_the_end(void *arg)
{
	(void)arg;
	int fd = hd_open(fifo, O_RDONLY | O_NONBLOCK, 0, HD_FOREVER);
	CHECK(fd < 0 && !"a process went on though the runtime had ended");
	return NULL;
}

static void *end_over_an_open(void *arg)
{
	(void)arg;
	spawned(hd_spawn(open_over_the_end, NULL));
	while (value_of(&opens) == 0)
		CHECK_EQ(hd_sleep(HD_US(50)), 0);
	CHECK_EQ(hd_shutdown(3), 0);
	return NULL;
}

static int count_threads(void)
{
	struct stat st;
	CHECK_EQ(stat("/proc/self/task", &st), 0);
	return (int)st.st_nlink - 2;
}

static void *do_no_more(void *arg)
{
	return arg;
}

HD_TEST(file_that_is_opened_after_the_end_of_the_runtime_is_closed)
{
	NOT_SIMULATED();
	new_fifo();
	CHECK_EQ(run_with_workers(2, do_no_more, NULL), 0);
	int threads = count_threads(); /* TSan has one of its own from the first on */
	st_rel(&hd__fault_door, open_late);
	CHECK_EQ(run_with_workers(2, end_over_an_open, NULL), 3);
	CHECK_EQ(hd_semaphore_signal(&may_open), 0);
	while (count_threads() > threads)
		sched_yield();
	st_rel(&hd__fault_door, NULL);
	CHECK_EQ(open(fifo, O_WRONLY | O_NONBLOCK), -1);
	CHECK_EQ(errno, ENXIO);
	remove_fifo();
}
