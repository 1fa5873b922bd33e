/* Signals that arrive as messages: each that the kernel has is sent once, in order, with what is known of it; until it is undone, or the port's owner ends. */
#define _GNU_SOURCE
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "port/common.h"

#define SKIP_SIMULATED()                                                                                                       \
	if (hd_is_simulated())                                                                                                 \
	SKIP("the simulated runtime has no signals")

static struct hd_signal received_signal(hd_port *port, int sig)
{
	struct hd_message m;

	CHECK_EQ(hd_receive(port, &m, HD_FOREVER), 0);
	CHECK_EQ(m.tag, sig);
	CHECK_EQ(m.sender, 0);
	CHECK_EQ(m.size, sizeof(struct hd_signal));
	struct hd_signal signal = *(struct hd_signal *)m.data;
	CHECK_EQ(signal.signo, sig);
	hd_message_drop(&m);
	return signal;
}

HD_WORKERS_TEST(signal_arrives_as_a_message)
{
	SKIP_SIMULATED();
	hd_port *port = made_port(NULL);
	sigset_t these;

	(void)workers;
	sigemptyset(&these);
	sigaddset(&these, SIGUSR1);
	CHECK_EQ(hd_signal_port(SIGUSR1, port), 0);
	CHECK_EQ(hd_signal_port(SIGUSR1, port), -EBUSY);
	CHECK_EQ(hd_sigwait(&these, NULL, 0), -EBUSY);
	CHECK_EQ(hd_signal_semaphore(SIGUSR1, &(struct hd_semaphore)HD_SEMAPHORE(0)), -EBUSY);
	CHECK_EQ(hd_signal_port(SIGUSR2, port), 0);
	for (int i = 0; i < 20; i++) {
		int sig = i % 3 == 0 ? SIGUSR2 : SIGUSR1;
		CHECK_EQ(kill(getpid(), sig), 0);
		struct hd_signal signal = received_signal(port, sig);
		CHECK_EQ(signal.code, SI_USER);
		CHECK_EQ(signal.pid, getpid());
		CHECK_EQ(signal.uid, getuid());
	}
	CHECK_EQ(hd_signal_port(SIGUSR1, NULL), 0);
	CHECK_EQ(hd_signal_port(SIGUSR1, NULL), 0);
	CHECK_EQ(kill(getpid(), SIGUSR1), 0); /* it is kept */
	CHECK_EQ(hd_sleep(HD_MS(1)), 0);
	CHECK_EQ(length_of(port), 0);
	CHECK_EQ(hd_signal_port(SIGUSR1, port), 0);
	received_signal(port, SIGUSR1);
	CHECK_EQ(hd_signal_port(SIGUSR1, NULL), 0);
	CHECK_EQ(hd_sigwait(&these, NULL, 0), -ETIMEDOUT);
	CHECK_EQ(hd_signal_port(SIGUSR2, NULL), 0);
	hd_port_release(port);
	check_all_gone();
}

static void *yield_until_blocked(void *sig)
{
	sigset_t mask;

	do {
		hd_yield();
		pthread_sigmask(SIG_BLOCK, NULL, &mask);
	} while (!sigismember(&mask, *(int *)sig));
	return NULL;
}

/* More than the port may hold, while its owner does not receive. A thread that has not blocked the signal yet would send it on, behind later ones: so each
 * worker has, before the first. */
HD_WORKERS_TEST(signal_bursts_are_messages_in_order)
{
	SKIP_SIMULATED();
	hd_port *port = made_port(&(struct hd_port_options){ .capacity = 1 });
	int n = hd_scaled(500), sig = SIGRTMIN + 3;
	struct crew crew;
	void *args[WORKERS_MAX];

	CHECK_EQ(hd_signal_port(sig, port), 0);
	for (int i = 0; i < WORKERS_MAX; i++)
		args[i] = &sig;
	start_crew(&crew, NULL, workers, yield_until_blocked, args);
	join_crew_members(&crew);
	for (int i = 0; i < n; i++)
		while (sigqueue(getpid(), sig, (union sigval){ .sival_ptr = (void *)(intptr_t)i }) != 0)
			CHECK_EQ(hd_sleep(HD_MS(1)), 0); /* the kernel's queue is full */
	for (int i = 0; i < n; i++) {
		struct hd_signal signal = received_signal(port, sig);
		CHECK_EQ(signal.code, SI_QUEUE);
		CHECK_EQ(signal.value, i);
	}
	CHECK_EQ(hd_signal_port(sig, NULL), 0);
	CHECK_EQ(length_of(port), 0);
	hd_port_release(port);
	check_all_gone();
}

static hd_port *other;
static struct hd_semaphore up;

static void *owns_until_told(void *arg)
{
	other = made_port(NULL);
	CHECK_EQ(hd_signal_port(SIGUSR1, other), 0);
	CHECK_EQ(hd_semaphore_signal(&up), 0);
	CHECK(received_signal(other, SIGUSR1).signo == SIGUSR1);
	return arg;
}

/* The listener ends with the port's owner, and the signal may have another port. */
HD_WORKERS_TEST(signal_port_ends_with_its_owner)
{
	SKIP_SIMULATED();
	hd_port *port = made_port(NULL);

	(void)workers;
	for (int i = 0; i < 20; i++) {
		hd_pid pid = born(hd_spawn(owns_until_told, NULL));
		CHECK_EQ(hd_semaphore_wait(&up, HD_FOREVER), 0);
		CHECK_EQ(hd_signal_port(SIGUSR1, port), -EBUSY);
		CHECK_EQ(kill(getpid(), SIGUSR1), 0);
		CHECK_EQ(hd_join(pid, NULL, HD_FOREVER), 0);
		CHECK_EQ(hd_signal_port(SIGUSR1, port), 0);
		CHECK_EQ(kill(getpid(), SIGUSR1), 0);
		received_signal(port, SIGUSR1);
		CHECK_EQ(hd_signal_port(SIGUSR1, NULL), 0);
	}
	hd_port_release(port);
	check_all_gone();
}

static void on_plain(void *port)
{
	CHECK_EQ(hd_signal_port(SIGUSR1, port), -ENOTSUP);
}

static void *ends_at_once(void *arg)
{
	return arg;
}

HD_PROCESS_TEST(signal_port_answers_misuse)
{
	SKIP_SIMULATED();
	hd_port *port = made_port(NULL), *unowned = made_port(&(struct hd_port_options){ .unowned = true });
	struct hd_semaphore semaphore = HD_SEMAPHORE(0);

	on_plain_thread(on_plain, port);
	CHECK_EQ(hd_signal_port(0, port), -EINVAL);
	CHECK_EQ(hd_signal_port(-1, NULL), -EINVAL);
	CHECK_EQ(hd_signal_port(65, port), -EINVAL);
	CHECK_EQ(hd_signal_port(SIGKILL, port), -EINVAL);
	CHECK_EQ(hd_signal_port(SIGSEGV, port), -EINVAL);
	CHECK_EQ(hd_signal_port(SIGUSR1, unowned), -EINVAL);
	CHECK_EQ(hd_join(born(hd_spawn_with(&(struct hd_spawn){ .port = unowned }, ends_at_once, NULL)), NULL, HD_FOREVER), 0);
	CHECK_EQ(hd_signal_port(SIGUSR1, unowned), -ESRCH);
	CHECK_EQ(hd_signal_semaphore(SIGUSR2, &semaphore), 0);
	CHECK_EQ(hd_signal_port(SIGUSR2, port), -EBUSY);
	CHECK_EQ(hd_signal_semaphore(SIGUSR2, NULL), 0);
	for (unsigned nth = 1; nth < 20; nth++) { /* whichever allocation fails, nothing is left of it */
		hd__fault_arm(HD__FAULT_ALLOC, nth, false);
		int err = hd_signal_port(SIGUSR1, port);
		hd__fault_arm(HD__FAULT_ALLOC, 0, false);
		CHECK(err == 0 || err == -ENOMEM);
		if (err == 0)
			CHECK_EQ(hd_signal_port(SIGUSR1, NULL), 0);
		CHECK_EQ(stats_now().live_ports, 2);
	}
	hd__fault_arm(HD__FAULT_FD, 1, false);
	CHECK_EQ(hd_signal_port(SIGUSR1, port), -EMFILE);
	hd_port_release(unowned);
	hd_port_release(port);
	check_all_gone();
}

static void *leaves_it(void *arg)
{
	hd_port *port = made_port(NULL);

	CHECK_EQ(hd_signal_port(SIGUSR1, port), 0);
	CHECK_EQ(hd_signal_port(SIGUSR2, arg != NULL ? arg : port), arg != NULL ? -EINVAL : 0);
	return NULL;
}

/* The runtime ends while signals have ports, and the program has its actions back; then another one begins. */
HD_TEST(signal_port_ends_with_the_runtime)
{
	struct sigaction now;

	SKIP_SIMULATED();
	for (int i = 0; i < 6; i++) {
		CHECK_EQ(run_with_workers(1 + i % 2, leaves_it, NULL), 0);
		CHECK(sigaction(SIGUSR1, NULL, &now) == 0 && now.sa_handler == SIG_DFL);
	}
}

static void *undoes(void *arg)
{
	CHECK_EQ(hd_signal_port(SIGUSR1, NULL), 0);
	return arg;
}

/* What is sent while the port is being undone is a message or is kept; it is not lost, and not both. */
HD_WORKERS_TEST(signal_port_undone_in_a_burst_loses_nothing)
{
	SKIP_SIMULATED();
	if (HD_UNDER_TSAN)
		SKIP("TSan calls handlers later, and drops what they say of the mask");
	hd_port *port = made_port(NULL);
	int sig = SIGRTMIN + 4;

	(void)workers;
	for (int round = 0; another_round(round, hd_scaled(200)); round++) {
		CHECK_EQ(hd_signal_port(sig, port), 0);
		for (int i = 0; i < 10; i++) {
			CHECK_EQ(sigqueue(getpid(), sig, (union sigval){ .sival_ptr = (void *)(intptr_t)i }), 0);
			if (i == round % 10)
				CHECK_EQ(hd_signal_port(sig, NULL), 0);
		}
		size_t length = length_of(port);
		hd_checkpoint();
		CHECK_EQ(length_of(port), length);
		CHECK_EQ(hd_signal_port(sig, port), 0);
		long seen = 0;
		for (int i = 0; i < 10; i++)
			seen |= 1L << received_signal(port, sig).value;
		CHECK_EQ(seen, 1023);
		CHECK_EQ(hd_signal_port(sig, NULL), 0);
		CHECK_EQ(length_of(port), 0);
	}
	CHECK_EQ(hd_join(born(hd_spawn(undoes, NULL)), NULL, HD_FOREVER), 0); /* there is none */
	hd_port_release(port);
	check_all_gone();
}
