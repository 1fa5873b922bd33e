/* os/blocked.c - which system call a kernel thread of the program is blocked in: the kernel tells it in a file of /proc. */
#include "os/blocked.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "os/thread.h"

#define NAME(call)                                                                                                             \
	{                                                                                                                      \
		SYS_##call, #call                                                                                              \
	}

static const struct {
	long number;
	const char *name;
} names[] = {
	/* those that block for long, as a rule */
	NAME(read),
	NAME(write),
	NAME(readv),
	NAME(writev),
	NAME(pread64),
	NAME(pwrite64),
	NAME(preadv),
	NAME(pwritev),
	NAME(recvfrom),
	NAME(recvmsg),
	NAME(recvmmsg),
	NAME(sendto),
	NAME(sendmsg),
	NAME(sendmmsg),
	NAME(accept),
	NAME(accept4),
	NAME(connect),
	NAME(ppoll),
	NAME(pselect6),
	NAME(epoll_pwait),
	NAME(futex),
	NAME(nanosleep),
	NAME(clock_nanosleep),
	NAME(wait4),
	NAME(waitid),
	NAME(flock),
	NAME(fcntl),
	NAME(fsync),
	NAME(fdatasync),
	NAME(msync),
	NAME(openat),
	NAME(close),
	NAME(ioctl),
	NAME(sendfile),
	NAME(splice),
	NAME(copy_file_range),
	NAME(rt_sigtimedwait),
	NAME(rt_sigsuspend),
	NAME(msgrcv),
	NAME(msgsnd),
	NAME(semop),
	NAME(semtimedop),
	NAME(mq_timedreceive),
	NAME(mq_timedsend),
	NAME(sync),
	NAME(syncfs),
	NAME(io_getevents),
	NAME(io_uring_enter),
#ifdef SYS_poll /* older calls, which newer machines do not have */
	NAME(poll),
	NAME(select),
	NAME(epoll_wait),
	NAME(pause),
	NAME(open),
#endif
};

static void name(long number, char *to, size_t size)
{
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
		if (names[i].number == number) {
			snprintf(to, size, "%s", names[i].name);
			return;
		}
	snprintf(to, size, "%ld", number);
}

/* The file has "running"; or the number of the call, six arguments, sp and pc; or -1, sp and pc. */
static bool parse(char *text, struct hd__blocked_in *where)
{
	long number;
	size_t sp, pc;

	if (sscanf(text, "%ld", &number) != 1)
		return false;
	if (number >= 0 && sscanf(text, "%*d %*x %*x %*x %*x %*x %*x %zx %zx", &sp, &pc) != 2)
		return false;
	if (number < 0 && sscanf(text, "%*d %zx %zx", &sp, &pc) != 2)
		return false;
	where->call[0] = 0;
	if (number >= 0)
		name(number, where->call, sizeof where->call);
	where->sp = (char *)sp;
	where->pc = (char *)pc;
	return true;
}

/* What the kernel says of the thread's system call. Returns the length; 0: it does not tell. */
static size_t ask(int id, char *text, size_t size)
{
	char path[64];
	int saved = errno;

	snprintf(path, sizeof path, "/proc/self/task/%d/syscall", id);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd >= 0 ? read(fd, text, size - 1) : -1;
	if (fd >= 0)
		close(fd);
	errno = saved;
	text[n > 0 ? n : 0] = 0;
	return n > 0 ? (size_t)n : 0;
}

bool hd__os_thread_sleeps(int number)
{
	char text[256];

	return ask(number, text, sizeof text) > 0 && text[0] != 'r'; /* "running": also one that waits for a CPU */
}

bool hd__os_is_blocked(int id, struct hd__blocked_in *where)
{
	char text[256];

	where->cpu_time = hd__os_thread_cpu_time(id);
	return ask(id, text, sizeof text) > 0 && parse(text, where);
}
