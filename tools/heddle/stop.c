/* stop.c - stops a thread for a moment, by ptrace(2), and reads its registers.
 *
 * Invariant: a thread that was seized is let go before stop_thread returns; and by the kernel if the caller dies, for a thread that was seized, not attached to,
 * is no longer traced then, and goes on. A signal that comes while it is seized is delivered. */
#include "stop.h"

#include <elf.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>

#define PATIENCE 1000 /* ms that a thread has to stop: one that sleeps in the kernel and cannot be disturbed does not */

/* Waits until it has stopped. Returns the signal to give it when it goes on, or -errno. */
static int await(pid_t tid)
{
	int status;

	for (int i = 0; i < PATIENCE * 20; i++) {
		pid_t done = waitpid(tid, &status, __WALL | WNOHANG);
		if (done == tid && WIFSTOPPED(status))
			return status >> 16 == PTRACE_EVENT_STOP ? 0 : WSTOPSIG(status);
		if (done == tid)
			return -ESRCH;
		if (done < 0 && errno != EINTR)
			return -errno;
		nanosleep(&(struct timespec){ .tv_nsec = 50000 }, NULL);
	}
	return -ETIMEDOUT;
}

bool stop_thread(int64_t tid, void (*look)(void *arg, const struct registers *r), void *arg, char *why, size_t why_size)
{
	struct user_regs_struct kernel;
	struct iovec into = { &kernel, sizeof kernel };
	struct registers r;
	pid_t thread = (pid_t)tid;
	bool done = false;

	if (ptrace(PTRACE_SEIZE, thread, NULL, NULL) != 0) {
		int err = errno;
		snprintf(why, why_size, "thread %" PRId64 " cannot be stopped: %s%s", tid, strerror(err),
			 err == EPERM ? ": a debugger has it, or the system does not allow it (ptrace, as in some containers)"
				      : "");
		return false;
	}
	int signal = ptrace(PTRACE_INTERRUPT, thread, NULL, NULL) == 0 ? await(thread) : -errno;
	if (signal < 0) { /* it is let go when this program ends */
		snprintf(why, why_size, "thread %" PRId64 " %s", tid,
			 signal == -ETIMEDOUT ? "did not stop within a second: it waits in the kernel for a device"
					      : "has ended");
		return false;
	}
	if (ptrace(PTRACE_GETREGSET, thread, (void *)(uintptr_t)NT_PRSTATUS, &into) == 0 &&
	    registers_of_thread(&r, &kernel, into.iov_len)) {
		look(arg, &r);
		done = true;
	} else {
		snprintf(why, why_size, "the registers of thread %" PRId64 " cannot be read: %s", tid, strerror(errno));
	}
	ptrace(PTRACE_DETACH, thread, NULL, (void *)(uintptr_t)signal);
	return done;
}
