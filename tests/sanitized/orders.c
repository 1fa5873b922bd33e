/* sanitized/orders.c - everything in heddle that orders what two processes do: TSan must be told of each.
 *
 * Compiled with -fsanitize=thread, against the library as it is installed. Each case writes a plain variable in one process and reads it in
 * another, which must be allowed to. */
#include <errno.h>
#include <heddle.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(cond) ((cond) ? (void)0 : fail(__LINE__, #cond))

static void fail(int line, const char *what)
{
	fprintf(stderr, "orders.c:%d: CHECK(%s)\n", line, what);
	abort();
}

static int shared;
static struct hd_semaphore *semaphore;
static struct hd_mutex mutex;
static struct hd_monitor monitor;
static struct hd_condition condition;
static struct hd_rwlock rwlock;
static struct hd_barrier barrier = HD_BARRIER(2);
static struct hd_event event;
static struct hd_waitgroup waitgroup;
static struct hd_once once;
static hd_queue *queue;
static hd_promise *promise;
static hd_noticeboard *board;
static int ready;

struct item {
	int numbers[12]; /* larger than what is copied at once */
};

/* Two roles for each thing: the writer's process begins with `give`, the reader's with `take`. */
static void *semaphore_give(void *arg)
{
	struct hd_semaphore *s = semaphore;

	shared++;
	CHECK(hd_semaphore_signal(s) == 0);
	return arg;
}

static void *semaphore_take(void *arg)
{
	CHECK(hd_semaphore_wait(semaphore, HD_FOREVER) == 0);
	shared++;
	return arg;
}

static void *mutex_count(void *arg)
{
	for (int i = 0; i < 20; i++) {
		CHECK(hd_mutex_lock(&mutex, HD_FOREVER) == 0);
		shared++;
		if (i % 3 == 0)
			hd_yield();
		CHECK(hd_mutex_unlock(&mutex) == 0);
	}
	return arg;
}

static void *monitor_give(void *arg)
{
	CHECK(hd_monitor_enter(&monitor, HD_FOREVER) == 0);
	shared++;
	ready = 1;
	CHECK(hd_monitor_signal(&monitor, &condition) == 0);
	CHECK(hd_monitor_exit(&monitor) == 0);
	return arg;
}

static void *monitor_take(void *arg)
{
	CHECK(hd_monitor_enter(&monitor, HD_FOREVER) == 0);
	while (!ready)
		CHECK(hd_monitor_wait(&monitor, &condition, HD_FOREVER) == 0);
	ready = 0;
	shared++;
	CHECK(hd_monitor_exit(&monitor) == 0);
	return arg;
}

static void *rwlock_write(void *arg)
{
	CHECK(hd_rwlock_write(&rwlock, HD_FOREVER) == 0);
	shared++;
	hd_yield();
	CHECK(hd_rwlock_unlock(&rwlock) == 0);
	return arg;
}

static void *rwlock_read(void *arg)
{
	CHECK(hd_rwlock_read(&rwlock, HD_FOREVER) == 0);
	int seen = shared;
	hd_yield();
	CHECK(shared == seen);
	CHECK(hd_rwlock_unlock(&rwlock) == 0);
	return arg;
}

static void *barrier_first(void *arg)
{
	shared++;
	CHECK(hd_barrier_wait(&barrier, HD_FOREVER) >= 0);
	CHECK(hd_barrier_wait(&barrier, HD_FOREVER) >= 0);
	shared++;
	return arg;
}

static void *barrier_second(void *arg)
{
	CHECK(hd_barrier_wait(&barrier, HD_FOREVER) >= 0);
	shared++;
	CHECK(hd_barrier_wait(&barrier, HD_FOREVER) >= 0);
	return arg;
}

static void *event_give(void *arg)
{
	shared++;
	CHECK(hd_event_set(&event) == 0);
	return arg;
}

static void *event_take(void *arg)
{
	CHECK(hd_event_wait(&event, HD_FOREVER) == 0);
	shared++;
	return arg;
}

static void *waitgroup_give(void *arg)
{
	shared++;
	CHECK(hd_waitgroup_done(&waitgroup) == 0);
	return arg;
}

static void *waitgroup_take(void *arg)
{
	CHECK(hd_waitgroup_wait(&waitgroup, HD_FOREVER) == 0);
	shared++;
	return arg;
}

static void init(void *arg)
{
	hd_yield();
	*(int *)arg += 1;
}

static void *once_do(void *arg)
{
	CHECK(hd_once(&once, init, &shared, HD_FOREVER) == 0);
	CHECK(shared > 0);
	return arg;
}

static void *queue_give(void *arg)
{
	for (int i = 0; i < 40; i++) {
		struct item item;
		memset(&item, i, sizeof item);
		CHECK(hd_queue_put(queue, &item, HD_FOREVER) == 0);
	}
	return arg;
}

static void *queue_take(void *arg)
{
	for (int i = 0; i < 40; i++) {
		struct item item, expected;
		memset(&expected, i, sizeof expected);
		CHECK(hd_queue_next(queue, &item, HD_FOREVER) == 0);
		CHECK(memcmp(&item, &expected, sizeof item) == 0);
	}
	return arg;
}

static void *promise_give(void *arg)
{
	shared++;
	CHECK(hd_promise_set(promise, &shared) == 0);
	return arg;
}

static void *promise_take(void *arg)
{
	void *value;

	CHECK(hd_promise_value(promise, &value, HD_FOREVER) == 0);
	++*(int *)value;
	return arg;
}

static void *promise_poll(void *arg)
{
	while (!hd_promise_has_value(promise))
		hd_yield();
	shared++;
	return arg;
}

static void *board_give(void *arg)
{
	struct item item;

	memset(&item, 1, sizeof item);
	shared++;
	hd_noticeboard_publish(board, &item);
	return arg;
}

static void *board_take(void *arg)
{
	struct item item;

	while (hd_noticeboard_read(board, &item) == 1)
		hd_yield();
	CHECK(item.numbers[11] == item.numbers[0] && item.numbers[0] != 0);
	shared++;
	return arg;
}

static void *select_take(void *arg)
{
	struct hd_case cases[] = { hd_case_semaphore(semaphore), hd_case_time(HD_FOREVER) };

	CHECK(hd_select(cases, 2, HD_FOREVER) == 0);
	shared++;
	return arg;
}

static void together(hd_entry give, hd_entry take, int taker_first)
{
	hd_pid a = hd_spawn(taker_first ? take : give, NULL), b;

	if (taker_first == 1)
		hd_sleep(HD_MS(1)); /* it waits by now, or not yet: both must do */
	b = hd_spawn(taker_first ? give : take, NULL);
	CHECK(hd_join(a, NULL, HD_FOREVER) == 0 && hd_join(b, NULL, HD_FOREVER) == 0);
	shared++;
}

static void *add_one(void *arg)
{
	++*(int *)arg;
	return arg;
}

static void *cancelled(void *arg)
{
	CHECK(hd_sleep(HD_SEC(1000)) == -ECANCELED);
	++*(int *)arg;
	return arg;
}

/* Asks, and does not wait. */
static void *asks(void *arg)
{
	while (hd_test_cancel() == 0)
		hd_yield();
	++*(int *)arg;
	return arg;
}

/* Spawn, join, suspended start, cancel, terminate, group. */
static void lives(void)
{
	int mine = 0;
	hd_pid pid = hd_spawn(add_one, &mine);

	CHECK(hd_join(pid, NULL, HD_FOREVER) == 0 && mine == 1);
	pid = hd_spawn_with(&(struct hd_spawn){ .suspended = true }, add_one, &mine);
	hd_yield();
	mine++; /* it has not begun */
	CHECK(hd_resume(pid) == 0 && hd_join(pid, NULL, HD_FOREVER) == 0 && mine == 3);
	pid = hd_spawn(cancelled, &mine);
	hd_sleep(HD_MS(1));
	mine++;
	CHECK(hd_cancel(pid) == 0 && hd_join(pid, NULL, HD_FOREVER) == 0 && mine == 5);
	pid = hd_spawn(asks, &mine);
	hd_sleep(HD_MS(1));
	mine--;
	CHECK(hd_cancel(pid) == 0 && hd_join(pid, NULL, HD_FOREVER) == 0 && mine == 5);
	struct hd_group group = { 0 };
	mine++;
	CHECK(hd_group_spawn(&group, add_one, &mine) > 0);
	CHECK(hd_group_wait(&group, HD_FOREVER) == 0 && mine == 7);
}

/* A pinned process may use thread-local variables between its calls, like the others that are pinned to that thread. */
static _Thread_local int of_the_thread;

__attribute__((noinline)) static volatile int *thread_variable(void) /* gcc does not have TSan look at it by its name */
{
	__asm__ volatile("");
	return &of_the_thread;
}

static void *pinned(void *arg)
{
	CHECK(hd_pin() == 0);
	for (int i = 0; i < 10; i++) {
		*thread_variable() = i;
		CHECK(*thread_variable() == i);
		hd_yield();
	}
	CHECK(hd_unpin() == 0);
	errno = 3;
	hd_yield();
	CHECK(errno == 3);
	return arg;
}

static void *use_stack(void *arg)
{
	volatile int numbers[100];

	for (int i = 0; i < 100; i++)
		numbers[i] = (int)(intptr_t)arg;
	return (void *)(intptr_t)numbers[(intptr_t)arg];
}

/* Processes that end without having met: each has the stack of one before it. */
static void crowd(hd_entry entry)
{
	enum { CROWD = 12 };
	hd_pid pid[CROWD];

	for (intptr_t i = 0; i < CROWD; i++)
		pid[i] = hd_spawn(entry, (void *)i);
	for (int i = 0; i < CROWD; i++)
		CHECK(hd_join(pid[i], NULL, HD_FOREVER) == 0);
}

static void *plain_thread(void *arg)
{
	shared++;
	CHECK(hd_semaphore_signal(semaphore) == 0);
	CHECK(hd_semaphore_wait((struct hd_semaphore *)arg, HD_FOREVER) == 0);
	shared++;
	return arg;
}

static void with_plain_thread(void)
{
	struct hd_semaphore back = HD_SEMAPHORE(0);
	pthread_t thread;

	CHECK(pthread_create(&thread, NULL, plain_thread, &back) == 0);
	CHECK(hd_semaphore_wait(semaphore, HD_FOREVER) == 0);
	shared++;
	CHECK(hd_semaphore_signal(&back) == 0);
	CHECK(pthread_join(thread, NULL) == 0);
	shared++;
}

static void *all(void *arg)
{
	for (int way = 0; way < 3; way++) {
		semaphore = calloc(1, sizeof *semaphore); /* of each way another one, which is freed */
		together(semaphore_give, semaphore_take, way);
		together(semaphore_give, select_take, way);
		free(semaphore);
		together(mutex_count, mutex_count, way);
		together(monitor_give, monitor_take, way);
		together(rwlock_write, rwlock_read, way);
		together(barrier_first, barrier_second, way);
		event = (struct hd_event)HD_EVENT(0);
		together(event_give, event_take, way);
		CHECK(hd_waitgroup_add(&waitgroup, 1) == 0);
		together(waitgroup_give, waitgroup_take, way);
		once = (struct hd_once){ 0 };
		together(once_do, once_do, way);
		for (size_t kind = 0; kind < 6; kind++) {
			if (kind < 3)
				queue = hd_queue_new(sizeof(struct item), kind);
			else if (kind < 5)
				queue = hd_queue_new_ordered(sizeof(struct item), kind - 3,
							     0); /* each key is above the one before */
			else
				queue = hd_queue_new_rendezvous(sizeof(struct item));
			together(queue_give, queue_take, way);
			hd_queue_drop(queue);
		}
		hd_entry takers[] = { promise_take, promise_poll };
		for (int i = 0; i < 2; i++) {
			promise = hd_promise_new();
			together(promise_give, takers[i], way);
			hd_promise_release(promise);
		}
		board = hd_noticeboard_new(&(struct item){ { 0 } }, sizeof(struct item));
		CHECK(board != NULL);
		together(board_give, board_take, way);
		hd_noticeboard_drop(board);
		crowd(pinned);
		crowd(use_stack);
	}
	lives();
	semaphore = calloc(1, sizeof *semaphore);
	with_plain_thread();
	free(semaphore);
	shared++;
	return arg;
}

int main(void)
{
	for (int workers = 1; workers <= 8; workers *= 2) {
		CHECK(hd_run(&(struct hd_config){ .workers = (unsigned)workers, .fixed = true }, all, NULL) == 0);
		shared++;
	}
	return 0;
}
