/* port/shapes.c - programs of many processes that send to each other: the shapes of the Fletch VM's own tests. */
#include "port/common.h"

static void check_settled(void)
{
	struct hd_stats stats = stats_now();

	CHECK_EQ(stats.live_messages, 0);
	CHECK_EQ(stats.live_ports, 0);
}

/* ---- 2,000 pairs, each of which exchanges 200 messages ---- */

struct pair {
	hd_port *ports[2];
	struct hd_semaphore made[2];
};
static int exchanges;

static void exchange(struct pair *pair, int side)
{
	struct hd_message m;

	pair->ports[side] = hd_port_retain(made_port(NULL));
	hd_semaphore_signal(&pair->made[side]);
	CHECK_EQ(hd_semaphore_wait(&pair->made[!side], HD_FOREVER), 0);
	for (int i = 0; i < exchanges; i++) {
		if (side == 0)
			CHECK_EQ(hd_send(pair->ports[1], i, &i, sizeof i, HD_FOREVER), 0);
		CHECK_EQ(hd_receive(NULL, &m, HD_FOREVER), 0);
		CHECK_EQ(m.tag, i);
		CHECK_EQ(*(int *)m.data, i);
		hd_message_drop(&m);
		if (side == 1)
			CHECK_EQ(hd_send(pair->ports[0], i, &i, sizeof i, HD_FOREVER), 0);
	}
	hd_port_release(pair->ports[!side]);
}

static void *left(void *pair)
{
	exchange(pair, 0);
	return NULL;
}

static void *right(void *pair)
{
	exchange(pair, 1);
	return NULL;
}

HD_WORKERS_TEST(shape_many_pairs)
{
	enum { PAIRS = 2000 };
	static struct pair pairs[PAIRS];
	static hd_pid pids[2 * PAIRS];
	int n = hd_is_simulated() ? 3 : hd_scaled(PAIRS);

	(void)workers;
	exchanges = hd_is_simulated() ? 4 : hd_scaled(200);
	for (int i = 0; i < n; i++) {
		pairs[i] = (struct pair){ 0 };
		pids[2 * i] = born(hd_spawn(left, &pairs[i]));
		pids[2 * i + 1] = born(hd_spawn(right, &pairs[i]));
	}
	join_all(pids, 2 * n);
	check_settled();
}

/* ---- spawn a process, it sends a message, wait for it: again and again ---- */

static void *sends_one(void *port)
{
	send_tag(port, 1);
	hd_port_release(port);
	return NULL;
}

HD_WORKERS_TEST(shape_one_message_per_process)
{
	hd_port *port = made_port(NULL);

	(void)workers;
	for (int i = 0; i < many(20000); i++) {
		hd_pid pid = born(hd_spawn(sends_one, hd_port_retain(port)));
		CHECK_EQ(received_tag(port), 1);
		CHECK_EQ(hd_detach(pid), 0);
	}
	hd_port_release(port);
}

/* ---- 1,000 processes send 101 messages each to one port ---- */

static hd_port *single;
static int each;

static void *sends_many(void *arg)
{
	for (int i = 0; i < each; i++)
		CHECK_EQ(hd_send(single, i, &arg, sizeof arg, HD_FOREVER), 0);
	return NULL;
}

HD_WORKERS_TEST(shape_many_senders_one_receiver)
{
	enum { SENDERS = 1000 };
	static hd_pid pids[SENDERS];
	static int next[SENDERS];
	int n = hd_is_simulated() ? 5 : hd_scaled(SENDERS);

	(void)workers;
	each = hd_is_simulated() ? 5 : 101;
	single = made_port(NULL);
	for (long i = 0; i < n; i++) {
		next[i] = 0;
		pids[i] = born(hd_spawn(sends_many, (void *)i));
	}
	for (int i = 0; i < n * each; i++) {
		struct hd_message m;
		CHECK_EQ(hd_receive(single, &m, HD_FOREVER), 0);
		CHECK_EQ(m.tag, next[*(long *)m.data]++); /* what one sender sends comes in order */
		hd_message_drop(&m);
	}
	join_all(pids, n);
	hd_port_release(single);
	check_settled();
}

/* ---- a chain of 1,000 processes ---- */

static void *forwards(void *to)
{
	struct hd_message m;
	hd_port *next = to;

	for (bool on = true; on;) {
		CHECK_EQ(hd_receive(NULL, &m, HD_FOREVER), 0);
		on = m.tag > 0;
		CHECK_EQ(hd_send(next, m.tag, m.data, m.size, HD_FOREVER), 0);
		hd_message_drop(&m);
	}
	hd_port_release(next);
	return NULL;
}

HD_WORKERS_TEST(shape_chain)
{
	enum { LENGTH = 1000 };
	static hd_pid pids[LENGTH];
	int n = hd_is_simulated() ? 4 : hd_scaled(LENGTH), rounds = many(100);
	hd_port *end = made_port(NULL), *next = hd_port_retain(end);

	(void)workers;
	for (int i = 0; i < n; i++) {
		hd_port *port = made_port(&(struct hd_port_options){ .unowned = true });
		pids[i] = born(hd_spawn_with(&(struct hd_spawn){ .port = port }, forwards, next));
		next = port;
	}
	for (int i = rounds; i >= 0; i--)
		CHECK_EQ(hd_send(next, i, "payload", 8, HD_FOREVER), 0);
	for (int i = rounds; i >= 0; i--)
		CHECK_EQ(received_tag(end), i);
	join_all(pids, n);
	hd_port_release(next);
	hd_port_release(end);
	check_settled();
}

/* ---- the receiver dies early: sends to it answer -ESRCH, and nothing is left ---- */

static void *takes_five(void *arg)
{
	struct hd_message m;

	for (int i = 0; i < 5; i++) {
		CHECK_EQ(hd_receive(NULL, &m, HD_FOREVER), 0);
		if (i % 2 == 0)
			hd_message_drop(&m);
	}
	return arg;
}

static void *sends_ten(void *port)
{
	int sent = 0;

	for (int i = 0; i < 10; i++) {
		int err = hd_send(port, i, "some bytes of data", 19, HD_FOREVER);
		CHECK(err == 0 || err == -ESRCH);
		sent += err == 0;
	}
	CHECK(sent >= 5);
	hd_port_release(port);
	return NULL;
}

HD_WORKERS_TEST(shape_receiver_dies_early)
{
	enum { PAIRS = 500 };
	static hd_pid pids[2 * PAIRS];
	int n = hd_is_simulated() ? 4 : hd_scaled(PAIRS);

	(void)workers;
	for (int i = 0; i < n; i++) {
		hd_port *port = made_port(&(struct hd_port_options){ .unowned = true });
		pids[2 * i] = born(hd_spawn_with(&(struct hd_spawn){ .port = port }, takes_five, NULL));
		pids[2 * i + 1] = born(hd_spawn(sends_ten, port));
	}
	join_all(pids, 2 * n);
	check_settled();
}
