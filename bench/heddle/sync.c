/* sync.c - what it costs to share: a mutex that many want, bounded queues, a condition, promises, a choice among queues. */
#include <stdatomic.h>

#include "../harness.h"
#include "cases.h"

enum { CROWD = 1000 };

static long rounds; /* of every process of the running repetition */
static hd_pid pids[CROWD];

static double time_all(int count, hd_entry entry)
{
	double start = bench_now();
	for (int i = 0; i < count; i++)
		pids[i] = bench_ok(hd_spawn(entry, (void *)(intptr_t)i), "hd_spawn");
	for (int i = 0; i < count; i++)
		bench_ok(hd_join(pids[i], NULL, HD_FOREVER), "hd_join");
	return bench_now() - start;
}

static struct hd_mutex mutex;
static long counter; /* the mutex guards it */

static void *contender(void *arg)
{
	for (long i = rounds; i > 0 && hd_mutex_lock(&mutex, HD_FOREVER) == 0; i--) {
		counter++;
		hd_mutex_unlock(&mutex);
	}
	return arg;
}

static double contend(int count, unsigned flags, long n)
{
	hd_mutex_init(&mutex, flags);
	counter = 0;
	rounds = n / count;
	double took = time_all(count, contender);
	bench_same("mutex: wrong count", counter, n);
	return took;
}

static double contend_2(long n)
{
	return contend(2, HD_IN_ORDER, n);
}

static double contend_2_barging(long n)
{
	return contend(2, 0, n);
}

static double contend_crowd(long n)
{
	return contend(CROWD, HD_IN_ORDER, n);
}

static double contend_crowd_barging(long n)
{
	return contend(CROWD, 0, n);
}

void mutex2(void)
{
	bench_rate("mutex2", contend_2, 2000);
}

void mutex2_barging(void)
{
	bench_rate("mutex2_barging", contend_2_barging, 2000);
}

void mutex1000(void)
{
	bench_rate("mutex1000", contend_crowd, CROWD * 100);
}

void mutex1000_barging(void)
{
	bench_rate("mutex1000_barging", contend_crowd_barging, CROWD * 100);
}

static hd_queue *new_queue(void)
{
	hd_queue *q = hd_queue_new(sizeof(int64_t), BENCH_QUEUE_CAPACITY);
	if (q == NULL)
		bench_die("hd_queue_new", ENOMEM);
	return q;
}

static void produce(hd_queue *q)
{
	for (int64_t item = rounds; item > 0; item--)
		bench_ok(hd_queue_put(q, &item, HD_FOREVER), "hd_queue_put");
}

static hd_queue *queue;
static atomic_llong taken; /* the sum of all items */

static void consume(void)
{
	int64_t sum = 0, item = 0;

	for (long i = rounds; i > 0; i--) {
		bench_ok(hd_queue_next(queue, &item, HD_FOREVER), "hd_queue_next");
		sum += item;
	}
	atomic_fetch_add_explicit(&taken, sum, memory_order_relaxed); /* only counted */
}

static void *producer_or_consumer(void *arg)
{
	if ((intptr_t)arg % 2 == 0)
		produce(queue);
	else
		consume();
	return NULL;
}

static double through_queue(int pairs, long n)
{
	queue = new_queue();
	atomic_store_explicit(&taken, 0, memory_order_relaxed);
	rounds = n / pairs;
	double took = time_all(2 * pairs, producer_or_consumer);
	bench_same("queue: wrong sum", atomic_load_explicit(&taken, memory_order_relaxed), pairs * bench_sum(rounds));
	hd_queue_drop(queue);
	return took;
}

static double through_queue_1x1(long n)
{
	return through_queue(1, n);
}

static double through_queue_4x4(long n)
{
	return through_queue(4, n);
}

static double through_queue_100x100(long n)
{
	return through_queue(100, n);
}

void queue_1x1(void)
{
	bench_rate("queue_1x1", through_queue_1x1, 1000);
}

void queue_4x4(void)
{
	bench_rate("queue_4x4", through_queue_4x4, 1000);
}

void queue_100x100(void)
{
	bench_rate("queue_100x100", through_queue_100x100, 10000);
}

static struct hd_condition changed;
static int turn;

static void *taker(void *arg)
{
	int me = (int)(intptr_t)arg;

	for (long i = rounds; i > 0 && hd_mutex_lock(&mutex, HD_FOREVER) == 0; i--) {
		int err = 0;
		while (err == 0 && turn != me)
			err = hd_condition_wait(&changed, &mutex, HD_FOREVER);
		turn = 1 - me;
		hd_condition_signal(&changed);
		hd_mutex_unlock(&mutex);
	}
	return NULL;
}

static double hand_offs(long n)
{
	turn = 0;
	rounds = n / 2;
	return time_all(2, taker);
}

void condition(void)
{
	bench_rate("condition", hand_offs, 1000);
}

static void *answer(void *arg)
{
	return arg;
}

static double promises(long n)
{
	int64_t sum = 0;
	double start = bench_now();

	for (long i = n; i > 0; i--) {
		void *value;
		hd_promise *p = hd_promise_spawn(answer, (void *)(intptr_t)i);
		if (p == NULL)
			bench_die("hd_promise_spawn", ENOMEM);
		bench_ok(hd_promise_value(p, &value, HD_FOREVER), "hd_promise_value");
		hd_promise_release(p);
		sum += (intptr_t)value;
	}
	double took = bench_now() - start;
	bench_same("promise: wrong sum", sum, bench_sum(n));
	return took;
}

void promise(void)
{
	bench_rate("promise", promises, 1000);
}

static hd_queue *choices[BENCH_CHOICES];

static void choose(void)
{
	struct hd_case cases[BENCH_CHOICES];
	int64_t items[BENCH_CHOICES], sum = 0;

	for (int i = 0; i < BENCH_CHOICES; i++)
		cases[i] = hd_case_next(choices[i], &items[i]);
	for (long i = rounds * BENCH_CHOICES; i > 0; i--)
		sum += items[bench_ok(hd_select(cases, BENCH_CHOICES, HD_FOREVER), "hd_select")];
	bench_same("select8: wrong sum", sum, BENCH_CHOICES * bench_sum(rounds));
}

/* One chooses, and each of the others has a queue of its own. */
static void *producer_or_chooser(void *arg)
{
	intptr_t i = (intptr_t)arg;

	if (i < BENCH_CHOICES)
		produce(choices[i]);
	else
		choose();
	return NULL;
}

static double choose_among_8(long n)
{
	for (int i = 0; i < BENCH_CHOICES; i++)
		choices[i] = new_queue();
	rounds = n / BENCH_CHOICES;
	double took = time_all(BENCH_CHOICES + 1, producer_or_chooser);
	for (int i = 0; i < BENCH_CHOICES; i++)
		hd_queue_drop(choices[i]);
	return took;
}

void select8(void)
{
	bench_rate("select8", choose_among_8, 1000);
}
