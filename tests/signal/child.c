/* Child programs: each is waited for once, by one process; what a wait that ends otherwise leaves can be waited for again; pipes carry every
 * byte; and no descriptor, no child and no signal of the program is lost on the way. */
#include "rt/capture.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "os/fault.h"
#include "sync/common.h"

#define SKIP_SIMULATED()                                                                                                       \
	if (hd_is_simulated())                                                                                                 \
	SKIP("the simulated runtime has no children")

/* Without those of pollers: a worker that watches something for the first time makes its own, whenever that is. */
static int count_fds(void)
{
	DIR *d = opendir("/proc/self/fd");
	struct dirent *entry;
	int n = 0;

	CHECK(d != NULL);
	while ((entry = readdir(d)) != NULL) {
		char link[64] = "";
		CHECK(readlinkat(dirfd(d), entry->d_name, link, sizeof link - 1) != 0);
		n += strcmp(link, "anon_inode:[eventpoll]") != 0 && strcmp(link, "anon_inode:[eventfd]") != 0;
	}
	closedir(d);
	return n;
}

/* A child that runs a command of the shell. */
static pid_t started(const char *command)
{
	const char *const argv[] = { "sh", "-c", command, NULL };
	pid_t pid = hd_spawn_child(&(struct hd_child){ .argv = argv }, NULL);

	CHECK(pid > 0);
	return pid;
}

static int status_of(pid_t child)
{
	int status = -1;

	CHECK_EQ(hd_waitpid(child, &status, 0, HD_FOREVER), child);
	CHECK_EQ(hd_waitpid(child, &status, 0, HD_FOREVER), -ECHILD);
	return status;
}

static long answer_of(hd_pid pid)
{
	void *result = NULL;

	CHECK_EQ(hd_join(pid, &result, HD_FOREVER), 0);
	return (long)result;
}

static void await_waiting(hd_pid pid)
{
	while (info_on(pid).state != HD_WAITING || info_on(pid).why != HD_WAIT_CHILD)
		CHECK_EQ(hd_sleep(HD_US(50)), 0);
}

/* ---- one child ---- */

static void check_ends(void)
{
	errno = 7;
	int status = status_of(started("exit 3"));
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 3);
	status = status_of(started("kill -TERM $$"));
	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
	CHECK_EQ(hd_waitpid(getpid(), &status, 0, HD_FOREVER), -ECHILD);
	CHECK_EQ(hd_waitpid(-1, &status, 0, HD_FOREVER), -ECHILD);
	CHECK_EQ(hd_waitpid(-1, &status, 0x4000, HD_FOREVER), -EINVAL);
	CHECK_EQ(hd_waitpid(-1, &status, 0, HD_SEC(1)), -EINVAL);
	pid_t child = started("exec sleep 100");
	CHECK_EQ(hd_waitpid(child, &status, WNOHANG, HD_FOREVER), 0);
	CHECK_EQ(hd_waitpid(child, &status, 0, 0), -ETIMEDOUT);
	CHECK_EQ(hd_waitpid(-1, &status, 0, hd_after(HD_MS(2))), -ETIMEDOUT);
	CHECK_EQ(hd_waitpid(child, &status, 0, hd_after(HD_MS(2))), -ETIMEDOUT);
	CHECK_EQ(kill(child, SIGKILL), 0);
	status = status_of(child);
	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	CHECK_EQ(errno, 7);
}

HD_WORKERS_TEST(child_ends_as_it_says)
{
	SKIP_SIMULATED();
	check_ends();
	(void)workers;
}

HD_TEST(child_ends_as_it_says_to_a_plain_thread)
{
	SKIP_SIMULATED();
	check_ends();
}

/* Stops and goes on, seen by the wait for one child, for any, and for a group. */
HD_WORKERS_TEST(child_stops_and_goes_on)
{
	const char *const argv[] = { "sleep", "100", NULL };
	int status;

	SKIP_SIMULATED();
	pid_t child = hd_spawn_child(&(struct hd_child){ .argv = argv, .group = true }, NULL);
	CHECK(child > 0);
	const pid_t forms[] = { child, -1, -child };
	for (int i = 0; i < 3; i++) {
		CHECK_EQ(kill(child, SIGSTOP), 0);
		CHECK_EQ(hd_waitpid(forms[i], &status, WUNTRACED, HD_FOREVER), child);
		CHECK(WIFSTOPPED(status) && WSTOPSIG(status) == SIGSTOP);
		CHECK_EQ(kill(child, SIGCONT), 0);
		CHECK_EQ(hd_waitpid(forms[i], &status, WCONTINUED, HD_FOREVER), child);
		CHECK(WIFCONTINUED(status));
	}
	CHECK_EQ(hd_waitpid(0, &status, 0, HD_FOREVER), -ECHILD); /* it is not of our group */
	CHECK_EQ(kill(-child, SIGKILL), 0);
	CHECK_EQ(hd_waitpid(-child, &status, 0, HD_FOREVER), child);
	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	(void)workers;
}

/* ---- several waiters, and waits that end otherwise ---- */

static pid_t the_child;
static hd_time patience = HD_FOREVER;

static void *wait_for_child(void *any)
{
	return (void *)(long)hd_waitpid(any != NULL ? -1 : the_child, NULL, 0, patience);
}

/* Two that wait for one child: one has it. */
HD_WORKERS_TEST(child_goes_to_one_of_its_waiters)
{
	int both = 0;

	SKIP_SIMULATED();
	for (int round = 0; another_round(round, hd_scaled(20)); round++) {
		the_child = started("exec sleep 100");
		hd_pid a = spawned(hd_spawn(wait_for_child, NULL)),
		       b = spawned(hd_spawn(wait_for_child, round % 2 ? &both : NULL));
		await_waiting(a);
		await_waiting(b);
		CHECK_EQ(kill(the_child, SIGKILL), 0);
		long first = answer_of(a), second = answer_of(b);
		CHECK_EQ(first > 0 ? first : second, the_child);
		CHECK_EQ(first > 0 ? second : first, -ECHILD);
	}
	(void)workers;
}

HD_WORKERS_TEST(child_wait_can_be_cancelled_and_terminated)
{
	int fds = 0, any;

	SKIP_SIMULATED();
	the_child = started("exec sleep 100");
	for (int round = 0; another_round(round, hd_scaled(20)); round++) {
		hd_pid pid = spawned(hd_spawn(wait_for_child, round % 2 ? &any : NULL));
		await_waiting(pid);
		CHECK_EQ(hd_cancel(pid), 0);
		CHECK_EQ(answer_of(pid), -ECANCELED);
		pid = spawned(hd_spawn(wait_for_child, round % 2 ? &any : NULL));
		await_waiting(pid);
		CHECK_EQ(hd_terminate(pid, HD_FOREVER), 0);
		CHECK_EQ(end_of(pid).kind, HD_END_KILLED);
		if (round == 0)
			fds = count_fds();
	}
	CHECK_EQ(count_fds(), fds);
	CHECK_EQ(kill(the_child, SIGKILL), 0);
	CHECK_EQ(hd_waitpid(the_child, NULL, 0, HD_FOREVER), the_child);
	(void)workers;
}

/* The end of a child and a cancel, or a deadline, race for one wait. The child is reaped by it, or by the next wait. */
HD_WORKERS_TEST(child_survives_races)
{
	SKIP_SIMULATED();
	for (int round = 0; another_round(round, hd_scaled(60)); round++) {
		int any;
		the_child = started("exec sleep 100");
		patience = round % 3 == 0 ? hd_after(HD_US(300)) : HD_FOREVER;
		hd_pid pid = spawned(hd_spawn(wait_for_child, round % 2 ? &any : NULL));
		if (round % 4 < 2)
			hd_yield();
		CHECK_EQ(kill(the_child, SIGKILL), 0);
		if (round % 3 != 0)
			ANY_ANSWER(hd_cancel(pid));
		long got = answer_of(pid);
		CHECK(got == the_child || got == -ECANCELED || got == -ETIMEDOUT);
		CHECK_EQ(hd_waitpid(the_child, NULL, 0, HD_FOREVER), got == the_child ? -ECHILD : the_child);
	}
	patience = HD_FOREVER;
	(void)workers;
}

#define MANY 200

static void *run_one(void *arg)
{
	const char *const argv[] = { "true", NULL };
	pid_t pid = hd_spawn_child(&(struct hd_child){ .argv = argv }, NULL);
	int status = -1;

	CHECK(pid > 0);
	CHECK_EQ(hd_waitpid(pid, &status, 0, HD_FOREVER), pid);
	CHECK_EQ(status, 0);
	return arg;
}

HD_WORKERS_TEST(child_many_at_once)
{
	hd_pid pids[MANY];
	int n = hd_scaled(MANY);

	SKIP_SIMULATED();
	for (int i = 0; i < n; i++)
		pids[i] = spawned(hd_spawn(run_one, NULL));
	for (int i = 0; i < n; i++)
		CHECK_EQ(answer_of(pids[i]), 0);
	CHECK_EQ(hd_waitpid(-1, NULL, 0, HD_FOREVER), -ECHILD);
	(void)workers;
}

/* Without a descriptor to wait with it is done on a thread. */
HD_WORKERS_TEST(child_wait_needs_no_descriptor)
{
	SKIP_SIMULATED();
	the_child = started("exec sleep 100");
	hd__fault_arm(HD__FAULT_FD, 1, true);
	hd_pid pid = spawned(hd_spawn(wait_for_child, NULL));
	await_waiting(pid);
	hd__fault_arm(HD__FAULT_FD, 0, false);
	hd__fault_arm(HD__FAULT_EINTR, 1, false);
	CHECK_EQ(kill(the_child, SIGKILL), 0);
	CHECK_EQ(answer_of(pid), the_child);
	hd__fault_arm(HD__FAULT_EINTR, 0, false);
	(void)workers;
}

/* ---- SIGCHLD is the program's ---- */

static long handled;

static void handle(int sig)
{
	(void)sig;
	add(&handled, 1);
}

HD_WORKERS_TEST(child_leaves_sigchld_to_the_program)
{
	struct sigaction mine = { .sa_handler = handle, .sa_flags = SA_RESTART }, now;

	SKIP_SIMULATED();
	CHECK_EQ(sigaction(SIGCHLD, &mine, NULL), 0);
	set(&handled, 0);
	for (int i = 0; i < 3; i++)
		CHECK_EQ(status_of(started("exit 0")), 0);
	while (value_of(&handled) == 0)
		CHECK_EQ(hd_sleep(HD_US(50)), 0);
	CHECK_EQ(hd_system("exit 0", HD_FOREVER), 0);
	CHECK(sigaction(SIGCHLD, NULL, &now) == 0 && now.sa_handler == handle);
	CHECK_EQ(signal(SIGCHLD, SIG_IGN) == SIG_ERR, 0); /* then there is nothing to wait for */
	pid_t child = started("exec sleep 0.01");
	CHECK_EQ(hd_waitpid(child, NULL, 0, HD_FOREVER), -ECHILD);
	CHECK_EQ(signal(SIGCHLD, SIG_DFL) == SIG_ERR, 0);
	(void)workers;
}

/* ---- how a child is started ---- */

/* What a command of the shell prints. */
static const char *printed(struct hd_child how, const char *command)
{
	static char text[256];
	const char *const argv[] = { "sh", "-c", command, NULL };
	int ends[3];
	ssize_t n, got = 0;

	how.argv = argv;
	how.out = HD_CHILD_PIPE;
	pid_t pid = hd_spawn_child(&how, ends);
	CHECK(pid > 0 && ends[0] == -1 && ends[1] >= 0 && ends[2] == -1);
	while ((n = hd_read(ends[1], text + got, sizeof text - 1 - (size_t)got, HD_FOREVER)) > 0)
		got += n;
	CHECK_EQ(n, 0);
	text[got] = '\0';
	CHECK_EQ(hd_close(ends[1]), 0);
	CHECK_EQ(hd_waitpid(pid, NULL, 0, HD_FOREVER), pid);
	return text;
}

#define LEADS "test $$ = $(cut -d' ' -f5 /proc/$$/stat) && echo leader"

HD_WORKERS_TEST(child_has_the_environment_directory_and_descriptors_it_was_given)
{
	const char *const env[] = { "COLOUR=green", "PATH=/usr/bin:/bin", NULL };
	int pair[2];
	char data[16] = { 0 };

	SKIP_SIMULATED();
	CHECK_EQ(setenv("COLOUR", "red", 1), 0);
	CHECK_STR(printed((struct hd_child){ 0 }, "echo $COLOUR"), "red\n");
	CHECK_STR(printed((struct hd_child){ .env = env }, "echo $COLOUR"), "green\n");
	CHECK_STR(printed((struct hd_child){ .directory = "/usr" }, "pwd"), "/usr\n");
	CHECK_STR(printed((struct hd_child){ .err = HD_CHILD_OUT }, "echo a; echo b >&2"), "a\nb\n");
	CHECK_STR(printed((struct hd_child){ .in = HD_CHILD_NULL, .err = HD_CHILD_NULL }, "echo a >&2; wc -c"), "0\n");
	CHECK_STR(printed((struct hd_child){ .group = true }, LEADS), "leader\n");
	CHECK_STR(printed((struct hd_child){ .group = false }, LEADS), "");
	CHECK_EQ(hd_pipe(pair), 0);
	CHECK_STR(printed((struct hd_child){ .err = pair[1] }, "echo c >&2"), "");
	CHECK_EQ(hd_read(pair[0], data, sizeof data, HD_FOREVER), 2);
	CHECK_STR(data, "c\n");
	CHECK_EQ(hd_close(pair[0]), 0);
	CHECK_EQ(hd_close(pair[1]), 0);
	(void)workers;
}

/* The child's mask has what the caller had blocked, and not what heddle blocks. */
HD_WORKERS_TEST(child_has_the_signals_of_the_program)
{
	sigset_t these;

	SKIP_SIMULATED();
	sigemptyset(&these);
	sigaddset(&these, SIGUSR2);
	CHECK_EQ(pthread_sigmask(SIG_BLOCK, &these, NULL), 0); /* the caller is pinned */
	sigaddset(&these, SIGUSR1);
	CHECK_EQ(hd_sigwait(&these, NULL, 0), -ETIMEDOUT);
	CHECK_EQ(signal(SIGPIPE, SIG_IGN) == SIG_ERR, 0);
	CHECK_STR(printed((struct hd_child){ 0 }, "exec grep SigBlk /proc/self/status"), "SigBlk:\t0000000000000800\n");
	CHECK_STR(printed((struct hd_child){ 0 }, "exec grep -c 'SigIgn.*1000$' /proc/self/status"), "1\n");
	(void)workers;
}

HD_WORKERS_TEST(child_that_cannot_be_executed_is_an_error)
{
	const char *const argv[] = { "no-such-program", NULL }, *const none[] = { NULL };
	int ends[3], fds = 0;

	SKIP_SIMULATED();
	struct hd_child piped = { .argv = argv, .in = HD_CHILD_PIPE, .out = HD_CHILD_PIPE, .err = HD_CHILD_PIPE };
	for (int i = 0; i < 3; i++) {
		CHECK_EQ(hd_spawn_child(&piped, ends), -ENOENT);
		CHECK_EQ(hd_spawn_child(&(struct hd_child){ .argv = argv, .program = "/etc/passwd" }, NULL), -EACCES);
		CHECK_EQ(hd_spawn_child(&(struct hd_child){ .argv = argv, .program = "true", .directory = "/no/such" }, NULL),
			 -ENOENT);
		CHECK_EQ(hd_spawn_child(&(struct hd_child){ .argv = argv, .program = "true", .out = 999 }, NULL), -EBADF);
		if (i == 0)
			fds = count_fds();
	}
	CHECK_EQ(hd_spawn_child(&piped, NULL), -EINVAL);
	CHECK_EQ(hd_spawn_child(&(struct hd_child){ .argv = NULL }, NULL), -EINVAL);
	CHECK_EQ(hd_spawn_child(&(struct hd_child){ .argv = none }, NULL), -EINVAL);
	CHECK_EQ(hd_spawn_child(&(struct hd_child){ .argv = argv, .in = HD_CHILD_OUT }, NULL), -EINVAL);
	CHECK_EQ(hd_spawn_child(&(struct hd_child){ .argv = argv, .out = -9 }, NULL), -EINVAL);
	CHECK_EQ(count_fds(), fds);
	CHECK_EQ(hd_waitpid(-1, NULL, 0, 0), -ECHILD);
	(void)workers;
}

HD_PROCESS_TEST(child_without_descriptors_for_its_pipes_is_an_error)
{
	const char *const argv[] = { "cat", NULL };
	struct rlimit before, few;
	int ends[3];

	SKIP_SIMULATED();
	CHECK_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
	few = before;
	few.rlim_cur = (rlim_t)open("/dev/null", O_RDONLY) + 4; /* one pipe, and not two */
	CHECK_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
	int fds = 0;
	for (int i = 0; i < 3; i++)
		CHECK_EQ(hd_spawn_child(&(struct hd_child){ argv, .in = HD_CHILD_PIPE, .out = HD_CHILD_PIPE }, ends), -EMFILE);
	CHECK_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
	fds = count_fds();
	pid_t pid = hd_spawn_child(&(struct hd_child){ argv, .in = HD_CHILD_PIPE, .out = HD_CHILD_PIPE }, ends);
	CHECK(pid > 0);
	CHECK_EQ(count_fds(), fds + 2);
	CHECK_EQ(hd_close(ends[0]), 0);
	CHECK_EQ(hd_close(ends[1]), 0);
	CHECK_EQ(hd_waitpid(pid, NULL, 0, HD_FOREVER), pid);
}

HD_PROCESS_TEST(child_without_a_thread_to_start_it_is_an_error)
{
	const char *const argv[] = { "cat", NULL };
	int ends[3];

	SKIP_SIMULATED();
	int fds = count_fds();
	hd__fault_arm(HD__FAULT_THREAD, 1, true);
	for (int i = 0; i < 3; i++)
		CHECK_EQ(hd_spawn_child(&(struct hd_child){ argv, .in = HD_CHILD_PIPE, .out = HD_CHILD_PIPE }, ends), -EAGAIN);
	hd__fault_arm(HD__FAULT_THREAD, 0, false);
	CHECK_EQ(count_fds(), fds);
	CHECK_EQ(hd_waitpid(-1, NULL, 0, 0), -ECHILD);
}

/* Standard descriptors of the program that are closed: the pipes have their numbers, and come to the right places nevertheless. */
HD_PROCESS_TEST(child_pipes_may_have_any_numbers)
{
	const char *const argv[] = { "sh", "-c", "read x; echo out $x; echo err $x >&2", NULL };
	char out[32] = { 0 }, err[32] = { 0 };
	int ends[3];

	SKIP_SIMULATED();
	int kept = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 100);
	for (int fd = 0; fd < 3; fd++)
		close(fd);
	pid_t pid = hd_spawn_child(
		&(struct hd_child){ .argv = argv, .in = HD_CHILD_PIPE, .out = HD_CHILD_PIPE, .err = HD_CHILD_PIPE }, ends);
	CHECK(pid > 0);
	CHECK_EQ(hd_write_all(ends[0], "x\n", 2, HD_FOREVER), 0);
	ssize_t n = hd_read_full(ends[1], out, sizeof out, HD_FOREVER), m = hd_read_full(ends[2], err, sizeof err, HD_FOREVER);
	CHECK_EQ(hd_waitpid(pid, NULL, 0, HD_FOREVER), pid);
	for (int i = 0; i < 3; i++)
		CHECK_EQ(hd_close(ends[i]), 0);
	dup2(kept, STDERR_FILENO);
	CHECK_EQ(n, 6);
	CHECK_EQ(m, 6);
	CHECK_STR(out, "out x\n");
	CHECK_STR(err, "err x\n");
}

HD_PROCESS_TEST(child_output_and_errors_can_be_exchanged)
{
	const char *const argv[] = { "sh", "-c", "echo out; echo err >&2", NULL };
	char text[8] = { 0 };
	int out[2], err[2];

	SKIP_SIMULATED();
	int kept = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 100);
	CHECK(hd_pipe(out) == 0 && hd_pipe(err) == 0);
	dup2(out[1], STDOUT_FILENO);
	dup2(err[1], STDERR_FILENO);
	pid_t pid = hd_spawn_child(&(struct hd_child){ .argv = argv, .out = STDERR_FILENO, .err = STDOUT_FILENO }, NULL);
	dup2(kept, STDERR_FILENO);
	CHECK(pid > 0);
	CHECK_EQ(hd_waitpid(pid, NULL, 0, HD_FOREVER), pid);
	CHECK_EQ(hd_read(out[0], text, sizeof text, HD_FOREVER), 4);
	CHECK_STR(text, "err\n");
	CHECK_EQ(hd_read(err[0], text, sizeof text, HD_FOREVER), 4);
	CHECK_STR(text, "out\n");
}

static struct hd_semaphore go;
static long begun;

static void await_go(void *arg)
{
	(void)arg;
	add(&begun, 1);
	CHECK_EQ(hd_semaphore_wait(&go, HD_FOREVER), 0);
}

static void *block(void *arg)
{
	CHECK_EQ(hd_blocking(await_go, NULL), 0);
	return arg;
}

static void *start_with_pipes(void *arg)
{
	const char *const argv[] = { "cat", NULL };
	int ends[3];

	(void)arg;
	return (void *)(long)hd_spawn_child(&(struct hd_child){ argv, .in = HD_CHILD_PIPE, .out = HD_CHILD_PIPE }, ends);
}

/* It waits for a thread, and is told to stop: there is no child, and no pipe. */
HD_PROCESS_TEST_WITH(child_that_has_not_begun_is_called_off, .blocking_threads = 1)
{
	SKIP_SIMULATED();
	hd_pid blocker = spawned(hd_spawn(block, NULL));
	while (value_of(&begun) == 0)
		CHECK_EQ(hd_sleep(HD_US(50)), 0);
	int fds = count_fds();
	for (int round = 0; round < 4; round++) {
		hd_pid pid = spawned(hd_spawn(start_with_pipes, NULL));
		await_waiting(pid);
		if (round % 2) {
			CHECK_EQ(hd_cancel(pid), 0);
			CHECK_EQ(answer_of(pid), -ECANCELED);
		} else {
			CHECK_EQ(hd_terminate(pid, HD_FOREVER), 0);
			CHECK_EQ(end_of(pid).kind, HD_END_KILLED);
		}
		CHECK_EQ(count_fds(), fds);
	}
	CHECK_EQ(hd_semaphore_signal(&go), 0);
	CHECK_EQ(hd_join(blocker, NULL, HD_FOREVER), 0);
	CHECK_EQ(hd_waitpid(-1, NULL, 0, 0), -ECHILD);
}

/* ---- pipes ---- */

#define BYTES 300000

static unsigned char byte_at(size_t i)
{
	return (unsigned char)(i * 31 + (i >> 8));
}

static void *feed(void *fd)
{
	static unsigned char data[BYTES];

	for (size_t i = 0; i < BYTES; i++)
		data[i] = byte_at(i);
	CHECK_EQ(hd_write_all(*(int *)fd, data, BYTES, HD_FOREVER), 0);
	CHECK_EQ(hd_close(*(int *)fd), 0);
	return NULL;
}

HD_WORKERS_TEST(child_pipes_carry_every_byte)
{
	const char *const argv[] = { "cat", NULL };
	unsigned char data[4096];
	size_t got = 0;
	int ends[3], fds = count_fds();
	ssize_t n;

	SKIP_SIMULATED();
	pid_t pid = hd_spawn_child(&(struct hd_child){ argv, .in = HD_CHILD_PIPE, .out = HD_CHILD_PIPE }, ends);
	CHECK(pid > 0);
	hd_pid feeder = spawned(hd_spawn(feed, &ends[0]));
	while ((n = hd_read(ends[1], data, sizeof data, HD_FOREVER)) > 0)
		for (ssize_t i = 0; i < n; i++)
			CHECK_EQ(data[i], byte_at(got++));
	CHECK_EQ(n, 0);
	CHECK_EQ(got, BYTES);
	CHECK_EQ(hd_close(ends[1]), 0);
	CHECK_EQ(status_of(pid), 0);
	CHECK_EQ(hd_join(feeder, NULL, HD_FOREVER), 0);
	CHECK(count_fds() <= fds + 2 * workers); /* the workers' own */
}

/* ---- to its end ---- */

HD_WORKERS_TEST(child_output_is_collected)
{
	const char *const few[] = { "echo", "loom", NULL }, *const fail[] = { "sh", "-c", "echo weft; exit 4", NULL };
	const char *const many[] = { "head", "-c", "200000", "/dev/zero", NULL }, *const endless[] = { "cat", "/dev/zero",
												       NULL };
	char text[8] = { 0 };
	int status, fds = 0;

	SKIP_SIMULATED();
	for (int i = 0; i < 3; i++) {
		CHECK_EQ(hd_child_output(&(struct hd_child){ few }, text, sizeof text, &status, HD_FOREVER), 5);
		CHECK_EQ(status, 0);
		CHECK_STR(text, "loom\n");
		CHECK_EQ(hd_child_output(&(struct hd_child){ fail }, text, sizeof text, &status, HD_FOREVER), 5);
		CHECK_EQ(WEXITSTATUS(status), 4);
		CHECK_EQ(hd_child_output(&(struct hd_child){ many }, text, sizeof text, NULL, HD_FOREVER), 200000);
		CHECK_EQ(hd_child_output(&(struct hd_child){ endless }, NULL, 0, NULL, hd_after(HD_MS(5))), -ETIMEDOUT);
		CHECK_EQ(hd_waitpid(-1, NULL, 0, 0), -ECHILD);
		if (i == 0)
			fds = count_fds();
	}
	CHECK(count_fds() <= fds + 2 * workers); /* the workers' own */
	CHECK_EQ(hd_child_output(&(struct hd_child){ few, .out = 1 }, text, sizeof text, NULL, HD_FOREVER), -EINVAL);
	CHECK_EQ(hd_child_output(&(struct hd_child){ few, .in = HD_CHILD_PIPE }, text, sizeof text, NULL, HD_FOREVER), -EINVAL);
}

HD_WORKERS_TEST(system_answers_the_status)
{
	SKIP_SIMULATED();
	CHECK_EQ(hd_system("exit 0", HD_FOREVER), 0);
	int status = hd_system("exit 5", HD_FOREVER);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 5);
	CHECK_EQ(hd_system(NULL, HD_FOREVER), -EINVAL);
	CHECK_EQ(hd_system("exit 0", HD_SEC(1)), -EINVAL);
	CHECK_EQ(hd_waitpid(-1, NULL, 0, 0), -ECHILD);
	(void)workers;
}

static void *sleep_long(void *arg)
{
	(void)arg;
	return (void *)(long)hd_system("exec sleep 100", HD_FOREVER);
}

/* Whatever ends the call, the shell is gone when it has returned. */
HD_WORKERS_TEST(system_leaves_no_shell)
{
	SKIP_SIMULATED();
	CHECK_EQ(hd_system("exec sleep 100", hd_after(HD_MS(5))), -ETIMEDOUT);
	CHECK_EQ(hd_waitpid(-1, NULL, 0, 0), -ECHILD);
	int fds = 0;
	for (int round = 0; another_round(round, hd_scaled(20)); round++) {
		hd_pid pid = spawned(hd_spawn(sleep_long, NULL));
		if (round % 2)
			await_waiting(pid);
		else
			hd_yield();
		if (round % 4 < 2) {
			CHECK_EQ(hd_cancel(pid), 0);
			CHECK_EQ(answer_of(pid), -ECANCELED);
		} else {
			CHECK_EQ(hd_terminate(pid, HD_FOREVER), 0);
			CHECK_EQ(end_of(pid).kind, HD_END_KILLED);
		}
		CHECK_EQ(hd_waitpid(-1, NULL, 0, 0), -ECHILD);
		if (round == 3)
			fds = count_fds();
	}
	CHECK(count_fds() <= fds + 2 * workers || fds == 0); /* the workers' own */
}

HD_TEST(system_works_on_a_plain_thread)
{
	SKIP_SIMULATED();
	CHECK_EQ(hd_system("exit 0", HD_FOREVER), 0);
	CHECK_EQ(hd_system("exec sleep 100", hd_after(HD_MS(5))), -ETIMEDOUT);
	CHECK_EQ(hd_waitpid(-1, NULL, 0, 0), -ECHILD);
}
