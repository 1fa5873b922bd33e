/* races/races.c - two events compete for one waiter, on every primitive.
 *
 * The cast: the *victim* waits, and two events happen to it; a *bystander* comes to wait for the same thing, and must get it whatever
 * becomes of the victim; the *giver* has what they wait for, and gives it: at once if that is one of the events, and in any case at
 * the end. What each primitive must conserve is checked when all have ended: what was given = what was got + what is left. */
#include "races/races.h"

#include <errno.h>
#include <heddle.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MUST(cond) ((cond) ? (void)0 : violated(#cond, __LINE__))

const char *const event_names[EVENTS] = { "grant", "timeout", "cancel", "suspend", "terminate", "close" };

static const struct primitive *now;
static enum event events[2];

static void violated(const char *what, int line)
{
	fprintf(stderr, "races: %s and %s of who waits for a %s: line %d: %s\n", event_names[events[0]], event_names[events[1]],
		*(const char *const *)now, line, what);
	abort();
}

struct primitive {
	const char *name;
	void (*arrange)(void);	    /* by the giver, before anybody waits */
	int (*wait)(hd_time until); /* what the victim and the bystander do; 0 when they got it */
	void (*give)(void);	    /* by the giver: for one, or for all */
	int gifts;		    /* how many it takes for the victim and the bystander */
	void (*close)(void);	    /* or NULL */
	void (*check)(int got);	    /* when all have ended; by how many it was got */
	void (*mend)(bool got);	    /* when the victim has ended: what the others miss without it; or NULL */
	bool alone;		    /* no bystander */
	bool hears_no_cancel;
};

static _Atomic int given; /* gifts that were accepted */

#define NOT_BACK 1 /* it never came back from its wait */
static int victim_result;

static bool happens(enum event e)
{
	return events[0] == e || events[1] == e;
}

/* ---- semaphores ---- */

static struct hd_semaphore semaphore;

static void new_semaphore(void)
{
	hd_semaphore_init(&semaphore, 0);
}

static int wait_semaphore(hd_time until)
{
	return hd_semaphore_wait(&semaphore, until);
}

static void signal_semaphore(void)
{
	MUST(hd_semaphore_signal(&semaphore) == 0);
	given++;
}

static void count_signals(int got)
{
	int left = 0;

	while (hd_semaphore_try_wait(&semaphore) == 0)
		left++;
	MUST(given == got + left);
}

/* What two must not do at once. */
static _Atomic int inside;
static void alone_in_it(void *arg)
{
	(void)arg;
	MUST(++inside == 1);
	hd_yield();
	MUST(inside-- == 1);
}

static int wait_critical(hd_time until)
{
	return hd_semaphore_critical(&semaphore, alone_in_it, NULL, until);
}

static void one_signal_left(int got)
{
	(void)got;
	MUST(hd_semaphore_try_wait(&semaphore) == 0);
	MUST(hd_semaphore_try_wait(&semaphore) == -EAGAIN);
}

/* ---- mutexes ---- */

static struct hd_mutex mutex;

static void lock_new(unsigned flags)
{
	hd_mutex_init(&mutex, flags);
	MUST(hd_mutex_lock(&mutex, HD_FOREVER) == 0);
}
static void lock_fifo(void)
{
	lock_new(HD_IN_ORDER);
}
static void lock_barging(void)
{
	lock_new(0);
}
static void lock_by_priority(void)
{
	lock_new(HD_BY_PRIORITY);
}
static void lock_inherit(void)
{
	lock_new(HD_INHERIT | HD_BY_PRIORITY);
}

static int wait_mutex(hd_time until)
{
	return hd_mutex_critical(&mutex, alone_in_it, NULL, until);
}

static void unlock_mutex(void)
{
	MUST(hd_mutex_unlock(&mutex) == 0);
}

static void mutex_is_free(int got)
{
	(void)got;
	MUST(hd_mutex_try_lock(&mutex) == 0);
	MUST(hd_mutex_unlock(&mutex) == 0);
	MUST(hd_mutex_unlock(&mutex) == -EPERM);
}

/* ---- monitors ---- */

static struct hd_monitor monitor;
static int ready;

static void new_monitor(void)
{
	hd_monitor_init(&monitor, HD_IN_ORDER);
	ready = 0;
}
static void new_barging_monitor(void)
{
	hd_monitor_init(&monitor, 0);
	ready = 0;
}

static void leave_monitor(void *arg)
{
	(void)arg;
	MUST(inside == 0);
	MUST(hd_monitor_exit(&monitor) == 0); /* it is inside whenever this runs, at the depth that it had */
	MUST(hd_monitor_exit(&monitor) == 0);
}

/* Twice inside, so that leaving it while waiting must leave both times. */
static int wait_monitor(hd_time until)
{
	struct hd_cleanup cleanup;
	int err = hd_monitor_enter(&monitor, HD_FOREVER);

	MUST(err == 0);
	MUST(hd_monitor_enter(&monitor, HD_FOREVER) == 0);
	hd_cleanup_push(&cleanup, leave_monitor, NULL);
	while (ready == 0 && err == 0)
		err = hd_monitor_wait(&monitor, NULL, until);
	alone_in_it(NULL);
	if (err == 0)
		ready--;
	hd_cleanup_pop(&cleanup, true);
	return err;
}

static void signal_monitor(void)
{
	MUST(hd_monitor_enter(&monitor, HD_FOREVER) == 0);
	ready++;
	given++;
	MUST(hd_monitor_signal(&monitor, NULL) == 0);
	MUST(hd_monitor_exit(&monitor) == 0);
}

static void count_ready(int got)
{
	MUST(given == got + ready);
	MUST(hd_mutex_try_lock(&monitor.mutex) == 0);
}

/* ---- read-write locks ---- */

static struct hd_rwlock rwlock;
static _Atomic int readers, writers;

static void write_new(enum hd_rwlock_prefers prefers)
{
	hd_rwlock_init(&rwlock, prefers);
	readers = writers = 0;
	MUST(hd_rwlock_write(&rwlock, HD_FOREVER) == 0);
}
static void write_fair(void)
{
	write_new(HD_PREFER_NOBODY);
}
static void write_readers(void)
{
	write_new(HD_PREFER_READERS);
}
static void write_writers(void)
{
	write_new(HD_PREFER_WRITERS);
}

static int wait_read(hd_time until)
{
	int err = hd_rwlock_read(&rwlock, until);

	if (err != 0)
		return err;
	readers++;
	MUST(writers == 0);
	hd_yield();
	readers--;
	MUST(hd_rwlock_unlock(&rwlock) == 0);
	return 0;
}

static int wait_write(hd_time until)
{
	int err = hd_rwlock_write(&rwlock, until);

	if (err != 0)
		return err;
	MUST(++writers == 1 && readers == 0);
	hd_yield();
	MUST(writers-- == 1 && readers == 0);
	MUST(hd_rwlock_unlock(&rwlock) == 0);
	return 0;
}

/* One of the two writes, the other reads. */
static _Atomic int turn;
static int wait_rwlock(hd_time until)
{
	return turn++ % 2 == 0 ? wait_write(until) : wait_read(until);
}

static void unlock_rwlock(void)
{
	MUST(hd_rwlock_unlock(&rwlock) == 0);
}

static void rwlock_is_free(int got)
{
	(void)got;
	MUST(hd_rwlock_try_write(&rwlock) == 0);
	MUST(hd_rwlock_unlock(&rwlock) == 0);
	MUST(hd_rwlock_unlock(&rwlock) == -EPERM);
}

/* ---- barriers: the victim, the bystander and the giver must meet ---- */

static struct hd_barrier barrier;
static _Atomic int passed, last;

static void new_barrier(void)
{
	hd_barrier_init(&barrier, 3);
	passed = last = 0;
}

static int wait_barrier(hd_time until)
{
	int answer = hd_barrier_wait(&barrier, until);

	if (answer >= 0) {
		passed++;
		last += answer;
	}
	return answer >= 0 ? 0 : answer;
}

static void come_to_barrier(void)
{
	MUST(wait_barrier(HD_FOREVER) == 0);
}

static void come_instead(bool got)
{
	if (!got)
		MUST(wait_barrier(HD_FOREVER) == 0);
}

static void three_passed(int got)
{
	(void)got;
	MUST(passed == 3 && last == 1);
	MUST(hd_barrier_wait(&barrier, 0) == -ETIMEDOUT); /* nobody is there: it counts from nothing again */
}

/* ---- once: the giver is at it, and the others wait till it is done ---- */

static struct hd_once once;
static struct hd_semaphore may_finish;
static _Atomic int times;

static void be_at_it(void *arg)
{
	(void)arg;
	times++;
	MUST(hd_semaphore_wait(&may_finish, HD_FOREVER) == 0);
}

static void *do_it_once(void *arg)
{
	MUST(hd_once(&once, be_at_it, NULL, HD_FOREVER) == 0);
	return arg;
}

static hd_pid doer;
static void begin_once(void)
{
	memset(&once, 0, sizeof once);
	hd_semaphore_init(&may_finish, 0);
	times = 0;
	doer = hd_spawn(do_it_once, NULL);
	while (times == 0)
		hd_yield();
}

static int wait_once(hd_time until)
{
	return hd_once(&once, be_at_it, NULL, until);
}

static void finish_once(void)
{
	MUST(hd_semaphore_signal(&may_finish) == 0);
}

static void done_once(int got)
{
	(void)got;
	MUST(hd_join(doer, NULL, HD_FOREVER) == 0);
	MUST(times == 1 && hd_once_is_done(&once));
}

/* ---- events, wait groups ---- */

static struct hd_event event;

static void new_event(void)
{
	hd_event_init(&event, 0);
}
static void new_auto_event(void)
{
	hd_event_init(&event, HD_EVENT_AUTO);
}

static int wait_event(hd_time until)
{
	return hd_event_wait(&event, until);
}

static void set_event(void)
{
	MUST(hd_event_set(&event) == 0);
	given++;
}

static void event_is_set(int got)
{
	(void)got;
	MUST(hd_event_is_set(&event));
}

/* A set while it is set is lost: so one may be missing, and never one too many. */
static void auto_event_adds_up(int got)
{
	int left = hd_event_try_wait(&event) == 0;

	MUST(got + left <= given && got + left >= given - 1);
	MUST(hd_event_try_wait(&event) == -EAGAIN);
}

static struct hd_waitgroup waitgroup;

static void new_waitgroup(void)
{
	hd_waitgroup_init(&waitgroup, 1);
}

static int wait_waitgroup(hd_time until)
{
	return hd_waitgroup_wait(&waitgroup, until);
}

static void done_waitgroup(void)
{
	MUST(hd_waitgroup_done(&waitgroup) == 0);
}

static void waitgroup_is_done(int got)
{
	(void)got;
	MUST(hd_waitgroup_wait(&waitgroup, 0) == 0);
	MUST(hd_waitgroup_done(&waitgroup) == -EINVAL);
}

/* ---- promises ---- */

static hd_promise *promise;

static void new_promise(void)
{
	promise = hd_promise_new();
	MUST(promise != NULL);
}

static int wait_promise(hd_time until)
{
	void *value = NULL;
	int err = hd_promise_value(promise, &value, until);

	MUST(err != 0 || value == &promise);
	return err == -EIO ? -EPIPE : err;
}

static void set_promise(void)
{
	int err = hd_promise_set(promise, &promise);
	MUST(err == 0 || err == -EALREADY);
	given += err == 0;
}

static void fail_promise(void)
{
	int err = hd_promise_fail(promise, EIO);
	MUST(err == 0 || err == -EALREADY);
}

static void promise_is_settled(int got)
{
	MUST(hd_promise_has_value(promise) == (given == 1));
	MUST(hd_promise_has_failed(promise) == (given == 0));
	MUST(got == 0 || given == 1);
	hd_promise_release(promise);
}

/* ---- queues ---- */

static hd_queue *queue;
static _Atomic int put_sum, taken_sum, put_count;

/* An item is a number; in an ordered queue it is its key. */
static void use_queue(hd_queue *q)
{
	queue = q;
	MUST(queue != NULL);
	put_sum = taken_sum = put_count = 0;
}
static void put_first(void)
{
	int64_t item = 1000;

	MUST(hd_queue_put(queue, &item, HD_FOREVER) == 0);
	put_sum = (int)item;
	put_count = 1;
}
static void new_empty_queue(void)
{
	use_queue(hd_queue_new(sizeof(int64_t), 0));
}
static void new_full_queue(void)
{
	use_queue(hd_queue_new(sizeof(int64_t), 1));
	put_first();
}
static void new_empty_order(void)
{
	use_queue(hd_queue_new_ordered(sizeof(int64_t), 0, 0));
}
static void new_full_order(void)
{
	use_queue(hd_queue_new_ordered(sizeof(int64_t), 1, 0));
	put_first();
}
static void new_rendezvous(void)
{
	use_queue(hd_queue_new_rendezvous(sizeof(int64_t)));
}

static int wait_next(hd_time until)
{
	int64_t item = 0;
	int err = hd_queue_next(queue, &item, until);

	if (err == 0)
		taken_sum += (int)item;
	return err;
}

static int wait_put(hd_time until)
{
	int64_t item = 1 << put_count++;
	int err = hd_queue_put(queue, &item, until);

	if (err == 0)
		put_sum += (int)item;
	return err;
}

static void put_item(void)
{
	int err = wait_put(HD_FOREVER);
	MUST(err == 0 || err == -EPIPE);
}

static void take_item(void)
{
	int err = wait_next(HD_FOREVER);
	MUST(err == 0 || err == -EPIPE);
}

/* At a rendezvous the giver waits too: if the victim did not meet it, another process must. */
static void put_instead(bool got)
{
	if (!got)
		put_item();
}
static void take_instead(bool got)
{
	if (!got)
		take_item();
}

static void close_queue(void)
{
	MUST(hd_queue_close(queue) == 0);
}

static void items_add_up(int got)
{
	int64_t item;

	(void)got;
	while (hd_queue_try_next(queue, &item) == 0)
		taken_sum += (int)item;
	MUST(put_sum == taken_sum);
	hd_queue_drop(queue);
}

/* ---- select: two queues, and a semaphore ---- */

static hd_queue *other;

static void new_choice(void)
{
	new_empty_queue();
	other = queue;
	use_queue(hd_queue_new(sizeof(int64_t), 1));
	new_semaphore();
}

static int wait_choice(hd_time until)
{
	int64_t a = 0, b = 0;
	struct hd_case cases[] = { hd_case_next(queue, &a), hd_case_semaphore(&semaphore), hd_case_next(other, &b) };
	int i = hd_select(cases, 3, until);

	if (i < 0)
		return i;
	MUST(i < 3 && (a == 0 || i == 0) && (b == 0 || i == 2));
	if (cases[i].err == 0)
		taken_sum += i == 1 ? 500 : (int)(a + b);
	return cases[i].err;
}

static void give_choice(void)
{
	int64_t item = 100;

	if (given++ % 2 == 0) {
		int err = hd_queue_put(queue, &item, HD_FOREVER);
		MUST(err == 0 || err == -EPIPE);
		put_sum += err == 0 ? (int)item : 0;
		return;
	}
	MUST(hd_semaphore_signal(&semaphore) == 0);
	put_sum += 500;
	item = 3;
	MUST(hd_queue_put(other, &item, HD_FOREVER) == 0);
	put_sum += (int)item;
}

static void choices_add_up(int got)
{
	int64_t item;

	while (hd_semaphore_try_wait(&semaphore) == 0)
		taken_sum += 500;
	while (hd_queue_try_next(other, &item) == 0)
		taken_sum += (int)item;
	hd_queue_drop(other);
	items_add_up(got);
}

/* ---- select at two rendezvous: to take at one or to put at the other; the giver selects too, the other way round ---- */

static void new_two_rendezvous(void)
{
	new_rendezvous();
	other = queue;
	new_rendezvous();
}

static int meet(hd_queue *takes, hd_queue *puts, hd_time until)
{
	int64_t a = 0, b = 1 << put_count++;
	struct hd_case cases[] = { hd_case_next(takes, &a), hd_case_put(puts, &b) };
	int i = hd_select(cases, 2, until);

	if (i < 0)
		return i;
	MUST(i < 2 && (a == 0 || i == 0));
	if (cases[i].err == 0 && i == 0)
		taken_sum += (int)a;
	else if (cases[i].err == 0)
		put_sum += (int)b;
	return cases[i].err;
}

static int wait_to_meet(hd_time until)
{
	return meet(queue, other, until);
}

static void give_meeting(void)
{
	int err = meet(other, queue, HD_FOREVER);
	MUST(err == 0 || err == -EPIPE);
}

static void meet_instead(bool got)
{
	int err = got ? 0 : wait_to_meet(HD_FOREVER);
	MUST(err == 0 || err == -EPIPE);
}

static void close_two(void)
{
	close_queue();
	MUST(hd_queue_close(other) == 0);
}

static void meetings_add_up(int got)
{
	hd_queue_drop(other);
	items_add_up(got);
}

/* ---- joining, groups ---- */

static struct hd_semaphore may_end;
static hd_pid target;

static void *wait_to_end(void *arg)
{
	while (hd_semaphore_wait(&may_end, HD_FOREVER) == -ECANCELED)
		hd_cancel_clear(); /* a member that does not listen */
	return arg;
}

static void new_target(void)
{
	hd_semaphore_init(&may_end, 0);
	target = hd_spawn(wait_to_end, &target);
	MUST(target > 0);
}

static int wait_join(hd_time until)
{
	void *result = NULL;
	int err = hd_join(target, &result, until);

	MUST(err != 0 || result == &target);
	return err;
}

static void let_target_end(void)
{
	MUST(hd_semaphore_signal(&may_end) == 0);
}

static void target_is_joined_once(int got)
{
	MUST(hd_join(target, NULL, HD_FOREVER) == (got == 1 ? -ESRCH : 0));
}

static hd_pid member;

static void new_group(void)
{
	hd_semaphore_init(&may_end, 0);
	member = 0;
}

static int wait_group(hd_time until)
{
	struct hd_group group = { .owner = 0 };

	member = hd_group_spawn(&group, wait_to_end, NULL);
	MUST(member > 0);
	int err = hd_group_wait(&group, until);
	MUST(hd_priority(member) == -ESRCH); /* whatever it answers, nobody is left */
	return err;
}

static void nobody_is_left(int got)
{
	(void)got;
	MUST(member == 0 || hd_priority(member) == -ESRCH);
}

/* ---- ports: each message is dropped once, by its receiver, or by heddle when the receiver ends; or it stays the sender's ---- */

static hd_port *victims_port; /* the victim is its owner from the beginning; NULL: it needs none */
static hd_port *port, *commands;
static hd_pid owner;
static _Atomic int sent, dropped, received, answered;

static void count_drop(void *data)
{
	(void)data;
	dropped++;
}

static int send_counted(hd_time until)
{
	static int what;
	int err = hd_send_move(port, 1, &what, sizeof what, count_drop, until);

	sent += err == 0;
	return err == -ESRCH ? -EPIPE : err;
}

static int receive_counted(int64_t tag, hd_time until)
{
	struct hd_message m;
	int err = tag != 0 ? hd_receive_tag(port, tag, &m, until) : hd_receive(port, &m, until);

	if (err == 0) {
		received++;
		hd_message_drop(&m);
	}
	return err;
}

static bool released; /* the giver has given up the only reference */

static void nothing_is_left(void)
{
	struct hd_stats stats;

	if (!released)
		hd_port_release(port);
	released = false;
	MUST(sent == dropped);
	MUST(hd_stats(&stats) == 0 && stats.live_messages == 0 && stats.live_ports == 0);
}

static void new_port_for_victim(void)
{
	sent = dropped = received = answered = 0;
	victims_port = port = hd_port_new(&(struct hd_port_options){ .unowned = true });
	MUST(port != NULL);
}

/* Urgent ones that the victim does not want go first. */
static void new_port_with_others(void)
{
	new_port_for_victim();
	for (int i = 0; i < 2; i++)
		MUST(hd_send_with(port, &(struct hd_sending){ .tag = 9, .urgent = i == 1 }, 0) == 0);
}

static int wait_receive(hd_time until)
{
	return receive_counted(0, until);
}

static int wait_receive_tag(hd_time until)
{
	return receive_counted(1, until);
}

static int wait_select_receive(hd_time until)
{
	struct hd_message m;
	struct hd_case cases[] = { hd_case_receive(NULL, &m), hd_case_semaphore(&semaphore) };
	int err = hd_select(cases, 2, until);

	if (err == 0) {
		received++;
		hd_message_drop(&m);
	}
	return err;
}

static void send_one(void)
{
	int err = send_counted(HD_FOREVER);

	MUST(err == 0 || err == -EPIPE); /* the victim has ended */
}

/* The last message of a port to which there are no more references then. */
static int wait_receive_any(hd_time until)
{
	struct hd_message m;
	int err = hd_receive(NULL, &m, until);

	if (err == 0) {
		received++;
		hd_message_drop(&m);
	}
	return err;
}

static void send_and_release(void)
{
	send_one();
	hd_port_release(port);
	released = true;
}

static void sent_is_received(int got)
{
	MUST(received == got && received <= sent);
	nothing_is_left();
}

/* ---- timers: a message is sent at its time, or cancelled; the thread that has cancelled it sends another one in its place ---- */

enum { SENT_LATE = 1, CANCELLED };
static _Atomic hd_timer timer;

static void new_port_for_timer(void)
{
	timer = 0;
	new_port_for_victim();
}

static int wait_timer(hd_time until)
{
	struct hd_message m;
	int err = hd_receive(port, &m, until);

	if (err != 0)
		return err;
	bool late = m.tag == SENT_LATE;
	received += late;
	hd_message_drop(&m);
	return late ? 0 : -EPIPE;
}

static void set_timer(void)
{
	static int what;
	struct hd_sending sending = { SENT_LATE, &what, sizeof what, true, count_drop, NULL, false };
	hd_timer id = hd_send_after_with(port, &sending, hd_after(HD_US(2)));

	MUST(id > 0 || id == -ESRCH); /* the victim has ended */
	sent += id > 0;
	timer = id;
}

static void cancel_timer(void)
{
	hd_timer id = timer;
	int err = id > 0 ? hd_send_cancel(id) : 0;

	MUST(err == 0 || err == -ESRCH); /* it has been sent, or the victim has ended */
	if (err == 0)
		err = hd_send(port, CANCELLED, NULL, 0, 0);
	MUST(err == 0 || err == -ESRCH);
}

/* The owner of a port: takes one message out for each command; two at least are sent. */
enum command { TAKE = 1, ANSWER, FORGET, END };

static void *own_port(void *arg)
{
	struct hd_message m;
	hd_port *mine = commands;

	while (hd_receive(mine, &m, HD_FOREVER) == 0 && m.tag != END)
		MUST(receive_counted(0, HD_FOREVER) == 0); /* there are as many as commands, or more */
	return arg;
}

static void new_full_port(void)
{
	sent = dropped = received = answered = 0;
	port = hd_port_new(&(struct hd_port_options){ .unowned = true, .capacity = 1, .full = HD_FULL_BLOCK });
	MUST(port != NULL);
	MUST(send_counted(0) == 0);
	owner = 0;
}

static hd_pid start(hd_entry entry)
{
	hd_pid pid = hd_spawn_with(&(struct hd_spawn){ .port = port }, entry, NULL);

	MUST(pid > 0);
	return pid;
}

static void command(enum command what)
{
	int err = hd_send(commands, what, NULL, 0, HD_FOREVER);

	MUST(err == 0 || (err == -ESRCH && happens(CLOSE)));
}

static void kill_owner(void)
{
	int err = hd_kill(owner, 7);

	MUST(err == 0 || err == -ESRCH);
}

static void end_owner(void)
{
	command(END);
	MUST(hd_join(owner, NULL, HD_FOREVER) == 0);
	hd_port_release(commands);
}

/* Two ports of one owner: what is sent or called there; and commands. */
static struct hd_semaphore owner_is_up;

static void *own_both(void *arg)
{
	commands = hd_port_retain(hd_port_new(NULL));
	MUST(hd_semaphore_signal(&owner_is_up) == 0);
	return own_port(arg);
}

static void new_full_port_with_owner(void)
{
	new_full_port();
	hd_semaphore_init(&owner_is_up, 0);
	owner = start(own_both);
	MUST(hd_semaphore_wait(&owner_is_up, HD_FOREVER) == 0);
}

static void take_one(void)
{
	command(TAKE);
}

static void sent_is_sent(int got)
{
	end_owner();
	MUST(sent == got + 1);
	MUST(received <= sent);
	nothing_is_left();
}

/* ---- calls: an answer that was taken is an answer that was got ---- */

enum { CALLS_MAX = 2 };

/* Some keep the message until it is answered; some drop it, and keep a reference to the port for the answer. */
static bool keeps_port;

static void keep_call(struct hd_message *kept, struct hd_message *m)
{
	*kept = *m;
	if (!keeps_port)
		return;
	hd_port *reply = hd_port_retain(m->carried);
	hd_message_drop(m);
	*kept = (struct hd_message){ .carried = reply };
}

static int answer_call(struct hd_message *kept)
{
	return keeps_port ? hd_send(kept->carried, 4, "answer", 7, 0) : hd_reply(kept, 4, "answer", 7);
}

static void forget_call(struct hd_message *kept)
{
	if (keeps_port)
		hd_port_release(kept->carried);
	else
		hd_message_drop(kept);
}

static void *answer_calls(void *arg)
{
	struct hd_message m, held[CALLS_MAX];
	int credits = 0, count = 0;
	bool forgets = false;

	commands = hd_port_retain(hd_port_new(NULL));
	MUST(hd_semaphore_signal(&owner_is_up) == 0);
	while (hd_receive(NULL, &m, HD_FOREVER) == 0 && m.tag != END) {
		credits += m.port == commands && m.tag == ANSWER;
		forgets |= m.port == commands && m.tag == FORGET;
		if (m.port == port)
			keep_call(&held[count++], &m);
		while (count > 0 && (credits > 0 || forgets)) {
			if (!forgets) {
				int err = answer_call(&held[0]);
				MUST(err == 0 || err == -ESRCH); /* too late: the next one gets it */
				answered += err == 0;
				credits -= err == 0;
			}
			forget_call(&held[0]);
			held[0] = held[--count];
		}
	}
	return arg;
}

/* Receives nothing but commands until it is told to answer. */
static void *answer_late(void *arg)
{
	struct hd_message m;
	int credits = 0;

	commands = hd_port_retain(hd_port_new(NULL));
	MUST(hd_semaphore_signal(&owner_is_up) == 0);
	while (hd_receive(credits > 0 ? NULL : commands, &m, HD_FOREVER) == 0 && m.tag != END) {
		credits += m.port == commands && m.tag == ANSWER;
		int err = m.port == port ? hd_reply(&m, 4, "answer", 7) : -EINVAL;
		MUST(err == 0 || err == -ESRCH || err == -EINVAL); /* too late, or no call */
		answered += err == 0;
		credits -= err == 0;
		hd_message_drop(&m);
	}
	return arg;
}

/* Sends each call on, to the process that will answer. */
static hd_port *behind, *called;
static hd_pid front;

static void *pass_calls_on(void *arg)
{
	struct hd_message m;

	while (hd_receive(NULL, &m, HD_FOREVER) == 0 && m.carried != NULL) {
		int err = hd_send_with(behind, &(struct hd_sending){ .tag = m.tag, .carried = m.carried }, HD_FOREVER);
		MUST(err == 0 || (err == -ESRCH && happens(CLOSE)));
		hd_message_drop(&m);
	}
	return arg;
}

static void new_server_with(hd_entry entry, const struct hd_port_options *options, int messages)
{
	sent = dropped = received = answered = 0;
	front = 0;
	port = hd_port_new(options);
	MUST(port != NULL);
	while (messages-- > 0)
		MUST(send_counted(0) == 0);
	hd_semaphore_init(&owner_is_up, 0);
	owner = start(entry);
	MUST(hd_semaphore_wait(&owner_is_up, HD_FOREVER) == 0);
}

static void new_server(void)
{
	keeps_port = false;
	new_server_with(answer_calls, &(struct hd_port_options){ .unowned = true }, 0);
}

static void new_server_that_keeps_ports(void)
{
	keeps_port = true;
	new_server_with(answer_calls, &(struct hd_port_options){ .unowned = true }, 0);
}

static void new_late_server(void)
{
	new_server_with(answer_late, &(struct hd_port_options){ .unowned = true }, 0);
}

static void new_full_server(void)
{
	new_server_with(answer_late, &(struct hd_port_options){ .unowned = true, .capacity = 1, .full = HD_FULL_BLOCK }, 1);
}

static void new_forgetful_server(void)
{
	new_server_with(answer_late, &(struct hd_port_options){ .unowned = true, .capacity = 1, .full = HD_FULL_DROP_OLD }, 0);
}

/* The oldest message, the call if it is there, is dropped for this one. */
static void displace_call(void)
{
	MUST(send_counted(0) == 0);
}

static void new_two_servers(void)
{
	new_server();
	behind = port;
	hd_port *before = hd_port_new(&(struct hd_port_options){ .unowned = true });
	MUST(before != NULL);
	front = hd_spawn_with(&(struct hd_spawn){ .port = before }, pass_calls_on, NULL);
	MUST(front > 0);
	called = before;
}

static int wait_answer(hd_time until)
{
	struct hd_message m;
	int err = hd_call(front != 0 ? called : port, 3, NULL, 0, &m, until);

	if (err == 0) {
		MUST(m.tag == 4 && strcmp(m.data, "answer") == 0);
		received++;
		hd_message_drop(&m);
	}
	return err == -ESRCH ? -EPIPE : err;
}

static void answer_one(void)
{
	command(ANSWER);
}

static void forget_calls(void)
{
	command(FORGET);
}

static void answered_is_got(int got)
{
	if (front != 0) {
		MUST(hd_send(called, END, NULL, 0, HD_FOREVER) == 0);
		MUST(hd_join(front, NULL, HD_FOREVER) == 0);
		hd_port_release(called);
	}
	end_owner();
	MUST(received == got && answered == got);
	nothing_is_left();
}

static const struct primitive primitives[] = {
	{ "semaphore", new_semaphore, wait_semaphore, signal_semaphore, 2, NULL, count_signals, NULL, false, false },
	{ "critical section", new_semaphore, wait_critical, signal_semaphore, 1, NULL, one_signal_left, NULL, false, false },
	{ "mutex", lock_fifo, wait_mutex, unlock_mutex, 1, NULL, mutex_is_free, NULL, false, true },
	{ "barging mutex", lock_barging, wait_mutex, unlock_mutex, 1, NULL, mutex_is_free, NULL, false, true },
	{ "mutex by priority", lock_by_priority, wait_mutex, unlock_mutex, 1, NULL, mutex_is_free, NULL, false, true },
	{ "inheriting mutex", lock_inherit, wait_mutex, unlock_mutex, 1, NULL, mutex_is_free, NULL, false, true },
	{ "monitor", new_monitor, wait_monitor, signal_monitor, 2, NULL, count_ready, NULL, false, false },
	{ "barging monitor", new_barging_monitor, wait_monitor, signal_monitor, 2, NULL, count_ready, NULL, false, false },
	{ "rwlock", write_fair, wait_rwlock, unlock_rwlock, 1, NULL, rwlock_is_free, NULL, false, false },
	{ "rwlock for readers", write_readers, wait_rwlock, unlock_rwlock, 1, NULL, rwlock_is_free, NULL, false, false },
	{ "rwlock for writers", write_writers, wait_rwlock, unlock_rwlock, 1, NULL, rwlock_is_free, NULL, false, false },
	{ "barrier", new_barrier, wait_barrier, come_to_barrier, 1, NULL, three_passed, come_instead, false, false },
	{ "once", begin_once, wait_once, finish_once, 1, NULL, done_once, NULL, false, false },
	{ "event", new_event, wait_event, set_event, 1, NULL, event_is_set, NULL, false, false },
	{ "auto event", new_auto_event, wait_event, set_event, 2, NULL, auto_event_adds_up, NULL, true, false },
	{ "wait group", new_waitgroup, wait_waitgroup, done_waitgroup, 1, NULL, waitgroup_is_done, NULL, false, false },
	{ "promise", new_promise, wait_promise, set_promise, 1, fail_promise, promise_is_settled, NULL, false, false },
	{ "queue, to take", new_empty_queue, wait_next, put_item, 2, close_queue, items_add_up, NULL, false, false },
	{ "queue, to put", new_full_queue, wait_put, take_item, 2, close_queue, items_add_up, NULL, false, false },
	{ "ordered queue, to take", new_empty_order, wait_next, put_item, 2, close_queue, items_add_up, NULL, false, false },
	{ "ordered queue, to put", new_full_order, wait_put, take_item, 2, close_queue, items_add_up, NULL, false, false },
	{ "rendezvous, to take", new_rendezvous, wait_next, put_item, 2, close_queue, items_add_up, take_instead, false,
	  false },
	{ "rendezvous, to put", new_rendezvous, wait_put, take_item, 2, close_queue, items_add_up, put_instead, false, false },
	{ "rendezvous, select", new_two_rendezvous, wait_to_meet, give_meeting, 2, close_two, meetings_add_up, meet_instead,
	  false, false },
	{ "select", new_choice, wait_choice, give_choice, 2, close_queue, choices_add_up, NULL, false, false },
	{ "join", new_target, wait_join, let_target_end, 1, NULL, target_is_joined_once, NULL, true, false },
	{ "group", new_group, wait_group, let_target_end, 1, NULL, nobody_is_left, NULL, true, false },
	{ "receive", new_port_for_victim, wait_receive, send_one, 1, NULL, sent_is_received, NULL, true, false },
	{ "receive, one kind", new_port_with_others, wait_receive_tag, send_one, 1, NULL, sent_is_received, NULL, true, false },
	{ "receive, select", new_port_for_victim, wait_select_receive, send_one, 1, NULL, sent_is_received, NULL, true, false },
	{ "send, owner ends", new_full_port_with_owner, send_counted, take_one, 2, kill_owner, sent_is_sent, NULL, false,
	  false },
	{ "call, dropped", new_server, wait_answer, answer_one, 2, forget_calls, answered_is_got, NULL, false, false },
	{ "call, holder ends", new_server, wait_answer, answer_one, 2, kill_owner, answered_is_got, NULL, false, false },
	{ "call, passed on", new_two_servers, wait_answer, answer_one, 2, kill_owner, answered_is_got, NULL, false, false },
	{ "receive, released", new_port_for_victim, wait_receive_any, send_and_release, 1, NULL, sent_is_received, NULL, true,
	  false },
	{ "call, released", new_server_that_keeps_ports, wait_answer, answer_one, 2, forget_calls, answered_is_got, NULL, false,
	  false },
	{ "call, owner ends", new_late_server, wait_answer, answer_one, 2, kill_owner, answered_is_got, NULL, false, false },
	{ "call, full port", new_full_server, wait_answer, answer_one, 2, kill_owner, answered_is_got, NULL, false, false },
	{ "call, displaced", new_forgetful_server, wait_answer, answer_one, 1, displace_call, answered_is_got, NULL, true,
	  false },
	{ "receive, timer", new_port_for_timer, wait_timer, set_timer, 1, cancel_timer, sent_is_received, NULL, true, false },
};
const size_t primitive_count = sizeof primitives / sizeof primitives[0];

const char *primitive_name(size_t i)
{
	return primitives[i].name;
}

bool can_happen(size_t primitive, enum event e)
{
	return e != CLOSE || primitives[primitive].close != NULL;
}

/* ---- the race ---- */

static struct hd_semaphore arranged, go, settled;
static hd_pid victim_pid;
static int bystander_result, deadline;
static bool stopped_waiting; /* the victim still waited when it had been suspended */

static void *giver(void *arg)
{
	now->arrange();
	hd_semaphore_signal(&arranged);
	MUST(hd_semaphore_wait(happens(GRANT) ? &go : &settled, HD_FOREVER) == 0);
	now->give();
	if (happens(GRANT))
		MUST(hd_semaphore_wait(&settled, HD_FOREVER) == 0);
	for (int i = 1; i < now->gifts; i++)
		now->give();
	return arg;
}

static void *victim(void *arg)
{
	victim_result = now->wait(happens(TIMEOUT) ? hd_after(HD_US(deadline)) : HD_FOREVER);
	return arg;
}

static void *bystander(void *arg)
{
	bystander_result = now->wait(HD_FOREVER);
	return arg;
}

static void *perform(void *arg)
{
	int err = 0;

	MUST(hd_semaphore_wait(&go, HD_FOREVER) == 0);
	switch (*(enum event *)arg) {
	case CANCEL:
		err = hd_cancel(victim_pid);
		break;
	case SUSPEND:
		err = hd_suspend(victim_pid, HD_FOREVER);
		if (err == 0) {
			struct hd_process_info info;
			stopped_waiting = hd_process_info(victim_pid, &info) == 0 && info.state == HD_WAITING &&
					  info.why != HD_WAIT_REST; /* that wait is over, and it waits for its members to end */
		}
		break;
	case TERMINATE:
		err = hd_terminate(victim_pid, HD_FOREVER);
		break;
	case CLOSE:
		now->close();
		break;
	default:
		break;
	}
	MUST(err == 0 || err == -ESRCH);
	return NULL;
}

/* The victim may be stopped till the end; and what stops it may wait for what is given at the end. */
static void *let_go_on(void *arg)
{
	int err = hd_resume(victim_pid);

	MUST(err == 0 || err == -EALREADY || err == -ESRCH);
	return arg;
}

static void check_victim(const struct hd_end *end)
{
	switch (victim_result) {
	case NOT_BACK:
		MUST(end->kind == HD_END_KILLED && happens(TERMINATE));
		return;
	case -ETIMEDOUT:
		MUST(happens(TIMEOUT));
		break;
	case -ECANCELED:
		MUST(happens(CANCEL) && !now->hears_no_cancel);
		break;
	case -EPIPE:
		MUST(happens(CLOSE));
		break;
	default:
		MUST(victim_result == 0);
	}
	MUST(end->kind == HD_END_RETURNED || (end->kind == HD_END_KILLED && happens(TERMINATE)));
}

/* Which of the two came first. */
static enum event winner(void)
{
	static const struct {
		int result;
		enum event by;
	} ended[] = {
		{ 0, GRANT }, { -ETIMEDOUT, TIMEOUT }, { -ECANCELED, CANCEL }, { NOT_BACK, TERMINATE }, { -EPIPE, CLOSE }
	};

	if (stopped_waiting)
		return SUSPEND;
	for (size_t i = 0; i < sizeof ended / sizeof ended[0]; i++)
		if (ended[i].result == victim_result && happens(ended[i].by))
			return ended[i].by;
	return EVENTS;
}

enum event race(size_t primitive, enum event a, enum event b, int delay)
{
	hd_pid performers[2], giver_pid, bystander_pid = 0;
	struct hd_end end;

	now = &primitives[primitive];
	events[0] = a;
	events[1] = b;
	deadline = delay;
	given = inside = turn = 0;
	victims_port = NULL;
	victim_result = NOT_BACK;
	bystander_result = 0;
	stopped_waiting = false;
	hd_semaphore_init(&arranged, 0);
	hd_semaphore_init(&go, 0);
	hd_semaphore_init(&settled, 0);
	giver_pid = hd_spawn(giver, NULL);
	MUST(hd_semaphore_wait(&arranged, HD_FOREVER) == 0);
	victim_pid = hd_spawn_with(&(struct hd_spawn){ .port = victims_port }, victim, NULL);
	for (int i = 0; i < 2; i++)
		performers[i] = hd_spawn(perform, &events[i]);
	for (int i = 0; i < 3; i++)
		hd_semaphore_signal(&go);
	if (!now->alone)
		bystander_pid = hd_spawn(bystander, NULL);
	if (happens(SUSPEND)) /* whoever suspends it has, or it has ended */
		for (int i = 0; i < 2; i++)
			if (events[i] == SUSPEND)
				MUST(hd_join(performers[i], NULL, HD_FOREVER) == 0);
	hd_pid resumer = hd_spawn(let_go_on, NULL);
	for (int i = 0; i < 2; i++)
		if (events[i] != SUSPEND && events[i] != TERMINATE)
			MUST(hd_join(performers[i], NULL, HD_FOREVER) == 0);
	hd_semaphore_signal(&settled);
	MUST(hd_join_end(victim_pid, &end, HD_FOREVER) == 0);
	for (int i = 0; i < 2; i++)
		if (events[i] == TERMINATE)
			MUST(hd_join(performers[i], NULL, HD_FOREVER) == 0);
	MUST(hd_join(resumer, NULL, HD_FOREVER) == 0);
	check_victim(&end);
	if (now->mend != NULL)
		now->mend(victim_result == 0);
	if (bystander_pid != 0) {
		MUST(hd_join(bystander_pid, NULL, HD_FOREVER) == 0);
		MUST(bystander_result == 0 || (bystander_result == -EPIPE && happens(CLOSE)));
	}
	MUST(hd_join(giver_pid, NULL, HD_FOREVER) == 0);
	int got = (victim_result == 0) + (bystander_pid != 0 && bystander_result == 0);
	now->check(got);
	return winner();
}
