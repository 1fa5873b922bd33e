/* harness/runner.c - runs tests, each in its own OS process, and tells how they went.
 *
 * Owns:       the OS processes of the tests and the pipes that their output comes through.
 * Invariant:  when a test's line is printed, nothing of it is left: its whole process group has been killed.
 * Locking:    none; one thread. SIGCHLD is blocked except inside ppoll, so that no death is missed.
 *
 * Why our own, and not a packaged one: a runtime's tests crash, hang, run out of memory and abort on purpose, so each needs
 * an OS process and a time limit; the same binary must run under the sanitizers, under an emulator and without any help
 * from outside; and checks must work on a 64 KiB stack in the middle of a switch. That is some 400 lines, and depends on
 * nothing. Running a test again by exec was rejected: fork is enough, faster, and works under qemu-user. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "harness/harness.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MAX_JOBS = 64, MAX_OUTPUT = 1 << 20 };

struct options {
	const char *only, *filter;
	bool list, stress, no_fork;
	int jobs, repeat;
	double timeout; /* seconds; 0 is each kind's own */
};

struct job {
	struct harness_test *test; /* NULL: the slot is free */
	pid_t pid;
	int fd; /* where its output comes from; -1 after its end */
	double started, limit;
	bool timed_out;
	int round;
	char *output; /* always ends in 0 */
	size_t size, capacity, lost;
};

struct run {
	const char *program;
	struct options options;
	struct job jobs[MAX_JOBS];
	int total, started, running;
	int passed, failed, skipped;
	const char **failures; /* names */
	bool tty;
	sigset_t waiting_mask; /* the signal mask of before: tests have it, and so has ppoll */
};

static const char usage[] = "usage: %s [option]...\n"
			    "  --list            print the names of the tests\n"
			    "  --only NAME       run this test\n"
			    "  --filter TEXT     run the tests whose names contain TEXT\n"
			    "  --stress          the heavy tests in place of the others\n"
			    "  --jobs N          so many at a time (default: one per CPU)\n"
			    "  --repeat N        all of it N times\n"
			    "  --no-fork         in this process, without a time limit: for a debugger\n"
			    "environment: HD_TEST_TIMEOUT=SECONDS replaces the time limit of each test\n";

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void on_sigchld(int sig)
{
	(void)sig; /* it only interrupts ppoll */
}

/* ---- what to run ---- */

static bool selected(const struct options *o, const struct harness_test *test)
{
	if (o->only != NULL)
		return strcmp(test->name, o->only) == 0;
	if (test->hidden || (test->kind == HARNESS_STRESS) != o->stress)
		return false;
	return o->filter == NULL || strstr(test->name, o->filter) != NULL;
}

static bool names_are_unique(void)
{
	for (struct harness_test *a = harness_tests; a != NULL; a = a->next)
		for (struct harness_test *b = a->next; b != NULL; b = b->next)
			if (strcmp(a->name, b->name) == 0) {
				fprintf(stderr, "two tests are called %s: %s, %s\n", a->name, a->file, b->file);
				return false;
			}
	return true;
}

static struct harness_test *next_selected(const struct options *o, struct harness_test *test)
{
	while (test != NULL && !selected(o, test))
		test = test->next;
	return test;
}

static double time_limit(const struct options *o, const struct harness_test *test)
{
	if (o->timeout > 0)
		return o->timeout;
	return test->kind == HARNESS_STRESS ? 120 : 10;
}

/* ---- a test's OS process ---- */

__attribute__((noreturn)) static void run_child(struct run *run, struct harness_test *test, int round, int out)
{
	setpgid(0, 0);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	signal(SIGCHLD, SIG_DFL);
	sigprocmask(SIG_SETMASK, &run->waiting_mask, NULL);
	int null = open("/dev/null", O_RDONLY);
	dup2(null, STDIN_FILENO);
	dup2(out, STDOUT_FILENO);
	dup2(out, STDERR_FILENO);
	close(null);
	close(out);
	for (int i = 0; i < MAX_JOBS; i++)
		if (run->jobs[i].test != NULL && run->jobs[i].fd >= 0)
			close(run->jobs[i].fd);
	setvbuf(stdout, NULL, _IOLBF, BUFSIZ);
	if (test->kind == HARNESS_DIES)
		setrlimit(RLIMIT_CORE, &(struct rlimit){ 0, 0 });
	harness_world_begin(round);
	test->body();
	harness_world_end();
	exit(0); /* not _exit: the sanitizers report at exit */
}

static void start(struct run *run, struct job *job, struct harness_test *test, int round)
{
	int ends[2];

	fflush(NULL);
	if (pipe2(ends, O_CLOEXEC) != 0) {
		perror("pipe");
		exit(2);
	}
	pid_t pid = fork();
	if (pid == 0) {
		close(ends[0]);
		run_child(run, test, round, ends[1]);
	}
	if (pid < 0) {
		perror("fork");
		exit(2);
	}
	setpgid(pid, pid); /* in the child too: either may come first */
	close(ends[1]);
	fcntl(ends[0], F_SETFL, O_NONBLOCK);
	*job = (struct job){ .test = test, .pid = pid, .fd = ends[0], .started = now(), .round = round };
	job->limit = time_limit(&run->options, test);
	job->capacity = 4096;
	job->output = calloc(1, job->capacity);
	run->started++;
	run->running++;
}

static void keep(struct job *job, const char *data, size_t size)
{
	if (job->size + size > MAX_OUTPUT) {
		job->lost += size;
		return;
	}
	while (job->size + size + 1 > job->capacity) {
		job->capacity *= 2;
		job->output = realloc(job->output, job->capacity);
	}
	memcpy(job->output + job->size, data, size);
	job->size += size;
	job->output[job->size] = '\0';
}

/* Takes what is in the pipe now. */
static void drain(struct job *job)
{
	char data[4096];

	while (job->fd >= 0) {
		ssize_t n = read(job->fd, data, sizeof data);
		if (n > 0) {
			keep(job, data, (size_t)n);
		} else if (n == 0) {
			close(job->fd);
			job->fd = -1;
		} else if (errno != EINTR) {
			return;
		}
	}
}

/* ---- what is printed ---- */

static void clear_progress(const struct run *run)
{
	if (run->tty)
		printf("\r\033[K");
}

static void show_progress(const struct run *run)
{
	int room = 60;

	if (!run->tty)
		return;
	printf("\r\033[K[%d/%d]", run->passed + run->failed + run->skipped, run->total);
	for (int i = 0; i < MAX_JOBS && room > 0; i++)
		if (run->jobs[i].test != NULL)
			room -= printf(" %.*s", room, run->jobs[i].test->name);
	fflush(stdout);
}

/* NULL when the test passed; else why not. */
static const char *verdict(const struct job *job, int status, char *why, size_t size)
{
	bool aborted = WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;

	if (job->timed_out) {
		snprintf(why, size, "did not end within %g s", job->limit);
	} else if (job->test->kind == HARNESS_DIES) {
		if (aborted && strstr(job->output, job->test->expected) != NULL)
			return NULL;
		snprintf(why, size, "should have aborted and said \"%s\"; it %s", job->test->expected,
			 aborted ? "aborted and did not say so" : "did not abort");
	} else if (WIFSIGNALED(status)) {
		snprintf(why, size, "killed by signal %d (%s)", WTERMSIG(status), strsignal(WTERMSIG(status)));
	} else if (WEXITSTATUS(status) != 0) {
		snprintf(why, size, "exit status %d", WEXITSTATUS(status));
	} else {
		return NULL;
	}
	return why;
}

static void finish(struct run *run, struct job *job, int status)
{
	char why[256];
	int ms = (int)((now() - job->started) * 1000);
	const char *name = job->test->name;

	kill(-job->pid, SIGKILL); /* whatever the test left behind */
	drain(job);
	if (job->fd >= 0)
		close(job->fd);

	clear_progress(run);
	if (WIFEXITED(status) && WEXITSTATUS(status) == HARNESS_SKIPPED) {
		const char *reason = strstr(job->output, "skip: ");
		printf("skip %s: %s", name, reason != NULL ? reason + strlen("skip: ") : "\n");
		run->skipped++;
	} else if (verdict(job, status, why, sizeof why) == NULL) {
		printf("ok   %s  %d ms\n", name, ms);
		run->passed++;
	} else {
		printf("FAIL %s  %d ms: %s\n", name, ms, why);
		fwrite(job->output, 1, job->size, stdout);
		if (job->size > 0 && job->output[job->size - 1] != '\n')
			putchar('\n');
		if (job->lost > 0)
			printf("(and %zu bytes more)\n", job->lost);
		printf("run it alone: %s%s --only %s\n\n", harness_world(job->round), run->program, name);
		run->failures[run->failed++] = name;
	}
	fflush(stdout);

	free(job->output);
	job->test = NULL;
	run->running--;
}

/* ---- the loop ---- */

/* Sleeps until a test writes, ends or has had its time. */
static void wait_for_news(struct run *run)
{
	struct pollfd fds[MAX_JOBS];
	double soonest = now() + 3600;
	int n = 0;

	for (int i = 0; i < MAX_JOBS; i++) {
		struct job *job = &run->jobs[i];
		if (job->test == NULL)
			continue;
		if (!job->timed_out && job->started + job->limit < soonest)
			soonest = job->started + job->limit;
		if (job->fd >= 0)
			fds[n++] = (struct pollfd){ .fd = job->fd, .events = POLLIN };
	}
	double left = soonest - now();
	struct timespec timeout = { 0, 0 };
	if (left > 0)
		timeout = (struct timespec){ (time_t)left, (long)((left - (double)(time_t)left) * 1e9) };
	ppoll(fds, (nfds_t)n, &timeout, &run->waiting_mask);
}

static void take_news(struct run *run)
{
	for (int i = 0; i < MAX_JOBS; i++) {
		struct job *job = &run->jobs[i];
		int status;

		if (job->test == NULL)
			continue;
		drain(job);
		if (waitpid(job->pid, &status, WNOHANG) == job->pid) {
			finish(run, job, status);
		} else if (!job->timed_out && now() >= job->started + job->limit) {
			job->timed_out = true;
			kill(-job->pid, SIGKILL);
		}
	}
}

static void run_all(struct run *run)
{
	for (int round = 0; round < run->options.repeat; round++) {
		struct harness_test *next = next_selected(&run->options, harness_tests);

		while (next != NULL || run->running > 0) {
			for (int i = 0; i < run->options.jobs && next != NULL; i++)
				if (run->jobs[i].test == NULL) {
					start(run, &run->jobs[i], next, round);
					next = next_selected(&run->options, next->next);
				}
			show_progress(run);
			wait_for_news(run);
			take_news(run);
		}
	}
	clear_progress(run);
}

static void run_in_this_process(struct run *run)
{
	harness_abort_on_failure = true;
	for (int round = 0; round < run->options.repeat; round++)
		for (struct harness_test *t = next_selected(&run->options, harness_tests); t != NULL;
		     t = next_selected(&run->options, t->next)) {
			printf("     %s\n", t->name);
			fflush(stdout);
			harness_world_begin(round);
			t->body();
			harness_world_end();
			run->passed++;
		}
}

static int summary(const struct run *run)
{
	if (run->failed > 0) {
		printf("failed:");
		for (int i = 0; i < run->failed; i++)
			printf(" %s", run->failures[i]);
		printf("\n");
	}
	printf("%d passed, %d failed", run->passed, run->failed);
	if (run->skipped > 0)
		printf(", %d skipped", run->skipped);
	printf("\n");
	fflush(stdout);
	return run->failed > 0 ? 1 : 0;
}

static int bad_usage(const char *program)
{
	fprintf(stderr, usage, program);
	return 2;
}

/* 0, or -1 when the arguments or the environment make no sense. */
static int parse(struct options *o, int argc, char **argv)
{
	const char *seconds = getenv("HD_TEST_TIMEOUT");

	*o = (struct options){ .jobs = (int)sysconf(_SC_NPROCESSORS_ONLN), .repeat = 1 };
	if (seconds != NULL && (o->timeout = strtod(seconds, NULL)) <= 0)
		return -1;
	for (int i = 1; i < argc; i++) {
		const char *word = argv[i], *value = i + 1 < argc ? argv[i + 1] : NULL;

		if (strcmp(word, "--list") == 0)
			o->list = true;
		else if (strcmp(word, "--stress") == 0)
			o->stress = true;
		else if (strcmp(word, "--no-fork") == 0)
			o->no_fork = true;
		else if (value == NULL)
			return -1;
		else if (strcmp(word, "--only") == 0)
			o->only = value, i++;
		else if (strcmp(word, "--filter") == 0)
			o->filter = value, i++;
		else if (strcmp(word, "--jobs") == 0)
			o->jobs = atoi(value), i++;
		else if (strcmp(word, "--repeat") == 0)
			o->repeat = atoi(value), i++;
		else
			return -1;
	}
	if (o->jobs < 1 || o->repeat < 1)
		return -1;
	if (o->jobs > MAX_JOBS)
		o->jobs = MAX_JOBS;
	return 0;
}

/* What a shell (of a command with &) or nohup ignores for what it starts; tests take these signals to do what they usually do. */
static void heed_signals(void)
{
	signal(SIGHUP, SIG_DFL);
	signal(SIGINT, SIG_DFL);
	signal(SIGQUIT, SIG_DFL);
}

int harness_run(int argc, char **argv)
{
	struct run run = { .program = argv[0], .tty = isatty(STDOUT_FILENO) };
	const struct options *o = &run.options;
	sigset_t sigchld;

	if (parse(&run.options, argc, argv) != 0)
		return bad_usage(argv[0]);
	if (!names_are_unique())
		return 2;
	for (struct harness_test *t = next_selected(o, harness_tests); t != NULL; t = next_selected(o, t->next)) {
		if (o->list)
			printf("%s\n", t->name);
		run.total++;
	}
	if (o->list)
		return 0;
	heed_signals();
	setenv("HEDDLE_WORKERS", "1", 0); /* what a test may assume unless it says otherwise; */
	setenv("HEDDLE_SPARES", "0", 0);  /* a busy machine starts spares, which have descriptors and memory of their own */
	if (run.total == 0 && (o->only != NULL || o->filter != NULL)) {
		fprintf(stderr, "no test is called %s\n", o->only != NULL ? o->only : o->filter);
		return 2;
	}
	if (o->no_fork) {
		run_in_this_process(&run);
		return summary(&run);
	}

	run.total *= o->repeat;
	run.failures = calloc((size_t)run.total + 1, sizeof *run.failures);
	sigemptyset(&sigchld);
	sigaddset(&sigchld, SIGCHLD);
	sigprocmask(SIG_BLOCK, &sigchld, &run.waiting_mask);
	sigaction(SIGCHLD, &(struct sigaction){ .sa_handler = on_sigchld }, NULL);
	run_all(&run);
	sigprocmask(SIG_SETMASK, &run.waiting_mask, NULL);
	int status = summary(&run);
	free(run.failures);
	return status;
}
