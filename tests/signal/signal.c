/* Signals that processes wait for: each is taken once, by one process; none is lost to a deadline, a cancel or a thread that did not block
 * it; and the program has its actions and its mask back afterwards. */
#include "rt/capture.h"

#include <dirent.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "os/fault.h"
#include "sync/common.h"

#define SKIP_SIMULATED()                                                                                                       \
	if (hd_is_simulated())                                                                                                 \
	SKIP("the simulated runtime has no signals")
#define SKIP_WITHOUT_FORK()                                                                                                    \
	if (hd_is_simulated() || HD_UNDER_TSAN || hd_is_emulated())                                                            \
	SKIP("a forked child can have no threads here")

static sigset_t set_of(int first, int second)
{
	sigset_t these;

	sigemptyset(&these);
	sigaddset(&these, first);
	if (second != 0)
		sigaddset(&these, second);
	return these;
}

static int count_fds(void)
{
	DIR *d = opendir("/proc/self/fd");
	int n = 0;

	CHECK(d != NULL);
	while (readdir(d) != NULL)
		n++;
	closedir(d);
	return n;
}

/* A process that waits for SIGUSR1 or SIGUSR2 until `until`, and answers the signal, or -errno. */
static hd_time patience = HD_FOREVER;

static void *wait_for_either(void *arg)
{
	sigset_t these = set_of(SIGUSR1, SIGUSR2);
	int sig = 0, err = hd_sigwait(&these, &sig, patience);

	(void)arg;
	return (void *)(long)(err != 0 ? err : sig);
}

static long answer_of(hd_pid pid)
{
	void *result = NULL;

	CHECK_EQ(hd_join(pid, &result, HD_FOREVER), 0);
	return (long)result;
}

static void await_waiting(hd_pid pid)
{
	while (info_on(pid).state != HD_WAITING || info_on(pid).why != HD_WAIT_SIGNAL)
		CHECK_EQ(hd_sleep(HD_US(50)), 0);
}

static hd_pid waiting(void)
{
	hd_pid pid = spawned(hd_spawn(wait_for_either, NULL));

	await_waiting(pid);
	return pid;
}

/* Whether a signal is pending; it is taken. */
static int take_pending(void)
{
	sigset_t these = set_of(SIGUSR1, SIGUSR2);
	int sig = 0, err = hd_sigwait(&these, &sig, 0);

	CHECK(err == 0 || err == -ETIMEDOUT);
	return sig;
}

/* ---- one signal ---- */

HD_WORKERS_TEST(signal_wakes_the_process_that_waits_for_it)
{
	SKIP_SIMULATED();
	for (int round = 0; another_round(round, hd_scaled(200)); round++) {
		int sig = round % 2 ? SIGUSR1 : SIGUSR2;
		hd_pid pid = waiting();
		CHECK_EQ(info_on(pid).fd, -1); /* it has one, which is not the program's */
		CHECK_EQ(kill(getpid(), sig), 0);
		CHECK_EQ(answer_of(pid), sig);
	}
	(void)workers;
}

HD_WORKERS_TEST(signal_without_a_waiter_is_kept_for_the_next_wait)
{
	SKIP_SIMULATED();
	CHECK_EQ(take_pending(), 0); /* from now on they are kept */
	CHECK_EQ(kill(getpid(), SIGUSR2), 0);
	CHECK_EQ(kill(getpid(), SIGUSR1), 0);
	patience = hd_after(HD_SEC(20));
	long first = (long)wait_for_either(NULL), second = (long)wait_for_either(NULL);
	CHECK(first == SIGUSR1 || first == SIGUSR2); /* other workers may still have to block them */
	CHECK_EQ(second, SIGUSR1 + SIGUSR2 - first);
	CHECK_EQ(take_pending(), 0);
	patience = HD_FOREVER;
	(void)workers;
}

/* What is known of the sender is told, also when the signal was sent on by a thread that had not blocked it. */
HD_WORKERS_TEST(signal_tells_its_sender)
{
	sigset_t these = set_of(SIGUSR1, 0), others = set_of(SIGRTMIN + 2, 0);
	struct hd_signal info;
	int status;

	SKIP_WITHOUT_FORK();
	CHECK_EQ(hd_sigwaitinfo(&these, &info, 0), -ETIMEDOUT);
	CHECK_EQ(hd_sigwaitinfo(&others, &info, 0), -ETIMEDOUT);
	for (int round = 0; another_round(round, 20); round++) {
		pid_t child = fork();
		if (child == 0) {
			kill(getppid(), SIGUSR1);
			sigqueue(getppid(), SIGRTMIN + 2, (union sigval){ .sival_ptr = (void *)0x1234 });
			_exit(0);
		}
		CHECK_EQ(waitpid(child, &status, 0), child);
		CHECK_EQ(hd_sigwaitinfo(&these, &info, HD_FOREVER), 0);
		CHECK_EQ(info.signo, SIGUSR1);
		CHECK_EQ(info.code, SI_USER);
		CHECK_EQ(info.pid, child);
		CHECK_EQ(info.uid, getuid());
		CHECK_EQ(hd_sigwaitinfo(&others, &info, HD_FOREVER), 0);
		CHECK_EQ(info.signo, SIGRTMIN + 2);
		CHECK_EQ(info.code, SI_QUEUE);
		CHECK_EQ(info.pid, child);
		CHECK_EQ(info.value, 0x1234);
	}
	(void)workers;
}

struct one {
	sigset_t these;
	int sig;
};

static void *wait_for_one(void *arg)
{
	struct one *one = arg;
	return (void *)(long)hd_sigwait(&one->these, &one->sig, HD_FOREVER);
}

HD_WORKERS_TEST(signal_sets_of_waiters_may_differ)
{
	const int sigs[3] = { SIGUSR1, SIGUSR2, SIGHUP };
	struct one ones[3];
	hd_pid pids[3];

	SKIP_SIMULATED();
	for (int round = 0; another_round(round, hd_scaled(50)); round++) {
		for (int i = 0; i < 3; i++) {
			ones[i] = (struct one){ set_of(sigs[i], 0), 0 };
			await_waiting(pids[i] = spawned(hd_spawn(wait_for_one, &ones[i])));
		}
		for (int i = 2; i >= 0; i--) {
			CHECK_EQ(kill(getpid(), sigs[i]), 0);
			CHECK_EQ(answer_of(pids[i]), 0);
			CHECK_EQ(ones[i].sig, sigs[i]);
			CHECK_EQ(ones[0].sig, i == 0 ? SIGUSR1 : 0);
		}
	}
	(void)workers;
}

/* ---- what ends a wait otherwise ---- */

HD_WORKERS_TEST(signal_wait_has_a_deadline)
{
	SKIP_SIMULATED();
	int fds = 0;
	for (int round = 0; another_round(round, 20); round++) {
		patience = hd_after(HD_MS(1));
		CHECK_EQ((long)wait_for_either(NULL), -ETIMEDOUT);
		if (round == 0)
			fds = count_fds();
	}
	CHECK_EQ(count_fds(), fds);
	patience = HD_SEC(5); /* a duration */
	CHECK_EQ((long)wait_for_either(NULL), -EINVAL);
	patience = HD_FOREVER;
	(void)workers;
}

HD_WORKERS_TEST(signal_wait_can_be_cancelled_and_terminated)
{
	SKIP_SIMULATED();
	int fds = 0;
	for (int round = 0; another_round(round, hd_scaled(50)); round++) {
		hd_pid pid = waiting();
		CHECK_EQ(hd_cancel(pid), 0);
		CHECK_EQ(answer_of(pid), -ECANCELED);
		pid = waiting();
		CHECK_EQ(hd_terminate(pid, HD_FOREVER), 0);
		CHECK_EQ(end_of(pid).kind, HD_END_KILLED);
		if (round == 0)
			fds = count_fds();
	}
	CHECK(count_fds() <=
	      fds + 2 * (workers -
			 1)); /* each had a descriptor; and so have workers that have waited for the first time since then */
	CHECK_EQ(take_pending(), 0);
}

static void *send_it(void *arg)
{
	(void)arg;
	CHECK_EQ(kill(getpid(), SIGUSR1), 0);
	return NULL;
}

static void *cancel_it(void *pid)
{
	ANY_ANSWER(hd_cancel(*(hd_pid *)pid));
	return NULL;
}

/* One signal was sent, and a waiter answered `got`: it has the signal, or the signal is pending, or about to be: a thread that had not blocked it
 * sends it on. */
static void check_one_signal(long got)
{
	patience = HD_FOREVER;
	if (got != SIGUSR1)
		CHECK_EQ((long)wait_for_either(NULL), SIGUSR1);
	CHECK_EQ(take_pending(), 0);
}

/* A signal and a cancel race for one wait. Whichever comes first, there is one signal: the waiter has it, or it is pending. */
HD_WORKERS_TEST(signal_survives_cancel_race)
{
	long taken = 0, kept = 0;

	SKIP_SIMULATED();
	for (int round = 0; another_round(round, hd_scaled(400)); round++) {
		hd_pid waiter = waiting();
		hd_pid a = spawned(hd_spawn(round % 2 ? send_it : cancel_it, &waiter));
		hd_pid b = spawned(hd_spawn(round % 2 ? cancel_it : send_it, &waiter));
		CHECK_EQ(hd_join(a, NULL, HD_FOREVER), 0);
		CHECK_EQ(hd_join(b, NULL, HD_FOREVER), 0);
		long got = answer_of(waiter);
		CHECK(got == SIGUSR1 || got == -ECANCELED);
		check_one_signal(got);
		*(got == SIGUSR1 ? &taken : &kept) += 1;
	}
	CHECK(taken + kept > 0);
	(void)workers;
}

/* A signal and a deadline race for one wait. */
HD_WORKERS_TEST(signal_survives_deadline_race)
{
	SKIP_SIMULATED();
	CHECK_EQ(take_pending(), 0);
	for (int round = 0; another_round(round, hd_scaled(400)); round++) {
		patience = hd_after(HD_US(20 + round % 100));
		hd_pid waiter = spawned(hd_spawn(wait_for_either, NULL));
		hd_pid sender = spawned(hd_spawn(send_it, NULL));
		CHECK_EQ(hd_join(sender, NULL, HD_FOREVER), 0);
		long got = answer_of(waiter);
		CHECK(got == SIGUSR1 || got == -ETIMEDOUT);
		check_one_signal(got);
	}
	patience = HD_FOREVER;
	(void)workers;
}

HD_WORKERS_TEST(signal_wait_survives_interrupts_and_want_of_descriptors)
{
	SKIP_SIMULATED();
	CHECK_EQ(kill(getpid(), take_pending() == 0 ? SIGUSR1 : 0), 0);
	hd__fault_arm(HD__FAULT_EINTR, 1, false);
	CHECK_EQ((long)wait_for_either(NULL), SIGUSR1);
	hd__fault_arm(HD__FAULT_FD, 1, false);
	CHECK_EQ((long)wait_for_either(NULL), -EMFILE);
	hd__fault_arm(HD__FAULT_FD, 0, false);
	hd_pid pid = waiting();
	CHECK_EQ(kill(getpid(), SIGUSR2), 0);
	CHECK_EQ(answer_of(pid), SIGUSR2);
	(void)workers;
}

static void *wait_whatever_comes(void *arg)
{
	CHECK_EQ(hd_set_cancel_state(HD_CANCEL_DISABLED), HD_CANCEL_ENABLED);
	return wait_for_either(arg);
}

static void *end_over_waiter(void *arg)
{
	await_waiting(spawned(hd_spawn(wait_whatever_comes, NULL)));
	CHECK_EQ(hd_shutdown(0), 0);
	return arg;
}

/* The runtime ends over a process that does not hear of it. */
HD_TEST(signal_wait_that_is_abandoned_leaves_no_descriptor)
{
	SKIP_SIMULATED();
	int fds = count_fds();
	CHECK_EQ(run_with_workers(2, end_over_waiter, NULL), 0);
	CHECK_EQ(count_fds(), fds);
}

/* ---- answers ---- */

HD_PROCESS_TEST(signal_that_no_process_can_wait_for_is_refused)
{
	static const int never[] = { SIGKILL, SIGSTOP, SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS };
	sigset_t these;
	int sig;

	SKIP_SIMULATED();
	errno = 7;
	for (unsigned i = 0; i < sizeof never / sizeof never[0]; i++) {
		these = set_of(SIGUSR1, never[i]);
		CHECK_EQ(hd_sigwait(&these, &sig, 0), -EINVAL);
		CHECK_EQ(hd_signal_semaphore(never[i], &(struct hd_semaphore)HD_SEMAPHORE(0)), -EINVAL);
	}
	sigemptyset(&these);
	CHECK_EQ(hd_sigwait(&these, &sig, HD_FOREVER), -EINVAL);
	CHECK_EQ(hd_sigwait(NULL, &sig, HD_FOREVER), -EINVAL);
	CHECK_EQ(hd_signal_semaphore(0, NULL), -EINVAL);
	CHECK_EQ(hd_signal_semaphore(65, NULL), -EINVAL);
	CHECK_EQ(hd_signal_semaphore(SIGUSR1, NULL), 0);
	CHECK_EQ(errno, 7);

	const char *const argv[] = { "sleep", "100", NULL };
	pid_t child = hd_spawn_child(&(struct hd_child){ .argv = argv }, NULL);
	do /* until a thread was interrupted, by heddle's own */
		CHECK_EQ(hd_waitpid(-1, NULL, 0, hd_after(HD_MS(2))), -ETIMEDOUT);
	while (hd_signal_semaphore(SIGRTMAX, NULL) == 0);
	CHECK_EQ(hd_signal_semaphore(SIGRTMAX, NULL), -EINVAL);
	CHECK_EQ(kill(child, SIGKILL), 0);
	CHECK_EQ(hd_waitpid(child, NULL, 0, HD_FOREVER), child);
}

HD_TEST(signal_wait_is_for_processes)
{
	sigset_t these = set_of(SIGUSR1, 0);

	CHECK_EQ(hd_sigwait(&these, NULL, 0), -ENOTSUP);
	CHECK_EQ(hd_signal_semaphore(SIGUSR1, NULL), -ENOTSUP);
}

static int begin[2]; /* a pipe: the child begins when a byte comes */

/* A child that sends SIGUSR2, some time after it was told to begin. */
static pid_t sender(void)
{
	char byte;
	pid_t parent = getpid();

	CHECK_EQ(pipe(begin), 0);
	pid_t child = fork();
	CHECK(child >= 0);
	if (child != 0)
		return child;
	if (read(begin[0], &byte, 1) == 1) {
		usleep(50000);
		kill(parent, SIGUSR2);
	}
	_exit(0);
}

/* All workers are idle until the child sends it. */
static void *wait_unobserved(void *arg)
{
	CHECK_EQ(take_pending(), 0);
	CHECK_EQ(write(begin[1], "b", 1), 1);
	CHECK_EQ((long)wait_for_either(NULL), SIGUSR2);
	return arg;
}

HD_TEST(signal_wait_is_no_deadlock)
{
	int status;

	SKIP_WITHOUT_FORK();
	for (int workers = 1; workers <= 2; workers++) {
		pid_t child = sender();
		CHECK_EQ(run_with_workers(workers, wait_unobserved, NULL), 0);
		CHECK_EQ(waitpid(child, &status, 0), child);
	}
}

/* ---- what belongs to the program ---- */

static long handled;

static void handle(int sig)
{
	(void)sig;
	add(&handled, 1);
}

/* A handler of the program runs as ever, and ends no wait. */
HD_WORKERS_TEST(signal_handlers_of_the_program_go_on)
{
	struct sigaction mine = { .sa_handler = handle };

	SKIP_SIMULATED();
	set(&handled, 0);
	CHECK_EQ(sigaction(SIGALRM, &mine, NULL), 0);
	hd_pid pid = waiting();
	for (int i = 1; i <= 20; i++) {
		CHECK_EQ(kill(getpid(), SIGALRM), 0);
		while (value_of(&handled) < i)
			CHECK_EQ(hd_sleep(HD_US(50)), 0);
		CHECK_EQ(info_on(pid).why, HD_WAIT_SIGNAL);
	}
	CHECK_EQ(kill(getpid(), SIGUSR1), 0);
	CHECK_EQ(answer_of(pid), SIGUSR1);
	(void)workers;
}

static void *take_several(void *arg)
{
	sigset_t these = set_of(SIGUSR1, SIGHUP);
	int sig;

	sigaddset(&these, SIGQUIT); /* which the report of heddle has, unless the program says otherwise */
	for (int i = 0; i < 3; i++) {
		CHECK_EQ(hd_sigwait(&these, &sig, 0), -ETIMEDOUT);
		CHECK_EQ(kill(getpid(), i == 0 ? SIGUSR1 : i == 1 ? SIGHUP : SIGQUIT), 0);
		CHECK_EQ(hd_sigwait(&these, &sig, HD_FOREVER), 0);
	}
	CHECK_EQ(hd_signal_semaphore(SIGTERM, arg), 0);
	return arg;
}

HD_TEST(signal_actions_and_mask_come_back)
{
	static struct hd_semaphore s;
	struct sigaction mine = { .sa_handler = handle }, ignore = { .sa_handler = SIG_IGN }, now;
	sigset_t before, after, these = set_of(SIGHUP, 0);

	SKIP_SIMULATED();
	CHECK_EQ(sigaction(SIGUSR1, &mine, NULL), 0);
	CHECK_EQ(sigaction(SIGTERM, &ignore, NULL), 0);
	pthread_sigmask(SIG_BLOCK, &these, NULL); /* by the program: it stays so */
	pthread_sigmask(SIG_BLOCK, NULL, &before);
	for (int workers = 1; workers <= 8; workers *= 2) {
		CHECK_EQ(run_with_workers(workers, take_several, &s), 0);
		pthread_sigmask(SIG_BLOCK, NULL, &after);
		for (int sig = 1; sig < 64; sig++)
			CHECK_EQ(sigismember(&after, sig), sigismember(&before, sig));
		CHECK(sigaction(SIGUSR1, NULL, &now) == 0 && now.sa_handler == handle);
		CHECK(sigaction(SIGTERM, NULL, &now) == 0 && now.sa_handler == SIG_IGN);
		CHECK(sigaction(SIGHUP, NULL, &now) == 0 && now.sa_handler == SIG_DFL);
		CHECK(sigaction(SIGQUIT, NULL, &now) == 0 && now.sa_handler == SIG_DFL);
	}
}

static void *take_and_replace(void *arg)
{
	struct sigaction mine = { .sa_handler = handle };

	CHECK_EQ(take_pending(), 0);
	CHECK_EQ(sigaction(SIGUSR1, &mine, NULL), 0);
	return arg;
}

HD_TEST(signal_action_that_the_program_changed_stays)
{
	struct sigaction now;

	SKIP_SIMULATED();
	CHECK_EQ(run_with_workers(2, take_and_replace, NULL), 0);
	CHECK(sigaction(SIGUSR1, NULL, &now) == 0 && now.sa_handler == handle);
	CHECK(sigaction(SIGUSR2, NULL, &now) == 0 && now.sa_handler == SIG_DFL);
}

/* ---- threads that have not blocked it ---- */

static long threads_begun, threads_end;

static void *be_a_thread(void *arg)
{
	sigset_t these = set_of(SIGUSR1, SIGUSR2);

	pthread_sigmask(SIG_UNBLOCK, &these, NULL);
	add(&threads_begun, 1);
	while (value_of(&threads_end) == 0)
		usleep(100);
	pthread_sigmask(SIG_BLOCK, NULL, &these);
	*(bool *)arg = sigismember(&these, SIGUSR2);
	return NULL;
}

/* Threads of the program that know nothing of heddle, and processes that never come by a safe point: none of them makes a signal kill
 * the program, or lets one be lost. */
HD_WORKERS_TEST(signal_comes_through_threads_that_do_not_block_it)
{
	pthread_t threads[4];
	bool blocked[4];

	SKIP_SIMULATED();
	if (HD_UNDER_TSAN)
		SKIP("under TSan, in some 3 of 1,000 runs beside others, a signal is lost; where is not known");
	set(&threads_begun, 0);
	set(&threads_end, 0);
	for (int i = 0; i < 4; i++)
		CHECK_EQ(pthread_create(&threads[i], NULL, be_a_thread, &blocked[i]), 0);
	while (value_of(&threads_begun) < 4)
		CHECK_EQ(hd_sleep(HD_US(50)), 0);
	for (int round = 0; another_round(round, hd_scaled(50)); round++) {
		hd_pid pid = waiting();
		CHECK_EQ(kill(getpid(), SIGUSR1), 0);
		CHECK_EQ(answer_of(pid), SIGUSR1);
		if (round == 0) { /* it is sent on by that thread, and by the others, which all block it then */
			CHECK_EQ(pthread_kill(threads[0], SIGUSR2), 0);
			CHECK_EQ(answer_of(spawned(hd_spawn(wait_for_either, NULL))), SIGUSR2);
		}
	}
	set(&threads_end, 1);
	for (int i = 0; i < 4; i++)
		CHECK_EQ(pthread_join(threads[i], NULL), 0);
	CHECK(blocked[0]); /* or every signal would go round and round */
	(void)workers;
}

static void *yield_until_blocked(void *waits)
{
	sigset_t these = set_of(SIGUSR1, 0);

	if (waits != NULL)
		CHECK_EQ(hd_sigwait(&these, NULL, 0), -ETIMEDOUT);
	do {
		hd_yield();
		pthread_sigmask(SIG_BLOCK, NULL, &these);
	} while (!sigismember(&these, SIGUSR1));
	return NULL;
}

/* Also by workers that never sleep. */
HD_WORKERS_TEST(signal_is_blocked_by_all_workers_soon)
{
	struct crew crew;
	void *waits[WORKERS_MAX] = { &crew };

	SKIP_SIMULATED();
	start_crew(&crew, NULL, workers, yield_until_blocked, waits);
	join_crew_members(&crew);
}

/* ---- storms ---- */

#define STORM 10000
#define NUMBERS 4
#define WAITERS 6

static unsigned char seen[NUMBERS][STORM];
static long taken, merged;

static void *take_storm(void *arg)
{
	sigset_t these = set_of(SIGHUP, 0);
	struct hd_signal info;

	for (int i = 0; i < NUMBERS; i++)
		sigaddset(&these, SIGRTMIN + i);
	while (hd_sigwaitinfo(&these, &info, HD_FOREVER) == 0) {
		if (info.signo == SIGHUP) {
			add(&merged, 1);
			continue;
		}
		CHECK_EQ(__atomic_add_fetch(&seen[info.signo - SIGRTMIN][info.value], 1, __ATOMIC_RELAXED), 1);
		add(&taken, 1);
	}
	return arg;
}

static pid_t send_storm(int n, bool slowly)
{
	pid_t parent = getpid(), child = fork();

	CHECK(child >= 0);
	if (child != 0)
		return child;
	for (int i = 0; i < n; i++) {
		while (sigqueue(parent, SIGRTMIN + i % NUMBERS, (union sigval){ .sival_ptr = (void *)(long)(i / NUMBERS) }) !=
		       0)
			usleep(100);
		if (i % 8 == 0)
			kill(parent, SIGHUP);
		if (i % 8 == 0 && slowly)
			usleep(300);
	}
	_exit(0);
}

static void *weather_storm(void *arg)
{
	hd_pid pids[WAITERS];
	sigset_t these = set_of(SIGHUP, 0);
	int n = hd_scaled(STORM), status;

	(void)arg;
	for (int i = 0; i < NUMBERS; i++)
		sigaddset(&these, SIGRTMIN + i);
	CHECK_EQ(hd_sigwait(&these, NULL, 0), -ETIMEDOUT);
	memset(seen, 0, sizeof seen);
	set(&taken, 0);
	set(&merged, 0);
	for (int i = 0; i < WAITERS; i++)
		pids[i] = spawned(hd_spawn(take_storm, NULL));
	pid_t child = send_storm(n, false);
	while (value_of(&taken) < n)
		CHECK_EQ(hd_sleep(HD_MS(1)), 0);
	CHECK_EQ(waitpid(child, &status, 0), child);
	for (int i = 0; i < WAITERS; i++)
		CHECK_EQ(hd_cancel(pids[i]), 0);
	for (int i = 0; i < WAITERS; i++)
		CHECK_EQ(answer_of(pids[i]), 0);
	CHECK_EQ(value_of(&taken), n);
	return NULL;
}

/* None is lost and none comes twice, whether or not the threads have blocked them before. */
HD_TEST(signal_storm_is_taken_exactly)
{
	SKIP_WITHOUT_FORK();
	for (int workers = 1; workers <= 8; workers *= 2)
		CHECK_EQ(run_with_workers(workers, weather_storm, NULL), 0);
}

static void *take_in_order(void *arg)
{
	sigset_t these = set_of(SIGRTMIN, 0);
	struct hd_signal info;
	int status, n = hd_scaled(STORM) / NUMBERS;
	pid_t child = send_storm(n * NUMBERS, false);

	for (int i = 0; i < n; i++) {
		CHECK_EQ(hd_sigwaitinfo(&these, &info, HD_FOREVER), 0);
		CHECK_EQ(info.value, i);
	}
	CHECK_EQ(waitpid(child, &status, 0), child);
	for (int i = 0; i < NUMBERS; i++)
		sigaddset(&these, SIGRTMIN + i);
	for (int i = n; i < NUMBERS * n; i++) { /* the lowest number first */
		CHECK_EQ(hd_sigwaitinfo(&these, &info, HD_FOREVER), 0);
		CHECK_EQ(info.signo, SIGRTMIN + i / n);
		CHECK_EQ(info.value, i % n);
	}
	return arg;
}

HD_TEST(signal_order_is_kept_if_the_program_blocked_it)
{
	SKIP_WITHOUT_FORK();
	sigset_t these = set_of(SIGHUP, 0);
	for (int i = 0; i < NUMBERS; i++)
		sigaddset(&these, SIGRTMIN + i);
	pthread_sigmask(SIG_BLOCK, &these, NULL);
	CHECK_EQ(run_with_workers(8, take_in_order, NULL), 0);
}

static void count_it(int sig, siginfo_t *info, void *context)
{
	(void)context;
	__atomic_add_fetch(&seen[sig - SIGRTMIN][(long)info->si_value.sival_ptr], 1, __ATOMIC_RELAXED);
	add(&handled, 1);
}

static void *take_some(void *arg)
{
	sigset_t these = set_of(SIGRTMIN, SIGRTMIN + 1);
	struct hd_signal info;

	for (int i = 0; i < 20 && hd_sigwaitinfo(&these, &info, hd_after(HD_MS(1))) == 0; i++) {
		__atomic_add_fetch(&seen[info.signo - SIGRTMIN][info.value], 1, __ATOMIC_RELAXED);
		add(&taken, 1);
	}
	return arg;
}

static void *take_some_in_several(void *arg)
{
	hd_pid pids[3];

	for (int i = 0; i < 3; i++)
		pids[i] = spawned(hd_spawn(take_some, NULL));
	for (int i = 0; i < 3; i++)
		CHECK_EQ(answer_of(pids[i]), 0);
	return arg;
}

/* A handler of the program has them before a runtime takes them, and after it has ended; and they come all the time. Each of them is handled or
 * taken, once. */
HD_TEST(signal_changes_hands_without_loss)
{
	struct sigaction mine = { .sa_sigaction = count_it, .sa_flags = SA_SIGINFO | SA_RESTART };
	int n = hd_scaled(2000), status = 0, workers = 1;

	SKIP_WITHOUT_FORK();
	for (int i = 0; i < NUMBERS; i++)
		CHECK_EQ(sigaction(SIGRTMIN + i, &mine, NULL), 0);
	signal(SIGHUP, SIG_IGN);
	pid_t child = send_storm(n, true), ended;
	do {
		ended = waitpid(child, &status, WNOHANG);
		CHECK_EQ(run_with_workers(workers, take_some_in_several, NULL), 0);
		workers = workers % 8 + 1;
	} while (ended == 0);
	CHECK_EQ(value_of(&handled) + value_of(&taken), n);
	for (int i = 0; i < n; i++)
		CHECK_EQ(seen[i % NUMBERS][i / NUMBERS], 1);
	CHECK(value_of(&taken) > 0);
}

/* A program that ignores SIGCHLD has no zombies, also while a process waits for the signal; and hears of each child. */
HD_WORKERS_TEST(signal_of_children_that_are_ignored)
{
	const char *const argv[] = { "true", NULL };
	sigset_t these = set_of(SIGCHLD, 0);
	struct hd_signal info;

	SKIP_SIMULATED();
	signal(SIGCHLD, SIG_IGN);
	CHECK_EQ(hd_sigwaitinfo(&these, &info, 0), -ETIMEDOUT);
	for (int i = 0; i < 5; i++) {
		pid_t child = hd_spawn_child(&(struct hd_child){ .argv = argv }, NULL);
		CHECK(child > 0);
		CHECK_EQ(hd_sigwaitinfo(&these, &info, HD_FOREVER), 0);
		CHECK_EQ(info.code, CLD_EXITED);
		CHECK_EQ(info.pid, child);
		CHECK_EQ(info.status, 0);
		CHECK_EQ(hd_waitpid(child, NULL, 0, HD_FOREVER), -ECHILD);
	}
	(void)workers;
}

/* ---- semaphores ---- */

static struct hd_semaphore told;

HD_WORKERS_TEST(signal_signals_a_semaphore)
{
	struct sigaction now;
	sigset_t these = set_of(SIGUSR1, 0);

	SKIP_SIMULATED();
	hd_semaphore_init(&told, 0);
	CHECK_EQ(hd_signal_semaphore(SIGUSR1, &told), 0);
	CHECK_EQ(hd_signal_semaphore(SIGUSR1, &told), -EBUSY);
	CHECK_EQ(hd_sigwait(&these, NULL, HD_FOREVER), -EBUSY);
	for (int i = 0; i < 20; i++) {
		CHECK_EQ(kill(getpid(), SIGUSR1), 0);
		CHECK_EQ(hd_semaphore_wait(&told, HD_FOREVER), 0);
	}
	CHECK_EQ(hd_signal_semaphore(SIGUSR1, NULL), 0);
	CHECK(sigaction(SIGUSR1, NULL, &now) == 0 && now.sa_handler == SIG_DFL);
	CHECK_EQ(hd_signal_semaphore(SIGUSR1, NULL), 0);
	CHECK_EQ(hd_sigwait(&these, NULL, 0), -ETIMEDOUT);
	CHECK_EQ(hd_signal_semaphore(SIGUSR1, &told), -EBUSY);
	(void)workers;
}

static void *wait_for_told(void *arg)
{
	(void)arg;
	hd_semaphore_init(&told, 0);
	CHECK_EQ(hd_signal_semaphore(SIGUSR2, &told), 0);
	CHECK_EQ(write(begin[1], "b", 1), 1);
	CHECK_EQ(hd_semaphore_wait(&told, HD_FOREVER), 0); /* no deadlock: the child will send it */
	CHECK_EQ(hd_signal_semaphore(SIGUSR2, NULL), 0);
	return (void *)(long)hd_semaphore_wait(&told, HD_FOREVER); /* and now it is one */
}

HD_TEST(signal_semaphore_is_no_deadlock_while_it_has_a_signal)
{
	int status;

	SKIP_WITHOUT_FORK();
	if (hd_is_haunted())
		SKIP("nothing is a deadlock here");
	pid_t child = sender();
	capture_begin();
	CHECK_EQ(run_with_workers(2, wait_for_told, NULL), -EDEADLK);
	capture_end();
	CHECK_EQ(waitpid(child, &status, 0), child);
}

/* ---- fork ---- */

/* A child that is forked while processes wait for signals has the program's actions and mask; the parent's waits go on. */
HD_WORKERS_TEST(signal_forked_child_has_the_programs_actions)
{
	struct sigaction now;
	sigset_t mask;
	int status;

	SKIP_WITHOUT_FORK();
	hd_pid pid = waiting();
	pid_t child = fork();
	if (child == 0) {
		CHECK(sigaction(SIGUSR1, NULL, &now) == 0 && now.sa_handler == SIG_DFL);
		pthread_sigmask(SIG_BLOCK, NULL, &mask);
		CHECK(!sigismember(&mask, SIGUSR1));
		raise(SIGUSR1);
		_exit(1);
	}
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGUSR1);
	CHECK_EQ(kill(getpid(), SIGUSR2), 0);
	CHECK_EQ(answer_of(pid), SIGUSR2);
	(void)workers;
}
