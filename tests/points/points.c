/* points/points.c - points: what a cancel, a termination and a deadline do to each call that waits, found out by doing it, as the table of
 * docs/cancellation-points.md. The page is compared with what this prints.
 *
 * A row is a call and a scene in which it must wait. Five processes make the call, each in a scene of its own: one is cancelled before
 * the call; one is cancelled when it waits; one is terminated then; one has a deadline; one is let go by what it waits for, after another
 * one was cancelled in the same scene: so what the cancelled one should not have taken is still there.
 *
 * Three more do so to a call that runs. It has moved a part of its bytes, and waits for the rest; or a thread of the pool makes its system call, which is
 * held up for as long as it takes: this program has the functions of the C library that heddle calls there; or its wait is over, and it has not
 * gone on since: it was suspended while it waited, and then it was let go. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <heddle.h>
#include <limits.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "os/fault.h"

/* What a call may meet. */
struct scene {
	int fds[2];
	int other; /* one more descriptor */
	char path[64];
	pid_t child;
	void *memory;
	struct hd_semaphore semaphore;
	struct hd_mutex mutex;
	struct hd_monitor monitor;
	struct hd_condition condition;
	struct hd_event event;
	hd_queue *queue;
	hd_promise *promise;
	hd_port *port;
	struct hd_rwlock rwlock;
	struct hd_barrier barrier;
	struct hd_once once;
	struct hd_waitgroup waitgroup;
	hd_pid holder;
	atomic_bool over;     /* the holder should end */
	atomic_bool is_there; /* the holder; or the process that waits for the condition */
	bool behaves;	      /* a behaviour runs until `over` */
	hd_time nap;	      /* of hd_sleep; 0: a very long one */
};

static void die(const char *what, long err)
{
	fprintf(stderr, "points: %s: %s\n", what, hd_error((int)err));
	abort();
}

#define MUST(call)                                                                                                             \
	do {                                                                                                                   \
		long err_ = (call);                                                                                            \
		if (err_ < 0)                                                                                                  \
			die(#call, err_ == -1 && errno != 0 ? -errno : err_);                                                  \
	} while (0)

/* ---- system calls that take long ---- */

static atomic_bool slow; /* the next one is held up */
static struct hd_semaphore begun, may_end;

/* By a thread of the pool; a process that makes such a call itself is not held up. */
static void hold_up(void)
{
	if (hd_self() != 0 || !atomic_exchange(&slow, false))
		return;
	hd_semaphore_signal(&begun);
	MUST(hd_semaphore_wait(&may_end, HD_FOREVER));
}

/* The C library's own. */
#define NEXT(name) ((__typeof__(&name))(uintptr_t)dlsym(RTLD_NEXT, #name))

ssize_t preadv2(int fd, const struct iovec *iov, int n, off_t offset, int flags)
{
	hold_up();
	return NEXT(preadv2)(fd, iov, n, offset, flags); /* which has a substitute where the kernel, or qemu, has no such call */
}

ssize_t pwritev2(int fd, const struct iovec *iov, int n, off_t offset, int flags)
{
	hold_up();
	return NEXT(pwritev2)(fd, iov, n, offset, flags);
}

static atomic_int opens; /* that threads have begun */

int openat(int dir, const char *path, int flags, ...)
{
	if (hd_self() == 0)
		atomic_fetch_add(&opens, 1);
	hold_up();
	return (int)syscall(SYS_openat, dir, path, flags, 0600);
}

int fsync(int fd)
{
	hold_up();
	return (int)syscall(SYS_fsync, fd);
}

int fdatasync(int fd)
{
	hold_up();
	return (int)syscall(SYS_fdatasync, fd);
}

int msync(void *start, size_t n, int flags)
{
	hold_up();
	return (int)syscall(SYS_msync, start, n, flags);
}

int ftruncate(int fd, off_t size)
{
	hold_up();
	return (int)syscall(SYS_ftruncate, fd, size);
}

int close(int fd)
{
	hold_up();
	return (int)syscall(SYS_close, fd);
}

/* A pseudo-terminal has put out what is written to it at once. This one is slow: until its other side has said something. */
int tcdrain(int fd)
{
	struct pollfd other_side = { .fd = fd, .events = POLLIN };
	return poll(&other_side, 1, -1) < 0 ? -1 : 0;
}

int fstatat(int dir, const char *path, struct stat *st, int flags)
{
	hold_up();
	return (int)syscall(SYS_newfstatat, dir, path, st, flags);
}

int getaddrinfo(const char *node, const char *service, const struct addrinfo *hints, struct addrinfo **result)
{
	const bool knows = hints == NULL || !(hints->ai_flags & AI_NUMERICHOST);

	hold_up();
	if (knows && node != NULL && strcmp(node, "localhost") == 0)
		node = "127.0.0.1"; /* not every system knows it */
	return NEXT(getaddrinfo)(node, service, hints, result);
}

int getnameinfo(const struct sockaddr *address, socklen_t size, char *host, socklen_t host_size, char *service,
		socklen_t service_size, int flags)
{
	hold_up();
	return NEXT(getnameinfo)(address, size, host, host_size, service, service_size, flags);
}

int posix_spawnp(pid_t *pid, const char *file, const posix_spawn_file_actions_t *actions, const posix_spawnattr_t *how,
		 char *const argv[], char *const environment[])
{
	hold_up();
	return NEXT(posix_spawnp)(pid, file, actions, how, argv, environment);
}

/* ---- scenes ---- */

static void empty_pipe(struct scene *s)
{
	MUST(hd_pipe(s->fds));
}

static void fill(int fd)
{
	static char data[4096];

	while (hd_write(fd, data, sizeof data, 0) > 0)
		;
}

static void full_pipe(struct scene *s)
{
	MUST(hd_pipe(s->fds));
	fill(s->fds[1]);
}

static void quiet_socket(struct scene *s)
{
	MUST(hd_socketpair(AF_UNIX, SOCK_STREAM, s->fds));
}

static void full_socket(struct scene *s)
{
	quiet_socket(s);
	fill(s->fds[1]);
}

static void listener(struct scene *s)
{
	MUST(s->fds[0] = hd_tcp_listen("127.0.0.1", "0", 1, HD_FOREVER));
}

/* It has as many connections as it takes: the kernel does not answer the next one. */
static void full_listener(struct scene *s)
{
	struct sockaddr_in address;
	socklen_t size = sizeof address;

	listener(s);
	MUST(getsockname(s->fds[0], (struct sockaddr *)&address, &size));
	for (int i = 0; i < 8; i++) {
		int fd = hd_socket(AF_INET, SOCK_STREAM, 0);
		if (hd_connect(fd, (struct sockaddr *)&address, size, hd_after(HD_MS(20))) != 0) {
			hd_close(fd);
			return;
		}
	}
	die("a listener that is never full", -EINVAL);
}

static void connect_to(struct scene *s)
{
	char port[16];

	snprintf(port, sizeof port, "%d", hd_sock_port(s->fds[0]));
	MUST(s->other = hd_tcp_connect("127.0.0.1", port, HD_FOREVER));
}

/* By the holder, which has what others wait for. */
static void be_at_it(void *arg)
{
	struct scene *s = arg;

	s->is_there = true;
	while (!s->over)
		MUST(hd_sleep(HD_US(100)));
}

static void start_holder(struct scene *s, hd_entry entry)
{
	MUST(s->holder = hd_spawn(entry, s));
	while (!s->is_there)
		MUST(hd_sleep(HD_US(100)));
}

static void *hold_lock(void *arg)
{
	struct scene *s = arg;

	MUST(hd_fd_lock(s->fds[0], HD_FD_READING, HD_FOREVER));
	be_at_it(s);
	return NULL;
}

static void locked_fd(struct scene *s)
{
	empty_pipe(s);
	start_holder(s, hold_lock);
}

static void let_holder_go(struct scene *s)
{
	s->over = true;
}

static void temporary_file(struct scene *s)
{
	snprintf(s->path, sizeof s->path, "/tmp/heddle-points-XXXXXX");
	MUST(s->fds[0] = mkostemp(s->path, O_CLOEXEC));
	MUST(ftruncate(s->fds[0], 4096));
	s->memory = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, s->fds[0], 0);
}

/* Another open file has the lock. */
static void locked_file(struct scene *s)
{
	struct flock all = { .l_type = F_WRLCK };

	temporary_file(s);
	MUST(s->other = open(s->path, O_RDWR | O_CLOEXEC));
	MUST(flock(s->other, LOCK_EX));
	MUST(fcntl(s->other, F_OFD_SETLK, &all));
}

static void unlock_file(struct scene *s)
{
	close(s->other);
	s->other = -1;
}

static void fifo(struct scene *s)
{
	snprintf(s->path, sizeof s->path, "/tmp/heddle-points-XXXXXX");
	MUST(s->fds[0] = mkostemp(s->path, O_CLOEXEC));
	unlink(s->path);
	MUST(mkfifo(s->path, 0600));
}

static void open_other_side(struct scene *s)
{
	MUST(s->other = open(s->path, O_RDWR | O_CLOEXEC));
}

static void lingering_socket(struct scene *s)
{
	struct linger linger = { 1, 10 };

	listener(s);
	connect_to(s);
	MUST(setsockopt(s->other, SOL_SOCKET, SO_LINGER, &linger, sizeof linger));
	s->fds[1] = s->other;
	s->other = -1;
}

static void pseudo_terminal(struct scene *s)
{
	MUST(openpty(&s->fds[0], &s->fds[1], NULL, NULL, NULL));
}

static void sleeping_child(struct scene *s)
{
	static const char *const argv[] = { "sleep", "1000", NULL };
	struct hd_child how = { .argv = argv };

	MUST(s->child = hd_spawn_child(&how, NULL));
}

/* The other side of the FIFO is opened and closed: what reads it comes to its end. */
static void end_reading(struct scene *s)
{
	int fd = hd_open(s->path, O_WRONLY, 0, HD_FOREVER);

	MUST(fd);
	hd_close(fd);
}

static void kill_child(struct scene *s)
{
	kill(s->child, SIGKILL);
}

static void nothing(struct scene *s)
{
	(void)s;
}

static void full_queue(struct scene *s)
{
	char item = 0;

	s->queue = hd_queue_new(1, 1);
	MUST(hd_queue_put(s->queue, &item, 0));
}

static void empty_queue(struct scene *s)
{
	s->queue = hd_queue_new(1, 1);
}

static void some_promise(struct scene *s)
{
	s->promise = hd_promise_new();
}

static void *hold_mutex(void *arg)
{
	struct scene *s = arg;

	MUST(hd_mutex_lock(&s->mutex, HD_FOREVER));
	be_at_it(s);
	hd_mutex_unlock(&s->mutex);
	return NULL;
}

static void held_mutex(struct scene *s)
{
	start_holder(s, hold_mutex);
}

static void *hold_rwlock(void *arg)
{
	struct scene *s = arg;

	MUST(hd_rwlock_write(&s->rwlock, HD_FOREVER));
	be_at_it(s);
	hd_rwlock_unlock(&s->rwlock);
	return NULL;
}

static void written_rwlock(struct scene *s)
{
	start_holder(s, hold_rwlock);
}

static void *do_once(void *arg)
{
	struct scene *s = arg;

	MUST(hd_once(&s->once, be_at_it, s, HD_FOREVER));
	return NULL;
}

static void begun_once(struct scene *s)
{
	start_holder(s, do_once);
}

/* Hears neither cancels nor terminations. */
static void *hear_nothing(void *arg)
{
	hd_set_cancel_state(HD_CANCEL_DISABLED);
	be_at_it(arg);
	return NULL;
}

static void deaf_process(struct scene *s)
{
	start_holder(s, hear_nothing);
}

/* Comes to no safe point. */
static void *compute(void *arg)
{
	struct scene *s = arg;

	s->is_there = true;
	while (!s->over)
		sched_yield();
	hd_checkpoint();
	return NULL;
}

static void computing_process(struct scene *s)
{
	start_holder(s, compute);
}

static void behave(void *arg, void *const data[])
{
	(void)data;
	be_at_it(arg);
}

static void some_behaviour(struct scene *s)
{
	s->behaves = true;
	MUST(hd_when_n(behave, s, NULL, 0));
}

static void barrier_of_two(struct scene *s)
{
	hd_barrier_init(&s->barrier, 2);
}

static void busy_waitgroup(struct scene *s)
{
	hd_waitgroup_init(&s->waitgroup, 1);
}

/* The owner of a port: takes a message out for each signal of the semaphore, and answers it if it is a call. */
static void *own_port(void *arg)
{
	struct scene *s = arg;
	struct hd_message m;
	int due = 0;

	while (!s->over) {
		due += hd_semaphore_try_wait(&s->semaphore) == 0;
		for (; due > 0 && hd_receive(s->port, &m, 0) == 0; due--) {
			(void)!hd_reply(&m, 1, NULL, 0); /* perhaps it is no call, or is not waited for any more */
			hd_message_drop(&m);
		}
		MUST(hd_sleep(HD_US(100)));
	}
	return NULL;
}

static void owned_port(struct scene *s, const struct hd_port_options *options)
{
	s->port = hd_port_new(options);
	MUST(s->holder = hd_spawn_with(&(struct hd_spawn){ .port = s->port }, own_port, s));
}

static void full_port(struct scene *s)
{
	owned_port(s, &(struct hd_port_options){ .unowned = true, .capacity = 1, .full = HD_FULL_BLOCK });
	MUST(hd_send(s->port, 0, NULL, 0, HD_FOREVER));
}

/* There will be room for one message. */
static void full_port_with_room(struct scene *s)
{
	full_port(s);
	hd_semaphore_signal(&s->semaphore);
}

static void busy_server(struct scene *s)
{
	owned_port(s, &(struct hd_port_options){ .unowned = true });
}

/* ---- what ends the waits ---- */

static void send_message(struct scene *s)
{
	MUST(hd_send(s->port, 1, NULL, 0, HD_FOREVER));
}

static void send_byte(struct scene *s)
{
	MUST(hd_write(s->fds[1], "x\n", 2, HD_FOREVER));
}

static void drain(struct scene *s)
{
	char data[4096];

	while (hd_read(s->fds[0], data, sizeof data, 0) > 0)
		;
}

static void accept_all(struct scene *s)
{
	for (int fd; (fd = hd_accept(s->fds[0], NULL, NULL, 0, 0)) >= 0;)
		hd_close(fd);
}

static void answer_terminal(struct scene *s)
{
	MUST(hd_write(s->fds[0], "\n", 1, HD_FOREVER));
}

static void raise_signal(struct scene *s)
{
	(void)s;
	kill(getpid(), SIGUSR2);
}

static void signal_semaphore(struct scene *s)
{
	hd_semaphore_signal(&s->semaphore);
}

/* What was there before, and a message or a call of each of two processes. */
static void serve_port(struct scene *s)
{
	for (int i = 0; i < 3; i++)
		hd_semaphore_signal(&s->semaphore);
}

static void put_item(struct scene *s)
{
	MUST(hd_queue_put(s->queue, "x", HD_FOREVER));
}

static void take_item(struct scene *s)
{
	char item;

	MUST(hd_queue_next(s->queue, &item, HD_FOREVER));
}

static void set_promise(struct scene *s)
{
	MUST(hd_promise_set(s->promise, NULL));
}

static void set_event(struct scene *s)
{
	hd_event_set(&s->event);
}

static void come_to_barrier(struct scene *s)
{
	MUST(hd_barrier_wait(&s->barrier, HD_FOREVER));
}

static void done_waitgroup(struct scene *s)
{
	hd_waitgroup_done(&s->waitgroup);
}

static void signal_condition(struct scene *s)
{
	MUST(hd_monitor_enter(&s->monitor, HD_FOREVER));
	hd_monitor_signal_all(&s->monitor, &s->condition);
	hd_monitor_exit(&s->monitor);
}

/* ---- calls ---- */

static long call_read(struct scene *s, hd_time until)
{
	char c;
	return hd_read(s->fds[0], &c, 1, until);
}

static long call_readv(struct scene *s, hd_time until)
{
	char c;
	struct iovec part = { &c, 1 };
	return hd_readv(s->fds[0], &part, 1, until);
}

static long call_read_full(struct scene *s, hd_time until)
{
	char c;
	return hd_read_full(s->fds[0], &c, 1, until);
}

static long call_reader_line(struct scene *s, hd_time until)
{
	char buffer[64], *line;
	struct hd_reader r;

	hd_reader_init(&r, s->fds[0], buffer, sizeof buffer);
	return hd_reader_line(&r, &line, until);
}

static long call_write(struct scene *s, hd_time until)
{
	return hd_write(s->fds[1], "x", 1, until);
}

static long call_writev(struct scene *s, hd_time until)
{
	struct iovec part = { (void *)(uintptr_t) "x", 1 };
	return hd_writev(s->fds[1], &part, 1, until);
}

static long call_write_all(struct scene *s, hd_time until)
{
	return hd_write_all(s->fds[1], "x", 1, until);
}

static long call_writer_flush(struct scene *s, hd_time until)
{
	char buffer[64];
	struct hd_writer w;

	hd_writer_init(&w, s->fds[1], buffer, sizeof buffer);
	int err = hd_writer_put(&w, "x", 1, until);
	return err != 0 ? err : hd_writer_flush(&w, until);
}

static long call_recv(struct scene *s, hd_time until)
{
	char c;
	return hd_sock_recv(s->fds[0], &c, 1, 0, until);
}

static long call_recvfrom(struct scene *s, hd_time until)
{
	char c;
	return hd_sock_recvfrom(s->fds[0], &c, 1, 0, NULL, NULL, until);
}

static long call_recvmsg(struct scene *s, hd_time until)
{
	char c;
	struct iovec part = { &c, 1 };
	struct msghdr m = { .msg_iov = &part, .msg_iovlen = 1 };
	return hd_sock_recvmsg(s->fds[0], &m, 0, until);
}

static long call_send(struct scene *s, hd_time until)
{
	return hd_sock_send(s->fds[1], "x", 1, 0, until);
}

static long call_sendto(struct scene *s, hd_time until)
{
	return hd_sock_sendto(s->fds[1], "x", 1, 0, NULL, 0, until);
}

static long call_sendmsg(struct scene *s, hd_time until)
{
	struct iovec part = { (void *)(uintptr_t) "x", 1 };
	struct msghdr m = { .msg_iov = &part, .msg_iovlen = 1 };
	return hd_sock_sendmsg(s->fds[1], &m, 0, until);
}

static long call_recv_fd(struct scene *s, hd_time until)
{
	return hd_sock_recv_fd(s->fds[0], until);
}

static long call_send_fd(struct scene *s, hd_time until)
{
	return hd_sock_send_fd(s->fds[1], 0, until);
}

static void send_fd(struct scene *s)
{
	MUST(hd_sock_send_fd(s->fds[1], 0, HD_FOREVER));
}

static long call_accept(struct scene *s, hd_time until)
{
	int fd = hd_accept(s->fds[0], NULL, NULL, 0, until);

	if (fd >= 0)
		hd_close(fd);
	return fd < 0 ? fd : 0;
}

static long call_connect(struct scene *s, hd_time until)
{
	struct sockaddr_in address;
	socklen_t size = sizeof address;
	int fd = hd_socket(AF_INET, SOCK_STREAM, 0);

	MUST(getsockname(s->fds[0], (struct sockaddr *)&address, &size));
	long err = hd_connect(fd, (struct sockaddr *)&address, size, until);
	hd_close(fd);
	return err;
}

static long call_tcp_connect(struct scene *s, hd_time until)
{
	char port[16];

	snprintf(port, sizeof port, "%d", hd_sock_port(s->fds[0]));
	int fd = hd_tcp_connect("127.0.0.1", port, until);
	if (fd >= 0)
		hd_close(fd);
	return fd < 0 ? fd : 0;
}

static long call_name_connect(struct scene *s, hd_time until)
{
	char port[16];

	snprintf(port, sizeof port, "%d", hd_sock_port(s->fds[0]));
	int fd = hd_tcp_connect("localhost", port, until);
	if (fd >= 0)
		hd_close(fd);
	return fd < 0 ? fd : 0;
}

static long call_poll(struct scene *s, hd_time until)
{
	struct pollfd p = { .fd = s->fds[0], .events = POLLIN };
	return hd_fd_poll(&p, 1, until);
}

static long call_fd_select(struct scene *s, hd_time until)
{
	fd_set readable;

	FD_ZERO(&readable);
	FD_SET(s->fds[0], &readable);
	return hd_fd_select(s->fds[0] + 1, &readable, NULL, NULL, until);
}

static long call_select(struct scene *s, hd_time until)
{
	short revents;
	struct hd_case c = hd_case_fd(s->fds[0], POLLIN, &revents);
	return hd_select(&c, 1, until);
}

static long call_lock(struct scene *s, hd_time until)
{
	return hd_fd_lock(s->fds[0], HD_FD_READING, until);
}

static long call_open(struct scene *s, hd_time until)
{
	int fd = hd_open(s->path, O_RDONLY, 0, until);

	if (fd >= 0)
		hd_close(fd);
	return fd < 0 ? fd : 0;
}

/* Reads of it cannot be tried without waiting, as heddle sees it; nor can appending writes, which might be made in two pieces. */
static void file_of_the_kernel(struct scene *s)
{
	MUST(s->fds[0] = open("/proc/version", O_RDONLY | O_CLOEXEC));
}

static void file_to_append_to(struct scene *s)
{
	temporary_file(s);
	MUST(fcntl(s->fds[0], F_SETFL, O_APPEND));
}

static long call_pread(struct scene *s, hd_time until)
{
	char c;
	return hd_pread(s->fds[0], &c, 1, 0, until);
}

static long call_preadv(struct scene *s, hd_time until)
{
	char c;
	return hd_preadv(s->fds[0], &(struct iovec){ &c, 1 }, 1, 0, until);
}

static long call_pwrite(struct scene *s, hd_time until)
{
	return hd_pwrite(s->fds[0], "x", 1, 0, until);
}

static long call_pwritev(struct scene *s, hd_time until)
{
	char c = 0;
	return hd_pwritev(s->fds[0], &(struct iovec){ &c, 1 }, 1, 0, until);
}

static long call_fsync(struct scene *s, hd_time until)
{
	return hd_fsync(s->fds[0], until);
}

static long call_fdatasync(struct scene *s, hd_time until)
{
	return hd_fdatasync(s->fds[0], until);
}

static long call_msync(struct scene *s, hd_time until)
{
	return hd_msync(s->memory, 4096, MS_SYNC, until);
}

static long call_ftruncate(struct scene *s, hd_time until)
{
	return hd_ftruncate(s->fds[0], 8192, until);
}

static long call_stat(struct scene *s, hd_time until)
{
	struct stat st;
	return hd_stat(s->path, &st, until);
}

static long call_fcntl_lock(struct scene *s, hd_time until)
{
	struct flock all = { .l_type = F_WRLCK };
	return hd_fcntl_lock(s->fds[0], F_OFD_SETLKW, &all, until);
}

static long call_flock(struct scene *s, hd_time until)
{
	return hd_flock(s->fds[0], LOCK_EX, until);
}

static long call_tcdrain(struct scene *s, hd_time until)
{
	return hd_tcdrain(s->fds[1], until);
}

static long call_splice(struct scene *s, hd_time until)
{
	static int sink[2];

	if (sink[1] == 0)
		MUST(hd_pipe(sink));
	return hd_splice(s->fds[0], NULL, sink[1], NULL, 1, 0, until);
}

static void file_to_full_socket(struct scene *s)
{
	int pair[2];

	temporary_file(s);
	s->other = s->fds[0];
	MUST(hd_socketpair(AF_UNIX, SOCK_STREAM, pair));
	s->fds[0] = pair[0];
	s->fds[1] = pair[1];
	fill(s->fds[1]);
}

static long call_sendfile(struct scene *s, hd_time until)
{
	off_t offset = 0;
	return hd_sendfile(s->fds[1], s->other, &offset, 1, until);
}

static long call_getnameinfo(struct scene *s, hd_time until)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	char host[256];
	int err = hd_getnameinfo((struct sockaddr *)&address, sizeof address, host, sizeof host, NULL, 0, 0, until);

	(void)s;
	return err < HD_EAI(0) ? 0 : err;
}

static long call_getaddrinfo(struct scene *s, hd_time until)
{
	struct addrinfo *found = NULL;
	int err = hd_getaddrinfo("localhost", NULL, NULL, &found, until);

	(void)s;
	if (err == 0)
		freeaddrinfo(found);
	return err;
}

static long call_sigwait(struct scene *s, hd_time until)
{
	sigset_t set;
	int sig;

	(void)s;
	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	return hd_sigwait(&set, &sig, until);
}

static long call_waitpid(struct scene *s, hd_time until)
{
	long pid = hd_waitpid(s->child, NULL, 0, until);
	return pid > 0 ? 0 : pid;
}

static long call_wait_any(struct scene *s, hd_time until)
{
	long pid = hd_waitpid(-getpgrp(), NULL, WUNTRACED, until);

	(void)s;
	return pid > 0 ? 0 : pid;
}

static long call_spawn_child(struct scene *s, hd_time until)
{
	static const char *const argv[] = { "true", NULL };
	struct hd_child how = { .argv = argv };
	long pid = hd_spawn_child(&how, NULL);

	(void)s, (void)until;
	if (pid > 0) {
		int state = hd_set_cancel_state(HD_CANCEL_DISABLED); /* a request that the call has not heeded waits on */
		MUST(hd_waitpid((pid_t)pid, NULL, 0, HD_FOREVER));
		hd_set_cancel_state(state);
	}
	return pid > 0 ? 0 : pid;
}

static long call_system(struct scene *s, hd_time until)
{
	char command[96];

	snprintf(command, sizeof command, "exec cat %s", s->path);
	return hd_system(command, until);
}

static long call_child_output(struct scene *s, hd_time until)
{
	const char *const argv[] = { "cat", s->path, NULL };
	char data[8];
	return hd_child_output(&(struct hd_child){ .argv = argv }, data, sizeof data, NULL, until);
}

static long call_sleep(struct scene *s, hd_time until)
{
	(void)until;
	return hd_sleep(s->nap > 0 ? s->nap : HD_SEC(1000));
}

static long call_test_cancel(struct scene *s, hd_time until)
{
	(void)s, (void)until;
	return hd_test_cancel();
}

static void work(void *arg)
{
	(void)arg;
	hold_up();
}

static long call_blocking(struct scene *s, hd_time until)
{
	(void)s, (void)until;
	return hd_blocking(work, NULL);
}

static long call_semaphore(struct scene *s, hd_time until)
{
	return hd_semaphore_wait(&s->semaphore, until);
}

static long call_mutex(struct scene *s, hd_time until)
{
	int err = hd_mutex_lock(&s->mutex, until);

	if (err == 0)
		hd_mutex_unlock(&s->mutex);
	return err;
}

static long call_condition(struct scene *s, hd_time until)
{
	MUST(hd_monitor_enter(&s->monitor, HD_FOREVER));
	s->is_there = true;
	int err = hd_monitor_wait(&s->monitor, &s->condition, until);
	hd_monitor_exit(&s->monitor);
	return err;
}

static long call_read_lock(struct scene *s, hd_time until)
{
	int err = hd_rwlock_read(&s->rwlock, until);

	if (err == 0)
		hd_rwlock_unlock(&s->rwlock);
	return err;
}

static long call_write_lock(struct scene *s, hd_time until)
{
	int err = hd_rwlock_write(&s->rwlock, until);

	if (err == 0)
		hd_rwlock_unlock(&s->rwlock);
	return err;
}

static long call_barrier(struct scene *s, hd_time until)
{
	return hd_barrier_wait(&s->barrier, until);
}

static long call_once(struct scene *s, hd_time until)
{
	return hd_once(&s->once, be_at_it, s, until);
}

static long call_waitgroup(struct scene *s, hd_time until)
{
	return hd_waitgroup_wait(&s->waitgroup, until);
}

static void *be_member(void *arg)
{
	struct scene *s = arg;

	(void)!hd_semaphore_wait(&s->semaphore, HD_FOREVER);
	return NULL;
}

static long call_group(struct scene *s, hd_time until)
{
	struct hd_group group = { .owner = 0 };

	MUST(hd_group_spawn(&group, be_member, s));
	return hd_group_wait(&group, until);
}

static long call_suspend(struct scene *s, hd_time until)
{
	return hd_suspend(s->holder, until);
}

static long call_terminate(struct scene *s, hd_time until)
{
	return hd_terminate(s->holder, until);
}

static long call_quiesce(struct scene *s, hd_time until)
{
	(void)s;
	return hd_quiesce(until);
}

static long call_event(struct scene *s, hd_time until)
{
	return hd_event_wait(&s->event, until);
}

static long call_put(struct scene *s, hd_time until)
{
	return hd_queue_put(s->queue, "x", until);
}

static long call_next(struct scene *s, hd_time until)
{
	char item;
	return hd_queue_next(s->queue, &item, until);
}

static long call_put_many(struct scene *s, hd_time until)
{
	return hd_queue_put_many(s->queue, "x", 1, until);
}

static long call_next_many(struct scene *s, hd_time until)
{
	char item;
	return hd_queue_next_many(s->queue, &item, 1, until);
}

static long call_promise_all(struct scene *s, hd_time until)
{
	return hd_promise_all(&s->promise, 1, until);
}

static long call_promise(struct scene *s, hd_time until)
{
	return hd_promise_value(s->promise, NULL, until);
}

static long call_join(struct scene *s, hd_time until)
{
	return hd_join(s->holder, NULL, until);
}

static long call_close(struct scene *s, hd_time until)
{
	(void)until;
	long err = hd_close(s->fds[1]);
	s->fds[1] = -1;
	return err;
}

/* In a port of the caller's own. */
static void own_new_port(struct scene *s)
{
	hd_port_release(s->port);
	s->port = hd_port_retain(hd_port_new(NULL));
}

static long call_receive(struct scene *s, hd_time until)
{
	struct hd_message m;

	own_new_port(s);
	return hd_receive(s->port, &m, until);
}

static long call_receive_tag(struct scene *s, hd_time until)
{
	struct hd_message m;

	own_new_port(s);
	MUST(hd_send(s->port, 7, NULL, 0, 0)); /* another one, which stays */
	return hd_receive_tag(NULL, 1, &m, until);
}

static long call_select_receive(struct scene *s, hd_time until)
{
	struct hd_message m;

	own_new_port(s);
	struct hd_case cases[] = { hd_case_receive(s->port, &m) };
	return hd_select(cases, 1, until);
}

static long call_send_message(struct scene *s, hd_time until)
{
	return hd_send(s->port, 1, "x", 2, until);
}

static long call_call(struct scene *s, hd_time until)
{
	return hd_call(s->port, 1, "x", 2, NULL, until);
}

/* ---- calls that move more than there is, or than there is room for ---- */

static char many_bytes[4 << 20];

static void pipe_with_a_byte(struct scene *s)
{
	empty_pipe(s);
	MUST(hd_write(s->fds[1], "x", 1, HD_FOREVER));
}

static void socket_with_a_byte(struct scene *s)
{
	quiet_socket(s);
	MUST(hd_write(s->fds[1], "x", 1, HD_FOREVER));
}

static void long_file_and_socket(struct scene *s)
{
	file_to_full_socket(s);
	drain(s);
	MUST(ftruncate(s->other, sizeof many_bytes));
}

/* A process is inside the monitor, and has signalled the condition; it leaves when a system call that is held up would end. */
static void *signal_and_stay(void *arg)
{
	struct scene *s = arg;

	MUST(hd_monitor_enter(&s->monitor, HD_FOREVER));
	while (!s->is_there) {
		hd_monitor_exit(&s->monitor);
		MUST(hd_sleep(HD_US(50)));
		MUST(hd_monitor_enter(&s->monitor, HD_FOREVER));
	}
	hd_monitor_signal_all(&s->monitor, &s->condition);
	MUST(hd_semaphore_wait(&may_end, HD_FOREVER));
	hd_monitor_exit(&s->monitor);
	return NULL;
}

static void monitor_in_use(struct scene *s)
{
	MUST(s->holder = hd_spawn(signal_and_stay, s));
}

static long put_more(struct scene *s, hd_time until)
{
	return hd_queue_put_many(s->queue, "xy", 2, until);
}

static long take_more(struct scene *s, hd_time until)
{
	char two[2];
	return hd_queue_next_many(s->queue, two, 2, until);
}

static long read_more(struct scene *s, hd_time until)
{
	char two[2];
	return hd_read(s->fds[0], two, 2, until);
}

static long readv_more(struct scene *s, hd_time until)
{
	char two[2];
	return hd_readv(s->fds[0], &(struct iovec){ two, 2 }, 1, until);
}

static long recv_more(struct scene *s, hd_time until)
{
	char two[2];
	return hd_sock_recv(s->fds[0], two, 2, 0, until);
}

static long recvfrom_more(struct scene *s, hd_time until)
{
	char two[2];
	return hd_sock_recvfrom(s->fds[0], two, 2, 0, NULL, NULL, until);
}

static long recvmsg_more(struct scene *s, hd_time until)
{
	char two[2];
	struct iovec part = { two, 2 };
	return hd_sock_recvmsg(s->fds[0], &(struct msghdr){ .msg_iov = &part, .msg_iovlen = 1 }, 0, until);
}

static long read_full_more(struct scene *s, hd_time until)
{
	char two[2];
	return hd_read_full(s->fds[0], two, 2, until);
}

/* What has come of the line is in the reader still. */
static long read_line_more(struct scene *s, hd_time until)
{
	char buffer[64], *line;
	struct hd_reader r;

	hd_reader_init(&r, s->fds[0], buffer, sizeof buffer);
	long err = hd_reader_line(&r, &line, until);
	if (hd_reader_skip(&r, 2) != 1)
		die("a byte of a line is lost", -EINVAL);
	return err;
}

static long write_more(struct scene *s, hd_time until)
{
	return hd_write(s->fds[1], many_bytes, sizeof many_bytes, until);
}

static long writev_more(struct scene *s, hd_time until)
{
	return hd_writev(s->fds[1], &(struct iovec){ many_bytes, sizeof many_bytes }, 1, until);
}

static long write_all_more(struct scene *s, hd_time until)
{
	return hd_write_all(s->fds[1], many_bytes, sizeof many_bytes, until);
}

/* What has not been written is in the writer still. */
static long flush_more(struct scene *s, hd_time until)
{
	static char buffer[sizeof many_bytes];
	struct hd_writer w;
	int there;

	hd_writer_init(&w, s->fds[1], buffer, sizeof buffer);
	MUST(hd_writer_put(&w, many_bytes, sizeof many_bytes, until));
	long err = hd_writer_flush(&w, until);
	MUST(ioctl(s->fds[0], FIONREAD, &there));
	if (w.end - w.begin + (size_t)there != sizeof many_bytes)
		die("bytes of a writer are lost", -EINVAL);
	return err;
}

static long send_more(struct scene *s, hd_time until)
{
	return hd_sock_send(s->fds[1], many_bytes, sizeof many_bytes, 0, until);
}

static long sendto_more(struct scene *s, hd_time until)
{
	return hd_sock_sendto(s->fds[1], many_bytes, sizeof many_bytes, 0, NULL, 0, until);
}

static long sendmsg_more(struct scene *s, hd_time until)
{
	struct iovec all = { many_bytes, sizeof many_bytes };
	return hd_sock_sendmsg(s->fds[1], &(struct msghdr){ .msg_iov = &all, .msg_iovlen = 1 }, 0, until);
}

static long sendfile_more(struct scene *s, hd_time until)
{
	off_t offset = 0;
	long n = hd_sendfile(s->fds[1], s->other, &offset, sizeof many_bytes, until);

	if (n >= 0 && offset != n)
		die("hd_sendfile has moved something else than it says", -EINVAL);
	return n;
}

/* Whether a part has been moved: there is none to read any more, or some by now. */
static bool bytes_are_read(const struct scene *s)
{
	int there;

	MUST(ioctl(s->fds[0], FIONREAD, &there));
	return there == 0;
}

static bool bytes_are_written(const struct scene *s)
{
	return !bytes_are_read(s);
}

static bool items_are_put(const struct scene *s)
{
	return hd_queue_length(s->queue) > 0;
}

static bool items_are_taken(const struct scene *s)
{
	return !items_are_put(s);
}

/* It waits to re-enter; it waits for the answer: why it waits says it. */
static bool is_further(const struct scene *s)
{
	(void)s;
	return true;
}

static const struct part {
	const char *call;
	bool (*is_moved)(const struct scene *s);
	enum hd_wait why; /* it waits then */
	void (*arrange)(struct scene *s);
	long (*make)(struct scene *s, hd_time until);
	const char *moves; /* NULL: nothing that it answers */
	bool held;	   /* until may_end */
} parts[] = { { "hd_read", bytes_are_read, HD_WAIT_FD_READ, pipe_with_a_byte, read_more, "bytes", false },
	      { "hd_readv", bytes_are_read, HD_WAIT_FD_READ, pipe_with_a_byte, readv_more, "bytes", false },
	      { "hd_read_full", bytes_are_read, HD_WAIT_FD_READ, pipe_with_a_byte, read_full_more, "bytes", false },
	      { "hd_reader_line", bytes_are_read, HD_WAIT_FD_READ, pipe_with_a_byte, read_line_more, NULL, false },
	      { "hd_write", bytes_are_written, HD_WAIT_FD_WRITE, empty_pipe, write_more, "bytes", false },
	      { "hd_writev", bytes_are_written, HD_WAIT_FD_WRITE, empty_pipe, writev_more, "bytes", false },
	      { "hd_write_all", bytes_are_written, HD_WAIT_FD_WRITE, empty_pipe, write_all_more, NULL, false },
	      { "hd_writer_flush", bytes_are_written, HD_WAIT_FD_WRITE, empty_pipe, flush_more, NULL, false },
	      { "hd_sock_recv", bytes_are_read, HD_WAIT_FD_READ, socket_with_a_byte, recv_more, "bytes", false },
	      { "hd_sock_recvfrom", bytes_are_read, HD_WAIT_FD_READ, socket_with_a_byte, recvfrom_more, "bytes", false },
	      { "hd_sock_recvmsg", bytes_are_read, HD_WAIT_FD_READ, socket_with_a_byte, recvmsg_more, "bytes", false },
	      { "hd_sock_send", bytes_are_written, HD_WAIT_FD_WRITE, quiet_socket, send_more, "bytes", false },
	      { "hd_sock_sendto", bytes_are_written, HD_WAIT_FD_WRITE, quiet_socket, sendto_more, "bytes", false },
	      { "hd_sock_sendmsg", bytes_are_written, HD_WAIT_FD_WRITE, quiet_socket, sendmsg_more, "bytes", false },
	      { "hd_sendfile", bytes_are_written, HD_WAIT_FD_WRITE, long_file_and_socket, sendfile_more, "bytes", false },
	      { "hd_call, a full port", is_further, HD_WAIT_CALL, full_port_with_room, call_call, NULL, false },
	      { "hd_monitor_wait", is_further, HD_WAIT_REENTER, monitor_in_use, call_condition, NULL, true },
	      { "hd_queue_put_many", items_are_put, HD_WAIT_PUT, empty_queue, put_more, "items", false },
	      { "hd_queue_next_many", items_are_taken, HD_WAIT_NEXT, full_queue, take_more, "items", false } };

/* ---- the table ---- */

enum {
	BUSY_POOL = 1,
	NO_DEADLINE = 2,
	NO_GRANT = 4,
	NO_WAIT = 8,
	ON_THREAD = 16, /* a thread makes its system call */
	LEAVES = 32,	/* it does not wait for the end of that */
	DEAF = 64,	/* it is no cancellation point */
	OPENS = 128,	/* before it waits in open(2), it has waited for what there is to be opened */
	OWN = 256,	/* what it waits for has ended with the caller */
};

static const struct point {
	const char *call, *waits_for;
	enum hd_wait why;
	void (*arrange)(struct scene *s);
	long (*make)(struct scene *s, hd_time until);
	void (*grant)(struct scene *s);
	unsigned
		is; /* BUSY_POOL: it waits for a thread, and each is busy; NO_GRANT: a second wait would not end, or would end by itself; ... */
} points[] = {
	{ "hd_read", "data", HD_WAIT_FD_READ, empty_pipe, call_read, send_byte, 0 },
	{ "hd_readv", "data", HD_WAIT_FD_READ, empty_pipe, call_readv, send_byte, 0 },
	{ "hd_read_full", "data", HD_WAIT_FD_READ, empty_pipe, call_read_full, send_byte, 0 },
	{ "hd_reader_line", "data", HD_WAIT_FD_READ, empty_pipe, call_reader_line, send_byte, 0 },
	{ "hd_write", "room", HD_WAIT_FD_WRITE, full_pipe, call_write, drain, 0 },
	{ "hd_writev", "room", HD_WAIT_FD_WRITE, full_pipe, call_writev, drain, 0 },
	{ "hd_write_all", "room", HD_WAIT_FD_WRITE, full_pipe, call_write_all, drain, 0 },
	{ "hd_writer_flush", "room", HD_WAIT_FD_WRITE, full_pipe, call_writer_flush, drain, 0 },
	{ "hd_sock_recv", "data", HD_WAIT_FD_READ, quiet_socket, call_recv, send_byte, 0 },
	{ "hd_sock_recvfrom", "data", HD_WAIT_FD_READ, quiet_socket, call_recvfrom, send_byte, 0 },
	{ "hd_sock_recvmsg", "data", HD_WAIT_FD_READ, quiet_socket, call_recvmsg, send_byte, 0 },
	{ "hd_sock_recv_fd", "a descriptor", HD_WAIT_FD_READ, quiet_socket, call_recv_fd, send_fd, 0 },
	{ "hd_sock_send_fd", "room", HD_WAIT_FD_WRITE, full_socket, call_send_fd, drain, 0 },
	{ "hd_sock_send", "room", HD_WAIT_FD_WRITE, full_socket, call_send, drain, 0 },
	{ "hd_sock_sendto", "room", HD_WAIT_FD_WRITE, full_socket, call_sendto, drain, 0 },
	{ "hd_sock_sendmsg", "room", HD_WAIT_FD_WRITE, full_socket, call_sendmsg, drain, 0 },
	{ "hd_sendfile", "room", HD_WAIT_FD_WRITE, file_to_full_socket, call_sendfile, drain, 0 },
	{ "hd_splice", "data", HD_WAIT_NONE, empty_pipe, call_splice, send_byte, 0 },
	{ "hd_accept", "a connection", HD_WAIT_FD_READ, listener, call_accept, connect_to, 0 },
	{ "hd_connect", "the other side", HD_WAIT_FD_WRITE, full_listener, call_connect, accept_all, NO_GRANT },
	{ "hd_tcp_connect", "the other side", HD_WAIT_NONE, full_listener, call_tcp_connect, accept_all, NO_GRANT },
	{ "hd_tcp_connect, a name", "a thread", HD_WAIT_NAME, listener, call_name_connect, NULL,
	  BUSY_POOL | ON_THREAD | LEAVES },
	{ "hd_fd_poll", "readiness", HD_WAIT_FD_POLL, empty_pipe, call_poll, send_byte, 0 },
	{ "hd_fd_select", "readiness", HD_WAIT_FD_POLL, empty_pipe, call_fd_select, send_byte, 0 },
	{ "hd_select", "readiness", HD_WAIT_SELECT, empty_pipe, call_select, send_byte, 0 },
	{ "hd_fd_lock", "its turn", HD_WAIT_FD_READ_TURN, locked_fd, call_lock, let_holder_go, 0 },
	{ "hd_close", "nothing", HD_WAIT_NONE, empty_pipe, call_close, NULL, NO_WAIT | NO_GRANT | NO_DEADLINE },
	{ "hd_close, with SO_LINGER", "the other side", HD_WAIT_FD_CLOSE, lingering_socket, call_close, NULL,
	  NO_WAIT | NO_GRANT | NO_DEADLINE | ON_THREAD },
	{ "hd_open, a file", "a thread", HD_WAIT_FILE_OPEN, temporary_file, call_open, NULL, BUSY_POOL | ON_THREAD },
	{ "hd_open, a FIFO", "the other side", HD_WAIT_FILE_OPEN, fifo, call_open, open_other_side, OPENS },
	{ "hd_pread", "a thread", HD_WAIT_FILE, file_of_the_kernel, call_pread, NULL, BUSY_POOL | ON_THREAD },
	{ "hd_preadv", "a thread", HD_WAIT_FILE, file_of_the_kernel, call_preadv, NULL, BUSY_POOL | ON_THREAD },
	{ "hd_pwrite", "a thread", HD_WAIT_FILE, file_to_append_to, call_pwrite, NULL, BUSY_POOL | ON_THREAD },
	{ "hd_pwritev", "a thread", HD_WAIT_FILE, file_to_append_to, call_pwritev, NULL, BUSY_POOL | ON_THREAD },
	{ "hd_fsync", "a thread", HD_WAIT_FILE_SYNC, temporary_file, call_fsync, NULL, BUSY_POOL | ON_THREAD },
	{ "hd_fdatasync", "a thread", HD_WAIT_FILE_SYNC, temporary_file, call_fdatasync, NULL, BUSY_POOL | ON_THREAD },
	{ "hd_msync", "a thread", HD_WAIT_FILE_SYNC, temporary_file, call_msync, NULL, BUSY_POOL | ON_THREAD },
	{ "hd_ftruncate", "a thread", HD_WAIT_FILE, temporary_file, call_ftruncate, NULL, BUSY_POOL | ON_THREAD },
	{ "hd_stat", "a thread", HD_WAIT_FILE, temporary_file, call_stat, NULL, BUSY_POOL | ON_THREAD },
	{ "hd_fcntl_lock", "a lock", HD_WAIT_FILE_LOCK, locked_file, call_fcntl_lock, unlock_file, 0 },
	{ "hd_flock", "a lock", HD_WAIT_FILE_LOCK, locked_file, call_flock, unlock_file, 0 },
	{ "hd_tcdrain", "a terminal", HD_WAIT_FILE_SYNC, pseudo_terminal, call_tcdrain, answer_terminal, 0 },
	{ "hd_getaddrinfo", "a thread", HD_WAIT_NAME, nothing, call_getaddrinfo, NULL, BUSY_POOL | ON_THREAD | LEAVES },
	{ "hd_getnameinfo", "a thread", HD_WAIT_NAME, nothing, call_getnameinfo, NULL, BUSY_POOL | ON_THREAD | LEAVES },
	{ "hd_sigwait", "a signal", HD_WAIT_SIGNAL, nothing, call_sigwait, raise_signal, 0 },
	{ "hd_waitpid, one child", "its end", HD_WAIT_CHILD, sleeping_child, call_waitpid, kill_child, 0 },
	{ "hd_waitpid, a group", "an end", HD_WAIT_CHILD, sleeping_child, call_wait_any, kill_child, 0 },
	{ "hd_spawn_child", "a thread", HD_WAIT_CHILD, nothing, call_spawn_child, NULL, BUSY_POOL | ON_THREAD | NO_DEADLINE },
	{ "hd_system", "its end", HD_WAIT_CHILD, fifo, call_system, end_reading, ON_THREAD },
	{ "hd_child_output", "its output", HD_WAIT_FD_READ, fifo, call_child_output, end_reading, ON_THREAD },
	{ "hd_blocking", "a thread", HD_WAIT_BLOCKING, nothing, call_blocking, NULL, BUSY_POOL | ON_THREAD | NO_DEADLINE },
	{ "hd_sleep", "time", HD_WAIT_SLEEP, nothing, call_sleep, nothing, NO_DEADLINE | NO_GRANT },
	{ "hd_test_cancel", "nothing", HD_WAIT_NONE, nothing, call_test_cancel, NULL, NO_WAIT | NO_GRANT | NO_DEADLINE },
	{ "hd_semaphore_wait", "a signal", HD_WAIT_SEMAPHORE, nothing, call_semaphore, signal_semaphore, 0 },
	{ "hd_mutex_lock", "its owner", HD_WAIT_MUTEX, held_mutex, call_mutex, let_holder_go, DEAF },
	{ "hd_monitor_wait", "a signal", HD_WAIT_CONDITION, nothing, call_condition, signal_condition, 0 },
	{ "hd_rwlock_read", "its writer", HD_WAIT_READ, written_rwlock, call_read_lock, let_holder_go, 0 },
	{ "hd_rwlock_write", "its writer", HD_WAIT_WRITE, written_rwlock, call_write_lock, let_holder_go, 0 },
	{ "hd_barrier_wait", "the others", HD_WAIT_BARRIER, barrier_of_two, call_barrier, come_to_barrier, 0 },
	{ "hd_once", "its end", HD_WAIT_ONCE, begun_once, call_once, let_holder_go, 0 },
	{ "hd_waitgroup_wait", "the others", HD_WAIT_WAITGROUP, busy_waitgroup, call_waitgroup, done_waitgroup, 0 },
	{ "hd_event_wait", "the event", HD_WAIT_EVENT, nothing, call_event, set_event, 0 },
	{ "hd_queue_put", "room", HD_WAIT_PUT, full_queue, call_put, take_item, 0 },
	{ "hd_queue_next", "an item", HD_WAIT_NEXT, empty_queue, call_next, put_item, 0 },
	{ "hd_queue_put_many", "room", HD_WAIT_PUT, full_queue, call_put_many, take_item, 0 },
	{ "hd_queue_next_many", "an item", HD_WAIT_NEXT, empty_queue, call_next_many, put_item, 0 },
	{ "hd_promise_value", "the value", HD_WAIT_PROMISE, some_promise, call_promise, set_promise, 0 },
	{ "hd_promise_all", "the values", HD_WAIT_PROMISE, some_promise, call_promise_all, set_promise, 0 },
	{ "hd_join", "its end", HD_WAIT_JOIN, held_mutex, call_join, let_holder_go, 0 },
	{ "hd_group_wait", "its members", HD_WAIT_GROUP, nothing, call_group, signal_semaphore, OWN },
	{ "hd_suspend", "a safe point", HD_WAIT_SUSPEND, computing_process, call_suspend, let_holder_go, 0 },
	{ "hd_terminate", "its end", HD_WAIT_TERMINATE, deaf_process, call_terminate, let_holder_go, 0 },
	{ "hd_quiesce", "behaviours", HD_WAIT_QUIESCE, some_behaviour, call_quiesce, let_holder_go, 0 },
	{ "hd_receive", "a message", HD_WAIT_RECEIVE, nothing, call_receive, send_message, 0 },
	{ "hd_receive_tag", "a message", HD_WAIT_RECEIVE, nothing, call_receive_tag, send_message, 0 },
	{ "hd_select, a port", "a message", HD_WAIT_SELECT, nothing, call_select_receive, send_message, 0 },
	{ "hd_send", "room", HD_WAIT_SEND, full_port, call_send_message, serve_port, 0 },
	{ "hd_call, a full port", "room", HD_WAIT_SEND, full_port, call_call, serve_port, 0 },
	{ "hd_call", "an answer", HD_WAIT_CALL, busy_server, call_call, serve_port, 0 },
};

/* ---- the players ---- */

struct act {
	const struct point *point;
	struct scene *scene;
	long (*make)(struct scene *s, hd_time until); /* NULL: the point's */
	hd_time until;
	bool cancelled_before;
	long answer;
};

static void *play(void *arg)
{
	struct act *a = arg;

	if (a->cancelled_before)
		MUST(hd_cancel(hd_self()));
	a->answer = (a->make != NULL ? a->make : a->point->make)(a->scene, a->until);
	return NULL;
}

/* Spawns a process that makes the call, and answers when it waits. */
static hd_pid begin(struct act *a)
{
	struct hd_process_info info;
	int opened = atomic_load(&opens);
	hd_pid pid = hd_spawn(play, a);

	MUST(pid);
	for (int i = 0; i < 20000; i++) {
		MUST(hd_sleep(HD_US(50)));
		bool too_early = a->point->is & OPENS && atomic_load(&opens) == opened;
		MUST(hd_process_info(pid, &info));
		if (info.state == HD_ENDED || a->point->is & NO_WAIT)
			return pid;
		if (info.state == HD_WAITING && !too_early && (a->point->why == HD_WAIT_NONE || info.why == a->point->why))
			return pid;
	}
	fprintf(stderr, "points: %s does not wait as it should, but for reason %d\n", a->point->call, info.why);
	abort();
}

static struct scene *set_scene(const struct point *p)
{
	struct scene *s = calloc(1, sizeof *s);

	s->fds[0] = s->fds[1] = s->other = -1;
	p->arrange(s);
	return s;
}

static void clear_scene(struct scene *s)
{
	s->over = true;
	if (s->holder > 0) {
		(void)hd_resume(s->holder); /* it may have been suspended */
		(void)!hd_join(s->holder, NULL, HD_FOREVER);
	}
	if (s->behaves)
		MUST(hd_quiesce(HD_FOREVER));
	for (int i = 0; i < 2; i++)
		if (s->fds[i] >= 0)
			hd_close(s->fds[i]);
	if (s->other >= 0)
		hd_close(s->other);
	if (s->memory != NULL)
		munmap(s->memory, 4096);
	if (s->path[0] != 0)
		unlink(s->path);
	if (s->child > 0 && kill(s->child, SIGKILL) == 0)
		(void)!hd_waitpid(s->child, NULL, 0, HD_FOREVER);
	if (s->queue != NULL)
		hd_queue_drop(s->queue);
	if (s->promise != NULL)
		hd_promise_release(s->promise);
	hd_port_release(s->port);
	free(s);
}

/* Keeps the only thread of the pool. */
static struct hd_semaphore freed, taken;
static void keep_thread(void *arg)
{
	(void)arg;
	hd_semaphore_signal(&taken);
	MUST(hd_semaphore_wait(&freed, HD_FOREVER));
}

static void *keep_pool_busy(void *arg)
{
	MUST(hd_blocking(keep_thread, NULL));
	return arg;
}

#define GOES_ON "goes on"

static const char *word(long answer)
{
	switch (answer) {
	case -ECANCELED:
		return "`-ECANCELED`";
	case -ETIMEDOUT:
		return "`-ETIMEDOUT`";
	default:
		return answer >= 0 ? GOES_ON : hd_error((int)answer);
	}
}

static const char *when_cancelled_before(const struct point *p)
{
	struct scene *s = set_scene(p);
	struct act a = { .point = p, .scene = s, .until = hd_after(HD_SEC(5)), .cancelled_before = true };
	bool waits = p->is & DEAF;
	hd_pid pid = waits ? begin(&a) : hd_spawn(play, &a);

	if (waits)
		p->grant(s);
	MUST(hd_join(pid, NULL, HD_FOREVER));
	clear_scene(s);
	return word(a.answer);
}

/* And after it another process makes the call in the same scene, and is let go: nothing of what it needs is lost. */
static const char *when_cancelled(const struct point *p, hd_pid keeper)
{
	struct scene *s = set_scene(p);
	struct act first = { .point = p, .scene = s, .until = HD_FOREVER }, second = first;
	hd_pid pid = begin(&first), other = 0;

	(void)hd_cancel(pid);
	if (!(p->is & DEAF))
		MUST(hd_join(pid, NULL, HD_FOREVER));
	if (!(p->is & NO_GRANT)) {
		other = begin(&second);
		if (p->is & BUSY_POOL)
			hd_semaphore_signal(&freed);
		else
			p->grant(s);
		MUST(hd_join(other, NULL, HD_FOREVER));
		if (second.answer < 0)
			die(p->call, second.answer);
		if (p->is & BUSY_POOL)
			MUST(hd_join(keeper, NULL, HD_FOREVER));
	}
	if (p->is & DEAF)
		MUST(hd_join(pid, NULL, HD_FOREVER));
	clear_scene(s);
	return word(first.answer);
}

static const char *when_terminated(const struct point *p)
{
	struct scene *s = set_scene(p);
	struct act a = { .point = p, .scene = s, .until = HD_FOREVER };
	hd_pid pid = begin(&a);
	struct hd_end end;
	int err = hd_terminate(pid, hd_after(HD_SEC(5)));

	if (err != 0 && err != -ESRCH)
		die(p->call, err);
	MUST(hd_join_end(pid, &end, HD_FOREVER));
	clear_scene(s);
	return end.kind == HD_END_RETURNED ? GOES_ON : "ends";
}

static const char *when_time_is_up(const struct point *p)
{
	if (p->is & NO_DEADLINE)
		return "-";
	struct scene *s = set_scene(p);
	struct act a = { .point = p, .scene = s, .until = hd_after(HD_MS(20)) };
	hd_pid pid = hd_spawn(play, &a);

	MUST(hd_join(pid, NULL, HD_FOREVER));
	clear_scene(s);
	return word(a.answer);
}

/* ---- while it runs ---- */

enum how { CANCELLED, TERMINATED, LATE, HOWS };
enum stands { ALONE, HELD, SUSPENDED }; /* HELD: its system call, or what it still needs, is held up until may_end */

static void *terminate(void *pid)
{
	int err = hd_terminate(*(hd_pid *)pid, HD_FOREVER);

	if (err != 0 && err != -ESRCH)
		die("hd_terminate", err);
	return NULL;
}

/* Does it to the process, which makes the call; if its call is held up, waits for the effect if there will be one at once, else a while. Then lets it go
 * on, and answers what has become of it. `moves` is what the call counts, if it answers a count. */
static const char *do_it(enum how how, struct act *a, hd_pid pid, enum stands stands, const char *moves)
{
	struct hd_end end;
	hd_pid killer = 0;

	if (how == CANCELLED)
		(void)hd_cancel(pid); /* it may have ended */
	else if (how == TERMINATED)
		MUST(killer = hd_spawn(terminate, &pid));
	if (stands == HELD && a->point->is & LEAVES)
		while (a->answer == LONG_MIN && hd_priority(pid) > 0)
			MUST(hd_sleep(HD_US(100)));
	else if (stands != ALONE && how == LATE)
		MUST(hd_sleep_until(a->until + HD_MS(5)));
	else if (stands == HELD)
		MUST(hd_sleep(HD_MS(5)));
	if (stands == HELD)
		hd_semaphore_signal(&may_end);
	if (stands == SUSPENDED && how != TERMINATED) /* a termination lets it go on */
		(void)hd_resume(pid);
	if (killer > 0)
		MUST(hd_join(killer, NULL, HD_FOREVER));
	MUST(hd_join_end(pid, &end, HD_FOREVER));
	if (end.kind != HD_END_RETURNED)
		return "ends";
	return moves != NULL && a->answer > 0 ? moves : word(a->answer);
}

static const struct part *part_of(const struct point *p)
{
	for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
		if (strcmp(parts[i].call, p->call) == 0)
			return &parts[i];
	return NULL;
}

/* Waits until the process has moved a part, and waits for the rest; or has ended. Whether it has moved some. */
static bool wait_for_part(const struct part *part, struct act *a, hd_pid pid)
{
	struct hd_process_info info;
	bool moved;

	do {
		MUST(hd_sleep(HD_US(50)));
		moved = part->is_moved(a->scene);
		MUST(hd_process_info(pid, &info));
	} while (info.state != HD_ENDED && (!moved || info.state != HD_WAITING || info.why != part->why));
	return moved && (info.state != HD_ENDED || part->moves != NULL);
}

/* Waits until the system call is held up. False: the deadline came before that, and it will not be. */
static bool wait_for_thread(const struct act *a)
{
	if (hd_semaphore_wait(&begun, a->until) == 0)
		return true;
	if (atomic_exchange(&slow, false))
		return false;
	MUST(hd_semaphore_wait(&begun, HD_FOREVER));
	return true;
}

static const char *when_part_is_moved(const struct point *p, const struct part *part, enum how how)
{
	for (hd_time delay = HD_MS(20);; delay *= 2) {
		struct scene *s = set_scene(&(struct point){ .arrange = part->arrange });
		struct act a = { .point = p,
				 .scene = s,
				 .make = part->make,
				 .until = how == LATE ? hd_after(delay) : HD_FOREVER,
				 .answer = LONG_MIN };
		hd_pid pid = hd_spawn(play, &a);
		MUST(pid);
		bool moved = wait_for_part(part, &a, pid), waits = a.answer == LONG_MIN;
		const char *said = do_it(how, &a, pid, part->held ? HELD : ALONE, part->moves);
		clear_scene(s);
		if (moved || how != LATE) /* else the deadline came too early */
			return waits || how == LATE ? said : "at once";
	}
}

static const char *when_thread_is_at_it(const struct point *p, enum how how)
{
	struct scene *s = set_scene(p);

	for (hd_time delay = HD_MS(20);; delay *= 2) {
		struct act a = {
			.point = p, .scene = s, .until = how == LATE ? hd_after(delay) : HD_FOREVER, .answer = LONG_MIN
		};
		atomic_store(&slow, true);
		hd_pid pid = hd_spawn(play, &a);
		MUST(pid);
		if (!wait_for_thread(&a)) {
			MUST(hd_join(pid, NULL, HD_FOREVER));
			continue;
		}
		const char *said = do_it(how, &a, pid, HELD, NULL);
		clear_scene(s);
		return said;
	}
}

/* Lets the process go, which is suspended: waits until its wait is over. False: it has ended. */
static bool end_its_wait(const struct act *a, hd_pid pid)
{
	struct hd_process_info info;

	a->point->grant(a->scene);
	do {
		MUST(hd_sleep(HD_US(50)));
		MUST(hd_process_info(pid, &info));
	} while (info.state == HD_WAITING);
	return info.state == HD_SUSPENDED;
}

/* If the call does not go on, another process makes it in the same scene, without a wait: nothing of what it needs is lost. */
static void make_again(const struct point *p, struct scene *s)
{
	struct act a = { .point = p, .scene = s, .until = hd_after(HD_SEC(5)) };
	hd_pid pid = hd_spawn(play, &a);

	MUST(pid);
	MUST(hd_join(pid, NULL, HD_FOREVER));
	if (a.answer < 0)
		die(p->call, a.answer);
}

static const char *when_wait_is_over(const struct point *p, enum how how)
{
	for (hd_time delay = HD_MS(20);; delay *= 4) {
		struct scene *s = set_scene(p);
		struct act a = {
			.point = p, .scene = s, .until = how == LATE ? hd_after(delay) : HD_FOREVER, .answer = LONG_MIN
		};
		s->nap = delay;
		hd_pid pid = begin(&a);
		bool is_over = hd_suspend(pid, HD_FOREVER) == 0 && end_its_wait(&a, pid) && hd_now() < a.until;
		const char *said = do_it(how, &a, pid, SUSPENDED, NULL);
		if (is_over && strcmp(said, GOES_ON) != 0 && !(p->is & OWN))
			make_again(p, s);
		clear_scene(s);
		if (is_over) /* else its time came too early */
			return said;
		if (how != LATE && !(p->is & NO_GRANT))
			die(p->call, -EINVAL);
	}
}

static const char *while_it_runs(const struct point *p, const struct part *part, enum how how)
{
	if (how == LATE && p->is & NO_DEADLINE)
		return "-";
	if (part != NULL)
		return when_part_is_moved(p, part, how);
	return p->is & ON_THREAD ? when_thread_is_at_it(p, how) : when_wait_is_over(p, how);
}

static void print_while_it_runs(const struct point *p)
{
	const struct part *part = part_of(p);
	const char *said[HOWS];

	if (part == NULL && !(p->is & ON_THREAD) && p->grant == NULL) {
		printf(" - |\n");
		return;
	}
	for (enum how how = CANCELLED; how < HOWS; how++) {
		said[how] = while_it_runs(p, part, how);
		if (part != NULL)
			(void)when_wait_is_over(p, how); /* before it has moved anything: nothing is lost */
	}
	if (strcmp(said[0], "at once") == 0)
		printf(" %s, at once |\n", part->moves);
	else
		printf(" %s; %s; %s |\n", said[CANCELLED], said[TERMINATED], said[LATE]);
}

static void *make_table(void *arg)
{
	printf("| call | waits for | cancelled before it | cancelled while it waits | terminated while it waits | time is up "
	       "| while it runs |\n"
	       "|---|---|---|---|---|---|---|\n");
	for (size_t i = 0; i < sizeof points / sizeof points[0]; i++) {
		const struct point *p = &points[i];
		hd_pid keeper = p->is & BUSY_POOL ? hd_spawn(keep_pool_busy, NULL) : 0;
		if (keeper > 0)
			MUST(hd_semaphore_wait(&taken, HD_FOREVER));
		const char *before = when_cancelled_before(p), *ended = when_terminated(p), *late = when_time_is_up(p);
		const char *during = when_cancelled(p, keeper); /* which lets the keeper go */
		printf("| `%.*s`%s | %s | %s | %s | %s | %s |", (int)strcspn(p->call, ","), p->call,
		       strchr(p->call, ',') != NULL ? strchr(p->call, ',') : "", p->waits_for, before,
		       p->is & NO_WAIT ? "-" : during, p->is & NO_WAIT ? "-" : ended, late);
		print_while_it_runs(p);
		fflush(stdout);
	}
	return arg;
}

int main(void)
{
	struct hd_config config = { .workers = 2, .blocking_threads = 1, .fixed = true };

	hd__fault_arm(HD__FAULT_RING, 1, true); /* else a sync of a file waits for no thread */
	return hd_run(&config, make_table, NULL) != 0;
}
