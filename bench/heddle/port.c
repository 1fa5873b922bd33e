/* port.c - what messages cost: a call and its answer, and messages one way. */
#include "../harness.h"
#include "cases.h"

enum { BURST = 64, STOP = 1 };

static hd_port *made(const struct hd_port_options *options)
{
	hd_port *port = hd_port_new(options);

	if (port == NULL)
		bench_die("hd_port_new", ENOMEM);
	return port;
}

static hd_pid spawn_owner(hd_port *port, hd_entry entry, void *arg)
{
	return bench_ok(hd_spawn_with(&(struct hd_spawn){ .port = port }, entry, arg), "hd_spawn_with");
}

static void send(hd_port *port, int64_t tag)
{
	bench_ok(hd_send(port, tag, NULL, 0, HD_FOREVER), "hd_send");
}

/* Answers each call with what it was called with. */
static void *echo(void *arg)
{
	struct hd_message m;

	for (;;) {
		bench_ok(hd_receive(NULL, &m, HD_FOREVER), "hd_receive");
		if (m.tag == STOP)
			return arg;
		bench_ok(hd_reply(&m, m.tag, m.data, m.size), "hd_reply");
		hd_message_drop(&m);
	}
}

static double round_trips(long n, const void *data, size_t size)
{
	hd_port *port = made(&(struct hd_port_options){ .unowned = true });
	hd_pid pid = spawn_owner(port, echo, NULL);
	struct hd_message answer;

	double start = bench_now();
	for (long i = 0; i < n; i++) {
		bench_ok(hd_call(port, 0, data, size, &answer, HD_FOREVER), "hd_call");
		bench_same("bytes of the answer", (int64_t)answer.size, (int64_t)size);
		hd_message_drop(&answer);
	}
	double took = bench_now() - start;
	send(port, STOP);
	bench_ok(hd_join(pid, NULL, HD_FOREVER), "hd_join");
	hd_port_release(port);
	return took;
}

static double call_with_tag(long n)
{
	return round_trips(n, NULL, 0);
}

static double call_with_16(long n)
{
	static const char bytes[16] = "sixteen";

	return round_trips(n, bytes, sizeof bytes);
}

void port_pingpong(void)
{
	bench_rate("port_pingpong", call_with_tag, 1000);
}

void port_pingpong_16(void)
{
	bench_rate("port_pingpong_16", call_with_16, 1000);
}

static void *receive_all(void *count)
{
	struct hd_message m;
	int64_t sum = 0;

	for (int64_t n = *(long *)count; n > 0; n--) {
		bench_ok(hd_receive(NULL, &m, HD_FOREVER), "hd_receive");
		sum += m.tag;
		hd_message_drop(&m);
	}
	bench_same("sum of the tags", sum, bench_sum(*(long *)count));
	return NULL;
}

static double one_way(long n, const struct hd_port_options *options, int burst)
{
	hd_port *port = made(options);
	hd_pid pid = spawn_owner(port, receive_all, &n);

	double start = bench_now();
	for (long i = 1; i <= n; i++) {
		send(port, i);
		if (burst != 0 && i % burst == 0)
			hd_yield();
	}
	bench_ok(hd_join(pid, NULL, HD_FOREVER), "hd_join");
	double took = bench_now() - start;
	hd_port_release(port);
	return took;
}

static double in_bursts(long n)
{
	return one_way(n, &(struct hd_port_options){ .unowned = true }, BURST);
}

static double into_full(long n)
{
	return one_way(n, &(struct hd_port_options){ .unowned = true, .capacity = BENCH_QUEUE_CAPACITY, .full = HD_FULL_BLOCK },
		       0);
}

void port_send(void)
{
	bench_rate("port_send", in_bursts, 1000);
}

void port_bounded(void)
{
	bench_rate("port_bounded", into_full, 1000);
}
