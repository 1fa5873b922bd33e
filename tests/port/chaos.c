/* port/chaos.c - processes that send, receive, call, answer, pass on, link, watch, name, suspend, cancel and kill each other at random, and end:
 * every message is dropped once, or stays its sender's, and nothing is left. */
#include <heddle/link.h>
#include <stdlib.h>

#include "port/common.h"

enum { PLAYERS = 6, PORTS = 12, HELD = 4 };

/* Ports that all know, each with a reference; a new one takes the place of an old one. */
static hd_port *known[PORTS];
static struct hd_mutex known_lock;
static hd_pid players[PLAYERS];
static long made, freed;

/* A message that knows whether it has been dropped. */
struct cargo {
	long dropped;
};

struct player {
	unsigned dice;
	hd_port *own[2];
	struct hd_message held[HELD];
	struct cargo *cargo;   /* that it is sending, */
	hd_port *to, *carried; /* where, and with what: references that it releases */
};

static unsigned throw(struct player * me, unsigned n)
{
	me->dice = me->dice * 1664525u + 1013904223u;
	return (unsigned)(((uint64_t)me->dice * n) >> 32);
}

static hd_time soon(struct player *me)
{
	return throw(me, 3) == 0 ? 0 : hd_after(HD_US(throw(me, 200)));
}

static void drop_cargo(void *data)
{
	struct cargo *cargo = data;

	CHECK_EQ(add(&cargo->dropped, 1), 1);
	free(cargo);
	add(&freed, 1);
}

static struct cargo *new_cargo(void)
{
	struct cargo *cargo = calloc(1, sizeof *cargo);

	CHECK(cargo != NULL);
	add(&made, 1);
	return cargo;
}

/* With a reference that the caller releases. Nothing ends the caller meanwhile. */
static hd_port *some_port(struct player *me)
{
	int before = hd_set_cancel_state(HD_CANCEL_DISABLED);

	CHECK_EQ(hd_mutex_lock(&known_lock, HD_FOREVER), 0);
	hd_port *port = known[throw(me, PORTS)];
	if (port != NULL)
		hd_port_retain(port);
	CHECK_EQ(hd_mutex_unlock(&known_lock), 0);
	hd_set_cancel_state((enum hd_cancel_state)before);
	return port;
}

static void make_known(struct player *me, hd_port *port)
{
	CHECK_EQ(hd_mutex_lock(&known_lock, HD_FOREVER), 0);
	hd_port **place = &known[throw(me, PORTS)], *old = *place;
	*place = port != NULL ? hd_port_retain(port) : NULL;
	CHECK_EQ(hd_mutex_unlock(&known_lock), 0);
	hd_port_release(old);
}

/* The player ends, or its turn does. */
static void tidy(void *arg)
{
	struct player *me = arg;

	if (me->cargo != NULL)
		drop_cargo(me->cargo);
	hd_port_release(me->to);
	hd_port_release(me->carried);
	me->cargo = NULL;
	me->to = me->carried = NULL;
}

static void leave(void *arg)
{
	struct player *me = arg;

	tidy(me);
	for (int i = 0; i < 2; i++) /* heddle would not: the player has given up references to them by then */
		hd_port_release(me->own[i]);
}

static void send_some(struct player *me, hd_port *port)
{
	me->cargo = new_cargo();
	me->carried = throw(me, 3) == 0 ? some_port(me) : NULL;
	struct hd_sending what = { .tag = throw(me, 3),
				   .data = me->cargo,
				   .size = sizeof *me->cargo,
				   .move = true,
				   .drop = drop_cargo,
				   .carried = me->carried,
				   .urgent = throw(me, 4) == 0 };
	int err = hd_send_with(port, &what, soon(me));

	if (err == 0)
		me->cargo = NULL;
	CHECK(err == 0 || err == -ENOBUFS || err == -ESRCH || err == -ETIMEDOUT || err == -ECANCELED || err == -EALREADY);
}

/* If time is up, or it is called off, the cargo is dropped whether or not it has been sent. */
static void call_some(struct player *me, hd_port *port)
{
	struct hd_message m;
	struct cargo *cargo = new_cargo();
	int err = hd_call_move(port, throw(me, 3), cargo, sizeof *cargo, drop_cargo, throw(me, 4) == 0 ? NULL : &m, soon(me));

	(void)m; /* it is dropped at the caller's end */
	if (err == -EDEADLK || err == -ESRCH || err == -ENOBUFS || err == -EINVAL)
		drop_cargo(cargo);
	else
		CHECK(err == 0 || err == -EPIPE || err == -ETIMEDOUT || err == -ECANCELED);
}

/* What the caller holds is dropped, answered, or passed on. */
static void see_to(struct player *me, struct hd_message *m)
{
	if (m->letter == NULL)
		return;
	if (m->carried != NULL && throw(me, 3) != 0) {
		struct cargo *cargo = new_cargo();
		int err = hd_reply_move(m, 1, cargo, sizeof *cargo, drop_cargo);
		CHECK(err == 0 || err == -EINVAL || err == -ESRCH || err == -EALREADY); /* -EINVAL: it is no call */
		if (err != 0)
			drop_cargo(cargo);
	} else if (m->carried != NULL) {
		hd_port *to = some_port(me);
		if (to != NULL)
			ANY_ANSWER(hd_send_with(to, &(struct hd_sending){ .tag = 1, .carried = m->carried }, 0));
		hd_port_release(to);
	}
	if (throw(me, 8) == 0)
		hd_message_take(m);
	hd_message_drop(m);
}

static bool is_odd(const struct hd_message *m, void *arg)
{
	(void)arg;
	return m->tag % 2 == 1;
}

static void receive_some(struct player *me)
{
	struct hd_message *m = &me->held[throw(me, HELD)];
	hd_port *port = throw(me, 2) == 0 ? NULL : me->own[throw(me, 2)];
	int err;

	see_to(me, m);
	switch (throw(me, 4)) {
	case 0:
		err = hd_receive(port, m, soon(me));
		break;
	case 1:
		err = hd_receive_tag(port, throw(me, 3), m, soon(me));
		break;
	case 2:
		err = hd_receive_where(port, is_odd, NULL, m, soon(me));
		break;
	default: {
		struct hd_case cases[] = { hd_case_receive(me->own[0], m), hd_case_receive(me->own[1], m) };
		err = hd_select(cases, 2, soon(me));
		err = err > 0 ? 0 : err;
	}
	}
	if (err != 0)
		*m = (struct hd_message){ .letter = NULL };
	CHECK(err == 0 || err == -ETIMEDOUT || err == -ECANCELED);
}

/* Something to one of the players, perhaps itself. */
static void do_to_some(struct player *me)
{
	static const char *const names[] = { "red", "green", "blue" };
	hd_pid pid = __atomic_load_n(&players[throw(me, PLAYERS)], __ATOMIC_ACQUIRE);
	const char *name = names[throw(me, 3)];

	switch (throw(me, 12)) {
	case 0:
		ANY_ANSWER(pid != hd_self() && hd_link(pid) == 0);
		break;
	case 1:
		ANY_ANSWER(hd_unlink(pid));
		break;
	case 2:
	case 3:
		ANY_ANSWER(hd_watch(pid, me->own[throw(me, 2)]));
		break;
	case 4:
		ANY_ANSWER(hd_unwatch(pid, me->own[throw(me, 2)]));
		break;
	case 5:
		ANY_ANSWER(hd_register(name, me->own[throw(me, 2)]));
		break;
	case 6:
		ANY_ANSWER(hd_unregister(name));
		break;
	case 7:
		me->to = hd_whereis(name);
		if (me->to != NULL)
			send_some(me, me->to);
		break;
	case 8:
		ANY_ANSWER(hd_cancel(pid));
		break;
	case 9:
		if (pid != hd_self() && hd_suspend(pid, 0) == 0)
			hd_yield();
		ANY_ANSWER(hd_resume(pid));
		break;
	case 10:
		if (throw(me, 6) == 0)
			ANY_ANSWER(hd_kill(pid, 9));
		break;
	default:
		if (throw(me, 8) == 0)
			hd_fail(5);
	}
}

static void *play(void *arg)
{
	struct player me = { .dice = (unsigned)(uintptr_t)arg * 2654435761u };
	struct hd_cleanup cleanup;

	hd_set_cancel_state(HD_CANCEL_DISABLED);
	hd_cleanup_push(&cleanup, leave, &me);
	for (int i = 0; i < 2; i++) {
		const struct hd_port_options options = { .capacity = throw(&me, 4), .full = (enum hd_port_full) throw(&me, 4) };
		me.own[i] = made_port(&options);
		make_known(&me, me.own[i]);
	}
	hd_set_cancel_state(HD_CANCEL_ENABLED);
	for (int i = 0; i < (hd_is_simulated() ? 12 : 60); i++) {
		hd_cancel_clear();
		switch (throw(&me, 8)) {
		case 0:
		case 1:
			if ((me.to = some_port(&me)) != NULL)
				send_some(&me, me.to);
			break;
		case 2:
			if ((me.to = some_port(&me)) != NULL)
				call_some(&me, me.to);
			break;
		case 3:
		case 4:
		case 5:
			receive_some(&me);
			break;
		default:
			do_to_some(&me);
		}
		tidy(&me);
	}
	hd_cleanup_pop(&cleanup, true);
	return NULL;
}

/* What was stopped, by a player that was stopped itself, goes on. */
static void join_player(hd_pid pid)
{
	while (hd_join(pid, NULL, hd_after(HD_US(200))) == -ETIMEDOUT)
		for (int i = 0; i < PLAYERS; i++)
			ANY_ANSWER(hd_resume(players[i]));
}

static void play_some_rounds(int rounds)
{
	static unsigned seed;

	for (int round = 0; another_round(round, rounds); round++) {
		for (int i = 0; i < PLAYERS; i++) /* some are the children of none, and die alone */
			__atomic_store_n(&players[i],
					 born(hd_spawn_with(&(struct hd_spawn){ .priority = i % 3 == 0 ? 50 : 40 }, play,
							    (void *)(uintptr_t)++seed)),
					 __ATOMIC_RELEASE);
		for (int i = 0; i < PLAYERS; i++)
			join_player(players[i]);
	}
	for (int i = 0; i < PORTS; i++) {
		hd_port_release(known[i]);
		known[i] = NULL;
	}
	check_all_gone();
	CHECK_EQ(value_of(&made), value_of(&freed));
	for (const char *const *name = (const char *const[]){ "red", "green", "blue", NULL }; *name != NULL; name++)
		CHECK(hd_whereis(*name) == NULL);
}

HD_WORKERS_TEST(port_chaos_loses_nothing)
{
	(void)workers;
	play_some_rounds(many(200));
}
