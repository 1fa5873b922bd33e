/* port/port.c - what a port promises: every message once, in order, and dropped once; or an error, and it is still the sender's. */
#include "port/common.h"

/* ---- messages ---- */

HD_PROCESS_TEST(port_delivers_messages_in_order_with_their_data)
{
	hd_port *port = made_port(NULL);
	struct hd_message m;
	unsigned char data[1000];

	for (size_t i = 0; i < 300; i++) {
		memset(data, (int)i, sizeof data);
		CHECK_EQ(hd_send(port, (int64_t)i, i % 3 == 0 ? NULL : data, i % 3 == 0 ? 0 : i * 3, 0), 0);
	}
	CHECK_EQ(length_of(port), 300);
	for (size_t i = 0; i < 300; i++) {
		CHECK_EQ(hd_receive(i % 2 == 0 ? port : NULL, &m, HD_FOREVER), 0);
		CHECK_EQ(m.tag, i);
		CHECK(m.port == port);
		CHECK_EQ(m.sender, hd_self());
		CHECK_EQ(m.size, i % 3 == 0 ? 0 : i * 3);
		for (size_t k = 0; k < m.size; k++)
			CHECK_EQ(((unsigned char *)m.data)[k], (unsigned char)i);
		hd_message_drop(&m);
		CHECK(m.data == NULL && m.letter == NULL);
		hd_message_drop(&m);
	}
	CHECK_EQ(hd_receive(port, &m, 0), -ETIMEDOUT);
	CHECK_EQ(hd_receive(port, &m, hd_after(HD_MS(1))), -ETIMEDOUT);
	hd_port_release(port);
	check_all_gone();
}

HD_PROCESS_TEST(port_answers_misuse)
{
	hd_port *port = made_port(NULL);
	struct hd_message m = { .port = NULL };
	char byte = 0;

	CHECK_EQ(hd_send(port, -1, NULL, 0, 0), -EINVAL);
	CHECK_EQ(hd_send(port, 0, NULL, 1, 0), -EINVAL);
	CHECK_EQ(hd_send(port, 0, &byte, 1, HD_SEC(1)), -EINVAL);
	CHECK_EQ(hd_receive(port, &m, HD_SEC(1)), -EINVAL);
	CHECK_EQ(hd_receive_where(port, NULL, NULL, &m, 0), -EINVAL);
	CHECK_EQ(hd_reply(&m, 0, NULL, 0), -EINVAL);
	CHECK_EQ(hd_call(port, 0, NULL, 0, &m, 0), -EDEADLK);
	CHECK(hd_port_new(&(struct hd_port_options){ .full = (enum hd_port_full)9 }) == NULL);
	CHECK_EQ(length_of(port), 0);
	hd_port_release(port);
	hd_port_release(NULL);
	CHECK_EQ(hd_receive(NULL, &m, 0), -ETIMEDOUT); /* it has a mailbox still */
	check_all_gone();
}

static void *receives_of_another(void *port)
{
	struct hd_message m;

	CHECK_EQ(hd_receive(port, &m, 0), -EPERM);
	CHECK_EQ(hd_receive(NULL, &m, 0), -EPERM);
	return NULL;
}

static void on_plain(void *port)
{
	struct hd_message m;

	CHECK_EQ(hd_receive(port, &m, 0), -ENOTSUP);
	CHECK_EQ(hd_call(port, 0, NULL, 0, &m, 0), -ENOTSUP);
	CHECK_EQ(hd_send(port, 7, "abc", 4, HD_FOREVER), 0);
}

HD_PROCESS_TEST(port_is_for_its_owner_and_for_senders_of_any_kind)
{
	hd_port *port = made_port(NULL);
	struct hd_message m;

	CHECK_EQ(hd_join(born(hd_spawn(receives_of_another, port)), NULL, HD_FOREVER), 0);
	on_plain_thread(on_plain, port);
	CHECK_EQ(hd_receive(port, &m, HD_FOREVER), 0);
	CHECK_EQ(m.tag, 7);
	CHECK_EQ(m.sender, 0);
	CHECK_STR(m.data, "abc");
	hd_message_drop(&m);
	hd_port_release(port);
	check_all_gone();
}

HD_TEST(port_without_runtime_can_be_made_and_released)
{
	hd_port *port = made_port(NULL);

	CHECK_EQ(hd_send(port, 0, NULL, 0, 0), -ENXIO);
	CHECK(hd_port_retain(port) == port);
	hd_port_release(port);
	hd_port_release(port);
}

/* ---- several ports, urgent messages, selection ---- */

HD_PROCESS_TEST(port_null_receives_oldest_over_all_ports_and_urgent_first)
{
	hd_port *a = made_port(NULL), *b = made_port(NULL);

	for (int i = 0; i < 6; i++)
		send_tag(i % 2 == 0 ? a : b, i);
	CHECK_EQ(hd_send_with(b, &(struct hd_sending){ .tag = 100, .urgent = true }, 0), 0);
	CHECK_EQ(hd_send_with(a, &(struct hd_sending){ .tag = 101, .urgent = true }, 0), 0);
	CHECK_EQ(received_tag(b), 100);
	CHECK_EQ(received_tag(b), 1);
	CHECK_EQ(received_tag(NULL), 101);
	CHECK_EQ(received_tag(NULL), 0);
	CHECK_EQ(received_tag(NULL), 2);
	CHECK_EQ(received_tag(b), 3);
	CHECK_EQ(received_tag(NULL), 4);
	CHECK_EQ(received_tag(NULL), 5);
	hd_port_release(a);
	hd_port_release(b);
	check_all_gone();
}

/* A mailbox keeps lines for each of its ports from the second port on: what has arrived before is in them too. */
HD_PROCESS_TEST(port_made_after_messages_have_arrived_in_another_leaves_them_in_order)
{
	hd_port *a = made_port(NULL);

	for (int i = 0; i < 4; i++)
		CHECK_EQ(hd_send_with(a, &(struct hd_sending){ .tag = i, .urgent = i == 2 }, 0), 0);
	hd_port *b = made_port(NULL);
	send_tag(b, 10);
	send_tag(a, 4);
	CHECK_EQ(received_tag(b), 10);
	CHECK_EQ(received_tag(a), 2);
	CHECK_EQ(received_tag(a), 0);
	CHECK_EQ(received_tag(NULL), 1);
	CHECK_EQ(received_tag(a), 3);
	CHECK_EQ(received_tag(a), 4);
	CHECK_EQ(length_of(a), 0);
	hd_port_release(a);
	hd_port_release(b);
	check_all_gone();
}

/* The first port of a mailbox is part of it: its place is taken by the next port when it is gone, and not before. */
HD_PROCESS_TEST(port_that_takes_the_place_of_another_has_nothing_of_it)
{
	struct hd_port_info info;
	struct hd_message m;
	hd_port *first = made_port(&(struct hd_port_options){ .capacity = 1, .full = HD_FULL_DROP_NEW });

	send_tag(first, 1);
	send_tag(first, 2); /* dropped */
	hd_port_release(first);
	hd_port *second = made_port(NULL); /* there is a message in the first */
	CHECK_EQ(hd_receive(second, &m, 0), -ETIMEDOUT);
	send_tag(second, 3);
	CHECK_EQ(hd_receive(NULL, &m, 0), 0);
	CHECK_EQ(m.tag, 1);
	CHECK(m.port == NULL);
	CHECK_EQ(stats_now().live_ports, 1);
	hd_port *third = made_port(NULL);
	for (int i = 0; i < 3; i++)
		send_tag(third, 4 + i);
	hd_port_info(third, &info);
	CHECK_EQ(info.length, 3);
	CHECK_EQ(info.high_water, 3);
	CHECK_EQ(info.dropped, 0);
	CHECK_EQ(received_tag(third), 4);
	CHECK_EQ(received_tag(second), 3);
	CHECK_EQ(received_tag(NULL), 5);
	hd_port_release(second);
	hd_port_release(third);
	CHECK_EQ(received_tag(NULL), 6);
	check_all_gone();
}

static int shown;

static bool is_big(const struct hd_message *m, void *least)
{
	shown++;
	return m->tag >= *(int *)least;
}

static void *sends_later(void *port)
{
	send_tag(port, 3);
	CHECK_EQ(hd_send_with(port, &(struct hd_sending){ .tag = 4, .urgent = true }, 0), 0);
	send_tag(port, 1000);
	send_tag(port, 5);
	return NULL;
}

HD_PROCESS_TEST(port_selection_shows_each_message_once_in_a_call_and_keeps_their_order)
{
	hd_port *port = made_port(NULL), *other = made_port(NULL);
	struct hd_message m;
	int least = 1000;

	send_tag(other, 2000);
	for (int i = 0; i < 3; i++)
		send_tag(port, i);
	hd_pid pid = born(hd_spawn(sends_later, port));
	CHECK_EQ(hd_receive_where(port, is_big, &least, &m, HD_FOREVER), 0);
	CHECK_EQ(m.tag, 1000);
	CHECK_EQ(shown, 6); /* 0 1 2, 4, 3, 1000 */
	CHECK_EQ(hd_receive_tag(NULL, 2000, &m, HD_FOREVER), 0);
	CHECK_EQ(hd_receive_where(port, is_big, &least, &m, hd_after(HD_MS(1))), -ETIMEDOUT);
	CHECK_EQ(shown, 6 + 6);
	CHECK_EQ(received_tag(port), 4);
	for (int i = 0; i < 3; i++)
		CHECK_EQ(received_tag(port), i);
	CHECK_EQ(received_tag(port), 3);
	CHECK_EQ(received_tag(port), 5);
	CHECK_EQ(hd_join(pid, NULL, HD_FOREVER), 0);
	hd_port_release(port);
	hd_port_release(other);
	check_all_gone();
}

static void *sends_7(void *port)
{
	CHECK_EQ(hd_send(port, 7, "x", 2, 0), 0);
	return NULL;
}

HD_PROCESS_TEST(port_is_a_case_of_select)
{
	hd_port *a = made_port(NULL), *b = made_port(NULL);
	struct hd_message m;
	struct hd_semaphore s = { 0 };
	struct hd_case cases[] = { hd_case_receive(a, &m), hd_case_semaphore(&s), hd_case_receive(b, &m) };

	send_tag(b, 5);
	CHECK_EQ(hd_select(cases, 3, HD_FOREVER), 2);
	CHECK_EQ(cases[2].err, 0);
	CHECK_EQ(m.tag, 5);
	hd_pid pid = born(hd_spawn(sends_7, a));
	CHECK_EQ(hd_select(cases, 3, HD_FOREVER), 0); /* from hand to hand */
	CHECK_STR(m.data, "x");
	hd_message_drop(&m);
	CHECK_EQ(hd_select(cases, 3, hd_after(HD_MS(1))), -ETIMEDOUT);
	CHECK_EQ(hd_join(pid, NULL, HD_FOREVER), 0);
	hd_port *foreign = made_port(&(struct hd_port_options){ .unowned = true });
	struct hd_case wrong = hd_case_receive(foreign, &m);
	CHECK_EQ(hd_select(&wrong, 1, HD_FOREVER), 0);
	CHECK_EQ(wrong.err, -EPERM);
	hd_port_release(foreign);
	hd_port_release(a);
	hd_port_release(b);
	check_all_gone();
}

/* ---- full ports ---- */

HD_PROCESS_TEST(port_that_is_full_fails_or_drops_as_its_policy_says)
{
	hd_port *fails = made_port(&(struct hd_port_options){ .capacity = 2 });
	hd_port *drops_new = made_port(&(struct hd_port_options){ .capacity = 2, .full = HD_FULL_DROP_NEW });
	hd_port *drops_old = made_port(&(struct hd_port_options){ .capacity = 2, .full = HD_FULL_DROP_OLD });
	hd_port *small = made_port(&(struct hd_port_options){ .memory = 10 });
	struct hd_port_info info;
	char data[10] = { 0 };

	for (int i = 0; i < 5; i++) {
		CHECK_EQ(hd_send(fails, i, NULL, 0, HD_FOREVER), i < 2 ? 0 : -ENOBUFS);
		send_tag(drops_new, i);
		CHECK_EQ(hd_send(drops_old, i, data, 5, HD_FOREVER), 0);
	}
	CHECK_EQ(hd_send(small, 0, data, 4, 0), 0);
	CHECK_EQ(hd_send(small, 1, data, 7, 0), -ENOBUFS);
	CHECK_EQ(hd_send(small, 2, data, 6, 0), 0);
	CHECK_EQ(hd_send(small, 3, "01234567890", 11, 0), -EMSGSIZE);
	hd_port_info(drops_old, &info);
	CHECK_EQ(info.dropped, 3);
	CHECK_EQ(info.high_water, 2);
	CHECK_EQ(info.bytes, 10);
	CHECK_EQ(info.owner, hd_self());
	CHECK_EQ(received_tag(fails), 0);
	CHECK_EQ(received_tag(drops_new), 0);
	CHECK_EQ(received_tag(drops_new), 1);
	CHECK_EQ(received_tag(drops_old), 3);
	CHECK_EQ(received_tag(drops_old), 4);
	CHECK_EQ(length_of(drops_new) + length_of(drops_old), 0);
	CHECK_EQ(received_tag(small), 0);
	CHECK_EQ(hd_send(small, 1, data, 4, 0), 0);
	hd_port_release(fails); /* with a message in it: that can be received yet */
	CHECK_EQ(received_tag(NULL), 1);
	hd_port_release(drops_new);
	hd_port_release(drops_old);
	hd_port_release(small);
	CHECK_EQ(received_tag(NULL), 2);
	CHECK_EQ(received_tag(NULL), 1);
	check_all_gone();
}

static hd_port *bounded;

static void *sends_three(void *arg)
{
	for (int i = 0; i < 3; i++) {
		trace("%s%d ", (const char *)arg, i);
		CHECK_EQ(hd_send(bounded, i, NULL, 0, HD_FOREVER), 0);
	}
	return NULL;
}

HD_PROCESS_TEST(port_that_is_full_makes_senders_wait_in_order)
{
	bounded = made_port(&(struct hd_port_options){ .capacity = 2, .full = HD_FULL_BLOCK });
	hd_pid a = born(hd_spawn(sends_three, (void *)"a")), b = born(hd_spawn(sends_three, (void *)"b"));

	hd_yield();
	CHECK_STR(trace_text(), "a0 a1 a2 b0 ");
	CHECK_EQ(state_of(a), HD_WAITING);
	CHECK_EQ(info_of(a).why, HD_WAIT_SEND);
	CHECK_EQ(info_of(a).holder, hd_self());
	CHECK_EQ(hd_send(bounded, 9, NULL, 0, hd_after(HD_MS(1))), -ETIMEDOUT);
	static const int tags[] = { 0, 1, 2, 0, 1, 2 };
	for (int i = 0; i < 6; i++)
		CHECK_EQ(received_tag(bounded), tags[i]);
	join_all((hd_pid[]){ a, b }, 2);
	CHECK_EQ(hd_receive(bounded, &(struct hd_message){ 0 }, 0), -ETIMEDOUT);
	hd_port_release(bounded);
	check_all_gone();
}

/* ---- room ---- */

static const char bytes[100];
static hd_time large_until;

static void *sends_100_bytes(void *arg)
{
	int err = hd_send(bounded, 1, bytes, 100, large_until);

	CHECK(err == -ETIMEDOUT || err == -ECANCELED);
	return arg;
}

static void *sends_20_bytes(void *tag)
{
	CHECK_EQ(hd_send(bounded, (long)tag, bytes, 20, HD_FOREVER), 0);
	return NULL;
}

static void until_it_waits_for_room(hd_pid pid)
{
	while (state_of(pid) != HD_WAITING || info_of(pid).why != HD_WAIT_SEND)
		hd_yield();
}

/* For a sender that may find room: once it has ended, its message is in the port. */
static void until_it_waits_for_room_or_ends(hd_pid pid)
{
	while (state_of(pid) != HD_ENDED && (state_of(pid) != HD_WAITING || info_of(pid).why != HD_WAIT_SEND))
		hd_yield();
}

static void make_port_with_100_bytes(void)
{
	bounded = made_port(&(struct hd_port_options){ .memory = 100, .full = HD_FULL_BLOCK });
}

/* Small ones that wait behind a large one are let in when it goes, however it goes; the owner need not receive anything before. */
HD_WORKERS_TEST(port_lets_senders_in_when_the_one_before_them_gives_up)
{
	(void)workers;
	for (int how = 0; how < 4; how++) {
		hd_pid small[2];
		make_port_with_100_bytes();
		CHECK_EQ(hd_send(bounded, 0, bytes, 50, 0), 0);
		large_until = how == 0 ? hd_after(HD_MS(20)) : HD_FOREVER;
		hd_pid large = born(hd_spawn(sends_100_bytes, NULL));
		while (how > 0 && (state_of(large) != HD_WAITING))
			hd_yield();
		for (long i = 0; i < 2; i++) {
			small[i] = born(hd_spawn(sends_20_bytes, (void *)(i + 1)));
			/* With a deadline, `large` may not have arrived yet, or may have given up. */
			if (how > 0)
				until_it_waits_for_room(small[i]);
			else
				until_it_waits_for_room_or_ends(small[i]);
		}
		if (how == 3)
			CHECK_EQ(hd_suspend(large, HD_FOREVER), 0);
		if (how == 1 || how == 3)
			CHECK_EQ(hd_cancel(large), 0);
		if (how == 2)
			CHECK_EQ(hd_terminate(large, HD_FOREVER), 0);
		join_all(small, 2);
		if (how == 3)
			CHECK_EQ(hd_resume(large), 0);
		CHECK_EQ(hd_join(large, NULL, HD_FOREVER), 0);
		for (int i = 0; i < 3; i++)
			CHECK_EQ(received_tag(bounded), i);
		hd_port_release(bounded);
		check_all_gone();
	}
}

/* And all that fit, when a large one is received; also if the first of them is suspended. */
HD_WORKERS_TEST(port_lets_all_senders_in_for_which_there_is_room)
{
	(void)workers;
	for (int suspends = 0; suspends < 2; suspends++) {
		hd_pid small[4];
		make_port_with_100_bytes();
		CHECK_EQ(hd_send(bounded, 0, bytes, 100, 0), 0);
		for (long i = 0; i < 4; i++) {
			small[i] = born(hd_spawn(sends_20_bytes, (void *)(i + 1)));
			until_it_waits_for_room(small[i]);
		}
		if (suspends)
			CHECK_EQ(hd_suspend(small[0], HD_FOREVER), 0);
		CHECK_EQ(received_tag(bounded), 0);
		join_all(small + 1, 3);
		if (suspends)
			CHECK_EQ(hd_resume(small[0]), 0);
		CHECK_EQ(hd_join(small[0], NULL, HD_FOREVER), 0);
		for (int i = 0; i < 4; i++)
			CHECK_EQ(received_tag(bounded), i + 1);
		hd_port_release(bounded);
		check_all_gone();
	}
}

/* The owner waits for one message, which waits for room behind one that is too large. */
HD_WORKERS_TEST(port_wakes_its_owner_for_a_sender_that_is_let_in)
{
	struct hd_message m;

	(void)workers;
	make_port_with_100_bytes();
	CHECK_EQ(hd_send(bounded, 0, bytes, 50, 0), 0);
	large_until = hd_after(HD_MS(20));
	hd_pid large = born(hd_spawn(sends_100_bytes, NULL)), small = born(hd_spawn(sends_20_bytes, (void *)9));
	CHECK_EQ(hd_receive_tag(bounded, 9, &m, HD_FOREVER), 0);
	hd_message_drop(&m);
	join_all((hd_pid[]){ large, small }, 2);
	CHECK_EQ(received_tag(bounded), 0);
	hd_port_release(bounded);
	check_all_gone();
}

/* ---- what belongs to whom ---- */

static long drops;

static void count_drop(void *data)
{
	CHECK(data != NULL);
	add(&drops, 1);
}

static int thing;

static void *ends_with_messages(void *kind)
{
	hd_port *port = made_port(NULL), *full = made_port(&(struct hd_port_options){ .capacity = 1, .full = HD_FULL_BLOCK });
	struct hd_message m, taken;

	for (int i = 0; i < 4; i++)
		CHECK_EQ(hd_send_move(port, i, &thing, 1, count_drop, 0), 0);
	CHECK_EQ(hd_send_move(full, 0, &thing, 1, count_drop, 0), 0);
	CHECK_EQ(hd_receive(port, &m, 0), 0); /* held at the end */
	CHECK_EQ(hd_receive(port, &taken, 0), 0);
	CHECK_EQ(hd_message_take(&taken), 0);
	CHECK_EQ(hd_receive(port, &m, 0), 0);
	hd_message_drop(&m);
	CHECK_EQ(value_of(&drops), 1);
	hd_message_drop(&taken);
	CHECK_EQ(value_of(&drops), 2);
	if (kind != NULL)
		hd_fail(1);
	return NULL;
}

HD_PROCESS_TEST(port_drops_what_its_owner_leaves_behind)
{
	for (int i = 0; i < 2; i++) {
		set(&drops, 0);
		CHECK_EQ(hd_join(born(hd_spawn(ends_with_messages, i == 0 ? NULL : &thing)), NULL, HD_FOREVER), 0);
		CHECK_EQ(value_of(&drops), 5);
		check_all_gone();
	}
}

static hd_port *of_another;
static struct hd_semaphore ready, go;

static void *owner_that_ends(void *capacity)
{
	of_another = hd_port_retain(
		made_port(&(struct hd_port_options){ .capacity = (size_t)(long)capacity, .full = HD_FULL_BLOCK }));
	hd_semaphore_signal(&ready);
	CHECK_EQ(hd_semaphore_wait(&go, HD_FOREVER), 0);
	return NULL;
}

static int answer;

static void *sends_moved(void *arg)
{
	answer = hd_send_move(of_another, 1, &thing, 1, count_drop, HD_FOREVER);
	return arg;
}

/* A message that could not be sent is still its sender's. */
HD_PROCESS_TEST(port_of_dead_owner_refuses_messages)
{
	hd_pid owner = born(hd_spawn(owner_that_ends, (void *)1L));

	CHECK_EQ(hd_semaphore_wait(&ready, HD_FOREVER), 0);
	CHECK_EQ(hd_send_move(of_another, 0, &thing, 1, count_drop, 0), 0);
	hd_pid sender = born(hd_spawn(sends_moved, NULL)); /* waits for room */
	hd_yield();
	CHECK_EQ(info_of(sender).why, HD_WAIT_SEND);
	hd_semaphore_signal(&go);
	join_all((hd_pid[]){ owner, sender }, 2);
	CHECK_EQ(answer, -ESRCH);
	CHECK_EQ(value_of(&drops), 1);
	CHECK_EQ(hd_send_move(of_another, 0, &thing, 1, count_drop, 0), -ESRCH);
	CHECK_EQ(value_of(&drops), 1);
	struct hd_port_info info;
	hd_port_info(of_another, &info);
	CHECK(info.closed);
	hd_port_release(of_another);
	check_all_gone();
}

/* A port whose only references are in messages is there as long as they are. */
HD_PROCESS_TEST(port_carried_by_message_lives_in_it)
{
	hd_port *port = made_port(NULL), *carried = made_port(NULL);
	struct hd_message m;

	CHECK_EQ(hd_send_with(port, &(struct hd_sending){ .tag = 1, .carried = carried }, 0), 0);
	hd_port_release(carried);
	CHECK_EQ(hd_receive(port, &m, 0), 0);
	CHECK(m.carried == carried);
	send_tag(m.carried, 9);
	hd_message_drop(&m); /* its last reference; there is a message in it */
	CHECK_EQ(received_tag(NULL), 9);
	hd_port *again = made_port(NULL);
	CHECK_EQ(hd_send_with(port, &(struct hd_sending){ .carried = again }, 0), 0);
	hd_port_release(again);
	hd_port_release(port); /* and what it carries goes with it, at our end */
	CHECK_EQ(stats_now().live_ports, 2);
	CHECK_EQ(received_tag(NULL), 0);
	check_all_gone();
}

static void *drops_messages_with_its_own_port(void *other)
{
	hd_port *own = made_port(NULL);
	struct hd_message m;

	CHECK_EQ(hd_send_with(own, &(struct hd_sending){ .carried = own }, 0), 0);
	CHECK_EQ(hd_receive(own, &m, 0), 0);
	hd_message_drop(&m);
	CHECK_EQ(hd_send_with(other, &(struct hd_sending){ .carried = own }, 0), -ESRCH);
	return NULL;
}

/* The references that it gives up so were the messages', and not its own: heddle releases that at its end. */
HD_PROCESS_TEST(port_of_an_owner_that_drops_it_with_a_message_is_released)
{
	hd_port *other = made_port(&(struct hd_port_options){ .unowned = true });

	CHECK_EQ(hd_join(born(hd_spawn_with(&(struct hd_spawn){ .port = other }, nothing, NULL)), NULL, HD_FOREVER), 0);
	CHECK_EQ(hd_join(born(hd_spawn(drops_messages_with_its_own_port, other)), NULL, HD_FOREVER), 0);
	hd_port_release(other);
	check_all_gone();
}

HD_PROCESS_TEST(port_without_owner_drops_messages_with_last_reference)
{
	hd_port *port = made_port(&(struct hd_port_options){ .unowned = true });

	set(&drops, 0);
	CHECK_EQ(hd_send_move(port, 0, &thing, 1, count_drop, 0), 0);
	hd_port_release(port);
	CHECK_EQ(value_of(&drops), 1);
	check_all_gone();
}

/* No memory: the message is still the sender's, and the program goes on. */
HD_PROCESS_TEST(port_survives_want_of_memory)
{
	hd_port *port = made_port(NULL);
	char data[2000] = { 0 };

	hd__fault_arm(HD__FAULT_ALLOC, 1, false);
	CHECK(hd_port_new(NULL) == NULL);
	for (unsigned nth = 1; nth < 3; nth++) {
		hd__fault_arm(HD__FAULT_ALLOC, nth, false);
		CHECK(hd_port_new(&(struct hd_port_options){ .capacity = 1, .unowned = true }) == NULL);
	}
	for (unsigned nth = 1; nth < 3; nth++) { /* a port, and what a mailbox with several ports has more */
		hd__fault_arm(HD__FAULT_ALLOC, nth, false);
		CHECK(hd_port_new(NULL) == NULL);
	}
	hd__fault_arm(HD__FAULT_ALLOC, 1, false);
	CHECK_EQ(hd_send(port, 0, data, sizeof data, 0), -ENOMEM);
	CHECK_EQ(hd_send(port, 0, data, sizeof data, 0), 0);
	CHECK_EQ(received_tag(port), 0);
	hd_port_release(port);
	check_all_gone();
}

/* ---- waits that are called off ---- */

static void *receives(void *arg)
{
	hd_port *port = made_port(NULL);
	struct hd_message m;

	of_another = hd_port_retain(port);
	hd_semaphore_signal(&ready);
	answer = hd_receive(port, &m, HD_FOREVER);
	if (answer == 0)
		hd_message_drop(&m);
	return arg;
}

HD_PROCESS_TEST(port_receive_is_a_cancellation_point)
{
	for (int terminate = 0; terminate < 2; terminate++) {
		answer = 1;
		hd_pid pid = born(hd_spawn(receives, NULL));
		CHECK_EQ(hd_semaphore_wait(&ready, HD_FOREVER), 0);
		hd_yield();
		CHECK_EQ(info_of(pid).why, HD_WAIT_RECEIVE);
		CHECK_EQ(terminate ? hd_terminate(pid, HD_FOREVER) : hd_cancel(pid), 0);
		CHECK_EQ(hd_join(pid, NULL, HD_FOREVER), 0);
		CHECK_EQ(answer, terminate ? 1 : -ECANCELED);
		CHECK_EQ(hd_send(of_another, 0, NULL, 0, 0), -ESRCH);
		hd_port_release(of_another);
		check_all_gone();
	}
}

/* A receiver that selects, and is called off, has left nothing behind that a sender would look at. */
static bool none(const struct hd_message *m, void *arg)
{
	(void)m;
	(void)arg;
	return false;
}

static int use_stack(int depth)
{
	volatile char frame[64];

	memset((char *)frame, 0x55, sizeof frame);
	return depth == 0 ? frame[7] : use_stack(depth - 1) + frame[3];
}

static void *selects_in_vain(void *arg)
{
	hd_port *port = made_port(&(struct hd_port_options){ .capacity = 3, .full = HD_FULL_DROP_OLD });
	struct hd_message m;

	for (int i = 0; i < 3; i++)
		send_tag(port, i);
	CHECK_EQ(hd_receive_where(port, none, NULL, &m, 0), -ETIMEDOUT);
	CHECK(use_stack(20) != 0);
	send_tag(port, 3);
	CHECK_EQ(hd_receive_where(port, none, NULL, &m, hd_after(HD_MS(1))), -ETIMEDOUT);
	CHECK(use_stack(20) != 0);
	send_tag(port, 4);
	of_another = hd_port_retain(port);
	hd_semaphore_signal(&ready);
	CHECK_EQ(hd_receive_where(port, none, NULL, &m, HD_FOREVER), -ECANCELED);
	CHECK(use_stack(20) != 0);
	for (int i = 5; i < 9; i++)
		CHECK_EQ(hd_send(port, i, NULL, 0, 0), 0);
	CHECK_EQ(hd_cancel_clear(), 1);
	for (int i = 6; i < 9; i++)
		CHECK_EQ(received_tag(port), i);
	return arg;
}

HD_PROCESS_TEST(port_selection_that_is_called_off_is_forgotten)
{
	hd_pid pid = born(hd_spawn(selects_in_vain, NULL));

	CHECK_EQ(hd_semaphore_wait(&ready, HD_FOREVER), 0);
	send_tag(of_another, 100);
	CHECK_EQ(hd_cancel(pid), 0);
	CHECK_EQ(hd_join(pid, NULL, HD_FOREVER), 0);
	hd_port_release(of_another);
	check_all_gone();
}

/* A message and a cancel race for one receiver. Whoever wins, there is one message: the receiver has it, or it is dropped with the port. */
static void *cancels(void *pid)
{
	ANY_ANSWER(hd_cancel(*(hd_pid *)pid));
	return NULL;
}

static void *sends_moved_0(void *arg)
{
	int err = hd_send_move(of_another, 1, &thing, 1, count_drop, 0);
	CHECK(err == 0 || err == -ESRCH);
	if (err != 0)
		count_drop(&thing);
	return arg;
}

HD_WORKERS_TEST(port_message_survives_race_with_cancel)
{
	(void)workers;
	for (int round = 0; another_round(round, many(300)); round++) {
		set(&drops, 0);
		hd_pid pid = born(hd_spawn(receives, NULL));
		CHECK_EQ(hd_semaphore_wait(&ready, HD_FOREVER), 0);
		hd_pid sender = born(hd_spawn(sends_moved_0, NULL)), canceller = born(hd_spawn(cancels, &pid));
		join_all((hd_pid[]){ sender, canceller, pid }, 3);
		CHECK_EQ(value_of(&drops), 1);
		hd_port_release(of_another);
		check_all_gone();
	}
}
