/* port/stuck.c - hd_stuck: processes that wait for messages which no process can send. */
#include "rt/capture.h"

#include "port/common.h"

/* ---- what was told ---- */

#define TOLD_MAX 128
static struct hd_suspect told[TOLD_MAX];
static int ntold;

static int note_suspect(const struct hd_suspect *s, void *arg)
{
	(void)arg;
	CHECK(ntold < TOLD_MAX);
	told[ntold++] = *s;
	return 0;
}

static int suspects(void)
{
	ntold = 0;
	CHECK_EQ(hd_stuck(note_suspect, NULL), 0);
	return ntold;
}

static bool is_suspected(hd_pid pid)
{
	suspects();
	for (int i = 0; i < ntold; i++)
		if (told[i].pid == pid)
			return true;
	return false;
}

static void until_it_waits(hd_pid pid)
{
	while (state_of(pid) != HD_WAITING)
		hd_yield();
}

static void end_stuck(hd_pid pid)
{
	CHECK_EQ(hd_terminate(pid, HD_FOREVER), 0);
	CHECK_EQ(hd_join(pid, NULL, HD_FOREVER), 0);
}

/* ---- one process ---- */

static struct hd_semaphore ready, go;
static hd_port *shared;
enum how { ANY, ONE, TAG, SELECT, SELECT_TWICE, WITH_DEADLINE, SELECT_WITH_TIME, SELECT_WITH_SEMAPHORE };
static enum how how;
static int ports; /* that it makes; the last one is `shared` */

static void wait_so(void)
{
	struct hd_message m;
	struct hd_case cases[] = { hd_case_receive(shared, &m), how == SELECT_WITH_TIME ? hd_case_time(hd_after(HD_SEC(1000)))
								: how == SELECT_WITH_SEMAPHORE ? hd_case_semaphore(&go)
											       : hd_case_receive(shared, &m) };

	switch (how) {
	case ANY:
		CHECK_EQ(hd_receive(NULL, &m, HD_FOREVER), 0);
		break;
	case ONE:
		CHECK_EQ(hd_receive(shared, &m, HD_FOREVER), 0);
		break;
	case TAG:
		CHECK_EQ(hd_receive_tag(shared, 7, &m, HD_FOREVER), 0);
		break;
	case WITH_DEADLINE:
		CHECK_EQ(hd_receive(shared, &m, hd_after(HD_SEC(1000))), 0);
		break;
	case SELECT:
		CHECK_EQ(hd_select(cases, 1, HD_FOREVER), 0);
		break;
	default:
		CHECK(hd_select(cases, 2, HD_FOREVER) >= 0);
	}
	hd_message_drop(&m);
}

static void *makes_ports_and_waits(void *arg)
{
	for (int i = 0; i < ports; i++)
		shared = made_port(NULL);
	hd_semaphore_signal(&ready);
	CHECK_EQ(hd_semaphore_wait(&go, HD_FOREVER), 0); /* its creator may take references meanwhile */
	wait_so();
	return arg;
}

static hd_pid begin_waiting(enum how in_this_way, int with_ports, const struct hd_spawn *spawn)
{
	how = in_this_way;
	ports = with_ports;
	hd_pid pid = born(hd_spawn_with(spawn, makes_ports_and_waits, NULL));
	CHECK_EQ(hd_semaphore_wait(&ready, HD_FOREVER), 0);
	return pid;
}

static void let_wait(hd_pid pid)
{
	hd_semaphore_signal(&go);
	while (state_of(pid) != HD_WAITING || info_of(pid).why == HD_WAIT_SEMAPHORE)
		hd_yield();
}

HD_WORKERS_TEST(stuck_is_who_waits_in_a_port_that_no_other_process_knows)
{
	static const enum how ways[] = { ANY, ONE, TAG, SELECT, SELECT_TWICE };
	(void)workers;

	for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
		hd_pid pid = begin_waiting(ways[i], 1, NULL);
		CHECK_EQ(suspects(), 0);
		let_wait(pid);
		CHECK_EQ(suspects(), 1);
		CHECK_EQ(told[0].pid, pid);
		CHECK_EQ(told[0].ports, 1);
		CHECK_EQ(told[0].references, 0);
		CHECK(told[0].since > 0 && told[0].since <= hd_now());
		end_stuck(pid);
		CHECK_EQ(suspects(), 0);
	}
}

HD_WORKERS_TEST(stuck_is_none_who_has_a_deadline_or_waits_for_something_else_too)
{
	static const enum how ways[] = { WITH_DEADLINE, SELECT_WITH_TIME, SELECT_WITH_SEMAPHORE };
	(void)workers;

	for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
		hd_pid pid = begin_waiting(ways[i], 1, NULL);
		let_wait(pid);
		CHECK_EQ(suspects(), 0);
		end_stuck(pid);
	}
}

/* As long as there is another reference; and the process is not stuck when it is used. */
HD_WORKERS_TEST(stuck_is_none_whose_port_another_process_has)
{
	(void)workers;
	for (int sends = 0; sends < 2; sends++) {
		hd_pid pid = begin_waiting(ANY, 2, NULL);
		hd_port *mine = hd_port_retain(shared);
		let_wait(pid);
		CHECK_EQ(suspects(), 0);
		if (sends)
			send_tag(mine, 1);
		hd_port_release(mine);
		if (sends) {
			CHECK_EQ(hd_join(pid, NULL, HD_FOREVER), 0);
			continue;
		}
		CHECK(is_suspected(pid));
		CHECK_EQ(told[0].ports, 2);
		end_stuck(pid);
	}
}

static hd_port *another;
static void *waits_in_the_second_of_two(void *arg)
{
	struct hd_message m;

	another = hd_port_retain(made_port(NULL));
	CHECK_EQ(hd_receive(made_port(NULL), &m, HD_FOREVER), 0);
	return arg;
}

/* A message to another port of its owner does not wake it. */
HD_WORKERS_TEST(stuck_is_who_waits_for_one_port_when_others_have_another_one)
{
	hd_pid pid = born(hd_spawn(waits_in_the_second_of_two, NULL));
	(void)workers;

	until_it_waits(pid);
	CHECK_EQ(suspects(), 1);
	send_tag(another, 1);
	CHECK_EQ(suspects(), 1);
	end_stuck(pid);
	hd_port_release(another);
}

HD_WORKERS_TEST(stuck_is_none_with_a_name_a_watch_or_a_link)
{
	hd_pid pid = begin_waiting(ANY, 1, NULL);
	(void)workers;
	CHECK_EQ(hd_register("stuck", shared), 0);
	let_wait(pid);
	CHECK_EQ(suspects(), 0);
	CHECK_EQ(hd_unregister("stuck"), 0);
	CHECK_EQ(suspects(), 1);
	CHECK_EQ(hd_watch(hd_self(), shared), 0);
	CHECK_EQ(suspects(), 0);
	CHECK_EQ(hd_unwatch(hd_self(), shared), 0);
	CHECK_EQ(suspects(), 1);
	CHECK_EQ(hd_link(pid), 0);
	CHECK_EQ(suspects(), 0);
	CHECK_EQ(hd_unlink(pid), 0);
	CHECK_EQ(suspects(), 1);
	end_stuck(pid);
	pid = begin_waiting(ANY, 1, &(struct hd_spawn){ .link = true });
	let_wait(pid);
	CHECK_EQ(suspects(), 0); /* it would end with its creator */
	CHECK_EQ(hd_unlink(pid), 0);
	CHECK_EQ(suspects(), 1);
	end_stuck(pid);
}

static void *waits_for_any(void *arg)
{
	struct hd_message m;

	CHECK_EQ(hd_receive(NULL, &m, HD_FOREVER), 0);
	return arg;
}

/* A port that its owner did not make: the reference is its maker's. */
static void *waits_for_timer(void *arg)
{
	hd_port *port = made_port(NULL);
	struct hd_message m;
	hd_timer timer = hd_send_after(port, 1, NULL, 0, hd_after(HD_SEC(1000)));

	CHECK(timer > 0);
	*(hd_timer *)arg = timer;
	CHECK_EQ(hd_receive(port, &m, HD_FOREVER), 0);
	return NULL;
}

HD_WORKERS_TEST(stuck_is_none_to_whom_a_timer_will_send)
{
	hd_timer timer = 0;
	hd_pid pid = born(hd_spawn(waits_for_timer, &timer));

	(void)workers;
	until_it_waits(pid);
	CHECK(!is_suspected(pid));
	CHECK_EQ(hd_send_cancel(timer), 0);
	CHECK(is_suspected(pid));
	end_stuck(pid);
}

static struct hd_interrupt waits_as_machine(void *self, uint64_t budget)
{
	hd_port *port = made_port(NULL);

	(void)budget;
	return hd_want_message(self != NULL ? port : NULL, HD_FOREVER);
}

HD_WORKERS_TEST(stuck_is_a_machine_too)
{
	static const struct hd_machine_ops ops = { .interpret = waits_as_machine };

	(void)workers;
	for (int i = 0; i < 2; i++) {
		hd_pid pid = born(hd_spawn_machine(NULL, &ops, i == 0 ? NULL : &ready));
		until_it_waits(pid);
		CHECK(is_suspected(pid));
		end_stuck(pid);
	}
}

HD_WORKERS_TEST(stuck_is_the_owner_of_a_port_that_is_given_up)
{
	hd_port *port = made_port(&(struct hd_port_options){ .unowned = true });
	hd_pid pid = born(hd_spawn_with(&(struct hd_spawn){ .port = port }, waits_for_any, NULL));
	(void)workers;

	until_it_waits(pid);
	CHECK_EQ(suspects(), 0);
	hd_port_release(port);
	CHECK_EQ(suspects(), 1);
	CHECK_EQ(told[0].ports, 0);
	end_stuck(pid);
}

static void *cancels_itself_later(void *arg)
{
	struct hd_message m;

	hd_set_cancel_state(HD_CANCEL_DISABLED);
	shared = made_port(NULL);
	CHECK_EQ(hd_receive(NULL, &m, HD_FOREVER), 0);
	hd_message_drop(&m);
	return arg;
}

HD_WORKERS_TEST(stuck_is_none_who_was_cancelled)
{
	hd_pid pid = born(hd_spawn(cancels_itself_later, NULL));
	(void)workers;

	until_it_waits(pid);
	CHECK_EQ(suspects(), 1);
	CHECK_EQ(hd_cancel(pid), 0);
	CHECK_EQ(suspects(), 0); /* as far as heddle knows; it does not listen */
	send_tag(shared, 1);
	CHECK_EQ(hd_join(pid, NULL, HD_FOREVER), 0);
}

/* ---- several, whose ports are in each other's messages ---- */

#define RING 64
static hd_port *ring[RING];
static bool holds, drops_old;

/* Makes a port, and waits in it; or takes what is in it first, and waits with that in its hands. */
static void *waits_in_ring(void *arg)
{
	long i = (long)arg;
	struct hd_message m;

	ring[i] = made_port(drops_old ? &(struct hd_port_options){ .capacity = 1, .full = HD_FULL_DROP_OLD } : NULL);
	hd_semaphore_signal(&ready);
	CHECK_EQ(hd_semaphore_wait(&go, HD_FOREVER), 0);
	if (holds)
		CHECK_EQ(hd_receive(NULL, &m, HD_FOREVER), 0);
	CHECK_EQ(hd_receive_tag(NULL, 7, &m, HD_FOREVER), 0);
	return arg;
}

static void wait_to_receive(hd_pid pid)
{
	while (state_of(pid) != HD_WAITING || info_of(pid).why != HD_WAIT_RECEIVE)
		hd_yield();
}

/* Each has an unwanted message that carries the port of the next; n in a ring. */
static void make_ring(hd_pid *pids, int n)
{
	for (long i = 0; i < n; i++)
		pids[i] = born(hd_spawn(waits_in_ring, (void *)i));
	for (int i = 0; i < n; i++)
		CHECK_EQ(hd_semaphore_wait(&ready, HD_FOREVER), 0);
	for (int i = 0; i < n; i++)
		CHECK_EQ(hd_send_with(ring[i], &(struct hd_sending){ .carried = ring[(i + 1) % n] }, HD_FOREVER), 0);
	for (int i = 0; i < n; i++)
		hd_semaphore_signal(&go);
	for (int i = 0; i < n; i++)
		wait_to_receive(pids[i]);
}

static void end_ring(const hd_pid *pids, int n)
{
	for (int i = 0; i < n; i++)
		end_stuck(pids[i]);
	check_all_gone();
}

HD_WORKERS_TEST(stuck_are_all_whose_ports_only_their_messages_carry)
{
	static const int sizes[] = { 1, 2, 3, RING };
	hd_pid pids[RING];
	(void)workers;

	for (int k = 0; k < 8; k++) {
		int n = hd_is_simulated() && sizes[k / 2] == RING ? 8 : sizes[k / 2];
		holds = k % 2;
		make_ring(pids, n);
		hd_port *first = hd_port_retain(ring[0]);
		CHECK_EQ(suspects(), 0); /* one of them could be woken, and then wake the next */
		hd_port_release(first);
		CHECK_EQ(suspects(), n);
		for (int i = 0; i < n; i++) {
			CHECK_EQ(told[i].references, 1);
			CHECK_EQ(told[i].ports, 1);
		}
		CHECK_EQ(hd_kill(pids[n / 2], 1), 0); /* what it had goes to no other process: the others are stuck still */
		CHECK_EQ(hd_join(pids[n / 2], NULL, HD_FOREVER), 0);
		CHECK_EQ(suspects(), n - 1);
		pids[n / 2] = pids[n - 1];
		end_ring(pids, n - 1);
	}
	holds = false;
}

/* What is carried in such a port may be dropped by a sender between two looks, and so proves nothing. */
HD_PROCESS_TEST(stuck_is_none_whose_port_is_carried_where_the_oldest_is_dropped)
{
	hd_pid pids[2];

	drops_old = true;
	make_ring(pids, 2);
	drops_old = false;
	CHECK_EQ(suspects(), 0);
	end_ring(pids, 2);
}

/* ---- while they run ---- */

/* A reference travels: the process that has it asks the next one, through a message that carries its own port, and waits; the two change
 * roles for ever. Each waits with its port in a message that is under way, or in the hands of the other one. */
static int rounds;
static hd_port *start;
static void *asks_and_answers(void *arg)
{
	struct hd_message m;
	hd_port *own = made_port(NULL), *other = arg != NULL ? hd_port_retain(start) : NULL;

	if (other == NULL) {
		start = hd_port_retain(own);
		hd_semaphore_signal(&ready);
	}
	for (int i = 0; i < rounds; i++) {
		if (other != NULL) {
			CHECK_EQ(hd_send_with(other, &(struct hd_sending){ .tag = 1, .carried = own }, HD_FOREVER), 0);
			hd_port_release(
				other); /* if the other one has gone on, this process waits without being known but by the message */
		}
		CHECK_EQ(hd_receive(own, &m, HD_FOREVER), 0);
		other = hd_port_retain(m.carried);
		hd_message_drop(&m);
	}
	(void)!hd_send_with(other, &(struct hd_sending){ .tag = 1, .carried = own }, 0); /* the other one may have ended */
	hd_port_release(other);
	return arg;
}

static int complain(const struct hd_suspect *s, void *arg)
{
	(void)arg;
	CHECK_EQ(s->pid, 0); /* none is stuck */
	return 1;
}

HD_MANY_WORKERS_TEST(stuck_is_none_whose_reference_travels)
{
	hd_pid pids[4];
	(void)workers;

	rounds = many(3000);
	for (int i = 0; i < 4; i += 2) {
		pids[i] = born(hd_spawn(asks_and_answers, NULL));
		CHECK_EQ(hd_semaphore_wait(&ready, HD_FOREVER), 0);
		pids[i + 1] = born(hd_spawn(asks_and_answers, &pids[i]));
		while (state_of(pids[i + 1]) != HD_WAITING && state_of(pids[i + 1]) != HD_ENDED)
			hd_yield();
		hd_port_release(start);
	}
	while (state_of(pids[0]) != HD_ENDED || state_of(pids[2]) != HD_ENDED) {
		CHECK_EQ(hd_stuck(complain, NULL), 0);
		hd_yield();
	}
	join_all(pids, 4);
	check_all_gone();
}

enum { BETWEEN = 30 }; /* processes that are looked at between the two */
static int keeps;

/* Sends the port of one process, with a message, to another one, which waits for something else, and keeps its reference. A look at the first, before
 * this, and a look at the other, after it, find no reference that is not in a message. Again and again, while others look. */
static void *sends_and_keeps(void *arg)
{
	for (int i = 0; i < 50; i++)
		CHECK_EQ(hd_send_with(another, &(struct hd_sending){ .carried = ring[0] }, HD_FOREVER), 0);
	__atomic_store_n(&keeps, 0, __ATOMIC_RELEASE);
	hd_port_release(ring[0]);
	return arg;
}

HD_MANY_WORKERS_TEST(stuck_is_none_whose_reference_is_sent_between_two_looks)
{
	(void)workers;
	for (int round = 0; another_round(round, many(100)); round++) {
		hd_pid pids[BETWEEN + 1], sender;
		for (long i = 0; i < BETWEEN; i++) {
			pids[i] = born(hd_spawn(waits_in_ring, (void *)i));
			CHECK_EQ(hd_semaphore_wait(&ready, HD_FOREVER), 0);
		}
		hd_port_retain(ring[0]);
		for (int i = 0; i < BETWEEN; i++)
			hd_semaphore_signal(&go);
		pids[BETWEEN] = born(hd_spawn(waits_in_the_second_of_two, NULL));
		for (int i = 0; i <= BETWEEN; i++)
			wait_to_receive(pids[i]);
		keeps = 1;
		sender = born(hd_spawn(sends_and_keeps, NULL));
		while (state_of(sender) != HD_ENDED) { /* without a yield: it is another worker that runs the sender */
			bool suspected = is_suspected(pids[0]);
			CHECK(!suspected || __atomic_load_n(&keeps, __ATOMIC_ACQUIRE) == 0);
		}
		CHECK_EQ(suspects(), BETWEEN + 1);
		CHECK_EQ(hd_join(sender, NULL, HD_FOREVER), 0);
		hd_port_release(another);
		end_ring(pids, BETWEEN + 1);
	}
}

/* ---- the call ---- */

static int stop_at_first(const struct hd_suspect *s, void *arg)
{
	(void)s;
	return ++*(int *)arg;
}

static void looks_from_a_thread(void *arg)
{
	*(int *)arg = suspects();
}

HD_PROCESS_TEST(stuck_may_be_asked_by_any_thread_and_stops_when_told)
{
	hd_pid a = begin_waiting(ANY, 1, NULL), b;
	int n = 0;

	let_wait(a);
	b = begin_waiting(ANY, 1, NULL);
	let_wait(b);
	CHECK_EQ(hd_stuck(stop_at_first, &n), 1);
	CHECK_EQ(n, 1);
	if (!hd_is_simulated()) {
		on_plain_thread(looks_from_a_thread, &n);
		CHECK_EQ(n, 2);
	}
	end_stuck(a);
	end_stuck(b);
}

HD_TEST(stuck_needs_a_runtime)
{
	CHECK_EQ(hd_stuck(note_suspect, NULL), -ENXIO);
}

/* At each place where it needs some. */
HD_PROCESS_TEST(stuck_without_memory_says_so_and_nothing_is_left)
{
	hd_pid pids[20];
	int err = -ENOMEM, n = 0;

	make_ring(pids, 20);
	ntold = 0;
	for (n = 1; err == -ENOMEM; n++) {
		hd__fault_arm(HD__FAULT_ALLOC, n, false);
		err = hd_stuck(note_suspect, NULL);
		hd__fault_arm(HD__FAULT_ALLOC, 0, false);
		CHECK_EQ(ntold, err == 0 ? 20 : 0);
	}
	CHECK_EQ(err, 0);
	CHECK(n > 5);
	end_ring(pids, 20);
}

/* ---- the report ---- */

static void *waits_alone(void *arg)
{
	struct hd_message m;

	CHECK(hd_port_new(NULL) != NULL);
	CHECK_EQ(hd_receive(NULL, &m, HD_FOREVER), 0);
	return arg;
}

static void *joins_one_who_waits_alone(void *arg)
{
	hd_pid pid = born(hd_spawn_with(&(struct hd_spawn){ .name = "lonely" }, waits_alone, NULL));

	return hd_join(pid, NULL, HD_FOREVER) == 0 ? arg : NULL;
}

HD_TEST(stuck_processes_are_named_in_a_report)
{
	if (hd_is_haunted())
		SKIP("there is a thread that could wake a process, as far as heddle knows");
	capture_begin();
	int err = hd_run(&(struct hd_config){ .workers = 1, .fixed = true }, joins_one_who_waits_alone, NULL);
	const char *text = capture_end();

	CHECK_EQ(err, -EDEADLK);
	CHECK(says(
		text,
		"heddle:   lonely #1 is suspected to be stuck: no process has a reference to the port for which it waits\n"));
	CHECK_EQ(times_said(text, "is suspected"), 1);
}
