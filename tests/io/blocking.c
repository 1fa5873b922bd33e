/* io/blocking.c - what hd_blocking promises: the function is called once, or the call says that it never will be; and only its process
 * waits for it. */
#include "rt/capture.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "io/pool.h"
#include "os/fault.h"
#include "sync/common.h"

static struct hd_semaphore go;
static long begun, ended;

/* ---- what a function sees, and what others see meanwhile ---- */

static void look_around(void *arg)
{
	long *seen = arg;

	CHECK_EQ(hd_self(), 0);
	CHECK_EQ(hd_yield(), -ENOTSUP);
	*seen += 1;
	errno = ERANGE; /* of this thread */
}

static void look_around_nested(void *arg)
{
	CHECK_EQ(hd_blocking(look_around, arg), 0);
}

static void check_answers(void)
{
	long seen = 0;

	errno = 9;
	CHECK_EQ(hd_blocking(NULL, &seen), -EINVAL);
	if (hd_self() == 0)
		errno = ERANGE;
	CHECK_EQ(hd_blocking(look_around, &seen), 0);
	CHECK_EQ(hd_blocking(look_around_nested, &seen), 0);
	CHECK_EQ(seen, 2);
	CHECK_EQ(errno, hd_self() == 0 ? ERANGE : 9);
}

HD_TEST(blocking_on_plain_thread_is_a_call)
{
	check_answers();
}

HD_WORKERS_TEST(blocking_answers_on_process)
{
	check_answers();
	(void)workers;
}

static void await_go(void *arg)
{
	add(&begun, 1);
	CHECK_EQ(hd_semaphore_wait(&go, HD_FOREVER), 0);
	add(&ended, 1);
	if (arg != NULL)
		add(arg, 1);
}

static void *block(void *arg)
{
	return (void *)(long)hd_blocking(await_go, arg);
}

static void await(const long *counter, long n)
{
	while (value_of(counter) < n)
		CHECK_EQ(hd_sleep(HD_US(50)), 0);
}

static void begin_anew(void)
{
	hd_semaphore_init(&go, 0);
	set(&begun, 0);
	set(&ended, 0);
}

static int answer_of(hd_pid pid)
{
	void *result;

	CHECK_EQ(hd_join(pid, &result, HD_FOREVER), 0);
	return (int)(long)result;
}

/* The thread may begin before the process waits for it. */
static void await_blocking(hd_pid pid)
{
	while (info_on(pid).why != HD_WAIT_BLOCKING)
		CHECK_EQ(hd_sleep(HD_US(50)), 0);
}

/* They all block at once, on threads of their own, and the workers go on. */
HD_WORKERS_TEST(blocking_lets_others_run)
{
	hd_pid pids[12];
	long called = 0;

	begin_anew();
	for (int i = 0; i < 12; i++)
		pids[i] = spawned(hd_spawn(block, &called));
	await(&begun, 12);
	for (int i = 0; i < 12; i++)
		await_blocking(pids[i]);
	for (int i = 0; i < 12; i++)
		CHECK_EQ(hd_semaphore_signal(&go), 0);
	for (int i = 0; i < 12; i++)
		CHECK_EQ(answer_of(pids[i]), 0);
	CHECK_EQ(called, 12);
	(void)workers;
}

static void look_at_signals(void *arg)
{
	sigset_t set;

	CHECK_EQ(pthread_sigmask(SIG_BLOCK, NULL, &set), 0);
	for (int sig = 1; sig < SIGRTMIN; sig++)
		if (sig != SIGKILL && sig != SIGSTOP && sig < 32)
			CHECK(sigismember(&set, sig) == 1);
	for (int sig = SIGRTMIN; sig <= SIGRTMAX; sig++)
		CHECK(sigismember(&set, sig) == 1);
	(void)arg;
}

HD_PROCESS_TEST(blocking_function_takes_no_signal)
{
	if (hd_is_simulated())
		SKIP("its threads are one kernel thread");
	if (hd_is_emulated())
		SKIP("qemu-user keeps the two highest signals for itself");
	CHECK_EQ(hd_blocking(look_at_signals, NULL), 0);
}

/* ---- bounds ---- */

static long now_running, most_running;

static void count_running(void *arg)
{
	long n = add(&now_running, 1);

	if (n > value_of(&most_running))
		set(&most_running,
		    n); /* another thread may undo this: a bound that is broken shows nevertheless, in one run of many */
	sched_yield();
	add(&now_running, -1);
	add(arg, 1);
}

static void *block_and_count(void *arg)
{
	for (int i = 0; i < 5; i++)
		CHECK_EQ(hd_blocking(count_running, arg), 0);
	return NULL;
}

static void *run_counters(void *arg)
{
	hd_pid pids[10];
	long calls = 0;

	set(&most_running, 0);
	for (int i = 0; i < 10; i++)
		pids[i] = spawned(hd_spawn(block_and_count, &calls));
	for (int i = 0; i < 10; i++)
		CHECK_EQ(answer_of(pids[i]), 0);
	CHECK_EQ(calls, 50);
	CHECK(value_of(&most_running) <= (long)arg);
	CHECK(hd__pool_threads(hd__self()->sched->pool) <= (int)(long)arg);
	return NULL;
}

HD_TEST(blocking_keeps_to_its_bound)
{
	for (unsigned workers = 1; workers <= 8; workers *= 2)
		for (unsigned n = 1; n <= 3; n++) {
			const struct hd_config config = { .workers = workers, .blocking_threads = n, .fixed = true };
			CHECK_EQ(hd_run(&config, run_counters, (void *)(long)n), 0);
		}
}

static void say(void *word)
{
	trace("%s ", (const char *)word);
}

static void *block_to_say(void *word)
{
	return (void *)(long)hd_blocking(say, word);
}

HD_PROCESS_TEST_WITH(blocking_beyond_the_bound_is_first_come_first_served, .blocking_threads = 1)
{
	static const char *const words[] = { "a", "b", "c", "d" };
	hd_pid pids[4];

	begin_anew();
	hd_pid first = spawned(hd_spawn_at(50, block, NULL));
	await(&begun, 1);
	for (int i = 0; i < 4; i++) /* whatever their priority */
		pids[i] = spawned(hd_spawn_at(50 + i, block_to_say, (void *)words[i]));
	CHECK_EQ(hd_sleep(HD_MS(1)), 0);
	CHECK_STR(trace_text(), "");
	CHECK_EQ(hd_semaphore_signal(&go), 0);
	for (int i = 0; i < 4; i++)
		CHECK_EQ(answer_of(pids[i]), 0);
	CHECK_EQ(answer_of(first), 0);
	CHECK_STR(trace_text(), "a b c d ");
}

HD_PROCESS_TEST(blocking_threads_end_when_they_are_idle)
{
	struct hd__pool *pool = hd__self()->sched->pool;
	hd_pid pids[3];

	if (!hd_is_simulated())
		SKIP("it takes seconds");
	CHECK_EQ(hd__pool_threads(pool), 0);
	for (int round = 0; round < 2; round++) {
		begin_anew();
		for (int i = 0; i < 3; i++)
			pids[i] = spawned(hd_spawn(block, NULL));
		await(&begun, 3);
		CHECK_EQ(hd__pool_threads(pool), 3);
		for (int i = 0; i < 3; i++)
			CHECK_EQ(hd_semaphore_signal(&go), 0);
		for (int i = 0; i < 3; i++)
			CHECK_EQ(answer_of(pids[i]), 0);
		CHECK_EQ(hd_sleep(HD_SEC(7)), 0);
		CHECK_EQ(hd__pool_threads(pool), 0);
	}
}

/* ---- no thread, no memory ---- */

HD_PROCESS_TEST(blocking_without_a_thread_says_so)
{
	long seen = 0;

	hd__fault_arm(HD__FAULT_THREAD, 1, true);
	CHECK_EQ(hd_blocking(look_around, &seen), -EAGAIN);
	hd__fault_arm(HD__FAULT_THREAD, 0, false);
	hd__fault_arm(HD__FAULT_ALLOC, 1, true);
	CHECK_EQ(hd_blocking(look_around, &seen), -ENOMEM);
	hd__fault_arm(HD__FAULT_ALLOC, 0, false);
	CHECK_EQ(seen, 0);
	CHECK_EQ(hd_blocking(look_around, &seen), 0);
	CHECK_EQ(seen, 1);
}

/* The second has to wait for the thread of the first. */
HD_WORKERS_TEST(blocking_without_another_thread_waits_for_the_one_there_is)
{
	begin_anew();
	hd_pid first = spawned(hd_spawn(block, NULL));
	await(&begun, 1);
	hd__fault_arm(HD__FAULT_THREAD, 1, true);
	hd_pid second = spawned(hd_spawn(block, NULL));
	CHECK_EQ(hd_sleep(HD_MS(1)), 0);
	CHECK_EQ(value_of(&begun), 1);
	CHECK_EQ(hd_semaphore_signal(&go), 0);
	CHECK_EQ(hd_semaphore_signal(&go), 0);
	CHECK_EQ(answer_of(first), 0);
	CHECK_EQ(answer_of(second), 0);
	hd__fault_arm(HD__FAULT_THREAD, 0, false);
	(void)workers;
}

/* ---- cancel, terminate, suspend ---- */

static void never(void *arg)
{
	(void)arg;
	CHECK(!"a function that was called off was called");
}

static void *block_in_vain(void *arg)
{
	trace("%d ", hd_blocking(never, arg) == -ECANCELED);
	return arg;
}

HD_PROCESS_TEST_WITH(blocking_called_off_before_it_begins_never_does, .blocking_threads = 1)
{
	long called = 0;

	CHECK_EQ(hd_cancel(hd_self()), 0);
	CHECK_EQ(hd_blocking(never, NULL), -ECANCELED);
	CHECK_EQ(hd_cancel_clear(), 1);

	begin_anew();
	hd_pid first = spawned(hd_spawn_at(50, block, &called));
	await(&begun, 1);
	hd_pid second = spawned(hd_spawn_at(50, block_in_vain, NULL));
	hd_pid third = spawned(hd_spawn_at(50, block_in_vain, NULL));
	hd_pid last = spawned(hd_spawn_at(50, block, &called));
	CHECK_EQ(hd_cancel(third), 0);
	CHECK_STR(trace_text(), "1 ");
	CHECK_EQ(hd_terminate(second, HD_FOREVER), 0);
	CHECK_STR(trace_text(), "1 ");
	CHECK_EQ(hd_semaphore_signal(&go), 0);
	CHECK_EQ(hd_semaphore_signal(&go), 0);
	CHECK_EQ(answer_of(first), 0);
	CHECK_EQ(answer_of(last), 0);
	CHECK_EQ(called, 2);
}

static void *block_and_test_cancel(void *arg)
{
	CHECK_EQ(hd_blocking(await_go, arg), 0);
	CHECK_EQ(hd_test_cancel(), -ECANCELED);
	return arg;
}

static void *block_and_sleep(void *arg)
{
	CHECK_EQ(hd_blocking(await_go, arg), 0);
	hd_sleep(0);
	CHECK_EQ(hd_sleep(HD_SEC(1000)), -ECANCELED);
	CHECK(!"a terminated process went on");
	return arg;
}

HD_WORKERS_TEST(blocking_called_off_after_it_began_waits_for_its_end)
{
	long called = 0;

	begin_anew();
	hd_pid cancelled = spawned(hd_spawn(block_and_test_cancel, &called));
	hd_pid killed = spawned(hd_spawn(block_and_sleep, &called));
	await(&begun, 2);
	CHECK_EQ(hd_cancel(cancelled), 0);
	CHECK_EQ(hd_terminate(killed, hd_after(HD_MS(1))), -ETIMEDOUT);
	CHECK_EQ(hd_sleep(HD_MS(1)), 0);
	CHECK_EQ(info_on(cancelled).why, HD_WAIT_BLOCKING);
	CHECK_EQ(info_on(killed).why, HD_WAIT_BLOCKING);
	CHECK_EQ(value_of(&ended), 0);
	CHECK_EQ(hd_semaphore_signal(&go), 0);
	CHECK_EQ(hd_semaphore_signal(&go), 0);
	CHECK_EQ(hd_join(cancelled, NULL, HD_FOREVER), 0);
	CHECK_EQ(end_of(killed).kind, HD_END_KILLED);
	CHECK_EQ(called, 2);
	(void)workers;
}

HD_WORKERS_TEST(blocking_suspended_process_goes_on_when_it_is_resumed)
{
	begin_anew();
	hd_pid pid = spawned(hd_spawn(block, NULL));
	await(&begun, 1);
	CHECK_EQ(hd_suspend(pid, HD_FOREVER), 0);
	CHECK_EQ(hd_semaphore_signal(&go), 0);
	await(&ended, 1);
	CHECK_EQ(hd_join(pid, NULL, hd_after(HD_MS(1))), -ETIMEDOUT);
	CHECK_EQ(hd_resume(pid), 0);
	CHECK_EQ(answer_of(pid), 0);
	(void)workers;
}

/* Every call is answered with what happened, whatever comes between: 0, and the function has been called, or not. */
static long promised, called_off;

static void count_call(void *arg)
{
	unsigned seed = (unsigned)(uintptr_t)arg;

	for (unsigned n = next_random(&seed) % 4; n > 0; n--)
		sched_yield();
	*(long *)arg += 1; /* on the stack of its process */
}

static void *block_often(void *arg)
{
	for (long i = 0; i < (long)arg; i++) {
		long called = 0;
		int err = hd_blocking(count_call, &called);
		CHECK(err == 0 || err == -ECANCELED);
		CHECK_EQ(called, err == 0);
		add(err == 0 ? &promised : &called_off, 1);
		if (err == -ECANCELED)
			hd_cancel_clear();
	}
	return NULL;
}

static void *kill_one(void *arg)
{
	hd_pid pid = *(hd_pid *)arg;
	int err = hd_terminate(pid, HD_FOREVER);

	CHECK(err == 0 || err == -ESRCH);
	return NULL;
}

static void *race(void *arg)
{
	hd_pid pids[8];
	unsigned seed = 7;
	long each = hd_scaled(60);

	for (int i = 0; i < 8; i++)
		pids[i] = spawned(hd_spawn(block_often, (void *)each));
	for (long i = 0; i < each; i++) {
		int err = hd_cancel(pids[next_random(&seed) % 8]);
		CHECK(err == 0 || err == -ESRCH);
		CHECK_EQ(hd_sleep(HD_US(next_random(&seed) % 30)), 0);
	}
	hd_pid killer = spawned(hd_spawn(kill_one, &pids[0]));
	for (int i = 0; i < 8; i++)
		CHECK_EQ(hd_join(pids[i], NULL, HD_FOREVER), 0);
	CHECK_EQ(hd_join(killer, NULL, HD_FOREVER), 0);
	return arg;
}

HD_TEST(blocking_is_called_once_or_called_off)
{
	for (unsigned workers = 1; workers <= 8; workers *= 2) {
		const struct hd_config config = { .workers = workers, .blocking_threads = 3, .fixed = true };
		CHECK_EQ(hd_run(&config, race, NULL), 0);
	}
	CHECK(value_of(&promised) > 0);
}

/* ---- deadlock ---- */

static void take_a_while(void *arg)
{
	usleep(20000);
	(void)arg;
}

/* No worker has anything to do, and the process waits for ever; but a job is under way. */
HD_WORKERS_TEST(blocking_is_no_deadlock)
{
	for (int i = 0; i < 3; i++)
		CHECK_EQ(hd_blocking(take_a_while, NULL), 0);
	(void)workers;
}

static void *block_and_wait_for_ever(void *arg)
{
	CHECK_EQ(hd_blocking(take_a_while, NULL), 0);
	return hd_semaphore_wait(&go, HD_FOREVER) == 0 ? arg : NULL;
}

/* An idle thread of the pool wakes no process. */
HD_TEST(blocking_threads_do_not_hide_a_deadlock)
{
	if (hd_is_haunted())
		SKIP("there is a thread that could wake somebody, as far as heddle knows");
	begin_anew();
	for (int workers = 1; workers <= 2; workers++) {
		capture_begin();
		int err = run_with_workers(workers, block_and_wait_for_ever, NULL);
		CHECK(says(capture_end(), "heddle: deadlock: no process can run"));
		CHECK_EQ(err, -EDEADLK);
	}
}

/* ---- the end of the runtime ---- */

static void write_when_told(void *arg)
{
	add(&begun, 1);
	CHECK_EQ(hd_semaphore_wait(&go, HD_FOREVER), 0);
	((volatile char *)arg)[0] = 1; /* on the stack of a process that is gone */
	((volatile char *)arg)[3999] = 2;
	CHECK_EQ(hd_spawn(block, NULL), -ENXIO);
	add(&ended, 1);
}

static void *block_over_the_end(void *arg)
{
	char room[4000] = { 0 };
	struct hd_cleanup cleanup;

	CHECK_EQ(hd_cleanup_push(&cleanup, never, NULL), 0);
	if (arg != NULL)
		CHECK_EQ(hd_set_cancel_state(HD_CANCEL_DISABLED), HD_CANCEL_ENABLED);
	CHECK_EQ(hd_blocking(write_when_told, room), 0);
	CHECK(!"a process went on after the runtime had ended");
	return arg;
}

static void *shut_down_over_blocked(void *arg)
{
	for (int i = 0; i < 4; i++)
		spawned(hd_spawn_with(&(struct hd_spawn){ .daemon = i % 2 == 0, .stack_size = i < 2 ? 0 : 1 << 20 },
				      block_over_the_end, i % 2 == 0 ? NULL : arg));
	await(&begun, 4);
	CHECK_EQ(hd_shutdown(3), 0);
	return NULL;
}

static void *block_once(void *arg)
{
	long seen = 0;

	CHECK_EQ(hd_blocking(look_around, &seen), 0);
	return arg;
}

/* hd_run returns; the functions go on, with what they were given. */
HD_TEST(blocking_over_the_end_of_the_runtime_keeps_the_stack)
{
	for (int workers = 1; workers <= 2; workers++) {
		begin_anew();
		CHECK_EQ(run_with_workers(workers, shut_down_over_blocked, &begun), 3);
		CHECK_EQ(value_of(&ended), 0);
		CHECK_EQ(run_with_workers(workers, block_once, NULL), 0); /* other threads, another runtime */
		for (int i = 0; i < 4; i++)
			CHECK_EQ(hd_semaphore_signal(&go), 0);
		while (value_of(&ended) < 4)
			sched_yield();
		CHECK_EQ(run_with_workers(workers, block_once, NULL), 0);
	}
}

/* It ends within the second of grace: its process ends in good order. */
static void note_cleanup(void *arg)
{
	add(arg, 1);
}

static long cleanups;

static void *block_into_the_end(void *arg)
{
	struct hd_cleanup cleanup;

	CHECK_EQ(hd_cleanup_push(&cleanup, note_cleanup, &cleanups), 0);
	CHECK_EQ(hd_blocking(await_go, NULL), 0);
	CHECK_EQ(hd_sleep(HD_SEC(1000)), -ECANCELED);
	CHECK(!"a process went on though the runtime was ending");
	return arg;
}

static void *queue_in_vain(void *arg)
{
	struct hd_cleanup cleanup;

	CHECK_EQ(hd_cleanup_push(&cleanup, note_cleanup, &cleanups), 0);
	ANY_ANSWER(hd_blocking(never, NULL));
	CHECK(!"a process went on though the runtime was ending");
	return arg;
}

static void *shut_down_over_a_queue(void *arg)
{
	begin_anew();
	spawned(hd_spawn_at(50, block_into_the_end, NULL));
	await(&begun, 1);
	for (int i = 0; i < 3; i++)
		spawned(hd_spawn_at(50, queue_in_vain, NULL));
	CHECK_EQ(hd_shutdown(3), 0);
	hd_yield(); /* they are told, and end */
	CHECK_EQ(value_of(&cleanups), 3);
	CHECK_EQ(hd_semaphore_signal(&go), 0);
	return arg;
}

HD_TEST(blocking_that_has_not_begun_when_the_runtime_ends_never_does)
{
	const struct hd_config config = { .workers = 1, .blocking_threads = 1, .fixed = true };

	CHECK_EQ(hd_run(&config, shut_down_over_a_queue, NULL), 3);
	CHECK(cleanups == 4 || (cleanups == 3 && hd_is_simulated())); /* where the second of grace may pass at once */
}

/* ---- fork ---- */

static void fork_and_return(void *arg)
{
	pid_t child = fork();
	int status;

	if (child == 0)
		return; /* out of the thread: the child's last one has ended */
	CHECK(child > 0);
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK(WIFEXITED(status));
	CHECK_EQ(WEXITSTATUS(status), 0);
	add(arg, 1);
}

HD_PROCESS_TEST(blocking_function_forks_and_its_child_exits)
{
	long forked = 0;

	if (hd_is_simulated() || HD_UNDER_TSAN || HD_UNDER_ASAN)
		SKIP("the child would have all threads, or a sanitizer that does not go on, or takes what other threads hold "
		     "for lost");
	CHECK_EQ(hd_blocking(fork_and_return, &forked), 0);
	CHECK_EQ(forked, 1);
}

/* The child of a process has no pool: it is a plain thread, until it calls hd_run. */
HD_PROCESS_TEST(blocking_in_a_forked_child_is_a_call)
{
	long seen = 0;
	int status;

	if (hd_is_simulated() || hd_is_emulated() || HD_UNDER_TSAN)
		SKIP("the child would have all threads, or a sanitizer or an emulator that does not go on");
	CHECK_EQ(hd_blocking(look_around, &seen), 0);
	pid_t child = fork();
	if (child == 0) {
		CHECK_EQ(hd_blocking(look_around, &seen), 0);
		CHECK_EQ(run_with_workers(2, block_once, NULL), 0);
		_exit(seen == 2 ? 5 : 6);
	}
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK(WIFEXITED(status));
	CHECK_EQ(WEXITSTATUS(status), 5);
}
