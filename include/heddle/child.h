/* heddle/child.h - child programs: started and waited for, while other processes run.
 *
 * Calls answer a pid of the operating system or 0, or -errno. SIGCHLD is the program's: heddle neither handles it nor needs it. */
#ifndef HEDDLE_CHILD_H
#define HEDDLE_CHILD_H

#include <heddle/base.h>
#include <sys/types.h>

HD_BEGIN

/* What a child's standard descriptor is; a number above 0 is a descriptor of the program. */
enum {
	HD_CHILD_SAME = 0,  /* the program's own */
	HD_CHILD_PIPE = -1, /* one end of a pipe; the other end is the caller's */
	HD_CHILD_NULL = -2, /* /dev/null */
	HD_CHILD_OUT = -3   /* for `err`: what `out` is */
};

/* How to start a child. Zeroed memory, but for `argv`, means all defaults. */
struct hd_child {
	const char *const *argv; /* its arguments, its name first, NULL last */
	const char *program;	 /* its file, looked for in PATH if it has no slash; NULL: argv[0] */
	const char *const *env;	 /* NAME=value, NULL last; NULL: the program's environment */
	const char *directory;	 /* where it begins; NULL: where the program is. A relative `program` is meant from here */
	int in, out, err;	 /* its standard descriptors */
	bool group;		 /* it leads a process group of its own */
};

/* Starts a child. ends[0] becomes the descriptor to which the caller writes the child's input, ends[1] and ends[2] those from which it reads
 * output and errors, where these are HD_CHILD_PIPE, and -1 where not; `ends` may be NULL if none is. The caller closes them
 * (hd_close), and waits for the child (hd_waitpid). Of the program's other descriptors the child has those that are not close-on-exec. Its
 * signal mask is what the caller's would be without heddle; what the program ignores, it ignores. Returns its pid; otherwise there is
 * no child, and no descriptor:
 *
 *   -ENOENT, -EACCES and their like   the program cannot be executed, or there is no such directory
 *   -EINVAL                           no argv, a standard descriptor that is none of the above, or a pipe without ends
 *   -EBADF                            a descriptor is not open
 *   -EMFILE, -ENFILE, -ENOMEM, -EAGAIN
 *   -ECANCELED                        the caller was cancelled
 *   -ENOTSUP                          the program is explored
 *
 * It is done on a kernel thread of the pool (hd_blocking), since it takes a while. Cancellation point. Process or plain thread. */
HD_API HD_MUST_USE pid_t hd_spawn_child(const struct hd_child *how, int ends[3]);

/* As waitpid(2): waits until a child has ended, or has done what `options` say (WUNTRACED, WCONTINUED), and puts that into *status, unless it is
 * NULL. `pid` is a child; -1: any child; 0: any of the program's own process group; below -1: of the group -pid. Returns
 *
 *   a pid        that of the child; if it has ended, it does not exist any more
 *   0            WNOHANG, and no child is ready
 *   -ETIMEDOUT   none was, by `until`; it can be waited for again
 *   -ECANCELED   the caller was cancelled; likewise
 *   -ECHILD      there is no such child: another call has had it, or SIGCHLD is ignored
 *   -EINVAL      the options are none
 *   -EAGAIN, -ENOMEM
 *   -ENOTSUP     the program is explored
 *
 * The end of one child is waited for through a pidfd, as descriptors are; any other form on a kernel thread of the pool that is
 * interrupted when the wait is over, and so is one child on Linux before 5.4 or when there are too many descriptors. Cancellation point.
 * Process or plain thread; on a plain thread any form but the first asks the kernel again and again, if `until` is not HD_FOREVER. */
HD_API HD_MUST_USE pid_t hd_waitpid(pid_t pid, int *status, int options, hd_time until);

/* Starts a child, reads what it writes to its standard output up to the end of that, and waits for its end. Its output is the call's: `how` has neither
 * `out` nor a pipe. The first `size` bytes go to `data`, the rest is dropped; its status goes to *status, unless that is NULL. Returns how many
 * bytes it has written, which may be more than `size`; or what hd_spawn_child, hd_read or hd_waitpid answers. When time is up, or the
 * caller is cancelled or terminated, the child is killed (SIGKILL) and waited for before the call returns -ETIMEDOUT or -ECANCELED.
 * Cancellation point. Process or plain thread. */
HD_API HD_MUST_USE ssize_t hd_child_output(const struct hd_child *how, void *data, size_t size, int *status, hd_time until);

/* Runs a command by /bin/sh and waits for its end, as system(3), but SIGINT, SIGQUIT and SIGCHLD are left alone. Returns its status, as
 * hd_waitpid puts it (0: it has succeeded); or what hd_spawn_child or hd_waitpid answers. When time is up, or the caller is cancelled
 * or terminated, the shell is killed (SIGKILL) and waited for before the call returns -ETIMEDOUT or -ECANCELED; programs that it has started
 * are not killed. Cancellation point. Process or plain thread. */
HD_API HD_MUST_USE int hd_system(const char *command, hd_time until);

HD_END
#endif
