/* signal/child.c - starting child programs.
 *
 * Owns:       nothing that lasts: a child is the caller's, and so are the ends of its pipes.
 * Invariant:  a call that answers an error has left no child and no descriptor.
 * Callers:    processes and plain threads. */
#define _GNU_SOURCE
#include <heddle/child.h>

#include <errno.h>
#include <heddle/cancel.h>
#include <heddle/io.h>

#include "io/fd.h"
#include "io/pool.h"
#include "os/child.h"
#include "os/signal.h"

struct start {
	struct hd__job job;
	struct hd__program program;
	pid_t pid; /* or -errno */
};

static void run(struct hd__job *job)
{
	struct start *start = (struct start *)job;

	start->pid = hd__os_spawn(&start->program);
}

static void close_all(const int fds[3])
{
	for (int i = 0; i < 3; i++)
		if (fds[i] >= 0)
			hd__os_close(fds[i]);
}

/* What the child's standard descriptor `i` is to be. `mine` and `its` are the ends of a pipe, if there is one. Returns 0 or -errno. */
static int open_one(int what, int i, struct hd__program *program, int *mine, int *its)
{
	if (what == HD_CHILD_PIPE) {
		int err = hd__os_child_pipe(i == 0, mine, its);
		program->fds[i] = *its;
		return err;
	}
	if (what == HD_CHILD_OUT && i == 2)
		program->fds[2] = program->fds[1] == HD__FD_SAME ? 1 : program->fds[1];
	else if (what >= HD_CHILD_SAME || what == HD_CHILD_NULL)
		program->fds[i] = what == HD_CHILD_SAME ? HD__FD_SAME : what == HD_CHILD_NULL ? HD__FD_NULL : what;
	else
		return -EINVAL;
	return 0;
}

/* The child is started on a thread of the pool. */
static pid_t start_it(struct hd__program *program)
{
	struct start start = { .job = { .run = run, .kind = HD__JOB_WAITED_FOR } };

	start.program = *program;
	int err = hd__pool_run(&start.job, HD_FOREVER, HD_WAIT_CHILD);
	return err != 0 ? err : start.pid;
}

/* The caller, outside its lane, ends or is cancelled before the child is started: its pipes are closed. */
struct pipes {
	int mine[3], its[3];
};

static void close_pipes(void *arg)
{
	const struct pipes *pipes = arg;

	close_all(pipes->mine);
	close_all(pipes->its);
}

pid_t hd_spawn_child(const struct hd_child *how, int ends[3])
{
	struct hd__program program = { .argv = how->argv, .env = how->env, .directory = how->directory, .group = how->group };
	struct pipes pipes = { { -1, -1, -1 }, { -1, -1, -1 } };
	const int what[3] = { how->in, how->out, how->err };
	struct hd_cleanup cleanup;
	int err = 0;

	if (how->argv == NULL || how->argv[0] == NULL)
		return -EINVAL;
	for (int i = 0; i < 3; i++)
		if (what[i] == HD_CHILD_PIPE && ends == NULL)
			return -EINVAL;
	if ((err = hd__io_begin(HD_FOREVER)) != 0)
		return err;
	program.file = how->program != NULL ? how->program : how->argv[0];
	hd__os_signals_mask(&program.mask);
	for (int i = 0; i < 3 && err == 0; i++)
		err = open_one(what[i], i, &program, &pipes.mine[i], &pipes.its[i]);
	hd_cleanup_push(&cleanup, close_pipes, &pipes);
	pid_t pid = err != 0 ? err : start_it(&program);
	hd_cleanup_pop(&cleanup, false);
	close_all(pipes.its);
	if (pid < 0)
		close_all(pipes.mine);
	for (int i = 0; i < 3 && pid > 0 && ends != NULL; i++)
		ends[i] = pipes.mine[i] >= 0 ? hd__fd_born(pipes.mine[i], HD__BY_NONBLOCK, true) : -1;
	return pid;
}

/* ---- to its end ---- */

struct running {
	pid_t pid;
	int fd; /* from which its output is read; -1: none */
};

/* Kills the child and waits for its end, whatever else is asked of the caller. */
static void put_an_end_to(void *arg)
{
	const struct running *r = arg;
	int before = hd_set_cancel_state(HD_CANCEL_DISABLED);

	if (r->fd >= 0)
		hd_close(r->fd);
	if (hd__os_kill(r->pid, SIGKILL) == 0)
		(void)!hd_waitpid(r->pid, NULL, 0, HD_FOREVER); /* -ECHILD: another wait has had it */
	if (before >= 0)
		hd_set_cancel_state((enum hd_cancel_state)before);
}

/* All up to the end; what does not fit is dropped. */
static ssize_t read_all(int fd, char *data, size_t size, hd_time until)
{
	char rest[512];
	size_t got = 0;
	ssize_t n;

	do {
		n = got < size ? hd_read(fd, data + got, size - got, until) : hd_read(fd, rest, sizeof rest, until);
		got += n > 0 ? (size_t)n : 0;
	} while (n > 0);
	return n < 0 ? n : (ssize_t)got;
}

/* Starts the child, and sees it to its end. */
static ssize_t run_to_end(const struct hd_child *how, void *data, size_t size, int *status, hd_time until)
{
	struct hd_cleanup cleanup;
	int ends[3];
	ssize_t n = 0;
	pid_t waited = 0;
	struct running r = { hd_spawn_child(how, ends), -1 };

	if (r.pid < 0)
		return r.pid;
	r.fd = ends[1];
	hd_cleanup_push(&cleanup, put_an_end_to, &r);
	if (r.fd >= 0)
		n = read_all(r.fd, data, size, until);
	if (n >= 0)
		waited = hd_waitpid(r.pid, status, 0, until);
	hd_cleanup_pop(&cleanup, false);
	if (n < 0 || waited == -ETIMEDOUT || waited == -ECANCELED)
		put_an_end_to(&r);
	else if (r.fd >= 0)
		hd_close(r.fd);
	return waited < 0 ? waited : n;
}

ssize_t hd_child_output(const struct hd_child *how, void *data, size_t size, int *status, hd_time until)
{
	struct hd_child child = *how;

	if (how->out != HD_CHILD_SAME || how->in == HD_CHILD_PIPE || how->err == HD_CHILD_PIPE || hd__is_duration(until))
		return -EINVAL;
	child.out = HD_CHILD_PIPE;
	return run_to_end(&child, data, size, status, until);
}

int hd_system(const char *command, hd_time until)
{
	const char *const argv[] = { "sh", "-c", command, NULL };
	const struct hd_child shell = { .argv = argv, .program = "/bin/sh" };
	int status = 0;

	if (command == NULL || hd__is_duration(until))
		return -EINVAL;
	int err = (int)run_to_end(&shell, NULL, 0, &status, until);
	return err < 0 ? err : status;
}
