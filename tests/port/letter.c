/* The memory of messages: of every size, between workers, beyond a runtime, in a forked child, after a flood. */
#include <malloc.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common.h"

enum { LONGEST = 300 };

static void fill(unsigned char *data, size_t size, unsigned seed)
{
	for (size_t i = 0; i < size; i++)
		data[i] = (unsigned char)(seed + i);
}

static bool is_filled(const unsigned char *data, size_t size, unsigned seed)
{
	for (size_t i = 0; i < size; i++)
		if (data[i] != (unsigned char)(seed + i))
			return false;
	return true;
}

static void send_filled(hd_port *port, size_t size, unsigned seed)
{
	unsigned char data[LONGEST];

	fill(data, size, seed);
	CHECK_EQ(hd_send(port, (int64_t)seed, size > 0 ? data : NULL, size, HD_FOREVER), 0);
}

static void check_filled(const struct hd_message *m, size_t size, unsigned seed)
{
	CHECK_EQ(m->tag, seed);
	CHECK_EQ(m->size, size);
	CHECK_EQ(m->data == NULL, size == 0);
	CHECK(is_filled(m->data, size, seed));
}

/* Messages of all sizes are held at once, and dropped in another order. */
HD_PROCESS_TEST(letters_of_all_sizes_keep_their_bytes)
{
	enum { N = LONGEST + 1 };
	hd_port *port = made_port(NULL);
	struct hd_message m[N];

	for (int round = 0; round < 3; round++) {
		for (unsigned i = 0; i < N; i++)
			send_filled(port, i, i + (unsigned)round);
		for (unsigned i = 0; i < N; i++)
			CHECK_EQ(hd_receive(port, &m[i], 0), 0);
		for (unsigned i = 0; i < N; i++)
			check_filled(&m[i], i, i + (unsigned)round);
		for (unsigned i = 0; i < N; i++)
			hd_message_drop(&m[i * 10 % N]); /* 10 and N have no common divisor */
	}
	hd_port_release(port);
	check_all_gone();
}

/* ---- between workers ---- */

enum { SENDERS = 3, HELD = 50 };
static hd_port *sink;
static int each;

static size_t size_for(unsigned i)
{
	static const size_t sizes[] = { 0, 0, 0, 8, 32, 33, 96, 97, 0 };

	return sizes[i % (sizeof sizes / sizeof sizes[0])];
}

static void *sends_all_sizes(void *arg)
{
	for (int i = 0; i < each; i++)
		send_filled(sink, size_for((unsigned)i), (unsigned)i);
	return arg;
}

/* Messages are made on some workers and dropped on another, some at once and some later. */
HD_WORKERS_TEST(letters_go_round_between_workers)
{
	hd_pid senders[SENDERS];
	struct hd_message m, held[HELD] = { { 0 } };

	(void)workers;
	each = many(20000);
	sink = made_port(NULL);
	for (int i = 0; i < SENDERS; i++)
		senders[i] = born(hd_spawn(sends_all_sizes, NULL));
	for (int i = 0; i < SENDERS * each; i++) {
		CHECK_EQ(hd_receive(sink, &m, HD_FOREVER), 0);
		check_filled(&m, size_for((unsigned)m.tag), (unsigned)m.tag);
		hd_message_drop(&held[i % HELD]);
		held[i % HELD] = m;
	}
	for (int i = 0; i < HELD; i++)
		hd_message_drop(&held[i]);
	join_all(senders, SENDERS);
	hd_port_release(sink);
	check_all_gone();
}

/* ---- beyond a runtime ---- */

enum { KEPT = 200 };
static struct hd_message kept[KEPT];

static void *keeps(void *arg)
{
	hd_port *port = made_port(NULL);

	for (unsigned i = 0; i < KEPT; i++) {
		send_filled(port, 1 + i % 120, i);
		CHECK_EQ(hd_receive(port, &kept[i], 0), 0);
		CHECK_EQ(hd_message_take(&kept[i]), 0);
	}
	return arg;
}

static void *uses_letters(void *arg)
{
	hd_port *port = made_port(NULL);

	for (unsigned i = 0; i < KEPT; i++)
		send_filled(port, 1 + i % 120, i);
	for (int i = 0; i < KEPT; i++)
		received_tag(port);
	return arg;
}

static void drop_kept(int from, int to)
{
	for (int i = from; i < to; i++) {
		check_filled(&kept[i], 1 + (size_t)i % 120, (unsigned)i);
		hd_message_drop(&kept[i]);
	}
}

static void *drops_rest(void *arg)
{
	drop_kept(KEPT / 2, KEPT);
	CHECK_EQ(stats_now().live_messages, 0);
	return arg;
}

/* What was taken is there when the runtime is gone, and when there is another; a plain thread drops one half, a process the other. */
HD_TEST(letters_that_were_taken_outlive_their_runtime)
{
	if (hd_is_simulated())
		SKIP("it ends one runtime and begins another");
	CHECK_EQ(run_with_workers(1, keeps, NULL), 0);
	CHECK_EQ(run_with_workers(2, uses_letters, NULL), 0);
	drop_kept(0, KEPT / 2);
	CHECK_EQ(run_with_workers(2, drops_rest, NULL), 0);
}

/* A forked child drops its copies of what was taken, and has letters of its own; so does its parent. */
HD_TEST(letters_of_the_parent_are_dropped_in_a_forked_child)
{
	int status;

	if (hd_is_simulated() || HD_UNDER_TSAN || HD_UNDER_ASAN || hd_is_emulated())
		SKIP("a forked child can have no threads here");
	CHECK_EQ(run_with_workers(1, keeps, NULL), 0);
	pid_t child = fork();
	if (child == 0) {
		drop_kept(0, KEPT);
		_exit(run_with_workers(2, uses_letters, NULL) != 0);
	}
	CHECK(child > 0);
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK_EQ(status, 0);
	drop_kept(0, KEPT);
	CHECK_EQ(run_with_workers(2, uses_letters, NULL), 0);
}

/* ---- after a flood ---- */

/* Messages go to several ports in turn, so that neighbours in memory are dropped at different times. */
HD_PROCESS_TEST(letters_of_a_flood_give_their_memory_back)
{
	enum { PORTS = 20 };
	hd_port *ports[PORTS];
	int n = many(10000);

	for (int i = 0; i < PORTS; i++)
		ports[i] = made_port(NULL);
	send_tag(ports[0], 0);
	received_tag(ports[0]);
	size_t before = mallinfo2().uordblks;
	for (int round = 0; round < 3; round++) {
		for (int k = 0; k < n; k++)
			for (int i = 0; i < PORTS; i++)
				send_tag(ports[i], k);
		for (int i = 0; i < PORTS; i++)
			for (int k = 0; k < n; k++)
				CHECK_EQ(received_tag(ports[i]), k);
	}
	CHECK(mallinfo2().uordblks <= before + (3u << 20));
	for (int i = 0; i < PORTS; i++)
		hd_port_release(ports[i]);
	check_all_gone();
}
