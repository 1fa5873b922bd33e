/* posix/threads.c - a program of POSIX threads, compiled with heddle's header: what each call answers, and that threads are processes.
 *
 * It includes nothing of heddle's by itself: the build says `-include heddle/pthread.h`. */
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define CHECK(cond)                                                                                                            \
	do {                                                                                                                   \
		if (!(cond)) {                                                                                                 \
			fprintf(stderr, "%s:%d: CHECK(%s), errno %d\n", __FILE__, __LINE__, #cond, errno);                     \
			abort();                                                                                               \
		}                                                                                                              \
	} while (0)

#define PEOPLE 50

static __thread long mine = 5;
static const struct timespec past = { 1, 0 }, never = { LONG_MAX / 2, 0 }, wrong = { 1, 1000000000 };

static void make(pthread_t *t, void *(*fn)(void *), void *arg)
{
	CHECK(pthread_create(t, NULL, fn, arg) == 0);
}

static void *join(pthread_t t)
{
	void *result = NULL;

	CHECK(pthread_join(t, &result) == 0);
	return result;
}

/* ---- threads ---- */

static pthread_t self;

static void *be(void *arg)
{
	CHECK(mine == 5 && errno == 0);
	mine = (long)arg;
	errno = (int)mine;
	for (int i = 0; i < 10; i++) {
		CHECK(sched_yield() == 0);
		CHECK(mine == (long)arg && errno == (int)mine);
	}
	self = pthread_self();
	CHECK(pthread_join(pthread_self(), NULL) == EDEADLK);
	if (mine % 2 == 0)
		pthread_exit(arg);
	return arg;
}

static void *stop(void *arg)
{
	CHECK(sem_wait(arg) == 0);
	return NULL;
}

static void test_threads(void)
{
	pthread_t t[PEOPLE];
	pthread_attr_t attr;
	char name[16];
	static sem_t s; /* a thread that is detached may use it later */

	for (long i = 0; i < PEOPLE; i++)
		make(&t[i], be, (void *)i);
	for (long i = 0; i < PEOPLE; i++)
		CHECK(join(t[i]) == (void *)i);
	CHECK(mine == 5 && !pthread_equal(self, pthread_self()));
	CHECK(pthread_join(t[0], NULL) == ESRCH && pthread_detach(t[0]) == ESRCH && pthread_cancel(t[0]) == ESRCH);
	CHECK(pthread_kill(t[0], 0) == ESRCH && pthread_kill(pthread_self(), 0) == 0 &&
	      pthread_kill(pthread_self(), -1) == EINVAL);

	CHECK(sem_init(&s, 0, 0) == 0);
	CHECK(pthread_attr_init(&attr) == 0 && pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED) == 0);
	CHECK(pthread_create(&t[0], &attr, stop, &s) == 0);
	CHECK(pthread_join(t[0], NULL) == EINVAL && pthread_detach(t[0]) == EINVAL);
	CHECK(sem_post(&s) == 0);
	make(&t[1], stop, &s);
	CHECK(pthread_tryjoin_np(t[1], NULL) == EBUSY);
	CHECK(pthread_timedjoin_np(t[1], NULL, &past) == ETIMEDOUT && pthread_timedjoin_np(t[1], NULL, &wrong) == EINVAL);
	CHECK(pthread_setname_np(t[1], "a name of 15 by") == 0 && pthread_setname_np(t[1], "a name of 16 byt") == ERANGE);
	CHECK(pthread_getname_np(t[1], name, sizeof name) == 0 && strcmp(name, "a name of 15 by") == 0);
	CHECK(sem_post(&s) == 0);
	CHECK(pthread_clockjoin_np(t[1], NULL, CLOCK_MONOTONIC, &never) == 0);
	CHECK(pthread_attr_setdetachstate(&attr, 77) == EINVAL && pthread_attr_setstacksize(&attr, 1) == EINVAL);
	CHECK(pthread_attr_destroy(&attr) == 0);
}

static void *tell_policy(void *arg)
{
	struct sched_param param;
	int policy;

	CHECK(pthread_getschedparam(pthread_self(), &policy, &param) == 0);
	(void)arg;
	return (void *)(long)(policy * 1000 + param.sched_priority);
}

static void test_priorities(void)
{
	struct sched_param param = { .sched_priority = 7 };
	pthread_attr_t attr;
	pthread_t t;
	int policy;

	CHECK(sched_get_priority_max(SCHED_FIFO) - sched_get_priority_min(SCHED_FIFO) >= 31);
	CHECK(pthread_attr_init(&attr) == 0 && pthread_attr_setinheritsched(&attr, PTHREAD_EXPLICIT_SCHED) == 0);
	CHECK(pthread_attr_setschedpolicy(&attr, SCHED_RR) == 0 && pthread_attr_setschedparam(&attr, &param) == 0);
	CHECK(pthread_create(&t, &attr, tell_policy, NULL) == 0);
	CHECK(join(t) == (void *)(long)(SCHED_RR * 1000 + 7));
	param.sched_priority = 1000;
	CHECK(pthread_attr_setschedparam(&attr, &param) == EINVAL && pthread_attr_setschedpolicy(&attr, 77) == EINVAL);
	CHECK(pthread_setschedparam(pthread_self(), SCHED_FIFO, &param) == EINVAL);
	param.sched_priority = 9;
	CHECK(pthread_setschedparam(pthread_self(), SCHED_FIFO, &param) == 0 && pthread_setschedprio(pthread_self(), 3) == 0);
	CHECK(pthread_getschedparam(pthread_self(), &policy, &param) == 0 && policy == SCHED_FIFO && param.sched_priority == 3);
	make(&t, tell_policy, NULL); /* inherits */
	CHECK(join(t) == (void *)(long)(SCHED_FIFO * 1000 + 3));
	param.sched_priority = 0;
	CHECK(pthread_setschedparam(pthread_self(), SCHED_OTHER, &param) == 0);
}

/* ---- mutexes and conditions ---- */

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER, checked = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP,
		       recursive = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static long count;

static void *try_others(void *arg)
{
	CHECK(pthread_mutex_trylock(&mutex) == EBUSY && pthread_mutex_trylock(&checked) == EBUSY);
	CHECK(pthread_mutex_unlock(&checked) == EPERM && pthread_mutex_unlock(&recursive) == EPERM);
	CHECK(pthread_mutex_timedlock(&recursive, &past) == ETIMEDOUT && pthread_mutex_timedlock(&recursive, &wrong) == EINVAL);
	CHECK(pthread_mutex_clocklock(&recursive, CLOCK_MONOTONIC, &past) == ETIMEDOUT);
	return arg;
}

static void *increment(void *arg)
{
	for (int i = 0; i < 100; i++) {
		CHECK(pthread_mutex_lock(&mutex) == 0);
		long before = count;
		if (i % 10 == 0)
			sched_yield();
		count = before + 1;
		CHECK(pthread_cond_signal(&cond) == 0);
		CHECK(pthread_mutex_unlock(&mutex) == 0);
	}
	return arg;
}

static void test_mutexes(void)
{
	pthread_mutexattr_t attr;
	pthread_mutex_t m;
	pthread_t t[PEOPLE];

	CHECK(pthread_mutex_lock(&mutex) == 0 && pthread_mutex_lock(&checked) == 0 && pthread_mutex_lock(&recursive) == 0);
	CHECK(pthread_mutex_trylock(&mutex) == EBUSY && pthread_mutex_timedlock(&mutex, &past) == ETIMEDOUT);
	CHECK(pthread_mutex_lock(&checked) == EDEADLK && pthread_mutex_trylock(&checked) == EBUSY);
	CHECK(pthread_mutex_lock(&recursive) == 0 && pthread_mutex_trylock(&recursive) == 0);
	make(&t[0], try_others, NULL);
	join(t[0]);
	CHECK(pthread_mutex_destroy(&mutex) == EBUSY);
	for (int i = 0; i < 3; i++)
		CHECK(pthread_mutex_unlock(&recursive) == 0);
	CHECK(pthread_mutex_unlock(&recursive) == EPERM);
	CHECK(pthread_mutex_unlock(&mutex) == 0 && pthread_mutex_unlock(&checked) == 0);

	for (int i = 0; i < PEOPLE; i++)
		make(&t[i], increment, NULL);
	CHECK(pthread_mutex_lock(&mutex) == 0);
	while (count < 100 * PEOPLE)
		CHECK(pthread_cond_wait(&cond, &mutex) == 0);
	CHECK(pthread_mutex_unlock(&mutex) == 0);
	for (int i = 0; i < PEOPLE; i++)
		join(t[i]);
	CHECK(count == 100 * PEOPLE);

	CHECK(pthread_mutexattr_init(&attr) == 0 && pthread_mutexattr_settype(&attr, 77) == EINVAL);
	CHECK(pthread_mutexattr_setprotocol(&attr, PTHREAD_PRIO_INHERIT) == 0 && pthread_mutex_init(&m, &attr) == 0);
	CHECK(pthread_mutex_lock(&m) == 0 && pthread_mutex_unlock(&m) == 0 && pthread_mutex_destroy(&m) == 0);
	CHECK(pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST) == 0 && pthread_mutex_init(&m, &attr) == ENOTSUP);
}

static void test_conditions(void)
{
	pthread_condattr_t attr;
	pthread_cond_t c;

	CHECK(pthread_condattr_init(&attr) == 0 && pthread_condattr_setclock(&attr, CLOCK_MONOTONIC) == 0);
	CHECK(pthread_condattr_setclock(&attr, CLOCK_PROCESS_CPUTIME_ID) == EINVAL);
	CHECK(pthread_cond_init(&c, &attr) == 0 && pthread_mutex_lock(&checked) == 0);
	CHECK(pthread_cond_timedwait(&c, &checked, &past) == ETIMEDOUT &&
	      pthread_cond_timedwait(&c, &checked, &wrong) == EINVAL);
	CHECK(pthread_cond_clockwait(&c, &checked, CLOCK_REALTIME, &past) == ETIMEDOUT);
	CHECK(pthread_mutex_unlock(&checked) == 0 && pthread_cond_wait(&c, &checked) == EPERM);
	CHECK(pthread_cond_signal(&c) == 0 && pthread_cond_broadcast(&c) == 0 && pthread_cond_destroy(&c) == 0);
}

/* ---- the other locks ---- */

static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_barrier_t barrier;
static pthread_once_t once = PTHREAD_ONCE_INIT, half = PTHREAD_ONCE_INIT;
static int inits, serials;

static void *try_rwlock(void *arg)
{
	CHECK(pthread_rwlock_tryrdlock(&rwlock) == EBUSY && pthread_rwlock_trywrlock(&rwlock) == EBUSY);
	CHECK(pthread_rwlock_timedrdlock(&rwlock, &past) == ETIMEDOUT && pthread_rwlock_timedwrlock(&rwlock, &wrong) == EINVAL);
	return arg;
}

static void init(void)
{
	sched_yield();
	inits++;
}

static void *meet(void *arg)
{
	CHECK(pthread_once(&once, init) == 0 && inits == 1);
	int answer = pthread_barrier_wait(&barrier);
	CHECK(answer == 0 || answer == PTHREAD_BARRIER_SERIAL_THREAD);
	__atomic_add_fetch(&serials, answer != 0, __ATOMIC_SEQ_CST);
	return arg;
}

static void init_half(void)
{
	if (++inits == 2)
		pthread_exit(NULL);
}

static void *do_half(void *arg)
{
	CHECK(pthread_once(&half, init_half) == 0);
	return arg;
}

static void test_locks(void)
{
	pthread_t t[8];
	pthread_spinlock_t spin;

	CHECK(pthread_rwlock_wrlock(&rwlock) == 0 && pthread_rwlock_wrlock(&rwlock) == EDEADLK);
	CHECK(pthread_rwlock_tryrdlock(&rwlock) == EBUSY && pthread_rwlock_destroy(&rwlock) == EBUSY);
	make(&t[0], try_rwlock, NULL);
	join(t[0]);
	CHECK(pthread_rwlock_unlock(&rwlock) == 0 && pthread_rwlock_rdlock(&rwlock) == 0 &&
	      pthread_rwlock_rdlock(&rwlock) == 0);
	CHECK(pthread_rwlock_unlock(&rwlock) == 0 && pthread_rwlock_unlock(&rwlock) == 0 &&
	      pthread_rwlock_destroy(&rwlock) == 0);

	CHECK(pthread_barrier_init(&barrier, NULL, 0) == EINVAL && pthread_barrier_init(&barrier, NULL, 8) == 0);
	for (int i = 0; i < 8; i++)
		make(&t[i], meet, NULL);
	for (int i = 0; i < 8; i++)
		join(t[i]);
	CHECK(serials == 1 && inits == 1 && pthread_barrier_destroy(&barrier) == 0);
	make(&t[0], do_half, NULL); /* ends half-way: the next one does it */
	join(t[0]);
	CHECK(pthread_once(&half, init_half) == 0 && inits == 3 && pthread_once(&half, init_half) == 0 && inits == 3);

	CHECK(pthread_spin_init(&spin, PTHREAD_PROCESS_PRIVATE) == 0 && pthread_spin_lock(&spin) == 0);
	CHECK(pthread_spin_trylock(&spin) == EBUSY && pthread_spin_lock(&spin) == EDEADLK && pthread_spin_unlock(&spin) == 0 &&
	      pthread_spin_destroy(&spin) == 0);
}

/* ---- keys, cancellation ---- */

static pthread_key_t key, other;
static int destroyed, cleaned;

static void destroy(void *value)
{
	CHECK(pthread_getspecific(key) == NULL && mine == 6);
	destroyed++;
	if ((long)value > 1) /* set again: another round */
		CHECK(pthread_setspecific(key, (void *)((long)value - 1)) == 0);
}

static void clean(void *arg)
{
	CHECK(pthread_getspecific(key) != NULL);
	cleaned = cleaned * 10 + (int)(long)arg;
}

static void *be_cancelled(void *arg)
{
	int state;

	mine = 6;
	CHECK(pthread_setspecific(key, (void *)3) == 0);
	CHECK(pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state) == 0 && state == PTHREAD_CANCEL_ENABLE);
	CHECK(pthread_setcancelstate(77, NULL) == EINVAL && pthread_setcanceltype(77, NULL) == EINVAL);
	CHECK(sem_post(arg) == 0);
	usleep(1000);
	pthread_testcancel();
	pthread_cleanup_push(clean, (void *)1);
	pthread_cleanup_push(clean, (void *)2);
	pthread_cleanup_push(clean, (void *)3);
	pthread_cleanup_pop(1);
	CHECK(pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL) == 0);
	sleep(1000);
	pthread_cleanup_pop(0);
	pthread_cleanup_pop(0);
	return arg;
}

static void unlock(void *m)
{
	CHECK(pthread_mutex_unlock(m) == 0); /* a cancelled wait has the mutex again */
	cleaned++;
}

static void *wait_for_ever(void *arg)
{
	CHECK(pthread_mutex_lock(&checked) == 0);
	pthread_cleanup_push(unlock, &checked);
	CHECK(sem_post(arg) == 0);
	for (;;)
		pthread_cond_wait(&cond, &checked);
	pthread_cleanup_pop(1);
	return NULL;
}

static void test_ends(void)
{
	pthread_t t;
	sem_t s;

	CHECK(sem_init(&s, 0, 0) == 0 && pthread_key_create(&key, destroy) == 0 && pthread_key_create(&other, NULL) == 0);
	CHECK(pthread_getspecific(key) == NULL && pthread_setspecific(other, &s) == 0 && pthread_getspecific(other) == &s);
	CHECK(pthread_key_delete(other) == 0 && pthread_key_delete(other) == EINVAL &&
	      pthread_setspecific(other, &s) == EINVAL);
	make(&t, be_cancelled, &s);
	CHECK(sem_wait(&s) == 0 && pthread_cancel(t) == 0);
	CHECK(join(t) == PTHREAD_CANCELED);
	CHECK(destroyed == 3 && cleaned == 321);
	cleaned = 0;
	make(&t, wait_for_ever, &s);
	CHECK(sem_wait(&s) == 0 && pthread_mutex_lock(&checked) == 0 && pthread_mutex_unlock(&checked) == 0); /* it waits */
	CHECK(pthread_cancel(t) == 0 && join(t) == PTHREAD_CANCELED && cleaned == 1);
	CHECK(pthread_key_delete(key) == 0);
}

/* ---- semaphores, sleep, signals, fork ---- */

static sem_t from_handler;

static void post(int signal)
{
	CHECK(signal == SIGUSR1 && sem_post(&from_handler) == 0);
}

/* The handler runs on any kernel thread, while that does anything. */
static void test_signals(void)
{
	struct sigaction action = { .sa_handler = post }, old;
	pthread_t t[8];

	CHECK(sem_init(&from_handler, 0, 0) == 0 && sigaction(SIGUSR1, &action, NULL) == 0);
	for (int i = 0; i < 8; i++)
		make(&t[i], stop, &from_handler);
	for (int i = 0; i < 8; i++)
		while (pthread_tryjoin_np(t[i], NULL) == EBUSY) { /* two signals that are pending are one */
			CHECK(kill(getpid(), SIGUSR1) == 0);
			usleep(100); /* workers sleep */
		}
	CHECK(sigaction(SIGUSR1, NULL, &old) == 0 && old.sa_handler == post);
	CHECK(signal(SIGUSR1, SIG_DFL) == post);
}

static void test_semaphores(void)
{
	sem_t s;
	int value;

	CHECK(sem_init(&s, 0, (unsigned)SEM_VALUE_MAX + 1) == -1 && errno == EINVAL);
	CHECK(sem_init(&s, 0, 1) == 0 && sem_wait(&s) == 0 && sem_trywait(&s) == -1 && errno == EAGAIN);
	CHECK(sem_timedwait(&s, &past) == -1 && errno == ETIMEDOUT);
	CHECK(sem_timedwait(&s, &wrong) == -1 && errno == EINVAL);
	CHECK(sem_post(&s) == 0 && sem_getvalue(&s, &value) == 0 && value == 1 && sem_timedwait(&s, &wrong) == 0);
	CHECK(sem_destroy(&s) == 0);
}

static void test_sleeps(void)
{
	const struct timespec little = { 0, 1000 };
	struct timespec now;

	CHECK(nanosleep(&wrong, NULL) == -1 && errno == EINVAL);
	CHECK(nanosleep(&little, NULL) == 0 && usleep(1) == 0 && sleep(0) == 0);
	CHECK(clock_nanosleep(CLOCK_MONOTONIC, 0, &wrong, NULL) == EINVAL);
	CHECK(clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &past, NULL) == 0);
	CHECK(clock_gettime(CLOCK_MONOTONIC, &now) == 0 && clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &now, NULL) == 0);
}

static void *answer(void *arg)
{
	return arg;
}

/* Its caller is the first thread of the child, and may start others. */
static void *fork_and_go_on(void *arg)
{
	pthread_t t;
	int status;

	mine = 77;
	pid_t child = fork();
	CHECK(child >= 0);
	if (child == 0) {
		CHECK(mine == 77);
		make(&t, answer, &t);
		CHECK(join(t) == &t && mine == 77);
		_exit(7);
	}
	CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 7);
	child = fork();
	CHECK(child >= 0);
	if (child == 0)
		pthread_exit(NULL); /* its only thread */
	CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
	return arg;
}

static void test_forks(void)
{
	pthread_t t;

	fork_and_go_on(NULL);
	mine = 5;
	make(&t, fork_and_go_on, NULL);
	join(t);
}

static void *last(void *arg)
{
	CHECK(sem_wait(arg) == 0);
	usleep(2000);
	printf("the last thread\n");
	return NULL;
}

int main(void)
{
	static sem_t s;
	pthread_t t;

	test_threads();
	test_priorities();
	test_mutexes();
	test_conditions();
	test_locks();
	test_ends();
	test_semaphores();
	test_sleeps();
	test_signals();
	test_forks();
	CHECK(sem_init(&s, 0, 0) == 0);
	make(&t, last, &s);
	CHECK(pthread_detach(t) == 0 && sem_post(&s) == 0);
	pthread_exit(NULL); /* the program ends with its last thread, well */
}
