/* port/after.c - messages that are sent at a time: each is sent once, or cancelled once, or dropped at the end; never two of these, never none. */
#include <heddle/time.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "port/common.h"

/* Too far to matter. Simulated time may jump to any deadline that a worker sleeps for. */
static hd_time hour(void)
{
	return hd_is_simulated() ? HD_FOREVER : HD_SEC(3600);
}

static hd_time never(void)
{
	return hd_after(hour());
}

static hd_timer is_set(hd_timer timer)
{
	CHECK(timer > 0);
	return timer;
}

static long drops;

static void count_drop(void *data)
{
	(void)data;
	add(&drops, 1);
}

/* A message whose end is counted in `drops`. */
static struct hd_sending counted(int64_t tag)
{
	static char byte;

	return (struct hd_sending){ .tag = tag, .data = &byte, .size = 1, .move = true, .drop = count_drop };
}

static hd_timer set_counted(hd_port *port, int64_t tag, hd_time when)
{
	struct hd_sending what = counted(tag);

	return hd_send_after_with(port, &what, when);
}

/* ---- messages ---- */

HD_WORKERS_TEST(after_sends_in_the_order_of_times_and_of_equals_in_that_of_setting)
{
	hd_port *port = made_port(NULL);
	hd_time begin;

	(void)workers;
	for (hd_time ahead = HD_MS(5);; ahead *= 2) { /* all are set before the first is due */
		begin = hd_after(ahead);
		for (int i = 0; i < 100; i++)
			is_set(hd_send_after(port, i, NULL, 0, begin + HD_US(100) * (i * 37 % 50)));
		if (hd_now() < begin)
			break;
		for (int i = 0; i < 100; i++)
			received_tag(port);
	}
	for (int k = 0, last = -1; k < 100; k++) {
		int i = (int)received_tag(port), rank = i * 37 % 50 * 100 + i;
		CHECK(hd_now() >= begin + HD_US(100) * (i * 37 % 50));
		CHECK(rank > last);
		last = rank;
	}
	hd_port_release(port);
	check_all_gone();
}

HD_PROCESS_TEST(after_message_has_its_data_and_no_sender)
{
	hd_port *port = made_port(NULL), *other = made_port(NULL);
	struct hd_message m;
	char text[2000] = "what it was when it was set";

	/* far enough ahead that the caller, which may lose its CPU for a while, sets each before it is due: one that is past is sent at once */
	is_set(hd_send_after(port, 1, text, 30, hd_after(HD_MS(50))));
	is_set(hd_send_after(port, 2, text, sizeof text, hd_after(HD_MS(100))));
	is_set(hd_send_after_with(port, &(struct hd_sending){ .tag = 3, .carried = other }, hd_after(HD_MS(150))));
	hd_port_release(other);
	memset(text, 'x', sizeof text);
	for (int i = 1; i <= 3; i++) {
		CHECK_EQ(hd_receive(port, &m, HD_FOREVER), 0);
		CHECK_EQ(m.tag, i);
		CHECK_EQ(m.sender, 0);
		CHECK(m.port == port);
		CHECK_EQ(m.size, i == 1 ? 30 : i == 2 ? sizeof text : 0);
		if (i < 3)
			CHECK_STR(m.data, "what it was when it was set");
		CHECK(m.carried == (i == 3 ? other : NULL));
		hd_message_drop(&m);
	}
	hd_port_release(port);
	check_all_gone();
}

HD_WORKERS_TEST(after_a_past_time_is_at_once)
{
	hd_port *port = made_port(NULL);

	(void)workers;
	is_set(hd_send_after(port, 1, NULL, 0, 0));
	is_set(hd_send_after(port, 2, NULL, 0, -5));
	is_set(hd_send_after(port, 3, NULL, 0, hd_now() - 1));
	is_set(hd_send_after_with(port, &(struct hd_sending){ .tag = 4, .urgent = true }, hd_now()));
	CHECK_EQ(length_of(port), 4);
	CHECK_EQ(received_tag(port), 4);
	for (int i = 1; i <= 3; i++)
		CHECK_EQ(received_tag(port), i);
	CHECK_EQ(hd_send_cancel(is_set(hd_send_after(port, 5, NULL, 0, 0))), -ESRCH);
	CHECK_EQ(received_tag(port), 5);
	hd_port_release(port);
	check_all_gone();
}

static void *answers_late(void *port)
{
	struct hd_message m;

	CHECK_EQ(hd_receive(port, &m, HD_FOREVER), 0);
	CHECK(m.carried != NULL);
	CHECK_EQ(hd_send_after(m.carried, 1, NULL, 0, 0), -EINVAL);
	CHECK_EQ(hd_send_every(m.carried, 1, 0, 1), -EINVAL);
	/* passes it on, to itself, a little later */
	is_set(hd_send_after_with(port, &(struct hd_sending){ .tag = 2, .carried = m.carried }, hd_after(HD_MS(1))));
	hd_message_drop(&m);
	CHECK_EQ(hd_receive(port, &m, HD_FOREVER), 0);
	CHECK_EQ(hd_reply(&m, 7, NULL, 0), 0);
	hd_message_drop(&m);
	/* and the next one to nobody: its caller hears of that */
	CHECK_EQ(hd_receive(port, &m, HD_FOREVER), 0);
	hd_timer timer = is_set(hd_send_after_with(port, &(struct hd_sending){ .carried = m.carried }, never()));
	hd_message_drop(&m);
	CHECK_EQ(hd_send_cancel(timer), 0);
	return NULL;
}

HD_WORKERS_TEST(after_can_pass_a_call_on)
{
	hd_port *port = made_port(&(struct hd_port_options){ .unowned = true });
	struct hd_message m;

	(void)workers;
	hd_pid pid = born(hd_spawn_with(&(struct hd_spawn){ .port = port }, answers_late, port));
	CHECK_EQ(hd_call(port, 1, NULL, 0, &m, HD_FOREVER), 0);
	CHECK_EQ(m.tag, 7);
	hd_message_drop(&m);
	CHECK_EQ(hd_call(port, 1, NULL, 0, &m, HD_FOREVER), -EPIPE);
	CHECK_EQ(hd_join(pid, NULL, HD_FOREVER), 0);
	hd_port_release(port);
	check_all_gone();
}

static void *nothing_at_all(void *port)
{
	(void)port;
	return NULL;
}

HD_PROCESS_TEST(after_answers_misuse)
{
	hd_port *port = made_port(NULL), *dead = made_port(&(struct hd_port_options){ .unowned = true });
	char byte = 0;

	CHECK_EQ(hd_send_after(port, 0, NULL, 0, HD_SEC(5)), -EINVAL);
	CHECK_EQ(hd_send_after(port, -1, NULL, 0, 0), -EINVAL);
	CHECK_EQ(hd_send_after(port, 0, NULL, 1, 0), -EINVAL);
	CHECK_EQ(hd_send_every(port, -1, 0, 1), -EINVAL);
	CHECK_EQ(hd_send_every(port, 0, HD_SEC(5), 1), -EINVAL);
	CHECK_EQ(hd_send_every(port, 0, 0, 0), -EINVAL);
	CHECK_EQ(hd_send_every(port, 0, 0, -1), -EINVAL);
	CHECK_EQ(length_of(port), 0);
	for (int i = 0; i < 2; i++) { /* also before there is any timer */
		CHECK_EQ(hd_send_cancel(0), -ESRCH);
		CHECK_EQ(hd_send_cancel(-1), -ESRCH);
		CHECK_EQ(hd_send_cancel(1), -ESRCH);
		CHECK_EQ(hd_send_cancel(INT64_MAX), -ESRCH);
		CHECK_EQ(hd_send_cancel((INT64_C(1) << 24) + 1), -ESRCH);
		CHECK_EQ(hd_send_cancel(is_set(hd_send_after(port, 0, &byte, 1, never()))), 0);
	}
	CHECK_EQ(hd_join(born(hd_spawn_with(&(struct hd_spawn){ .port = dead }, nothing_at_all, NULL)), NULL, HD_FOREVER), 0);
	set(&drops, 0);
	CHECK_EQ(set_counted(dead, 0, 0), -ESRCH);
	CHECK_EQ(set_counted(dead, 0, never()), -ESRCH);
	CHECK_EQ(hd_send_every(dead, 0, 0, HD_SEC(1)), -ESRCH);
	CHECK_EQ(value_of(&drops), 0); /* it is still the caller's */
	hd_port_release(dead);
	hd_port_release(port);
	check_all_gone();
}

HD_TEST(after_needs_a_runtime)
{
	hd_port *port = made_port(NULL);

	CHECK_EQ(hd_send_after(port, 0, NULL, 0, 0), -ENXIO);
	CHECK_EQ(hd_send_every(port, 0, 0, 1), -ENXIO);
	CHECK_EQ(hd_send_cancel(1 << 24), -ENXIO);
	hd_port_release(port);
}

HD_PROCESS_TEST(after_arrives_in_a_full_port_and_does_not_count_there)
{
	static const enum hd_port_full policies[] = { HD_FULL_FAIL, HD_FULL_DROP_NEW, HD_FULL_DROP_OLD, HD_FULL_BLOCK };

	for (int i = 0; i < 4; i++) {
		hd_port *port = made_port(&(struct hd_port_options){ .capacity = 1, .memory = 4, .full = policies[i] });
		struct hd_port_info info;
		send_tag(port, 1);
		is_set(hd_send_after(port, 2, "longer than four bytes", 23, 0));
		is_set(hd_send_after(port, 3, "longer than four bytes", 23, hd_after(HD_US(100))));
		CHECK_EQ(hd_sleep(HD_MS(1)), 0);
		hd_port_info(port, &info);
		CHECK_EQ(info.length, 3);
		CHECK_EQ(info.bytes, 0);
		CHECK_EQ(info.dropped, 0);
		for (int k = 1; k <= 3; k++)
			CHECK_EQ(received_tag(port), k);
		hd_port_release(port);
	}
	check_all_gone();
}

/* ---- cancelling ---- */

HD_WORKERS_TEST(after_cancel_is_answered_once_and_drops_the_message)
{
	hd_port *port = made_port(NULL), *carried = made_port(NULL);

	(void)workers;
	set(&drops, 0);
	hd_timer a = is_set(set_counted(port, 1, never())), b = is_set(set_counted(port, 2, HD_FOREVER));
	hd_timer c = is_set(hd_send_after_with(port, &(struct hd_sending){ .carried = carried }, never()));
	hd_port_release(carried);
	CHECK_EQ(stats_now().live_ports, 2);
	CHECK_EQ(hd_send_cancel(b), 0);
	CHECK_EQ(value_of(&drops), 1);
	CHECK_EQ(hd_send_cancel(b), -ESRCH);
	CHECK_EQ(hd_send_cancel(a), 0);
	CHECK_EQ(value_of(&drops), 2);
	CHECK_EQ(hd_send_cancel(a), -ESRCH);
	CHECK_EQ(hd_send_cancel(c), 0);
	CHECK_EQ(stats_now().live_ports, 1);
	for (int i = 0; i < 1000; i++) { /* in the same slot: the ids are others */
		hd_timer d = is_set(hd_send_after(port, 3, NULL, 0, never()));
		CHECK(d != a && d != b && d != c);
		CHECK_EQ(hd_send_cancel(a), -ESRCH);
		CHECK_EQ(hd_send_cancel(d), 0);
	}
	CHECK_EQ(length_of(port), 0);
	hd_port_release(port);
	check_all_gone();
}

enum { RACERS = 64 };

struct race {
	hd_port *port;
	hd_timer timers[RACERS];
	long cancelled, received;
	struct hd_semaphore go;
};

static void *cancels_all(void *arg)
{
	struct race *race = arg;

	CHECK_EQ(hd_semaphore_wait(&race->go, HD_FOREVER), 0);
	for (int i = 0; i < RACERS; i++) {
		int err = hd_send_cancel(race->timers[i]);
		CHECK(err == 0 || err == -ESRCH);
		add(&race->cancelled, err == 0);
		hd_checkpoint();
	}
	return NULL;
}

/* Each timer is due about when two processes cancel it: one of the three has it, and all three are seen to win. */
HD_WORKERS_TEST(after_is_sent_or_cancelled_never_both_never_neither)
{
	struct race race = { .port = made_port(NULL) };
	struct hd_message m;
	long sent = 0, cancelled = 0;
	hd_pid pids[2];

	(void)workers;
	for (int round = 0; another_round(round, many(2000)); round++) {
		race.cancelled = race.received = 0;
		set(&drops, 0);
		for (int i = 0; i < 2; i++)
			pids[i] = born(hd_spawn(cancels_all, &race));
		/* Under TSan a race takes a hundred times as long. */
		hd_time when = hd_after(HD_US(round % 50 * (HD_UNDER_TSAN ? 100 : 1)));
		for (int i = 0; i < RACERS; i++)
			race.timers[i] = is_set(set_counted(race.port, i, when + i * 100));
		for (int i = 0; i < 2; i++)
			CHECK_EQ(hd_semaphore_signal(&race.go), 0);
		join_all(pids, 2);
		while (hd_receive(race.port, &m, 0) == 0) {
			race.received++;
			hd_message_drop(&m);
		}
		CHECK_EQ(race.received + value_of(&race.cancelled), RACERS);
		CHECK_EQ(value_of(&drops), RACERS);
		sent += race.received;
		cancelled += race.cancelled;
	}
	if (!hd_is_simulated())
		CHECK(sent > 0 && cancelled > 0);
	hd_port_release(race.port);
	check_all_gone();
}

/* ---- ends ---- */

static struct hd_semaphore set_up;

static void *sets_and_ends(void *arg)
{
	hd_port *port = made_port(NULL), *second = made_port(NULL);
	hd_timer *timers = arg;

	for (int i = 0; i < 200; i++)
		timers[i] = is_set(set_counted(i % 2 == 0 ? port : second, i, i % 3 == 0 ? HD_FOREVER : never()));
	timers[200] = is_set(hd_send_every(port, 0, 0, hour()));
	timers[201] = is_set(hd_send_every(second, 0, never(), hour()));
	CHECK_EQ(hd_semaphore_signal(&set_up), 0);
	if (timers[202] != 0)
		ANY_ANSWER(hd_semaphore_wait(&set_up, HD_FOREVER)); /* until it is killed */
	return NULL;
}

/* Whether the owner returns or is killed. */
HD_WORKERS_TEST(after_ends_with_the_owner_of_its_port)
{
	hd_timer timers[203];

	(void)workers;
	for (int kill = 0; kill < 2; kill++) {
		set(&drops, 0);
		timers[202] = kill;
		hd_pid pid = born(hd_spawn(sets_and_ends, timers));
		CHECK_EQ(hd_semaphore_wait(&set_up, HD_FOREVER), 0);
		if (kill)
			CHECK_EQ(hd_terminate(pid, HD_FOREVER), 0);
		else
			CHECK_EQ(hd_join(pid, NULL, HD_FOREVER), 0);
		CHECK_EQ(value_of(&drops), 200);
		for (int i = 0; i < 202; i++)
			CHECK_EQ(hd_send_cancel(timers[i]), -ESRCH);
		check_all_gone();
	}
}

/* An owner that has never run: timers that others have set. */
HD_WORKERS_TEST(after_ends_with_an_owner_that_never_ran)
{
	hd_port *port = made_port(&(struct hd_port_options){ .unowned = true });

	(void)workers;
	set(&drops, 0);
	hd_timer timer = is_set(set_counted(port, 0, never())), tick = is_set(hd_send_every(port, 0, 0, hour()));
	hd_pid pid = born(hd_spawn_with(&(struct hd_spawn){ .port = port, .suspended = true }, nothing_at_all, NULL));
	CHECK_EQ(hd_terminate(pid, HD_FOREVER), 0);
	CHECK_EQ(hd_send_cancel(timer), -ESRCH);
	CHECK_EQ(hd_send_cancel(tick), -ESRCH);
	CHECK_EQ(length_of(port), 0);
	hd_port_release(port);
}

HD_WORKERS_TEST(after_ends_with_the_last_reference_to_its_port)
{
	(void)workers;
	for (int unowned = 0; unowned < 2; unowned++) {
		hd_port *port = made_port(&(struct hd_port_options){ .unowned = unowned != 0 });
		hd_timer timers[100];
		set(&drops, 0);
		for (int i = 0; i < 99; i++)
			timers[i] = is_set(set_counted(port, i, never()));
		timers[99] = is_set(hd_send_every(port, 0, 0, hour()));
		hd_port_retain(port);
		hd_port_release(port);
		CHECK_EQ(value_of(&drops), 0);
		hd_port_release(port);
		CHECK_EQ(value_of(&drops), 99);
		for (int i = 0; i < 100; i++)
			CHECK_EQ(hd_send_cancel(timers[i]), -ESRCH);
		if (!unowned) {
			struct hd_message m; /* a tick that was sent before is received still */
			CHECK_EQ(hd_receive(NULL, &m, 0), 0);
			CHECK_EQ(((struct hd_tick *)m.data)->timer, timers[99]);
			CHECK(m.port == NULL);
			hd_message_drop(&m);
		}
		check_all_gone();
	}
}

static hd_port *left;

static void *leaves_timers(void *arg)
{
	hd_port *port = made_port(NULL);

	for (int i = 0; i < 50; i++) {
		is_set(set_counted(port, i, never()));
		is_set(set_counted(left, i, never()));
	}
	is_set(hd_send_every(left, 0, 0, hour()));
	is_set(hd_send_every(port, 0, 0, hour()));
	return arg;
}

/* A timer does not keep the runtime running; and what it would have sent is dropped when hd_run returns, also if the port lives on. */
HD_TEST(after_ends_with_the_runtime)
{
	for (int workers = 1; workers <= 2; workers++) {
		left = made_port(NULL);
		set(&drops, 0);
		CHECK_EQ(run_with_workers(workers, leaves_timers, NULL), 0);
		CHECK_EQ(value_of(&drops), 100);
		hd_port_release(left); /* with the tick that it has */
	}
}

static void *waits_for_timer_then_for_nothing(void *arg)
{
	hd_port *port = made_port(NULL);
	struct hd_message m;

	is_set(hd_send_after(port, 1, NULL, 0, hd_after(HD_MS(20))));
	CHECK_EQ(received_tag(port), 1);
	is_set(hd_send_after(port, 1, NULL, 0, HD_FOREVER));
	hd_timer timer = is_set(hd_send_after(port, 1, NULL, 0, never()));
	CHECK_EQ(hd_send_cancel(timer), 0);
	ANY_ANSWER(hd_receive(port, &m, HD_FOREVER));
	return arg;
}

/* One that is set is something that will happen; one that was cancelled, or that is for never, is not. */
HD_TEST(after_is_no_deadlock_until_it_is_sent)
{
	if (hd_is_haunted())
		SKIP("there is a thread that heddle did not start");
	for (int workers = 1; workers <= 2; workers++)
		CHECK_EQ(hd_run(&(struct hd_config){ .workers = (unsigned)workers, .fixed = true },
				waits_for_timer_then_for_nothing, NULL),
			 -EDEADLK);
}

/* ---- ticks ---- */

HD_WORKERS_TEST(after_ticks_come_at_multiples_of_the_interval_and_count_what_was_missed)
{
	hd_port *port = made_port(NULL);
	hd_time first = hd_after(HD_MS(1)), interval = HD_US(300);
	struct hd_message m;
	uint64_t due = 0;

	(void)workers;
	hd_timer timer = is_set(hd_send_every(port, 9, first, interval));
	for (int i = 0; i < 20; i++) {
		CHECK_EQ(hd_receive(port, &m, HD_FOREVER), 0);
		const struct hd_tick *tick = m.data;
		CHECK_EQ(m.tag, 9);
		CHECK_EQ(m.sender, 0);
		CHECK_EQ(m.size, sizeof *tick);
		CHECK_EQ(tick->timer, timer);
		due += tick->missed + 1;
		CHECK_EQ(tick->when, first + (hd_time)(due - 1) * interval);
		CHECK(hd_now() >= tick->when);
		if (i % 5 == 4) /* what is due meanwhile is not sent */
			CHECK_EQ(hd_sleep(HD_MS(1)), 0);
		hd_message_drop(&m);
		if (i % 5 == 2) { /* nor what is due while one is in the port */
			CHECK_EQ(hd_sleep(HD_MS(2)), 0);
			CHECK(length_of(port) <= 1);
		}
	}
	CHECK(due > 20);
	CHECK_EQ(hd_send_cancel(timer), 0);
	CHECK_EQ(hd_send_cancel(timer), -ESRCH);
	while (hd_receive(port, &m, 0) == 0)
		hd_message_drop(&m);
	CHECK_EQ(hd_receive(port, &m, hd_after(HD_MS(2))), -ETIMEDOUT);
	hd_port_release(port);
	check_all_gone();
}

HD_PROCESS_TEST(after_first_tick_may_be_now_or_long_ago)
{
	hd_port *port = made_port(NULL);
	struct hd_message m;

	hd_timer a = is_set(hd_send_every(port, 1, 0, hour()));
	CHECK_EQ(length_of(port), 1);
	CHECK_EQ(hd_receive(port, &m, 0), 0);
	CHECK_EQ(((struct hd_tick *)m.data)->missed, 0);
	hd_message_drop(&m);
	hd_time now = hd_now();
	hd_timer b = is_set(hd_send_every(port, 2, now - HD_SEC(1), HD_MS(300)));
	CHECK_EQ(hd_receive(port, &m, 0), 0);
	CHECK(((struct hd_tick *)m.data)->missed >= 3);
	CHECK(((struct hd_tick *)m.data)->when <= hd_now());
	CHECK_EQ((((struct hd_tick *)m.data)->when - now + HD_SEC(1)) % HD_MS(300), 0);
	CHECK_EQ(hd_message_take(&m), 0); /* and keeps it beyond the timer */
	CHECK_EQ(hd_send_cancel(a), 0);
	CHECK_EQ(hd_send_cancel(b), 0);
	CHECK_EQ(stats_now().live_messages, 1);
	hd_message_drop(&m);
	hd_port_release(port);
	check_all_gone();
}

static void *cancels_tick(void *timer)
{
	for (int i = 0; i < 20; i++)
		hd_checkpoint();
	CHECK_EQ(hd_send_cancel(*(hd_timer *)timer), 0);
	return NULL;
}

/* Once a tick is cancelled nothing of it is sent; a tick of which one message is in the port, being received, dropped or held. */
HD_WORKERS_TEST(after_ticks_end_when_they_are_cancelled)
{
	struct hd_message m = { .port = NULL };

	(void)workers;
	for (int round = 0; another_round(round, many(3000)); round++) {
		hd_port *port = made_port(NULL);
		hd_timer timer = is_set(hd_send_every(port, 1, 0, HD_US(1)));
		hd_pid pid = born(hd_spawn(cancels_tick, &timer));
		for (int i = 0; i < 10; i++)
			if (hd_receive(port, &m, 0) == 0)
				hd_message_drop(&m);
		CHECK_EQ(hd_join(pid, NULL, HD_FOREVER), 0);
		size_t length = length_of(port);
		CHECK(length <= 1);
		CHECK_EQ(hd_send_cancel(timer), -ESRCH);
		hd_checkpoint();
		CHECK_EQ(length_of(port), length);
		if (round % 2 == 0 && hd_receive(port, &m, 0) == 0)
			hd_message_drop(&m);
		hd_port_release(port);
		if (hd_receive(NULL, &m, 0) == 0) /* what was in the port */
			hd_message_drop(&m);
	}
	check_all_gone();
}

/* ---- many ---- */

HD_WORKERS_TEST(after_a_hundred_thousand_can_be_set_and_cancelled)
{
	if (hd_is_simulated())
		SKIP("simulated time may jump by an hour");
	int n = hd_scaled(100000);
	hd_port *port = made_port(NULL);
	hd_timer *timers = malloc((size_t)n * sizeof *timers);

	(void)workers;
	CHECK(timers != NULL);
	hd_time far = never();
	for (int i = 0; i < n; i++)
		timers[i] =
			is_set(hd_send_after(port, i, &i, sizeof i, i % 10 == 0 ? hd_after(HD_MS(10)) : far + i * 7919 % n));
	CHECK(stats_now().timers >= (uint64_t)n - n / 10);
	CHECK(stats_now().live_messages >= (uint64_t)n - n / 10);
	for (int i = 0; i < n; i++)
		if (i % 10 != 0)
			CHECK_EQ(hd_send_cancel(timers[i]), 0);
	CHECK(stats_now().timers <= (uint64_t)n / 5 + 200); /* what was cancelled far ahead does not stay in the heap */
	for (int i = 0; i < n; i += 10)
		CHECK_EQ(received_tag(port) % 10, 0);
	for (int round = 0; round < n; round++) /* nor if there is never more than one */
		CHECK_EQ(hd_send_cancel(is_set(hd_send_after(port, 1, NULL, 0, far))), 0);
	CHECK(stats_now().timers <= 200);
	free(timers);
	hd_port_release(port);
	check_all_gone();
}

HD_PROCESS_TEST(after_survives_want_of_memory)
{
	hd_port *port = made_port(NULL);
	char data[2000] = { 0 };
	struct hd_sending what = { .data = data, .size = sizeof data };

	hd__fault_arm(HD__FAULT_MAP, 1, false);
	CHECK_EQ(hd_send_after(port, 0, NULL, 0, never()), -ENOMEM);
	set(&drops, 0);
	hd__fault_arm(HD__FAULT_ALLOC, 1, false); /* the table */
	CHECK_EQ(set_counted(port, 0, never()), -ENOMEM);
	CHECK_EQ(value_of(&drops), 0);
	CHECK_EQ(hd_send_cancel(is_set(set_counted(port, 0, never()))), 0);
	for (int i = 0; i < 2; i++) {
		hd__fault_arm(HD__FAULT_ALLOC, 1, false);
		CHECK_EQ(i == 0 ? hd_send_every(port, 0, never(), 1) : hd_send_after_with(port, &what, never()), -ENOMEM);
	}
	hd__fault_arm(HD__FAULT_ALLOC, 1, true); /* from now on there is none: what is set is sent all the same */
	hd_timer timer = is_set(set_counted(port, 7, hd_after(HD_MS(1))));
	CHECK_EQ(received_tag(port), 7);
	CHECK_EQ(hd_send_cancel(timer), -ESRCH);
	hd__fault_arm(HD__FAULT_ALLOC, 0, false);
	hd_port_release(port);
	check_all_gone();
}

/* ---- plain threads, other OS processes, deaf workers ---- */

struct thread_use {
	hd_port *port;
	hd_timer timers[60];
};

static void uses_timers(void *arg)
{
	struct thread_use *use = arg;

	for (int i = 0; i < 60; i++)
		use->timers[i] = is_set(set_counted(use->port, i,
						    i % 3 == 0	 ? 0
						    : i % 3 == 1 ? hd_after(HD_US(500))
								 : never()));
	for (int i = 2; i < 60; i += 6) /* perhaps before their note has come */
		CHECK_EQ(hd_send_cancel(use->timers[i]), 0);
	hd_timer tick = is_set(hd_send_every(use->port, 100, 0, hour()));
	CHECK_EQ(hd_send_cancel(tick), 0);
	CHECK_EQ(hd_send_cancel(is_set(set_counted(use->port, 0, HD_FOREVER))), 0);
}

HD_WORKERS_TEST(after_can_be_used_on_plain_threads)
{
	struct thread_use use = { .port = made_port(NULL) };
	int past = 0, later = 0;

	(void)workers;
	set(&drops, 0);
	on_plain_thread(uses_timers, &use);
	CHECK_EQ(hd_sleep(HD_MS(2)), 0);
	for (int i = 0; i < 41; i++) {
		int64_t tag = received_tag(use.port);
		past += tag % 3 == 0 && tag != 100;
		later += tag % 3 == 1 && tag != 100;
	}
	CHECK_EQ(past, 20);
	CHECK_EQ(later, 20);
	CHECK_EQ(length_of(use.port), 0);
	for (int i = 5; i < 60; i += 6)
		CHECK_EQ(hd_send_cancel(use.timers[i]), 0);
	CHECK_EQ(value_of(&drops), 61);
	hd_port_release(use.port);
	check_all_gone();
}

static void sets_some(void *arg)
{
	struct thread_use *use = arg;

	for (int i = 0; i < 60; i++)
		use->timers[i] = set_counted(use->port, i, hd_after(HD_US(i)));
}

static void releases(void *port)
{
	hd_port_release(port);
}

/* Against a thread that sets them, on its notes' way, and a thread that releases the port. */
HD_WORKERS_TEST(after_ends_with_its_port_while_it_is_on_its_way)
{
	struct thread_use use;
	struct hd_message m;

	(void)workers;
	for (int round = 0; another_round(round, many(300)); round++) {
		struct plain a, b;
		use.port = made_port(NULL);
		set(&drops, 0);
		hd_port_retain(use.port);
		hd_port_retain(use.port);
		plain_start(&a, sets_some, &use);
		plain_start(&b, releases, use.port);
		hd_port_release(use.port);
		plain_join(&a);
		for (int i = 0; i < 60; i += 2)
			CHECK(hd_send_cancel(use.timers[i]) <= 0);
		hd_port_release(use.port);
		plain_join(&b);
		for (int i = 0; i < 60; i++)
			CHECK_EQ(hd_send_cancel(use.timers[i]), -ESRCH);
		while (hd_receive(NULL, &m, 0) == 0)
			hd_message_drop(&m);
		CHECK_EQ(value_of(&drops), 60);
	}
	check_all_gone();
}

static void *is_in_the_child(void *timer)
{
	CHECK_EQ(hd_send_cancel(*(hd_timer *)timer), -ESRCH);
	CHECK_EQ(hd_send_after(left, 1, NULL, 0, 0), -ESRCH);
	hd_port *port = made_port(NULL);
	is_set(hd_send_after(port, 3, NULL, 0, hd_after(HD_MS(1))));
	CHECK_EQ(received_tag(port), 3);
	hd_port_release(port);
	return NULL;
}

HD_WORKERS_TEST(after_is_not_sent_in_a_forked_child)
{
	hd_port *unowned = made_port(&(struct hd_port_options){ .unowned = true });
	int status;

	if (hd_is_simulated() || HD_UNDER_TSAN || HD_UNDER_ASAN || hd_is_emulated())
		SKIP("a forked child can have no threads here");
	(void)workers;
	left = made_port(NULL);
	hd_timer timer = is_set(hd_send_after(left, 1, NULL, 0, hd_after(HD_MS(20)))),
		 far = is_set(set_counted(unowned, 0, never()));
	pid_t child = fork();
	if (child == 0) {
		CHECK_EQ(hd_send_cancel(timer), -ENXIO);
		CHECK_EQ(run_with_workers(2, is_in_the_child, &timer), 0);
		hd_port_release(left);
		hd_port_release(unowned);
		_exit(0);
	}
	CHECK(child > 0);
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK_EQ(status, 0);
	CHECK_EQ(received_tag(left), 1);
	CHECK_EQ(hd_send_cancel(far), 0);
	hd_port_release(left);
	hd_port_release(unowned);
	check_all_gone();
}

static int heard;

static void *sets_and_computes(void *port)
{
	is_set(hd_send_after(port, 1, NULL, 0, hd_after(HD_US(200))));
	is_set(hd_send_every(port, 2, hd_after(HD_US(300)), HD_US(100)));
	while (!is_raised(&heard)) /* without a safe point */
		;
	return NULL;
}

/* The worker in whose heap the deadline is makes no calls: the watcher sends in its place, again and again. */
HD_MANY_WORKERS_TEST(after_is_sent_while_the_worker_that_has_it_is_deaf)
{
	hd_port *port = made_port(NULL);

	if (hd_is_simulated())
		SKIP("there is no watcher");
	(void)workers;
	CHECK_EQ(hd_unpin(), 0); /* it goes on on another worker */
	__atomic_store_n(&heard, 0, __ATOMIC_RELEASE);
	hd_pid pid = born(hd_spawn(sets_and_computes, port));
	CHECK_EQ(received_tag(port), 1);
	for (int i = 0; i < 3; i++)
		CHECK_EQ(received_tag(port), 2);
	raise_flag(&heard);
	CHECK_EQ(hd_join(pid, NULL, HD_FOREVER), 0);
	hd_port_release(port);
	struct hd_message m;
	while (hd_receive(NULL, &m, 0) == 0)
		hd_message_drop(&m);
	check_all_gone();
}

/* ---- all at once ---- */

enum { OWNERS = 4, KEPT = 16 };
static hd_port *shared[OWNERS];
static hd_timer kept[KEPT];
static long sets, ticks;

static void *owns_for_a_while(void *arg)
{
	long me = (long)arg;
	struct hd_message m;

	for (int i = 0; i < 5 + (int)me * 3; i++) {
		if (hd_receive(NULL, &m, hd_after(HD_US(50))) != 0)
			continue;
		if (i % 4 != 3) /* else it is dropped at its end */
			hd_message_drop(&m);
	}
	return NULL;
}

static void *sets_and_cancels(void *arg)
{
	unsigned dice = (unsigned)(long)arg;

	for (int i = 0; i < 60; i++) {
		dice = dice * 1664525u + 1013904223u;
		hd_port *port = shared[dice >> 8 & (OWNERS - 1)];
		hd_time when = dice & 1 << 20 ? hd_after(HD_US(dice >> 24)) : 0;
		hd_timer timer = (dice >> 16 & 7) == 0 ? hd_send_every(port, 1, when, HD_US(20)) : set_counted(port, 2, when);
		CHECK(timer > 0 || timer == -ESRCH);
		if (timer > 0)
			add((dice >> 16 & 7) == 0 ? &ticks : &sets, 1);
		timer = __atomic_exchange_n(&kept[dice >> 11 & (KEPT - 1)], timer, __ATOMIC_ACQ_REL);
		int err = hd_send_cancel(timer);
		CHECK(err == 0 || err == -ESRCH);
	}
	return NULL;
}

static void sets_on_a_thread(void *arg)
{
	sets_and_cancels(arg);
}

/* Owners that end, processes and a thread that set and cancel: every message is dropped once, and nothing is left. */
HD_WORKERS_TEST(after_loses_nothing_among_many)
{
	for (int round = 0; another_round(round, many(200)); round++) {
		hd_pid pids[2 * OWNERS];
		struct plain plain;
		set(&drops, 0);
		set(&sets, 0);
		for (int i = 0; i < OWNERS; i++) {
			shared[i] = made_port(&(struct hd_port_options){ .unowned = true, .capacity = (size_t)i });
			pids[i] = born(hd_spawn_with(&(struct hd_spawn){ .port = shared[i] }, owns_for_a_while,
						     (void *)(long)(i * 2)));
		}
		for (int i = 0; i < OWNERS; i++)
			pids[OWNERS + i] = born(hd_spawn(sets_and_cancels, (void *)(long)(round * 31 + i)));
		plain_start(&plain, sets_on_a_thread, (void *)(long)(round * 31 + 17));
		join_all(pids, 2 * OWNERS);
		plain_join(&plain);
		for (int i = 0; i < OWNERS; i++)
			hd_port_release(shared[i]);
		for (int i = 0; i < KEPT; i++)
			CHECK_EQ(hd_send_cancel(kept[i]), -ESRCH);
		CHECK_EQ(value_of(&drops), value_of(&sets));
	}
	(void)workers;
	check_all_gone();
}
