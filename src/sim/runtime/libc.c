/* sim/runtime/libc.c - what tests ask of the C library: its threads, sleeps and clocks are the simulated ones.
 *
 * Owns:       nothing. A pthread_t is the index of a simulated thread plus one.
 * Callers:    tests, and what takes the place of os/ (os.c). Outside a run the clock is the kernel's, and no thread is started. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/point.h"
#include "sim/runtime/threads.h"

int pthread_create(pthread_t *handle, const pthread_attr_t *attributes, void *(*fn)(void *), void *arg)
{
	int state = PTHREAD_CREATE_JOINABLE;
	unsigned i;

	HD_ASSERT(hd__sim_threads, "a thread was started outside a simulated run");
	hd__point();
	if (attributes != NULL)
		pthread_attr_getdetachstate(attributes, &state);
	int err = hd__sim_thread_start(&i, state == PTHREAD_CREATE_DETACHED, fn, arg);
	if (err == 0)
		*handle = i + 1;
	return err;
}

int pthread_join(pthread_t handle, void **result)
{
	hd__point();
	hd__sim_thread_join((unsigned)handle - 1, result);
	return 0;
}

int pthread_detach(pthread_t handle)
{
	hd__sim_thread_detach((unsigned)handle - 1);
	return 0;
}

int sched_yield(void)
{
	hd__sim_give_way();
	return 0;
}

int clock_gettime(clockid_t clock, struct timespec *t)
{
	if (!hd__sim_threads)
		return (int)syscall(SYS_clock_gettime, clock, t);
	hd_time now = hd__sim_read_clock();
	*t = (struct timespec){ now / HD_SEC(1), now % HD_SEC(1) };
	return 0;
}

int nanosleep(const struct timespec *wanted, struct timespec *left)
{
	hd_time until = hd__sim_now() + HD_SEC(wanted->tv_sec) + wanted->tv_nsec;

	(void)left;
	while (hd__sim_threads && hd__sim_now() < until)
		hd__sim_thread_sleep(NULL, until);
	return 0;
}

int usleep(useconds_t us)
{
	return nanosleep(&(struct timespec){ us / 1000000, us % 1000000 * 1000 }, NULL);
}
