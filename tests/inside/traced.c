/* traced.c - programs to be traced, measured and watched from outside: `traced WHAT [N]` prints "ready" when it is.
 *
 *   talk    pairs that talk to each other, in several ways, without end
 *   slow    one of them: a process that sleeps for a millisecond, again and again
 *   brief   the first process spawns 100 children, one after the other, and joins them; it ends
 *   stuck   two processes wait for each other's mutex: a deadlock; it ends
 *   ill     two workers: on one a process computes without heddle calls, the other is blocked in the kernel; three processes wait for a worker; one has used
 *           most of its stack
 *   flood   a process sends, and none receives */
#include <heddle.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void check(bool condition, const char *what)
{
	if (!condition) {
		fprintf(stderr, "traced: %s\n", what);
		exit(3);
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

/* ---- talk ---- */

static struct hd_semaphore to_ping, to_pong;
static hd_port *sink, *service;

static void *ping(void *arg)
{
	do
		hd_semaphore_signal(&to_pong);
	while (hd_semaphore_wait(&to_ping, HD_FOREVER) == 0 && hd_sleep(HD_US(100)) == 0);
	return arg;
}

static void *pong(void *arg)
{
	while (hd_semaphore_wait(&to_pong, HD_FOREVER) == 0)
		hd_semaphore_signal(&to_ping);
	return arg;
}

static void *sender(void *arg)
{
	while (hd_send(sink, 1, "hello", 6, HD_FOREVER) == 0 && hd_sleep(HD_US(100)) == 0)
		;
	return arg;
}

static void *receiver(void *arg)
{
	struct hd_message m;

	while (hd_receive(sink, &m, HD_FOREVER) == 0)
		hd_message_drop(&m);
	return arg;
}

static void *server(void *arg)
{
	struct hd_message m;

	while (hd_receive(service, &m, HD_FOREVER) == 0) {
		check(hd_reply(&m, 0, NULL, 0) == 0, "hd_reply");
		hd_message_drop(&m);
	}
	return arg;
}

static void *client(void *arg)
{
	struct hd_message reply;

	while (hd_call(service, 1, NULL, 0, &reply, HD_FOREVER) == 0 && hd_sleep(HD_US(100)) == 0)
		hd_message_drop(&reply);
	return arg;
}

static void *sleeper(void *arg)
{
	while (hd_sleep(HD_MS(1)) == 0)
		;
	return arg;
}

static void *child(void *arg)
{
	return arg;
}

static void *parent(void *arg)
{
	while (hd_sleep(HD_US(500)) == 0)
		check(hd_join(spawn("child", child, NULL), NULL, HD_FOREVER) == 0, "hd_join");
	return arg;
}

static void *talk(void *arg)
{
	sink = hd_port_new(&(struct hd_port_options){ .unowned = true });
	service = hd_port_new(&(struct hd_port_options){ .unowned = true });
	check(sink != NULL && service != NULL, "hd_port_new");
	spawn("ping", ping, NULL);
	spawn("pong", pong, NULL);
	check(hd_spawn_with(&(struct hd_spawn){ .name = "receiver", .port = sink }, receiver, NULL) > 0, "hd_spawn_with");
	check(hd_spawn_with(&(struct hd_spawn){ .name = "server", .port = service }, server, NULL) > 0, "hd_spawn_with");
	spawn("sender", sender, NULL);
	spawn("client", client, NULL);
	spawn("sleeper", sleeper, NULL);
	spawn("parent", parent, NULL);
	say_ready();
	return arg;
}

static void *slow(void *arg)
{
	say_ready();
	return sleeper(arg);
}

/* ---- brief ---- */

static void *brief(void *arg)
{
	for (int i = 0; i < 100; i++)
		check(hd_join(spawn("child", child, NULL), NULL, HD_FOREVER) == 0, "hd_join");
	say_ready();
	return arg;
}

/* ---- stuck ---- */

static struct hd_mutex forks[2];
static struct hd_barrier both = HD_BARRIER(2);

static void *diner(void *arg)
{
	long first = *(long *)arg;

	check(hd_mutex_lock(&forks[first], HD_FOREVER) == 0, "hd_mutex_lock");
	check(hd_barrier_wait(&both, HD_FOREVER) >= 0, "hd_barrier_wait");
	check(hd_mutex_lock(&forks[1 - first], HD_FOREVER) == 0, "hd_mutex_lock");
	return arg;
}

static void *stuck(void *arg)
{
	static long sides[] = { 0, 1 };

	spawn("left", diner, &sides[0]);
	spawn("right", diner, &sides[1]);
	say_ready();
	return arg;
}

/* ---- ill ---- */

static int never[2];
static struct hd_semaphore no_signal;

/* A plain thread says when all is as it should be: no worker can. */
static void *say_later(void *arg)
{
	for (;;) {
		struct hd_process_counts counts;
		check(hd_count_processes(&counts) == 0, "hd_count_processes");
		if (counts.states[HD_READY] == 3 && counts.states[HD_RUNNING] == 2 && counts.states[HD_WAITING] == 1)
			break;
		usleep(1000);
	}
	say_ready();
	return arg;
}

static bool has_begun;

static void *hog(void *arg)
{
	__atomic_store_n(&has_begun, true, __ATOMIC_RELAXED);
	for (volatile unsigned long n = 0;; n++)
		;
	return arg;
}

static void *blocked(void *arg)
{
	char byte;

	check(read(never[0], &byte, 1) == 1, "read");
	return arg;
}

static void *deep(void *arg)
{
	volatile char used[56 << 10];

	for (size_t i = 0; i < sizeof used; i += 512)
		used[i] = 1;
	return hd_semaphore_wait(&no_signal, HD_FOREVER) == 0 ? arg : NULL;
}

static void *ill(void *arg)
{
	pthread_t thread;

	check(pipe(never) == 0, "pipe");
	check(hd_spawn_with(&(struct hd_spawn){ .name = "deep", .priority = 70 }, deep, NULL) > 0, "hd_spawn_with");
	check(hd_sleep(HD_MS(20)) == 0, "hd_sleep");
	spawn("hog", hog, NULL);
	while (!__atomic_load_n(&has_begun, __ATOMIC_RELAXED)) /* on the other worker: we keep ours */
		;
	for (int i = 0; i < 3; i++)
		check(hd_spawn_with(&(struct hd_spawn){ .name = "starved", .priority = 20 }, child, NULL) > 0, "hd_spawn_with");
	check(pthread_create(&thread, NULL, say_later, NULL) == 0, "pthread_create");
	check(hd_set_priority(hd_self(), HD_PRIORITY_USER) >= 0, "hd_set_priority");
	return blocked(arg);
}

/* ---- flood ---- */

static void *flood(void *arg)
{
	hd_port *port = hd_port_new(NULL);

	check(port != NULL, "hd_port_new");
	say_ready();
	while (hd_send(port, 1, NULL, 0, HD_FOREVER) == 0 && hd_sleep(HD_US(200)) == 0)
		;
	return arg;
}

/* ---- */

static const struct {
	const char *name;
	hd_entry first;
} programs[] = {
	{ "talk", talk }, { "slow", slow }, { "brief", brief }, { "stuck", stuck }, { "ill", ill }, { "flood", flood }
};

int main(int argc, char **argv)
{
	for (size_t i = 0; argc > 1 && i < sizeof programs / sizeof programs[0]; i++)
		if (strcmp(programs[i].name, argv[1]) == 0) {
			int err = hd_run(NULL, programs[i].first, NULL);
			if (err < 0)
				fprintf(stderr, "traced: %s\n", hd_error(err));
			return err < 0;
		}
	fprintf(stderr, "traced: talk, slow, brief, stuck, ill or flood?\n");
	return 2;
}
