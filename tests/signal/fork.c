/* fork in a running runtime: the child has the caller alone, as a plain thread, with the descriptors of its parent and a runtime of its own if it
 * wants one; and whatever it does with them, the parent's waits go on. */
#include "rt/capture.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>

#include "sync/common.h"

/* ASan's allocator has locks that stay locked in a forked child, if a thread of the parent had one at that moment. */
#define SKIP_WITHOUT_FORK()                                                                                                    \
	if (hd_is_simulated() || HD_UNDER_TSAN || HD_UNDER_ASAN || hd_is_emulated())                                           \
	SKIP("a forked child can have no threads here")

/* Runs `what` in a forked child, which must answer 0. */
static void in_child(int (*what)(void))
{
	int status;
	pid_t child = fork();

	CHECK(child >= 0);
	if (child == 0)
		_exit(what());
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK(WIFEXITED(status));
	CHECK_EQ(WEXITSTATUS(status), 0);
}

/* How many descriptors of the caller are of no use to it: the sets that workers sleep in, and those of waits. */
static int count_own(void)
{
	char path[64], link[64];
	int n = 0;

	for (int fd = 0; fd < 1024; fd++) {
		snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
		ssize_t length = readlink(path, link, sizeof link - 1);
		link[length > 0 ? length : 0] = '\0';
		n += strstr(link, "eventpoll") != NULL || strstr(link, "eventfd") != NULL || strstr(link, "signalfd") != NULL ||
		     strstr(link, "pidfd") != NULL;
	}
	return n;
}

static int pipes[2];
static pid_t a_child;

static void *read_byte(void *arg)
{
	char byte = 0;

	(void)arg;
	CHECK_EQ(hd_read(pipes[0], &byte, 1, HD_FOREVER), 1);
	return (void *)(long)byte;
}

static void *write_byte(void *byte)
{
	CHECK_EQ(hd_write(pipes[1], byte, 1, HD_FOREVER), 1);
	return NULL;
}

static hd_pid waiting_reader(void)
{
	hd_pid pid = spawned(hd_spawn(read_byte, NULL));

	while (info_on(pid).state != HD_WAITING || info_on(pid).why != HD_WAIT_FD_READ)
		CHECK_EQ(hd_sleep(HD_US(50)), 0);
	return pid;
}

static void *wait_for_signal(void *arg)
{
	sigset_t these;

	sigemptyset(&these);
	sigaddset(&these, SIGUSR1);
	CHECK_EQ(hd_sigwait(&these, NULL, HD_FOREVER), 0);
	CHECK_EQ(kill(a_child, SIGKILL), 0);
	return arg;
}

static void *wait_for_child(void *arg)
{
	CHECK_EQ(hd_waitpid(a_child, NULL, 0, HD_FOREVER), a_child);
	return arg;
}

static int has_none(void)
{
	return count_own();
}

static int close_all(void)
{
	for (int fd = 3; fd < 1024; fd++)
		close(fd);
	return 0;
}

static int close_by_heddle(void)
{
	for (int i = 0; i < 2; i++)
		if (hd_close(pipes[i]) != 0)
			return 1;
	return 0;
}

static void *talk(void *arg)
{
	void *byte;
	int own[2];

	CHECK_EQ(hd_pipe(own), 0);
	pipes[0] = own[0];
	pipes[1] = own[1];
	hd_pid reader = waiting_reader();
	CHECK_EQ(hd_join(spawned(hd_spawn(write_byte, &(char){ 'c' })), NULL, HD_FOREVER), 0);
	CHECK_EQ(hd_join(reader, &byte, HD_FOREVER), 0);
	CHECK_EQ((long)byte, 'c');
	return arg;
}

static int run_anew(void)
{
	return run_with_workers(2, talk, NULL) != 0;
}

/* The child closes, or uses, what it has inherited while a process of the parent waits for it. */
HD_WORKERS_TEST(fork_child_does_not_disturb_the_parents_waits)
{
	int (*const what[])(void) = { has_none, close_all, close_by_heddle, run_anew };
	const char *const argv[] = { "sleep", "100", NULL };
	void *byte;

	SKIP_WITHOUT_FORK();
	CHECK_EQ(hd_pipe(pipes), 0);
	a_child = hd_spawn_child(&(struct hd_child){ .argv = argv }, NULL);
	CHECK(a_child > 0);
	hd_pid others[] = { spawned(hd_spawn(wait_for_signal, NULL)), spawned(hd_spawn(wait_for_child, NULL)) };
	for (int i = 0; i < 2; i++)
		while (info_on(others[i]).why != (i == 0 ? HD_WAIT_SIGNAL : HD_WAIT_CHILD))
			CHECK_EQ(hd_sleep(HD_US(50)), 0);
	for (int i = 0; i < 4; i++) {
		hd_pid reader = waiting_reader();
		in_child(what[i]);
		CHECK(count_own() >= 4);
		CHECK_EQ(hd_join(spawned(hd_spawn(write_byte, &(char){ 'p' })), NULL, HD_FOREVER), 0);
		CHECK_EQ(hd_join(reader, &byte, HD_FOREVER), 0);
		CHECK_EQ((long)byte, 'p');
	}
	CHECK_EQ(kill(getpid(), SIGUSR1), 0);
	for (int i = 0; i < 2; i++)
		CHECK_EQ(hd_join(others[i], NULL, HD_FOREVER), 0);
	CHECK_EQ(hd_close(pipes[0]), 0);
	CHECK_EQ(hd_close(pipes[1]), 0);
	(void)workers;
}

/* What the child writes to an inherited descriptor, in a runtime of its own, arrives in the parent, whose reader waits meanwhile. */
static void *write_from_child(void *arg)
{
	CHECK_EQ(hd_write(pipes[1], "x", 1, HD_FOREVER), 1);
	return arg;
}

static int run_and_write(void)
{
	return run_with_workers(2, write_from_child, NULL) != 0;
}

HD_WORKERS_TEST(fork_child_uses_inherited_descriptors)
{
	void *byte;

	SKIP_WITHOUT_FORK();
	CHECK_EQ(hd_pipe(pipes), 0);
	for (int i = 0; i < 5; i++) {
		hd_pid reader = waiting_reader();
		in_child(run_and_write);
		CHECK_EQ(hd_join(reader, &byte, HD_FOREVER), 0);
		CHECK_EQ((long)byte, 'x');
	}
	CHECK_EQ(hd_close(pipes[0]), 0);
	CHECK_EQ(hd_close(pipes[1]), 0);
	(void)workers;
}

/* ---- while the others are inside everything ---- */

static long over;
static struct hd_mutex mutex;

static void nothing(void *arg)
{
	(void)arg;
}

static void *return_at_once(void *arg)
{
	return arg;
}

static void *be_busy(void *arg)
{
	int own[2];
	char byte = 0;

	CHECK_EQ(hd_pipe(own), 0);
	while (value_of(&over) == 0) {
		CHECK_EQ(hd_mutex_lock(&mutex, HD_FOREVER), 0);
		CHECK_EQ(hd_mutex_unlock(&mutex), 0);
		CHECK_EQ(hd_join(spawned(hd_spawn(return_at_once, NULL)), NULL, HD_FOREVER), 0);
		CHECK_EQ(hd_blocking(nothing, NULL), 0);
		CHECK_EQ(hd_write(own[1], &byte, 1, HD_FOREVER), 1);
		CHECK_EQ(hd_read(own[0], &byte, 1, HD_FOREVER), 1);
		CHECK_EQ(hd_sleep(HD_US(10)), 0);
	}
	CHECK_EQ(hd_close(own[0]), 0);
	CHECK_EQ(hd_close(own[1]), 0);
	return arg;
}

static void *be_busy_for_long(void *arg)
{
	hd_pid pids[4];

	set(&over, 0);
	mutex = (struct hd_mutex)HD_MUTEX(0); /* another thread of the parent may have had it */
	for (int i = 0; i < 4; i++)
		pids[i] = spawned(hd_spawn(be_busy, NULL));
	CHECK_EQ(hd_sleep(HD_MS(2)), 0);
	set(&over, 1);
	for (int i = 0; i < 4; i++)
		CHECK_EQ(hd_join(pids[i], NULL, HD_FOREVER), 0);
	return arg;
}

static int run_busily(void)
{
	return run_with_workers(2, be_busy_for_long, NULL) != 0;
}

HD_WORKERS_TEST(fork_while_all_are_busy)
{
	hd_pid pids[8];

	SKIP_WITHOUT_FORK();
	set(&over, 0);
	for (int i = 0; i < 8; i++)
		pids[i] = spawned(hd_spawn(be_busy, NULL));
	for (int round = 0; another_round(round, 20); round++) {
		in_child(run_busily);
		CHECK_EQ(hd_sleep(HD_US(100)), 0);
	}
	set(&over, 1);
	for (int i = 0; i < 8; i++)
		CHECK_EQ(hd_join(pids[i], NULL, HD_FOREVER), 0);
	(void)workers;
}
