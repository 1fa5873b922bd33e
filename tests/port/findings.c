/* port/findings.c - defects that a review of src/port found, each as the property that it broke. */
#include <sys/wait.h>
#include <unistd.h>

#include "port/common.h"
#include "sched/sched.h"

static struct hd_semaphore up, go, never;
static hd_port *one, *two;
static int answer;

static void *calls_one(void *arg)
{
	answer = hd_call(one, 1, NULL, 0, NULL, HD_FOREVER);
	return arg;
}

/* ---- a process that ends without having run ---- */

static void *waits_for_go(void *arg)
{
	hd_semaphore_signal(&up);
	CHECK_EQ(hd_semaphore_wait(&go, HD_FOREVER), 0);
	return arg;
}

/* There is no memory for its stack: a call that waits in its port is broken at once, and nothing is kept till the end of the runtime. */
HD_PROCESS_TEST(port_of_a_process_that_cannot_start_breaks_its_calls)
{
	struct hd__stacks *stacks = &hd__self()->sched->stacks[hd__stack_class(1 << 20)];
	struct hd_end end;
	hd_pid others[64];
	int n = 0;

	one = made_port(&(struct hd_port_options){ .unowned = true });
	hd_pid c = born(hd_spawn(calls_one, NULL));
	do { /* till the next stack needs a guard */
		CHECK(n < 64);
		others[n++] = born(hd_spawn_with(&(struct hd_spawn){ .stack_size = 1 << 20 }, waits_for_go, NULL));
		CHECK_EQ(hd_semaphore_wait(&up, HD_FOREVER), 0); /* it has a stack */
	} while (n < (int)stacks->guarded);
	CHECK_EQ(info_of(c).why, HD_WAIT_CALL);
	send_tag(one, 7);
	hd_pid pid = hd_spawn_with(&(struct hd_spawn){ .port = one, .stack_size = 1 << 20 }, nothing, NULL);
	if (pid == -ENOMEM)
		SKIP("here spawn fails, and not the first run");
	hd__fault_arm(HD__FAULT_GUARD, 1, true);
	CHECK_EQ(hd_join_end(pid, &end, HD_FOREVER), 0); /* wherever it would have run */
	hd__fault_arm(HD__FAULT_GUARD, 0, false);
	CHECK_EQ(end.err, -ENOMEM);
	CHECK_EQ(hd_join(c, NULL, HD_FOREVER), 0);
	CHECK_EQ(answer, -EPIPE);
	CHECK_EQ(hd_send(one, 7, NULL, 0, 0), -ESRCH);
	hd_port_release(one);
	check_all_gone();
	for (int i = 0; i < n; i++)
		hd_semaphore_signal(&go);
	join_all(others, n);
}

/* ---- the order of death ---- */

static void *waits_deaf(void *arg)
{
	hd_set_cancel_state(HD_CANCEL_DISABLED);
	hd_semaphore_signal(&up);
	CHECK_EQ(hd_semaphore_wait(&go, HD_FOREVER), 0);
	trace("grandchild ");
	return arg;
}

static void *child_fails(void *arg)
{
	born(hd_spawn_with(&(struct hd_spawn){ .link = true, .detached = true }, waits_deaf, NULL));
	CHECK_EQ(hd_semaphore_wait(&up, HD_FOREVER), 0);
	hd_fail(5);
	return arg;
}

static void *parent_of_failing(void *arg)
{
	born(hd_spawn_with(&(struct hd_spawn){ .link = true, .detached = true }, child_fails, NULL));
	CHECK_EQ(hd_semaphore_wait(&never, HD_FOREVER), 0);
	return arg;
}

/* The child, which fails first, kills its parent and waits for its own child: the parent's end is not told before either. */
HD_PROCESS_TEST(port_notice_comes_after_a_child_that_failed_first)
{
	hd_port *port = made_port(NULL);
	struct hd_message m;
	hd_pid pid = born(hd_spawn_with(&(struct hd_spawn){ .watch = port }, parent_of_failing, NULL));

	CHECK_EQ(hd_receive(port, &m, hd_after(HD_MS(20))), -ETIMEDOUT);
	CHECK_STR(trace_text(), "");
	hd_semaphore_signal(&go);
	CHECK_EQ(hd_receive(port, &m, HD_FOREVER), 0);
	CHECK_STR(trace_text(), "grandchild ");
	CHECK_EQ(((struct hd_ended *)m.data)->end.err, -5);
	hd_message_drop(&m);
	CHECK_EQ(hd_join(pid, NULL, HD_FOREVER), 0);
	hd_port_release(port);
	check_all_gone();
}

static void *waits_to_be_killed(void *arg)
{
	hd_semaphore_signal(&up);
	ANY_ANSWER(hd_semaphore_wait(&never, HD_FOREVER));
	return arg;
}

static void *parent_of_two(void *port)
{
	for (int i = 0; i < 2; i++)
		born(hd_spawn_with(&(struct hd_spawn){ .link = true, .watch = port, .detached = true }, waits_to_be_killed,
				   NULL));
	return waits_to_be_killed(NULL);
}

/* To one port, the ends of the children are told before that of their creator. */
HD_WORKERS_TEST(port_notices_of_a_family_come_in_order)
{
	(void)workers;
	for (int round = 0; another_round(round, many(1000)); round++) {
		hd_port *port = made_port(NULL);
		struct hd_message m;
		hd_pid pid = born(hd_spawn_with(&(struct hd_spawn){ .watch = port }, parent_of_two, port));
		for (int i = 0; i < 3; i++)
			CHECK_EQ(hd_semaphore_wait(&up, HD_FOREVER), 0);
		CHECK_EQ(hd_kill(pid, 3), 0);
		for (int i = 0; i < 3; i++) {
			CHECK_EQ(hd_receive(port, &m, HD_FOREVER), 0);
			CHECK((m.sender == pid) == (i == 2));
			hd_message_drop(&m);
		}
		CHECK_EQ(hd_join(pid, NULL, HD_FOREVER), 0);
		hd_port_release(port);
	}
}

static void *watches_itself(void *other)
{
	hd_port *port = made_port(NULL);

	for (int i = 0; i < 3; i++) {
		CHECK_EQ(hd_watch(hd_self(), port), 0);
		CHECK_EQ(hd_watch(hd_self(), other), 0);
	}
	CHECK_EQ(hd_unwatch(hd_self(), port), 0);
	return NULL;
}

/* It will not hear of its own end, but others do. */
HD_PROCESS_TEST(port_owner_may_watch_itself)
{
	hd_port *port = made_port(NULL);
	hd_pid pid = born(hd_spawn(watches_itself, port));

	for (int i = 0; i < 3; i++)
		CHECK_EQ(received_tag(port), HD_TAG_ENDED);
	CHECK_EQ(hd_join(pid, NULL, HD_FOREVER), 0);
	hd_port_release(port);
	check_all_gone();
}

/* ---- the end of ports ---- */

/* Each port has the only reference to the next, in a message: they all go with the first, on one small stack. */
static void *drops_chain(void *arg)
{
	hd_port *first = made_port(&(struct hd_port_options){ .unowned = true }), *last = first;

	for (int i = 0; i < many(20000); i++) {
		hd_port *next = made_port(&(struct hd_port_options){ .unowned = true });
		CHECK_EQ(hd_send_with(last, &(struct hd_sending){ .carried = next }, 0), 0);
		if (last != first)
			hd_port_release(last);
		last = next;
	}
	hd_port_release(last);
	hd_port_release(first);
	return arg;
}

HD_PROCESS_TEST(port_chain_of_carried_ports_is_dropped_on_a_small_stack)
{
	CHECK_EQ(hd_join(born(hd_spawn(drops_chain, NULL)), NULL, HD_FOREVER), 0);
	check_all_gone();
}

static int drops;
static void count_drop(void *data)
{
	(void)data;
	drops++;
}

/* The last reference to a port without an owner is the watch's: what is in the port goes with it. */
static void *watches_from_unowned_ports(void *arg)
{
	one = made_port(&(struct hd_port_options){ .unowned = true });
	hd_pid pid = born(hd_spawn_with(&(struct hd_spawn){ .watch = one }, nothing, NULL));
	hd_pid c = born(hd_spawn(calls_one, NULL));

	hd_yield();
	CHECK_EQ(hd_join(pid, NULL, HD_FOREVER), 0);
	for (int i = 0; i < 2; i++) {
		hd_port *port = i == 0 ? one : made_port(&(struct hd_port_options){ .unowned = true });
		hd_pid p = born(hd_spawn_with(&(struct hd_spawn){ .watch = port, .suspended = true }, nothing, NULL));
		if (i == 1)
			CHECK_EQ(hd_send_move(port, 1, &drops, sizeof drops, count_drop, 0), 0);
		hd_port_release(port);
		CHECK_EQ(hd_resume(p), 0);
		CHECK_EQ(hd_join(p, NULL, HD_FOREVER), 0);
	}
	CHECK_EQ(hd_join(c, NULL, HD_FOREVER), 0);
	CHECK_EQ(answer, -EPIPE);
	CHECK_EQ(stats_now().live_ports, 0);
	return arg;
}

HD_TEST(port_without_owner_ends_with_its_last_watch)
{
	CHECK_EQ(run_with_workers(1, watches_from_unowned_ports, NULL), 0);
	CHECK_EQ(drops, 1); /* at the latest when hd_run ends */
}

/* ---- which process will answer ---- */

/* B, which has A's call, could not pass it on: A waits for B still. */
static void *calls_and_answers(void *arg)
{
	struct hd_message m;

	one = hd_port_retain(made_port(NULL));
	answer = hd_call(two, 1, NULL, 0, NULL, HD_FOREVER);
	while (hd_receive(one, &m, 0) == 0) {
		CHECK_EQ(hd_reply(&m, 9, NULL, 0), 0);
		hd_message_drop(&m);
	}
	return arg;
}

HD_PROCESS_TEST(port_call_that_could_not_be_passed_on_is_still_its_holders)
{
	hd_port *full = made_port(&(struct hd_port_options){ .unowned = true, .capacity = 1 });
	hd_pid owner = born(hd_spawn_with(&(struct hd_spawn){ .port = full, .suspended = true }, nothing, NULL));
	struct hd_message m;

	two = made_port(NULL);
	hd_pid a = born(hd_spawn(calls_and_answers, NULL));
	CHECK_EQ(hd_receive(two, &m, HD_FOREVER), 0);
	CHECK_EQ(info_of(a).holder, hd_self());
	send_tag(full, 0);
	CHECK_EQ(hd_send_with(full, &(struct hd_sending){ .carried = m.carried }, 0), -ENOBUFS);
	CHECK_EQ(info_of(a).holder, hd_self());
	CHECK_EQ(hd_call(one, 2, NULL, 0, NULL, HD_FOREVER), -EDEADLK);
	hd_message_drop(&m);
	CHECK_EQ(hd_join(a, NULL, HD_FOREVER), 0);
	CHECK_EQ(answer, -EPIPE);
	CHECK_EQ(hd_terminate(owner, HD_FOREVER), 0);
	CHECK_EQ(hd_join(owner, NULL, HD_FOREVER), 0);
	hd_port_release(full);
	hd_port_release(one);
	hd_port_release(two);
	check_all_gone();
}

/* One of the two calls is refused, though the first had to wait for room when the second began. */
HD_PROCESS_TEST(port_call_that_waited_for_room_closes_no_circle)
{
	struct hd_message m;

	two = made_port(&(struct hd_port_options){ .capacity = 1, .full = HD_FULL_BLOCK });
	send_tag(two, 0);
	hd_pid a = born(hd_spawn(calls_and_answers, NULL));
	hd_yield();
	CHECK_EQ(info_of(a).why, HD_WAIT_SEND);
	CHECK_EQ(received_tag(two), 0); /* there is room: its call is in the port, and it is ready */
	int mine = hd_call(one, 2, NULL, 0, NULL, HD_FOREVER);
	if (hd_receive(two, &m, 0) == 0)
		hd_message_drop(&m);
	CHECK_EQ(hd_join(a, NULL, HD_FOREVER), 0);
	CHECK(mine == -EDEADLK || answer == -EDEADLK); /* its message, which was in the port, was taken back */
	hd_port_release(one);
	hd_port_release(two);
	check_all_gone();
}

static void yield_drop(void *data)
{
	(void)data;
	hd_yield();
}

static void *receives_tag_5(void *arg)
{
	struct hd_message m;

	CHECK_EQ(hd_receive_tag(NULL, 5, &m, HD_FOREVER), 0);
	CHECK_EQ(hd_reply(&m, 6, NULL, 0), 0);
	hd_message_drop(&m);
	return arg;
}

static void nothing_to_drop(void *data)
{
	(void)data;
}

/* The owner waits for one kind of message, and its port is full of others: the call displaces one of them, and wakes the owner. */
HD_PROCESS_TEST(port_call_that_displaces_a_message_wakes_the_owner)
{
	one = made_port(&(struct hd_port_options){ .unowned = true, .capacity = 2, .full = HD_FULL_DROP_OLD });
	for (int i = 0; i < 2; i++)
		CHECK_EQ(hd_send_move(one, i, &drops, 1, nothing_to_drop, 0), 0);
	hd_pid pid = born(hd_spawn_with(&(struct hd_spawn){ .port = one }, receives_tag_5, NULL));
	hd_yield();
	CHECK_EQ(info_of(pid).why, HD_WAIT_RECEIVE);
	CHECK_EQ(hd_call(one, 5, NULL, 0, NULL, HD_FOREVER), 0);
	CHECK_EQ(hd_join(pid, NULL, HD_FOREVER), 0);
	hd_port_release(one);
	check_all_gone();
}

/* The caller was ready between its call and its wait, because what it displaced had to be dropped. */
HD_PROCESS_TEST(port_call_that_displaces_a_message_closes_no_circle)
{
	struct hd_message m;

	two = made_port(&(struct hd_port_options){ .capacity = 1, .full = HD_FULL_DROP_OLD });
	CHECK_EQ(hd_send_move(two, 0, &drops, 1, yield_drop, 0), 0);
	hd_pid a = born(hd_spawn(calls_and_answers, NULL));
	hd_yield();
	hd_yield();
	int mine = hd_call(one, 2, NULL, 0, NULL, HD_FOREVER);
	if (hd_receive(two, &m, 0) == 0)
		hd_message_drop(&m);
	CHECK_EQ(hd_join(a, NULL, HD_FOREVER), 0);
	CHECK_EQ(mine, -EDEADLK);
	hd_port_release(one);
	hd_port_release(two);
	check_all_gone();
}

static void *born_to_call(void *arg)
{
	struct hd_message m;

	*(int *)arg = hd_call(one, 2, NULL, 0, NULL, HD_FOREVER);
	while (hd_receive(NULL, &m, 0) == 0)
		hd_message_drop(&m);
	return NULL;
}

/* The port had no owner when it was called. */
HD_PROCESS_TEST(port_call_to_an_owner_yet_unborn_closes_no_circle)
{
	int its = 0;

	two = made_port(&(struct hd_port_options){ .unowned = true });
	hd_pid a = born(hd_spawn(calls_and_answers, NULL));
	hd_yield();
	CHECK_EQ(info_of(a).why, HD_WAIT_CALL);
	hd_pid b = born(hd_spawn_with(&(struct hd_spawn){ .port = two }, born_to_call, &its));
	CHECK_EQ(info_of(a).holder, b);
	join_all((hd_pid[]){ a, b }, 2);
	CHECK(its == -EDEADLK || answer == -EPIPE);
	hd_port_release(one);
	hd_port_release(two);
	check_all_gone();
}

/* The owner looks for the call without waiting, on another worker, answers it, and calls back at once: nothing waits for it any more. */
static int called_back;

static void *answers_and_calls_back(void *arg)
{
	struct hd_message m;
	int err;

	two = hd_port_retain(made_port(NULL));
	hd_semaphore_signal(&up);
	while ((err = hd_receive(two, &m, 0)) == -ETIMEDOUT)
		hd_yield();
	CHECK_EQ(err, 0);
	CHECK_EQ(hd_reply(&m, 1, NULL, 0), 0);
	hd_message_drop(&m);
	called_back = hd_call(one, 2, NULL, 0, NULL, HD_FOREVER);
	return arg;
}

static void *calls_then_answers(void *arg)
{
	struct hd_message m;

	one = hd_port_retain(made_port(NULL));
	hd_semaphore_signal(&up);
	CHECK_EQ(hd_semaphore_wait(&go, HD_FOREVER), 0);
	CHECK_EQ(hd_call(two, 1, NULL, 0, NULL, HD_FOREVER), 0);
	CHECK_EQ(hd_receive(one, &m, HD_FOREVER), 0);
	CHECK_EQ(hd_reply(&m, 9, NULL, 0), 0);
	hd_message_drop(&m);
	return arg;
}

HD_MANY_WORKERS_TEST(port_caller_that_was_answered_can_be_called)
{
	(void)workers;
	for (int round = 0; another_round(round, many(2000)); round++) {
		hd_pid b = born(hd_spawn(answers_and_calls_back, NULL)), a = born(hd_spawn(calls_then_answers, NULL));
		for (int i = 0; i < 2; i++)
			CHECK_EQ(hd_semaphore_wait(&up, HD_FOREVER), 0);
		hd_semaphore_signal(&go);
		CHECK_EQ(hd_join(b, NULL, HD_FOREVER), 0);
		CHECK_EQ(called_back, 0);
		CHECK_EQ(hd_join(a, NULL, HD_FOREVER), 0);
		hd_port_release(one);
		hd_port_release(two);
	}
}

/* ---- priorities ---- */

static void *high_server(void *arg)
{
	struct hd_message m;

	one = hd_port_retain(made_port(NULL));
	CHECK_EQ(hd_receive(NULL, &m, HD_FOREVER), 0);
	trace("server ");
	CHECK_EQ(hd_reply(&m, 0, NULL, 0), -ESRCH);
	hd_message_drop(&m);
	return arg;
}

/* A call that does not wait for its answer has woken a better process nevertheless. */
HD_PROCESS_TEST(port_call_that_does_not_wait_gives_way_to_a_better_process)
{
	hd_pid pid = born(hd_spawn_at(60, high_server, NULL));

	CHECK_EQ(hd_call(one, 1, NULL, 0, NULL, 0), -ETIMEDOUT);
	trace("caller ");
	CHECK_STR(trace_text(), "server caller ");
	CHECK_EQ(hd_join(pid, NULL, HD_FOREVER), 0);
	hd_port_release(one);
	check_all_gone();
}

/* ---- copies of a message ---- */

static void *answers_by_copies(void *arg)
{
	struct hd_message m, copy;

	one = hd_port_retain(made_port(NULL));
	hd_semaphore_signal(&up);
	for (int i = 0; i < 2; i++) {
		CHECK_EQ(hd_receive(NULL, &m, HD_FOREVER), 0);
		copy = m;
		CHECK_EQ(hd_reply(&m, i, NULL, 0), 0);
		hd_yield(); /* it calls again, with the same port for its answer */
		CHECK_EQ(hd_reply(&copy, 5, NULL, 0), -EALREADY);
		hd_message_drop(&copy);
	}
	return arg;
}

HD_PROCESS_TEST(port_call_is_answered_once_by_all_copies_of_its_message)
{
	struct hd_message m;
	hd_pid pid = born(hd_spawn(answers_by_copies, NULL));

	CHECK_EQ(hd_semaphore_wait(&up, HD_FOREVER), 0);
	for (int i = 0; i < 2; i++) {
		CHECK_EQ(hd_call(one, 1, NULL, 0, &m, HD_FOREVER), 0);
		CHECK_EQ(m.tag, i);
	}
	CHECK_EQ(hd_join(pid, NULL, HD_FOREVER), 0);
	hd_port_release(one);
	check_all_gone();
}

/* ---- names ---- */

static void *ends_when_told(void *arg)
{
	one = hd_port_retain(made_port(NULL));
	hd_semaphore_signal(&up);
	CHECK_EQ(hd_semaphore_wait(&go, HD_FOREVER), 0);
	return arg;
}

static void *registers(void *arg)
{
	hd_semaphore_signal(&go);
	int err = hd_register("brief", one);
	CHECK(err == 0 || err == -ESRCH);
	return arg;
}

/* A name that is given as the owner of its port ends does not outlive the owner. */
HD_MANY_WORKERS_TEST(port_name_ends_with_its_owner)
{
	(void)workers;
	for (int round = 0; another_round(round, many(3000)); round++) {
		hd_pid owner = born(hd_spawn(ends_when_told, NULL));
		CHECK_EQ(hd_semaphore_wait(&up, HD_FOREVER), 0);
		hd_pid r = born(hd_spawn(registers, NULL));
		join_all((hd_pid[]){ owner, r }, 2);
		/* the owner is dead: a joiner may be told before the last of its names is gone, but not for long */
		for (int i = 0; i < 100000; i++) {
			hd_port *left = hd_whereis("brief");
			if (left == NULL)
				break;
			hd_port_release(left);
			hd_yield();
			CHECK(i < 99999);
		}
		hd_port_release(one);
	}
}

/* ---- a spawn that fails ---- */

static void *fails_to_spawn(void *arg)
{
	struct hd_group group = { .cancelled = true };

	hd_semaphore_signal(&go);
	CHECK_EQ(hd_spawn_with(&(struct hd_spawn){ .watch = one, .link = true, .group = &group }, nothing, NULL), -ECANCELED);
	return arg;
}

/* The owner of the port that should have heard of the new process ends meanwhile, and takes the watch with it. */
HD_MANY_WORKERS_TEST(port_watcher_ends_while_a_spawn_fails)
{
	(void)workers;
	for (int round = 0; another_round(round, many(3000)); round++) {
		hd_pid owner = born(hd_spawn(ends_when_told, NULL));
		CHECK_EQ(hd_semaphore_wait(&up, HD_FOREVER), 0);
		hd_pid s = born(hd_spawn(fails_to_spawn, NULL));
		join_all((hd_pid[]){ owner, s }, 2);
		hd_port_release(one);
	}
}

/* ---- more than one runtime ---- */

static void *leaves_port(void *arg)
{
	one = hd_port_retain(made_port(NULL));
	return arg;
}

static void *calls_old_port(void *arg)
{
	CHECK_EQ(hd_call(one, 1, NULL, 0, NULL, HD_FOREVER), -ESRCH);
	CHECK_EQ(hd_send(one, 1, NULL, 0, HD_FOREVER), -ESRCH);
	return arg;
}

/* The owner of a port from the last runtime has ended, though its id lives again. */
HD_TEST(port_of_an_earlier_runtime_is_closed)
{
	CHECK_EQ(run_with_workers(1, leaves_port, NULL), 0);
	CHECK_EQ(run_with_workers(1, calls_old_port, NULL), 0);
	hd_port_release(one);
}

static struct plain sender;

static void sends_twice(void *port)
{
	CHECK_EQ(hd_send(port, 1, NULL, 0, HD_FOREVER), 0);
	CHECK_EQ(hd_send(port, 2, NULL, 0, HD_FOREVER), 0);
}

static void *starts_sender(void *arg)
{
	one = made_port(&(struct hd_port_options){ .unowned = true, .capacity = 1, .full = HD_FULL_BLOCK });
	plain_start(&sender, sends_twice, one);
	while (length_of(one) == 0)
		hd_yield();
	CHECK_EQ(hd_sleep(HD_MS(5)), 0); /* it waits for room now, most likely */
	return arg;
}

static void *receives_twice(void *arg)
{
	CHECK_EQ(received_tag(one), 1);
	CHECK_EQ(received_tag(one), 2);
	return arg;
}

static void *owner_at_last(void *arg)
{
	hd_pid pid = born(hd_spawn_with(&(struct hd_spawn){ .port = one }, receives_twice, NULL));

	CHECK_EQ(hd_join(pid, NULL, HD_FOREVER), 0);
	plain_join(&sender);
	return arg;
}

/* A thread that waits for room in a port which no process of this runtime will empty does not keep the runtime from ending. */
HD_TEST(port_sender_that_waits_does_not_hold_the_runtime)
{
	CHECK_EQ(run_with_workers(1, starts_sender, NULL), 0);
	CHECK_EQ(run_with_workers(1, owner_at_last, NULL), 0);
	hd_port_release(one);
}

/* ---- room ---- */

static void *sends_large(void *port)
{
	CHECK_EQ(hd_send(port, 8, "12345678", 8, HD_FOREVER), 0);
	return NULL;
}

/* A small message does not overtake a large one that waits for room. */
HD_PROCESS_TEST(port_senders_get_room_in_order)
{
	hd_port *port = made_port(&(struct hd_port_options){ .memory = 10, .full = HD_FULL_BLOCK });

	CHECK_EQ(hd_send(port, 1, "12345678", 8, 0), 0);
	hd_pid pid = born(hd_spawn(sends_large, port));
	hd_yield();
	CHECK_EQ(info_of(pid).why, HD_WAIT_SEND);
	CHECK_EQ(hd_send(port, 2, "x", 1, 0), -ETIMEDOUT);
	CHECK_EQ(received_tag(port), 1);
	CHECK_EQ(hd_send(port, 2, "x", 1, 0), 0);
	CHECK_EQ(received_tag(port), 8);
	CHECK_EQ(received_tag(port), 2);
	CHECK_EQ(hd_join(pid, NULL, HD_FOREVER), 0);
	hd_port_release(port);
	check_all_gone();
}

/* ---- the end of a runtime ---- */

static void *calls_deaf(void *arg)
{
	hd_set_cancel_state(HD_CANCEL_DISABLED);
	ANY_ANSWER(hd_call_move(one, 1, &drops, 1, count_drop, NULL, HD_FOREVER));
	return arg;
}

static void *sends_deaf(void *arg)
{
	hd_set_cancel_state(HD_CANCEL_DISABLED);
	ANY_ANSWER(hd_send_with(
		one, &(struct hd_sending){ .data = &drops, .size = 1, .move = true, .drop = count_drop, .carried = two },
		HD_FOREVER));
	return arg;
}

static void *owns_deaf(void *arg)
{
	hd_set_cancel_state(HD_CANCEL_DISABLED);
	CHECK_EQ(hd_register("deaf", one), 0);
	CHECK_EQ(hd_semaphore_wait(&go, HD_FOREVER), 0);
	return arg;
}

static void *abandons(void *arg)
{
	drops = 0;
	one = made_port(&(struct hd_port_options){ .unowned = true, .capacity = 1, .full = HD_FULL_BLOCK });
	two = made_port(NULL);
	hd_pid pid = born(hd_spawn_with(&(struct hd_spawn){ .port = one, .link = true, .watch = two }, owns_deaf, NULL));
	hd_pid c = born(hd_spawn(calls_deaf, NULL));
	while (info_of(c).why != HD_WAIT_CALL)
		hd_yield();
	hd_pid s = born(hd_spawn(sends_deaf, NULL)), k = born(hd_spawn(calls_deaf, NULL));
	while (info_of(s).why != HD_WAIT_SEND || info_of(k).why != HD_WAIT_SEND)
		hd_yield();
	CHECK_EQ(hd_watch(c, two), 0);
	CHECK_EQ(info_of(pid).state, HD_WAITING);
	CHECK_EQ(hd_shutdown(3), 0);
	return arg;
}

static void *checks_that_all_is_gone(void *arg)
{
	CHECK(hd_whereis("deaf") == NULL);
	check_all_gone();
	return arg;
}

/* Processes that do not hear that they should end are abandoned, a second later: what they have sent, hold and own goes with them. What a
 * sender could not send is its own still, and is not dropped. */
HD_TEST(port_of_an_abandoned_process_leaves_nothing)
{
	for (int workers = 1; workers <= 2; workers++) {
		CHECK_EQ(run_with_workers(workers, abandons, NULL), 3);
		CHECK_EQ(drops, 1);
		hd_port_release(one);
		CHECK_EQ(run_with_workers(1, checks_that_all_is_gone, NULL), 0);
	}
}

/* ---- fork ---- */

static struct hd_message unanswered;

static void *sends_to_parents(void *arg)
{
	CHECK_EQ(hd_send(one, 1, NULL, 0, HD_FOREVER), -ESRCH);
	CHECK_EQ(hd_call(one, 1, NULL, 0, NULL, HD_FOREVER), -ESRCH);
	CHECK_EQ(hd_send(two, 1, NULL, 0, HD_FOREVER), -ESRCH);
	CHECK_EQ(hd_reply(&unanswered, 1, NULL, 0), -ESRCH);
	return arg;
}

static void *receives_one(void *arg)
{
	one = hd_port_retain(made_port(NULL));
	hd_semaphore_signal(&up);
	CHECK_EQ(received_tag(NULL), 8);
	return arg;
}

static void *calls_two(void *arg)
{
	answer = hd_call(two, 1, NULL, 0, NULL, HD_FOREVER);
	return arg;
}

/* A forked child has none of the processes of its parent: their ports are closed there, and no copy of them goes on when it sends. */
HD_WORKERS_TEST(port_of_the_parent_is_closed_in_a_forked_child)
{
	int status;

	if (hd_is_simulated() || HD_UNDER_TSAN || HD_UNDER_ASAN || hd_is_emulated())
		SKIP("a forked child can have no threads here");
	(void)workers;
	two = made_port(NULL);
	hd_pid r = born(hd_spawn(receives_one, NULL)), c = born(hd_spawn(calls_two, NULL));
	CHECK_EQ(hd_semaphore_wait(&up, HD_FOREVER), 0);
	CHECK_EQ(hd_receive(two, &unanswered, HD_FOREVER), 0);
	while (info_of(r).why != HD_WAIT_RECEIVE || state_of(c) != HD_WAITING)
		CHECK_EQ(hd_sleep(HD_US(50)), 0);
	pid_t child = fork();
	if (child == 0)
		_exit(run_with_workers(2, sends_to_parents, NULL) != 0);
	CHECK(child > 0);
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK_EQ(status, 0);
	send_tag(one, 8);
	CHECK_EQ(hd_reply(&unanswered, 1, NULL, 0), 0);
	hd_message_drop(&unanswered);
	join_all((hd_pid[]){ r, c }, 2);
	CHECK_EQ(answer, 0);
	hd_port_release(one);
	hd_port_release(two);
}

/* ---- whose the memory is ---- */

static int moved;

static void *call_moves(void *until)
{
	moved = hd_call_move(one, 1, &drops, 1, count_drop, NULL, *(hd_time *)until);
	return NULL;
}

/* After a timeout or a cancel the caller cannot know whether its message had been sent: the memory is not its own in any case. */
HD_PROCESS_TEST(port_call_that_gives_up_has_given_its_memory_away)
{
	hd_time forever = HD_FOREVER, past = 0,
		later = hd_after(HD_MS(1)), *const until[] = { &past, &later, &forever, &forever };

	for (int full = 0; full < 2; full++)
		for (int i = 0; i < 4; i++) {
			one = made_port(&(struct hd_port_options){ .capacity = full, .full = HD_FULL_BLOCK });
			if (full)
				send_tag(one, 0);
			drops = 0;
			later = hd_after(HD_MS(1));
			hd_pid pid = born(hd_spawn(call_moves, until[i]));
			if (i == 2) /* before it has begun */
				CHECK_EQ(hd_cancel(pid), 0);
			hd_yield();
			if (i == 3)
				CHECK_EQ(hd_cancel(pid), 0);
			CHECK_EQ(hd_join(pid, NULL, HD_FOREVER), 0);
			CHECK_EQ(moved, i < 2 ? -ETIMEDOUT : -ECANCELED);
			struct hd_message m;
			while (hd_receive(one, &m, 0) == 0)
				hd_message_drop(&m);
			CHECK_EQ(drops, 1);
			hd_port_release(one);
		}
	check_all_gone();
}
