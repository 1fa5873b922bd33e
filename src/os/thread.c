/* os/thread.c - kernel threads. */
#define _GNU_SOURCE
#include "os/thread.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/membarrier.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "arch/tls.h"
#include "os/fault.h"
#include "tp.h"

/* As the C library tells the kernel of a thread's restartable sequences (rseq(2)). */
#define RSEQ_SIZE 32
#define RSEQ_UNREGISTER 1
#define RSEQ_SIGNATURE 0x53053053

int hd__os_thread_start(struct hd__thread *thread, const char *name, bool signals, void *(*fn)(void *), void *arg)
{
	int saved = errno;
	sigset_t all, before;
	char own[16] = "";
	int err = EAGAIN;

	/* A thread begins with the name of the thread that starts it. (pthread_setname_np of another thread goes through /proc, which makes the end of
	 * the program dear: the kernel walks what it remembers of /proc/PID/task.) */
	prctl(PR_GET_NAME, own);
	prctl(PR_SET_NAME, name);
	/* Signals are the program's: threads on which none of its code runs never take one. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, signals ? NULL : &all, &before);
	if (!hd__fault_strikes(HD__FAULT_THREAD))
		err = pthread_create(&thread->handle, NULL, fn, arg);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	prctl(PR_SET_NAME, own);
	errno = saved;
	return err == 0 ? 0 : -EAGAIN;
}

unsigned hd__os_cpus(void)
{
	int saved = errno;
	long online = sysconf(_SC_NPROCESSORS_ONLN);
	cpu_set_t set;
	int n = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : (int)online; /* it fails beyond 1,024 CPUs */

	errno = saved;
	return n > 0 ? (unsigned)n : 1;
}

void hd__os_thread_punctual(void)
{
	prctl(PR_SET_TIMERSLACK, 1UL);
}

int64_t hd__os_thread_cpu_time(int id)
{
	const clockid_t clock = (clockid_t)(~(unsigned)id << 3 | 6); /* as the kernel names the CPU clock of a thread */
	struct timespec t;
	int saved = errno;
	bool known = id != 0 && clock_gettime(clock, &t) == 0;

	errno = saved;
	return known ? (int64_t)t.tv_sec * 1000000000 + t.tv_nsec : 0;
}

static _Thread_local struct hd__of_thread of_thread;

struct hd__of_thread *hd__os_of_thread(void)
{
	return (struct hd__of_thread *)((uintptr_t)&of_thread + (uintptr_t)hd__tls_away);
}

int64_t hd__os_thread_id(void)
{
	struct hd__of_thread *mine = hd__os_of_thread();

	if (mine->id == 0)
		mine->id = (int64_t)syscall(SYS_gettid);
	return mine->id;
}

void hd__os_thread_set_id(int64_t id)
{
	hd__os_of_thread()->id = id;
}

unsigned *hd__os_thread_waits(void)
{
	return &hd__os_of_thread()->waits;
}

/* The C library has taken the stack of the thread that forked, and with it that thread's own storage, for free memory: the kernel must write nothing there any
 * more. (What else the kernel has from there, the C library has given it anew.) */
void hd__os_thread_keep_storage(void)
{
	const ptrdiff_t *rseq = (const ptrdiff_t *)dlsym(RTLD_DEFAULT, "__rseq_offset");
	int saved = errno;

	if (hd__tls_away == 0)
		return;
	if (rseq != NULL)
		syscall(SYS_rseq, hd__arch_tp() + (uintptr_t)hd__tls_away + (uintptr_t)*rseq, RSEQ_SIZE, RSEQ_UNREGISTER, RSEQ_SIGNATURE);
	of_thread = *hd__os_of_thread();
	hd__tls_keep();
	errno = saved;
}

void hd__os_thread_join(struct hd__thread *thread)
{
	pthread_join(thread->handle, NULL);
}

void hd__os_thread_detach(struct hd__thread *thread)
{
	pthread_detach(thread->handle);
}

int hd__os_thread_count(void)
{
	int saved = errno;
	struct stat tasks;
	int count = 0;

	/* a directory has a link for each of its directories, itself and its parent; and there is one per thread */
	if (stat("/proc/self/task", &tasks) == 0 && tasks.st_nlink > 2)
		count = (int)tasks.st_nlink - 2;
	errno = saved;
	return count;
}

static long membarrier(int command)
{
	int saved = errno;
	long answer = syscall(SYS_membarrier, command, 0, 0);

	errno = saved;
	return answer;
}

unsigned hd__os_barrier_init(void)
{
	if (hd__fault_strikes(HD__FAULT_BARRIER))
		return 0;
	return membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) == 0 ? 1024 : 0; /* 14 us against 3 to 10 ns */
}

bool hd__os_barrier(void)
{
	return !hd__fault_strikes(HD__FAULT_BARRIER) && membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED) == 0;
}

void hd__os_thread_yield(void)
{
	sched_yield();
}

void hd__os_thread_nap(void)
{
	int saved = errno;

	nanosleep(&(struct timespec){ .tv_nsec = 50000 }, NULL);
	errno = saved;
}
