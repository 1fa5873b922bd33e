/* sim/runtime/os.c - what the runtime asks of the kernel for its threads: takes the place of os/thread.c, os/futex.c, os/clock.c and os/interrupt.c.
 *
 * Owns:       the id that a forked child was given.
 * Callers:    the runtime, on the simulated threads (threads.c) and, outside a run, on the one kernel thread there is. */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <time.h>

#include "base/point.h"
#include "os/blocked.h"
#include "os/clock.h"
#include "os/fault.h"
#include "os/futex.h"
#include "os/interrupt.h"
#include "os/thread.h"
#include "sim/runtime/threads.h"
#include "sim/sim.h"

#define BARRIER_WORTH 4
#define BARRIER_WORTH_BY_CLOCK 1024 /* as os/thread.c has it */
#define NAP HD_US(50)

/* ---- time ---- */

static hd_time virtual_now(const struct hd__clock *clock)
{
	struct timespec t;

	(void)clock;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return HD_SEC(t.tv_sec) + t.tv_nsec + (hd__sim_threads ? 0 : HD__BEGINNING); /* in a run it is on heddle's scale */
}

const struct hd__clock hd__os_clock = { virtual_now };

hd_time hd__os_kernel_time(hd_time t)
{
	return hd__sim_threads ? t : t - HD__BEGINNING;
}

/* ---- sleeping on a word ---- */

void hd__os_futex_wait(uint32_t *word, uint32_t value, hd_time until)
{
	hd__point();
	hd__sim_pay(HD__SIM_CALL);
	if (*word == value && until > hd__sim_now() && !hd__sim_fails(HD__SIM_FAIL_EINTR))
		hd__sim_thread_sleep(word, until);
}

void hd__os_futex_wake(uint32_t *word)
{
	hd__point();
	hd__sim_pay(hd__sim_thread_wake(word) ? HD__SIM_WAKE : HD__SIM_CALL);
}

/* ---- threads ---- */

int hd__os_thread_start(struct hd__thread *thread, const char *name, bool signals, void *(*fn)(void *), void *arg)
{
	(void)name, (void)signals;
	if (hd__fault_strikes(HD__FAULT_THREAD) || hd__sim_fails(HD__SIM_FAIL_THREAD))
		return -EAGAIN;
	return -pthread_create(&thread->handle, NULL, fn, arg);
}

void hd__os_thread_join(struct hd__thread *thread)
{
	pthread_join(thread->handle, NULL);
}

void hd__os_thread_detach(struct hd__thread *thread)
{
	pthread_detach(thread->handle);
}

void hd__os_interrupt_hear(bool hears)
{
	hd__sim_thread_hear(hears);
}

/* It sleeps in the kernel: that ends. */
void hd__os_interrupt(struct hd__thread *thread)
{
	hd__point();
	hd__sim_thread_interrupt((unsigned)thread->handle - 1);
}

unsigned hd__os_cpus(void)
{
	return HD__SIM_WORKERS;
}

int hd__os_thread_count(void)
{
	return hd__sim_threads ? hd__sim_thread_count() : 1;
}

static int64_t given_id; /* to a forked child, which has no other thread */

int64_t hd__os_thread_id(void)
{
	return given_id != 0 ? given_id : hd__sim_threads ? (int64_t)hd__sim_thread_current() + 1 : 1;
}

void hd__os_thread_set_id(int64_t id)
{
	given_id = id;
}

unsigned *hd__os_thread_waits(void)
{
	return hd__sim_thread_waits();
}

void hd__os_thread_nap(void)
{
	if (hd__sim_threads)
		hd__sim_thread_sleep(NULL, hd__sim_now() + NAP);
}

unsigned hd__os_barrier_init(void)
{
	if (hd__fault_strikes(HD__FAULT_BARRIER))
		return 0;
	return hd__sim_is_by_clock() ? BARRIER_WORTH_BY_CLOCK : BARRIER_WORTH;
}

bool hd__os_barrier(void)
{
	hd__point();
	if (hd__fault_strikes(HD__FAULT_BARRIER))
		return false;
	hd__sim_pay(HD__SIM_BARRIER);
	hd__sim_publish_all();
	return true;
}

void hd__os_thread_yield(void)
{
	sched_yield();
}

bool hd__os_thread_sleeps(int number)
{
	return hd__sim_threads && hd__sim_thread_sleeps((unsigned)number - 1);
}

bool hd__os_is_blocked(int id, struct hd__blocked_in *where)
{
	(void)id, (void)where;
	return false; /* there is no kernel */
}
