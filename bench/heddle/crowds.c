/* crowds.c - n processes that wait for one thing, for every primitive. */
#include "crowds.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIRST 10 /* priority of the first process: it runs when no other can */
#define LEVELS 71

static const struct crowd *crowd;
static int size;
static hd_pid *pids;
static struct hd_semaphore start, here, served;
static int came, gone;
static void (*on_begin)(void), (*on_end)(void);

static struct hd_semaphore semaphore;
static struct hd_mutex mutex;
static struct hd_monitor monitor;
static struct hd_rwlock rwlock;
static struct hd_barrier barrier;
static struct hd_event event;
static struct hd_once once;
static struct hd_waitgroup waitgroup;
static struct hd_group group;
static hd_queue *queue;
static hd_port *port; /* the first process's */
static hd_promise *promise, **promises;

static int64_t must(int64_t answer, const char *what)
{
	if (answer < 0) {
		fprintf(stderr, "%s: %s: %s\n", crowd->name, what, strerror((int)-answer));
		exit(1);
	}
	return answer;
}
#define MUST(call) must((call), #call)

/* Lets every other process run until it waits. */
static void let_run(void)
{
	MUST(hd_sleep_until(0));
	hd_yield();
}

static void cancel_all(int n)
{
	for (int i = n - 1; i >= 0; i--)
		MUST(hd_cancel(pids[i]));
}

static void is_cancelled(int answer)
{
	if (answer != -ECANCELED)
		must(-EPROTO, "a wait that was to be cancelled");
}

/* ---- semaphore ---- */

static void semaphore_wait(int i)
{
	(void)i;
	MUST(hd_semaphore_wait(&semaphore, HD_FOREVER));
}

static void semaphore_serve(int n)
{
	while (n-- > 0)
		MUST(hd_semaphore_signal(&semaphore));
}

static void semaphore_leave(int i)
{
	(void)i;
	is_cancelled(hd_semaphore_wait(&semaphore, HD_FOREVER));
}

/* ---- mutex ---- */

static void mutex_prepare(int n)
{
	(void)n;
	hd_mutex_init(&mutex, crowd->flags);
	MUST(hd_mutex_lock(&mutex, HD_FOREVER));
}

static void mutex_wait(int i)
{
	(void)i;
	MUST(hd_mutex_lock(&mutex, HD_FOREVER));
	MUST(hd_mutex_unlock(&mutex));
}

static void mutex_serve(int n)
{
	(void)n;
	MUST(hd_mutex_unlock(&mutex));
}

/* Their priorities change while they wait. */
static void mutex_change_and_serve(int n)
{
	for (int i = 0; i < n; i++)
		MUST(hd_set_priority(pids[i], 10 + (i * 5 + 3) % LEVELS));
	MUST(hd_mutex_unlock(&mutex));
}

/* ---- port ---- */

static void port_prepare(int n)
{
	(void)n;
	port = hd_port_new(NULL);
	MUST(port == NULL ? -ENOMEM : 0);
}

static void call_wait(int i)
{
	MUST(hd_call(port, i, NULL, 0, NULL, HD_FOREVER));
}

static void call_leave(int i)
{
	is_cancelled(hd_call(port, i, NULL, 0, NULL, HD_FOREVER));
}

static void call_serve(int n)
{
	while (n-- > 0) {
		struct hd_message m;
		MUST(hd_receive(port, &m, HD_FOREVER));
		MUST(hd_reply(&m, 0, NULL, 0));
		hd_message_drop(&m);
	}
}

static void call_change_and_serve(int n)
{
	for (int i = 0; i < n; i++)
		MUST(hd_set_priority(pids[i], 10 + (i * 5 + 3) % LEVELS));
	call_serve(n);
}

static void *answer_calls(void *arg)
{
	call_serve((int)(intptr_t)arg);
	return NULL;
}

/* All are in the port, then held, then another process's, which answers them. */
static void call_pass_and_serve(int n)
{
	hd_port *first_port = port;
	struct hd_message *held = calloc((size_t)n, sizeof *held);

	MUST(held == NULL ? -ENOMEM : 0);
	for (int i = 0; i < n; i++)
		MUST(hd_receive(first_port, &held[i], HD_FOREVER));
	port = hd_port_new(&(struct hd_port_options){ .unowned = true });
	MUST(port == NULL ? -ENOMEM : 0);
	hd_pid other = MUST(hd_spawn_with(&(struct hd_spawn){ .port = port }, answer_calls, (void *)(intptr_t)n));
	for (int i = 0; i < n; i++) {
		MUST(hd_send_with(port, &(struct hd_sending){ .carried = held[i].carried }, HD_FOREVER));
		hd_message_drop(&held[i]);
	}
	MUST(hd_join(other, NULL, HD_FOREVER));
	hd_port_release(port);
	free(held);
}

/* ---- monitor ---- */

static void monitor_prepare(int n)
{
	(void)n;
	hd_monitor_init(&monitor, crowd->flags);
}

static void monitor_wait(int i)
{
	(void)i;
	MUST(hd_monitor_enter(&monitor, HD_FOREVER));
	MUST(hd_monitor_wait(&monitor, NULL, HD_FOREVER));
	MUST(hd_monitor_exit(&monitor));
}

static void monitor_signal_all(int n)
{
	(void)n;
	MUST(hd_monitor_enter(&monitor, HD_FOREVER));
	MUST(hd_monitor_signal_all(&monitor, NULL));
	MUST(hd_monitor_exit(&monitor));
}

static void monitor_signal_each(int n)
{
	MUST(hd_monitor_enter(&monitor, HD_FOREVER));
	while (n-- > 0)
		MUST(hd_monitor_signal(&monitor, NULL));
	MUST(hd_monitor_exit(&monitor));
}

/* ---- rwlock ---- */

static void rwlock_written(int n)
{
	(void)n;
	hd_rwlock_init(&rwlock, crowd->flags);
	MUST(hd_rwlock_write(&rwlock, HD_FOREVER));
}

static void rwlock_read(int n)
{
	(void)n;
	hd_rwlock_init(&rwlock, crowd->flags);
	MUST(hd_rwlock_read(&rwlock, HD_FOREVER));
}

static void wait_to_read(int i)
{
	(void)i;
	MUST(hd_rwlock_read(&rwlock, HD_FOREVER));
	MUST(hd_rwlock_unlock(&rwlock));
}

static void wait_to_write(int i)
{
	(void)i;
	MUST(hd_rwlock_write(&rwlock, HD_FOREVER));
	MUST(hd_rwlock_unlock(&rwlock));
}

static void wait_to_read_or_write(int i)
{
	if (i % 2 == 0)
		wait_to_read(i);
	else
		wait_to_write(i);
}

/* The first waits to write, the others to read: they wait for the first. */
static void wait_behind_a_writer(int i)
{
	if (i == 0)
		is_cancelled(hd_rwlock_write(&rwlock, HD_FOREVER));
	else
		wait_to_read(i);
}

static void rwlock_serve(int n)
{
	(void)n;
	MUST(hd_rwlock_unlock(&rwlock));
}

/* Others pass the waiters by. */
static void rwlock_pass_and_serve(int n)
{
	while (n-- > 0) {
		int err = hd_rwlock_try_read(&rwlock);
		if (err == 0)
			MUST(hd_rwlock_unlock(&rwlock));
		else if (err != -EAGAIN)
			must(err, "hd_rwlock_try_read");
	}
	MUST(hd_rwlock_unlock(&rwlock));
}

static void rwlock_cancel_writer(int n)
{
	(void)n;
	MUST(hd_cancel(pids[0]));
	let_run();
	MUST(hd_rwlock_unlock(&rwlock));
}

static void leave_rwlock(int i)
{
	is_cancelled(i % 2 == 0 ? hd_rwlock_read(&rwlock, HD_FOREVER) : hd_rwlock_write(&rwlock, HD_FOREVER));
}

/* ---- barrier, event, once, wait group ---- */

static void barrier_prepare(int n)
{
	hd_barrier_init(&barrier, (unsigned)n + 1);
}

static void barrier_wait(int i)
{
	(void)i;
	MUST(hd_barrier_wait(&barrier, HD_FOREVER));
}

static void barrier_serve(int n)
{
	barrier_wait(n);
}

static void barrier_leave(int i)
{
	(void)i;
	is_cancelled(hd_barrier_wait(&barrier, HD_FOREVER));
}

static void event_prepare(int n)
{
	(void)n;
	hd_event_init(&event, crowd->flags);
}

static void event_wait(int i)
{
	(void)i;
	MUST(hd_event_wait(&event, HD_FOREVER));
}

static void event_serve(int n)
{
	for (int times = crowd->flags & HD_EVENT_AUTO ? n : 1; times > 0; times--)
		MUST(hd_event_set(&event));
}

static void do_once(void *arg)
{
	(void)arg;
	MUST(hd_semaphore_wait(&semaphore, HD_FOREVER));
}

static void once_prepare(int n)
{
	(void)n;
	once = (struct hd_once){ 0 };
}

static void once_wait(int i)
{
	(void)i;
	MUST(hd_once(&once, do_once, NULL, HD_FOREVER));
}

static void once_serve(int n)
{
	(void)n;
	MUST(hd_semaphore_signal(&semaphore));
}

static void waitgroup_prepare(int n)
{
	hd_waitgroup_init(&waitgroup, (unsigned)n);
}

static void waitgroup_wait(int i)
{
	(void)i;
	MUST(hd_waitgroup_wait(&waitgroup, HD_FOREVER));
}

static void waitgroup_serve(int n)
{
	while (n-- > 0)
		MUST(hd_waitgroup_done(&waitgroup));
}

/* ---- promise ---- */

static void promise_prepare(int n)
{
	(void)n;
	promise = hd_promise_new();
	MUST(promise == NULL ? -ENOMEM : 0);
}

static void promise_wait(int i)
{
	(void)i;
	MUST(hd_promise_value(promise, NULL, HD_FOREVER));
}

static void promise_serve(int n)
{
	(void)n;
	MUST(hd_promise_set(promise, NULL));
	let_run();
	hd_promise_release(promise);
}

static void promises_prepare(int n)
{
	promises = malloc((size_t)n * sizeof(*promises));
	MUST(promises == NULL ? -ENOMEM : 0);
	for (int i = 0; i < n; i++) {
		promises[i] = hd_promise_new();
		MUST(promises[i] == NULL ? -ENOMEM : 0);
	}
}

static void promises_release(int n)
{
	for (int i = 0; i < n; i++)
		hd_promise_release(promises[i]);
	free(promises);
}

/* One process waits for n promises. */
static void wait_for_any(int i)
{
	if (i == 0 && hd_promise_any(promises, (size_t)size, HD_FOREVER) != -EIO)
		must(-EPROTO, "hd_promise_any of failures");
}

static void fail_each(int n)
{
	for (int i = 0; i < n; i++) {
		MUST(hd_promise_fail(promises[i], EIO));
		let_run();
	}
	promises_release(n);
}

static void wait_for_all(int i)
{
	if (i == 0)
		MUST(hd_promise_all(promises, (size_t)size, HD_FOREVER));
}

static void set_each(int n)
{
	for (int i = 0; i < n; i++) {
		MUST(hd_promise_set(promises[i], NULL));
		let_run();
	}
	promises_release(n);
}

/* ---- queue ---- */

static void queue_prepare(int n)
{
	const int item = n;

	queue = hd_queue_new(sizeof(int), 1);
	MUST(queue == NULL ? -ENOMEM : 0);
	if (crowd->flags)
		MUST(hd_queue_put(queue, &item, HD_FOREVER));
}

/* Items with keys that come in no order, as many as there are processes; each takes one. */
static void order_prepare(int n)
{
	(void)n;
	queue = hd_queue_new_ordered(sizeof(int64_t), crowd->flags, 0);
	MUST(queue == NULL ? -ENOMEM : 0);
}

static void order_put(int i)
{
	const int64_t key = (int64_t)i * 7919 % 10007;

	MUST(hd_queue_put(queue, &key, HD_FOREVER));
}

static void order_take_all(int n)
{
	int64_t item, last = -1;

	while (n-- > 0) {
		MUST(hd_queue_next(queue, &item, HD_FOREVER));
		must(crowd->flags == 0 && item < last ? -EPROTO : 0, "the order of an ordered queue");
		last = item;
	}
	let_run();
	hd_queue_drop(queue);
}

static void rendezvous_prepare(int n)
{
	(void)n;
	queue = hd_queue_new_rendezvous(sizeof(int));
	MUST(queue == NULL ? -ENOMEM : 0);
}

static void rendezvous_select(int i)
{
	struct hd_case cases[] = { hd_case_semaphore(&semaphore), hd_case_next(queue, &i) };

	MUST(hd_select(cases, 2, HD_FOREVER));
	MUST(cases[1].err);
}

static void queue_take(int i)
{
	MUST(hd_queue_next(queue, &i, HD_FOREVER));
}

static void queue_put(int i)
{
	MUST(hd_queue_put(queue, &i, HD_FOREVER));
}

static void queue_find_closed(int i)
{
	if (hd_queue_next(queue, &i, HD_FOREVER) != -EPIPE)
		must(-EPROTO, "hd_queue_next of a closed queue");
}

static void queue_serve(int n)
{
	int item = n;

	while (n-- > 0)
		if (crowd->flags)
			MUST(hd_queue_next(queue, &item, HD_FOREVER));
		else
			MUST(hd_queue_put(queue, &item, HD_FOREVER));
	let_run();
	hd_queue_drop(queue);
}

static void queue_close(int n)
{
	(void)n;
	MUST(hd_queue_close(queue));
	let_run();
	hd_queue_drop(queue);
}

static void select_wait(int i)
{
	struct hd_case cases[] = { hd_case_semaphore(&semaphore), hd_case_next(queue, &i) };

	MUST(hd_select(cases, 2, HD_FOREVER));
}

static void select_serve(int n)
{
	semaphore_serve(n);
	let_run();
	hd_queue_drop(queue);
}

/* ---- processes ---- */

static void *member(void *arg)
{
	MUST(hd_semaphore_wait(&semaphore, HD_FOREVER));
	return arg;
}

/* One process waits for a group of n. */
static void group_wait(int i)
{
	if (i != 0)
		return;
	group = (struct hd_group){ 0 };
	for (int k = 0; k < size; k++)
		MUST(hd_group_spawn(&group, member, NULL));
	MUST(hd_group_wait(&group, HD_FOREVER));
}

static void sleep_long(int i)
{
	is_cancelled(hd_sleep(HD_SEC(1000 + i % 100)));
}

const struct crowd crowds[] = {
	{ "semaphore", NULL, semaphore_wait, semaphore_serve },
	{ "semaphore, cancelled", NULL, semaphore_leave, cancel_all },
	{ "mutex", mutex_prepare, mutex_wait, mutex_serve },
	{ "mutex in order", mutex_prepare, mutex_wait, mutex_serve, .flags = HD_IN_ORDER },
	{ "mutex by priority", mutex_prepare, mutex_wait, mutex_serve, true, HD_BY_PRIORITY },
	{ "mutex by changing priority", mutex_prepare, mutex_wait, mutex_change_and_serve, true, HD_BY_PRIORITY },
	{ "inheriting mutex", mutex_prepare, mutex_wait, mutex_serve, true, HD_INHERIT },
	{ "inheriting by priority", mutex_prepare, mutex_wait, mutex_serve, true, HD_INHERIT | HD_BY_PRIORITY },
	{ "monitor, signal all", monitor_prepare, monitor_wait, monitor_signal_all },
	{ "monitor, signal each", monitor_prepare, monitor_wait, monitor_signal_each },
	{ "inheriting monitor", monitor_prepare, monitor_wait, monitor_signal_all, true, HD_INHERIT | HD_BY_PRIORITY },
	{ "rwlock, readers", rwlock_written, wait_to_read, rwlock_serve },
	{ "rwlock, writers", rwlock_read, wait_to_write, rwlock_serve },
	{ "rwlock, both", rwlock_written, wait_to_read_or_write, rwlock_serve },
	{ "rwlock, a writer leaves", rwlock_read, wait_behind_a_writer, rwlock_cancel_writer },
	{ "rwlock, cancelled", rwlock_written, leave_rwlock, cancel_all },
	{ "rwlock for readers, readers", rwlock_written, wait_to_read, rwlock_serve, .flags = HD_PREFER_READERS },
	{ "rwlock for readers, passed", rwlock_read, wait_to_write, rwlock_pass_and_serve, .flags = HD_PREFER_READERS },
	{ "rwlock for readers, both", rwlock_written, wait_to_read_or_write, rwlock_serve, .flags = HD_PREFER_READERS },
	{ "rwlock for writers, readers", rwlock_written, wait_to_read, rwlock_serve, .flags = HD_PREFER_WRITERS },
	{ "rwlock for writers, both", rwlock_written, wait_to_read_or_write, rwlock_serve, .flags = HD_PREFER_WRITERS },
	{ "barrier", barrier_prepare, barrier_wait, barrier_serve },
	{ "barrier, cancelled", barrier_prepare, barrier_leave, cancel_all },
	{ "event", event_prepare, event_wait, event_serve },
	{ "auto event", event_prepare, event_wait, event_serve, .flags = HD_EVENT_AUTO },
	{ "once", once_prepare, once_wait, once_serve },
	{ "wait group", waitgroup_prepare, waitgroup_wait, waitgroup_serve },
	{ "promise", promise_prepare, promise_wait, promise_serve },
	{ "any of n promises", promises_prepare, wait_for_any, fail_each },
	{ "all of n promises", promises_prepare, wait_for_all, set_each },
	{ "queue, to take", queue_prepare, queue_take, queue_serve },
	{ "queue, to put", queue_prepare, queue_put, queue_serve, .flags = 1 },
	{ "queue, closed", queue_prepare, queue_find_closed, queue_close },
	{ "ordered queue, filled", order_prepare, order_put, order_take_all },
	{ "ordered queue, to put", order_prepare, order_put, order_take_all, .flags = 1 },
	{ "rendezvous, to take", rendezvous_prepare, queue_take, queue_serve },
	{ "rendezvous, to put", rendezvous_prepare, queue_put, queue_serve, .flags = 1 },
	{ "rendezvous, select", rendezvous_prepare, rendezvous_select, queue_serve },
	{ "rendezvous, closed", rendezvous_prepare, queue_find_closed, queue_close },
	{ "select", queue_prepare, select_wait, select_serve },
	{ "group", NULL, group_wait, semaphore_serve },
	{ "sleep, cancelled", NULL, sleep_long, cancel_all },
	{ "call", port_prepare, call_wait, call_serve },
	{ "call, lending", port_prepare, call_wait, call_serve, true },
	{ "call, lending, changed", port_prepare, call_wait, call_change_and_serve, true },
	{ "call, lending, passed on", port_prepare, call_wait, call_pass_and_serve, true },
	{ "call, lending, cancelled", port_prepare, call_leave, cancel_all, true },
	{ NULL },
};

static void *one_of_them(void *arg)
{
	int i = (int)(intptr_t)arg;

	MUST(hd_semaphore_wait(&start, HD_FOREVER));
	if (++came == size)
		MUST(hd_semaphore_signal(&here));
	crowd->wait(i);
	if (++gone == size)
		MUST(hd_semaphore_signal(&served));
	return NULL;
}

static void *first(void *arg)
{
	MUST(hd_set_priority(hd_self(), FIRST));
	for (int i = 0; i < size; i++)
		pids[i] = MUST(hd_spawn_at(crowd->spread ? 10 + i * 7 % LEVELS : 40, one_of_them, (void *)(intptr_t)i));
	let_run();
	if (crowd->prepare != NULL)
		crowd->prepare(size);
	on_begin();
	for (int i = 0; i < size; i++)
		MUST(hd_semaphore_signal(&start));
	MUST(hd_semaphore_wait(&here, HD_FOREVER));
	let_run(); /* the last of them comes to wait */
	crowd->serve(size);
	MUST(hd_semaphore_wait(&served, HD_FOREVER));
	on_end();
	for (int i = 0; i < size; i++)
		MUST(hd_join(pids[i], NULL, HD_FOREVER));
	return arg;
}

void crowd_run(const struct crowd *which, int n, void (*begin)(void), void (*end)(void))
{
	const struct hd_config config = { .fixed = true, .workers = 1 };

	crowd = which;
	size = n;
	came = gone = 0;
	on_begin = begin;
	on_end = end;
	pids = malloc((size_t)n * sizeof(*pids));
	MUST(pids == NULL ? -ENOMEM : 0);
	MUST(hd_run(&config, first, NULL));
	free(pids);
}
