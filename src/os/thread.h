/* os/thread.h - kernel threads. */
#ifndef OS_THREAD_H
#define OS_THREAD_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct hd__thread {
	pthread_t handle;
	int id;	    /* the kernel's, if the thread can be stopped (os/preempt.h); else 0 */
	int number; /* the kernel's; 0: not known yet */
};

/* Starts fn(arg) on a kernel thread, with the caller's signal mask or with all signals blocked. Returns 0 or -EAGAIN. */
int hd__os_thread_start(struct hd__thread *thread, const char *name, bool signals, void *(*fn)(void *), void *arg);
void hd__os_thread_join(struct hd__thread *thread);

/* No thread will join it. */
void hd__os_thread_detach(struct hd__thread *thread);

/* On how many CPUs the program may run. At least 1. */
unsigned hd__os_cpus(void);

/* What heddle keeps for the calling kernel thread, whichever thread-local storage that uses now (arch/tls.h). */
struct hd__of_thread {
	int64_t id;			/* hd__os_thread_id; 0: not asked for yet */
	unsigned waits;			/* hd__os_thread_waits */
	uint64_t usual;			/* signals: blocked when the thread began to be a worker (os/preempt.c) */
	uint64_t signals_seen, signals_ours; /* os/signal.c */
};
struct hd__of_thread *hd__os_of_thread(void);

/* The calling thread is the only one of a forked child. If it uses a process's own storage, it keeps that, and what heddle keeps for it. */
void hd__os_thread_keep_storage(void);

/* How many kernel threads the program has; 0 when that cannot be known. */
int hd__os_thread_count(void);

/* A number that no other kernel thread has while this one lives; above 0. A forked child keeps its thread's number, and with it the locks
 * that the thread owns as that number; unless it is given another one. */
int64_t hd__os_thread_id(void);
void hd__os_thread_set_id(int64_t id);

/* Where the calling thread counts how often it has waited for a lock. */
unsigned *hd__os_thread_waits(void);

/* How many locked operations must be saved for a call of hd__os_barrier to be worth it; 0: it does not work here. Call this before other
 * threads start. */
unsigned hd__os_barrier_init(void);

/* Every running thread of the program executes a full fence during the call. False: not so; a filter of system calls has come between. */
bool hd__os_barrier(void);

/* CPU time in ns that the thread with this id has used; 0 when that cannot be known. */
int64_t hd__os_thread_cpu_time(int id);

/* The calling thread sleeps no longer than it asks for, as far as the kernel can. */
void hd__os_thread_punctual(void);

/* Gives the CPU to another kernel thread. */
void hd__os_thread_yield(void);

/* Sleeps for some 50 us, so that any other kernel thread can run. */
void hd__os_thread_nap(void);

#endif
