/* subject.c - programs to look into from outside: `subject WHAT [N]` comes to a certain state, prints "ready", and stays there until it is killed.
 *
 *   crowd N      N processes wait for as many semaphores
 *   deadlock     two processes wait for each other's mutex; one waits for that of a process that has ended; one only sleeps
 *   loops        every worker runs a loop without heddle calls, with processes ready behind it
 *   thread       a plain thread has a mutex that two processes wait for
 *   inversion    one worker: a high process waits for a low one's mutex, and one between the two runs
 *   kinds        a process in each kind of wait, machines and behaviours among them
 *   preempted    one worker: a process that computes was stopped by a signal, and never gets its worker back
 *   chaos        processes come, go, wait, and talk to each other, without end
 *   over         hd_run has returned */
#define _GNU_SOURCE
#include <errno.h>
#include <heddle.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void check(bool condition, const char *what)
{
	if (!condition) {
		fprintf(stderr, "subject: %s\n", what);
		_exit(3);
	}
}

static hd_pid spawn(const char *name, hd_entry entry, void *arg)
{
	hd_pid pid = hd_spawn_with(&(struct hd_spawn){ .name = name }, entry, arg);

	check(pid > 0, "hd_spawn");
	return pid;
}

static void say_ready(void)
{
	printf("ready\n");
	fflush(stdout);
}

static void rest(void)
{
	for (;;)
		if (hd_sleep(HD_SEC(1000)) != 0)
			return;
}

/* Until all processes that were spawned wait, or stay where they are. */
static void settle(void)
{
	check(hd_sleep(HD_MS(50)) == 0, "hd_sleep");
}

/* ---- crowd ---- */

static struct hd_semaphore *seats;

static void *sit(void *arg)
{
	return hd_semaphore_wait(arg, HD_FOREVER) == 0 ? arg : NULL;
}

static void *crowd(void *arg)
{
	long n = *(long *)arg;

	seats = calloc((size_t)n, sizeof *seats);
	check(seats != NULL, "calloc");
	for (long i = 0; i < n; i++)
		check(hd_spawn(sit, &seats[i]) > 0, "hd_spawn");
	hd_set_priority(hd_self(), HD_PRIORITY_LOWEST); /* runs again when all wait */
	settle();
	say_ready();
	rest();
	return NULL;
}

/* ---- deadlock ---- */

static struct hd_mutex left, right, lost;
static struct hd_barrier both = HD_BARRIER(2);

static void *take_both(void *arg)
{
	struct hd_mutex *one = arg, *other = one == &left ? &right : &left;

	check(hd_mutex_lock(one, HD_FOREVER) == 0 && hd_barrier_wait(&both, HD_FOREVER) >= 0, "the first mutex");
	check(hd_mutex_lock(other, HD_FOREVER) == 0, "the second mutex");
	return NULL;
}

static void *lose(void *arg)
{
	check(hd_mutex_lock(&lost, HD_FOREVER) == 0, "hd_mutex_lock");
	return arg;
}

static void *seek(void *arg)
{
	check(hd_mutex_lock(&lost, HD_FOREVER) == 0, "hd_mutex_lock");
	return arg;
}

static void *deadlock(void *arg)
{
	check(hd_join(spawn("loser", lose, NULL), NULL, HD_FOREVER) == 0, "hd_join");
	spawn("seeker", seek, NULL);
	spawn("ann", take_both, &left);
	spawn("bob", take_both, &right);
	settle();
	say_ready();
	rest();
	return arg;
}

/* ---- loops ---- */

static atomic_int looping;
static int wanted_loops;

static void *loop(void *arg)
{
	if (atomic_fetch_add(&looping, 1) + 1 == wanted_loops)
		say_ready();
	for (volatile unsigned long n = 0;; n++)
		;
	return arg;
}

static void *idle(void *arg)
{
	return arg;
}

static void *loops(void *arg)
{
	struct hd_stats stats;

	check(hd_stats(&stats) == 0, "hd_stats");
	wanted_loops = (int)stats.workers;
	for (int i = 1; i < wanted_loops; i++)
		spawn("spinner", loop, NULL);
	while (atomic_load(&looping) < wanted_loops - 1) /* the other workers take them */
		hd_yield();
	spawn("starved", idle, NULL);
	return loop(arg);
}

/* ---- thread ---- */

static struct hd_mutex foreign;
static pthread_barrier_t locked;

static void *keep(void *arg)
{
	check(hd_mutex_lock(&foreign, HD_FOREVER) == 0, "hd_mutex_lock");
	pthread_barrier_wait(&locked);
	for (;;)
		pause();
	return arg;
}

static void *want(void *arg)
{
	check(hd_mutex_lock(&foreign, HD_FOREVER) == 0, "hd_mutex_lock");
	return arg;
}

static void *thread(void *arg)
{
	pthread_t keeper;

	check(pthread_barrier_init(&locked, NULL, 2) == 0, "pthread_barrier_init");
	check(pthread_create(&keeper, NULL, keep, NULL) == 0, "pthread_create");
	pthread_setname_np(keeper, "keeper");
	pthread_barrier_wait(&locked);
	spawn("first", want, NULL);
	spawn("second", want, NULL);
	settle();
	say_ready();
	rest();
	return arg;
}

/* ---- inversion ---- */

static struct hd_mutex shared;

static void *high(void *arg)
{
	check(hd_mutex_lock(&shared, HD_FOREVER) == 0, "hd_mutex_lock");
	return arg;
}

static void *middle(void *arg)
{
	check(hd_spawn_with(&(struct hd_spawn){ .name = "high", .priority = 70 }, high, NULL) > 0, "hd_spawn");
	say_ready();
	for (volatile unsigned long n = 0;; n++)
		;
	return arg;
}

static void *low(void *arg)
{
	check(hd_mutex_lock(&shared, HD_FOREVER) == 0, "hd_mutex_lock");
	check(hd_spawn_with(&(struct hd_spawn){ .name = "middle", .priority = 50 }, middle, NULL) > 0, "hd_spawn");
	return arg;
}

static void *inversion(void *arg)
{
	check(hd_spawn_with(&(struct hd_spawn){ .name = "low", .priority = 20 }, low, NULL) > 0, "hd_spawn");
	rest();
	return arg;
}

/* ---- preempted ---- */

static atomic_bool spins;

__attribute__((noinline)) static unsigned long spin_for_ever(volatile unsigned long *n)
{
	for (;; ++*n)
		atomic_store(&spins, true);
	return *n;
}

static void *victim(void *arg)
{
	volatile unsigned long n = 0;

	return spin_for_ever(&n) > 0 ? arg : NULL;
}

static void *robber(void *arg)
{
	while (!atomic_load(&spins))
		hd_yield();
	say_ready();
	for (volatile unsigned long n = 0;; n++)
		;
	return arg;
}

static void *preempted(void *arg)
{
	check(hd_spawn_with(&(struct hd_spawn){ .name = "victim" }, victim, NULL) > 0, "hd_spawn");
	check(hd_set_priority(hd_self(), HD_PRIORITY_TIMING) == 0, "hd_set_priority");
	while (!atomic_load(&spins))
		check(hd_sleep(HD_MS(1)) == 0, "hd_sleep");
	return robber(arg); /* of a higher priority: it has taken the worker from the victim */
}

/* ---- kinds ---- */

static struct hd_semaphore no_signal;
static struct hd_monitor room;
static struct hd_rwlock book;
static struct hd_barrier never = HD_BARRIER(100);
static struct hd_event not_set;
static struct hd_waitgroup undone = HD_WAITGROUP(1);
static struct hd_mutex inherited = HD_MUTEX(HD_INHERIT);
static hd_promise *promise;
static hd_queue *empty, *full;
static hd_port *server_port;
static hd_cown *cown;
static int ends[2];
static hd_pid joined;

static void *in_semaphore(void *arg)
{
	return hd_semaphore_wait(&no_signal, HD_FOREVER) == 0 ? arg : NULL;
}

static void *in_deadline(void *arg)
{
	return hd_semaphore_wait(&no_signal, hd_after(HD_SEC(1000))) == 0 ? arg : NULL;
}

static void *in_condition(void *arg)
{
	check(hd_monitor_enter(&room, HD_FOREVER) == 0, "hd_monitor_enter");
	return hd_monitor_wait(&room, NULL, HD_FOREVER) == 0 ? arg : NULL;
}

static void *with_book(void *arg)
{
	check(hd_rwlock_write(&book, HD_FOREVER) == 0, "hd_rwlock_write");
	rest();
	return arg;
}

static void *in_read(void *arg)
{
	return hd_rwlock_read(&book, HD_FOREVER) == 0 ? arg : NULL;
}

static void *in_write(void *arg)
{
	return hd_rwlock_write(&book, HD_FOREVER) == 0 ? arg : NULL;
}

static void *in_barrier(void *arg)
{
	return hd_barrier_wait(&never, HD_FOREVER) == 0 ? arg : NULL;
}

static void *in_event(void *arg)
{
	return hd_event_wait(&not_set, HD_FOREVER) == 0 ? arg : NULL;
}

static void *in_waitgroup(void *arg)
{
	return hd_waitgroup_wait(&undone, HD_FOREVER) == 0 ? arg : NULL;
}

static void *in_promise(void *arg)
{
	return hd_promise_value(promise, NULL, HD_FOREVER) == 0 ? arg : NULL;
}

static void *in_next(void *arg)
{
	void *item;
	return hd_queue_next(empty, &item, HD_FOREVER) == 0 ? arg : NULL;
}

static void *in_put(void *arg)
{
	void *item = NULL;
	return hd_queue_put(full, &item, HD_FOREVER) == 0 ? arg : NULL;
}

static void *in_join(void *arg)
{
	return hd_join(joined, NULL, HD_FOREVER) == 0 ? arg : NULL;
}

static void *in_fd(void *arg)
{
	char byte;
	return hd_read(ends[0], &byte, 1, HD_FOREVER) == 1 ? arg : NULL;
}

static void *in_receive(void *arg)
{
	struct hd_message m;
	hd_port *port = hd_port_new(NULL);

	check(port != NULL, "hd_port_new");
	return hd_receive(port, &m, HD_FOREVER) == 0 ? arg : NULL;
}

static void *server(void *arg)
{
	struct hd_message m;

	check(hd_receive(server_port, &m, HD_FOREVER) == 0, "hd_receive");
	rest(); /* and does not answer */
	return arg;
}

static void *in_call(void *arg)
{
	struct hd_message reply;
	return hd_call(server_port, 1, NULL, 0, &reply, HD_FOREVER) == 0 ? arg : NULL;
}

static void *with_mutex(void *arg)
{
	check(hd_mutex_lock(&inherited, HD_FOREVER) == 0, "hd_mutex_lock");
	rest();
	return arg;
}

static void *in_mutex(void *arg)
{
	return hd_mutex_lock(&inherited, HD_FOREVER) == 0 ? arg : NULL;
}

static void first_behaviour(void *arg, void *const data[])
{
	(void)arg;
	(void)data;
	check(hd_semaphore_wait(&no_signal, HD_FOREVER) == 0, "hd_semaphore_wait");
}

static void second_behaviour(void *arg, void *const data[])
{
	(void)arg;
	(void)data;
}

static struct hd_interrupt interpret(void *self, uint64_t budget)
{
	(void)self;
	(void)budget;
	return hd_want_message(NULL, HD_FOREVER);
}

static const struct hd_machine_ops machine_ops = { .interpret = interpret };

static void *kinds(void *arg)
{
	void *item = NULL;

	check(hd_pin() == 0, "hd_pin"); /* all are born where we are, one after the other: so their numbers are known */
	promise = hd_promise_new();
	empty = hd_queue_new(sizeof item, 0);
	full = hd_queue_new(sizeof item, 1);
	server_port = hd_port_new(&(struct hd_port_options){ .unowned = true });
	cown = hd_cown_new(NULL, NULL);
	check(promise != NULL && empty != NULL && full != NULL && server_port != NULL && cown != NULL && pipe(ends) == 0,
	      "memory");
	check(hd_queue_put(full, &item, HD_FOREVER) == 0, "hd_queue_put");
	spawn("in semaphore", in_semaphore, NULL);
	spawn("in deadline", in_deadline, NULL);
	spawn("in condition", in_condition, NULL);
	spawn("with book", with_book, NULL);
	settle();
	spawn("in read", in_read, NULL);
	spawn("in write", in_write, NULL);
	spawn("in barrier", in_barrier, NULL);
	spawn("in event", in_event, NULL);
	spawn("in wait group", in_waitgroup, NULL);
	spawn("in promise", in_promise, NULL);
	spawn("in next", in_next, NULL);
	spawn("in put", in_put, NULL);
	joined = spawn("joined", in_semaphore, NULL);
	spawn("in join", in_join, NULL);
	spawn("in fd", in_fd, NULL);
	spawn("in receive", in_receive, NULL);
	check(hd_spawn_with(&(struct hd_spawn){ .name = "server", .port = server_port }, server, NULL) > 0, "hd_spawn");
	spawn("in call", in_call, NULL);
	check(hd_spawn_with(&(struct hd_spawn){ .name = "with mutex", .priority = 30 }, with_mutex, NULL) > 0, "hd_spawn");
	check(hd_spawn_with(
		      &(struct hd_spawn){ .name = "quoted \"name\" \\", .suspended = true, .daemon = true, .policy = HD_RR },
		      in_semaphore, NULL) > 0,
	      "hd_spawn");
	spawn("zombie", idle, NULL);
	check(hd_spawn_with(&(struct hd_spawn){ .name = "machine", .machine = &machine_ops }, NULL, NULL) > 0, "hd_spawn");
	check(hd_when_batch(&(struct hd_when){ .fn = first_behaviour, .uses = &cown, .n = 1, .flags = HD_WHEN_MAY_BLOCK }, 1) ==
		      0,
	      "hd_when_batch");
	settle();
	check(hd_when(second_behaviour, NULL, cown) == 0, "hd_when");
	check(hd_spawn_with(&(struct hd_spawn){ .name = "in mutex", .priority = 60 }, in_mutex, NULL) > 0, "hd_spawn");
	settle();
	say_ready();
	rest();
	return arg;
}

/* ---- chaos ---- */

#define FRIENDS 200
static struct hd_mutex locks[8];
static struct hd_semaphore tokens = HD_SEMAPHORE(20);

static unsigned next_random(unsigned *state)
{
	*state = *state * 1103515245 + 12345;
	return *state >> 16;
}

static void *short_life(void *arg)
{
	struct hd_mutex *m = arg;

	if (hd_mutex_lock(m, hd_after(HD_US(500))) == 0) {
		hd_yield();
		hd_mutex_unlock(m);
	}
	return NULL;
}

static void *friend_of_all(void *arg)
{
	unsigned state = (unsigned)(uintptr_t)arg;

	for (;;)
		switch (next_random(&state) % 5) {
		case 0: {
			hd_pid pid = hd_spawn_with(
				&(struct hd_spawn){ .name = "child", .priority = 10 + (int)(next_random(&state) % 71) },
				short_life, &locks[next_random(&state) % 8]);
			if (pid > 0 && hd_join(pid, NULL, HD_FOREVER) != 0)
				return NULL;
			break;
		}
		case 1: {
			struct hd_mutex *m = &locks[next_random(&state) % 8];
			if (hd_mutex_lock(m, HD_FOREVER) != 0)
				return NULL;
			if (next_random(&state) % 2)
				hd_yield();
			hd_mutex_unlock(m);
			break;
		}
		case 2:
			if (hd_semaphore_wait(&tokens, HD_FOREVER) != 0)
				return NULL;
			hd_yield();
			hd_semaphore_signal(&tokens);
			break;
		case 3:
			if (hd_sleep(HD_US(next_random(&state) % 300)) != 0)
				return NULL;
			break;
		default:
			if (hd_when(second_behaviour, NULL, cown) != 0)
				return NULL;
		}
}

static void *chaos(void *arg)
{
	cown = hd_cown_new(NULL, NULL);
	check(cown != NULL, "hd_cown_new");
	for (uintptr_t i = 1; i <= FRIENDS; i++)
		spawn("friend", friend_of_all, (void *)(i * 7919));
	say_ready();
	rest();
	return arg;
}

/* ---- */

static const struct {
	const char *name;
	hd_entry first;
} subjects[] = { { "crowd", crowd },   { "deadlock", deadlock },   { "loops", loops },
		 { "thread", thread }, { "inversion", inversion }, { "preempted", preempted },
		 { "kinds", kinds },   { "chaos", chaos },	   { "over", idle } };

int main(int argc, char **argv)
{
	long n = argc > 2 ? strtol(argv[2], NULL, 10) : 10;

	for (size_t i = 0; argc > 1 && i < sizeof subjects / sizeof subjects[0]; i++)
		if (strcmp(subjects[i].name, argv[1]) == 0) {
			int err = hd_run(NULL, subjects[i].first, &n);
			if (err < 0) {
				fprintf(stderr, "subject: %s\n", hd_error(err));
				return 3;
			}
			say_ready();
			pause();
			return 0;
		}
	fprintf(stderr, "subject: crowd, deadlock, loops, thread, inversion, preempted, kinds, chaos or over?\n");
	return 2;
}
