/* heddle/pthread.h - the names of POSIX threads for heddle's processes.
 *
 * A file that includes this header, or is compiled with `-include heddle/pthread.h`, has heddle's functions under the names of <pthread.h>, <semaphore.h>,
 * sched_yield and the sleep family: a thread is a process with thread-local storage of its own, and what waits, waits only for its thread. The
 * function main is the first process, in which the runtime begins before main does; the environment (HEDDLE_WORKERS and the like) applies. All files of a
 * program that share such objects must be compiled so. Errors are POSIX's. docs/posix.md says what is served and what is not: a name that is not fails to link, by a
 * name that says so. heddle.h does not include this header. */
#ifndef HEDDLE_PTHREAD_H
#define HEDDLE_PTHREAD_H

#if defined(__bool_true_false_are_defined) || defined(__cplusplus)
#define HD_PTHREAD_KEEP_BOOL
#endif
#include <heddle/barrier.h>
#include <heddle/cancel.h>
#include <heddle/monitor.h>
#include <heddle/rwlock.h>
#include <heddle/semaphore.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

HD_BEGIN

/* ---- objects ----
 *
 * One that other programs share (PTHREAD_PROCESS_SHARED) is the C library's: a thread that waits for it keeps its worker. `shared` says which it is. */

typedef struct {
	unsigned char shared, type, protocol, robust;
	int ceiling;
	union {
		struct hd_mutex own;
		pthread_mutex_t theirs;
	} is;
} hd_pthread_mutex_t;

typedef struct {
	unsigned char shared;
	int clock;
	union {
		struct hd_condition own;
		pthread_cond_t theirs;
	} is;
} hd_pthread_cond_t;

typedef struct {
	unsigned char shared;
	union {
		struct hd_rwlock own;
		pthread_rwlock_t theirs;
	} is;
} hd_pthread_rwlock_t;

typedef struct {
	unsigned char shared;
	union {
		struct hd_barrier own;
		pthread_barrier_t theirs;
	} is;
} hd_pthread_barrier_t;

typedef struct {
	unsigned char shared;
	union {
		struct {
			struct hd_semaphore free;
			pthread_t owner; /* while it is locked */
		} own;
		pthread_spinlock_t theirs;
	} is;
} hd_pthread_spinlock_t;

typedef struct {
	unsigned char shared; /* or it has a name */
	union {
		struct hd_semaphore own;
		sem_t theirs;
		sem_t *named;
	} is;
} hd_sem_t;

typedef int hd_pthread_once_t;

typedef struct {
	unsigned char shared, type, protocol, robust;
	int ceiling;
} hd_pthread_mutexattr_t;

typedef struct {
	unsigned char shared;
	int clock;
} hd_pthread_condattr_t;

typedef struct {
	unsigned char shared;
	int kind;
} hd_pthread_rwlockattr_t;

typedef struct {
	unsigned char shared;
} hd_pthread_barrierattr_t;

typedef struct {
	int detached, inherits, policy, priority, scope;
	size_t stack_size, guard_size;
	void *stack;
} hd_pthread_attr_t;

#define HD_PTHREAD_MUTEX(type)                                                                                                 \
	{                                                                                                                      \
		0, (type), 0, 0, 0,                                                                                            \
		{                                                                                                              \
			HD_MUTEX(0)                                                                                            \
		}                                                                                                              \
	}
#define HD_PTHREAD_COND                                                                                                        \
	{                                                                                                                      \
		0, CLOCK_REALTIME,                                                                                             \
		{                                                                                                              \
			HD_CONDITION                                                                                           \
		}                                                                                                              \
	}
#define HD_PTHREAD_RWLOCK                                                                                                      \
	{                                                                                                                      \
		0,                                                                                                             \
		{                                                                                                              \
			HD_RWLOCK(HD_PREFER_NOBODY)                                                                            \
		}                                                                                                              \
	}

/* ---- threads ---- */

HD_API int hd_pthread_create(pthread_t *thread, const hd_pthread_attr_t *attr, void *(*start)(void *), void *arg);
HD_API int hd_pthread_join(pthread_t thread, void **result);
HD_API int hd_pthread_tryjoin_np(pthread_t thread, void **result);
HD_API int hd_pthread_timedjoin_np(pthread_t thread, void **result, const struct timespec *until);
HD_API int hd_pthread_clockjoin_np(pthread_t thread, void **result, clockid_t clock, const struct timespec *until);
HD_API int hd_pthread_detach(pthread_t thread);
HD_API void hd_pthread_exit(void *result) __attribute__((noreturn));
HD_API pthread_t hd_pthread_self(void);
HD_API int hd_pthread_equal(pthread_t a, pthread_t b);
HD_API int hd_pthread_kill(pthread_t thread, int signal);
HD_API int hd_pthread_setname_np(pthread_t thread, const char *name);
HD_API int hd_pthread_getname_np(pthread_t thread, char *name, size_t size);
HD_API int hd_pthread_getattr_np(pthread_t thread, hd_pthread_attr_t *attr);
HD_API int hd_pthread_getconcurrency(void);
HD_API int hd_pthread_setconcurrency(int level);

HD_API int hd_pthread_cancel(pthread_t thread);
HD_API void hd_pthread_testcancel(void);
HD_API int hd_pthread_setcancelstate(int state, int *before);
HD_API int hd_pthread_setcanceltype(int type, int *before);
HD_API void hd_pthread_cleanup_begin(struct hd_cleanup *cleanup, void (*fn)(void *), void *arg);
HD_API void hd_pthread_cleanup_end(struct hd_cleanup *cleanup, int run);

HD_API int hd_pthread_getschedparam(pthread_t thread, int *policy, struct sched_param *param);
HD_API int hd_pthread_setschedparam(pthread_t thread, int policy, const struct sched_param *param);
HD_API int hd_pthread_setschedprio(pthread_t thread, int priority);
HD_API int hd_sched_get_priority_max(int policy);
HD_API int hd_sched_get_priority_min(int policy);
HD_API int hd_sched_yield(void);

HD_API int hd_pthread_attr_init(hd_pthread_attr_t *attr);
HD_API int hd_pthread_attr_destroy(hd_pthread_attr_t *attr);
HD_API int hd_pthread_attr_getdetachstate(const hd_pthread_attr_t *attr, int *state);
HD_API int hd_pthread_attr_setdetachstate(hd_pthread_attr_t *attr, int state);
HD_API int hd_pthread_attr_getguardsize(const hd_pthread_attr_t *attr, size_t *size);
HD_API int hd_pthread_attr_setguardsize(hd_pthread_attr_t *attr, size_t size);
HD_API int hd_pthread_attr_getinheritsched(const hd_pthread_attr_t *attr, int *inherits);
HD_API int hd_pthread_attr_setinheritsched(hd_pthread_attr_t *attr, int inherits);
HD_API int hd_pthread_attr_getschedparam(const hd_pthread_attr_t *attr, struct sched_param *param);
HD_API int hd_pthread_attr_setschedparam(hd_pthread_attr_t *attr, const struct sched_param *param);
HD_API int hd_pthread_attr_getschedpolicy(const hd_pthread_attr_t *attr, int *policy);
HD_API int hd_pthread_attr_setschedpolicy(hd_pthread_attr_t *attr, int policy);
HD_API int hd_pthread_attr_getscope(const hd_pthread_attr_t *attr, int *scope);
HD_API int hd_pthread_attr_setscope(hd_pthread_attr_t *attr, int scope);
HD_API int hd_pthread_attr_getstack(const hd_pthread_attr_t *attr, void **stack, size_t *size);
HD_API int hd_pthread_attr_setstack(hd_pthread_attr_t *attr, void *stack, size_t size);
HD_API int hd_pthread_attr_getstacksize(const hd_pthread_attr_t *attr, size_t *size);
HD_API int hd_pthread_attr_setstacksize(hd_pthread_attr_t *attr, size_t size);

/* ---- values of keys, and once ---- */

HD_API int hd_pthread_key_create(pthread_key_t *key, void (*destroy)(void *));
HD_API int hd_pthread_key_delete(pthread_key_t key);
HD_API void *hd_pthread_getspecific(pthread_key_t key);
HD_API int hd_pthread_setspecific(pthread_key_t key, const void *value);
HD_API int hd_pthread_once(hd_pthread_once_t *once, void (*fn)(void));

/* ---- locks ---- */

HD_API int hd_pthread_mutexattr_init(hd_pthread_mutexattr_t *attr);
HD_API int hd_pthread_mutexattr_destroy(hd_pthread_mutexattr_t *attr);
HD_API int hd_pthread_mutexattr_gettype(const hd_pthread_mutexattr_t *attr, int *type);
HD_API int hd_pthread_mutexattr_settype(hd_pthread_mutexattr_t *attr, int type);
HD_API int hd_pthread_mutexattr_getpshared(const hd_pthread_mutexattr_t *attr, int *shared);
HD_API int hd_pthread_mutexattr_setpshared(hd_pthread_mutexattr_t *attr, int shared);
HD_API int hd_pthread_mutexattr_getprotocol(const hd_pthread_mutexattr_t *attr, int *protocol);
HD_API int hd_pthread_mutexattr_setprotocol(hd_pthread_mutexattr_t *attr, int protocol);
HD_API int hd_pthread_mutexattr_getprioceiling(const hd_pthread_mutexattr_t *attr, int *ceiling);
HD_API int hd_pthread_mutexattr_setprioceiling(hd_pthread_mutexattr_t *attr, int ceiling);
HD_API int hd_pthread_mutexattr_getrobust(const hd_pthread_mutexattr_t *attr, int *robust);
HD_API int hd_pthread_mutexattr_setrobust(hd_pthread_mutexattr_t *attr, int robust);
HD_API int hd_pthread_mutex_init(hd_pthread_mutex_t *m, const hd_pthread_mutexattr_t *attr);
HD_API int hd_pthread_mutex_destroy(hd_pthread_mutex_t *m);
HD_API int hd_pthread_mutex_lock(hd_pthread_mutex_t *m);
HD_API int hd_pthread_mutex_trylock(hd_pthread_mutex_t *m);
HD_API int hd_pthread_mutex_timedlock(hd_pthread_mutex_t *m, const struct timespec *until);
HD_API int hd_pthread_mutex_clocklock(hd_pthread_mutex_t *m, clockid_t clock, const struct timespec *until);
HD_API int hd_pthread_mutex_unlock(hd_pthread_mutex_t *m);

HD_API int hd_pthread_condattr_init(hd_pthread_condattr_t *attr);
HD_API int hd_pthread_condattr_destroy(hd_pthread_condattr_t *attr);
HD_API int hd_pthread_condattr_getclock(const hd_pthread_condattr_t *attr, clockid_t *clock);
HD_API int hd_pthread_condattr_setclock(hd_pthread_condattr_t *attr, clockid_t clock);
HD_API int hd_pthread_condattr_getpshared(const hd_pthread_condattr_t *attr, int *shared);
HD_API int hd_pthread_condattr_setpshared(hd_pthread_condattr_t *attr, int shared);
HD_API int hd_pthread_cond_init(hd_pthread_cond_t *c, const hd_pthread_condattr_t *attr);
HD_API int hd_pthread_cond_destroy(hd_pthread_cond_t *c);
HD_API int hd_pthread_cond_wait(hd_pthread_cond_t *c, hd_pthread_mutex_t *m);
HD_API int hd_pthread_cond_timedwait(hd_pthread_cond_t *c, hd_pthread_mutex_t *m, const struct timespec *until);
HD_API int hd_pthread_cond_clockwait(hd_pthread_cond_t *c, hd_pthread_mutex_t *m, clockid_t clock,
				     const struct timespec *until);
HD_API int hd_pthread_cond_signal(hd_pthread_cond_t *c);
HD_API int hd_pthread_cond_broadcast(hd_pthread_cond_t *c);

HD_API int hd_pthread_rwlockattr_init(hd_pthread_rwlockattr_t *attr);
HD_API int hd_pthread_rwlockattr_destroy(hd_pthread_rwlockattr_t *attr);
HD_API int hd_pthread_rwlockattr_getpshared(const hd_pthread_rwlockattr_t *attr, int *shared);
HD_API int hd_pthread_rwlockattr_setpshared(hd_pthread_rwlockattr_t *attr, int shared);
HD_API int hd_pthread_rwlock_init(hd_pthread_rwlock_t *l, const hd_pthread_rwlockattr_t *attr);
HD_API int hd_pthread_rwlock_destroy(hd_pthread_rwlock_t *l);
HD_API int hd_pthread_rwlock_rdlock(hd_pthread_rwlock_t *l);
HD_API int hd_pthread_rwlock_tryrdlock(hd_pthread_rwlock_t *l);
HD_API int hd_pthread_rwlock_timedrdlock(hd_pthread_rwlock_t *l, const struct timespec *until);
HD_API int hd_pthread_rwlock_clockrdlock(hd_pthread_rwlock_t *l, clockid_t clock, const struct timespec *until);
HD_API int hd_pthread_rwlock_wrlock(hd_pthread_rwlock_t *l);
HD_API int hd_pthread_rwlock_trywrlock(hd_pthread_rwlock_t *l);
HD_API int hd_pthread_rwlock_timedwrlock(hd_pthread_rwlock_t *l, const struct timespec *until);
HD_API int hd_pthread_rwlock_clockwrlock(hd_pthread_rwlock_t *l, clockid_t clock, const struct timespec *until);
HD_API int hd_pthread_rwlock_unlock(hd_pthread_rwlock_t *l);

HD_API int hd_pthread_barrierattr_init(hd_pthread_barrierattr_t *attr);
HD_API int hd_pthread_barrierattr_destroy(hd_pthread_barrierattr_t *attr);
HD_API int hd_pthread_barrierattr_getpshared(const hd_pthread_barrierattr_t *attr, int *shared);
HD_API int hd_pthread_barrierattr_setpshared(hd_pthread_barrierattr_t *attr, int shared);
HD_API int hd_pthread_barrier_init(hd_pthread_barrier_t *b, const hd_pthread_barrierattr_t *attr, unsigned n);
HD_API int hd_pthread_barrier_destroy(hd_pthread_barrier_t *b);
HD_API int hd_pthread_barrier_wait(hd_pthread_barrier_t *b);

HD_API int hd_pthread_spin_init(hd_pthread_spinlock_t *l, int shared);
HD_API int hd_pthread_spin_destroy(hd_pthread_spinlock_t *l);
HD_API int hd_pthread_spin_lock(hd_pthread_spinlock_t *l);
HD_API int hd_pthread_spin_trylock(hd_pthread_spinlock_t *l);
HD_API int hd_pthread_spin_unlock(hd_pthread_spinlock_t *l);

/* ---- semaphores, and sleeping ---- */

HD_API int hd_sem_init(hd_sem_t *s, int shared, unsigned value);
HD_API int hd_sem_destroy(hd_sem_t *s);
HD_API hd_sem_t *hd_sem_open(const char *name, int flags, ...);
HD_API int hd_sem_close(hd_sem_t *s);
HD_API int hd_sem_wait(hd_sem_t *s);
HD_API int hd_sem_trywait(hd_sem_t *s);
HD_API int hd_sem_timedwait(hd_sem_t *s, const struct timespec *until);
HD_API int hd_sem_clockwait(hd_sem_t *s, clockid_t clock, const struct timespec *until);
HD_API int hd_sem_post(hd_sem_t *s);
HD_API int hd_sem_getvalue(hd_sem_t *s, int *value);

HD_API unsigned hd_posix_sleep(unsigned seconds);
HD_API int hd_posix_usleep(unsigned microseconds);
HD_API int hd_posix_nanosleep(const struct timespec *time, struct timespec *rest);
HD_API int hd_posix_clock_nanosleep(clockid_t clock, int flags, const struct timespec *time, struct timespec *rest);

HD_API int hd_posix_sigaction(int signal, const struct sigaction *action, struct sigaction *old);
HD_API void (*hd_posix_signal(int signal, void (*handler)(int)))(int);

/* The caller, which is the program's only thread, is the first process of a runtime from now on; nothing if it is in one already. Files that include this header
 * call it before main. */
HD_API void hd_posix_begin(void);

HD_END

#ifndef HD_PTHREAD_KEEP_NAMES
#include <heddle/pthread_names.h>
#endif

#endif
