/* port/call.c - what a call promises: one answer, or the reason why there is none; and never a circle. */
#include "port/common.h"

static hd_port *server;
static struct hd_semaphore up, late;

enum { ADD = 1, FORGET, HOLD, STOP, PASS, LATE, TWICE };

static void serve(void)
{
	struct hd_message m, held = { 0 };
	bool on = true;

	while (on && hd_receive(NULL, &m, HD_FOREVER) == 0) {
		switch (m.tag) {
		case ADD: {
			long n = *(long *)m.data + 1;
			CHECK_EQ(hd_reply(&m, ADD, &n, sizeof n), 0);
			CHECK_EQ(hd_reply(&m, ADD, &n, sizeof n), -EALREADY);
			break;
		}
		case TWICE: {
			hd_port *again = hd_port_retain(m.carried);
			CHECK_EQ(hd_send(again, 5, NULL, 0, 0), 0);
			CHECK_EQ(hd_send(again, 6, NULL, 0, 0), -EALREADY);
			CHECK_EQ(hd_reply(&m, 7, NULL, 0), -EALREADY);
			hd_port_release(again);
			break;
		}
		case LATE:
			CHECK_EQ(hd_semaphore_wait(&late, HD_FOREVER), 0);
			trace("late %d ", hd_reply(&m, 0, "x", 2));
			break;
		case HOLD:
			held = m;
			continue;
		case STOP:
			on = false;
			break;
		default:
			break;
		}
		hd_message_drop(&m);
	}
	(void)held; /* it goes with us */
}

static void *serving(void *arg)
{
	server = hd_port_retain(made_port(NULL));
	hd_semaphore_signal(&up);
	serve();
	return arg;
}

static hd_pid start_server(int priority)
{
	hd_pid pid = born(hd_spawn_at(priority, serving, NULL));

	CHECK_EQ(hd_semaphore_wait(&up, HD_FOREVER), 0);
	return pid;
}

static void stop_server(hd_pid pid)
{
	ANY_ANSWER(hd_send(server, STOP, NULL, 0, HD_FOREVER));
	CHECK_EQ(hd_join(pid, NULL, HD_FOREVER), 0);
	hd_port_release(server);
}

static long call_add(long n)
{
	struct hd_message m;

	CHECK_EQ(hd_call(server, ADD, &n, sizeof n, &m, HD_FOREVER), 0);
	CHECK_EQ(m.tag, ADD);
	CHECK_EQ(m.size, sizeof n);
	n = *(long *)m.data;
	hd_message_drop(&m);
	return n;
}

static void *caller(void *n)
{
	long count = (long)n;

	for (long i = 0; i < count; i++)
		CHECK_EQ(call_add(i), i + 1);
	return NULL;
}

HD_WORKERS_TEST(call_is_answered)
{
	hd_pid callers[10];

	(void)workers;
	hd_pid pid = start_server(40);
	for (int i = 0; i < 10; i++)
		callers[i] = born(hd_spawn(caller, (void *)(long)many(500)));
	join_all(callers, 10);
	stop_server(pid);
	struct hd_stats stats = stats_now();
	CHECK_EQ(stats.live_messages, 0);
	CHECK_EQ(stats.live_ports, 0);
}

/* There and back are two hand-offs; the equals of the two wait, but not for long. */
static int enough;

static void *counts(void *n)
{
	while (!is_raised(&enough)) {
		++*(long *)n;
		hd_yield();
	}
	return NULL;
}

HD_PROCESS_TEST(call_hands_the_worker_over_but_does_not_keep_it)
{
	static long turns;
	hd_pid pid = start_server(40), other = born(hd_spawn(counts, &turns));

	hd_yield();
	uint64_t before = stats_now().handoffs;
	long others = turns;
	for (long i = 0; i < 1000; i++)
		call_add(i);
	CHECK(stats_now().handoffs - before >= 1900);
	CHECK(turns - others >= 2000 / 66);
	CHECK(turns - others <= 200);
	stop_server(pid);
	raise_flag(&enough);
	CHECK_EQ(hd_join(other, NULL, HD_FOREVER), 0);
}

/* A server of lower priority runs with the caller's, and one of higher priority runs at once. */
static void *between(void *arg)
{
	trace("between ");
	return arg;
}

HD_PROCESS_TEST(call_to_another_priority_obeys_the_priorities)
{
	CHECK_EQ(hd_set_priority(hd_self(), 40), 0);
	hd_pid low = start_server(30), other = born(hd_spawn_at(35, between, NULL));
	call_add(1);
	trace("answered ");
	CHECK_EQ(hd_join(other, NULL, HD_FOREVER), 0);
	CHECK_STR(trace_text(), "answered between ");
	stop_server(low);
	hd_pid high = start_server(60);
	CHECK_EQ(call_add(7), 8);
	stop_server(high);
	check_all_gone();
}

HD_PROCESS_TEST(call_that_will_not_be_answered_is_broken)
{
	struct hd_message m;
	hd_pid pid = start_server(40);

	CHECK_EQ(hd_call(server, FORGET, "abc", 4, &m, HD_FOREVER), -EPIPE);
	CHECK_EQ(hd_call(server, FORGET, NULL, 0, NULL, HD_FOREVER), -EPIPE);
	CHECK_EQ(hd_call(server, TWICE, NULL, 0, &m, HD_FOREVER), 0);
	CHECK_EQ(m.tag, 5);
	CHECK_EQ(hd_call(server, STOP, NULL, 0, &m, HD_FOREVER), -EPIPE);
	CHECK_EQ(hd_call(server, ADD, "abc", 4, &m, HD_FOREVER), -ESRCH);
	stop_server(pid);
	check_all_gone();
}

static int answer;

static void *calls_hold(void *until)
{
	answer = hd_call(server, HOLD, NULL, 0, NULL, *(hd_time *)until);
	return NULL;
}

/* The process that has the call ends; or the message is in its port when it does. */
HD_PROCESS_TEST(call_is_broken_when_the_process_that_has_it_ends)
{
	hd_time forever = HD_FOREVER;

	for (int i = 0; i < 2; i++) {
		hd_pid pid = start_server(40);
		if (i == 1)
			CHECK_EQ(hd_suspend(pid, HD_FOREVER), 0);
		hd_pid c = born(hd_spawn(calls_hold, &forever));
		hd_yield();
		hd_yield();
		CHECK_EQ(info_of(c).why, HD_WAIT_CALL);
		CHECK_EQ(info_of(c).holder, pid);
		CHECK_EQ(hd_terminate(pid, HD_FOREVER), 0);
		CHECK_EQ(hd_join(c, NULL, HD_FOREVER), 0);
		CHECK_EQ(answer, -EPIPE);
		CHECK_EQ(hd_join(pid, NULL, HD_FOREVER), 0);
		hd_port_release(server);
		check_all_gone();
	}
}

HD_PROCESS_TEST(call_late_answer_is_dropped)
{
	hd_pid pid = start_server(40);

	CHECK_EQ(hd_call(server, LATE, NULL, 0, NULL, hd_after(HD_MS(1))), -ETIMEDOUT);
	hd_semaphore_signal(&late);
	CHECK_EQ(call_add(3), 4); /* with a reply port of its own */
	CHECK_STR(trace_text(), "late -3 ");
	stop_server(pid);
	check_all_gone();
}

static void *calls_late(void *arg)
{
	answer = hd_call(server, LATE, "abc", 4, NULL, HD_FOREVER);
	return arg;
}

HD_PROCESS_TEST(call_can_be_cancelled_and_terminated)
{
	for (int terminate = 0; terminate < 2; terminate++) {
		hd_pid pid = start_server(40), c = born(hd_spawn(calls_late, NULL));
		answer = 1;
		trace_clear();
		hd_yield();
		CHECK_EQ(terminate ? hd_terminate(c, HD_FOREVER) : hd_cancel(c), 0);
		CHECK_EQ(hd_join(c, NULL, HD_FOREVER), 0);
		CHECK_EQ(answer, terminate ? 1 : -ECANCELED);
		hd_semaphore_signal(&late);
		stop_server(pid);
		CHECK_STR(trace_text(), "late -3 ");
		check_all_gone();
	}
}

/* ---- passing a call on ---- */

static hd_port *back;

static void *answers_for_another(void *arg)
{
	struct hd_message m;

	back = hd_port_retain(made_port(NULL));
	hd_semaphore_signal(&up);
	CHECK_EQ(hd_receive(NULL, &m, HD_FOREVER), 0);
	CHECK_EQ(info_of(m.tag).holder, hd_self());
	CHECK_EQ(hd_reply(&m, 42, "deep", 5), 0);
	hd_message_drop(&m);
	return arg;
}

static void *passes_on(void *arg)
{
	struct hd_message m;

	server = hd_port_retain(made_port(NULL));
	hd_semaphore_signal(&up);
	CHECK_EQ(hd_receive(NULL, &m, HD_FOREVER), 0);
	CHECK_EQ(hd_send_with(back, &(struct hd_sending){ .tag = m.sender, .carried = m.carried }, HD_FOREVER), 0);
	hd_message_drop(&m);
	return arg;
}

HD_PROCESS_TEST(call_can_be_answered_by_another_process)
{
	struct hd_message m;
	hd_pid a = born(hd_spawn(answers_for_another, NULL));

	CHECK_EQ(hd_semaphore_wait(&up, HD_FOREVER), 0);
	hd_pid b = born(hd_spawn(passes_on, NULL));
	CHECK_EQ(hd_semaphore_wait(&up, HD_FOREVER), 0);
	CHECK_EQ(hd_call(server, 1, NULL, 0, &m, HD_FOREVER), 0);
	CHECK_EQ(m.sender, a);
	CHECK_STR(m.data, "deep");
	hd_message_drop(&m);
	join_all((hd_pid[]){ a, b }, 2);
	hd_port_release(server);
	hd_port_release(back);
	check_all_gone();
}

static hd_port *first_port;

static void *calls_first(void *arg)
{
	struct hd_message m;

	first_port = hd_port_retain(made_port(NULL));
	CHECK_EQ(hd_call(server, 1, NULL, 0, &m, HD_FOREVER), 0);
	CHECK_EQ(m.tag, 42);
	hd_message_drop(&m);
	CHECK_EQ(received_tag(NULL), 3);
	return arg;
}

/* The answer to its call carries the port where the first one waits: it is asked to answer that one. */
static void *calls_second(void *first)
{
	struct hd_message m;

	CHECK_EQ(hd_call(server, 2, NULL, 0, &m, HD_FOREVER), 0);
	CHECK_EQ(info_of(*(hd_pid *)first).holder, hd_self());
	CHECK_EQ(hd_call(first_port, 3, NULL, 0, NULL, HD_FOREVER), -EDEADLK);
	CHECK_EQ(hd_send(m.carried, 42, NULL, 0, 0), 0);
	hd_message_drop(&m);
	return NULL;
}

HD_PROCESS_TEST(call_can_be_passed_on_in_an_answer)
{
	struct hd_message first, second;

	server = made_port(NULL);
	hd_pid a = born(hd_spawn(calls_first, NULL)), b = born(hd_spawn(calls_second, &a));
	CHECK_EQ(hd_receive_tag(NULL, 1, &first, HD_FOREVER), 0);
	CHECK_EQ(hd_receive_tag(NULL, 2, &second, HD_FOREVER), 0);
	CHECK_EQ(hd_send_with(second.carried, &(struct hd_sending){ .carried = first.carried }, 0), 0);
	hd_message_drop(&first);
	hd_message_drop(&second);
	CHECK_EQ(hd_call(first_port, 3, NULL, 0, NULL, HD_FOREVER),
		 -EPIPE); /* no circle: it waits for the second one, not for us */
	join_all((hd_pid[]){ a, b }, 2);
	hd_port_release(first_port);
	hd_port_release(server);
	check_all_gone();
}

/* ---- circles ---- */

enum { RING_MAX = 64 };
static hd_port *ring[RING_MAX];
static int size, answers[RING_MAX];
static struct hd_semaphore made, begin;

/* Each calls its successor, and answers what it gets afterwards. */
static void *calls_next(void *arg)
{
	int i = (int)(long)arg;
	struct hd_message m;

	ring[i] = hd_port_retain(made_port(NULL));
	hd_semaphore_signal(&made);
	CHECK_EQ(hd_semaphore_wait(&begin, HD_FOREVER), 0);
	answers[i] = hd_call(ring[(i + 1) % size], 1, NULL, 0, NULL, HD_FOREVER);
	CHECK(answers[i] == 0 || answers[i] == -EDEADLK || answers[i] == -EPIPE || answers[i] == -ESRCH);
	while (hd_receive(ring[i], &m, 0) == 0) {
		CHECK_EQ(hd_reply(&m, 2, NULL, 0), 0);
		hd_message_drop(&m);
	}
	return NULL;
}

static void close_circle(int n)
{
	hd_pid pids[RING_MAX];
	int refused = 0;

	size = n;
	for (long i = 0; i < n; i++)
		pids[i] = born(hd_spawn(calls_next, (void *)i));
	for (int i = 0; i < n; i++)
		CHECK_EQ(hd_semaphore_wait(&made, HD_FOREVER), 0);
	for (int i = 0; i < n; i++)
		hd_semaphore_signal(&begin);
	join_all(pids, n);
	for (int i = 0; i < n; i++) {
		refused += answers[i] == -EDEADLK;
		hd_port_release(ring[i]);
	}
	CHECK(refused >= 1);
}

HD_WORKERS_TEST(call_that_would_close_a_circle_is_refused)
{
	(void)workers;
	for (int round = 0; another_round(round, many(300)); round++) {
		close_circle(2);
		close_circle(3);
		if (round % 10 == 0)
			close_circle(hd_is_simulated() ? 5 : RING_MAX);
	}
	struct hd_stats stats = stats_now();
	CHECK_EQ(stats.live_messages, 0);
	CHECK_EQ(stats.live_ports, 0);
}

/* ---- races ---- */

static void *answers_held(void *arg)
{
	struct hd_message m;

	server = hd_port_retain(made_port(NULL));
	hd_semaphore_signal(&up);
	CHECK_EQ(hd_receive(NULL, &m, HD_FOREVER), 0);
	int err = hd_reply(&m, 3, "abc", 4);
	CHECK(err == 0 || err == -ESRCH);
	hd_message_drop(&m);
	*(int *)arg = err;
	return NULL;
}

static void *calls_once(void *arg)
{
	struct hd_message m;
	int err = hd_call(server, 0, NULL, 0, &m, HD_FOREVER);

	CHECK(err == 0 || err == -ECANCELED);
	if (err == 0) {
		CHECK_STR(m.data, "abc");
		hd_message_drop(&m);
	}
	*(int *)arg = err;
	return NULL;
}

static void *cancels(void *pid)
{
	ANY_ANSWER(hd_cancel(*(hd_pid *)pid));
	return NULL;
}

/* An answer and a cancel race for one caller: either it has the answer, or the process that answered hears that it came too late. */
HD_WORKERS_TEST(call_answer_races_with_cancel)
{
	(void)workers;
	for (int round = 0; another_round(round, many(300)); round++) {
		int got = 1, gave = 1;
		hd_pid s = born(hd_spawn(answers_held, &gave));
		CHECK_EQ(hd_semaphore_wait(&up, HD_FOREVER), 0);
		hd_pid c = born(hd_spawn(calls_once, &got)), k = born(hd_spawn(cancels, &c));
		join_all((hd_pid[]){ k, c }, 2);
		if (got == -ECANCELED)
			ANY_ANSWER(hd_kill(s, 1)); /* perhaps it has never been called */
		CHECK_EQ(hd_join(s, NULL, HD_FOREVER), 0);
		CHECK(got != 0 || gave == 0);
		CHECK(gave != 0 || got == 0);
		hd_port_release(server);
	}
	struct hd_stats stats = stats_now();
	CHECK_EQ(stats.live_messages, 0);
	CHECK_EQ(stats.live_ports, 0);
}
