/* port/batch.c - what hd_send_all promises: all messages or none, in one step. */
#include "port/common.h"

static long drops;

static void count_drop(void *data)
{
	(void)data;
	add(&drops, 1);
}

HD_PROCESS_TEST(batch_sends_all_or_none)
{
	hd_port *a = made_port(NULL), *b = made_port(&(struct hd_port_options){ .capacity = 2 }), *c = made_port(NULL);
	hd_port *old = made_port(&(struct hd_port_options){ .capacity = 1, .full = HD_FULL_DROP_OLD });
	static int thing;
	struct hd_parcel parcels[HD_SEND_ALL_MAX + 1] = {
		{ a, { .tag = 1 } },
		{ b, { .tag = 2, .data = "x", .size = 2 } },
		{ a, { .tag = 3 } },
		{ b, { .tag = 4 } },
		{ c, { .tag = 5, .data = &thing, .size = 1, .move = true, .drop = count_drop } }
	};

	CHECK_EQ(hd_send_all(NULL, 0), 0);
	CHECK_EQ(hd_send_all(parcels, HD_SEND_ALL_MAX + 1), -E2BIG);
	send_tag(b, 9);
	CHECK_EQ(hd_send_all(parcels, 5), -ENOBUFS); /* there is room for one */
	CHECK_EQ(length_of(a) + length_of(c), 0);
	CHECK_EQ(received_tag(b), 9);
	parcels[2].what.tag = -1;
	CHECK_EQ(hd_send_all(parcels, 5), -EINVAL);
	CHECK_EQ(length_of(a) + length_of(b) + length_of(c), 0);
	parcels[2].what.tag = 3;
	CHECK_EQ(value_of(&drops), 0);
	CHECK_EQ(hd_send_all(parcels, 5), 0);
	for (int i = 1; i <= 4; i++)
		CHECK_EQ(received_tag(i % 2 == 1 ? a : b), i);
	CHECK_EQ(received_tag(NULL), 5);
	CHECK_EQ(value_of(&drops), 1);
	struct hd_parcel displacing[3] = { { old, { .tag = 1, .data = "a", .size = 2 } },
					   { old, { .tag = 2 } },
					   { a, { .tag = 3 } } };
	CHECK_EQ(hd_send_all(displacing, 3), 0);
	CHECK_EQ(received_tag(old), 2);
	CHECK_EQ(received_tag(a), 3);
	hd_port_release(a);
	hd_port_release(b);
	hd_port_release(c);
	hd_port_release(old);
	check_all_gone();
}

HD_PROCESS_TEST(batch_survives_want_of_memory)
{
	hd_port *a = made_port(NULL);
	char data[200] = { 0 };
	struct hd_parcel parcels[3];

	for (int i = 0; i < 3; i++)
		parcels[i] = (struct hd_parcel){ a, { .tag = i, .data = data, .size = sizeof data } };
	for (unsigned nth = 1; nth <= 3; nth++) {
		hd__fault_arm(HD__FAULT_ALLOC, nth, false);
		CHECK_EQ(hd_send_all(parcels, 3), -ENOMEM);
		CHECK_EQ(length_of(a), 0);
	}
	hd_port_release(a);
	check_all_gone();
}

/* ---- two ports, two owners: each sees either both messages of a round, or neither ---- */

static hd_port *left, *right;
static long rounds, seen;

static void *sends_rounds(void *arg)
{
	for (long i = 0; i < rounds; i++) {
		struct hd_parcel parcels[2] = { { left, { .tag = i } }, { right, { .tag = i } } };
		CHECK_EQ(hd_send_all(parcels, 2), 0);
	}
	return arg;
}

/* When this one has message i, the other one's port has had it too: it is there, or has been received. */
static long got[2];

static void *receives_rounds(void *side)
{
	hd_port *other = (long)side == 0 ? right : left;

	for (long i = 0; i < rounds * 2; i++) {
		CHECK(received_tag(NULL) >= 0);
		add(&got[(long)side], 1);
		struct hd_port_info info;
		hd_port_info(other, &info);
		CHECK(value_of(&got[!(long)side]) + (long)info.length + 1 >= i + 1); /* one may be on its way out of the port */
		add(&seen, 1);
	}
	return NULL;
}

HD_WORKERS_TEST(batch_is_one_step)
{
	(void)workers;
	rounds = many(300);
	set(&seen, 0);
	set(&got[0], 0);
	set(&got[1], 0);
	left = made_port(&(struct hd_port_options){ .unowned = true });
	right = made_port(&(struct hd_port_options){ .unowned = true });
	hd_pid pids[4] = { born(hd_spawn_with(&(struct hd_spawn){ .port = left }, receives_rounds, (void *)0L)),
			   born(hd_spawn_with(&(struct hd_spawn){ .port = right }, receives_rounds, (void *)1L)),
			   born(hd_spawn(sends_rounds, NULL)), born(hd_spawn(sends_rounds, NULL)) };
	join_all(pids, 4);
	CHECK_EQ(value_of(&seen), 4 * rounds);
	hd_port_release(left);
	hd_port_release(right);
	check_all_gone();
}

/* ---- two senders, in both orders: each port has the same order ---- */

static void *sends_both(void *arg)
{
	long me = (long)arg;

	for (long i = 0; i < rounds; i++) {
		struct hd_parcel parcels[2] = { { me == 0 ? left : right, { .tag = me * 1000000 + i } },
						{ me == 0 ? right : left, { .tag = me * 1000000 + i } } };
		CHECK_EQ(hd_send_all(parcels, 2), 0);
	}
	return NULL;
}

HD_WORKERS_TEST(batch_gives_all_ports_the_same_order)
{
	(void)workers;
	rounds = many(300);
	left = made_port(NULL);
	right = made_port(NULL);
	hd_pid pids[2] = { born(hd_spawn(sends_both, (void *)0L)), born(hd_spawn(sends_both, (void *)1L)) };
	for (long i = 0; i < 2 * rounds; i++) {
		int64_t one = received_tag(left);
		CHECK_EQ(received_tag(right), one);
	}
	join_all(pids, 2);
	hd_port_release(left);
	hd_port_release(right);
	check_all_gone();
}
