/* heddle/pthread_names.h - POSIX's names for what heddle/pthread.h declares. Included by that header, at its end. */
#ifndef HEDDLE_PTHREAD_NAMES_H
#define HEDDLE_PTHREAD_NAMES_H

#ifndef HEDDLE_PTHREAD_H
#error "include heddle/pthread.h"
#endif

static void hd_posix_begin_here(void) __attribute__((constructor, unused));
static void hd_posix_begin_here(void)
{
	hd_posix_begin();
}

/* Programs of POSIX may have a `bool` of their own, and include <stdbool.h> if not. */
#ifndef HD_PTHREAD_KEEP_BOOL
#undef bool
#undef true
#undef false
#undef __bool_true_false_are_defined
#undef _STDBOOL_H  /* gcc's */
#undef __STDBOOL_H /* clang's */
#endif

#undef PTHREAD_MUTEX_INITIALIZER
#define PTHREAD_MUTEX_INITIALIZER HD_PTHREAD_MUTEX(PTHREAD_MUTEX_NORMAL)
#undef PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP
#define PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP HD_PTHREAD_MUTEX(PTHREAD_MUTEX_RECURSIVE)
#undef PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP
#define PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP HD_PTHREAD_MUTEX(PTHREAD_MUTEX_ERRORCHECK)
#undef PTHREAD_ADAPTIVE_MUTEX_INITIALIZER_NP
#define PTHREAD_ADAPTIVE_MUTEX_INITIALIZER_NP HD_PTHREAD_MUTEX(PTHREAD_MUTEX_NORMAL)
#undef PTHREAD_COND_INITIALIZER
#define PTHREAD_COND_INITIALIZER HD_PTHREAD_COND
#undef PTHREAD_RWLOCK_INITIALIZER
#define PTHREAD_RWLOCK_INITIALIZER HD_PTHREAD_RWLOCK
#undef PTHREAD_ONCE_INIT
#define PTHREAD_ONCE_INIT 0

#undef pthread_cleanup_push
#undef pthread_cleanup_pop
#define pthread_cleanup_push(fn, arg)                                                                                          \
	do {                                                                                                                   \
		struct hd_cleanup hd_cleanup_here;                                                                             \
		hd_pthread_cleanup_begin(&hd_cleanup_here, (fn), (arg))
#define pthread_cleanup_pop(run)                                                                                               \
	hd_pthread_cleanup_end(&hd_cleanup_here, (run));                                                                       \
	}                                                                                                                      \
	while (0)

#define pthread_attr_t hd_pthread_attr_t
#define pthread_mutex_t hd_pthread_mutex_t
#define pthread_mutexattr_t hd_pthread_mutexattr_t
#define pthread_cond_t hd_pthread_cond_t
#define pthread_condattr_t hd_pthread_condattr_t
#define pthread_rwlock_t hd_pthread_rwlock_t
#define pthread_rwlockattr_t hd_pthread_rwlockattr_t
#define pthread_barrier_t hd_pthread_barrier_t
#define pthread_barrierattr_t hd_pthread_barrierattr_t
#define pthread_spinlock_t hd_pthread_spinlock_t
#define pthread_once_t hd_pthread_once_t
#define sem_t hd_sem_t

#undef pthread_create
#define pthread_create hd_pthread_create
#undef pthread_join
#define pthread_join hd_pthread_join
#undef pthread_tryjoin_np
#define pthread_tryjoin_np hd_pthread_tryjoin_np
#undef pthread_timedjoin_np
#define pthread_timedjoin_np hd_pthread_timedjoin_np
#undef pthread_clockjoin_np
#define pthread_clockjoin_np hd_pthread_clockjoin_np
#undef pthread_detach
#define pthread_detach hd_pthread_detach
#undef pthread_exit
#define pthread_exit hd_pthread_exit
#undef pthread_self
#define pthread_self hd_pthread_self
#undef pthread_equal
#define pthread_equal hd_pthread_equal
#undef pthread_kill
#define pthread_kill hd_pthread_kill
#undef pthread_setname_np
#define pthread_setname_np hd_pthread_setname_np
#undef pthread_getname_np
#define pthread_getname_np hd_pthread_getname_np
#undef pthread_getattr_np
#define pthread_getattr_np hd_pthread_getattr_np
#undef pthread_getconcurrency
#define pthread_getconcurrency hd_pthread_getconcurrency
#undef pthread_setconcurrency
#define pthread_setconcurrency hd_pthread_setconcurrency
#undef pthread_cancel
#define pthread_cancel hd_pthread_cancel
#undef pthread_testcancel
#define pthread_testcancel hd_pthread_testcancel
#undef pthread_setcancelstate
#define pthread_setcancelstate hd_pthread_setcancelstate
#undef pthread_setcanceltype
#define pthread_setcanceltype hd_pthread_setcanceltype
#undef pthread_getschedparam
#define pthread_getschedparam hd_pthread_getschedparam
#undef pthread_setschedparam
#define pthread_setschedparam hd_pthread_setschedparam
#undef pthread_setschedprio
#define pthread_setschedprio hd_pthread_setschedprio
#undef sched_get_priority_max
#define sched_get_priority_max hd_sched_get_priority_max
#undef sched_get_priority_min
#define sched_get_priority_min hd_sched_get_priority_min
#undef sched_yield
#define sched_yield hd_sched_yield
#undef pthread_attr_init
#define pthread_attr_init hd_pthread_attr_init
#undef pthread_attr_destroy
#define pthread_attr_destroy hd_pthread_attr_destroy
#undef pthread_attr_getdetachstate
#define pthread_attr_getdetachstate hd_pthread_attr_getdetachstate
#undef pthread_attr_setdetachstate
#define pthread_attr_setdetachstate hd_pthread_attr_setdetachstate
#undef pthread_attr_getguardsize
#define pthread_attr_getguardsize hd_pthread_attr_getguardsize
#undef pthread_attr_setguardsize
#define pthread_attr_setguardsize hd_pthread_attr_setguardsize
#undef pthread_attr_getinheritsched
#define pthread_attr_getinheritsched hd_pthread_attr_getinheritsched
#undef pthread_attr_setinheritsched
#define pthread_attr_setinheritsched hd_pthread_attr_setinheritsched
#undef pthread_attr_getschedparam
#define pthread_attr_getschedparam hd_pthread_attr_getschedparam
#undef pthread_attr_setschedparam
#define pthread_attr_setschedparam hd_pthread_attr_setschedparam
#undef pthread_attr_getschedpolicy
#define pthread_attr_getschedpolicy hd_pthread_attr_getschedpolicy
#undef pthread_attr_setschedpolicy
#define pthread_attr_setschedpolicy hd_pthread_attr_setschedpolicy
#undef pthread_attr_getscope
#define pthread_attr_getscope hd_pthread_attr_getscope
#undef pthread_attr_setscope
#define pthread_attr_setscope hd_pthread_attr_setscope
#undef pthread_attr_getstack
#define pthread_attr_getstack hd_pthread_attr_getstack
#undef pthread_attr_setstack
#define pthread_attr_setstack hd_pthread_attr_setstack
#undef pthread_attr_getstacksize
#define pthread_attr_getstacksize hd_pthread_attr_getstacksize
#undef pthread_attr_setstacksize
#define pthread_attr_setstacksize hd_pthread_attr_setstacksize
#undef pthread_key_create
#define pthread_key_create hd_pthread_key_create
#undef pthread_key_delete
#define pthread_key_delete hd_pthread_key_delete
#undef pthread_getspecific
#define pthread_getspecific hd_pthread_getspecific
#undef pthread_setspecific
#define pthread_setspecific hd_pthread_setspecific
#undef pthread_once
#define pthread_once hd_pthread_once
#undef pthread_mutexattr_init
#define pthread_mutexattr_init hd_pthread_mutexattr_init
#undef pthread_mutexattr_destroy
#define pthread_mutexattr_destroy hd_pthread_mutexattr_destroy
#undef pthread_mutexattr_gettype
#define pthread_mutexattr_gettype hd_pthread_mutexattr_gettype
#undef pthread_mutexattr_settype
#define pthread_mutexattr_settype hd_pthread_mutexattr_settype
#undef pthread_mutexattr_getpshared
#define pthread_mutexattr_getpshared hd_pthread_mutexattr_getpshared
#undef pthread_mutexattr_setpshared
#define pthread_mutexattr_setpshared hd_pthread_mutexattr_setpshared
#undef pthread_mutexattr_getprotocol
#define pthread_mutexattr_getprotocol hd_pthread_mutexattr_getprotocol
#undef pthread_mutexattr_setprotocol
#define pthread_mutexattr_setprotocol hd_pthread_mutexattr_setprotocol
#undef pthread_mutexattr_getprioceiling
#define pthread_mutexattr_getprioceiling hd_pthread_mutexattr_getprioceiling
#undef pthread_mutexattr_setprioceiling
#define pthread_mutexattr_setprioceiling hd_pthread_mutexattr_setprioceiling
#undef pthread_mutexattr_getrobust
#define pthread_mutexattr_getrobust hd_pthread_mutexattr_getrobust
#undef pthread_mutexattr_setrobust
#define pthread_mutexattr_setrobust hd_pthread_mutexattr_setrobust
#undef pthread_mutex_init
#define pthread_mutex_init hd_pthread_mutex_init
#undef pthread_mutex_destroy
#define pthread_mutex_destroy hd_pthread_mutex_destroy
#undef pthread_mutex_lock
#define pthread_mutex_lock hd_pthread_mutex_lock
#undef pthread_mutex_trylock
#define pthread_mutex_trylock hd_pthread_mutex_trylock
#undef pthread_mutex_timedlock
#define pthread_mutex_timedlock hd_pthread_mutex_timedlock
#undef pthread_mutex_clocklock
#define pthread_mutex_clocklock hd_pthread_mutex_clocklock
#undef pthread_mutex_unlock
#define pthread_mutex_unlock hd_pthread_mutex_unlock
#undef pthread_condattr_init
#define pthread_condattr_init hd_pthread_condattr_init
#undef pthread_condattr_destroy
#define pthread_condattr_destroy hd_pthread_condattr_destroy
#undef pthread_condattr_getclock
#define pthread_condattr_getclock hd_pthread_condattr_getclock
#undef pthread_condattr_setclock
#define pthread_condattr_setclock hd_pthread_condattr_setclock
#undef pthread_condattr_getpshared
#define pthread_condattr_getpshared hd_pthread_condattr_getpshared
#undef pthread_condattr_setpshared
#define pthread_condattr_setpshared hd_pthread_condattr_setpshared
#undef pthread_cond_init
#define pthread_cond_init hd_pthread_cond_init
#undef pthread_cond_destroy
#define pthread_cond_destroy hd_pthread_cond_destroy
#undef pthread_cond_wait
#define pthread_cond_wait hd_pthread_cond_wait
#undef pthread_cond_timedwait
#define pthread_cond_timedwait hd_pthread_cond_timedwait
#undef pthread_cond_clockwait
#define pthread_cond_clockwait hd_pthread_cond_clockwait
#undef pthread_cond_signal
#define pthread_cond_signal hd_pthread_cond_signal
#undef pthread_cond_broadcast
#define pthread_cond_broadcast hd_pthread_cond_broadcast
#undef pthread_rwlockattr_init
#define pthread_rwlockattr_init hd_pthread_rwlockattr_init
#undef pthread_rwlockattr_destroy
#define pthread_rwlockattr_destroy hd_pthread_rwlockattr_destroy
#undef pthread_rwlockattr_getpshared
#define pthread_rwlockattr_getpshared hd_pthread_rwlockattr_getpshared
#undef pthread_rwlockattr_setpshared
#define pthread_rwlockattr_setpshared hd_pthread_rwlockattr_setpshared
#undef pthread_rwlock_init
#define pthread_rwlock_init hd_pthread_rwlock_init
#undef pthread_rwlock_destroy
#define pthread_rwlock_destroy hd_pthread_rwlock_destroy
#undef pthread_rwlock_rdlock
#define pthread_rwlock_rdlock hd_pthread_rwlock_rdlock
#undef pthread_rwlock_tryrdlock
#define pthread_rwlock_tryrdlock hd_pthread_rwlock_tryrdlock
#undef pthread_rwlock_timedrdlock
#define pthread_rwlock_timedrdlock hd_pthread_rwlock_timedrdlock
#undef pthread_rwlock_clockrdlock
#define pthread_rwlock_clockrdlock hd_pthread_rwlock_clockrdlock
#undef pthread_rwlock_wrlock
#define pthread_rwlock_wrlock hd_pthread_rwlock_wrlock
#undef pthread_rwlock_trywrlock
#define pthread_rwlock_trywrlock hd_pthread_rwlock_trywrlock
#undef pthread_rwlock_timedwrlock
#define pthread_rwlock_timedwrlock hd_pthread_rwlock_timedwrlock
#undef pthread_rwlock_clockwrlock
#define pthread_rwlock_clockwrlock hd_pthread_rwlock_clockwrlock
#undef pthread_rwlock_unlock
#define pthread_rwlock_unlock hd_pthread_rwlock_unlock
#undef pthread_barrierattr_init
#define pthread_barrierattr_init hd_pthread_barrierattr_init
#undef pthread_barrierattr_destroy
#define pthread_barrierattr_destroy hd_pthread_barrierattr_destroy
#undef pthread_barrierattr_getpshared
#define pthread_barrierattr_getpshared hd_pthread_barrierattr_getpshared
#undef pthread_barrierattr_setpshared
#define pthread_barrierattr_setpshared hd_pthread_barrierattr_setpshared
#undef pthread_barrier_init
#define pthread_barrier_init hd_pthread_barrier_init
#undef pthread_barrier_destroy
#define pthread_barrier_destroy hd_pthread_barrier_destroy
#undef pthread_barrier_wait
#define pthread_barrier_wait hd_pthread_barrier_wait
#undef pthread_spin_init
#define pthread_spin_init hd_pthread_spin_init
#undef pthread_spin_destroy
#define pthread_spin_destroy hd_pthread_spin_destroy
#undef pthread_spin_lock
#define pthread_spin_lock hd_pthread_spin_lock
#undef pthread_spin_trylock
#define pthread_spin_trylock hd_pthread_spin_trylock
#undef pthread_spin_unlock
#define pthread_spin_unlock hd_pthread_spin_unlock
#undef sem_init
#define sem_init hd_sem_init
#undef sem_destroy
#define sem_destroy hd_sem_destroy
#undef sem_open
#define sem_open hd_sem_open
#undef sem_close
#define sem_close hd_sem_close
#undef sem_wait
#define sem_wait hd_sem_wait
#undef sem_trywait
#define sem_trywait hd_sem_trywait
#undef sem_timedwait
#define sem_timedwait hd_sem_timedwait
#undef sem_clockwait
#define sem_clockwait hd_sem_clockwait
#undef sem_post
#define sem_post hd_sem_post
#undef sem_getvalue
#define sem_getvalue hd_sem_getvalue
#undef sleep
#define sleep hd_posix_sleep
#undef usleep
#define usleep hd_posix_usleep
#undef nanosleep
#define nanosleep hd_posix_nanosleep
#undef clock_nanosleep
#define clock_nanosleep hd_posix_clock_nanosleep
#undef sigaction
#define sigaction(signal, action, old) hd_posix_sigaction(signal, action, old) /* not the struct */
#undef signal
#define signal(number, handler) hd_posix_signal(number, handler)

/* What is not served. These names are in no library: a program that uses one does not link. */
#undef pthread_attr_getaffinity_np
#define pthread_attr_getaffinity_np heddle_does_not_serve_pthread_attr_getaffinity_np
#undef pthread_attr_setaffinity_np
#define pthread_attr_setaffinity_np heddle_does_not_serve_pthread_attr_setaffinity_np
#undef pthread_getaffinity_np
#define pthread_getaffinity_np heddle_does_not_serve_pthread_getaffinity_np
#undef pthread_setaffinity_np
#define pthread_setaffinity_np heddle_does_not_serve_pthread_setaffinity_np
#undef pthread_getcpuclockid
#define pthread_getcpuclockid heddle_does_not_serve_pthread_getcpuclockid
#undef pthread_mutex_consistent
#define pthread_mutex_consistent heddle_does_not_serve_pthread_mutex_consistent
#undef pthread_mutex_getprioceiling
#define pthread_mutex_getprioceiling heddle_does_not_serve_pthread_mutex_getprioceiling
#undef pthread_mutex_setprioceiling
#define pthread_mutex_setprioceiling heddle_does_not_serve_pthread_mutex_setprioceiling
#undef pthread_sigqueue
#define pthread_sigqueue heddle_does_not_serve_pthread_sigqueue
#undef pthread_rwlockattr_getkind_np
#define pthread_rwlockattr_getkind_np heddle_does_not_serve_pthread_rwlockattr_getkind_np
#undef pthread_rwlockattr_setkind_np
#define pthread_rwlockattr_setkind_np heddle_does_not_serve_pthread_rwlockattr_setkind_np
#undef pthread_attr_getsigmask_np
#define pthread_attr_getsigmask_np heddle_does_not_serve_pthread_attr_getsigmask_np
#undef pthread_attr_setsigmask_np
#define pthread_attr_setsigmask_np heddle_does_not_serve_pthread_attr_setsigmask_np
#undef pthread_getattr_default_np
#define pthread_getattr_default_np heddle_does_not_serve_pthread_getattr_default_np
#undef pthread_setattr_default_np
#define pthread_setattr_default_np heddle_does_not_serve_pthread_setattr_default_np
#undef pthread_cleanup_push_defer_np
#define pthread_cleanup_push_defer_np heddle_does_not_serve_pthread_cleanup_push_defer_np
#undef pthread_cleanup_pop_restore_np
#define pthread_cleanup_pop_restore_np heddle_does_not_serve_pthread_cleanup_pop_restore_np
#undef pthread_yield
#define pthread_yield heddle_does_not_serve_pthread_yield

#endif
