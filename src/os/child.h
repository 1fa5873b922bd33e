/* os/child.h - the door to child programs.
 *
 * Each answers what it says, or -errno; errno is left alone. The simulated runtime has no children: there every call answers -ENOSYS. */
#ifndef OS_CHILD_H
#define OS_CHILD_H

#include <signal.h>
#include <stdbool.h>
#include <sys/wait.h>

#ifndef P_PIDFD /* where the C library is older than that */
#define P_PIDFD ((idtype_t)3)
#endif

enum { HD__FD_SAME = -1, HD__FD_NULL = -2 };

struct hd__program {
	const char *file;
	const char *const *argv;
	const char *const *env; /* NULL: the program's */
	const char *directory;	/* NULL: the program's */
	int fds[3];		/* that become its 0, 1 and 2; or HD__FD_SAME, HD__FD_NULL */
	bool group;
	sigset_t mask;
};

/* Starts it. Returns its pid. May wait for the disk. */
pid_t hd__os_spawn(const struct hd__program *p);

/* A pipe for a child: `mine` has O_NONBLOCK, `its` has not. Both are close-on-exec. `its` is for reading if `reads`. */
int hd__os_child_pipe(bool reads, int *mine, int *its);

/* As waitid(2). Returns 1: *info tells; 0: WNOHANG, and there is none. */
int hd__os_waitid(idtype_t type, id_t id, siginfo_t *info, int options);

/* A descriptor that is readable when the child has ended. */
int hd__os_pidfd(pid_t pid);

pid_t hd__os_group(void); /* the program's own */
int hd__os_kill(pid_t pid, int signal);

#endif
