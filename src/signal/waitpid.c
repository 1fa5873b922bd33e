/* signal/waitpid.c - waiting for children.
 *
 * Owns:       nothing that lasts. The end of one child is an operation of io/op.c on a descriptor of that child (pidfd); what has no
 *             such descriptor (any child, a group, a child that stops) is a system call on a thread of the pool.
 * Invariant:  a child is reaped by the attempt that answers it: a wait that ends otherwise has reaped none.
 * Callers:    processes and plain threads.
 *
 * Rejected: to wait for SIGCHLD and then ask for every child. It takes the signal from the program, and costs a system call for each child. */
#define _GNU_SOURCE
#include <heddle/child.h>

#include <errno.h>
#include <heddle/cancel.h>
#include <heddle/io.h>
#include <heddle/time.h>

#include "io/fd.h"
#include "io/pool.h"
#include "os/child.h"

#define NAP_MIN HD_US(100) /* between two looks of a plain thread */
#define NAP_MAX HD_MS(20)

struct wait {
	struct hd__op op;   /* first: attempt */
	struct hd__job job; /* or */
	idtype_t type;
	id_t id;
	int options; /* of waitid */
	int answer;  /* 1: `info` tells; 0: none; -errno */
	siginfo_t info;
};

static int look(struct wait *wait, idtype_t type, id_t id)
{
	do
		wait->answer = hd__os_waitid(type, id, &wait->info, wait->options | WNOHANG);
	while (wait->answer == -EINTR);
	return wait->answer;
}

/* What waitpid would have said. */
static int status_of(const siginfo_t *info)
{
	switch (info->si_code) {
	case CLD_EXITED:
		return (info->si_status & 0xff) << 8;
	case CLD_KILLED:
		return info->si_status;
	case CLD_DUMPED:
		return info->si_status | 0x80;
	case CLD_CONTINUED:
		return 0xffff;
	default: /* CLD_STOPPED, CLD_TRAPPED */
		return info->si_status << 8 | 0x7f;
	}
}

/* ---- one child ---- */

static ssize_t attempt(struct hd__op *op, enum hd__how how)
{
	int answer = look((struct wait *)op, P_PIDFD, (id_t)op->fd); /* its number may be another child's by now */

	(void)how;
	return answer == 0 ? -EAGAIN : answer;
}

static void close_it(void *fd)
{
	hd_close(*(int *)fd);
}

/* Returns false if there is no such descriptor here. */
static bool wait_by_pidfd(struct wait *wait, hd_time until)
{
	struct hd_cleanup cleanup;
	int fd = hd__os_pidfd((pid_t)wait->id);

	if (fd == -ESRCH) { /* another call has just had it */
		wait->answer = -ECHILD;
		return true;
	}
	if (fd < 0)
		return false;
	if (hd__self() != NULL)
		hd__fd_born_own(fd);
	hd_cleanup_push(&cleanup, close_it, &fd);
	wait->op = (struct hd__op){ .attempt = attempt, .fd = fd, .way = HD__READING, .why = HD_WAIT_CHILD };
	wait->answer = (int)hd__fd_do(&wait->op, until);
	hd_cleanup_pop(&cleanup, false);
	hd_close(fd);
	return wait->answer != -EINVAL; /* P_PIDFD is younger than the descriptor */
}

/* ---- any other ---- */

static void run(struct hd__job *job)
{
	struct wait *wait = (struct wait *)((char *)job - offsetof(struct wait, job));

	do
		wait->answer = hd__os_waitid(wait->type, wait->id, &wait->info, wait->options);
	while (wait->answer == -EINTR && hd__job_stop(job) == 0);
	if (wait->answer == -EINTR)
		wait->answer = hd__job_stop(job);
}

static void wait_by_thread(struct wait *wait, hd_time until)
{
	wait->job = (struct hd__job){ .run = run, .kind = HD__JOB_INTERRUPTIBLE };
	int err = hd__pool_run(&wait->job, until, HD_WAIT_CHILD);

	if (err != 0)
		wait->answer = err;
	else if (wait->answer == -ECANCELED)
		hd__heed(); /* does not return when the caller must end */
}

/* A plain thread cannot be interrupted: with a deadline it looks now and then. */
static void wait_by_looking(struct wait *wait, hd_time until)
{
	hd_time nap = NAP_MIN;

	while (look(wait, wait->type, wait->id) == 0 && !hd__is_past(NULL, until)) {
		(void)hd_sleep(nap);
		nap = nap < NAP_MAX ? nap * 2 : nap;
	}
	if (wait->answer == 0)
		wait->answer = -ETIMEDOUT;
}

static void wait_for(struct wait *wait, hd_time until)
{
	bool its_end = wait->type == P_PID && (wait->options & ~WNOHANG) == WEXITED;

	if (look(wait, wait->type, wait->id) != 0 || wait->options & WNOHANG)
		return;
	if (until <= 0)
		wait->answer = -ETIMEDOUT;
	else if (its_end && wait_by_pidfd(wait, until))
		return;
	else if (hd__self() == NULL && until != HD_FOREVER)
		wait_by_looking(wait, until);
	else
		wait_by_thread(wait, until);
}

pid_t hd_waitpid(pid_t pid, int *status, int options, hd_time until)
{
	struct wait wait = { .type = pid > 0	 ? P_PID
				     : pid == -1 ? P_ALL
						 : P_PGID,
			     .id = (id_t)(pid > 0    ? pid
					  : pid == 0 ? hd__os_group()
						     : -(int64_t)pid), /* no group has the number that is left of INT_MIN */
			     .options = options | WEXITED };

	if (options & ~(WNOHANG | WUNTRACED | WCONTINUED))
		return -EINVAL;
	int err = hd__io_begin(until);
	if (err != 0)
		return err;
	wait_for(&wait, until);
	if (wait.answer <= 0)
		return wait.answer;
	if (status != NULL)
		*status = status_of(&wait.info);
	return wait.info.si_pid;
}
