/* port/link.c - what links, watches and names promise: the end of a process is told once, in order, after that of its children. */
#include <stdio.h>

#include "port/common.h"

enum cause { RETURNS, FAILS, KILLED };

static struct hd_semaphore go;

/* Ends by this cause, once it has been told to go; one to be killed waits for that. */
static void *ends_by(void *cause)
{
	CHECK_EQ(hd_semaphore_wait(&go, HD_FOREVER), 0);
	if ((long)cause == FAILS)
		hd_fail(5);
	return cause;
}

static void make_end(hd_pid pid, enum cause cause)
{
	if (cause == KILLED)
		CHECK_EQ(hd_kill(pid, 77), 0);
	else
		hd_semaphore_signal(&go);
}

static void check_notice(const struct hd_message *m, hd_pid pid, enum cause cause)
{
	const struct hd_ended *ended = m->data;

	CHECK_EQ(m->tag, HD_TAG_ENDED);
	CHECK_EQ(m->sender, pid);
	CHECK_EQ(m->size, sizeof *ended);
	CHECK_EQ(ended->pid, pid);
	CHECK_EQ(ended->end.kind, cause == RETURNS ? HD_END_RETURNED : cause == FAILS ? HD_END_FAILED : HD_END_KILLED);
	CHECK_EQ(ended->end.err, cause == RETURNS ? 0 : cause == FAILS ? -5 : 77);
}

static void expect_notice(hd_port *port, hd_pid pid, enum cause cause)
{
	struct hd_message m;

	CHECK_EQ(hd_receive(port, &m, HD_FOREVER), 0);
	check_notice(&m, pid, cause);
	hd_message_drop(&m);
}

static void expect_silence(hd_port *port)
{
	struct hd_message m;

	CHECK_EQ(hd_receive(port, &m, 0), -ETIMEDOUT);
}

/* ---- watches ---- */

static void watch_each_cause(int workers)
{
	(void)workers;
	for (long cause = RETURNS; cause <= KILLED; cause++) {
		hd_port *port = made_port(&(struct hd_port_options){ .capacity = 1 });
		send_tag(port, 3); /* it is full: a notice arrives nevertheless */
		hd_pid pid = born(hd_spawn(ends_by, (void *)cause));
		for (int i = 0; i < 4; i++)
			CHECK_EQ(hd_watch(pid, port), 0);
		for (int i = 0; i < 2; i++)
			CHECK_EQ(hd_unwatch(pid, port), 0);
		make_end(pid, (enum cause)cause);
		CHECK_EQ(received_tag(port), 3);
		expect_notice(port, pid, (enum cause)cause);
		expect_notice(port, pid, (enum cause)cause);
		expect_silence(port);
		CHECK_EQ(hd_unwatch(pid, port), -ENOENT);
		CHECK_EQ(hd_watch(pid, port), 0); /* a zombie: at once */
		expect_notice(port, pid, (enum cause)cause);
		CHECK_EQ(hd_join(pid, NULL, HD_FOREVER), 0);
		CHECK_EQ(hd_watch(pid, port), 0); /* forgotten */
		struct hd_message m;
		CHECK_EQ(hd_receive(port, &m, 0), 0);
		CHECK_EQ(((struct hd_ended *)m.data)->end.kind, 0);
		CHECK_EQ(((struct hd_ended *)m.data)->end.err, -ESRCH);
		hd_message_drop(&m);
		hd_port_release(port);
		check_all_gone();
	}
}

HD_WORKERS_TEST(watch_tells_each_end_once_for_each_watch)
{
	watch_each_cause(workers);
}

static void *watches_and_ends(void *pid)
{
	hd_port *port = made_port(NULL);

	for (int i = 0; i < 100; i++)
		CHECK_EQ(hd_watch(*(hd_pid *)pid, port), 0);
	return NULL;
}

/* What a watcher leaves behind goes with it. */
HD_PROCESS_TEST(watch_ends_with_its_watcher)
{
	hd_pid pid = born(hd_spawn(ends_by, NULL));

	for (int i = 0; i < 10; i++)
		CHECK_EQ(hd_join(born(hd_spawn(watches_and_ends, &pid)), NULL, HD_FOREVER), 0);
	CHECK_EQ(stats_now().live_messages, 0);
	CHECK_EQ(stats_now().live_ports, 0);
	make_end(pid, RETURNS);
	CHECK_EQ(hd_join(pid, NULL, HD_FOREVER), 0);
}

static hd_port *to;

static void *sends_and_ends(void *n)
{
	for (long i = 0; i < (long)n; i++)
		send_tag(to, i);
	hd_fail(9);
	return NULL;
}

/* The notice comes after what its process has sent. */
HD_WORKERS_TEST(watch_notice_is_in_order_with_messages)
{
	(void)workers;
	to = made_port(NULL);
	for (int round = 0; another_round(round, many(100)); round++) {
		hd_pid pid =
			born(hd_spawn_with(&(struct hd_spawn){ .watch = to, .detached = true }, sends_and_ends, (void *)5L));
		for (int i = 0; i < 5; i++)
			CHECK_EQ(received_tag(to), i);
		struct hd_message m;
		CHECK_EQ(hd_receive(to, &m, HD_FOREVER), 0);
		CHECK_EQ(m.tag, HD_TAG_ENDED);
		CHECK_EQ(m.sender, pid);
		CHECK(is_gone(pid));
		hd_message_drop(&m);
	}
	hd_port_release(to);
	check_all_gone();
}

/* ---- links ---- */

static struct hd_semaphore linked;

static void *links_with(void *pid)
{
	CHECK_EQ(hd_link(*(hd_pid *)pid), 0);
	hd_semaphore_signal(&linked);
	CHECK_EQ(hd_semaphore_wait(&(struct hd_semaphore){ 0 }, hd_after(HD_SEC(1000))), 0);
	return NULL;
}

static void *links_and_ends(void *pid)
{
	CHECK_EQ(hd_link(*(hd_pid *)pid), 0);
	hd_semaphore_signal(&linked);
	return NULL;
}

/* In both directions, for each cause. */
HD_WORKERS_TEST(link_ends_both_unless_one_returns)
{
	(void)workers;
	for (long cause = RETURNS; cause <= KILLED; cause++) {
		hd_port *port = made_port(NULL);
		hd_pid one = born(hd_spawn(ends_by, (void *)cause)), other = born(hd_spawn(links_with, &one));
		struct hd_end end;

		CHECK_EQ(hd_semaphore_wait(&linked, HD_FOREVER), 0);
		CHECK_EQ(hd_watch(other, port), 0);
		make_end(one, (enum cause)cause);
		CHECK_EQ(hd_join(one, NULL, HD_FOREVER), 0);
		if (cause == RETURNS) {
			expect_silence(port);
			CHECK_EQ(hd_kill(other, 3), 0);
		}
		CHECK_EQ(hd_join_end(other, &end, HD_FOREVER), 0);
		CHECK_EQ(end.kind, HD_END_KILLED);
		CHECK_EQ(end.err, cause == RETURNS ? 3 : cause == FAILS ? -5 : 77);
		struct hd_message m;
		CHECK_EQ(hd_receive(port, &m, HD_FOREVER), 0);
		hd_message_drop(&m);
		hd_port_release(port);
		/* the process that linked itself ends first, normally: nothing happens to the other */
		one = born(hd_spawn(ends_by, (void *)cause));
		CHECK_EQ(hd_join(born(hd_spawn(links_and_ends, &one)), NULL, HD_FOREVER), 0);
		CHECK_EQ(hd_semaphore_wait(&linked, HD_FOREVER), 0);
		CHECK(state_of(one) != HD_ENDED);
		make_end(one, (enum cause)cause);
		CHECK_EQ(hd_join(one, NULL, HD_FOREVER), 0);
		check_all_gone();
	}
}

static void *counts_links(void *pid)
{
	hd_pid other = *(hd_pid *)pid;

	CHECK_EQ(hd_link(hd_self()), -EINVAL);
	CHECK_EQ(hd_unlink(other), -ENOENT);
	CHECK_EQ(hd_link(other), 0);
	CHECK_EQ(hd_link(other), 0);
	CHECK_EQ(hd_unlink(other), 0);
	CHECK_EQ(hd_kill(other, 1), 0); /* still linked once */
	CHECK_EQ(hd_sleep_until(HD_FOREVER), 0);
	return NULL;
}

HD_PROCESS_TEST(link_counts)
{
	hd_pid one = born(hd_spawn(ends_by, (void *)KILLED)), two = born(hd_spawn(counts_links, &one));
	struct hd_end end;

	CHECK_EQ(hd_join_end(two, &end, HD_FOREVER), 0);
	CHECK_EQ(end.kind, HD_END_KILLED);
	CHECK_EQ(end.err, 1);
	CHECK_EQ(hd_join(one, NULL, HD_FOREVER), 0);
	CHECK_EQ(hd_link(one), -ESRCH);
}

/* A chain: each is linked with the one before it. One dies, all die. */
static hd_pid before;

static void *link_of_chain(void *arg)
{
	CHECK_EQ(hd_link(before), 0);
	hd_semaphore_signal(&linked);
	CHECK_EQ(hd_sleep_until(HD_FOREVER), 0);
	return arg;
}

HD_WORKERS_TEST(link_chain_ends_together)
{
	enum { LENGTH = 100 };
	static hd_pid pids[LENGTH + 1];
	int n = hd_is_simulated() ? 5 : LENGTH;

	for (int round = 0; round < 2; round++) {
		before = pids[0] = born(hd_spawn(ends_by, (void *)KILLED));
		for (int i = 1; i <= n; i++) {
			pids[i] = born(hd_spawn(link_of_chain, NULL));
			CHECK_EQ(hd_semaphore_wait(&linked, HD_FOREVER), 0);
			before = pids[i];
		}
		CHECK_EQ(hd_kill(pids[(round * n) / 2], 77), 0);
		for (int i = 0; i <= n; i++) {
			struct hd_end end;
			CHECK_EQ(hd_join_end(pids[i], &end, HD_FOREVER), 0);
			CHECK_EQ(end.kind, HD_END_KILLED);
			CHECK_EQ(end.err, 77);
		}
	}
	(void)workers;
}

/* ---- children ---- */

static void at_end(void *word)
{
	CHECK_EQ(hd_sleep(HD_MS(2)), 0);
	trace("%s ", (const char *)word);
}

static void *grandchild(void *arg)
{
	struct hd_cleanup c;

	hd_cleanup_push(&c, at_end, (void *)"grandchild");
	hd_semaphore_signal(&linked);
	CHECK_EQ(hd_sleep_until(HD_FOREVER), 0);
	hd_cleanup_pop(&c, false);
	return arg;
}

static void *child(void *arg)
{
	struct hd_cleanup c;

	hd_cleanup_push(&c, at_end, (void *)"child");
	CHECK(hd_spawn_with(&(struct hd_spawn){ .link = true, .detached = true }, grandchild, NULL) > 0);
	CHECK_EQ(hd_sleep_until(HD_FOREVER), 0);
	hd_cleanup_pop(&c, false);
	return arg;
}

static void *parent(void *arg)
{
	CHECK(hd_spawn_with(&(struct hd_spawn){ .link = true, .detached = true }, child, NULL) > 0);
	CHECK_EQ(hd_semaphore_wait(&go, HD_FOREVER), 0);
	hd_fail(5);
	return arg;
}

/* Those that watch a process hear of its end when its children, and theirs, are dead. */
HD_PROCESS_TEST(watch_notice_comes_after_the_end_of_the_children)
{
	hd_port *port = made_port(NULL);
	hd_pid pid = born(hd_spawn_with(&(struct hd_spawn){ .watch = port }, parent, NULL));

	CHECK_EQ(hd_semaphore_wait(&linked, HD_FOREVER), 0);
	hd_semaphore_signal(&go);
	expect_notice(port, pid, FAILS);
	CHECK_STR(trace_text(), "child grandchild ");
	CHECK_EQ(stats_now().live_processes, 2);
	CHECK_EQ(hd_join(pid, NULL, HD_FOREVER), 0);
	hd_port_release(port);
	check_all_gone();
}

/* A child that dies takes its parent with it, too. */
static void *parent_of_failing(void *arg)
{
	CHECK(hd_spawn_with(&(struct hd_spawn){ .link = true, .detached = true }, ends_by, (void *)FAILS) > 0);
	CHECK_EQ(hd_sleep_until(HD_FOREVER), 0);
	return arg;
}

HD_WORKERS_TEST(link_with_child_works_both_ways)
{
	struct hd_end end;

	(void)workers;
	hd_pid pid = born(hd_spawn(parent_of_failing, NULL));
	hd_semaphore_signal(&go);
	CHECK_EQ(hd_join_end(pid, &end, HD_FOREVER), 0);
	CHECK_EQ(end.kind, HD_END_KILLED);
	CHECK_EQ(end.err, -5);
}

/* ---- spawning ---- */

static void plain_spawns(void *port)
{
	CHECK_EQ(hd_spawn_with(&(struct hd_spawn){ .link = true }, nothing, NULL), -ENOTSUP);
	CHECK(hd_spawn_with(&(struct hd_spawn){ .watch = port, .detached = true }, nothing, NULL) > 0);
}

static void *echoes_one(void *arg)
{
	struct hd_message m;

	CHECK_EQ(hd_receive(NULL, &m, HD_FOREVER), 0);
	CHECK_EQ(hd_reply(&m, m.tag, m.data, m.size), 0);
	hd_message_drop(&m);
	return arg;
}

HD_WORKERS_TEST(spawn_with_port_group_and_watch)
{
	hd_port *watcher = made_port(NULL), *port = made_port(&(struct hd_port_options){ .unowned = true });
	struct hd_group group = { 0 };
	struct hd_message m;

	(void)workers;
	CHECK_EQ(hd_spawn_with(&(struct hd_spawn){ .port = watcher }, nothing, NULL), -EBUSY);
	hd_pid pid =
		born(hd_spawn_with(&(struct hd_spawn){ .port = port, .watch = watcher, .group = &group }, echoes_one, NULL));
	CHECK_EQ(hd_spawn_with(&(struct hd_spawn){ .port = port }, nothing, NULL), -EBUSY);
	CHECK_EQ(hd_call(port, 8, "abc", 4, &m, HD_FOREVER), 0);
	CHECK_STR(m.data, "abc");
	hd_message_drop(&m);
	expect_notice(watcher, pid, RETURNS);
	CHECK_EQ(hd_group_wait(&group, HD_FOREVER), 0);
	on_plain_thread(plain_spawns, watcher);
	CHECK_EQ(received_tag(watcher), HD_TAG_ENDED);
	hd_port_release(port);
	hd_port_release(watcher);
	check_all_gone();
}

HD_PROCESS_TEST(spawn_with_ties_survives_want_of_memory)
{
	hd_port *port = made_port(&(struct hd_port_options){ .unowned = true }), *watcher = made_port(NULL);
	const struct hd_spawn how = { .port = port, .watch = watcher, .link = true };
	int failed = 0;

	for (unsigned nth = 1; nth < 10; nth++) {
		hd__fault_arm(HD__FAULT_ALLOC, nth, false);
		hd_pid pid = hd_spawn_with(&how, nothing, NULL);
		hd__fault_arm(HD__FAULT_ALLOC, 0, false);
		if (pid > 0) {
			CHECK_EQ(hd_join(pid, NULL, HD_FOREVER), 0);
			break;
		}
		CHECK_EQ(pid, -ENOMEM);
		failed++;
	}
	CHECK(failed >= 3);
	CHECK_EQ(received_tag(watcher), HD_TAG_ENDED);
	hd_port_release(port);
	hd_port_release(watcher);
	check_all_gone();
}

/* ---- names ---- */

static void *named(void *arg)
{
	hd_port *port = made_port(NULL);

	CHECK_EQ(hd_register("server", port), 0);
	hd_semaphore_signal(&linked);
	CHECK_EQ(hd_semaphore_wait(&go, HD_FOREVER), 0);
	return arg;
}

HD_WORKERS_TEST(names_are_found_until_their_owner_ends)
{
	char name[300];

	(void)workers;
	memset(name, 'x', sizeof name);
	name[299] = 0;
	CHECK(hd_whereis("server") == NULL);
	CHECK_EQ(hd_unregister("server"), -ENOENT);
	hd_pid pid = born(hd_spawn(named, NULL));
	CHECK_EQ(hd_semaphore_wait(&linked, HD_FOREVER), 0);
	hd_port *port = hd_whereis("server"), *mine = made_port(NULL);
	CHECK(port != NULL);
	CHECK_EQ(hd_register("server", mine), -EEXIST);
	CHECK_EQ(hd_register("", mine), -EINVAL);
	CHECK_EQ(hd_register(name, mine), -ENAMETOOLONG);
	name[255] = 0;
	CHECK_EQ(hd_register(name, mine), 0);
	for (int i = 0; i < 300; i++) {
		snprintf(name, sizeof name, "name %d", i);
		CHECK_EQ(hd_register(name, mine), 0);
	}
	for (int i = 0; i < 300; i++) {
		snprintf(name, sizeof name, "name %d", i);
		hd_port *found = hd_whereis(name);
		CHECK(found == mine);
		hd_port_release(found);
		if (i % 2 == 0)
			CHECK_EQ(hd_unregister(name), 0);
	}
	hd_semaphore_signal(&go);
	CHECK_EQ(hd_join(pid, NULL, HD_FOREVER), 0);
	CHECK(hd_whereis("server") == NULL);
	CHECK_EQ(hd_register("server", port), -ESRCH);
	hd_port_release(port);
	hd_port_release(mine);
}

/* ---- races ---- */

static hd_pid victim;

static void *kills(void *arg)
{
	ANY_ANSWER(hd_kill(victim, 77));
	return arg;
}

static void *watches(void *port)
{
	CHECK_EQ(hd_watch(victim, port), 0);
	return NULL;
}

/* A watch and the end of the process: the notice comes once, whichever was first. */
HD_WORKERS_TEST(watch_races_with_end)
{
	hd_port *port = made_port(NULL);

	(void)workers;
	for (int round = 0; another_round(round, many(300)); round++) {
		victim = born(hd_spawn(ends_by, (void *)KILLED));
		hd_pid a = born(hd_spawn(watches, port)), b = born(hd_spawn(kills, NULL));
		join_all((hd_pid[]){ a, b }, 2);
		expect_notice(port, victim, KILLED);
		expect_silence(port);
		CHECK_EQ(hd_join(victim, NULL, HD_FOREVER), 0);
	}
	hd_port_release(port);
	check_all_gone();
}

static void *links_victim(void *arg)
{
	int err = hd_link(victim);

	CHECK(err == 0 || err == -ESRCH);
	if (err == 0)
		CHECK_EQ(hd_sleep_until(HD_FOREVER), 0);
	return arg;
}

HD_WORKERS_TEST(link_races_with_end)
{
	(void)workers;
	for (int round = 0; another_round(round, many(300)); round++) {
		victim = born(hd_spawn(ends_by, (void *)KILLED));
		hd_pid a = born(hd_spawn(links_victim, NULL)), b = born(hd_spawn(links_victim, NULL)),
		       c = born(hd_spawn(kills, NULL));
		join_all((hd_pid[]){ a, b, c, victim }, 4);
	}
}
