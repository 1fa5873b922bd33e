/* os/child.c - child programs, as the kernel has them. */
#define _GNU_SOURCE
#include "os/child.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/atomic.h"
#include "os/fault.h"

static int answer(long result, int saved)
{
	if (likely(result >= 0))
		return (int)result;
	int err = errno;
	errno = saved;
	return -err;
}

/* Each of the descriptors comes to its number, whatever numbers they have now: those below 3 are copied out of the way first, to `copies`. Returns 0
 * or an error number. */
static int place_fds(posix_spawn_file_actions_t *actions, const int fds[3], int copies[3])
{
	int err = 0;

	for (int i = 0; i < 3 && err == 0; i++) {
		int fd = fds[i];
		if (fd == HD__FD_SAME)
			continue;
		if (fd >= 0 && fd < 3) {
			fd = copies[i] = fcntl(fd, F_DUPFD_CLOEXEC, 3);
			err = fd < 0 ? errno : 0;
		}
		if (err == 0)
			err = fd == HD__FD_NULL ? posix_spawn_file_actions_addopen(actions, i, "/dev/null", O_RDWR, 0)
						: posix_spawn_file_actions_adddup2(actions, fd, i);
	}
	return err;
}

static int start(const struct hd__program *p, posix_spawn_file_actions_t *actions, posix_spawnattr_t *how, pid_t *pid)
{
	extern char **environ;
	short flags = POSIX_SPAWN_SETSIGMASK | (p->group ? POSIX_SPAWN_SETPGROUP : 0);
	int copies[3] = { -1, -1, -1 };
	int err = place_fds(actions, p->fds, copies);

	if (err == 0 && p->directory != NULL)
		err = posix_spawn_file_actions_addchdir_np(actions, p->directory);
	if (err == 0)
		err = posix_spawnattr_setflags(how, flags);
	if (err == 0)
		err = posix_spawnattr_setsigmask(how, &p->mask);
	if (err == 0)
		err = posix_spawnp(pid, p->file, actions, how, (char *const *)(uintptr_t)p->argv,
				   p->env != NULL ? (char *const *)(uintptr_t)p->env : environ);
	for (int i = 0; i < 3; i++)
		if (copies[i] >= 0)
			close(copies[i]);
	return err;
}

pid_t hd__os_spawn(const struct hd__program *p)
{
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t how;
	pid_t pid = 0;
	int saved = errno, err = posix_spawn_file_actions_init(&actions);

	if (err == 0 && (err = posix_spawnattr_init(&how)) != 0)
		posix_spawn_file_actions_destroy(&actions);
	if (err == 0) {
		err = start(p, &actions, &how, &pid);
		posix_spawnattr_destroy(&how);
		posix_spawn_file_actions_destroy(&actions);
	}
	errno = saved;
	return err != 0 ? -err : pid;
}

int hd__os_child_pipe(bool reads, int *mine, int *its)
{
	int saved = errno, fds[2];

	if (pipe2(fds, O_CLOEXEC) != 0)
		return answer(-1, saved);
	if (fcntl(fds[reads ? 1 : 0], F_SETFL, O_NONBLOCK) != 0) {
		int err = answer(-1, saved);
		close(fds[0]);
		close(fds[1]);
		return err;
	}
	*its = fds[reads ? 0 : 1];
	*mine = fds[reads ? 1 : 0];
	return 0;
}

int hd__os_waitid(idtype_t type, id_t id, siginfo_t *info, int options)
{
	int saved = errno;

	if (unlikely(hd__fault_strikes(HD__FAULT_EINTR)))
		return -EINTR;
	info->si_pid = 0; /* it stays so if there is none */
	int err = answer(waitid(type, id, info, options), saved);
	return err != 0 ? err : info->si_pid != 0;
}

int hd__os_pidfd(pid_t pid)
{
	int saved = errno;

	if (hd__fault_strikes(HD__FAULT_FD))
		return -EMFILE;
	return answer(syscall(SYS_pidfd_open, pid, 0), saved); /* it is close-on-exec */
}

pid_t hd__os_group(void)
{
	return getpgrp();
}

int hd__os_kill(pid_t pid, int signal)
{
	int saved = errno;
	return answer(kill(pid, signal), saved);
}
