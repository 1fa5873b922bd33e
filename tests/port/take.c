/* A receiver that takes many messages out of its port at once: nobody else can tell. */
#include "common.h"

enum { MANY = 40 }; /* enough to be taken at once */

static void send_many(hd_port *port, int from, int to)
{
	for (int i = from; i < to; i++)
		send_tag(port, i);
}

static void receive_many(hd_port *port, int from, int to)
{
	for (int i = from; i < to; i++)
		CHECK_EQ(received_tag(port), i);
}

/* The caller's port, with messages of which some were received, and the others taken. Not the first time: what that needs is made then. */
static hd_port *half_received(int received)
{
	hd_port *port = made_port(NULL);

	send_many(port, 0, MANY);
	receive_many(port, 0, MANY);
	send_many(port, 0, MANY);
	receive_many(port, 0, received);
	return port;
}

HD_PROCESS_TEST(taken_messages_count_until_they_are_received)
{
	hd_port *port = half_received(0);

	for (int i = 0; i < MANY; i++) {
		CHECK_EQ(length_of(port), MANY - i);
		CHECK_EQ(received_tag(i % 2 == 0 ? port : NULL), i);
	}
	CHECK_EQ(length_of(port), 0);
	struct hd_message m;
	CHECK_EQ(hd_receive(port, &m, 0), -ETIMEDOUT);
	hd_port_release(port);
	check_all_gone();
}

HD_PROCESS_TEST(taken_messages_stay_before_those_that_come_later)
{
	for (int received = 1; received < MANY; received++) {
		hd_port *port = half_received(received);
		send_many(port, MANY, 2 * MANY);
		CHECK_EQ(length_of(port), 2 * MANY - received);
		receive_many(port, received, 2 * MANY);
		hd_port_release(port);
		check_all_gone();
	}
}

HD_PROCESS_TEST(taken_messages_are_overtaken_by_urgent_ones)
{
	for (int received = 1; received < MANY; received += 3) {
		hd_port *port = half_received(received);
		for (int i = 0; i < 2; i++)
			CHECK_EQ(hd_send_with(port, &(struct hd_sending){ .tag = 1000 + i, .urgent = true }, 0), 0);
		receive_many(port, 1000, 1002);
		receive_many(port, received, MANY);
		hd_port_release(port);
		check_all_gone();
	}
}

/* By tag, by select, at another port: what was taken is there. */
HD_PROCESS_TEST(taken_messages_are_found_in_every_way)
{
	for (int way = 0; way < 4; way++)
		for (int received = 1; received < MANY - 4; received += 5) {
			hd_port *port = half_received(received), *other = NULL;
			struct hd_message m = { 0 };
			struct hd_case c = hd_case_receive(port, &m);
			if (way == 0) {
				CHECK_EQ(hd_receive_tag(port, MANY - 2, &m, 0), 0);
				CHECK_EQ(m.tag, MANY - 2);
				receive_many(port, received, MANY - 2);
				receive_many(port, MANY - 1, MANY);
			} else if (way == 1) {
				CHECK_EQ(hd_select(&c, 1, 0), 0);
				CHECK_EQ(m.tag, received);
				receive_many(port, received + 1, MANY);
			} else if (way == 2) {
				other = made_port(NULL);
				send_tag(other, 77);
				CHECK_EQ(received_tag(other), 77);
				receive_many(NULL, received, MANY);
			} else {
				CHECK_EQ(hd_receive_tag(port, 999, &m, 0), -ETIMEDOUT);
				receive_many(port, received, MANY);
			}
			hd_port_release(port);
			hd_port_release(other);
			check_all_gone();
		}
}

/* Without references the port is there until the last message was received, and no longer. */
HD_PROCESS_TEST(taken_messages_outlive_the_references_to_their_port)
{
	for (int received = 1; received < MANY; received++) {
		hd_port *port = half_received(received);
		struct hd_message m;
		hd_port_release(port);
		CHECK_EQ(stats_now().live_ports, 1);
		for (int i = received; i < MANY; i++) {
			CHECK_EQ(hd_receive(NULL, &m, 0), 0);
			CHECK_EQ(m.tag, i);
		}
		check_all_gone();
	}
}

static int drops, thing;

static void count_drop(void *data)
{
	(void)data;
	drops++;
}

static void *ends_with_taken(void *how)
{
	hd_port *port = made_port(NULL);
	struct hd_message m;

	for (int round = 0; round < 2; round++) {
		for (int i = 0; i < MANY; i++)
			CHECK_EQ(hd_send_move(port, i, &thing, 1, count_drop, 0), 0);
		for (int i = 0; i < (round == 0 ? MANY : MANY / 2); i++) {
			CHECK_EQ(hd_receive(port, &m, 0), 0);
			hd_message_drop(&m);
		}
	}
	if (how != NULL)
		hd_fail(1);
	return NULL;
}

HD_PROCESS_TEST(taken_messages_are_dropped_at_the_end)
{
	for (int i = 0; i < 2; i++) {
		drops = 0;
		CHECK_EQ(hd_join(born(hd_spawn(ends_with_taken, i == 0 ? NULL : &thing)), NULL, HD_FOREVER), 0);
		CHECK_EQ(drops, 2 * MANY);
		check_all_gone();
	}
}

/* A call that has been taken is answered like any other; one that no process waits for any more is told so. */
static hd_port *asked;
static int answers[MANY];

static void *asks(void *arg)
{
	long me = (long)arg;
	struct hd_message m;

	answers[me] = hd_call(asked, me, NULL, 0, &m, me % 3 == 0 ? hd_after(HD_MS(1)) : HD_FOREVER);
	if (answers[me] == 0) {
		CHECK_EQ(m.tag, me + 1);
		hd_message_drop(&m);
	}
	return NULL;
}

HD_WORKERS_TEST(taken_calls_are_answered)
{
	hd_pid callers[MANY];
	struct hd_message m;

	(void)workers;
	asked = made_port(NULL);
	for (int round = 0; round < 2; round++) {
		for (long i = 0; i < MANY; i++)
			callers[i] = born(hd_spawn(asks, (void *)i));
		while (length_of(asked) < MANY)
			CHECK_EQ(hd_sleep(HD_US(10)), 0);
		for (int i = 0; i < MANY; i += 3)
			CHECK_EQ(hd_join(callers[i], NULL, HD_FOREVER), 0);
		for (int i = 0; i < MANY; i++) {
			CHECK_EQ(hd_receive(asked, &m, 0), 0);
			CHECK_EQ(hd_reply(&m, m.tag + 1, NULL, 0), m.tag % 3 == 0 ? -ESRCH : 0);
			hd_message_drop(&m);
		}
		for (int i = 0; i < MANY; i++)
			if (i % 3 != 0)
				CHECK_EQ(hd_join(callers[i], NULL, HD_FOREVER), 0);
		for (int i = 0; i < MANY; i++)
			CHECK_EQ(answers[i], i % 3 == 0 ? -ETIMEDOUT : 0);
	}
	hd_port_release(asked);
	check_all_gone();
}

/* ---- on several workers ---- */

enum { SENDERS = 3 };
static int each;
static hd_port *sink;

static void *sends_in_order(void *arg)
{
	for (int i = 0; i < each; i++)
		send_tag(sink, i);
	hd_port_release(sink); /* each has a reference of its own */
	return arg;
}

/* The last reference goes while its owner receives: all arrives, in the order of each sender, and the port is gone. */
HD_WORKERS_TEST(taken_messages_keep_the_order_of_each_sender)
{
	hd_pid senders[SENDERS];
	struct hd_message m;

	(void)workers;
	each = many(5000);
	for (int round = 0; round < 4; round++) {
		int next[SENDERS] = { 0 };
		sink = made_port(NULL);
		for (int i = 0; i < SENDERS; i++) {
			hd_port_retain(sink);
			senders[i] = born(hd_spawn(sends_in_order, NULL));
		}
		hd_port_release(sink);
		for (int i = 0; i < SENDERS * each; i++) {
			CHECK_EQ(hd_receive(NULL, &m, HD_FOREVER), 0);
			int from = 0;
			while (from < SENDERS - 1 && senders[from] != m.sender)
				from++;
			CHECK_EQ(m.tag, next[from]++);
		}
		join_all(senders, SENDERS);
		check_all_gone();
	}
}
