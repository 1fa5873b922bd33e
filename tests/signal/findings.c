/* signal/findings.c - what a review of signals looked for. */
#define _GNU_SOURCE
#include <heddle/child.h>
#include <heddle/io.h>
#include <heddle/net.h>
#include <heddle/signal.h>

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include "io/ring.h"
#include "sync/common.h"

static struct sigaction saved;
static volatile sig_atomic_t handled;

static void count_it(int signal)
{
	(void)signal;
	handled++;
}

static void ignore_it(int signal)
{
	(void)signal;
}

/* A library puts its own action in place, as system(3) and getpass(3) do, and keeps what was there. */
static void *wait_and_change_action(void *arg)
{
	struct sigaction other = { .sa_handler = ignore_it };
	sigset_t set;
	int sig;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	CHECK_EQ(hd_sigwait(&set, &sig, 0), -ETIMEDOUT);
	CHECK_EQ(sigaction(SIGUSR1, &other, &saved), 0);
	return arg;
}

/* heddle's action, put back after the runtime has ended, sends the signal to the program's. */
HD_TEST(signal_action_that_comes_back_late_is_the_programs)
{
	struct sigaction mine = { .sa_handler = count_it };

	if (hd_is_simulated())
		SKIP("it has no signals");
	CHECK_EQ(sigaction(SIGUSR1, &mine, NULL), 0);
	CHECK_EQ(run_with_workers(1, wait_and_change_action, NULL), 0);
	CHECK_EQ(sigaction(SIGUSR1, &saved, NULL), 0);
	for (int i = 1; i <= 3; i++) {
		CHECK_EQ(kill(getpid(), SIGUSR1), 0);
		CHECK_EQ(handled, i);
	}
}

/* ---- the end of the runtime, over waits of every kind ---- */

static int disk[2], file, listener;

static int open_descriptors(void)
{
	DIR *all = opendir("/proc/self/fd");
	int n = 0;

	CHECK(all != NULL);
	while (readdir(all) != NULL)
		n++;
	closedir(all);
	return n;
}

static void *read_disk(void *arg)
{
	char c;
	struct iovec part = { &c, 1 };

	if (hd__ring_do(&(struct hd__task){ .fd = disk[0], .iov = &part, .n = 1, .offset = -1 }, HD_FOREVER, HD_WAIT_FILE) ==
	    -ECANCELED)
		hd__heed();
	return arg;
}

static void *wait_for_signal(void *arg)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	(void)!hd_sigwait(&set, NULL, HD_FOREVER);
	return arg;
}

static void *wait_for_child(void *arg)
{
	const char *const argv[] = { "sleep", "100", NULL };
	pid_t pid = hd_spawn_child(&(struct hd_child){ .argv = argv }, NULL);

	CHECK(pid > 0);
	*(pid_t *)arg = pid;
	(void)!hd_waitpid(pid, NULL, 0, HD_FOREVER);
	return NULL;
}

static void *wait_for_any_child(void *arg)
{
	(void)!hd_waitpid(-1, NULL, 0, HD_FOREVER);
	return arg;
}

static void *run_command(void *arg)
{
	(void)!hd_system("exec sleep 100", HD_FOREVER);
	return arg;
}

static void *collect_output(void *arg)
{
	const char *const argv[] = { "sleep", "100", NULL };
	char data[10];

	(void)!hd_child_output(&(struct hd_child){ .argv = argv }, data, sizeof data, NULL, HD_FOREVER);
	return arg;
}

static void *connect_slowly(void *port)
{
	int fd = hd_tcp_connect("localhost", port, HD_FOREVER);

	if (fd >= 0)
		hd_close(fd);
	return NULL;
}

static void *lock_file(void *path)
{
	int fd = open(path, O_RDWR | O_CLOEXEC);

	CHECK(fd >= 0);
	file = fd;
	(void)!hd_flock(fd, LOCK_EX, HD_FOREVER);
	return NULL;
}

static char port[16], name[] = "/tmp/heddle-found-XXXXXX";
static pid_t child;

static void *wait_for_everything(void *arg)
{
	static const struct {
		hd_entry entry;
		void *arg;
	} all[] = { { read_disk, NULL },      { wait_for_signal, NULL }, { wait_for_child, &child },
		    { run_command, NULL },    { collect_output, NULL },	 { connect_slowly, port },
		    { connect_slowly, port }, { lock_file, name },	 { wait_for_any_child, NULL } };

	for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
		spawned(hd_spawn(all[i].entry, all[i].arg));
	CHECK_EQ(hd_sleep(HD_MS((long)arg)), 0);
	CHECK_EQ(hd_shutdown(0), 0);
	return NULL;
}

static void listen_without_room(void)
{
	listener = hd_tcp_listen("localhost", "0", 1, HD_FOREVER);
	CHECK(listener >= 0);
	snprintf(port, sizeof port, "%d", hd_sock_port(listener));
	for (int i = 0; i < 3; i++) /* they stay as they are to the end of the test */
		(void)!hd_tcp_connect("localhost", port, hd_after(HD_MS(10)));
}

/* Whatever processes wait for when the runtime ends, no descriptor and no child is left of it, but for what the program has made itself. */
HD_TEST(signal_and_other_waits_leave_nothing_at_the_end)
{
	if (hd_is_simulated())
		SKIP("it has no children");
	CHECK_EQ(pipe(disk), 0);
	int locked = mkstemp(name);
	CHECK(locked >= 0);
	CHECK_EQ(flock(locked, LOCK_EX), 0);
	listen_without_room();
	int before = open_descriptors();
	for (long round = 0; round < 12; round++) {
		file = -1;
		child = 0;
		CHECK_EQ(run_with_workers(round % 3 == 0   ? 1
					  : round % 3 == 1 ? 2
							   : 8,
					  wait_for_everything, (void *)(4 * round)),
			 0);
		if (file >= 0)
			CHECK_EQ(close(file), 0);
		if (child > 0) {
			CHECK_EQ(kill(child, SIGKILL), 0);
			CHECK_EQ(waitpid(child, NULL, 0), child);
		}
		CHECK_EQ(waitpid(-1, NULL, WNOHANG), -1);
		CHECK_EQ(errno, ECHILD);
		CHECK_EQ(open_descriptors(), before);
	}
	CHECK_EQ(unlink(name), 0);
}
