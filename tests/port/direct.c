/* port/direct.c - a call that is handed to a process which is ready: until that receives it, it is a message like any other. */
#include "port/common.h"
#include "sched/worker.h"

static hd_port *port;
static void (*then)(void); /* what the server does with the second call in hand */
static hd_pid server, client;
static struct hd_message first;
static bool with_second; /* the server has two ports, */
static hd_port *second;	 /* this one, too */
static hd_port *others;	 /* another process's */

static void reply_to(struct hd_message *m, int64_t tag)
{
	CHECK_EQ(hd_reply(m, tag, NULL, 0), 0);
	hd_message_drop(m);
}

/* Answers one call, and is ready then, and given the next. */
static void *serve(void *arg)
{
	CHECK_EQ(hd_receive(port, &first, HD_FOREVER), 0);
	second = with_second ? made_port(NULL) : NULL;
	CHECK_EQ(hd_reply(&first, first.tag + 1, NULL, 0), 0);
	then();
	hd_message_drop(&first);
	return arg;
}

static struct hd_message in_hand(int64_t tag)
{
	struct hd_message m;

	CHECK_EQ(hd_receive(port, &m, 0), 0);
	CHECK_EQ(m.tag, tag);
	CHECK_EQ(m.sender, client);
	CHECK(m.carried != NULL);
	return m;
}

static hd_time deadline = HD_FOREVER;

static int call(int64_t tag)
{
	struct hd_message m;
	int err = hd_call(port, tag, NULL, 0, &m, deadline);

	if (err == 0) {
		CHECK_EQ(m.tag, tag + 1);
		CHECK_EQ(m.sender, server);
		CHECK_EQ(m.size, 0);
		hd_message_drop(&m);
	}
	return err;
}

/* Makes the server's first call, after which it is ready. */
static void call_once(void (*fn)(void))
{
	then = fn;
	port = made_port(&(struct hd_port_options){ .unowned = true });
	server = born(hd_spawn_with(&(struct hd_spawn){ .port = port }, serve, NULL));
	client = hd_self();
	hd_yield(); /* it waits for the first one, which goes from hand to hand */
	CHECK_EQ(call(1), 0);
}

/* Calls twice, and answers what came of the second. */
static int call_twice(void (*fn)(void))
{
	call_once(fn);
	return call(3);
}

static void finish(void)
{
	CHECK_EQ(hd_join(server, NULL, HD_FOREVER), 0);
	hd_port_release(port);
	check_all_gone();
}

static void look_and_answer(void)
{
	struct hd_port_info info;
	struct hd_message none;

	hd_port_info(port, &info);
	CHECK_EQ(info.length, 1);
	CHECK_EQ(info.high_water, 0); /* it did not stand in the port, or this file tests nothing */
	CHECK_EQ(hd_receive(others, &none, 0), -EPERM);
	CHECK_EQ(length_of(port), 1);
	struct hd_message m = in_hand(3);
	CHECK_EQ(length_of(port), 0);
	reply_to(&m, 4);
}

HD_PROCESS_TEST(direct_call_is_in_the_port_until_it_is_received)
{
	others = made_port(NULL);
	CHECK_EQ(call_twice(look_and_answer), 0);
	hd_port_release(others);
	finish();
}

static int priority_now(void)
{
	return hd__self()->current->priority;
}

static void run_with_the_callers(void)
{
	struct hd_message m = in_hand(3);

	CHECK_EQ(priority_now(), 40);
	CHECK_EQ(hd_reply(&m, 4, NULL, 0), 0);
	CHECK_EQ(priority_now(), 30);
	hd_message_drop(&m);
}

HD_PROCESS_TEST(direct_call_is_not_for_a_process_that_borrows_priority)
{
	then = run_with_the_callers;
	port = made_port(&(struct hd_port_options){ .unowned = true });
	server = born(hd_spawn_with(&(struct hd_spawn){ .port = port, .priority = 30 }, serve, NULL));
	client = hd_self();
	CHECK_EQ(call(1), 0);
	CHECK_EQ(call(3), 0);
	finish();
}

static void urgent_first(void)
{
	CHECK_EQ(hd_send_with(port, &(struct hd_sending){ .tag = 7, .urgent = true }, 0), 0);
	send_tag(port, 8);
	CHECK_EQ(length_of(port), 3);
	CHECK_EQ(received_tag(port), 7);
	struct hd_message m = in_hand(3);
	CHECK_EQ(received_tag(port), 8);
	reply_to(&m, 4);
}

HD_PROCESS_TEST(direct_call_is_overtaken_by_urgent_messages_alone)
{
	CHECK_EQ(call_twice(urgent_first), 0);
	finish();
}

static void by_tag(void)
{
	struct hd_message m;

	send_tag(port, 8);
	CHECK_EQ(hd_receive_tag(port, 9, &m, 0), -ETIMEDOUT);
	CHECK_EQ(hd_receive_tag(port, 8, &m, 0), 0);
	m = in_hand(3);
	reply_to(&m, 4);
}

static void by_select(void)
{
	struct hd_message m;
	struct hd_case c = hd_case_receive(NULL, &m);

	CHECK_EQ(hd_select(&c, 1, 0), 0);
	CHECK_EQ(m.tag, 3);
	reply_to(&m, 4);
}

static void beside_another_port(void)
{
	struct hd_message m;
	hd_port *other = made_port(NULL);

	CHECK_EQ(hd_receive(other, &m, 0), -ETIMEDOUT);
	send_tag(other, 5);
	CHECK_EQ(received_tag(other), 5);
	send_tag(other, 6);
	m = in_hand(3);
	CHECK_EQ(received_tag(NULL), 6);
	reply_to(&m, 4);
	hd_port_release(other);
}

HD_PROCESS_TEST(direct_call_is_found_in_every_way)
{
	void (*const ways[])(void) = { by_tag, by_select, beside_another_port };

	for (int i = 0; i < 3; i++) {
		CHECK_EQ(call_twice(ways[i]), 0);
		finish();
	}
}

static void of_two_ports(void)
{
	struct hd_message m;

	CHECK_EQ(hd_receive(second, &m, 0), -ETIMEDOUT);
	send_tag(second, 5);
	m = in_hand(3);
	CHECK_EQ(received_tag(NULL), 5);
	reply_to(&m, 4);
	hd_port_release(second);
}

HD_PROCESS_TEST(direct_call_is_not_for_a_process_with_two_ports)
{
	with_second = true;
	CHECK_EQ(call_twice(of_two_ports), 0);
	finish();
}

static void end(void)
{
}

static void fail(void)
{
	hd_message_drop(&first);
	hd_fail(-EIO);
}

HD_PROCESS_TEST(direct_call_that_nobody_receives_is_broken)
{
	void (*const ways[])(void) = { end, fail };

	for (int i = 0; i < 2; i++) {
		CHECK_EQ(call_twice(ways[i]), -EPIPE);
		ANY_ANSWER(hd_join(server, NULL, HD_FOREVER));
		hd_port_release(port);
		check_all_gone();
	}
}

/* The last reference goes while the call is in hand; and another port comes. */
static void without_references(void)
{
	struct hd_message m;

	hd_port_release(port);
	CHECK_EQ(stats_now().live_ports, 0);
	hd_port *other = made_port(NULL);
	send_tag(other, 5);
	CHECK_EQ(hd_receive(NULL, &m, 0), 0);
	CHECK_EQ(m.tag, 3);
	CHECK(m.port == NULL);
	CHECK_EQ(hd_reply(&m, 4, NULL, 0), 0);
	CHECK_EQ(received_tag(other), 5);
	hd_message_drop(&m);
	hd_port_release(other);
	port = NULL;
}

static void receive_without_references(void)
{
	struct hd_message m;

	hd_port_release(port);
	CHECK_EQ(hd_receive(NULL, &m, 0), 0);
	CHECK_EQ(m.tag, 3);
	CHECK(m.port == NULL);
	reply_to(&m, 4);
	port = NULL;
}

static void end_without_references(void)
{
	hd_port_release(port);
	port = NULL;
}

HD_PROCESS_TEST(direct_call_outlives_the_references_to_its_port)
{
	CHECK_EQ(call_twice(without_references), 0);
	finish();
	CHECK_EQ(call_twice(receive_without_references), 0);
	finish();
	CHECK_EQ(call_twice(end_without_references), -EPIPE);
	finish();
}

/* Two that call: one is given to the server, and one stands in the port. What came before both is received before. */
static void *calls(void *tag)
{
	CHECK_EQ(call((int64_t)(long)tag), 0);
	return NULL;
}

static void several(void)
{
	hd_pid other = born(hd_spawn(calls, (void *)20L));

	while (length_of(port) < 2)
		hd_yield();
	struct hd_message one = in_hand(3), two;
	CHECK_EQ(hd_receive(port, &two, 0), 0);
	CHECK_EQ(two.tag, 20);
	reply_to(&two, 21);
	reply_to(&one, 4);
	CHECK_EQ(hd_join(other, NULL, HD_FOREVER), 0);
}

HD_PROCESS_TEST(direct_calls_keep_their_order)
{
	CHECK_EQ(call_twice(several), 0);
	finish();
}

static void what_was_sent_first(void)
{
	CHECK_EQ(length_of(port), 2);
	CHECK_EQ(received_tag(port), 7);
	struct hd_message m = in_hand(3);
	reply_to(&m, 4);
}

HD_PROCESS_TEST(direct_call_comes_after_what_its_caller_has_sent)
{
	for (int urgent = 0; urgent < 2; urgent++) {
		call_once(what_was_sent_first);
		CHECK_EQ(hd_send_with(port, &(struct hd_sending){ .tag = 7, .urgent = urgent != 0 }, 0), 0);
		CHECK_EQ(call(3), 0);
		finish();
	}
}

/* The server ends, and what was sent to it is being dropped: nothing can be sent any more. */
static void drop_slowly(void *data)
{
	(void)data;
	CHECK_EQ(call(1), -EDEADLK);
	hd_yield();
}

HD_PROCESS_TEST(direct_call_is_not_for_a_process_that_ends)
{
	static int thing;

	call_once(end);
	CHECK_EQ(hd_send_move(port, 7, &thing, sizeof thing, drop_slowly, 0), 0);
	hd_yield();
	struct hd_port_info info;
	hd_port_info(port, &info);
	CHECK(info.closed);
	CHECK_EQ(call(3), -ESRCH);
	finish();
}

static struct hd_message kept;

/* Its reply port has another reference; it is answered twice, and late. */
static void keep_it(void)
{
	kept = in_hand(3);
	hd_port *again = hd_port_retain(kept.carried);
	CHECK_EQ(hd_reply(&kept, 4, NULL, 0), 0);
	CHECK_EQ(hd_send(again, 5, NULL, 0, 0), -EALREADY);
	CHECK_EQ(hd_reply(&kept, 6, NULL, 0), -EALREADY);
	CHECK_EQ(call(1), -EDEADLK); /* itself */
	hd_port_release(again);
	hd_message_drop(&kept);
}

HD_PROCESS_TEST(direct_call_is_answered_once)
{
	CHECK_EQ(call_twice(keep_it), 0);
	finish();
}

static void *cancels(void *pid)
{
	CHECK_EQ(hd_cancel(*(hd_pid *)pid), 0);
	return NULL;
}

static void answer_late(void)
{
	struct hd_message m = in_hand(3);
	hd_pid other = born(hd_spawn(cancels, &client));

	CHECK_EQ(hd_join(other, NULL, HD_FOREVER), 0);
	CHECK_EQ(hd_reply(&m, 4, NULL, 0), -ESRCH);
	hd_message_drop(&m);
}

HD_PROCESS_TEST(direct_call_that_was_cancelled_is_answered_late)
{
	CHECK_EQ(call_twice(answer_late), -ECANCELED);
	hd_cancel_clear();
	finish();
}

static void answer_it(void)
{
	struct hd_message m = in_hand(3);

	reply_to(&m, 4);
}

HD_PROCESS_TEST(direct_call_may_have_a_deadline_and_forgets_it)
{
	for (int i = 0; i < 300; i++) { /* as many deadlines, none of which ends a wait, or is left */
		deadline = hd_after(HD_SEC(1000));
		CHECK_EQ(call_twice(answer_it), 0);
		finish();
	}
	CHECK(hd__self()->timers.count < 200);
	call_once(end);
	deadline = hd_now();
	CHECK_EQ(call(3), -ETIMEDOUT);
	finish();
}

static void answer_too_late(void)
{
	struct hd_message m = in_hand(3);

	CHECK_EQ(hd_sleep_until(deadline), 0); /* the caller's deadline is before this one */
	hd_yield();
	CHECK_EQ(hd_reply(&m, 4, NULL, 0), -ESRCH);
	hd_message_drop(&m);
}

HD_PROCESS_TEST(direct_call_whose_time_is_up_is_answered_late)
{
	call_once(answer_too_late);
	deadline = hd_after(HD_MS(5));
	CHECK_EQ(call(3), -ETIMEDOUT);
	finish();
}

/* The caller is terminated, and its stack is another process's when the answer comes. */
static void *calls_and_dies(void *arg)
{
	CHECK(call_twice(then) < 0); /* it does not return */
	return arg;
}

static void *uses_stack(void *arg)
{
	volatile char bytes[4000];

	memset((char *)(uintptr_t)bytes, 0x5a, sizeof bytes);
	return arg;
}

static void answer_the_dead(void)
{
	struct hd_message m = in_hand(3);

	CHECK_EQ(hd_terminate(client, HD_FOREVER), 0);
	CHECK_EQ(hd_join(born(hd_spawn(uses_stack, NULL)), NULL, HD_FOREVER), 0);
	CHECK_EQ(hd_reply(&m, 4, "x", 2), -ESRCH);
	hd_message_drop(&m);
}

HD_PROCESS_TEST(direct_call_whose_caller_has_died_is_answered_late)
{
	then = answer_the_dead;
	hd_pid caller = born(hd_spawn(calls_and_dies, NULL));
	ANY_ANSWER(hd_join(caller, NULL, HD_FOREVER));
	finish();
}

static int resumed;

static void *resumes(void *arg)
{
	for (int i = 0; i < 10; i++)
		hd_yield();
	raise_flag(&resumed);
	CHECK_EQ(hd_resume(client), 0);
	return arg;
}

/* The caller is suspended when the answer comes. */
static void answer_the_suspended(void)
{
	struct hd_message m = in_hand(3);
	hd_pid other = born(hd_spawn(resumes, NULL));

	CHECK_EQ(hd_suspend(client, HD_FOREVER), 0);
	reply_to(&m, 4);
	CHECK_EQ(hd_join(other, NULL, HD_FOREVER), 0);
}

HD_PROCESS_TEST(direct_call_of_a_suspended_process_is_answered)
{
	CHECK_EQ(call_twice(answer_the_suspended), 0);
	CHECK(is_raised(&resumed));
	finish();
}

static void *suspends(void *arg)
{
	CHECK_EQ(hd_suspend(server, HD_FOREVER), 0);
	CHECK_EQ(hd_cancel(client), 0);
	hd_yield();
	CHECK_EQ(hd_resume(server), 0);
	return arg;
}

/* The server is suspended with the call in hand; its caller gives up meanwhile. */
static void be_suspended(void)
{
	hd_pid other = born(hd_spawn(suspends, NULL));

	hd_yield();
	struct hd_message m = in_hand(3);
	CHECK_EQ(hd_reply(&m, 4, NULL, 0), -ESRCH);
	hd_message_drop(&m);
	CHECK_EQ(hd_join(other, NULL, HD_FOREVER), 0);
}

HD_PROCESS_TEST(direct_call_waits_with_a_server_that_is_suspended)
{
	CHECK_EQ(call_twice(be_suspended), -ECANCELED);
	hd_cancel_clear();
	finish();
}

/* What a receiver takes, and drops on another thread, is there although the caller has gone on. */
static void take_it(void)
{
	kept = in_hand(3);
	CHECK_EQ(hd_message_take(&kept), 0);
	CHECK_EQ(hd_reply(&kept, 4, NULL, 0), 0);
}

HD_PROCESS_TEST(direct_call_is_the_receivers_to_keep)
{
	CHECK_EQ(call_twice(take_it), 0);
	CHECK_EQ(hd_join(server, NULL, HD_FOREVER), 0);
	CHECK_EQ(kept.tag, 3);
	hd_message_drop(&kept);
	hd_port_release(port);
	check_all_gone();
}

/* ---- with data, and many ---- */

#define SIZE_MAX_HERE 300

static void *echo(void *arg)
{
	struct hd_message m;

	while (hd_receive(port, &m, HD_FOREVER) == 0 && m.size > 0) {
		for (size_t i = 0; i < m.size; i++)
			((unsigned char *)m.data)[i] ^= 0xff;
		CHECK_EQ(hd_reply(&m, m.tag, m.data, m.size), 0);
		for (size_t i = 0; i < m.size; i++) /* it is the receiver's until it is dropped */
			CHECK_EQ(((unsigned char *)m.data)[i], (unsigned char)(m.tag + (int64_t)i) ^ 0xff);
		hd_message_drop(&m);
	}
	hd_message_drop(&m);
	return arg;
}

static void *asks(void *arg)
{
	unsigned char bytes[SIZE_MAX_HERE];
	struct hd_message m;

	for (int round = 0; round < many(600); round++) {
		size_t size = 1 + (size_t)(round * 7) % SIZE_MAX_HERE;
		for (size_t i = 0; i < size; i++)
			bytes[i] = (unsigned char)((size_t)round + i);
		CHECK_EQ(hd_call(port, round, bytes, size, &m, HD_FOREVER), 0);
		CHECK_EQ(m.tag, round);
		CHECK_EQ(m.size, size);
		for (size_t i = 0; i < size; i++)
			CHECK_EQ(((unsigned char *)m.data)[i], bytes[i] ^ 0xff);
		hd_message_drop(&m);
	}
	return arg;
}

HD_WORKERS_TEST(direct_calls_carry_data_both_ways)
{
	for (int callers = 1; callers <= 4; callers += 3) {
		hd_pid pids[4];
		port = made_port(&(struct hd_port_options){ .unowned = true });
		server = born(hd_spawn_with(&(struct hd_spawn){ .port = port }, echo, NULL));
		for (int i = 0; i < callers; i++)
			pids[i] = born(hd_spawn(asks, NULL));
		join_all(pids, callers);
		send_tag(port, 0);
		finish();
	}
	(void)workers;
}

/* Calls, with others that cancel the caller, drop the server's message on another thread, or pass it on: each ends once. */
static long answered, given_up, late;
static int over;

static void *answers_somehow(void *arg)
{
	struct hd_message m;

	for (int n = 0; hd_receive(port, &m, HD_FOREVER) == 0 && m.tag != 0; n++) {
		if (n % 5 == 1)
			hd_yield();
		hd_port *again = n % 3 == 0 ? hd_port_retain(m.carried) : NULL;
		int err = n % 7 == 6 ? -EPIPE : hd_reply(&m, m.tag, &n, n % 2 == 0 ? sizeof n : 0);
		CHECK(err == 0 || err == -ESRCH || err == -EPIPE);
		if (err == -ESRCH)
			add(&late, 1);
		hd_port_release(again);
		hd_message_drop(&m);
	}
	hd_message_drop(&m);
	return arg;
}

static void *calls_many(void *arg)
{
	struct hd_message m;

	for (int i = 0; i < many(1000); i++) {
		int err = hd_call(port, 1 + i, NULL, 0, &m, HD_FOREVER);
		CHECK(err == 0 || err == -EPIPE || err == -ECANCELED);
		if (err == 0) {
			CHECK_EQ(m.tag, 1 + i);
			hd_message_drop(&m);
			add(&answered, 1);
		} else {
			add(&given_up, 1);
		}
		if (err == -ECANCELED)
			hd_cancel_clear();
	}
	return arg;
}

static void *disturbs(void *pids)
{
	for (int i = 0; !is_raised(&over); i++) {
		ANY_ANSWER(hd_cancel(((hd_pid *)pids)[i % 3]));
		for (int k = 0; k < 5 + i % 11; k++)
			hd_yield();
	}
	return NULL;
}

HD_WORKERS_TEST(direct_calls_end_once_whatever_comes_between)
{
	static hd_pid pids[3];

	(void)workers;
	set_flag(&over, 0);
	answered = given_up = late = 0;
	port = made_port(&(struct hd_port_options){ .unowned = true });
	server = born(hd_spawn_with(&(struct hd_spawn){ .port = port }, answers_somehow, NULL));
	for (int i = 0; i < 3; i++)
		pids[i] = born(hd_spawn(calls_many, NULL));
	hd_pid other = born(hd_spawn(disturbs, pids));
	join_all(pids, 3);
	raise_flag(&over);
	CHECK_EQ(hd_join(other, NULL, HD_FOREVER), 0);
	CHECK_EQ(value_of(&answered) + value_of(&given_up), 3L * many(1000));
	send_tag(port, 0);
	finish();
}
