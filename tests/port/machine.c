/* port/machine.c - machines: every turn of a machine is a process's, and between two turns it has no stack; nothing is lost there. */
#include <heddle/machine.h>
#include <stdlib.h>

#include "port/common.h"

/* ---- a machine that follows a script ---- */

struct actor;
typedef struct hd_interrupt (*act)(struct actor *me);

struct actor {
	act acts[16]; /* one for each turn; the last one for all that follow */
	int turns;
	long *dropped; /* counts */
	hd_port *port, *other;
	const char *name;
	long count, limit;
	int waited;
	uint64_t budget;
	struct hd_semaphore s;
};

static struct hd_interrupt act_on(void *self, uint64_t budget)
{
	struct actor *me = self;
	int turn = me->turns++;

	me->budget = budget;
	me->waited = hd_machine_waited();
	while (turn > 0 && me->acts[turn < 16 ? turn : 15] == NULL)
		turn--;
	return me->acts[turn](me);
}

static void drop_actor(void *self)
{
	struct actor *me = self;

	add(me->dropped, 1);
}

static const struct hd_machine_ops actor_ops = { .interpret = act_on, .drop = drop_actor };
static long dropped;

static hd_pid spawn_actor(struct actor *a, const struct hd_spawn *how)
{
	a->dropped = &dropped;
	return born(hd_spawn_machine(how, &actor_ops, a));
}

/* An actor with a port of its own, from its first moment on. The caller has a reference. */
static hd_pid spawn_with_port(struct actor *a, const struct hd_spawn *how)
{
	struct hd_spawn with = how != NULL ? *how : (struct hd_spawn){ .name = NULL };

	a->port = with.port = made_port(&(struct hd_port_options){ .unowned = true });
	return spawn_actor(a, &with);
}

static struct hd_interrupt ends(struct actor *me)
{
	return hd_want_end(me, 0);
}

static struct hd_interrupt fails(struct actor *me)
{
	(void)me;
	return hd_want_end(NULL, EPROTO);
}

static struct hd_interrupt goes_on(struct actor *me)
{
	(void)me;
	return hd_want_turn();
}

static struct hd_interrupt waits(struct actor *me)
{
	(void)me;
	return hd_want_message(NULL, HD_FOREVER);
}

static struct hd_interrupt counts(struct actor *me)
{
	if (me->name != NULL)
		trace("%s%ld ", me->name, me->count);
	return ++me->count < me->limit ? hd_want_turn() : hd_want_end(me, 0);
}

static struct hd_end end_of(hd_pid pid)
{
	struct hd_end end;

	CHECK_EQ(hd_join_end(pid, &end, HD_FOREVER), 0);
	return end;
}

/* ---- turns ---- */

HD_WORKERS_TEST(machine_runs_in_turns_and_ends_with_its_result)
{
	struct actor a = { .acts = { counts }, .limit = 1000 };

	(void)workers;
	dropped = 0;
	struct hd_end end = end_of(spawn_actor(&a, NULL));
	CHECK_EQ(end.kind, HD_END_RETURNED);
	CHECK(end.result == &a);
	CHECK_EQ(a.turns, 1000);
	CHECK_EQ(a.budget, 1000);
	CHECK_EQ(dropped, 1);
}

HD_PROCESS_TEST(machine_has_the_budget_that_it_asks_for)
{
	struct actor a = { .acts = { ends }, .dropped = &dropped };
	const struct hd_machine_ops ops = { .interpret = act_on, .budget = 7 };

	CHECK_EQ(end_of(born(hd_spawn_machine(NULL, &ops, &a))).kind, HD_END_RETURNED);
	CHECK_EQ(a.budget, 7);
	CHECK_EQ(dropped, 0);
}

static void *yields_twice(void *name)
{
	for (int i = 0; i < 3; i++) {
		trace("%s%d ", (const char *)name, i);
		hd_yield();
	}
	return NULL;
}

HD_PROCESS_TEST(machine_and_process_share_their_level_turn_by_turn)
{
	struct actor a = { .acts = { counts }, .name = "a", .limit = 3 }, b = { .acts = { counts }, .name = "b", .limit = 3 };
	hd_pid pids[] = { spawn_actor(&a, NULL), born(hd_spawn(yields_twice, (void *)"p")), spawn_actor(&b, NULL) };

	hd_yield();
	join_all(pids, 3);
	CHECK_STR(trace_text(), "a0 p0 b0 a1 p1 b1 a2 p2 b2 ");
}

HD_PROCESS_TEST(machine_of_a_lower_priority_runs_when_none_else_can)
{
	struct actor low = { .acts = { counts }, .name = "low", .limit = 2 },
		     high = { .acts = { counts }, .name = "high", .limit = 2 };
	hd_pid pids[] = { spawn_actor(&low, &(struct hd_spawn){ .priority = 20 }),
			  spawn_actor(&high, &(struct hd_spawn){ .priority = 60 }) };

	trace("main ");
	join_all(pids, 2);
	CHECK_STR(trace_text(), "high0 high1 main low0 low1 ");
}

static struct hd_interrupt is_itself(struct actor *me)
{
	struct hd_process_info info = info_of(hd_self());

	CHECK_EQ(info.state, HD_RUNNING);
	CHECK_STR(info.name, "engine");
	CHECK(info.stack_size > 0);
	CHECK_EQ(me->turns, 1);
	return hd_want_turn();
}

HD_WORKERS_TEST(machine_is_a_process_in_its_turns_and_has_no_stack_between_them)
{
	struct actor a = { .acts = { is_itself, waits, ends } };

	(void)workers;
	hd_pid pid = spawn_with_port(&a, &(struct hd_spawn){ .name = "engine", .priority = 50 });
	while (state_of(pid) != HD_WAITING)
		hd_yield();
	struct hd_process_info info = info_of(pid);
	CHECK_EQ(info.why, HD_WAIT_RECEIVE);
	CHECK_EQ(info.stack_size, 0);
	CHECK_EQ(info.priority, 50);
	send_tag(a.port, 1);
	CHECK_EQ(end_of(pid).kind, HD_END_RETURNED);
	hd_port_release(a.port);
	check_all_gone();
}

/* ---- waiting for messages ---- */

static struct hd_interrupt takes_all(struct actor *me)
{
	struct hd_message m;
	int err;

	while ((err = hd_receive(me->port, &m, 0)) == 0) {
		CHECK_EQ(m.tag, me->count);
		me->count++;
		hd_message_drop(&m);
	}
	CHECK_EQ(err, -ETIMEDOUT);
	return me->count < me->limit ? hd_want_message(me->port, HD_FOREVER) : hd_want_end(me, 0);
}

HD_WORKERS_TEST(machine_misses_no_message)
{
	struct actor a = { .acts = { takes_all }, .limit = many(20000) };

	(void)workers;
	hd_pid pid = spawn_with_port(&a, NULL);
	for (long i = 0; i < a.limit; i++) {
		send_tag(a.port, i);
		if (i % 7 == 0)
			hd_yield();
	}
	CHECK_EQ(end_of(pid).kind, HD_END_RETURNED);
	CHECK_EQ(a.count, a.limit);
	hd_port_release(a.port);
	check_all_gone();
}

static void sends_all(void *arg)
{
	struct actor *a = arg;

	for (long i = 0; i < a->limit; i++)
		send_tag(a->port, i);
}

HD_WORKERS_TEST(machine_hears_a_plain_thread)
{
	struct actor a = { .acts = { takes_all }, .limit = many(2000) };

	(void)workers;
	hd_pid pid = spawn_with_port(&a, NULL);
	on_plain_thread(sends_all, &a);
	CHECK_EQ(end_of(pid).kind, HD_END_RETURNED);
	hd_port_release(a.port);
	check_all_gone();
}

static struct hd_interrupt bats(struct actor *me)
{
	struct hd_message m;

	while (hd_receive(NULL, &m, 0) == 0) {
		hd_message_drop(&m);
		me->count++;
		if (me->count > me->limit)
			return hd_want_end(me, 0);
		int err = hd_send(me->other, 0, NULL, 0, 0);
		CHECK(err == 0 || err == -ESRCH);
		if (me->count % 3 == 0)
			return hd_want_switch(me->other);
	}
	return hd_want_message(NULL, HD_FOREVER);
}

HD_WORKERS_TEST(machines_that_talk_lose_nothing)
{
	enum { PAIRS = 4 };
	struct actor a[2 * PAIRS];
	hd_pid pids[2 * PAIRS];

	(void)workers;
	for (int i = 0; i < 2 * PAIRS; i++) {
		a[i] = (struct actor){ .acts = { bats }, .limit = many(10000) };
		pids[i] = spawn_with_port(&a[i], &(struct hd_spawn){ .suspended = true });
	}
	for (int i = 0; i < 2 * PAIRS; i++) {
		a[i].other = a[i ^ 1].port;
		CHECK_EQ(hd_resume(pids[i]), 0);
	}
	for (int i = 0; i < 2 * PAIRS; i += 2)
		send_tag(a[i].port, 0);
	for (int i = 0; i < 2 * PAIRS; i += 2) { /* the one that hears one message more than its limit ends first */
		while (state_of(pids[i]) != HD_ENDED && state_of(pids[i + 1]) != HD_ENDED)
			hd_sleep(HD_US(50));
		int last = state_of(pids[i]) == HD_ENDED;
		CHECK_EQ(hd_terminate(pids[i + last], HD_FOREVER), 0);
		CHECK(a[i].count + a[i + 1].count >= 2 * a[i].limit);
	}
	join_all(pids, 2 * PAIRS);
	for (int i = 0; i < 2 * PAIRS; i++)
		hd_port_release(a[i].port);
	check_all_gone();
}

static struct hd_interrupt naps(struct actor *me)
{
	(void)me;
	return hd_want_message(NULL, hd_after(HD_MS(1)));
}

static struct hd_interrupt was_timed_out(struct actor *me)
{
	CHECK_EQ(me->waited, -ETIMEDOUT);
	return hd_want_end(me, 0);
}

HD_WORKERS_TEST(machine_waits_for_time_with_and_without_a_port)
{
	struct actor a = { .acts = { naps, was_timed_out } }, b = { .acts = { naps, was_timed_out } };

	(void)workers;
	hd_pid pids[] = { spawn_actor(&a, NULL), spawn_with_port(&b, NULL) };
	join_all(pids, 2);
	CHECK_EQ(a.turns + b.turns, 4);
	hd_port_release(b.port);
	check_all_gone();
}

static struct hd_interrupt tries(struct actor *me)
{
	(void)me;
	return hd_want_message(NULL, 0);
}

HD_PROCESS_TEST(machine_whose_time_is_past_tries_once)
{
	struct actor a = { .acts = { tries, was_timed_out } };

	CHECK_EQ(end_of(spawn_actor(&a, NULL)).kind, HD_END_RETURNED);
	CHECK_EQ(a.turns, 2);
}

static struct hd_interrupt wants_nine(struct actor *me)
{
	struct hd_message m;
	int err = hd_receive_tag(me->port, 9, &m, 0);

	if (err == -ETIMEDOUT)
		return hd_want_message(me->count % 2 == 0 ? me->port : NULL, HD_FOREVER);
	CHECK_EQ(err, 0);
	hd_message_drop(&m);
	return hd_want_end(me, 0);
}

/* A message that it has looked at and left is no reason for another turn. */
HD_PROCESS_TEST(machine_waits_for_what_it_has_not_looked_at)
{
	for (long i = 0; i < 2; i++) {
		struct actor a = { .acts = { wants_nine }, .count = i };
		hd_pid pid = spawn_with_port(&a, NULL);
		for (int k = 0; k < 5; k++) {
			send_tag(a.port, k);
			for (int n = 0; n < 3; n++)
				hd_yield();
			CHECK_EQ(a.turns, k + 1);
			CHECK_EQ(state_of(pid), HD_WAITING);
		}
		send_tag(a.port, 9);
		CHECK_EQ(end_of(pid).kind, HD_END_RETURNED);
		CHECK_EQ(a.turns, 6);
		hd_port_release(a.port);
	}
	check_all_gone();
}

static struct hd_interrupt has_two_ports(struct actor *me)
{
	me->other = hd_port_retain(made_port(NULL));
	return hd_want_message(me->other, HD_FOREVER);
}

HD_PROCESS_TEST(machine_that_waits_at_one_port_is_not_woken_by_another)
{
	struct actor a = { .acts = { has_two_ports, ends } };
	hd_pid pid = spawn_with_port(&a, NULL);

	hd_yield();
	send_tag(a.port, 1);
	hd_yield();
	CHECK_EQ(a.turns, 1);
	send_tag(a.other, 1);
	CHECK_EQ(end_of(pid).kind, HD_END_RETURNED);
	CHECK_EQ(a.turns, 2);
	hd_port_release(a.port);
	hd_port_release(a.other);
	check_all_gone();
}

/* ---- what a turn may do ---- */

static struct hd_interrupt waits_inside(struct actor *me)
{
	CHECK_EQ(hd_semaphore_wait(&me->s, HD_FOREVER), 0);
	return hd_want_turn();
}

HD_WORKERS_TEST(machine_may_wait_inside_a_turn)
{
	struct actor a = { .acts = { waits_inside, waits, ends } };

	(void)workers;
	hd_pid pid = spawn_with_port(&a, NULL);
	while (state_of(pid) != HD_WAITING)
		hd_yield();
	CHECK_EQ(info_of(pid).why, HD_WAIT_SEMAPHORE);
	CHECK(info_of(pid).stack_size > 0);
	send_tag(a.port, 1); /* does not end this wait */
	hd_yield();
	CHECK_EQ(info_of(pid).why, HD_WAIT_SEMAPHORE);
	hd_semaphore_signal(&a.s);
	CHECK_EQ(end_of(pid).kind, HD_END_RETURNED);
	hd_port_release(a.port);
	check_all_gone();
}

static struct hd_local local = HD_LOCAL(NULL);

static struct hd_interrupt sets_local(struct actor *me)
{
	CHECK(hd_local_get(&local) == NULL);
	CHECK_EQ(hd_local_set(&local, me), 0);
	return hd_want_turn();
}

static struct hd_interrupt has_local(struct actor *me)
{
	CHECK(hd_local_get(&local) == me);
	return me->turns < 10 ? hd_want_turn() : me->turns == 10 ? hd_want_message(NULL, HD_FOREVER) : hd_want_end(me, 0);
}

HD_WORKERS_TEST(machine_has_locals)
{
	struct actor a = { .acts = { sets_local, has_local } }, b = { .acts = { sets_local, has_local } };

	(void)workers;
	hd_pid pids[] = { spawn_with_port(&a, NULL), spawn_with_port(&b, NULL) };
	send_tag(a.port, 1);
	hd_yield();
	send_tag(b.port, 1);
	join_all(pids, 2);
	hd_port_release(a.port);
	hd_port_release(b.port);
}

static struct hd_interrupt is_deaf(struct actor *me)
{
	CHECK_EQ(hd_set_cancel_state(HD_CANCEL_DISABLED), HD_CANCEL_ENABLED);
	raise_flag((int *)&me->limit);
	return hd_want_turn();
}

static struct hd_interrupt stays_deaf(struct actor *me)
{
	if (me->turns > 10 && is_raised((int *)&me->count))
		return hd_want_end(me, 0);
	return me->turns % 3 == 0 ? hd_want_message(NULL, hd_after(HD_US(10))) : hd_want_turn();
}

HD_WORKERS_TEST(machine_that_does_not_hear_ends_in_its_own_time)
{
	struct actor a = { .acts = { is_deaf, stays_deaf } };

	(void)workers;
	hd_pid pid = spawn_actor(&a, NULL);
	while (!is_raised((int *)&a.limit))
		hd_yield();
	CHECK_EQ(hd_kill(pid, 1), 0);
	for (int i = 0; i < 5; i++)
		hd_yield();
	raise_flag((int *)&a.count);
	CHECK_EQ(end_of(pid).kind, HD_END_RETURNED);
}

/* ---- requests ---- */

static struct hd_interrupt was_cancelled(struct actor *me)
{
	CHECK_EQ(me->waited, -ECANCELED);
	CHECK_EQ(hd_test_cancel(), -ECANCELED);
	CHECK_EQ(hd_cancel_clear(), 1);
	return hd_want_message(NULL, HD_FOREVER);
}

static struct hd_interrupt has_heard(struct actor *me)
{
	CHECK_EQ(me->waited, 0);
	CHECK_EQ(received_tag(NULL), 5);
	return hd_want_end(me, 0);
}

HD_WORKERS_TEST(machine_that_is_cancelled_goes_on_and_may_wait_again)
{
	struct actor a = { .acts = { waits, was_cancelled, has_heard } };

	(void)workers;
	hd_pid pid = spawn_with_port(&a, NULL);
	while (state_of(pid) != HD_WAITING)
		hd_yield();
	CHECK_EQ(hd_cancel(pid), 0);
	while (__atomic_load_n(&a.turns, __ATOMIC_ACQUIRE) < 2 || state_of(pid) != HD_WAITING)
		hd_yield();
	send_tag(a.port, 5);
	CHECK_EQ(end_of(pid).kind, HD_END_RETURNED);
	hd_port_release(a.port);
	check_all_gone();
}

HD_WORKERS_TEST(machine_that_is_terminated_has_no_more_turns_and_is_dropped)
{
	struct actor a = { .acts = { waits } }, b = { .acts = { goes_on } }, c = { .acts = { ends } },
		     d = { .acts = { waits } };

	(void)workers;
	dropped = 0;
	hd_pid pids[] = { spawn_with_port(&a, NULL), spawn_actor(&b, NULL),
			  spawn_actor(&c, &(struct hd_spawn){ .suspended = true }), spawn_actor(&d, NULL) };
	while (state_of(pids[0]) != HD_WAITING || state_of(pids[3]) != HD_WAITING)
		hd_yield();
	for (int i = 0; i < 4; i++)
		CHECK_EQ(hd_terminate(pids[i], HD_FOREVER), 0);
	CHECK_EQ(dropped, 4);
	CHECK_EQ(a.turns, 1);
	CHECK_EQ(c.turns, 0);
	for (int i = 0; i < 4; i++)
		CHECK_EQ(end_of(pids[i]).kind, HD_END_KILLED);
	CHECK_EQ(hd_send(a.port, 0, NULL, 0, 0), -ESRCH);
	hd_port_release(a.port);
	check_all_gone();
}

HD_WORKERS_TEST(machine_that_is_suspended_keeps_its_message)
{
	struct actor a = { .acts = { waits, has_heard } };

	(void)workers;
	hd_pid pid = spawn_with_port(&a, NULL);
	while (state_of(pid) != HD_WAITING)
		hd_yield();
	CHECK_EQ(hd_suspend(pid, HD_FOREVER), 0);
	send_tag(a.port, 5);
	for (int i = 0; i < 5; i++)
		hd_yield();
	CHECK_EQ(state_of(pid), HD_SUSPENDED);
	CHECK_EQ(a.turns, 1);
	CHECK_EQ(hd_resume(pid), 0);
	CHECK_EQ(end_of(pid).kind, HD_END_RETURNED);
	hd_port_release(a.port);
	check_all_gone();
}

HD_WORKERS_TEST(machine_that_turns_can_be_suspended_and_moved_to_another_level)
{
	struct actor a = { .acts = { goes_on } };

	(void)workers;
	hd_pid pid = spawn_actor(&a, NULL);
	hd_yield();
	CHECK_EQ(hd_suspend(pid, HD_FOREVER), 0);
	int turns = a.turns;
	for (int i = 0; i < 5; i++)
		hd_yield();
	CHECK_EQ(a.turns, turns);
	CHECK_EQ(hd_set_priority(pid, 30), 0);
	CHECK_EQ(hd_resume(pid), 0);
	CHECK_EQ(info_of(pid).priority, 30);
	CHECK_EQ(hd_kill(pid, 77), 0);
	CHECK_EQ(end_of(pid).err, 77);
}

/* ---- ends ---- */

static struct hd_interrupt exits(struct actor *me)
{
	hd_exit(me);
	return hd_want_turn();
}

static struct hd_interrupt wants_of_another(struct actor *me)
{
	return hd_want_message(me->other, HD_FOREVER);
}

static struct hd_interrupt wants_for_a_duration(struct actor *me)
{
	(void)me;
	return hd_want_message(NULL, HD_SEC(1));
}

static struct hd_interrupt wants_the_unknown(struct actor *me)
{
	(void)me;
	return (struct hd_interrupt){ .want = (enum hd_want)99 };
}

static struct hd_interrupt wants_to_switch_nowhere(struct actor *me)
{
	(void)me;
	return hd_want_switch(NULL);
}

HD_PROCESS_TEST(machine_that_is_misused_fails_with_an_error)
{
	hd_port *mine = made_port(NULL);
	const struct {
		act act;
		enum hd_end_kind kind;
		int err;
	} rows[] = { { ends, HD_END_RETURNED, 0 },
		     { fails, HD_END_FAILED, -EPROTO },
		     { exits, HD_END_RETURNED, 0 },
		     { wants_of_another, HD_END_FAILED, -EPERM },
		     { wants_for_a_duration, HD_END_FAILED, -EINVAL },
		     { wants_the_unknown, HD_END_FAILED, -EINVAL },
		     { wants_to_switch_nowhere, HD_END_FAILED, -EINVAL } };
	int n = sizeof rows / sizeof rows[0];

	for (int i = 0; i < n; i++) {
		struct actor a = { .acts = { rows[i].act }, .other = mine };
		struct hd_end end = end_of(spawn_actor(&a, NULL));
		CHECK_EQ(end.kind, rows[i].kind);
		CHECK_EQ(end.err, rows[i].err);
	}
	CHECK_EQ(dropped, n);
	CHECK_EQ(hd_spawn_machine(NULL, NULL, NULL), -EINVAL);
	CHECK_EQ(hd_spawn_machine(NULL, &(struct hd_machine_ops){ .budget = 1 }, NULL), -EINVAL);
	CHECK_EQ(hd_spawn_machine(&(struct hd_spawn){ .priority = 5 }, &actor_ops, NULL), -EINVAL);
	CHECK_EQ(hd_machine_waited(), 0);
	hd_port_release(mine);
}

static struct hd_interrupt forgets_cleanup(struct actor *me)
{
	static struct hd_cleanup cleanup;

	CHECK_EQ(hd_cleanup_push(&cleanup, drop_actor, me), 0);
	return hd_want_turn();
}

static void *spawns_forgetful(void *arg)
{
	struct actor a = { .acts = { forgets_cleanup }, .dropped = &dropped };

	(void)arg;
	ANY_ANSWER(hd_join(born(hd_spawn_machine(NULL, &actor_ops, &a)), NULL, HD_FOREVER));
	return NULL;
}

HD_TEST_DIES(machine_whose_turn_leaves_a_cleanup_is_a_mistake, "a machine's turn ended without hd_cleanup_pop")
{
	ANY_ANSWER(hd_run(NULL, spawns_forgetful, NULL));
}

/* Whatever they do when the runtime ends: each is dropped once. */
static void *leaves_machines(void *arg)
{
	static struct actor a[6];
	static const act acts[6] = { waits, goes_on, naps, waits_inside, ends, waits };

	(void)arg;
	for (int i = 0; i < 6; i++) {
		a[i] = (struct actor){ .acts = { acts[i] } };
		spawn_actor(&a[i], &(struct hd_spawn){ .daemon = true, .detached = true, .suspended = i == 5 });
	}
	for (int i = 0; i < 20; i++)
		hd_yield();
	return NULL;
}

HD_TEST(machine_is_dropped_when_the_runtime_ends)
{
	const int counts[] = { 1, 2, 8 };

	for (int i = 0; i < 3; i++) {
		dropped = 0;
		CHECK_EQ(run_with_workers(counts[i], leaves_machines, NULL), 0);
		CHECK_EQ(dropped, 6);
	}
}

/* ---- links, groups, supervisors, calls ---- */

HD_WORKERS_TEST(machine_is_watched_linked_and_grouped)
{
	struct actor a = { .acts = { waits, fails } }, b = { .acts = { waits } }, c = { .acts = { ends } };
	hd_port *notices = made_port(NULL);
	struct hd_message m;
	struct hd_group g = { 0 };

	(void)workers;
	hd_pid first = spawn_with_port(&a, &(struct hd_spawn){ .watch = notices, .detached = true });
	hd_pid grouped = spawn_actor(&c, &(struct hd_spawn){ .group = &g });
	CHECK(grouped > 0);
	CHECK_EQ(hd_group_wait(&g, HD_FOREVER), 0);
	send_tag(a.port, 1);
	CHECK_EQ(hd_receive(notices, &m, HD_FOREVER), 0);
	CHECK_EQ(m.sender, first);
	CHECK_EQ(((struct hd_ended *)m.data)->end.err, -EPROTO);
	hd_message_drop(&m);
	hd_pid second = spawn_actor(&b, &(struct hd_spawn){ .watch = notices, .detached = true });
	CHECK_EQ(hd_kill(second, 3), 0);
	CHECK_EQ(hd_receive(notices, &m, HD_FOREVER), 0);
	CHECK_EQ(((struct hd_ended *)m.data)->end.err, 3);
	hd_message_drop(&m);
	hd_port_release(a.port);
	hd_port_release(notices);
	check_all_gone();
}

static struct hd_interrupt serves(struct actor *me)
{
	struct hd_message m;

	while (hd_receive(NULL, &m, 0) == 0) {
		me->count++;
		if (m.carried != NULL)
			CHECK_EQ(hd_reply(&m, m.tag * 2, NULL, 0), 0);
		hd_message_drop(&m);
	}
	return hd_want_message(NULL, HD_FOREVER);
}

HD_WORKERS_TEST(machine_answers_calls)
{
	struct actor a = { .acts = { serves } };
	struct hd_message m;

	(void)workers;
	hd_pid pid = spawn_with_port(&a, NULL);
	for (int i = 0; i < many(3000); i++) {
		CHECK_EQ(hd_call(a.port, i, NULL, 0, &m, HD_FOREVER), 0);
		CHECK_EQ(m.tag, 2 * i);
		hd_message_drop(&m);
	}
	CHECK_EQ(hd_terminate(pid, HD_FOREVER), 0);
	CHECK_EQ(end_of(pid).kind, HD_END_KILLED);
	hd_port_release(a.port);
	check_all_gone();
}

HD_PROCESS_TEST(machine_that_is_called_runs_at_once)
{
	struct actor a = { .acts = { serves } };
	struct hd_message m;
	hd_pid pid = spawn_with_port(&a, NULL);

	hd_yield();
	uint64_t before = stats_now().handoffs;
	CHECK_EQ(hd_call(a.port, 1, NULL, 0, &m, HD_FOREVER), 0);
	CHECK_EQ(stats_now().handoffs - before, 2);
	hd_message_drop(&m);
	CHECK_EQ(hd_terminate(pid, HD_FOREVER), 0);
	CHECK_EQ(end_of(pid).kind, HD_END_KILLED);
	hd_port_release(a.port);
}

static struct hd_interrupt sends_and_switches(struct actor *me)
{
	trace("a%ld ", me->count);
	if (me->count++ == 2)
		return hd_want_end(me, 0);
	send_tag(me->other, 0);
	return hd_want_switch(me->other);
}

static struct hd_interrupt says_b(struct actor *me)
{
	trace("b ");
	hd_message_drop(&(struct hd_message){ .letter = NULL });
	struct hd_message m;
	while (hd_receive(NULL, &m, 0) == 0)
		hd_message_drop(&m);
	(void)me;
	return hd_want_message(NULL, HD_FOREVER);
}

HD_PROCESS_TEST(machine_that_switches_lets_the_owner_of_the_port_run_first)
{
	struct actor a = { .acts = { sends_and_switches } }, b = { .acts = { says_b } };
	hd_pid second = spawn_with_port(&b, NULL);

	hd_yield();
	a.other = b.port;
	hd_pid pids[] = { spawn_actor(&a, NULL), born(hd_spawn(yields_twice, (void *)"p")) };
	join_all(pids, 2);
	CHECK_STR(trace_text(), "b a0 b p0 a1 b p1 a2 p2 ");
	CHECK_EQ(hd_terminate(second, HD_FOREVER), 0);
	CHECK_EQ(end_of(second).kind, HD_END_KILLED);
	hd_port_release(b.port);
}

static long made, crashes;

static struct hd_interrupt crashes_twice(struct actor *me)
{
	(void)me;
	return add(&crashes, 1) <= 2 ? hd_want_end(NULL, EPROTO) : hd_want_end(NULL, 0);
}

static void *make_crasher(void *arg)
{
	struct actor *a = calloc(1, sizeof *a);

	CHECK(a != NULL);
	a->acts[0] = crashes_twice;
	a->dropped = arg;
	add(&made, 1);
	return a;
}

static void free_crasher(void *self)
{
	drop_actor(self);
	free(self);
}

static const struct hd_machine_ops crasher_ops = { .interpret = act_on, .drop = free_crasher };

HD_WORKERS_TEST(machine_is_supervised)
{
	static const struct hd_supervised children[] = {
		{ .name = "crasher",
		  .entry = make_crasher,
		  .arg = &dropped,
		  .restart = HD_RESTART_ON_FAILURE,
		  .how = { .machine = &crasher_ops } },
	};
	const struct hd_supervisor plan = { .children = children, .count = 1 };

	(void)workers;
	dropped = made = crashes = 0;
	hd_pid pid = born(hd_spawn(hd_supervisor_entry, (void *)&plan));
	while (value_of(&crashes) < 3)
		hd_sleep(HD_US(100));
	CHECK_EQ(hd_join(pid, NULL, HD_FOREVER), 0); /* its last child has returned */
	CHECK_EQ(value_of(&made), 3);
	CHECK_EQ(value_of(&dropped), 3);
	check_all_gone();
}

/* ---- races ---- */

struct contest {
	struct actor actor;
	hd_pid pid;
	struct hd_semaphore go;
	hd_time until;
	long heard, timed_out, cancelled;
};

static struct hd_interrupt contests(struct actor *me)
{
	struct contest *c = (struct contest *)me;
	struct hd_message m;

	if (me->turns == 1) {
		hd_semaphore_signal(&c->go);
		hd_semaphore_signal(&c->go);
		hd_semaphore_signal(&c->go);
		return hd_want_message(NULL, c->until);
	}
	if (me->waited == -ETIMEDOUT)
		c->timed_out++;
	if (me->waited == -ECANCELED)
		c->cancelled++;
	hd_cancel_clear();
	if (hd_receive(NULL, &m, 0) == 0) {
		CHECK_EQ(m.tag, 42);
		hd_message_drop(&m);
		c->heard++;
	}
	return c->heard > 0 ? hd_want_end(me, 0) : hd_want_message(NULL, HD_FOREVER);
}

static void *sends_once(void *arg)
{
	struct contest *c = arg;

	CHECK_EQ(hd_semaphore_wait(&c->go, HD_FOREVER), 0);
	send_tag(c->actor.port, 42);
	return NULL;
}

static void *cancels_once(void *arg)
{
	struct contest *c = arg;

	CHECK_EQ(hd_semaphore_wait(&c->go, HD_FOREVER), 0);
	ANY_ANSWER(hd_cancel(c->pid));
	return NULL;
}

static void *suspends_once(void *arg)
{
	struct contest *c = arg;

	CHECK_EQ(hd_semaphore_wait(&c->go, HD_FOREVER), 0);
	ANY_ANSWER(hd_suspend(c->pid, HD_FOREVER));
	ANY_ANSWER(hd_resume(c->pid));
	return NULL;
}

/* A message, a deadline, a cancel and a suspension compete for one machine that begins to wait: the message is heard, once. */
HD_WORKERS_TEST(machine_hears_its_message_whatever_else_ends_its_wait)
{
	(void)workers;
	for (int round = 0; another_round(round, many(1000)); round++) {
		struct contest c = { .actor = { .acts = { contests } },
				     .until = round % 3 == 0 ? hd_after(HD_US(round % 50)) : HD_FOREVER };
		c.pid = spawn_with_port(&c.actor, &(struct hd_spawn){ .suspended = true });
		hd_pid pids[] = { born(hd_spawn(sends_once, &c)), born(hd_spawn(cancels_once, &c)),
				  born(hd_spawn(suspends_once, &c)) };
		ANY_ANSWER(hd_resume(c.pid));
		join_all(pids, 3);
		CHECK_EQ(end_of(c.pid).kind, HD_END_RETURNED);
		CHECK_EQ(c.heard, 1);
		CHECK_EQ(hd_send(c.actor.port, 0, NULL, 0, 0), -ESRCH);
		hd_port_release(c.actor.port);
	}
	check_all_gone();
}

static void *kills_once(void *arg)
{
	struct contest *c = arg;

	CHECK_EQ(hd_semaphore_wait(&c->go, HD_FOREVER), 0);
	ANY_ANSWER(hd_terminate(c->pid, HD_FOREVER));
	return NULL;
}

/* Termination, a message and a deadline: it is dropped once, and no message is left. */
HD_WORKERS_TEST(machine_is_dropped_once_whatever_ends_it)
{
	(void)workers;
	for (int round = 0; another_round(round, many(1000)); round++) {
		struct contest c = { .actor = { .acts = { contests } },
				     .until = round % 3 == 0 ? hd_after(HD_US(round % 50)) : HD_FOREVER };
		dropped = 0;
		c.pid = spawn_with_port(&c.actor, &(struct hd_spawn){ .suspended = true });
		hd_pid pids[] = { born(hd_spawn(kills_once, &c)), born(hd_spawn(cancels_once, &c)), 0 };
		ANY_ANSWER(hd_resume(c.pid));
		int err = hd_send(c.actor.port, 42, NULL, 0, 0);
		CHECK(err == 0 || err == -ESRCH);
		join_all(pids, 2);
		end_of(c.pid);
		CHECK_EQ(value_of(&dropped), 1);
		CHECK_EQ(hd_send(c.actor.port, 0, NULL, 0, 0), -ESRCH);
		hd_port_release(c.actor.port);
	}
	check_all_gone();
}

/* ---- many ---- */

HD_WORKERS_TEST(machines_that_wait_need_no_stacks)
{
	int n = many(20000);
	struct actor *a = calloc((size_t)n, sizeof *a);
	hd_pid *pids = calloc((size_t)n, sizeof *pids);

	(void)workers;
	CHECK(a != NULL && pids != NULL);
	for (int i = 0; i < n; i++) {
		a[i] = (struct actor){ .acts = { waits, ends } };
		pids[i] = spawn_with_port(&a[i], NULL);
	}
	for (int i = 0; i < n; i++)
		while (state_of(pids[i]) != HD_WAITING)
			hd_yield();
	CHECK(stats_now().live_stacks <= 2u + WORKERS_MAX);
	for (int i = 0; i < n; i++)
		send_tag(a[i].port, 0);
	join_all(pids, n);
	for (int i = 0; i < n; i++)
		hd_port_release(a[i].port);
	free(pids);
	free(a);
	check_all_gone();
}
