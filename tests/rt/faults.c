/* Signals and forks around a runtime: what is not heddle's goes to whoever it belongs to. */
#include <errno.h>
#include <heddle.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness/harness.h"

static const struct hd_config one_worker = { .workers = 1, .fixed = true };

/* How an OS process that does `what` ends. */
static int status_of(void (*what)(void))
{
	int status;
	pid_t child = fork();

	CHECK(child >= 0);
	if (child == 0) {
		what();
		_exit(99);
	}
	CHECK_EQ(waitpid(child, &status, 0), child);
	return status;
}

static void *raise_it(void *arg)
{
	raise(SIGSEGV);
	return arg;
}

static void run_and_raise(void)
{
	signal(SIGSEGV, SIG_DFL);
	hd_run(&one_worker, raise_it, NULL);
}

HD_TEST(fault_that_somebody_sent_is_not_swallowed)
{
	int status = status_of(run_and_raise);

	CHECK(WIFSIGNALED(status));
	CHECK_EQ(WTERMSIG(status), SIGSEGV);
}

static void *nothing(void *arg)
{
	return arg;
}

static void run_then_raise(void)
{
	CHECK_EQ(hd_run(&one_worker, nothing, NULL), 0);
	raise(SIGSEGV);
}

static void *fork_inside(void *arg)
{
	int status = status_of(run_then_raise);

	CHECK(WIFSIGNALED(status));
	CHECK_EQ(WTERMSIG(status), SIGSEGV);
	return arg;
}

HD_TEST(fork_child_runs_a_runtime_of_its_own_and_faults_as_ever)
{
	if (HD_UNDER_TSAN || hd_is_emulated())
		SKIP("a forked child can have no threads here");
	signal(SIGSEGV,
	       SIG_DFL); /* what the child must find again, though it was forked while the runtime's action was in force */
	CHECK_EQ(hd_run(&one_worker, fork_inside, NULL), 0);
}

static hd_pid parent_process;

static void child_is_plain(void)
{
	hd_yield();
	CHECK_EQ(hd_self(), 0);
	CHECK_EQ(hd_yield(), -EPERM);
	CHECK_EQ(hd_spawn(nothing, NULL), -EPERM);
	CHECK_EQ(hd_priority(parent_process), -EPERM);
	struct hd_semaphore s = HD_SEMAPHORE(1);
	CHECK_EQ(hd_semaphore_wait(&s, HD_FOREVER), 0);
	CHECK_EQ(hd_run(&one_worker, nothing, NULL), 0);
	_exit(3);
}

static void *fork_and_compare(void *arg)
{
	parent_process = hd_self();
	int status = status_of(child_is_plain);

	CHECK(WIFEXITED(status));
	CHECK_EQ(WEXITSTATUS(status), 3);
	CHECK_EQ(hd_self(), parent_process);
	CHECK_EQ(hd_join(hd_spawn(nothing, NULL), NULL, HD_FOREVER), 0);
	return arg;
}

HD_TEST(fork_child_is_a_plain_thread_without_a_runtime)
{
	if (HD_UNDER_TSAN || hd_is_emulated())
		SKIP("a forked child can have no threads here");
	CHECK_EQ(hd_run(&one_worker, fork_and_compare, NULL), 0);
}

static pid_t original;

static void *fork_and_return(void *arg)
{
	int status;
	pid_t child = fork();

	if (child == 0)
		return arg; /* out of its process: the child's last thread has ended */
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK(WIFEXITED(status));
	CHECK_EQ(WEXITSTATUS(status), 0);
	return arg;
}

HD_TEST(fork_child_that_returns_from_its_process_exits)
{
	if (HD_UNDER_ASAN)
		SKIP("at exit ASan looks for leaks, and not on this stack");
	original = getpid();
	CHECK_EQ(hd_run(&one_worker, fork_and_return, NULL), 0);
	CHECK_EQ(getpid(), original);
}
