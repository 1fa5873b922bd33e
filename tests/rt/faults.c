/* Signals and forks around a runtime: what is not heddle's goes to whoever it belongs to. */
#include "rt/capture.h"

#include <errno.h>
#include <heddle.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness/harness.h"

static const struct hd_config one_worker = { .workers = 1, .fixed = true };

/* How an OS process that does `what` ends. */
static int status_of(void (*what)(void))
{
	int status;
	pid_t child = fork();

	CHECK(child >= 0);
	if (child == 0) {
		what();
		_exit(99);
	}
	CHECK_EQ(waitpid(child, &status, 0), child);
	return status;
}

static void *raise_it(void *arg)
{
	raise(SIGSEGV);
	return arg;
}

static void run_and_raise(void)
{
	signal(SIGSEGV, SIG_DFL);
	CHECK_EQ(hd_run(&one_worker, raise_it, NULL), 0);
}

HD_TEST(fault_that_somebody_sent_is_not_swallowed)
{
	int status = status_of(run_and_raise);

	CHECK(WIFSIGNALED(status));
	CHECK_EQ(WTERMSIG(status), SIGSEGV);
}

static void *nothing(void *arg)
{
	return arg;
}

static void run_then_raise(void)
{
	CHECK_EQ(hd_run(&one_worker, nothing, NULL), 0);
	raise(SIGSEGV);
}

static void *fork_inside(void *arg)
{
	int status = status_of(run_then_raise);

	CHECK(WIFSIGNALED(status));
	CHECK_EQ(WTERMSIG(status), SIGSEGV);
	return arg;
}

HD_TEST(fork_child_runs_a_runtime_of_its_own_and_faults_as_ever)
{
	if (HD_UNDER_TSAN || hd_is_emulated())
		SKIP("a forked child can have no threads here");
	if (HD_UNDER_ASAN)
		SKIP("the locks of its allocator may stay locked in a forked child: by a thread that was about to start");
	signal(SIGSEGV,
	       SIG_DFL); /* what the child must find again, though it was forked while the runtime's action was in force */
	CHECK_EQ(hd_run(&one_worker, fork_inside, NULL), 0);
}

static hd_pid parent_process;

static void child_is_plain(void)
{
	hd_yield();
	CHECK_EQ(hd_self(), 0);
	CHECK_EQ(hd_yield(), -ENOTSUP);
	CHECK_EQ(hd_spawn(nothing, NULL), -ENXIO);
	CHECK_EQ(hd_priority(parent_process), -ENXIO);
	struct hd_semaphore s = HD_SEMAPHORE(1);
	CHECK_EQ(hd_semaphore_wait(&s, HD_FOREVER), 0);
	CHECK_EQ(hd_run(&one_worker, nothing, NULL), 0);
	_exit(3);
}

static void *fork_and_compare(void *arg)
{
	parent_process = hd_self();
	int status = status_of(child_is_plain);

	CHECK(WIFEXITED(status));
	CHECK_EQ(WEXITSTATUS(status), 3);
	CHECK_EQ(hd_self(), parent_process);
	CHECK_EQ(hd_join(hd_spawn(nothing, NULL), NULL, HD_FOREVER), 0);
	return arg;
}

HD_TEST(fork_child_is_a_plain_thread_without_a_runtime)
{
	if (HD_UNDER_TSAN || hd_is_emulated())
		SKIP("a forked child can have no threads here");
	if (HD_UNDER_ASAN)
		SKIP("the locks of its allocator may stay locked in a forked child: by a thread that was about to start");
	CHECK_EQ(hd_run(&one_worker, fork_and_compare, NULL), 0);
}

/* ---- what the process that forked owned ---- */

static struct hd_mutex plain, ordered = HD_MUTEX(HD_IN_ORDER), inheriting = HD_MUTEX(HD_INHERIT), anothers;
static struct hd_monitor monitor;
static struct hd_rwlock rwlock;

static void *lock_anothers(void *arg)
{
	CHECK_EQ(hd_mutex_lock(&anothers, HD_FOREVER), 0);
	CHECK_EQ(hd_semaphore_wait(arg, HD_FOREVER), 0);
	return NULL;
}

static void *wait_for_mutex(void *mutex)
{
	CHECK_EQ(hd_mutex_lock(mutex, HD_FOREVER), 0);
	CHECK_EQ(hd_mutex_unlock(mutex), 0);
	return NULL;
}

static void *wait_to_read_or_write(void *writes)
{
	CHECK_EQ((writes != NULL ? hd_rwlock_write : hd_rwlock_read)(&rwlock, HD_FOREVER), 0);
	CHECK_EQ(hd_rwlock_unlock(&rwlock), 0);
	return NULL;
}

/* Twice: what the child has given up it can have again. */
static void give_up_in_child(void)
{
	struct hd_mutex *mutexes[] = { &plain, &ordered, &inheriting };

	for (int i = 0; i < 2; i++) {
		for (int j = 0; j < 3; j++) {
			CHECK(hd_mutex_is_mine(mutexes[j]));
			CHECK_EQ(hd_mutex_unlock(mutexes[j]), 0);
			CHECK_EQ(hd_mutex_unlock(mutexes[j]), -EPERM);
			CHECK_EQ(hd_mutex_lock(mutexes[j], HD_FOREVER), 0);
		}
		CHECK_EQ(hd_monitor_exit(&monitor), 0);
		CHECK_EQ(hd_monitor_enter(&monitor, HD_FOREVER), 0);
		CHECK_EQ(hd_rwlock_unlock(&rwlock), 0);
		CHECK_EQ(hd_rwlock_unlock(&rwlock), -EPERM);
		CHECK_EQ(hd_rwlock_read(&rwlock, HD_FOREVER), 0);
		CHECK_EQ(hd_rwlock_unlock(&rwlock), 0);
		CHECK_EQ(hd_rwlock_write(&rwlock, HD_FOREVER), 0);
	}
	CHECK_EQ(hd_mutex_unlock(&anothers), -EPERM);
	_exit(4);
}

static void *fork_with_locks(void *arg)
{
	static struct hd_semaphore never;
	hd_pid pids[5];

	CHECK_EQ(hd_mutex_lock(&plain, HD_FOREVER), 0);
	CHECK_EQ(hd_mutex_lock(&ordered, HD_FOREVER), 0);
	CHECK_EQ(hd_mutex_lock(&inheriting, HD_FOREVER), 0);
	CHECK_EQ(hd_monitor_enter(&monitor, HD_FOREVER), 0);
	CHECK_EQ(hd_rwlock_write(&rwlock, HD_FOREVER), 0);
	CHECK(hd_spawn_with(&(struct hd_spawn){ .daemon = true }, lock_anothers, &never) > 0);
	pids[0] = hd_spawn(wait_for_mutex, &plain);
	pids[1] = hd_spawn(wait_for_mutex, &ordered);
	pids[2] = hd_spawn(wait_for_mutex, &inheriting);
	pids[3] = hd_spawn(wait_to_read_or_write, NULL);
	pids[4] = hd_spawn(wait_to_read_or_write, &rwlock);
	hd_yield(); /* all of them wait now */
	int status = status_of(give_up_in_child);
	CHECK(WIFEXITED(status));
	CHECK_EQ(WEXITSTATUS(status), 4);
	CHECK_EQ(hd_mutex_unlock(&plain), 0);
	CHECK_EQ(hd_mutex_unlock(&ordered), 0);
	CHECK_EQ(hd_mutex_unlock(&inheriting), 0);
	CHECK_EQ(hd_monitor_exit(&monitor), 0);
	CHECK_EQ(hd_rwlock_unlock(&rwlock), 0);
	for (int i = 0; i < 5; i++)
		CHECK_EQ(hd_join(pids[i], NULL, HD_FOREVER), 0);
	return arg;
}

HD_TEST(fork_child_gives_up_what_its_process_owned)
{
	CHECK_EQ(hd_run(&one_worker, fork_with_locks, NULL), 0);
}

/* ---- a child with waiters of its own ---- */

static struct hd_rwlock read_by_parent;
static long got;

static void *write_once(void *lock)
{
	CHECK_EQ(hd_rwlock_write(lock, HD_FOREVER), 0);
	__atomic_add_fetch(&got, 1, __ATOMIC_RELAXED);
	CHECK_EQ(hd_rwlock_unlock(lock), 0);
	return NULL;
}

static void *lock_once(void *mutex)
{
	CHECK_EQ(hd_mutex_lock(mutex, HD_FOREVER), 0);
	__atomic_add_fetch(&got, 1, __ATOMIC_RELAXED);
	CHECK_EQ(hd_mutex_unlock(mutex), 0);
	return NULL;
}

/* A thread that waits, last, in a queue. */
static pthread_t waiting_thread(void *(*entry)(void *object), void *object, struct hd_waitq *q)
{
	struct hd_waiter *before = __atomic_load_n(&q->tail, __ATOMIC_RELAXED);
	pthread_t thread;

	CHECK_EQ(pthread_create(&thread, NULL, entry, object), 0);
	while (__atomic_load_n(&q->tail, __ATOMIC_RELAXED) == before)
		sched_yield();
	return thread;
}

/* In the queues are waiters of the parent, and then threads of the child. */
static void let_threads_have_it(void)
{
	struct hd_mutex *mutexes[] = { &plain, &ordered, &inheriting };
	pthread_t threads[4];

	got = 0;
	for (int i = 0; i < 3; i++)
		threads[i] = waiting_thread(lock_once, mutexes[i], &mutexes[i]->waiters);
	threads[3] = waiting_thread(write_once, &read_by_parent, &read_by_parent.waiters);
	for (int i = 0; i < 3; i++)
		CHECK_EQ(hd_mutex_unlock(mutexes[i]), 0);
	CHECK_EQ(hd_rwlock_unlock(&read_by_parent), 0);
	for (int i = 0; i < 4; i++)
		CHECK_EQ(pthread_join(threads[i], NULL), 0);
	CHECK_EQ(got, 4);
	_exit(5);
}

static void read_and_write(void)
{
	CHECK_EQ(hd_rwlock_try_read(&read_by_parent), 0); /* no writer waits here */
	CHECK_EQ(hd_rwlock_unlock(&read_by_parent), 0);
	CHECK_EQ(hd_rwlock_unlock(&read_by_parent), 0);
	CHECK_EQ(hd_rwlock_try_write(&read_by_parent), 0);
	CHECK_EQ(hd_rwlock_unlock(&read_by_parent), 0);
	_exit(5);
}

static void (*in_child)(void);

static void *fork_with_waiters(void *arg)
{
	struct hd_mutex *mutexes[] = { &plain, &ordered, &inheriting };
	hd_pid pids[4];

	for (int i = 0; i < 3; i++) {
		CHECK_EQ(hd_mutex_lock(mutexes[i], HD_FOREVER), 0);
		pids[i] = hd_spawn(lock_once, mutexes[i]);
	}
	CHECK_EQ(hd_rwlock_read(&read_by_parent, HD_FOREVER), 0);
	pids[3] = hd_spawn(write_once, &read_by_parent);
	hd_yield(); /* all of them wait now */
	int status = status_of(in_child);
	CHECK(WIFEXITED(status));
	CHECK_EQ(WEXITSTATUS(status), 5);
	for (int i = 0; i < 3; i++)
		CHECK_EQ(hd_mutex_unlock(mutexes[i]), 0);
	CHECK_EQ(hd_rwlock_unlock(&read_by_parent), 0);
	for (int i = 0; i < 4; i++)
		CHECK_EQ(hd_join(pids[i], NULL, HD_FOREVER), 0);
	CHECK_EQ(got, 4);
	return arg;
}

HD_TEST(fork_child_reads_and_writes_what_its_process_read_while_a_writer_waited)
{
	in_child = read_and_write;
	CHECK_EQ(hd_run(&one_worker, fork_with_waiters, NULL), 0);
}

HD_TEST(fork_child_hands_what_its_process_owned_to_its_own_threads)
{
	if (HD_UNDER_TSAN || hd_is_emulated() || hd_is_simulated())
		SKIP("a forked child can have no threads here");
	if (HD_UNDER_ASAN)
		SKIP("the locks of its allocator may stay locked in a forked child: by a thread that was about to start");
	in_child = let_threads_have_it;
	CHECK_EQ(hd_run(&one_worker, fork_with_waiters, NULL), 0);
}

static pid_t original;

static void *fork_and_return(void *arg)
{
	int status;
	pid_t child = fork();

	if (child == 0)
		return arg; /* out of its process: the child's last thread has ended */
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK(WIFEXITED(status));
	CHECK_EQ(WEXITSTATUS(status), 0);
	return arg;
}

HD_TEST(fork_child_that_returns_from_its_process_exits)
{
	if (HD_UNDER_ASAN)
		SKIP("at exit ASan looks for leaks, and not on this stack");
	original = getpid();
	CHECK_EQ(hd_run(&one_worker, fork_and_return, NULL), 0);
	CHECK_EQ(getpid(), original);
}

/* ---- faults that the program repairs, and handlers that it installs ---- */

static char *page;
static volatile int repaired, elsewhere;

/* As a garbage collector does, or a program that counts what is written. */
static void repair(int sig, siginfo_t *info, void *context)
{
	(void)context;
	if ((char *)info->si_addr < page || (char *)info->si_addr >= page + 4096) {
		signal(sig, SIG_DFL);
		return;
	}
	repaired++;
	mprotect(page, 4096, PROT_READ | PROT_WRITE);
}

static void count(int sig)
{
	(void)sig;
	elsewhere++;
}

static void install(void (*handler)(int, siginfo_t *, void *), int flags)
{
	struct sigaction action = { .sa_sigaction = handler, .sa_flags = SA_SIGINFO | flags };

	sigemptyset(&action.sa_mask);
	sigaddset(&action.sa_mask, SIGUSR1);
	CHECK_EQ(sigaction(SIGSEGV, &action, NULL), 0);
	page = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(page != MAP_FAILED);
}

static void *write_to_page(void *arg)
{
	for (int i = 0; i < 3; i++) {
		CHECK_EQ(mprotect(page, 4096, PROT_NONE), 0);
		*(volatile char *)page = 'x'; /* faults, is repaired, and is done */
		CHECK_EQ(page[0], 'x');
		CHECK_EQ(repaired, i + 1);
		hd_yield();
	}
	return arg;
}

static void skip_if_simulated(void)
{
	if (hd_is_simulated() || hd_is_emulated())
		SKIP("faults and system calls have an order of their own here");
}

HD_TEST(fault_that_the_program_repairs_is_repaired_each_time)
{
	struct sigaction now;

	skip_if_simulated();
	install(repair, 0);
	CHECK_EQ(hd_run(&one_worker, write_to_page, NULL), 0);
	CHECK_EQ(repaired, 3);
	CHECK_EQ(sigaction(SIGSEGV, NULL, &now), 0);
	CHECK(now.sa_sigaction == repair);
	CHECK_EQ(sigismember(&now.sa_mask, SIGUSR1), 1);
}

#if !HD_UNDER_ASAN && !HD_UNDER_TSAN /* instrumented frames are too large */
static int deeper(int n)
{
	volatile char frame[512];

	frame[0] = (char)n;
	return n < 0 ? frame[0] : deeper(n + 1) + frame[0];
}

static void *overflow(void *arg)
{
	write_to_page(NULL);
	deeper(0);
	return arg;
}

static void *spawn_overflow(void *arg)
{
	CHECK_EQ(hd_join(hd_spawn_with(&(struct hd_spawn){ .name = "late" }, overflow, NULL), NULL, HD_FOREVER), 0);
	return arg;
}

HD_TEST_DIES(fault_overflow_after_repaired_faults_is_reported, "stack overflow in process")
{
	skip_if_simulated();
	install(repair, 0);
	CHECK_EQ(hd_run(&one_worker, spawn_overflow, NULL), 0);
}
#endif

/* The mask of the program's action holds while its handler runs. */
static void look_at_mask(int sig, siginfo_t *info, void *context)
{
	sigset_t mask;

	(void)sig, (void)info, (void)context;
	CHECK_EQ(pthread_sigmask(SIG_BLOCK, NULL, &mask), 0);
	CHECK_EQ(sigismember(&mask, SIGUSR1), 1);
	CHECK_EQ(sigismember(&mask, SIGSEGV), 0);
	repaired++;
	mprotect(page, 4096, PROT_READ | PROT_WRITE);
}

static void *write_and_look_at_mask(void *arg)
{
	sigset_t mask;

	write_to_page(arg);
	CHECK_EQ(pthread_sigmask(SIG_BLOCK, NULL, &mask), 0);
	CHECK_EQ(sigismember(&mask, SIGUSR1), 0);
	return arg;
}

HD_TEST(fault_handler_of_the_program_has_its_mask)
{
	skip_if_simulated();
	install(look_at_mask, SA_NODEFER);
	CHECK_EQ(hd_run(&one_worker, write_and_look_at_mask, NULL), 0);
}

static void *install_count(void *arg)
{
	signal(SIGSEGV, count);
	raise(SIGSEGV);
	CHECK_EQ(elsewhere, 1);
	return arg;
}

HD_TEST(fault_handler_that_is_installed_during_the_run_stays)
{
	struct sigaction now;

	skip_if_simulated();
	signal(SIGSEGV, SIG_DFL);
	CHECK_EQ(hd_run(&one_worker, install_count, NULL), 0);
	CHECK_EQ(sigaction(SIGSEGV, NULL, &now), 0);
	CHECK(now.sa_handler == count);
	CHECK_EQ(hd_run(&one_worker, raise_it, NULL), 0); /* and is found by the next run */
	CHECK_EQ(elsewhere, 2);
	raise(SIGSEGV);
	CHECK_EQ(elsewhere, 3);
}

static struct sigaction of_the_run;

static void *replace_and_put_back(void *arg)
{
	struct sigaction mine = { .sa_handler = count };

	CHECK_EQ(sigaction(SIGSEGV, &mine, &of_the_run), 0);
	return arg;
}

/* A program that puts back what it found during a run, after it: heddle's own handler is installed, and no runtime runs. */
HD_TEST(fault_handler_of_heddle_that_the_program_puts_back_passes_faults_on)
{
	skip_if_simulated();
	install(repair, 0);
	CHECK_EQ(hd_run(&one_worker, replace_and_put_back, NULL), 0);
	CHECK_EQ(sigaction(SIGSEGV, &of_the_run, NULL), 0);
	*(volatile char *)page = 'x';
	CHECK_EQ(repaired, 1);
	repaired = 0;
	CHECK_EQ(hd_run(&one_worker, write_to_page, NULL), 0);
	CHECK_EQ(repaired, 3);
}

HD_TEST(fault_that_was_sent_and_is_ignored_stays_ignored)
{
	skip_if_simulated();
	signal(SIGSEGV, SIG_IGN);
	CHECK_EQ(hd_run(&one_worker, raise_it, NULL), 0);
	raise(SIGSEGV);
}

/* ---- SIGQUIT ---- */

static int quits;

static void count_quit(int signal)
{
	quits += signal == SIGQUIT;
}

static void *wait_while_quit(void *handler)
{
	struct hd_semaphore never = HD_SEMAPHORE(0);

	if (handler != NULL)
		signal(SIGQUIT, count_quit); /* the program's own, during the run */
	kill(getpid(), SIGQUIT);
	CHECK_EQ(hd_semaphore_wait(&never, hd_after(HD_SEC(handler != NULL ? 0 : 5))), -ETIMEDOUT);
	return NULL;
}

static void *quit(void *handler)
{
	CHECK_EQ(hd_join(hd_spawn_with(&(struct hd_spawn){ .name = "quitter" }, wait_while_quit, handler), NULL, HD_FOREVER),
		 0);
	return NULL;
}

static const struct hd_config two_workers = { .workers = 2, .fixed = true };

static void run_and_quit(void)
{
	struct rlimit none = { 0, 0 };

	setrlimit(RLIMIT_CORE, &none);
	signal(SIGQUIT, SIG_DFL);
	CHECK_EQ(hd_run(&two_workers, quit, NULL), 0);
}

static void skip_if_signals_are_not_real(void)
{
	if (hd_is_simulated())
		SKIP("signals are not simulated");
}

HD_TEST(quit_reports_all_processes_and_kills)
{
	skip_if_signals_are_not_real();
	capture_begin();
	int status = status_of(run_and_quit);
	const char *said = capture_end();
	CHECK(WIFSIGNALED(status));
	CHECK_EQ(WTERMSIG(status), SIGQUIT);
	CHECK_EQ(times_said(said, "heddle: SIGQUIT: "), 1);
	CHECK(says(said, "heddle:   main #0 of priority 40 waits in hd_join for quitter #1, for "));
	CHECK(says(said, "heddle:     in quit, faults.c:"));
	CHECK(says(said, "heddle:   quitter #1 of priority 40 "));
}

HD_TEST(quit_is_the_programs_own_if_it_has_a_handler)
{
	static void (*const actions[])(int) = { count_quit, SIG_IGN, SIG_DFL };

	skip_if_signals_are_not_real();
	capture_begin();
	for (int i = 0; i < 3; i++) {
		quits = 0;
		signal(SIGQUIT, actions[i]);
		CHECK_EQ(hd_run(&two_workers, i == 1 ? nothing : quit, &quits), 0);
		CHECK_EQ(quits, i != 1);
		CHECK(signal(SIGQUIT, SIG_DFL) == (i == 1 ? SIG_IGN : count_quit));
	}
	CHECK_STR(capture_end(), "");
}

static const char *to_be_said; /* by the watcher, before the processes go on */

static void wait_until_said(void)
{
	while (strstr(captured(), to_be_said) == NULL)
		usleep(1000); /* every worker may be here: the watcher needs none */
}

struct stuck {
	int begun;
	bool said;
};

static void *loop_until_said(void *arg)
{
	struct stuck *stuck = arg;

	__atomic_store_n(&stuck->begun, 1, __ATOMIC_RELEASE);
	while (!__atomic_load_n(&stuck->said, __ATOMIC_ACQUIRE))
		usleep(1000);
	return NULL;
}

static void *stick(void *arg)
{
	struct stuck stuck = { .said = false };
	hd_pid pid = hd_spawn_with(&(struct hd_spawn){ .name = "sticker" }, loop_until_said, &stuck);

	while (!__atomic_load_n(&stuck.begun, __ATOMIC_ACQUIRE))
		usleep(1000); /* the other worker takes it: both are in loops then */
	kill(getpid(), SIGQUIT);
	wait_until_said();
	__atomic_store_n(&stuck.said, true, __ATOMIC_RELEASE);
	CHECK_EQ(hd_join(pid, NULL, HD_FOREVER), 0);
	return arg;
}

HD_TEST(quit_dumps_and_goes_on_while_all_workers_are_stuck)
{
	skip_if_signals_are_not_real();
	signal(SIGQUIT, SIG_DFL);
	CHECK_EQ(setenv("HEDDLE_QUIT", "dump", 1), 0);
	capture_begin();
	to_be_said = "heddle:   sticker #1 of priority 40 runs on worker ";
	for (int round = 0; round < 2; round++)
		CHECK_EQ(hd_run(&two_workers, stick, NULL), 0);
	const char *said = capture_end();
	CHECK(times_said(said, "heddle: SIGQUIT: ") >= 1);
	CHECK(says(said, "heddle:   main #0 of priority 40 runs on worker "));
	CHECK(signal(SIGQUIT, SIG_DFL) == SIG_DFL);
}

static struct hd_mutex cup, pot;
static struct hd_barrier both = HD_BARRIER(2);

static void *take_both(void *arg)
{
	struct hd_mutex *one = arg, *other = one == &cup ? &pot : &cup;

	CHECK_EQ(hd_mutex_lock(one, HD_FOREVER), 0);
	CHECK(hd_barrier_wait(&both, HD_FOREVER) >= 0);
	ANY_ANSWER(hd_mutex_lock(other, HD_FOREVER));
	return NULL;
}

static void *ask_about_circle(void *arg)
{
	struct hd_process_info info = { .why = HD_WAIT_NONE };
	hd_pid ann = hd_spawn_with(&(struct hd_spawn){ .name = "ann" }, take_both, &cup);
	hd_pid bob = hd_spawn_with(&(struct hd_spawn){ .name = "bob" }, take_both, &pot);

	for (int i = 0; i < 2; i++)
		while (hd_process_info(i == 0 ? ann : bob, &info) == 0 && (info.why != HD_WAIT_MUTEX || info.holder == 0))
			hd_yield();
	kill(getpid(), SIGQUIT);
	wait_until_said();
	hd_shutdown(0);
	return arg;
}

HD_TEST(quit_tells_of_a_circle)
{
	skip_if_signals_are_not_real();
	signal(SIGQUIT, SIG_DFL);
	CHECK_EQ(setenv("HEDDLE_QUIT", "dump", 1), 0);
	capture_begin();
	to_be_said = "heddle:   bob #2 waits in hd_mutex_lock for ann #1\n";
	CHECK_EQ(hd_run(&one_worker, ask_about_circle, NULL), 0);
	const char *said = capture_end();
	CHECK(says(said, "heddle: a circle of 2 processes, each of which waits for the next: a deadlock\n"
			 "heddle:   ann #1 waits in hd_mutex_lock for bob #2\n"
			 "heddle:   bob #2 waits in hd_mutex_lock for ann #1\n"));
	CHECK_EQ(times_said(said, "a circle of"), 1);
}

static void *check_no_action(void *arg)
{
	CHECK(signal(SIGQUIT, SIG_DFL) == SIG_DFL);
	return arg;
}

HD_TEST(quit_can_be_left_alone)
{
	skip_if_signals_are_not_real();
	signal(SIGQUIT, SIG_DFL);
	CHECK_EQ(setenv("HEDDLE_QUIT", "off", 1), 0);
	CHECK_EQ(hd_run(&two_workers, check_no_action, NULL), 0);
	CHECK_EQ(setenv("HEDDLE_QUIT", "later", 1), 0);
	capture_begin();
	CHECK_EQ(hd_run(&two_workers, check_no_action, NULL), -EINVAL);
	CHECK_STR(capture_end(), "heddle: HEDDLE_QUIT=later: expected core, dump, off\n");
}

static void *check_quit_in_child(void *arg)
{
	int status;
	pid_t child = fork();
	if (child == 0) {
		raise(SIGQUIT);
		_exit(99);
	}
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK(WIFSIGNALED(status));
	CHECK_EQ(WTERMSIG(status), SIGQUIT);
	return arg;
}

HD_TEST(quit_is_as_before_in_a_forked_child_and_after_the_run)
{
	struct rlimit none = { 0, 0 };

	skip_if_signals_are_not_real();
	if (HD_UNDER_TSAN || hd_is_emulated())
		SKIP("a forked child can have no threads here");
	if (HD_UNDER_ASAN)
		SKIP("the locks of its allocator may stay locked in a forked child: by a thread that was about to start");
	setrlimit(RLIMIT_CORE, &none);
	signal(SIGQUIT, SIG_DFL);
	capture_begin();
	CHECK_EQ(hd_run(&one_worker, check_quit_in_child, NULL), 0);
	CHECK_STR(capture_end(), "");
	CHECK(signal(SIGQUIT, SIG_DFL) == SIG_DFL);
}
