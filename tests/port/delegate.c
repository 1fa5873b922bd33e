/* port/delegate.c - calls that are passed on, and circles that this would close; calls that were late to say for which process they wait. */
#include "rt/capture.h"

#include "port/common.h"

static struct hd_semaphore up, go;
static hd_port *ports[3]; /* of the processes 0 (the caller), 1 (which it calls), 2 (to which its call might be passed on) */
static int answers[3];

static void make_own_port(long i)
{
	ports[i] = hd_port_retain(made_port(NULL));
	hd_semaphore_signal(&up);
}

static void release_ports(void)
{
	for (int i = 0; i < 3; i++) {
		hd_port_release(ports[i]);
		ports[i] = NULL;
	}
}

static void until_calling(hd_pid pid, hd_pid whom)
{
	while (info_of(pid).why != HD_WAIT_CALL || info_of(pid).holder != whom)
		hd_yield();
}

/* Answers what has arrived, and all that comes until it has answered n. */
static void answer_some(int n)
{
	struct hd_message m;

	while (n-- > 0) {
		CHECK_EQ(hd_receive(NULL, &m, HD_FOREVER), 0);
		CHECK_EQ(hd_reply(&m, 42, NULL, 0), 0);
		hd_message_drop(&m);
	}
}

/* ---- refused ---- */

/* Calls 1 when it is told to, and then answers the call of 2. */
static void *calls_one(void *arg)
{
	make_own_port(0);
	CHECK_EQ(hd_semaphore_wait(&go, HD_FOREVER), 0);
	answers[0] = hd_call(ports[1], 1, NULL, 0, NULL, HD_FOREVER);
	answer_some(1);
	return arg;
}

/* Calls 0, or (arg) this process, which calls 0. */
static void *calls_zero(void *through)
{
	if (through == NULL) {
		make_own_port(2);
		CHECK_EQ(hd_semaphore_wait(&go, HD_FOREVER), 0);
	}
	answers[2] = hd_call(through != NULL ? through : ports[0], 2, NULL, 0, NULL, HD_FOREVER);
	return NULL;
}

static hd_pid caller, target;
static void make_caller_and_target(void)
{
	caller = born(hd_spawn_with(&(struct hd_spawn){ .name = "caller" }, calls_one, NULL));
	CHECK_EQ(hd_semaphore_wait(&up, HD_FOREVER), 0);
	target = born(hd_spawn_with(&(struct hd_spawn){ .name = "target" }, calls_zero, NULL));
	CHECK_EQ(hd_semaphore_wait(&up, HD_FOREVER), 0);
	hd_semaphore_signal(&go);
	hd_semaphore_signal(&go);
	until_calling(caller, hd_self());
	until_calling(target, caller);
}

/* The process that was refused has the call still, and answers it; by one message, and by several at once, of which none is sent. */
HD_WORKERS_TEST(delegation_that_would_close_a_circle_is_refused)
{
	(void)workers;
	for (int all = 0; all < 2; all++) {
		struct hd_message m;
		ports[1] = made_port(NULL);
		make_caller_and_target();
		CHECK_EQ(hd_receive_tag(ports[1], 1, &m, HD_FOREVER), 0);
		const struct hd_sending what = { .tag = 3, .carried = m.carried };
		const struct hd_parcel parcels[] = { { ports[1], { .tag = 5 } },
						     { ports[2], what },
						     { ports[1], { .tag = 6 } } };
		CHECK_EQ(all ? hd_send_all(parcels, 3) : hd_send_with(ports[2], &what, HD_FOREVER), -EDEADLK);
		CHECK_EQ(all ? hd_send_all(parcels, 2) : hd_send_with(ports[0], &what, HD_FOREVER), -EDEADLK); /* to itself */
		CHECK_EQ(length_of(ports[0]), 1);
		CHECK_EQ(length_of(ports[1]), 0);
		CHECK_EQ(length_of(ports[2]), 0);
		CHECK_EQ(info_of(caller).holder, hd_self());
		CHECK_EQ(hd_reply(&m, 42, NULL, 0), 0);
		hd_message_drop(&m);
		join_all((hd_pid[]){ caller, target }, 2);
		CHECK_EQ(answers[0], 0);
		CHECK_EQ(answers[2], 0);
		release_ports();
		check_all_gone();
	}
}

/* A call to the process that passes the other one on is no circle: that one can answer both. Nor is one that has ended. */
HD_WORKERS_TEST(delegation_to_a_process_that_waits_for_the_delegator_is_none_of_that)
{
	struct hd_message m, other;
	(void)workers;

	ports[1] = made_port(NULL);
	ports[0] = hd_port_retain(ports[1]);
	target = born(hd_spawn(calls_zero, NULL));
	CHECK_EQ(hd_semaphore_wait(&up, HD_FOREVER), 0);
	hd_semaphore_signal(&go);
	until_calling(target, hd_self());
	hd_pid second = born(hd_spawn(calls_zero, ports[1]));
	until_calling(second, hd_self());
	CHECK_EQ(hd_receive(NULL, &m, HD_FOREVER), 0);
	CHECK_EQ(hd_receive(NULL, &other, HD_FOREVER), 0);
	CHECK_EQ(other.sender, second);
	CHECK_EQ(hd_send_with(ports[2], &(struct hd_sending){ .carried = other.carried }, HD_FOREVER), 0);
	CHECK_EQ(info_of(second).holder, target);
	hd_message_drop(&other);
	CHECK_EQ(hd_reply(&m, 42, NULL, 0), 0);
	hd_message_drop(&m);
	CHECK_EQ(hd_join(target, NULL, HD_FOREVER), 0);
	CHECK_EQ(hd_join(second, NULL, HD_FOREVER), 0);
	CHECK_EQ(answers[2], -EPIPE); /* the second one's: the process that had its call has ended */
	release_ports();
	check_all_gone();
}

static void *refuses_and_answers(void *arg)
{
	struct hd_message m;

	ports[1] = made_port(NULL);
	make_caller_and_target();
	CHECK_EQ(hd_receive_tag(ports[1], 1, &m, HD_FOREVER), 0);
	CHECK_EQ(hd_send_with(ports[2], &(struct hd_sending){ .carried = m.carried }, HD_FOREVER), -EDEADLK);
	CHECK_EQ(hd_reply(&m, 42, NULL, 0), 0);
	hd_message_drop(&m);
	join_all((hd_pid[]){ caller, target }, 2);
	release_ports();
	return arg;
}

HD_TEST(delegation_that_is_refused_is_reported)
{
	capture_begin();
	int err = hd_run(&(struct hd_config){ .workers = 1, .fixed = true, .deadlock = HD_DEADLOCK_REPORT },
			 refuses_and_answers, NULL);
	const char *text = capture_end();

	CHECK_EQ(err, 0);
	CHECK(says(
		text,
		"heddle: a message that passes a call on was refused: a circle of processes that would wait for each other's "
		"answers\n"
		"heddle:   main #0 passes the call of caller #1 on to target #2\n"
		"heddle:   target #2 waits in hd_call for caller #1\n"));
}

/* ---- closed by two at once ---- */

enum { RING_MAX = 64 };
static hd_port *ring[RING_MAX], *offices[2];
static int size, refused;
static struct hd_semaphore made, begin;

/* Two of the ring call through an office, which passes their calls on. */
static hd_port *callee_of(int i)
{
	return i == 0 ? offices[0] : i == size / 2 ? offices[1] : ring[(i + 1) % size];
}

static void *calls_next(void *arg)
{
	int i = (int)(long)arg;
	struct hd_message m;

	ring[i] = hd_port_retain(made_port(NULL));
	hd_semaphore_signal(&made);
	CHECK_EQ(hd_semaphore_wait(&begin, HD_FOREVER), 0);
	int err = hd_call(callee_of(i), 1, NULL, 0, NULL, HD_FOREVER);
	CHECK(err == 0 || err == -EDEADLK || err == -EPIPE || err == -ESRCH);
	if (err == -EDEADLK)
		__atomic_add_fetch(&refused, 1, __ATOMIC_RELAXED);
	while (hd_receive(ring[i], &m, 0) == 0) {
		CHECK_EQ(hd_reply(&m, 2, NULL, 0), 0);
		hd_message_drop(&m);
	}
	return NULL;
}

static void *passes_calls_on(void *arg)
{
	int which = (int)(long)arg, next = which == 0 ? 1 : (size / 2 + 1) % size;
	struct hd_message m;

	offices[which] = hd_port_retain(made_port(NULL));
	hd_semaphore_signal(&made);
	CHECK_EQ(hd_receive(NULL, &m, HD_FOREVER), 0);
	int err = hd_send_with(ring[next], &(struct hd_sending){ .tag = 1, .carried = m.carried }, HD_FOREVER);
	CHECK(err == 0 || err == -EDEADLK || err == -ESRCH);
	if (err == -EDEADLK)
		__atomic_add_fetch(&refused, 1, __ATOMIC_RELAXED);
	if (err != 0)
		CHECK_EQ(hd_reply(&m, 3, NULL, 0), 0); /* it has the call still */
	hd_message_drop(&m);
	return NULL;
}

static void close_circle(int n)
{
	hd_pid pids[RING_MAX + 2];

	size = n;
	refused = 0;
	for (long i = 0; i < n + 2; i++)
		pids[i] = born(i < n ? hd_spawn(calls_next, (void *)i) : hd_spawn(passes_calls_on, (void *)(i - n)));
	for (int i = 0; i < n + 2; i++)
		CHECK_EQ(hd_semaphore_wait(&made, HD_FOREVER), 0);
	for (int i = 0; i < n; i++)
		hd_semaphore_signal(&begin);
	join_all(pids, n + 2);
	for (int i = 0; i < n; i++)
		hd_port_release(ring[i]);
	hd_port_release(offices[0]);
	hd_port_release(offices[1]);
	CHECK(refused >= 1);
}

HD_WORKERS_TEST(delegations_that_close_a_circle_together_are_refused)
{
	(void)workers;
	for (int round = 0; another_round(round, many(300)); round++) {
		close_circle(2);
		close_circle(3);
		if (round % 10 == 0)
			close_circle(hd_is_simulated() ? 5 : RING_MAX);
	}
	check_all_gone();
}

/* ---- a delegation against a call ---- */

static void *calls_and_answers(void *arg)
{
	long i = (long)arg;
	struct hd_message m;

	make_own_port(i);
	CHECK_EQ(hd_semaphore_wait(&go, HD_FOREVER), 0);
	answers[i] = hd_call(i == 0 ? ports[1] : ports[0], 1, NULL, 0, NULL, HD_FOREVER);
	CHECK(answers[i] == 0 || answers[i] == -EDEADLK || answers[i] == -EPIPE || answers[i] == -ESRCH);
	while (hd_receive(ports[i], &m, 0) == 0) {
		int err = hd_reply(&m, 2, NULL, 0);
		CHECK(err == 0 || err == -ESRCH);
		hd_message_drop(&m);
	}
	return NULL;
}

/* 0 calls the first process, which passes the call on to 2 while that calls 0: one of the two is refused, or both are. */
HD_WORKERS_TEST(delegation_races_with_a_call)
{
	(void)workers;
	for (int round = 0; another_round(round, many(300)); round++) {
		struct hd_message m;
		hd_pid pids[2];
		ports[1] = made_port(NULL);
		for (long i = 0; i < 2; i++) {
			pids[i] = born(hd_spawn(calls_and_answers, (void *)(2 * i)));
			CHECK_EQ(hd_semaphore_wait(&up, HD_FOREVER), 0);
		}
		hd_semaphore_signal(&go);
		hd_semaphore_signal(&go);
		CHECK_EQ(hd_receive(ports[1], &m, HD_FOREVER), 0);
		for (int i = 0; i < round % 3; i++)
			hd_yield();
		int err = hd_send_with(ports[2], &(struct hd_sending){ .tag = 1, .carried = m.carried }, HD_FOREVER);
		CHECK(err == 0 || err == -EDEADLK || err == -ESRCH);
		if (err != 0)
			CHECK_EQ(hd_reply(&m, 2, NULL, 0), 0);
		hd_message_drop(&m);
		join_all(pids, 2);
		release_ports();
	}
	check_all_gone();
}

/* ---- callers that had to wait for room ---- */

static struct hd_semaphore full;
static bool passes;

/* Its port has room for one message, and there is one. 0 waits for room; when it has got some, and before it runs again, it is called, or its call is
 * passed on to 2, which calls it. */
static void *calls_when_there_is_room(void *arg)
{
	make_own_port(0);
	answers[0] = hd_call(ports[1], 1, NULL, 0, NULL, HD_FOREVER);
	CHECK(answers[0] == 0 || answers[0] == -EDEADLK || answers[0] == -EPIPE);
	struct hd_message m;
	while (hd_receive(ports[0], &m, 0) == 0) {
		CHECK_EQ(hd_reply(&m, 2, NULL, 0), 0);
		hd_message_drop(&m);
	}
	return arg;
}

static void *serves_one(void *arg)
{
	struct hd_message m;
	int err = 0;

	ports[1] = hd_port_retain(made_port(&(struct hd_port_options){ .capacity = 1, .full = HD_FULL_BLOCK }));
	send_tag(ports[1], 7);
	hd_semaphore_signal(&up);
	CHECK_EQ(hd_semaphore_wait(&full, HD_FOREVER), 0);
	CHECK_EQ(received_tag(ports[1]), 7); /* there is room */
	CHECK_EQ(hd_receive(ports[1], &m, HD_FOREVER), 0);
	if (passes)
		err = hd_send_with(ports[2], &(struct hd_sending){ .tag = 1, .carried = m.carried }, HD_FOREVER);
	else
		answers[1] = hd_call(ports[0], 1, NULL, 0, NULL, HD_FOREVER);
	if (!passes || err != 0)
		ANY_ANSWER(hd_reply(&m, 2, NULL, 0)); /* -ESRCH: the caller has given up */
	hd_message_drop(&m);
	return arg;
}

HD_WORKERS_TEST(call_that_waited_for_room_is_in_no_circle)
{
	(void)workers;
	for (int round = 0; another_round(round, many(200)); round++) {
		hd_pid pids[3];
		passes = round % 2;
		pids[0] = born(hd_spawn(serves_one, NULL));
		CHECK_EQ(hd_semaphore_wait(&up, HD_FOREVER), 0);
		pids[1] = born(hd_spawn(calls_when_there_is_room, NULL));
		CHECK_EQ(hd_semaphore_wait(&up, HD_FOREVER), 0);
		pids[2] = passes ? born(hd_spawn(calls_and_answers, (void *)2)) : 0;
		if (passes)
			CHECK_EQ(hd_semaphore_wait(&up, HD_FOREVER), 0);
		while (info_of(pids[1]).why != HD_WAIT_SEND)
			hd_yield();
		if (passes)
			hd_semaphore_signal(&go);
		hd_semaphore_signal(&full);
		join_all(pids, passes ? 3 : 2);
		release_ports();
	}
	check_all_gone();
}
