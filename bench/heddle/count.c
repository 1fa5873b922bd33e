/* count.c - n operations and nothing else, for counting instructions.
 *
 * Running n and 2n of them under callgrind and taking the difference leaves what n operations execute: start, end and the
 * loops' set-up cancel out (see bench/instructions). */
#include "../harness.h"
#include "cases.h"

enum { WORKERS_MAX = 64 };

static long rounds;
static int begun[2], over[2]; /* pipes, to and from the processes that keep the other workers */
static hd_pid keepers[WORKERS_MAX];

static void *keep_worker(void *arg)
{
	char byte = 0;

	if (write(begun[1], &byte, 1) != 1 || read(over[0], &byte, 1) != 0)
		bench_die("keep_worker", EIO);
	return arg;
}

/* Puts a process on each worker but the caller's, where it keeps the worker in a system call: such a worker executes nothing
 * and takes no process from us. Without this a run differs from the next: an idle worker takes one of two processes early, or
 * late, or not at all, and a process alone on its worker yields for a third of the price. What is counted with several workers
 * is therefore what the caller's worker does about the existence of the others, and not what the others do. */
static void keep_other_workers(void)
{
	char byte;

	if (bench_workers() > WORKERS_MAX)
		bench_die("too many workers", EINVAL);
	if (pipe(begun) != 0 || pipe(over) != 0)
		bench_die("pipe", errno);
	for (unsigned i = 1; i < bench_workers(); i++) {
		keepers[i] = bench_ok(hd_spawn(keep_worker, NULL), "hd_spawn");
		if (read(begun[0], &byte, 1) != 1) /* keeps this worker meanwhile, so that an idle one takes the process */
			bench_die("read", errno);
	}
}

static void free_other_workers(void)
{
	close(over[1]);
	for (unsigned i = 1; i < bench_workers(); i++)
		bench_ok(hd_join(keepers[i], NULL, HD_FOREVER), "hd_join");
}

/* Runs entry(0) and entry(1), both on the caller's worker. */
static void run_two(hd_entry entry)
{
	keep_other_workers();
	hd_pid a = bench_ok(hd_spawn(entry, (void *)0), "hd_spawn");
	hd_pid b = bench_ok(hd_spawn(entry, (void *)1), "hd_spawn");

	bench_ok(hd_join(a, NULL, HD_FOREVER), "hd_join");
	bench_ok(hd_join(b, NULL, HD_FOREVER), "hd_join");
	free_other_workers();
}

static void *yielder(void *arg)
{
	(void)arg;
	for (long i = rounds; i > 0; i--)
		hd_yield();
	return NULL;
}

/* n yields, each a switch to the other of two processes. */
void count_yield(long n)
{
	rounds = n / 2;
	run_two(yielder);
}

static struct hd_semaphore turn[2];

static void *player(void *arg)
{
	intptr_t me = (intptr_t)arg;

	for (long i = rounds; i > 0 && hd_semaphore_wait(&turn[me], HD_FOREVER) == 0; i--)
		hd_semaphore_signal(&turn[1 - me]);
	return NULL;
}

/* n hops, each one signal, one wait and the switch between them: half a round trip. */
void count_semaphore_hop(long n)
{
	rounds = n / 2;
	hd_semaphore_signal(&turn[0]);
	run_two(player);
}

static void *nothing(void *arg)
{
	return arg;
}

/* n processes spawned, run and joined, one after another. */
void count_spawn_join(long n)
{
	for (long i = 0; i < n; i++)
		bench_ok(hd_join(bench_ok(hd_spawn(nothing, NULL), "hd_spawn"), NULL, HD_FOREVER), "hd_join");
}

/* n times one lock and one unlock of a mutex that no other process wants. */
void count_mutex_pair(long n)
{
	static struct hd_mutex mutex;

	for (long i = 0; i < n; i++) {
		bench_ok(hd_mutex_lock(&mutex, HD_FOREVER), "hd_mutex_lock");
		bench_ok(hd_mutex_unlock(&mutex), "hd_mutex_unlock");
	}
}

/* n items of 8 bytes put into a bounded queue and taken out again, each before the next, by one process. */
void count_queue_pair(long n)
{
	hd_queue *q = hd_queue_new(sizeof(int64_t), BENCH_QUEUE_CAPACITY);
	int64_t item, sum = 0;

	if (q == NULL)
		bench_die("hd_queue_new", ENOMEM);
	for (int64_t i = 1; i <= n; i++) {
		bench_ok(hd_queue_put(q, &i, HD_FOREVER), "hd_queue_put");
		bench_ok(hd_queue_next(q, &item, HD_FOREVER), "hd_queue_next");
		sum += item;
	}
	bench_same("sum of the items", sum, bench_sum(n));
	hd_queue_drop(q);
}

/* n messages without data sent to a port and received again, each before the next, by one process. */
void count_send_pair(long n)
{
	hd_port *port = hd_port_new(NULL);
	struct hd_message m;
	int64_t sum = 0;

	if (port == NULL)
		bench_die("hd_port_new", ENOMEM);
	for (int64_t i = 1; i <= n; i++) {
		bench_ok(hd_send(port, i, NULL, 0, HD_FOREVER), "hd_send");
		bench_ok(hd_receive(port, &m, HD_FOREVER), "hd_receive");
		sum += m.tag;
		hd_message_drop(&m);
	}
	bench_same("sum of the tags", sum, bench_sum(n));
	hd_port_release(port);
}

static hd_port *asked; /* by the process that has an argument; the other one answers */

static void *caller_or_answerer(void *arg)
{
	struct hd_message m;

	for (long i = rounds; i > 0; i--)
		if (arg != NULL) {
			bench_ok(hd_call(asked, 1, NULL, 0, &m, HD_FOREVER), "hd_call");
			hd_message_drop(&m);
		} else {
			bench_ok(hd_receive(asked, &m, HD_FOREVER), "hd_receive");
			bench_ok(hd_reply(&m, 1, NULL, 0), "hd_reply");
			hd_message_drop(&m);
		}
	return NULL;
}

/* n calls without data from one process to another, each with its answer: round trips. */
void count_call(long n)
{
	rounds = n;
	asked = hd_port_new(&(struct hd_port_options){ .unowned = true });
	if (asked == NULL)
		bench_die("hd_port_new", ENOMEM);
	hd_pid answers =
		bench_ok(hd_spawn_with(&(struct hd_spawn){ .port = asked }, caller_or_answerer, NULL), "hd_spawn_with");
	hd_pid calls = bench_ok(hd_spawn(caller_or_answerer, &rounds), "hd_spawn");

	bench_ok(hd_join(calls, NULL, HD_FOREVER), "hd_join");
	bench_ok(hd_join(answers, NULL, HD_FOREVER), "hd_join");
	hd_port_release(asked);
}
