/* life/own_tls.c - processes with thread-local storage of their own: what belongs to a thread in the C library belongs to them, wherever they run. */
#define _GNU_SOURCE
#define HD_KEEP_ERRNO
#include "sched/workers.h"

#include <locale.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "os/fault.h"

#define PEOPLE 40

static __thread long number = 7;
static __thread char text[100] = "as it was linked";

static const struct hd_spawn own = { .own_tls = true };

static void *answer(void *arg)
{
	return arg;
}

/* Sanitizers, emulators and the simulated runtime have none; a program is told so by an error. */
static bool is_there(void)
{
	hd_pid pid = hd_spawn_with(&own, answer, NULL);

	if (pid > 0)
		CHECK_EQ(hd_join(pid, NULL, HD_FOREVER), 0);
	else
		CHECK_EQ(pid, -ENOTSUP);
	return pid > 0;
}

#define NEEDED()                                                                                                               \
	if (!is_there())                                                                                                       \
	SKIP("no process can have thread-local storage of its own here")

/* The C library's errno, by an address that the compiler keeps. */
static int *plain_errno(void)
{
	return __errno_location();
}

static void spawn_and_join(const struct hd_spawn *how, hd_entry entry, int n)
{
	hd_pid pids[PEOPLE];

	CHECK(n <= PEOPLE);
	for (long i = 0; i < n; i++) {
		pids[i] = hd_spawn_with(how, entry, (void *)(i + 1));
		CHECK(pids[i] > 0);
	}
	for (int i = 0; i < n; i++)
		CHECK_EQ(hd_join(pids[i], NULL, HD_FOREVER), 0);
}

HD_PROCESS_TEST(own_tls_is_there_where_it_should_be)
{
	bool expected = !HD_UNDER_ASAN && !HD_UNDER_TSAN && !hd_is_simulated() && !hd_is_emulated();

	if (expected && getenv("LD_PRELOAD") == NULL)
		CHECK(is_there());
}

HD_PROCESS_TEST(own_tls_is_not_for_machines)
{
	struct hd_machine_ops ops = { .interpret = NULL };
	struct hd_spawn machine = { .own_tls = true, .machine = &ops };

	CHECK_EQ(hd_spawn_with(&machine, NULL, NULL), -EINVAL);
}

static struct hd_semaphore turn;
static long moved;

/* Goes round the workers; whatever others do there, its variables are its own, and where they were. */
static void *move_about(void *arg)
{
	long me = (long)arg;
	long *volatile where = &number;
	int *volatile error = plain_errno();
	int worker = worker_of(hd_self());

	CHECK_EQ(number, 7);
	CHECK_STR(text, "as it was linked");
	CHECK_EQ(*error, 0);
	number = me;
	snprintf(text, sizeof text, "of %ld", me);
	for (int i = 0; i < 100; i++) {
		char expected[30];
		*error = (int)me + i;
		if (i % 3 == 0)
			CHECK_EQ(hd_semaphore_signal(&turn), 0);
		else if (i % 3 == 1)
			CHECK_EQ(hd_semaphore_wait(&turn, HD_FOREVER), 0);
		else
			CHECK_EQ(hd_yield(), 0);
		CHECK_EQ(*error, me + i);
		CHECK_EQ(errno, me + i);
		CHECK_EQ(number, me);
		CHECK_EQ(&number, where);
		snprintf(expected, sizeof expected, "of %ld", me);
		CHECK_STR(text, expected);
		free(malloc((size_t)(8 * me)));
	}
	if (worker != worker_of(hd_self()))
		add(&moved, 1);
	return NULL;
}

HD_WORKERS_TEST(own_tls_moves_with_its_process)
{
	(void)workers;
	NEEDED();
	hd_semaphore_init(&turn, PEOPLE);
	for (int round = 0; another_round(round, 10); round++) /* from the second on, storages are used again */
		spawn_and_join(&own, move_about, PEOPLE);
}

/* Ordinary processes find what is the kernel thread's, and nobody else's. */
static void *stay_ordinary(void *arg)
{
	long me = (long)arg;

	CHECK_EQ(hd_pin(), 0);
	for (int i = 0; i < 100; i++) {
		CHECK(number == 7 || number >= 1000);
		errno = (int)me;
		CHECK_EQ(hd_yield(), 0);
		CHECK_EQ(errno, me);
		number = 1000 + me;
	}
	return NULL;
}

HD_WORKERS_TEST(own_tls_leaves_the_threads_storage_alone)
{
	hd_pid pids[2 * PEOPLE];

	(void)workers;
	NEEDED();
	hd_semaphore_init(&turn, PEOPLE);
	for (long i = 0; i < PEOPLE; i++) {
		pids[2 * i] = hd_spawn_with(&own, move_about, (void *)(i + 1));
		pids[2 * i + 1] = hd_spawn(stay_ordinary, (void *)(i + 1));
	}
	for (int i = 0; i < 2 * PEOPLE; i++)
		CHECK_EQ(hd_join(pids[i], NULL, HD_FOREVER), 0);
}

/* ---- what the C library keeps ---- */

static void *use_locale(void *arg)
{
	locale_t mine = newlocale(LC_ALL_MASK, "C", NULL);

	CHECK(mine != NULL);
	CHECK_EQ(uselocale(NULL), LC_GLOBAL_LOCALE);
	CHECK_EQ(uselocale(mine), LC_GLOBAL_LOCALE);
	for (int i = 0; i < 20; i++) {
		CHECK_EQ(hd_yield(), 0);
		CHECK_EQ(uselocale(NULL), mine);
	}
	if ((long)arg % 2 == 0) { /* others end with it: the next process that has the storage finds the program's */
		uselocale(LC_GLOBAL_LOCALE);
		freelocale(mine);
	}
	return NULL;
}

HD_WORKERS_TEST(own_tls_has_a_locale_of_its_own)
{
	(void)workers;
	NEEDED();
	spawn_and_join(&own, use_locale, PEOPLE);
	spawn_and_join(&own, use_locale, PEOPLE);
}

static FILE *file;
static pthread_mutex_t recursive = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static long inside;

/* The owner is the process, not the thread on which it has locked. */
static void *own_locks(void *arg)
{
	for (int i = 0; i < 20; i++) {
		while (pthread_mutex_trylock(&recursive) != 0)
			CHECK_EQ(hd_yield(), 0);
		CHECK_EQ(pthread_mutex_lock(&recursive), 0);
		CHECK_EQ(ftrylockfile(file), 0);
		CHECK_EQ(add(&inside, 1), 1);
		CHECK_EQ(hd_yield(), 0);
		CHECK(fputc('x', file) == 'x');
		CHECK_EQ(add(&inside, -1), 0);
		funlockfile(file);
		CHECK_EQ(pthread_mutex_unlock(&recursive), 0);
		CHECK_EQ(pthread_mutex_unlock(&recursive), 0);
	}
	return arg;
}

HD_WORKERS_TEST(own_tls_owns_locks_of_the_c_library)
{
	(void)workers;
	NEEDED();
	file = tmpfile();
	CHECK(file != NULL);
	spawn_and_join(&own, own_locks, 10);
	CHECK_EQ(ftell(file), 200);
	CHECK_EQ(fclose(file), 0);
}

static pthread_key_t key;

static void *use_key(void *arg)
{
	CHECK_EQ(pthread_getspecific(key), NULL);
	CHECK_EQ(pthread_setspecific(key, arg), 0);
	CHECK_EQ(hd_yield(), 0);
	CHECK_EQ(pthread_getspecific(key), arg);
	return NULL;
}

HD_WORKERS_TEST(own_tls_has_values_of_keys)
{
	(void)workers;
	NEEDED();
	CHECK_EQ(pthread_key_create(&key, NULL), 0);
	spawn_and_join(&own, use_key, PEOPLE);
	spawn_and_join(&own, use_key, PEOPLE);
	CHECK_EQ(pthread_key_delete(key), 0);
}

/* ---- the end ---- */

extern int __cxa_thread_atexit_impl(void (*fn)(void *), void *arg, void *module);
static long destroyed;

static void destroy(void *arg)
{
	CHECK_EQ(number, (long)arg);
	CHECK_EQ(hd_yield(), 0);
	CHECK_EQ(number, (long)arg);
	add(&destroyed, 1);
}

static void *have_destructors(void *arg)
{
	static char module;

	number = (long)arg;
	CHECK_EQ(__cxa_thread_atexit_impl(destroy, arg, &module), 0);
	CHECK_EQ(hd_yield(), 0);
	CHECK_EQ(__cxa_thread_atexit_impl(destroy, arg, &module), 0);
	if ((long)arg % 3 == 0)
		CHECK_EQ(hd_exit(arg), 0);
	if ((long)arg % 3 == 1)
		CHECK_EQ(hd_sleep(HD_SEC(1000)), -ECANCELED); /* is terminated meanwhile */
	return arg;
}

HD_WORKERS_TEST(own_tls_destructors_run_at_every_end)
{
	hd_pid pids[PEOPLE];

	(void)workers;
	NEEDED();
	set(&destroyed, 0);
	for (long i = 0; i < PEOPLE; i++)
		pids[i] = hd_spawn_with(&own, have_destructors, (void *)i);
	for (int i = 0; i < PEOPLE; i++) {
		if (i % 3 == 1) {
			struct hd_process_info info = { .state = HD_READY };
			do {
				CHECK_EQ(hd_yield(), 0);
				CHECK_EQ(hd_process_info(pids[i], &info), 0);
			} while (info.state != HD_WAITING || info.why != HD_WAIT_SLEEP);
			CHECK_EQ(hd_terminate(pids[i], HD_FOREVER), 0);
		}
		CHECK_EQ(hd_join(pids[i], NULL, HD_FOREVER), 0);
	}
	CHECK_EQ(value_of(&destroyed), 2 * PEOPLE);
}

static void *sleep_for_ever(void *arg)
{
	number = (long)arg;
	ANY_ANSWER(hd_sleep(HD_SEC(1000)));
	return arg;
}

static void *leave_some_behind(void *arg)
{
	const struct hd_spawn daemon = { .own_tls = true, .daemon = true };
	const struct hd_spawn unborn = { .own_tls = true, .daemon = true, .suspended = true };

	for (long i = 0; i < 10; i++) {
		CHECK(hd_spawn_with(&daemon, sleep_for_ever, (void *)i) > 0);
		CHECK(hd_spawn_with(&unborn, sleep_for_ever, (void *)i) > 0);
	}
	CHECK_EQ(hd_yield(), 0);
	return arg;
}

static bool works;
static void *ask(void *arg)
{
	works = is_there();
	return arg;
}

HD_TEST(own_tls_of_processes_that_are_left_behind_is_used_again)
{
	CHECK_EQ(run_with_workers(1, ask, NULL), 0);
	if (!works)
		SKIP("no process can have thread-local storage of its own here");
	for (int i = 0; i < 20; i++)
		CHECK_EQ(run_with_workers(i % 3 + 1, leave_some_behind, NULL), 0);
}

/* ---- many, and too many ---- */

static void *wait_at_gate(void *arg)
{
	number = (long)arg;
	CHECK_EQ(hd_semaphore_wait(&turn, HD_FOREVER), 0);
	CHECK_EQ(number, (long)arg);
	return NULL;
}

static void have_many(long n)
{
	hd_pid *pids = malloc((size_t)n * sizeof *pids);

	hd_semaphore_init(&turn, 0);
	for (long i = 0; i < n; i++) {
		pids[i] = hd_spawn_with(&own, wait_at_gate, (void *)i);
		CHECK(pids[i] > 0);
	}
	CHECK_EQ(hd_yield(), 0);
	for (long i = 0; i < n; i++)
		CHECK_EQ(hd_semaphore_signal(&turn), 0);
	for (long i = 0; i < n; i++)
		CHECK_EQ(hd_join(pids[i], NULL, HD_FOREVER), 0);
	free(pids);
}

HD_WORKERS_TEST(own_tls_of_a_thousand_processes)
{
	(void)workers;
	NEEDED();
	have_many(hd_scaled(1000));
}

HD_WORKERS_STRESS(own_tls_of_ten_thousand_processes)
{
	(void)workers;
	NEEDED();
	for (int round = 0; round < 3; round++)
		have_many(hd_scaled(10000));
}

HD_WORKERS_TEST(own_tls_without_memory_is_an_error_and_loses_nothing)
{
	int failed = 0;

	(void)workers;
	NEEDED();
	for (unsigned nth = 1;; nth++) {
		hd__fault_arm(HD__FAULT_ALLOC, nth, false);
		hd_pid pids[3];
		int err = 0;
		for (int i = 0; i < 3; i++) {
			pids[i] = hd_spawn_with(&own, wait_at_gate, NULL);
			err = pids[i] < 0 ? (int)pids[i] : err;
		}
		hd__fault_arm(HD__FAULT_ALLOC, 0, false);
		for (int i = 0; i < 3; i++)
			if (pids[i] > 0) {
				CHECK_EQ(hd_semaphore_signal(&turn), 0);
				CHECK_EQ(hd_join(pids[i], NULL, HD_FOREVER), 0);
			}
		if (err == 0)
			break;
		CHECK_EQ(err, -ENOMEM);
		failed++;
	}
	CHECK(failed >= 2);
}

/* ---- signals, forks, other threads ---- */

static long stop, loops;

static void *compute(void *arg)
{
	long me = (long)arg;

	number = me;
	errno = (int)me;
	while (!value_of(&stop)) {
		CHECK_EQ(number, me);
		number++;
		me++;
		add(&loops, 1);
	}
	CHECK_EQ(errno, (long)arg);
	return NULL;
}

HD_WORKERS_TEST(own_tls_is_kept_over_preemption)
{
	const struct hd_spawn low = { .own_tls = true, .priority = 20 };
	hd_pid pids[WORKERS_MAX];
	struct hd_stats before, stats;

	NEEDED();
	if (hd_is_emulated())
		SKIP("no preemption under an emulator");
	set(&stop, 0);
	CHECK_EQ(hd_set_priority(hd_self(), 60), 0);
	CHECK_EQ(hd_stats(&before), 0);
	for (long i = 0; i < workers; i++)
		pids[i] = hd_spawn_with(&low, compute, (void *)(1000 * i));
	do {
		CHECK_EQ(hd_sleep(HD_MS(1)), 0);
		CHECK_EQ(hd_stats(&stats), 0);
	} while (stats.forced < before.forced + 3);
	set(&stop, 1);
	for (int i = 0; i < workers; i++)
		CHECK_EQ(hd_join(pids[i], NULL, HD_FOREVER), 0);
}

static void *ordinary_first(void *arg)
{
	hd_pid pid = hd_spawn_with(&own, move_about, (void *)5);

	hd_semaphore_init(&turn, 100);
	CHECK(pid > 0);
	CHECK_EQ(hd_join(pid, NULL, HD_FOREVER), 0);
	return arg;
}

static void *thread_beside(void *arg)
{
	CHECK_EQ(number, 7);
	number = 8;
	return arg;
}

/* In the child the process's storage is that of the only thread. */
static void *fork_and_go_on(void *arg)
{
	int status;

	number = 1234;
	CHECK_EQ(hd_yield(), 0);
	pid_t child = fork();
	CHECK(child >= 0);
	if (child == 0) {
		pthread_t thread;
		CHECK_EQ(number, 1234);
		CHECK_EQ(hd_self(), 0);
		for (int i = 0; i < 20; i++) { /* their stacks are those of the parent's threads */
			CHECK_EQ(pthread_create(&thread, NULL, thread_beside, NULL), 0);
			CHECK_EQ(pthread_join(thread, NULL), 0);
		}
		CHECK_EQ(number, 1234);
		CHECK_EQ(run_with_workers(2, ordinary_first, NULL), 0);
		CHECK_EQ(number, 1234);
		_exit(0);
	}
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK(WIFEXITED(status));
	CHECK_EQ(WEXITSTATUS(status), 0);
	CHECK_EQ(number, 1234);
	return arg;
}

HD_WORKERS_TEST(own_tls_comes_along_into_a_forked_child)
{
	(void)workers;
	NEEDED();
	spawn_and_join(&own, fork_and_go_on, 8);
}

static void block(void *arg)
{
	CHECK_EQ(hd_self(), 0);
	CHECK_EQ(number, (long)arg);
	number += 1000;
	errno = ENOTTY;
	CHECK_EQ(usleep(100), 0);
}

static void *call_blocking(void *arg)
{
	number = (long)arg;
	for (int i = 0; i < 10; i++) {
		CHECK_EQ(hd_blocking(block, (void *)number), 0);
		CHECK_EQ(number, (long)arg + 1000 * (i + 1));
		CHECK_EQ(*plain_errno(), ENOTTY);
	}
	return NULL;
}

HD_WORKERS_TEST(own_tls_is_used_by_blocking_functions)
{
	(void)workers;
	NEEDED();
	spawn_and_join(&own, call_blocking, 10);
}

static long blocked, unblock;

static void block_for_long(void *arg)
{
	(void)arg;
	number = 77;
	set(&blocked, 1);
	while (!value_of(&unblock))
		usleep(100);
	CHECK_EQ(number, 77);
	set(&blocked, 2);
}

static void *block_and_be_left(void *arg)
{
	CHECK_EQ(hd_blocking(block_for_long, NULL), 0);
	return arg;
}

static void *leave_a_blocked_one(void *arg)
{
	const struct hd_spawn daemon = { .own_tls = true, .daemon = true };

	CHECK(hd_spawn_with(&daemon, block_and_be_left, NULL) > 0);
	while (!value_of(&blocked))
		CHECK_EQ(hd_yield(), 0);
	return arg;
}

HD_TEST(own_tls_stays_with_a_blocking_function_whose_process_is_abandoned)
{
	CHECK_EQ(run_with_workers(1, ask, NULL), 0);
	if (!works)
		SKIP("no process can have thread-local storage of its own here");
	CHECK_EQ(run_with_workers(2, leave_a_blocked_one, NULL), 0);
	CHECK_EQ(value_of(&blocked), 1);
	CHECK_EQ(run_with_workers(2, ordinary_first, NULL), 0); /* has another storage */
	set(&unblock, 1);
	while (value_of(&blocked) != 2)
		usleep(100);
}

static long deeper(long depth)
{
	volatile char frame[4096];

	frame[depth % 4096] = 1;
	return depth == 1 << 30 ? 0 : deeper(depth + 1) + frame[0];
}

static void *overflow(void *arg)
{
	return (void *)(deeper(1) + (long)arg);
}

static void *overflow_a_stack(void *arg)
{
	const struct hd_spawn how = { .own_tls = true, .name = "deep" };
	hd_pid pid = hd_spawn_with(&how, overflow, arg);

	if (pid < 0) {
		fprintf(stderr, "stack overflow: not here, deep\n");
		abort();
	}
	CHECK_EQ(hd_join(pid, NULL, HD_FOREVER), 0);
	return arg;
}

HD_TEST_DIES(own_tls_process_is_named_when_its_stack_overflows, "deep")
{
	CHECK_EQ(run_with_workers(2, overflow_a_stack, NULL), 0);
}
